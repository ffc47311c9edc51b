"""Fingerprints are RDKit's own bits, whatever computed them, and a file holds the same bytes twice."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Crippen, rdFingerprintGenerator

from predictive_credit import canonical
from predictive_credit.config import Execution
from predictive_credit.errors import BadSource, OutOfOrder, Tampered
from predictive_credit.studies import workers
from predictive_credit.studies.molecular import features
from predictive_credit.studies.molecular.features import DESCRIPTORS, FINGERPRINTS, Features
from predictive_credit.studies.molecular.interventions import FingerprintName
from predictive_credit.studies.molecular.pool import Table
from tests import small_pool


@pytest.fixture(scope="module")
def small() -> tuple[Table, Features]:
    return small_pool.made()


def test_every_fingerprint_a_recipe_can_name_is_computed():
    assert set(FINGERPRINTS) == set(get_args(FingerprintName))


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_packed_bits_are_those_rdkit_sets_one_molecule_at_a_time(name: FingerprintName):
    smiles = ["CCO", "c1ccccc1C(=O)N", "[Na+].[Cl-]", "C[C@H](N)C(=O)O"]
    radius, bits = FINGERPRINTS[name]
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=bits)
    packed = features.compute(smiles, workers.HERE).fingerprints[name]
    assert packed.shape == (4, bits // 8)
    for row, text in zip(packed, smiles, strict=True):
        seen = set(np.unpackbits(row, bitorder="little").nonzero()[0].tolist())
        assert seen == set(generator.GetFingerprint(Chem.MolFromSmiles(text)).GetOnBits())


def test_descriptors_stand_in_the_order_of_their_names():
    smiles = "OCc1ccncc1"
    mol = Chem.MolFromSmiles(smiles)
    values = dict(zip(DESCRIPTORS, features.compute([smiles], workers.HERE).descriptors[0], strict=True))
    assert values["log_p"] == pytest.approx(Crippen.MolLogP(mol))  # type: ignore[attr-defined]  # set at import
    assert values["exact_weight"] == pytest.approx(109.0528, abs=1e-3)
    assert (values["h_donors"], values["rings"], values["aromatic_rings"], values["formal_charge"]) == (
        1,
        1,
        1,
        0,
    )


def test_two_processes_give_what_one_gives_in_the_same_order(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(features, "BLOCK", 100)  # three blocks of 300 molecules
    two = features.compute(small_pool.SMILES, Execution(backend="loky", n_jobs=2, address=None))
    one = features.compute(small_pool.SMILES, workers.HERE)
    np.testing.assert_array_equal(two.descriptors, one.descriptors)
    for name in FINGERPRINTS:
        np.testing.assert_array_equal(two.fingerprints[name], one.fingerprints[name])


def test_a_smiles_that_does_not_parse_is_refused_by_name():
    with pytest.raises(BadSource, match="refuses the SMILES 'C1CC'"):
        features.compute(["CCO", "C1CC"], workers.HERE)


def test_what_is_saved_is_what_is_loaded(small: tuple[Table, Features], tmp_path: Path):
    table, made = small
    quality = features.save(tmp_path, table, made)
    loaded, filed = features.load(tmp_path)
    assert (loaded.row_ids, loaded.smiles, loaded.canonical) == (table.row_ids, table.smiles, table.canonical)
    assert (loaded.findings, loaded.meaning, loaded.quality) == (table.findings, table.meaning, quality)
    assert loaded.labels.equals(table.labels)
    np.testing.assert_array_equal(filed.descriptors, made.descriptors)
    for name in FINGERPRINTS:
        np.testing.assert_array_equal(filed.fingerprints[name], made.fingerprints[name])


def test_saving_twice_gives_the_same_bytes(small: tuple[Table, Features], tmp_path: Path):
    for folder in ("a", "b"):
        features.save(tmp_path / folder, *small)
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "b").iterdir())
    assert [canonical.digest_file(tmp_path / "a" / name) for name in names] == [
        canonical.digest_file(tmp_path / "b" / name) for name in names
    ]


def test_a_descriptor_that_rdkit_could_not_give_is_counted_not_repaired(
    small: tuple[Table, Features], tmp_path: Path
):
    table, made = small
    values = made.descriptors.copy()
    values[:3, DESCRIPTORS.index("log_p")] = np.nan
    holed = Features(fingerprints=made.fingerprints, descriptors=values)
    assert features.save(tmp_path, table, holed)["nonfinite_descriptors"] == {"log_p": 3}
    assert np.isnan(features.load(tmp_path)[1].descriptors).sum() == 3


def test_features_are_not_loaded_before_they_are_saved(tmp_path: Path):
    with pytest.raises(OutOfOrder, match="does not exist yet"):
        features.load(tmp_path)


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("descriptors.npy", lambda data: data[:-8], "is no array"),
        ("morgan_r2_1024.npy", lambda data: b"", "is no array"),
        ("labels.csv", lambda data: data.replace(b",1", b",2", 1), "more than 0, 1 and missing"),
        ("labels.csv", lambda data: data[: data.rindex(b"\n", 0, -1) + 1], "rows, not 300"),
    ],
)
def test_files_that_do_not_fit_each_other_are_refused(
    request: pytest.FixtureRequest, tmp_path: Path, name: str, spoil, message: str
):
    features.save(tmp_path, *request.getfixturevalue("small"))
    (tmp_path / name).write_bytes(spoil((tmp_path / name).read_bytes()))
    with pytest.raises(Tampered, match=message):
        features.load(tmp_path)
