"""Forecasts and outcomes of one study and target as gap-free arrays, and the losses and gains over them.

Axis order is (state, context, call); a gain is one number a state. NaN means that the outcome, and
with it the loss, is undefined.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from predictive_credit import scoring, tables
from predictive_credit.bootstrap import Design
from predictive_credit.errors import Unpaired
from predictive_credit.records import Target

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Positions = NDArray[np.intp]

Measure = Literal["interval_score", "point_error", "drift", "width", "covered", "direction"]
MEASURES: tuple[Measure, ...] = get_args(Measure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One study's forecasts and outcomes of one target, and its design, without a gap.

    point, lower, upper, is_fallback: (state, context, call). outcome: (state,), NaN where
    undefined. task_of: (state,) positions in tasks. The design stands in the order of the states.
    """

    states: tuple[str, ...]
    contexts: tuple[str, ...]
    calls: tuple[int, ...]
    tasks: tuple[str, ...]
    task_of: Positions
    design: Design
    target: Target
    point: Array
    lower: Array
    upper: Array
    is_fallback: Bools
    outcome: Array

    def __post_init__(self) -> None:
        low, high = self.bounds
        outside = (self.outcome < low) | (self.outcome > high)
        if outside.any():
            at = int(np.argmax(outside))
            raise Unpaired(
                f"the outcome of {self.states[at]} is {self.outcome[at]:g}, outside the outcome bounds "
                f"[{low:g}, {high:g}] of {self.target.name} ({int(outside.sum())} such); "
                "widen the bounds or correct the outcome"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        """What the outcome can be at all, in its own unit."""
        return self.target.lower, self.target.upper

    def of(self, context: str) -> int:
        """Position of a context on its axis."""
        return self.contexts.index(context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Other loss minus matched loss of each state, every reading (state,).

    `all` is intention-to-treat: fallbacks count like any forecast. `complete` is NaN wherever a
    fallback took part. `worst` and `best` bound what `all` could have been had every reply been
    readable and every outcome defined.
    """

    all: Array
    complete: Array
    worst: Array
    best: Array

    def scaled(self, by: Array) -> Gain:
        """Divided by one number a state, (state,)."""
        return Gain(
            all=self.all / by, complete=self.complete / by, worst=self.worst / by, best=self.best / by
        )


def order(
    keys: Sequence[tuple[str, str, int]],
    states: Sequence[str], contexts: Sequence[str], calls: Sequence[int],
) -> Positions:  # fmt: skip
    """Which row stands where: keyed rows to positions of shape (state, context, call).

    Raises Unpaired for a gap, an extra row or a duplicate.
    """
    rows = {key: float(row) for row, key in enumerate(keys)}
    if len(rows) != len(keys):
        key, times = Counter(keys).most_common(1)[0]
        raise Unpaired(f"{'/'.join(map(str, key))} occurs {times} times; it can stand in one place only")
    return tables.cube(rows, states, contexts, calls).astype(np.intp)


def losses(panel: Panel, measure: Measure) -> Array:
    """Loss of every unit, (state, context, call); NaN where the measure needs an undefined outcome.

    Every measure is a loss, so that a positive gain always favours the matched context: `covered`
    counts misses and `direction` wrong signs. `drift` belongs to a pair of calls and stands on both.
    """
    return _loss(measure, panel.outcome[:, None, None], panel.point, panel.lower, panel.upper)


def needs_outcome(measure: Measure) -> bool:
    """Whether the measure needs the outcome; drift and width do not."""
    return measure not in {"drift", "width"}


def context_losses(panel: Panel, measure: Measure) -> Array:
    """Call-level loss of every state and context, (state, context): the mean over the calls."""
    loss: Array = losses(panel, measure).mean(axis=2)
    return loss


def gain(panel: Panel, measure: Measure, other: str, matched: str) -> Gain:
    """Loss of the other context minus loss of the matched one; positive favours the matched."""
    pair = [panel.of(other), panel.of(matched)]
    y, asked = panel.outcome[:, None, None], (a[:, pair] for a in (panel.point, panel.lower, panel.upper))
    loss = _loss(measure, y, *asked).mean(axis=2)
    plain = loss[:, 0] - loss[:, 1]
    fallback = panel.is_fallback[:, pair].any(axis=(1, 2))
    low, high = plain.copy(), plain.copy()
    unsure = fallback | np.isnan(panel.outcome) if needs_outcome(measure) else fallback
    if unsure.any():
        low[unsure], high[unsure] = _bounds(panel, measure, pair, np.flatnonzero(unsure))
    complete = np.where(fallback, np.nan, plain)
    return Gain(all=plain, complete=complete, worst=low, best=high)


def share_of_error(panel: Panel, loss: Array) -> Array:
    """Each task's share of the total loss, (task,); they sum to 1.

    loss: (state,), NaN left out. NaN throughout when the total is zero.
    """
    per_task, _ = by_group(loss, panel.task_of, len(panel.tasks))
    total = per_task.sum()
    share: Array = np.divide(per_task, total, out=np.full(len(per_task), np.nan), where=total > 0.0)
    return share


def task_scale(panel: Panel) -> Array:
    """Mean absolute outcome of each task, (task,); NaN where none is defined or all are 0.

    Dividing a gain by it asks how much of the change there was to predict was predicted.
    """
    total, count = by_group(np.abs(panel.outcome), panel.task_of, len(panel.tasks))
    known = (count > 0) & (total > 0.0)
    scale: Array = np.divide(total, count, out=np.full(len(total), np.nan), where=known)
    return scale


def by_group(values: Array, group: Positions, n_groups: int) -> tuple[Array, Array]:
    """Sum and count of the defined values (state,) of each group, both (n_groups,)."""
    defined = ~np.isnan(values)
    total = np.bincount(group, weights=np.where(defined, values, 0.0), minlength=n_groups)
    count = np.bincount(group[defined], minlength=n_groups)
    return total.astype(float), count.astype(float)


def _loss(measure: Measure, y: Array, point: Array, lower: Array, upper: Array) -> Array:
    """Call-level losses; call is axis 2, any axis after it is broadcast against y."""
    match measure:
        case "interval_score":
            return scoring.interval_score(y, lower, upper)
        case "point_error":
            return scoring.point_error(y, point)
        case "covered":
            return 1.0 - scoring.covered(y, lower, upper)
        case "direction":
            return 1.0 - scoring.direction(y, point)
        case "width":
            return np.broadcast_to(scoring.width(lower, upper), np.broadcast_shapes(y.shape, lower.shape))
        case "drift":
            gap = np.expand_dims(scoring.drift(np.moveaxis(point, 2, -1)), 2)
            return np.broadcast_to(gap, np.broadcast_shapes(y.shape, point.shape))


def _worst(measure: Measure, y: Array, bounds: tuple[float, float]) -> Array:
    """The largest loss of any forecast whose numbers lie within the outcome's bounds."""
    low, high = bounds
    far = np.maximum(y - low, high - y)
    match measure:
        case "interval_score":  # no width, at the far end: a unit of width costs 1, a unit missed 10
            return scoring.penalty() * far
        case "point_error":
            return far
        case "covered" | "direction":
            return np.ones_like(y)
        case "width":
            return np.full_like(y, high - low)
        case "drift":
            raise ValueError("the range of a drift follows from the calls that could be read")


def _bounds(panel: Panel, measure: Measure, pair: list[int], at: Positions) -> tuple[Array, Array]:
    """Smallest and largest gain of the states `at`, each (len(at),)."""
    point, lower, upper = (a[at][:, pair] for a in (panel.point, panel.lower, panel.upper))
    loose = panel.is_fallback[at][:, pair]
    if measure == "drift":
        least, most = (a[..., None] for a in _drift_range(point, loose, panel.bounds))
    else:
        y = _candidates(panel.outcome[at], (lower, upper), point, panel.bounds)[:, None, None, :]
        loss = _loss(measure, y, point[..., None], lower[..., None], upper[..., None])
        open_ = loose[..., None] & ~np.isnan(loss)
        least = np.where(open_, 0.0, loss).mean(axis=2)
        most = np.where(open_, _worst(measure, y, panel.bounds), loss).mean(axis=2)
    return _least(least[:, 0] - most[:, 1]), -_least(least[:, 1] - most[:, 0])


def _drift_range(point: Array, loose: Bools, bounds: tuple[float, float]) -> tuple[Array, Array]:
    """Smallest and largest drift of each (state, context) whose unread calls lie within bounds."""
    low, high = np.where(loose, bounds[0], point), np.where(loose, bounds[1], point)
    apart = np.maximum(low[..., 0] - high[..., 1], low[..., 1] - high[..., 0])
    reach = np.maximum(high[..., 0] - low[..., 1], high[..., 1] - low[..., 0])
    return np.maximum(apart, 0.0), reach


def _candidates(
    outcome: Array, ends: tuple[Array, Array], point: Array, bounds: tuple[float, float]
) -> Array:
    """Outcomes at which a bound can be reached, (state, candidate); a defined one stands alone.

    A gain is piecewise linear in an undefined outcome, with kinks where the outcome meets a number
    of either forecast, so it is enough to look there, beside there, and at the outcome's bounds.
    """
    low, high = bounds
    n = len(outcome)
    end = np.concatenate([side.reshape(n, -1) for side in ends], axis=1)
    # Just outside an interval's end is where an interval that holds its end begins to miss.
    beside = np.concatenate([np.nextafter(end, -np.inf), np.nextafter(end, np.inf)], axis=1)
    limits = np.broadcast_to([low, high], (n, 2))
    meetings = np.concatenate([end, beside, point.reshape(n, -1), limits], axis=1)
    return np.where(np.isnan(outcome)[:, None], np.clip(meetings, low, high), outcome[:, None])


def _least(values: Array) -> Array:
    """Minimum over candidates, NaN candidates aside; NaN where there is no other."""
    least = np.where(np.isnan(values), np.inf, values).min(axis=1)
    return np.where(np.isinf(least), np.nan, least)
