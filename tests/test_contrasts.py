"""Contrasts: intervals beside each other, what cannot be estimated, and influence."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from predictive_credit.bootstrap import Design, nested_means, one_sided_bounds, percentile_interval
from predictive_credit.contrasts import (
    Array,
    Contrast,
    estimate,
    group_means,
    leave_one_out,
    level_intervals,
    spread,
    t_interval,
)
from predictive_credit.panel import Gain
from predictive_credit.streams import stream


def gains(all_: Array, complete: Array | None = None) -> Gain:
    return Gain(all=all_, complete=all_ if complete is None else complete, worst=all_, best=all_)


def crossed(*shape: int, drawn: tuple[bool, ...] = (True, True, True)) -> Design:
    paths = product(*([f"{k:03d}" for k in range(n)] for n in shape))
    return Design(paths=tuple(paths), drawn=drawn)


DESIGN = crossed(12, 3, 2)
STRATA = crossed(6, 20, drawn=(False, True))


def one(gain: Gain, design: Design | None = None, *, draws: int = 1_000, name: str = "D-M") -> Contrast:
    """The contrast of a gain over endpoints of six states each, which are also the tasks."""
    design = crossed(len(gain.all) // 6, 3, 2) if design is None else design
    task_of = design.tiers[0].of_state
    return estimate(
        [gain], design, task_of, draws=draws, level=0.95, one_sided_level=0.95, rng=stream(1, name)
    )[0]


def flat(seed: int = 0, n: int = 72, mean: float = 0.0) -> Array:
    return np.random.default_rng(seed).normal(mean, 0.02, size=n)


def test_a_contrast_is_the_mean_gain_between_the_quantiles_of_its_resamples():
    gain = flat()
    found, draws = one(gains(gain)), nested_means(gain, DESIGN, draws=1_000, rng=stream(1, "D-M"))
    assert found.status == "estimated"
    assert found.mean == pytest.approx(gain.mean())
    assert (found.lower, found.upper) == percentile_interval(draws, level=0.95)
    assert (found.one_sided_lower, found.one_sided_upper) == one_sided_bounds(draws, level=0.95)
    assert (found.n_states, found.n_clusters) == (72, 12)


def test_a_planted_gain_is_found_and_its_absence_is_not():
    found = one(gains(flat(mean=0.02)))
    assert found.lower is not None
    assert found.lower > 0
    nothing = one(gains(flat(mean=0.0)))
    assert nothing.lower is not None
    assert nothing.upper is not None
    assert nothing.lower < 0 < nothing.upper


def test_the_interval_of_a_stratified_design_covers_what_it_says():
    # Strata whose means lie far apart: the interval has to hold the mean of their means, and be narrow.
    centres, covered, widths = np.repeat(np.arange(6) * 0.1, 20), 0, []
    for seed in range(200):
        gain = centres + np.random.default_rng(seed).normal(0.0, 0.02, 120)
        found = one(gains(gain), STRATA, draws=300, name=str(seed))
        assert found.lower is not None
        assert found.upper is not None
        covered += found.lower <= 0.25 <= found.upper
        widths.append(found.upper - found.lower)
    assert 0.89 <= covered / 200 <= 0.99
    assert np.mean(widths) == pytest.approx(2 * 1.96 * 0.02 / np.sqrt(120), rel=0.1)


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=3, max_size=15), st.sampled_from([0.9, 0.95]))
def test_the_t_interval_is_the_textbooks(values, level):
    clusters = np.array(values)
    seen = t_interval(clusters, level=level)
    half = stats.t.ppf((1 + level) / 2, len(values) - 1) * stats.sem(clusters)
    assert seen == pytest.approx((clusters.mean() - half, clusters.mean() + half), abs=1e-9)


def test_the_t_interval_weighs_endpoints_equally_however_many_of_their_states_are_defined():
    gain = flat(n=24)
    gain[2:6] = np.nan
    means = [gain[:2].mean(), *(gain[6 * e : 6 * e + 6].mean() for e in (1, 2, 3))]
    assert group_means(gain, np.repeat(np.arange(4), 6)) == pytest.approx(means)
    found = one(gains(gain))
    assert (found.t_lower, found.t_upper) == pytest.approx(tuple(t_interval(np.array(means))))
    assert found.mean == pytest.approx(np.nanmean(gain))
    assert found.task_balanced == pytest.approx(np.mean(means))
    assert found.task_balanced != pytest.approx(found.mean)
    whole = one(gains(flat()))
    assert whole.task_balanced == pytest.approx(whole.mean)
    with pytest.raises(ValueError, match="at least two clusters; seen 1"):
        t_interval(np.ones(1))


def test_with_twelve_clusters_the_t_interval_is_wider_than_the_percentile_interval():
    # The reason for printing it: the percentile interval covers about 90 % where it says 95 %.
    wider = 0
    for seed in range(40):
        by_endpoint = np.random.default_rng(seed).normal(0, 0.02, 12)
        found = one(gains(np.repeat(by_endpoint, 6)), draws=400)
        assert found.t_upper is not None
        assert found.t_lower is not None
        assert found.upper is not None
        assert found.lower is not None
        wider += found.t_upper - found.t_lower > found.upper - found.lower
    assert wider >= 38


@pytest.mark.parametrize(
    ("gain", "reason", "mean", "clusters"),
    [
        (flat(n=12), "2 clusters with a defined gain; an interval needs 3", "the mean", 2),
        (np.full(72, 0.1), "every cluster has the same mean gain", 0.1, 12),
        (np.zeros(72), "every cluster has the same mean gain", 0.0, 12),
        (np.full(72, np.nan), "0 clusters with a defined gain", None, 0),
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
    design = crossed(len(gain) // 6, 3, 2)
    ends = level_intervals(gain[None], design, draws=100, level=0.95, rng=stream(1, "level"))
    assert ends == [(None, None)]


def test_strata_that_differ_and_are_each_constant_leave_nothing_to_resample():
    gain = np.repeat(np.arange(6.0), 20)
    found = one(gains(gain), STRATA)
    assert (found.status, found.mean) == ("not_estimable", 2.5)
    assert found.reason == "every cluster has the same mean gain; there is no variance to resample"
    assert spread(gain, STRATA) == 0.0
    gain[119] += 0.5
    assert spread(gain, STRATA) == 0.5
    assert one(gains(gain), STRATA).status == "estimated"


def test_clusters_are_states_and_tasks_are_strata_where_the_outermost_level_is_kept():
    gain = flat(n=120)
    gain[2:20] = np.nan  # the first stratum keeps two states of twenty
    found = one(gains(gain), STRATA)
    assert (found.n_states, found.n_clusters) == (102, 102)
    by_stratum = [gain[:2].mean(), *gain[20:].reshape(5, 20).mean(axis=1)]
    assert found.task_balanced == pytest.approx(np.mean(by_stratum))
    assert found.mean == pytest.approx(np.nanmean(gain))
    assert (found.t_lower, found.t_upper) == pytest.approx(tuple(t_interval(gain[~np.isnan(gain)])))


KINDS = Design(
    paths=tuple(
        (kind, f"{kind}{t}", str(k)) for kind, n in (("c", 1), ("r", 2)) for t in range(n) for k in range(3)
    ),
    drawn=(False, True, False),
)  # fmt: skip


def test_a_stratum_of_one_cluster_leaves_no_interval_and_is_named():
    """One classification and two regressions: the one is the same in every resample."""
    found = one(gains(flat(n=9)), KINDS)
    assert (found.status, found.lower, found.t_lower) == ("not_estimable", None, None)
    assert found.reason == "c has 1 cluster with a defined gain; an interval needs 2 in each stratum"
    assert found.mean is not None


def test_a_stratum_that_keeps_one_defined_cluster_or_none_leaves_no_interval():
    for first, reason in ((1, "000 has 1 cluster with"), (0, "000 has 0 clusters with")):
        gain = flat(n=120)
        gain[first:20] = np.nan
        found = one(gains(gain), STRATA)
        assert found.status == "not_estimable"
        assert str(found.reason).startswith(reason)


def test_where_a_cluster_is_a_single_state_an_interval_asks_for_ten():
    for n, status in ((4, "not_estimable"), (5, "estimated")):
        assert one(gains(flat(n=2 * n)), crossed(2, n, drawn=(False, True))).status == status
    found = one(gains(flat(n=8)), crossed(2, 4, drawn=(False, True)))
    assert found.reason == "8 clusters with a defined gain; an interval needs 10"
    assert one(gains(flat(n=9)), crossed(3, 3, 1)).status == "estimated"  # clusters of three states each


def test_a_levels_interval_is_the_percentile_interval_of_its_resamples():
    level, other = np.abs(flat()), np.abs(flat(seed=2))
    level[20:22] = np.nan
    draws = nested_means(level, DESIGN, draws=500, rng=stream(1, "level"))
    rows = np.stack([level, other])
    seen = level_intervals(rows, DESIGN, draws=500, level=0.9, rng=stream(1, "level"))
    assert seen[0] == pytest.approx(percentile_interval(draws, level=0.9))
    assert seen[1] != seen[0]


def test_complete_cases_leave_out_what_a_fallback_touched_and_keep_the_draws():
    gain = flat()
    complete = gain.copy()
    complete[:6] = np.nan
    complete[32] = np.nan
    found = one(gains(gain, complete))
    assert found.complete_case.n_states == 72 - 7
    assert found.complete_case.mean == pytest.approx(np.nanmean(complete))
    draws = nested_means(complete, DESIGN, draws=1_000, rng=stream(1, "D-M"))
    ends = (found.complete_case.lower, found.complete_case.upper)
    assert ends == pytest.approx(percentile_interval(draws))
    assert found.mean == pytest.approx(gain.mean())


def test_complete_cases_too_few_for_an_interval_keep_their_mean_and_have_none():
    complete = np.full(72, np.nan)
    complete[18] = 0.25
    found = one(gains(flat(), complete))
    assert found.status == "estimated"
    assert found.complete_case.mean == 0.25
    assert (found.complete_case.lower, found.complete_case.upper) == (None, None)


def test_estimating_more_measures_or_targets_moves_no_interval():
    first, second = gains(flat(1)), gains(flat(2), np.where(flat(3) > 0, np.nan, flat(2)))
    together = estimate(
        [first, second], DESIGN, DESIGN.clusters,
        draws=300, level=0.95, one_sided_level=0.95, rng=stream(1, "D-M"),
    )  # fmt: skip
    for seen, alone in zip(together, (one(first, draws=300), one(second, draws=300)), strict=True):
        assert (seen.lower, seen.upper) == pytest.approx((alone.lower, alone.upper), rel=1e-12)
        assert seen.complete_case.lower == pytest.approx(alone.complete_case.lower, rel=1e-12)
        assert (seen.mean, seen.t_upper) == (alone.mean, alone.t_upper)


def test_another_stream_draws_another_interval():
    assert one(gains(flat()), name="D-M").lower != one(gains(flat()), name="S-M").lower


def test_leaving_one_task_out_shows_which_one_carries_the_mean():
    gain, task_of = flat(n=30), np.repeat(np.arange(5), 6)
    gain[12:18] = 1.0
    gain[24:26] = np.nan
    seen = leave_one_out(gain, task_of, 5)
    wanted = [np.nanmean(gain[task_of != t]) for t in range(5)]
    assert seen == pytest.approx(wanted)
    assert np.argmax(np.abs(seen - np.nanmean(gain))) == 2
    assert np.isnan(leave_one_out(np.ones(6), np.zeros(6, dtype=int), 1)).all()
