"""tasks.jsonl: which of a pool's raw files is which task, and how it is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from predictive_credit import tables

MANIFEST = "tasks.jsonl"
Kind = Literal["classification", "regression"]
KINDS: tuple[Kind, Kind] = ("classification", "regression")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFile:
    """A task's raw file: a CSV (also gzipped, also `.dat`) or a Parquet file, and what is predicted."""

    name: str
    file: str  # beside tasks.jsonl
    kind: Kind
    target: str
    role: Literal["study", "burn-in"]
    origin: str  # the wheel's member, the OpenML task, or the user's file
    licence: str | None
    header: bool = True  # False: the columns are called column_1, column_2, and so on
    delimiter: str = ","
    drop: tuple[str, ...] = ()


def encode(files: Iterable[TableFile]) -> bytes:
    """tasks.jsonl: one task a line, in the order given."""
    return tables.encode_lines(files)


def read(raw: Path) -> tuple[TableFile, ...]:
    """The tasks of a fetched pool, in the order of their lottery. Raises OutOfOrder before the fetch."""
    return tables.read_records(raw / MANIFEST, TableFile)
