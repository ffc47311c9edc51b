"""Forecasters that need no model: they answer every prompt alike, from the burn-in alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from predictive_credit.forecasters import sentence
from predictive_credit.records import BurnIn, Prompt, Reply, Target, TargetBurnIn
from predictive_credit.wording import Stated

DECIMALS = 6


class PriorsModel:
    """Zero, a constant positive amount, or the burn-in's mean, with its 10/90 % quantiles, in every target.

    Points in each target's unit: 0, mean |y|, mean y, or the possible value nearest to it. The sentence
    has distances for an interval, and none is negative: where the point lies outside the quantiles the
    interval ends at the point.
    """

    def __init__(
        self,
        point: Literal["zero", "positive", "mean"],
        burn_in: BurnIn,
        targets: Sequence[Target],
        *,
        name: str,
    ) -> None:
        self.name = name
        self._resolved = f"{point} of burn-in {burn_in.name}"
        stated = [_stated(point, burn_in.targets[target.name], target) for target in targets]
        self._text = sentence.write(stated, targets, decimals=DECIMALS)

    def answer(self, prompt: Prompt) -> Reply:
        """The same sentence for every prompt."""
        return Reply(
            text=self._text, finish_reason="stop", model_requested=self.name, model_resolved=self._resolved
        )

    def close(self) -> None:
        """Nothing to end."""


def _stated(point: Literal["zero", "positive", "mean"], learned: TargetBurnIn, target: Target) -> Stated:
    wanted = {"zero": 0.0, "positive": learned.mean_absolute, "mean": learned.mean}[point]
    value = min(max(wanted, target.lower), target.upper)
    return Stated(point=value, minus=value - learned.q10, plus=learned.q90 - value)
