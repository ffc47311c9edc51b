"""conf/ composed into params.yaml by Hydra; the only module that composes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig

HEADER = """\
# Generated from conf/ by `predictive-credit params --write`; edit conf/, not this file.
# `dvc exp run -S ...` composes it anew (and drops these lines); `dvc repro` uses it as it is.
"""


def conf_dir(root: Path) -> Path:
    """The project's conf/ folder. Raises BadConfig outside a project."""
    folder = (root / "conf").resolve()
    if not (folder / "config.yaml").is_file():
        raise BadConfig(f"{folder} holds no config.yaml; run from the project's root, or give --root")
    return folder


def compose(root: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The composition as plain values, interpolations resolved. Raises BadConfig, one sentence."""
    # Hydra is imported here: it takes a moment, and most commands never compose.
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        with hydra.initialize_config_dir(str(conf_dir(root)), version_base="1.3"):
            composed = hydra.compose("config", overrides=list(overrides))
        plain = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException) as error:
        first = str(error).strip().splitlines()[0]
        if key := getattr(error, "full_key", None):
            first = f"{key}: {first}"
        asked = " ".join(overrides) or "conf/config.yaml"
        raise BadConfig(f"cannot compose {asked}: {first}; the groups and options are in conf/") from None
    assert_mapping(plain)
    config.parse(plain, origin="conf/")
    return dict(plain)  # type: ignore[arg-type]  # a mapping, as just asserted


def assert_mapping(value: Any) -> None:
    """Raise BadConfig unless a composition is a mapping at its top."""
    if not isinstance(value, dict):
        raise BadConfig("conf/config.yaml does not compose to a mapping")


def text(values: dict[str, Any]) -> str:
    """params.yaml as it is committed."""
    return HEADER + yaml.safe_dump(values, sort_keys=False, default_flow_style=False, width=100)


def write(root: Path, overrides: Sequence[str] = ()) -> Path:
    """Compose and write params.yaml, atomically."""
    path = root / "params.yaml"
    tables.write_bytes(path, text(compose(root, overrides)).encode())
    return path


def difference(root: Path) -> str | None:
    """The first key where params.yaml and the composition differ, or None."""
    try:
        written = yaml.safe_load((root / "params.yaml").read_text())
    except FileNotFoundError:
        return "params.yaml does not exist"
    return _first_difference(written, compose(root), "")


def _first_difference(seen: Any, asked: Any, at: str) -> str | None:
    if isinstance(seen, dict) and isinstance(asked, dict):
        for key in [*asked, *(k for k in seen if k not in asked)]:
            inner = f"{at}.{key}" if at else str(key)
            if (found := _first_difference(seen.get(key), asked.get(key), inner)) is not None:
                return found
        return None
    return None if seen == asked else f"{at} is {seen!r} in params.yaml and {asked!r} in conf/"
