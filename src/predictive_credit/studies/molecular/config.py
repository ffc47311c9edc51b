"""The molecular study's population: which endpoints, label fractions and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.dataclasses import dataclass

from predictive_credit.config import STRICT, Fraction, Positive, StudyConfig


@dataclass(config=STRICT, kw_only=True, frozen=True)
class MolecularConfig(StudyConfig):
    """Endpoints x label fractions x seeds."""

    endpoints: tuple[str, ...] | None  # None: the pool's `n_endpoints` largest
    n_endpoints: Positive
    budgets: tuple[Fraction, ...]
    seeds: tuple[Positive, ...]

    def lists(self) -> Mapping[str, Sequence[Any]]:
        """The lists that may be neither empty nor hold an entry twice, by key."""
        named = {} if self.endpoints is None else {"endpoints": list(self.endpoints)}
        budgets = [f"{budget:g}" for budget in self.budgets]  # as ids write them
        seeds = [str(seed) for seed in self.seeds]
        return {**StudyConfig.lists(self), **named, "budgets": budgets, "seeds": seeds}
