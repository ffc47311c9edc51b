"""The controlled study: does a card help to predict what a change to a logistic regression does?

Six regimes that the study generates itself, twenty seeds, half of the states with an elicited card
and half with an ordinary note. The parent is a standardised logistic regression; one of six changes
is planned on it; outcomes are the changes in held-out accuracy and in log loss.
"""

from __future__ import annotations

from predictive_credit.contexts import Showing
from predictive_credit.decisions import Decision
from predictive_credit.records import Context
from predictive_credit.studies.controlled import published, rule, suite, textbook
from predictive_credit.studies.controlled.config import ControlledConfig
from predictive_credit.studies.controlled.interventions import TARGETS
from predictive_credit.studies.study import Findings, Level, Study


def decide(study: str, findings: Findings) -> Decision:
    """The frozen rule reads the point-error gains of both targets."""
    return rule.decide(study, {t: found["point_error"] for t, found in findings.contrasts.items()})


CONTROLLED = Study(
    name="controlled",
    timing="prospective",
    n_tasks=6,
    n_states=120,  # 6 regimes x 20 seeds, every other one with an elicited card
    n_units=900,  # 120 sources, 60 ordinary notes to extract from, and 120 x 3 contexts x 2 calls
    task_words=("regime", "regimes"),
    targets=TARGETS,
    levels=(Level(name="regime", is_drawn=False), Level(name="state", is_drawn=True)),
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source=None, donor=False, form="card"),
        Context.DONOR: Showing(source=None, donor=True, form="card"),
    },
    calls_per_context=suite.CALLS,
    extracted=("ordinary",),  # an elicited card is labelled lines, read as they stand
    primary_loss="point_error",
    one_sided_level=rule.LEVEL,
    rule=rule,
    decide=decide,
    textbook=textbook.TEXTBOOK,
    config=ControlledConfig,
    features=suite.features,
    count=suite.count,
    states=suite.states,
    burn_in=suite.burn_in,
    execute=suite.execute,
    donors=suite.donors,
    published=published.FIGURES,
)
