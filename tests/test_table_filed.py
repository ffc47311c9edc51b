"""A pool's raw files as checked sheets in its features folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from predictive_credit.config import RegimesPool
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder
from predictive_credit.sources import pools
from predictive_credit.studies import workers
from predictive_credit.studies.table import filed, sheets
from tests.data import small_tables
from tests.data.small_tables import csv_bytes


def test_a_sheet_comes_back_as_it_was_filed(tmp_path: Path):
    data = csv_bytes(small_tables.rows()) + b",,,,,,,,\n"
    where = small_tables.setting(tmp_path, data, burn_in=data)
    again = filed.states(where.features)
    assert again == sheets.parse(data, "mine.csv")
    assert again.columns == small_tables.HEADER  # in the file's order, as errors list them
    assert filed.load(where.features, "burn_in") == sheets.parse(data, "before.csv")
    assert filed.load(where.features, "outcomes") is None


def test_the_counts_say_what_every_file_holds_and_not_where_it_is_kept(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_bytes(csv_bytes(small_tables.rows()) + b",,,,,,,,\n")
    pool = small_tables.own(path, outcomes=tmp_path / "to_come.csv")
    pools.fetch(pool, tmp_path / "raw")
    counts = filed.features(pool, tmp_path / "raw", tmp_path / "features", workers.HERE)
    assert (counts["rows"], list(counts["files"])) == (4, ["states"])
    states = counts["files"]["states"]
    assert (states["name"], states["rows"], states["blank"]) == ("mine.csv", 4, 1)
    assert (states["filled"]["yield"], states["filled"]["purity"]) == (3, 4)


def test_equal_tables_give_equal_bytes(tmp_path: Path):
    one, two = (small_tables.setting(tmp_path / n, csv_bytes(small_tables.rows())).features for n in "ab")
    assert {p.name: p.read_bytes() for p in one.iterdir()} == {p.name: p.read_bytes() for p in two.iterdir()}
    assert {path.name for path in one.iterdir()} == {"sheets.json", "states.jsonl"}


def test_a_wrong_file_is_called_by_the_users_own_name(tmp_path: Path):
    with pytest.raises(BadSource, match=r"^mine\.csv line 2: 3 fields under a header of 2"):
        small_tables.setting(tmp_path, b"id,n\na,1,2\n")


def test_nothing_is_read_before_it_was_fetched_or_filed(tmp_path: Path):
    pool = small_tables.own(tmp_path / "mine.csv")
    with pytest.raises(OutOfOrder, match=r"source\.json"):
        filed.features(pool, tmp_path / "raw", tmp_path / "features", workers.HERE)
    with pytest.raises(OutOfOrder, match="run the features stage"):
        filed.states(tmp_path / "features")


def test_a_pool_of_another_kind_is_refused(tmp_path: Path):
    with pytest.raises(BadConfig, match="reads a pool of kind own, not regimes"):
        filed.files(RegimesPool(kind="regimes", watch="x"))


def test_two_files_of_one_part_are_refused(tmp_path: Path):
    for suffix in (".csv", ".jsonl"):
        (tmp_path / f"states{suffix}").write_bytes(b"id\na\n")
    with pytest.raises(BadSource, match=r"holds states\.csv and states\.jsonl"):
        filed.read_raw(tmp_path, "states", "mine.csv")
