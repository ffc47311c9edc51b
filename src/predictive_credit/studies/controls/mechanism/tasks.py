"""Pairs of tasks that share their inputs: in one the boundary is curved, in its twin it is a plane."""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from predictive_credit.config import Execution
from predictive_credit.records import Outcome, State
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.controlled.fitting import Trial, changes
from predictive_credit.studies.controlled.interventions import ACCURACY, INTERVENTIONS
from predictive_credit.studies.controlled.regimes import HELD_OUT, Array, Dataset, Sample

Kind = Literal["nonlinear", "linear"]
KINDS: Final[tuple[Kind, Kind]] = ("linear", "nonlinear")
QUADRATIC: Final = next(i for i in INTERVENTIONS if i.name == "quadratic_features")

ROWS: Final = (300, 501)  # training rows, drawn from this range; so are the numbers of features
FEATURES: Final = (4, 8)
STEEPNESS: Final = 2.5  # standard deviation of the log odds, in both twins


def dataset(kind: Kind, pair: int, *, seed: int) -> Dataset:
    """One task's training and held-out rows.

    Twins share rows, features and the uniform numbers that draw their labels; their log odds have the
    same spread. Three quarters of the nonlinear ones' variance come from products and squares of three
    features and a quarter from a linear term; the linear ones are that term alone.
    """
    law = stream(seed, "mechanism", pair, "law")
    n_train, n_features = int(law.integers(*ROWS)), int(law.integers(*FEATURES))
    slope, curvature = law.standard_normal(n_features), law.standard_normal((3, 3))
    weights = slope / np.linalg.norm(slope), curvature + curvature.T

    def sample(n: int, part: str) -> Sample:
        rows = stream(seed, "mechanism", pair, part)
        inputs = rows.standard_normal((n, n_features))
        labels = rows.random(n) < _chance(inputs, *weights, kind=kind)
        return Sample(inputs=inputs, labels=labels.astype(float))

    return Dataset(train=sample(n_train, "train"), held_out=sample(HELD_OUT, "held-out"))


def executed(trials: list[tuple[str, Kind, int]], *, seed: int, execution: Execution) -> list[Outcome]:
    """The change in held-out accuracy that quadratic features make, a task; by state id, kind and pair."""
    data = [
        Trial(dataset=dataset(kind, pair, seed=seed), interventions=(QUADRATIC.name,))
        for _, kind, pair in trials
    ]
    results = workers.run(changes, data, execution, title="execute")
    return [
        Outcome(state_id=state_id, target=ACCURACY.name, value=None, reason=result)
        if isinstance(result, str)
        else Outcome(state_id=state_id, target=ACCURACY.name, value=result[0].accuracy_pp)
        for (state_id, _, _), result in zip(trials, results, strict=True)
    ]


def trial(state: State) -> tuple[str, Kind, int]:
    """What `executed` needs of a state; its cluster is its pair and its kind."""
    pair, kind = state.cluster
    return state.id, "linear" if kind == "linear" else "nonlinear", int(pair)


def _chance(inputs: Array, slope: Array, curvature: Array, *, kind: Kind) -> Array:
    """Probabilities of the label 1, (row,). Both terms have mean 0 and deviation 1 in the population."""
    linear = inputs @ slope
    first = inputs[:, : len(curvature)]
    # For Gaussian rows the form x'Ax has mean tr A and variance 2 tr A^2, A being symmetric.
    curved = ((first @ curvature) * first).sum(axis=1) - np.trace(curvature)
    curved = curved / np.sqrt(2.0 * (curvature**2).sum())
    odds = linear if kind == "linear" else 0.5 * linear + np.sqrt(0.75) * curved
    chance: Array = 1.0 / (1.0 + np.exp(-STEEPNESS * odds))
    return chance
