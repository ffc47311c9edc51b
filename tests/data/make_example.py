"""The worked example of the table study: thirty planned changes of small models, really fitted.

    python tests/data/make_example.py

writes beside itself
  example_states.csv    states, explanations and outcomes
  example_pending.csv   the same before a single outcome is known
  example_outcomes.csv  the outcomes alone, as they arrive later

Five data sets that ship with scikit-learn, three model families each, two changes each. Parent and
changed model are fitted on the same half of the rows and scored on the other half, over five
stratified splits; an outcome is the mean change, changed model minus parent, in held-out accuracy
(percentage points) and in held-out log loss (nats; lower is better). The explanations were written
from textbook reasoning before the outcomes were computed, and some of them are wrong.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectPercentile
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).parent
SPLITS = 5
HEADER = ("id", "dataset", "family", "description", "intervention", "explanation", "accuracy_pp", "log_loss")


class Plan(NamedTuple):
    """One row before its outcome: where it belongs, the change by name, and why it should work."""

    dataset: str
    family: str
    change: str
    explanation: str


def diabetes() -> tuple[Any, Any]:
    """Disease progression above or below its median."""
    rows, progression = datasets.load_diabetes(return_X_y=True)
    return rows, (progression > np.median(progression)).astype(int)


DATASETS: Mapping[str, tuple[Callable[[], tuple[Any, Any]], str]] = {
    "breast_cancer": (
        partial(datasets.load_breast_cancer, return_X_y=True),
        "tells malignant from benign tumours by thirty measurements of cell nuclei",
    ),
    "diabetes": (
        diabetes,
        "asks whether diabetes progresses faster than in the median patient, from ten baseline measurements",
    ),
    "digits": (
        partial(datasets.load_digits, return_X_y=True),
        "names the handwritten digit in an image of 8 by 8 grey pixels",
    ),
    "iris": (
        partial(datasets.load_iris, return_X_y=True),
        "names the species of an iris from four lengths and widths of its flower",
    ),
    "wine": (
        partial(datasets.load_wine, return_X_y=True),
        "names the cultivar of a wine from thirteen chemical measurements",
    ),
}  # fmt: skip


def linear(*steps: Any, strength: float = 1.0) -> Any:
    """Logistic regression on standardised features; `strength` is the inverse of the L2 penalty."""
    return make_pipeline(StandardScaler(), *steps, LogisticRegression(C=strength, max_iter=5000))


def tree(**settings: Any) -> Any:
    """A decision tree."""
    return DecisionTreeClassifier(random_state=0, **settings)


def forest() -> Any:
    """A hundred trees, each of its own bootstrap sample."""
    return RandomForestClassifier(n_estimators=100, random_state=0)


def neighbours(*steps: Any, scaled: bool = True, n: int = 5, weights: str = "uniform") -> Any:
    """Nearest neighbours."""
    before = [StandardScaler()] if scaled else []
    return make_pipeline(*before, *steps, KNeighborsClassifier(n_neighbors=n, weights=weights))


PARENTS: Mapping[str, tuple[Callable[[], Any], str]] = {
    "linear": (linear, "an L2 logistic regression (C = 1) on standardised features"),
    "trees": (tree, "a single decision tree grown until its leaves are pure"),
    "neighbours": (neighbours, "a five-nearest-neighbour vote on standardised features"),
}

CHANGES: Mapping[str, tuple[Callable[[], Any], str]] = {
    "stronger_l2": (partial(linear, strength=0.01), "Strengthen the L2 penalty a hundredfold (C = 0.01)."),
    "weaker_l2": (partial(linear, strength=100.0), "Weaken the L2 penalty a hundredfold (C = 100)."),
    "interactions": (
        lambda: linear(PolynomialFeatures(2, include_bias=False)),
        "Add all squares and pairwise products of the standardised features.",
    ),
    "half_features": (
        lambda: linear(SelectPercentile(percentile=50)),
        "Keep the half of the features with the largest ANOVA F on the training rows.",
    ),
    "two_components": (
        lambda: linear(PCA(2, random_state=0)),
        "Replace the features by their first two principal components.",
    ),
    "depth_3": (partial(tree, max_depth=3), "Limit the tree to depth three."),
    "leaves_of_10": (partial(tree, min_samples_leaf=10), "Require ten training rows in every leaf."),
    "forest": (forest, "Grow a random forest of a hundred trees instead of the single tree."),
    "one_neighbour": (partial(neighbours, n=1), "Ask one nearest neighbour instead of five."),
    "many_neighbours": (partial(neighbours, n=25), "Ask twenty-five nearest neighbours instead of five."),
    "distance_weights": (
        partial(neighbours, weights="distance"), "Weigh each neighbour's vote by the inverse of its distance."
    ),
    "unscaled": (partial(neighbours, scaled=False), "Leave the features in their own units."),
}  # fmt: skip

PLANS: tuple[Plan, ...] = (
    Plan(
        "breast_cancer", "linear", "stronger_l2",
        "The thirty measurements are strongly correlated, so shrinking costs few decisions, but it pulls "
        "probabilities of clear cases towards one half. I expect accuracy to fall by about 1 percentage "
        "point and log loss to rise by about 0.06 nats.",
    ),
    Plan(
        "breast_cancer", "linear", "weaker_l2",
        "Direction: accuracy decreases, log loss increases\n"
        "Target: accuracy down by 1 percentage point, log loss up by 0.15 nats\n"
        "Intermediate: coefficients grow tenfold and many held-out probabilities come near 0 or 1\n"
        "Regime: nearly separable classes and few training rows\n"
        "Falsifier: log loss stays within 0.02 nats of the parent's\n"
        "Counterfactual: with ten times the rows the penalty would hardly matter",
    ),
    Plan(
        "breast_cancer", "trees", "forest",
        "Averaging a hundred decorrelated trees removes most of the variance of one tree and replaces its "
        "votes of 0 and 1 by graded probabilities. Accuracy should increase by 3 percentage points; log loss "
        "should decrease by 2.3 nats, because a pure leaf that is wrong costs dozens of nats.",
    ),
    Plan(
        "breast_cancer", "trees", "depth_3",
        "Direction: accuracy about unchanged, log loss decreases strongly\n"
        "Target: accuracy up by 0.3 percentage points, log loss down by 1.5 nats\n"
        "Intermediate: impure leaves give probabilities between 0.05 and 0.95",
    ),
    Plan(
        "breast_cancer", "neighbours", "one_neighbour",
        "One neighbour follows label noise at the border between the classes and can only say 0 or 1. "
        "Accuracy should decrease by 1 percentage point and log loss increase by 1.3 nats.",
    ),
    Plan(
        "breast_cancer", "neighbours", "many_neighbours",
        "Direction: accuracy decreases slightly, log loss decreases\n"
        "Target: accuracy down by 0.5 percentage points, log loss down by 0.15 nats\n"
        "Regime: classes overlap little, so a wide vote rarely changes the winner\n"
        "Falsifier: log loss increases",
    ),
    Plan(
        "diabetes", "linear", "stronger_l2",
        "With ten features and some two hundred training rows the unpenalised fit already generalises, and "
        "this penalty shrinks every probability towards one half. Accuracy should hardly change (0.2 points "
        "up), and log loss should increase by 0.02 nats.",
    ),
    Plan(
        "diabetes", "linear", "interactions",
        "Direction: accuracy decreases, log loss increases\n"
        "Target: accuracy down by 3 percentage points, log loss up by 0.15 nats\n"
        "Intermediate: 65 coefficients instead of 10, and training accuracy well above held-out accuracy\n"
        "Regime: noisy outcome and few rows for each coefficient\n"
        "Falsifier: held-out accuracy improves\n"
        "Counterfactual: with a stronger penalty on the products the loss would be halved",
    ),
    Plan(
        "diabetes", "trees", "forest",
        "The outcome is noisy, so a tree with pure leaves has learned the noise by heart; averaging undoes "
        "most of it. Accuracy should increase by 8 percentage points and log loss decrease by 9 nats.",
    ),
    Plan(
        "diabetes", "trees", "leaves_of_10",
        "Leaves of ten rows average over the noise that single rows carry, and their shares are honest "
        "probabilities. I expect 5 percentage points more accuracy and 8 nats less log loss.",
    ),
    Plan(
        "diabetes", "neighbours", "many_neighbours",
        "Direction: accuracy increases, log loss decreases\n"
        "Target: accuracy up by 3 percentage points, log loss down by 0.6 nats\n"
        "Intermediate: probabilities of exactly 0 or 1 disappear\n"
        "Regime: overlapping classes, where five votes are mostly noise\n"
        "Falsifier: accuracy decreases\n"
        "Counterfactual: with well separated classes the number of neighbours would not matter",
    ),
    Plan(
        "diabetes", "neighbours", "unscaled",
        "The features of this table come centred and scaled to equal length, so leaving out the "
        "standardisation changes no order of distances. Both changes should be zero.",
    ),
    Plan(
        "digits", "linear", "stronger_l2",
        "Sixty-four pixels with many that are almost always blank: the penalty tames their coefficients but "
        "also flattens the scores of ten classes. Accuracy down by 1.5 percentage points, log loss up by 0.3 "
        "nats.",
    ),
    Plan(
        "digits", "linear", "two_components",
        "Direction: accuracy collapses, log loss increases\n"
        "Target: accuracy down by 42 percentage points, log loss up by 1.2 nats\n"
        "Intermediate: two components hold about a fifth of the variance and most digits overlap on them\n"
        "Regime: any data whose classes need more than two directions\n"
        "Falsifier: accuracy stays above 80 %\n"
        "Counterfactual: with twenty components almost nothing would be lost",
    ),
    Plan(
        "digits", "trees", "forest",
        "A single tree sees one pixel at a time and misreads every fifth digit; a hundred trees that each "
        "err elsewhere outvote one another's mistakes. Accuracy up by 14 percentage points, log loss down by "
        "6.5 nats.",
    ),
    Plan(
        "digits", "trees", "depth_3",
        "Depth three leaves at most eight leaves for ten classes, so two digits can never be named. Accuracy "
        "should decrease by 35 percentage points; log loss should still decrease, by 5 nats, since no leaf "
        "is sure of itself any more.",
    ),
    Plan(
        "digits", "neighbours", "unscaled",
        "Direction: accuracy increases, log loss decreases\n"
        "Target: accuracy up by 1 percentage point, log loss down by 0.1 nats\n"
        "Intermediate: pixels at the rim, blank but for a few images, no longer dominate the distance",
    ),
    Plan(
        "digits", "neighbours", "one_neighbour",
        "Handwritten digits lie on thin manifolds with little label noise, so the nearest image is almost "
        "always the same digit: accuracy changes by less than half a percentage point, say 0.2 up. Log loss "
        "increases by 0.6 nats, because each mistake is made with certainty.",
    ),
    Plan(
        "iris", "linear", "stronger_l2",
        "The two species that touch need large coefficients on the petal measurements, and this penalty "
        "forbids them. Accuracy down by 8 percentage points, log loss up by 0.5 nats.",
    ),
    Plan(
        "iris", "linear", "half_features",
        "Direction: accuracy unchanged or slightly higher, log loss unchanged\n"
        "Target: accuracy up by 0.5 percentage points, log loss down by 0.01 nats\n"
        "Intermediate: the two petal measurements are kept and the two of the sepals dropped\n"
        "Regime: the dropped features repeat what the kept ones say\n"
        "Falsifier: accuracy falls by more than 2 percentage points\n"
        "Counterfactual: with the petals dropped instead accuracy would fall by 20 points",
    ),
    Plan(
        "iris", "trees", "forest",
        "Two thresholds on the petals decide nearly everything, so one tree is as accurate as a hundred: "
        "accuracy changes by 0.3 percentage points upwards. Log loss decreases by 1.7 nats, because the "
        "few flowers at the border get graded probabilities.",
    ),
    Plan(
        "iris", "trees", "leaves_of_10",
        "With 75 training rows, leaves of ten round the border off but keep the two splits that matter. "
        "Accuracy down by 0.5 percentage points, log loss down by 1.6 nats.",
    ),
    Plan(
        "iris", "neighbours", "many_neighbours",
        "Direction: accuracy decreases, log loss increases\n"
        "Target: accuracy down by 5 percentage points, log loss up by 0.1 nats\n"
        "Intermediate: a vote of 25 is as large as one species' share of the training rows\n"
        "Regime: few rows in each class\n"
        "Falsifier: accuracy increases\n"
        "Counterfactual: with a thousand flowers a vote of 25 would do no harm",
    ),
    Plan(
        "iris", "neighbours", "distance_weights",
        "Near neighbours get more say, which helps only at the border of two species. Accuracy up by 0.3 "
        "percentage points; log loss about the same, 0.01 nats lower.",
    ),
    Plan(
        "wine", "linear", "weaker_l2",
        "The cultivars are linearly separable, so a weak penalty lets the coefficients grow and the scores "
        "become overconfident. Accuracy down by 0.5 percentage points and log loss up by 0.03 nats.",
    ),
    Plan(
        "wine", "linear", "two_components",
        "Direction: accuracy decreases slightly, log loss increases\n"
        "Target: accuracy down by 1.5 percentage points, log loss up by 0.05 nats\n"
        "Intermediate: two components of the standardised measurements show three separate clouds",
    ),
    Plan(
        "wine", "trees", "forest",
        "Thirteen measurements share the information on the cultivar, and a single tree uses three or four "
        "of them. A forest uses all: accuracy up by 8 percentage points, log loss down by 3.2 nats.",
    ),
    Plan(
        "wine", "trees", "depth_3",
        "Direction: unchanged accuracy, lower log loss\n"
        "Target: accuracy down by 0.2 percentage points, log loss down by 0.5 nats\n"
        "Intermediate: most branches of the full tree end at depth three or four anyway",
    ),
    Plan(
        "wine", "neighbours", "unscaled",
        "Proline is measured in hundreds and everything else in units, so without standardisation the "
        "distance is proline's alone. Accuracy should decrease by 26 percentage points and log loss increase "
        "by 2 nats.",
    ),
    Plan(
        "wine", "neighbours", "one_neighbour",
        "The clouds of the three cultivars barely touch, so one neighbour is nearly as good as five: "
        "accuracy down by 0.5 percentage points. Each mistake is made with certainty, so log loss increases "
        "by 1.3 nats.",
    ),
)  # fmt: skip


def rows() -> list[dict[str, str]]:
    """Every plan with its outcomes, in order of id."""
    return sorted(map(row, PLANS), key=lambda made: made["id"])


def row(plan: Plan) -> dict[str, str]:
    """A plan's row; accuracy in hundredths of a percentage point, log loss in 1e-4 nats."""
    load, question = DATASETS[plan.dataset]
    features, classes = load()
    accuracy_pp, loss = outcome(plan, features, classes)
    count, width = features.shape
    return {
        "id": f"{plan.dataset}-{plan.change}",
        "dataset": plan.dataset,
        "family": plan.family,
        "description": (
            f"The table {plan.dataset} {question}: {count:,} rows, {width} features, "
            f"{len(np.unique(classes))} classes. The parent model is {PARENTS[plan.family][1]}. Parent and "
            "changed model are fitted on the same half of the rows and scored on the other half, over five "
            "stratified splits. Measured are the mean changes in held-out accuracy and in held-out log loss: "
            "the changed model's minus the parent's. Lower log loss is better."
        ),
        "intervention": CHANGES[plan.change][1],
        "explanation": plan.explanation,
        "accuracy_pp": f"{accuracy_pp:.2f}",
        "log_loss": f"{loss:.4f}",
    }


def outcome(plan: Plan, features: Any, classes: Any) -> tuple[float, float]:
    """Mean change over the splits in held-out accuracy (percentage points) and log loss (nats)."""
    halves = StratifiedShuffleSplit(n_splits=SPLITS, test_size=0.5, random_state=0)
    makers = (PARENTS[plan.family][0], CHANGES[plan.change][0])
    changes = []
    for train, test in halves.split(features, classes):
        parent, changed = (
            scores(make().fit(features[train], classes[train]), features[test], classes[test])
            for make in makers
        )
        changes.append(changed - parent)
    accuracy_pp, loss = np.mean(changes, axis=0)
    # Adding zero keeps a rounded -0.0 out of the file.
    return round(float(accuracy_pp), 2) + 0.0, round(float(loss), 4) + 0.0


def scores(model: Any, features: Any, classes: Any) -> Any:
    """Accuracy in percent and log loss in nats, (2,)."""
    shares = model.predict_proba(features)
    accuracy = accuracy_score(classes, model.classes_[shares.argmax(axis=1)])
    return np.array([100.0 * accuracy, log_loss(classes, shares, labels=model.classes_)])


def write(path: Path, header: Sequence[str], made: Sequence[Mapping[str, str]]) -> None:
    """A CSV of the named columns."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, header, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(made)


if __name__ == "__main__":
    found = rows()
    write(HERE / "example_states.csv", HEADER, found)
    write(HERE / "example_pending.csv", HEADER[:-2], found)
    write(HERE / "example_outcomes.csv", ("id", *HEADER[-2:]), found)
