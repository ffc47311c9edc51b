"""Equivalence: inside the margin, or not shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictive_credit.equivalence import inside_margin

ends = st.floats(-0.05, 0.05)


def test_the_published_replay_interval_of_m_and_s_is_not_inside_its_margin():
    assert not inside_margin(-0.008096, 0.014485, margin=0.010)
    assert inside_margin(-0.008096, 0.009, margin=0.010)


def test_a_wide_interval_around_zero_is_no_evidence_of_equivalence():
    assert not inside_margin(-0.5, 0.5, margin=0.010)


def test_touching_the_margin_is_not_inside():
    assert not inside_margin(-0.010, 0.002, margin=0.010)
    assert not inside_margin(-0.002, 0.010, margin=0.010)


@settings(deadline=None)
@given(a=ends, b=ends, more=st.floats(0, 0.05))
def test_a_wider_interval_is_never_equivalent_where_a_narrower_is_not(a, b, more):
    lower, upper = min(a, b), max(a, b)
    if inside_margin(lower - more, upper + more, margin=0.02):
        assert inside_margin(lower, upper, margin=0.02)
    assert inside_margin(lower, upper, margin=0.02) == inside_margin(-upper, -lower, margin=0.02)


@pytest.mark.parametrize(
    ("lower", "upper", "margin", "match"),
    [
        (0.0, 0.0, 0.0, "positive"), (0.0, 0.0, float("nan"), "positive"),
        (0.1, 0.0, 1.0, "no interval"), (float("nan"), 0.0, 1.0, "no interval"),
    ],
)  # fmt: skip
def test_an_impossible_margin_or_interval_is_refused(lower, upper, margin, match):
    with pytest.raises(ValueError, match=match):
        inside_margin(lower, upper, margin=margin)
