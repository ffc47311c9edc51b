"""Conformal recalibration of forecast intervals, fitted on whole tasks other than the forecast's own.

Arrays in, arrays out. Outcomes are (state,), intervals (state, call), NaN stands for an undefined outcome.
A correction is one number in the outcome's unit: how far each end of an interval moves outwards,
inwards where negative.

What is exchangeable is a task: its states share a model or a table, the calls of a state its outcome, so
they count as one task's scores and never as so many independent ones. Every task weighs the same, and
one that is to come weighs as much as each and is taken to miss, wherever its scores lie. Then an
interval of a state drawn from a further task, exchangeable with these, holds its outcome at least as
often as the level says, on average over tasks and whatever the forecaster; and, if no two scores are
equal, more often by less than two tasks' weight.

That holds of any score that is fixed beforehand. This one is the plain distance, though tasks differ in how
far their outcomes move. Divided by one scale of the whole burn-in it would be the same score, and the
task's own scale is not to be known. Divided by the interval's width it lets the forecaster set the
scale: a narrow miss of no size becomes many widths, by which every wide interval is then stretched, and a
point can never be mended. On full runs of three studies the coverage of narrow, middling and wide
intervals then came out less alike than with the plain distance.

Reference: Romano, Patterson & Candes (2019), NeurIPS 32 (the score); Lee, Barber & Willett (2023),
arXiv:2306.06342 (the weights); see also Dunn, Wasserman & Ramdas (2023), JASA 118:2491-2502.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictive_credit.scoring import LEVEL

Array = NDArray[np.float64]
Positions = NDArray[np.intp]

# Weights that add up to exactly what is asked may fall short of it by rounding.
ROUNDING = 1e-9


class Corrected(NamedTuple):
    """Intervals with their ends moved, (state, call), and how many of them would have crossed."""

    lower: Array
    upper: Array
    n_collapsed: int


def scores(outcome: Array, lower: Array, upper: Array) -> Array:
    """How far each end has to move outwards for the interval just to hold its outcome, (state, call).

    0 where the outcome lies on an end, negative inside, NaN where it is undefined.
    """
    y = outcome[:, None]
    score: Array = np.maximum(lower - y, y - upper)
    return score


def tasks_needed(level: float = LEVEL) -> int:
    """The fewest tasks a correction can be fitted on: 4 at 80 %, since one more is taken to miss."""
    return math.ceil(level / (1.0 - level) * (1.0 - ROUNDING))


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The scores of all tasks in one order, from which any one task can be left out.

    score: (state, call), NaN left out. task_of: (state,) positions of tasks. Every task weighs 1,
    whatever the number of its scores.
    """

    score: Array
    task_of: Positions

    @cached_property
    def _sorted(self) -> tuple[Array, Positions, Array]:
        """Scores in rising order, the task of each, and the weight of all up to it."""
        score, task = self.score.ravel(), np.repeat(self.task_of, self.score.shape[1])
        order = np.argsort(score, kind="stable")[: int((~np.isnan(score)).sum())]  # NaN sorts last
        score, task = score[order], task[order]
        return score, task, np.cumsum(1.0 / np.bincount(task)[task])

    @cached_property
    def _places(self) -> dict[int, Positions]:
        """Where in that order the scores of each task stand; a task without a score is absent."""
        _, task, _ = self._sorted
        by_task = np.argsort(task, kind="stable")
        tasks, first, count = np.unique(task[by_task], return_index=True, return_counts=True)
        return {int(t): by_task[at : at + n] for t, at, n in zip(tasks, first, count, strict=True)}

    def n_tasks(self, *, without: int | None = None) -> int:
        """Tasks with a defined score, one of them left out."""
        return len(self._places) - (without in self._places)

    def n_scores(self, *, without: int | None = None) -> int:
        """Their scores: calls of states with a defined outcome."""
        return len(self._sorted[0]) - len(self._own(without))

    def correction(self, *, without: int | None = None, level: float = LEVEL) -> float:
        """The correction that a task needs which is not among these, or is left out of them.

        The lowest score up to which all tasks but `without` have put `level` of the weight, in which
        one further task counts and lies above every score. Infinite where none reaches it, below
        `tasks_needed`.
        """
        score, _, weight = self._sorted
        own = self._own(without)
        asked = level * (self.n_tasks(without=without) + 1) * (1.0 - ROUNDING)
        # From one score of the task left out to its next, what it adds to the weight is constant.
        added = np.arange(len(own) + 1) / max(len(own), 1)
        begin, end = np.append(0, own), np.append(own, len(score))
        first = np.maximum(np.searchsorted(weight, asked + added), begin)
        reached = np.flatnonzero(first < end)
        return float(score[first[reached[0]]]) if len(reached) else math.inf

    def _own(self, task: int | None) -> Positions:
        none = np.empty(0, dtype=np.intp)
        return none if task is None else self._places.get(task, none)


def leave_one_task_out(pool: Pool, n_tasks: int, *, level: float = LEVEL) -> Array:
    """The correction of each task, (task,), fitted on all others: no outcome has a part in its own."""
    return np.array([pool.correction(without=task, level=level) for task in range(n_tasks)], dtype=float)


def corrected(lower: Array, upper: Array, correction: Array) -> Corrected:
    """Intervals (state, call) with each end moved outwards by the correction of its state, (state,).

    Ends that would cross meet in the middle instead, and are counted. Raises ValueError for a
    correction that is not finite: the whole line is no interval to report.
    """
    if not np.isfinite(correction).all():
        at = int(np.argmin(np.isfinite(correction)))
        raise ValueError(f"a correction is finite; seen {correction[at]} at state {at}; fit it on more tasks")
    low, high = lower - correction[:, None], upper + correction[:, None]
    crossed, middle = low > high, (lower + upper) / 2.0
    return Corrected(
        lower=np.where(crossed, middle, low),
        upper=np.where(crossed, middle, high),
        n_collapsed=int(crossed.sum()),
    )
