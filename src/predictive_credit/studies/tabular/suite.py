"""The tabular study's stages: from a fetched pool to sealed outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from predictive_credit.config import Execution, OpenMLPool, PackagedPool, Pool, TablesPool
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome, State
from predictive_credit.studies.study import Counts, Setting
from predictive_credit.studies.tabular import burn_in as burning
from predictive_credit.studies.tabular import execute as executing
from predictive_credit.studies.tabular import pool as pools
from predictive_credit.studies.tabular import states as populating
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.donors import donors
from predictive_credit.studies.tabular.interventions import KINDS

CALLS = 2
SOURCES = 2  # an elicited card and an ordinary note, each of which is extracted


def count(config: TabularConfig, pools: Mapping[str, Pool]) -> Counts:
    """States and units of a configuration: of all tasks that are named, or of as many as the lottery has."""
    pool = pools.get(config.pool)
    if config.tasks is not None and isinstance(pool, PackagedPool | TablesPool):
        for name in config.tasks:
            if name not in pool.tables:
                raise BadConfig(
                    f"the pool {config.pool} lists no table {name!r}; it lists {', '.join(pool.tables)}"
                )
    tasks = len(config.tasks) if config.tasks is not None else _tasks_in(pool, config.n_tasks)
    states = tasks * len(config.budgets) * len(config.seeds)
    return Counts(
        states=states, sources=SOURCES * states, extractions=SOURCES * states,
        forecasts=states * len(config.contexts) * CALLS,
        design=f"{tasks} tasks x {len(config.budgets)} budgets x {len(config.seeds)} seeds",
    )  # fmt: skip


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """Clean and encode every table of a pool, and count what was not clean."""
    counted = pools.features(pool, raw, folder, execution)
    roles = Counter(task["role"] for task in counted["tasks"].values())
    return counted | {"said": f"{roles['study']} tasks for the study, {roles['burn-in']} for the burn-in"}


def states(setting: Setting) -> tuple[State, ...]:
    """Public state, intervention and ids of every state.

    Raises BadConfig, here rather than when they are asked for, for a state that finds no donor.
    """
    there, config = pools.load(setting.features), setting.config
    if not there.is_drawn:  # named ones are all the study's
        config = replace(config, n_tasks=len(there.study))
    splits = populating.splits(there.study, config, seed=setting.seed)
    made = populating.states(there.study, config, splits, study=setting.name, execution=setting.execution)
    donors(config, made)
    return made


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Every intervention on the burn-in pool's tasks that the study does not use."""
    used = {state.task for state in states}
    return burning.burn_in(
        pools.load(setting.burn_in).burn_in, setting.config, pool=setting.config.burn_in,
        exclude=[task for task in pools.load(setting.features).study if task.name in used],
        seed=setting.seed, execution=setting.execution,
    )  # fmt: skip


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """Run the parent and the changed model of each state."""
    tasks = pools.load(setting.features).study
    splits = populating.splits(tasks, setting.config, seed=setting.seed)
    return executing.execute(tasks, states, splits, execution=setting.execution)


def _tasks_in(pool: Pool | None, n_tasks: int) -> int:
    """Tasks of both kinds, as far as a configuration can tell without the tables."""
    if isinstance(pool, OpenMLPool):
        drawn = len(pool.suites) * min(n_tasks, pool.tasks_of_each_kind)
        return len(pool.tasks) if pool.tasks else drawn
    if isinstance(pool, PackagedPool):
        kinds = [table.kind for table in pool.tables.values()]
        return sum(min(n_tasks, pool.tasks_of_each_kind, kinds.count(kind)) for kind in KINDS)
    if isinstance(pool, TablesPool):
        return sum(not table.burn_in for table in pool.tables.values())
    return len(KINDS) * n_tasks
