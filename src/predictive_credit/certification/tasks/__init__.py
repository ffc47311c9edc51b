"""The audited tasks, one small module each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from predictive_credit.certification.tasks import catalyst, device, knapsack, sqlite_events
from predictive_credit.certification.tasks.task import Design, Task
from predictive_credit.errors import BadConfig


class Build(Protocol):
    """Makes the instance called `label` under a secret; with `known`, its E0 tells the answer."""

    def __call__(self, secret: bytes, label: str, *, known: bool = False) -> Task: ...


_TASKS = (sqlite_events, catalyst, device, knapsack)
BUILD: Mapping[str, Build] = {module.DESIGN.name: module.build for module in _TASKS}
DESIGNS: Mapping[str, Design] = {module.DESIGN.name: module.DESIGN for module in _TASKS}
MODULES: Mapping[str, str] = {module.DESIGN.name: module.__name__.rpartition(".")[2] for module in _TASKS}
FORMS: Mapping[str, Mapping[str, Any]] = {module.DESIGN.name: module.FORMS for module in _TASKS}
"""JSON Schemas of a task's experiment and candidate, for who can be held to a form."""


def design(name: str) -> Design:
    """The design of a task by its name. Raises BadConfig."""
    if name not in DESIGNS:
        raise BadConfig(f"there is no task {name}; the tasks are {', '.join(DESIGNS)}")
    return DESIGNS[name]
