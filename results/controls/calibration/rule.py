"""Frozen rule `assay` of the calibration control. Never edited: a new rule is a new file.

Question. Where the outcome itself is written in the prompt, does the forecaster's point follow it?

Wins. A state is won if the point error of the exact signal, of the mean of its two calls, is below
that of the description; an undefined outcome is no win. At least 95 % of all states.
Order. Spearman's rank correlation of the exact signal's mean points with the outcomes; at least .99.

Decision. `assay_sensitive` if both hold. Otherwise, and where either cannot be had,
`assay_insensitive`: a missing gain under this forecaster may be a failure to read.
"""

from __future__ import annotations

from typing import Literal

from predictive_credit.decisions import Decision, Gate

NAME = "assay"
WINS = 0.95  # share of states
ORDER = 0.99  # Spearman's rho
LEVEL = 0.95  # one-sided, of the bounds that are printed

Status = Literal["assay_sensitive", "assay_insensitive"]


def decide(study: str, *, wins: float | None, spearman: float | None) -> Decision:
    """Apply the rule to the share of states won and the rank correlation."""
    gates = (_reached("exact signal wins", wins, WINS), _reached("Spearman", spearman, ORDER))
    status: Status = "assay_sensitive" if all(g.held for g in gates) else "assay_insensitive"
    return Decision(study=study, rule=NAME, status=status, gates=gates)


def _reached(name: str, seen: float | None, floor: float) -> Gate:
    return Gate(name=name, asked=f">= {floor:.2f}", seen=seen, held=seen is not None and seen >= floor)
