"""Dirty tables, each case in one small table: handled, counted, reported; and the files they become."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest

from predictive_credit import tables
from predictive_credit.config import Execution, OwnTable, RegimesPool, TablesPool
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder, Tampered
from predictive_credit.sources import manifest, pools
from predictive_credit.sources.manifest import TableFile
from predictive_credit.studies.tabular import pool, pool_files
from predictive_credit.studies.tabular.cleaning import Column, Finding, RawTask, Task, clean

HERE = Execution(backend="sequential", n_jobs=1, address=None)
NAN = float("nan")
Values = Any  # a sequence or an array


def column(name: str, values: Values, form: Any = "text") -> Column:
    if form == "number":
        return Column(name=name, values=np.array(values, dtype=float), form=form)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return Column(name=name, values=array, form=form)


def raw(*columns: Column, kind: Any = "regression", target: str = "y", drop: tuple[str, ...] = ()) -> RawTask:
    return RawTask(name="tiny", kind=kind, target=target, drop=drop, columns=columns)


def cleaned(values: Values, form: Any = "text", *, max_rows: int = 1000) -> tuple[Task, list[Finding]]:
    """A table of one column beside a plain one and a target; the plain one comes last."""
    n = len(values)
    plain, y = column("plain", list(range(n)), "number"), column("y", [float(i) for i in range(n)], "number")
    task, findings = clean(raw(column("a", values, form), plain, y), max_rows=max_rows)
    return task, list(findings)


def same(seen: Any, asked: Values) -> bool:
    return np.array_equal(np.asarray(seen, dtype=float), np.array(asked, dtype=float), equal_nan=True)


def test_strings_that_are_numbers_become_numbers():
    task, findings = cleaned([" 1", "2.5", "-3e2", "", "NA", "?", "<null>"])
    assert same(task.x[:, 0], [1, 2.5, -300, NAN, NAN, NAN, NAN])
    assert task.categorical == ()
    assert findings == []
    assert task.counts["missing_values"] == 4


def test_a_few_strings_among_numbers_are_missing_and_counted():
    task, findings = cleaned([str(i) for i in range(19)] + ["ten"])
    assert same(task.x[:, 0], [*range(19), NAN])
    assert [(f.column, f.finding) for f in findings] == [("a", "unread_numbers")]
    assert task.counts["unread_numbers"] == 1


def test_more_strings_than_a_twentieth_make_categories():
    task, _ = cleaned([str(i % 3) for i in range(18)] + ["ten", "ten"])
    assert task.categorical == (0,)
    assert same(np.unique(task.x[:, 0]), [0, 1, 2, 3])


@pytest.mark.parametrize("text", ["1_000", "0x10", "1,5", "1 2"])
def test_what_no_table_means_as_a_number_is_none(text: str):
    task, _ = cleaned([text, text, "7_"])
    assert task.categorical == (0,)


def test_categories_are_codes_of_sorted_levels_whatever_the_order_of_the_rows():
    values = ["red", "blue", None, "green", "blue", "red"]
    task, findings = cleaned(values)
    assert same(task.x[:, 0], [2, 0, NAN, 1, 0, 2])
    assert (task.categorical, findings) == ((0,), [])
    backwards, _ = cleaned(values[::-1])
    assert same(backwards.x[::-1, 0], task.x[:, 0])


def test_declared_categories_stay_categories_even_if_they_look_like_numbers():
    task, _ = cleaned(["10", "9", "10", "9"], "category")
    assert task.categorical == (0,)
    assert same(task.x[:, 0], [0, 1, 0, 1])


def test_of_many_levels_the_most_frequent_stay_and_the_others_share_a_code():
    levels = [f"l{i:02}" for i in range(51)]
    values = [level for i, level in enumerate(levels) for _ in range(1 if i in (3, 7) else 2)]
    task, findings = cleaned(values)
    codes = dict(zip(values, task.x[:, 0], strict=True))
    assert codes["l03"] == codes["l07"] == 49
    assert sorted(codes[level] for level in levels if level not in ("l03", "l07")) == list(range(49))
    assert [codes["l00"], codes["l04"], codes["l50"]] == [0, 3, 48]
    assert [(f.finding, f.detail) for f in findings] == [("other_values", "2 rare levels are (other)")]
    assert task.counts["other_values"] == 2
    shuffled = np.random.default_rng(0).permutation(len(values))
    again, _ = cleaned([values[i] for i in shuffled])
    assert same(again.x[:, 0], task.x[shuffled, 0])


def test_fifty_levels_all_stay():
    task, findings = cleaned([f"l{i % 50:02}" for i in range(60)])
    assert len(np.unique(task.x[:, 0])) == 50
    assert findings == []


@pytest.mark.parametrize(
    ("values", "form", "finding"),
    [
        (["a", "b", "c", None], "text", "identifier_columns"),
        (["a", "b", "c", "d"], "category", "identifier_columns"),
        (["", "NA", None, "?"], "text", "empty_columns"),
        ([NAN, NAN, NAN, NAN], "number", "empty_columns"),
        ([2.0, 2.0, 2.0, 2.0], "number", "constant_columns"),
        (["x", "x", "x", "x"], "text", "constant_columns"),
        (["1", "1.0", "1", "1"], "text", "constant_columns"),
    ],
)
def test_a_column_that_carries_nothing_is_left_out_and_counted(values: Values, form: str, finding: str):
    task, findings = cleaned(values, form)
    assert task.features == ("plain",)
    assert [(f.task, f.column, f.finding) for f in findings] == [("tiny", "a", finding)]
    assert task.counts[finding] == 1


def test_one_value_and_missing_is_not_constant():
    task, findings = cleaned(["x", None, "x", None])
    assert same(task.x[:, 0], [0, NAN, 0, NAN])
    assert findings == []


def test_true_and_false_are_one_and_zero():
    task, findings = cleaned(["TRUE", "false", "", "True"])
    assert same(task.x[:, 0], [1, 0, NAN, 1])
    assert task.categorical == ()
    assert [f.finding for f in findings] == ["boolean_columns"]


@pytest.mark.parametrize(
    ("values", "form"), [(["1", "inf", "-Infinity", "2"], "text"), ([1, np.inf, -np.inf, 2], "number")]
)
def test_infinities_are_missing_and_counted(values: Values, form: str):
    task, findings = cleaned(values, form)
    assert same(task.x[:, 0], [1, NAN, NAN, 2])
    assert [f.finding for f in findings] == ["infinite_values"]
    assert task.counts["infinite_values"] == 2


def test_a_column_that_is_constant_on_the_rows_that_stay_is_left_out():
    y = column("y", ["1", "2", "3", "NA"])
    task, findings = clean(raw(column("a", list("xxxy")), column("b", [1, 2, 3, 4], "number"), y), max_rows=9)
    assert task.features == ("b",)
    assert {f.finding for f in findings} == {"constant_columns", "missing_targets"}


def test_rows_without_a_target_are_left_out_and_counted():
    task, findings = clean(
        raw(column("a", [1, 2, 3, 4, 5], "number"), column("y", ["1", "", "NA", "inf", "5"])), max_rows=9
    )
    assert same(task.x[:, 0], [1, 5])
    assert same(task.y, [1, 5])
    assert task.counts["missing_targets"] == 3
    assert (task.counts["rows"], task.counts["rows_read"]) == (2, 5)
    assert [(f.column, f.finding) for f in findings] == [("y", "infinite_values"), ("y", "missing_targets")]


def test_classes_are_codes_of_sorted_strings():
    y = column("y", ["b", "a", "b", "a", None, "a", "b", "a", "b"])
    task, _ = clean(raw(column("a", list(range(9)), "number"), y, kind="classification"), max_rows=99)
    assert task.classes == ("a", "b")
    assert same(task.y, [1, 0, 1, 0, 0, 1, 0, 1])
    assert same(task.x[:, 0], [0, 1, 2, 3, 5, 6, 7, 8])


def test_whole_numbers_are_classes_without_a_point():
    y = column("y", [1, 0, 1, 0, 1, 0, 1, 0], "number")
    task, _ = clean(raw(column("a", list(range(8)), "number"), y, kind="classification"), max_rows=99)
    assert task.classes == ("0", "1")


def test_a_class_of_fewer_than_four_rows_is_left_out_with_its_rows():
    y = column("y", list("aaaabbbbccc"))
    task, findings = clean(raw(column("a", list(range(11)), "number"), y, kind="classification"), max_rows=99)
    assert task.classes == ("a", "b")
    assert len(task.y) == len(task.x) == 8
    assert (task.counts["rare_classes"], task.counts["rare_class_rows"]) == (1, 3)
    assert [f.detail for f in findings] == ["class 'c' has 3 rows, left out"]


def test_a_large_table_keeps_a_random_subset_that_is_the_same_every_time():
    task, findings = cleaned([str(i) for i in range(200)], max_rows=50)
    again, _ = cleaned([str(i) for i in range(200)], max_rows=50)
    assert len(task.x) == 50
    assert same(task.x[:, 0], task.y)  # rows stay whole
    assert same(again.x, task.x)
    assert same(np.sort(task.y), task.y)
    assert task.y.max() > 150  # not the first fifty
    assert (task.counts["rows_not_sampled"], task.counts["rows_read"]) == (150, 200)
    assert findings[0].detail == "a random 50 of 200 rows stay"


def test_duplicate_and_empty_column_names_are_told_apart():
    columns = [column(name, [i, i + 1, i + 3], "number") for i, name in enumerate(["a", "a", "", "a_2", "y"])]
    task, findings = clean(raw(*columns), max_rows=9)
    assert task.features == ("a", "a_2_", "column_3", "a_2")
    assert task.counts["renamed_columns"] == 2
    assert {f.finding for f in findings} == {"renamed_columns"}


def test_names_that_lightgbm_refuses_or_takes_for_one_are_counted_and_the_table_trains():
    names = ["a b", "a_b", 'say "x"', "{z}", "fine"]
    rng = np.random.default_rng(0)
    columns = [column(name, rng.normal(size=60), "number") for name in names]
    task, findings = clean(raw(*columns, column("y", rng.normal(size=60), "number")), max_rows=99)
    assert task.features == tuple(names)
    assert [f.column for f in findings if f.finding == "positional_names"] == names[:4]
    assert task.counts["positional_names"] == 4
    lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(task.x, task.y), 2)


def test_dropped_columns_are_no_features():
    columns = [column(name, [1, 2, 4], "number") for name in ("a", "id", "y")]
    task, _ = clean(raw(*columns, drop=("id",)), max_rows=9)
    assert task.features == ("a",)


NUMBERS = column("a", list(range(8)), "number")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (raw(NUMBERS), r"table tiny has no column 'y', which its target names; it has a"),
        (raw(NUMBERS, column("y", range(8), "number"), drop=("z",)), "no column 'z', which its drop names"),
        (raw(NUMBERS, column("y", list("12345678x"[1:]))), r"tiny is not numeric \(it holds 'x'\)"),
        (raw(NUMBERS, column("y", ["7"] * 8)), "target 'y' of the table tiny has one value"),
        (raw(NUMBERS, column("y", [""] * 8)), "target 'y' of the table tiny has no value"),
        (raw(NUMBERS, column("y", list("aaaabbbc")), kind="classification"), "has one class with at least 4"),
        (raw(NUMBERS, column("y", list("abcdefgh")), kind="classification"), "has no class with at least 4"),
        (raw(column("a", ["x"] * 8), column("y", range(8), "number")), "tiny has no column left to predict"),
        (raw(NUMBERS, *[column("y", range(8), "number")] * 2), "has 2 columns called 'y'"),
    ],
)
def test_a_table_that_cannot_be_a_task_is_one_sentence_with_its_name(table: RawTask, message: str):
    with pytest.raises(BadSource, match=message) as caught:
        clean(table, max_rows=99)
    assert "\n" not in str(caught.value)


# Reading


def file(name: str, **changes: Any) -> TableFile:
    settings: dict[str, Any] = {
        "name": "tiny", "file": name, "kind": "regression", "target": "y", "role": "study", "origin": "here",
        "licence": None,
    }  # fmt: skip
    return TableFile(**(settings | changes))


def read(folder: Path, name: str, data: bytes, **changes: Any) -> RawTask:
    (folder / name).write_bytes(data)
    return pool_files.read(folder, file(name, **changes))


def cells(table: RawTask) -> Mapping[str, list[Any]]:
    return {column.name: column.values.tolist() for column in table.columns}


def test_a_csv_is_read_as_written(tmp_path: Path):
    table = read(tmp_path, "t.csv", '\ufeffa,"b, c"\r\n1, "x\n y"\r\n\r\nNA,\r\n'.encode())
    assert cells(table) == {"a": ["1", "NA"], "b, c": ["x\n y", ""]}
    assert {column.form for column in table.columns} == {"text"}


def test_a_gzipped_csv_and_another_delimiter_are_read(tmp_path: Path):
    table = read(tmp_path, "t.csv.gz", gzip.compress(b"a\tb\n1,5\t2\n"), delimiter="\t")
    assert cells(table) == {"a": ["1,5"], "b": ["2"]}


def test_a_table_without_a_header_gets_numbered_names(tmp_path: Path):
    table = read(tmp_path, "t.dat", b"1, red\n2, blue\n", header=False)
    assert cells(table) == {"column_1": ["1", "2"], "column_2": ["red", "blue"]}


def test_rows_of_another_length_are_left_out_and_named_by_their_line(tmp_path: Path):
    table = read(tmp_path, "t.csv", b"a,y\n1,2\n3\n4,5,6\n7,8\n")
    assert cells(table) == {"a": ["1", "7"], "y": ["2", "8"]}
    assert [(f.finding, f.detail) for f in table.findings] == [
        ("ragged_rows", "line 3 has 1 fields, not 2; left out"),
        ("ragged_rows", "line 4 has 3 fields, not 2; left out"),
    ]
    task, findings = clean(table, max_rows=9)
    assert task.counts["ragged_rows"] == 2
    assert len(findings) == 2


def test_a_parquet_file_keeps_its_forms(tmp_path: Path):
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 3], dtype="Int64"),
            "c": pd.Categorical(["1", None, "2"]),
            "s": ["u", None, "v"],
            "b": [True, False, True],
        }
    )
    frame.to_parquet(tmp_path / "made.parquet")
    table = read(tmp_path, "t.parquet", (tmp_path / "made.parquet").read_bytes())
    assert [column.form for column in table.columns] == ["number", "category", "text", "number"]
    assert same(cells(table)["n"], [1, NAN, 3])
    assert cells(table)["c"] == ["1", None, "2"]
    assert cells(table)["s"] == ["u", None, "v"]
    assert cells(table)["b"] == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.csv", b"a,y\n", r"table tiny \(here\) holds no rows"),
        ("t.csv", b"", r"table tiny \(here\) holds no rows"),
        ("t.csv", b"a,y\n\xff,1\n", r"table tiny \(here\) is not UTF-8 at byte 4"),
        ("t.csv.gz", b"a,y\n1,2\n", "is no gzip file"),
        ("t.parquet", b"a,y\n1,2\n", "is no Parquet file"),
        ("t.csv", b'a,y\n"' + b"x" * 140_000 + b'",1\n', "is no CSV at line 2"),
    ],
)
def test_a_file_that_is_no_table_is_one_sentence(tmp_path: Path, name: str, data: bytes, message: str):
    with pytest.raises(BadSource, match=message):
        read(tmp_path, name, data)


# Filing


DIRTY = "name,size,colour,y\n" + "".join(
    f"n{i},{i % 7},{'red' if i % 2 else 'blue'},{'' if i == 5 else i * 1.5}\n" for i in range(20)
)


@pytest.fixture
def own(tmp_path: Path) -> TablesPool:
    """Three tables of a user, fetched: a study task of each kind, and one for the burn-in."""
    (tmp_path / "dirty.csv").write_text(DIRTY)
    path = str(tmp_path / "dirty.csv")
    own = TablesPool(
        kind="tables", watch="x", max_rows=15,
        tables={
            "values": OwnTable(path=path, kind="regression", target="y"),
            "colours": OwnTable(path=path, kind="classification", target="colour"),
            "others": OwnTable(path=path, kind="regression", target="size", drop=("name",), burn_in=True),
        },
    )  # fmt: skip
    pools.fetch(own, tmp_path / "raw")
    return own


def test_tasks_are_filed_and_come_back_as_they_were(tmp_path: Path, own: TablesPool):
    told = pool.features(own, tmp_path / "raw", tmp_path / "features", HERE)
    tasks = pool.load(tmp_path / "features")
    assert [task.name for task in tasks.study] == ["colours", "values"]
    assert [task.name for task in tasks.burn_in] == ["others"]
    for task in (*tasks.study, *tasks.burn_in):
        (entry,) = [f for f in manifest.read(tmp_path / "raw") if f.name == task.name]
        asked, _ = clean(pool_files.read(tmp_path / "raw", entry), max_rows=15)
        assert same(task.x, asked.x)
        assert same(task.y, asked.y)
        assert (task.categorical, task.classes, task.features) == (
            asked.categorical,
            asked.classes,
            asked.features,
        )
        assert task.counts == asked.counts == told["tasks"][task.name]["counts"]
    assert told["tasks"]["colours"]["classes"] == 2
    assert told["tasks"]["others"]["role"] == "burn-in"


def test_every_finding_is_a_row_of_the_report(tmp_path: Path, own: TablesPool):
    pool.features(own, tmp_path / "raw", tmp_path / "features", HERE)
    rows = tables.parse_csv((tmp_path / "features" / "findings.csv").read_bytes(), "findings.csv")
    assert {
        "task": "values",
        "column": "y",
        "finding": "missing_targets",
        "detail": "1 rows are left out",
    } in rows
    assert {(row["task"], row["finding"]) for row in rows} == {
        ("values", "missing_targets"), ("values", "rows_not_sampled"), ("values", "identifier_columns"),
        ("colours", "rows_not_sampled"), ("colours", "identifier_columns"), ("others", "rows_not_sampled"),
    }  # fmt: skip


def test_equal_tables_give_equal_bytes(tmp_path: Path, own: TablesPool):
    for name in ("one", "two"):
        pool.features(own, tmp_path / "raw", tmp_path / name, HERE)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two
    assert sorted(one) == ["colours.npz", "findings.csv", "others.npz", "tasks.jsonl", "values.npz"]


def test_a_raw_table_that_changed_since_the_fetch_is_refused(tmp_path: Path, own: TablesPool):
    (tmp_path / "raw" / "values.csv").write_text(DIRTY + "n99,1,red,2\n")
    with pytest.raises(BadSource, match=r"values.csv has sha256"):
        pool.features(own, tmp_path / "raw", tmp_path / "features", HERE)


def test_tasks_before_their_stage_and_damaged_ones_are_refused(tmp_path: Path, own: TablesPool):
    with pytest.raises(OutOfOrder, match=r"tasks\.jsonl does not exist yet"):
        pool.load(tmp_path / "features")
    pool.features(own, tmp_path / "raw", tmp_path / "features", HERE)
    path = tmp_path / "features" / "values.npz"
    (tmp_path / "features" / "colours.npz").replace(path)
    with pytest.raises(OutOfOrder, match=r"colours\.npz does not exist yet"):
        pool.load(tmp_path / "features")
    path.replace(tmp_path / "features" / "colours.npz")
    np.savez(path, x=np.zeros((2, 2)), y=np.zeros(2))
    with pytest.raises(Tampered, match=r"values.npz has shapes \(2, 2\) and \(2,\)"):
        pool.load(tmp_path / "features")
    path.write_bytes(b"no zip")
    with pytest.raises(Tampered, match=r"values\.npz holds no x and y"):
        pool.load(tmp_path / "features")


def test_a_pool_of_another_kind_is_refused(tmp_path: Path):
    regimes = RegimesPool(kind="regimes", watch="x")
    with pytest.raises(BadConfig, match="cannot use a pool of kind regimes"):
        pool.features(regimes, tmp_path / "raw", tmp_path / "features", HERE)
