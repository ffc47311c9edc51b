"""Frozen rule `exploratory` of the controls that test no claim. Never edited: a new rule is a new file.

Question. What does each part of an explanation carry?

Decision. Always `exploratory`: contrasts are printed with their intervals, none is a gate, and none
confirms anything.
"""

from __future__ import annotations

from typing import Final

from predictive_credit.decisions import Decision

NAME: Final = "exploratory"
LEVEL: Final = 0.95  # one-sided, of the bounds that are printed


def decide(study: str) -> Decision:
    """There is nothing to decide."""
    return Decision(study=study, rule=NAME, status="exploratory", gates=())
