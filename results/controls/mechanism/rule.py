"""Frozen rule `mechanism` of the mechanism control. Never edited: a new rule is a new file.

Question. Does a true account of a task's mechanism, without a number, bring the forecaster's points
nearer to the outcomes than no account, and than the opposite one?

Loss. The point error of a unit, averaged over the two calls of a context; percentage points of accuracy.
Gain. Other loss minus the true note's loss, averaged over states.
Bounds. The lower ends of two-sided 95 % intervals, by the bootstrap over pairs of tasks: a nonlinear
task and its linear twin share their inputs. Each is a one-sided bound at 97.5 %.

Decision. `mechanism_sensitive` if both lower bounds are above zero. Otherwise, and whenever a gain was
not asked or cannot be estimated, `mechanism_insensitive`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision, Gate

NAME = "mechanism"
PAIRS = ("D-true_note", "false_note-true_note")
LEVEL = 0.975  # one-sided, of the lower end of a two-sided 95 % interval

Status = Literal["mechanism_sensitive", "mechanism_insensitive"]


def decide(study: str, point: Mapping[str, Contrast]) -> Decision:
    """Apply the rule to the point-error gains by pair; an absent one holds no gate."""
    gates = tuple(_above_zero(pair, point.get(pair)) for pair in PAIRS)
    status: Status = "mechanism_sensitive" if all(g.held for g in gates) else "mechanism_insensitive"
    return Decision(study=study, rule=NAME, status=status, gates=gates)


def _above_zero(pair: str, gain: Contrast | None) -> Gate:
    seen = None if gain is None else gain.one_sided_lower
    return Gate(name=f"{pair} lower bound", asked="> 0", seen=seen, held=seen is not None and seen > 0)
