"""Each generated regime has the mechanism it states, and its data come from named streams."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy.stats import kurtosis
from sklearn.linear_model import LogisticRegression

from predictive_credit.errors import BadConfig
from predictive_credit.studies import workers
from predictive_credit.studies.controlled import fitting, regimes
from predictive_credit.studies.controlled.fitting import Scores, Trial
from predictive_credit.studies.controlled.interventions import RECIPES
from predictive_credit.studies.controlled.regimes import REGIMES, Sample
from tests.small_controlled import HERE, SEED, config

NAMES = tuple(RECIPES)
NUMBERS = range(101, 107)  # neither the study's seeds nor the burn-in's
Means = dict[tuple[str, str], Scores]


@pytest.fixture(scope="module")
def means() -> Means:
    """Mean changes over six data sets, by regime and intervention."""
    found: Means = {}
    for regime in REGIMES:
        data = [regimes.dataset(regime, number, seed=SEED) for number in NUMBERS]
        trials = [Trial(dataset=one, interventions=NAMES) for one in data]
        averages = np.mean(np.array(workers.run(fitting.changes, trials, HERE, title="test")), axis=0)
        found |= {(regime, name): Scores(*averages[j]) for j, name in enumerate(NAMES)}
    return found


def held_out(regime: str, number: int) -> Sample:
    return regimes.dataset(regime, number, seed=SEED).held_out


def coefficients(inputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Sizes of the coefficients that thousands of rows give a nearly unpenalised model."""
    size: np.ndarray = np.abs(LogisticRegression(C=100.0, max_iter=1000).fit(inputs, labels).coef_[0])
    return size


def test_quadratic_features_help_where_the_boundary_is_curved_and_nowhere_else(means: Means):
    assert means["quadratic_boundary", "quadratic_features"].accuracy_pp > 10
    assert means["quadratic_boundary", "quadratic_features"].log_loss < -0.1
    for regime in set(REGIMES) - {"quadratic_boundary"}:
        assert means[regime, "quadratic_features"].accuracy_pp < -1


def test_class_weights_cost_accuracy_and_log_loss_where_one_class_is_rare(means: Means):
    assert means["class_imbalance", "class_weights"].accuracy_pp < -5
    assert means["class_imbalance", "class_weights"].log_loss > 0.1
    assert abs(means["heavy_tails", "class_weights"].accuracy_pp) < 1


def test_irrelevant_features_are_answered_by_selection_and_by_a_stronger_penalty(means: Means):
    assert means["irrelevant_features", "select_features"].accuracy_pp > 1
    for name in ("select_features", "stronger_l2"):
        assert means["irrelevant_features", name].log_loss < -0.05
    assert means["irrelevant_features", "weaker_l2"].log_loss > 0.1


def test_clipping_helps_where_tails_are_heavy(means: Means):
    assert means["heavy_tails", "clip_features"].accuracy_pp > 1
    assert means["heavy_tails", "clip_features"].log_loss < -0.03
    for regime in set(REGIMES) - {"heavy_tails", "small_sample"}:
        assert abs(means[regime, "clip_features"].accuracy_pp) < 1


def test_noisy_labels_and_few_rows_punish_a_weaker_penalty(means: Means):
    assert means["label_noise", "stronger_l2"].log_loss < 0 < means["label_noise", "weaker_l2"].log_loss
    assert means["small_sample", "weaker_l2"].log_loss > 0.1


@pytest.mark.parametrize("number", NUMBERS)
def test_the_curved_boundary_is_in_the_squares_of_three_features(number: int):
    sample = held_out("quadratic_boundary", number)
    size = coefficients(sample.inputs**2, sample.labels)
    assert set(np.argsort(size)[-3:]) == {0, 1, 2}
    assert size[3:].max() < 0.3 * size[:3].min()


@pytest.mark.parametrize("number", NUMBERS)
def test_at_most_five_of_the_many_features_bear_on_the_class(number: int):
    sample = held_out("irrelevant_features", number)
    size = coefficients(sample.inputs, sample.labels)
    assert size[5:].max() < 0.3 < size[:5].max()


@pytest.mark.parametrize("number", NUMBERS)
def test_noise_caps_what_any_model_can_reach_on_the_held_out_rows(number: int):
    sample = held_out("label_noise", number)
    model = LogisticRegression().fit(sample.inputs, sample.labels)
    assert 0.6 < model.score(sample.inputs, sample.labels) < 0.9


@pytest.mark.parametrize("number", NUMBERS)
def test_tails_are_heavy_and_classes_unequal_where_they_are_said_to_be(number: int):
    assert kurtosis(held_out("heavy_tails", number).inputs, axis=0).min() > 3
    assert 0.04 < held_out("class_imbalance", number).labels.mean() < 0.18
    for regime in set(REGIMES) - {"heavy_tails"}:
        assert kurtosis(held_out(regime, number).inputs, axis=0).max() < 1


@pytest.mark.parametrize("regime", REGIMES)
def test_rows_and_features_stay_within_what_the_mechanism_says_and_use_that_room(regime: str):
    mechanism = REGIMES[regime].mechanism
    features, rows = (
        tuple(map(int, re.search(rf"(\d+) to (\d+) (?:[\w-]+ )?{what}", mechanism).groups()))  # type: ignore[union-attr]
        for what in ("features", "training rows")
    )
    samples = [regimes.dataset(regime, number, seed=SEED).train for number in range(1, 41)]
    for (least, most), seen in (
        (features, [sample.inputs.shape[1] for sample in samples]),
        (rows, [len(sample.labels) for sample in samples]),
    ):
        assert least <= min(seen) < max(seen) <= most
        assert len(set(seen)) >= min(5, most - least)


@pytest.mark.parametrize("regime", REGIMES)
def test_the_same_names_give_the_same_data_and_any_other_name_gives_others(regime: str):
    def drawn(number: int, seed: int) -> bytes:
        data = regimes.dataset(regime, number, seed=seed)
        return data.train.inputs.tobytes() + data.held_out.labels.tobytes()

    assert drawn(1, 1) == drawn(1, 1)
    assert len({drawn(1, 1), drawn(2, 1), drawn(1, 2)}) == 3


@pytest.mark.parametrize("regime", REGIMES)
def test_more_held_out_rows_leave_the_training_rows_as_they_are(regime: str, monkeypatch: pytest.MonkeyPatch):
    before = regimes.dataset(regime, 1, seed=SEED)
    monkeypatch.setattr(regimes, "HELD_OUT", regimes.HELD_OUT + 1)
    after = regimes.dataset(regime, 1, seed=SEED)
    assert len(after.held_out.labels) == len(before.held_out.labels) + 1
    np.testing.assert_array_equal(after.train.inputs, before.train.inputs)
    np.testing.assert_array_equal(after.train.labels, before.train.labels)


@pytest.mark.parametrize("regime", REGIMES)
def test_no_training_row_is_held_out_as_well(regime: str):
    for number in NUMBERS:
        data = regimes.dataset(regime, number, seed=SEED)
        rows = [set(map(tuple, sample.inputs.tolist())) for sample in (data.train, data.held_out)]
        assert len(rows[0]) == len(data.train.inputs)
        assert not rows[0] & rows[1]


@pytest.mark.parametrize("regime", REGIMES)
def test_labels_are_zeros_and_ones_and_both_occur(regime: str):
    for number in NUMBERS:
        data = regimes.dataset(regime, number, seed=SEED)
        assert set(data.train.labels) == set(data.held_out.labels) == {0.0, 1.0}
        assert len(data.held_out.labels) == regimes.HELD_OUT == len(data.held_out.inputs)


def test_all_six_regimes_are_taken_unless_some_are_named():
    assert regimes.chosen(config()) == tuple(REGIMES)
    assert regimes.chosen(config(regimes=("small_sample", "label_noise"))) == ("small_sample", "label_noise")
    assert set(regimes.datasets(config(regimes=("heavy_tails",)), seed=SEED)) == {
        ("heavy_tails", seed) for seed in "1234"
    }


def test_an_unknown_regime_is_one_sentence_with_the_known_ones():
    with pytest.raises(
        BadConfig, match="no regime 'cubic'; there are quadratic_boundary, label_noise, class"
    ):
        regimes.chosen(config(regimes=("small_sample", "cubic")))
