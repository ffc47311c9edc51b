"""Small tables with planted targets, and the shortest way to a tabular study on them."""

from __future__ import annotations

import numpy as np

from predictive_credit.records import State
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.tabular import states
from predictive_credit.studies.tabular.config import TabularConfig
from predictive_credit.studies.tabular.fitting import Array
from predictive_credit.studies.tabular.pool import Kind, Task
from predictive_credit.studies.tabular.states import Splits

N = 160


def config(**changes: object) -> TabularConfig:
    """The tabular study's shape on these tasks."""
    settings: dict[str, object] = {
        "rule": "tabular", "pool": "small", "burn_in": "small", "tasks": None, "n_tasks": 2,
        "budgets": (0.5, 1.0), "seeds": (1, 2), "contexts": ("D", "M", "S", "O", "T", "N"),
    }  # fmt: skip
    return TabularConfig(**(settings | changes))  # type: ignore[arg-type]  # pydantic checks them


def task(
    name: str,
    kind: Kind,
    *,
    x: Array | None = None,
    y: Array | None = None,
    n_classes: int = 2,
    categorical: tuple[int, ...] = (),
) -> Task:
    """Four columns, the last of three categories; the target is the first column's, but for noise."""
    rng = stream(7, "small tasks", name)
    drawn = rng.normal(size=(N, 4))
    drawn[:, 3] = rng.integers(0, 3, size=N)
    drawn[rng.random(N) < 0.1, 1] = np.nan
    table = drawn if x is None else x
    signal = table[:, 0] + 0.5 * rng.normal(size=len(table))
    if y is None:
        cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
        y = np.searchsorted(cuts, signal).astype(float) if kind == "classification" else signal
    return Task(
        name=name, kind=kind, target="outcome", x=table, categorical=(3,) if x is None else categorical, y=y,
        classes=tuple(map(str, range(n_classes))) if kind == "classification" else (),
        features=tuple(f"column {k}" for k in range(table.shape[1])), counts={"rows": len(table)},
    )  # fmt: skip


def made(n_tasks: int = 2) -> tuple[Task, ...]:
    """So many tasks of each kind in lottery order: C0, C1, ... and R0, R1, ..."""
    return (
        *(task(f"C{k}", "classification", n_classes=2 + k % 2) for k in range(n_tasks)),
        *(task(f"R{k}", "regression") for k in range(n_tasks)),
    )


def population(tasks: tuple[Task, ...], there: Splits, /, **changes: object) -> tuple[State, ...]:
    """The states of a configuration on these tasks and splits."""
    return states.states(tasks, config(**changes), there, study="tabular", execution=workers.HERE)
