"""What the frozen rule `credit` asks of the controlled study's planned population."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from predictive_credit.bootstrap import Path
from predictive_credit.config import Pool
from predictive_credit.studies.asks import Ask, Plan
from predictive_credit.studies.controlled import rule
from predictive_credit.studies.controlled.config import ControlledConfig
from predictive_credit.studies.controlled.regimes import chosen


def paths(config: ControlledConfig, pools: Mapping[str, Pool]) -> tuple[Path, ...]:
    """Regime, then seed."""
    return tuple(product(chosen(config), map(str, config.seeds)))


# The upper bounds, by which the rule refutes, have the same power against gains of the other sign.
PLAN = Plan(
    paths=paths,
    asks=tuple(
        Ask(gate=f"{{target}} {pair} lower bound", measure="point_error", pair=pair, kind="bound")
        for pair in rule.PAIRS
    ),
)
