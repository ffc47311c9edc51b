"""What the gates of a frozen rule ask of a gain, so that their power can be told before anything is asked.

A rule itself is never read for this, nor edited: each study says beside its rule, with the rule's own
constants, which contrast every gate looks at and how.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from predictive_credit.bootstrap import Path
from predictive_credit.config import Pool
from predictive_credit.panel import Measure

Kind = Literal["bound", "margin", "equivalence"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One gate of a rule, asked in every target of the study.

    bound: the one-sided bound lies beyond 0. margin: the mean is at least `margin`, whatever its
    bounds. equivalence: both one-sided bounds lie strictly inside +-`margin`. harm: the gate looks at
    matched minus other, and not at the gain.
    Raises ValueError for a margin that is missing, or that nothing asks for.
    """

    gate: str  # the gate's name in rule.py; `{target}` stands for the target's name
    measure: Measure
    pair: str  # other and matched context: `D-M`
    kind: Kind
    margin: float | None = None  # in the unit of the loss
    harm: bool = False

    def __post_init__(self) -> None:
        if (self.kind == "bound") != (self.margin is None):
            raise ValueError(f"gate {self.gate}: a {self.kind} with the margin {self.margin}")

    @property
    def words(self) -> str:
        """What is asked, as a rule writes it."""
        match self.kind:
            case "bound":
                return "bound > 0"
            case "margin":
                return f"mean >= {self.margin:g}"
            case "equivalence":
                return f"bounds inside +-{self.margin:g}"

    @property
    def null(self) -> float:
        """The true gain at which a gate that holds is an error: the margin of an equivalence, else 0."""
        return self.margin if self.kind == "equivalence" and self.margin is not None else 0.0

    def can_hold(self, effect: float) -> bool:
        """Whether enough clusters would make the gate hold, where the true gain is `effect`."""
        return effect < self.null if self.kind == "equivalence" else effect > (self.margin or 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A study's planned population as cluster paths, and what its rule asks of it.

    paths: of a configuration and the pools, one path a state, as its states will have, names aside;
    nothing that is fetched is read. untold: gates about something other than a loss, which are not
    simulated.
    """

    paths: Callable[[Any, Mapping[str, Pool]], tuple[Path, ...]]
    asks: tuple[Ask, ...]
    untold: tuple[str, ...] = ()
