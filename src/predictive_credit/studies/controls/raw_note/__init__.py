"""The raw note control: the ordinary note as it was written, not the card that was read from it.

The states of the tabular study. Whatever an extractor lost of a note is there again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from predictive_credit.config import ControlConfig
from predictive_credit.contexts import Showing
from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision
from predictive_credit.panel import Panel
from predictive_credit.records import Context
from predictive_credit.studies.controls import exploratory, frozen
from predictive_credit.studies.study import Findings, Study
from predictive_credit.studies.tabular import TABULAR
from predictive_credit.studies.tabular.interventions import TARGET

_STATES = frozen.states("tabular")


def decide(study: str, findings: Findings) -> Decision:
    """Nothing is decided."""
    return exploratory.decide(study)


def shows(
    panels: Mapping[str, Panel], contrasts: Mapping[str, Mapping[str, Mapping[str, Contrast]]]
) -> dict[str, Any]:
    """Scaled gains: over a task's mean absolute outcome. Balanced over tasks with its t interval, and the
    mean over states with its percentile interval, which is the same where tasks have equally many."""
    found = contrasts[TARGET.name].get("point_error_scaled", {})
    keys = ("task_balanced", "t_lower", "t_upper", "mean", "lower", "upper")
    return {pair: {key: getattr(c, key) for key in keys} for pair, c in found.items()}


RAW_NOTE = Study(
    name="raw_note",
    timing="post-outcome",
    n_tasks=24,
    n_states=144,
    n_units=864,  # 144 x 3 contexts x 2 calls
    task_words=TABULAR.task_words,
    targets=(TARGET,),
    levels=TABULAR.levels,
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source="ordinary", donor=False, form="text"),
        Context.DONOR: Showing(source="ordinary", donor=True, form="text"),
    },
    calls_per_context=frozen.CALLS,
    extracted=(),
    primary_loss="point_error",
    one_sided_level=exploratory.LEVEL,
    rule=exploratory,
    explores=True,
    decide=decide,
    textbook=None,
    config=ControlConfig,
    features=frozen.features,
    count=None,
    states=_STATES,
    burn_in=frozen.burn_in,
    execute=frozen.execute,
    donors=frozen.donors,
    given=frozen.given(_STATES, (TARGET,), sources=("ordinary",)),
    reuses="tabular",
    shows=shows,
    published={
        "source": "Predictive Credit (2026), raw note: 144 tabular states, DeepSeek V4 Pro",
        "contexts": {
            "skill": {
                "D": {"point_mae_call": 0.08257},
                "M": {"point_mae_call": 0.08311},
                "S": {"point_mae_call": 0.08197},
            }
        },
        "contrasts": {
            "skill": {
                "point_error_scaled": {
                    "D-M": {"mean": -0.0906, "lower": -0.2687, "upper": 0.0403},
                    "S-M": {"mean": 0.0064, "lower": -0.0964, "upper": 0.0898},
                }
            }
        },
    },
)
