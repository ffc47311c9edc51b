"""Contrasts: intervals beside each other, what cannot be estimated, and influence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from predictive_credit.bootstrap import nested_means, one_sided_bounds, percentile_interval
from predictive_credit.contrasts import (
    Array,
    Contrast,
    cluster_means,
    estimate,
    leave_one_out,
    level_interval,
    t_interval,
)
from predictive_credit.panel import Gain
from predictive_credit.streams import stream


def gains(cube: Array, complete: Array | None = None) -> Gain:
    return Gain(all=cube, complete=cube if complete is None else complete, worst=cube, best=cube)


def one(gain: Gain, *, draws: int = 1_000, name: str = "D-M") -> Contrast:
    return estimate([gain], draws=draws, level=0.95, one_sided_level=0.95, rng=stream(1, name))[0]


def cube(seed: int = 0, shape: tuple[int, int, int] = (12, 3, 2), mean: float = 0.0) -> Array:
    return np.random.default_rng(seed).normal(mean, 0.02, size=shape)


def test_a_contrast_is_the_mean_gain_between_the_quantiles_of_its_resamples():
    gain = cube()
    found, draws = one(gains(gain)), nested_means(gain, draws=1_000, rng=stream(1, "D-M"))
    assert found.status == "estimated"
    assert found.mean == pytest.approx(gain.mean())
    assert (found.lower, found.upper) == percentile_interval(draws, level=0.95)
    assert (found.one_sided_lower, found.one_sided_upper) == one_sided_bounds(draws, level=0.95)
    assert (found.n_states, found.n_clusters) == (72, 12)


def test_a_planted_gain_is_found_and_its_absence_is_not():
    found = one(gains(cube(mean=0.02)))
    assert found.lower is not None
    assert found.lower > 0
    nothing = one(gains(cube(mean=0.0)))
    assert nothing.lower is not None
    assert nothing.upper is not None
    assert nothing.lower < 0 < nothing.upper


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=15), st.sampled_from([0.9, 0.95]))
def test_the_t_interval_is_the_textbooks(values, level):
    clusters = np.array(values)
    seen = t_interval(clusters, level=level)
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(clusters)
    assert seen == pytest.approx((clusters.mean() - half, clusters.mean() + half), abs=1e-9)


def test_the_t_interval_weighs_endpoints_equally_however_many_of_their_states_are_defined():
    gain = cube(shape=(4, 3, 2))
    gain[0, 1:] = np.nan
    means = [gain[0, 0].mean(), *(gain[e].mean() for e in (1, 2, 3))]
    assert cluster_means(gain) == pytest.approx(means)
    found = one(gains(gain))
    assert (found.t_lower, found.t_upper) == pytest.approx(tuple(t_interval(np.array(means))))
    assert found.mean == pytest.approx(np.nanmean(gain))
    assert found.task_balanced == pytest.approx(np.mean(means))
    assert found.task_balanced != pytest.approx(found.mean)
    whole = one(gains(cube()))
    assert whole.task_balanced == pytest.approx(whole.mean)
    with pytest.raises(ValueError, match="at least two clusters; seen 1"):
        t_interval(np.ones(1))


def test_with_twelve_clusters_the_t_interval_is_wider_than_the_percentile_interval():
    # The reason for printing it: the percentile interval covers about 90 % where it says 95 %.
    wider = 0
    for seed in range(40):
        by_endpoint = np.random.default_rng(seed).normal(0, 0.02, 12)
        found = one(gains(np.broadcast_to(by_endpoint[:, None, None], (12, 3, 2)).copy()), draws=400)
        assert found.t_upper is not None
        assert found.t_lower is not None
        assert found.upper is not None
        assert found.lower is not None
        wider += found.t_upper - found.t_lower > found.upper - found.lower
    assert wider >= 38


@pytest.mark.parametrize(
    ("gain", "reason", "mean", "clusters"),
    [
        (cube(shape=(2, 3, 2)), "2 endpoints with a defined gain; an interval needs 3", "the mean", 2),
        (np.full((12, 3, 2), 0.1), "every endpoint has the same mean gain", 0.1, 12),
        (np.zeros((12, 3, 2)), "every endpoint has the same mean gain", 0.0, 12),
        (np.full((12, 3, 2), np.nan), "0 endpoints with a defined gain", None, 0),
    ],
)
def test_what_cannot_be_estimated_says_so_and_holds_no_number_but_its_mean(gain, reason, mean, clusters):
    found = one(gains(gain))
    assert found.status == "not_estimable"
    assert found.reason is not None
    assert found.reason.startswith(reason)
    bounds = (
        found.lower,
        found.upper,
        found.one_sided_lower,
        found.one_sided_upper,
        found.t_lower,
        found.t_upper,
    )
    assert bounds == (None,) * 6
    assert found.mean == (pytest.approx(gain.mean()) if mean == "the mean" else mean and pytest.approx(mean))
    assert found.n_clusters == clusters
    assert found.task_balanced == (None if found.mean is None else pytest.approx(found.mean))
    ends = level_interval(gain, draws=100, level=0.95, rng=stream(1, "level"))
    assert ends == (None, None)


def test_a_levels_interval_is_the_percentile_interval_of_its_resamples():
    level = np.abs(cube())
    level[3, 1] = np.nan
    draws = nested_means(level, draws=500, rng=stream(1, "level"))
    seen = level_interval(level, draws=500, level=0.9, rng=stream(1, "level"))
    assert seen == percentile_interval(draws, level=0.9)


def test_complete_cases_leave_out_what_a_fallback_touched_and_keep_the_draws():
    gain = cube()
    complete = gain.copy()
    complete[0] = np.nan
    complete[5, 1, 0] = np.nan
    found = one(gains(gain, complete))
    assert found.complete_case.n_states == 72 - 7
    assert found.complete_case.mean == pytest.approx(np.nanmean(complete))
    draws = nested_means(complete, draws=1_000, rng=stream(1, "D-M"))
    assert (found.complete_case.lower, found.complete_case.upper) == percentile_interval(draws)
    assert found.mean == pytest.approx(gain.mean())


def test_complete_cases_too_few_for_an_interval_keep_their_mean_and_have_none():
    complete = np.full((12, 3, 2), np.nan)
    complete[3, 0, 0] = 0.25
    found = one(gains(cube(), complete))
    assert found.status == "estimated"
    assert found.complete_case.mean == 0.25
    assert (found.complete_case.lower, found.complete_case.upper) == (None, None)


def test_estimating_more_measures_moves_no_interval():
    first, second = gains(cube(1)), gains(cube(2), np.where(cube(3) > 0, np.nan, cube(2)))
    together = estimate([first, second], draws=300, level=0.95, one_sided_level=0.95, rng=stream(1, "D-M"))
    assert together == [one(first, draws=300), one(second, draws=300)]


def test_another_stream_draws_another_interval():
    assert one(gains(cube()), name="D-M").lower != one(gains(cube()), name="S-M").lower


def test_leaving_one_endpoint_out_shows_which_one_carries_the_mean():
    gain = cube(shape=(5, 3, 2))
    gain[2] = 1.0
    gain[4, 0] = np.nan
    seen = leave_one_out(gain)
    wanted = [np.nanmean(np.delete(gain, e, axis=0)) for e in range(5)]
    assert seen == pytest.approx(wanted)
    assert np.argmax(np.abs(seen - np.nanmean(gain))) == 2
    assert np.isnan(leave_one_out(np.ones((1, 3, 2)))).all()
