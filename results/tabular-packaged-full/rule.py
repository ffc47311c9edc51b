"""Frozen rule `joint` of the tabular study. Never edited: a new rule is a new file.

Question. Do elicited cards form, leave the forecaster's points as good as they were, and make its
two answers more alike?

Formation. The share of states with a complete elicited card minus the share with a complete
ordinary one; at least a half by its one-sided 95 % lower bound.
Point equivalence. The point errors of the two calls, averaged; the gains D-M and S-M. The two
one-sided 95 % bounds of each are its 90 % interval, which lies inside the margin; skill.
Repeatability. The drift gain D-M, positive where the matched card steadies the forecast; its
one-sided 95 % lower bound is above zero.
Bounds are those of the bootstrap over tasks, within each kind of task, at this rule's own level,
whatever level other intervals are printed at.

Decision. `confirmation_go` if all four gates hold. Otherwise, and whenever something was not asked
or cannot be estimated, `confirmation_no_go`: the study does not confirm the joint claim, which does
not show that any part of it is false.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision, Gate
from predictive_credit.equivalence import inside_margin

NAME = "joint"
FORMATION = 0.50  # share of states
MARGIN = 0.010  # skill, in point-error units
LEVEL = 0.95  # one-sided

Status = Literal["confirmation_go", "confirmation_no_go"]


def decide(
    study: str, *, formation: float | None, point: Mapping[str, Contrast], drift: Mapping[str, Contrast]
) -> Decision:
    """Apply the rule to formation's lower bound, and to the point-error and drift gains by pair."""
    gates = (
        _formed(formation),
        _equivalent("D-M point equivalence", point.get("D-M")),
        _equivalent("S-M point equivalence", point.get("S-M")),
        _repeatable(drift.get("D-M")),
    )
    status: Status = "confirmation_go" if all(g.held for g in gates) else "confirmation_no_go"
    return Decision(study=study, rule=NAME, status=status, gates=gates)


def _formed(lower: float | None) -> Gate:
    held = lower is not None and lower >= FORMATION
    return Gate(name="formation bound", asked=f">= {FORMATION:.2f}", seen=lower, held=held)


def _equivalent(name: str, gain: Contrast | None) -> Gate:
    """Sees the end of the 90 % interval that lies farther from zero."""
    asked = f"90 % interval inside +-{MARGIN:.3f}"
    if gain is None or gain.one_sided_lower is None or gain.one_sided_upper is None:
        return Gate(name=name, asked=asked, seen=None, held=False)
    lower, upper = gain.one_sided_lower, gain.one_sided_upper
    farther = max(lower, upper, key=abs)
    return Gate(name=name, asked=asked, seen=farther, held=inside_margin(lower, upper, margin=MARGIN))


def _repeatable(gain: Contrast | None) -> Gate:
    lower = None if gain is None else gain.one_sided_lower
    return Gate(name="D-M drift bound", asked="> 0", seen=lower, held=lower is not None and lower > 0)
