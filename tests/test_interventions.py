"""Six interventions, each of which changes one thing."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from predictive_credit.studies.molecular.interventions import INTERVENTIONS, PARENT, RECIPES, assigned

ORDER = ["class_balanced", "add_descriptors", "radius_3", "bits_2048", "stronger_l2", "weaker_l2"]


def test_the_closed_list_has_six_in_their_order_and_a_recipe_each():
    assert [intervention.name for intervention in INTERVENTIONS] == ORDER
    assert list(RECIPES) == ORDER


@pytest.mark.parametrize("name", ORDER)
def test_each_intervention_changes_one_thing_of_the_parent(name: str):
    parent, child = asdict(PARENT), asdict(RECIPES[name])
    assert len([key for key in parent if parent[key] != child[key]]) == 1


def test_the_assignment_is_endpoint_plus_budget_modulo_six():
    assert [[assigned(i, j).name for j in range(3)] for i in (0, 5, 11)] == [
        ["class_balanced", "add_descriptors", "radius_3"],
        ["weaker_l2", "class_balanced", "add_descriptors"],
        ["weaker_l2", "class_balanced", "add_descriptors"],
    ]


def test_six_endpoints_meet_each_intervention_once_at_every_budget():
    for budget in range(3):
        assert sorted(assigned(endpoint, budget).name for endpoint in range(6)) == sorted(ORDER)


@pytest.mark.parametrize("intervention", INTERVENTIONS, ids=lambda one: one.name)
def test_an_intervention_says_what_it_does_and_not_what_it_will_bring(intervention):
    assert intervention.text.endswith(".")
    assert not {"increase", "decrease", "improve", "AUC"} & set(intervention.text.split())
