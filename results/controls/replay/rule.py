"""Frozen rule `replication` of the replay control. Never edited: a new rule is a new file.

Question. Do another forecaster's answers to the same stimuli, byte for byte, show the pattern again: a
card, whose ever it is, steadies the forecast and leaves its points and intervals as good as they were?

Drift reduction. The drift gains D-M and D-S; one-sided 95 % lower bounds above zero.
Point equivalence. The point-error gains D-M, D-S and S-M; 90 % intervals inside the point margin.
Drift equivalence. The drift gain S-M; 90 % interval inside its margin.
Interval equivalence. The interval-score gain S-M; 90 % interval inside its margin.
Integrity. The share of forecast units whose reply could be read; at least .95.
Answered. Planned units without an answer; none.
The two one-sided 95 % bounds of a gain are its 90 % interval.

Decision. `replication_supported` if all nine gates hold. Otherwise, and whenever something was not
asked or cannot be estimated, `replication_not_supported`, which does not show the opposite.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision, Gate
from predictive_credit.equivalence import inside_margin

NAME = "replication"
POINT_MARGIN = 0.005  # ROC AUC
DRIFT_MARGIN = 0.002  # ROC AUC
INTERVAL_MARGIN = 0.010  # ROC AUC, in interval-score units
INTEGRITY = 0.95  # share of forecast units
LEVEL = 0.95  # one-sided

Status = Literal["replication_supported", "replication_not_supported"]


def decide(
    study: str, *, contrasts: Mapping[str, Mapping[str, Contrast]], readable: float, unanswered: int
) -> Decision:
    """Apply the rule to the gains by measure and pair, the share of readable replies, and the gaps."""
    drift, point = contrasts.get("drift", {}), contrasts.get("point_error", {})
    score = contrasts.get("interval_score", {})
    gates = (
        _above_zero("M drift reduction", drift.get("D-M")),
        _above_zero("S drift reduction", drift.get("D-S")),
        _equivalent("D-M point equivalence", point.get("D-M"), POINT_MARGIN),
        _equivalent("D-S point equivalence", point.get("D-S"), POINT_MARGIN),
        _equivalent("S-M point equivalence", point.get("S-M"), POINT_MARGIN),
        _equivalent("S-M drift equivalence", drift.get("S-M"), DRIFT_MARGIN),
        _equivalent("S-M interval-score equivalence", score.get("S-M"), INTERVAL_MARGIN),
        Gate(name="integrity", asked=f">= {INTEGRITY}", seen=readable, held=readable >= INTEGRITY),
        Gate(name="unanswered units", asked="0", seen=float(unanswered), held=unanswered == 0),
    )
    status: Status = "replication_supported" if all(g.held for g in gates) else "replication_not_supported"
    return Decision(study=study, rule=NAME, status=status, gates=gates)


def _above_zero(name: str, gain: Contrast | None) -> Gate:
    seen = None if gain is None else gain.one_sided_lower
    return Gate(name=name, asked="> 0", seen=seen, held=seen is not None and seen > 0)


def _equivalent(name: str, gain: Contrast | None, margin: float) -> Gate:
    """Sees the end of the 90 % interval that lies farther from zero."""
    asked = f"90 % interval inside +-{margin:.3f}"
    if gain is None or gain.one_sided_lower is None or gain.one_sided_upper is None:
        return Gate(name=name, asked=asked, seen=None, held=False)
    lower, upper = gain.one_sided_lower, gain.one_sided_upper
    farther = max(lower, upper, key=abs)
    return Gate(name=name, asked=asked, seen=farther, held=inside_margin(lower, upper, margin=margin))
