"""A correction is fitted on whole other tasks, holds for a further one, and knows nothing of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from predictive_credit.recalibration import Pool, corrected, leave_one_task_out, scores, tasks_needed
from predictive_credit.scoring import covered
from predictive_credit.streams import stream

Array = NDArray[np.float64]


def column(*values: float) -> Array:
    """One call a state."""
    return np.array(values, dtype=float)[:, None]


def pool(*tasks: list[float]) -> Pool:
    """One state of a single call a score."""
    task_of = np.repeat(np.arange(len(tasks)), [len(of) for of in tasks])
    return Pool(score=column(*(value for of in tasks for value in of)), task_of=task_of)


def plain(found: Pool, without: int | None, level: float = 0.8) -> float:
    """The definition, a score at a time: shares of tasks, one further task above all of them."""
    by_task: dict[int, list[float]] = {}
    for row, task in zip(found.score, found.task_of, strict=True):
        by_task.setdefault(int(task), []).extend(float(value) for value in row if not math.isnan(value))
    others = [of for task, of in by_task.items() if task != without and of]
    for value in sorted(value for of in others for value in of):
        reached = sum(sum(other <= value for other in of) / len(of) for of in others)
        if reached / (len(others) + 1) >= level - 1e-9:
            return value
    return math.inf


def test_a_score_is_how_far_the_ends_have_to_move_to_hold_the_outcome():
    outcome = np.array([0.5, 1.0, 1.25, -0.5, np.nan])
    found = scores(outcome, np.zeros((5, 2)), np.ones((5, 2)))
    assert found == pytest.approx(column(-0.5, 0.0, 0.25, 0.5, np.nan).repeat(2, axis=1), nan_ok=True)


def test_of_single_scores_it_is_the_quantile_of_split_conformal():
    five = pool([0.3], [0.1], [0.5], [0.2], [0.4])
    # ceil(.8 (n + 1)) is the fifth of five and the fourth of four.
    assert five.correction() == 0.5
    assert list(leave_one_task_out(five, 5)) == [0.5, 0.5, 0.4, 0.5, 0.5]
    nine = pool(*([k / 10] for k in range(1, 10)))
    assert nine.correction() == 0.8


def test_a_task_of_many_states_weighs_as_much_as_a_task_of_one():
    many = pool([0.01] * 20, *([k / 10] for k in range(1, 9)))
    # 9 tasks, of which 8 have to lie below: the twenty are one of them, not twenty of twenty-eight.
    assert many.correction() == 0.7
    assert (many.n_tasks(), many.n_scores()) == (9, 28)
    assert (many.n_tasks(without=0), many.n_scores(without=0)) == (8, 8)


def test_asking_a_state_twice_adds_nothing():
    rng = stream(7, "twice")
    task_of = np.repeat(np.arange(8), 3)
    once = rng.normal(size=(24, 1))
    single = leave_one_task_out(Pool(score=once, task_of=task_of), 8)
    assert list(leave_one_task_out(Pool(score=once.repeat(2, axis=1), task_of=task_of), 8)) == list(single)


def test_fewer_than_four_other_tasks_carry_no_correction():
    assert tasks_needed() == 4
    assert tasks_needed(0.9) == 9
    four = pool([0.1, 0.2], [0.2], [0.3], [0.4])
    assert four.correction() == 0.4
    assert np.isinf(leave_one_task_out(four, 4)).all()


def test_a_task_without_a_defined_outcome_counts_for_nothing_and_gets_the_correction_of_all():
    found = pool([0.1], [0.2], [0.3], [0.4], [math.nan, math.nan])
    assert (found.n_tasks(), found.n_tasks(without=4)) == (4, 4)
    assert found.correction(without=4) == found.correction() == 0.4
    assert math.isinf(found.correction(without=0))


def test_nothing_defined_is_no_task_and_no_correction():
    nothing = pool([math.nan], [math.nan])
    assert (nothing.n_tasks(), nothing.n_scores()) == (0, 0)
    assert math.isinf(nothing.correction(without=0))


tasks = st.lists(
    st.lists(st.one_of(st.integers(-3, 3).map(float), st.just(math.nan)), min_size=1, max_size=5),
    min_size=1,
    max_size=14,
)


@given(tasks, st.sampled_from([0.5, 0.8, 0.9]))
def test_leaving_a_task_out_is_what_its_definition_says_whatever_the_sizes_and_ties(of, level):
    found = pool(*of)
    assert found.correction(level=level) == plain(found, None, level)
    for task in range(len(of)):
        assert found.correction(without=task, level=level) == plain(found, task, level)


@pytest.mark.parametrize("n_tasks", [6, 12, 24])
def test_a_further_tasks_interval_holds_its_outcome_as_often_as_the_level_says(n_tasks):
    """Tasks that differ in scale and in bias, states that share theirs; every task left out in turn."""
    rng, held, raw = stream(7, "exchangeable", str(n_tasks)), [], []
    task_of = np.repeat(np.arange(n_tasks), 6)
    for _ in range(600):
        bias, scale = rng.normal(0.0, 1.0, n_tasks), rng.lognormal(0.0, 0.7, n_tasks)
        outcome = rng.normal(bias[task_of], scale[task_of])
        middle, half = rng.normal(0.0, 0.2, (len(task_of), 2)), rng.lognormal(-0.5, 0.5, (len(task_of), 2))
        lower, upper = middle - half, middle + half
        found = Pool(score=scores(outcome, lower, upper), task_of=task_of)
        mended = corrected(lower, upper, leave_one_task_out(found, n_tasks)[task_of])
        held.append(covered(outcome[:, None], mended.lower, mended.upper).mean())
        raw.append(covered(outcome[:, None], lower, upper).mean())
    error = float(np.std(held)) / len(held) ** 0.5
    assert np.mean(raw) < 0.6
    # The further task's weight, and at most one score's, lie between the two bounds.
    assert 0.8 - 3 * error < np.mean(held) < 0.8 + (1 + 1 / 12) / n_tasks + 3 * error


def test_taking_every_score_for_a_task_of_its_own_would_promise_too_much():
    """Why tasks weigh and not states: the states of a task move together."""
    rng = stream(7, "apart")
    whole: list[float] = []
    apart: list[float] = []
    task_of, each = np.repeat(np.arange(12), 20), range(12)
    lower, upper = np.full((240, 1), -0.1), np.full((240, 1), 0.1)
    for _ in range(200):
        outcome = rng.normal(0.0, 1.0, 12)[task_of] + 0.1 * rng.normal(size=240)
        score = scores(outcome, lower, upper)
        fitted = leave_one_task_out(Pool(score=score, task_of=task_of), 12)
        naive = np.array([Pool(score=score[task_of != t], task_of=np.arange(220)).correction() for t in each])
        for correction, held in ((fitted, whole), (naive, apart)):
            mended = corrected(lower, upper, correction[task_of])
            held.append(covered(outcome[:, None], mended.lower, mended.upper).mean())
    assert np.mean(apart) < 0.79
    assert np.mean(whole) >= 0.8


def test_a_tasks_own_outcomes_have_no_part_in_its_correction():
    rng = stream(7, "leak")
    task_of = np.repeat(np.arange(7), 4)
    outcome, lower = rng.normal(size=28), rng.normal(-1.0, 0.3, size=(28, 2))
    before = leave_one_task_out(Pool(score=scores(outcome, lower, lower + 1.0), task_of=task_of), 7)
    moved = np.where(task_of == 2, outcome + 50.0, outcome)
    after = leave_one_task_out(Pool(score=scores(moved, lower, lower + 1.0), task_of=task_of), 7)
    assert after[2] == before[2]
    assert (np.delete(after, 2) > np.delete(before, 2)).all()


def test_ends_move_by_the_correction_of_their_state_and_meet_where_they_would_cross():
    lower, upper = np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 1.2], [1.0, 1.2]])
    found = corrected(lower, upper, np.array([0.5, -0.25]))
    assert found.lower == pytest.approx(np.array([[-0.5, 0.5], [0.25, 1.1]]))
    assert found.upper == pytest.approx(np.array([[1.5, 1.7], [0.75, 1.1]]))
    assert found.n_collapsed == 1


def test_an_infinite_correction_is_refused():
    ends = np.zeros((2, 1)), np.ones((2, 1))
    with pytest.raises(ValueError, match="seen inf at state 1; fit it on more tasks"):
        corrected(*ends, np.array([0.1, np.inf]))
