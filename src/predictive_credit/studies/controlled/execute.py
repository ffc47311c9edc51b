"""Run the parent and the changed model of each state; the differences are its outcomes."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit.config import Execution
from predictive_credit.records import Outcome, State
from predictive_credit.studies import workers
from predictive_credit.studies.controlled.fitting import Scores, Trial, changes
from predictive_credit.studies.controlled.interventions import TARGETS
from predictive_credit.studies.controlled.regimes import Datasets


def execute(states: Sequence[State], data: Datasets, *, execution: Execution) -> tuple[Outcome, ...]:
    """Two outcomes a state, in the states' order: held-out accuracy and log loss, changed minus parent.

    A higher accuracy and a lower log loss are better. A state whose training labels are of one class
    has no model: its values are None and their reason says so. `data` is what the states were made of.
    """
    trials = [
        Trial(dataset=data[state.cluster], interventions=(state.intervention.name,)) for state in states
    ]
    results = workers.run(changes, trials, execution, title="execute")
    return tuple(
        outcome
        for state, result in zip(states, results, strict=True)
        for outcome in outcomes(state.id, result if isinstance(result, str) else result[0])
    )


def outcomes(state_id: str, change: Scores | str) -> tuple[Outcome, ...]:
    """A change, or the reason why there is none, as one outcome a target."""
    if isinstance(change, str):
        return tuple(
            Outcome(state_id=state_id, target=target.name, value=None, reason=change) for target in TARGETS
        )
    return tuple(
        Outcome(state_id=state_id, target=target.name, value=getattr(change, target.name))
        for target in TARGETS
    )
