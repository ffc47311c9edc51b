"""The declared studies: their published counts, what they show, and the source of their rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from predictive_credit import compose
from predictive_credit.records import Context
from predictive_credit.stages.counts import counts
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.molecular import MOLECULAR, rule

PLANNED = {"controlled": (120, 900), "molecular": (72, 504), "tabular": (144, 2304)}


@pytest.mark.parametrize(("name", "planned"), PLANNED.items())
def test_the_full_scale_of_the_configuration_is_the_declared_one(root: Path, name, planned):
    params = study_params.parse(compose.compose(root, ["scale=full"]), origin="conf/")
    found = counts(params, name)
    assert (found.states, found.units) == planned == (STUDIES[name].n_states, STUDIES[name].n_units)


def test_studies_are_found_by_their_own_name_and_their_folder_bears_it():
    for name, study in STUDIES.items():
        assert name == study.name
        assert study.decide.__module__.rpartition(".")[2] == name
        # Controls that test no claim share the rule that says so.
        assert study.explores or Path(str(study.rule.__file__)).parent.name == name


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_asks_the_description_first_and_shows_nothing_in_it(name):
    study = STUDIES[name]
    first, *others = study.contexts
    assert first is Context.DESCRIPTION
    assert study.contexts[first] is None
    assert all(study.contexts[context] is not None for context in others)


def test_every_study_without_given_explanations_has_a_textbook():
    for study in STUDIES.values():
        assert (study.textbook is None) == (study.given is not None)


@pytest.mark.parametrize("name", STUDIES)
def test_the_frozen_rules_source_is_the_file_that_decides(name):
    source = STUDIES[name].rule_source
    assert b"Frozen rule" in source
    assert b"def decide(" in source


def test_the_molecular_rule_keeps_its_margin_and_level():
    assert b"MARGIN = 0.005" in MOLECULAR.rule_source
    assert MOLECULAR.one_sided_level == rule.LEVEL
