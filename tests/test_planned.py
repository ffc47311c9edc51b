"""What each study says of its rule and population beside them, held against both."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from predictive_credit import compose, tables
from predictive_credit.errors import BadSource
from predictive_credit.records import State
from predictive_credit.stages import features, fetch, states
from predictive_credit.stages.paths import Project
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.asks import Ask
from predictive_credit.studies.controlled import rule as controlled_rule
from predictive_credit.studies.molecular import rule as molecular_rule
from predictive_credit.studies.planned import PLANS
from predictive_credit.studies.table import rule as table_rule
from predictive_credit.studies.tabular import rule as tabular_rule
from tests.conftest import ROOT
from tests.small_studies import EXAMPLE, project

TABLE = ("studies=table", f"pools.own.path={EXAMPLE / 'example_states.csv'}")


def gates(name: str, targets: tuple[str, ...]) -> list[tuple[str, Ask]]:
    plan = PLANS[name]
    return [(ask.gate.format(target=target), ask) for target in targets for ask in plan.asks]


def test_every_prospective_study_has_a_plan():
    assert PLANS.keys() == {name for name, study in STUDIES.items() if study.timing == "prospective"}


def test_the_gates_of_a_plan_are_those_of_the_rule():
    of_rule = {
        "controlled": controlled_rule.decide("s", {}).gates,
        "molecular": molecular_rule.decide("s", {}).gates,
        "tabular": tabular_rule.decide("s", formation=None, point={}, drift={}).gates,
        "table": table_rule.decide("s", {}, ("y", "z")).gates,
    }
    targets = {"controlled": controlled_rule.TARGETS, "table": ("y", "z")}
    for name, found in of_rule.items():
        planned = [gate for gate, _ in gates(name, targets.get(name, ("t",)))]
        told = [
            gate.name for gate in found if "upper" not in gate.name and gate.name not in PLANS[name].untold
        ]
        assert planned == told


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_asks_what_its_rule_s_gates_ask(name):
    study, plan = STUDIES[name], PLANS[name]
    for ask in plan.asks:
        assert study.is_primary(ask.measure, ask.pair)
    margins = {ask.margin for ask in plan.asks if ask.margin is not None}
    assert margins == ({study.rule.MARGIN} if hasattr(study.rule, "MARGIN") else set())
    assert {ask.harm for ask in plan.asks} == {name == "molecular"}


@pytest.mark.parametrize(
    "words",
    [
        ("scale=full",),
        ("scale=quick",),
        ("scale=full", "tables=openml"),
        ("studies.tabular.tasks=[spambase,auto,wage]", "studies.controlled.seeds=[3,4]"),
        ("pool=tox21", "studies.molecular.endpoints=[NR-AhR,SR-p53]", "studies.molecular.budgets=[0.5]"),
        TABLE,
    ],
)
def test_a_plan_has_as_many_states_as_the_study_counts(words):
    params = study_params.parse(compose.compose(ROOT, words))
    for name, chosen in params.studies.items():
        study = STUDIES[chosen.rule].configured(chosen)
        paths = PLANS[chosen.rule].paths(chosen, params.pools)
        assert len(set(paths)) == len(paths) == study_params.counts(params, name).states
        assert {len(path) for path in paths} == {len(study.levels)}


def test_named_tables_have_their_own_kinds():
    params = study_params.parse(compose.compose(ROOT, ["studies.tabular.tasks=[spambase,auto,wage]"]))
    kinds = [path[0] for path in PLANS["tabular"].paths(params.studies["tabular"], params.pools)]
    assert sorted(set(kinds)) == ["classification", "regression"]
    assert kinds.count("regression") == 2 * kinds.count("classification")


def test_a_plan_is_the_tree_that_the_states_then_stand_in(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made, params = project(tmp_path / "p")
    for name, chosen in params.studies.items():
        for stage in (fetch, features):
            stage.run(made, params, chosen.pool)
        states.run(made, params, name)
        found = [state.cluster for state in states_of(made, name)]
        assert shape(PLANS[chosen.rule].paths(chosen, params.pools)) == shape(found)


def test_a_user_s_file_that_is_not_there_is_refused(tmp_path):
    away = tmp_path / "states.csv"
    shutil.copy(EXAMPLE / "example_states.csv", away)
    params = study_params.parse(compose.compose(ROOT, ["studies=table", f"pools.own.path={away}"]))
    away.unlink()
    with pytest.raises(BadSource, match=r"states\.csv"):
        PLANS["table"].paths(params.studies["table"], params.pools)


def states_of(made: Project, name: str) -> tuple[State, ...]:
    return tables.read_records(made.study(name).states, State)


def shape(paths: Sequence[Sequence[str]]) -> Any:
    """The tree without its names: how many children each cluster has, sorted at every level."""
    if not paths or not paths[0]:
        return len(paths)
    below: dict[str, list[list[str]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).append(rest)
    return sorted((shape(rest) for rest in below.values()), key=repr)


def test_a_margin_belongs_to_what_asks_for_one():
    with pytest.raises(ValueError, match="a margin with the margin None"):
        Ask(gate="g", measure="drift", pair="D-M", kind="margin")
    with pytest.raises(ValueError, match=r"a bound with the margin 0\.1"):
        Ask(gate="g", measure="drift", pair="D-M", kind="bound", margin=0.1)


def test_a_gate_can_hold_beyond_its_null_alone():
    bound = Ask(gate="g", measure="drift", pair="D-M", kind="bound")
    margin = Ask(gate="g", measure="drift", pair="D-M", kind="margin", margin=0.1)
    inside = Ask(gate="g", measure="drift", pair="D-M", kind="equivalence", margin=0.1)
    assert [ask.can_hold(0.05) for ask in (bound, margin, inside)] == [True, False, True]
    assert [ask.can_hold(0.2) for ask in (bound, margin, inside)] == [True, True, False]
    assert not bound.can_hold(0.0)
    assert [ask.null for ask in (bound, margin, inside)] == [0.0, 0.0, 0.1]
