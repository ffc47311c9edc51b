"""The six study-authored regimes: where a data set comes from, and what is hard about it.

Each regime has one stated mechanism. Its nuisance parameters (rows, features, noise, class share)
are drawn anew for every seed, so that seeds differ in public facts and not in noise alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import expit

from predictive_credit.errors import BadConfig
from predictive_credit.streams import stream
from predictive_credit.studies.controlled.config import ControlledConfig

Array = NDArray[np.float64]

# An outcome is a difference between two models on the same rows; where they disagree on a tenth of
# these, its standard error is half a percentage point.
HELD_OUT = 4_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """Rows of a data set: `inputs` (row, feature) and `labels` (row,) of 0.0 and 1.0."""

    inputs: Array
    labels: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """A few training rows and many held-out ones, drawn independently under one law."""

    train: Sample
    held_out: Sample


Sampler = Callable[[int, Generator], Sample]
Datasets = Mapping[tuple[str, ...], Dataset]  # by a state's cluster: regime, and seed as text


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """The law of one seed's data: its nuisance parameters are drawn, its rows are not yet."""

    n_train: int
    sample: Sampler


@dataclass(frozen=True, slots=True, kw_only=True)
class Regime:
    """A generator: `phrase` is what a state's description says of it, `mechanism` all there is to know."""

    name: str
    phrase: str
    mechanism: str
    law: Callable[[Generator], Law]


def chosen(config: ControlledConfig) -> tuple[str, ...]:
    """The study's regimes, all six unless some are named. Raises BadConfig for a name nobody wrote."""
    if config.regimes is None:
        return tuple(REGIMES)
    for name in config.regimes:
        if name not in REGIMES:
            raise BadConfig(f"there is no regime {name!r}; there are {', '.join(REGIMES)}; correct regimes")
    return config.regimes


def datasets(config: ControlledConfig, *, seed: int) -> Datasets:
    """The data set of each of the study's regimes under each of its seeds."""
    return {
        (regime, str(number)): dataset(regime, number, seed=seed)
        for regime in chosen(config)
        for number in config.seeds
    }


def dataset(regime: str, number: int, *, seed: int) -> Dataset:
    """One regime's data under one of its seeds, from streams named after both.

    Parameters, training rows and held-out rows have a stream each: more held-out rows would leave
    the training rows, and with them every state, as they are.
    """
    names = ("controlled", regime, number)
    law = REGIMES[regime].law(stream(seed, *names, "law"))
    return Dataset(
        train=law.sample(law.n_train, stream(seed, *names, "train")),
        held_out=law.sample(HELD_OUT, stream(seed, *names, "held-out")),
    )


def _quadratic_boundary(rng: Generator) -> Law:
    n_features, weights = int(rng.integers(5, 10)), rng.choice([-1.0, 1.0], size=3)
    strength, slope = rng.uniform(1.0, 2.0), _direction(n_features, rng)

    def sample(n: int, rng: Generator) -> Sample:
        inputs = rng.standard_normal((n, n_features))
        curved = (inputs[:, :3] ** 2 - 1.0) @ weights
        return Sample(inputs=inputs, labels=_labels(strength * curved + inputs @ slope, rng))

    return Law(n_train=int(rng.integers(150, 301)), sample=sample)


def _label_noise(rng: Generator) -> Law:
    n_features, flipped = int(rng.integers(8, 17)), rng.uniform(0.1, 0.3)
    slope = 5.0 * _direction(n_features, rng)

    def sample(n: int, rng: Generator) -> Sample:
        inputs = rng.standard_normal((n, n_features))
        true = _labels(inputs @ slope, rng)
        return Sample(inputs=inputs, labels=np.where(rng.random(n) < flipped, 1.0 - true, true))

    return Law(n_train=int(rng.integers(80, 201)), sample=sample)


def _class_imbalance(rng: Generator) -> Law:
    n_features, share = int(rng.integers(5, 11)), rng.uniform(0.06, 0.16)
    shift = rng.uniform(1.2, 2.0) * _direction(n_features, rng)

    def sample(n: int, rng: Generator) -> Sample:
        labels = (rng.random(n) < share).astype(float)
        return Sample(inputs=rng.standard_normal((n, n_features)) + labels[:, None] * shift, labels=labels)

    return Law(n_train=int(rng.integers(150, 301)), sample=sample)


def _irrelevant_features(rng: Generator) -> Law:
    n_features, n_relevant = int(rng.integers(30, 61)), int(rng.integers(3, 6))
    slope = rng.uniform(2.0, 3.0) * _direction(n_relevant, rng)

    def sample(n: int, rng: Generator) -> Sample:
        inputs = rng.standard_normal((n, n_features))
        return Sample(inputs=inputs, labels=_labels(inputs[:, :n_relevant] @ slope, rng))

    return Law(n_train=int(rng.integers(80, 161)), sample=sample)


def _heavy_tails(rng: Generator) -> Law:
    n_features, freedom = int(rng.integers(6, 13)), rng.uniform(1.5, 3.0)
    slope = rng.uniform(4.0, 6.0) * _direction(n_features, rng)

    def sample(n: int, rng: Generator) -> Sample:
        inputs = rng.standard_t(freedom, size=(n, n_features))
        return Sample(inputs=inputs, labels=_labels(np.tanh(inputs) @ slope, rng))

    return Law(n_train=int(rng.integers(150, 301)), sample=sample)


def _small_sample(rng: Generator) -> Law:
    n_features = int(rng.integers(8, 15))
    slope = rng.uniform(1.5, 3.0) * _direction(n_features, rng)

    def sample(n: int, rng: Generator) -> Sample:
        inputs = rng.standard_normal((n, n_features))
        return Sample(inputs=inputs, labels=_labels(inputs @ slope, rng))

    return Law(n_train=int(rng.integers(20, 41)), sample=sample)


def _direction(n_features: int, rng: Generator) -> Array:
    """A random direction of length one, (feature,)."""
    raw = rng.standard_normal(n_features)
    direction: Array = raw / np.linalg.norm(raw)
    return direction


def _labels(logits: Array, rng: Generator) -> Array:
    """Labels (row,) of 0.0 and 1.0 with the given log odds of 1."""
    labels: Array = (rng.random(len(logits)) < expit(logits)).astype(float)
    return labels


# In this order: a regime's place here takes part in assigning its interventions.
REGIMES: Mapping[str, Regime] = {
    regime.name: regime
    for regime in (
        Regime(
            name="quadratic_boundary",
            phrase="a curved class boundary",
            mechanism="5 to 9 Gaussian features, 150 to 300 training rows. The log odds are a signed sum of "
            "the squares of three features, 1 to 2 times as strong as an added linear term of unit length.",
            law=_quadratic_boundary,
        ),
        Regime(
            name="label_noise",
            phrase="imperfectly recorded labels",
            mechanism="8 to 16 Gaussian features, 80 to 200 training rows. The log odds are linear and "
            "steep; then 10 to 30 % of all labels, held-out ones included, are recorded as the other class.",
            law=_label_noise,
        ),
        Regime(
            name="class_imbalance",
            phrase="classes of unequal frequency",
            mechanism="5 to 10 features, 150 to 300 training rows, 6 to 16 % of them positive. The classes "
            "are Gaussian with equal covariance, their means 1.2 to 2 standard deviations apart.",
            law=_class_imbalance,
        ),
        Regime(
            name="irrelevant_features",
            phrase="many inputs, not all of which bear on the class",
            mechanism="30 to 60 Gaussian features, 80 to 160 training rows. The log odds are linear in 3 to "
            "5 of the features; the others are independent of the label.",
            law=_irrelevant_features,
        ),
        Regime(
            name="heavy_tails",
            phrase="heavy-tailed inputs",
            mechanism="6 to 12 features of Student's t with 1.5 to 3 degrees of freedom, 150 to 300 training "
            "rows. The log odds are linear in the hyperbolic tangent of each feature: beyond a usual size, "
            "a larger value says no more.",
            law=_heavy_tails,
        ),
        Regime(
            name="small_sample",
            phrase="Gaussian inputs",
            mechanism="8 to 14 Gaussian features, and 20 to 40 training rows. The log odds are linear.",
            law=_small_sample,
        ),
    )
}  # fmt: skip
