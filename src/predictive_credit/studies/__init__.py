"""The studies, by the name under which a configuration asks for them."""

from __future__ import annotations

from predictive_credit.studies.molecular import MOLECULAR
from predictive_credit.studies.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (MOLECULAR,)}
