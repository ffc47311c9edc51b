"""What the power of a study rests on: numbers that somebody states, or that an earlier run shows.

Of each contrast: the true mean gain, how gains differ between clusters and between the states of one,
and how far apart two calls of one context are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictive_credit import panel as panels
from predictive_credit import scoring
from predictive_credit.bootstrap import Design
from predictive_credit.errors import BadConfig
from predictive_credit.panel import Measure, Panel

Array = NDArray[np.float64]
Stated = Mapping[str, Sequence[str]]  # by option, every `NUMBER` or `KEY=NUMBER` in the order given

OPTIONS = ("effect", "spread", "within", "drift")
LARGEST = 1e9  # of any of them: no loss is so large, and squares and sums of it stay finite
# Two calls of a normal point are on average 2 / sqrt(pi) of its standard deviation apart.
DEVIATION_PER_DRIFT = math.sqrt(math.pi) / 2.0


class Key(NamedTuple):
    """One contrast of a study; an option's KEY is any of the three."""

    target: str
    measure: Measure
    pair: str

    def __str__(self) -> str:
        return " ".join(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Components:
    """How the gain of a contrast varies: standard deviations in the loss's unit.

    drift: mean absolute gap of the points of two calls, in the target's unit. per_drift: standard
    deviation that the calls give the gain of a state, for each unit of drift.
    """

    spread: float  # between clusters, beside what their states and calls bring
    within: float  # between the states of a cluster, beside what their calls bring
    drift: float
    per_drift: float

    @property
    def calls(self) -> float:
        """Standard deviation of a state's gain that is the calls' alone."""
        return self.drift * self.per_drift

    @property
    def state(self) -> float:
        """Standard deviation between the states of one cluster, calls included."""
        return math.hypot(self.within, self.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumed:
    """What is assumed of one contrast. effect: size of the true mean gain, to the side its gate looks."""

    effect: float
    components: Components


def per_drift(measure: Measure) -> float:
    """Standard deviation of the gain of a state for one unit of drift, where nothing was measured.

    A call's point is normal around the context's own, both calls of a context are averaged, and a
    gain is the difference of two contexts, so its variance is that of one call's loss. A point error
    moves as far as the point; an interval score ten times as far where the interval misses, which an
    80 % interval does for a fifth of the outcomes, and else not. The gain in drift is the difference
    of two absolute gaps, of variance (pi - 2) / 2 each where their mean is 1.
    """
    match measure:
        case "point_error":
            return DEVIATION_PER_DRIFT
        case "interval_score":
            return DEVIATION_PER_DRIFT * scoring.penalty() * math.sqrt(1.0 - scoring.LEVEL)
        case "drift":
            return math.sqrt(math.pi - 2.0)
        case _:
            raise ValueError(f"no rule reads {measure}, and what a drift does to it is not known")


def observed(panel: Panel, measure: Measure, pair: str) -> Components:
    """The components of a contrast in an earlier run, from one analysis of variance of its gains.

    Between clusters of a stratum and within clusters, by the method of moments with unlike numbers
    of states; a negative estimate is 0. Levels between cluster and state count as within: the
    variance of a cluster's mean, on which the power rests, is kept whole. The calls' share is half
    the squared gap of the losses of two calls, over two calls, summed over the two contexts; it is
    taken out of what lies between states, of which it is a part. Undefined gains are left out.

    Raises BadConfig where a context was not asked, or nothing is left to compare.
    Reference: Searle, Casella & McCulloch (1992), Variance Components, section 3.6.
    """
    contexts = pair.split("-")
    if missing := [c for c in contexts if c not in panel.contexts]:
        raise BadConfig(
            f"the earlier run was not asked in context {missing[0]}, so it shows nothing of {pair}; "
            "state the numbers instead of --like"
        )
    gain = panels.gain(panel, measure, *contexts).all
    between, within = variances(gain, panel.design)
    at = [panel.of(context) for context in contexts]
    drift = scoring.mean(scoring.drift(panel.point[:, at]))
    calls = (per_drift(measure) * drift) ** 2
    if measure != "drift":
        loss = panels.losses(panel, measure)[:, at]
        calls = scoring.mean(((loss[..., 0] - loss[..., 1]) ** 2 / 4.0).sum(axis=1))
    # Where a cluster is one state, its own variance is all there is, and the calls are a part of it.
    calls = min(calls, between if within is None else within)
    return Components(
        spread=math.sqrt(between - (calls if within is None else 0.0)),
        within=0.0 if within is None else math.sqrt(within - calls),
        drift=drift,
        per_drift=math.sqrt(calls) / drift if drift > 0.0 else 0.0,
    )


def variances(gain: Array, design: Design) -> tuple[float, float | None]:
    """Variance of a gain (state,) between the clusters of a stratum, and within clusters.

    The second is None where every cluster is one state; the first then holds both. Raises BadConfig
    where no stratum has two clusters with a defined gain.
    """
    defined = ~np.isnan(gain)
    values = gain[defined]
    _, stratum = np.unique(design.strata[defined], return_inverse=True)
    _, cluster = np.unique(design.clusters[defined], return_inverse=True)
    n, n_clusters, n_strata = len(values), len(np.unique(cluster)), len(np.unique(stratum))
    if n_clusters <= n_strata:
        raise BadConfig(
            f"an earlier run of {n_clusters} clusters with a defined gain shows no spread between them; "
            "state the numbers instead of --like"
        )
    size, mean = np.bincount(cluster), np.bincount(cluster, values) / np.bincount(cluster)
    centre = (np.bincount(stratum, values) / np.bincount(stratum))[stratum]
    of_between = float(((mean[cluster] - centre) ** 2).sum()) / (n_clusters - n_strata)
    if n == n_clusters:
        return of_between, None
    of_within = float(((values - mean[cluster]) ** 2).sum()) / (n - n_clusters)
    # The mean number of states of a cluster, less what their inequality takes from it.
    squares = float((size[cluster] / np.bincount(stratum)[stratum]).sum())
    typical = (n - squares) / (n_clusters - n_strata)
    return max((of_between - of_within) / typical, 0.0), of_within


def assume(
    keys: Sequence[Key], stated: Stated, earlier: Mapping[Key, Components] | None, *, single: bool
) -> dict[Key, Assumed]:
    """What is assumed of each contrast: what is stated, else what an earlier run showed.

    single: whether every cluster is one state, which needs no `within` beside its spread.
    Raises BadConfig for a word that is no number from 0 to LARGEST, for a key that fits no contrast, for
    what neither is stated nor was shown, and where nothing would vary.
    """
    given = {option: [_read(option, word, keys) for word in words] for option, words in stated.items()}
    return {key: _assume(key, given, None if earlier is None else earlier[key], single) for key in keys}


def _assume(
    key: Key, given: Mapping[str, Sequence[tuple[str, float]]], earlier: Components | None, single: bool
) -> Assumed:
    found: dict[str, float] = {} if earlier is None else {"spread": earlier.spread, "within": earlier.within,
                                                          "drift": earlier.drift}  # fmt: skip
    if single:
        found.setdefault("within", 0.0)
    for option, numbers in given.items():
        # Of those that fit, the last one stands: `0.02 S-M=0.01`.
        if fitting := [number for name, number in numbers if name in ("", *key)]:
            found[option] = fitting[-1]
    if missing := [option for option in OPTIONS if option not in found]:
        options = ", ".join(f"--{option} NUMBER" for option in missing)
        like = (
            "" if missing == ["effect"] or earlier is not None else "; --like BUNDLE gives all but the effect"
        )
        raise BadConfig(f"the power of {key} needs {options}{like}")
    components = Components(
        spread=found["spread"], within=found["within"], drift=found["drift"],
        per_drift=per_drift(key.measure) if earlier is None else earlier.per_drift,
    )  # fmt: skip
    if math.hypot(components.spread, components.state) == 0.0:
        raise BadConfig(
            f"nothing varies in {key}, so there is nothing to simulate; give --spread, --within or --drift "
            "a number above 0"
        )
    return Assumed(effect=found["effect"], components=components)


def _read(option: str, word: str, keys: Sequence[Key]) -> tuple[str, float]:
    """`KEY=NUMBER` as its key, empty where there is none, and its number."""
    name, _, amount = word.rpartition("=")
    known = sorted({part for key in keys for part in key})
    if name and name not in known:
        raise BadConfig(
            f"--{option} {word} is of no contrast that the rule reads; a key is one of {', '.join(known)}"
        )
    try:
        number = float(amount)
    except ValueError:
        number = math.nan
    if not 0.0 <= number <= LARGEST:
        raise BadConfig(
            f"--{option} {word} is not a number from 0 up to {LARGEST:,.0f}"
            + ("; a gate knows to which side it looks, so give the size alone" if option == "effect" else "")
        )
    return name, number
