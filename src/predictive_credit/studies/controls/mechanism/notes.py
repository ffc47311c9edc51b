"""What a researcher who knows the generator writes of a task, and the opposite.

No number stands in either, so there is nothing to copy.
"""

from __future__ import annotations

from typing import Final

from predictive_credit.records import Explanation, Source
from predictive_credit.studies.controls.frozen import composed
from predictive_credit.studies.controls.mechanism.tasks import trial
from predictive_credit.studies.study import Stimuli

NOTES: Final = {
    "nonlinear": "The class boundary of this task is curved. The log odds depend on squares and products of "
    "some features, which a model that is linear in the features cannot represent. Squares and products are "
    "exactly the terms that the parent model lacks, so accuracy will increase by many percentage points.",
    "linear": "The class boundary of this task is a plane. The log odds are linear in the features, which "
    "the parent model already represents. Squares and products say nothing about the class; they only add "
    "coefficients that fit noise, so accuracy will decrease slightly.",
}
OPPOSITE: Final = {"nonlinear": "linear", "linear": "nonlinear"}


def notes(stimuli: Stimuli) -> tuple[Explanation, ...]:
    """A true and a false note of every state; a twin's true note is the other's false one."""
    made = []
    for state in stimuli.states:
        _, kind, _ = trial(state)
        told: dict[Source, str] = {"true_note": NOTES[kind], "false_note": NOTES[OPPOSITE[kind]]}
        made += [composed(state.id, source, text) for source, text in told.items()]
    return tuple(made)
