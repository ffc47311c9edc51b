"""Each prospective study's plan for its power, by the study's name in STUDIES.

It stands beside the Study record and not in it: what a study is frozen with stays as it was. Controls are
post-outcome and have none.
"""

from __future__ import annotations

from predictive_credit.studies.asks import Plan
from predictive_credit.studies.controlled import power as controlled
from predictive_credit.studies.molecular import power as molecular
from predictive_credit.studies.table import power as table
from predictive_credit.studies.tabular import power as tabular

PLANS: dict[str, Plan] = {
    "controlled": controlled.PLAN,
    "molecular": molecular.PLAN,
    "tabular": tabular.PLAN,
    "table": table.PLAN,
}
