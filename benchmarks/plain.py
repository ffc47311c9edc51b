"""The protocol's contrasts in the standard library alone: lists, dicts, loops over resampled rows.

Written as one would write it without arrays, but not badly: losses are taken once, and
`random.choices` draws a whole level in one call.
"""

from __future__ import annotations

import csv
import math
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

Shape = tuple[int, int, int]
Row = Mapping[str, str]
MEASURES = ("interval_score", "point_error", "drift", "width", "covered", "direction")
SCALED = ("interval_score", "point_error")


class Gains(NamedTuple):
    """Other loss minus matched loss of every state, in (endpoint, budget, seed) order, NaN if undefined."""

    measure: str
    pair: str
    all: list[float]
    complete: list[float]  # NaN also where a fallback took part


def read(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def gains(
    forecasts: Iterable[Row], outcomes: Iterable[Row], pairs: Sequence[str], measures: Sequence[str]
) -> tuple[Shape, list[Gains]]:
    """Gains of every asked pair (`D-M`) and measure (`..._scaled`: over the mean size of its outcomes)."""
    value = {row["state"]: float(row["value"] or "nan") for row in outcomes}
    design: dict[str, tuple[str, float, int]] = {}
    calls: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in forecasts:
        design[row["state"]] = (row["task"], float(row["budget"]), int(row["seed"]))
        calls[row["state"], row["context"]].append(row)
    states = sorted(design, key=design.__getitem__)
    size: dict[str, list[float]] = defaultdict(list)
    for state in states:
        if not math.isnan(value[state]):
            size[design[state][0]].append(abs(value[state]))
    scale = {task: statistics.fmean(sizes) for task, sizes in size.items()}
    found = []
    for measure in measures:
        plain, scaled = measure.removesuffix("_scaled"), measure.endswith("_scaled")
        for pair in pairs:
            other, matched = pair.split("-")
            full, complete = [], []
            for state in states:
                both = calls[state, other], calls[state, matched]
                gain = loss(plain, value[state], both[0]) - loss(plain, value[state], both[1])
                if scaled:
                    gain /= scale.get(design[state][0], math.nan)
                full.append(gain)
                fallback = any(row["is_fallback"] == "True" for rows in both for row in rows)
                complete.append(math.nan if fallback else gain)
            found.append(Gains(measure, pair, full, complete))
    tasks, budgets, seeds = (len({design[state][axis] for state in states}) for axis in range(3))
    return (tasks, budgets, seeds), found


def loss(measure: str, y: float, calls: Sequence[Row]) -> float:
    """Mean loss of a context's calls; NaN where the measure needs an undefined outcome."""
    points = [float(row["point"]) for row in calls]
    if measure == "drift":
        return abs(points[0] - points[1])
    ends = [(float(row["lower"]), float(row["upper"])) for row in calls]
    if measure == "width":
        return statistics.fmean(upper - lower for lower, upper in ends)
    if math.isnan(y):
        return math.nan
    return statistics.fmean(
        _against(measure, y, point, lower, upper) for point, (lower, upper) in zip(points, ends, strict=True)
    )


def _against(measure: str, y: float, point: float, lower: float, upper: float) -> float:
    if measure == "interval_score":
        return upper - lower + 10.0 * (max(lower - y, 0.0) + max(y - upper, 0.0))
    if measure == "point_error":
        return abs(point - y)
    if measure == "covered":
        return float(not lower <= y <= upper)
    return float((point > 0) != (y > 0))


def resamples(shape: Shape, draws: int, rng: random.Random) -> Iterator[list[int]]:
    """Resampled positions: endpoints, then budgets within each, then seeds within each of those."""
    endpoints, budgets, seeds = map(range, shape)
    for _ in range(draws):
        yield [
            (e * len(budgets) + b) * len(seeds) + s
            for e in rng.choices(endpoints, k=len(endpoints))
            for b in rng.choices(budgets, k=len(budgets))
            for s in rng.choices(seeds, k=len(seeds))
        ]


def means(columns: Sequence[Sequence[float]], positions: Iterable[Sequence[int]]) -> list[list[float]]:
    """Mean of the defined entries of each column over each resample."""
    found: list[list[float]] = [[] for _ in columns]
    for drawn in positions:
        for column, out in zip(columns, found, strict=True):
            defined = [gain for at in drawn if (gain := column[at]) == gain]
            out.append(sum(defined) / len(defined) if defined else math.nan)
    return found


def quantile(values: Iterable[float], share: float) -> float:
    """Linear between order statistics; NaN left out."""
    ordered = sorted(v for v in values if not math.isnan(v))
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The central 95 % of the draws."""
    return quantile(values, 0.025), quantile(values, 0.975)
