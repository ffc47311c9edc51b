"""What playbook, fallback and priors may learn from: every intervention on tasks no study uses."""

from __future__ import annotations

from collections.abc import Collection, Sequence

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
    exclude: Collection[str],
    seed: int,
    execution: Execution,
) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Outcomes of all six interventions on the pool's burn-in tasks, and their summary.

    `tasks` are those of the burn-in pool, whose name is `pool`; `exclude` holds the study's own
    tasks, for two pools may hold one table. Budgets are the study's; one seed of them is enough
    for a summary. Outcome ids read `burn-in/task/budget/seed/intervention`.

    Raises BadConfig when no task is left, or none gave an outcome.
    """
    left = unused_tasks(tasks, exclude)
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


def unused_tasks(tasks: Sequence[Task], exclude: Collection[str]) -> tuple[Task, ...]:
    """The tasks whose names are not in `exclude`, in whatever case and punctuation; sorted by name.

    Raises BadConfig when that leaves none.
    """
    taken = set(map(_bare, exclude))
    left = sorted((t for t in tasks if _bare(t.name) not in taken), key=lambda t: t.name)
    if not left:
        raise BadConfig(
            f"burn_in: none of the pool's {len(tasks)} burn-in tasks is left beside the study's own; "
            "take a pool with more of them, such as packaged"
        )
    return tuple(left)


def _bare(name: str) -> str:
    """`Breast-W` and `breast_w` are one table in two pools."""
    return "".join(filter(str.isalnum, name.casefold()))
