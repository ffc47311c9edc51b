"""Scores of forecasts against executed outcomes: arrays in, arrays out, lower is better for losses.

NaN stands for an undefined outcome and stays NaN. Summaries (`coverage`, `direction_accuracy`,
`mean`) leave undefined entries out and raise ValueError when none is left, because a report would
believe a 0.0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

LEVEL = 0.80  # what every forecast interval claims to cover


def point_error(outcome: ArrayLike, point: ArrayLike) -> Array:
    """Absolute error of the point, in the outcome's unit; shapes broadcast."""
    error: Array = np.abs(_floats(outcome) - _floats(point))
    return error


def interval_score(outcome: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, level: float = LEVEL) -> Array:
    """Interval score of a central interval; lower is better.

    Width, plus `2 / (1 - level)` for every unit of distance by which the outcome falls outside. At
    the protocol's 80 % level that penalty is 10.

    All three arrays broadcast to one shape (...,), which is the result's shape; scores are in the
    outcome's unit. Raises ValueError for a reversed interval, whose negative width would be a
    reward, and for a level outside (0, 1).

    Reference: Gneiting & Raftery (2007), JASA 102:359-378, eq. 43.
    """
    y, lo, hi = _floats(outcome), _floats(lower), _floats(upper)
    if not 0.0 < level < 1.0:
        raise ValueError(f"an interval's level lies between 0 and 1; seen {level}")
    miss = np.maximum(lo - y, 0.0) + np.maximum(y - hi, 0.0)
    score: Array = width(lo, hi) + penalty(level) * miss
    return score


def penalty(level: float = LEVEL) -> float:
    """What one unit of distance outside the interval costs: 10 at the 80 % level."""
    return 2.0 / (1.0 - level)


def width(lower: ArrayLike, upper: ArrayLike) -> Array:
    """Upper minus lower, in the outcome's unit. Raises ValueError for a reversed interval."""
    lo, hi = _floats(lower), _floats(upper)
    if np.any(lo > hi):
        at = tuple(int(i) for i in np.argwhere(lo > hi)[0])
        raise ValueError(f"reversed interval at position {at}; a forecast is never sorted or repaired")
    gap: Array = hi - lo
    return gap


def covered(outcome: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> Array:
    """1.0 where the closed interval holds the outcome, 0.0 where not, NaN where it is undefined."""
    y = _floats(outcome)
    inside = (_floats(lower) <= y) & (y <= _floats(upper))
    return np.where(np.isnan(y), np.nan, inside.astype(float))


def coverage(outcome: ArrayLike, lower: ArrayLike, upper: ArrayLike) -> float:
    """Share of defined outcomes inside their interval, to be held against 0.80."""
    return mean(covered(outcome, lower, upper))


def direction(outcome: ArrayLike, point: ArrayLike) -> Array:
    """1.0 where the point has the outcome's sign, 0.0 where not, NaN where nothing can be said.

    Ties: an outcome of exactly 0 has no direction and is left out (NaN); a point of exactly 0
    names no direction and counts as wrong, for else saying nothing would avoid every mistake.
    """
    y = _floats(outcome)
    right = (np.sign(y) == np.sign(_floats(point))).astype(float)
    return np.where(np.isnan(y) | (y == 0.0), np.nan, right)


def direction_accuracy(outcome: ArrayLike, point: ArrayLike) -> float:
    """Share of nonzero, defined outcomes whose sign the point has; see `direction` for ties."""
    return mean(direction(outcome, point))


def drift(point: ArrayLike) -> Array:
    """Gap between the two calls of one context: (..., 2) points to (...,) distances.

    It needs no outcome. Raises ValueError unless the last axis holds exactly two calls.
    """
    calls = _floats(point)
    if calls.ndim == 0 or calls.shape[-1] != 2:
        raise ValueError(f"drift is the gap between two calls; seen an array of shape {calls.shape}")
    gap: Array = np.abs(calls[..., 0] - calls[..., 1])
    return gap


def mean(values: ArrayLike) -> float:
    """Mean of the defined entries. Raises ValueError when there is none: undefined is not zero."""
    flat = _floats(values).ravel()
    defined = flat[~np.isnan(flat)]
    if defined.size == 0:
        raise ValueError(f"nothing to average: none of {flat.size} entries is defined")
    return float(defined.mean())


def spearman(x: ArrayLike, y: ArrayLike, weights: ArrayLike | None = None) -> Array:
    """Rank correlation with mid-ranks for ties; NaN where either side is constant.

    x, y: (n,) defined values. weights: (..., n) how often each entry occurs, as in bootstrap
    resamples; None counts each once. Returns weights' leading shape (...,), so that one call
    re-ranks every resample without writing the resamples out.
    """
    counts = np.ones(np.shape(x)) if weights is None else _floats(weights)
    total = counts.sum(axis=-1, keepdims=True)
    centre = (total + 1.0) / 2.0  # the mean of the ranks 1..total, whatever the ties
    rank_x = _mid_ranks(_floats(x), counts) - centre
    rank_y = _mid_ranks(_floats(y), counts) - centre
    shared = (counts * rank_x * rank_y).sum(axis=-1)
    spread = (counts * rank_x**2).sum(axis=-1) * (counts * rank_y**2).sum(axis=-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0.0, shared / np.sqrt(spread), np.nan)


def _mid_ranks(values: Array, counts: Array) -> Array:
    """Mid-rank of each entry among all the copies that `counts` (..., n) says there are."""
    unique, group = np.unique(values, return_inverse=True)
    order = np.argsort(group, kind="stable")
    first = np.searchsorted(group[order], np.arange(unique.size))
    copies = np.add.reduceat(counts[..., order], first, axis=-1)
    ranks: Array = (np.cumsum(copies, axis=-1) - copies + (copies + 1.0) / 2.0)[..., group]
    return ranks


def _floats(values: ArrayLike) -> Array:
    return np.asarray(values, dtype=float)
