"""params.yaml with the installed studies' own configuration classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predictive_credit import config
from predictive_credit.errors import BadConfig
from predictive_credit.studies import STUDIES


def parse(raw: Any, *, origin: str = "params.yaml") -> config.Params:
    """Plain YAML values as Params. Raises BadConfig naming the first key that is wrong."""
    return config.parse(raw, {name: study.config for name, study in STUDIES.items()}, origin=origin)


def load(path: Path) -> config.Params:
    """Read params.yaml. Raises BadConfig if it is absent, not YAML, or not ours."""
    try:
        raw = config.read(path)
    except FileNotFoundError:
        raise BadConfig(
            f"{path} does not exist; run from the project's root, "
            "or compose it with `predictive-credit params --write`"
        ) from None
    return parse(raw, origin=str(path))
