"""The five checks, each from scored units to a CheckResult.

A study's figures mean what they say only as far as these go: was the order of events kept
(commitment), did the explanations arrive and the answers come back (delivery), does the matched
explanation help (value), because it is the matched one (alignment), and can this forecaster be seen
to react to a signal that is known to be there (sensitivity)?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.bootstrap import nested_statistic, one_sided_bounds
from predictive_credit.contrasts import MIN_CLUSTERS, Contrast
from predictive_credit.exact import exact_lower_bound
from predictive_credit.scoring import spearman

Array = NDArray[np.float64]
CheckStatus = Literal["passed", "failed", "not_estimable"]
Number = float | int | bool | str | None

READABLE_FLOOR = 0.95  # share of replies that can be read as a forecast
UPTAKE_FLOOR = 0.5  # rank correlation of the card's number with the matched forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check asked and saw, in words and in numbers, and one sentence to read it by."""

    status: CheckStatus
    asked: str
    seen: str
    reading: str
    numbers: Mapping[str, Number]

    def plain(self) -> dict[str, Any]:
        """As one flat JSON-plain dict."""
        words = {"status": self.status, "asked": self.asked, "seen": self.seen, "reading": self.reading}
        return {**self.numbers, **words}


def commitment(integrity: Mapping[str, Any]) -> CheckResult:
    """Whether every forecast was frozen before any outcome was opened.

    integrity: what the shell verified: `chain_ok`, `commitments_ok`, `opened_after_freeze`, and
    `planned_after_opening`, which names an earlier opening of the same outcomes, or None.
    """
    facts = ("chain_ok", "commitments_ok", "opened_after_freeze")
    asked = "an unbroken ledger, outcomes that match their commitments, all opened after the freeze"
    unknown = [fact for fact in facts if integrity.get(fact) is None]
    broken = [fact for fact in facts if integrity.get(fact) is False]
    earlier = integrity.get("planned_after_opening")
    numbers = {fact: integrity.get(fact) for fact in facts} | {"planned_after_opening": earlier}
    if broken or earlier:
        seen = ", ".join(
            [*(f"{fact} is false" for fact in broken), *([f"planned after {earlier}"] if earlier else [])]
        )
        reading = "The forecasts cannot be shown to have been fixed before the outcomes were readable."
        return _result("failed", asked, seen, reading, numbers)
    if unknown:
        seen = f"no evidence on {', '.join(unknown)}"
        reading = "Nothing here shows in which order forecasts and outcomes came to be."
        return _result("not_estimable", asked, seen, reading, numbers)
    reading = (
        "Every forecast was frozen before any outcome could be read, as the ledger and commitments show."
    )
    return _result("passed", asked, "all three hold", reading, numbers)


def delivery(
    *, planned: int, answered: int, readable: int, to_explain: int, explained: int, cards: int, complete: int
) -> CheckResult:
    """Whether the plan was carried out: calls answered, replies readable, explanations shown.

    planned, answered, readable: forecast units. to_explain, explained: units of the contexts M and
    S, and those of them whose prompt carried a text. cards, complete: cards, and those with all six
    slots filled; that share is printed and gates nothing.
    """
    share = readable / planned if planned else None
    numbers: dict[str, Number] = {
        "planned": planned,
        "answered": answered,
        "readable": readable,
        "readable_share": share,
        "readable_lower": exact_lower_bound(readable, planned, tail=0.05) if planned else None,
        "to_explain": to_explain,
        "explained": explained,
        "cards": cards,
        "complete_cards": complete,
        "complete_card_share": complete / cards if cards else None,
    }
    asked = f"every unit answered, at least {READABLE_FLOOR:.0%} readable, all M and S prompts explained"
    if share is None:
        return _result("not_estimable", asked, "no planned unit", "Nothing was asked.", numbers)
    seen = f"{answered}/{planned} answered, {share:.1%} readable, {explained}/{to_explain} explained"
    held = answered == planned and share >= READABLE_FLOOR and explained == to_explain
    reading = (
        "The protocol was delivered as planned; the contrasts are about explanations that were really shown."
        if held
        else "The protocol was not delivered as planned; read every contrast with its worst and best case."
    )
    return _result("passed" if held else "failed", asked, seen, reading, numbers)


def value(primary: Contrast | None, point: Contrast | None) -> CheckResult:
    """Whether the matched explanation beats the description alone (gains D-M)."""
    return _gains(
        "D-M", primary, point,
        passed="With its matched explanation the forecaster predicts better than from the description alone.",
        failed="It has not been shown that the matched explanation helps beyond the description.",
    )  # fmt: skip


def alignment(primary: Contrast | None, point: Contrast | None) -> CheckResult:
    """Whether the matched explanation beats a donor's (gains S-M): does it matter whose it is?"""
    return _gains(
        "S-M", primary, point,
        passed="What helps is the explanation of this very state; a donor's does not do as well.",
        failed="It has not been shown that the matched explanation does better than a donor's.",
    )  # fmt: skip


def sensitivity(
    stated: Array, matched: Array, description: Array, *, draws: int, level: float, rng: Generator
) -> CheckResult:
    """Whether the forecaster follows a signal known to be in the prompt: the card's own number.

    stated: (endpoint, budget, seed) the number each card states, NaN where it states none.
    matched, description: ensemble points of M, which saw the card, and of D, which did not and is
    the placebo. Passed if the rank correlation in M reaches the floor and exceeds the one in D by
    a one-sided bootstrap bound at `level`. A forecaster that cannot be seen to read cannot show
    that there was nothing worth reading.
    """
    asked = f"rank correlation of card and M >= {UPTAKE_FLOOR}, and above that of card and D"
    used = ~np.isnan(stated) & ~np.isnan(matched) & ~np.isnan(description)
    numbers: dict[str, Number] = {
        "n_states": int(used.sum()),
        "n_cards_without_number": int(np.isnan(stated).sum()),
    }
    why = _silent(used, stated=stated, matched=matched, description=description)
    if why is not None:
        reading = "Whether the forecaster reads its cards cannot be told from this run."
        return _result("not_estimable", asked, why, reading, numbers)
    x, m, d = stated[used], matched[used], description[used]
    rho_m, rho_d = float(spearman(x, m)), float(spearman(x, d))
    at = np.flatnonzero(used.ravel())

    def gap(counts: Array) -> Array:
        rest = counts[:, at]
        difference: Array = spearman(x, m, rest) - spearman(x, d, rest)
        return difference

    shape = (stated.shape[0], stated.shape[1], stated.shape[2])
    bound = one_sided_bounds(nested_statistic(shape, gap, draws=draws, rng=rng), level=level).lower
    numbers |= {
        "rho_matched": rho_m,
        "rho_description": rho_d,
        "gap": rho_m - rho_d,
        "gap_lower": bound,
        "equal_signs_matched": float(np.mean(np.sign(x) == np.sign(m))),
        "equal_signs_description": float(np.mean(np.sign(x) == np.sign(d))),
    }
    held = rho_m >= UPTAKE_FLOOR and bound > 0
    seen = f"{rho_m:.2f} with the card, {rho_d:.2f} without, gap at least {bound:.2f}"
    reading = (
        "The forecaster visibly follows the number on its card, so a missing gain is not a failure to read."
        if held
        else "The forecaster does not visibly follow its cards, so a missing gain may be a failure to read."
    )
    return _result("passed" if held else "failed", asked, seen, reading, numbers)


def _gains(
    pair: str, primary: Contrast | None, point: Contrast | None, *, passed: str, failed: str
) -> CheckResult:
    asked = f"lower bounds of the {pair} gain above 0, in the primary loss and in point error"
    numbers: dict[str, Number] = {}
    for name, gain in (("primary", primary), ("point_error", point)):
        for end in ("mean", "lower", "upper"):
            numbers[f"{name}_{end}"] = None if gain is None else getattr(gain, end)
    if primary is None or point is None:
        reading = f"One of the contexts of {pair} was not asked."
        return _result("not_estimable", asked, "nothing", reading, numbers)
    if primary.lower is None or point.lower is None:
        seen = primary.reason or point.reason or "no interval"
        return _result("not_estimable", asked, seen, f"There is no interval for the {pair} gain.", numbers)
    held = primary.lower > 0 and point.lower > 0
    seen = f"{primary.lower:+.5f} in the primary loss, {point.lower:+.5f} in point error"
    return _result("passed" if held else "failed", asked, seen, passed if held else failed, numbers)


def _silent(used: NDArray[np.bool_], **cubes: Array) -> str | None:
    """Why no rank correlation can be had, or None."""
    clusters = int(used.any(axis=(1, 2)).sum())
    if clusters < MIN_CLUSTERS:
        return f"{clusters} endpoints with a card that states a number; {MIN_CLUSTERS} are needed"
    constant = [name for name, cube in cubes.items() if np.ptp(cube[used]) == 0.0]
    return f"constant over all states: {', '.join(constant)}" if constant else None


def _result(
    status: CheckStatus, asked: str, seen: str, reading: str, numbers: Mapping[str, Number]
) -> CheckResult:
    return CheckResult(status=status, asked=asked, seen=seen, reading=reading, numbers=numbers)
