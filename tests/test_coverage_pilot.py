"""A user's forecast: the pilot, the curve from it onwards, and how many more agents would help."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from predictive_credit import canonical, streams
from predictive_credit.coverage import calibrated, pilot
from predictive_credit.coverage.matrix import Matrix, Solved
from predictive_credit.coverage.pilot import Forecast, Settings, forecast
from predictive_credit.coverage.populations import SCENARIOS, draw
from predictive_credit.errors import BadConfig, BadSource

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
def matrix() -> Matrix:
    return named(draw(SCENARIOS["rasch_moderate"], np.random.default_rng(2), agents=14, tasks=80))


@pytest.fixture(scope="module")
def made(matrix: Matrix) -> Forecast:
    return forecast(matrix, Settings(seed=1, pilot=6, target=1.0), method=QUICK)


def test_the_pilot_is_drawn_by_the_seed_or_is_the_first(matrix: Matrix, made: Forecast) -> None:
    assert (made.how, len(set(made.pilot))) == ("random", 6)
    assert forecast(matrix, Settings(seed=1, pilot=6), method=QUICK).pilot == made.pilot
    assert forecast(matrix, Settings(seed=2, pilot=6), method=QUICK).pilot != made.pilot
    first = forecast(matrix, Settings(seed=1, pilot=6, first=True), method=QUICK)
    assert (first.how, first.pilot) == ("first", matrix.agents[:6])


def test_the_curve_starts_at_the_pilot_without_width_and_never_falls(made: Forecast) -> None:
    assert made.sizes == tuple(range(6, 15))
    assert made.curve[0] == made.lower[0] == made.upper[0] == made.observed == made.inside[-1]
    for ends in (made.curve, made.lower, made.upper):
        assert list(ends) == sorted(ends)
    assert all(a <= b <= c for a, b, c in zip(made.lower, made.curve, made.upper, strict=True))
    assert made.lower[-1] < made.upper[-1]


def test_the_forecast_for_all_is_the_calibrated_ones(matrix: Matrix, made: Forecast) -> None:
    rows = [matrix.agents.index(agent) for agent in made.pilot]
    rng = streams.stream(1, "coverage", "forecast")
    whole = calibrated.predict(matrix.solved[rows], agents=14, sizes=[14], rng=rng, settings=QUICK)
    ends = made.coverage
    assert (ends.point, ends.lower, ends.upper) == (whole.point[0], whole.lower[0], whole.upper[0])
    assert (made.floor.lower, made.floor.upper) == (1 - ends.upper, 1 - ends.lower)


def test_the_truth_is_the_mean_over_which_agents_join_the_pilot(matrix: Matrix, made: Forecast) -> None:
    assert made.truth is not None
    rows = [matrix.agents.index(agent) for agent in made.pilot]
    others = [row for row in range(14) if row not in rows]
    for size, value in zip(made.sizes, made.truth.curve, strict=True):
        joined = [matrix.solved[[*rows, *more]].any(axis=0).mean() for more in combinations(others, size - 6)]
        assert value == pytest.approx(np.mean(joined))
    assert made.truth.coverage == matrix.covered
    assert made.truth.inside == (made.coverage.lower <= matrix.covered <= made.coverage.upper)


def test_a_truth_outside_the_interval_is_said(matrix: Matrix) -> None:
    # The pilot's agents solve ever the same; the others solve everything.
    solved = np.vstack([np.tile(matrix.solved[:1], (8, 1)), np.ones((4, 80), dtype=bool)])
    made = forecast(named(solved), Settings(seed=1, pilot=8, first=True), method=QUICK)
    assert made.truth is not None
    assert not made.truth.inside
    assert "solved by all 12 in truth         100.0 %   OUTSIDE the interval" in made.text()


def test_gains_are_the_tasks_between_the_pilot_and_the_curve(made: Forecast) -> None:
    assert [gain.more for gain in made.gains] == [1, 2, 5, 8]
    for gain in made.gains:
        at = gain.more
        assert gain.tasks.point == pytest.approx(80 * (made.curve[at] - made.observed))
        assert gain.tasks.lower == pytest.approx(80 * (made.lower[at] - made.observed))
        assert gain.tasks.upper == pytest.approx(80 * (made.upper[at] - made.observed))


def test_the_fewest_agents_are_where_curve_and_limits_first_reach_the_level(made: Forecast) -> None:
    half, most, target = made.reaches
    assert half.coverage == pytest.approx((made.observed + made.coverage.point) / 2)
    assert most.coverage == pytest.approx(made.observed + 0.9 * (made.coverage.point - made.observed))
    assert half.agents is not None
    below, at = made.curve[half.agents - 7], made.curve[half.agents - 6]
    assert below < half.coverage - 1e-12 <= at
    assert half.earliest is not None
    assert half.earliest <= half.agents
    assert (target.what, target.agents, target.latest) == ("coverage 1", None, None)


def test_a_target_below_the_pilots_coverage_needs_no_more(matrix: Matrix) -> None:
    made = forecast(matrix, Settings(seed=1, pilot=6, target=0.1), method=QUICK)
    assert made.reaches[-1].agents == 6
    assert pilot.reach_words(made.reaches[-1], 6, 14) == "coverage 0.1: the pilot's 6 agents are enough"


@pytest.mark.parametrize(
    ("agents", "earliest", "latest", "words"),
    [
        (9, 8, 12, "half: 9 agents (at best 8, at worst 12)"),
        (9, 8, None, "half: 9 agents (at best 8, at worst not within 14)"),
        (None, 11, None, "half: not reached with all 14 agents (at best with 11)"),
        (None, None, None, "half: not reached with all 14 agents"),
    ],
)
def test_what_is_not_reached_is_said(
    agents: int | None, earliest: int | None, latest: int | None, words: str
) -> None:
    reach = pilot.Reach(what="half", coverage=0.5, agents=agents, earliest=earliest, latest=latest)
    assert pilot.reach_words(reach, 6, 14) == words


def test_a_matrix_that_is_the_pilot_has_no_truth_and_as_many_agents_as_the_user_says(matrix: Matrix) -> None:
    made = forecast(matrix, Settings(seed=1, pilot=None, agents=20), method=QUICK)
    assert (made.how, made.pilot, made.agents, made.truth) == ("all", matrix.agents, 20, None)
    assert "in truth" not in made.text()
    assert made.sizes == tuple(range(14, 21))


def test_a_pilot_that_solves_everything_leaves_nothing_to_gain(matrix: Matrix) -> None:
    solved = matrix.solved.copy()
    solved[0] = True
    made = forecast(named(solved), Settings(seed=1, pilot=None, agents=16), method=QUICK)
    assert (made.coverage.point, made.coverage.lower, made.floor.point) == (1, 1, 0)
    assert {reach.agents for reach in made.reaches} == {14}


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (Settings(seed=1, pilot=1), "a pilot needs at least 2 agents; seen 1"),
        (Settings(seed=1, pilot=14), "a pilot of 14 leaves none of the 14 agents of m to forecast"),
        (Settings(seed=1, pilot=90), "a pilot of 90 leaves none of the 14 agents of m to forecast"),
        (Settings(seed=1, pilot=13), "a pilot of 13 leaves 1 of the 14 agents of m; leave at least 2"),
        (Settings(seed=1, pilot=6, agents=30), "give --agents with --pilot all"),
        (Settings(seed=1, pilot=None), "all 14 agents are the pilot; say with --agents how many"),
        (Settings(seed=1, pilot=None, agents=14), "so --agents goes from 15 to 500; seen 14"),
        (Settings(seed=1, pilot=None, agents=501), "so --agents goes from 15 to 500; seen 501"),
        (Settings(seed=1, pilot=6, target=0.0), "a target is a coverage above 0 and at most 1; seen 0"),
        (Settings(seed=1, pilot=6, target=1.5), "a target is a coverage above 0 and at most 1; seen 1.5"),
    ],
)
def test_what_does_not_fit_the_matrix_is_refused(matrix: Matrix, settings: Settings, sentence: str) -> None:
    with pytest.raises(BadConfig) as caught:
        forecast(matrix, settings, method=QUICK)
    assert sentence in str(caught.value)


def test_a_pilot_that_solves_nothing_is_refused(matrix: Matrix) -> None:
    solved = matrix.solved.copy()
    solved[:3] = False
    with pytest.raises(BadSource, match="the pilot of 3 agents solves no task of m; take more or another"):
        forecast(named(solved), Settings(seed=1, pilot=3, first=True), method=QUICK)


def test_a_long_curve_has_every_size_at_first_then_growing_gaps_and_both_ends() -> None:
    sizes = pilot._sizes(10, 500)
    assert sizes[:41] == tuple(range(10, 51))
    assert sizes[-1] == 500
    gaps = np.diff(sizes)
    assert gaps.max() <= 50
    assert len(sizes) < 90
    assert {10 + step for step in pilot.STEPS} < set(sizes)


def test_text_and_json_say_the_same_forecast(made: Forecast) -> None:
    text = made.text()
    assert "m: a pilot of 6 of 14 agents (drawn at random, seed 1), 80 tasks\n" in text
    for value in (made.observed, made.coverage.point, made.floor.point):
        assert f"{100 * value:5.1f} %" in text
    assert "+8 " in text
    plain = made.plain()
    assert plain["coverage"]["point"] == made.coverage.point
    assert canonical.encode(plain) == canonical.encode(made)
