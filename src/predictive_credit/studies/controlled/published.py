"""Printed figures of the original controlled study, to stand beside ours and never instead of them.

Source: "Predictive Credit" (2026), the controlled study: six regimes, 120 states. `contrasts` holds
gains with their two-sided 95 % intervals, `contexts` levels, `explanations` how many cards were
complete and how often a stated direction was right. The accuracy contrast S-M is not printed, nor
are the published regimes' generators: ours are our own, so levels need not agree. The paper prints
one figure per loss and does not say whether calls or ensembles are averaged; we file them under the
call-level names, on which our contrasts rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIGURES: Mapping[str, Any] = {
    "source": "Predictive Credit (2026), controlled study: six regimes, 120 states",
    "decision": "inconclusive",
    "contrasts": {
        "accuracy_pp": {
            "point_error": {"D-M": {"mean": 0.071, "lower": -0.102, "upper": 0.252}},
            "interval_score": {"D-M": {"mean": -3.8436, "lower": -7.9180, "upper": -0.5468}},
        },
        "log_loss": {
            "point_error": {
                "D-M": {"mean": 0.0363, "lower": -0.0061, "upper": 0.0807},
                "S-M": {"mean": 0.0508, "lower": 0.0022, "upper": 0.1076},
            },
            "interval_score": {"D-M": {"mean": -2.0878, "lower": -4.2911, "upper": -0.2750}},
        },
    },
    "contexts": {
        "accuracy_pp": {"D": {"interval_score_call": 19.30}, "M": {"interval_score_call": 23.14}},
        "log_loss": {
            "D": {"point_mae_call": 0.2268, "interval_score_call": 1.41},
            "M": {"point_mae_call": 0.1905, "interval_score_call": 3.50},
            "S": {"point_mae_call": 0.2413},
        },
    },
    "explanations": {
        "elicited": {"n": 60, "complete": 59},
        "ordinary": {"n": 60, "complete": 0},
        # Over both sources; `improve` is up in accuracy and down in log loss.
        "all": {"stated": 111, "improve": 109, "correct": 65, "always_improve_correct": 64},
    },
}
