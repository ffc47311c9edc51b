"""Dataclasses that mirror params.yaml; an unknown key or an impossible value is refused.

Hydra composes conf/ into params.yaml; everything here reads only that file. conf/ is the one place
where a value is chosen: defaults are left to optional keys of a table in a list of tables, and to what
a freeze record leaves out, which are the terms of asking and all that came in with a later version.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from predictive_credit.errors import BadConfig
from predictive_credit.records import Context

STRICT = ConfigDict(extra="forbid")
Positive = Annotated[int, Field(ge=1)]
Fraction = Annotated[float, Field(gt=0, le=1)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]*$")]  # of the environment; a key itself is none
# Whatever could hold a password belongs in the environment, and a query would end up inside the path.
Address = Annotated[str, Field(pattern=r"^https?://[^@?#\s]+$")]
UNSHOWN = ("key_env", "base_url", "base_url_env")  # a refused value may be a secret in the wrong place
TaskName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]  # part of ids and file names


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


@dataclass(config=STRICT, kw_only=True, frozen=True)
class RegimesPool:
    """Data sets that the controlled study generates itself; nothing is fetched."""

    kind: Literal["regimes"]
    watch: str


@dataclass(config=STRICT, kw_only=True, frozen=True)
class WheelTable:
    """One table out of a wheel, which is never installed: where it is, and what is predicted.

    The columns of a table without a header are called column_1, column_2, and so on.
    """

    distribution: str  # a key of the pool's `wheels`
    member: str  # .csv, .csv.gz or .dat
    sha256: Sha256
    kind: Literal["classification", "regression"]
    target: str
    licence: str
    header: bool = True
    delimiter: Annotated[str, Field(min_length=1, max_length=1)] = ","
    drop: tuple[str, ...] = ()  # row numbers, identifiers, and columns that give the target away


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Wheel:
    """A pinned wheel."""

    version: str
    sha256: Sha256
    tags: str | None = None  # of a wheel built for one interpreter: python-abi-platform; its code is not run


@dataclass(config=STRICT, kw_only=True, frozen=True)
class PackagedPool:
    """Classification and regression tables out of pinned wheels.

    Order the tables of a kind by SHA-256 of (salt, kind, name): the first `tasks_of_each_kind` are the
    study's, the others the burn-in.
    """

    kind: Literal["packaged"]
    watch: str
    salt: str
    tasks_of_each_kind: Positive
    wheels: Mapping[str, Wheel]
    tables: Mapping[TaskName, WheelTable]
    max_rows: Positive  # larger tables keep a stated random subset of their rows


@dataclass(config=STRICT, kw_only=True, frozen=True)
class OpenMLPool:
    """Tasks of OpenML suites, drawn by a lottery over ids that sees no label.

    Order the suite's tasks by SHA-256 of (salt, suite, task id); the first that pass the size limits
    are the study's, the next `burn_in_tasks` of each kind the burn-in. `tasks` names some instead.
    """

    kind: Literal["openml"]
    watch: str
    suites: Mapping[Literal["classification", "regression"], Positive]  # suite id by kind
    salt: str
    tasks: tuple[Positive, ...] | None  # None: the lottery; else these task ids are the study's
    tasks_of_each_kind: Positive
    burn_in_tasks: Positive
    min_rows: Positive
    max_rows: Positive  # as the metadata state; a larger task is passed over
    max_features: Positive
    max_classes: Positive


@dataclass(config=STRICT, kw_only=True, frozen=True)
class OwnTable:
    """One table of the user's: a CSV (or .csv.gz), what is predicted, and where it belongs."""

    path: str
    kind: Literal["classification", "regression"]
    target: str
    sha256: Sha256 | None = None  # None: whatever the file holds; its digest is recorded either way
    drop: tuple[str, ...] = ()  # row numbers, identifiers, and columns that give the target away
    burn_in: bool = False  # a table that cards, fallbacks and priors learn from, never the study


@dataclass(config=STRICT, kw_only=True, frozen=True)
class TablesPool:
    """A user's own CSV tables, one task each."""

    kind: Literal["tables"]
    watch: str
    tables: Mapping[TaskName, OwnTable]
    max_rows: Positive


@dataclass(config=STRICT, kw_only=True, frozen=True)
class FrozenPool:
    """A decided study's frozen stimuli, for a control: out of a bundle, or of this project's own study."""

    kind: Literal["frozen"]
    watch: str  # the study's finished ledger, or the bundle
    study: str  # the name under which it was frozen
    path: str  # a bundle, or a project's root


@dataclass(config=STRICT, kw_only=True, frozen=True)
class OwnPool:
    """A user's own states, explanations and, now or later, outcomes (CSV, JSONL or Parquet)."""

    kind: Literal["own"]
    watch: str
    path: str
    sha256: Sha256 | None
    outcomes: str | None  # a file of outcomes apart from the states, which may not exist yet
    burn_in: str | None  # a file like `path` with known outcomes that fallback and priors learn from


Pool = Annotated[
    MoleculeAcePool
    | MolNetPool
    | CsvPool
    | RegimesPool
    | PackagedPool
    | OpenMLPool
    | TablesPool
    | FrozenPool
    | OwnPool,
    Field(discriminator="kind"),
]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class StudyConfig:
    """What every study's configuration holds; each study adds its population in a class of its own."""

    rule: str  # which suite in studies/ declares and decides it
    pool: str
    burn_in: str  # the pool whose unused tasks or seeds playbook, fallback and priors learn from
    contexts: tuple[Context, ...]

    def lists(self) -> Mapping[str, Sequence[Any]]:
        """The lists that may be neither empty nor hold an entry twice, by key."""
        return {"contexts": [str(context) for context in self.contexts]}


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Sampled:
    """How a model is asked; part of every prompt. None leaves a setting to the provider."""

    name: str
    temperature: Annotated[float, Field(ge=0)] | None
    top_p: Annotated[float, Field(gt=0, le=1)] | None
    max_tokens: Positive


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Gguf(Sampled):
    """A model file out of a pinned wheel, run in this process through llama.cpp."""

    temperature: Annotated[float, Field(ge=0)]
    top_p: Annotated[float, Field(gt=0, le=1)]
    distribution: str
    version: str
    wheel_sha256: Sha256
    member: str
    member_sha256: Sha256
    threads: Positive
    prefix_cache: bool


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Provided(Sampled):
    """A model behind a provider. Keys come from the environment, and an address may."""

    model: str  # as it is requested
    key_env: Variable | None = None  # the variable that holds the key; None: none is needed
    concurrency: Positive = 1  # calls in flight at once
    deadline_s: Annotated[float, Field(gt=0)] = 120.0  # for one unit, retries included, asked-for pauses not
    max_cost: Annotated[float, Field(gt=0)] | None = None  # USD that the model may cost in this project
    unanswered: Literal["stop", "fallback"] = "stop"  # where a server that was there gave no content at all


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Endpoint(Provided):
    """A provider that speaks HTTP."""

    base_url: Address = "http://127.0.0.1"
    base_url_env: Variable | None = None  # a variable that, where it is set, names another address
    structured: bool  # hold the answer to a JSON Schema in the provider's own way
    extra: Mapping[str, Any]  # further fields of the request's body, such as thinking


@dataclass(config=STRICT, kw_only=True, frozen=True)
class AnthropicApi(Endpoint):
    """The Anthropic Messages protocol, whoever serves it."""

    kind: Literal["anthropic"]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class OpenAIApi(Endpoint):
    """The OpenAI chat protocol, whoever serves it: vLLM, Ollama, llama.cpp."""

    kind: Literal["openai"]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ClaudeCli(Provided):
    """Sessions of the Claude command line without tools, each a process of its own."""

    kind: Literal["claude_cli"]
    command: str = "claude"


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Elicited(Sampled):
    """What every forecaster's configuration holds."""

    watch: str  # the file or folder whose change makes DVC read, or ask, again
    elicitation: Literal["sentence", "json"]
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
    structured: bool = True  # whether the recorded forecaster's answers were held to a grammar or a schema


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Filed(Elicited):
    """Forecasts from elsewhere, in a hubverse model-output file, instead of a model."""

    kind: Literal["file"]
    path: str


@dataclass(config=STRICT, kw_only=True, frozen=True)
class AnthropicForecaster(AnthropicApi, Elicited):
    """A model behind the Anthropic protocol as a forecaster."""


@dataclass(config=STRICT, kw_only=True, frozen=True)
class OpenAIForecaster(OpenAIApi, Elicited):
    """A model behind the OpenAI protocol as a forecaster."""


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ClaudeCliForecaster(ClaudeCli, Elicited):
    """The Claude command line as a forecaster."""


Forecaster = Annotated[
    LlamaCpp | Priors | Replay | Filed | AnthropicForecaster | OpenAIForecaster | ClaudeCliForecaster,
    Field(discriminator="kind"),
]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ControlConfig(StudyConfig):
    """A post-outcome control: its pool holds the frozen stimuli, or generates the control's own states."""

    forecaster: Forecaster | None = None  # None: the run's


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Playbook:
    """The deterministic author: textbook mechanisms, numbers from the burn-in."""

    kind: Literal["playbook"]
    name: str


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ModelAgent(Gguf, Sampled):
    """The embedded model as an author of cards."""

    kind: Literal["llama_cpp"]


Agent = Annotated[Playbook | ModelAgent | AnthropicApi | OpenAIApi | ClaudeCli, Field(discriminator="kind")]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Rules:
    """Reads an explanation's slots by labels and cue words; no model."""

    kind: Literal["rules"]
    name: str


@dataclass(config=STRICT, kw_only=True, frozen=True)
class ModelExtractor(Gguf, Sampled):
    """The embedded model as a reader of explanations."""

    kind: Literal["llama_cpp"]


Extractor = Annotated[
    Rules | ModelExtractor | AnthropicApi | OpenAIApi | ClaudeCli, Field(discriminator="kind")
]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Price:
    """What a model costs, in USD per million tokens."""

    input: Annotated[float, Field(ge=0)]
    cached_input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Prices:
    """List prices by the model id that is requested, as they stood on a day."""

    date: str  # ISO 8601
    models: Mapping[str, Price]


LEAST_DRAWS = 100  # fewer bound nothing; the studies take 10,000


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Inference:
    """Bootstrap settings; digested into the freeze record with the rule."""

    draws: Annotated[int, Field(ge=LEAST_DRAWS)]
    level: Annotated[float, Field(gt=0.5, lt=1)]  # two-sided, e.g. 0.95


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Execution:
    """Where work units run: joblib's backend and how many at once."""

    backend: Literal["loky", "sequential", "dask", "ray"]
    n_jobs: Positive
    address: str | None  # scheduler address for dask or ray


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Coverage:
    """Sizes of the synthetic study of coverage forecasts; its populations come from the base seed."""

    populations: Positive  # of each scenario
    pilots: Positive  # of each size, from each population
    pilot_sizes: tuple[Annotated[int, Field(ge=2, lt=60)], ...]  # agents; a population has 60
    replicates: Positive  # of both bootstraps
    calibrated_pilots: Positive  # the first so many of the rule's size, for the forecaster that takes long


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Audit:
    """One discovery audit; its secret comes from the base seed."""

    task: str  # of certification.tasks
    agent: str  # scripted, or an option of conf/agent
    budget: Literal["quick", "full"]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Certification:
    """The audits that the stage graph runs."""

    audits: Mapping[TaskName, Audit]


@dataclass(config=STRICT, kw_only=True, frozen=True)
class Params:
    """The whole of params.yaml."""

    seed: Annotated[int, Field(ge=0)]
    scale: Literal["quick", "full"]
    sizes: Mapping[str, Mapping[str, Any]]  # what the scale gives each study; read through studies.*
    pools: Mapping[str, Pool]
    studies: Mapping[str, StudyConfig]
    agent: Agent
    extractor: Extractor
    forecaster: Forecaster
    inference: Inference
    execution: Execution
    prices: Prices | None = None  # a record frozen before there was a table has none
    coverage: Coverage | None = None  # no study of explanations depends on it
    certification: Certification | None = None  # nor on this


PARAMS = TypeAdapter(Params)


def of_study(params: Params, name: str) -> Params:
    """The params under which one study runs: a control may have a forecaster of its own."""
    chosen = params.studies.get(name)
    if isinstance(chosen, ControlConfig) and chosen.forecaster is not None:
        return replace(params, forecaster=chosen.forecaster)
    return params


def parse(raw: Any, kinds: Mapping[str, type[StudyConfig]], *, origin: str) -> Params:
    """Plain YAML values as Params. Raises BadConfig naming the first key that is wrong.

    kinds: the configuration class of each rule. `studies.params` knows those of the installed studies.
    """
    with _first_error(origin):
        values = dict(raw) if isinstance(raw, Mapping) else raw
        params: Params = PARAMS.validate_python(
            values | {"studies": _studies(values.get("studies"), kinds, origin)} if values else values
        )
    for name, study in params.studies.items():
        for pool in (study.pool, study.burn_in):
            if pool not in params.pools:
                raise BadConfig(
                    f"{origin}: studies.{name} asks for pool {pool!r}; "
                    f"pools holds {', '.join(sorted(params.pools))}"
                )
        _check_lists(study.lists(), f"{origin}: studies.{name}")
    if params.coverage is not None:
        _check_lists({"pilot_sizes": params.coverage.pilot_sizes}, f"{origin}: coverage")
    return params


def _studies(raw: Any, kinds: Mapping[str, type[StudyConfig]], origin: str) -> Any:
    """Each study's values as its rule's own class."""
    if not isinstance(raw, Mapping):
        return raw
    found = {}
    for name, values in raw.items():
        rule = str(values.get("rule")) if isinstance(values, Mapping) else "missing"
        if rule not in kinds:
            raise BadConfig(
                f"{origin}: studies.{name}.rule is {rule!r}; the studies are {', '.join(sorted(kinds))}"
            )
        with _first_error(origin, "studies", name):
            found[name] = TypeAdapter(kinds[rule]).validate_python(values)
    return found


@contextmanager
def _first_error(origin: str, *within: Any) -> Iterator[None]:
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        loc, said = list(first["loc"]), first["msg"]
        tag = {"pools": 2, "forecaster": 1, "agent": 1, "extractor": 1}.get(str(loc[0]) if loc else "")
        if tag is not None and len(loc) > tag + 1:
            del loc[tag]  # the kind, which pydantic names and nobody wrote as a key
        where = ".".join(map(str, (*within, *loc))) or "(top)"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        seen = (
            "seen something else, not shown here"
            if loc and loc[-1] in UNSHOWN
            else f"seen {first['input']!r}"
        )
        raise BadConfig(
            f"{origin}: {where}: {said[:1].lower()}{said[1:]}; {seen}{more}; "
            "correct it in conf/ or on the command line"
        ) from None


def _check_lists(lists: Mapping[str, Sequence[Any]], where: str) -> None:
    """Raise BadConfig for a list without entries, or an entry twice: each state needs its own id."""
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


def section(value: Any) -> dict[str, Any]:
    """A config dataclass as plain values, for digests."""
    return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return section(value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, Enum):
        return value.value
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value
