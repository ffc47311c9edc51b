"""Forecasters that need no model: they answer every prompt alike, from the burn-in alone."""

from __future__ import annotations

from typing import Literal

from predictive_credit.forecasters import sentence
from predictive_credit.records import BurnIn, Prompt, Reply

DECIMALS = 6


class PriorsModel:
    """Zero, a constant positive change, or the burn-in's mean, with its 10/90 % quantiles.

    Points in ROC AUC: 0, mean |y|, mean y. The sentence has distances for an interval, and none is
    negative: where the point lies outside the quantiles the interval ends at the point.
    """

    def __init__(self, point: Literal["zero", "positive", "mean"], burn_in: BurnIn, *, name: str) -> None:
        self.name = name
        self._resolved = f"{point} of burn-in {burn_in.name}"
        value = {"zero": 0.0, "positive": burn_in.mean_absolute, "mean": burn_in.mean}[point]
        self._text = sentence.write(value, value - burn_in.q10, burn_in.q90 - value, decimals=DECIMALS)

    def answer(self, prompt: Prompt) -> Reply:
        """The same sentence for every prompt."""
        return Reply(
            text=self._text, finish_reason="stop", model_requested=self.name, model_resolved=self._resolved
        )

    def close(self) -> None:
        """Nothing to end."""
