"""A ranking and a replay as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from predictive_credit.selection.ranking import LEAST_CHANCE, Bought, Ranking, Row, Settings
from predictive_credit.selection.replay import BURN_IN, Policy, Predicted, Regret, Replayed


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The evidence that a ranking rests on. score: interval score over the mean absolute outcome."""

    where: str
    study: str
    forecaster: str
    checks: Mapping[str, str]
    target: str
    phrase: str
    unit: str
    better: Literal["higher", "lower"]
    states: int
    tasks: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """How the order by this forecaster did on the evidence's own states, in the contexts that are used."""

    policies: tuple[Policy, ...]
    predicted: tuple[Predicted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A ranking and what it is of. refused: evidence that was given and may not rank, and why."""

    file: str
    source: Source
    is_brought: bool  # the file brought the forecasts
    others: tuple[str, ...]
    refused: Mapping[str, str]
    settings: Settings
    notes: tuple[str, ...]
    record: Record
    ranking: Ranking
    cautions: tuple[str, ...] = ()  # stand above the ranking: they put the order itself in doubt


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownReplay:
    """A replay and what it is of. refusal: why this evidence may not rank, None if it may."""

    source: Source
    baseline: float
    refusal: str | None
    replayed: Replayed


def ranked(shown: Shown) -> str:
    """The ranking: what is worth its cost, what is not, what a budget buys, and what to know of it."""
    rows, source = shown.ranking.rows, shown.source
    worth = [row for row in rows if row.is_worth]
    wide = max(len("proposal"), *(len(row.id) for row in rows))
    whose = f"{source.forecaster} (forecasts of the file)" if shown.is_brought else source.forecaster
    lines = [
        f"{shown.file}: {_count(len(rows), 'proposal')} by expected gain per cost; {_gained(source)}",
        f"{whose}, checked in {source.where}: {checks(source.checks)}",
        *(f"CAUTION: {caution}" for caution in shown.cautions),
        "",
        *_table(worth, shown.settings.top, wide),
    ]
    if not worth:
        lines.append("  no proposal is worth its cost")
    if len(worth) < len(rows):
        least = f"{100 * LEAST_CHANCE:g} %"
        lines += ["", f"  not worth their cost: expected gain not above 0, or P(gain > 0) below {least}"]
        lines += _table([row for row in rows if not row.is_worth], shown.settings.top, wide)
    if shown.ranking.bought is not None:
        lines += ["", f"  {_bought(shown.ranking.bought)}"]
    return "\n".join([*lines, "", *(f"  {note}" for note in _notes(shown))])


def replayed(shown: ShownReplay) -> str:
    """The replay: what each order gained, its regret, and how the predictive distributions did."""
    source, made = shown.source, shown.replayed
    left = f", {made.left_out} left out as undefined" if made.left_out else ""
    is_let = "may rank" if shown.refusal is None else f"may not rank: {shown.refusal}"
    shares = [f"{share:.0%}" for share in made.shares]
    gained = [("oracle", made.oracle), ("random order", made.random)]
    gained += [(policy.name, tuple(spent.gain for spent in policy.spent)) for policy in made.policies]
    return "\n".join([
        f"{source.where}: {made.states} states of {made.tasks} tasks as proposals{left}; each costs "
        f"{made.costs}",
        f"{_gained(source)}; {source.forecaster} {is_let}",
        "",
        f"  {'realised gain after spending':<28} {''.join(f'{share:>11}' for share in [*shares, 'all'])}",
        *(f"  {name:<28} {''.join(f'{gain:>+11.4f}' for gain in (*at, made.all))}" for name, at in gained),
        "",
        f"  {'regret [95 % interval]':<28} {''.join(f'{share:>20}' for share in [*shares, 'area'])}",
        *map(_regrets, made.policies),
        "",
        "  0 is the oracle's order, 1 what a random order does, above 1 is worse than random.",
        "",
        f"  {'predicted, task left out':<28} {'80 % holds':>10} {'width':>8} {'P(gain > 0)':>12} "
        f"{'was > 0':>8} {'Brier':>7} {'constant':>9}",
        *(
            f"  {one.context:<28} {one.coverage:>10.1%} {one.width:>8.4f} {one.chance:>12.1%} "
            f"{one.positive:>8.1%} {one.brier:>7.3f} {one.brier_constant:>9.3f}"
            for one in made.predicted
        ),
    ])  # fmt: skip


def _gained(source: Source) -> str:
    what = source.phrase if source.phrase == source.unit else f"{source.phrase} in {source.unit}"
    return f"a gain is in {what}, {source.better} is better"


def checks(found: Mapping[str, str]) -> str:
    """`commitment, delivery and value passed, alignment failed`."""
    passed = [name for name, status in found.items() if status == "passed"]
    others = [f"{name} {status.replace('_', ' ')}" for name, status in found.items() if status != "passed"]
    return ", ".join([*([f"{_listed(passed)} passed"] if passed else []), *others])


def _table(rows: Sequence[Row], top: int, wide: int) -> Iterator[str]:
    """The rows below their header; wide: characters of the longest id of all proposals."""
    if not rows:
        return
    yield (
        f"  {'rank':<5} {'proposal':<{wide}} {'cost':>7} {'shown':<5} {'forecast':>9} {'gain':>9}  "
        f"{'80 % interval':<20} {'P(gain>0)':>9} {'gain/cost':>10}  {'80 % interval':<22} "
        f"{'rank 5-95 %':>11} {'best':>6} {f'top {top}':>6}"
    )
    for row in rows:
        ranks = f"{row.rank_lower}-{row.rank_upper}"
        yield (
            f"  {row.rank:<5} {row.id:<{wide}} {row.cost:>7g} {row.context:<5} {row.point:>+9.3g} "
            f"{row.gain:>+9.3g}  {_between(row.gain_lower, row.gain_upper):<20} {row.chance:>9.1%} "
            f"{row.per_cost:>+10.3g}  {_between(row.per_cost_lower, row.per_cost_upper):<22} {ranks:>11} "
            f"{row.best:>6.1%} {row.top:>6.1%}"
        )


def _bought(bought: Bought) -> str:
    if not bought.ids:
        return f"budget {bought.budget:g}: buys nothing that is worth its cost"
    how = "exact" if bought.how == "exact" else "greedy by gain per cost"
    less = f"; greedy by gain per cost: {bought.greedy:+.3g}" if bought.greedy < bought.gain else ""
    return (
        f"budget {bought.budget:g}: run {', '.join(bought.ids)} for {bought.cost:g} ({how}); expected total "
        f"gain {bought.gain:+.3g}, 80 % interval {_between(bought.lower, bought.upper)}{less}"
    )


def _notes(shown: Shown) -> Iterator[str]:
    """What to know before one acts on it, the gravest first."""
    yield from _record(shown.record)
    yield from shown.notes
    yield from _equals(shown.ranking)
    yield from _errors(shown)
    for where in shown.others:
        yield f"{where}: its checks passed too, and its interval score relative to its outcomes is worse."
    for where, why in shown.refused.items():
        yield f"{where}: not used, {why}."


def cautions(record: Record) -> tuple[str, ...]:
    """The contexts whose own order the evidence does not show to be better than chance.

    The burn-in mean is there to be beaten, and ranks nothing.
    """
    return tuple(
        f"the order by {_whose(policy.name)} is {_doubt(policy)} on the evidence's own states: regret "
        f"{_regret(policy.area)}, where 1 is a random order."
        for policy in record.policies
        if policy.name != BURN_IN and policy.verdict != "better than random"
    )


def _doubt(policy: Policy) -> str:
    return "not compared with random" if policy.verdict == "not defined" else policy.verdict


def _record(record: Record) -> Iterator[str]:
    """How this forecaster's order did on the evidence's own states."""
    for policy in record.policies:
        yield (
            f"On the evidence's own states the order by {_whose(policy.name)} had a regret of "
            f"{_regret(policy.area)} (0 oracle, 1 random order): {policy.verdict}."
        )
    for one in record.predicted:
        yield (
            f"Context {one.context}, task left out: 80 % intervals held {one.coverage:.1%} of the outcomes; "
            f"P(gain > 0) was {one.chance:.1%} on average, and {one.positive:.1%} gained."
        )


def _whose(name: str) -> str:
    return f"the {name} of each intervention" if name == BURN_IN else f"forecasts in context {name}"


def _equals(ranking: Ranking) -> Iterator[str]:
    rows = ranking.rows
    for group in ranking.ties:
        yield f"Equal expected gain per cost: {_listed(group)}; they stand in the order of their ids."
    if len({row.point for row in rows}) == 1 < len(rows):
        yield "All forecasts are equal: nothing but costs tells the proposals apart."


def _errors(shown: Shown) -> Iterator[str]:
    source, rows = shown.source, shown.ranking.rows
    if shown.is_brought:
        yield (
            f"That the forecasts are {source.forecaster}'s is the file's word: nothing here can check it, "
            "and its own intervals are not used."
        )
    plain = sum(row.context == "D" for row in rows)
    if 0 < plain < len(rows):
        yield f"{_count(plain, 'proposal')} forecast without an explanation (D), with that context's errors."
    if fallbacks := sum(row.fallbacks for row in rows):
        yield f"{_count(fallbacks, 'call')} could not be read and became the frozen fallback."
    for context, bias in shown.ranking.bias.items():
        yield (
            f"Context {context}: outcomes were {bias.mean:+.3g} from their forecasts on average (standard "
            f"error {bias.error:.3g} over tasks); {bias.used:+.3g} of it is put right."
        )
    yield (
        f"Gains are forecasts plus errors on {source.states} states of {source.tasks} tasks "
        f"({shown.settings.draws:,} draws, tasks first): they hold for proposals like those."
    )


def _regrets(policy: Policy) -> str:
    columns = [*(spent.regret for spent in policy.spent), policy.area]
    return f"  {policy.name:<28} {''.join(f'{_regret(one):>20}' for one in columns)}  {policy.verdict}"


def _regret(one: Regret) -> str:
    if one.regret is None or one.lower is None or one.upper is None:
        return "not defined"
    return f"{one.regret:.2f} [{one.lower:.2f}, {one.upper:.2f}]"


def _between(lower: float, upper: float) -> str:
    return f"[{lower:+.3g}, {upper:+.3g}]"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _listed(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
