"""The notebook's three functions: the study's own digits, and one sentence for every bad frame."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import predictive_credit as pc
from predictive_credit.api import LAYOUTS
from predictive_credit.config import Inference
from predictive_credit.errors import BadConfig, BadSource, Unpaired
from predictive_credit.studies import STUDIES
from predictive_credit.studies.evaluation import Scored, evaluate, losses
from tests import planted

STATE = "molecular/assay-03/0.25/1"


def frames(scored: Scored) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A study as the two frames a notebook would hold, in no particular order."""
    states = {s.id: s for s in scored.states}
    rows = []
    for unit, of in scored.forecasts.items():
        state_id, context, call = unit.rsplit("/", 2)
        state = states[state_id]
        for forecast in of:
            rows.append(
                (state_id, state.task, state.budget, state.seed, state.cluster[0], context, int(call),
                 forecast.target, forecast.point, forecast.lower, forecast.upper, forecast.is_fallback)
            )  # fmt: skip
    columns = ["state", "task", "budget", "seed", "kind", "context", "call", "target", "point", "lower",
               "upper", "is_fallback"]  # fmt: skip
    forecasts = pd.DataFrame(rows, columns=columns).sample(frac=1.0, random_state=3)
    outcomes = pd.DataFrame(
        [(o.state_id, o.target, o.value) for o in scored.outcomes.values()],
        columns=["state", "target", "value"],
    ).astype({"value": float})
    if len(scored.study.targets) == 1:
        forecasts, outcomes = forecasts.drop(columns="target"), outcomes.drop(columns="target")
    absent = [column for column in ("budget", "kind") if column not in LAYOUTS[scored.study.name].columns]
    return forecasts.drop(columns=absent), outcomes


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted studies of two targets and of two kinds, where a notebook looks for studies."""
    for name, declared in (("controlled", planted.PAIR), ("tabular", planted.JOINT)):
        monkeypatch.setitem(STUDIES, name, replace(declared, name=name))


def renamed(scored: Scored, name: str) -> Scored:
    return replace(scored, study=replace(scored.study, name=name))


@pytest.fixture
def good() -> tuple[pd.DataFrame, pd.DataFrame]:
    return frames(planted.study(planted.reader, endpoints=3))


def test_a_notebook_gets_the_studys_own_digits():
    scored = planted.study(planted.reader, undefined={STATE}, fallbacks={f"{STATE}/S/1"})
    forecasts, outcomes = frames(scored)
    before = forecasts.copy()
    table = pc.contrast_table(forecasts, outcomes, seed=1, draws=2_000)
    wanted = evaluate(scored, seed=1, inference=planted.INFERENCE, scale="full", integrity=planted.SOUND)
    pd.testing.assert_frame_equal(forecasts, before)
    assert len(table) == sum(map(len, wanted["contrasts"]["roc_auc"].values()))
    assert set(table["target"]) == {"roc_auc"}
    for row in table.to_dict("records"):
        ours = wanted["contrasts"]["roc_auc"][row["measure"]][row["pair"]]
        assert (row["role"], row["status"]) == (ours["role"], ours["status"])
        for name in (
            "mean",
            "task_balanced",
            "lower",
            "upper",
            "one_sided_upper",
            "t_lower",
            "worst_case",
            "n_states",
        ):
            assert row[name] == ours[name] or (pd.isna(row[name]) and ours[name] is None)
        assert row["complete_case_n_states"] == ours["complete_case"]["n_states"]
    decision = pc.decide(forecasts, outcomes, seed=1, draws=2_000)
    assert {g.name: g.seen for g in decision.gates} == {
        name: gate["seen"] for name, gate in wanted["decision"]["gates"].items()
    }
    assert decision.status == wanted["decision"]["status"]
    assert any("order of events was not checked" in limit for limit in decision.limits)


def test_the_loss_table_is_the_studys_without_its_interventions():
    scored = planted.study(planted.reader, endpoints=3)
    table = pc.loss_table(*frames(scored))
    pd.testing.assert_frame_equal(table, losses(scored).drop(columns="intervention"))


def test_a_study_of_two_targets_is_read_from_a_target_column(others):
    scored = renamed(planted.pair(planted.reader), "controlled")
    forecasts, outcomes = frames(scored)
    table = pc.contrast_table(forecasts, outcomes, seed=1, draws=300, study="controlled")
    states = tuple(replace(s, study="controlled") for s in scored.states)  # streams go by the study's name
    wanted = evaluate(
        replace(scored, states=states), seed=1, inference=Inference(draws=300, level=0.95), scale="full",
        integrity=planted.SOUND,
    )  # fmt: skip
    assert set(table["target"]) == {"accuracy_pp", "log_loss"}
    for row in table.to_dict("records"):
        ours = wanted["contrasts"][row["target"]][row["measure"]][row["pair"]]
        assert row["mean"] == pytest.approx(ours["mean"])
        assert row["lower"] == pytest.approx(np.nan if ours["lower"] is None else ours["lower"], nan_ok=True)
    decision = pc.decide(forecasts, outcomes, seed=1, draws=300, study="controlled")
    assert [g.seen for g in decision.gates] == [
        None if gate["seen"] is None else pytest.approx(gate["seen"])
        for gate in wanted["decision"]["gates"].values()
    ]
    seen = pc.loss_table(forecasts, outcomes, study="controlled")
    pd.testing.assert_frame_equal(seen, losses(scored).drop(columns="intervention"))


def test_two_targets_have_bounds_outcomes_and_fallbacks_of_their_own_or_are_refused(others):
    forecasts, outcomes = frames(renamed(planted.pair(planted.reader, seeds=4), "controlled"))
    with pytest.raises(BadConfig, match="give bounds by target"):
        pc.loss_table(forecasts, outcomes, study="controlled", outcome_bounds=(-1, 1))
    with pytest.raises(BadConfig, match="names auc; the targets of controlled are accuracy_pp, log_loss"):
        pc.loss_table(forecasts, outcomes, study="controlled", outcome_bounds={"auc": (-1, 1)})
    with pytest.raises(Unpaired, match=r"outside the outcome bounds \[-0\.001, 0\.001\] of log_loss"):
        pc.loss_table(forecasts, outcomes, study="controlled", outcome_bounds={"log_loss": (-0.001, 0.001)})
    with pytest.raises(BadSource, match="target skill; it is one of accuracy_pp, log_loss"):
        pc.loss_table(at(forecasts, 3, target="skill"), outcomes, study="controlled")
    with pytest.raises(BadSource, match="fallback in one target alone"):
        pc.loss_table(at(forecasts, 3, is_fallback=True), outcomes, study="controlled")
    state = outcomes["state"].iloc[5]
    with pytest.raises(Unpaired, match=f"no row for state {state}.* of each target"):
        pc.loss_table(forecasts, outcomes.drop(index=5), study="controlled")
    dropped = forecasts.iloc[7]
    unit = "/".join(str(dropped[name]) for name in ("state", "context", "call", "target"))
    with pytest.raises(Unpaired, match=rf"no row for {unit} \(state/context/call/target; 1 missing\)"):
        pc.loss_table(forecasts.drop(index=forecasts.index[7]), outcomes, study="controlled")


def test_kinds_are_strata_and_a_decision_says_that_formation_was_not_seen(others):
    forecasts, outcomes = frames(renamed(planted.joint(planted.reader, tasks=8), "tabular"))
    decision = pc.decide(forecasts, outcomes, seed=1, draws=200, study="tabular")
    assert {g.name: g.seen for g in decision.gates}["formation"] is None
    assert any("How cards were formed was not seen" in limit for limit in decision.limits)
    table = pc.contrast_table(forecasts, outcomes, seed=1, draws=200, study="tabular")
    alike = pc.contrast_table(forecasts.assign(kind="table"), outcomes, seed=1, draws=200, study="tabular")
    first = table.query("measure == 'point_error' and pair == 'O-M'").iloc[0]
    other = alike.query("measure == 'point_error' and pair == 'O-M'").iloc[0]
    assert first["mean"] == other["mean"]
    assert first["lower"] != other["lower"]
    moved = at(forecasts, 3, kind="elsewhere")
    with pytest.raises(Unpaired, match=r"is said to be at .*\(kind/task/budget/seed\)"):
        pc.decide(moved, outcomes, seed=1, draws=200, study="tabular")


def test_a_missing_first_call_is_a_gap_and_not_a_single_call(good):
    forecasts, outcomes = good
    with pytest.raises(Unpaired, match=r"no row for molecular/assay-00/0\.25/1/D/1 .*54 missing"):
        pc.loss_table(forecasts.query("call == 2"), outcomes)


def test_one_call_a_context_has_contrasts_and_no_drift(good):
    forecasts, outcomes = good
    table = pc.contrast_table(forecasts.query("call == 1"), outcomes, seed=1, draws=100)
    assert set(table["measure"]) >= {"interval_score", "point_error", "covered"}
    assert "drift" not in set(table["measure"])


def test_two_contexts_are_enough_and_the_rule_says_what_it_did_not_see(good):
    forecasts, outcomes = good
    decision = pc.decide(forecasts.query("context != 'S'"), outcomes, seed=1, draws=100)
    assert [g.seen is None for g in decision.gates] == [False, False, True, True]
    assert any("Not asked: S" in limit for limit in decision.limits)


def test_outcomes_in_another_unit_need_their_own_bounds(good):
    forecasts, outcomes = good
    points = {c: 100 * forecasts[c] for c in ("point", "lower", "upper")}
    in_points, scaled = forecasts.assign(**points), outcomes.assign(value=100 * outcomes["value"])
    with pytest.raises(Unpaired, match="outside the outcome bounds"):
        pc.contrast_table(in_points, scaled, seed=1, draws=100)
    table = pc.contrast_table(in_points, scaled, seed=1, draws=100, outcome_bounds=(-100, 100))
    before = pc.contrast_table(forecasts, outcomes, seed=1, draws=100)
    assert table["mean"].iloc[0] == pytest.approx(100 * before["mean"].iloc[0])


def at(frame: pd.DataFrame, row: int, **values: object) -> pd.DataFrame:
    """A copy with some values of one row (by position) replaced."""
    changed = {}
    for column, value in values.items():
        cells = list(frame[column])
        cells[row] = value
        changed[column] = pd.Series(cells, index=frame.index, dtype=object)
    return frame.assign(**changed)


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        (
            {"point": "about .02"},
            BadSource,
            r"row \d+ has point 'about \.02' where a finite",
        ),
        ({"upper": np.nan}, BadSource, r"row \d+ has upper nan"),
        ({"lower": -np.inf}, BadSource, r"row \d+ has lower -inf"),
        ({"lower": 0.9}, BadSource, r"row \d+ has lower above upper; a forecast is never sorted or repaired"),
        ({"context": "X"}, BadSource, r"context X; it is one of D, M, S"),
        ({"context": None}, BadSource, r"row \d+ has no context"),
        ({"call": 3}, BadSource, r"call 3; it is one of 1, 2"),
        ({"seed": 1.5}, BadSource, r"row \d+ has seed 1\.5 where a whole number is needed"),
        ({"task": "elsewhere"}, Unpaired, r"is said to be at .* and at .*one place in the design"),
        ({"is_fallback": "maybe"}, BadSource, r"row \d+ has is_fallback that is neither true nor false"),
        ({"state": "unheard of"}, Unpaired, r"no row for|outcomes has no row|are at task"),
    ],
)
def test_a_bad_forecast_is_refused_with_its_row(good, values, error, match):
    forecasts, outcomes = good
    changed = at(forecasts, 5, **values)
    with pytest.raises(error, match=match) as caught:
        pc.contrast_table(changed, outcomes, seed=1, draws=100)
    if match.startswith("row"):
        assert f"row {forecasts.index[5]} " in str(caught.value)
    for function in (pc.decide, pc.contrast_table):
        with pytest.raises(error):
            function(changed, outcomes, seed=1, draws=100)


def test_a_missing_column_is_named_beside_those_seen(good):
    forecasts, outcomes = good
    with pytest.raises(
        BadSource, match=r"forecasts has no column lower, upper; it needs .* and has state, .*lo, hi"
    ):
        pc.loss_table(forecasts.rename(columns={"lower": "lo", "upper": "hi"}), outcomes)
    with pytest.raises(BadSource, match="outcomes has no column value"):
        pc.loss_table(forecasts, outcomes.rename(columns={"value": "y"}))
    with pytest.raises(BadSource, match="2 columns called point"):
        pc.loss_table(pd.concat([forecasts, forecasts[["point"]]], axis=1), outcomes)
    with pytest.raises(BadSource, match="forecasts has no rows"):
        pc.loss_table(forecasts.iloc[:0], outcomes)


def test_a_gap_or_a_duplicate_is_named_and_not_filled(good):
    forecasts, outcomes = good
    dropped = forecasts.iloc[4]
    unit = f"{dropped['state']}/{dropped['context']}/{dropped['call']}"
    with pytest.raises(Unpaired, match=rf"no row for {unit} \(state/context/call; 1 missing\)"):
        pc.loss_table(forecasts.drop(index=forecasts.index[4]), outcomes)
    with pytest.raises(Unpaired, match=rf"answers {unit} .* 2 times"):
        pc.loss_table(pd.concat([forecasts, forecasts.iloc[[4]]]), outcomes)


def test_a_design_that_is_not_fully_crossed_is_refused_with_its_gap(good):
    forecasts, outcomes = good
    state = "molecular/assay-01/0.5/2"
    keep, known = forecasts[forecasts["state"] != state], outcomes[outcomes["state"] != state]
    with pytest.raises(Unpaired, match=r"no state at task assay-01, budget 0\.5, seed 2 \(1 such gaps\)"):
        pc.loss_table(keep, known)
    moved = forecasts.assign(seed=forecasts["seed"].where(forecasts["state"] != state, 1))
    with pytest.raises(Unpaired, match=r"2 states are at task assay-01, budget 0\.5, seed 1"):
        pc.loss_table(moved, outcomes)


def test_outcomes_have_one_row_for_every_state_and_no_other(good):
    forecasts, outcomes = good
    with pytest.raises(Unpaired, match=r"no row for state molecular/assay-00/0\.25/1 \(1 such"):
        pc.loss_table(forecasts, outcomes.iloc[1:])
    with pytest.raises(Unpaired, match=r"2 rows for state molecular/assay-00/0\.25/1"):
        pc.loss_table(forecasts, pd.concat([outcomes, outcomes.iloc[:1]]))
    extra = pd.DataFrame({"state": ["stray"], "value": [0.1]})
    with pytest.raises(Unpaired, match="outcomes has state stray, which forecasts does not"):
        pc.loss_table(forecasts, pd.concat([outcomes, extra]))
    with pytest.raises(BadSource, match=r"outcomes row 0 has value 'n/a' where a finite number"):
        pc.loss_table(forecasts, at(outcomes, 0, value="n/a"))
    assert pc.loss_table(forecasts, at(outcomes, 0, value=None))["outcome"].isna().sum() == 6


def test_settings_that_cannot_be_are_refused(good):
    with pytest.raises(
        BadConfig, match=r"no study 'tabula' can be read from two frames; there are .*molecular"
    ):
        pc.decide(*good, seed=1, study="tabula")
    for draws in (0, 99, 200.5):
        with pytest.raises(BadConfig, match=f"draws={draws}"):
            pc.contrast_table(*good, seed=1, draws=draws)


def test_importing_the_package_is_quick_and_loads_no_pandas():
    code = (
        "import sys, predictive_credit as pc; print(sorted({'numpy', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"__version__", "contrast_table", "decide", "loss_table"} <= set(dir(pc))
    with pytest.raises(AttributeError, match="no attribute 'contrast'"):
        pc.contrast  # noqa: B018
