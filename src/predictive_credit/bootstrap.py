"""Bootstrap over a tree of clusters, drawn or kept level by level, and percentile bounds of its draws.

Sums run in NumPy's own fixed order and never through a matrix product: a BLAS rounds differently on
another machine, and a verifier elsewhere must find the same digits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.errors import Unpaired

Array = NDArray[np.float64]
Positions = NDArray[np.intp]
Path = tuple[str, ...]

# States resampled at a time; it bounds memory. Blocks are part of the definition, since a stream is
# consumed block by block: all 10,000 draws of a 72-state study fit into one.
BLOCK = 1 << 22


class Interval(NamedTuple):
    """Two ends, in the unit of what was resampled."""

    lower: float
    upper: float


class Tier(NamedTuple):
    """The clusters of one level, numbered so that the children of one parent stand together.

    first, size: (parents,) number of a parent's first child and how many it has. of_state:
    (states,) the cluster in which each state lies.
    """

    first: Positions
    size: Positions
    of_state: Positions


@dataclass(frozen=True, kw_only=True)
class Design:
    """Where each state stands in the tree of clusters, and which levels are drawn anew.

    paths: one a state, its cluster at each level, outermost first; two states share none. drawn: one
    a level; the clusters of a drawn level are drawn with replacement within their parent, as many
    as there are, and those of a kept level all come along: outside a drawn level they are strata,
    inside it the whole content of a drawn cluster. Parents may have unlike numbers of children.

    Raises Unpaired for a path of another length or that occurs twice, ValueError where no level is
    drawn or there is no state.
    """

    paths: tuple[Path, ...]
    drawn: tuple[bool, ...]

    def __post_init__(self) -> None:
        if not self.paths or not any(self.drawn):
            raise ValueError(
                f"a bootstrap needs states and a drawn level; seen {len(self.paths)} states, {self.drawn}"
            )
        for path in self.paths:
            if len(path) != len(self.drawn):
                raise Unpaired(
                    f"{'/'.join(path)} has {len(path)} cluster levels where the study has {len(self.drawn)}"
                )
        if len(set(self.paths)) != len(self.paths):
            path, times = Counter(self.paths).most_common(1)[0]
            raise Unpaired(
                f"{times} states are at {'/'.join(path)}; each needs its own place among the clusters"
            )

    @cached_property
    def tiers(self) -> tuple[Tier, ...]:
        """The levels, outermost first; clusters are numbered in the order of their sorted paths."""
        codes = [_ranks(names) for names in zip(*self.paths, strict=True)]
        order = np.lexsort(codes[::-1])
        starts, begins = np.zeros(1, dtype=np.intp), np.zeros(len(order), dtype=bool)
        begins[0] = True
        tiers = []
        for code in codes:
            begins[1:] |= np.diff(code[order]) != 0
            outer, starts = starts, np.flatnonzero(begins)
            first = np.searchsorted(starts, outer)
            of_state = np.empty(len(order), dtype=np.intp)
            of_state[order] = np.cumsum(begins) - 1
            tiers.append(Tier(first=first, size=np.diff(first, append=len(starts)), of_state=of_state))
        return tuple(tiers)

    @property
    def clusters(self) -> Positions:
        """The outermost drawn cluster in which each state lies, (states,): what is independent."""
        return self.tiers[self.drawn.index(True)].of_state

    @property
    def strata(self) -> Positions:
        """The stratum in which each state lies, (states,); all 0 where the outermost level is drawn."""
        outermost = self.drawn.index(True)
        return self.tiers[outermost - 1].of_state if outermost else np.zeros(len(self.paths), dtype=np.intp)

    @property
    def stratum_names(self) -> tuple[str, ...]:
        """The strata by their numbers: the path of each, `` where the outermost level is drawn."""
        outermost = self.drawn.index(True)
        return tuple("/".join(path) for path in sorted({path[:outermost] for path in self.paths}))

    @property
    def clusters_are_states(self) -> bool:
        """Whether what is independent is a single state: no level lies below the outermost drawn one."""
        return self.drawn.index(True) == len(self.drawn) - 1

    @property
    def innermost(self) -> Tier:
        """The innermost drawn level: all states of one of its clusters occur equally often."""
        return self.tiers[len(self.drawn) - 1 - self.drawn[::-1].index(True)]


def counts(design: Design, *, draws: int, rng: Generator) -> Iterator[Array]:
    """How often each state occurs in each resample, in blocks (some draws, states).

    Each level is drawn within the one above it, because states of one endpoint share its assay;
    drawing 72 states freely would pretend to 72 independent experiments where there are 12. Each
    copy of a cluster that was drawn twice draws its own children.
    """
    for block in _cluster_counts(design, draws, rng):
        yield block[:, design.innermost.of_state]


def nested_means(gain: Array, design: Design, *, draws: int, rng: Generator) -> Array:
    """Bootstrap of a mean over the design.

    gain: (..., states) paired loss differences, NaN where the outcome is undefined. Returns
    (..., draws): sum over count of the defined entries of each resample, NaN for a resample
    without any. Leading axes share their resamples, so measures and targets of one contrast move
    together, and adding one cannot move another.
    """
    lead = gain.shape[:-1]
    rows = gain.reshape(prod(lead), gain.shape[-1])
    defined = ~np.isnan(rows)
    cluster = design.innermost.of_state
    sums = _by_cluster(np.where(defined, rows, 0.0), cluster)
    # Where all rows are defined in the same states, which is the rule, one count serves them all.
    counted = defined[:1] if (defined == defined[0]).all() else defined
    sizes = _by_cluster(counted.astype(float), cluster)
    means = [
        _ratio(_weighted(block, sums), _weighted(block, sizes))
        for block in _cluster_counts(design, draws, rng)
    ]
    return np.concatenate(means, axis=1).reshape(*lead, draws)


def nested_statistic(
    design: Design, statistic: Callable[[Array], Array], *, draws: int, rng: Generator
) -> Array:
    """Bootstrap of anything that can be had from how often each state was drawn.

    statistic: (some draws, states) counts to (some draws,) values. Returns (draws,).
    """
    return np.concatenate([statistic(block) for block in counts(design, draws=draws, rng=rng)])


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


def _cluster_counts(design: Design, draws: int, rng: Generator) -> Iterator[Array]:
    """How often each innermost drawn cluster occurs, in blocks (some draws, clusters)."""
    if draws < 1:
        raise ValueError(f"a bootstrap needs draws; seen {draws} draws")
    step = max(1, BLOCK // len(design.paths))
    for done in range(0, draws, step):
        yield _block(design, min(step, draws - done), rng)


def _block(design: Design, draws: int, rng: Generator) -> Array:
    """One block, level by level: the clusters of one draw after those of another, in one flat array."""
    cluster, per_draw = np.zeros(draws, dtype=np.intp), np.ones(draws, dtype=np.intp)  # the root, once a draw
    for tier, is_drawn in zip(design.tiers, design.drawn, strict=True):
        per_draw, cluster = _children(tier, is_drawn, per_draw, cluster, rng)
        if tier is design.innermost:
            break
    n_clusters = int(tier.size.sum())
    cluster += np.repeat(np.arange(draws) * n_clusters, per_draw)
    flat = np.bincount(cluster, minlength=draws * n_clusters)
    return flat.reshape(draws, n_clusters).astype(float)


def _children(
    tier: Tier, is_drawn: bool, per_draw: Positions, parent: Positions, rng: Generator
) -> tuple[Positions, Positions]:
    """The children of the drawn parents: as many as each has, picked with replacement or all.

    per_draw: (draws,) how many of the parents belong to each draw, and then how many children do.
    """
    alike = int(tier.size[0])
    if alike == tier.size.min() == tier.size.max():  # the same picks as below, in half the time
        nth = rng.integers(0, alike, size=(len(parent), alike)) if is_drawn else np.arange(alike)
        return per_draw * alike, (tier.first[parent][:, None] + nth).ravel()
    size = tier.size[parent]
    if is_drawn:
        nth = rng.integers(0, np.repeat(size, size))
    else:
        nth = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
    children = np.repeat(tier.first[parent], size) + nth
    return np.add.reduceat(size, np.cumsum(per_draw) - per_draw), children


def _by_cluster(rows: Array, cluster: Positions) -> Array:
    """Sums of each row's entries within each cluster, (rows, clusters)."""
    return np.stack([np.bincount(cluster, weights=row) for row in rows])


def _weighted(block: Array, rows: Array) -> Array:
    """Each row's sum under each draw's counts, (rows, draws). `einsum` as it comes calls no BLAS."""
    total: Array = np.einsum("dc,rc->rd", block, rows, optimize=False)
    return total


def _ratio(total: Array, count: Array) -> Array:
    """Sums over counts, (rows, draws) over (rows or 1, draws); NaN where nothing was counted."""
    ratio: Array = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
    return ratio


def _ranks(names: Sequence[str]) -> Positions:
    """The place of each name among the sorted names."""
    rank = {name: at for at, name in enumerate(sorted(set(names)))}
    return np.array([rank[name] for name in names], dtype=np.intp)


def _defined(means: Array) -> Array:
    defined = means[~np.isnan(means)]
    if defined.size == 0:
        raise ValueError(f"no interval: none of {means.size} bootstrap draws is defined")
    return defined
