"""Six interventions of each kind, each of which changes one thing, and a partner for every state."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product

import pytest

from predictive_credit.records import Intervention
from predictive_credit.studies.tabular.interventions import (
    INTERVENTIONS,
    KINDS,
    LADDER,
    NAMES,
    PARENT,
    RECIPES,
    assigned,
    rung,
)

SHARED = ["more_leaves", "fewer_leaves", "stronger_l2", "subsampling", "slower_learning"]
EVERY = [intervention for kind in KINDS for intervention in INTERVENTIONS[kind]]


def test_each_kind_has_six_in_their_order_and_shares_five():
    names = {kind: [intervention.name for intervention in INTERVENTIONS[kind]] for kind in KINDS}
    assert names == {
        "classification": [*SHARED, "class_weights"],
        "regression": [*SHARED, "robust_objective"],
    }
    assert sorted(NAMES) == sorted({*names["classification"], *names["regression"]})


@pytest.mark.parametrize("name", NAMES)
def test_each_intervention_changes_one_thing_of_the_parent(name: str):
    parent, child = asdict(PARENT), asdict(RECIPES[name])
    assert len([key for key in parent if parent[key] != child[key]]) == 1


def test_slower_learning_takes_as_many_steps_more_as_each_is_smaller():
    slow, fast = RECIPES["slower_learning"].pace, PARENT.pace
    assert slow.rate < fast.rate
    assert slow.rate * slow.trees == pytest.approx(fast.rate * fast.trees)


def test_tasks_form_pairs_in_their_order():
    met = [assigned("regression", position, 0.25).name for position in range(6)]
    assert met == [name for name in SHARED[:3] for _ in range(2)]


@pytest.mark.parametrize(
    ("budget", "wanted"), [(0.25, 0), (0.5, 1), (1.0, 2), (0.1, 0), (0.3, 1), (0.51, 2), (0.99, 2)]
)
def test_a_budget_counts_by_how_much_of_the_ladder_lies_below_it(budget: float, wanted: int):
    assert rung(budget) == wanted


def test_the_assignment_is_pair_plus_rung_modulo_six():
    assert [[assigned("regression", 2 * pair, b).name for b in LADDER] for pair in (0, 4, 5)] == [
        ["more_leaves", "fewer_leaves", "stronger_l2"],
        ["slower_learning", "robust_objective", "more_leaves"],
        ["robust_objective", "more_leaves", "fewer_leaves"],
    ]


@pytest.mark.parametrize(("kind", "budget"), list(product(KINDS, LADDER)))
def test_six_pairs_meet_each_intervention_once_at_every_budget(kind, budget):
    met = [assigned(kind, 2 * pair + 1, budget).name for pair in range(6)]
    assert sorted(met) == sorted(intervention.name for intervention in INTERVENTIONS[kind])


@pytest.mark.parametrize("intervention", EVERY, ids=lambda one: one.name)
def test_an_intervention_says_what_it_does_and_not_what_it_will_bring(intervention: Intervention):
    assert intervention.text.endswith(".")
    assert not {"increase", "decrease", "improve", "skill", "Skill"} & set(intervention.text.split())
