"""A decided study played as a list of proposals: how good an order do its own frozen forecasts make?

Every state with a defined outcome is an experiment one may run. An order's curve is the realised gain
after spending a share of what all would cost, an experiment half paid counting half. So the order of
true gains per cost, the oracle, is the best there can be at every share, and a random order has an exact
expectation. Regret is (oracle - order) / (oracle - random): 0 for the oracle, 1 for what chance does,
above 1 for an order that is worse than chance.

States of equal score are run in random order, in exact expectation: a forecaster that tells nothing apart
has a regret of 1. Intervals resample tasks, the states of a task together.

The orders use the points as they were frozen. Where costs differ, an order by gain per cost depends on
the forecaster's bias too, and a ranking corrects that (`errors.shrunk`); those orders stand beside the
others as `corrected`. Their one bias is learned from these same outcomes. It cannot be left out task by
task: a task that did well would be corrected downwards by all others, and even a constant forecaster
would come out worse than chance. What is checked with the task left out is the predictive distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit import bootstrap
from predictive_credit.bootstrap import Design
from predictive_credit.panel import Panel
from predictive_credit.records import State, TargetBurnIn
from predictive_credit.selection import errors as erring
from predictive_credit.selection.errors import Errors
from predictive_credit.selection.ranking import DIGITS, INTERVAL

Array = NDArray[np.float64]
Positions = NDArray[np.intp]
Verdict = Literal["better than random", "worse than random", "not told from random", "not defined"]

SHARES: Final = (0.10, 0.25, 0.50)  # of what all states cost
DRAWS: Final = 1_000
LEVEL: Final = 0.95
FINEST: Final = 10_000  # parts of 1 that two costs may differ by
MOST_CELLS: Final = 2_000_000  # states times their total cost in its unit: a random order's table
BURN_IN: Final = "burn-in mean"
CORRECTED: Final = "corrected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """A regret and its interval over tasks; None where oracle and random order gain alike."""

    regret: float | None
    lower: float | None
    upper: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """At one share of the total cost: realised gain, in the target's unit, and regret."""

    share: float
    gain: float
    regret: Regret


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One order's curve at SHARES, and the regret in the area below the whole curve."""

    name: str
    spent: tuple[Spent, ...]
    area: Regret
    verdict: Verdict  # of the area's interval


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """The predictive distribution of one context, each task's made from the errors of all others.

    coverage, width: of its 80 % intervals. chance, positive: mean P(gain > 0), and the share that was.
    brier: of P(gain > 0); brier_constant: of always saying that share.
    """

    context: str
    coverage: float
    width: float
    chance: float
    positive: float
    brier: float
    brier_constant: float
    bias: erring.Bias  # of all tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a study's frozen forecasts would have made of its own states."""

    costs: str  # what a state costs, in words
    states: int
    left_out: int  # with an undefined outcome
    tasks: int
    shares: tuple[float, ...]
    oracle: tuple[float, ...]  # realised gain at each share
    random: tuple[float, ...]
    all: float  # of all states
    policies: tuple[Policy, ...]
    predicted: tuple[Predicted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Orders:
    """States as groups of one score in running order. mixed: the groups whose states cost unlike."""

    group: Positions  # (state,) from 0
    n: int
    mixed: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """The states that are played: gain and cost (state,), task_of (state,) from 0."""

    gain: Array
    cost: Array
    task_of: Positions


def replay(
    panel: Panel, states: Sequence[State], burn_in: TargetBurnIn, *,
    where: str, baseline: float, equal_costs: bool, rng: Generator, draws: int = DRAWS,
) -> Replayed:  # fmt: skip
    """Play a study's states in the order of each context's frozen points, and of its burn-in means.

    states: in the panel's order. Raises BadSource for too few tasks.
    """
    errors = erring.of(panel, panel.contexts, where)
    defined = ~np.isnan(panel.outcome)
    said, cost = _costs(states, equal_costs)
    sign = 1.0 if panel.target.better == "higher" else -1.0
    played = Played(
        gain=sign * (panel.outcome - baseline)[defined], cost=cost[defined],
        task_of=np.unique(panel.task_of[defined], return_inverse=True)[1],
    )  # fmt: skip
    outcomes = _expected(panel, states, burn_in, errors, corrected=bool(np.ptp(cost) > 0.0))
    scores = {name: sign * (value - baseline)[defined] / played.cost for name, value in outcomes.items()}
    oracle, chance, policies = play(played, scores, rng=rng, draws=draws)
    return Replayed(
        costs=said, states=int(defined.sum()), left_out=int((~defined).sum()), tasks=len(errors.size),
        shares=SHARES, oracle=oracle, random=chance, all=float(played.gain.sum()), policies=policies,
        predicted=_predicted(panel, errors, baseline),
    )  # fmt: skip


def play(
    played: Played, scores: Mapping[str, Array], *, rng: Generator, draws: int = DRAWS
) -> tuple[tuple[float, ...], tuple[float, ...], tuple[Policy, ...]]:
    """Oracle's and random order's gains at SHARES, and every order's regret.

    scores: by name, (state,) the larger the earlier.
    """
    zero = np.zeros_like(played.gain)
    best, chance = (orders(score, played.cost) for score in (played.gain / played.cost, zero))
    named = {name: orders(score, played.cost) for name, score in scores.items()}
    # A task is drawn with all its states; each state is a level of its own, for a path is one state's.
    paths = tuple((f"{t:06d}", f"{k:06d}") for k, t in enumerate(played.task_of))
    design = Design(paths=paths, drawn=(True, False))
    drawn: dict[str, list[Array]] = {name: [] for name in named}
    for block in bootstrap.counts(design, draws=draws, rng=rng):
        for count in block:
            ends = [curve(of, played, count) for of in (best, chance)]
            for name, of in named.items():
                drawn[name].append(regret(curve(of, played, count), *ends))
    oracle, random = (curve(of, played, np.ones_like(zero)) for of in (best, chance))
    made = []
    for name, of in named.items():
        whole = curve(of, played, np.ones_like(zero))
        made.append(_policy(name, whole, regret(whole, oracle, random), np.array(drawn[name])))
    return tuple(oracle[:-1].tolist()), tuple(random[:-1].tolist()), tuple(made)


def orders(score: Array, cost: Array) -> Orders:
    """States as groups of equal score, the largest first."""
    level = np.array([float(f"{value:.{DIGITS}g}") for value in score])
    _, group = np.unique(-level, return_inverse=True)
    n = int(group.max()) + 1
    low, high = np.full(n, np.inf), np.zeros(n)
    np.minimum.at(low, group, cost)
    np.maximum.at(high, group, cost)
    return Orders(group=group, n=n, mixed=tuple(np.flatnonzero(low < high).tolist()))


def curve(order: Orders, played: Played, count: Array) -> Array:
    """Expected gain at each of SHARES of the total cost, then the area below the curve, (shares + 1,).

    count: (state,) how often each state is there. The area is a share of the total cost times a gain.
    """
    paid = np.bincount(order.group, weights=count * played.cost, minlength=order.n)
    won = np.bincount(order.group, weights=count * played.gain, minlength=order.n)
    ends, sums = (np.concatenate([[0.0], np.cumsum(steps)]) for steps in (paid, won))
    at = np.array(SHARES) * ends[-1]
    found = np.interp(at, ends, sums)
    for group in order.mixed:
        inside = (at > ends[group]) & (at < ends[group + 1])
        if inside.any():
            mine = (order.group == group) & (count > 0)
            found[inside] = sums[group] + shuffled(
                played.gain[mine], played.cost[mine], count[mine], at[inside] - ends[group]
            )
    # Within a mixed group the mean curve bends, but an order and its reverse have areas that sum to that of
    # a straight line twice, so the mean area is the line's.
    area = float(np.trapezoid(sums, ends)) / ends[-1]
    return np.append(found, area)


def shuffled(gain: Array, cost: Array, count: Array, at: Array) -> Array:
    """Expected gain of states in random order after spending `at` on them, (len(at),)."""
    unit = common_unit(cost)
    units = np.round(cost / unit).astype(int)
    kinds = sorted(set(units.tolist()))
    there = tuple((kind, int(count[units == kind].sum())) for kind in kinds)
    total = np.zeros(len(at))
    for kind in kinds:
        density = float((count * gain)[units == kind].sum()) / (kind * unit)
        before = _before(there, kind)
        spent = np.clip(at[:, None] - unit * np.arange(len(before)), 0.0, kind * unit) @ before
        total += density * spent
    return total


@lru_cache(maxsize=4_096)
def _before(there: tuple[tuple[int, int], ...], kind: int) -> Array:
    """Distribution of what is paid before one state of cost `kind` comes up, by units, in a random order.

    there: cost in units and how many states have it. A state's place is uniform, and the states before
    it are a uniform subset of the others of that size.
    """
    others = [cost for cost, times in there for _ in range(times - (cost == kind))]
    table = np.zeros((len(others) + 1, sum(others) + 1))
    table[0, 0] = 1.0  # by size of the subset: distribution of its sum over the states so far
    for seen, cost in enumerate(others, start=1):
        size = np.arange(seen + 1)[:, None]
        grown = table[: seen + 1] * (seen - size) / seen
        grown[1:, cost:] += (table[:seen, : table.shape[1] - cost]) * size[1:] / seen
        table[: seen + 1] = grown
    found: Array = table.mean(axis=0)
    return found


def common_unit(cost: Array) -> float:
    """The largest amount of which every cost is a multiple, costs read to their fourth decimal."""
    counted = {max(1, round(value * FINEST)) for value in cost.tolist()}
    return math.gcd(*counted) / FINEST


def regret(made: Array, oracle: Array, random: Array) -> Array:
    """(oracle - made) / (oracle - random); NaN where the oracle has nothing over chance."""
    room = oracle - random
    is_there = room > 1e-12 * np.maximum(np.abs(oracle), np.abs(random))
    found: Array = np.divide(oracle - made, room, out=np.full(len(made), np.nan), where=is_there)
    return found


def _policy(name: str, curve: Array, found: Array, drawn: Array) -> Policy:
    *at, area = [_regret(value, column) for value, column in zip(found, drawn.T, strict=True)]
    return Policy(
        name=name,
        spent=tuple(
            Spent(share=share, gain=float(gain), regret=of)
            for share, gain, of in zip(SHARES, curve, at, strict=False)
        ),
        area=area,
        verdict=_verdict(area),
    )


def _regret(value: float, drawn: Array) -> Regret:
    if np.isnan(value) or np.isnan(drawn).all():
        return Regret(regret=None, lower=None, upper=None)
    lower, upper = bootstrap.percentile_interval(drawn, level=LEVEL)
    return Regret(regret=float(value), lower=lower, upper=upper)


def _verdict(area: Regret) -> Verdict:
    if area.lower is None or area.upper is None:
        return "not defined"
    if area.upper < 1.0:
        return "better than random"
    return "worse than random" if area.lower > 1.0 else "not told from random"


def _costs(states: Sequence[State], equal: bool) -> tuple[str, Array]:
    """What each state costs, and in words: its label fraction where all have one, else 1."""
    budgets = [state.budget for state in states]
    if equal or None in budgets:
        return "1", np.ones(len(states))
    cost = np.array(budgets, dtype=float)
    if len(cost) * cost.sum() / common_unit(cost) > MOST_CELLS:
        return "1, for label fractions so unlike put the random order out of reach", np.ones(len(states))
    return "the fraction of the training labels it uses", cost


def _expected(
    panel: Panel, states: Sequence[State], burn_in: TargetBurnIn, errors: Errors, *, corrected: bool
) -> dict[str, Array]:
    """The outcome that each order expects of every state, (state,), by the order's name."""
    points = erring.ensemble(panel)
    found = {context: points[:, at] for at, context in enumerate(panel.contexts)}
    if corrected:
        found |= {
            f"{context} {CORRECTED}": np.clip(found[context] + bias.used, *panel.bounds)
            for context, bias in zip(panel.contexts, errors.bias, strict=True)
        }
    known = burn_in.by_intervention
    names = [state.intervention.name for state in states]
    # Where the burn-in knows no intervention of the study its means tell nothing apart.
    if any(name in known for name in names):
        found[BURN_IN] = np.array([known[n]["mean"] if n in known else burn_in.mean for n in names])
    return found


def _predicted(panel: Panel, errors: Errors, baseline: float) -> tuple[Predicted, ...]:
    """How each context's predictive distribution does on the task it was not made from."""
    sign = 1.0 if panel.target.better == "higher" else -1.0
    gain = sign * (panel.outcome - baseline)[~np.isnan(panel.outcome)]
    positive = gain > 0.0
    found = []
    for at, context in enumerate(panel.contexts):
        low, high, chance = _left_out(panel, errors, at, baseline)
        found.append(
            Predicted(
                context=context, coverage=float(((low <= gain) & (gain <= high)).mean()),
                width=float((high - low).mean()), chance=float(chance.mean()),
                positive=float(positive.mean()), brier=float(np.mean((chance - positive) ** 2)),
                brier_constant=float(positive.mean() * (1.0 - positive.mean())), bias=errors.bias[at],
            )
        )  # fmt: skip
    return tuple(found)


def _left_out(panel: Panel, errors: Errors, at: int, baseline: float) -> tuple[Array, Array, Array]:
    """Ends of the 80 % interval of each defined state's gain, and P(gain > 0), from other tasks' errors."""
    defined = ~np.isnan(panel.outcome)
    task_of = np.unique(panel.task_of[defined], return_inverse=True)[1]
    points = erring.ensemble(panel)[defined, at]
    low, high, chance = (np.empty(len(points)) for _ in range(3))
    for task in range(len(errors.size)):
        mine, others = task_of == task, errors.without(task)
        gains = erring.possible(others, points[mine], np.full(mine.sum(), at), baseline)
        low[mine], high[mine] = np.quantile(
            gains, INTERVAL, axis=1, weights=others.weight, method="inverted_cdf"
        )
        chance[mine] = ((gains > 0.0) * others.weight).sum(axis=1)
    return low, high, chance
