"""The tabular burn-in: every intervention on tasks that the study does not use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from predictive_credit import canonical
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome
from predictive_credit.studies.tabular import states
from predictive_credit.studies.tabular.burn_in import burn_in
from predictive_credit.studies.tabular.execute import execute
from predictive_credit.studies.tabular.interventions import NAMES
from predictive_credit.studies.workers import HERE
from tests import small_tasks

TASKS = small_tasks.made(2)


def run(exclude: tuple[str, ...] = (), **changes: object) -> tuple[tuple[Outcome, ...], BurnIn]:
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


@pytest.mark.parametrize("written", ["R0", "r_0", "r-0"])
def test_a_table_of_the_study_is_left_out_however_another_pool_writes_it(written: str):
    assert run(exclude=(written, "not here"))[1].tasks == ("C0", "C1", "R1")


def test_a_pool_without_an_unused_task_is_one_sentence():
    with pytest.raises(BadConfig, match="none of the pool's 4 burn-in tasks is left beside the study's own"):
        run(exclude=("C0", "C1", "R0", "R1"))


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
