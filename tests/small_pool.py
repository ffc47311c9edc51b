"""A small pool of real molecules with planted labels, and the shortest way to a study on it."""

from __future__ import annotations

from itertools import product

import numpy as np

from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.molecular import features, pool
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.pool import Table
from predictive_credit.studies.molecular.rawtable import RawTable

HEADS = ("C", "N", "O", "Cl", "Br", "OC", "NC", "C(=O)O", "C(=O)N", "N#C")
RINGS = ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1", "c1ccsc1")
TAILS = ("", "F", "I", "SC", "CCO", "C(C)C")
SMILES = tuple(f"{head}{ring}{tail}" for head, ring, tail in product(HEADS, RINGS, TAILS))


def config(**changes: object) -> MolecularConfig:
    """The molecular study's shape on this pool."""
    settings: dict[str, object] = {
        "rule": "molecular", "pool": "small", "burn_in": "small", "endpoints": None, "n_endpoints": 2,
        "budgets": (0.5, 1.0), "seeds": (1, 2), "contexts": ("D", "M", "S"),
    }  # fmt: skip
    return MolecularConfig(**(settings | changes))  # type: ignore[arg-type]  # pydantic checks them


def labels(n_endpoints: int = 3, *, noise: float = 0.1, missing: float = 0.1) -> dict[str, list[float]]:
    """Endpoint k is active where the molecule holds nitrogen, but for noise; later ones miss more."""
    rng = stream(7, "small pool")
    truth = np.array(["N" in smiles or "n" in smiles for smiles in SMILES], dtype=float)
    columns = {}
    for k in range(n_endpoints):
        values = np.where(rng.random(len(SMILES)) < noise, 1 - truth, truth)
        gone = rng.permutation(len(SMILES))[: round(missing * (k + 1) / n_endpoints * len(SMILES))]
        values[gone] = np.nan
        columns[f"E{k}"] = list(values)
    return columns


def table(columns: dict[str, list[float]]) -> Table:
    """A clean table of SMILES with these endpoint columns."""
    raw = RawTable(
        rows=tuple(str(i) for i in range(1, len(SMILES) + 1)), smiles=SMILES, endpoints=tuple(columns),
        labels=np.column_stack(list(columns.values())), meaning="Active means label 1 in the table.",
        ignored_columns={}, dropped=(),
    )  # fmt: skip
    return pool.clean(raw)


def made(n_endpoints: int = 3) -> tuple[Table, Features]:
    """The pool and its features."""
    whole = table(labels(n_endpoints))
    return whole, features.compute(whole.smiles, workers.HERE)
