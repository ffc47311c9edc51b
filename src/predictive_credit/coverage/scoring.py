"""Scores of coverage forecasts: one population's pilots to a cell, a scenario's cells to a pooled row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from predictive_credit.coverage.statistics import Array

TOLERANCE = 0.03  # of coverage: a point forecast this near counts as `within`


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Forecasts from the pilots of one population, averaged; all but the first six are means.

    scheme: how the interval is made, `none` for points alone. bias: forecast minus truth. mae: its
    size. within: share of forecasts at most TOLERANCE off. coverage: share of intervals that hold
    the truth, ends included; width: of the intervals. Both None where there is no interval.
    """

    scenario: str
    population: int
    pilot_agents: int
    forecaster: str
    scheme: str
    truth: float
    pilots: int
    bias: float
    mae: float
    within: float
    coverage: float | None
    width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pooled:
    """The cells of one scenario, pilot size, forecaster and scheme, each population counting the same.

    Standard errors are over populations, because the pilots of one share its truth; None with one
    population. min_population_coverage: of the population
    whose intervals do worst.
    """

    scenario: str
    pilot_agents: int
    forecaster: str
    scheme: str
    populations: int
    pilots: int
    truth: float
    bias: float
    mae: float
    mae_se: float | None
    within: float
    coverage: float | None
    coverage_se: float | None
    width: float | None
    min_population_coverage: float | None


def cell(
    key: tuple[str, int, int, str, str], truth: float, point: Array, lower: Array | None, upper: Array | None
) -> Cell:
    """Score the forecasts from the pilots of one population; all arrays (pilots,).

    key: scenario, population, pilot agents, forecaster, scheme. Raises ValueError for a reversed
    interval, whose negative width would look sharp.
    """
    scenario, population, pilot_agents, forecaster, scheme = key
    error = point - truth
    coverage = width = None
    if lower is not None and upper is not None:
        if np.any(lower > upper):
            raise ValueError(f"{forecaster} gives a reversed interval in {scenario}/{population}")
        coverage = float(np.mean((lower <= truth) & (truth <= upper)))
        width = float(np.mean(upper - lower))
    return Cell(
        scenario=scenario,
        population=population,
        pilot_agents=pilot_agents,
        forecaster=forecaster,
        scheme=scheme,
        truth=truth,
        pilots=len(point),
        bias=float(error.mean()),
        mae=float(np.abs(error).mean()),
        within=float(np.mean(np.abs(error) <= TOLERANCE)),
        coverage=coverage,
        width=width,
    )


def pool(cells: Iterable[Cell]) -> tuple[Pooled, ...]:
    """One row for each scenario, pilot size, forecaster and scheme, in the order they first occur.

    Raises ValueError where populations have unlike numbers of pilots: their mean would not be the
    mean over pilots.
    """
    groups: dict[tuple[str, int, str, str], list[Cell]] = defaultdict(list)
    for one in cells:
        groups[one.scenario, one.pilot_agents, one.forecaster, one.scheme].append(one)
    return tuple(_pooled(group) for group in groups.values())


def _pooled(group: Sequence[Cell]) -> Pooled:
    first = group[0]
    if len({one.pilots for one in group}) > 1:
        raise ValueError(
            f"populations of {first.scenario} have unlike numbers of pilots and cannot be pooled"
        )
    coverage = [one.coverage for one in group if one.coverage is not None]
    width = [one.width for one in group if one.width is not None]
    return Pooled(
        scenario=first.scenario,
        pilot_agents=first.pilot_agents,
        forecaster=first.forecaster,
        scheme=first.scheme,
        populations=len(group),
        pilots=sum(one.pilots for one in group),
        truth=_mean([one.truth for one in group]),
        bias=_mean([one.bias for one in group]),
        mae=_mean([one.mae for one in group]),
        mae_se=_standard_error([one.mae for one in group]),
        within=_mean([one.within for one in group]),
        coverage=_mean(coverage) if coverage else None,
        coverage_se=_standard_error(coverage),
        width=_mean(width) if width else None,
        min_population_coverage=min(coverage, default=None),
    )


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _standard_error(values: Sequence[float]) -> float | None:
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
