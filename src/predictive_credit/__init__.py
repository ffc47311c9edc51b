"""Predictive Credit: does an explanation help a fixed forecaster predict the executed outcome?

In a notebook, three functions are enough: `loss_table`, `contrast_table` and `decide`.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Found on first use, because the command line should not wait for pandas; by name, because the
# layers below are imported through this package and must not reach up to the notebook's functions.
_NOTEBOOK = ("contrast_table", "decide", "loss_table")


def __getattr__(name: str) -> Any:
    if name in _NOTEBOOK:
        return getattr(import_module("predictive_credit.api"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_NOTEBOOK])
