"""The synthetic study: forecasts from pilots of populations whose coverage is known.

Every population, and every use made of it, has its own generator: adding a pilot size, a scenario or a
forecaster moves no draw of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from predictive_credit.coverage import calibrated
from predictive_credit.coverage.calibrated import FROZEN as FROZEN_SETTINGS
from predictive_credit.coverage.calibrated import Settings
from predictive_credit.coverage.estimators import FORECASTERS, FROZEN, at, curve
from predictive_credit.coverage.intervals import (
    REPLICATES,
    SCHEMES,
    Times,
    draw_pilots,
    draw_tasks,
    limits,
    resample_agents,
    resample_tasks,
    with_tasks,
)
from predictive_credit.coverage.populations import OUTSIDE, SCENARIOS, population
from predictive_credit.coverage.rule import PILOT_AGENTS
from predictive_credit.coverage.scoring import Cell, cell
from predictive_credit.coverage.statistics import (
    Counts,
    Matrix,
    Statistics,
    histograms,
    of_histograms,
    stacked,
)
from predictive_credit.streams import stream, unit_seed

PILOT_SIZES = (3, 5, 10, 20, 30)
CALIBRATED = "calibrated"
PREDICTIVE = "predictive"  # the scheme of an interval that comes from a posterior

# Seeds on which the calibrated method was developed; what it does there says nothing.
DEVELOPMENT_SEEDS = (1, 101, 102, 103, 104)
# Held-out populations come from a name, not from a choice among seeds.
HELD_OUT_SEED = unit_seed(0, "coverage held-out 2026-12")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is drawn and forecast. others: also the forecasters that are not frozen, points alone.

    sizes_share_tasks: the n-th pilots of all sizes see the same resampled tasks, which are drawn once;
    otherwise each pilot's histogram is resampled by itself. Either way the pilots of a size are
    resampled independently of each other, which is what the error of a mean over them rests on.
    """

    seed: int
    scenarios: tuple[str, ...] = tuple(SCENARIOS)
    populations: int = 6
    pilots: int = 30
    pilot_sizes: tuple[int, ...] = PILOT_SIZES
    replicates: int = REPLICATES
    others: bool = False
    sizes_share_tasks: bool = True


# The one trial of the calibrated forecaster. Of one size alone: there is nothing to share.
TRIAL = Plan(
    seed=HELD_OUT_SEED, populations=24, pilots=30, pilot_sizes=(PILOT_AGENTS,), sizes_share_tasks=False
)


def run(plan: Plan) -> tuple[Cell, ...]:
    """One cell for each population, pilot size, forecaster and interval scheme."""
    return tuple(
        one
        for scenario, number, matrix in _populations(plan)
        for times in (_task_draws(plan, scenario, number, matrix),)
        for size in plan.pilot_sizes
        for one in _frozen(plan, scenario, number, matrix, size, times)
    )


def run_calibrated(plan: Plan, settings: Settings) -> tuple[Cell, ...]:
    """The calibrated forecaster's cells, from the same populations and pilots as `run`."""
    return tuple(
        _calibrated(plan, settings, scenario, number, matrix, size)
        for scenario, number, matrix in _populations(plan)
        for size in plan.pilot_sizes
    )


def held_out(
    *,
    populations: int = TRIAL.populations,
    pilots: int = TRIAL.pilots,
    outside_pilots: int = 10,
    settings: Settings = FROZEN_SETTINGS,
) -> tuple[Cell, ...]:
    """The calibrated forecaster from 10 agents on populations it was not developed on.

    Its cells in the four scenarios, the frozen forecasters' on the same pilots, and its cells outside
    the four. With the defaults this is the run that was made once, after which nothing was changed.
    """
    plan = replace(TRIAL, populations=populations, pilots=pilots)
    outside = replace(plan, scenarios=tuple(OUTSIDE), pilots=outside_pilots)
    return (*run_calibrated(plan, settings), *run(plan), *run_calibrated(outside, settings))


def pilots_of(plan: Plan, scenario: str, number: int, matrix: Matrix, size: int) -> Matrix:
    """The pilots of `size` agents, (pilots, size, tasks), drawn from one population."""
    rng = stream(plan.seed, "coverage", scenario, number, size, "pilots")
    return matrix[draw_pilots(len(matrix), size, plan.pilots, rng)]


def _populations(plan: Plan) -> Iterator[tuple[str, int, Matrix]]:
    for scenario in plan.scenarios:
        for number in range(plan.populations):
            yield scenario, number, population(plan.seed, scenario, number)


def _task_draws(plan: Plan, scenario: str, number: int, matrix: Matrix) -> Times | None:
    """How often each task comes up in the resamples of a population's pilots, where sizes share them."""
    if not plan.sizes_share_tasks:
        return None
    rng = stream(plan.seed, "coverage", scenario, number, "tasks")
    return draw_tasks(matrix.shape[1], plan.pilots, rng, replicates=plan.replicates)


def _frozen(
    plan: Plan, scenario: str, number: int, matrix: Matrix, size: int, times: Times | None
) -> Iterator[Cell]:
    truth, agents = float(matrix.any(axis=0).mean()), len(matrix)
    pilots = pilots_of(plan, scenario, number, matrix, size)
    counts = histograms(pilots)
    whole = of_histograms(counts)
    resamples = stacked(_resamples(plan, scenario, number, pilots, counts, times))
    for name in FROZEN:
        points = at(name, whole, np.array([agents]))[..., 0]
        ends = zip(SCHEMES, *limits(name, resamples, agents), strict=True)
        for scheme, lower, upper in ends:
            yield cell((scenario, number, size, name, scheme), truth, points, lower, upper)
    for other in _others(plan):
        points = np.array([curve(other, pilot, agents=agents, sizes=[agents])[0] for pilot in pilots])
        yield cell((scenario, number, size, other, "none"), truth, points, None, None)


def _others(plan: Plan) -> Sequence[str]:
    return [name for name in FORECASTERS if name not in FROZEN] if plan.others else []


def _resamples(
    plan: Plan, scenario: str, number: int, pilots: Matrix, counts: Counts, times: Times | None
) -> tuple[Statistics, Statistics]:
    """Both bootstraps of the pilots of one size, in the order of SCHEMES."""
    size, replicates = pilots.shape[1], plan.replicates
    task, agent = (stream(plan.seed, "coverage", scenario, number, size, scheme) for scheme in SCHEMES)
    if times is None:
        tasks = resample_tasks(counts, task, replicates=replicates)
    else:
        tasks = with_tasks(pilots, times)
    return tasks, resample_agents(pilots, agent, replicates=replicates)


def _calibrated(
    plan: Plan, settings: Settings, scenario: str, number: int, matrix: Matrix, size: int
) -> Cell:
    agents = len(matrix)
    rng = stream(plan.seed, "coverage", scenario, number, size, CALIBRATED)
    found = [
        calibrated.predict(pilot, agents=agents, sizes=[agents], rng=rng, settings=settings)
        for pilot in pilots_of(plan, scenario, number, matrix, size)
    ]
    point, lower, upper = (
        np.array([getattr(one, part)[0] for one in found]) for part in ("point", "lower", "upper")
    )
    truth = float(matrix.any(axis=0).mean())
    return cell((scenario, number, size, CALIBRATED, PREDICTIVE), truth, point, lower, upper)
