"""The synthetic study: its streams, its scores, what it must catch, and the printed rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictive_credit import tables
from predictive_credit.coverage import published, rule, synthetic
from predictive_credit.coverage.calibrated import Settings
from predictive_credit.coverage.estimators import FORECASTERS, FROZEN
from predictive_credit.coverage.populations import OUTSIDE, SCENARIOS, population
from predictive_credit.coverage.scoring import Cell, cell, pool
from predictive_credit.coverage.synthetic import HELD_OUT_SEED, Plan

LITTLE = Plan(seed=7, scenarios=("rasch_hard_tail",), populations=2, pilots=4, pilot_sizes=(3, 10))
QUICK = Settings(spreads=(1.7, 3.0), gaps=(2.0,), shares=(0.5,), two_spreads=(0.4,), draws=50)
SEED = 20260301  # the project's


@pytest.fixture(scope="module")
def little():
    return synthetic.run(LITTLE)


def ours(point: list[float], lower: list[float], upper: list[float]) -> Cell:
    """Forecasts of a truth of .9."""
    return cell(("s", 0, 10, "f", "x"), 0.9, np.array(point), np.array(lower), np.array(upper))


def test_an_oracle_has_no_error_and_full_coverage_and_is_supported():
    truths = {s: [float(population(7, s, n).any(axis=0).mean()) for n in range(3)] for s in SCENARIOS}
    cells = [
        cell((scenario, number, 10, "oracle", "exact"), truth, *[np.full(5, truth)] * 3)
        for scenario, found in truths.items()
        for number, truth in enumerate(found)
    ]
    rows = pool(cells)
    assert [(row.mae, row.bias, row.within, row.coverage, row.width) for row in rows] == [(0, 0, 1, 1, 0)] * 4
    assert rule.decide("coverage", rows).status == "supported"


@pytest.mark.parametrize("guess", [0.5, 0.9, 1.0])
def test_a_constant_guess_is_never_supported(guess):
    cells = [
        cell(
            (s, n, 10, "guess", "x"), float(population(7, s, n).any(axis=0).mean()), *[np.full(5, guess)] * 3
        )
        for s in SCENARIOS
        for n in range(3)
    ]
    assert rule.decide("coverage", pool(cells)).status != "supported"


@pytest.mark.parametrize("shift", [-0.04, 0.04])
def test_a_shifted_oracle_shows_its_shift_as_bias_and_as_error(shift):
    found = ours([0.9 + shift] * 4, [0.85 + shift] * 4, [0.95 + shift] * 4)
    assert found.bias == pytest.approx(shift)
    assert found.mae == pytest.approx(0.04)
    assert found.within == 0.0
    rows = pool([replace(found, scenario=s) for s in SCENARIOS])
    assert rule.decide("coverage", rows).status == "falsified"


def test_an_interval_holds_a_truth_at_either_end_and_none_outside():
    found = ours([0.9] * 4, [0.9, 0.8, 0.901, 0.7], [0.95, 0.9, 0.95, 0.899])
    assert found.coverage == 0.5
    assert found.width == pytest.approx((0.05 + 0.1 + 0.049 + 0.199) / 4)


def test_reversed_intervals_and_uneven_populations_are_refused():
    with pytest.raises(ValueError, match="f gives a reversed interval in s/0"):
        ours([0.9], [0.95], [0.85])
    with pytest.raises(ValueError, match="populations of s have unlike numbers of pilots"):
        pool([ours([0.9], [0.9], [0.9]), ours([0.9] * 2, [0.9] * 2, [0.9] * 2)])


def test_pooled_rows_show_the_worst_population_and_errors_over_populations():
    cells = [
        replace(ours([0.9], [0.9], [0.9]), population=n, coverage=c, mae=m)
        for n, (c, m) in enumerate([(1.0, 0.01), (0.5, 0.03)])
    ]
    row = pool(cells)[0]
    assert (row.populations, row.pilots, row.coverage, row.min_population_coverage) == (2, 2, 0.75, 0.5)
    assert row.mae_se == pytest.approx(0.01)
    assert pool(cells[:1])[0].mae_se is None


def test_every_forecaster_scheme_and_size_has_a_cell_in_every_population(little):
    keys = {(c.population, c.pilot_agents, c.forecaster, c.scheme) for c in little}
    assert len(keys) == len(little) == 2 * 2 * len(FROZEN) * 2


def test_both_schemes_share_their_points(little):
    for forecaster in FROZEN:
        both = [(c.bias, c.mae) for c in little if c.forecaster == forecaster and c.scheme == "task"]
        assert both == [(c.bias, c.mae) for c in little if c.forecaster == forecaster and c.scheme == "agent"]


def test_adding_a_size_a_scenario_a_population_or_a_forecaster_moves_no_cell(little):
    wider = replace(
        LITTLE,
        scenarios=("rasch_moderate", "rasch_hard_tail"),
        populations=3,
        pilot_sizes=(2, 3, 5, 10),
        others=True,
    )
    assert set(little) <= set(synthetic.run(wider))


def test_sharing_resampled_tasks_between_sizes_moves_task_intervals_alone(little):
    alone = synthetic.run(replace(LITTLE, sizes_share_tasks=False))
    for one, other in zip(little, alone, strict=True):
        assert (one.bias, one.mae, one.within) == (other.bias, other.mae, other.within)
        if one.scheme == "agent":
            assert one == other
        elif one.forecaster == "incidence":
            assert one.width != other.width
            assert one.width == pytest.approx(other.width, rel=0.15)


def test_another_seed_gives_other_cells_and_the_same_the_same(little):
    assert synthetic.run(LITTLE) == little
    assert not set(synthetic.run(replace(LITTLE, seed=8))) & set(little)


def test_forecasters_that_are_not_frozen_are_scored_as_points_alone():
    found = synthetic.run(replace(LITTLE, populations=1, pilot_sizes=(10,), others=True))
    others = [c for c in found if c.scheme == "none"]
    assert {c.forecaster for c in others} == set(FORECASTERS) - set(FROZEN)
    assert all(c.coverage is None and c.width is None for c in others)


def test_cells_come_back_from_their_file_and_pool_to_the_same_rows(little, tmp_path):
    tables.write_records(tmp_path / "cells.jsonl", little, scale="full")
    assert pool(tables.read_records(tmp_path / "cells.jsonl", Cell)) == pool(little)


def test_the_calibrated_forecaster_sees_the_pilots_that_the_others_see():
    matrix = population(7, "rasch_hard_tail", 0)
    plan = replace(LITTLE, populations=1, pilot_sizes=(10,))
    pilots = synthetic.pilots_of(plan, "rasch_hard_tail", 0, matrix, 10)
    seen = float(pilots.any(axis=1).mean())
    mine = next(c for c in synthetic.run(plan) if c.forecaster == "pilot_only")
    assert mine.bias + mine.truth == pytest.approx(seen)
    calibrated = synthetic.run_calibrated(plan, QUICK)[0]
    assert (calibrated.truth, calibrated.pilots) == (mine.truth, mine.pilots)
    assert calibrated.mae < mine.mae


def test_the_held_out_run_has_a_seed_of_its_own_and_covers_what_it_names():
    assert HELD_OUT_SEED not in synthetic.DEVELOPMENT_SEEDS
    cells = synthetic.held_out(populations=1, pilots=2, outside_pilots=1, settings=QUICK)
    calibrated = [c for c in cells if c.forecaster == synthetic.CALIBRATED]
    assert {c.scenario for c in calibrated} == {*SCENARIOS, *OUTSIDE}
    assert {c.scenario for c in cells if c.forecaster in FROZEN} == set(SCENARIOS)
    assert {c.pilot_agents for c in cells} == {rule.PILOT_AGENTS}


def test_the_study_replicates_the_printed_rows_and_their_verdict():
    # More populations than were printed: what remains between the two is the printed rows' own noise,
    # which is what their bands allow for.
    rows = pool(synthetic.run(Plan(seed=SEED, populations=12, pilot_sizes=(10, 20))))
    assert rule.decide("coverage", rows).status == published.VERDICT
    compared = published.compare(rows)
    far = [c for c in compared if c.measure in published.JUDGED and not c.near]
    assert far == []
    noisy = [c for c in compared if c.measure == "coverage" and abs(c.ours - c.printed) > 2 * c.band]
    assert noisy == []


def test_a_shifted_study_does_not_pass_for_the_printed_one():
    rows = pool(synthetic.run(Plan(seed=SEED, populations=2, pilots=10, pilot_sizes=(10, 20))))
    shifted = [replace(row, bias=row.bias + 0.05, mae=row.mae + 0.05) for row in rows]
    far = [c for c in published.compare(shifted) if c.measure == "mae" and not c.near]
    assert len(far) > 8


def test_the_whole_frozen_study_is_six_populations_of_every_scenario():
    plan = Plan(seed=SEED)
    assert (len(plan.scenarios), plan.populations, plan.pilots, plan.replicates) == (4, 6, 30, 100)
    assert plan.pilot_sizes == (3, 5, 10, 20, 30)
