"""The Study record: one screen that is the map of a protocol."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision
from predictive_credit.panel import Measure
from predictive_credit.records import Context

Decide = Callable[[str, Mapping[str, Contrast]], Decision]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A population of states, some contexts, two calls each, and a frozen rule.

    Counts are of the full scale; a quick run takes a stated subset and says so everywhere.
    """

    name: str
    timing: Literal["prospective", "post-outcome"]
    n_clusters: int  # endpoints: the outermost level of every bootstrap
    n_states: int
    contexts: tuple[Context, ...]
    calls_per_context: int
    source_units: int  # calls that make explanations: here one elicited card per state
    unit: str  # of the outcome and of every loss
    outcome_bounds: tuple[float, float]  # what an undefined outcome could have been, at most
    primary_loss: Measure
    one_sided_level: float  # of the bounds that the rule reads; the rule's constant, not params.yaml's
    rule: str
    decide: Decide  # the frozen rule: study name and primary-loss contrasts by pair, to a decision
    published: Mapping[str, Any] = field(default_factory=dict)  # printed figures, to stand beside ours

    @property
    def n_units(self) -> int:
        """Planned calls at full scale, sources included."""
        return self.n_states * len(self.contexts) * self.calls_per_context + self.source_units

    @property
    def rule_source(self) -> bytes:
        """The rule's source as it is run, whose digest the freeze record holds."""
        return Path(inspect.getfile(self.decide)).read_bytes()
