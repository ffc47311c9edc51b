"""The study of a real matrix: its limits, its errors against a known truth, and its three hypotheses."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from predictive_credit import canonical
from predictive_credit.coverage import calibrated, estimators, real
from predictive_credit.coverage.matrix import Matrix, Solved
from predictive_credit.coverage.populations import SCENARIOS, draw
from predictive_credit.coverage.scoring import TOLERANCE
from predictive_credit.errors import BadConfig

SMALL = real.Settings(seed=3, pilot=5, pilots=12, calibrated_pilots=2, replicates=20, draws=60, splits=10)
QUICK = replace(calibrated.FROZEN, draws=60, gaps=(2.0,), shares=(0.5,))


def named(solved: Solved) -> Matrix:
    return Matrix(
        name="m",
        agents=tuple(f"a{j}" for j in range(len(solved))),
        tasks=tuple(f"t{t}" for t in range(solved.shape[1])),
        solved=solved,
        sha256="0" * 64,
    )


@pytest.fixture(scope="module")
def population() -> Solved:
    """24 agents on 120 tasks, four of them solving 5 tasks only."""
    solved = draw(SCENARIOS["rasch_moderate"], np.random.default_rng(5), agents=24, tasks=120)
    solved[:4] = False
    solved[:4, :5] = True
    return solved


@pytest.fixture(scope="module")
def study(population: Solved) -> real.RealStudy:
    return real.study(named(population), SMALL, method=QUICK)


def test_agents_below_a_twentieth_of_the_tasks_are_left_out_by_name(study: real.RealStudy) -> None:
    assert study.feasibility.screened == ("a0", "a1", "a2", "a3")
    assert (study.feasibility.status, study.feasibility.competent) == ("feasible", 20)


def test_an_agent_with_exactly_a_twentieth_is_competent() -> None:
    solved = np.zeros((2, 100), dtype=bool)
    solved[0, :5] = True
    solved[1, :4] = True
    assert real.feasibility(named(solved)).screened == ("a1",)


@pytest.mark.parametrize(
    ("agents", "tasks", "reason"),
    [
        (23, 120, "19 competent agents where the study needs 20"),
        (24, 99, "99 tasks where the study needs 100"),
        (10, 50, "6 competent agents where the study needs 20; 50 tasks where the study needs 100"),
    ],
)
def test_too_small_a_matrix_is_not_feasible_and_nothing_is_estimated(
    population: Solved, agents: int, tasks: int, reason: str
) -> None:
    solved = population[:agents, :tasks].copy()
    solved[:4] = False
    found = real.study(named(solved), SMALL, method=QUICK)
    assert (found.feasibility.status, found.feasibility.reason) == ("not_feasible", reason)
    assert (found.covered, found.rows, found.intervals, found.hypotheses) == (None, (), (), ())


def test_a_pilot_of_all_competent_agents_is_refused(population: Solved) -> None:
    with pytest.raises(BadConfig, match="a pilot of 20 does not fit 20 competent agents; take 2 to 19"):
        real.study(named(population), replace(SMALL, pilot=20))


def test_the_truth_is_that_of_the_competent_agents(study: real.RealStudy, population: Solved) -> None:
    covered = float(population[4:].any(axis=0).mean())
    assert study.covered == covered == pytest.approx(study.curve[-1], abs=1e-12)
    assert study.floor == 1 - covered
    assert study.sizes == (2, 5, 10, 20)


def test_every_forecaster_has_its_errors_and_every_interval_its_scheme(study: real.RealStudy) -> None:
    assert [row.forecaster for row in study.rows] == [*estimators.FORECASTERS, "calibrated"]
    schemes = [*product(estimators.FROZEN, ("task", "agent")), ("calibrated", "predictive")]
    assert [(row.forecaster, row.scheme) for row in study.intervals] == schemes
    assert [row.pilots for row in study.rows] == [12] * 7 + [2]


def test_pilot_only_is_as_far_off_as_its_pilots_fall_short(study: real.RealStudy, population: Solved) -> None:
    (row,) = [row for row in study.rows if row.forecaster == "pilot_only"]
    assert row.bias == -row.coverage_mae < -TOLERANCE
    mean_of_five = estimators.exact_curve(population[4:], [5])[0]
    assert study.covered is not None
    assert row.coverage_mae == pytest.approx(study.covered - mean_of_five, abs=0.05)


def test_an_oracle_is_without_error_and_a_shift_shows_as_bias() -> None:
    truth = np.array([0.4, 0.6, 0.9])
    oracle = real._judged("oracle", np.tile(truth, (7, 1)), truth)
    assert (oracle.curve_mae, oracle.coverage_mae, oracle.bias, oracle.within) == (0, 0, 0, 1)
    shifted = real._judged("shifted", np.tile(truth - 0.05, (7, 1)), truth)
    assert shifted.bias == pytest.approx(-0.05)
    assert shifted.within == 0


def test_an_interval_counts_where_its_end_is_the_truth() -> None:
    held = real._held("f", "s", np.array([0.5, 0.1, 0.6]), np.array([0.9, 0.5, 0.9]), 0.5)
    assert held.coverage == pytest.approx(2 / 3)
    assert held.width == pytest.approx(1.1 / 3)


def test_one_seed_gives_one_study_and_another_seed_other_pilots(
    study: real.RealStudy, population: Solved
) -> None:
    again = real.study(named(population), SMALL, method=QUICK)
    assert canonical.encode(again) == canonical.encode(study)
    other = real.study(named(population), replace(SMALL, seed=4), method=QUICK)
    assert other.rows != study.rows


def test_the_text_holds_every_forecaster_and_the_status_of_every_hypothesis(
    study: real.RealStudy, population: Solved
) -> None:
    text = study.text()
    for row in study.rows:
        assert re.search(rf"{row.forecaster} +{row.curve_mae:.3f} +{row.coverage_mae:.3f}", text)
    for hypothesis in study.hypotheses:
        assert f"{hypothesis.name} {hypothesis.status}: " in text
    small = real.study(named(population[:10]), SMALL)
    assert small.text() == "m: not_feasible, 6 competent agents where the study needs 20"


def test_agents_that_fail_together_support_the_first_hypothesis() -> None:
    solved = np.random.default_rng(1).random((1, 120)) < 0.5
    found = real.dependence(np.repeat(solved, 20, axis=0), SMALL)
    phi, gap = found.estimates
    assert found.status == "supported"
    assert phi.lower == pytest.approx(phi.value) == pytest.approx(1)
    assert gap.lower < gap.value == pytest.approx(1 - solved.mean(), abs=1e-5)


def test_agents_that_share_the_tasks_out_falsify_it() -> None:
    found = real.dependence(np.tile(np.eye(20, dtype=bool), (1, 6)), SMALL)
    assert found.status == "falsified"
    assert found.estimates[0].upper < 0


def test_independent_agents_leave_it_undecided() -> None:
    solved = np.random.default_rng(2).random((20, 200)) < 0.1
    found = real.dependence(solved, SMALL)
    assert found.status == "undecided"
    assert abs(found.estimates[0].value) < 0.02


def test_resampled_errors_are_those_of_the_matrix_with_its_tasks_repeated(population: Solved) -> None:
    rng = np.random.default_rng(4)
    pilots = np.array([rng.choice(24, 5, replace=False) for _ in range(6)])
    times = rng.multinomial(120, np.full(120, 1 / 120), size=3)
    found = real.candidate_errors(population, pilots, times.astype(float))
    for draw_, row in zip(times, found, strict=True):
        columns = population[:, np.repeat(np.arange(120), draw_)]
        truth = columns.any(axis=0).mean()
        direct = [
            np.mean(
                [abs(estimators.curve(name, columns[p], agents=24, sizes=[24])[0] - truth) for p in pilots]
            )
            for name in real.CANDIDATES
        ]
        assert row == pytest.approx(direct, abs=1e-12)


def drawn(rng: np.random.Generator, unsolvable: float) -> Solved:
    """30 agents of one ability on 1500 tasks whose rates are beta, some share of them out of reach."""
    chance = rng.beta(0.8, 1.2, 1500) * (rng.random(1500) >= unsolvable)
    solved: Solved = rng.random((30, 1500)) < chance
    return solved


# Three agents cannot tell a task that nobody solves from a hard one.
@pytest.mark.parametrize(
    ("unsolvable", "size", "status"),
    [(0.0, 15, "supported"), (0.5, 3, "falsified")],
    ids=["a candidate's own model", "half unsolvable"],
)
def test_the_second_hypothesis_follows_the_candidates_errors(
    unsolvable: float, size: int, status: str
) -> None:
    rng = np.random.default_rng(6)
    solved = drawn(rng, unsolvable)
    pilots = np.array([rng.choice(30, size, replace=False) for _ in range(20)])
    found = real.tolerance(solved, pilots, replace(SMALL, pilot=size))
    assert found.status == status
    assert all(e.lower < e.upper for e in found.estimates)


@pytest.mark.parametrize(
    ("ends", "status"),
    [
        (((0.01, 0.03), (0.05, 0.07)), "supported"),
        (((0.01, 0.031), (0.05, 0.07)), "undecided"),
        (((0.03, 0.05), (0.05, 0.07)), "undecided"),
        (((0.031, 0.05), (0.05, 0.07)), "falsified"),
    ],
)
def test_the_second_hypothesis_needs_a_whole_interval_on_one_side_of_the_tolerance(
    ends: tuple[tuple[float, float], ...], status: str
) -> None:
    errors = [real.Estimate(name="e", value=0.04, lower=lower, upper=upper) for lower, upper in ends]
    assert real.within_tolerance(errors) == status


def test_portfolios_are_judged_on_tasks_they_were_not_chosen_on() -> None:
    # On the tasks that chose them greedy agents never cover fewer; on others chance decides.
    solved = np.random.default_rng(8).random((30, 120)) < 0.1
    found = real.portfolios(solved, replace(SMALL, splits=30)).detail
    more, fewer = map(int, re.findall(r"cover more in (\d+) and fewer in (\d+)", found)[0])
    assert more > 0
    assert fewer > 0


def test_the_greedy_portfolio_takes_what_is_new_and_breaks_ties_by_accuracy_then_order() -> None:
    solved = np.array(
        [
            [1, 1, 1, 0, 0, 0],
            [1, 1, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [1, 0, 0, 0, 1, 0],
            [0, 0, 0, 0, 0, 0],
        ],
        dtype=bool,
    )
    assert real.greedy(solved, 3) == [0, 3, 2]
    assert real.greedy(solved, 5) == [0, 3, 2, 1, 4]
    assert real.most_accurate(solved, 3) == [0, 1, 3]


def test_specialists_support_the_third_hypothesis_and_clones_leave_it_undecided() -> None:
    generalists = np.tile(np.arange(200) < 120, (6, 1))
    kind = np.arange(200) % 40 // 8
    specialists = np.array([(np.arange(200) >= 120) & (kind == j) for j in range(5)])
    found = real.portfolios(np.vstack([generalists, specialists]), replace(SMALL, pilot=6))
    assert found.status == "supported"
    assert found.estimates[0].lower > 0
    assert "cover more in 10 and fewer in 0" in found.detail
    clones = real.portfolios(generalists, SMALL)
    assert (clones.status, clones.estimates[0].value) == ("undecided", 0)
    assert "McNemar's exact p = 1" in clones.detail


@pytest.mark.parametrize(
    ("gained", "lost", "p"), [(0, 0, 1.0), (4, 3, 1.0), (6, 0, 1 / 32), (0, 6, 1 / 32), (9, 1, 22 / 1024)]
)
def test_mcnemars_p_counts_the_coins_as_far_off_on_both_sides(gained: int, lost: int, p: float) -> None:
    assert real.mcnemar(gained, lost) == pytest.approx(p)
