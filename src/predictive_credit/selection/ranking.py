"""Proposals in the order of their expected gain per cost, with how sure each place is.

What belongs to one proposal (expected gain, its 80 % interval, P(gain > 0)) is exact over the errors of
the evidence, so that equal forecasts at equal costs are equal to the last digit. What belongs to all
together (places, the best, the total of a budget) is drawn; see `errors.together`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit import canonical
from predictive_credit.errors import BadConfig
from predictive_credit.selection import budget as budgets
from predictive_credit.selection import errors as erring
from predictive_credit.selection.errors import Errors

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Positions = NDArray[np.intp]

DRAWS: Final = 4_000
INTERVAL: Final = (0.1, 0.9)  # of gains: central 80 %
PLACES: Final = (0.05, 0.95)  # of ranks
LEAST_CHANCE: Final = 0.5  # of a gain above 0, below which a proposal is not worth its cost
DIGITS: Final = 12  # significant ones, to which two gains per cost are one


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One proposal with its forecast. fallbacks: calls that could not be read, of those asked for it."""

    id: str
    task: str | None
    cost: float
    context: str
    point: float
    fallbacks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the user asked for. baseline: the outcome that is no gain; top: how many places count as top."""

    seed: int
    top: int
    baseline: float
    budget: float | None
    draws: int = DRAWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One proposal in its place. Gains are signed so that positive is better, in the target's unit.

    rank: the same for equal gains per cost. rank_lower, rank_upper: 5 and 95 %. best, top: chance to be
    the first, and among the first `top`. is_bought: None without a budget.
    """

    rank: int
    id: str
    task: str | None
    cost: float
    context: str
    point: float
    fallbacks: int
    gain: float
    gain_lower: float
    gain_upper: float
    chance: float  # of a gain above 0
    per_cost: float
    per_cost_lower: float
    per_cost_upper: float
    rank_lower: int
    rank_upper: int
    best: float
    top: float
    is_worth: bool
    is_bought: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bought:
    """What a budget buys, in running order, and the total gain: expected, and its 80 % interval.

    greedy: expected total of buying by gain per cost alone.
    """

    budget: float
    how: budgets.How
    ids: tuple[str, ...]
    cost: float
    gain: float
    lower: float
    upper: float
    greedy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The rows in order, what a budget buys of them, which are equal, and the bias that was used."""

    rows: tuple[Row, ...]
    bought: Bought | None
    ties: tuple[tuple[str, ...], ...]
    bias: dict[str, erring.Bias]  # by context that was used


def rank(told: Sequence[Told], errors: Errors, settings: Settings, rng: Generator) -> Ranking:
    """Order proposals by expected gain per cost. Raises BadConfig for settings that fit nothing."""
    check(settings)
    context = np.array([errors.contexts.index(one.context) for one in told])
    point, cost = (np.array([getattr(one, name) for one in told]) for name in ("point", "cost"))
    gains = erring.possible(errors, point, context, settings.baseline)
    alone = _alone(gains, errors.weight)
    lender = erring.together(errors, _tasks(told), draws=settings.draws, rng=rng)
    drawn = gains[np.arange(len(told)), lender]
    places = _places(drawn / cost, rng)
    is_worth = (alone.gain > 0.0) & (alone.chance >= LEAST_CHANCE)
    order, rank_of = _order(alone.gain / cost)
    bought, is_bought = _bought(told, alone.gain, cost, drawn, is_worth, order, settings)
    low, high = np.quantile(places, PLACES, axis=0, method="inverted_cdf")
    columns: dict[str, Any] = {
        "rank": rank_of, "gain": alone.gain, "gain_lower": alone.lower, "gain_upper": alone.upper,
        "chance": alone.chance, "per_cost": alone.gain / cost, "per_cost_lower": alone.lower / cost,
        "per_cost_upper": alone.upper / cost, "rank_lower": low, "rank_upper": high,
        "best": (places == 1).mean(axis=0), "top": (places <= settings.top).mean(axis=0),
        "is_worth": is_worth, "is_bought": is_bought,
    }  # fmt: skip
    used = sorted(set(context.tolist()))
    return Ranking(
        rows=tuple(_row(told[at], {n: c[at].item() for n, c in columns.items() if c is not None})
                   for at in order),
        bought=bought,
        ties=_ties([told[at].id for at in order], rank_of[order]),
        bias={errors.contexts[k]: errors.bias[k] for k in used},
    )  # fmt: skip


def check(settings: Settings) -> None:
    """Raise BadConfig for a number of places or a budget that is none."""
    if settings.top < 1:
        raise BadConfig(f"--top counts places from 1 on; seen {settings.top}")
    if settings.budget is not None and not 0.0 < settings.budget < np.inf:
        raise BadConfig(f"--budget is an amount above 0 in the unit of the costs; seen {settings.budget:g}")


def header() -> tuple[str, ...]:
    """The columns of a ranking as a table."""
    return tuple(field.name for field in fields(Row))


def table(ranking: Ranking) -> list[list[Any]]:
    """Its rows as plain values, under `header`."""
    return [[canonical.plain(getattr(row, name)) for name in header()] for row in ranking.rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alone:
    gain: Array
    lower: Array
    upper: Array
    chance: Array


def _alone(gains: Array, weight: Array) -> _Alone:
    """What belongs to each proposal by itself; gains: (proposal, error), weight: (error,)."""
    lower, upper = np.quantile(gains, INTERVAL, axis=1, weights=weight, method="inverted_cdf")
    return _Alone(
        gain=(gains * weight).sum(axis=1), lower=lower, upper=upper,
        chance=np.minimum(((gains > 0.0) * weight).sum(axis=1), 1.0),  # weights sum to 1 but for rounding
    )  # fmt: skip


def _tasks(told: Sequence[Told]) -> Positions:
    """Tasks as numbers; a proposal that names none shares its task with no other."""
    keys = [("task", one.task) if one.task is not None else ("id", one.id) for one in told]
    number = {key: at for at, key in enumerate(dict.fromkeys(keys))}
    return np.array([number[key] for key in keys], dtype=np.intp)


def _places(per_cost: Array, rng: Generator) -> Positions:
    """Ranks from 1, the largest first, (draw, proposal); equal ones take their places by lot."""
    order = np.lexsort((rng.random(per_cost.shape), -per_cost), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(1, per_cost.shape[1] + 1)[None, :], axis=1)
    return places


def _order(per_cost: Array) -> tuple[Positions, Positions]:
    """Positions, the best first, equal ones as they come; and the rank of each, shared where equal."""
    level = np.array([float(f"{value:.{DIGITS}g}") for value in per_cost])
    order = np.argsort(-level, kind="stable")
    _, which, times = np.unique(-level, return_inverse=True, return_counts=True)
    rank_of: Positions = (np.cumsum(times) - times)[which] + 1
    return order, rank_of


def _ties(ids: Sequence[str], ranks: Positions) -> tuple[tuple[str, ...], ...]:
    """The groups of ids that share a rank."""
    groups: dict[int, list[str]] = {}
    for name, at in zip(ids, ranks.tolist(), strict=True):
        groups.setdefault(at, []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _bought(
    told: Sequence[Told], gain: Array, cost: Array, drawn: Array, is_worth: Bools, order: Positions,
    settings: Settings,
) -> tuple[Bought | None, Bools | None]:  # fmt: skip
    """What the budget buys of those that are worth their cost; drawn: (draw, proposal) gains."""
    if settings.budget is None:
        return None, None
    wanted = np.where(is_worth, gain, 0.0)
    bought, how = budgets.choose(wanted, cost, settings.budget)
    first = budgets.greedy(wanted, cost, settings.budget)
    lower, upper = np.quantile(drawn[:, bought].sum(axis=1), INTERVAL)
    return Bought(
        budget=settings.budget, how=how, ids=tuple(told[at].id for at in order if bought[at]),
        cost=float(cost[bought].sum()), gain=float(gain[bought].sum()), lower=float(lower),
        upper=float(upper), greedy=float(gain[first].sum()),
    ), bought  # fmt: skip


def _row(one: Told, found: dict[str, Any]) -> Row:
    return Row(
        **{"is_bought": None, **found}, id=one.id, task=one.task, cost=one.cost, context=one.context,
        point=one.point, fallbacks=one.fallbacks,
    )  # fmt: skip
