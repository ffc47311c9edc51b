"""OpenML tasks through openml-python: drawn by a lottery over ids, kept as Parquet with what is predicted."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import re
import shutil
import tempfile
import xml.parsers.expat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol
from urllib.parse import urlsplit

from predictive_credit import canonical, tables
from predictive_credit.config import OpenMLPool
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.sources import checksums, lottery, manifest
from predictive_credit.sources.fetched import Fetched
from predictive_credit.sources.manifest import KINDS, Kind, TableFile
from predictive_credit.sources.mirror import mirror
from predictive_credit.sources.quiet import quiet

TIMEOUT_SECONDS = 60.0
TASK_TYPES: Mapping[int, Kind] = {1: "classification", 2: "regression"}  # OpenML's numbers
_REMEDY = "try again, or set PREDICTIVE_CREDIT_MIRROR to a directory that holds it below openml/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the metadata say of a task; the lottery reads nothing else."""

    task: int
    data: int  # OpenML's id of the data set
    kind: Kind
    rows: int
    features: int  # predictors: OpenML's count without the target
    classes: int  # 0 for regression


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """The tasks of the study and of the burn-in, each by kind in the order of the lottery."""

    study: tuple[int, ...]
    burn_in: tuple[int, ...]
    absent: int  # members of the suites whose metadata the source does not hold
    outside: int  # members looked at and passed over for their size


class Shelf(Protocol):
    """Where suites, metadata and tasks come from."""

    source: str
    origin: str

    def members(self, suite: int) -> Sequence[int]:
        """Task ids of a suite."""

    def facts(self, tasks: Sequence[int]) -> Mapping[int, Facts]:
        """Metadata of those of the tasks that are there."""

    def lay_out(self, tasks: Sequence[int], cache: Path) -> None:
        """Put into openml's cache what it must not look for elsewhere."""


def fetched(pool: OpenMLPool) -> Fetched:
    """The drawn (or named) tasks, one Parquet file each, and tasks.jsonl.

    openml works in a temporary cache, which takes the pickles it makes away with it. Raises BadConfig for
    a list that names a task twice, BadSource for a task that is not there, cannot be had, or is short.
    """
    with tempfile.TemporaryDirectory(prefix="openml-") as scratch, _openml(Path(scratch)) as openml:
        here = mirror()
        shelf: Shelf = _Origin(openml) if here is None else _Mirror(openml, here / "openml")
        drawn = _draw(pool, shelf)
        tasks = (*drawn.study, *drawn.burn_in)
        shelf.lay_out(tasks, Path(scratch))
        found = [_task(openml, task, role=_role(task, drawn)) for task in tasks]
    listed = _distinct([entry for entry, _ in found])
    files = {entry.file: data for entry, (_, data) in zip(listed, found, strict=True)}
    return Fetched(
        files=files | {manifest.MANIFEST: manifest.encode(listed)}, source=shelf.source, origin=shelf.origin,
        licence=f"one a task, in {manifest.MANIFEST}", unpinned=shelf.source == "origin",
        note=_note(pool, drawn, shelf),
    )  # fmt: skip


def draw(
    pool: OpenMLPool,
    members: Mapping[Kind, Sequence[int]],
    facts: Mapping[int, Facts],
    *,
    taken: Sequence[int] = (),
) -> Draw:
    """The lottery: each suite's tasks by SHA-256 of "salt/suite/task id", those in the limits first come.

    members: each suite's task ids in any order; facts: the metadata of those that are there; taken: tasks
    that are the study's already, whose data sets the burn-in then avoids. Raises BadSource for a suite
    with fewer tasks inside the limits than are asked.
    """
    used = {facts[task].data for task in taken}
    study, burn_in, absent, outside = list(taken), [], 0, 0
    for kind, tasks in members.items():
        suite = pool.suites[kind]
        n_study = 0 if taken else pool.tasks_of_each_kind
        chosen: list[int] = []
        for task in lottery.order(tasks, salt=pool.salt, group=suite):
            if len(chosen) == n_study + pool.burn_in_tasks:
                break
            if task not in facts:
                absent += 1
            elif not _fits(pool, facts[task]):
                outside += 1
            elif facts[task].data not in used:
                used.add(facts[task].data)
                chosen.append(task)
        _check_enough(pool, kind, asked=n_study + pool.burn_in_tasks, seen=len(chosen))
        study += chosen[:n_study]
        burn_in += chosen[n_study:]
    return Draw(study=tuple(study), burn_in=tuple(burn_in), absent=absent, outside=outside)


def _draw(pool: OpenMLPool, shelf: Shelf) -> Draw:
    members = {kind: shelf.members(pool.suites[kind]) for kind in KINDS if kind in pool.suites}
    named = pool.tasks or ()
    if len(set(named)) < len(named):
        raise BadConfig(f"the pool's tasks name {_twice(named)} twice; name it once")
    facts = shelf.facts(sorted({*named, *(task for tasks in members.values() for task in tasks)}))
    for task in named:
        if task not in facts:
            raise BadSource(
                f"{shelf.origin} has no classification or regression task {task}; "
                "name another in the pool's tasks"
            )
    in_order = sorted(named, key=lambda task: KINDS.index(facts[task].kind))
    return draw(pool, members, facts, taken=in_order)


def _twice(tasks: Sequence[int]) -> int:
    return next(task for task in tasks if tasks.count(task) > 1)


def _fits(pool: OpenMLPool, facts: Facts) -> bool:
    return (
        pool.min_rows <= facts.rows <= pool.max_rows
        and facts.features <= pool.max_features
        and facts.classes <= pool.max_classes
    )


def _check_enough(pool: OpenMLPool, kind: Kind, *, asked: int, seen: int) -> None:
    if seen < asked:
        raise BadSource(
            f"suite {pool.suites[kind]} has {seen} {kind} tasks at hand and inside the size limits, not "
            f"the {asked} asked; lower tasks_of_each_kind or burn_in_tasks, or widen the limits"
        )


def _role(task: int, drawn: Draw) -> Literal["study", "burn-in"]:
    return "study" if task in drawn.study else "burn-in"


def _note(pool: OpenMLPool, drawn: Draw, shelf: Shelf) -> str:
    how = "named" if pool.tasks else "drawn"
    return (
        f"{len(drawn.study)} tasks {how} and {len(drawn.burn_in)} for the burn-in; the lottery passed over "
        f"{drawn.absent} suite members that {shelf.origin} lacks and {drawn.outside} outside the size limits"
    )


def _task(openml: Any, task: int, *, role: Literal["study", "burn-in"]) -> tuple[TableFile, bytes]:
    """A task as its place in the manifest and its Parquet bytes; nominal columns stay so."""
    with _one_sentence(openml, f"OpenML task {task}"):
        found = openml.tasks.get_task(task, download_splits=False)
        dataset = found.get_dataset()
        frame, *_ = dataset.get_data(dataset_format="dataframe")
    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", dataset.name).strip("-._") or f"task-{task}"
    entry = TableFile(
        name=name, file=f"{name}.parquet", kind=TASK_TYPES[found.task_type_id.value],
        target=found.target_name, role=role,
        origin=f"OpenML task {task}, data set {dataset.dataset_id} version {dataset.version}",
        licence=dataset.licence,
    )  # fmt: skip
    buffer = io.BytesIO()
    frame.to_parquet(buffer, index=False)
    return entry, buffer.getvalue()


def _distinct(listed: Sequence[TableFile]) -> list[TableFile]:
    """Two data sets may share a name: the later ones carry their place."""
    seen: dict[str, int] = {}
    distinct = []
    for entry in listed:
        seen[entry.name] = seen.get(entry.name, 0) + 1
        name = entry.name if seen[entry.name] == 1 else f"{entry.name}.{seen[entry.name]}"
        distinct.append(replace(entry, name=name, file=f"{name}.parquet"))
    return distinct


class _Origin:
    """OpenML itself, as the user's openml configuration names it."""

    source = "origin"

    def __init__(self, openml: Any) -> None:
        self._openml = openml
        self.origin = str(openml.config.server)

    def members(self, suite: int) -> Sequence[int]:
        with _one_sentence(self._openml, f"OpenML suite {suite}"):
            return [int(task) for task in self._openml.study.get_suite(suite).tasks]

    def facts(self, tasks: Sequence[int]) -> Mapping[int, Facts]:
        with _one_sentence(self._openml, "the metadata of OpenML's tasks"):
            listing = self._openml.tasks.list_tasks(output_format="dataframe", task_id=list(tasks))
        rows = {int(row["tid"]): row for row in listing.to_dict("records")}
        return {task: _listed(row) for task, row in rows.items() if row["ttid"].value in TASK_TYPES}

    def lay_out(self, tasks: Sequence[int], cache: Path) -> None:
        """Nothing: openml downloads what it needs."""


def _listed(row: Mapping[str, Any]) -> Facts:
    """A row of OpenML's list of tasks, whose NumberOfFeatures counts the target too."""
    kind = TASK_TYPES[row["ttid"].value]
    try:
        return Facts(
            task=int(row["tid"]), data=int(row["did"]), kind=kind, rows=int(row["NumberOfInstances"]),
            features=int(row["NumberOfFeatures"]) - 1,
            classes=int(row["NumberOfClasses"]) if kind == "classification" else 0,
        )  # fmt: skip
    except (KeyError, ValueError) as error:
        raise BadSource(
            f"OpenML's metadata of task {row['tid']} lack a size ({error}), so no lottery can place it; "
            "try again later"
        ) from None


class _Mirror:
    """A folder that holds suites.csv, tasks.csv, details.csv and openml's cache entries."""

    source = "mirror"
    origin = "the mirror's openml/"

    def __init__(self, openml: Any, folder: Path) -> None:
        # The cache is laid out below the name of OpenML's own server.
        openml.config.server = openml.config._defaults["server"]
        self._folder = folder
        self._tasks = {int(row["task_id"]): row for row in self._rows("tasks.csv")}

    def members(self, suite: int) -> Sequence[int]:
        found = [int(row["task_id"]) for row in self._rows("suites.csv") if row["suite_id"] == str(suite)]
        if not found:
            raise BadSource(f"the mirror's openml/suites.csv knows no suite {suite}; {_MIRROR_REMEDY}")
        return found

    def facts(self, tasks: Sequence[int]) -> Mapping[int, Facts]:
        return {task: _mirrored(self._tasks[task]) for task in tasks if task in self._tasks}

    def lay_out(self, tasks: Sequence[int], cache: Path) -> None:
        details = {int(row["task_id"]): row for row in self._rows("details.csv")}
        for task in tasks:
            data = self._tasks[task]["dataset_id"]
            for entry in (f"tasks/{task}", f"datasets/{data}"):
                self._copy(entry, cache)
            if task not in details:
                raise BadSource(f"the mirror's openml/details.csv lacks task {task}; {_MIRROR_REMEDY}")
            file = details[task]["data_file"]
            seen = canonical.digest_file(cache / Path(file).relative_to("cache"))
            checksums.check_digest(
                seen, details[task]["sha256"], what=f"the mirror's openml/{file}", remedy=_MIRROR_REMEDY
            )

    def _rows(self, name: str) -> list[dict[str, str]]:
        return tables.parse_csv(_read(self._folder / name), name)

    def _copy(self, entry: str, cache: Path) -> None:
        below = Path("org", "openml", "www", entry)
        try:
            shutil.copytree(
                self._folder / "cache" / below, cache / below, ignore=_PICKLES, dirs_exist_ok=True
            )
        except (OSError, shutil.Error):
            raise BadSource(
                f"the mirror's openml/cache lacks {below} or part of it; {_MIRROR_REMEDY}"
            ) from None
        for path in (cache / below).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)  # openml writes beside what it reads
        (cache / below).chmod(0o755)


# openml would read those it finds, and reading a pickle runs its author's code.
_PICKLES = shutil.ignore_patterns("*.pkl", "*.pkl.*", "*.pickle")
_MIRROR_REMEDY = "put it there, or unset PREDICTIVE_CREDIT_MIRROR to use OpenML itself"


def _mirrored(row: Mapping[str, str]) -> Facts:
    kind: Kind = "classification" if row["kind"] == "classification" else "regression"
    return Facts(
        task=int(row["task_id"]), data=int(row["dataset_id"]), kind=kind, rows=int(row["rows"]),
        features=int(row["features"]), classes=int(row["classes"] or 0) if kind == "classification" else 0,
    )  # fmt: skip


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise BadSource(
            f"the mirror's openml/{path.name} cannot be read ({reason}); {_MIRROR_REMEDY}"
        ) from None


@contextlib.contextmanager
def _openml(cache: Path) -> Iterator[Any]:
    """openml-python, silent, one attempt a call, none without a time limit, and with its cache in `cache`."""
    with quiet():
        openml = importlib.import_module("openml")  # takes seconds, so only where it is used
        requests = importlib.import_module("requests")
        config = openml.config
        before = (
            config.server,
            config._root_cache_directory,
            config.retry_policy,
            config.connection_n_retries,
        )
        asked = requests.Session.request
        requests.Session.request = functools.partialmethod(asked, timeout=TIMEOUT_SECONDS)
        try:
            config.set_root_cache_directory(str(cache))
            config.set_retry_policy("human", 1)
            yield openml
        finally:
            requests.Session.request = asked
            config.server, config._root_cache_directory, config.retry_policy, config.connection_n_retries = (
                before
            )


@contextlib.contextmanager
def _one_sentence(openml: Any, what: str) -> Iterator[None]:
    requests = importlib.import_module("requests")
    refused = (
        openml.exceptions.PyOpenMLError,
        requests.exceptions.RequestException,
        importlib.import_module("minio.error").MinioException,  # the store of Parquet files
        importlib.import_module("urllib3.exceptions").HTTPError,
        xml.parsers.expat.ExpatError,
        AssertionError,  # openml's word for an answer of another form
        KeyError,
        OSError,
        TypeError,
        ValueError,
    )
    try:
        yield
    except requests.exceptions.Timeout:
        raise BadSource(f"{what} did not come within {TIMEOUT_SECONDS:g} s; {_REMEDY}") from None
    except requests.exceptions.ConnectionError:
        raise BadSource(
            f"{what} could not be fetched (no connection to {_host(openml)}); {_REMEDY}"
        ) from None
    except refused as error:
        raise BadSource(f"{what} could not be fetched ({_short(error)}); {_REMEDY}") from None


def _host(openml: Any) -> str:
    return urlsplit(openml.config.server).netloc or str(openml.config.server)


def _short(error: Exception) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= 160 else said[:157] + "..."
