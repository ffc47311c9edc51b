"""Printed figures of the original tabular study, to stand beside ours and never instead of them.

Source: "Predictive Credit" (2026), the prospective tabular study: 12 + 12 tasks of OpenML-CC18 and
OpenML-CTR23, 144 states. Contrasts are gains, other loss minus matched loss, with the intervals
printed beside them. `tasks` holds the one task that carries most of the error; the mean errors
without it are of ensembles, as their sizes show. The paper counts 78 empty cards without saying of
which source; we file them under the elicited ones, which are what it calls cards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FIGURES: Mapping[str, Any] = {
    "source": "Predictive Credit (2026), tabular study: OpenML-CC18 and OpenML-CTR23, 144 states",
    "decision": "confirmation_no_go",
    "contrasts": {
        "skill": {
            "point_error": {
                "D-M": {"mean": -0.00741, "lower": -0.02804, "upper": 0.00251},
                "S-M": {"mean": -0.00731, "lower": -0.03749, "upper": 0.00654},
            },
            "width": {"D-M": {"mean": -0.01294, "lower": -0.03306, "upper": -0.00141}},
        },
    },
    "contexts": {
        "skill": {
            "D": {
                "point_mae_call": 0.08428,
                "point_mae_ensemble": 0.08368,
                "width": 0.06179,
                "coverage": 0.514,
                "direction_accuracy": 0.6319,
            },
            "M": {
                "point_mae_call": 0.09169,
                "point_mae_ensemble": 0.09129,
                "width": 0.07474,
                "coverage": 0.493,
            },
            "zero": {"point_mae_call": 0.08341, "point_mae_ensemble": 0.08341},
            "positive": {"direction_accuracy": 0.625},
        },
    },
    "outcomes": {
        "skill": {
            "median_absolute": 0.0236,
            "positive_share": 0.625,
            "seed_pairs": {"n": 72, "equal_signs": 54},
        },
    },
    "explanations": {
        "elicited": {"n": 144, "complete": 20, "empty": 78},
        "ordinary": {"n": 144, "complete": 1},
        "formation": {"difference": 19 / 144, "lower": 0.069},
    },
    "tasks": {
        "skill": {
            "brazilian_houses": {
                "share_of_error": {"D": 0.370, "M": 0.411},
                "point_mae_ensemble_without": {"D": 0.05498, "M": 0.05614, "zero": 0.05910},
            },
        },
    },
}
