"""Printed figures of the original molecular study, to stand beside ours and never instead of them.

Source: "Predictive Credit" (2026), the prospective molecular study: Tox21 with its 12 assays, 72
states, forecaster DeepSeek V4 Pro. `contrasts` holds the decision's interval-score gains with their
two-sided 95 % intervals, and by how much each drift fell; `contexts` the levels table; `outcomes`
the seed-pair table. The paper prints one figure per loss and does not say whether calls or
ensembles are averaged; we file them under the call-level names, on which our contrasts rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIGURES: Mapping[str, Any] = {
    "source": "Predictive Credit (2026), molecular study: Tox21, DeepSeek V4 Pro, 72 states",
    "decision": "confirmation_no_go",
    "contrasts": {
        "roc_auc": {
            "interval_score": {
                "D-M": {"mean": -0.002628, "lower": -0.017392, "upper": 0.010375},
                "S-M": {"mean": -0.002856, "lower": -0.016750, "upper": 0.011428},
            },
            "drift": {
                "D-M": {"reduction_share": 0.645},  # of the drift in D
                "D-S": {"reduction_share": 0.591},
            },
        },
    },
    "contexts": {
        "roc_auc": {
            "D": {"drift": 0.01004, "point_mae_call": 0.02056, "interval_score_call": 0.08972},
            "M": {"drift": 0.00357, "point_mae_call": 0.02041, "interval_score_call": 0.09235},
            "S": {"drift": 0.00411, "point_mae_call": 0.02023, "interval_score_call": 0.08949},
        },
    },
    "outcomes": {"roc_auc": {"seed_pairs": {"n": 36, "equal_signs": 27, "median_gap": 0.01362}}},
}
