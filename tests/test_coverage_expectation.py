"""The printed rows against many sets of populations: what counts as outside, and what chance puts there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictive_credit import canonical, tables
from predictive_credit.coverage import expectation, published, summary
from predictive_credit.coverage.expectation import Judged, Judgement, Sets, expected, is_a_set, judge
from predictive_credit.coverage.published import Compared
from predictive_credit.coverage.scoring import pool
from predictive_credit.coverage.synthetic import Plan, run


@pytest.fixture(scope="module")
def first() -> tuple[Compared, ...]:
    return expectation.one_set(0)


@pytest.fixture(scope="module")
def sets(first: tuple[Compared, ...]) -> tuple[Sets, ...]:
    """200 sets around the printed numbers themselves, normal, with the SE that the bands were made of."""
    rng = np.random.default_rng(1)
    return tuple(
        like(one, one.printed + one.band / published.ERRORS * rng.standard_normal(200)) for one in first
    )


def like(one: Compared, means: np.ndarray) -> Sets:
    return Sets(
        scenario=one.scenario,
        pilot_agents=one.pilot_agents,
        forecaster=one.forecaster,
        scheme=one.scheme,
        measure=one.measure,
        means=tuple(means.tolist()),
    )


def shifted(compared: tuple[Compared, ...], errors: float) -> tuple[Compared, ...]:
    """Ours so many standard errors of one set above the printed numbers."""
    return tuple(replace(one, ours=one.printed + errors * one.band / published.ERRORS) for one in compared)


def of_run(found: Judged) -> tuple[Judgement, Judgement]:
    """What is said of a run, which `judge` always says."""
    assert found.one_mean is not None
    assert found.two_means is not None
    return found.one_mean, found.two_means


def test_every_printed_number_is_expected_once_and_of_a_set_as_large_as_the_printed_one(first, sets):
    assert len(first) == len(expected(sets)) == 76
    assert expectation.SIZES == (10, 20)
    assert is_a_set(pool(run(Plan(seed=1, scenarios=("rasch_moderate",), pilot_sizes=(10,), replicates=2))))
    few = Plan(seed=1, scenarios=("rasch_moderate",), pilot_sizes=(10,), replicates=2, populations=2)
    assert not is_a_set(pool(run(few)))


def test_a_set_does_not_share_its_draws_with_another_and_comes_out_again(first):
    assert expectation.one_set(0) == first
    other = {one.ours for one in expectation.one_set(1)}
    assert len(other & {one.ours for one in first if one.measure in published.JUDGED}) == 0


def test_drawn_sets_hold_the_numbers_of_each_in_their_order(first, monkeypatch):
    def one_set(number: int) -> tuple[Compared, ...]:
        return tuple(replace(one, ours=number + 0.1234567) for one in first)

    monkeypatch.setattr(expectation, "one_set", one_set)
    found = expectation.draw(3)
    assert [one.means for one in found] == [(0.123457, 1.123457, 2.123457)] * 76
    assert [(one.scenario, one.measure) for one in found] == [(one.scenario, one.measure) for one in first]


def test_the_distance_is_in_standard_errors_of_one_set(first):
    one = first[0]
    (near,) = expected([like(one, one.printed + np.array([-1.0, 0.0, 1.0]))])
    assert (near.expected, near.error, near.off) == pytest.approx((one.printed, 1.0, 0.0))
    assert near.near
    for errors, held in ((2.4, True), (-2.4, True), (2.6, False), (-2.6, False)):
        (found,) = expected([like(one, one.printed - errors + np.array([-1.0, 0.0, 1.0]))])
        assert found.off == pytest.approx(errors)
        assert found.near is held


def test_a_number_that_is_not_printed_has_no_expectation(first):
    with pytest.raises(KeyError):
        expected([replace(like(first[0], np.zeros(2)), forecaster="kish")])


def test_the_difference_of_two_sets_leaves_the_bands_of_one_as_often_as_normal_theory_says(first, sets):
    found = judge(sets, shifted(first, 0.0))
    one_mean, two_means = of_run(found)
    # P(|Z| > 2.5 / sqrt 2) and P(|Z| > 2.5), of 76 numbers that are independent here.
    assert one_mean.chance == pytest.approx(76 * 0.0771, rel=0.1)
    assert two_means.chance == pytest.approx(76 * 0.0124, rel=0.2)
    assert found.expectation.chance == pytest.approx(76 * 0.0124, rel=0.2)
    assert [one.outside for one in (one_mean, two_means, found.expectation)] == [0, 0, 0]
    assert one_mean.as_many == 1.0


def test_a_run_between_both_bands_is_outside_the_narrower_alone(first, sets):
    found = judge(sets, shifted(first, 3.0))
    one_mean, two_means = of_run(found)
    assert (one_mean.numbers, one_mean.outside, one_mean.as_many) == (76, 76, 0.0)
    assert (two_means.outside, found.expectation.outside) == (0, 0)
    assert of_run(judge(sets, shifted(first, 5.0)))[1].outside == 76


def test_a_simulator_of_another_make_is_far_from_the_printed_numbers(first, sets):
    far = tuple(replace(one, means=tuple(m + 10.0 for m in one.means)) for one in sets)
    found = judge(far, shifted(first, 0.0)).expectation
    assert (found.outside, found.as_many) == (76, 0.0)


def test_only_the_measures_that_are_asked_for_are_judged(first, sets):
    one_mean, _ = of_run(judge(sets, shifted(first, 3.0), measures=published.JUDGED))
    assert one_mean.numbers == one_mean.outside == 44
    with pytest.raises(KeyError):
        judge(sets, first[1:])


def test_sets_come_back_from_their_file(sets, tmp_path):
    tables.write_bytes(tmp_path / "sets.jsonl", tables.encode_lines(sets))
    assert tables.read_records(tmp_path / "sets.jsonl", Sets) == sets


def test_the_limits_say_what_chance_does_and_which_numbers_it_does_not_explain(first, sets):
    by = summary.judged(sets, shifted(first, 3.0), whole=True)
    own = " ".join(summary.limits((), (), shifted(first, 3.0), (), expected(sets), by))
    assert "76 of 76 published numbers lie outside their bands, 44 of them bias, MAE or width" in own
    assert "at least 76 in 0 % of the pairs" in own
    assert "From the mean of many sets" not in own
    one = next(n for n, each in enumerate(sets) if each.measure == "coverage")
    moved = list(sets)
    moved[one] = replace(sets[one], means=tuple(m + 1.0 for m in sets[one].means))
    by = summary.judged(moved, shifted(first, 0.0), whole=True)
    said = " ".join(summary.limits((), (), shifted(first, 0.0), (), expected(moved), by))
    assert "outside their bands" not in said
    assert "1 of 76 published numbers lie more than 2.5 standard errors of one set, 0 of them bias" in said
    assert "coverage of beta binomial/task in rasch moderate at 10 agents (" in said


def test_a_run_of_another_size_is_not_judged_by_sets_of_six(first, sets):
    by = summary.judged(sets, first, whole=False)
    assert {(one.one_mean, one.two_means) for one in by.values()} == {(None, None)}
    assert summary.judged((), first, whole=True) == {}
    assert canonical.plain(by)["all"]["expectation"]["numbers"] == 76
