"""Which proposals a budget buys: greedily by expected gain per cost, and exactly where that is cheap."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
How = Literal["exact", "greedy"]

MOST_EXACT: Final = 200  # proposals: beyond, a 0/1 knapsack may take its time
SLACK: Final = 1e-9  # of the budget: costs are sums of decimals
PATIENCE_S: Final = 10.0


class Choice(NamedTuple):
    """What is bought, (proposal,), and how it was found."""

    bought: Bools
    how: How


def choose(gain: Array, cost: Array, budget: float) -> Choice:
    """The proposals of positive expected gain that a budget buys; gain, cost: (proposal,).

    Exact up to MOST_EXACT proposals, else, or where the solver gives up, greedy. Where both gain as much the
    greedy choice stands: it holds what pays best per cost.
    """
    first = greedy(gain, cost, budget)
    if len(gain) > MOST_EXACT:
        return Choice(first, "greedy")
    best = exact(gain, cost, budget)
    if best is None:
        return Choice(first, "greedy")
    is_better = gain[best].sum() > gain[first].sum() * (1.0 + SLACK)
    return Choice(best if is_better else first, "exact")


def greedy(gain: Array, cost: Array, budget: float) -> Bools:
    """By gain per cost, the best first; what no longer fits is passed over for what does."""
    bought = np.zeros(len(gain), dtype=bool)
    left = budget * (1.0 + SLACK)
    for at in np.argsort(-gain / cost, kind="stable"):
        if gain[at] > 0.0 and cost[at] <= left:
            bought[at] = True
            left -= cost[at]
    return bought


def exact(gain: Array, cost: Array, budget: float) -> Bools | None:
    """The 0/1 knapsack, solved by branch and bound; None where the solver does not finish."""
    wanted = np.flatnonzero((gain > 0.0) & (cost <= budget * (1.0 + SLACK)))
    bought = np.zeros(len(gain), dtype=bool)
    if not len(wanted):
        return bought
    # Both scaled, for the solver's tolerances are absolute and gains may be of the order of 0.001.
    solved = milp(
        -gain[wanted] / gain[wanted].max(),
        constraints=LinearConstraint(cost[wanted][None, :] / budget, ub=1.0 + SLACK),
        integrality=np.ones(len(wanted)),
        bounds=Bounds(0.0, 1.0),
        options={"time_limit": PATIENCE_S, "mip_rel_gap": 0.0},
    )
    if not solved.success:
        return None
    bought[wanted[np.round(solved.x).astype(bool)]] = True
    # The solver's own tolerance is wider than ours.
    return bought if cost[bought].sum() <= budget * (1.0 + SLACK) else None
