"""The studies, by the name under which a configuration asks for them.

A further study is a folder here and its name in this tuple.
"""

from __future__ import annotations

from predictive_credit.studies.controlled import CONTROLLED
from predictive_credit.studies.controls import CONTROLS
from predictive_credit.studies.molecular import MOLECULAR
from predictive_credit.studies.study import Study
from predictive_credit.studies.table import TABLE
from predictive_credit.studies.tabular import TABULAR

STUDIES: dict[str, Study] = {
    study.name: study for study in (CONTROLLED, MOLECULAR, TABULAR, TABLE, *CONTROLS)
}
