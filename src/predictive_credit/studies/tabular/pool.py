"""The tabular study's tasks: cleaned, filed, and read again."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from predictive_credit import tables
from predictive_credit.config import Execution, OpenMLPool, PackagedPool, Pool, TablesPool
from predictive_credit.errors import BadConfig, Tampered
from predictive_credit.sources import manifest
from predictive_credit.sources.manifest import TableFile
from predictive_credit.sources.pools import read_source
from predictive_credit.studies import workers
from predictive_credit.studies.tabular import pool_files
from predictive_credit.studies.tabular.cleaning import Array, Finding, Kind, Task, clean

TASKS = "tasks.jsonl"
FINDINGS = "findings.csv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """A pool's tasks: the study's, classification first, each kind in its lottery's order; the burn-in.

    is_drawn: the study's came by a lottery, of which a scale takes the first. Otherwise they were named.
    """

    study: tuple[Task, ...]
    burn_in: tuple[Task, ...]
    is_drawn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filed:
    """What is kept of a task beside its arrays."""

    name: str
    kind: Kind
    role: Literal["study", "burn-in"]
    is_drawn: bool
    target: str
    origin: str
    licence: str | None
    sha256: str  # of the raw file
    categorical: tuple[int, ...]
    classes: tuple[str, ...]
    features: tuple[str, ...]
    counts: dict[str, int] = field(default_factory=dict)


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """Clean every task of a fetched pool and file it in `folder`; equal tables give equal bytes.

    One .npz a task (x and y), tasks.jsonl, and findings.csv with everything that was done. Returns, by
    task, its kind, role, target, origin, licence, classes and counts. Raises BadConfig for a pool that
    has no tables, BadSource as the cleaning does, OutOfOrder before the fetch.
    """
    if not isinstance(pool, PackagedPool | OpenMLPool | TablesPool):
        raise BadConfig(f"the tabular study cannot use a pool of kind {pool.kind}; give it one of tables")
    files = read_source(raw)["files"]
    jobs = [(raw, file, pool.max_rows) for file in manifest.read(raw)]
    cleaned = workers.run(_clean, jobs, execution, title="tables")
    filed = []
    for (_, file, _), (task, _) in zip(jobs, cleaned, strict=True):
        tables.write_bytes(folder / f"{task.name}.npz", _npz(task.x, task.y))
        filed.append(_filed(file, task, sha256=files[file.file]["sha256"], is_drawn=_is_drawn(pool)))
    tables.write_bytes(folder / TASKS, tables.encode_lines(filed))
    findings = [finding for _, found in cleaned for finding in found]
    tables.write_csv(folder / FINDINGS, Finding._fields, findings)
    return {"tasks": {entry.name: _told(entry) for entry in filed}}


def load(folder: Path) -> Tasks:
    """The tasks as they were filed. Raises OutOfOrder before they were, Tampered when files do not fit."""
    filed = tables.read_records(folder / TASKS, _Filed)
    return Tasks(
        study=_of(folder, filed, "study"), burn_in=_of(folder, filed, "burn-in"),
        is_drawn=all(entry.is_drawn for entry in filed),
    )  # fmt: skip


def _clean(job: tuple[Path, TableFile, int]) -> tuple[Task, tuple[Finding, ...]]:
    raw, file, max_rows = job
    return clean(pool_files.read(raw, file), max_rows=max_rows)


def _is_drawn(pool: PackagedPool | OpenMLPool | TablesPool) -> bool:
    return isinstance(pool, PackagedPool) or (isinstance(pool, OpenMLPool) and not pool.tasks)


def _filed(file: TableFile, task: Task, *, sha256: str, is_drawn: bool) -> _Filed:
    return _Filed(
        name=task.name, kind=task.kind, role=file.role, is_drawn=is_drawn, target=task.target,
        origin=file.origin, licence=file.licence, sha256=sha256, categorical=task.categorical,
        classes=task.classes, features=task.features, counts=dict(task.counts),
    )  # fmt: skip


def _told(entry: _Filed) -> dict[str, Any]:
    return {
        "kind": entry.kind, "role": entry.role, "target": entry.target, "origin": entry.origin,
        "licence": entry.licence, "classes": len(entry.classes), "counts": dict(sorted(entry.counts.items())),
    }  # fmt: skip


def _of(folder: Path, filed: Sequence[_Filed], role: str) -> tuple[Task, ...]:
    return tuple(_task(folder, entry) for entry in filed if entry.role == role)


def _task(folder: Path, entry: _Filed) -> Task:
    path = folder / f"{entry.name}.npz"
    x, y = _arrays(path)
    if x.shape != (entry.counts["rows"], len(entry.features)) or y.shape != (entry.counts["rows"],):
        raise Tampered(
            f"{path} has shapes {x.shape} and {y.shape}, not those of {TASKS}; run the features stage"
        )
    return Task(
        name=entry.name, kind=entry.kind, target=entry.target, x=x, categorical=entry.categorical, y=y,
        classes=entry.classes, features=entry.features, counts=entry.counts, sha256=entry.sha256,
    )  # fmt: skip


def _npz(x: Array, y: Array) -> bytes:
    """The entries of a .npz carry no time, so equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.ascontiguousarray(x), y=y)
    return buffer.getvalue()


def _arrays(path: Path) -> tuple[Array, Array]:
    data = tables.read_bytes(path)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            return found["x"], found["y"]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise Tampered(f"{path} holds no x and y ({error}); run the features stage again") from None


__all__ = ["Finding", "Kind", "Task", "Tasks", "features", "load"]
