"""Outcomes of the controlled study are what scikit-learn says, in both targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import SelectKBest, f_classif
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from predictive_credit.studies.controlled import fitting, regimes, states
from predictive_credit.studies.controlled.execute import execute
from predictive_credit.studies.controlled.fitting import PROBABILITY_FLOOR, Trial
from predictive_credit.studies.controlled.interventions import ACCURACY, LOG_LOSS, PARENT, RECIPES
from predictive_credit.studies.controlled.regimes import REGIMES, Dataset, Sample
from tests.small_controlled import HERE, SEED, config

NAMES = tuple(RECIPES)


def model(name: str | None, n_features: int) -> Any:
    """The same recipe as a scikit-learn pipeline, with another solver; clipping is done by hand."""
    c = {"stronger_l2": 0.1, "weaker_l2": 10.0}.get(name or "", 1.0)
    weight = "balanced" if name == "class_weights" else None
    last = LogisticRegression(C=c, class_weight=weight, solver="newton-cholesky", tol=1e-9, max_iter=500)
    steps: list[Any] = [StandardScaler()]
    if name == "quadratic_features":
        steps += [PolynomialFeatures(2, include_bias=False), StandardScaler()]
    if name == "select_features":
        steps = [SelectKBest(f_classif, k=max(2, round(n_features / 3))), *steps]
    return make_pipeline(*steps, last)


def by_hand(name: str | None, data: Dataset) -> tuple[float, float]:
    train, other = data.train.inputs, data.held_out.inputs
    if name == "clip_features":
        low, high = np.percentile(train, [5, 95], axis=0)
        train, other = np.clip(train, low, high), np.clip(other, low, high)
    fitted = model(name, train.shape[1]).fit(train, data.train.labels)
    chance = np.clip(fitted.predict_proba(other)[:, 1], PROBABILITY_FLOOR, 1 - PROBABILITY_FLOOR)
    return 100 * fitted.score(other, data.held_out.labels), log_loss(data.held_out.labels, chance)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("regime", ["class_imbalance", "heavy_tails"])
def test_a_change_is_what_a_pipeline_and_another_solver_give(name: str, regime: str):
    data = regimes.dataset(regime, 7, seed=SEED)
    found = fitting.changes(Trial(dataset=data, interventions=(name,)))
    assert not isinstance(found, str)
    expected = np.subtract(by_hand(name, data), by_hand(None, data))
    assert found[0].accuracy_pp == pytest.approx(expected[0], abs=0.051)  # two held-out rows
    assert found[0].log_loss == pytest.approx(expected[1], abs=2e-4)


def test_worse_probabilities_lower_accuracy_and_raise_log_loss():
    """Planted: the training labels of the changed fit are wrong, so both levels get worse."""
    data = regimes.dataset("label_noise", 3, seed=SEED)
    wrong = replace(data.train, labels=1.0 - data.train.labels)
    right, turned = (fitting.scores(PARENT, train, data.held_out) for train in (data.train, wrong))
    assert turned.accuracy_pp == pytest.approx(100 - right.accuracy_pp, abs=1e-9)
    assert turned.log_loss > right.log_loss
    weights = fitting.changes(
        Trial(dataset=regimes.dataset("class_imbalance", 3, seed=SEED), interventions=("class_weights",))
    )
    assert not isinstance(weights, str)
    assert weights[0].accuracy_pp < 0 < weights[0].log_loss


def test_each_state_has_two_outcomes_in_the_states_order():
    asked = config(regimes=("small_sample", "heavy_tails"), seeds=(1, 2))
    data = regimes.datasets(asked, seed=SEED)
    made = states.states(asked, data, study="controlled", execution=HERE)
    outcomes = execute(made, data, execution=HERE)
    assert [o.id for o in outcomes] == [f"{s.id}/{t}" for s in made for t in ("accuracy_pp", "log_loss")]
    for state, accuracy, loss in zip(made, outcomes[::2], outcomes[1::2], strict=True):
        trial = Trial(dataset=data[state.cluster], interventions=(state.intervention.name,))
        assert fitting.changes(trial) == ((accuracy.value, loss.value),)
    assert execute(made, data, execution=HERE) == outcomes


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([1.0] * 4, "single-class training labels: all 4 are positive"),
        ([0.0] * 3, "single-class training labels: all 3 are negative"),
        ([], "no training row"),
    ],
)
def test_training_rows_of_one_class_leave_both_targets_undefined_with_the_reason(
    labels: list[float], reason: str
):
    asked = config(regimes=("small_sample",), seeds=(1,))
    data = regimes.datasets(asked, seed=SEED)
    made = states.states(asked, data, study="controlled", execution=HERE)
    whole = data["small_sample", "1"]
    few = Sample(inputs=whole.train.inputs[: len(labels)], labels=np.array(labels))
    outcomes = execute(made, {("small_sample", "1"): replace(whole, train=few)}, execution=HERE)
    assert [(o.target, o.value, o.reason) for o in outcomes] == [
        ("accuracy_pp", None, reason),
        ("log_loss", None, reason),
    ]


def test_held_out_rows_of_one_class_still_have_both_outcomes():
    data = regimes.dataset("small_sample", 1, seed=SEED)
    ones = Sample(inputs=data.held_out.inputs, labels=np.ones(len(data.held_out.labels)))
    found = fitting.changes(Trial(dataset=replace(data, held_out=ones), interventions=("weaker_l2",)))
    assert not isinstance(found, str)
    assert all(np.isfinite(found[0]))


def test_no_change_leaves_its_targets_range_however_far_the_held_out_rows_lie():
    data = regimes.dataset("heavy_tails", 1, seed=SEED)
    far = replace(data.held_out, inputs=1e6 * data.held_out.inputs)
    found = fitting.changes(Trial(dataset=replace(data, held_out=far), interventions=NAMES))
    assert not isinstance(found, str)
    for change in found:
        assert ACCURACY.lower <= change.accuracy_pp <= ACCURACY.upper
        assert LOG_LOSS.lower <= change.log_loss <= LOG_LOSS.upper
    assert -np.log(PROBABILITY_FLOOR) < LOG_LOSS.upper


@pytest.mark.parametrize("name", [None, *NAMES])
def test_held_out_rows_have_no_part_in_preparing_the_training_rows(name: str | None):
    recipe = PARENT if name is None else RECIPES[name]
    data = regimes.dataset("heavy_tails", 2, seed=SEED)
    prepared, _ = fitting.design(recipe, data.train, data.held_out.inputs)
    again, _ = fitting.design(recipe, data.train, 50.0 + 3.0 * data.held_out.inputs)
    np.testing.assert_array_equal(prepared, again)


def test_a_constant_feature_is_nothing_to_fit_on():
    data, unseen = fitting.standardised(np.array([[1.0, 5.0], [3.0, 5.0]]), np.array([[2.0, 6.0]]))
    np.testing.assert_array_equal(data, [[-1.0, 0.0], [1.0, 0.0]])
    np.testing.assert_array_equal(unseen, [[0.0, 1.0]])


@pytest.mark.parametrize(("n_features", "kept"), [(1, 1), (2, 2), (5, 2), (9, 3), (60, 20)])
def test_selection_keeps_a_third_and_two_at_least(n_features: int, kept: int):
    assert fitting.n_kept(n_features) == kept


def test_every_regime_and_intervention_fits_without_a_warning():
    for regime in REGIMES:
        found = fitting.changes(Trial(dataset=regimes.dataset(regime, 5, seed=SEED), interventions=NAMES))
        assert len(found) == 6
        assert not isinstance(found, str)
