"""Pilots drawn from a population, and two bootstraps of a forecast from each: over tasks and over agents.

Both resample statistics rather than pilots. Drawing N tasks with replacement gives a histogram of solve
counts that is multinomial, exactly; and sums that are linear in how often each task came up, so that one
draw serves pilots of every size. Drawing k agents with replacement gives sums that are quadratic forms
of how often each agent came up, and counts of tasks solved never, once and twice, which bit counters add
up 64 tasks at a time.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.coverage.estimators import at
from predictive_credit.coverage.statistics import Array, Counts, Matrix, Statistics, of_histograms

Scheme = Literal["task", "agent"]
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

REPLICATES = 100
LEVEL = 0.95  # what both intervals claim to cover

Words = NDArray[np.uint64]
Times = NDArray[np.float32]  # small whole numbers, ready for a matrix product


class Counters(NamedTuple):
    """How many tasks are solved never, once and twice, each (...)."""

    none: Counts
    once: Counts
    twice: Counts


def draw_pilots(agents: int, size: int, pilots: int, rng: Generator) -> Counts:
    """Agents of each pilot, (pilots, size): drawn without replacement."""
    return rng.random((pilots, agents)).argsort(axis=1)[:, :size]


def resample_tasks(counts: Counts, rng: Generator, *, replicates: int = REPLICATES) -> Statistics:
    """Statistics (pilots, replicates) of as many tasks drawn with replacement; counts: (pilots, k + 1)."""
    tasks = int(counts[0].sum())
    drawn = rng.multinomial(tasks, counts / tasks, size=(replicates, len(counts)))
    return of_histograms(np.moveaxis(drawn, 0, 1))


def draw_tasks(tasks: int, pilots: int, rng: Generator, *, replicates: int = REPLICATES) -> Times:
    """How often each task comes up, (pilots, replicates, tasks), when as many are drawn with replacement."""
    times = np.empty((pilots, replicates, tasks), dtype=np.float32)
    for one in times:  # a pilot at a time, so that the work stays in a processor's cache
        one[:] = _times_drawn(rng.integers(tasks, size=(replicates, tasks)))
    return times


def with_tasks(pilots: Matrix, times: Times) -> Statistics:
    """Statistics (pilots, replicates) of pilots (pilots, k, N) in which tasks come up so many `times`.

    times: (pilots, replicates, N), as `draw_tasks` gives it. A sum over tasks is one matrix product.
    """
    _, agents, tasks = pilots.shape
    whole = _whole(agents, tasks)
    solved = pilots.sum(axis=1, dtype=whole)  # (pilots, N)
    parts = np.stack([solved, solved**2, solved == 0, solved == 1, solved == 2], axis=2, dtype=whole)
    sums = np.moveaxis(times.astype(whole, copy=False) @ parts, 2, 0).astype(np.float64, order="C")
    total, squares, none, once, twice = sums
    return Statistics(
        agents=agents, tasks=tasks, total=total, squares=squares, none=none, once=once, twice=twice
    )


def resample_agents(pilots: Matrix, rng: Generator, *, replicates: int = REPLICATES) -> Statistics:
    """Statistics (pilots, replicates) of as many agents drawn with replacement; pilots: (pilots, k, N)."""
    drawn = rng.integers(pilots.shape[1], size=(len(pilots), replicates, pilots.shape[1]))
    return with_agents(pilots, drawn)


def with_agents(pilots: Matrix, drawn: Counts) -> Statistics:
    """Statistics (pilots, replicates) of pilots (pilots, k, N) made of the agents `drawn`, (.., .., k).

    The sum of squared solve counts is w' G w, with w how often each agent was drawn and G the tasks
    that two agents both solve.
    """
    _, agents, tasks = pilots.shape
    whole = _whole(agents, tasks)
    times = _times_drawn(drawn).astype(whole)
    rows = pilots.astype(whole)
    gram = rows @ rows.transpose(0, 2, 1)
    counters = count_bits(pack(pilots), drawn, tasks)
    return Statistics(
        agents=agents,
        tasks=tasks,
        total=(times @ rows.sum(axis=2)[:, :, None])[..., 0].astype(np.float64),
        squares=((times @ gram) * times).sum(axis=2).astype(np.float64),
        none=counters.none.astype(np.float64),
        once=counters.once.astype(np.float64),
        twice=counters.twice.astype(np.float64),
    )


def pack(pilots: Matrix) -> Words:
    """Tasks as bits, 64 a word: (..., k, N) becomes (..., k, words). Bits beyond N are 0."""
    lead, tasks = pilots.shape[:-1], pilots.shape[-1]
    padded = np.zeros((*lead, -(-tasks // 64) * 64), dtype=np.bool_)
    padded[..., :tasks] = pilots
    return np.packbits(padded, axis=-1).view(np.uint64)


def count_bits(words: Words, drawn: Counts, tasks: int) -> Counters:
    """Tasks that the agents `drawn`, (pilots, replicates, k), solve never, once and twice.

    words: (pilots, k, words). Three planes of bits hold each task's count: `ones`, `twos`, and
    `more`, which a count of 4 sets for good, because what comes after must not clear it.
    """
    pilots, agents, width = words.shape
    rows = words.reshape(-1, width)
    places = np.moveaxis(drawn, 2, 0) + agents * np.arange(pilots)[:, None]  # (k, pilots, replicates)
    ones = np.zeros((*drawn.shape[:2], width), dtype=np.uint64)
    twos, more, carry, solved = (np.zeros_like(ones) for _ in range(4))
    for place in places:
        np.take(rows, place, axis=0, out=solved, mode="clip")
        np.bitwise_and(ones, solved, out=carry)
        ones ^= solved
        np.bitwise_and(twos, carry, out=solved)
        more |= solved
        twos ^= carry
    return Counters(
        none=tasks - _bits(np.bitwise_or(ones | twos, more)),
        once=_bits(np.bitwise_and(ones, ~(twos | more))),
        twice=_bits(np.bitwise_and(twos, ~(ones | more))),
    )


def limits(name: str, resamples: Statistics, size: int) -> tuple[Array, Array]:
    """Ends (...) of the percentile interval of a forecast at `size` agents, without interpolation.

    resamples: (..., replicates). Of 100 sorted replicates these are items 2 and 97, counted from 0.
    """
    forecasts = at(name, resamples, np.array([size]))[..., 0]
    n = forecasts.shape[-1]
    tail = (1.0 - LEVEL) / 2.0
    low, high = int(tail * n), min(n - 1, int((1.0 - tail) * n))
    ordered = np.partition(forecasts, (low, high), axis=-1)
    return ordered[..., low], ordered[..., high]


def _whole(agents: int, tasks: int) -> type[np.floating[Any]]:
    """A type in which products of whole numbers are exact up to the largest sum, of squared counts."""
    return np.float32 if tasks * agents**2 < 2**24 else np.float64


def _times_drawn(drawn: Counts) -> Counts:
    """How often each of n is among the n drawn, (..., n)."""
    n = drawn.shape[-1]
    rows = drawn.reshape(-1, n)
    codes = rows + n * np.arange(len(rows))[:, None]
    return np.bincount(codes.ravel(), minlength=drawn.size).reshape(drawn.shape)


def _bits(words: Words) -> Counts:
    return np.asarray(np.bitwise_count(words).sum(axis=-1, dtype=np.int64))
