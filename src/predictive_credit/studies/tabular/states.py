"""The population of the tabular study: tasks, splits, and each state's public side.

Nothing here reads a held-out target, except that the split of a classification is stratified: it
gives both sides the same class shares, and so tells no more than the training shares do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit.config import Execution
from predictive_credit.contexts import neutralised
from predictive_credit.errors import BadConfig
from predictive_credit.records import Intervention, JsonScalar, State
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.fitting import Trial, skill, trial
from predictive_credit.studies.tabular.interventions import (
    KINDS,
    PARENT,
    PARENT_TEXT,
    assigned,
)
from predictive_credit.studies.tabular.pool import Kind, Task

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

HELD_OUT = 0.25  # of a task's rows
FOLDS = 3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Positions of one task's rows. A budget's training rows are a prefix of `train`."""

    train: Rows
    test: Rows

    def prefix(self, budget: float) -> Rows:
        """The first `budget` of the training rows, at least one: smaller budgets nest in larger ones."""
        return self.train[: max(1, round(budget * len(self.train)))]


Splits = Mapping[tuple[str, int], Split]  # by task and seed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cell:
    """One state in the making: its task, place, intervention and split."""

    task: Task
    budget: float
    seed: int
    intervention: Intervention
    split: Split

    @property
    def tail(self) -> str:
        """The state's place within its task."""
        return f"{self.budget:g}/{self.seed}"


def choose_tasks(tasks: Sequence[Task], config: TabularConfig) -> dict[Kind, tuple[Task, ...]]:
    """The study's tasks by kind, each in the order that assigns interventions.

    Named ones stand as named. Otherwise the first `n_tasks` of each kind in the pool's lottery
    order: so a smaller scale's tasks are among a larger scale's. Raises BadConfig for a name the
    pool lacks.
    """
    if config.tasks is None:
        by_kind = {kind: [task for task in tasks if task.kind == kind] for kind in KINDS}
        return {kind: tuple(there[: config.n_tasks]) for kind, there in by_kind.items()}
    named = [_named(tasks, name) for name in config.tasks]
    return {kind: tuple(task for task in named if task.kind == kind) for kind in KINDS}


def splits(tasks: Sequence[Task], config: TabularConfig, *, seed: int) -> dict[tuple[str, int], Split]:
    """Each task's split under each of the study's seeds, from the stream (split, task, seed)."""
    return {
        (task.name, number): split(task, rng=stream(seed, "split", task.name, number))
        for task in tasks
        for number in config.seeds
    }


def split(task: Task, *, rng: Generator) -> Split:
    """Three quarters of a task's rows for training, one for testing, in a random order.

    A classification is cut class by class, so that both sides get a row of each class that has
    two; a class with one row is in training.
    """
    strata = task.y if task.kind == "classification" else np.zeros(len(task.y))
    groups = [rng.permutation(np.flatnonzero(strata == one)) for one in np.unique(strata)]
    cuts = [_held_out(len(rows)) for rows in groups]
    test = np.concatenate([rows[:cut] for rows, cut in zip(groups, cuts, strict=True)])
    train = np.concatenate([rows[cut:] for rows, cut in zip(groups, cuts, strict=True)])
    return Split(train=rng.permutation(train), test=np.sort(test))


def states(
    tasks: Sequence[Task], config: TabularConfig, splits: Splits, *, study: str, execution: Execution
) -> tuple[State, ...]:
    """Every state of the study, sorted by id (`study/task/budget/seed`).

    tasks: the pool's for the study, in lottery order. Facts come from the training rows of the
    state's own budget and from the size of the held-out rows.
    """
    made = cells(tasks, config, splits)
    skills = workers.run(cross_validated_skill, list(map(_training, made)), execution, title="states")
    found = [state(study, cell, value) for cell, value in zip(made, skills, strict=True)]
    return tuple(sorted(found, key=lambda one: one.id))


def cells(tasks: Sequence[Task], config: TabularConfig, splits: Splits) -> list[Cell]:
    """The states to be, with their interventions: kind, task, budget and seed in order."""
    return [
        Cell(
            task=task, budget=budget, seed=seed, split=splits[task.name, seed],
            intervention=assigned(kind, i, budget),
        )
        for kind, chosen in choose_tasks(tasks, config).items()
        for i, task in enumerate(chosen)
        for budget in config.budgets
        for seed in config.seeds
    ]  # fmt: skip


def state(study: str, cell: Cell, cv_skill: float | None) -> State:
    """The public side of a cell; `cv_skill` is the parent's, cross-validated on its training rows."""
    task, facts = cell.task.name, _facts(cell, cv_skill)
    return State(
        id=f"{study}/{task}/{cell.tail}",
        study=study,
        task=task,
        cluster=(cell.task.kind, task, cell.tail),
        budget=cell.budget,
        seed=cell.seed,
        sources=("elicited", "ordinary"),
        description=_description(cell, facts),
        facts=facts,
        intervention=cell.intervention,
    )


def cross_validated_skill(rows: Trial) -> float | None:
    """Mean skill of the parent over three folds of training rows alone, all of the trial's.

    Rows are dealt to the folds in turn, class by class in a classification. None where a fold
    has no skill, for one class or value is all it was fitted or scored on.
    """
    order = np.argsort(rows.y, kind="stable") if rows.kind == "classification" else np.arange(len(rows.y))
    folds = [order[k::FOLDS] for k in range(FOLDS)]
    trials = [_fold(rows, folds, k) for k in range(FOLDS)]
    if any(fold.undefined is not None for fold in trials):
        return None
    return round(float(np.mean([skill(PARENT, fold) for fold in trials])), 4)


def _named(tasks: Sequence[Task], name: str) -> Task:
    for task in tasks:
        if task.name == name:
            return task
    some = ", ".join(task.name for task in tasks[:6]) + (", ..." if len(tasks) > 6 else "")
    raise BadConfig(f"the pool has no task {name!r}; it holds {some}; correct tasks")


def _held_out(n: int) -> int:
    """A quarter of n, but one at least and not all, where n allows."""
    return min(max(1, round(HELD_OUT * n)), max(n - 1, 0))


def _training(cell: Cell) -> Trial:
    """The cell's training rows, with nothing held out."""
    return trial(cell.task, cell.split.prefix(cell.budget), np.array([], dtype=np.int64), ())


def _fold(rows: Trial, folds: Sequence[Rows], k: int) -> Trial:
    """A trial that is scored on fold k and fitted on the others."""
    train = np.sort(np.concatenate([fold for i, fold in enumerate(folds) if i != k]))
    at = np.concatenate([train, np.sort(folds[k])])
    return Trial(
        kind=rows.kind, interventions=(), x=rows.x[at], y=rows.y[at], n_train=len(train),
        n_classes=rows.n_classes, categorical=rows.categorical,
    )  # fmt: skip


def _facts(cell: Cell, cv_skill: float | None) -> dict[str, JsonScalar]:
    """Public facts, rounded so that a last bit cannot change a prompt."""
    task, rows = cell.task, cell.split.prefix(cell.budget)
    return {
        "kind": task.kind,
        "n_train": len(rows),
        "n_held_out": len(cell.split.test),
        "n_features": task.x.shape[1],
        "n_categorical": len(task.categorical),
        "share_missing": round(float(np.isnan(task.x[rows]).mean()), 4),
        "cv_skill": cv_skill,
        **_class_facts(task, rows),
    }


def _class_facts(task: Task, rows: Rows) -> dict[str, JsonScalar]:
    """How the training rows are shared out among the task's classes; None each in a regression."""
    names = ("n_classes", "n_classes_absent", "largest_class", "smallest_class")
    if task.kind == "regression":
        return dict.fromkeys(names)
    counts = np.bincount(task.y[rows].astype(int), minlength=len(task.classes))
    shares = (round(float(n / len(rows)), 4) for n in (counts.max(), counts.min()))
    return dict(zip(names, (len(counts), int((counts == 0).sum()), *shares), strict=True))


def _description(cell: Cell, facts: Mapping[str, JsonScalar]) -> str:
    """Plain sentences, about a hundred words. It names levels and never the size of a change.

    Small models copy a number that they are shown, and drift would vanish under every context.
    """
    value = facts["cv_skill"]
    level = (
        "Its cross-validated skill is not available, because these rows are too few or too alike."
        if value is None
        else f"In three-fold cross-validation on these rows its skill is {round(float(value), 3) + 0.0:.3f}."
    )
    return (
        f"{_table(cell.task, facts)} The parent model is {PARENT_TEXT}. "
        f"It is trained on {100 * cell.budget:g} % of the available training rows: "
        f"{facts['n_train']:,} rows{_balance(facts)}. {level} Skill is 1 minus the model's "
        f"{_losses(cell.task.kind)}. Planned change: {cell.intervention.text} "
        "Everything else stays as it is. Measured is the change in skill on "
        f"{facts['n_held_out']:,} held-out rows: the changed model's minus the parent's."
    )


def _table(task: Task, facts: Mapping[str, JsonScalar]) -> str:
    """The task and what it predicts. The target's name is the table's own, and so data."""
    target = " ".join(neutralised(task.target).split())
    classes = f", one of {facts['n_classes']} classes," if task.kind == "classification" else ""
    columns = _plural(task.x.shape[1], "column")
    return (
        f"Task {task.name} is a {task.kind}: predict {target}{classes} from {columns}, "
        f"{len(task.categorical)} of them categorical, with {100 * float(facts['share_missing'] or 0):.1f} % "
        "of the values missing."
    )


def _balance(facts: Mapping[str, JsonScalar]) -> str:
    """What is known of the classes in the training rows; nothing for a regression."""
    largest, absent = facts["largest_class"], facts["n_classes_absent"]
    if largest is None:
        return ""
    unseen = f" and {_plural(int(absent), 'class', 'classes')} absent" if absent else ""
    return f", the largest class {100 * float(largest):.1f} % of them{unseen}"


def _losses(kind: Kind) -> str:
    if kind == "classification":
        return "log loss divided by that of always predicting the training class shares"
    return "squared error divided by that of always predicting the training mean"


def _plural(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one}" if n == 1 else f"{n} {many or one + 's'}"
