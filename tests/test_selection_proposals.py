"""A file of proposals: what is read of it, and what is refused by line, column and value."""

from __future__ import annotations

import json

import pytest

from predictive_credit.errors import BadSource
from predictive_credit.records import Context
from predictive_credit.selection import proposals
from predictive_credit.selection.proposals import Made
from predictive_credit.studies.table import sheets

ONE = {"id": "a", "situation": "A table.", "intervention": "Prune it.", "cost": 2.5}
FORECAST = {"point": 0.1, "lower": -0.2, "upper": 0.3, "forecaster": "m", "context": "D"}


def read(*rows: dict[str, object]) -> tuple[proposals.Proposal, ...]:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    return proposals.read(sheets.parse(lines.encode(), "p.jsonl"))


def test_a_proposal_needs_four_cells_and_may_lack_the_rest():
    (one,) = read(ONE)
    assert (one.id, one.cost, one.task, one.explanation, one.made) == ("a", 2.5, None, None, None)


def test_a_csv_and_json_lines_say_the_same():
    csv = b"id;situation;intervention;cost;task;explanation\na;A table.;Prune it.;2.5;t;\n"
    (of_csv,) = proposals.read(sheets.parse(csv, "p.csv"))
    (of_jsonl,) = read(ONE | {"task": "t"})
    assert of_csv == proposals.Proposal(
        where="line 2", id="a", task="t", situation="A table.", intervention="Prune it.", explanation=None,
        cost=2.5, made=None,
    )  # fmt: skip
    assert (of_jsonl.where, of_jsonl.task, of_jsonl.cost) == ("line 1", of_csv.task, of_csv.cost)


def test_proposals_are_sorted_by_id_and_keep_the_line_they_stood_on():
    found = read(ONE | {"id": "z"}, ONE | {"intervention": "Grow it."})
    assert [(one.id, one.where) for one in found] == [("a", "line 2"), ("z", "line 1")]


def test_a_forecast_that_is_brought_is_read_whole():
    (one,) = read(ONE | FORECAST)
    assert one.made == Made(point=0.1, lower=-0.2, upper=0.3, forecaster="m", context=Context.DESCRIPTION)


def test_a_forecast_may_come_without_its_interval():
    (one,) = read(ONE | {name: FORECAST[name] for name in ("point", "forecaster", "context")})
    assert one.made == Made(point=0.1, lower=None, upper=None, forecaster="m", context=Context.DESCRIPTION)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([ONE | {"cost": 0}], r"p.jsonl line 1, column 'cost': the cost is 0, .* give what it costs"),
        ([ONE | {"cost": -1.5}], r"column 'cost': the cost is -1.5"),
        ([ONE | {"cost": 1e-12}], r"column 'cost': the cost is 1e-12, outside \[1e-09, 1e\+12\]"),
        ([ONE | {"cost": 1e308}], r"column 'cost': the cost is 1e\+308, outside .* count it in another unit"),
        ([ONE | {"cost": "a lot"}], r"line 1, column 'cost': 'a lot' is text where a number is needed"),
        ([ONE | {"cost": None}], r"column 'cost': the cell is empty"),
        ([ONE | {"cost": True}], r"column 'cost': the value is a truth value, not a number"),
        ([ONE | {"price": 1}], r"a column 'price' that nothing reads"),
        ([ONE | {"explanaton": "x"}], r"nothing reads \(did you mean 'explanation'\?\)"),
        ([{"id": "a", "cost": 1}], r"has no column 'situation'; it holds 'id', 'cost'"),
        ([ONE | {"situation": " "}], r"column 'situation': the cell is empty"),
        ([ONE | {"id": "a/b"}], r"column 'id': 'a/b' holds '/', which breaks a path"),
        ([ONE, ONE | {"intervention": "Grow it."}],
         r"line 2, column 'id': 'a' stands already on line 1; give each proposal one row"),
        ([ONE, ONE | {"id": "b"}], r"line 2, column 'intervention': .* are those of 'a'"),
        ([ONE | FORECAST | {"context": "S"}], r"column 'context': 'S' is no context"),
        ([ONE | FORECAST | {"lower": 0.4}], r"column 'lower': the interval is reversed, 0.4 > 0.3"),
        ([ONE | FORECAST | {"point": None}], r"column 'point': the cell is empty"),
        ([ONE | FORECAST | {"upper": "wide"}], r"column 'upper': 'wide' is text where a number is needed"),
        ([ONE | FORECAST, ONE | {"id": "b", "intervention": "Grow it."}],
         r"line 2, column 'point': the row brings no forecast and others do"),
        ([ONE | FORECAST, ONE | FORECAST | {"id": "b", "intervention": "Grow.", "forecaster": "n"}],
         r"column 'forecaster' names m, n, and the errors of one say nothing of the other"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_sentence(rows, sentence):
    with pytest.raises(BadSource, match=sentence) as refused:
        read(*rows)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("data", [b"", b"\n\n", b'{"id": null}\n'])
def test_an_empty_list_is_refused(data):
    with pytest.raises(BadSource, match=r"p.jsonl (is empty|has no row)"):
        proposals.read(sheets.parse(data, "p.jsonl"))


def test_more_proposals_than_can_be_drawn_together_are_refused(monkeypatch):
    monkeypatch.setattr(proposals, "MOST", 1)
    with pytest.raises(BadSource, match=r"p.jsonl holds 2 proposals; give 1 at most"):
        read(ONE, ONE | {"id": "b", "intervention": "Grow it."})
