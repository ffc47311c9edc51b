"""The mechanism control's population: how many pairs of tasks."""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from predictive_credit.config import STRICT, ControlConfig, Positive


@dataclass(config=STRICT, kw_only=True, frozen=True)
class MechanismConfig(ControlConfig):
    """Pairs of a nonlinear task and its linear twin, numbered from 1."""

    pairs: Positive
