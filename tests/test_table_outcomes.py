"""Outcomes that are known, that arrive later, and that the burn-in may tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from predictive_credit.errors import BadSource
from predictive_credit.records import Outcome
from predictive_credit.studies.study import Setting
from predictive_credit.studies.table import outcomes
from predictive_credit.studies.table.states import states
from tests.data import small_tables
from tests.data.small_tables import csv_bytes, jsonl_bytes, parquet_bytes

PENDING = [{k: v for k, v in row.items() if k not in {"yield", "purity"}} for row in small_tables.rows()]


def setting(folder: Path, rows: list[dict[str, Any]] | None = None, **files: Any) -> Setting:
    return small_tables.setting(folder, csv_bytes(rows or small_tables.rows()), **files)


def executed(where: Setting) -> dict[tuple[str, str], Any]:
    found = outcomes.execute(where, states(where))
    return {(o.state_id, o.target): o.value if o.reason is None else o.reason for o in found}


def arrived(where: Setting, path: Path) -> dict[tuple[str, str], Any]:
    found = outcomes.arrived(where, states(where), path)
    return {(o.state_id, o.target): o.value if o.reason is None else o.reason for o in found}


def test_known_outcomes_are_told_and_pending_ones_are_not(tmp_path: Path):
    where = setting(tmp_path)
    assert executed(where) == {
        ("mine/a", "yield"): 1.5, ("mine/a", "purity"): 90.0, ("mine/b", "yield"): -2.0,
        ("mine/b", "purity"): 80.25, ("mine/c", "purity"): 70.0, ("mine/d", "yield"): 0.0,
        ("mine/d", "purity"): "the sample was lost",
    }  # fmt: skip
    assert outcomes.pending(where, states(where)) == (("mine/c", "yield"),)


def test_outcomes_come_by_state_and_then_target_in_the_studys_order(tmp_path: Path):
    where = setting(tmp_path)
    some = states(where)[1::-1]
    assert [o.id for o in outcomes.execute(where, some)] == [
        "mine/b/yield", "mine/b/purity", "mine/a/yield", "mine/a/purity",
    ]  # fmt: skip


def test_all_three_formats_give_equal_outcomes(tmp_path: Path):
    makers = {".csv": csv_bytes, ".jsonl": jsonl_bytes, ".parquet": parquet_bytes}
    found = [
        executed(small_tables.setting(tmp_path / suffix[1:], make(small_tables.rows()), suffix=suffix))
        for suffix, make in makers.items()
    ]
    assert len(found[0]) == 7
    assert found[0] == found[1] == found[2]


def test_outcomes_may_stand_in_a_file_of_their_own(tmp_path: Path):
    apart = [{k: row[k] for k in ("id", "yield", "purity")} for row in small_tables.rows()]
    beside = executed(setting(tmp_path / "beside"))
    assert executed(setting(tmp_path / "apart", PENDING, outcomes=csv_bytes(apart))) == beside
    assert executed(setting(tmp_path / "none", PENDING)) == {}


def test_a_wrong_outcome_is_refused_when_it_is_executed(tmp_path: Path):
    rows = small_tables.rows()
    rows[1]["yield"] = 99
    with pytest.raises(BadSource, match=r"mine\.csv line 3, column 'yield': 99 is outside"):
        executed(setting(tmp_path, rows))


def late(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "arrived.csv"
    path.write_bytes(csv_bytes(rows))
    return path


def test_late_outcomes_fill_what_was_pending_and_nothing_else(tmp_path: Path):
    where = setting(tmp_path)
    found = arrived(where, late(tmp_path, [{"id": "c", "yield": -4.5}, {"id": "a", "yield": 1.5}]))
    assert found == {("mine/c", "yield"): -4.5}


def test_late_outcomes_make_up_what_would_have_been_known_at_once(tmp_path: Path):
    whole = executed(setting(tmp_path / "whole"))
    pending = setting(tmp_path / "pending", PENDING)
    assert arrived(pending, late(tmp_path, small_tables.rows())) == whole


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_late_outcomes_may_come_in_another_format(tmp_path: Path, suffix: str):
    make = {".jsonl": jsonl_bytes, ".parquet": parquet_bytes}[suffix]
    path = tmp_path / f"arrived{suffix}"
    path.write_bytes(make(small_tables.rows()))
    assert len(arrived(setting(tmp_path, PENDING), path)) == 7


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"id": "a", "yield": 1.6}], "state 'a', target 'yield' has another outcome than in the files"),
        ([{"id": "d", "purity": 5}], "state 'd', target 'purity' has another outcome"),
        ([{"id": "zz", "yield": 1}], "line 2, column 'id': no state is called 'zz'"),
        ([{"id": "c", "yield": "soon"}], "line 2, column 'yield': 'soon' is text"),
        ([{"id": "c", "yield": 1}, {"id": "c", "yield": 2}], "line 3, column 'id': 'c' stands already"),
    ],
)
def test_a_wrong_late_file_is_refused(tmp_path: Path, rows: list[dict[str, Any]], said: str):
    with pytest.raises(BadSource, match=f"arrived.csv.*{said}"):
        arrived(setting(tmp_path), late(tmp_path, rows))


def test_without_a_burn_in_the_fallback_is_the_declared_range(tmp_path: Path):
    where = setting(tmp_path)
    found, summary = outcomes.burn_in(where, states(where))
    assert (found, summary.name, summary.tasks) == ((), "declared range", ())
    gain, purity = summary.targets["yield"], summary.targets["purity"]
    assert (gain.n_outcomes, gain.mean, gain.mean_absolute, gain.q10, gain.q90) == (0, 0.0, 0.0, -50, 50)
    assert (purity.n_outcomes, purity.mean, purity.mean_absolute) == (0, 50.0, 50.0)  # a level's middle
    assert (purity.q10, purity.q90) == (0, 100)


def test_a_change_that_cannot_be_zero_falls_back_to_the_middle_of_its_range(tmp_path: Path):
    only_down = small_tables.config(targets=[small_tables.GAIN | {"lower": -6, "upper": -2}])
    where = setting(tmp_path, PENDING, declared=only_down)
    target = outcomes.burn_in(where, states(where))[1].targets["yield"]
    assert (target.mean, target.mean_absolute) == (-4.0, 4.0)


BEFORE = [
    {"id": "x", "site": "east", "change": "Heat it.", "yield": 1, "purity": 10},
    {"id": "y", "site": "east", "change": "Cool it.", "yield": 3, "purity": None},
    {"id": "z", "site": "west", "change": "Heat it.", "yield": "undefined: spilled", "purity": 20},
]


def test_a_burn_in_file_tells_what_its_outcomes_were_in_all_and_by_intervention(tmp_path: Path):
    where = setting(tmp_path, burn_in=csv_bytes(BEFORE))
    found, summary = outcomes.burn_in(where, states(where))
    assert found[0] == Outcome(state_id="burn-in/east/x/heat_it", target="yield", value=1.0)
    assert [o.id for o in found] == [
        "burn-in/east/x/heat_it/yield", "burn-in/east/x/heat_it/purity", "burn-in/east/y/cool_it/yield",
        "burn-in/west/z/heat_it/yield", "burn-in/west/z/heat_it/purity",
    ]  # fmt: skip
    assert (summary.name, summary.tasks) == ("before.csv", ("east", "west"))
    gain = summary.targets["yield"]
    assert (gain.n_outcomes, gain.n_undefined, gain.mean) == (2, 1, 2.0)
    assert gain.by_intervention["heat_it"]["mean"] == 1.0
    assert summary.targets["purity"].mean == 15.0


def test_a_burn_in_never_holds_a_cluster_of_the_study(tmp_path: Path):
    where = setting(tmp_path, burn_in=csv_bytes([*BEFORE, BEFORE[0] | {"id": "w", "site": "south"}]))
    with pytest.raises(BadSource, match=r"line 5, column 'site': 'south' is a cluster of the study"):
        outcomes.burn_in(where, states(where))


def test_a_burn_in_never_holds_a_state_of_the_study(tmp_path: Path):
    where = setting(tmp_path, burn_in=csv_bytes([BEFORE[0] | {"id": "a"}]))
    with pytest.raises(BadSource, match=r"before\.csv line 2, column 'id': 'a' is a state of the study"):
        outcomes.burn_in(where, states(where))
