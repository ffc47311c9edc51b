"""The calibrated forecast: its likelihood and draws against plain versions, its interval, its limits."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from scipy.special import expit

from predictive_credit.coverage import calibrated
from predictive_credit.coverage.calibrated import FROZEN, Predictive, Settings, predict
from predictive_credit.coverage.estimators import exact_curve
from predictive_credit.coverage.populations import Scenario, draw, population
from predictive_credit.coverage.statistics import Matrix

SMALL = Settings(spreads=(1.0, 2.5), gaps=(2.0,), shares=(0.5,), two_spreads=(0.4,), draws=200)


@pytest.fixture(scope="module")
def matrix():
    return population(1, "rasch_unsolvable", 0)


def forecast(
    pilot: Matrix,
    *,
    sizes: tuple[int, ...] = (60,),
    agents: int = 60,
    seed: int = 0,
    settings: Settings = SMALL,
) -> Predictive:
    return predict(pilot, agents=agents, sizes=sizes, rng=np.random.default_rng(seed), settings=settings)


def test_solve_counts_follow_the_sum_over_all_ways_to_solve():
    abilities = np.array([[-1.0, 0.3, 2.0]])
    found = calibrated._solve_counts(abilities)[0]
    solves = expit(abilities[0][:, None] - calibrated.NODES)
    expected = np.zeros_like(found, dtype=float)
    for outcome in product((0, 1), repeat=3):
        expected[sum(outcome)] += np.prod(
            [s if o else 1 - s for s, o in zip(solves, outcome, strict=True)], axis=0
        )
    assert found == pytest.approx(expected, abs=1e-6)


def test_a_member_s_log_likelihood_is_that_of_its_mixture(matrix):
    pilot = matrix[:4]
    family = calibrated._family(SMALL)
    fit = calibrated._fit(pilot, family)
    for member in (0, len(family.shape) - 1):
        weights, hopeless = family.weights[family.shape[member]], family.unsolvable[member]
        chance = calibrated._solve_counts(fit.abilities[member][None])[0] @ weights * (1 - hopeless)
        chance[0] += hopeless
        expected = sum(math.log(chance[int(count)]) for count in pilot.sum(axis=0))
        assert fit.log_likelihood[member] == pytest.approx(expected, abs=1e-3)


def test_abilities_expect_the_row_sums_that_were_seen(matrix):
    pilot = matrix[:5]
    family = calibrated._family(SMALL)
    abilities = calibrated._fit(pilot, family).abilities
    solved = expit(abilities[..., None] - calibrated.NODES) * family.weights[family.shape][:, None]
    expected = (1 - family.unsolvable)[:, None] * solved.sum(axis=-1)
    rates = np.broadcast_to((pilot.sum(axis=1) + 0.5) / 301, expected.shape)
    # Where more is unsolvable than an agent left unsolved, no ability is high enough.
    possible = rates / (1 - family.unsolvable)[:, None] < 0.999
    assert possible.sum() > 100
    assert expected[possible] == pytest.approx(rates[possible], abs=1e-4)
    assert np.all(abilities[~possible] > 6.0)


def test_the_prior_is_a_distribution_and_each_shape_has_its_share_of_solvable_worlds():
    family = calibrated._family(FROZEN)
    prior = np.exp(family.log_prior)
    assert prior.sum() == pytest.approx(1.0)
    one = family.shape < len(FROZEN.spreads)
    assert prior[one].sum() == pytest.approx(FROZEN.one_normal)
    first = family.shape == 0
    assert prior[first & (family.unsolvable == 0)].sum() / prior[first].sum() == pytest.approx(0.2)


def test_draws_come_as_often_as_their_weights_say():
    weights = np.array([0.5, 0.0, 0.3, 0.2])
    found = calibrated._systematic(weights, 1000, np.random.default_rng(0))
    assert np.bincount(found, minlength=4) == pytest.approx(1000 * weights, abs=1)


def test_new_agents_solve_as_often_as_a_rasch_model_says():
    rng = np.random.default_rng(0)
    abilities = np.full((400, 50), 0.5)
    difficulties = np.tile([-1.0, 0.5, 3.0, calibrated.IMPOSSIBLE], (400, 1))
    found = calibrated._solvers(abilities, difficulties, rng).mean(axis=0) / 50
    assert found == pytest.approx(expit(0.5 - difficulties[0]), abs=0.012)
    assert found[3] == 0.0


def test_difficulties_given_the_solve_count_follow_bayes(matrix):
    pilot = matrix[:4]
    family = calibrated._family(SMALL)
    fit = calibrated._fit(pilot, family)
    member = int(np.argmax(fit.log_likelihood))
    solved = np.repeat([0, 3], 2000)
    found = calibrated._difficulties(fit.joint, np.array([member]), family, solved, np.random.default_rng(0))[
        0
    ]
    for count, drawn in ((0, found[:2000]), (3, found[2000:])):
        joint = fit.joint[member, count].astype(float)
        hopeless = family.unsolvable[member] if count == 0 else 0.0
        assert np.mean(drawn == calibrated.IMPOSSIBLE) == pytest.approx(
            hopeless / (joint.sum() + hopeless), abs=0.04
        )
        can = drawn[drawn < calibrated.IMPOSSIBLE]
        spread = math.sqrt(
            np.average((calibrated.NODES - np.average(calibrated.NODES, weights=joint)) ** 2, weights=joint)
        )
        assert can.mean() == pytest.approx(np.average(calibrated.NODES, weights=joint), abs=4 * spread / 30)


@pytest.mark.parametrize("sizes", [(60,), (1, 5, 10, 20, 60)], ids=["all", "curve"])
def test_intervals_hold_their_point_and_curves_rise(matrix, sizes):
    found = forecast(matrix[:10], sizes=sizes)
    assert found.sizes == sizes
    assert np.all((found.lower <= found.point) & (found.point <= found.upper))
    assert np.all((found.lower >= 0) & (found.upper <= 1))
    assert np.all(np.diff(found.point) > 0)


def test_the_curve_passes_near_the_rarefied_pilot(matrix):
    pilot = matrix[:10]
    found = forecast(pilot, sizes=(1, 5, 10))
    assert found.point == pytest.approx(exact_curve(pilot, (1, 5, 10)), abs=0.05)
    assert np.all(
        (found.lower <= exact_curve(matrix, (1, 5, 10))) & (exact_curve(matrix, (1, 5, 10)) <= found.upper)
    )


def test_all_agents_forecast_alone_or_within_a_curve_agree(matrix):
    alone, within = (forecast(matrix[:10], sizes=s, settings=FROZEN) for s in ((60,), (30, 60)))
    assert alone.point[-1] == pytest.approx(within.point[-1], abs=0.012)
    assert alone.lower[-1] == pytest.approx(within.lower[-1], abs=0.025)


def test_a_pilot_of_everybody_is_certain(matrix):
    found = forecast(matrix[:12], sizes=(3, 12), agents=12)
    expected = exact_curve(matrix[:12], (3, 12))
    for part in (found.point, found.lower, found.upper):
        assert part == pytest.approx(expected, abs=1e-12)


def test_no_forecast_falls_below_what_the_pilot_solves(matrix):
    pilot = matrix[:10]
    assert forecast(pilot).lower[0] >= pilot.any(axis=0).mean()


def test_more_pilot_agents_narrow_the_interval(matrix):
    widths = [
        float((f.upper - f.lower)[0]) for f in (forecast(matrix[:k], settings=FROZEN) for k in (3, 10, 30))
    ]
    assert widths[0] > widths[1] > widths[2]


def test_tempering_widens_the_interval_and_leaves_the_point_alone(matrix):
    sharp = forecast(matrix[:10], settings=Settings(tempering=1.0))
    wide = forecast(matrix[:10], settings=Settings(tempering=0.2))
    assert sharp.point == wide.point
    assert (wide.upper - wide.lower)[0] > (sharp.upper - sharp.lower)[0]


def test_the_same_stream_gives_the_same_forecast_and_another_gives_another(matrix):
    first, again, other = (forecast(matrix[:10], seed=seed, settings=FROZEN) for seed in (0, 0, 1))
    ends = [(f.point[0], f.lower[0], f.upper[0]) for f in (first, again, other)]
    assert ends[0] == ends[1] != ends[2]
    assert ends[0] == pytest.approx(ends[2], abs=0.03)


def test_unsolvable_tasks_are_told_from_hard_ones_when_the_pilot_is_large():
    scenario = Scenario(ability=1.0, ability_sd=0.8, difficulty_sd=1.0, unsolvable=0.3)
    everybody = draw(scenario, np.random.default_rng(0))
    truth = everybody.any(axis=0).mean()
    found = forecast(everybody[:30], settings=FROZEN)
    assert found.point[0] == pytest.approx(truth, abs=0.015)
    assert found.lower[0] <= truth <= found.upper[0]


@pytest.mark.parametrize("solved", [False, True])
def test_pilots_without_any_variation_still_have_a_forecast(solved):
    found = forecast(np.full((3, 20), solved), sizes=(2, 60))
    assert np.all(np.isfinite([found.point, found.lower, found.upper]))
    assert (found.point[-1] == 1.0) == solved


def test_what_cannot_be_forecast_is_refused(matrix):
    with pytest.raises(ValueError, match="a pilot has 2 to 60 agents, all there are; seen 1"):
        forecast(matrix[:1])
    with pytest.raises(ValueError, match="sizes go from 1 to 60 agents; seen 61 to 61"):
        forecast(matrix[:10], sizes=(61,))
