"""Populations with known coverage: the four scenarios, those outside them, and their generators."""

from __future__ import annotations

import numpy as np
import pytest

from predictive_credit.coverage.populations import ALL, OUTSIDE, SCENARIOS, Scenario, draw, population


def truth(seed: int, scenario: str, number: int) -> float:
    return float(population(seed, scenario, number).any(axis=0).mean())


@pytest.mark.parametrize("scenario", sorted(ALL))
def test_every_scenario_gives_60_agents_and_300_tasks(scenario):
    assert population(1, scenario, 0).shape == (60, 300)


@pytest.mark.parametrize(
    ("scenario", "printed"),
    [
        ("rasch_moderate", 0.983),
        ("rasch_hard_tail", 0.887),
        ("rasch_unsolvable", 0.883),
        ("family_clustered", 0.985),
    ],
)
def test_scenarios_have_the_coverage_they_were_fitted_to(scenario, printed):
    found = [truth(1, scenario, number) for number in range(30)]
    assert np.mean(found) == pytest.approx(printed, abs=3 * np.std(found) / np.sqrt(30))


def test_a_population_is_the_same_again_and_another_in_every_other_stream():
    first = population(1, "rasch_moderate", 0)
    assert np.array_equal(first, population(1, "rasch_moderate", 0))
    others = [population(2, "rasch_moderate", 0), population(1, "rasch_moderate", 1)]
    assert not any(np.array_equal(first, other) for other in others)


def test_exactly_the_stated_share_of_tasks_is_unsolvable():
    # Abilities so high that whoever can solve a task does.
    easy = Scenario(ability=50.0, ability_sd=0.0, difficulty_sd=1.0, unsolvable=0.10)
    for seed in range(3):
        solved = draw(easy, np.random.default_rng(seed))
        assert np.count_nonzero(~solved.any(axis=0)) == 30
        assert solved[:, solved.any(axis=0)].all()


def test_a_shock_makes_a_whole_family_fail_and_no_other():
    shocked = Scenario(ability=50.0, ability_sd=0.0, difficulty_sd=1.0, families=6, shock=0.20)
    families = draw(shocked, np.random.default_rng(0)).reshape(6, 10, 300)
    assert np.array_equal(families.any(axis=1), families.all(axis=1))
    assert families.all(axis=1).mean() == pytest.approx(0.80, abs=0.03)


def test_clusters_of_difficulty_leave_few_tasks_between_them():
    clusters = Scenario(ability=0.0, ability_sd=0.0, difficulty_sd=0.0, difficulty="clusters", gap=4.0)
    rates = draw(clusters, np.random.default_rng(0), agents=400).mean(axis=0)
    assert np.mean((rates > 0.2) & (rates < 0.8)) < 0.02
    assert np.mean(rates > 0.5) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize("scenario", sorted(OUTSIDE))
def test_a_population_outside_the_four_differs_from_all_of_them_in_its_description(scenario):
    assert OUTSIDE[scenario] not in SCENARIOS.values()


def test_skewed_abilities_keep_the_mean_rate_but_have_a_long_upper_tail():
    plain = Scenario(ability=-2.0, ability_sd=1.0, difficulty_sd=0.0)
    skewed = Scenario(ability=-2.0, ability_sd=1.0, difficulty_sd=0.0, skewed=True)
    rng = np.random.default_rng(0)
    rates = [draw(s, rng, agents=2000, tasks=400).mean(axis=1) for s in (plain, skewed)]
    logits = [np.log((r + 0.001) / (1.001 - r)) for r in rates]
    assert np.mean(logits[1]) == pytest.approx(np.mean(logits[0]), abs=0.1)
    assert np.quantile(logits[1], 0.999) > np.quantile(logits[0], 0.999) + 1


def test_an_unknown_scenario_and_uneven_families_are_refused():
    with pytest.raises(ValueError, match="no scenario is called easy; there are rasch_moderate"):
        population(1, "easy", 0)
    with pytest.raises(ValueError, match="6 equal families cannot be made of 50 agents"):
        draw(SCENARIOS["family_clustered"], np.random.default_rng(0), agents=50)
