"""The tabular study: do elicited cards form, and what do they do to forecasts of a model's change?

Twelve classification and twelve regression tables, three nested budgets, two seeds. The parent is a
modest LightGBM model; one of six changes is planned on it; the outcome is the change in held-out
skill. Elicited cards are compared with what is read out of ordinary notes.
"""

from __future__ import annotations

from predictive_credit.contexts import Showing
from predictive_credit.decisions import Decision
from predictive_credit.records import Context
from predictive_credit.studies.study import Findings, Level, Study
from predictive_credit.studies.tabular import published, rule, suite, textbook
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.donors import donors
from predictive_credit.studies.tabular.interventions import TARGET


def decide(study: str, findings: Findings) -> Decision:
    """The frozen rule reads formation, the point-error gains and the drift gains."""
    found = findings.contrasts[TARGET.name]
    formation = None if findings.formation is None else findings.formation.lower
    return rule.decide(study, formation=formation, point=found["point_error"], drift=found["drift"])


TABULAR = Study(
    name="tabular",
    timing="prospective",
    n_tasks=24,
    n_states=144,  # 24 tasks x 3 budgets x 2 seeds
    n_units=2304,  # two sources a state, each extracted, and 144 x 6 contexts x 2 calls
    task_words=("task", "tasks"),
    targets=(TARGET,),
    levels=(
        Level(name="kind", is_drawn=False),
        Level(name="task", is_drawn=True),
        Level(name="state", is_drawn=False),
    ),
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source="elicited", donor=False, form="card"),
        Context.DONOR: Showing(source="elicited", donor=True, form="card"),
        Context.ORDINARY: Showing(source="ordinary", donor=False, form="card"),
        Context.OTHER_TASK: Showing(source="elicited", donor=True, form="card"),
        Context.NUMBERS: Showing(source="elicited", donor=False, form="numbers"),
    },
    calls_per_context=suite.CALLS,
    extracted=("elicited", "ordinary"),
    primary_loss="point_error",
    also_primary=(("drift", "D-M"),),
    one_sided_level=rule.LEVEL,
    rule=rule,
    decide=decide,
    textbook=textbook.TEXTBOOK,
    config=TabularConfig,
    features=suite.features,
    count=suite.count,
    states=suite.states,
    burn_in=suite.burn_in,
    execute=suite.execute,
    donors=donors,
    published=published.FIGURES,
)
