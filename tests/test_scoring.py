"""Scores: known values, shift and scale laws, ties, and what may not be averaged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from predictive_credit import scoring

reals = st.floats(-100, 100)
widths = st.floats(0, 100)
scales = st.floats(0.01, 100)


def test_a_miss_costs_ten_times_its_distance_at_80_percent():
    assert scoring.interval_score(0.6, 0.1, 0.5) == pytest.approx(0.4 + 10 * 0.1)
    assert scoring.interval_score(-0.2, 0.1, 0.5) == pytest.approx(0.4 + 10 * 0.3)


def test_a_hit_costs_the_width_and_both_ends_belong_to_the_interval():
    assert scoring.interval_score([0.1, 0.3, 0.5], 0.1, 0.5) == pytest.approx([0.4, 0.4, 0.4])
    assert scoring.covered([0.1, 0.3, 0.5, 0.51], 0.1, 0.5).tolist() == [1, 1, 1, 0]


def test_at_95_percent_a_miss_costs_forty_times_its_distance():
    assert scoring.interval_score(2.0, 0.0, 1.0, level=0.95) == pytest.approx(1 + 40)


@settings(deadline=None)
@given(y=reals, lo=reals, width=widths, shift=reals)
def test_interval_score_ignores_where_zero_is(y, lo, width, shift):
    hi = lo + width
    moved = scoring.interval_score(y + shift, lo + shift, max(lo + shift, hi + shift))
    assert moved == pytest.approx(scoring.interval_score(y, lo, hi), abs=1e-9)


@settings(deadline=None)
@given(y=reals, lo=reals, width=widths, scale=scales)
def test_interval_score_and_point_error_scale_with_the_unit(y, lo, width, scale):
    hi = lo + width
    scaled = scoring.interval_score(scale * y, scale * lo, scale * hi)
    assert scaled == pytest.approx(scale * scoring.interval_score(y, lo, hi), rel=1e-9, abs=1e-9)
    assert scoring.point_error(scale * y, scale * lo) == pytest.approx(
        scale * scoring.point_error(y, lo), rel=1e-9, abs=1e-9
    )


@settings(deadline=None)
@given(y=reals, lo=reals, width=widths)
def test_interval_score_does_not_know_up_from_down(y, lo, width):
    hi = lo + width
    assert scoring.interval_score(-y, -hi, -lo) == pytest.approx(scoring.interval_score(y, lo, hi), abs=1e-9)


def test_the_true_quantiles_beat_every_other_interval():
    outcome = np.random.default_rng(5).normal(0.01, 0.02, size=4_000)
    lo, hi = np.quantile(outcome, [0.1, 0.9])
    best = scoring.interval_score(outcome, lo, hi).mean()
    for low in (-0.01, 0.0, 0.01):
        for high in (-0.01, 0.0, 0.01):
            if (low, high) != (0.0, 0.0):
                assert scoring.interval_score(outcome, lo + low, hi + high).mean() > best


def test_a_reversed_interval_is_refused_with_its_position():
    with pytest.raises(ValueError, match=r"reversed interval at position \(1,\)"):
        scoring.interval_score([0.0, 0.0], [0.0, 0.2], [0.1, 0.1])
    with pytest.raises(ValueError, match="level lies between"):
        scoring.interval_score(0.0, 0.0, 1.0, level=1.0)


def test_an_undefined_outcome_stays_undefined_in_every_score():
    y = np.array([np.nan, 0.1])
    scores = [
        scoring.point_error(y, 0.0), scoring.interval_score(y, -0.1, 0.2),
        scoring.covered(y, -0.1, 0.2), scoring.direction(y, 0.3),
    ]  # fmt: skip
    for score in scores:
        assert np.isnan(score[0])
        assert not np.isnan(score[1])
    assert scoring.coverage(y, -0.1, 0.2) == 1.0


def test_an_outcome_of_zero_is_left_out_and_a_forecast_of_zero_is_wrong():
    outcome, point = [0.0, 0.2, -0.2, 0.2, -0.2], [0.5, 0.0, -0.1, 0.1, 0.1]
    right = scoring.direction(outcome, point)
    assert np.isnan(right[0])
    assert right[1:].tolist() == [0, 1, 1, 0]
    assert scoring.direction_accuracy(outcome, point) == 0.5


@pytest.mark.parametrize("nothing", [[], [np.nan, np.nan]])
def test_a_summary_over_no_states_raises_instead_of_saying_zero(nothing):
    with pytest.raises(ValueError, match="nothing to average"):
        scoring.coverage(nothing, 0.0, 1.0)
    with pytest.raises(ValueError, match="nothing to average"):
        scoring.direction_accuracy(nothing, 0.1)
    with pytest.raises(ValueError, match="nothing to average"):
        scoring.mean(nothing)
    with pytest.raises(ValueError, match="nothing to average"):
        scoring.direction_accuracy([0.0, 0.0], 0.1)


def test_drift_is_the_gap_between_two_calls_whichever_came_first():
    points = np.array([[[0.01, 0.03], [0.5, 0.5]], [[0.03, 0.01], [-0.1, 0.1]]])
    assert scoring.drift(points) == pytest.approx(np.array([[0.02, 0.0], [0.02, 0.2]]))
    for shape in ((2, 1), (2, 3)):
        with pytest.raises(ValueError, match="two calls"):
            scoring.drift(np.zeros(shape))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=12))
def test_spearman_agrees_with_scipy_on_ties_and_is_undefined_for_a_constant(pairs):
    x, y = np.array(pairs).T
    seen = scoring.spearman(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(seen)
    else:
        assert seen == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_spearman_weights_are_copies_of_the_entries():
    rng = np.random.default_rng(3)
    x, y = rng.integers(0, 6, 20).astype(float), rng.normal(size=20)
    counts = rng.integers(0, 4, size=(5, 20))
    seen = scoring.spearman(x, y, counts)
    for row, value in zip(counts, seen, strict=True):
        copies = spearmanr(np.repeat(x, row), np.repeat(y, row)).statistic
        assert value == pytest.approx(copies, abs=1e-12)


def test_scoring_ranks_an_oracle_before_a_constant_before_a_biased_forecaster():
    rng = np.random.default_rng(11)
    outcome = rng.normal(0.0, 0.02, size=500)
    points = {
        "oracle": outcome + rng.normal(0, 0.002, 500),
        "constant": np.zeros(500),
        "biased": outcome + 0.08,
    }
    halves = {"oracle": 0.004, "constant": 0.026, "biased": 0.004}
    error = {k: scoring.point_error(outcome, p).mean() for k, p in points.items()}
    score = {
        k: scoring.interval_score(outcome, p - halves[k], p + halves[k]).mean() for k, p in points.items()
    }
    assert error["oracle"] < error["constant"] < error["biased"]
    assert score["oracle"] < score["constant"] < score["biased"]
    assert scoring.coverage(outcome, points["biased"] - 0.004, points["biased"] + 0.004) == 0.0
    assert scoring.direction_accuracy(outcome, points["oracle"]) > 0.9
    assert scoring.direction_accuracy(outcome, points["constant"]) == 0.0
