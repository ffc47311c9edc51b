"""A user's forecast: from a pilot of agents to what all of them will solve, and what more would bring.

The pilot is drawn from a larger matrix, whose other agents then show how good the forecast was, or it is
the matrix itself, and the user says how many agents there are in all. The calibrated forecaster makes
point and interval; others are told beside it.

The curve answers what the user can do next: it is the coverage of this pilot together with more agents,
so it starts at what the pilot solves, without width. It is forecast for each size by itself, as if so
many agents were all there are; its limits hold for each size by itself, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from predictive_credit import canonical, streams
from predictive_credit.coverage import calibrated, estimators
from predictive_credit.coverage.estimators import FORECASTERS
from predictive_credit.coverage.matrix import Matrix, Solved
from predictive_credit.errors import BadConfig, BadSource

Array = NDArray[np.float64]
How = Literal["random", "first", "all"]

LEAST_PILOT = 2  # one agent tells nothing of how agents differ
LEAST_CHECK = 2  # agents beyond a drawn pilot: what one of them adds is hardly a check
MOST_AGENTS = 500  # in all: a pilot says little of so many, and its forecast draws each of them
EVERY = 40  # so many further agents have a point of the curve each, after them every tenth part more
STEPS = (1, 2, 5, 10, 20, 50, 100, 200)  # further agents, as far as there are so many
SHARES = (0.5, 0.9)  # of the gain that is forecast


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked for. pilot: how many agents, None for the whole matrix; agents: in all, then.

    first: the matrix's first agents rather than random ones. target: a coverage to be reached.
    """

    seed: int
    pilot: int | None = 10
    agents: int | None = None
    first: bool = False
    target: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """A forecast with the limits of its 95 % interval, all fractions or all tasks."""

    point: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """Tasks that `more` agents beyond the pilot newly solve; the point is the median of the forecast."""

    more: int
    tasks: Ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The fewest agents of the curve, pilot included, with which the forecast is at `coverage`.

    earliest, latest: where the upper and the lower limit of the curve are. None: not with all agents.
    """

    what: str
    coverage: float
    agents: int | None
    earliest: int | None
    latest: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What all agents of the matrix do solve, C(M), and whether the interval held it.

    curve: one a size of the forecast's, the exact mean over which agents join the pilot.
    """

    coverage: float
    curve: tuple[float, ...]
    inside: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The forecast from one pilot; coverages are fractions of the tasks.

    observed: what the pilot solves. coverage, floor: forecast for all agents, and 1 minus it. inside:
    exact mean coverage of 1 to all of the pilot's agents. sizes: from the pilot's to all agents;
    curve, lower, upper: one a size, of the pilot together with more. others: what the other
    forecasters say of all agents.
    """

    name: str
    sha256: str
    seed: int
    how: How
    pilot: tuple[str, ...]
    agents: int
    tasks: int
    observed: float
    coverage: Ends
    floor: Ends
    inside: tuple[float, ...]
    sizes: tuple[int, ...]
    curve: tuple[float, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    gains: tuple[Gain, ...]
    reaches: tuple[Reach, ...]
    others: tuple[tuple[str, float], ...]
    truth: Truth | None

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        found: dict[str, Any] = canonical.plain(self)
        return found

    def text(self) -> str:
        """As lines for a terminal."""
        return "\n".join(_lines(self))


def forecast(
    matrix: Matrix, settings: Settings, *, method: calibrated.Settings = calibrated.FROZEN
) -> Forecast:
    """Forecast what all agents solve from a pilot.

    method: of the calibrated forecaster.

    Raises BadConfig for a pilot, a number of agents or a target that do not fit the matrix, BadSource
    for a pilot that solves nothing.
    """
    how, rows, agents = _chosen(matrix, settings)
    pilot = matrix.solved[rows]
    if not pilot.any():
        raise BadSource(
            f"the pilot of {len(rows)} agents solves no task of {matrix.name}; take more or another seed"
        )
    if settings.target is not None and not 0.0 < settings.target <= 1.0:
        raise BadConfig(f"a target is a coverage above 0 and at most 1; seen {settings.target:g}")
    k, tasks = len(rows), len(matrix.tasks)
    sizes = _sizes(k, agents)
    ends = _ends(pilot, sizes, settings.seed, method)
    whole = Ends(point=float(ends[-1, 0]), lower=float(ends[-1, 1]), upper=float(ends[-1, 2]))
    point, lower, upper = (tuple(column.tolist()) for column in ends.T)
    return Forecast(
        name=matrix.name, sha256=matrix.sha256, seed=settings.seed, how=how,
        pilot=tuple(matrix.agents[row] for row in rows), agents=agents, tasks=tasks,
        observed=point[0], coverage=whole,
        floor=Ends(point=1 - whole.point, lower=1 - whole.upper, upper=1 - whole.lower),
        inside=tuple(estimators.exact_curve(pilot, range(1, k + 1)).tolist()),
        sizes=sizes, curve=point, lower=lower, upper=upper, gains=_gains(sizes, tasks * (ends - point[0])),
        reaches=_reaches(sizes, ends, settings.target),
        others=tuple(
            (name, float(estimators.curve(name, pilot, agents=agents, sizes=[agents])[0]))
            for name in FORECASTERS
        ),
        truth=None if how == "all" else _truth(matrix, rows, sizes, whole),
    )  # fmt: skip


def _sizes(k: int, agents: int) -> tuple[int, ...]:
    """From the pilot's size to all agents: every one of the first, then with growing gaps."""
    more, sizes = 0, {k, agents}
    while k + more < agents:
        sizes.add(k + more)
        more += max(1, more // 10) if more >= EVERY else 1
    return tuple(sorted(sizes | {k + step for step in STEPS if k + step < agents}))


def _ends(pilot: Solved, sizes: Sequence[int], seed: int, method: calibrated.Settings) -> Array:
    """Point, lower and upper limit (sizes, 3) for the pilot together with more agents.

    Every size draws from an equal generator, so that neighbours share most of their noise. More agents
    never solve less, so what noise is left is cut off from the last size backwards.
    """
    observed = float(pilot.any(axis=0).mean())
    rows = [(observed,) * 3]
    for size in sizes[1:]:
        rng = streams.stream(seed, "coverage", "forecast")
        made = calibrated.predict(pilot, agents=size, sizes=[size], rng=rng, settings=method)
        rows.append((float(made.point[0]), float(made.lower[0]), float(made.upper[0])))
    ends = np.minimum.accumulate(np.array(rows)[::-1], axis=0)[::-1]
    return np.maximum(ends, observed)  # the last digit of a mean over draws may lie below


def _chosen(matrix: Matrix, settings: Settings) -> tuple[How, list[int], int]:
    """How the pilot came about, its rows in the matrix's order, and how many agents there are in all."""
    there = len(matrix.agents)
    if settings.pilot is None:
        return "all", list(range(there)), _population(there, settings.agents)
    k = settings.pilot
    if settings.agents not in (None, there):
        raise BadConfig(
            f"{matrix.name} has {there} agents, and a pilot of {k} of them is checked against all {there}; "
            "give --agents with --pilot all"
        )
    if k < LEAST_PILOT:
        raise BadConfig(f"a pilot needs at least {LEAST_PILOT} agents; seen {k}")
    if k >= there:
        raise BadConfig(
            f"a pilot of {k} leaves none of the {there} agents of {matrix.name} to forecast; take fewer, or "
            "--pilot all and --agents for how many there are in all"
        )
    if there - k < LEAST_CHECK:
        raise BadConfig(
            f"a pilot of {k} leaves {there - k} of the {there} agents of {matrix.name}; "
            f"leave at least {LEAST_CHECK} to check the forecast against"
        )
    if settings.first:
        return "first", list(range(k)), there
    rng = streams.stream(settings.seed, "coverage", "pilot")
    return "random", sorted(rng.choice(there, size=k, replace=False).tolist()), there


def _population(there: int, agents: int | None) -> int:
    if agents is None:
        raise BadConfig(f"all {there} agents are the pilot; say with --agents how many there are in all")
    if not there < agents <= MOST_AGENTS:
        raise BadConfig(
            f"the pilot has {there} agents, so --agents goes from {there + 1} to {MOST_AGENTS}; seen {agents}"
        )
    return agents


def _gains(sizes: Sequence[int], newly: Array) -> tuple[Gain, ...]:
    """Newly solved tasks at each of STEPS and with all agents; newly: (sizes, 3)."""
    wanted = {step for step in STEPS if sizes[0] + step in sizes} | {sizes[-1] - sizes[0]}
    return tuple(
        Gain(more=size - sizes[0], tasks=Ends(point=float(row[0]), lower=float(row[1]), upper=float(row[2])))
        for size, row in zip(sizes, newly, strict=True)
        if size - sizes[0] in wanted
    )


def _reaches(sizes: Sequence[int], ends: Array, target: float | None) -> tuple[Reach, ...]:
    """Where the curve and its limits are at shares of the gain that is forecast, and at the target."""
    first, last = ends[0, 0], ends[-1, 0]
    wanted = [(f"{100 * share:g} % of the forecast gain", first + share * (last - first)) for share in SHARES]
    if target is not None:
        wanted.append((f"coverage {target:g}", target))
    return tuple(
        Reach(
            what=what,
            coverage=float(level),
            agents=_first(sizes, ends[:, 0], level),
            earliest=_first(sizes, ends[:, 2], level),
            latest=_first(sizes, ends[:, 1], level),
        )
        for what, level in wanted
    )


def _first(sizes: Sequence[int], curve: Array, level: float) -> int | None:
    """The first size whose coverage is `level` or more, but for the rounding of a sum."""
    at = np.flatnonzero(curve >= level - 1e-12)
    return sizes[at[0]] if len(at) else None


def _truth(matrix: Matrix, rows: Sequence[int], sizes: Sequence[int], whole: Ends) -> Truth:
    """What the agents outside the pilot add: the share of the tasks left open that they solve."""
    solved = matrix.solved
    left = ~solved[list(rows)].any(axis=0)
    others = np.delete(solved, rows, axis=0)[:, left]
    added = np.zeros(len(sizes))
    if left.any():
        more = [size - len(rows) for size in sizes[1:]]
        added[1:] = left.mean() * estimators.exact_curve(others, more)
    return Truth(
        coverage=matrix.covered,
        curve=tuple((1.0 - left.mean() + added).tolist()),
        inside=whole.lower <= matrix.covered <= whole.upper,
    )


CHOSEN = {"random": "drawn at random, seed {seed}", "first": "the first of the matrix", "all": "the matrix"}


def how_words(how: str, seed: int) -> str:
    """How a pilot came about, in words."""
    return CHOSEN[how].format(seed=seed)


def _lines(made: Forecast) -> Sequence[str]:
    k = len(made.pilot)
    lines = [
        f"{made.name}: a pilot of {k} of {made.agents} agents ({how_words(made.how, made.seed)}), "
        f"{made.tasks} tasks",
        "",
        f"  {'solved by the pilot':<34}{_share(made.observed)}",
        f"  {f'forecast for all {made.agents} agents':<34}{_share(made.coverage.point)}   "
        f"95 % interval {_between(made.coverage)}",
        f"  {'blind-spot floor, solved by none':<34}{_share(made.floor.point)}   "
        f"95 % interval {_between(made.floor)}",
    ]
    if made.truth is not None:
        where = "inside" if made.truth.inside else "OUTSIDE"
        lines.append(
            f"  {f'solved by all {made.agents} in truth':<34}{_share(made.truth.coverage)}   "
            f"{where} the interval"
        )
    lines += ["", f"  {'agents beyond the pilot':<34}newly solved tasks   95 % interval (point: median)"]
    lines += [
        f"  {f'+{g.more}':<34}{g.tasks.point:>18.1f}   {g.tasks.lower:.1f} to {g.tasks.upper:.1f}"
        for g in made.gains
    ]
    lines += ["", *(f"  {reach_words(reach, k, made.agents)}" for reach in made.reaches)]
    others = ", ".join(f"{name} {_share(value).strip()}" for name, value in made.others)
    return [*lines, "", f"  other forecasters for all {made.agents}: {others}"]


def reach_words(reach: Reach, k: int, agents: int) -> str:
    """The agents that a coverage needs, the pilot's k included, in one sentence."""
    if reach.agents == k:
        return f"{reach.what}: the pilot's {k} agents are enough"
    if reach.agents is None:
        best = "" if reach.earliest is None else f" (at best with {reach.earliest})"
        return f"{reach.what}: not reached with all {agents} agents{best}"
    latest = f"not within {agents}" if reach.latest is None else str(reach.latest)
    return f"{reach.what}: {reach.agents} agents (at best {reach.earliest}, at worst {latest})"


def _share(value: float) -> str:
    return f"{100 * value:5.1f} %"


def _between(ends: Ends) -> str:
    return f"{100 * ends.lower:.1f} to {100 * ends.upper:.1f} %"
