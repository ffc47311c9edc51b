"""Hierarchical bootstrap over (endpoint, budget, seed), and percentile bounds of its draws.

Sums run in NumPy's own fixed order and never through a matrix product: a BLAS rounds differently on
another machine, and a verifier elsewhere must find the same digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
Shape = tuple[int, int, int]

# States resampled at a time; it bounds memory. Blocks are part of the definition, since a stream is
# consumed block by block: all 10,000 draws of a 72-state study fit into one.
BLOCK = 1 << 22


class Interval(NamedTuple):
    """Two ends, in the unit of what was resampled."""

    lower: float
    upper: float


def resamples(shape: Shape, *, draws: int, rng: Generator) -> Iterator[NDArray[np.intp]]:
    """Resampled positions, in blocks of shape (some draws, endpoint * budget * seed).

    A position counts through an array of `shape` in C order. Each level is drawn within the one
    above it, because states of one endpoint share its assay; drawing 72 states freely would
    pretend to 72 independent experiments where there are 12.
    """
    if draws < 1 or min(shape) < 1:
        raise ValueError(f"a bootstrap needs draws and states; seen {draws} draws over shape {shape}")
    n_endpoint, n_budget, n_seed = shape
    step = max(1, BLOCK // prod(shape))
    for done in range(0, draws, step):
        block = min(step, draws - done)
        endpoint = rng.integers(n_endpoint, size=(block, n_endpoint, 1, 1))
        budget = rng.integers(n_budget, size=(block, n_endpoint, n_budget, 1))
        seed = rng.integers(n_seed, size=(block, n_endpoint, n_budget, n_seed))
        positions = (endpoint * n_budget + budget) * n_seed + seed
        yield positions.reshape(block, -1).astype(np.intp, copy=False)


def nested_means(gain: Array, *, draws: int, rng: Generator) -> Array:
    """Hierarchical bootstrap of a mean: endpoints, then budgets, then seeds.

    gain: (..., endpoint, budget, seed) paired loss differences, NaN where the outcome is
    undefined. Returns (..., draws): sum over count of the defined entries of each resample, NaN
    for a resample without any. Leading axes share their resamples, so measures of one contrast
    move together, and adding one cannot move another.
    """
    *lead, n_endpoint, n_budget, n_seed = gain.shape
    columns = gain.reshape(prod(lead), n_endpoint * n_budget * n_seed)
    defined = ~np.isnan(columns)
    filled = np.where(defined, columns, 0.0)
    means = np.empty((len(columns), draws))
    done = 0
    for positions in resamples((n_endpoint, n_budget, n_seed), draws=draws, rng=rng):
        rows = slice(done, done + len(positions))
        for column, mask, out in zip(filled, defined, means, strict=True):
            out[rows] = _ratio(column.take(positions).sum(axis=1), _count(mask, positions))
        done = rows.stop
    return means.reshape(*lead, draws)


def nested_statistic(
    shape: Shape, statistic: Callable[[Array], Array], *, draws: int, rng: Generator
) -> Array:
    """Hierarchical bootstrap of anything that can be had from how often each state was drawn.

    statistic: (some draws, states) counts to (some draws,) values. Returns (draws,).
    """
    values = [statistic(_counts(p, prod(shape))) for p in resamples(shape, draws=draws, rng=rng)]
    return np.concatenate(values)


def percentile_interval(means: Array, *, level: float = 0.95) -> Interval:
    """Central percentile interval of bootstrap draws.

    Draws without a defined entry (NaN) are left out; raises ValueError when none is left.
    """
    tail = (1.0 - level) / 2.0
    lower, upper = np.quantile(_defined(means), [tail, 1.0 - tail])
    return Interval(float(lower), float(upper))


def one_sided_bounds(means: Array, *, level: float = 0.95) -> Interval:
    """The two one-sided bounds of bootstrap draws: each alone holds at `level`.

    Together they are the central interval at 2 * level - 1, which an equivalence test uses.
    """
    lower, upper = np.quantile(_defined(means), [1.0 - level, level])
    return Interval(float(lower), float(upper))


def _count(mask: NDArray[np.bool_], positions: NDArray[np.intp]) -> Array:
    if mask.all():
        return np.full(len(positions), float(positions.shape[1]))
    count: Array = mask.astype(float).take(positions).sum(axis=1)
    return count


def _ratio(total: Array, count: Array) -> Array:
    ratio: Array = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return ratio


def _counts(positions: NDArray[np.intp], n_states: int) -> Array:
    offset = np.arange(len(positions))[:, None] * n_states
    flat = np.bincount((positions + offset).ravel(), minlength=len(positions) * n_states)
    return flat.reshape(len(positions), n_states).astype(float)


def _defined(means: Array) -> Array:
    defined = means[~np.isnan(means)]
    if defined.size == 0:
        raise ValueError(f"no interval: none of {means.size} bootstrap draws is defined")
    return defined
