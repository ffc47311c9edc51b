"""Exact binomial bounds (Clopper-Pearson), from quantiles of the beta distribution.

Counts in, shares out. `tail` is the error probability of one bound: the chance that a study like
this one prints a bound on the wrong side of the truth is at most that, whatever the truth is.

Reference: Clopper & Pearson (1934), Biometrika 26:404-413.
"""

from __future__ import annotations

from scipy.special import betaincinv


def exact_upper_bound(successes: int, trials: int, *, tail: float) -> float:
    """One-sided upper bound of a share: 0 of 96 at tail .01 gives .0468."""
    _check(successes, trials, tail)
    if successes == trials:
        return 1.0
    return float(betaincinv(successes + 1, trials - successes, 1.0 - tail))


def exact_lower_bound(successes: int, trials: int, *, tail: float) -> float:
    """One-sided lower bound of a share: 45 of 45 at tail .005 gives .8889."""
    _check(successes, trials, tail)
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, tail))


def exact_interval(successes: int, trials: int, *, level: float = 0.95) -> tuple[float, float]:
    """Two-sided interval of a share: half of `1 - level` in each tail."""
    tail = (1.0 - level) / 2.0
    return (
        exact_lower_bound(successes, trials, tail=tail),
        exact_upper_bound(successes, trials, tail=tail),
    )


def paired_difference(gained: int, lost: int, pairs: int, *, level: float = 0.95) -> tuple[float, float]:
    """Interval of P(gained) - P(lost) over pairs of binary results.

    gained, lost: pairs of which only the first, only the second, succeeded. Each of the two
    discordance probabilities gets its own exact interval with a quarter of `1 - level` in each
    tail (Bonferroni), so no pairing structure is assumed; the result is a little wide.
    """
    if gained + lost > pairs:
        raise ValueError(f"{gained} gained and {lost} lost are more than {pairs} pairs")
    tail = (1.0 - level) / 4.0
    lower = exact_lower_bound(gained, pairs, tail=tail) - exact_upper_bound(lost, pairs, tail=tail)
    upper = exact_upper_bound(gained, pairs, tail=tail) - exact_lower_bound(lost, pairs, tail=tail)
    return lower, upper


def _check(successes: int, trials: int, tail: float) -> None:
    if not (0 <= successes <= trials and trials > 0):
        raise ValueError(f"{successes} successes of {trials} trials is not a count of a share")
    if not 0.0 < tail < 1.0:
        raise ValueError(f"a tail probability lies between 0 and 1; seen {tail}")
