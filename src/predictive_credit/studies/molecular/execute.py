"""Run the parent and the changed model of each state; the difference is its outcome."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit.config import Execution
from predictive_credit.records import Outcome, State
from predictive_credit.studies import workers
from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.fitting import Matrices, Trial, changes, matrices, trial
from predictive_credit.studies.molecular.interventions import TARGET
from predictive_credit.studies.molecular.pool import Table
from predictive_credit.studies.molecular.states import Splits, rows


def execute(
    table: Table, features: Features, states: Sequence[State], splits: Splits, *, execution: Execution
) -> tuple[Outcome, ...]:
    """The outcome of each state, in the states' order: held-out ROC AUC, changed model minus parent.

    A state whose training or held-out labels are of one class has no ROC AUC: its value is None and
    its reason says so. `splits` are those the states were made with.
    """
    pool = matrices(features)
    trials = [_trial(table, pool, state, splits) for state in states]
    results = workers.run(changes, trials, execution, title="execute")
    return tuple(_outcome(state, result) for state, result in zip(states, results, strict=True))


def _trial(table: Table, pool: Matrices, state: State, splits: Splits) -> Trial:
    train, test = rows(splits, state)
    names = (state.intervention.name,)
    return trial(pool, table.label(state.task), train, test, names)


def _outcome(state: State, result: tuple[float, ...] | str) -> Outcome:
    if isinstance(result, str):
        return Outcome(state_id=state.id, target=TARGET.name, value=None, reason=result)
    return Outcome(state_id=state.id, target=TARGET.name, value=result[0])
