"""Outcomes are those of the state's own rows and intervention, whoever computes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from predictive_credit import canonical
from predictive_credit.config import Execution
from predictive_credit.records import State
from predictive_credit.studies.tabular import fitting, states
from predictive_credit.studies.tabular.execute import execute
from predictive_credit.studies.tabular.states import Splits
from predictive_credit.studies.workers import HERE
from tests import small_tasks

TASKS = small_tasks.made()


@pytest.fixture(scope="module")
def splits() -> Splits:
    return states.splits(TASKS, small_tasks.config(), seed=1)


@pytest.fixture(scope="module")
def made(splits: Splits) -> tuple[State, ...]:
    return small_tasks.population(TASKS, splits)


def test_an_outcome_is_the_change_on_the_states_own_rows(made: tuple[State, ...], splits: Splits):
    by_name = {task.name: task for task in TASKS}
    outcomes = execute(TASKS, made, splits, execution=HERE)
    for state, outcome in zip(made, outcomes, strict=True):
        split = splits[state.task, state.seed or 0]
        rows = split.train[: round((state.budget or 0) * len(split.train))]
        trial = fitting.trial(by_name[state.task], rows, split.test, (state.intervention.name,))
        assert outcome.id == f"{state.id}/skill"
        assert (outcome.value,) == fitting.changes(trial)


def test_outcomes_differ_between_states_and_lie_within_the_bounds(made: tuple[State, ...], splits: Splits):
    values = [outcome.value or 0.0 for outcome in execute(TASKS, made, splits, execution=HERE)]
    assert len(set(values)) == len(values)
    assert max(map(abs, values)) < 2


def test_two_processes_give_the_same_outcomes(made: tuple[State, ...], splits: Splits):
    two = Execution(backend="loky", n_jobs=2, address=None)
    assert canonical.encode(execute(TASKS, made, splits, execution=two)) == canonical.encode(
        execute(TASKS, made, splits, execution=HERE)
    )


def test_a_state_without_a_skill_keeps_its_row_and_its_reason(made: tuple[State, ...], splits: Splits):
    flat = tuple(replace(task, y=np.zeros(len(task.y))) if task.name == "R0" else task for task in TASKS)
    outcomes = execute(flat, made, splits, execution=HERE)
    assert [o.state_id for o in outcomes] == [s.id for s in made]
    undefined = [o for o in outcomes if o.value is None]
    assert {o.state_id.split("/")[1] for o in undefined} == {"R0"}
    assert all("constant training target" in (o.reason or "") for o in undefined)


def test_a_state_of_another_study_is_refused(made: tuple[State, ...], splits: Splits):
    with pytest.raises(ValueError, match="no state of the tabular study"):
        execute(TASKS, (replace(made[0], budget=None),), splits, execution=HERE)
