"""The bootstrap over a tree of clusters against its plain definition, and the laws it must obey."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from predictive_credit import bootstrap
from predictive_credit.bootstrap import (
    Array,
    Design,
    Path,
    counts,
    nested_means,
    nested_statistic,
    one_sided_bounds,
    percentile_interval,
)
from predictive_credit.errors import Unpaired
from predictive_credit.streams import stream

Shape = tuple[int, ...]
shapes = st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 3))
# Two strata of unlike size; clusters of one, two and three states.
RAGGED: tuple[Path, ...] = (
    ("a", "p", "1"), ("a", "p", "2"), ("a", "q", "1"), ("a", "r", "1"), ("a", "r", "2"), ("a", "r", "3"),
    ("b", "s", "1"), ("b", "t", "1"), ("b", "t", "2"),
)  # fmt: skip


def crossed(*shape: int, drawn: Sequence[bool] | None = None) -> Design:
    """A fully crossed design whose states stand in C order."""
    paths = product(*([f"{k:02d}" for k in range(n)] for n in shape))
    return Design(paths=tuple(paths), drawn=tuple(drawn or [True] * len(shape)))


def gains(n: int, seed: int = 0, undefined: float = 0.0) -> Array:
    rng = np.random.default_rng(seed)
    values = rng.normal(0.003, 0.02, size=n)
    values[rng.random(n) < undefined] = np.nan
    return values


def plain(gain: Array, shape: Shape, draws: int, rng: Generator) -> Array:
    """The definition of three drawn levels, one resampled row at a time: endpoints, budgets, seeds."""
    n_endpoint, n_budget, n_seed = shape
    endpoint = rng.integers(n_endpoint, size=(draws, n_endpoint, 1, 1))
    budget = rng.integers(n_budget, size=(draws, n_endpoint, n_budget, 1))
    seed = rng.integers(n_seed, size=(draws, n_endpoint, n_budget, n_seed))
    cube, means = gain.reshape(shape), []
    for d in range(draws):
        rows = [
            cube[endpoint[d, e, 0, 0], budget[d, e, b, 0], seed[d, e, b, s]]
            for e, b, s in product(range(n_endpoint), range(n_budget), range(n_seed))
        ]
        defined = [row for row in rows if not math.isnan(row)]
        means.append(math.fsum(defined) / len(defined) if defined else math.nan)
    return np.array(means)


def walked(paths: Sequence[Path], drawn: Sequence[bool], rng: Generator) -> list[Path]:
    """One resample of any tree by recursion: the full paths that come along, copies repeated."""
    if not drawn:
        return list(paths)
    children: dict[str, list[Path]] = defaultdict(list)
    for path in paths:
        children[path[0]].append(path)
    names = list(children)
    picked = [names[rng.integers(len(names))] for _ in names] if drawn[0] else names
    found = []
    for name in picked:
        below = [path[1:] for path in children[name]]
        found += [(name, *path) for path in walked(below, drawn[1:], rng)]
    return found


@pytest.mark.parametrize("undefined", [0.0, 0.2, 0.9])
def test_nested_means_are_those_of_a_plain_loop_over_the_same_draws(undefined):
    gain = gains(24, seed=1, undefined=undefined)
    seen = nested_means(gain, crossed(4, 3, 2), draws=200, rng=stream(1, "a"))
    wanted = plain(gain, (4, 3, 2), 200, stream(1, "a"))
    np.testing.assert_allclose(seen, wanted, rtol=1e-12, atol=1e-15)
    assert np.isnan(wanted).any() == (undefined == 0.9)


def test_blocks_bound_the_memory_and_are_drawn_one_after_the_other(monkeypatch):
    gain = gains(24, seed=2)
    monkeypatch.setattr(bootstrap, "BLOCK", 24 * 30)
    sizes = [len(block) for block in counts(crossed(4, 3, 2), draws=75, rng=stream(1, "a"))]
    assert sizes == [30, 30, 15]
    seen = nested_means(gain, crossed(4, 3, 2), draws=75, rng=stream(1, "a"))
    rng = stream(1, "a")
    wanted = np.concatenate([plain(gain, (4, 3, 2), size, rng) for size in sizes])
    np.testing.assert_allclose(seen, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "drawn", [(True, True, True), (False, True, True), (False, True, False), (True, False, True),
              (False, False, True), (True, False, False)],
)  # fmt: skip
def test_a_ragged_tree_is_resampled_as_a_plain_walk_would(drawn):
    design, draws = Design(paths=RAGGED, drawn=drawn), 20_000
    seen = np.concatenate(list(counts(design, draws=draws, rng=stream(1, "ragged"))))
    rng = np.random.default_rng(5)
    wanted = np.zeros((4_000, len(RAGGED)))
    for row in wanted:
        for path in walked(RAGGED, drawn, rng):
            row[RAGGED.index(path)] += 1
    # Every state's mean and every two states' covariance: what the spread of any mean is made of.
    np.testing.assert_allclose(seen.mean(axis=0), wanted.mean(axis=0), atol=0.12)
    np.testing.assert_allclose(np.cov(seen.T), np.cov(wanted.T), atol=0.25)


def test_each_copy_of_a_cluster_drawn_twice_draws_its_own_children():
    # One of two parents, two children each: both copies of a parent agree in half of the draws.
    design = crossed(2, 2)
    block = np.concatenate(list(counts(design, draws=40_000, rng=stream(1, "copies"))))
    doubled = block[(block[:, :2].sum(axis=1) == 4)]
    assert len(doubled) / 40_000 == pytest.approx(1 / 4, abs=0.01)
    # Four picks of two children: 2 and 2 in 6 of 16, all of one child in 2 of 16.
    assert (doubled[:, 0] == 2).mean() == pytest.approx(6 / 16, abs=0.02)
    assert np.isin(doubled[:, 0], (0, 4)).mean() == pytest.approx(2 / 16, abs=0.02)


def test_strata_keep_their_sizes_and_a_drawn_cluster_brings_all_its_states():
    design = Design(paths=RAGGED, drawn=(False, True, False))
    for block in counts(design, draws=500, rng=stream(1, "strata")):
        clusters = block[:, [0, 2, 3, 6, 7]]
        assert np.array_equal(clusters[:, :3].sum(axis=1), np.full(500, 3))
        assert np.array_equal(clusters[:, 3:].sum(axis=1), np.full(500, 2))
        assert np.array_equal(block[:, 0], block[:, 1])
        assert np.array_equal(block[:, 3], block[:, 5])
        assert np.array_equal(block[:, 7], block[:, 8])
        assert clusters.max() == 3


def test_a_stratified_bootstrap_has_the_variance_of_the_formula():
    # Strata of 20 states each: their means' variances add up; what lies between strata does not count.
    rng = np.random.default_rng(3)
    gain = rng.normal(size=(6, 20)) * np.arange(1, 7)[:, None] + 50.0 * np.arange(6)[:, None]
    means = nested_means(gain.ravel(), crossed(6, 20, drawn=(False, True)), draws=20_000, rng=stream(1, "v"))
    assert means.std() == pytest.approx(np.sqrt((gain.var(axis=1) / 20).sum()) / 6, rel=0.03)
    free = nested_means(gain.ravel(), crossed(120), draws=2_000, rng=stream(1, "v"))
    assert free.std() > 5 * means.std()


def test_the_variances_of_nested_levels_add_up():
    # Independent noise at each of three levels, large numbers of clusters: the nested formula.
    rng = np.random.default_rng(8)
    shape, sizes = (40, 10, 10), (1.0, 2.0, 6.0)
    parts = [rng.normal(size=shape[: k + 1] + (1,) * (2 - k)) for k in range(3)]
    parts = [part - part.mean(axis=k, keepdims=True) for k, part in enumerate(parts)]
    gain = sum(size * part for size, part in zip(sizes, parts, strict=True)) + np.zeros(shape)
    by_endpoint = gain.mean(axis=(1, 2)).var() / 40
    by_budget = gain.mean(axis=2).var(axis=1).mean() / 400
    by_seed = gain.var(axis=2).mean() / 4_000
    means = nested_means(gain.ravel(), crossed(*shape), draws=4_000, rng=stream(2, "levels"))
    assert means.var() == pytest.approx(by_endpoint + by_budget + by_seed, rel=0.08)


def test_the_order_of_the_states_changes_no_draw():
    gain = gains(len(RAGGED), seed=4)
    design = Design(paths=RAGGED, drawn=(False, True, True))
    turned = Design(paths=RAGGED[::-1], drawn=(False, True, True))
    before = nested_means(gain, design, draws=100, rng=stream(1, "order"))
    after = nested_means(gain[::-1], turned, draws=100, rng=stream(1, "order"))
    np.testing.assert_allclose(after, before, rtol=1e-12)


def test_a_state_that_shares_its_place_or_lacks_a_level_is_refused_by_name():
    with pytest.raises(Unpaired, match="2 states are at a/p/1; each needs its own place"):
        Design(paths=(*RAGGED, ("a", "p", "1")), drawn=(True, True, True))
    with pytest.raises(Unpaired, match="a/p has 2 cluster levels where the study has 3"):
        Design(paths=(*RAGGED, ("a", "p")), drawn=(True, True, True))
    with pytest.raises(ValueError, match="needs states and a drawn level"):
        Design(paths=RAGGED, drawn=(False, False, False))


def test_clusters_are_those_of_the_outermost_drawn_level():
    assert Design(paths=RAGGED, drawn=(True, True, True)).clusters.tolist() == [0] * 6 + [1] * 3
    kept = Design(paths=RAGGED, drawn=(False, True, False))
    assert kept.clusters.tolist() == [0, 0, 1, 2, 2, 2, 3, 4, 4]
    assert kept.strata.tolist() == [0] * 6 + [1] * 3
    assert set(Design(paths=RAGGED, drawn=(True, True, True)).strata.tolist()) == {0}


def test_strata_are_named_by_their_paths_in_the_order_of_their_numbers():
    for drawn in ((False, True, False), (False, False, True), (True, False, False)):
        design = Design(paths=RAGGED[::-1], drawn=drawn)
        depth = drawn.index(True)
        named = [design.stratum_names[k] for k in design.strata]
        assert named == ["/".join(path[:depth]) for path in design.paths]


def test_clusters_are_single_states_where_no_level_lies_below_them():
    assert [Design(paths=RAGGED, drawn=d).clusters_are_states for d in (
        (True, True, True), (False, True, False), (False, False, True),
    )] == [False, False, True]  # fmt: skip


@settings(deadline=None)
@given(shape=shapes, value=st.floats(-1, 1), seed=st.integers(0, 99))
def test_a_constant_gain_comes_out_of_every_draw(shape, value, seed):
    gain = np.full(math.prod(shape), value)
    means = nested_means(gain, crossed(*shape), draws=20, rng=stream(seed, "constant"))
    assert means == pytest.approx(np.full(20, value), abs=1e-14)


trees = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("pqr"), st.sampled_from("123")), min_size=1,
                 max_size=12, unique=True)  # fmt: skip
levels = st.tuples(st.booleans(), st.booleans(), st.booleans()).filter(any)


@settings(deadline=None)
@given(trees, levels, st.floats(-1, 1), st.floats(-10, 10), st.integers(0, 99))
def test_draws_of_any_tree_shift_and_scale_with_the_gain(paths, drawn, shift, scale, seed):
    design, gain = Design(paths=tuple(paths), drawn=drawn), gains(len(paths), seed=seed, undefined=0.2)
    before = nested_means(gain, design, draws=20, rng=stream(seed, "x"))
    after = nested_means(shift + scale * gain, design, draws=20, rng=stream(seed, "x"))
    np.testing.assert_allclose(after, shift + scale * before, atol=1e-12)
    defined = before[~np.isnan(before)]
    if defined.size:
        assert np.nanmin(gain) - 1e-12 <= defined.min()
        assert defined.max() <= np.nanmax(gain) + 1e-12


@settings(deadline=None)
@given(trees, levels, st.integers(0, 99))
def test_as_many_clusters_of_the_outermost_drawn_level_occur_as_there_are(paths, drawn, seed):
    design = Design(paths=tuple(paths), drawn=drawn)
    outermost = drawn.index(True) + 1
    # Without further drawn levels a cluster's states all occur as often as it was drawn.
    only = Design(paths=design.paths, drawn=tuple(k == outermost - 1 for k in range(3)))
    first = [int(np.argmax(only.clusters == c)) for c in range(only.clusters.max() + 1)]
    for block in counts(only, draws=10, rng=stream(seed, "n")):
        assert np.array_equal(block[:, first].sum(axis=1), np.full(10, len(first)))
        assert np.array_equal(block, block[:, first][:, only.clusters])


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 2**31), name=st.sampled_from(["D-M", "S-M"]))
def test_the_same_stream_gives_the_same_draws_and_another_stream_others(seed, name):
    gain, design = gains(36), crossed(6, 3, 2)
    draws = nested_means(gain, design, draws=50, rng=stream(seed, name))
    assert np.array_equal(draws, nested_means(gain, design, draws=50, rng=stream(seed, name)))
    assert not np.array_equal(draws, nested_means(gain, design, draws=50, rng=stream(seed, name, "other")))
    assert not np.array_equal(draws, nested_means(gain, design, draws=50, rng=stream(seed + 1, name)))


def test_measures_share_their_draws_and_adding_one_moves_no_other():
    one, two, design = gains(72, seed=1), gains(72, seed=2, undefined=0.1), crossed(12, 3, 2)
    alone = nested_means(one, design, draws=100, rng=stream(1, "D-M"))
    both = nested_means(np.stack([one, two, one + two]), design, draws=100, rng=stream(1, "D-M"))
    assert both.shape == (3, 100)
    np.testing.assert_allclose(both[0], alone, rtol=1e-12)
    np.testing.assert_allclose(
        both[1], nested_means(two, design, draws=100, rng=stream(1, "D-M")), rtol=1e-12
    )


def test_states_of_one_endpoint_are_not_independent_experiments():
    # Gains that are equal within an endpoint hold as much as 12 numbers, not as much as 72.
    by_endpoint = np.random.default_rng(4).normal(size=12)
    gain = np.repeat(by_endpoint, 6)
    spread = nested_means(gain, crossed(12, 3, 2), draws=20_000, rng=stream(1, "spread")).std()
    assert spread == pytest.approx(by_endpoint.std() / math.sqrt(12), rel=0.03)


def test_a_draw_without_a_defined_entry_is_left_out_and_no_defined_draw_at_all_is_refused():
    gain = np.full(4, np.nan)
    gain[0] = 0.5
    means = nested_means(gain, crossed(4), draws=500, rng=stream(1, "sparse"))
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
    for design in (crossed(5, 3, 2), Design(paths=RAGGED, drawn=(False, True, True))):
        gain = gains(len(design.paths))
        seen = nested_statistic(design, lambda n: n @ gain / n.sum(axis=1), draws=100, rng=stream(1, "s"))  # noqa: B023
        np.testing.assert_allclose(
            seen, nested_means(gain, design, draws=100, rng=stream(1, "s")), atol=1e-14
        )


def test_nothing_to_resample_is_refused():
    with pytest.raises(ValueError, match="0 states"):
        Design(paths=(), drawn=(True,))
    with pytest.raises(ValueError, match="0 draws"):
        nested_means(np.zeros(3), crossed(3), draws=0, rng=stream(1, "x"))
