"""Frozen rule `harm` of the molecular study. Never edited: a new rule is a new file.

Question. Does the matched card make the forecaster's 80 % intervals worse, both against the
description alone and against the donor's card?

Loss. The interval score of a unit, averaged over the two calls of a context; ROC AUC.
Harm. Matched loss minus other loss, averaged over states: M-D and M-S. Positive is harmful.
Bound. One-sided 95 % lower bound of each harm, by the hierarchical bootstrap over endpoints, then
label fractions, then seeds.

Decision. `harm_confirmed` if both harms are at least the margin and both lower bounds are above
zero. Otherwise, and whenever a harm was not asked or cannot be estimated, `confirmation_no_go`:
the study does not confirm harm, which does not show that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision, Gate

NAME = "harm"
MARGIN = 0.005  # ROC AUC, in interval-score units
LEVEL = 0.95  # one-sided

Status = Literal["harm_confirmed", "confirmation_no_go"]


def decide(study: str, contrasts: Mapping[str, Contrast]) -> Decision:
    """Apply the rule to the interval-score gains D-M and S-M; an absent one holds no gate.

    A gain is other minus matched and a harm is its negative, so the harm's lower bound is the
    negative of the gain's upper bound.
    """
    harm_vs_d, lower_vs_d = _harm(contrasts.get("D-M"))
    harm_vs_s, lower_vs_s = _harm(contrasts.get("S-M"))
    gates = (
        _at_least_the_margin("M-D margin", harm_vs_d),
        _above_zero("M-D bound", lower_vs_d),
        _at_least_the_margin("M-S margin", harm_vs_s),
        _above_zero("M-S bound", lower_vs_s),
    )
    status: Status = "harm_confirmed" if all(g.held for g in gates) else "confirmation_no_go"
    return Decision(study=study, rule=NAME, status=status, gates=gates)


def _harm(gain: Contrast | None) -> tuple[float | None, float | None]:
    """Mean harm and its lower bound; None for what was not asked or has no estimate."""
    if gain is None or gain.mean is None:
        return None, None
    # Subtracting from 0.0 instead of negating keeps -0.0 out of the record.
    return 0.0 - gain.mean, None if gain.one_sided_upper is None else 0.0 - gain.one_sided_upper


def _at_least_the_margin(name: str, seen: float | None) -> Gate:
    return Gate(name=name, asked=f">= {MARGIN}", seen=seen, held=seen is not None and seen >= MARGIN)


def _above_zero(name: str, seen: float | None) -> Gate:
    return Gate(name=name, asked="> 0", seen=seen, held=seen is not None and seen > 0)
