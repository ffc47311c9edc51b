"""Dirty tables: nothing is dropped or merged in silence, and what cannot be used is one sentence."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from predictive_credit import canonical
from predictive_credit.config import CsvPool, Execution, Pool
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder
from predictive_credit.sources import pools
from predictive_credit.studies.molecular import molecules, pool, rawtable
from predictive_credit.studies.molecular.pool import Table

COUNTED = ("molecules", "unparsable", "multi_fragment", "duplicate", "conflict")
TWO = Execution(backend="loky", n_jobs=2, address=None)

DIRTY = """\
Smiles,toxic,a/b,weight,empty,constant,
CCO,1,0,46.07,,1,x
OCC,1,1,46.07,,1,x
,1,0,1.0,,1,x
CCN ethylamine,0,,45.08,NA,1,x
C(C)(C)(C)(C)C,0,1,2.0,,1,x
not a molecule,0,1,2.0,nan,1,x
[Na+].[Cl-],0.0,1.0,58.44,,1,x
c1ccccc1,,NaN,78.11,,1,x
CCC,1
c1ccccc1O,0,0,94.11,,1,x
"""


def read(tmp_path: Path, text: str | bytes, **changes: Any) -> Table:
    """Fetch and read a table as a user's csv pool."""
    path = tmp_path / "mine.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    settings: dict[str, Any] = {"smiles_column": None, "endpoints": None, "sha256": None}
    config = CsvPool(kind="csv", watch="x", path=str(path), **(settings | changes))
    pools.fetch(config, tmp_path / "raw")
    return pool.read(config, tmp_path / "raw")


def test_a_dirty_table_is_cleaned_and_every_case_is_counted(tmp_path: Path):
    table = read(tmp_path, DIRTY)
    assert table.row_ids == ("1", "4", "7", "8", "10")
    assert table.canonical == ("CCO", "CCN", "[Cl-].[Na+]", "c1ccccc1", "Oc1ccccc1")
    assert table.smiles == ("CCO", "CCN", "[Na+].[Cl-]", "c1ccccc1", "c1ccccc1O")
    quality = table.quality
    assert (quality["rows_read"], quality["molecules"]) == (10, 5)
    assert quality["dropped"] == {"ragged": 1, "blank": 1, "unparsable": 2, "zero_atom": 0}
    assert quality["counted"] == {"trailing_text": 1, "multi_fragment": 1, "duplicate": 1, "conflict": 1}
    assert quality["endpoints"] == {
        "toxic": {"labelled": 4, "active": 1, "missing": 1},
        "a%2Fb": {"labelled": 2, "active": 1, "missing": 3},
        "constant": {"labelled": 5, "active": 5, "missing": 0},
    }
    assert quality["single_class_endpoints"] == ["constant"]
    assert quality["escaped_endpoints"] == {"a%2Fb": "a/b"}
    assert quality["ignored_columns"] == {
        "weight": "row 1 holds '46.07'", "empty": "every value is missing", "(column 7)": "it has no name"
    }  # fmt: skip
    canonical.encode(quality)  # plain JSON values, without NaN


def test_each_finding_names_its_row_and_its_reason(tmp_path: Path):
    found = {(finding.row, finding.kind): finding.detail for finding in read(tmp_path, DIRTY).findings}
    assert found == {
        ("9", "ragged"): "2 fields under a header of 7",
        ("3", "blank"): "no SMILES",
        ("4", "trailing_text"): "ethylamine",
        ("5", "unparsable"): "C(C)(C)(C)(C)C: Explicit valence for atom # 0 C, 5, is greater than permitted",
        ("6", "unparsable"): "not: not SMILES",
        ("7", "multi_fragment"): "2 fragments",
        ("2", "duplicate"): "same molecule as 1",
        ("1", "conflict"): "a%2Fb",
    }


def test_a_missing_label_stays_missing_and_a_conflict_becomes_missing(tmp_path: Path):
    table = read(tmp_path, DIRTY)
    np.testing.assert_array_equal(table.label("toxic"), [1, 0, 0, np.nan, 0])
    np.testing.assert_array_equal(table.label("a%2Fb"), [np.nan, np.nan, 1, np.nan, 0])


def test_a_label_that_only_the_duplicate_has_is_kept(tmp_path: Path):
    table = read(tmp_path, "smiles,a,b\nCCO,,1\nOCC,1,\nC,0,0\n")
    np.testing.assert_array_equal(table.labels.to_numpy(), [[1, 1], [0, 0]])
    assert table.quality["counted"]["conflict"] == 0


def test_a_molecule_without_atoms_has_a_name_of_its_own():
    assert molecules.parse("").trouble == "zero_atom"


@given(order=st.permutations(range(8)))
@settings(max_examples=25, deadline=None)
def test_the_order_of_the_rows_does_not_decide_a_label(order: list[int]):
    smiles = ["CCO", "OCC", "C(O)C", "CCN", "NCC", "c1ccccc1", "C1=CC=CC=C1", "C"]
    labels = np.array([[1, 0], [np.nan, 0], [1, 1], [0, np.nan], [0, 1], [np.nan, 1], [0, 1], [1, 0]])

    def united(rows: list[int]) -> dict[str, str]:
        raw = rawtable.RawTable(
            rows=tuple(map(str, rows)), smiles=tuple(smiles[i] for i in rows), endpoints=("a", "b"),
            labels=labels[rows], meaning="", ignored_columns={}, dropped=(),
        )  # fmt: skip
        table = pool.clean(raw)
        return {
            name: str(row)
            for name, row in zip(table.canonical, table.labels.to_numpy().tolist(), strict=True)
        }

    assert united(order) == united(list(range(8)))


@pytest.mark.parametrize(
    ("text", "changes", "message"),
    [
        ("smiles,a\nC,1\nCC,0\nCCC,2\n", {"endpoints": ("a",)}, "row 3, column 'a' holds '2', not 0, 1"),
        ("smiles,a\nC,1\nCC,active\n", {"endpoints": ("a",)}, "row 2, column 'a' holds 'active'"),
        ("smiles,a,b\nC,1,0\n", {"endpoints": ("c",)}, "no endpoint 'c'; it holds 'smiles', 'a', 'b'"),
        ("structure,a\nC,1\n", {}, "no column called smiles or mol; it holds 'structure', 'a'"),
        ("smiles,a\nC,1\n", {"smiles_column": "SMILES"}, "no column 'SMILES'; it holds 'smiles', 'a'"),
        ("smiles,SMILES,a\nC,C,1\n", {}, "has the columns .'smiles', 'SMILES'.; choose one"),
        ("smiles,a,a\nC,1,1\n", {}, "1 repeated header names, first 'a'"),
        ("smiles,a\nC,0.5\n", {}, "no column of only 0, 1 and missing; a: row 1 holds '0.5'"),
        ("", {}, "is empty; give a table"),
        ("smiles,a\n", {}, "a header and no row"),
        ("smiles,a\nX,1\n,0\n", {}, "no molecule is left of 2 rows .row 1: X: not SMILES"),
        ('smiles,a\n"C,1\n', {}, "line 2 is not CSV: unexpected end of data"),
        (b"smiles,a\nC,1\n\xff,0\n", {}, "not UTF-8 at byte 13"),
        (gzip.compress(b"smiles,a\nC,1\n", mtime=0)[:-9], {}, "a damaged gzip file"),
    ],
)
def test_a_table_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, text: str | bytes, changes: dict[str, Any], message: str
):
    with pytest.raises(BadSource, match=message) as caught:
        read(tmp_path, text, **changes)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("endpoints", "message"), [(("a", "a"), "asked twice"), ((), "an empty list")])
def test_a_list_of_endpoints_that_cannot_be_meant_is_refused(
    tmp_path: Path, endpoints: tuple[str, ...], message: str
):
    with pytest.raises(BadConfig, match=message):
        read(tmp_path, "smiles,a\nC,1\n", endpoints=endpoints)


def test_asked_endpoints_stand_in_the_order_asked_beside_a_byte_order_mark(tmp_path: Path):
    table = read(tmp_path, "\ufeffsmiles,a,b\nC,1,0\n", endpoints=("b", "a"))
    assert table.endpoints == ("b", "a")


def test_two_names_that_differ_stay_different_when_escaped():
    assert len({pool.escaped(name) for name in ("a/b", "a%2Fb", "a b", "a\tb", "a\nb")}) == 5
    assert pool.escaped("Injury, poisoning (incl cysts)") == "Injury, poisoning (incl cysts)"


def test_a_pool_is_not_read_before_it_is_fetched(tmp_path: Path):
    config = CsvPool(kind="csv", watch="x", path="x.csv", sha256=None, smiles_column=None, endpoints=None)
    with pytest.raises(OutOfOrder, match="does not exist yet"):
        pool.read(config, tmp_path / "raw")


@pytest.mark.parametrize(
    ("name", "endpoints", "rows", "seen"),
    [
        ("sider", 27, 1427, (1427, 0, 182, 0, 0)),
        ("clintox", 2, 1478, (1459, 0, 14, 19, 38)),
        ("bace", 1, 1513, (1513, 0, 0, 0, 0)),
        ("BBBP", 1, 2039, (1975, 0, 105, 64, 10)),
        ("tox21", 12, 7831, (7823, 8, 244, 0, 0)),
    ],
)
def test_real_tables_go_through_the_csv_pool_and_every_row_is_accounted_for(
    request: pytest.FixtureRequest, name: str, endpoints: int, rows: int, seen: tuple[int, ...]
):
    mirror, tmp_path = request.getfixturevalue("mirror"), request.getfixturevalue("tmp_path")
    table = read_file(mirror / "molecular" / f"{name}.csv.gz", tmp_path)
    quality = table.quality
    assert (quality["rows_read"], len(table.endpoints)) == (rows, endpoints)
    assert quality["molecules"] + sum(quality["dropped"].values()) + quality["counted"]["duplicate"] == rows
    counts = {"molecules": quality["molecules"]} | quality["dropped"] | quality["counted"]
    # What parses, and which SMILES name one molecule, moves a little with RDKit's version.
    assert [counts[kind] for kind in COUNTED] == pytest.approx(seen, abs=5)


def read_file(path: Path, tmp_path: Path) -> Table:
    config = CsvPool(kind="csv", watch="x", path=str(path), sha256=None, smiles_column=None, endpoints=None)
    pools.fetch(config, tmp_path / "raw")
    return pool.read(config, tmp_path / "raw", TWO)


def test_the_thirty_assays_become_one_table_with_potency_as_label(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    settings = yaml.safe_load((root / "conf" / "pool" / "moleculeace.yaml").read_text())["pools"][
        "moleculeace"
    ]
    config = TypeAdapter(Pool).validate_python(settings)
    try:
        record = pools.fetch(config, tmp_path / "raw")
    except BadSource as error:
        pytest.skip(f"no MoleculeACE wheel here: {error}")
    assert (len(record["files"]), record["licence"], record["unpinned"]) == (30, "MIT", False)
    table = pool.read(config, tmp_path / "raw", TWO)
    assert table.quality["rows_read"] == 48_714
    assert table.quality["molecules"] == pytest.approx(35_633, abs=20)
    counts = table.quality["endpoints"]["CHEMBL234_Ki"]
    assert (counts["labelled"], counts["active"]) == (3657, 2394)
    assert table.row_ids[0] == "CHEMBL1862_Ki:1"
    assert "100 nM" in table.meaning
