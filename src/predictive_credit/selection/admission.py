"""Who may rank: a forecaster by the checks that its paired forecasts passed, and what it may be shown.

Commitment, delivery and sensitivity are needed throughout: without the first its errors prove nothing,
without the second they are not its own, without the third it does not read what it is given. `value`
decides whether an explanation is shown, for only then has one been seen to help. `alignment` decides
nothing here and is told: where it failed, the number on a card helps and the reasons beside it may not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from predictive_credit.records import Context

NEEDED: Final = ("commitment", "delivery", "sensitivity")

Checks = Mapping[str, Any]  # name to what `metrics/checks.json` holds of it


def refusal(checks: Checks) -> str | None:
    """Which needed check did not pass, as `sensitivity failed (0.32 with the card, ...)`; None if all did."""
    missed = [name for name in NEEDED if status(checks, name) != "passed"]
    if not missed:
        return None
    more = f", and {', '.join(missed[1:])} did not pass either" if missed[1:] else ""
    return f"{_said(checks, missed[0])}{more}"


def allowed(checks: Checks) -> tuple[Context, ...]:
    """The contexts in which an admitted forecaster may be asked, the best first."""
    if status(checks, "value") == "passed":
        return (Context.MATCHED, Context.DESCRIPTION)
    return (Context.DESCRIPTION,)


def notes(checks: Checks) -> tuple[str, ...]:
    """What a reader of an admitted forecaster's ranking has to know of the other two checks."""
    found = []
    if status(checks, "value") != "passed":
        found.append(
            f"{_said(checks, 'value')}: explanations are not used, and every proposal is forecast from its "
            "situation alone."
        )
    elif status(checks, "alignment") != "passed":
        found.append(
            f"{_said(checks, 'alignment')}: a donor's explanation did as well as the matched one, so this "
            "ranking rests on the number that an explanation states and not on its reasons."
        )
    return tuple(found)


def status(checks: Checks, name: str) -> str:
    """`passed`, `failed` or `not_estimable`."""
    return str(checks[name]["status"])


def _said(checks: Checks, name: str) -> str:
    seen = checks[name].get("seen")
    return f"{name} {status(checks, name).replace('_', ' ')}{f' ({seen})' if seen else ''}"
