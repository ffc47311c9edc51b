"""Both bootstraps: bit counters, quadratic forms, multinomial histograms, percentile items."""

from __future__ import annotations

import numpy as np
import pytest

from predictive_credit.coverage.estimators import FROZEN, at
from predictive_credit.coverage.intervals import (
    count_bits,
    draw_pilots,
    draw_tasks,
    limits,
    pack,
    resample_agents,
    resample_tasks,
    with_agents,
    with_tasks,
)
from predictive_credit.coverage.populations import population
from predictive_credit.coverage.statistics import Array, Statistics, histograms, of_histograms
from tests.plain_coverage import plain

PARTS = ("total", "squares", "none", "once", "twice")


@pytest.fixture(scope="module")
def pilots():
    matrix = population(3, "rasch_unsolvable", 0)
    return matrix[draw_pilots(60, 10, 4, np.random.default_rng(0))]


@pytest.mark.parametrize("tasks", [1, 63, 64, 65, 300])
def test_bit_counters_count_exactly(tasks):
    rng = np.random.default_rng(tasks)
    pilots = rng.random((3, 12, tasks)) < 0.3
    drawn = rng.integers(12, size=(3, 50, 12))
    found = count_bits(pack(pilots), drawn, tasks)
    solved = np.stack([pilot[places].sum(axis=1) for pilot, places in zip(pilots, drawn, strict=True)])
    for counter, times in zip(found, (0, 1, 2), strict=True):
        assert np.array_equal(counter, np.count_nonzero(solved == times, axis=-1))


def test_a_count_past_three_is_never_taken_for_a_small_one():
    # One task that all solve: after 4, 5, 6, 8 and 9 additions the two lower planes hold 0, 1, 2, 0, 1.
    for agents in (4, 5, 6, 8, 9):
        found = count_bits(pack(np.ones((1, agents, 1), bool)), np.arange(agents)[None, None], 1)
        assert [int(counter[0, 0]) for counter in found] == [0, 0, 0]


def test_statistics_of_drawn_agents_are_those_of_the_pilot_they_make(pilots):
    drawn = np.random.default_rng(1).integers(10, size=(4, 20, 10))
    found = with_agents(pilots, drawn)
    made = np.stack([pilot[places] for pilot, places in zip(pilots, drawn, strict=True)])
    expected = of_histograms(histograms(made))
    for part in PARTS:
        assert np.array_equal(getattr(found, part), getattr(expected, part)), part


@pytest.mark.parametrize("name", FROZEN)
def test_agent_intervals_agree_with_the_scalar_ones_on_the_same_draws(name, pilots):
    drawn = np.random.default_rng(2).integers(10, size=(4, 100, 10))
    lower, upper = limits(name, with_agents(pilots, drawn), 60)
    for number, pilot in enumerate(pilots):
        resamples = plain.agent_resamples(pilot.astype(int).tolist(), drawn[number].tolist())
        expected = plain.intervals(resamples, 10, 60)[name]
        assert (lower[number], upper[number]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", FROZEN)
def test_task_intervals_agree_with_the_scalar_ones_on_the_same_histograms(name, pilots):
    counts = np.random.default_rng(3).multinomial(300, histograms(pilots)[0] / 300, size=100)
    lower, upper = limits(name, of_histograms(counts[None]), 60)
    resamples = [np.repeat(np.arange(11), histogram).tolist() for histogram in counts]
    assert (lower[0], upper[0]) == pytest.approx(plain.intervals(resamples, 10, 60)[name], abs=1e-12)


@pytest.mark.parametrize("name", FROZEN)
def test_task_intervals_agree_with_the_scalar_ones_on_the_same_tasks(name, pilots):
    times = draw_tasks(300, 4, np.random.default_rng(8))
    lower, upper = limits(name, with_tasks(pilots, times), 60)
    for number, pilot in enumerate(pilots):
        solved = pilot.sum(axis=0)
        resamples = [np.repeat(solved, often.astype(int)).tolist() for often in times[number]]
        expected = plain.intervals(resamples, 10, 60)[name]
        assert (lower[number], upper[number]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(("agents", "tasks"), [(10, 300), (60, 5000)])
def test_sums_over_tasks_are_exact_in_single_precision_and_where_it_ends(agents, tasks):
    # 5,000 tasks that nearly all of 60 agents solve: their squares add up to more than 2^24.
    pilots = np.random.default_rng(9).random((2, agents, tasks)) < 0.99
    times = draw_tasks(tasks, 2, np.random.default_rng(10), replicates=3)
    found = with_tasks(pilots, times)
    solved = pilots.sum(axis=1, dtype=np.int64)
    often = times.astype(np.int64)
    drawn = [[np.repeat(solved[p], often[p, r]) for r in range(3)] for p in range(2)]
    assert found.total.tolist() == [[int(one.sum()) for one in of] for of in drawn]
    assert found.squares.tolist() == [[int((one**2).sum()) for one in of] for of in drawn]
    assert found.none.tolist() == [[int((one == 0).sum()) for one in of] for of in drawn]


def test_drawn_tasks_are_as_many_as_there_are_and_come_up_once_on_average():
    times = draw_tasks(40, 3, np.random.default_rng(11), replicates=2000)
    assert times.shape == (3, 2000, 40)
    assert np.all(times.sum(axis=2) == 40)
    assert times.mean(axis=(0, 1)) == pytest.approx(1.0, abs=0.06)
    assert times.var(axis=(0, 1)) == pytest.approx(1 - 1 / 40, abs=0.08)


def test_pilots_are_resampled_independently_of_each_other(pilots):
    same = np.repeat(pilots[:1], 2, axis=0)
    one, other = with_tasks(same, draw_tasks(300, 2, np.random.default_rng(12), replicates=4000)).none
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.06


def test_both_ways_to_resample_tasks_have_one_law(pilots):
    shared = with_tasks(pilots, draw_tasks(300, 4, np.random.default_rng(13), replicates=4000))
    single = resample_tasks(histograms(pilots), np.random.default_rng(14), replicates=4000)
    for part in PARTS:
        one, other = getattr(shared, part), getattr(single, part)
        error = other.std(axis=1) * np.sqrt(2 / 4000)
        assert np.all(np.abs(one.mean(axis=1) - other.mean(axis=1)) < 4.5 * error), part
        assert one.std(axis=1) == pytest.approx(other.std(axis=1), rel=0.07)


def test_resampled_tasks_keep_their_number_and_vary_as_draws_with_replacement_do(pilots):
    counts = histograms(pilots)
    found = resample_tasks(counts, np.random.default_rng(4), replicates=4000)
    assert found.tasks == 300
    assert found.none.shape == (4, 4000)
    share = counts[:, 0] / 300
    assert found.none.mean(axis=1) == pytest.approx(counts[:, 0], abs=1.0)
    assert found.none.var(axis=1) == pytest.approx(300 * share * (1 - share), rel=0.1)


def test_resampled_agents_hold_about_two_thirds_of_the_pilot(pilots):
    # Some agent solves a task of its own in a pilot made for it; a resample keeps that task as often
    # as it keeps the agent.
    own = np.eye(10, dtype=bool)[None]
    found = resample_agents(own, np.random.default_rng(5), replicates=4000)
    assert np.mean(10 - found.none) == pytest.approx(10 * (1 - 0.9**10), abs=0.05)


def test_other_streams_give_other_resamples_and_the_same_stream_the_same(pilots):
    def drawn(seed: int) -> Array:
        rng = np.random.default_rng(seed)
        tasks, agents = resample_tasks(histograms(pilots), rng), resample_agents(pilots, rng)
        return np.stack([getattr(s, part) for s in (tasks, agents) for part in PARTS])

    assert np.array_equal(drawn(1), drawn(1))
    assert not np.array_equal(drawn(1), drawn(2))


def test_limits_are_items_2_and_97_of_100_without_interpolation():
    none = np.random.default_rng(6).permutation(100).astype(float)[None]
    zero = np.zeros_like(none)
    ranked = Statistics(agents=3, tasks=100, total=zero, squares=zero, none=none, once=zero, twice=zero)
    lower, upper = limits("pilot_only", ranked, 60)
    values = np.sort(at("pilot_only", ranked, np.array([60]))[0, :, 0])
    assert (lower[0], upper[0]) == (values[2], values[97])


def test_pilots_are_drawn_without_replacement_and_reach_every_agent():
    drawn = draw_pilots(12, 5, 200, np.random.default_rng(7))
    assert drawn.shape == (200, 5)
    assert all(len(set(row)) == 5 for row in drawn.tolist())
    assert np.bincount(drawn.ravel(), minlength=12) == pytest.approx(200 * 5 / 12, abs=35)
