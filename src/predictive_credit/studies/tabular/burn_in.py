"""What playbook, fallback and priors may learn from: every intervention on tasks no study uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from predictive_credit import canonical
from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.burn_in import summary
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.execute import outcome
from predictive_credit.studies.tabular.fitting import changes, trial
from predictive_credit.studies.tabular.interventions import INTERVENTIONS, NAMES, TARGET
from predictive_credit.studies.tabular.pool import Task
from predictive_credit.studies.tabular.states import split


def burn_in(
    tasks: Sequence[Task],
    config: TabularConfig,
    *,
    pool: str,
    exclude: Collection[Task],
    seed: int,
    execution: Execution,
) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Outcomes of all six interventions on the pool's burn-in tasks, and their summary.

    `tasks` are those of the burn-in pool, whose name is `pool`; `exclude` holds the study's own
    tasks, for two pools, or two names in one, may hold one table. Budgets are the study's; one seed
    of them is enough for a summary. Outcome ids read `burn-in/task/budget/seed/intervention`.

    Raises BadConfig when no task is left, or none gave an outcome.
    """
    left = unused_tasks(tasks, exclude, pool)
    number = config.seeds[0]
    cells = [(task, budget) for task in left for budget in config.budgets]
    there = {t.name: split(t, rng=stream(seed, "split", t.name, number)) for t in left}
    trials = [
        trial(task, there[task.name].prefix(budget), there[task.name].test, names_of(task))
        for task, budget in cells
    ]
    results = workers.run(changes, trials, execution, title="burn-in")
    outcomes = [
        outcome(f"burn-in/{task.name}/{budget:g}/{number}/{name}", result)
        for (task, budget), row in zip(cells, results, strict=True)
        for name, result in zip(names_of(task), row, strict=True)
    ]
    outcomes.sort(key=lambda one: one.state_id)
    names = tuple(task.name for task in left)
    return tuple(outcomes), summary(outcomes, name=pool, tasks=names, targets=(TARGET,), interventions=NAMES)


def names_of(task: Task) -> tuple[str, ...]:
    """The interventions of a task's kind."""
    return tuple(intervention.name for intervention in INTERVENTIONS[task.kind])


def unused_tasks(tasks: Sequence[Task], exclude: Collection[Task], pool: str) -> tuple[Task, ...]:
    """The tasks that share no mark with one of `exclude`, sorted by name; see `marks`.

    Raises BadConfig when the pool has none, or none is left.
    """
    if not tasks:
        raise BadConfig(
            f"burn_in: the pool {pool} holds no table for the burn-in; mark one of its tables burn_in: true, "
            "or take another pool, as studies.tabular.burn_in=packaged does"
        )
    taken = {mark for task in exclude for mark in marks(task)}
    left = [task for task in sorted(tasks, key=lambda task: task.name) if not taken & marks(task)]
    if not left:
        raise BadConfig(
            f"burn_in: each of the {len(tasks)} burn-in tables of the pool {pool} is one of the study's own, "
            "by its name, its file or its targets; mark others burn_in: true, or take a pool with more of "
            "them, as studies.tabular.burn_in=packaged does"
        )
    return tuple(left)


def marks(task: Task) -> set[str]:
    """What a table is known by under whatever name: its bare name, its raw file, its kind and targets."""
    numbers = np.sort(task.y if task.kind == "regression" else np.unique(task.y, return_counts=True)[1])
    targets = canonical.digest_bytes(np.ascontiguousarray(numbers, dtype="<f8").tobytes())
    return {f"name {_bare(task.name)}", f"{task.kind} {targets}"} | (
        {f"file {task.sha256}"} if task.sha256 else set()
    )


def _bare(name: str) -> str:
    """`Breast-W` and `breast_w` are one table in two pools, and so is its second version, `breast-w.2`."""
    return "".join(filter(str.isalnum, re.sub(r"\.\d+$", "", name).casefold()))
