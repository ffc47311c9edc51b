"""What the closed-form forecasters read of a pilot: five sums of its solve counts, for many pilots at once.

A pilot is (agents k, tasks N), true where an agent solves a task; the solve count of a task says how
many of the k agents solve it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Matrix = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Sums over the tasks of a pilot, each (...): one entry a pilot or a resample of one.

    agents: how many the pilot has, k. tasks: how many, N. total: sum of the solve counts; squares:
    sum of their squares; none, once, twice: tasks that exactly so many agents solve.
    """

    agents: int
    tasks: int
    total: Array
    squares: Array
    none: Array
    once: Array
    twice: Array

    @property
    def rate(self) -> Array:
        """Share of solved cells."""
        return self.total / (self.agents * self.tasks)

    @property
    def seen(self) -> Array:
        """Tasks that some agent of the pilot solves."""
        return self.tasks - self.none


def histograms(pilots: Matrix) -> Counts:
    """How many tasks are solved by 0 to k agents, (..., k + 1), of pilots (..., k, N)."""
    agents = pilots.shape[-2]
    solved = pilots.sum(axis=-2).reshape(-1, pilots.shape[-1])
    # One counting pass for all pilots: each has its own range of k + 1 codes.
    codes = solved + (agents + 1) * np.arange(len(solved))[:, None]
    counts = np.bincount(codes.ravel(), minlength=(agents + 1) * len(solved))
    return counts.reshape(*pilots.shape[:-2], agents + 1)


def of_histograms(counts: Counts) -> Statistics:
    """The statistics of pilots whose histograms of solve counts are `counts`, (..., k + 1).

    All entries must hold equally many tasks.
    """
    agents = counts.shape[-1] - 1
    exact = counts.astype(np.float64)  # whole numbers far below 2^53, in which sums are exact
    solved = np.arange(agents + 1.0)
    return Statistics(
        agents=agents,
        tasks=int(counts.reshape(-1, agents + 1)[0].sum()),
        total=exact @ solved,
        squares=exact @ solved**2,
        none=exact[..., 0],
        once=exact[..., 1],
        twice=exact[..., 2],
    )


def stacked(several: Sequence[Statistics]) -> Statistics:
    """Statistics (...) of equally large pilots as one, (several, ...)."""
    return Statistics(
        agents=several[0].agents,
        tasks=several[0].tasks,
        total=np.stack([one.total for one in several]),
        squares=np.stack([one.squares for one in several]),
        none=np.stack([one.none for one in several]),
        once=np.stack([one.once for one in several]),
        twice=np.stack([one.twice for one in several]),
    )


def mean_phi(pilot: Matrix) -> float:
    """Mean phi coefficient of the pairs of agents of a pilot (k, N).

    An agent that solves all tasks or none has no phi with anybody, so its pairs are left out; 0.0
    where no pair is left.
    """
    rows = pilot[(pilot.any(axis=1)) & (~pilot.all(axis=1))].astype(np.float64)
    if len(rows) < 2:
        return 0.0
    centred = rows - rows.mean(axis=1, keepdims=True)
    unit = centred / np.sqrt((centred**2).sum(axis=1, keepdims=True))
    # The sum over all pairs of unit vectors is the squared length of their sum, less the diagonal.
    together = float((unit.sum(axis=0) ** 2).sum()) - len(unit)
    return together / (len(unit) * (len(unit) - 1))
