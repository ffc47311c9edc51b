"""Run the parent and the changed model of each state; the difference is its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from predictive_credit.config import Execution
from predictive_credit.records import Outcome, State
from predictive_credit.studies import workers
from predictive_credit.studies.tabular.fitting import Trial, changes, trial
from predictive_credit.studies.tabular.interventions import TARGET
from predictive_credit.studies.tabular.pool import Task
from predictive_credit.studies.tabular.states import Splits


def execute(
    tasks: Sequence[Task], states: Sequence[State], splits: Splits, *, execution: Execution
) -> tuple[Outcome, ...]:
    """The outcome of each state, in the states' order: held-out skill, changed model minus parent.

    A state without a skill, or with a change beyond the target's bounds, has no value; its reason
    says why. `splits` are those the states were made with.
    """
    named = {task.name: task for task in tasks}
    trials = [_trial(named, state, splits) for state in states]
    results = workers.run(changes, trials, execution, title="execute")
    return tuple(outcome(state.id, result) for state, (result,) in zip(states, results, strict=True))


def outcome(state_id: str, result: float | str) -> Outcome:
    """A change in skill, or why there is none, as an outcome."""
    if isinstance(result, str):
        return Outcome(state_id=state_id, target=TARGET.name, value=None, reason=result)
    return Outcome(state_id=state_id, target=TARGET.name, value=result)


def _trial(tasks: Mapping[str, Task], state: State, splits: Splits) -> Trial:
    """The rows and the intervention of a state, which has a budget and a seed in this study."""
    if state.budget is None or state.seed is None:
        raise ValueError(f"{state.id} is no state of the tabular study: it has no budget or no seed")
    split = splits[state.task, state.seed]
    return trial(tasks[state.task], split.prefix(state.budget), split.test, (state.intervention.name,))
