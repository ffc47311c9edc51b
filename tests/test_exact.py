"""Exact binomial bounds: the printed values, and what defines them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from predictive_credit.exact import exact_interval, exact_lower_bound, exact_upper_bound, paired_difference

counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
tails = st.floats(0.001, 0.4)


@pytest.mark.parametrize(("trials", "tail", "printed"), [(96, 0.010, 0.0468), (30, 0.005, 0.1619)])
def test_zero_recoveries_give_the_papers_bound(trials, tail, printed):  # registered alphas
    assert exact_upper_bound(0, trials, tail=tail) == pytest.approx(printed, abs=5e-5)


def test_45_of_45_gives_the_papers_lower_bound():
    assert exact_lower_bound(45, 45, tail=0.005) == pytest.approx(0.8889, abs=5e-5)


def test_paired_differences_give_the_papers_intervals():
    assert paired_difference(30, 0, 30, level=0.99) == pytest.approx((0.6379, 1.0), abs=5e-5)
    assert paired_difference(0, 0, 60, level=0.99) == pytest.approx((-0.0950, 0.0950), abs=5e-5)


@settings(deadline=None)
@given(count=counts, tail=tails)
def test_a_bound_is_the_share_at_which_the_count_is_just_as_rare_as_its_tail(count, tail):
    k, n = count
    if k < n:
        assert binom.cdf(k, n, exact_upper_bound(k, n, tail=tail)) == pytest.approx(tail, rel=1e-6)
    else:
        assert exact_upper_bound(k, n, tail=tail) == 1.0
    if k > 0:
        assert binom.sf(k - 1, n, exact_lower_bound(k, n, tail=tail)) == pytest.approx(tail, rel=1e-6)
    else:
        assert exact_lower_bound(k, n, tail=tail) == 0.0


@settings(deadline=None)
@given(count=counts, tail=tails)
def test_failures_are_bounded_like_successes_turned_round(count, tail):
    k, n = count
    assert exact_upper_bound(k, n, tail=tail) == pytest.approx(1 - exact_lower_bound(n - k, n, tail=tail))
    lower, upper = exact_interval(k, n, level=0.95)
    assert lower <= k / n <= upper


@settings(deadline=None)
@given(count=counts)
def test_exchanging_the_two_sides_of_a_pair_turns_the_interval_round(count):
    gained, pairs = count
    lower, upper = paired_difference(gained, pairs - gained, pairs)
    assert paired_difference(pairs - gained, gained, pairs) == pytest.approx((-upper, -lower))
    assert lower <= (2 * gained - pairs) / pairs <= upper


@pytest.mark.parametrize(
    ("k", "n", "tail"), [(1, 0, 0.05), (3, 2, 0.05), (-1, 2, 0.05), (1, 2, 0.0), (1, 2, 1.0)]
)
def test_an_impossible_count_or_tail_is_refused(k, n, tail):
    for bound in (exact_upper_bound, exact_lower_bound):
        with pytest.raises(ValueError, match=r"trials|tail probability"):
            bound(k, n, tail=tail)
    with pytest.raises(ValueError, match="more than 3 pairs"):
        paired_difference(2, 2, 3)
