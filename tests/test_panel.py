"""Gap-free arrays, gains with their sign, and the bounds of what was not seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictive_credit import panel as panels
from predictive_credit import scoring
from predictive_credit.bootstrap import Design
from predictive_credit.errors import Unpaired
from predictive_credit.panel import MEASURES, Measure, Panel
from predictive_credit.records import Target

A, B = -1.0, 1.0
AUC = Target(name="roc_auc", phrase="ROC AUC", unit="ROC AUC", suffix="", size="0.0###", lower=A, upper=B)


def made(
    point: Any,
    half: Any,
    outcome: Any,
    *,
    fallback: Any = None,
    contexts: Any = ("D", "M", "S"),
    seeds: int = 1,
) -> Panel:
    """A panel of (state, context, call) points with symmetric intervals; one task per `seeds` states."""
    point = np.asarray(point, dtype=float)
    n = len(point)
    task_of = np.arange(n) // seeds
    return Panel(
        states=tuple(f"s{i}" for i in range(n)),
        contexts=tuple(contexts),
        calls=(1, 2),
        tasks=tuple(f"t{i}" for i in range(n // seeds)),
        task_of=task_of,
        design=Design(paths=tuple((f"t{t}", f"s{i}") for i, t in enumerate(task_of)), drawn=(True, True)),
        target=AUC,
        point=point,
        lower=point - half,
        upper=point + half,
        is_fallback=np.zeros(point.shape, dtype=bool) if fallback is None else np.asarray(fallback),
        outcome=np.asarray(outcome, dtype=float),
    )


def random(seed: int, *, n: int = 6, undefined: float = 0.0, fallback: float = 0.0) -> Panel:
    rng = np.random.default_rng(seed)
    shape = (n, 3, 2)
    outcome = np.where(rng.random(n) < undefined, np.nan, rng.uniform(-0.9, 0.9, n))
    return made(
        rng.uniform(-1.2, 1.2, shape),
        rng.uniform(0, 0.6, shape),
        outcome,
        fallback=rng.random(shape) < fallback,
    )


def test_a_gain_is_other_minus_matched_so_positive_favours_matched():
    panel = made([[[0.3, 0.3], [0.1, 0.1], [0.5, 0.5]]], 0.0, [0.1])
    assert panels.gain(panel, "point_error", "D", "M").all == pytest.approx(0.2)
    assert panels.gain(panel, "point_error", "S", "M").all == pytest.approx(0.4)
    assert panels.gain(panel, "interval_score", "D", "M").all == pytest.approx(2.0)
    assert panels.gain(panel, "covered", "D", "M").all == pytest.approx(1.0)


def test_a_right_sign_and_less_drift_favour_matched_as_well():
    panel = made([[[-0.3, 0.1], [0.1, 0.1], [0.1, 0.2]]], 0.0, [0.1])
    assert panels.gain(panel, "direction", "D", "M").all == pytest.approx(0.5)
    assert panels.gain(panel, "drift", "D", "M").all == pytest.approx(0.4)
    assert panels.gain(panel, "drift", "D", "S").all == pytest.approx(0.3)


@pytest.mark.parametrize("measure", MEASURES)
def test_without_fallbacks_and_undefined_outcomes_all_four_readings_agree(measure: Measure):
    gain = panels.gain(random(1), measure, "D", "M")
    assert not np.isnan(gain.all).any()
    for reading in (gain.complete, gain.worst, gain.best):
        assert np.array_equal(reading, gain.all)


@pytest.mark.parametrize("measure", ["interval_score", "point_error", "covered", "direction"])
@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 10_000))
def test_bounds_of_an_undefined_outcome_are_reached_and_never_passed(measure: Measure, seed):
    panel = random(seed, n=1, undefined=1.0)
    gain = panels.gain(panel, measure, "D", "M")
    assert np.isnan(gain.all).all()
    meetings = np.concatenate([panel.lower.ravel(), panel.upper.ravel(), panel.point.ravel()])
    grid = np.concatenate([np.linspace(A, B, 4000), np.clip(meetings, A, B)])  # holds no exact 0
    everywhere = made(
        np.repeat(panel.point, len(grid), axis=0),
        np.repeat(panel.upper - panel.point, len(grid), axis=0),
        grid,
    )
    seen = panels.gain(everywhere, measure, "D", "M").all
    assert seen.min() == pytest.approx(gain.worst.item(), abs=1e-9)
    assert seen.max() == pytest.approx(gain.best.item(), abs=1e-9)


def test_an_undefined_outcome_may_lie_between_the_ends_that_intervals_share():
    # D covers all of [0, .2]; M's two calls cover one end each and nothing between.
    panel = made([[[0.1, 0.1], [0.0, 0.2]]], [[[0.1, 0.1], [0.0, 0.0]]], [np.nan], contexts=("D", "M"))
    gain = panels.gain(panel, "covered", "D", "M")
    assert gain.worst == pytest.approx(-1.0)
    assert gain.best == pytest.approx(0.0)


@pytest.mark.parametrize("measure", MEASURES)
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 10_000))
def test_whatever_an_unreadable_reply_said_the_gain_lies_within_its_bounds(measure: Measure, seed):
    panel = random(seed, fallback=0.3, undefined=0.3)
    gain = panels.gain(panel, measure, "S", "M")
    rng = np.random.default_rng(seed + 1)
    for _ in range(20):
        shape = panel.point.shape
        ends = np.sort(rng.uniform(A, B, (*shape, 2)), axis=-1)
        loose = panel.is_fallback
        could_be = replace(
            panel,
            point=np.where(loose, rng.uniform(A, B, shape), panel.point),
            lower=np.where(loose, ends[..., 0], panel.lower),
            upper=np.where(loose, ends[..., 1], panel.upper),
            outcome=np.where(np.isnan(panel.outcome), rng.uniform(A, B, len(panel.outcome)), panel.outcome),
        )
        seen = panels.gain(could_be, measure, "S", "M").all
        assert np.all(seen >= gain.worst - 1e-12)
        assert np.all(seen <= gain.best + 1e-12)


def test_a_fallback_may_have_been_perfect_or_as_far_off_as_the_bounds_allow():
    fallback = np.zeros((1, 2, 2), dtype=bool)
    fallback[0, 1, 0] = True  # the matched context's first call
    panel = made([[[0.2, 0.2], [0.0, 0.2]]], 0.0, [0.5], fallback=fallback, contexts=("D", "M"))
    error = panels.gain(panel, "point_error", "D", "M")
    assert error.all == pytest.approx(0.3 - (0.5 + 0.3) / 2)
    assert np.isnan(error.complete).all()
    assert error.best == pytest.approx(0.3 - (0.0 + 0.3) / 2)
    assert error.worst == pytest.approx(0.3 - (1.5 + 0.3) / 2)
    score = panels.gain(panel, "interval_score", "D", "M")
    assert score.best == pytest.approx(3.0 - (0.0 + 3.0) / 2)
    assert score.worst == pytest.approx(3.0 - (15.0 + 3.0) / 2)
    drift = panels.gain(panel, "drift", "D", "M")
    assert drift.best == pytest.approx(0.0)
    assert drift.worst == pytest.approx(-1.2)  # from the call that was read, .2, to the far end, -1


def test_an_unread_call_is_at_least_as_far_from_its_sibling_as_the_bounds_are():
    fallback = np.zeros((1, 2, 2), dtype=bool)
    fallback[0, 1, 0] = True
    panel = made([[[0.0, 0.0], [0.0, 1.2]]], 0.0, [0.5], fallback=fallback, contexts=("D", "M"))
    drift = panels.gain(panel, "drift", "D", "M")
    assert drift.best == pytest.approx(-0.2)  # the sibling said 1.2, the outcome reaches 1
    assert drift.worst == pytest.approx(-2.2)


def test_drift_and_width_need_no_outcome():
    panel = random(3, undefined=1.0)
    for measure in ("drift", "width"):
        assert not np.isnan(panels.gain(panel, measure, "D", "M").all).any()


def test_a_fallback_elsewhere_leaves_a_pair_complete():
    fallback = np.zeros((1, 3, 2), dtype=bool)
    fallback[0, 2] = True
    panel = made([[[0.2, 0.2], [0.0, 0.2], [0.0, 0.0]]], 0.0, [0.5], fallback=fallback)
    assert not np.isnan(panels.gain(panel, "point_error", "D", "M").complete).any()
    assert np.isnan(panels.gain(panel, "point_error", "S", "M").complete).all()


def test_a_share_of_error_is_each_tasks_part_of_the_whole():
    panel = random(4, n=6)
    loss = np.array([1.0, 2.0, 3.0, np.nan, 0.0, 4.0])
    assert panels.share_of_error(panel, loss) == pytest.approx([0.1, 0.2, 0.3, 0.0, 0.0, 0.4])
    assert np.isnan(panels.share_of_error(panel, np.zeros(6))).all()


def test_the_task_scale_is_the_mean_absolute_outcome_and_undefined_where_nothing_moved():
    panel = made(np.zeros((6, 3, 2)), 0.1, [0.1, -0.3, np.nan, 0.5, 0.0, 0.0], seeds=2)
    scale = panels.task_scale(panel)
    assert scale[:2] == pytest.approx([0.2, 0.5])
    assert np.isnan(scale[2])
    gain = panels.gain(panel, "point_error", "D", "M")
    scaled = gain.scaled(np.array([0.2, 0.5, np.nan])[panel.task_of])
    assert scaled.all[:2] == pytest.approx(gain.all[:2] / 0.2)
    assert np.isnan(scaled.all[4:]).all()
    assert not np.isnan(scaled.best[:4]).any()


def test_tasks_may_hold_unlike_numbers_of_states_in_any_order():
    panel = replace(random(5), task_of=np.array([1, 0, 0, 2, 0, 1]), tasks=("a", "b", "c"))
    y = np.abs(panel.outcome)
    assert panels.task_scale(panel) == pytest.approx([y[[1, 2, 4]].mean(), y[[0, 5]].mean(), y[3]])
    share = panels.share_of_error(panel, y)
    assert share == pytest.approx(np.array([y[[1, 2, 4]].sum(), y[[0, 5]].sum(), y[3]]) / y.sum())
    total, count = panels.by_group(np.array([1.0, np.nan, 3.0]), np.array([0, 1, 0]), 3)
    assert (total.tolist(), count.tolist()) == ([4, 0, 0], [2, 0, 0])


def test_order_puts_rows_in_place_and_refuses_gaps_strangers_and_duplicates():
    keys = [("b", "M", 1), ("a", "D", 1), ("a", "M", 1), ("b", "D", 1)]
    place = panels.order(keys, ("a", "b"), ("D", "M"), (1,))
    assert place[..., 0].tolist() == [[1, 2], [3, 0]]
    with pytest.raises(Unpaired, match="1 rows missing, 0 not planned, first b/D/1"):
        panels.order(keys[:3], ("a", "b"), ("D", "M"), (1,))
    with pytest.raises(Unpaired, match="0 rows missing, 2 not planned"):
        panels.order(keys, ("a", "b"), ("D",), (1,))
    with pytest.raises(Unpaired, match="a/D/1 occurs 2 times"):
        panels.order([*keys, ("a", "D", 1)], ("a", "b"), ("D", "M"), (1,))


def test_an_outcome_outside_its_bounds_is_refused_because_worst_cases_would_be_wrong():
    with pytest.raises(Unpaired, match=r"outcome of s1 is 3.*\[-1, 1\] of roc_auc.*1 such"):
        made(np.zeros((2, 3, 2)), 0.1, [0.1, 3.0])


def test_losses_stand_on_their_own_unit():
    panel = random(8)
    seen = panels.losses(panel, "interval_score")
    assert seen.shape == (6, 3, 2)
    assert seen[2, 1, 0] == scoring.interval_score(
        panel.outcome[2], panel.lower[2, 1, 0], panel.upper[2, 1, 0]
    )
    np.testing.assert_allclose(panels.context_losses(panel, "interval_score"), seen.mean(axis=2))
