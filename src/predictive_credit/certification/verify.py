"""Verification: is a bundle whole, honestly recorded, and decided by the rules?

It needs no model, no network and no clock. `ok` says that the record is honest, not that the claim
is certified: a refuted claim verifies too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictive_credit.certification.bundle import Bundle, load
from predictive_credit.certification.certificate import certificate
from predictive_credit.certification.decision import decide
from predictive_credit.certification.records import Refused

TOLERANCE = 1e-12  # between a saved number and the replayed one, at the decision level
PROSE = ("reason", "statement", "reasons", "errors", "implementation", "issuance_note")


@dataclass(frozen=True, kw_only=True)
class Levels:
    """How closely the saved certificate repeats the replayed one.

    decision: the same words and structure, numbers within 1e-12, explanations aside.
    exact: equal in every word and every last digit, as other implementations compare.
    """

    decision: bool = False
    exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Report:
    """A verifier's answer. The verdict is the replayed one, and None where nothing could be replayed."""

    ok: bool
    bundle_id: str | None
    errors: tuple[str, ...]
    replayed_verdict: dict[str, Any] | None
    levels: Levels


def verify(folder: Path) -> Report:
    """Check a bundle and replay its decision. Never raises, whatever the folder holds."""
    try:
        found = load(folder)
        replayed = replay(found)
        levels = compare(found.certificate, replayed)
    except Refused as error:
        return _refusal(str(error))
    except RecursionError:
        return _refusal("the bundle's records are nested too deeply to be replayed")
    except (TypeError, ValueError, ArithmeticError) as error:  # a record that no rule foresees
        return _refusal(f"the bundle's records cannot be replayed: {error}")
    errors = () if levels.exact else ("saved certificate does not match a fresh replay",)
    return Report(
        ok=levels.exact,
        bundle_id=found.bundle_id,
        errors=errors,
        replayed_verdict=replayed["verdict"],
        levels=levels,
    )


def _refusal(sentence: str) -> Report:
    return Report(ok=False, bundle_id=None, errors=(sentence,), replayed_verdict=None, levels=Levels())


def replay(bundle: Bundle) -> dict[str, Any]:
    """The certificate that a bundle's evidence makes."""
    b = bundle
    decision = decide(b.registration, b.integrity, b.gate1, b.gate2, b.gate3)
    return certificate(b.registration, b.integrity, b.gate1, b.gate3, decision)


def compare(saved: Any, replayed: Any) -> Levels:
    """At which levels a saved certificate agrees with a replayed one."""
    return Levels(decision=_agree(saved, replayed), exact=bool(saved == replayed))


def _agree(saved: Any, fresh: Any) -> bool:
    if isinstance(saved, dict) and isinstance(fresh, dict):
        return set(saved) == set(fresh) and all(k in PROSE or _agree(saved[k], fresh[k]) for k in saved)
    if isinstance(saved, list) and isinstance(fresh, list):
        return len(saved) == len(fresh) and all(map(_agree, saved, fresh))
    if isinstance(saved, int | float) and isinstance(fresh, int | float):
        return saved == fresh or abs(saved - fresh) <= TOLERANCE
    return type(saved) is type(fresh) and bool(saved == fresh)
