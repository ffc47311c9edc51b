"""The five checks, each from scored units to a CheckResult.

A study's figures mean what they say only as far as these go: was the order of events kept
(commitment), did the explanations arrive and the answers come back (delivery), does the matched
explanation help (value), because it is the matched one (alignment), and can this forecaster be seen
to react to a signal that is known to be there (sensitivity)? Where a study has several targets, the
last three are asked of each and pass only if all do; their numbers are keyed `<target>.<number>`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.bootstrap import Design, nested_statistic, one_sided_bounds
from predictive_credit.contrasts import MIN_CLUSTERS, MIN_STATES, Contrast
from predictive_credit.exact import exact_lower_bound
from predictive_credit.scoring import spearman

Array = NDArray[np.float64]
CheckStatus = Literal["passed", "failed", "not_estimable"]
Number = float | int | bool | str | None
Gains = tuple[Contrast | None, Contrast | None]  # in the primary loss and in point error

T = TypeVar("T")

READABLE_FLOOR = 0.95  # share of replies that can be read as a forecast
UPTAKE_FLOOR = 0.5  # rank correlation of the card's number with the matched forecast
UNDEFINED_CEILING = 0.05  # share of resamples without a rank correlation, beyond which the rest mislead


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


class Partial(NamedTuple):
    """What one target has to say to a check."""

    status: CheckStatus
    asked: str
    seen: str
    numbers: Mapping[str, Number]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """What `sensitivity` compares in one target, each (state,).

    stated: the number each matched card states, NaN where it states none. matched, description:
    ensemble points of M, which saw the card, and of D, which did not and is the placebo.
    """

    stated: Array
    matched: Array
    description: Array


def commitment(integrity: Mapping[str, Any]) -> CheckResult:
    """Whether every forecast was frozen before any outcome was opened.

    integrity: what the shell verified: `chain_ok`, `commitments_ok`, `opened_after_freeze`,
    `planned_after_opening`, which names an earlier opening of the same outcomes, or None,
    `arrived_after_freeze`, how many outcomes did not exist yet when the forecasts were frozen, and
    `brought_by_user`, whether outcomes are a user's own rather than executed here, and `known_before`,
    the study whose opened outcomes a control reuses, or None.
    """
    facts = ("chain_ok", "commitments_ok", "opened_after_freeze")
    asked = "an unbroken ledger, outcomes that match their commitments, all opened after the freeze"
    unknown = [fact for fact in facts if integrity.get(fact) is None]
    broken = [fact for fact in facts if integrity.get(fact) is False]
    earlier, later = integrity.get("planned_after_opening"), integrity.get("arrived_after_freeze")
    numbers = {fact: integrity.get(fact) for fact in facts}
    numbers |= {"planned_after_opening": earlier, "arrived_after_freeze": later}
    if (known := integrity.get("known_before")) and not broken and not unknown:
        reading = (
            f"A control is planned when the outcomes of {known} are known. They are the ones that were "
            "opened there, and no forecast was made or changed after all were frozen, before any was scored."
        )
        asked = "an unbroken ledger, the study's own outcomes, every forecast frozen before it was scored"
        return _result("passed", asked, "all three hold", reading, numbers)
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
    return _result("passed", asked, "all three hold", _kept_order(integrity), numbers)


def _kept_order(integrity: Mapping[str, Any]) -> str:
    """How far a kept order of events goes: whose outcomes are executed elsewhere may have been seen there."""
    if not integrity.get("brought_by_user"):
        return (
            "Every forecast was frozen before any outcome could be read, as the ledger and commitments show."
        )
    later = integrity.get("arrived_after_freeze")
    came = (
        f" {later} of them arrived after the freeze, and could not be committed to before it."
        if later
        else ""
    )
    return (
        f"Every forecast was frozen before the outcomes were opened here.{came} They were not executed here: "
        "that nobody had seen them earlier rests on the word of whoever brought them."
    )


def delivery(
    *, planned: int, answered: int, readable: int, to_explain: int, explained: int,
    cards: Mapping[str, tuple[int, int]],
) -> CheckResult:  # fmt: skip
    """Whether the plan was carried out: calls answered, replies readable, explanations shown.

    planned, answered, readable: forecast units. to_explain, explained: units of the contexts that
    show an explanation, and those of them for which one with a text was there. cards: by source, how
    many there are and how many have all six slots filled; that share is printed and gates nothing.
    """
    share = readable / planned if planned else None
    total, complete = (sum(of[k] for of in cards.values()) for k in (0, 1))
    numbers: dict[str, Number] = {
        "planned": planned,
        "answered": answered,
        "readable": readable,
        "readable_share": share,
        "readable_lower": exact_lower_bound(readable, planned, tail=0.05) if planned else None,
        "to_explain": to_explain,
        "explained": explained,
        "cards": total,
        "complete_cards": complete,
        "complete_card_share": complete / total if total else None,
    }
    for source, (n, n_complete) in cards.items():
        numbers |= {f"cards_{source}": n, f"complete_cards_{source}": n_complete}
    asked = (
        f"every unit answered, at least {READABLE_FLOOR:.0%} readable, "
        "an explanation for every prompt that shows one"
    )
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


def value(gains: Mapping[str, Gains], *, level: float, pair: str = "D-M") -> CheckResult:
    """Whether the matched explanation beats the description alone (gains D-M, by target).

    level: that of the gains' one-sided bounds, which the study's rule fixes.
    """
    return _of_all(
        gains,
        lambda of: _gains(pair, *of, level),
        passed="With its matched explanation the forecaster predicts better than from the description alone.",
        failed="It has not been shown that the matched explanation helps beyond the description.",
        silent=f"There is no interval for the {pair} gain, or one of its contexts was not asked.",
    )


def alignment(gains: Mapping[str, Gains], *, level: float, pair: str = "S-M") -> CheckResult:
    """Whether the matched explanation beats a donor's (gains S-M, by target): does it matter whose it is?

    level: as in `value`.
    """
    return _of_all(
        gains,
        lambda of: _gains(pair, *of, level),
        passed="What helps is the explanation of this very state; a donor's does not do as well.",
        failed="It has not been shown that the matched explanation does better than a donor's.",
        silent=f"There is no interval for the {pair} gain, or one of its contexts was not asked.",
    )


def sensitivity(
    signals: Mapping[str, Signal], design: Design, *, draws: int, level: float, rng: Callable[[], Generator]
) -> CheckResult:
    """Whether the forecaster follows a signal known to be in the prompt: the card's own number.

    signals: by target. rng: makes the check's stream anew, so that every target sees the same
    resamples. Passed if the rank correlation in M reaches the floor and exceeds the one in D by a
    one-sided bootstrap bound at `level`. Not estimable with cards that state a number in fewer than
    three clusters or ten states, or where many resamples hold but one number. A forecaster that
    cannot be seen to read cannot show that there was nothing worth reading.
    """
    return _of_all(
        signals,
        lambda of: _sensitivity(of, design, draws, level, rng()),
        passed=(
            "The forecaster visibly follows the number on its card, "
            "so a missing gain is not a failure to read."
        ),
        failed=(
            "The forecaster does not visibly follow its cards, so a missing gain may be a failure to read."
        ),
        silent="Whether the forecaster reads its cards cannot be told from this run.",
    )


def _sensitivity(signal: Signal, design: Design, draws: int, level: float, rng: Generator) -> Partial:
    asked = (
        f"rank correlation of card and M >= {UPTAKE_FLOOR}, and above that of card and D "
        f"by its one-sided {level:.0%} lower bound"
    )
    stated, matched, description = signal.stated, signal.matched, signal.description
    used = ~np.isnan(stated) & ~np.isnan(matched) & ~np.isnan(description)
    numbers: dict[str, Number] = {
        "n_states": int(used.sum()),
        "n_cards_without_number": int(np.isnan(stated).sum()),
    }
    why = _silent(used, design, stated=stated, matched=matched, description=description)
    if why is not None:
        return Partial("not_estimable", asked, why, numbers)
    x, m, d = stated[used], matched[used], description[used]
    rho_m, rho_d = float(spearman(x, m)), float(spearman(x, d))

    def gap(counts: Array) -> Array:
        rest = counts[:, used]
        difference: Array = spearman(x, m, rest) - spearman(x, d, rest)
        return difference

    gaps = nested_statistic(design, gap, draws=draws, rng=rng)
    undefined = int(np.isnan(gaps).sum())
    numbers["n_undefined_resamples"] = undefined
    if undefined > UNDEFINED_CEILING * draws:
        why = f"{undefined} of {draws} resamples hold a constant; at most {UNDEFINED_CEILING:.0%} may"
        return Partial("not_estimable", asked, why, numbers)
    bound = one_sided_bounds(gaps, level=level).lower
    numbers |= {
        "rho_matched": rho_m,
        "rho_description": rho_d,
        "gap": rho_m - rho_d,
        "gap_lower": bound,
        "equal_signs_matched": float(np.mean(np.sign(x) == np.sign(m))),
        "equal_signs_description": float(np.mean(np.sign(x) == np.sign(d))),
    }
    seen = f"{rho_m:.2f} with the card, {rho_d:.2f} without, gap at least {bound:.2f}"
    return Partial("passed" if rho_m >= UPTAKE_FLOOR and bound > 0 else "failed", asked, seen, numbers)


def _gains(pair: str, primary: Contrast | None, point: Contrast | None, level: float) -> Partial:
    asked = (
        f"one-sided {level:.0%} lower bounds of the {pair} gain above 0, "
        "in the primary loss and in point error"
    )
    numbers: dict[str, Number] = {}
    for name, gain in (("primary", primary), ("point_error", point)):
        for end in ("mean", "lower", "upper", "one_sided_lower"):
            numbers[f"{name}_{end}"] = None if gain is None else getattr(gain, end)
    if primary is None or point is None:
        return Partial("not_estimable", asked, "one of the contexts was not asked", numbers)
    first, second = primary.one_sided_lower, point.one_sided_lower
    if first is None or second is None:
        return Partial("not_estimable", asked, primary.reason or point.reason or "no interval", numbers)
    seen = f"{first:+.5f} in the primary loss, {second:+.5f} in point error"
    return Partial("passed" if min(first, second) > 0 else "failed", asked, seen, numbers)


def _of_all(
    targets: Mapping[str, T], check: Callable[[T], Partial], *, passed: str, failed: str, silent: str
) -> CheckResult:
    """One result over all targets: failed if one failed, else not estimable if one was not."""
    parts = {name: check(of) for name, of in targets.items()}
    readings: dict[CheckStatus, str] = {"failed": failed, "not_estimable": silent, "passed": passed}
    seen_statuses = {part.status for part in parts.values()}
    status = next(status for status in readings if status in seen_statuses)
    asked = next(iter(parts.values())).asked
    if len(parts) == 1:
        (part,) = parts.values()
        return _result(status, asked, part.seen, readings[status], part.numbers)
    return _result(
        status,
        f"in every target: {asked}",
        "; ".join(f"{name}: {part.seen}" for name, part in parts.items()),
        readings[status],
        {f"{name}.{key}": of for name, part in parts.items() for key, of in part.numbers.items()},
    )


def _silent(used: NDArray[np.bool_], design: Design, **columns: Array) -> str | None:
    """Why no rank correlation can be had, or None."""
    clusters = len(np.unique(design.clusters[used]))
    if clusters < MIN_CLUSTERS:
        return f"{clusters} clusters with a card that states a number; {MIN_CLUSTERS} are needed"
    if used.sum() < MIN_STATES:  # a rank correlation of three states is one of six orders
        return f"{used.sum()} states with a card that states a number; {MIN_STATES} are needed"
    constant = [name for name, column in columns.items() if np.ptp(column[used]) == 0.0]
    return f"constant over all states: {', '.join(constant)}" if constant else None


def _result(
    status: CheckStatus, asked: str, seen: str, reading: str, numbers: Mapping[str, Number]
) -> CheckResult:
    return CheckResult(status=status, asked=asked, seen=seen, reading=reading, numbers=numbers)
