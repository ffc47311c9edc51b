"""The replay control: another forecaster on the molecular study's stimuli, byte for byte."""

from __future__ import annotations

from predictive_credit.config import ControlConfig
from predictive_credit.decisions import Decision
from predictive_credit.records import Context
from predictive_credit.studies.controls import frozen
from predictive_credit.studies.controls.replay import rule
from predictive_credit.studies.molecular import MOLECULAR
from predictive_credit.studies.molecular.interventions import TARGET
from predictive_credit.studies.study import Findings, Study

_STATES = frozen.states("molecular")


def decide(study: str, findings: Findings) -> Decision:
    """The frozen rule reads drift, point-error and interval-score gains, and how many replies were read."""
    panel = findings.panels[TARGET.name]
    readable = 1.0 - float(panel.is_fallback.mean())
    # A panel has no gap: whoever made it refused one.
    return rule.decide(study, contrasts=findings.contrasts[TARGET.name], readable=readable, unanswered=0)


REPLAY = Study(
    name="replay",
    timing="post-outcome",
    n_tasks=12,
    n_states=72,
    n_units=432,  # 72 x 3 contexts x 2 calls
    task_words=MOLECULAR.task_words,
    targets=(TARGET,),
    levels=MOLECULAR.levels,
    contexts=MOLECULAR.contexts,
    calls_per_context=frozen.CALLS,
    extracted=(),
    primary_loss="point_error",
    one_sided_level=rule.LEVEL,
    rule=rule,
    decide=decide,
    textbook=None,
    config=ControlConfig,
    features=frozen.features,
    count=None,
    states=_STATES,
    burn_in=frozen.burn_in,
    execute=frozen.execute,
    donors=frozen.donors,
    given=frozen.given(_STATES, (TARGET,), sources=("elicited",)),
    also_primary=(
        ("drift", "D-M"),
        ("drift", "D-S"),
        ("drift", "S-M"),
        ("point_error", "D-S"),
        ("interval_score", "S-M"),
    ),
    pairs=((Context.DESCRIPTION, Context.DONOR),),
    reuses="molecular",
    other_forecaster=True,
    published={
        "source": "Predictive Credit (2026), replay: 72 molecular states, DeepSeek V4 Flash",
        "decision": "replication_not_supported",
        "contexts": {
            "roc_auc": {
                "D": {"drift": 0.00704, "point_mae_call": 0.01823},
                "M": {"point_mae_call": 0.02020},
                "S": {"point_mae_call": 0.02013},
            }
        },
        "contrasts": {
            "roc_auc": {
                "drift": {"D-M": {"reduction_share": 0.606}, "D-S": {"reduction_share": 0.592}},
                "interval_score": {"S-M": {"one_sided_lower": -0.008096, "one_sided_upper": 0.014485}},
            }
        },
    },
)
