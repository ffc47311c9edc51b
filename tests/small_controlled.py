"""A controlled study of a few seeds: all six regimes in a fraction of a second."""

from __future__ import annotations

from typing import Any

from predictive_credit.config import Execution
from predictive_credit.studies.controlled.config import ControlledConfig

SEED = 1
HERE = Execution(backend="sequential", n_jobs=1, address=None)
TWENTY = tuple(range(1, 21))


def config(**changes: Any) -> ControlledConfig:
    """Four seeds of every regime, unless something else is asked for."""
    values: dict[str, Any] = {
        "rule": "controlled", "pool": "regimes", "burn_in": "regimes", "contexts": ("D", "M", "S"),
        "regimes": None, "seeds": (1, 2, 3, 4),
    }  # fmt: skip
    return ControlledConfig(**values | changes)
