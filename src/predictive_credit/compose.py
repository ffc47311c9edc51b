"""conf/ composed into params.yaml by Hydra; the only module that composes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig
from predictive_credit.studies import params as study_params

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

    asked = " ".join(overrides)
    with _one_sentence(asked), hydra.initialize_config_dir(str(conf_dir(root)), version_base="1.3"):
        composed = hydra.compose("config", overrides=list(overrides))
    values = plain(composed, asked)
    study_params.parse(values, origin="conf/")
    return values


def plain(composed: Any, asked: str) -> dict[str, Any]:
    """Hydra's composition as plain values. Raises BadConfig for one that is missing or no mapping."""
    from omegaconf import OmegaConf

    with _one_sentence(asked):
        values = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    if not isinstance(values, dict):
        raise BadConfig("conf/config.yaml does not compose to a mapping")
    return {str(key): value for key, value in values.items()}


def check_run(root: Path, words: Sequence[str]) -> None:
    """Compose what the words of `predictive-credit run` ask for, every value of a sweep once.

    Raises BadConfig, one sentence, where Hydra would print its own many lines. Hydra's flags, what
    configures Hydra itself, and sweeps that only it can enumerate are left to it.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.core.override_parser.types import ValueType
    from hydra.errors import HydraException

    sweeping = not {"-m", "--multirun", "hydra.mode=MULTIRUN"}.isdisjoint(words)
    choices: list[list[str]] = []  # per word, what it can say in a job
    for word in _overrides(words):
        try:
            (override,) = OverridesParser.create().parse_overrides([word])
        except HydraException:
            choices.append([word])  # composing says what is wrong with it
            continue
        if override.is_hydra_override():
            continue
        if not sweeping or not override.is_sweep_override():
            choices.append([word])
        elif override.is_discrete_sweep() and override.value_type != ValueType.GLOB_CHOICE_SWEEP:
            key = word.partition("=")[0]
            choices.append([f"{key}={value}" for value in override.sweep_string_iterator()])
    for job in range(max(map(len, choices), default=1)):
        compose(root, [values[min(job, len(values) - 1)] for values in choices])


def _overrides(words: Sequence[str]) -> list[str]:
    """The words that are neither a flag of Hydra nor, as in `--cfg job`, a flag's value."""
    found = []
    for before, word in zip(["", *words], words, strict=False):
        value = "=" not in word and before.startswith("-") and before not in ("-m", "--multirun")
        if not word.startswith("-") and not value:
            found.append(word)
    return found


@contextmanager
def _one_sentence(asked: str) -> Iterator[None]:
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        first = str(error).strip().splitlines()[0].removesuffix(".")
        if key := getattr(error, "full_key", None):
            first = f"{key}: {first}"
        if key and first.startswith(f"{key}: Missing mandatory value"):
            first = f"{key} must be given, as {key}=VALUE"
        what = asked or "conf/config.yaml"
        raise BadConfig(f"cannot compose {what}: {first}; the groups and options are in conf/") from None


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
        written = config.read(root / "params.yaml")
    except FileNotFoundError:
        return "params.yaml does not exist"
    if not isinstance(written, dict):
        return "params.yaml does not hold a mapping"
    return _first_difference(written, compose(root), "")


def _first_difference(seen: Any, asked: Any, at: str) -> str | None:
    if isinstance(seen, dict) and isinstance(asked, dict):
        for key in [*asked, *(k for k in seen if k not in asked)]:
            inner = f"{at}.{key}" if at else str(key)
            if (found := _first_difference(seen.get(key), asked.get(key), inner)) is not None:
                return found
        return None
    return None if seen == asked else f"{at} is {seen!r} in params.yaml and {asked!r} in conf/"
