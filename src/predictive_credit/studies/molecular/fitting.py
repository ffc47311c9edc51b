"""Fit one recipe on training rows and measure its ROC AUC on other rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.interventions import PARENT, RECIPES, FingerprintName, Recipe

# The learners are imported where they are fitted: most stages never fit, and scikit-learn takes seconds.
if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matrices:
    """A pool's features, opened once: cutting a state's rows out of them is nearly free.

    `bits[name]` is a sparse CSR array (molecule, bits) of uint8; `descriptors` is (molecule, 15).
    """

    bits: Mapping[FingerprintName, Any]
    descriptors: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """What one work unit carries: the parent and some interventions on the same two sets of rows.

    Rows are the training compounds, then the held-out ones: `labels` (row,) of 0.0 and 1.0, `bits`
    sparse (row, bits) of uint8, `descriptors` (row, 15) or None if no recipe needs them.
    """

    interventions: tuple[str, ...]
    labels: Array
    n_train: int
    bits: Mapping[FingerprintName, Any]
    descriptors: Array | None

    @property
    def undefined(self) -> str | None:
        """Why no ROC AUC can be had of these rows, or None."""
        for name, labels in (
            ("training", self.labels[: self.n_train]),
            ("held-out", self.labels[self.n_train :]),
        ):
            if len(labels) == 0:
                return f"no {name} compound"
            if labels.min() == labels.max():
                kind = "active" if labels[0] else "inactive"
                return f"single-class {name} labels: all {len(labels)} are {kind}"
        return None


def matrices(features: Features) -> Matrices:
    """Open a pool's packed features."""
    bits = {name: unpacked(packed) for name, packed in features.fingerprints.items()}
    return Matrices(bits=bits, descriptors=features.descriptors)


def trial(pool: Matrices, labels: Array, train: Rows, test: Rows, interventions: Sequence[str]) -> Trial:
    """Gather one work unit's rows. `labels` is (molecule,); `train` and `test` are positions in it."""
    rows = np.concatenate([train, test])
    recipes = [PARENT, *(RECIPES[name] for name in interventions)]
    return Trial(
        interventions=tuple(interventions),
        labels=labels[rows],
        n_train=len(train),
        bits={recipe.fingerprint: pool.bits[recipe.fingerprint][rows] for recipe in recipes},
        descriptors=pool.descriptors[rows] if any(r.with_descriptors for r in recipes) else None,
    )


def changes(trial: Trial) -> tuple[float, ...] | str:
    """Held-out ROC AUC of each intervention's model minus the parent's, or why there is none.

    Positive means that the intervention helped; each lies in [-1, 1].
    """
    if trial.undefined is not None:
        return trial.undefined
    parent = held_out_auc(PARENT, trial)
    # Equal rankings can differ in the last bit of their area, and such a difference has a sign.
    return tuple(round(held_out_auc(RECIPES[name], trial) - parent, 12) for name in trial.interventions)


def held_out_auc(recipe: Recipe, trial: Trial) -> float:
    """ROC AUC on the trial's held-out rows of the recipe's model, fitted on its training rows."""
    from sklearn.metrics import roc_auc_score

    n = trial.n_train
    data = design(recipe, trial)
    model = fit(recipe, data[:n], trial.labels[:n])
    return float(roc_auc_score(trial.labels[n:], model.decision_function(data[n:])))


def fit(recipe: Recipe, data: Any, labels: Array) -> LogisticRegression:
    """The recipe's logistic regression on a sparse (row, feature) matrix.

    Newton steps to a gradient of 1e-5, which leaves about 2e-5 ROC AUC of stopping error on these
    pools; scikit-learn's own tolerance leaves ten times as much, with single outcomes off by .002.
    The intercept is not penalised.
    """
    from sklearn.linear_model import LogisticRegression

    weight = "balanced" if recipe.class_balanced else None
    model = LogisticRegression(C=recipe.c, class_weight=weight, solver="newton-cg", tol=1e-5, max_iter=500)
    return model.fit(data, labels)


def design(recipe: Recipe, trial: Trial) -> Any:
    """The recipe's features as a sparse CSR array (row, feature): bits, then standardised descriptors."""
    bits = trial.bits[recipe.fingerprint].astype(float)
    if not recipe.with_descriptors:
        return bits
    if trial.descriptors is None:
        raise ValueError("the trial was gathered without descriptors, which its recipe needs")
    scaled = standardised(trial.descriptors, trial.n_train)
    return sp.hstack([bits, sp.csr_array(scaled)], format="csr")


def unpacked(packed: Bits) -> Any:
    """Packed bits (row, bits / 8) as a sparse CSR array of uint8 zeros and ones, (row, bits)."""
    # Only the bytes that hold a bit are opened: few do, and a dense detour takes four times as long.
    row, byte = packed.nonzero()
    which, bit = np.unpackbits(packed[row, byte][:, None], axis=1, bitorder="little").nonzero()
    columns = (8 * byte[which] + bit).astype(np.int32)
    starts = np.searchsorted(row[which], np.arange(len(packed) + 1)).astype(np.int32)
    return sp.csr_array(
        (np.ones(len(columns), dtype=np.uint8), columns, starts), shape=(len(packed), 8 * packed.shape[1])
    )


def standardised(values: Array, n_train: int) -> Array:
    """Descriptors (row, descriptor) with the training rows' mean 0 and standard deviation 1.

    NaN becomes the training median (0.0 if all training values are missing); a descriptor that is
    constant in training becomes 0. Held-out rows have no part in mean, deviation and median.
    """
    train = values[:n_train]
    known = np.isfinite(train).any(axis=0)
    median = np.zeros(values.shape[1])
    median[known] = np.nanmedian(train[:, known], axis=0)
    filled = np.where(np.isfinite(values), values, median)
    mean, deviation = filled[:n_train].mean(axis=0), filled[:n_train].std(axis=0)
    varies = deviation > 0
    scaled: Array = np.where(varies, (filled - mean) / np.where(varies, deviation, 1.0), 0.0)
    return scaled
