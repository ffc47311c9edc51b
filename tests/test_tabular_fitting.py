"""A change in skill is what the formula gives, and a planted truth is found."""

from __future__ import annotations

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from sklearn.metrics import log_loss

from predictive_credit.streams import stream
from predictive_credit.studies.tabular import fitting
from predictive_credit.studies.tabular.fitting import Array, Trial
from predictive_credit.studies.tabular.interventions import INTERVENTIONS, NAMES, PARENT, RECIPES
from predictive_credit.studies.tabular.pool import Kind, Task
from tests import small_tasks

N_TRAIN = 100
SHARED = ("more_leaves", "fewer_leaves", "stronger_l2", "subsampling", "slower_learning")


def trial_of(task: Task, *names: str, n_train: int = N_TRAIN) -> Trial:
    """The task's first rows for training, its last 60 held out."""
    rows = np.arange(len(task.y))
    return fitting.trial(task, rows[:n_train], rows[100:], names)


def names_of(kind: Kind) -> tuple[str, ...]:
    return tuple(intervention.name for intervention in INTERVENTIONS[kind])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_skill_is_one_minus_log_loss_over_that_of_the_training_shares(n_classes: int):
    task = small_tasks.task("C", "classification", n_classes=n_classes)
    model = lightgbm.LGBMClassifier(
        n_estimators=40, num_leaves=8, learning_rate=0.4, reg_lambda=1.0, min_child_samples=5, n_jobs=1,
        random_state=1, verbosity=-1,
    )  # fmt: skip
    model.fit(task.x[:100], task.y[:100], categorical_feature=[3])
    y, shares = task.y[100:], np.bincount(task.y[:100].astype(int)) / 100
    predicted = np.asarray(model.booster_.predict(task.x[100:]))
    if n_classes == 2:
        predicted = np.column_stack([1 - predicted, predicted])
    raised = np.maximum(predicted, 1 / (100 + n_classes))
    raised /= raised.sum(axis=1, keepdims=True)
    labels = list(range(n_classes))
    by_hand = 1 - log_loss(y, raised, labels=labels) / log_loss(y, np.tile(shares, (60, 1)), labels=labels)
    assert fitting.skill(PARENT, trial_of(task)) == pytest.approx(by_hand, abs=1e-9)


def test_skill_of_a_regression_is_one_minus_squared_error_over_that_of_the_training_mean():
    task = small_tasks.task("R", "regression")
    model = lightgbm.LGBMRegressor(
        n_estimators=40, num_leaves=8, learning_rate=0.4, reg_lambda=1.0, min_child_samples=5, n_jobs=1,
        random_state=1, verbosity=-1,
    )  # fmt: skip
    mean, deviation = task.y[:100].mean(), task.y[:100].std()
    model.fit(task.x[:100], (task.y[:100] - mean) / deviation, categorical_feature=[3])
    errors = task.y[100:] - (mean + deviation * np.asarray(model.booster_.predict(task.x[100:])))
    by_hand = 1 - (errors**2).mean() / ((task.y[100:] - mean) ** 2).mean()
    assert fitting.skill(PARENT, trial_of(task)) == pytest.approx(by_hand, abs=1e-9)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_skill_sees_a_planted_signal_and_nothing_in_noise(kind: Kind):
    x = stream(1, "signal").normal(size=(160, 4))
    y = (x[:, 0] > 0).astype(float) if kind == "classification" else x[:, 0]
    task = small_tasks.task("P", kind, x=x, y=y)
    noise = small_tasks.task("P", kind, x=x, y=stream(1, "noise").permutation(y))
    assert fitting.skill(PARENT, trial_of(task)) > 0.3
    assert fitting.skill(PARENT, trial_of(noise)) < 0.1


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_a_change_is_the_changed_models_skill_minus_the_parents(kind: Kind):
    trial = trial_of(small_tasks.task("A", kind), *names_of(kind))
    parent = fitting.skill(PARENT, trial)
    assert fitting.changes(trial) == tuple(
        round(fitting.skill(RECIPES[name], trial) - parent, 12) for name in trial.interventions
    )
    assert len(set(fitting.changes(trial))) == 6


def test_skill_does_not_know_a_regressions_unit():
    task = small_tasks.task("R", "regression")
    moved = replace(task, y=1000 * task.y - 5e4)
    names = names_of("regression")
    assert fitting.changes(trial_of(moved, *names)) == pytest.approx(
        fitting.changes(trial_of(task, *names)), abs=1e-6
    )


def test_class_weights_change_nothing_where_classes_are_balanced():
    task = small_tasks.task("B", "classification")
    order = np.argsort(task.y, kind="stable")
    halves = np.column_stack([order[:80], order[80:]]).ravel()  # 0, 1, 0, 1, ...
    balanced = small_tasks.task("B", "classification", x=task.x[halves], y=task.y[halves])
    skewed = small_tasks.task("B", "classification", x=task.x, y=(task.x[:, 0] > 1.0).astype(float))
    assert fitting.changes(trial_of(balanced, "class_weights")) == (0.0,)
    assert fitting.changes(trial_of(skewed, "class_weights")) != (0.0,)


def test_the_huber_loss_changes_nothing_where_no_residual_passes_its_bend():
    x = np.tile([0.0, 1.0], 80)[:, None]
    flat = small_tasks.task("H", "regression", x=x, y=x[:, 0])  # a deviation of 1 about the mean, never more
    heavy = small_tasks.task(
        "H", "regression", x=x, y=x[:, 0] * np.where(np.arange(160) % 14 == 1, 20.0, 1.0)
    )
    (nothing,) = fitting.changes(trial_of(flat, "robust_objective"))
    (worse,) = fitting.changes(trial_of(heavy, "robust_objective"))
    assert nothing == pytest.approx(0.0, abs=1e-9)
    assert worse != pytest.approx(0.0, abs=1e-3)


def test_slower_learning_gains_on_a_noisy_target_and_more_leaves_cannot():
    """Planted: one step of the first column, under much noise, which hasty trees follow."""
    rng = stream(3, "noisy")
    x = rng.normal(size=(1000, 4))
    y = (x[:, 0] > 0) + 1.5 * rng.normal(size=1000)
    task = small_tasks.task("N", "regression", x=x, y=y)
    rows = np.arange(1000)
    changes = fitting.changes(fitting.trial(task, rows[:500], rows[500:], names_of("regression")))
    known = dict(zip(names_of("regression"), changes, strict=True))
    assert float(known["fewer_leaves"]) > 0.05
    assert float(known["more_leaves"]) < 0.05


def test_a_class_absent_from_training_costs_a_stated_and_finite_loss():
    """Class 2 is in the last ten held-out rows alone; each costs log(n + k) in every model."""
    x = np.tile([0.0, 1.0], 60)[:, None]
    y = np.concatenate([x[:100, 0], x[100:110, 0], np.full(10, 2.0)])
    task = small_tasks.task("Z", "classification", x=x, y=y, n_classes=3)
    trial = fitting.trial(task, np.arange(100), np.arange(100, 120), ("class_weights",))
    perfect = fitting.floored(np.eye(3)[x[100:, 0].astype(int)], 100)
    constant = fitting.floored(np.tile([0.5, 0.5, 0.0], (20, 1)), 100)
    losses = [-np.log(p[np.arange(20), y[100:].astype(int)]).mean() for p in (perfect, constant)]
    # Trees come as near to 0 and 1 as the L2 penalty lets them, which is about the floor of 1 / 103.
    assert fitting.skill(PARENT, trial) == pytest.approx(1 - losses[0] / losses[1], abs=2e-3)
    assert fitting.changes(trial) == (0.0,)


def test_two_classes_of_three_in_a_small_budget_are_fitted_as_two():
    task = small_tasks.task("Z", "classification", n_classes=3)
    two = np.flatnonzero(task.y != 1)
    trial = fitting.trial(task, two[:60], np.arange(100, 160), ("more_leaves", "class_weights"))
    assert set(trial.y[:60]) == {0.0, 2.0}
    assert all(isinstance(change, float) for change in fitting.changes(trial))


def test_floored_probabilities_are_a_distribution_no_lower_than_a_class_never_seen():
    given = np.array([[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
    floored = fitting.floored(given, 7)
    assert floored.sum(axis=1) == pytest.approx(1.0)
    assert floored[0] == pytest.approx(np.array([1.0, 0.1, 0.1]) / 1.2)
    assert floored[1] == pytest.approx(given[1])


@pytest.mark.parametrize(
    ("kind", "train", "test", "reason"),
    [
        ("classification", [0, 0, 0], [0, 1], "constant training target: all 3 rows have the same class"),
        ("classification", [0, 1, 0], [1, 1], "constant held-out target: all 2 rows have the same class"),
        ("regression", [5, 5, 5], [0, 1], "constant training target: all 3 rows have the same value"),
        ("regression", [0, 1], [7, 7], "constant held-out target: all 2 rows have the same value"),
        ("regression", [], [0, 1], "no training row"),
        ("classification", [0, 1], [], "no held-out row"),
    ],
)
def test_rows_without_a_skill_are_undefined_with_their_reason(
    kind: Kind, train: list[float], test: list[float], reason: str
):
    y = np.array([*train, *test], dtype=float)
    task = small_tasks.task("U", kind, x=np.arange(len(y), dtype=float)[:, None], y=y)
    rows = np.arange(len(y))
    trial = fitting.trial(task, rows[: len(train)], rows[len(train) :], ("more_leaves", "stronger_l2"))
    assert fitting.changes(trial) == (reason, reason)


def test_a_change_beyond_the_targets_bounds_is_undefined_and_says_so():
    """Planted: held-out targets lie a hair from the training mean, so the constant is all but perfect."""
    rng = stream(4, "beyond")
    x = rng.normal(size=(160, 1))
    y = np.concatenate([3.0 * rng.normal(size=100), np.zeros(60)])
    y[100:] = y[:100].mean() + np.tile([1e-4, -1e-4], 30)
    (change,) = fitting.changes(trial_of(small_tasks.task("X", "regression", x=x, y=y), "fewer_leaves"))
    assert isinstance(change, str)
    assert change.startswith("change in skill beyond [-2, 2]: on the held-out rows one")


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_the_same_trial_gives_the_same_bits_and_sampling_is_part_of_it(kind: Kind):
    trial = trial_of(small_tasks.task("S", kind), *names_of(kind))
    first: tuple[float | str, ...] = fitting.changes(trial)
    assert fitting.changes(trial) == first
    assert first[names_of(kind).index("subsampling")] != 0.0


def test_held_out_rows_have_no_part_in_the_fit():
    """Other held-out targets, same predictions: a squared error moves by exactly what the targets moved."""
    task = small_tasks.task("R", "regression")
    far = task.y.copy()
    far[100:] += 1000.0
    moved = replace(task, y=far)
    mean, deviation = task.y[:100].mean(), task.y[:100].std()
    z = (task.y[100:] - mean) / deviation
    skills = [fitting.skill(PARENT, trial_of(one)) for one in (task, moved)]
    errors = [(1 - s) * (v**2).mean() for s, v in zip(skills, (z, z + 1000 / deviation), strict=True)]
    shift = 1000 / deviation
    # (e + shift)^2 = e^2 + 2 shift e + shift^2, and a mean e is at most the root of the mean e^2.
    assert errors[1] - errors[0] - shift**2 == pytest.approx(0.0, abs=2 * shift * errors[0] ** 0.5)


@pytest.mark.parametrize("kind", ["classification", "regression"])
def test_columns_that_a_small_budget_leaves_constant_or_empty_teach_nothing(kind: Kind):
    task = small_tasks.task("E", kind)
    x = np.column_stack([np.full(160, np.nan), np.ones(160)])
    trial = trial_of(replace(task, x=x, categorical=(1,)), *names_of(kind))
    assert fitting.skill(PARENT, trial) == pytest.approx(0.0, abs=1e-6)
    shared = [
        change for name, change in zip(names_of(kind), fitting.changes(trial), strict=True) if name in SHARED
    ]
    assert shared == pytest.approx([0.0] * 5, abs=1e-6)


def test_array_names_stay_out_of_the_model(recwarn: pytest.WarningsRecorder):
    task = small_tasks.task("W", "classification")
    odd = Task(
        name="W", kind="classification", target='t{"', x=task.x, categorical=(3,), y=task.y,
        classes=task.classes, features=('a"b', "a b", "a_b", "{}"), counts={},
    )  # fmt: skip
    assert fitting.skill(PARENT, trial_of(odd)) == fitting.skill(PARENT, trial_of(task))
    assert not recwarn.list


def test_every_recipe_is_one_of_the_closed_list():
    assert set(NAMES) == set(RECIPES) == {*names_of("classification"), *names_of("regression")}


def test_a_float_array_is_not_written_to() -> None:
    task = small_tasks.task("R", "regression")
    before: Array = task.x.copy()
    fitting.changes(trial_of(task, "subsampling"))
    np.testing.assert_array_equal(task.x, before)
