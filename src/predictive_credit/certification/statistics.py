"""Finite-sample bounds of a certificate: recovery, recall, paired effects, and finite unit sets.

Counts and differences in, bounds out. Every bound holds at its stated error probability whatever
the truth is; where there is nothing to bound the interval is the whole line.

References: Clopper & Pearson (1934), Biometrika 26:404-413; Maurer & Pontil (2009), COLT.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from predictive_credit.exact import exact_lower_bound, paired_difference


class Method(StrEnum):
    """How an interval of a mean is made; the wire names of a registration."""

    BERNSTEIN = "bounded_empirical_bernstein"
    FINITE_SET = "finite_set_exact"
    PAIRED_BINARY = "paired_binary_exact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A mean with its interval; infinite ends where the data bound nothing."""

    mean: float = math.nan
    lower: float = -math.inf
    upper: float = math.inf

    @property
    def bounded(self) -> bool:
        """Whether both ends are finite."""
        return math.isfinite(self.lower) and math.isfinite(self.upper)


def recovery_bound(trials: int, *, alpha: float) -> float:
    """Upper bound of the chance of a hit after none in `trials`: 0 of 96 at .01 gives .0468.

    Vacuous, 1, without a trial. The closed form, since a certificate carries its last digit and
    the quantile of the beta distribution ends in another.
    """
    return 1.0 - alpha ** (1.0 / trials) if trials > 0 else 1.0


def recall_bound(successes: int, trials: int, *, alpha: float) -> float:
    """Lower bound of the positive controls' recall: 45 of 45 at .005 gives .8889."""
    return exact_lower_bound(successes, trials, tail=alpha)


def interval(differences: Sequence[float], *, method: Method | str, alpha: float) -> Interval:
    """Interval of the mean of differences in [-1, 1], missing it with probability at most `alpha`.

    No data, a value that is not finite, or (paired binary) one outside -1, 0, 1: the whole line.
    """
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0 or not np.isfinite(values).all():
        return Interval()
    mean = float(values.mean())
    if method == Method.FINITE_SET:
        return Interval(mean=mean, lower=mean, upper=mean)
    if method == Method.PAIRED_BINARY:
        return _paired_binary(values.tolist(), mean, alpha)
    if method == Method.BERNSTEIN:
        return _bernstein(values.tolist(), mean, alpha)
    raise ValueError(f"no interval is made by {method}; the methods are {', '.join(Method)}")


def _paired_binary(values: Sequence[float], mean: float, alpha: float) -> Interval:
    """Exact bounds of both discordance probabilities, a quarter of `alpha` each (Bonferroni)."""
    if not set(values) <= {-1.0, 0.0, 1.0}:
        return Interval()
    gained, lost = values.count(1.0), values.count(-1.0)
    lower, upper = paired_difference(gained, lost, len(values), level=1.0 - alpha)
    return Interval(mean=mean, lower=lower, upper=upper)


def _bernstein(values: Sequence[float], mean: float, alpha: float) -> Interval:
    """Empirical Bernstein half-width on a range of 2, clipped to [-1, 1]; needs two values."""
    count = len(values)
    if count < 2:
        return Interval(mean=mean)
    variance = float(np.var(values, ddof=1))
    log = math.log(4.0 / (1.0 - (1.0 - alpha)))  # by way of the coverage, as certificates have it
    half = math.sqrt(2.0 * variance * log / count) + 14.0 * log / (3.0 * (count - 1))
    return Interval(mean=mean, lower=max(-1.0, mean - half), upper=min(1.0, mean + half))
