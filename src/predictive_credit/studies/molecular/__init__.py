"""The molecular study: does a card help to predict what a change to an assay model does?

Twelve assays, three label fractions, two seeds. The parent is an L2 logistic regression on Morgan
fingerprints; one of six changes is planned on it; the outcome is the change in held-out ROC AUC.
"""

from __future__ import annotations

from predictive_credit.contexts import Showing
from predictive_credit.decisions import Decision
from predictive_credit.records import Context
from predictive_credit.studies.molecular import published, rule, suite, textbook
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.molecular.interventions import TARGET
from predictive_credit.studies.study import Findings, Level, Study


def decide(study: str, findings: Findings) -> Decision:
    """The frozen rule reads the interval-score gains."""
    return rule.decide(study, findings.contrasts[TARGET.name]["interval_score"])


MOLECULAR = Study(
    name="molecular",
    timing="prospective",
    n_tasks=12,
    n_states=72,  # 12 endpoints x 3 label fractions x 2 seeds
    n_units=504,  # one elicited card a state, and 72 x 3 contexts x 2 calls
    task_words=("endpoint", "endpoints"),
    targets=(TARGET,),
    levels=(
        Level(name="endpoint", is_drawn=True),
        Level(name="label fraction", is_drawn=True),
        Level(name="seed", is_drawn=True),
    ),
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source="elicited", donor=False, form="text"),
        Context.DONOR: Showing(source="elicited", donor=True, form="text"),
    },
    calls_per_context=suite.CALLS,
    extracted=(),  # a card is labelled lines, read as they stand
    primary_loss="interval_score",
    one_sided_level=rule.LEVEL,
    rule=rule,
    decide=decide,
    textbook=textbook.TEXTBOOK,
    config=MolecularConfig,
    features=suite.features,
    count=suite.count,
    states=suite.states,
    burn_in=suite.burn_in,
    execute=suite.execute,
    donors=suite.donors,
    published=published.FIGURES,
)
