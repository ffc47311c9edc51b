from pathlib import Path

import pandas as pd
import pytest

from predictive_credit.errors import BadSource
from predictive_credit.formats import model_output
from predictive_credit.formats.model_output import Task

HEADER = "state,target,context,call,output_type,output_type_id,value"
ROWS = [
    f"s/1,yield,M,1,quantile,{level},{value}" for level, value in (("0.1", "-1"), ("0.5", "2"), ("0.9", "3"))
]
FIRST = Task(state="s/1", target="yield", context="M", call="1")


def table(*rows: str, header: str = HEADER) -> bytes:
    return "\n".join((header, *rows, "")).encode()


def test_three_quantiles_are_a_forecast_whose_numbers_stay_as_they_stand():
    rows = [ROWS[0], "s/1,yield,M,1,quantile,.5,2.50", "s/1,yield,M,1,quantile,0.90,3e-1"]
    assert model_output.parse(table(*rows), "f.csv") == {
        FIRST: {"lower": "-1", "point": "2.50", "upper": "3e-1"}
    }


@pytest.mark.parametrize(("text", "written"), [(".5", "0.5"), ("+2", "2.0"), ("007", "7.0"), (" 4 ", "4")])
def test_a_number_that_json_cannot_write_is_written_as_json_can(text: str, written: str):
    rows = [*ROWS[:2], f"s/1,yield,M,1,quantile,0.9,{text}"]
    assert model_output.parse(table(*rows), "f.csv")[FIRST]["upper"] == written


def test_other_output_types_quantiles_and_columns_are_passed_over():
    rows = [
        f"{row},ours"
        for row in (
            *ROWS,
            "s/1,yield,M,1,quantile,0.25,9",
            "s/1,yield,M,1,mean,,x",
            "s/1,yield,M,1,pmf,low,1",
        )
    ]
    found = model_output.parse(table(*rows, header=f"{HEADER},model_id"), "f.csv")
    assert found == model_output.parse(table(*ROWS), "f.csv")


def test_a_table_without_calls_has_one_forecast_for_every_call():
    rows = [row.replace(",1,quantile", ",quantile") for row in ROWS]
    found = model_output.parse(table(*rows, header=HEADER.replace(",call", "")), "f.csv")
    assert [task.call for task in found] == [None]


def test_crossing_quantiles_stay_as_they_are():
    rows = [ROWS[0], ROWS[1], "s/1,yield,M,1,quantile,0.9,-5"]
    assert model_output.parse(table(*rows), "f.csv")[FIRST] == {"lower": "-1", "point": "2", "upper": "-5"}


def test_parquet_and_csv_hold_the_same_forecasts(tmp_path: Path):
    frame = pd.DataFrame(
        {
            "state": "s/1", "target": "yield", "context": "M", "call": [1, 1, 1, None],
            "output_type": ["quantile"] * 3 + ["mean"], "output_type_id": [0.1, 0.5, 0.9, None],
            "value": [-1.5, 0.1 + 0.2, 3.0, 1.0],
        }
    )  # fmt: skip
    frame.to_parquet(tmp_path / "f.parquet")
    found = model_output.parse((tmp_path / "f.parquet").read_bytes(), "f.parquet")
    assert found == {FIRST: {"lower": "-1.5", "point": "0.30000000000000004", "upper": "3.0"}}
    assert model_output.parse(frame.to_csv(index=False).encode(), "f.csv") == found


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (table(header="state,target,context,value"), "f.csv line 1: column output_type is missing"),
        (b"", "f.csv line 1: column state is missing; .* seen nothing"),
        (table(*ROWS[:2]), "f.csv line 2: column output_type_id has no quantile 0.9 of yield of s/1, con"),
        (table(*ROWS, ROWS[1]), "f.csv line 5: column output_type_id has quantile 0.5 .* a second time"),
        (table(*ROWS, "s/2,yield,M,1,quantile,0.1,1 %"), "f.csv line 5: column value holds '1 %', which is"),
        (table(*ROWS, "s/2,yield,M,1,quantile,0.1,NaN"), "f.csv line 5: column value holds 'NaN', which is"),
        (table(*ROWS, "s/2,yield,M,1,quantile,0.1,"), "f.csv line 5: column value is empty"),
        (table(*ROWS, "s/2,yield,M,1,quantile,q10,1"), "f.csv line 5: column output_type_id holds 'q10'"),
        (table(*ROWS, ",yield,M,1,quantile,0.1,1"), "f.csv line 5: column state is empty"),
        (table(*ROWS, "s/2,yield,M,1,quantile"), "f.csv line 5: column output_type_id is empty"),
        (b"\xff\xfe", "f.csv is not a CSV in UTF-8"),
    ],
    ids=(
        "column", "nothing", "quantile", "twice", "percent", "nan", "empty", "level", "state", "short",
        "bytes",
    ),
)  # fmt: skip
def test_a_bad_file_is_one_sentence_that_names_line_and_column(data: bytes, sentence: str):
    with pytest.raises(BadSource, match=f"^{sentence}") as refusal:
        model_output.parse(data, "f.csv")
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_no_parquet_says_so():
    with pytest.raises(BadSource, match=r"f\.parquet is not a Parquet file"):
        model_output.parse(b"state,target", "f.parquet")
