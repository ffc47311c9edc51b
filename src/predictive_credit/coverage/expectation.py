"""What the printed rows should be near: the mean of many sets of six populations, and how far one set strays.

A printed number is a mean over one set of six populations, and so is ours. Their difference strays more
than either; and where many numbers are looked at, some lie outside any band. Both are found by drawing
sets: the mean of many has next to no noise of its own, so that what a printed number is off from it is
the printed number's own draw, or a study that was made in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from predictive_credit.coverage import published
from predictive_credit.coverage.published import ERRORS, Compared
from predictive_credit.coverage.scoring import Pooled, pool
from predictive_credit.coverage.statistics import Array
from predictive_credit.coverage.synthetic import Plan, run
from predictive_credit.streams import unit_seed

SETS = 200
SIZES = tuple(sorted({row.pilot_agents for row in published.ROWS}))
DIGITS = 6  # of a set's means that are kept; printed are two to four

Key = tuple[str, int, str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """One printed number as it comes out in many sets of six populations: `means`, one a set."""

    scenario: str
    pilot_agents: int
    forecaster: str
    scheme: str
    measure: str
    means: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A printed number beside the mean of many sets; error: standard deviation of one set's mean."""

    scenario: str
    pilot_agents: int
    forecaster: str
    scheme: str
    measure: str
    printed: float
    expected: float
    error: float

    @property
    def off(self) -> float:
        """How many standard errors of one set the printed number lies above the expected one."""
        return (self.printed - self.expected) / self.error

    @property
    def near(self) -> bool:
        """Whether it lies within ERRORS of them."""
        return abs(self.off) <= ERRORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How many numbers lie outside their bands, and how many would by chance.

    chance: mean number outside where both sides are sets of ours. as_many: share of those that have
    at least as many outside as were `outside`.
    """

    numbers: int
    outside: int
    chance: float
    as_many: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Three judgements of the same printed numbers.

    one_mean: a run's own set, in the bands that allow for the draw of one set. two_means: the same in
    bands that allow for the draw of both; both None for a run that is no such set. expectation: the
    mean of many sets, which has next to no noise, in bands of one set.
    """

    one_mean: Judgement | None
    two_means: Judgement | None
    expectation: Judgement


def one_set(number: int) -> tuple[Compared, ...]:
    """The printed numbers beside those of one set of six populations, which has its own seed."""
    seed = unit_seed(0, f"coverage expectation {number}")
    return published.compare(pool(run(Plan(seed=seed, pilot_sizes=SIZES))))


def draw(sets: int = SETS) -> tuple[Sets, ...]:
    """Every printed number in each of several sets, in the order of `published.compare`."""
    drawn = [one_set(number) for number in range(sets)]
    return tuple(
        Sets(
            scenario=same[0].scenario,
            pilot_agents=same[0].pilot_agents,
            forecaster=same[0].forecaster,
            scheme=same[0].scheme,
            measure=same[0].measure,
            means=tuple(round(one.ours, DIGITS) for one in same),
        )
        for same in zip(*drawn, strict=True)
    )


def expected(sets: Iterable[Sets]) -> tuple[Expected, ...]:
    """Every printed number beside the mean of the sets. Raises KeyError for one that is not printed."""
    printed = {
        (row.scenario, row.pilot_agents, row.forecaster, row.scheme, measure): getattr(row, measure)
        for row in published.ROWS
        for measure in published.MEASURES
    }
    return tuple(
        Expected(
            scenario=one.scenario,
            pilot_agents=one.pilot_agents,
            forecaster=one.forecaster,
            scheme=one.scheme,
            measure=one.measure,
            printed=printed[_key(one)],
            expected=float(np.mean(one.means)),
            error=float(np.std(one.means, ddof=1)),
        )
        for one in sets
    )


def judge(
    sets: Sequence[Sets], compared: Iterable[Compared], *, measures: Sequence[str] = published.MEASURES
) -> Judged:
    """Judge a run's numbers, and the sets' mean, by the printed ones of certain measures.

    Chance is that of two sets of ours for a run, and of a set and the mean of all for the mean.
    Raises KeyError where a set's number is not among those compared.
    """
    asked = [one for one in sets if one.measure in measures]
    theirs = {_key(one): one for one in compared}
    mine = [theirs[_key(one)] for one in asked]
    means = np.array([one.means for one in asked])  # (numbers, sets)
    centre, error = means.mean(axis=1), means.std(axis=1, ddof=1)
    printed, ours, one_mean = (
        np.array([getattr(one, part) for one in mine]) for part in ("printed", "ours", "band")
    )
    of_one = ERRORS * error
    of_two = np.sqrt(2.0) * of_one
    first, second = np.triu_indices(means.shape[1], 1)
    apart = np.abs(means[:, first] - means[:, second])
    away = np.abs(means - centre[:, None])
    return Judged(
        one_mean=_judgement(np.abs(ours - printed), apart, one_mean),
        two_means=_judgement(np.abs(ours - printed), apart, of_two),
        expectation=_judgement(np.abs(centre - printed), away, of_one),
    )


def is_a_set(rows: Iterable[Pooled]) -> bool:
    """Whether a run is as large as a set, so that sets can tell what is chance in it."""
    plan = Plan(seed=0)
    return {(row.populations, row.pilots) for row in rows} == {
        (plan.populations, plan.populations * plan.pilots)
    }


def _judgement(seen: Array, by_chance: Array, bands: Array) -> Judgement:
    """Distances (numbers,) and those of sets (numbers, several), against bands (numbers,)."""
    outside = int(np.count_nonzero(seen > bands))
    counts: NDArray[np.intp] = np.count_nonzero(by_chance > bands[:, None], axis=0)
    return Judgement(
        numbers=len(bands),
        outside=outside,
        chance=float(counts.mean()),
        as_many=float(np.mean(counts >= outside)),
    )


def _key(one: Sets | Compared) -> Key:
    return one.scenario, one.pilot_agents, one.forecaster, one.scheme, one.measure
