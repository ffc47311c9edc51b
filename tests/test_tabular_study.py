"""The declared tabular study: its counts, its donors, what its rule is read from, and its textbook."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from predictive_credit.config import OpenMLPool, OwnTable, Pool, TablesPool
from predictive_credit.contrasts import Contrast
from predictive_credit.errors import BadConfig
from predictive_credit.records import Context, State
from predictive_credit.sources import pools
from predictive_credit.studies.study import Findings, Formation, Setting
from predictive_credit.studies.tabular import TABULAR, decide, rule, states, suite, textbook
from predictive_credit.studies.tabular.donors import donors, task_donors
from predictive_credit.studies.tabular.interventions import INTERVENTIONS, KINDS, NAMES
from predictive_credit.studies.tabular.pool import Kind
from predictive_credit.studies.workers import HERE
from tests import small_tasks

FULL = small_tasks.config(n_tasks=12, budgets=(0.25, 0.5, 1.0))


def made(n_tasks: int, **changes: object) -> tuple[State, ...]:
    """States without their models: donors read ids, clusters and interventions alone."""
    tasks = small_tasks.made(n_tasks)
    config = small_tasks.config(n_tasks=n_tasks, **changes)
    there = states.splits(tasks, config, seed=1)
    cells = states.cells(tasks, config, there)
    return tuple(sorted((states.state("tabular", cell, None) for cell in cells), key=lambda s: s.id))


def test_the_full_scale_is_144_states_and_2304_units():
    counted = suite.count(FULL, {})
    assert counted.states == TABULAR.n_states == 144
    assert (counted.sources, counted.extractions, counted.forecasts) == (288, 288, 1728)
    assert counted.units == TABULAR.n_units == 2304
    assert counted.design == "24 tasks x 3 budgets x 2 seeds"


def table(kind: str, *, burn_in: bool = False) -> OwnTable:
    return OwnTable(path="t.csv", sha256=None, kind=kind, target="y", burn_in=burn_in)  # type: ignore[arg-type]  # pydantic checks it


OWN = TablesPool(
    kind="tables", watch="t.csv", max_rows=100,
    tables={
        "a": table("classification"), "b": table("classification"), "c": table("classification"),
        "d": table("regression", burn_in=True),
    },
)  # fmt: skip
NAMED = OpenMLPool(
    kind="openml", watch="x", suites={"classification": 99}, salt="s", tasks=(31, 361237, 361249),
    tasks_of_each_kind=12, burn_in_tasks=6, min_rows=500, max_rows=12000, max_features=100, max_classes=12,
)  # fmt: skip


BOTH: Mapping[Kind, int] = {"classification": 99, "regression": 353}


@pytest.mark.parametrize(
    ("pool", "tasks"),
    [
        (OWN, 3),
        (NAMED, 3),
        (replace(NAMED, tasks=None, tasks_of_each_kind=5), 5),
        (replace(NAMED, tasks=None, tasks_of_each_kind=5, suites=BOTH), 10),
    ],
)
def test_a_smaller_pool_plans_fewer_tasks(pool: Pool, tasks: int):
    assert suite.count(FULL, {"small": pool}).states == tasks * 3 * 2


@pytest.mark.parametrize("pool", [OWN, NAMED])
def test_tasks_that_the_pool_names_are_all_planned_whatever_the_scale(pool: Pool):
    assert suite.count(small_tasks.config(n_tasks=1), {"small": pool}).states == 3 * 2 * 2


def test_named_tasks_are_counted_as_named():
    assert suite.count(small_tasks.config(tasks=("a", "b", "c")), {"small": OWN}).states == 3 * 2 * 2


def test_a_configuration_with_an_unknown_key_or_an_empty_list_is_refused():
    with pytest.raises(ValidationError, match="endpoints"):
        small_tasks.config(endpoints=3)
    assert small_tasks.config(tasks=()).lists()["tasks"] == []
    assert small_tasks.config(budgets=(0.5, 0.5)).lists()["budgets"] == ["0.5", "0.5"]


def test_every_state_of_the_full_scale_has_a_partner_of_another_task():
    population = made(12, budgets=(0.25, 0.5, 1.0))
    by_id = {state.id: state for state in population}
    found = donors(FULL, population)
    assert set(found) == {Context.DONOR, Context.OTHER_TASK}
    assert found[Context.DONOR].keys() == found[Context.OTHER_TASK].keys() == by_id.keys()
    assert len(by_id) == 144
    for state in population:
        seed, other = (by_id[found[context][state.id]] for context in (Context.DONOR, Context.OTHER_TASK))
        assert (seed.cell, seed.intervention) == (state.cell, state.intervention)
        assert seed.seed != state.seed
        assert other.task != state.task
        assert (other.cluster[0], other.cluster[2]) == (state.cluster[0], state.cluster[2])
        assert other.intervention == state.intervention


def test_a_pair_lends_to_each_other():
    pair = task_donors(made(2))
    assert pair["tabular/C0/1/2"] == "tabular/C1/1/2"
    assert pair["tabular/C1/1/2"] == "tabular/C0/1/2"


def test_a_last_task_without_a_pair_borrows_from_another_budget():
    population = made(9, budgets=(0.25, 0.5, 1.0))
    by_id = {state.id: state for state in population}
    found = task_donors(population)
    for state in population:
        donor = by_id[found[state.id]]
        assert donor.task != state.task
        assert (donor.cluster[0], donor.intervention.name, donor.seed) == (
            state.cluster[0], state.intervention.name, state.seed,
        )  # fmt: skip
        assert (donor.budget == state.budget) == (state.task not in ("C8", "R8"))
    assert found["tabular/C8/0.25/1"] == "tabular/C6/0.5/1"


def test_of_three_tasks_with_one_budget_in_common_each_borrows_at_its_own():
    population = [replace(s, intervention=made(2)[0].intervention) for s in made(3) if s.task[0] == "R"]
    found = task_donors(population)
    assert [found[f"tabular/R{k}/0.5/1"] for k in range(3)] == [f"tabular/R{k}/0.5/1" for k in (1, 2, 0)]


def test_donors_are_given_for_the_contexts_asked_alone():
    assert donors(small_tasks.config(contexts=("D", "M", "N")), made(2)) == {}
    assert set(donors(small_tasks.config(contexts=("D", "T")), made(2))) == {Context.OTHER_TASK}


@pytest.mark.parametrize(
    ("n_tasks", "first"), [(1, "tabular/C0/0.5/1"), (3, "tabular/C2/1/1"), (5, "tabular/C4/1/1")]
)
def test_a_state_without_a_partner_is_one_sentence(n_tasks: int, first: str):
    said = (
        f"{first} is the only classification state with its intervention and seed, so no other task can "
        "lend it a card in context T; give the study an even number of classification tasks, or leave T "
        "out of contexts"
    )
    with pytest.raises(BadConfig, match=re.escape(said)):
        task_donors(made(n_tasks))


def filed(folder: Path, *, n: int, is_named: bool, burn_in: str | None = None) -> Setting:
    """The setting of a study on a features folder of so many regressions and a burn-in table.

    burn_in: the table whose rows the burn-in's file holds; its own by default.
    """
    folder.mkdir(exist_ok=True)
    written = {f"t{k}": folder / f"t{k}.csv" for k in range(n + 1)}
    for name, path in written.items():
        small = small_tasks.task(burn_in if burn_in and name == f"t{n}" else name, "regression")
        lines = [f"{a},{b:.5f}" for a, b in zip(small.x[:, 0], small.y, strict=True)]
        path.write_text("\n".join(["a,y", *lines]))
    pool = TablesPool(
        kind="tables", watch="x", max_rows=1000,
        tables={
            name: OwnTable(path=str(path), kind="regression", target="y", burn_in=name == f"t{n}")
            for name, path in written.items()
        },
    )  # fmt: skip
    pools.fetch(pool, folder / "raw")
    counted = suite.features(pool, folder / "raw", folder / "features", HERE)
    assert counted["said"] == f"{n} tasks for the study, 1 for the burn-in"
    if not is_named:  # as a pool with a lottery would have filed them
        file = folder / "features" / "tasks.jsonl"
        file.write_text(file.read_text().replace('"is_drawn":false', '"is_drawn":true'))
    return Setting(
        name="tabular", config=small_tasks.config(contexts=("D", "M", "S"), budgets=(1.0,)), seed=1,
        execution=HERE, features=folder / "features", burn_in=folder / "features",
    )  # fmt: skip


@pytest.mark.parametrize(("is_named", "tasks"), [(True, ["t0", "t1", "t2"]), (False, ["t0", "t1"])])
def test_named_tasks_are_all_used_and_a_lottery_gives_its_first(
    tmp_path: Path, is_named: bool, tasks: list[str]
):
    setting = filed(tmp_path, n=3, is_named=is_named)
    found = suite.states(setting)
    assert sorted({state.task for state in found}) == tasks
    assert len(suite.execute(setting, found)) == len(found) == 2 * len(tasks)


def test_one_table_listed_twice_is_no_burn_in(tmp_path: Path):
    setting = filed(tmp_path, n=2, is_named=True)
    assert suite.burn_in(setting, suite.states(setting))[1].tasks == ("t2",)
    twice = filed(tmp_path / "twice", n=2, is_named=True, burn_in="t1")
    with pytest.raises(BadConfig, match="each of the 1 burn-in tables of the pool small is one of the study"):
        suite.burn_in(twice, suite.states(twice))


def test_states_without_a_donor_are_refused_where_they_are_made(tmp_path: Path):
    setting = filed(tmp_path, n=3, is_named=True)
    asked = replace(setting, config=small_tasks.config(budgets=(1.0,)))
    with pytest.raises(BadConfig, match="tabular/t2/1/1 is the only regression state with its intervention"):
        suite.states(asked)


def test_the_contexts_show_what_the_study_says_they_show():
    shown = {str(c): s and (s.source, s.donor, s.form) for c, s in TABULAR.contexts.items()}
    assert shown == {
        "D": None,
        "M": ("elicited", False, "card"),
        "S": ("elicited", True, "card"),
        "O": ("ordinary", False, "card"),
        "T": ("elicited", True, "card"),
        "N": ("elicited", False, "numbers"),
    }


def test_a_states_place_is_as_deep_as_the_bootstrap():
    assert [(level.name, level.is_drawn) for level in TABULAR.levels] == [
        ("kind", False), ("task", True), ("state", False),
    ]  # fmt: skip
    assert all(len(state.cluster) == len(TABULAR.levels) for state in made(2))


def test_the_rule_reads_formation_and_says_no_where_nothing_was_found():
    empty: dict[str, dict[str, dict[str, Contrast]]] = {"skill": {"point_error": {}, "drift": {}}}
    for formation, seen in ((None, None), (Formation(difference=0.7, lower=0.6), 0.6)):
        decision = decide("mine", Findings(contrasts=empty, formation=formation))
        assert (decision.study, decision.rule, decision.status) == ("mine", rule.NAME, "confirmation_no_go")
        assert decision.gates[0].seen == seen


def test_the_textbook_knows_every_intervention():
    assert set(textbook.PLAYS) == set(NAMES)
    assert set(NAMES) == {intervention.name for kind in KINDS for intervention in INTERVENTIONS[kind]}


@pytest.mark.parametrize(
    ("skill", "factor"), [(None, 1.0), (0.45, 1.0), (0.99, 0.5), (-3.0, 2.0), (0.34, 1.2)]
)
def test_headroom_is_what_the_parent_leaves_within_limits(skill: float | None, factor: float):
    assert textbook.headroom({"cv_skill": skill}) == pytest.approx(factor)


def test_the_textbook_tells_the_facts_that_are_known():
    facts = {"n_train": 1200, "n_features": 8, "largest_class": 0.651, "cv_skill": 0.2345}
    assert textbook.here(facts) == (
        "1,200 training rows, 8 columns, 65.1 % in the largest class, cross-validated skill 0.234"
    )
    assert textbook.here({"n_train": 90, "largest_class": None, "cv_skill": None}) == "90 training rows"
    assert textbook.here({}) == ""
