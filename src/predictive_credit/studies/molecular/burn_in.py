"""What playbook, fallback and priors may learn from: every intervention on endpoints no study uses."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome
from predictive_credit.studies import workers
from predictive_credit.studies.burn_in import summary
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.fitting import Matrices, Trial, changes, matrices, trial
from predictive_credit.studies.molecular.interventions import INTERVENTIONS, TARGET
from predictive_credit.studies.molecular.pool import Table
from predictive_credit.studies.molecular.states import Split, choose_endpoints, splits

# The largest endpoints of the burn-in pool belong to the molecular study at full scale; they are
# left out at every scale and for every study pool, so that the burn-in does not move with either.
RESERVED = 12
NAMES = tuple(intervention.name for intervention in INTERVENTIONS)


def burn_in(
    table: Table,
    features: Features,
    config: MolecularConfig,
    *,
    pool: str,
    exclude: Collection[str],
    seed: int,
    execution: Execution,
) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Outcomes of all six interventions on the pool's unused endpoints, and their summary.

    `table` and `features` are those of the burn-in pool, whose name is `pool`; `exclude` holds the
    study's own endpoints. Budgets and seeds are the study's. Outcome ids read
    `burn-in/endpoint/budget/seed/intervention`. Quantiles are NumPy's linear ones.

    Raises BadConfig when no endpoint is left, or none gave an outcome.
    """
    tasks = unused_endpoints(table, config, exclude)
    there = splits(table, replace(config, endpoints=tasks), seed=seed)
    cells = [(task, budget, number) for task in tasks for budget in config.budgets for number in config.seeds]
    opened = matrices(features)
    trials = [_rows(table, opened, task, there[task, number], budget) for task, budget, number in cells]
    results = workers.run(changes, trials, execution, title="burn-in")
    outcomes = [
        outcome
        for (task, budget, number), result in zip(cells, results, strict=True)
        for outcome in _outcomes(f"burn-in/{task}/{budget:g}/{number}", result)
    ]
    outcomes.sort(key=lambda outcome: outcome.state_id)
    return tuple(outcomes), summary(outcomes, name=pool, tasks=tasks, targets=(TARGET,), interventions=NAMES)


def unused_endpoints(table: Table, config: MolecularConfig, exclude: Collection[str]) -> tuple[str, ...]:
    """The pool's endpoints that are neither among its 12 largest nor in `exclude`, sorted by name.

    Raises BadConfig when that leaves none.
    """
    largest = choose_endpoints(table, replace(config, endpoints=None, n_endpoints=RESERVED))
    left = sorted(set(table.endpoints) - set(largest) - set(exclude))
    if not left:
        raise BadConfig(
            f"burn_in: the pool's {len(table.endpoints)} endpoints leave none beside its {RESERVED} largest "
            "and the study's own; take a pool with more endpoints, such as moleculeace"
        )
    return tuple(left)


def _rows(table: Table, opened: Matrices, task: str, split: Split, budget: float) -> Trial:
    return trial(opened, table.label(task), split.prefix(budget), split.test, NAMES)


def _outcomes(prefix: str, result: tuple[float, ...] | str) -> list[Outcome]:
    if isinstance(result, str):
        return [
            Outcome(state_id=f"{prefix}/{name}", target=TARGET.name, value=None, reason=result)
            for name in NAMES
        ]
    return [
        Outcome(state_id=f"{prefix}/{n}", target=TARGET.name, value=v)
        for n, v in zip(NAMES, result, strict=True)
    ]
