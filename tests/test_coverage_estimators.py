"""Point forecasts of coverage: closed forms, the exact curve, and agreement with a scalar version."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from predictive_credit.coverage.estimators import FORECASTERS, FROZEN, at, curve, exact_curve, exact_missed
from predictive_credit.coverage.populations import population
from predictive_credit.coverage.statistics import Matrix, histograms, mean_phi, of_histograms
from tests.plain_coverage import plain

SIZES = (1, 2, 5, 10, 11, 30, 60)


@pytest.fixture(scope="module")
def matrix():
    return population(1, "rasch_hard_tail", 0)


def one(name: str, pilot: Matrix, size: int, agents: int = 60) -> float:
    return float(curve(name, pilot, agents=agents, sizes=[size])[0])


def test_the_exact_curve_is_the_mean_over_all_subsets(matrix):
    small = matrix[:7, :40]
    for size in range(1, 8):
        every = [small[list(chosen)].any(axis=0).mean() for chosen in combinations(range(7), size)]
        assert exact_curve(small, [size])[0] == pytest.approx(np.mean(every), abs=1e-14)


def test_the_exact_curve_needs_no_large_numbers():
    missed = exact_missed(1000)
    assert missed[10, 499] == pytest.approx(math.comb(990, 500) / math.comb(1000, 500), rel=1e-12)
    assert missed[600, 499] == 0.0
    assert missed[0].tolist() == [1.0] * 1000


@pytest.mark.parametrize("name", FROZEN)
@pytest.mark.parametrize("agents", [3, 10, 30])
def test_vectorised_forecasts_agree_with_the_scalar_ones(name, agents):
    pilots = np.stack(
        [population(2, scenario, 0)[:agents] for scenario in ("rasch_moderate", "rasch_unsolvable")]
    )
    found = at(name, of_histograms(histograms(pilots)), np.array([agents, 60]))
    for row, pilot in zip(found, pilots, strict=True):
        counts = plain.solve_counts(pilot.astype(int).tolist())
        expected = [plain.FORECASTERS[name](counts, agents, size) for size in (agents, 60)]
        assert row == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", FROZEN)
def test_degenerate_pilots_take_the_same_branch_as_the_scalar_ones(name):
    # Nothing solved, all solved, no task solved twice, no variance, only single solves.
    columns = [[0, 0, 0], [1, 1, 1], [1, 0, 0]]
    for mixture in ([0] * 6, [1] * 6, [1, 1, 1, 2, 2, 2], [2] * 6, [0, 2, 1, 1, 1, 1], [0, 0, 0, 0, 0, 2]):
        pilot = np.array([columns[kind] for kind in mixture], dtype=bool).T
        counts = plain.solve_counts(pilot.astype(int).tolist())
        found = at(name, of_histograms(histograms(pilot)), np.array([60]))[0]
        assert found == pytest.approx(plain.FORECASTERS[name](counts, 3, 60), abs=1e-12)


def test_incidence_and_pilot_only_rarefy_the_pilot_exactly_up_to_its_size(matrix):
    pilot = matrix[:10]
    inside = [1, 2, 5, 10]
    for name in ("incidence", "pilot_only"):
        assert curve(name, pilot, agents=60, sizes=inside) == pytest.approx(exact_curve(pilot, inside), abs=0)
    assert one("pilot_only", pilot, 60) == pilot.any(axis=0).mean()
    assert one("incidence", pilot, 60) > one("incidence", pilot, 11) > pilot.any(axis=0).mean()


@pytest.mark.parametrize("name", FORECASTERS)
def test_curves_rise_and_stay_shares(name, matrix):
    found = curve(name, matrix[:10], agents=60, sizes=SIZES)
    assert found.shape == (len(SIZES),)
    assert np.all(np.diff(found) >= 0)
    assert 0 < found[0] < found[-1] <= 1


@pytest.mark.parametrize("name", FORECASTERS)
def test_a_forecast_ignores_the_order_of_agents_and_tasks(name, matrix):
    pilot, rng = matrix[:10], np.random.default_rng(0)
    shuffled = pilot[rng.permutation(10)][:, rng.permutation(300)]
    expected = curve(name, pilot, agents=60, sizes=SIZES)
    assert curve(name, shuffled, agents=60, sizes=SIZES) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", FORECASTERS)
def test_forecasters_survive_pilots_without_any_variation(name):
    for solved in (False, True):
        pilot = np.full((3, 5), solved)
        found = curve(name, pilot, agents=9, sizes=[1, 3, 4, 9])
        assert np.all((found >= 0) & (found <= 1))
        if name != "rasch":  # its penalty pulls towards the middle
            assert found.tolist() == [float(solved)] * 4


def test_beta_binomial_recovers_a_beta_population():
    rng = np.random.default_rng(0)
    rates = rng.beta(0.6, 0.9, 200_000)
    pilot = rng.random((10, rates.size)) < rates
    expected = 1 - np.mean((1 - rates) ** 60)
    assert one("beta_binomial", pilot, 60) == pytest.approx(expected, abs=0.003)


def test_kish_and_shared_shock_are_independence_where_agents_are_uncorrelated():
    # Two agents, phi exactly 0: each of four tasks is one of the four ways to differ.
    pilot = np.array([[0, 0, 1, 1], [0, 1, 0, 1]], dtype=bool)
    assert mean_phi(pilot) == pytest.approx(0.0, abs=1e-15)
    for name in ("kish", "shared_shock"):
        assert one(name, pilot, 9, agents=9) == pytest.approx(1 - 0.5**9, abs=1e-12)


def test_mean_phi_is_the_mean_correlation_of_pairs_and_leaves_constant_agents_out(matrix):
    pilot = matrix[:6]
    pairs = np.corrcoef(pilot.astype(float))[np.triu_indices(6, 1)]
    assert mean_phi(pilot) == pytest.approx(pairs.mean(), abs=1e-12)
    constant = np.vstack([pilot, np.ones((1, 300), bool), np.zeros((1, 300), bool)])
    assert mean_phi(constant) == pytest.approx(pairs.mean(), abs=1e-12)
    assert mean_phi(constant[-2:]) == 0.0


def test_rasch_recovers_the_curve_of_its_own_model_when_agents_are_many():
    rng = np.random.default_rng(0)
    solved = 1 / (1 + np.exp(-(rng.normal(-0.5, 0.8, (100, 1)) - rng.normal(0, 1.5, (1, 1000)))))
    everyone = rng.random(solved.shape) < solved
    found = curve("rasch", everyone, agents=100, sizes=[2, 5, 10])
    assert found == pytest.approx(exact_curve(everyone, [2, 5, 10]), abs=0.005)


def test_what_cannot_be_forecast_is_refused(matrix):
    with pytest.raises(ValueError, match="no forecaster is called chao; there are independence, kish"):
        curve("chao", matrix[:10], agents=60, sizes=[60])
    with pytest.raises(ValueError, match="sizes go from 1 to 60 agents; seen 0 to 61"):
        curve("rasch", matrix[:10], agents=60, sizes=[0, 61])
    for pilot in (matrix[:1], matrix):
        with pytest.raises(ValueError, match="a pilot has 2 to 59 agents, all there are; seen"):
            curve("incidence", pilot, agents=59, sizes=[5])
