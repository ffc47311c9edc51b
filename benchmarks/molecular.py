"""Molecular features in bulk against one molecule at a time, and 72 executed states against a default.

    python benchmarks/molecular.py

The pool is Tox21 where PREDICTIVE_CREDIT_MIRROR holds it, else the features of this project.

Features: three Morgan fingerprints and 15 descriptors. One at a time is not made slow on purpose:
each molecule is parsed once and the three generators are made once. Execution: the same states,
compounds and recipes with scikit-learn's defaults (lbfgs, at most 100 steps) on dense arrays; its
states are six of the 72, one of each label fraction and seed, and it is run as it comes (the linear
algebra takes what cores it likes) and with one thread.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure
import numpy as np
from measure import Side
from numpy.typing import NDArray
from rdkit import Chem, rdBase
from rdkit.Chem import rdFingerprintGenerator
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # ships no types

from predictive_credit import compose
from predictive_credit.config import Execution
from predictive_credit.records import State
from predictive_credit.sources import pools
from predictive_credit.sources.mirror import mirror
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from predictive_credit.studies import workers
from predictive_credit.studies.molecular import execute, features, pool, states
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.molecular.features import FINGERPRINTS, Features
from predictive_credit.studies.molecular.fitting import standardised
from predictive_credit.studies.molecular.interventions import PARENT, RECIPES, Recipe
from predictive_credit.studies.molecular.pool import Table

Array = NDArray[np.float64]

SEED = 1
BOTH = Execution(backend="loky", n_jobs=os.cpu_count() or 1, address=None)


def main() -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--molecules", type=int, help="of the features (default all of Tox21, else 8,000)")
    args = parser.parse_args()
    measure.machine()
    name, table, known = source()
    smiles = table.smiles[: args.molecules or 8_000]
    features.compute(table.smiles[: 2 * pool.BLOCK], BOTH)  # worker processes start once, and not here
    found = bulk(name, smiles, args.repeats)
    if known is None:
        known = found if len(found.descriptors) == len(table.smiles) else features.compute(table.smiles, BOTH)
    executed(name, table, known, args.repeats)


def source() -> tuple[str, Table, Features | None]:
    """The pool's name, its clean table, and its features if they are at hand."""
    if mirror() is not None:
        chosen = study_params.parse(compose.compose(measure.ROOT, ["pool=tox21"])).pools["tox21"]
        with tempfile.TemporaryDirectory() as folder:
            raw = Path(folder, "tox21")
            pools.fetch(chosen, raw)
            return "Tox21", pool.read(chosen, raw, BOTH), None
    return "MoleculeACE", *features.load(Project(measure.ROOT).features("moleculeace"))


def bulk(name: str, smiles: Sequence[str], repeats: int) -> Features:
    """Print the features' table and return the features."""
    made: dict[str, Any] = {}

    def ours(execution: Execution) -> None:
        made["ours"] = features.compute(smiles, execution)

    def singly() -> None:
        made["one"] = one_at_a_time(smiles)

    timings = measure.interleaved(
        [
            Side(name=f"ours, {BOTH.n_jobs} processes", run=lambda: ours(BOTH)),
            Side(name="ours, this process", run=lambda: ours(workers.HERE)),
            Side(name="one molecule at a time", run=singly),
        ],
        repeats=repeats,
    )
    bits, descriptors = made["one"]
    same = all(np.array_equal(bits[key], _opened(made["ours"], key)) for key in FINGERPRINTS)
    same &= np.array_equal(descriptors, made["ours"].descriptors, equal_nan=True)
    measure.table(
        f"features of {len(smiles):,} molecules of {name}",
        measure.compared(timings),
        f"all values are {'equal' if same else 'NOT EQUAL'}",
    )
    result: Features = made["ours"]
    return result


def one_at_a_time(smiles: Sequence[str]) -> tuple[dict[str, Array], Array]:
    """The same features in a loop: a row of floats for each fingerprint of each molecule."""
    generators = {
        name: rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
        for name, (radius, bits) in FINGERPRINTS.items()
    }
    bits: dict[str, list[Array]] = {name: [] for name in generators}
    descriptors = []
    with rdBase.BlockLogs():
        for text in smiles:
            mol = Chem.MolFromSmiles(text)
            for name, generator in generators.items():
                bits[name].append(generator.GetFingerprintAsNumPy(mol).astype(float))
            descriptors.append(features._physicochemical(mol))
    values = np.array(descriptors, dtype=float)
    stacked = {name: np.array(rows) for name, rows in bits.items()}
    return stacked, np.where(np.isfinite(values), values, np.nan)


def executed(name: str, table: Table, known: Features, repeats: int) -> None:
    """Print the execution's table: some states on both sides, then all of them in ours."""
    study = study_params.parse(compose.compose(measure.ROOT, ["scale=full"])).studies["molecular"]
    assert isinstance(study, MolecularConfig)
    splits = states.splits(table, study, seed=SEED)
    everything = states.states(table, known, study, splits, study="molecular", execution=BOTH)
    # Endpoint by endpoint, each the next label fraction and seed: sorted ids put those six together.
    some = [everything[6 * e + e] for e in range(6)]
    found: dict[str, list[float]] = {}

    def ours(which: Sequence[State]) -> None:
        outcomes = execute.execute(table, known, which, splits, execution=BOTH)
        found["ours"] = [np.nan if o.value is None else o.value for o in outcomes]

    def dense(threads: int | None) -> None:
        with threadpool_limits(limits=threads):
            found["dense"] = [default_outcome(table, known, state, splits) for state in some]

    default = "scikit-learn's default, dense"
    timings = measure.interleaved(
        [
            Side(name="ours", run=lambda: ours(some)),
            Side(name=default, run=lambda: dense(None)),
            Side(name=f"{default}, one thread", run=lambda: dense(1)),
        ],
        repeats=repeats,
    )
    apart = np.abs(np.subtract(found["ours"], found["dense"]))
    whole = measure.interleaved([Side(name="ours", run=lambda: ours(everything))], repeats=repeats)
    measure.table(
        f"{len(some)} executed states of {name}, parent and changed model each",
        measure.compared(timings),
        f"outcomes differ by {np.nanmedian(apart):.1e} in the median and {np.nanmax(apart):.1e} at most "
        "(ROC AUC): the default stops early",
    )
    measure.table(f"all {len(everything)} executed states of {name}", measure.compared(whole))


def default_outcome(table: Table, known: Features, state: State, splits: states.Splits) -> float:
    """The outcome of one state with scikit-learn's defaults on dense arrays."""
    train, test = states.rows(splits, state)
    rows, n = np.concatenate([train, test]), len(train)
    labels = table.label(state.task)[rows]
    aucs = []
    for recipe in (PARENT, RECIPES[state.intervention.name]):
        data = _dense(known, recipe, rows, n)
        weight = "balanced" if recipe.class_balanced else None
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model = LogisticRegression(C=recipe.c, class_weight=weight).fit(data[:n], labels[:n])
        aucs.append(float(roc_auc_score(labels[n:], model.decision_function(data[n:]))))
    return aucs[1] - aucs[0]


def _dense(known: Features, recipe: Recipe, rows: NDArray[np.int64], n_train: int) -> Array:
    packed = known.fingerprints[recipe.fingerprint][rows]
    bits = np.unpackbits(packed, axis=1, bitorder="little").astype(float)
    return (
        np.hstack([bits, standardised(known.descriptors[rows], n_train)]) if recipe.with_descriptors else bits
    )


def _opened(known: Features, name: Any) -> Array:
    return np.unpackbits(known.fingerprints[name], axis=1, bitorder="little").astype(float)


if __name__ == "__main__":
    main()
