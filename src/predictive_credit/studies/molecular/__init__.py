"""The molecular study: does a card help to predict what a change to an assay model does?

Twelve assays, three label fractions, two seeds. The parent is an L2 logistic regression on Morgan
fingerprints; one of six changes is planned on it; the outcome is the change in held-out ROC AUC.
"""

from __future__ import annotations

from predictive_credit.records import Context
from predictive_credit.studies.molecular import published, rule
from predictive_credit.studies.study import Study

MOLECULAR = Study(
    name="molecular",
    timing="prospective",
    n_clusters=12,
    n_states=72,  # 12 endpoints x 3 label fractions x 2 seeds
    contexts=(Context.DESCRIPTION, Context.MATCHED, Context.DONOR),
    calls_per_context=2,
    source_units=72,  # one elicited card per state: 72 x 3 x 2 + 72 = 504 units
    unit="ROC AUC",
    outcome_bounds=(-1.0, 1.0),
    primary_loss="interval_score",
    one_sided_level=rule.LEVEL,
    rule=rule.NAME,
    decide=rule.decide,
    published=published.FIGURES,
)
