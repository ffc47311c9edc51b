"""Six interventions, each of which changes one thing, and a design that is balanced at twenty seeds."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import pytest

from predictive_credit.studies.controlled.interventions import (
    INTERVENTIONS,
    PARENT,
    RECIPES,
    TARGETS,
    assigned,
)
from predictive_credit.studies.controlled.states import condition

ORDER = [
    "quadratic_features", "stronger_l2", "weaker_l2", "class_weights", "select_features", "clip_features",
]  # fmt: skip


def test_the_closed_list_has_six_in_their_order_and_a_recipe_each():
    assert [intervention.name for intervention in INTERVENTIONS] == ORDER
    assert list(RECIPES) == ORDER


@pytest.mark.parametrize("name", ORDER)
def test_each_intervention_changes_one_thing_of_the_parent(name: str):
    parent, child = asdict(PARENT), asdict(RECIPES[name])
    assert len([key for key in parent if parent[key] != child[key]]) == 1


def test_the_assignment_moves_on_with_every_second_seed():
    assert [assigned(0, j).name for j in range(6)] == [name for name in ORDER[:3] for _ in range(2)]
    assert [assigned(i, 3).name for i in range(6)] == [*ORDER[1:], ORDER[0]]


def test_at_twenty_seeds_every_intervention_comes_ten_times_under_each_condition():
    seen = Counter((assigned(i, j).name, condition(j)) for i in range(6) for j in range(20))
    assert seen == {(name, source): 10 for name in ORDER for source in ("elicited", "ordinary")}


def test_at_twenty_seeds_every_regime_meets_every_intervention_under_both_conditions():
    for regime in range(6):
        met = {(assigned(regime, j).name, condition(j)) for j in range(20)}
        assert len(met) == 12


@pytest.mark.parametrize("intervention", INTERVENTIONS, ids=lambda one: one.name)
def test_an_intervention_says_what_it_does_and_not_what_it_will_bring(intervention):
    assert intervention.text.endswith(".")
    assert not {"increase", "decrease", "improve", "accuracy", "log loss"} & set(intervention.text.split())


def test_the_two_targets_are_asked_in_this_order_and_in_their_units():
    assert [(target.name, target.unit) for target in TARGETS] == [
        ("accuracy_pp", "percentage points"),
        ("log_loss", "nats"),
    ]
