"""The tabular study's stages: from a fetched pool to sealed outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from predictive_credit.config import OpenMLPool, PackagedPool, Pool, TablesPool
from predictive_credit.records import BurnIn, Outcome, State
from predictive_credit.studies.study import Counts, Setting
from predictive_credit.studies.tabular import burn_in as burning
from predictive_credit.studies.tabular import execute as executing
from predictive_credit.studies.tabular import pool as pools
from predictive_credit.studies.tabular import states as populating
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.interventions import KINDS

CALLS = 2
SOURCES = 2  # an elicited card and an ordinary note, each of which is extracted


def count(config: TabularConfig, pools: Mapping[str, Pool]) -> Counts:
    """States and units of a configuration; a pool with fewer tasks than asked has fewer."""
    tasks = (
        len(config.tasks) if config.tasks is not None else _tasks_in(pools.get(config.pool), config.n_tasks)
    )
    states = tasks * len(config.budgets) * len(config.seeds)
    return Counts(
        states=states, sources=SOURCES * states, extractions=SOURCES * states,
        forecasts=states * len(config.contexts) * CALLS,
        design=f"{tasks} tasks x {len(config.budgets)} budgets x {len(config.seeds)} seeds",
    )  # fmt: skip


def states(setting: Setting) -> tuple[State, ...]:
    """Public state, intervention and ids of every state."""
    tasks = pools.load(setting.features).study
    splits = populating.splits(tasks, setting.config, seed=setting.seed)
    return populating.states(tasks, setting.config, splits, study=setting.name, execution=setting.execution)


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Every intervention on the burn-in pool's tasks that no study uses."""
    return burning.burn_in(
        pools.load(setting.burn_in).burn_in, setting.config, pool=setting.config.burn_in,
        exclude={s.task for s in states}, seed=setting.seed, execution=setting.execution,
    )  # fmt: skip


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """Run the parent and the changed model of each state."""
    tasks = pools.load(setting.features).study
    splits = populating.splits(tasks, setting.config, seed=setting.seed)
    return executing.execute(tasks, states, splits, execution=setting.execution)


def _tasks_in(pool: Pool | None, n_tasks: int) -> int:
    """Tasks of both kinds, as far as a configuration can tell without the tables."""
    if isinstance(pool, OpenMLPool):
        if pool.tasks is not None:  # whose kinds their metadata know
            return min(len(pool.tasks), len(KINDS) * n_tasks)
        return len(KINDS) * min(n_tasks, pool.tasks_of_each_kind)
    if isinstance(pool, PackagedPool):
        kinds = [table.kind for table in pool.tables.values()]
        return sum(min(n_tasks, pool.tasks_of_each_kind, kinds.count(kind)) for kind in KINDS)
    if isinstance(pool, TablesPool):
        kinds = [table.kind for table in pool.tables.values() if not table.burn_in]
        return sum(min(n_tasks, kinds.count(kind)) for kind in KINDS)
    return len(KINDS) * n_tasks
