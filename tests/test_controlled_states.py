"""The public side of a controlled state: conditions, donors, and that no held-out row reaches it."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from predictive_credit import canonical
from predictive_credit.errors import BadConfig
from predictive_credit.records import State
from predictive_credit.studies.controlled import regimes, states
from predictive_credit.studies.controlled.execute import execute
from predictive_credit.studies.controlled.interventions import INTERVENTIONS
from predictive_credit.studies.controlled.regimes import REGIMES, Dataset, Datasets, Sample
from tests.small_controlled import HERE, SEED, TWENTY, config

CONFIG = config()


@pytest.fixture(scope="module")
def data() -> Datasets:
    return regimes.datasets(CONFIG, seed=SEED)


@pytest.fixture(scope="module")
def made(data: Datasets) -> tuple[State, ...]:
    return states.states(CONFIG, data, study="controlled", execution=HERE)


@pytest.fixture(scope="module")
def full() -> tuple[State, ...]:
    """The population at full scale."""
    asked = config(seeds=TWENTY)
    everything = regimes.datasets(asked, seed=SEED)
    return states.states(asked, everything, study="controlled", execution=HERE)


def flipped(sample: Sample) -> Sample:
    return replace(sample, labels=1.0 - sample.labels)


def test_there_are_120_states_half_of_them_with_an_ordinary_note(full: tuple[State, ...]):
    assert len({state.id for state in full}) == 120
    assert Counter(state.sources for state in full) == {("elicited",): 60, ("ordinary",): 60}
    assert {state.seed for state in full if state.sources == ("ordinary",)} == set(range(2, 21, 2))


def test_ids_are_paths_sorted_and_a_cluster_is_regime_and_seed(made: tuple[State, ...]):
    assert [state.id for state in made] == [
        f"controlled/{regime}/{seed}" for regime in sorted(REGIMES) for seed in CONFIG.seeds
    ]
    for state in made:
        assert state.cluster == (state.task, str(state.seed))
        assert state.budget is None


def test_fewer_seeds_or_regimes_are_a_subset_of_more(made: tuple[State, ...], full: tuple[State, ...]):
    asked = config(regimes=("small_sample", "label_noise"))
    some = regimes.datasets(asked, seed=SEED)
    two = states.states(asked, some, study="controlled", execution=HERE)
    lines = [set(map(canonical.encode, population)) for population in (two, made, full)]
    assert lines[0] < lines[1] < lines[2]


def test_no_held_out_label_reaches_a_state_though_every_one_reaches_the_outcomes(
    data: Datasets, made: tuple[State, ...]
):
    other = {key: Dataset(train=one.train, held_out=flipped(one.held_out)) for key, one in data.items()}
    again = states.states(CONFIG, other, study="controlled", execution=HERE)
    assert canonical.encode(again) == canonical.encode(made)
    accuracy, inverted = (
        [o.value or 0.0 for o in execute(made, d, execution=HERE) if o.target == "accuracy_pp"]
        for d in (data, other)
    )
    # What was right becomes wrong, so every change in accuracy turns its sign.
    assert inverted == pytest.approx([-value for value in accuracy], abs=1e-9)
    assert any(accuracy)


def test_a_training_label_does_reach_the_state(data: Datasets, made: tuple[State, ...]):
    other = {key: Dataset(train=flipped(one.train), held_out=one.held_out) for key, one in data.items()}
    again = states.states(CONFIG, other, study="controlled", execution=HERE)
    changed = [
        a.facts["positive_percent"] != b.facts["positive_percent"] for a, b in zip(made, again, strict=True)
    ]
    assert sum(changed) > len(changed) / 2


def test_facts_are_those_of_the_training_rows(data: Datasets, made: tuple[State, ...]):
    for state in made:
        train = data[state.cluster].train
        assert state.facts["n_train"] == len(train.labels)
        assert state.facts["n_features"] == train.inputs.shape[1]
        assert state.facts["positive_percent"] == pytest.approx(100 * train.labels.mean(), abs=0.05)
        assert state.facts["n_held_out"] == 4000


def test_seeds_of_a_regime_differ_in_their_public_facts(full: tuple[State, ...]):
    for regime in REGIMES:
        own = [state.facts for state in full if state.task == regime]
        for fact in ("n_train", "n_features", "positive_percent", "cv_accuracy"):
            assert len({facts[fact] for facts in own}) >= 4


def test_cross_validated_levels_are_scikit_learns(data: Datasets):
    for regime in ("label_noise", "class_imbalance"):
        train = data[regime, "1"].train
        found = states.cross_validated(train)
        model = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-6, max_iter=5000))
        theirs = cross_validate(
            model, train.inputs, train.labels, cv=StratifiedKFold(3), scoring=("accuracy", "neg_log_loss")
        )
        assert found is not None
        assert found.accuracy_pp == pytest.approx(100 * theirs["test_accuracy"].mean())
        assert found.log_loss == pytest.approx(-theirs["test_neg_log_loss"].mean(), abs=1e-5)


def test_a_class_of_two_has_no_cross_validated_level_and_the_state_says_so(data: Datasets):
    asked = config(regimes=("label_noise",), seeds=(1,))
    full = data["label_noise", "1"]
    rare = replace(full.train, labels=np.array([1.0, 1.0] + [0.0] * (len(full.train.labels) - 2)))
    scarce: Datasets = {("label_noise", "1"): replace(full, train=rare)}
    (state,) = states.states(asked, scarce, study="controlled", execution=HERE)
    assert (state.facts["cv_accuracy"], state.facts["cv_log_loss"]) == (None, None)
    assert "levels are not available" in state.description


def test_heavy_tails_are_counted_where_they_were_planted(made: tuple[State, ...]):
    for state in made:
        count, n_features = state.facts["n_heavy_tailed"], state.facts["n_features"]
        assert isinstance(count, int)
        assert isinstance(n_features, int)
        assert (count > n_features / 2) == (state.task == "heavy_tails")


def test_a_description_is_a_hundred_plain_words_with_levels_and_no_size_of_a_change(
    full: tuple[State, ...],
):
    for state in full:
        assert 80 <= len(state.description.split()) <= 125
        assert state.intervention.text in state.description
        facts = state.facts
        decimals = set(re.findall(r"\d+\.\d+", state.description)) - {"0.1"}  # 0.1 is a penalty
        assert decimals == {
            f"{facts['positive_percent']:.1f}", f"{facts['cv_accuracy']:.1f}", f"{facts['cv_log_loss']:.3f}",
        }  # fmt: skip
        assert not {"increase", "decrease", "improve"} & set(re.findall(r"\w+", state.description))


def test_a_description_tells_neither_condition_nor_regime_by_name(full: tuple[State, ...]):
    for state in full:
        assert not re.search(r"elicited|ordinary|card|note\b", state.description)
        assert state.task not in state.description
        assert state.task.replace("_", " ") not in state.description


def test_the_description_of_two_conditions_is_made_of_the_same_sentences(full: tuple[State, ...]):
    """Numbers and the planned change apart, no word depends on which explanation is asked."""

    def bare(state: State) -> str:
        return re.sub(r"[\d.,]+", "#", state.description.replace(state.intervention.text, ""))

    for regime in REGIMES:
        wordings = {
            source: {bare(s) for s in full if s.task == regime and s.sources == (source,)}
            for source in ("elicited", "ordinary")
        }
        assert wordings["elicited"] == wordings["ordinary"]


def test_a_donor_is_of_the_same_regime_and_condition_and_has_another_intervention(
    full: tuple[State, ...],
):
    by_id = {state.id: state for state in full}
    donors = states.donors(full, config(seeds=TWENTY))
    assert set(donors) == set(by_id)
    for state_id, donor_id in donors.items():
        state, donor = by_id[state_id], by_id[donor_id]
        assert (donor.task, donor.sources) == (state.task, state.sources)
        assert donor.seed != state.seed
        assert donor.intervention.name != state.intervention.name


def test_a_donor_is_the_next_such_seed_in_a_circle(made: tuple[State, ...]):
    donors = states.donors(made, CONFIG)
    for regime in REGIMES:
        path = f"controlled/{regime}"
        assert [donors[f"{path}/{seed}"] for seed in (1, 2, 3, 4)] == [
            f"{path}/{seed}" for seed in (3, 4, 1, 2)
        ]


def test_a_neighbour_with_the_same_intervention_is_passed_over(made: tuple[State, ...]):
    asked = config(seeds=(1, 2, 3, 4, 5, 6))
    own = [s for s in made if s.task == "label_noise" and s.sources == ("elicited",)]
    first, third = sorted(own, key=lambda state: state.seed or 0)
    between = replace(first, id="controlled/label_noise/2", cluster=("label_noise", "2"), seed=2)
    donors = states.donors([first, between, third], asked)
    assert donors == {first.id: third.id, between.id: third.id, third.id: first.id}


@pytest.mark.parametrize("seeds", [(1,), (1, 2), (1, 2, 3)])
def test_a_state_without_a_donor_is_one_sentence(seeds: tuple[int, ...], data: Datasets):
    asked = config(regimes=("label_noise",), seeds=seeds)
    few = states.states(asked, data, study="controlled", execution=HERE)
    with pytest.raises(
        BadConfig, match=r"no other such state of label_noise has another intervention.*four seeds"
    ):
        states.donors(few, asked)


def test_the_order_of_the_seeds_decides_who_is_elicited(data: Datasets):
    asked = config(regimes=("label_noise",), seeds=(4, 3, 2, 1))
    turned = states.states(asked, data, study="controlled", execution=HERE)
    assert {state.seed: state.sources[0] for state in turned} == {
        4: "elicited", 3: "ordinary", 2: "elicited", 1: "ordinary",
    }  # fmt: skip
    first = list(REGIMES).index("label_noise")
    assert {s.seed: s.intervention for s in turned}[4] == INTERVENTIONS[first]
