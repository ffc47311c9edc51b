"""From a forecaster's errors to what a new point may come to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from predictive_credit.errors import BadSource
from predictive_credit.records import Target
from predictive_credit.selection import errors as erring
from predictive_credit.selection.errors import Errors
from predictive_credit.streams import stream
from predictive_credit.studies.evaluation import to_panels
from tests import planted

TARGET = Target(
    name="y", phrase="Y", unit="points", suffix="", size="0.0###", lower=-100.0, upper=100.0
)  # fmt: skip


def made(residual: list[float], task_of: list[int], **target: Any) -> Errors:
    return Errors(
        target=replace(TARGET, **target), contexts=("M",), residual=np.array([residual]),
        task_of=np.array(task_of),
    )  # fmt: skip


def gains(errors: Errors, *points: float, baseline: float = 0.0) -> np.ndarray:
    return erring.possible(errors, np.array(points), np.zeros(len(points), dtype=int), baseline)


def test_errors_are_outcome_minus_the_mean_of_the_calls_by_task():
    panel = to_panels(planted.study(planted.reader))["roc_auc"]
    found = erring.of(panel, ("M", "D"), "here")
    assert found.contexts == ("M", "D")
    assert np.all(np.diff(found.task_of) >= 0)
    wanted = panel.outcome - panel.point[:, panel.of("M")].mean(axis=1)
    assert sorted(found.residual[0]) == pytest.approx(sorted(wanted))
    for task in range(len(panel.tasks)):
        assert sorted(found.residual[0][found.task_of == task]) == pytest.approx(
            sorted(wanted[panel.task_of == task])
        )


def test_an_undefined_outcome_has_no_error():
    panel = to_panels(planted.study(planted.reader))["roc_auc"]
    outcome = panel.outcome.copy()
    outcome[0] = np.nan
    found = erring.of(replace(panel, outcome=outcome), ("M",), "here")
    assert found.residual.shape == (1, len(outcome) - 1)
    assert np.isfinite(found.residual).all()


def test_too_few_tasks_are_refused():
    panel = to_panels(planted.study(planted.reader))["roc_auc"]
    few = np.where(panel.task_of < 2, panel.outcome, np.nan)
    with pytest.raises(BadSource, match="here has outcomes of 2 tasks, and errors are trusted from 3 on"):
        erring.of(replace(panel, outcome=few), ("M",), "here")


def test_tasks_weigh_alike_whatever_states_they_have():
    errors = made([1.0, 4.0, 4.0, 4.0, 7.0], [0, 1, 1, 1, 2])
    assert errors.weight == pytest.approx([1 / 3, 1 / 9, 1 / 9, 1 / 9, 1 / 3])
    assert errors.bias[0].mean == pytest.approx(4.0)


def test_a_bias_that_all_tasks_share_is_put_right_and_one_they_dispute_is_not():
    shared = made([2.0, 2.0, 2.0], [0, 1, 2])
    assert shared.bias[0].used == pytest.approx(2.0)
    assert gains(shared, 1.0) == pytest.approx(np.full((1, 3), 3.0))
    disputed = made([-4.0, 1.0, 4.0], [0, 1, 2])
    assert disputed.bias[0].used == 0.0
    assert gains(disputed, 1.0).mean() == pytest.approx(1.0)


def test_between_them_a_bias_shrinks_by_its_squared_standard_error():
    bias = erring.shrunk(np.array([1.0, 2.0, 3.0]), np.array([0, 1, 2]))
    assert bias.error == pytest.approx(1 / np.sqrt(3))
    assert bias.used == pytest.approx(2.0 * (1.0 - (1 / 3) / 4.0))


def test_no_error_at_all_has_no_bias_and_no_spread():
    nothing = made([0.0, 0.0, 0.0], [0, 1, 2])
    assert nothing.bias[0].used == 0.0
    assert (gains(nothing, 0.5) == 0.5).all()


def test_a_gain_is_positive_where_the_outcome_is_better_and_counts_from_the_baseline():
    zero = [0.0, 0.0, 0.0]
    assert (gains(made(zero, [0, 1, 2], better="lower"), -2.0) == 2.0).all()
    assert (gains(made(zero, [0, 1, 2]), 5.0, baseline=3.0) == 2.0).all()
    assert (gains(made(zero, [0, 1, 2], better="lower"), 5.0, baseline=3.0) == -2.0).all()


def test_no_outcome_lies_outside_what_it_can_be():
    errors = made([-5.0, 0.0, 5.0], [0, 1, 2], lower=-1.0, upper=1.0)
    assert sorted(gains(errors, 0.5)[0]) == [-1.0, 0.5, 1.0]


def test_a_task_left_out_lends_no_error():
    errors = made([1.0, 4.0, 4.0, 7.0], [0, 1, 1, 2]).without(1)
    assert errors.residual.tolist() == [[1.0, 7.0]]
    assert errors.task_of.tolist() == [0, 1]


def test_proposals_of_one_task_borrow_from_one_task_and_others_do_not():
    errors = made([0.0] * 12, [0] * 4 + [1] * 4 + [2] * 4)
    states = erring.together(errors, np.array([0, 0, 1]), draws=3_000, rng=stream(1, "t"))
    lender = errors.task_of[states]
    assert (lender[:, 0] == lender[:, 1]).all()
    apart = (lender[:, 0] != lender[:, 2]).mean()
    # In a resample of three tasks two draws agree more often than by a third: 5/9.
    assert apart == pytest.approx(4 / 9, abs=0.03)
    assert len(np.unique(states[:, 0])) == 12
    assert (states[:, 0] != states[:, 1]).mean() == pytest.approx(3 / 4, abs=0.03)


def test_draws_take_tasks_alike_and_follow_their_stream():
    errors = made([0.0] * 8, [0, 1, 1, 1, 1, 1, 2, 2])

    def drawn(name: str) -> np.ndarray:
        return erring.together(errors, np.array([0]), draws=9_000, rng=stream(1, name))

    shares = np.bincount(drawn("a")[:, 0], minlength=8) / 9_000
    assert shares == pytest.approx(errors.weight, abs=0.02)
    assert (drawn("a") == drawn("a")).all()
    assert (drawn("a") != drawn("b")).any()
