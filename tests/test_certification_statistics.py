"""The finite-sample bounds, against the published values."""

import math

import pytest

from predictive_credit.certification.statistics import (
    Interval,
    Method,
    interval,
    recall_bound,
    recovery_bound,
)


def paired(gained: int, lost: int, pairs: int, alpha: float) -> Interval:
    values = [1.0] * gained + [-1.0] * lost + [0.0] * (pairs - gained - lost)
    return interval(values, method=Method.PAIRED_BINARY, alpha=alpha)


@pytest.mark.parametrize(
    ("trials", "alpha", "bound"),
    [
        (96, 0.01, 0.046838116765212434),
        (80, 0.02, 0.0477239),
        (90, 0.01, 0.0498815),
        (89, 0.01, 0.0504276),
        (30, 0.005, 0.1618939),
    ],
)
def test_no_hit_bounds_the_chance_of_recovery(trials: int, alpha: float, bound: float) -> None:
    assert recovery_bound(trials, alpha=alpha) == pytest.approx(bound, abs=5e-8)


def test_no_trial_bounds_nothing() -> None:
    assert recovery_bound(0, alpha=0.01) == 1.0


@pytest.mark.parametrize(("alpha", "least"), [(0.01, 90), (0.02, 77)])
def test_the_least_number_of_challengers_for_one_in_twenty(alpha: float, least: int) -> None:
    assert recovery_bound(least, alpha=alpha) <= 0.05 < recovery_bound(least - 1, alpha=alpha)


def test_neutral_pairs_needed_for_one_in_twenty() -> None:
    assert recovery_bound(104, alpha=0.005) <= 0.05 < recovery_bound(103, alpha=0.005)


@pytest.mark.parametrize(
    ("hits", "trials", "bound"),
    [
        (45, 45, 0.8889268),
        (60, 60, 0.9154813),
        (44, 45, 0.8461947),
        (43, 45, 0.8098644),
        (42, 45, 0.7767610),
        (24, 24, 0.8019065),
        (23, 23, 0.7942463),
    ],
)
def test_positive_controls_bound_recall_from_below(hits: int, trials: int, bound: float) -> None:
    assert recall_bound(hits, trials, alpha=0.005) == pytest.approx(bound, abs=5e-8)


@pytest.mark.parametrize(
    ("gained", "lost", "pairs", "lower", "upper"),
    [
        (30, 0, 30, 0.6379275, 1.0),
        (29, 0, 30, 0.5759, 0.9999),
        (28, 0, 30, 0.5239, 0.9975),
        (27, 0, 30, 0.4772, 0.9910),
        (0, 0, 60, -0.0950339, 0.0950339),
        (1, 0, 60, -0.0950, 0.1289),
        (2, 0, 60, -0.0938, 0.1577),
        (3, 0, 60, -0.0906, 0.1840),
        (2, 2, 60, -0.1565, 0.1565),
    ],
)
def test_paired_hits_bound_their_difference(
    gained: int, lost: int, pairs: int, lower: float, upper: float
) -> None:
    found = paired(gained, lost, pairs, 0.01)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=5e-5)
    assert found.mean == pytest.approx((gained - lost) / pairs)


@pytest.mark.parametrize(
    ("score", "count", "lower", "upper"), [(0.4, 256, 0.2777, 0.5223), (1.0, 30, -0.0757, 1.0)]
)
def test_sampled_units_bound_their_mean(score: float, count: int, lower: float, upper: float) -> None:
    found = interval([score] * count, method=Method.BERNSTEIN, alpha=0.005)
    assert (found.lower, found.upper) == pytest.approx((lower, upper), abs=5e-5)


def test_a_finite_set_is_known_exactly() -> None:
    assert interval([0.1, 0.3], method=Method.FINITE_SET, alpha=0.005) == Interval(
        mean=0.2, lower=0.2, upper=0.2
    )


@pytest.mark.parametrize(
    ("values", "method"),
    [
        ([], Method.FINITE_SET),
        ([math.nan], Method.FINITE_SET),
        ([math.inf, 0.0], Method.BERNSTEIN),
        ([0.5, 0.0], Method.PAIRED_BINARY),
        ([0.5], Method.BERNSTEIN),
    ],
    ids=["nothing", "nan", "infinite", "not binary", "one sampled unit"],
)
def test_what_cannot_be_bounded_gives_the_whole_line(values: list[float], method: Method) -> None:
    found = interval(values, method=method, alpha=0.01)
    assert (found.lower, found.upper) == (-math.inf, math.inf)
    assert not found.bounded


def test_an_unknown_method_is_named() -> None:
    with pytest.raises(ValueError, match="student"):
        interval([0.0], method="student", alpha=0.01)
