"""Fit one recipe on training rows and measure it on other rows, in both targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictive_credit.studies.controlled.interventions import PARENT, RECIPES, Recipe
from predictive_credit.studies.controlled.regimes import Array, Dataset, Sample

# The learners are imported where they are fitted: most stages never fit, and scikit-learn takes seconds.
if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

CLIPPED_AT = (0.05, 0.95)  # quantiles of the training rows
KEPT = 3  # one feature in so many, at least two

# Probabilities stay this far from 0 and 1, so that no log loss exceeds 9.3 nats and no change in it
# leaves the target's range, whatever a held-out row far from all training rows brings.
PROBABILITY_FLOOR = 1e-4


class Scores(NamedTuple):
    """One number a target, named as the target is: levels, or changes from one model to another."""

    accuracy_pp: float  # percent, or percentage points
    log_loss: float  # nats a row


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """What one work unit carries: a data set, and the interventions to try on it."""

    dataset: Dataset
    interventions: tuple[str, ...]


def changes(trial: Trial) -> tuple[Scores, ...] | str:
    """Held-out scores of each intervention's model minus the parent's, or why there are none."""
    why = undefined(trial.dataset.train.labels)
    if why is not None:
        return why
    parent = scores(PARENT, trial.dataset.train, trial.dataset.held_out)
    return tuple(
        _change(scores(RECIPES[name], trial.dataset.train, trial.dataset.held_out), parent)
        for name in trial.interventions
    )


def undefined(labels: NDArray[np.float64]) -> str | None:
    """Why no model can be fitted to training labels (row,), or None."""
    if len(labels) == 0:
        return "no training row"
    if labels.min() == labels.max():
        return (
            f"single-class training labels: all {len(labels)} are {'positive' if labels[0] else 'negative'}"
        )
    return None


def scores(recipe: Recipe, train: Sample, other: Sample) -> Scores:
    """Accuracy in percent and log loss in nats on other rows of the recipe's model, fitted on `train`."""
    data, unseen = design(recipe, train, other.inputs)
    chance = fit(recipe, data, train.labels).predict_proba(unseen)[:, 1]
    right = (chance > 0.5) == (other.labels == 1.0)
    given = np.where(other.labels == 1.0, chance, 1.0 - chance)
    surprise = -np.log(np.clip(given, PROBABILITY_FLOOR, 1.0 - PROBABILITY_FLOOR))
    return Scores(accuracy_pp=100.0 * float(right.mean()), log_loss=float(surprise.mean()))


def fit(recipe: Recipe, data: Array, labels: Array) -> LogisticRegression:
    """The recipe's logistic regression on (row, feature). The intercept is not penalised."""
    from sklearn.linear_model import LogisticRegression

    weight = "balanced" if recipe.class_balanced else None
    # Far tighter than scikit-learn's tolerance of 1e-4, whose stopping error reaches the third
    # decimal of a log loss.
    model = LogisticRegression(C=recipe.c, class_weight=weight, solver="lbfgs", tol=1e-6, max_iter=5_000)
    return model.fit(data, labels)


def design(recipe: Recipe, train: Sample, inputs: Array) -> tuple[Array, Array]:
    """The recipe's features of the training rows and of `inputs`, each (row, feature).

    Quantiles, means, deviations and the selection come from the training rows alone.
    """
    data, unseen = train.inputs, inputs
    if recipe.is_clipped:
        low, high = np.quantile(data, CLIPPED_AT, axis=0)
        data, unseen = np.clip(data, low, high), np.clip(unseen, low, high)
    if recipe.is_selected:
        from sklearn.feature_selection import SelectKBest, f_classif

        kept = SelectKBest(f_classif, k=n_kept(data.shape[1])).fit(data, train.labels)
        data, unseen = kept.transform(data), kept.transform(unseen)
    data, unseen = standardised(data, unseen)
    if recipe.is_quadratic:
        from sklearn.preprocessing import PolynomialFeatures

        products = PolynomialFeatures(degree=2, include_bias=False).fit(data)
        data, unseen = standardised(products.transform(data), products.transform(unseen))
    return data, unseen


def n_kept(n_features: int) -> int:
    """How many of a data set's features selection keeps."""
    return min(n_features, max(2, round(n_features / KEPT)))


def standardised(data: Array, unseen: Array) -> tuple[Array, Array]:
    """Both with mean 0 and deviation 1 in `data`, (row, feature); a constant feature becomes 0 in it."""
    mean, deviation = data.mean(axis=0), data.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    return (data - mean) / scale, (unseen - mean) / scale


def _change(changed: Scores, parent: Scores) -> Scores:
    """Rounded, since equal models can differ in the last bit and such a difference has a sign."""
    return Scores(*(round(a - b, 10) for a, b in zip(changed, parent, strict=True)))
