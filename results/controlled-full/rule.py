"""Frozen rule `credit` of the controlled study. Never edited: a new rule is a new file.

Question. Does the matched card bring the forecaster's points nearer to the outcomes, both against
the description alone and against the donor's card, in both targets?

Loss. The point error of a unit, averaged over the two calls of a context; percentage points of
accuracy, and nats of log loss.
Gain. Other loss minus matched loss, averaged over states: D-M and S-M. Positive is credit.
Bounds. The ends of the two-sided 95 % interval of each gain, by the bootstrap over states within
regime. Each end is a one-sided bound at 97.5 %.

Decision. `credit_confirmed` if all four lower bounds are above zero, `credit_refuted` if all four
upper bounds are below zero. Otherwise, and whenever a gain was not asked or cannot be estimated,
`inconclusive`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision, Gate

NAME = "credit"
TARGETS = ("accuracy_pp", "log_loss")
PAIRS = ("D-M", "S-M")
LEVEL = 0.975  # one-sided, of either end of a two-sided 95 % interval

Status = Literal["credit_confirmed", "credit_refuted", "inconclusive"]


def decide(study: str, contrasts: Mapping[str, Mapping[str, Contrast]]) -> Decision:
    """Apply the rule to the point-error gains by target and pair; an absent one holds no gate."""
    gains = {f"{t} {p}": contrasts.get(t, {}).get(p) for t in TARGETS for p in PAIRS}
    above = tuple(_above_zero(f"{name} lower bound", gain) for name, gain in gains.items())
    below = tuple(_below_zero(f"{name} upper bound", gain) for name, gain in gains.items())
    return Decision(study=study, rule=NAME, status=_status(above, below), gates=above + below)


def _status(above: tuple[Gate, ...], below: tuple[Gate, ...]) -> Status:
    if all(gate.held for gate in above):
        return "credit_confirmed"
    if all(gate.held for gate in below):
        return "credit_refuted"
    return "inconclusive"


def _above_zero(name: str, gain: Contrast | None) -> Gate:
    seen = None if gain is None else gain.one_sided_lower
    return Gate(name=name, asked="> 0", seen=seen, held=seen is not None and seen > 0)


def _below_zero(name: str, gain: Contrast | None) -> Gate:
    seen = None if gain is None else gain.one_sided_upper
    return Gate(name=name, asked="< 0", seen=seen, held=seen is not None and seen < 0)
