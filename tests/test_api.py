"""The notebook's three functions: the study's own digits, and one sentence for every bad frame."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import predictive_credit as pc
from predictive_credit.errors import BadConfig, BadSource, Unpaired
from predictive_credit.studies.evaluation import Scored, evaluate, losses
from tests import planted

STATE = "molecular/assay-03/0.25/1"


def frames(scored: Scored) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A study as the two frames a notebook would hold, in no particular order."""
    states = {s.id: s for s in scored.states}
    rows = []
    for unit, forecast in scored.forecasts.items():
        state_id, context, call = unit.rsplit("/", 2)
        state = states[state_id]
        rows.append(
            (state_id, state.task, state.budget, state.seed, context, int(call),
             forecast.point, forecast.lower, forecast.upper, forecast.is_fallback)
        )  # fmt: skip
    columns = ["state", "task", "budget", "seed", "context", "call", "point", "lower", "upper", "is_fallback"]
    forecasts = pd.DataFrame(rows, columns=columns).sample(frac=1.0, random_state=3)
    outcomes = pd.DataFrame(
        [(o.state_id, o.value) for o in scored.outcomes.values()], columns=["state", "value"]
    )
    return forecasts, outcomes.astype({"value": float})


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
    assert len(table) == sum(len(p) for m, p in wanted["contrasts"].items() if m not in ("study", "scale"))
    for row in table.to_dict("records"):
        ours = wanted["contrasts"][row["measure"]][row["pair"]]
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
        pc.contrast_table(changed, outcomes, seed=1, draws=10)
    if match.startswith("row"):
        assert f"row {forecasts.index[5]} " in str(caught.value)
    for function in (pc.decide, pc.contrast_table):
        with pytest.raises(error):
            function(changed, outcomes, seed=1, draws=10)


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
    with pytest.raises(BadConfig, match="no study 'tabula'; there are molecular"):
        pc.decide(*good, seed=1, study="tabula")
    with pytest.raises(BadConfig, match="draws=0"):
        pc.contrast_table(*good, seed=1, draws=0)


def test_importing_the_package_is_quick_and_loads_no_pandas():
    code = (
        "import sys, predictive_credit as pc; print(sorted({'numpy', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"__version__", "contrast_table", "decide", "loss_table"} <= set(dir(pc))
    with pytest.raises(AttributeError, match="no attribute 'contrast'"):
        pc.contrast  # noqa: B018
