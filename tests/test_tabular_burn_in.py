"""The tabular burn-in: every intervention on tasks that the study does not use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predictive_credit import canonical
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome
from predictive_credit.streams import stream
from predictive_credit.studies.tabular import states
from predictive_credit.studies.tabular.burn_in import burn_in, unused_tasks
from predictive_credit.studies.tabular.execute import execute
from predictive_credit.studies.tabular.interventions import NAMES
from predictive_credit.studies.tabular.pool import Task
from predictive_credit.studies.workers import HERE
from tests import small_tasks

TASKS = small_tasks.made(2)


def run(exclude: tuple[Task, ...] = (), **changes: object) -> tuple[tuple[Outcome, ...], BurnIn]:
    config = small_tasks.config(**({"budgets": (1.0,)} | changes))
    return burn_in(TASKS, config, pool="small", exclude=exclude, seed=1, execution=HERE)


def test_every_intervention_of_its_kind_runs_on_every_task_and_budget_with_one_seed():
    outcomes, summary = run(budgets=(0.5, 1.0))
    assert summary.name == "small"
    assert summary.tasks == ("C0", "C1", "R0", "R1")
    known = summary.targets["skill"]
    assert len(outcomes) == 4 * 2 * 6 == known.n_outcomes + known.n_undefined
    assert outcomes[0].state_id == "burn-in/C0/0.5/1/class_weights"
    assert [o.state_id for o in outcomes] == sorted({o.state_id for o in outcomes})


def test_what_kinds_share_is_summed_over_both_and_the_sixth_over_its_own():
    counts = {name: known["n"] for name, known in run()[1].targets["skill"].by_intervention.items()}
    assert set(counts) == set(NAMES)
    assert counts["more_leaves"] == 4
    assert counts["class_weights"] == counts["robust_objective"] == 2


def test_the_burn_in_is_the_same_at_every_number_of_study_tasks():
    assert canonical.encode(run(n_tasks=2)) == canonical.encode(run(n_tasks=12))


def left(*exclude: Task, tasks: tuple[Task, ...] = TASKS) -> list[str]:
    """The names of the tables that the burn-in may use beside the study's own."""
    return [task.name for task in unused_tasks(tasks, exclude, "small")]


OTHER = small_tasks.task("not here", "regression")


@pytest.mark.parametrize("written", ["R0", "r_0", "r-0", "R0.2", "r-0.13"])
def test_a_table_of_the_study_is_left_out_however_another_pool_writes_it(written: str):
    assert left(replace(OTHER, name=written), OTHER) == ["C0", "C1", "R1"]
    assert run(exclude=(replace(OTHER, name=written),))[1].tasks == ("C0", "C1", "R1")


def test_names_that_only_begin_alike_are_two_tables():
    assert left(replace(OTHER, name="R01"), replace(OTHER, name="R0.x")) == ["C0", "C1", "R0", "R1"]


def test_a_table_of_the_study_is_left_out_under_another_name_and_in_another_order():
    turned = stream(1, "turned").permutation(len(TASKS[2].y))
    renamed = replace(TASKS[2], name="mine", y=TASKS[2].y[turned], x=TASKS[2].x[turned])
    assert left(renamed) == ["C0", "C1", "R1"]
    coded = replace(TASKS[1], name="mine", y=2 - TASKS[1].y)  # the classes in another order
    assert left(coded) == ["C0", "R0", "R1"]
    other = TASKS[2].y.copy()
    other[0] += 1e-9
    assert left(replace(renamed, y=other)) == ["C0", "C1", "R0", "R1"]


def test_one_file_listed_twice_is_one_table_whatever_rows_of_it_stay():
    twice = (replace(TASKS[2], sha256="a" * 64), replace(TASKS[3], sha256="b" * 64))
    assert left(replace(OTHER, sha256="a" * 64), tasks=twice) == ["R1"]
    assert left(OTHER) == ["C0", "C1", "R0", "R1"]


def test_a_pool_without_an_unused_task_is_one_sentence():
    with pytest.raises(
        BadConfig, match="each of the 4 burn-in tables of the pool small is one of the study's"
    ):
        run(exclude=TASKS)


def test_a_pool_without_a_burn_in_says_how_to_have_one():
    said = r"the pool small holds no table for the burn-in; mark one of its tables burn_in: true, or take"
    with pytest.raises(BadConfig, match=said):
        left(tasks=())


def test_the_burn_in_says_what_the_study_would_have_said_of_that_task():
    """Same split stream, same models: only the tasks differ between study and burn-in."""
    config = small_tasks.config(budgets=(1.0,), seeds=(1,))
    there = states.splits(TASKS, config, seed=1)
    made = states.states(TASKS, config, there, study="tabular", execution=HERE)
    known = {outcome.state_id: outcome.value for outcome in run(seeds=(1,))[0]}
    for state, outcome in zip(made, execute(TASKS, made, there, execution=HERE), strict=True):
        tail = state.id.partition("/")[2]
        assert known[f"burn-in/{tail}/{state.intervention.name}"] == outcome.value


def test_undefined_outcomes_are_counted_and_stay_rows():
    constant = replace(TASKS[2], y=TASKS[2].y * 0)
    config = small_tasks.config()
    outcomes, summary = burn_in(
        (TASKS[0], constant), config, pool="small", exclude=(), seed=1, execution=HERE
    )
    assert len(outcomes) == 2 * 2 * 6
    assert summary.targets["skill"].n_undefined == 2 * 6
    assert "robust_objective" not in summary.targets["skill"].by_intervention
