"""Fit one recipe on training rows and measure its skill on other rows.

Skill is 1 minus the model's loss over that of a constant: the training class shares under the log
loss, the training mean under squared error. Above 0 beats the constant; 1 is perfect.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictive_credit.studies.tabular.interventions import PARENT, RECIPES, TARGET, Recipe
from predictive_credit.studies.tabular.pool import Kind, Task

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# One thread and row-wise histograms: sums are then added in one order, whatever the machine's load.
# Two threads would be slower on tables this small, and processes run outside.
FIXED: dict[str, Any] = {
    "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 1, "verbosity": -1,
    "min_data_in_leaf": 5,  # a quarter of a small table has few rows
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """What one work unit carries: the parent and some interventions on the same two sets of rows.

    Rows are the training rows, then the held-out ones: `x` (row, feature) with NaN missing, `y`
    (row,) of class codes or values. `n_classes` is the task's, 0 for a regression.
    """

    kind: Kind
    interventions: tuple[str, ...]
    x: Array
    y: Array
    n_train: int
    n_classes: int
    categorical: tuple[int, ...]

    @property
    def undefined(self) -> str | None:
        """Why no skill can be had of these rows, or None."""
        word = "class" if self.kind == "classification" else "value"
        for name, y in (("training", self.y[: self.n_train]), ("held-out", self.y[self.n_train :])):
            if len(y) == 0:
                return f"no {name} row"
            if y.min() == y.max():
                return f"constant {name} target: all {len(y)} rows have the same {word}"
        return None


def trial(task: Task, train: Rows, test: Rows, interventions: Sequence[str]) -> Trial:
    """Gather one work unit's rows; `train` and `test` are positions in the task's."""
    rows = np.concatenate([train, test])
    return Trial(
        kind=task.kind,
        interventions=tuple(interventions),
        x=task.x[rows],
        y=task.y[rows],
        n_train=len(train),
        n_classes=len(task.classes) if task.kind == "classification" else 0,
        categorical=task.categorical,
    )


def changes(trial: Trial) -> tuple[float | str, ...]:
    """Held-out skill of each intervention's model minus the parent's, or why there is none.

    Positive means that the intervention helped.
    """
    if trial.undefined is not None:
        return (trial.undefined,) * len(trial.interventions)
    parent = skill(PARENT, trial)
    return tuple(_bounded(skill(RECIPES[name], trial) - parent) for name in trial.interventions)


def skill(recipe: Recipe, trial: Trial) -> float:
    """Skill on the trial's held-out rows of the recipe's model, fitted on its training rows.

    At most 1, and negative where the constant is better. The trial must not be `undefined`.
    """
    if trial.kind == "classification":
        return _classification_skill(recipe, trial)
    return _regression_skill(recipe, trial)


def floored(probabilities: Array, n_train: int) -> Array:
    """Probabilities (row, class), none below 1 / (n_train + n_classes), each row adding up to 1.

    By the rule of succession that is what a class never seen in n_train rows is given. A class
    absent from training would otherwise cost an infinite log loss, and one confident error more
    than all other rows; parent, changed model and constant are floored alike.
    """
    raised = np.maximum(probabilities, 1.0 / (n_train + probabilities.shape[1]))
    scaled: Array = raised / raised.sum(axis=1, keepdims=True)
    return scaled


def _classification_skill(recipe: Recipe, trial: Trial) -> float:
    n, y = trial.n_train, trial.y.astype(int)
    shares = np.bincount(y[:n], minlength=trial.n_classes) / n
    constant = np.tile(shares, (len(y) - n, 1))
    return 1.0 - _log_loss(y[n:], floored(_probabilities(recipe, trial), n)) / _log_loss(
        y[n:], floored(constant, n)
    )


def _log_loss(y: Rows, probabilities: Array) -> float:
    return float(-np.log(probabilities[np.arange(len(y)), y]).mean())


def _probabilities(recipe: Recipe, trial: Trial) -> Array:
    """Held-out probabilities (row, class) of a model of the classes present in training; 0 elsewhere."""
    n = trial.n_train
    present, codes, counts = np.unique(trial.y[:n].astype(int), return_inverse=True, return_counts=True)
    is_binary = len(present) == 2
    objective = (
        {"objective": "binary"} if is_binary else {"objective": "multiclass", "num_class": len(present)}
    )
    weights = (n / (len(present) * counts))[codes] if recipe.balanced else None
    predicted = _predicted(recipe, trial, codes.astype(float), weights, objective)
    every = np.zeros((len(trial.y) - n, trial.n_classes))
    every[:, present] = np.column_stack([1.0 - predicted, predicted]) if is_binary else predicted
    return every


def _regression_skill(recipe: Recipe, trial: Trial) -> float:
    """In units of the training target's deviation, so that Huber's bend lies at 1 in every task."""
    n = trial.n_train
    z = (trial.y - trial.y[:n].mean()) / trial.y[:n].std()
    objective = {"objective": "huber", "alpha": 1.0} if recipe.huber else {"objective": "regression"}
    predicted = _predicted(recipe, trial, z[:n], None, objective)
    return 1.0 - float(((z[n:] - predicted) ** 2).mean()) / float((z[n:] ** 2).mean())


def _predicted(
    recipe: Recipe, trial: Trial, label: Array, weight: Array | None, objective: dict[str, Any]
) -> Array:
    """Held-out predictions: (row,), or (row, class) of several classes."""
    import lightgbm

    settings = FIXED | objective | {
        "num_leaves": recipe.leaves, "lambda_l2": recipe.l2, "learning_rate": recipe.pace.rate,
        "feature_fraction": recipe.share, "bagging_fraction": recipe.share,
        "bagging_freq": int(recipe.share < 1.0),
    }  # fmt: skip
    # Names are positions: LightGBM refuses some characters of real column names and merges others.
    data = lightgbm.Dataset(
        trial.x[: trial.n_train], label=label, weight=weight, params=settings,
        feature_name=[f"f{k}" for k in range(trial.x.shape[1])],
        categorical_feature=list(trial.categorical),
    )  # fmt: skip
    model = lightgbm.train(settings, data, num_boost_round=recipe.pace.trees)
    return np.asarray(model.predict(trial.x[trial.n_train :], num_threads=1), dtype=float)


def _bounded(change: float) -> float | str:
    """The change, or why it is no outcome."""
    if not TARGET.lower <= change <= TARGET.upper:
        # A skill is at most 1, so one of the two lies below -1.
        return (
            f"change in skill beyond [{TARGET.lower:g}, {TARGET.upper:g}]: on the held-out rows one of the "
            "two models has more than twice the loss of the constant"
        )
    # Equal predictions can differ in the last bit of their loss, and such a difference has a sign.
    return round(change, 12)
