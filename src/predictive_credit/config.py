"""Dataclasses that mirror params.yaml; an unknown key or an impossible value is refused.

Hydra composes conf/ into params.yaml; everything here reads only that file. No class has
defaults: conf/ is the one place where a value is chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from predictive_credit.errors import BadConfig

STRICT = ConfigDict(extra="forbid")
Positive = Annotated[int, Field(ge=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class MoleculeAcePool:
    """ChEMBL potency assays out of a pinned wheel, binarised at a potency threshold."""

    kind: Literal["moleculeace"]
    watch: str  # the file whose change makes DVC fetch again
    distribution: str
    version: str
    wheel_sha256: Sha256
    active_at_most_nm: Annotated[float, Field(gt=0)]  # nanomolar; potency this good or better is 1


@dataclass(config=STRICT, kw_only=True, frozen=True)
class MolNetPool:
    """A MoleculeNet table: the mirror's file, else the location DeepChem's loader names."""

    kind: Literal["molnet"]
    watch: str
    dataset: Literal["tox21"]
    mirror_path: str  # below PREDICTIVE_CREDIT_MIRROR
    mirror_sha256: Sha256
    origin_sha256: Sha256 | None  # None: accepted as found, recorded and reported as unpinned
    smiles_column: str
    endpoints: tuple[str, ...]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class CsvPool:
    """A user's own SMILES table with 0/1/missing endpoint columns (.csv or .csv.gz)."""

    kind: Literal["csv"]
    watch: str
    path: str
    sha256: Sha256 | None  # None: whatever the file holds; its digest is recorded either way
    smiles_column: str | None  # None: the column called smiles or mol, in any case
    endpoints: tuple[str, ...] | None  # None: every column that holds only 0, 1 and missing


Pool = Annotated[MoleculeAcePool | MolNetPool | CsvPool, Field(discriminator="kind")]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class StudyConfig:
    """One study's population: which endpoints, label fractions, seeds and contexts."""

    rule: Literal["molecular"]  # which suite in studies/ declares and decides it
    pool: str
    burn_in: str  # the pool whose unused endpoints playbook, fallback and priors learn from
    endpoints: tuple[str, ...] | None  # None: the pool's `n_endpoints` largest
    n_endpoints: Positive
    budgets: tuple[Fraction, ...]
    seeds: tuple[Positive, ...]
    contexts: tuple[Literal["D", "M", "S"], ...]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Gguf:
    """A model file out of a pinned wheel, run in this process through llama.cpp."""

    distribution: str
    version: str
    wheel_sha256: Sha256
    member: str
    member_sha256: Sha256
    threads: Positive
    prefix_cache: bool


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Sampled:
    """How a model is asked; part of every prompt."""

    name: str
    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    max_tokens: Positive


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Elicited(Sampled):
    """What every forecaster's configuration holds."""

    watch: str  # the file or folder whose change makes DVC read, or ask, again
    elicitation: Literal["sentence"]
    acknowledged_models: tuple[str, ...]  # served ids accepted although they changed inside the study


@dataclass(config=STRICT, kw_only=True, frozen=True)
class LlamaCpp(Gguf, Elicited):
    """The embedded model as a forecaster."""

    kind: Literal["llama_cpp"]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Priors(Elicited):
    """A forecaster that needs no model: zero, a constant positive change, or the burn-in mean."""

    kind: Literal["priors"]
    point: Literal["zero", "positive", "mean"]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Replay(Elicited):
    """Recorded answers (a forecasts.jsonl or a bundle) instead of a model."""

    kind: Literal["replay"]
    path: str


Forecaster = Annotated[LlamaCpp | Priors | Replay, Field(discriminator="kind")]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Playbook:
    """The deterministic author: textbook mechanisms, numbers from the burn-in."""

    kind: Literal["playbook"]
    name: str


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ModelAgent(Gguf, Sampled):
    """The embedded model as an author of cards."""

    kind: Literal["llama_cpp"]


Agent = Annotated[Playbook | ModelAgent, Field(discriminator="kind")]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Inference:
    """Bootstrap settings; digested into the freeze record with the rule."""

    draws: Positive
    level: Annotated[float, Field(gt=0.5, lt=1)]  # two-sided, e.g. 0.95


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Execution:
    """Where work units run: joblib's backend and how many at once."""

    backend: Literal["loky", "sequential", "dask", "ray"]
    n_jobs: Positive
    address: str | None  # scheduler address for dask or ray


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Params:
    """The whole of params.yaml."""

    seed: Annotated[int, Field(ge=0)]
    scale: Literal["quick", "full"]
    pools: Mapping[str, Pool]
    studies: Mapping[str, StudyConfig]
    agent: Agent
    forecaster: Forecaster
    inference: Inference
    execution: Execution


PARAMS = TypeAdapter(Params)


def parse(raw: Any, *, origin: str = "params.yaml") -> Params:
    """Plain YAML values as Params. Raises BadConfig naming the first key that is wrong."""
    try:
        params: Params = PARAMS.validate_python(raw)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "(top)"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise BadConfig(
            f"{origin}: {where}: {first['msg'].lower()}; seen {first['input']!r}{more}; "
            "correct it in conf/ or on the command line"
        ) from None
    for name, study in params.studies.items():
        for pool in (study.pool, study.burn_in):
            if pool not in params.pools:
                raise BadConfig(
                    f"{origin}: studies.{name} asks for pool {pool!r}; "
                    f"pools holds {', '.join(sorted(params.pools))}"
                )
        _check_population(study, f"{origin}: studies.{name}")
    return params


def _check_population(study: StudyConfig, where: str) -> None:
    """Raise BadConfig for a list without entries, or an entry twice: each state needs its own id."""
    if study.endpoints == ():
        raise BadConfig(f"{where}.endpoints is an empty list; name some, or set it to null for the largest")
    lists: dict[str, list[str]] = {
        "budgets": [f"{budget:g}" for budget in study.budgets],  # as ids write them
        "seeds": [str(seed) for seed in study.seeds],
        "contexts": list(study.contexts),
    }
    for key, values in lists.items():
        if not values:
            raise BadConfig(f"{where}.{key} is an empty list; give at least one")
        repeated = [value for value in values if values.count(value) > 1]
        if repeated:
            raise BadConfig(f"{where}.{key} holds {repeated[0]} twice; name it once")


def read(path: Path) -> Any:
    """A YAML file's plain values. Raises BadConfig if it is not UTF-8 or not YAML."""
    try:
        return yaml.safe_load(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise BadConfig(f"{path} is not UTF-8: {error.reason} at byte {error.start}") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: a date that no calendar has
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise BadConfig(f"{path} is not YAML: {str(error).splitlines()[0]}{line}") from None


def load(path: Path) -> Params:
    """Read params.yaml. Raises BadConfig if it is absent, not YAML, or not ours."""
    try:
        raw = read(path)
    except FileNotFoundError:
        raise BadConfig(
            f"{path} does not exist; run from the project's root, "
            "or compose it with `predictive-credit params --write`"
        ) from None
    return parse(raw, origin=str(path))


def section(value: Any) -> dict[str, Any]:
    """A config dataclass as plain values, for digests."""
    return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return section(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value
