"""What the frozen rule `joint` asks of the tabular study's planned population."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from predictive_credit.bootstrap import Path
from predictive_credit.config import OpenMLPool, PackagedPool, Pool, TablesPool
from predictive_credit.studies.asks import Ask, Plan
from predictive_credit.studies.tabular import rule
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.interventions import KINDS


def paths(config: TabularConfig, pools: Mapping[str, Pool]) -> tuple[Path, ...]:
    """Kind, task, state; a task that only its pool can name has a number."""
    tails = [f"{budget:g}/{seed}" for budget, seed in product(config.budgets, config.seeds)]
    return tuple(
        (kind, f"task {k}", tail)
        for k, kind in enumerate(_kinds(config, pools.get(config.pool)))
        for tail in tails
    )


def _kinds(config: TabularConfig, pool: Pool | None) -> Sequence[str]:
    """The kind of each task, as far as a configuration can tell without the tables.

    Tasks of OpenML that are named by their ids tell no kind, and are taken in turn.
    """
    if isinstance(pool, PackagedPool | TablesPool):
        if config.tasks is not None:
            return [pool.tables[name].kind for name in config.tasks]
        if isinstance(pool, TablesPool):
            return [table.kind for table in pool.tables.values() if not table.burn_in]
        there = [table.kind for table in pool.tables.values()]
        most = min(config.n_tasks, pool.tasks_of_each_kind)
        return [kind for kind in KINDS for _ in range(min(most, there.count(kind)))]
    named = config.tasks or (pool.tasks if isinstance(pool, OpenMLPool) else None)
    if named:
        return [KINDS[k % len(KINDS)] for k in range(len(named))]
    if isinstance(pool, OpenMLPool):
        return [kind for kind in pool.suites for _ in range(min(config.n_tasks, pool.tasks_of_each_kind))]
    return [kind for kind in KINDS for _ in range(config.n_tasks)]


PLAN = Plan(
    paths=paths,
    asks=(
        *(
            Ask(
                gate=f"{pair} point equivalence", measure="point_error", pair=pair,
                kind="equivalence", margin=rule.MARGIN,
            )
            for pair in ("D-M", "S-M")
        ),
        Ask(gate="D-M drift bound", measure="drift", pair="D-M", kind="bound"),
    ),
    untold=("formation bound",),
)  # fmt: skip
