"""What a forecaster's points missed by in its evidence, and what that makes of a new point.

The predictive distribution of a proposal is its point plus an error of the evidence in the same context,
within what the outcome can be. Tasks are drawn first, then a state of the task: errors of one task share
it, and a task with many states must not count for more. A draw has one resample of the tasks for all
proposals, since how far the errors can be trusted is the same for all of them, and proposals of one task
draw their errors from one task of the evidence.

Errors are centred, and of their mean only as much is put back as the tasks agree on: with a standard
error `e` between tasks, a bias `b` counts `max(0, 1 - e^2 / b^2)` of itself (the positive-part
shrinkage of James and Stein). The forecast's own interval is not used: how well it covers is part of
what the evidence shows, and the errors hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.contrasts import MIN_CLUSTERS
from predictive_credit.errors import BadSource
from predictive_credit.panel import Panel
from predictive_credit.records import Target

Array = NDArray[np.float64]
Positions = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bias:
    """Mean error over tasks, its standard error between them, and what of it is used; the target's unit."""

    mean: float
    error: float
    used: float


@dataclass(frozen=True, kw_only=True)
class Errors:
    """Errors of one forecaster on one target, states sorted by task.

    residual: (context, state) outcome minus ensemble point. task_of: (state,) from 0, without a gap.
    """

    target: Target
    contexts: tuple[str, ...]
    residual: Array
    task_of: Positions

    @cached_property
    def first(self) -> Positions:
        """(task,) position of a task's first state."""
        return np.flatnonzero(np.diff(self.task_of, prepend=-1))

    @cached_property
    def size(self) -> Positions:
        """(task,) how many states a task has."""
        return np.bincount(self.task_of)

    @cached_property
    def weight(self) -> Array:
        """(state,) how likely a draw takes it: tasks alike, then the states of the task."""
        weight: Array = 1.0 / (len(self.size) * self.size[self.task_of])
        return weight

    @cached_property
    def bias(self) -> tuple[Bias, ...]:
        """One a context."""
        return tuple(shrunk(row, self.task_of) for row in self.residual)

    @cached_property
    def centred(self) -> Array:
        """(context, state) errors whose mean over tasks is the shrunk bias."""
        shift = np.array([bias.used - bias.mean for bias in self.bias])
        centred: Array = self.residual + shift[:, None]
        return centred

    def without(self, task: int) -> Errors:
        """The errors of all other tasks."""
        keep = self.task_of != task
        return Errors(
            target=self.target, contexts=self.contexts, residual=self.residual[:, keep],
            task_of=np.unique(self.task_of[keep], return_inverse=True)[1],
        )  # fmt: skip


def of(panel: Panel, contexts: Sequence[str], where: str) -> Errors:
    """The errors of a panel's states with a defined outcome; fallbacks are a forecaster's errors too.

    `where` is what a refusal calls the evidence. Raises BadSource for fewer than MIN_CLUSTERS tasks.
    """
    defined = ~np.isnan(panel.outcome)
    task_of = np.unique(panel.task_of[defined], return_inverse=True)[1]
    n_tasks = int(task_of.max(initial=-1)) + 1
    if n_tasks < MIN_CLUSTERS:
        raise BadSource(
            f"{where} has outcomes of {n_tasks} tasks, and errors are trusted from {MIN_CLUSTERS} on; "
            "take evidence on more tasks"
        )
    points = ensemble(panel)[defined]
    rows = np.stack([panel.outcome[defined] - points[:, panel.of(context)] for context in contexts])
    by_task = np.argsort(task_of, kind="stable")
    return Errors(
        target=panel.target, contexts=tuple(map(str, contexts)), residual=rows[:, by_task],
        task_of=task_of[by_task],
    )  # fmt: skip


def ensemble(panel: Panel) -> Array:
    """(state, context) mean point of the calls."""
    points: Array = panel.point.mean(axis=2)
    return points


def shrunk(residual: Array, task_of: Positions) -> Bias:
    """The bias of residuals (state,), task-balanced, and the part of it that the tasks agree on.

    Reference: Efron & Morris (1973), JASA 68:117-130, on the positive part.
    """
    means = np.bincount(task_of, weights=residual) / np.bincount(task_of)
    mean, error = float(means.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))
    part = max(0.0, 1.0 - (error / mean) ** 2) if mean else 0.0
    return Bias(mean=mean, error=error, used=part * mean)


def possible(errors: Errors, point: Array, context: Positions, baseline: float) -> Array:
    """Every gain the evidence holds possible of each proposal, (proposal, state of the evidence).

    point: (proposal,) in the target's unit; context: (proposal,) positions in errors.contexts. A gain
    is signed so that positive is better, and counts from `baseline`, 0 for a change.
    """
    target = errors.target
    outcome = np.clip(point[:, None] + errors.centred[context], target.lower, target.upper)
    sign = 1.0 if target.better == "higher" else -1.0
    gain: Array = sign * (outcome - baseline)
    return gain


def together(errors: Errors, task: Positions, *, draws: int, rng: Generator) -> Positions:
    """Which state of the evidence lends its error, (draw, proposal).

    task: (proposal,) from 0; proposals of one task borrow from one task of the evidence.
    """
    n_tasks, n_shared = len(errors.size), int(task.max()) + 1
    resampled = rng.integers(n_tasks, size=(draws, n_tasks))
    picked = np.take_along_axis(resampled, rng.integers(n_tasks, size=(draws, n_shared)), axis=1)
    lender = picked[:, task]
    nth = np.floor(rng.random(lender.shape) * errors.size[lender]).astype(np.intp)
    states: Positions = errors.first[lender] + nth
    return states
