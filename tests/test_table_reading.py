"""Every way in which a user's table can be wrong, with its row, column and reason; and all that is right."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit.errors import BadSource
from predictive_credit.studies.table import reading, sheets
from predictive_credit.studies.table.config import TableConfig
from predictive_credit.studies.table.reading import Known
from tests.data import small_tables
from tests.data.small_tables import csv_bytes, jsonl_bytes, parquet_bytes

Rows = list[dict[str, Any]]
SAME = small_tables.config()
OTHER = small_tables.config(donor="other_cluster")
COLUMN = small_tables.config(donor="column", donor_column="lender")
IDS = ("a", "b", "c", "d")


def read(rows: Rows, config: TableConfig = SAME, name: str = "mine.csv") -> Any:
    """All that a states file says: its rows and the outcomes beside them."""
    make = {"csv": csv_bytes, "jsonl": jsonl_bytes, "parquet": parquet_bytes}[name.rpartition(".")[2]]
    sheet = sheets.parse(make(rows), name)
    return reading.rows(sheet, config), reading.known(sheet, None, config)


def changed(row: int, **cells: Any) -> Rows:
    """The four rows with some cells of one changed."""
    rows = small_tables.rows()
    rows[row] |= cells
    return rows


def without(*columns: str) -> Rows:
    return [{key: cell for key, cell in row.items() if key not in columns} for row in small_tables.rows()]


def renamed(column: str, to: str) -> Rows:
    return [{to if key == column else key: cell for key, cell in row.items()} for row in small_tables.rows()]


@pytest.mark.parametrize("config", [SAME, OTHER, COLUMN])
def test_all_three_formats_give_equal_rows_and_outcomes(config: TableConfig):
    def bare(name: str) -> Any:
        rows, known = read(small_tables.rows(), config, name)
        return [(r.id, r.cluster, r.description, r.intervention, r.explanation, r.donor) for r in rows], known

    assert bare("mine.csv") == bare("mine.jsonl") == bare("mine.parquet")
    rows, known = bare("mine.csv")
    assert rows[0] == (
        "a", ("north", "1"), "Reactor a.", "Heat it.", "Heat helps a.", "c" if config is COLUMN else None
    )  # fmt: skip
    assert known == {
        ("a", "yield"): Known(1.5, None), ("b", "yield"): Known(-2.0, None), ("d", "yield"): Known(0.0, None),
        ("a", "purity"): Known(90.0, None), ("b", "purity"): Known(80.25, None),
        ("c", "purity"): Known(70.0, None), ("d", "purity"): Known(None, "the sample was lost"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("12.5", 12.5),
        (" 12.5 ", 12.5),
        ("+1e1", 10.0),
        ("\u22123.0", -3.0),
        (".5", 0.5),
        ("7.", 7.0),
        (50, 50.0),
    ],
)
def test_a_number_may_be_written_in_several_ways(cell: Any, value: float):
    assert read(changed(0, **{"yield": cell}))[1]["a", "yield"] == Known(value, None)


@pytest.mark.parametrize(
    "cell", ["undefined: no sample", "NA: no sample", " Undefined :no sample", "n/a: no sample "]
)
def test_an_undefined_outcome_says_why(cell: str):
    assert read(changed(0, **{"yield": cell}))[1]["a", "yield"] == Known(None, "no sample")


@pytest.mark.parametrize("key", ["a b", "a-1_2.3", "(ä)=+#,:@", "  a  "])
def test_an_id_may_hold_spaces_and_signs_and_letters_of_any_script(key: str):
    assert key.strip() in {row.id for row in read(changed(0, id=key))[0]}


def test_whole_numbers_name_things_alike_in_every_format():
    rows = [row | {"batch": 1.0} for row in small_tables.rows()]
    assert {row.cluster[1] for row in read(rows, name="mine.jsonl")[0]} == {"1"}
    assert {row.cluster[1] for row in read(rows, name="mine.parquet")[0]} == {"1"}


WRONG: list[tuple[Rows, TableConfig, str, str | None, str]] = [
    # rows, declaration, where, column, reason
    (changed(1, id="a"), SAME, "line 3", "id", r"'a' stands already on line 2.*id of its own"),
    (changed(1, id=" "), SAME, "line 3", "id", r"the cell is empty; fill it"),
    (changed(2, text=None), SAME, "line 4", "text", r"the cell is empty; fill it"),
    (changed(2, change=""), SAME, "line 4", "change", r"the cell is empty; fill it"),
    (changed(3, why="  "), SAME, "line 5", "why", r"the state has no explanation.*contexts M and S.*write"),
    (changed(0, site=""), SAME, "line 2", "site", r"the cell is empty"),
    (changed(0, batch=None), SAME, "line 2", "batch", r"the cell is empty"),
    (changed(0, id="a/b"), SAME, "line 2", "id", r"'a/b' holds '/', which breaks a path; use letters"),
    (changed(0, id="a\\b"), SAME, "line 2", "id", r"breaks a path"),
    (changed(0, id="a\tb"), SAME, "line 2", "id", r"'a\\tb' holds '\\t', which breaks a path"),
    (changed(0, id="a\u200bb"), SAME, "line 2", "id", r"breaks a path"),
    (changed(0, id=".."), SAME, "line 2", "id", r"'\.\.' means a folder"),
    (changed(0, id="a" * 101), SAME, "line 2", "id", r"has 101 characters; use 100 at most"),
    (changed(0, site="north/west"), SAME, "line 2", "site", r"breaks a path"),
    (changed(0, **{"yield": "12,5"}), SAME, "line 2", "yield", r"'12,5' has a decimal comma; write 12\.5"),
    (changed(0, **{"yield": "3 %"}), SAME, "line 2", "yield",
     r"'3 %' has more than a number in it; write the number alone"),
    (changed(0, **{"yield": "1,234"}), SAME, "line 2", "yield",
     r"decimals or thousands; write 1\.234 or 1234"),
    (changed(0, **{"yield": "1,234.5"}), SAME, "line 2", "yield", r"thousands separators"),
    (changed(0, **{"yield": "1_000"}), SAME, "line 2", "yield", r"thousands separators"),
    (changed(0, **{"yield": "up"}), SAME, "line 2", "yield", r"'up' is text where a number is needed"),
    (changed(0, **{"yield": "nan"}), SAME, "line 2", "yield",
     r"'nan' is not a finite number; leave the cell empty"),
    (changed(0, **{"yield": "-inf"}), SAME, "line 2", "yield", r"'-inf' is not a finite number"),
    (changed(0, **{"yield": "NA"}), SAME, "line 2", "yield", r"'NA' is not a finite number.*`undefined: `"),
    (changed(0, **{"yield": "1e999"}), SAME, "line 2", "yield", r"'1e999' is too large"),
    (changed(0, **{"yield": "٣"}), SAME, "line 2", "yield", r"text where a number"),
    (changed(0, **{"yield": "undefined: "}), SAME, "line 2", "yield", r"undefined without a reason"),
    (changed(1, **{"yield": 50.01}), SAME, "line 3", "yield",
     r"50\.01 is outside the declared range \[-50, 50\] grams"),
    (changed(1, purity=-0.1), SAME, "line 3", "purity", r"-0\.1 is outside the declared range \[0, 100\] %"),
    (changed(0, lender=""), COLUMN, "line 2", "lender", r"the state has no donor id; name another"),
    (changed(0, lender="a"), COLUMN, "line 2", "lender", r"'a' is its own donor"),
    (changed(0, lender="C"), COLUMN, "line 2", "lender", r"no state is called 'C' \(did you mean 'c'\?\)"),
    (changed(2, batch="2"), SAME, "line 4", "batch",
     r"'c' is alone in cluster 'south/2'.*\(and 1 more, next line 5\); add a state.*other_cluster"),
    ([row | {"site": "north"} for row in small_tables.rows()], OTHER, "", "site",
     r"holds one cluster, 'north'.*same_cluster"),
    (without("why"), SAME, "", None, r"has no column 'why'; it holds 'id', 'site'.*rename the column"),
    (without("why", "text"), SAME, "", None, r"has no column 'text' \(nor 1 more\)"),
    (renamed("change", "Change"), SAME, "", None, r"has no column 'change' \(did you mean 'Change'\?\)"),
    (without("lender"), COLUMN, "", None, r"has no column 'lender'"),
    (renamed("purity", "puritiy"), SAME, "", None,
     r"has no column 'purity' of target purity \(did you mean 'puritiy'\?\)"),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "config", "where", "column", "reason"), WRONG)
def test_a_wrong_table_is_refused_with_its_row_its_column_and_the_reason(
    rows: Rows, config: TableConfig, where: str, column: str | None, reason: str
):
    place = f"mine\\.csv {where}".rstrip() + (f",? column '{column}'" if column else "")
    with pytest.raises(BadSource, match=f"{place}.*{reason}"):
        read(rows, config)


@pytest.mark.parametrize(
    ("cell", "reason"),
    [(True, "a truth value, not a number"), ([1], "nested, not a number"), (10**400, "too large")],
)
def test_a_json_value_that_is_no_number_is_refused(cell: Any, reason: str):
    with pytest.raises(BadSource, match=f"mine.jsonl line 1, column 'yield': .*{reason}"):
        read(changed(0, **{"yield": cell}), name="mine.jsonl")


@pytest.mark.parametrize(("name", "where"), [("mine.jsonl", "line 2"), ("mine.parquet", "row 2")])
def test_each_format_counts_its_rows_as_its_reader_does(name: str, where: str):
    with pytest.raises(BadSource, match=f"{name} {where}, column 'why'"):
        read(changed(1, why=None), name=name)


def test_nested_text_is_refused_and_an_undeclared_nested_column_ignored():
    rows = [row | {"tags": ["x"]} for row in small_tables.rows()]
    assert len(read(rows, name="mine.jsonl")[0]) == 4
    rows[1]["text"] = {"en": "Reactor"}
    with pytest.raises(BadSource, match="line 2, column 'text': the value is nested; write plain text"):
        read(rows, name="mine.jsonl")


def test_the_first_offender_stands_with_how_many_more():
    rows = [row | {"why": ""} for row in small_tables.rows()]
    with pytest.raises(BadSource, match=r"line 2, column 'why': .* \(and 3 more, next line 3\); write"):
        read(rows)


def test_the_public_side_is_read_without_looking_at_an_outcome():
    sheet = sheets.parse(csv_bytes(changed(0, **{"yield": "no number"})), "mine.csv")
    assert len(reading.rows(sheet, SAME)) == 4
    with pytest.raises(BadSource, match="column 'yield'"):
        reading.known(sheet, None, SAME)


def test_donors_are_not_asked_for_where_context_s_is_not():
    alone = small_tables.config(contexts=["D", "M"])
    assert len(read(changed(2, batch="2"), alone)[0]) == 4


def test_a_table_without_a_single_outcome_is_pending_throughout():
    assert read(without("yield", "purity"))[1] == {}


def apart(rows: Rows) -> Any:
    return reading.outcomes(sheets.parse(csv_bytes(rows), "later.csv"), SAME, IDS)


def test_outcomes_apart_may_come_target_by_target():
    assert apart([{"id": "b", "yield": 3}, {"id": "a", "yield": None}]) == {("b", "yield"): Known(3.0, None)}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "e", "yield": 3}], r"later\.csv line 2, column 'id': no state is called 'e'"),
        ([{"id": "b", "yield": 3}, {"id": "b", "yield": 3}],
         r"line 3, column 'id': 'b' stands already on line 2"),
        ([{"id": "", "yield": 3}], r"line 2, column 'id': the cell is empty"),
        ([{"id": "b", "yield": 99}], r"line 2, column 'yield': 99 is outside"),
        ([{"id": "b", "gain": 1}], r"has no column 'yield' \(nor 1 more\)"),
        ([{"id": "b", "yields": 1, "purity": 1}],
         r"no column 'yield' of target yield \(did you mean 'yields'\?\)"),
        ([{"name": "b", "yield": 1}], r"has no column 'id'"),
    ],
)  # fmt: skip
def test_a_wrong_file_of_outcomes_is_refused(rows: Rows, said: str):
    with pytest.raises(BadSource, match=said):
        apart(rows)


def test_an_outcome_may_stand_in_two_files_only_if_both_say_the_same():
    states = sheets.parse(csv_bytes(small_tables.rows()), "mine.csv")
    again = sheets.parse(csv_bytes([{"id": "a", "yield": "1.50"}, {"id": "c", "yield": 4}]), "later.csv")
    known = reading.known(states, again, SAME)
    assert (known["a", "yield"], known["c", "yield"]) == (Known(1.5, None), Known(4.0, None))
    other = sheets.parse(csv_bytes([{"id": "a", "yield": 1.6}]), "later.csv")
    with pytest.raises(
        BadSource, match=r"later\.csv: state 'a', target 'yield' has another outcome than in mine"
    ):
        reading.known(states, other, SAME)


def burn_in(rows: Rows) -> Any:
    own = reading.rows(sheets.parse(csv_bytes(small_tables.rows()), "mine.csv"), SAME)
    return reading.burn_in(sheets.parse(csv_bytes(rows), "before.csv"), SAME, own)


EARLIER = {"id": "z", "site": "east", "change": "Heat it.", "yield": 1, "purity": 2}


def test_a_burn_in_needs_no_explanation():
    rows, known = burn_in([EARLIER])
    assert (rows[0].task, rows[0].intervention) == ("east", "Heat it.")
    assert known == {("z", "yield"): Known(1.0, None), ("z", "purity"): Known(2.0, None)}


@pytest.mark.parametrize(
    "earlier", [EARLIER | {"text": "Reactor z."}, EARLIER | {"text": "Reactor a.", "change": "Cool it."}]
)
def test_a_burn_in_may_describe_other_states_or_try_another_change(earlier: dict[str, Any]):
    assert burn_in([earlier])[0][0].description == earlier["text"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([EARLIER | {"id": "a"}], r"before\.csv line 2, column 'id': 'a' is a state of the study"),
        ([EARLIER, EARLIER | {"id": "y", "site": "north"}],
         r"line 3, column 'site': 'north' is a cluster of the study, with which the row shares its task; .*"
         r"leave the row out"),
        ([EARLIER | {"text": " Reactor b."}],
         r"line 2, column 'text': description and intervention are those of state 'b' of the study"),
        ([EARLIER, EARLIER], r"line 3, column 'id': 'z' stands already on line 2"),
        ([EARLIER | {"purity": None}], r"column 'purity' holds no number; fill it"),
        ([EARLIER | {"purity": "undefined: lost"}], r"column 'purity' holds no number"),
        ([EARLIER | {"purity": 101}], r"line 2, column 'purity': 101 is outside"),
        ([{k: v for k, v in EARLIER.items() if k != "site"}], r"has no column 'site'"),
    ],
)  # fmt: skip
def test_a_wrong_burn_in_is_refused(rows: Rows, said: str):
    with pytest.raises(BadSource, match=said):
        burn_in(rows)


def test_counts_say_what_the_table_holds():
    rows, known = read(small_tables.rows())
    counted = reading.counts(rows, known, SAME)
    assert counted == {
        "rows": 4, "clusters": {"site": 2, "batch": 2}, "interventions": 1, "explanations": 4,
        "mean_words": 3.0, "donor": "same_cluster",
        "outcomes": {
            "yield": {"known": 3, "undefined": 0, "pending": 1},
            "purity": {"known": 3, "undefined": 1, "pending": 0},
        },
    }  # fmt: skip


WORDS = st.sampled_from(
    ["", " ", "a", "b", "/", "1", "-2.5", "1e400", "nan", "undefined:", "12,5", "\x00", "ä", '"', "9" * 5000]
) | st.text(max_size=8)  # fmt: skip


def read_bytes(data: bytes, config: TableConfig) -> object:
    return reading.rows(sheets.parse(data, "mine.csv"), config)


def outcomes_of_bytes(data: bytes, config: TableConfig) -> object:
    return reading.known(sheets.parse(data, "mine.csv"), None, config)


def guarded(read: Callable[[], object]) -> None:
    try:
        read()
    except BadSource as error:
        place = str(error)
        if not place.startswith("mine.csv"):
            raise AssertionError(place) from error


@given(cells=st.lists(st.lists(WORDS, min_size=9, max_size=9), min_size=1, max_size=4))
def test_any_cells_are_read_or_refused_by_our_own_error(cells: list[list[str]]):
    buffer = io.StringIO()
    csv.writer(buffer).writerows([list(small_tables.HEADER), *cells])
    data = buffer.getvalue().encode(errors="replace")
    for config in (SAME, OTHER, COLUMN):
        guarded(partial(read_bytes, data, config))
        guarded(partial(outcomes_of_bytes, data, config))


@given(position=st.integers(0, 400), junk=st.binary(max_size=4))
def test_a_damaged_table_is_read_or_refused_by_our_own_error(position: int, junk: bytes):
    data = csv_bytes(small_tables.rows())
    damaged = data[:position] + junk + data[position + 1 :]
    guarded(partial(read_bytes, damaged, COLUMN))
    guarded(partial(outcomes_of_bytes, damaged, COLUMN))
