"""Point forecasts of coverage: the share of tasks that at least one of m agents solves.

A forecaster sees a pilot of k agents and how many agents there are in all, M; nothing else. The pilot's
agents are among the M. Four forecasters are frozen in the synthetic study and read five sums of the
pilot; the others are those of the study of real matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
from scipy.special import expit

from predictive_credit.coverage.statistics import (
    Array,
    Counts,
    Matrix,
    Statistics,
    histograms,
    mean_phi,
    of_histograms,
)

Forecaster = Literal[
    "independence", "kish", "shared_shock", "beta_binomial", "rasch", "incidence", "pilot_only"
]
FORECASTERS: tuple[Forecaster, ...] = get_args(Forecaster)
FROZEN: tuple[Forecaster, ...] = ("independence", "beta_binomial", "incidence", "pilot_only")

LARGEST_RHO = 0.999  # a beta distribution needs a correlation below 1
DIFFICULTY_SD = 2.0  # logits; the Rasch fit's penalty, without which an unsolved task is infinitely hard
RASCH_STEPS = 15  # of Newton's method; 10 reach 1e-12 on pilots of 3 to 30 agents
LONGEST_STEP = 1.0  # logits


def curve(name: str, pilot: Matrix, *, agents: int, sizes: Sequence[int]) -> Array:
    """Forecast coverage of `sizes` agents, (sizes,), from a pilot (k, N) of a population of `agents`.

    Raises ValueError for an unknown name, a pilot of fewer than two agents or of more than there are,
    and a size outside 1 to `agents`.
    """
    k = len(pilot)
    if not 2 <= k <= agents:
        raise ValueError(f"a pilot has 2 to {agents} agents, all there are; seen {k}")
    wanted = whole_sizes(sizes, agents)
    if name in ("incidence", "pilot_only"):
        # Up to k agents nothing needs forecasting: the pilot itself is rarefied, exactly.
        inside = exact_curve(pilot, np.minimum(wanted, k))
        beyond = at(name, of_histograms(histograms(pilot)), np.maximum(wanted, k))
        return np.where(wanted <= k, inside, beyond)
    if name == "rasch":
        return _rasch(pilot, wanted)
    if name in ("kish", "shared_shock"):
        return _correlated(name, float(pilot.mean()), mean_phi(pilot), wanted)
    return at(name, of_histograms(histograms(pilot)), wanted)


def at(name: str, pilots: Statistics, sizes: Counts) -> Array:
    """Forecasts of a frozen forecaster, (..., sizes), for pilots whose statistics are (...).

    sizes: (sizes,) integers, for incidence and pilot_only at least the pilot's agents. Raises
    ValueError for another name.
    """
    if name not in _CLOSED:
        raise ValueError(f"no forecaster is called {name}; there are {', '.join(FORECASTERS)}")
    return _CLOSED[name](pilots, sizes)


def exact_curve(matrix: Matrix, sizes: Sequence[int] | Counts) -> Array:
    """Exact mean coverage of all subsets of each size, (sizes,), of a matrix (agents, tasks).

    Raises ValueError for a size outside 1 to M.
    """
    agents, tasks = matrix.shape
    missed = exact_missed(agents)[:, whole_sizes(sizes, agents) - 1]
    return np.asarray(1.0 - (histograms(matrix)[:, None] * missed).sum(axis=0) / tasks)


def exact_missed(agents: int) -> Array:
    """Probability that a random subset misses a task, (agents + 1, agents): solvers 0 to M, size 1 to M.

    A task that s of M agents solve is missed by m of them with probability C(M - s, m) / C(M, m),
    the product over i < m of (M - s - i) / (M - i): no large numbers.
    """
    left = np.arange(agents, 0, -1.0)
    # Once the M - s others are used up a factor is 0, and the product stays so whatever follows.
    factors = np.maximum(left - np.arange(agents + 1)[:, None], 0.0) / left
    return np.cumprod(factors, axis=1)


def whole_sizes(sizes: Sequence[int] | Counts, agents: int) -> Counts:
    """Sizes as an array. Raises ValueError for one outside 1 to `agents`."""
    wanted = np.asarray(sizes, dtype=np.int64)
    if wanted.size and not (wanted.min() >= 1 and wanted.max() <= agents):
        raise ValueError(f"sizes go from 1 to {agents} agents; seen {wanted.min()} to {wanted.max()}")
    return wanted


def _independence(pilots: Statistics, sizes: Counts) -> Array:
    """Every agent solves every task with the pilot's mean rate."""
    return np.asarray(1.0 - (1.0 - pilots.rate[..., None]) ** sizes)


def _pilot_only(pilots: Statistics, sizes: Counts) -> Array:
    """What the pilot solves, and nothing more."""
    return np.repeat((pilots.seen / pilots.tasks)[..., None], len(sizes), axis=-1)


def _beta_binomial(pilots: Statistics, sizes: Counts) -> Array:
    """A task's rate follows a beta distribution, fitted by the moments of the solve counts.

    Independence where the counts vary no more than binomial ones, or the rate is 0 or 1.
    """
    p, k = pilots.rate, pilots.agents
    variance = (pilots.squares - pilots.total**2 / pilots.tasks) / (pilots.tasks - 1)
    binomial = k * p * (1.0 - p)
    rho = (variance / np.where(binomial > 0, binomial, 1.0) - 1.0) / (k - 1)
    clustered = (binomial > 0) & (rho > 0)
    spread = 1.0 / np.where(clustered, np.minimum(rho, LARGEST_RHO), 0.5) - 1.0
    missed = _beta_ratios((1.0 - p) * spread, spread, sizes)
    return np.where(clustered[..., None], 1.0 - missed, _independence(pilots, sizes))


def _beta_ratios(b: Array, both: Array, sizes: Counts) -> Array:
    """B(a, b + m) / B(a, b) for each size m, (..., sizes), as a product of m factors; both: a + b."""
    found = np.empty((*b.shape, len(sizes)))
    asked = set(sizes.tolist())
    product, top, bottom = np.ones_like(b), np.empty_like(b), np.empty_like(b)
    for used in range(1, max(asked, default=0) + 1):
        np.add(b, used - 1, out=top)
        np.add(both, used - 1, out=bottom)
        np.divide(top, bottom, out=top)
        product *= top
        if used in asked:
            found[..., sizes == used] = product[..., None]
    return found


def _incidence(pilots: Statistics, sizes: Counts) -> Array:
    """Extrapolated species accumulation: tasks solved once and twice tell of those not yet solved.

    Chao et al. 2014, Ecological Monographs 84, 45-67, incidence data.
    """
    k, once, twice = pilots.agents, pilots.once, pilots.twice
    pairs = np.where(twice > 0, once**2 / (2.0 * np.maximum(twice, 1.0)), once * (once - 1.0) / 2.0)
    unseen = (k - 1) / k * pairs
    some = unseen > 0
    stay = 1.0 - once / np.where(some, k * unseen + once, 1.0)
    gained = np.where(some, unseen, 0.0)[..., None] * (1.0 - stay[..., None] ** (sizes - k))
    return np.asarray(np.minimum(pilots.tasks, pilots.seen[..., None] + gained) / pilots.tasks)


_CLOSED: Mapping[str, Callable[[Statistics, Counts], Array]] = {
    "independence": _independence,
    "beta_binomial": _beta_binomial,
    "incidence": _incidence,
    "pilot_only": _pilot_only,
}


def _correlated(name: str, rate: float, phi: float, sizes: Counts) -> Array:
    """Kish: correlated agents count as fewer. Shared shock: with weight phi all agents act as one."""
    if name == "kish":
        # The design effect of a negative phi could pass zero; agents never count for more than they are.
        effective = sizes / (1.0 + (sizes - 1) * max(phi, 0.0))
        return np.asarray(1.0 - (1.0 - rate) ** effective)
    shock = min(max(phi, 0.0), 1.0)
    return np.asarray(shock * rate + (1.0 - shock) * (1.0 - (1.0 - rate) ** sizes))


def _rasch(pilot: Matrix, sizes: Counts) -> Array:
    """Abilities and difficulties fitted jointly; a further agent is one of the pilot's, at random.

    Joint penalised likelihood: difficulties have a normal penalty of sd DIFFICULTY_SD. Tasks of one
    solve count share their difficulty, since row and column sums are sufficient in a Rasch model.
    """
    counts = histograms(pilot).astype(np.float64)  # (k + 1,)
    abilities, difficulties = _rasch_fit(pilot.sum(axis=1).astype(np.float64), counts)
    solved = expit(abilities[:, None] - difficulties).mean(axis=0)  # (k + 1,)
    missed = (1.0 - solved[:, None]) ** sizes
    return np.asarray(1.0 - (counts[:, None] * missed).sum(axis=0) / counts.sum())


def _rasch_fit(solved: Array, counts: Array) -> tuple[Array, Array]:
    """Abilities (k,) and difficulties by solve count (k + 1,), in logits, by Newton's method."""
    k, tasks = len(solved), counts.sum()
    # An agent that solves all or nothing is given half a task less or more: its ability stays finite.
    solved = np.clip(solved, 0.5, tasks - 0.5)
    at = np.zeros(2 * k + 1)
    for _ in range(RASCH_STEPS):
        p = expit(at[:k, None] - at[k:])
        # A difficulty's equation is divided by how many tasks share it, so that none may have it.
        wrong = np.concatenate(
            [solved - p @ counts, p.sum(axis=0) - np.arange(k + 1) - at[k:] / DIFFICULTY_SD**2]
        )
        slope = p * (1.0 - p)
        curved = np.block(
            [
                [np.diag(slope @ counts), -slope * counts],
                [-slope.T, np.diag(slope.sum(axis=0) + DIFFICULTY_SD**-2)],
            ]
        )
        at += np.clip(np.linalg.solve(curved, wrong), -LONGEST_STEP, LONGEST_STEP)
    return at[:k], at[k:]
