"""The declared studies: their published counts, and the source of their rule."""

from __future__ import annotations

from pathlib import Path

from predictive_credit.studies import STUDIES
from predictive_credit.studies.molecular import MOLECULAR, rule


def test_the_molecular_study_plans_72_states_and_504_units():
    assert (MOLECULAR.n_states, MOLECULAR.n_units) == (72, 504)
    assert MOLECULAR.n_units - MOLECULAR.source_units == 432
    assert MOLECULAR.n_states == MOLECULAR.n_clusters * 3 * 2


def test_studies_are_found_by_their_own_name():
    assert all(name == study.name for name, study in STUDIES.items())
    assert STUDIES["molecular"] is MOLECULAR


def test_the_frozen_rules_source_is_the_file_that_decides():
    assert MOLECULAR.rule_source == Path(rule.__file__).read_bytes()
    assert b"MARGIN = 0.005" in MOLECULAR.rule_source
    assert MOLECULAR.one_sided_level == rule.LEVEL
