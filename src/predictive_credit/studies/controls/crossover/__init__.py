"""The crossover control: which part of a card carries what?

The states of the molecular study under eight contexts: no card, the full card, its numbers, its
mechanism, each with the donor's other half, the donor's card, and six empty lines.
"""

from __future__ import annotations

from predictive_credit.config import ControlConfig
from predictive_credit.contexts import Showing
from predictive_credit.decisions import Decision
from predictive_credit.records import Context
from predictive_credit.studies.controls import exploratory, frozen
from predictive_credit.studies.controls.crossover.components import components
from predictive_credit.studies.molecular import MOLECULAR
from predictive_credit.studies.molecular.interventions import TARGET
from predictive_credit.studies.study import Findings, Study

PARTS = (
    Context.NUMBERS_ONLY, Context.MECHANISM_ONLY, Context.DONOR_MECHANISM, Context.DONOR_NUMBERS,
    Context.DONOR, Context.SCAFFOLD,
)  # fmt: skip
_STATES = frozen.states("molecular")


def decide(study: str, findings: Findings) -> Decision:
    """Nothing is decided."""
    return exploratory.decide(study)


CROSSOVER = Study(
    name="crossover",
    timing="post-outcome",
    n_tasks=12,
    n_states=72,
    n_units=1152,  # 72 x 8 contexts x 2 calls
    task_words=MOLECULAR.task_words,
    targets=(TARGET,),
    levels=MOLECULAR.levels,
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source="elicited", donor=False, form="card"),
        Context.NUMBERS_ONLY: Showing(source="numbers", donor=False, form="text"),
        Context.MECHANISM_ONLY: Showing(source="mechanism", donor=False, form="text"),
        Context.DONOR_MECHANISM: Showing(source="donor_mechanism", donor=False, form="text"),
        Context.DONOR_NUMBERS: Showing(source="donor_numbers", donor=False, form="text"),
        Context.DONOR: Showing(source="elicited", donor=True, form="card"),
        Context.SCAFFOLD: Showing(source="scaffold", donor=False, form="text"),
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
    given=frozen.given(_STATES, (TARGET,), sources=("elicited",), compose=components),
    # Each part against no card, against six empty lines, and the halves against each other.
    pairs=(
        *((Context.DESCRIPTION, part) for part in PARTS),
        *((Context.SCAFFOLD, part) for part in PARTS[:-1]),
        (Context.MECHANISM_ONLY, Context.NUMBERS_ONLY),
        (Context.DONOR_NUMBERS, Context.DONOR_MECHANISM),
    ),
    reuses="molecular",
    composed=components,
    published={
        "source": "Predictive Credit (2026), crossover: 72 molecular states, DeepSeek V4 Pro",
        "contexts": {
            "roc_auc": {"D": {"drift": 0.00427, "point_mae_call": 0.01738}, "M": {"drift": 0.00319}}
        },
        "contrasts": {
            "roc_auc": {
                "drift": {
                    "D-M": {"mean": 0.00108, "lower": -0.00053, "upper": 0.00283},
                    "D-numbers": {"mean": 0.00181, "lower": 0.00005, "upper": 0.00383},
                },
                # Printed as the change in error when the donor's mechanism takes the matched one's place,
                # which is the gain of the full card over it.
                "point_error": {"donor_mechanism-M": {"mean": -0.00047, "lower": -0.00228, "upper": 0.00104}},
            }
        },
    },
)
