"""A user's file as rows: what is understood, and the row and reason of what is not."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from predictive_credit.errors import BadSource
from predictive_credit.studies.table import sheets
from tests.data import small_tables


def cells(data: bytes, name: str = "mine.csv") -> list[dict[str, Any]]:
    return [dict(record.cells) for record in sheets.parse(data, name).records]


def as_parquet(columns: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def test_a_row_is_called_by_the_line_on_which_it_begins():
    sheet = sheets.parse(b'id,text\n\na,"one\ntwo"\nb,three\n', "mine.csv")
    assert [record.where for record in sheet.records] == ["line 3", "line 5"]
    assert sheet.records[0].cells == {"id": "a", "text": "one\ntwo"}


@pytest.mark.parametrize(
    "data",
    [
        b"id,n\na,1\n", b"\xef\xbb\xbfid,n\na,1\n", b"id,n\r\na,1\r\n", b"id;n\na;1\n", b"id\tn\na\t1",
        b' id ,"n"\na,1\n,\n', gzip.compress(b"id,n\na,1\n", mtime=0), b"id,n,\na,1,nameless\n",
    ],
)  # fmt: skip
def test_the_same_csv_is_understood_in_many_dresses(data: bytes):
    assert cells(data) == [{"id": "a", "n": "1"}]


def test_blank_rows_say_nothing_and_are_counted():
    sheet = sheets.parse(b"id,n\na,1\n,\n  ,\n", "mine.csv")
    assert (len(sheet.records), sheet.blank) == (1, 2)


def test_json_lines_may_leave_cells_out_and_hold_a_line_separator_in_a_string():
    data = '{"id": "a", "n": 1}\n\n{"id": "b\u2028c", "m": null}\n'.encode()
    sheet = sheets.parse(data, "mine.jsonl")
    assert sheet.columns == ("id", "n", "m")
    assert [record.where for record in sheet.records] == ["line 1", "line 3"]
    assert sheet.records[1].cells == {"id": "b\u2028c", "m": None}


def test_parquet_cells_become_plain_json_values():
    day = datetime.date(2024, 2, 29)
    data = as_parquet(
        {
            "day": [day],
            "price": [decimal.Decimal("1.50")],
            "gap": [float("nan")],
            "raw": [b"\xff"],
            "list": [[1]],
        }
    )
    found = cells(data, "mine.parquet")
    assert found == [
        {"day": "2024-02-29", "price": "1.50", "gap": "nan", "raw": [repr(b"\xff")], "list": [1]}
    ]
    json.dumps(found, allow_nan=False)
    assert sheets.parse(data, "mine.parquet").records[0].where == "row 1"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("mine.xlsx", b"PK", r"mine\.xlsx is none of \.csv, .*; save the table"),
        ("mine.csv", b" \n\n", r"mine\.csv is empty"),
        ("mine.csv", b"\xef\xbb\xbf", r"mine\.csv is empty"),
        ("mine.csv", b"id,n\n", r"mine\.csv has no row"),
        ("mine.csv", b"id,n\n,\n", r"mine\.csv has no row"),
        ("mine.csv", b"id,n\na,1\nb,\xe4\n", r"line 3 is not UTF-8 \(byte 11\); save it as UTF-8"),
        ("mine.csv", "id,n\na,1\n".encode("utf-16"), r"line 1 is not UTF-8"),
        ("mine.csv", b'id,n\na,1\nb,"2\n', r"line 3 is not CSV: unexpected end of data"),
        ("mine.csv", b"id,n\na,1\nb,2,3\nc\nd,1\n",
         r"line 3: 3 fields under a header of 2 \(and 1 more, next line 4\); put quotes"),
        ("mine.csv", b"id,n, n\na,1,2\n", r"has 2 columns called 'n'"),
        ("mine.csv.gz", gzip.compress(b"id,n\na,1\n", mtime=0)[:-9], r"damaged gzip file"),
        ("mine.jsonl", b'{"id": 1}\n[1]\n"x"\n',
         r"line 2: a list where an object is needed \(and 1 more, next line 3\)"),
        ("mine.jsonl", b'null\n', r"line 1: a null where"),
        ("mine.jsonl", b'{"id": 1}\n{"id": \n', r"line 2: not JSON \(expecting value at character \d+\)"),
        ("mine.jsonl", b'{"id": 1, "id ": 2}\n', r"line 1: the key 'id' stands twice"),
        ("mine.jsonl", b'{"id": "\\ud800"}\n', r"line 1: .*lone surrogate"),
        ("mine.jsonl", b'{"id": ' + b"[" * 99999 + b"]" * 99999 + b"}\n",
         r"line 1: values are nested too deep"),
        ("mine.jsonl", b'{"id": ' + b"9" * 9999 + b"}\n", r"line 1: .*digits"),
        ("mine.parquet", b"PAR1 but no table PAR1", r"mine\.parquet is not a readable Parquet file"),
        ("mine.parquet", as_parquet({"id": pa.array([], pa.string())}), r"has no row"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_gets_its_row_and_reason(name: str, data: bytes, said: str):
    with pytest.raises(BadSource, match=said):
        sheets.parse(data, name)


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path):
    with pytest.raises(BadSource, match=r"gone\.csv cannot be read \(no such file or directory\)"):
        sheets.read(tmp_path / "gone.csv")


@given(
    data=st.binary(max_size=200)
    | st.lists(st.sampled_from(['"', ",", ";", "\t", "\n", "\r", "\0", "id", "1", "ä"]), max_size=60).map(
        lambda parts: "".join(parts).encode()
    ),
    name=st.sampled_from(["x.csv", "x.csv.gz", "x.jsonl", "x.parquet"]),
)
def test_any_bytes_give_rows_or_our_own_error(data: bytes, name: str):
    try:
        sheet = sheets.parse(data, name)
    except BadSource:
        return
    assert sheet.records
    json.dumps([record.cells for record in sheet.records], allow_nan=False, ensure_ascii=False).encode()


@given(position=st.integers(0, 2000), junk=st.binary(min_size=1, max_size=4))
def test_a_damaged_file_of_any_form_is_read_or_refused_by_our_own_error(position: int, junk: bytes):
    rows = small_tables.rows()
    for name, data in (
        ("x.jsonl", small_tables.jsonl_bytes(rows)), ("x.parquet", small_tables.parquet_bytes(rows)),
    ):  # fmt: skip
        at = position % len(data)
        with contextlib.suppress(BadSource):
            sheets.parse(data[:at] + junk + data[at + len(junk) :], name)
