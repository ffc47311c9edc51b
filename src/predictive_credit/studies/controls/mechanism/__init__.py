"""The mechanism control: does a true account of why, without a number, move the forecast the right way?

Twenty nonlinear tasks and their linear twins, new states with outcomes of their own. Quadratic features
are executed on all of them; a researcher's true note and the opposite one stand where a card stood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from predictive_credit.contexts import Showing
from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision
from predictive_credit.panel import Panel
from predictive_credit.records import Context
from predictive_credit.studies.controlled.interventions import ACCURACY
from predictive_credit.studies.controls.mechanism import rule, suite
from predictive_credit.studies.controls.mechanism.config import MechanismConfig
from predictive_credit.studies.controls.mechanism.notes import notes
from predictive_credit.studies.study import Findings, Level, Study


def decide(study: str, findings: Findings) -> Decision:
    """The frozen rule reads the point-error gains of the true note."""
    return rule.decide(study, findings.contrasts[ACCURACY.name]["point_error"])


def shows(
    panels: Mapping[str, Panel], contrasts: Mapping[str, Mapping[str, Mapping[str, Contrast]]]
) -> dict[str, Any]:
    """What quadratic features did, by kind of task: mean change in accuracy, percentage points."""
    panel = panels[ACCURACY.name]
    found = {}
    for k, kind in enumerate(panel.tasks):
        y = panel.outcome[panel.task_of == k]
        known = y[~np.isnan(y)]
        found[kind] = {"n": len(y), "mean_effect_pp": float(known.mean()) if known.size else None}
    return {"executed": found}


MECHANISM = Study(
    name="mechanism",
    timing="post-outcome",
    n_tasks=2,
    n_states=40,  # 20 pairs of a nonlinear task and its linear twin
    n_units=240,  # 40 x 3 contexts x 2 calls
    task_words=("kind of task", "kinds of task"),
    targets=(ACCURACY,),
    levels=(Level(name="pair", is_drawn=True), Level(name="kind", is_drawn=False)),
    contexts={
        Context.DESCRIPTION: None,
        Context.TRUE_NOTE: Showing(source="true_note", donor=False, form="text"),
        Context.FALSE_NOTE: Showing(source="false_note", donor=False, form="text"),
    },
    calls_per_context=suite.CALLS,
    extracted=(),
    primary_loss="point_error",
    one_sided_level=rule.LEVEL,
    rule=rule,
    decide=decide,
    textbook=None,
    config=MechanismConfig,
    features=suite.features,
    count=suite.count,
    states=suite.states,
    burn_in=suite.burn_in,
    execute=suite.execute,
    donors=suite.donors,
    given=suite.given,
    matched=Context.TRUE_NOTE,
    against=Context.FALSE_NOTE,
    composed=notes,
    shows=shows,
    published={
        "source": "Predictive Credit (2026), mechanism: 20 nonlinear and 20 linear tasks, DeepSeek V4 Pro",
        "decision": "mechanism_sensitive",
        "contexts": {
            "accuracy_pp": {
                "D": {"point_mae_call": 6.391},
                "true_note": {"point_mae_call": 3.795},
                "false_note": {"point_mae_call": 8.151},
            }
        },
        "contrasts": {
            "accuracy_pp": {
                "point_error": {
                    "D-true_note": {"mean": 2.60, "lower": 2.314, "upper": 2.880},
                    "false_note-true_note": {"mean": 4.355, "lower": 4.048, "upper": 4.654},
                }
            }
        },
        "shown": {"executed": {"nonlinear": {"mean_effect_pp": 11.44}, "linear": {"mean_effect_pp": -1.06}}},
    },
)
