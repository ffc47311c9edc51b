"""The sentence a forecast is elicited in, and how it is read: one clause a target, in the study's order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from predictive_credit import wording
from predictive_credit.forecasters.possible import check_possible, shortened
from predictive_credit.records import Forecast, MalformedForecast, Target
from predictive_credit.wording import Stated

SEPARATOR = "; "


def grammar(targets: Sequence[Target]) -> str:
    """The GBNF of the sentence. Its sizes hold all but freak amounts; the reader takes any possible one."""
    return f"root ::= {wording.forecast_rule(targets)}\n{wording.shared_rules(targets)}"


def write(stated: Sequence[Stated], targets: Sequence[Target], *, decimals: int | None = None) -> str:
    """The sentence of a point and its distances down and up for each target.

    decimals: digits after the point; None: as many as each target's size has.
    """
    clauses = (wording.said(s, t, decimals=decimals) for s, t in zip(stated, targets, strict=True))
    return SEPARATOR.join(clauses)


def read(text: str, unit_id: str, targets: Sequence[Target]) -> tuple[Forecast, ...]:
    """What a sentence states of each target, in its unit; `increase` is positive.

    White space around the sentence is forgiven and nothing else. The point has to be possible, in
    [lower, upper] of its target; an end of the interval may stick out by as much as that range is
    wide. Beyond that a number says nothing of the target, and one such score would outweigh all others.
    Raises MalformedForecast.
    """
    found = re.fullmatch(SEPARATOR.join(map(_pattern, targets)), text.strip())
    if found is None:
        raise MalformedForecast(f"unit {unit_id}: not the sentence asked for: {shortened(text)!r}")
    groups = found.groups()
    clauses = [groups[4 * i : 4 * i + 4] for i in range(len(targets))]
    return tuple(_forecast(clause, unit_id, target) for clause, target in zip(clauses, targets, strict=True))


def _pattern(target: Target) -> str:
    """A clause with four groups: the word of the sign, the size, the distances down and up."""
    number = r"([0-9]+\.[0-9]+)" if target.decimals else r"([0-9]+(?:\.[0-9]+)?)"
    if target.form == "change":
        does = "(increase|decrease) by "
    else:
        does = "be (minus )?" if target.lower < 0 else "be ()"
    return (
        rf"{re.escape(target.phrase)} will {does}{number}{re.escape(target.suffix)} "
        rf"\(80% interval: minus {number}, plus {number}\)"
    )


def _forecast(clause: Sequence[str | None], unit_id: str, target: Target) -> Forecast:
    word, *numbers = clause
    size, minus, plus = (float(str(number)) for number in numbers)
    point = -size if word in ("decrease", "minus ") else size
    read = Forecast(unit_id=unit_id, target=target.name, point=point, lower=point - minus, upper=point + plus)
    check_possible(read, target)
    return read
