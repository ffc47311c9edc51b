"""What a model is."""

from __future__ import annotations

from typing import Protocol

from predictive_credit.records import Prompt, Reply


class Model(Protocol):
    """Anything that answers a prompt.

    Whatever content comes back is a Reply, a refusal or an error message too. Only trouble of our
    own (no file, a recording that lacks the prompt) raises.
    """

    @property
    def name(self) -> str:
        """The configured name, which is the requested model id."""

    def answer(self, prompt: Prompt) -> Reply:
        """The reply to one prompt."""

    def close(self) -> None:
        """End threads and free memory. A second call does nothing."""
