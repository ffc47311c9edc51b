"""The tabular study's population: which tasks, budgets and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.dataclasses import dataclass

from predictive_credit.config import STRICT, Fraction, Positive, StudyConfig


@dataclass(config=STRICT, kw_only=True, frozen=True)
class TabularConfig(StudyConfig):
    """Tasks of both kinds x budgets x seeds."""

    tasks: tuple[str, ...] | None  # None: all that the pool names, or its lottery's first `n_tasks`
    n_tasks: Positive  # of each kind, from a lottery
    budgets: tuple[Fraction, ...]
    seeds: tuple[Positive, ...]

    def lists(self) -> Mapping[str, Sequence[Any]]:
        """The lists that may be neither empty nor hold an entry twice, by key."""
        named = {} if self.tasks is None else {"tasks": list(self.tasks)}
        budgets = [f"{budget:g}" for budget in self.budgets]  # as ids write them
        seeds = [str(seed) for seed in self.seeds]
        return {**StudyConfig.lists(self), **named, "budgets": budgets, "seeds": seeds}
