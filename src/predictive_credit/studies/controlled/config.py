"""The controlled study's population: which regimes and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic.dataclasses import dataclass

from predictive_credit.config import STRICT, Positive, StudyConfig


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ControlledConfig(StudyConfig):
    """Regimes x seeds."""

    regimes: tuple[str, ...] | None  # None: all six
    seeds: tuple[Positive, ...]  # their order says which card is elicited: first, third, fifth, ...

    def lists(self) -> Mapping[str, Sequence[Any]]:
        """The lists that may be neither empty nor hold an entry twice, by key."""
        named = {} if self.regimes is None else {"regimes": list(self.regimes)}
        return {**StudyConfig.lists(self), **named, "seeds": [str(seed) for seed in self.seeds]}
