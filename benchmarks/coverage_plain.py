"""Coverage forecasts and both bootstraps in the standard library alone: lists, loops, `random`.

Written as one would write it without arrays, but not badly: a pilot is its list of solve counts, the
task bootstrap resamples that list in one call, and every forecaster makes one pass over it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence

Rows = Sequence[Sequence[int]]  # agents x tasks, 0 or 1


def population(
    ability: float, ability_sd: float, difficulty_sd: float, agents: int, tasks: int, rng: random.Random
) -> list[list[int]]:
    """Who solves what, in a Rasch model."""
    difficulties = [rng.gauss(0.0, difficulty_sd) for _ in range(tasks)]
    return [
        [int(rng.random() < 1.0 / (1.0 + math.exp(b - a))) for b in difficulties]
        for a in (rng.gauss(ability, ability_sd) for _ in range(agents))
    ]


def solve_counts(rows: Rows) -> list[int]:
    """How many agents solve each task."""
    return [sum(column) for column in zip(*rows, strict=True)]


def independence(counts: Sequence[int], pilot: int, size: int) -> float:
    """1 - (1 - p)^m."""
    return float(1.0 - (1.0 - sum(counts) / (pilot * len(counts))) ** size)


def beta_binomial(counts: Sequence[int], pilot: int, size: int) -> float:
    """A beta distribution of task rates, by moments."""
    total, tasks = sum(counts), len(counts)
    p = total / (pilot * tasks)
    binomial = pilot * p * (1.0 - p)
    if binomial <= 0.0:
        return independence(counts, pilot, size)
    variance = (sum(c * c for c in counts) - total * total / tasks) / (tasks - 1)
    rho = min((variance / binomial - 1.0) / (pilot - 1), 0.999)
    if rho <= 0.0:
        return independence(counts, pilot, size)
    both = 1.0 / rho - 1.0
    b = (1.0 - p) * both
    return 1.0 - math.prod((b + i) / (both + i) for i in range(size))


def incidence(counts: Sequence[int], pilot: int, size: int) -> float:
    """Extrapolated species accumulation (Chao et al. 2014)."""
    tasks, seen = len(counts), sum(c > 0 for c in counts)
    once, twice = counts.count(1), counts.count(2)
    pairs = once * once / (2.0 * twice) if twice else once * (once - 1) / 2.0
    unseen = (pilot - 1) / pilot * pairs
    if unseen <= 0.0:
        return seen / tasks
    gained = unseen * (1.0 - (1.0 - once / (pilot * unseen + once)) ** (size - pilot))
    return min(float(tasks), seen + gained) / tasks


def pilot_only(counts: Sequence[int], pilot: int, size: int) -> float:
    """What the pilot solves."""
    return sum(c > 0 for c in counts) / len(counts)


FORECASTERS: dict[str, Callable[[Sequence[int], int, int], float]] = {
    "independence": independence,
    "beta_binomial": beta_binomial,
    "incidence": incidence,
    "pilot_only": pilot_only,
}


def percentiles(values: Sequence[float]) -> tuple[float, float]:
    """Items 2 and 97 of 100, sorted; no interpolation."""
    ordered = sorted(values)
    n = len(ordered)
    return ordered[int(0.025 * n)], ordered[min(n - 1, int(0.975 * n))]


def forecasts(counts: Sequence[int], pilot: int, size: int) -> dict[str, float]:
    """Every forecaster at one size."""
    return {name: f(counts, pilot, size) for name, f in FORECASTERS.items()}


def intervals(resamples: Sequence[Sequence[int]], pilot: int, size: int) -> dict[str, tuple[float, float]]:
    """Every forecaster's interval from resampled solve counts."""
    found = [forecasts(counts, pilot, size) for counts in resamples]
    return {name: percentiles([one[name] for one in found]) for name in FORECASTERS}


def task_resamples(counts: Sequence[int], replicates: int, rng: random.Random) -> list[list[int]]:
    """As many tasks, with replacement, in each replicate."""
    return [rng.choices(counts, k=len(counts)) for _ in range(replicates)]


def agent_resamples(rows: Rows, drawn: Sequence[Sequence[int]]) -> list[list[int]]:
    """Solve counts of the agents drawn, in each replicate."""
    return [solve_counts([rows[agent] for agent in agents]) for agents in drawn]


def pilot(
    rows: Rows, agents: int, replicates: int, rng: random.Random
) -> tuple[dict[str, float], dict[str, tuple[float, float]], dict[str, tuple[float, float]]]:
    """All that the study asks of one pilot: points, task intervals, agent intervals."""
    size, counts = len(rows), solve_counts(rows)
    drawn = [rng.choices(range(size), k=size) for _ in range(replicates)]
    return (
        forecasts(counts, size, agents),
        intervals(task_resamples(counts, replicates, rng), size, agents),
        intervals(agent_resamples(rows, drawn), size, agents),
    )
