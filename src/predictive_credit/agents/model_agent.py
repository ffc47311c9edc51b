"""The embedded model as an author: six lines, complete by grammar. Kept for comparison."""

from __future__ import annotations

from typing import Final

from predictive_credit.models.model import Model
from predictive_credit.records import Prompt, Reply, State

# GBNF. A line holds one sentence or two; the card's labels and their order are given.
GRAMMAR: Final = r"""
root ::= "Direction: " verb "\nTarget: " target "\nIntermediate: " line "\nRegime: " line rest
rest ::= "\nFalsifier: " line "\nCounterfactual: " line
target ::= "ROC AUC will " verb " by " size " (80% interval: minus " size ", plus " size ")"
verb ::= "increase" | "decrease"
size ::= "0.0" [0-9] [0-9] [0-9]
line ::= [A-Za-z] [^\n<>]{10,160}
""".strip()


class ModelAgent:
    """Asks a model for the card; what it writes is the explanation, sense or not."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    def write(self, state: State, prompt: Prompt) -> Reply:
        """The model's reply to the state's card prompt."""
        return self._model.answer(prompt)

    def close(self) -> None:
        """End the model."""
        self._model.close()
