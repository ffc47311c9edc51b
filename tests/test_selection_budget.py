"""What a budget buys: greedily and exactly."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from predictive_credit.selection import budget
from predictive_credit.streams import stream

GAIN, COST = np.array([6.0, 5.0, 5.0, -1.0]), np.array([5.0, 5.0, 5.0, 1.0])
# A gain of 6 for 5 pays best, and keeps 10 from buying the two that gain 12 together.
TRAP = np.array([7.0, 6.0, 6.0]), np.array([6.0, 5.5, 5.5])


def best(gain: np.ndarray, cost: np.ndarray, amount: float) -> float:
    """By trying all."""
    every = (np.array(bought, dtype=bool) for bought in product((0, 1), repeat=len(gain)))
    return max(float(gain[b].sum()) for b in every if cost[b].sum() <= amount + 1e-9)


def test_the_greedy_choice_takes_what_pays_best_per_cost_and_passes_over_what_does_not_fit():
    bought = budget.greedy(np.array([8.0, 6.0, 1.0]), np.array([4.0, 4.0, 1.0]), 5.0)
    assert bought.tolist() == [True, False, True]


def test_greed_can_lose_and_the_exact_choice_does_not():
    assert budget.greedy(*TRAP, 11.0).tolist() == [True, False, False]
    bought, how = budget.choose(*TRAP, 11.0)
    assert (bought.tolist(), how) == ([False, True, True], "exact")


def test_nothing_without_a_gain_is_bought_however_much_there_is_to_spend():
    assert budget.choose(GAIN, COST, 1_000.0).bought.tolist() == [True, True, True, False]


def test_a_budget_below_every_cost_buys_nothing():
    assert not budget.choose(GAIN, COST, 0.5).bought.any()


def test_of_two_equal_totals_the_one_that_pays_best_per_cost_stands():
    assert budget.choose(GAIN, COST, 5.0).bought.tolist() == [True, False, False, False]


def test_a_sum_of_decimals_that_is_the_budget_fits():
    cost = np.array([0.1, 0.2])
    assert cost.sum() > 0.3
    assert budget.choose(np.ones(2), cost, 0.3).bought.all()


@pytest.mark.parametrize("case", range(20))
def test_the_exact_choice_gains_as_much_as_trying_all(case):
    rng = stream(case, "knapsack")
    gain, cost = rng.normal(size=9) * 0.001, rng.integers(1, 9, size=9) / 4
    bought, how = budget.choose(gain, cost, 4.0)
    assert how == "exact"
    assert cost[bought].sum() <= 4.0
    assert gain[bought].sum() == pytest.approx(best(gain, cost, 4.0))


def test_many_proposals_are_bought_greedily(monkeypatch):
    monkeypatch.setattr(budget, "MOST_EXACT", 2)
    bought, how = budget.choose(*TRAP, 11.0)
    assert (bought.tolist(), how) == ([True, False, False], "greedy")


def test_where_the_solver_gives_up_the_choice_is_greedy(monkeypatch):
    monkeypatch.setattr(budget, "exact", lambda gain, cost, amount: None)
    assert budget.choose(*TRAP, 11.0).how == "greedy"
