"""What a planned population can resolve: its study simulated many times, before a call is paid for.

A simulated study has the planned clusters and states, normal gains of the assumed size, spread and
call noise, and the bounds that decide the real one: those of the bootstrap over its design, and beside
them those of the t interval. As a true mean gain only shifts every bound, one set of simulated studies
tells for every gate the span of true gains at which it would have held in each.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import stdtrit

from predictive_credit.bootstrap import Design, Path, nested_means
from predictive_credit.contrasts import too_few
from predictive_credit.streams import stream
from predictive_credit.studies.asks import Ask
from predictive_credit.studies.assumptions import Assumed, Key

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Interval = Literal["percentile", "t"]

INTERVALS: tuple[Interval, ...] = ("percentile", "t")  # the first is the one that rules read
TOGETHER = 100  # simulated studies that share their resamples; others have resamples of their own
MOST = 500  # clusters in the smallest stratum beyond which none are looked for
CLOSE = 0.03  # of the number of clusters: the simulation tells no finer
AIM = 0.80


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How many studies are simulated, and with how many bootstrap draws each."""

    studies: int = 2000
    draws: int = 1000
    search_studies: int = 800  # for each number of clusters that is tried
    search_draws: int = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A share of the simulated studies, and its Monte Carlo standard error."""

    share: float
    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What one gate would do under one interval.

    effect_80, effect_90: the smallest true gain at which the gate holds in that share of the studies;
    of an equivalence the largest. clusters_80: with how many clusters it holds in 80 % at the stated
    effect. Each is None where none that was tried does.
    """

    interval: Interval | None  # None: the gate reads no bound
    power: Share  # at the stated effect
    at_null: Share  # at the null's edge: how often it holds although there is nothing to find
    effect_80: float | None
    effect_90: float | None
    clusters_80: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePower:
    """One gate of the rule. nominal: how often it may hold at the null; None for a gate without a bound."""

    name: str
    key: Key
    ask: Ask
    assumed: Assumed
    nominal: float | None
    resolved: tuple[Resolved, ...]

    def under(self, interval: Interval) -> Resolved:
        """What the gate does under an interval, or under any if it reads none."""
        return next(r for r in self.resolved if r.interval in (interval, None))


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePower:
    """All gates at once under one interval, each at its own stated effect."""

    interval: Interval
    power: Share
    clusters_80: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """The power of a planned study. reason: why its design carries no interval at all, if so."""

    states: int
    clusters: int
    strata: int
    most: int  # clusters in all, beyond which none were tried
    effort: Effort
    reason: str | None
    gates: tuple[GatePower, ...]
    rule: tuple[RulePower, ...]  # empty where a gate is not asked, since the rule then cannot hold


class Bounds(NamedTuple):
    """Mean and one-sided bounds of one contrast where its true mean gain is 0, (studies,) each."""

    mean: Array
    lower: Array
    upper: Array


class Span(NamedTuple):
    """Between which true gains, to the side its gate looks, the gate holds: (studies,) each."""

    low: Array
    high: Array

    def holds(self, effect: float) -> Bools:
        """Whether the gate holds at this true gain, in each study."""
        return (self.low < effect) & (effect < self.high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """A planned design, and the same design with any other number of clusters."""

    paths: tuple[Path, ...]
    drawn: tuple[bool, ...]

    @property
    def each(self) -> int:
        """Clusters of the outermost drawn level in the smallest stratum."""
        return min(map(len, self._by_stratum().values()))

    def total(self, each: int) -> int:
        """Clusters in all where the smallest stratum has `each`; the others keep their proportion."""
        return sum(self._wanted(len(clusters), each) for clusters in self._by_stratum().values())

    def smallest(self, total: int) -> int:
        """The inverse of `total`: clusters in the smallest stratum where there are `total` in all."""
        return max(1, round(total * self.each / self.total(self.each)))

    def design(self, each: int) -> Design:
        """The design with `each` clusters in the smallest stratum, made like the planned ones in turn."""
        paths: list[Path] = []
        for stratum, clusters in self._by_stratum().items():
            contents = list(clusters.values())
            for k in range(self._wanted(len(contents), each)):
                paths += [(*stratum, f"{k:06d}", *tail) for tail in contents[k % len(contents)]]
        return Design(paths=tuple(paths), drawn=self.drawn)

    def _wanted(self, clusters: int, each: int) -> int:
        return math.ceil(clusters * each / self.each)

    def _by_stratum(self) -> dict[Path, dict[Path, list[Path]]]:
        """By stratum and cluster, what lies below the cluster."""
        level = self.drawn.index(True)
        found: dict[Path, dict[Path, list[Path]]] = defaultdict(lambda: defaultdict(list))
        for path in self.paths:
            found[path[:level]][path[: level + 1]].append(path[level + 1 :])
        return found


@dataclass(frozen=True, kw_only=True)
class Simulation:
    """A planned population, what is assumed of it, and the studies that were simulated of it so far.

    study, seed: with the target, the measure and the number of clusters they name the random streams.
    one_sided_level: of each bound alone. In every method `each` counts the clusters of the smallest
    stratum.
    """

    population: Population
    assumed: Mapping[Key, Assumed]
    study: str
    seed: int
    one_sided_level: float
    effort: Effort
    found: dict[tuple[str, str, Interval, int], dict[str, Bounds]] = field(default_factory=dict, repr=False)

    def span(self, key: Key, ask: Ask, interval: Interval, each: int) -> Span:
        """The true gains at which a gate holds in each simulated study."""
        if ask.kind != "margin" and self.too_few(each) is not None:
            nowhere = np.full(len(self.bounds(key, "t", each).mean), np.nan)
            return Span(low=nowhere, high=nowhere)
        return span(ask, self.bounds(key, interval, each))

    def bounds(self, key: Key, interval: Interval, each: int) -> Bounds:
        """Bounds of a contrast without any gain; its pairs in one target and measure are drawn together."""
        name = (key.target, key.measure, interval, each)
        if name not in self.found:
            planned = each == self.population.each
            streams = [
                stream(self.seed, self.study, "power", key.target, key.measure, each, what)
                for what in ("gains", "draws")
            ]
            self.found[name] = simulated(
                self.population.design(each),
                {k.pair: of for k, of in self.assumed.items() if k[:2] == key[:2]},
                interval=interval,
                studies=self.effort.studies if planned else self.effort.search_studies,
                draws=self.effort.draws if planned else self.effort.search_draws,
                level=self.one_sided_level,
                gains_rng=streams[0], draws_rng=streams[1],
            )  # fmt: skip
        return self.found[name][key.pair]

    def too_few(self, each: int) -> str | None:
        """Why so few clusters carry no interval, or None if they do."""
        design = self.population.design(each)
        return too_few(np.zeros(len(design.paths)), design)

    def clusters(self, holds: Callable[[int], Bools], guess: int) -> int | None:
        """With how many clusters in all something holds in 80 % of the studies."""
        fewest = next(each for each in range(1, MOST) if self.too_few(each) is None)
        each = least(lambda n: bool(holds(n).mean() >= AIM), guess, fewest=fewest)
        return None if each is None else self.population.total(each)


def power(simulation: Simulation, asks: Sequence[tuple[Key, Ask]], *, is_whole: bool = True) -> Power:
    """The power of every gate, and of all at once, in the planned population.

    asks: the gates in the rule's order, each with the contrast it looks at. is_whole: whether they are
    all that the rule has; without one of its contexts a rule cannot hold.
    """
    population = simulation.population
    gates = tuple(_gate(simulation, key, ask) for key, ask in asks)
    return Power(
        states=len(population.paths),
        clusters=population.total(population.each),
        strata=len(population.design(population.each).stratum_names),
        most=population.total(MOST),
        effort=simulation.effort,
        reason=simulation.too_few(population.each),
        gates=gates,
        rule=tuple(_rule(simulation, gates, interval) for interval in INTERVALS) if is_whole else (),
    )


def least(holds: Callable[[int], bool], guess: int, *, fewest: int = 1, most: int = MOST) -> int | None:
    """The smallest n from `fewest` to `most` for which `holds`, sought from a guess; None if there is none.

    holds: of a rising n it is false up to a point and then true. Above 1 / CLOSE the answer is only
    as fine as CLOSE.
    """
    high, step = min(max(guess, fewest), most), 1.1
    if holds(high):
        low = high
        while low >= fewest and holds(low):
            high, low, step = low, math.ceil(low / step) - 1, step**2
        low = max(low, fewest - 1)
    else:
        low = high
        while low == high or not holds(high):
            if high >= most:
                return None
            low, high, step = high, min(math.floor(high * step) + 1, most), step**2
    while high - low > max(1, CLOSE * high):
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def share(held: Bools) -> Share:
    """How often a gate held, (studies,), with the binomial standard error.

    The error is taken at one more study of either kind, or it would be 0 for a share of 0 or 1.
    """
    n = len(held)
    inner = (float(held.sum()) + 1.0) / (n + 2.0)
    return Share(share=float(held.mean()), error=math.sqrt(inner * (1.0 - inner) / n))


def span(ask: Ask, bounds: Bounds) -> Span:
    """The true gains at which a gate would have held, from the bounds of studies without any gain."""
    mean, lower, upper = bounds
    if ask.harm:
        mean, lower, upper = -mean, -upper, -lower
    anything = np.full(len(mean), np.inf)
    match ask.kind:
        case "bound":
            return Span(low=-lower, high=anything)
        case "margin":
            return Span(low=_margin(ask) - mean, high=anything)
        case "equivalence":
            return Span(low=-_margin(ask) - lower, high=_margin(ask) - upper)


def simulated(
    design: Design, assumed: Mapping[str, Assumed], *, interval: Interval,
    studies: int, draws: int, level: float, gains_rng: Generator, draws_rng: Generator,
) -> dict[str, Bounds]:  # fmt: skip
    """Bounds by pair of studies without any gain, all pairs in one target and measure.

    A gain is the noise of the other context minus that of M, half of its variance from either: so
    pairs share M's noise, as they share its forecasts. level: of each bound alone.
    """
    blocks = []
    for done in range(0, studies, TOGETHER):
        found = gains(design, assumed, min(TOGETHER, studies - done), gains_rng)
        if interval == "t":
            lower, upper = t_bounds(found, design, level=level)
        else:
            means = nested_means(found, design, draws=draws, rng=draws_rng)
            lower, upper = np.quantile(means, [1.0 - level, level], axis=-1)
        blocks.append((found.mean(axis=-1), lower, upper))
    mean, lower, upper = (np.concatenate(part, axis=1) for part in zip(*blocks, strict=True))
    return {pair: Bounds(mean=mean[k], lower=lower[k], upper=upper[k]) for k, pair in enumerate(assumed)}


def t_bounds(gains: Array, design: Design, *, level: float) -> tuple[Array, Array]:
    """One-sided bounds of the t interval on cluster means, as `contrasts.t_interval` has it.

    gains: (..., states), all defined. Returns two arrays (...,), infinite where there is one cluster.
    """
    order = np.argsort(design.clusters, kind="stable")
    _, first, size = np.unique(design.clusters[order], return_index=True, return_counts=True)
    means = np.add.reduceat(gains[..., order], first, axis=-1) / size
    n, centre = len(size), means.mean(axis=-1)
    if n < 2:
        return np.full_like(centre, -np.inf), np.full_like(centre, np.inf)
    half = float(stdtrit(n - 1, level)) * means.std(axis=-1, ddof=1) / math.sqrt(n)
    return centre - half, centre + half


def gains(design: Design, assumed: Mapping[str, Assumed], studies: int, rng: Generator) -> Array:
    """Gains whose true mean is 0, (pair, study, state)."""
    clusters = design.clusters
    others = len(assumed)
    between = _apart(rng.standard_normal((others + 1, studies, int(clusters.max()) + 1)))
    within = _apart(rng.standard_normal((others + 1, studies, len(clusters))))
    spread = np.array([of.components.spread for of in assumed.values()])[:, None, None]
    state = np.array([of.components.state for of in assumed.values()])[:, None, None]
    found: Array = spread * between[..., clusters] + state * within
    return found


def _apart(noise: Array) -> Array:
    """The noise of each other context minus that of the last, M; standard normal again."""
    gap: Array = (noise[:-1] - noise[-1]) / math.sqrt(2.0)
    return gap


def _gate(simulation: Simulation, key: Key, ask: Ask) -> GatePower:
    """One gate; the t interval is quick and says where to look with the other."""
    readers: tuple[Interval, ...] = ("t",) if ask.kind == "margin" else INTERVALS
    found: dict[Interval, Resolved] = {}
    for interval in reversed(readers):
        found[interval] = _resolved(simulation, key, ask, interval, found.get("t"))
    nominal = None if ask.kind == "margin" else round(1.0 - simulation.one_sided_level, 6)
    return GatePower(
        name=ask.gate.format(target=key.target), key=key, ask=ask, assumed=simulation.assumed[key],
        nominal=nominal, resolved=tuple(found[interval] for interval in readers),
    )  # fmt: skip


def _resolved(
    simulation: Simulation, key: Key, ask: Ask, interval: Interval, quick: Resolved | None
) -> Resolved:
    effect, planned = simulation.assumed[key].effect, simulation.population.each
    of = simulation.span(key, ask, interval, planned)
    at_80 = _effect(of, ask, AIM)
    clusters = None
    # What the t interval finds in no number of clusters, the other does not find there either: with
    # hundreds of clusters the two agree.
    if ask.can_hold(effect) and (quick is None or quick.clusters_80 is not None):
        guess = _guess(planned, at_80, effect, ask)
        if ask.kind != "bound" and quick is not None and quick.clusters_80 is not None:
            guess = simulation.population.smallest(quick.clusters_80)
        clusters = simulation.clusters(lambda n: simulation.span(key, ask, interval, n).holds(effect), guess)
    return Resolved(
        interval=None if ask.kind == "margin" else interval, power=share(of.holds(effect)),
        at_null=share(of.holds(ask.null)), effect_80=at_80, effect_90=_effect(of, ask, 0.90),
        clusters_80=clusters,
    )  # fmt: skip


def _rule(simulation: Simulation, gates: Sequence[GatePower], interval: Interval) -> RulePower:
    def holds(each: int) -> Bools:
        held = [simulation.span(g.key, g.ask, interval, each).holds(g.assumed.effect) for g in gates]
        together: Bools = np.logical_and.reduce(held)
        return together

    clusters, needed = None, [gate.under(interval).clusters_80 for gate in gates]
    found = [n for n in needed if n is not None]
    if len(found) == len(needed):  # all at once need no fewer than each alone
        clusters = simulation.clusters(holds, simulation.population.smallest(max(found)))
    return RulePower(interval=interval, power=share(holds(simulation.population.each)), clusters_80=clusters)


def _effect(of: Span, ask: Ask, aim: float) -> float | None:
    """The smallest true gain at which a gate holds in the share `aim`; of an equivalence the largest."""
    n = len(of.low)
    if np.isnan(of.low).any():  # no bound at all
        return None
    if ask.kind != "equivalence":
        return float(np.sort(of.low)[math.ceil(aim * n) - 1])
    low, high = np.sort(of.low), np.sort(of.high)
    # Just below each end: studies whose span has begun, less those whose span is over.
    holding = np.searchsorted(low, high, side="left") - np.searchsorted(high, high, side="left")
    fit = high[(holding >= aim * n) & (high >= 0.0)]
    return float(fit.max()) if len(fit) else None


def _guess(start: int, at_80: float | None, effect: float, ask: Ask) -> int:
    """Clusters that might do: the resolved effect falls with their root."""
    if ask.kind != "bound" or at_80 is None:
        return start
    return max(1, min(MOST, math.ceil(start * (at_80 / effect) ** 2)))


def _margin(ask: Ask) -> float:
    return ask.margin if ask.margin is not None else 0.0
