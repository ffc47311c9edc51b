"""The hierarchical bootstrap against its plain definition, and the laws it must obey."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from predictive_credit import bootstrap
from predictive_credit.bootstrap import (
    Array,
    Shape,
    nested_means,
    nested_statistic,
    one_sided_bounds,
    percentile_interval,
)
from predictive_credit.streams import stream

shapes = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))


def cube(shape: Shape, seed: int = 0, undefined: float = 0.0) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.003, 0.02, size=shape)
    values[rng.random(shape) < undefined] = np.nan
    return values


def plain(gain: Array, draws: int, rng: Generator) -> Array:
    """The definition, one resampled row at a time: endpoints, then budgets, then seeds."""
    n_endpoint, n_budget, n_seed = gain.shape
    endpoint = rng.integers(n_endpoint, size=(draws, n_endpoint, 1, 1))
    budget = rng.integers(n_budget, size=(draws, n_endpoint, n_budget, 1))
    seed = rng.integers(n_seed, size=(draws, n_endpoint, n_budget, n_seed))
    means = []
    for d in range(draws):
        rows = []
        for e in range(n_endpoint):
            for b in range(n_budget):
                for s in range(n_seed):
                    rows.append(gain[endpoint[d, e, 0, 0], budget[d, e, b, 0], seed[d, e, b, s]])
        defined = [row for row in rows if not math.isnan(row)]
        means.append(math.fsum(defined) / len(defined) if defined else math.nan)
    return np.array(means)


@pytest.mark.parametrize("undefined", [0.0, 0.2, 0.9])
def test_nested_means_are_those_of_a_plain_loop_over_the_same_draws(undefined):
    gain = cube((4, 3, 2), seed=1, undefined=undefined)
    seen = nested_means(gain, draws=200, rng=stream(1, "a"))
    wanted = plain(gain, 200, stream(1, "a"))
    np.testing.assert_allclose(seen, wanted, rtol=1e-12, atol=1e-15)
    assert np.isnan(wanted).any() == (undefined == 0.9)


def test_blocks_bound_the_memory_and_are_drawn_one_after_the_other(monkeypatch):
    gain = cube((4, 3, 2), seed=2)
    monkeypatch.setattr(bootstrap, "BLOCK", 24 * 30)
    seen = nested_means(gain, draws=75, rng=stream(1, "a"))
    rng = stream(1, "a")
    wanted = np.concatenate([plain(gain, size, rng) for size in (30, 30, 15)])
    np.testing.assert_allclose(seen, wanted, rtol=1e-12, atol=1e-15)


@settings(deadline=None)
@given(shape=shapes, value=st.floats(-1, 1), seed=st.integers(0, 99))
def test_a_constant_gain_comes_out_of_every_draw(shape, value, seed):
    means = nested_means(np.full(shape, value), draws=20, rng=stream(seed, "constant"))
    assert means == pytest.approx(np.full(20, value), abs=1e-15)


@settings(deadline=None)
@given(shape=shapes, shift=st.floats(-1, 1), scale=st.floats(-10, 10), seed=st.integers(0, 99))
def test_draws_shift_and_scale_with_the_gain(shape, shift, scale, seed):
    gain = cube(shape, seed=seed, undefined=0.2)
    before = nested_means(gain, draws=20, rng=stream(seed, "x"))
    after = nested_means(shift + scale * gain, draws=20, rng=stream(seed, "x"))
    np.testing.assert_allclose(after, shift + scale * before, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), name=st.sampled_from(["D-M", "S-M"]))
def test_the_same_stream_gives_the_same_draws_and_another_stream_others(seed, name):
    gain = cube((6, 3, 2))
    draws = nested_means(gain, draws=50, rng=stream(seed, name))
    assert np.array_equal(draws, nested_means(gain, draws=50, rng=stream(seed, name)))
    assert not np.array_equal(draws, nested_means(gain, draws=50, rng=stream(seed, name, "other")))
    assert not np.array_equal(draws, nested_means(gain, draws=50, rng=stream(seed + 1, name)))


def test_measures_share_their_draws_and_adding_one_moves_no_other():
    one, two = cube((12, 3, 2), seed=1), cube((12, 3, 2), seed=2, undefined=0.1)
    alone = nested_means(one, draws=100, rng=stream(1, "D-M"))
    both = nested_means(np.stack([one, two, one + two]), draws=100, rng=stream(1, "D-M"))
    assert both.shape == (3, 100)
    assert np.array_equal(both[0], alone)
    assert np.array_equal(both[1], nested_means(two, draws=100, rng=stream(1, "D-M")))


def test_states_of_one_endpoint_are_not_independent_experiments():
    # Gains that are equal within an endpoint hold as much as 12 numbers, not as much as 72.
    by_endpoint = np.random.default_rng(4).normal(size=12)
    gain = np.broadcast_to(by_endpoint[:, None, None], (12, 3, 2))
    spread = nested_means(gain, draws=20_000, rng=stream(1, "spread")).std()
    assert spread == pytest.approx(by_endpoint.std() / math.sqrt(12), rel=0.03)


def test_seeds_are_drawn_within_budgets_within_endpoints():
    # Variance of the three levels adds up: this pins where each level is resampled.
    rng = np.random.default_rng(9)
    for shape, n in (((40, 1, 1), 40), ((1, 40, 1), 40), ((1, 1, 40), 40)):
        gain = rng.normal(size=shape)
        spread = nested_means(gain, draws=20_000, rng=stream(2, str(shape))).std()
        assert spread == pytest.approx(gain.std() / math.sqrt(n), rel=0.03)


def test_a_draw_without_a_defined_entry_is_left_out_and_no_defined_draw_at_all_is_refused():
    gain = np.full((4, 1, 1), np.nan)
    gain[0] = 0.5
    means = nested_means(gain, draws=500, rng=stream(1, "sparse"))
    empty = np.isnan(means).mean()
    assert empty == pytest.approx((3 / 4) ** 4, abs=0.08)
    assert percentile_interval(means) == (0.5, 0.5)
    with pytest.raises(ValueError, match="none of 10 bootstrap draws is defined"):
        percentile_interval(np.full(10, np.nan))


def test_percentile_and_one_sided_bounds_cut_the_tails_they_name():
    means = np.arange(1001) / 1000
    assert percentile_interval(means, level=0.95) == pytest.approx((0.025, 0.975))
    assert one_sided_bounds(means, level=0.95) == pytest.approx((0.05, 0.95))
    assert one_sided_bounds(means, level=0.95) == pytest.approx(percentile_interval(means, level=0.90))


def test_a_statistic_of_counts_sees_the_same_resamples_as_the_means():
    gain = cube((5, 3, 2))
    flat = gain.ravel()
    seen = nested_statistic(gain.shape, lambda n: n @ flat / n.sum(axis=1), draws=100, rng=stream(1, "s"))
    np.testing.assert_allclose(seen, nested_means(gain, draws=100, rng=stream(1, "s")), atol=1e-14)


def test_nothing_to_resample_is_refused():
    with pytest.raises(ValueError, match="needs draws and states"):
        nested_means(np.zeros((3, 0, 2)), draws=10, rng=stream(1, "x"))
    with pytest.raises(ValueError, match="0 draws"):
        nested_means(np.zeros((3, 1, 2)), draws=0, rng=stream(1, "x"))
