"""Morgan fingerprints and physicochemical descriptors in bulk, and the two functions that file them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import rdFingerprintGenerator, rdMolDescriptors

from predictive_credit import tables
from predictive_credit.config import Execution
from predictive_credit.errors import BadSource, OutOfOrder, Tampered
from predictive_credit.studies import workers
from predictive_credit.studies.molecular.interventions import FingerprintName
from predictive_credit.studies.molecular.pool import BLOCK, Table
from predictive_credit.studies.molecular.rawtable import Finding

Array = NDArray[np.float64]
Bits = NDArray[np.uint8]

# Name to (radius, bits).
FINGERPRINTS: dict[FingerprintName, tuple[int, int]] = {
    "morgan_r2_1024": (2, 1024),
    "morgan_r3_1024": (3, 1024),
    "morgan_r2_2048": (2, 2048),
}

# Each costs well under a tenth of a millisecond a molecule. Surfaces are in square angstrom.
DESCRIPTORS: tuple[str, ...] = (
    "exact_weight", "log_p", "molar_refractivity", "polar_surface", "labute_surface", "h_donors",
    "h_acceptors", "rotatable_bonds", "rings", "aromatic_rings", "aliphatic_rings", "fraction_sp3",
    "heteroatoms", "stereocentres", "formal_charge",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Features:
    """Features of a table's molecules, in its order.

    `fingerprints[name]` is (molecule, bits / 8): packed bits, the lowest first. `descriptors` is
    (molecule, 15) in the order of DESCRIPTORS; a value RDKit could not give is NaN.
    """

    fingerprints: Mapping[FingerprintName, Bits]
    descriptors: Array


def compute(smiles: Sequence[str], execution: Execution) -> Features:
    """Fingerprints and descriptors of SMILES that are known to parse.

    Raises BadSource naming the first SMILES that does not: read the pool before.
    """
    blocks = [tuple(smiles[start : start + BLOCK]) for start in range(0, len(smiles), BLOCK)]
    parts = workers.run(_block, blocks, execution, title="features")
    return Features(
        fingerprints={name: np.concatenate([p.fingerprints[name] for p in parts]) for name in FINGERPRINTS},
        descriptors=np.concatenate([part.descriptors for part in parts]),
    )


def save(directory: Path, table: Table, features: Features) -> dict[str, Any]:
    """File a table and its features; equal ones give equal bytes. Returns what quality.json holds.

    molecules.csv, labels.csv (empty where missing), findings.csv, quality.json, and one .npy a
    feature set.
    """
    rows = zip(table.row_ids, table.smiles, table.canonical, strict=True)
    tables.write_csv(directory / "molecules.csv", ("row", "smiles", "canonical"), rows)
    tables.write_csv(directory / "labels.csv", ("row", *table.endpoints), _label_rows(table))
    tables.write_csv(directory / "findings.csv", Finding._fields, table.findings)
    quality = dict(table.quality) | {"nonfinite_descriptors": nonfinite(features)}
    tables.write_json(directory / "quality.json", quality)
    for name, bits in features.fingerprints.items():
        tables.write_bytes(directory / f"{name}.npy", _npy(bits))
    tables.write_bytes(directory / "descriptors.npy", _npy(features.descriptors))
    return quality


def load(directory: Path) -> tuple[Table, Features]:
    """A table and its features as they were saved.

    Raises OutOfOrder before they were, Tampered when the files do not fit each other.
    """
    quality = tables.read_json(directory / "quality.json")
    _, rows = _csv(directory / "molecules.csv")
    row_ids, smiles, canonical = zip(*rows, strict=True)
    labels = _label_frame(directory / "labels.csv")
    table = Table(
        row_ids=row_ids, smiles=smiles, canonical=canonical, labels=labels, meaning=quality["meaning"],
        findings=tuple(Finding(*row) for row in _csv(directory / "findings.csv")[1]), quality=quality,
    )  # fmt: skip
    features = Features(
        fingerprints={name: _array(directory / f"{name}.npy") for name in FINGERPRINTS},
        descriptors=_array(directory / "descriptors.npy"),
    )
    _check_fit(directory, table, features)
    return table, features


def nonfinite(features: Features) -> dict[str, int]:
    """How many molecules lack each descriptor; they get the training median when a model is fitted."""
    counts = (~np.isfinite(features.descriptors)).sum(axis=0)
    return {name: int(count) for name, count in zip(DESCRIPTORS, counts, strict=True) if count}


def _block(smiles: tuple[str, ...]) -> Features:
    with rdBase.BlockLogs():
        mols = [_molecule(text) for text in smiles]
        return Features(
            fingerprints={name: _fingerprints(mols, *shape) for name, shape in FINGERPRINTS.items()},
            descriptors=_descriptors(mols),
        )


def _molecule(smiles: str) -> Any:
    mol = Chem.MolFromSmiles(smiles)
    if mol is None:
        raise BadSource(f"RDKit refuses the SMILES {smiles!r}; read the pool again with this RDKit")
    return mol


def _fingerprints(mols: Sequence[Any], radius: int, bits: int) -> Bits:
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
    packed = b"".join(map(DataStructs.BitVectToBinaryText, generator.GetFingerprints(mols, numThreads=1)))
    return np.frombuffer(packed, dtype=np.uint8).reshape(len(mols), bits // 8)


def _descriptors(mols: Sequence[Any]) -> Array:
    values = np.array([_physicochemical(mol) for mol in mols], dtype=float)
    return np.where(np.isfinite(values), values, np.nan)


def _physicochemical(mol: Any) -> tuple[float, ...]:
    """The values of DESCRIPTORS, in its order."""
    calc = rdMolDescriptors
    log_p, refractivity = calc.CalcCrippenDescriptors(mol)
    return (
        calc.CalcExactMolWt(mol), log_p, refractivity, calc.CalcTPSA(mol), calc.CalcLabuteASA(mol),
        calc.CalcNumHBD(mol), calc.CalcNumHBA(mol), calc.CalcNumRotatableBonds(mol), calc.CalcNumRings(mol),
        calc.CalcNumAromaticRings(mol), calc.CalcNumAliphaticRings(mol), calc.CalcFractionCSP3(mol),
        calc.CalcNumHeteroatoms(mol), calc.CalcNumAtomStereoCenters(mol), Chem.GetFormalCharge(mol),
    )  # fmt: skip


def _label_rows(table: Table) -> list[list[str]]:
    text = np.where(table.labels.isna(), "", np.where(table.labels == 1.0, "1", "0"))
    return [[row, *labels] for row, labels in zip(table.row_ids, text.tolist(), strict=True)]


def _label_frame(path: Path) -> pd.DataFrame:
    header, rows = _csv(path)
    known = {"": np.nan, "0": 0.0, "1": 1.0}
    try:
        values = np.array([[known[text] for text in row[1:]] for row in rows], dtype=float)
        return pd.DataFrame(values, index=[row[0] for row in rows], columns=header[1:])
    except (KeyError, ValueError) as error:
        raise Tampered(f"{path} holds more than 0, 1 and missing ({error}); run the features stage") from None


def _csv(path: Path) -> tuple[list[str], list[list[str]]]:
    lines = list(csv.reader(io.StringIO(tables.read_bytes(path).decode(), newline="")))
    return lines[0], lines[1:]


def _npy(array: NDArray[Any]) -> bytes:
    """The .npy form holds no time, so equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def _array(path: Path) -> NDArray[Any]:
    if not path.exists():
        raise OutOfOrder(f"{path} does not exist yet; run the features stage, or `dvc repro`")
    try:
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise Tampered(f"{path} is no array ({error}); run the features stage again") from None
    return array


def _check_fit(directory: Path, table: Table, features: Features) -> None:
    n = len(table.row_ids)
    shapes = {"labels.csv": len(table.labels), "descriptors.npy": len(features.descriptors)}
    shapes |= {f"{name}.npy": len(bits) for name, bits in features.fingerprints.items()}
    for name, seen in shapes.items():
        if seen != n:
            raise Tampered(f"{directory / name} has {seen} rows, not {n}; run the features stage again")
