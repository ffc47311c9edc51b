"""The controlled study as it is declared: counts, configuration, cards, and how it is read alone."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from predictive_credit import tables
from predictive_credit.config import CsvPool, RegimesPool
from predictive_credit.errors import BadConfig
from predictive_credit.records import Context
from predictive_credit.studies.controlled import CONTROLLED, decide, suite, textbook
from predictive_credit.studies.controlled.config import ControlledConfig
from predictive_credit.studies.controlled.interventions import INTERVENTIONS
from predictive_credit.studies.controlled.regimes import REGIMES
from predictive_credit.studies.study import Findings, Setting
from tests.conftest import ROOT
from tests.small_controlled import HERE, SEED, TWENTY, config
from tests.test_controlled_rule import CREDIT, HARM, all_four

POOL = RegimesPool(kind="regimes", watch="regimes.py")


def setting(folder: Path, asked: ControlledConfig) -> Setting:
    return Setting(
        name="controlled", config=asked, seed=SEED, execution=HERE, features=folder, burn_in=folder
    )


def test_at_full_scale_120_states_plan_900_units():
    counts = suite.count(config(seeds=TWENTY), {"regimes": POOL})
    assert counts.states == CONTROLLED.n_states == 120
    assert (counts.sources, counts.extractions, counts.forecasts) == (120, 60, 720)
    assert counts.units == CONTROLLED.n_units == 900
    assert counts.design == "6 regimes x 20 seeds"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (24, 24, 12, 144)),
        ({"seeds": (1, 2, 3)}, (18, 18, 6, 108)),
        ({"regimes": ("label_noise",), "seeds": (9,), "contexts": ("D",)}, (1, 1, 0, 2)),
    ],
)
def test_counts_are_those_of_the_states_that_are_made(
    changes: dict[str, Any], expected: tuple[int, ...], tmp_path: Path
):
    asked = config(**changes)
    counts = suite.count(asked, {"regimes": POOL})
    assert (counts.states, counts.sources, counts.extractions, counts.forecasts) == expected
    made = CONTROLLED.states(setting(tmp_path, asked))
    assert len(made) == counts.states
    assert sum(len(state.sources) for state in made) == counts.sources
    assert sum(s in CONTROLLED.extracted for state in made for s in state.sources) == counts.extractions
    assert len(CONTROLLED.levels) == len(made[0].cluster)


def test_a_suite_runs_from_states_to_outcomes_and_donors(tmp_path: Path):
    asked = config(regimes=("small_sample",))
    made = CONTROLLED.states(setting(tmp_path, asked))
    outcomes = CONTROLLED.execute(setting(tmp_path, asked), made)
    assert {o.target for o in outcomes} == {target.name for target in CONTROLLED.targets}
    for outcome, target in zip(outcomes, CONTROLLED.targets * len(made), strict=True):
        assert outcome.value is not None
        assert target.lower <= outcome.value <= target.upper
    assert set(CONTROLLED.donors(asked, made)[Context.DONOR]) == {state.id for state in made}
    assert CONTROLLED.donors(replace(asked, contexts=(Context.DESCRIPTION,)), made) == {}


def test_the_rule_is_given_the_point_errors_of_both_targets():
    def found(gains: Any) -> Findings:
        other = all_four(HARM)
        return Findings(contrasts={t: {"point_error": gains[t], "interval_score": other[t]} for t in gains})

    assert decide("mine", found(all_four(CREDIT))).status == "credit_confirmed"
    assert decide("mine", found(all_four(HARM))).status == "credit_refuted"
    assert decide("mine", found(all_four(CREDIT))).study == "mine"


def test_features_write_each_mechanism_in_words_and_its_sizes(tmp_path: Path):
    counts = CONTROLLED.features(POOL, tmp_path, tmp_path, HERE)
    written = tables.read_json(tmp_path / "regimes.json")["regimes"]
    assert set(written) == set(counts["regimes"]) == set(REGIMES)
    for name, row in written.items():
        assert row["mechanism"] == REGIMES[name].mechanism
        assert counts["regimes"][name].items() <= row.items()
    assert written["class_imbalance"]["positive_percent"]["most"] < 20
    assert written["small_sample"]["train_rows"]["most"] <= 40
    before = (tmp_path / "regimes.json").read_bytes()
    CONTROLLED.features(POOL, tmp_path, tmp_path, HERE)
    assert (tmp_path / "regimes.json").read_bytes() == before


def test_a_pool_of_another_kind_is_one_sentence_and_nothing_is_written(tmp_path: Path):
    table = CsvPool(kind="csv", watch="t", path="t", sha256=None, smiles_column=None, endpoints=None)
    with pytest.raises(BadConfig, match="cannot use a pool of kind csv; give it a pool of kind regimes"):
        CONTROLLED.features(table, tmp_path, tmp_path, HERE)
    assert not list(tmp_path.iterdir())


def test_the_committed_configuration_names_every_key_and_no_other():
    raw = yaml.safe_load((ROOT / "conf" / "study" / "controlled.yaml").read_text())
    assert set(raw) == {field.name for field in fields(ControlledConfig)}
    assert (raw["seeds"], raw["regimes"]) == ("${sizes.controlled.seeds}", "${sizes.controlled.regimes}")
    asked = ControlledConfig(**raw | {"seeds": TWENTY, "regimes": None})
    assert asked == config(seeds=TWENTY)
    assert set(asked.contexts) == set(CONTROLLED.contexts)


def test_a_configuration_lists_what_must_not_repeat_and_refuses_unknown_keys():
    assert config().lists() == {"contexts": ["D", "M", "S"], "seeds": ["1", "2", "3", "4"]}
    assert config(regimes=("label_noise",)).lists()["regimes"] == ["label_noise"]
    for wrong in ({"budgets": (1.0,)}, {"seeds": (0,)}, {"seeds": ("one",)}):
        with pytest.raises(ValidationError):
            config(**wrong)


def test_the_textbook_knows_every_intervention_in_clauses_without_a_full_stop():
    assert list(textbook.PLAYS) == [intervention.name for intervention in INTERVENTIONS]
    for play in textbook.PLAYS.values():
        for field in fields(play):
            clause = getattr(play, field.name)
            assert clause
            assert not clause.endswith(".")


@pytest.mark.parametrize(
    ("accuracy", "factor"), [(75.0, 1.0), (60.0, 1.6), (90.0, 0.5), (99.0, 0.5), (40.0, 2.0), (None, 1.0)]
)
def test_headroom_is_the_parents_error_relative_to_an_ordinary_one(accuracy: float | None, factor: float):
    assert textbook.headroom({"cv_accuracy": accuracy}) == pytest.approx(factor)


def test_the_card_names_the_states_own_numbers_as_far_as_they_are_known(tmp_path: Path):
    (state,) = CONTROLLED.states(setting(tmp_path, config(regimes=("label_noise",), seeds=(1,))))
    said = textbook.here(state.facts)
    assert f"{state.facts['n_train']} rows" in said
    assert f"cross-validated accuracy {state.facts['cv_accuracy']} %" in said
    assert textbook.here({"n_train": 30, "cv_accuracy": None}) == "30 rows"
