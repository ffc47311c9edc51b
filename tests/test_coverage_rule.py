"""The frozen coverage rule on hand-made rows: each status, its margins, and what it refuses."""

from __future__ import annotations

import pytest

from predictive_credit.coverage import published, rule
from predictive_credit.coverage.populations import SCENARIOS
from predictive_credit.coverage.scoring import Pooled


def row(scenario: str, mae: float, coverage: float | None, *, pair: str = "f/s", agents: int = 10) -> Pooled:
    """What the rule reads of a pooled row."""
    forecaster, scheme = pair.split("/")
    return Pooled(
        scenario=scenario,
        pilot_agents=agents,
        forecaster=forecaster,
        scheme=scheme,
        populations=6,
        pilots=180,
        truth=0.9,
        bias=0.0,
        mae=mae,
        mae_se=None,
        within=0.5,
        coverage=coverage,
        coverage_se=None,
        width=0.1,
        min_population_coverage=coverage,
    )


def rows(*scores: tuple[float, float], pair: str = "f/s", agents: int = 10) -> list[Pooled]:
    return [
        row(scenario, *score, pair=pair, agents=agents)
        for scenario, score in zip(rule.SCENARIOS, scores, strict=True)
    ]


GOOD, INACCURATE, UNCALIBRATED, BAD = (0.02, 0.95), (0.04, 0.95), (0.02, 0.80), (0.04, 0.80)


def status(given: list[Pooled]) -> str:
    return rule.decide("coverage", given).status


def test_the_rule_names_the_scenarios_of_the_study():
    assert set(rule.SCENARIOS) == set(SCENARIOS)


def test_one_pair_that_is_right_everywhere_is_enough():
    assert status(rows(GOOD, GOOD, GOOD, GOOD) + rows(BAD, BAD, BAD, BAD, pair="g/s")) == "supported"


@pytest.mark.parametrize("flaw", [INACCURATE, UNCALIBRATED, BAD], ids=["inaccurate", "uncalibrated", "bad"])
@pytest.mark.parametrize("place", range(4))
def test_one_flaw_in_one_scenario_makes_it_mixed(flaw, place):
    scores = [GOOD] * 4
    scores[place] = flaw
    assert status(rows(*scores)) == "mixed"


def test_two_pairs_cannot_share_the_scenarios_between_them():
    halves = rows(GOOD, GOOD, BAD, BAD) + rows(BAD, BAD, GOOD, GOOD, pair="g/s")
    assert status(halves) == "mixed"


def test_another_scheme_is_another_pair():
    schemes = rows(GOOD, GOOD, BAD, BAD, pair="f/task") + rows(BAD, BAD, GOOD, GOOD, pair="f/agent")
    assert status(schemes) == "mixed"


def test_accurate_nowhere_is_falsified_however_calibrated():
    assert status(rows(*[INACCURATE] * 4) + rows(*[BAD] * 4, pair="g/s")) == "falsified"
    assert status(rows(INACCURATE, INACCURATE, INACCURATE, UNCALIBRATED)) == "mixed"


def test_both_margins_are_inclusive():
    assert status(rows(*[(0.03, 0.90)] * 4)) == "supported"
    assert status(rows((0.0300001, 0.90), *[(0.03, 0.90)] * 3)) == "mixed"
    assert status(rows((0.03, 0.8999999), *[(0.03, 0.90)] * 3)) == "mixed"


def test_other_pilot_sizes_and_points_without_interval_are_not_read():
    twenty = rows(*[GOOD] * 4, agents=20)
    points = [row(scenario, 0.0, None, pair="p/none") for scenario in rule.SCENARIOS]
    assert status(rows(*[BAD] * 4) + twenty + points) == "falsified"


def test_gates_show_the_worst_scenario_of_each_pair():
    decision = rule.decide("coverage", rows(GOOD, (0.025, 0.97), (0.031, 0.91), GOOD))
    assert [(gate.name, gate.seen, gate.held) for gate in decision.gates] == [
        ("f/s MAE", 0.031, False),
        ("f/s coverage", 0.91, True),
    ]
    assert decision.rule == "coverage"


def test_missing_doubled_and_absent_rows_are_refused():
    with pytest.raises(ValueError, match="f/s needs one row for each of rasch_moderate"):
        status(rows(*[GOOD] * 4)[:3])
    with pytest.raises(ValueError, match="f/s needs one row for each"):
        status(rows(*[GOOD] * 4) + rows(*[GOOD] * 4))
    with pytest.raises(ValueError, match="forecasts with intervals from 10 agents; there are none"):
        status(rows(*[GOOD] * 4, agents=20))


def test_the_printed_rows_alone_give_the_printed_verdict():
    points = {(r.scenario, r.forecaster): r.mae for r in published.ROWS if r.pilot_agents == 10 and r.mae}
    given = [
        row(r.scenario, points[r.scenario, r.forecaster], r.coverage, pair=f"{r.forecaster}/{r.scheme}")
        for r in published.ROWS
        if r.pilot_agents == 10
    ]
    assert len(given) == 16
    assert status(given) == published.VERDICT == "mixed"
