"""A pool's raw files as rows of SMILES and labels, before any chemistry is looked at."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictive_credit.config import CsvPool, MoleculeAcePool, MolNetPool
from predictive_credit.errors import BadConfig, BadSource

Array = NDArray[np.float64]
MISSING = frozenset({"", "na", "n/a", "nan", "none", "null"})
SMILES_NAMES = ("smiles", "mol")  # in this order
POTENCY = "exp_mean [nM]"


class Finding(NamedTuple):
    """Something a reader of the table should know: which row, what sort, and the detail."""

    row: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RawTable:
    """Rows as written. `labels` is (row, endpoint), each 0, 1 or NaN for missing.

    A row's id is its number below the header, from 1; in a pool of several tables the table's name
    stands before it (`CHEMBL204_Ki:17`).
    """

    rows: tuple[str, ...]
    smiles: tuple[str, ...]
    endpoints: tuple[str, ...]
    labels: Array
    meaning: str  # what label 1 says, as a public sentence
    ignored_columns: Mapping[str, str]
    dropped: tuple[Finding, ...]


class _Sheet(NamedTuple):
    """One CSV file: its header, whole rows with their numbers, and ragged rows as findings."""

    name: str
    header: list[str]
    numbers: list[int]
    cells: list[list[str]]
    dropped: list[Finding]

    def column(self, name: str) -> list[str]:
        index = self.header.index(name)
        return [row[index].strip() for row in self.cells]


def moleculeace(pool: MoleculeAcePool, files: Sequence[Path]) -> RawTable:
    """30 assays as one table; label 1 where the mean potency is `active_at_most_nm` nM or better."""
    sheets = [_sheet(path) for path in files]
    endpoints = tuple(sheet.name.removesuffix(".csv") for sheet in sheets)
    blocks = []
    for index, sheet in enumerate(sheets):
        block = np.full((len(sheet.cells), len(sheets)), np.nan)
        block[:, index] = _potencies(sheet) <= pool.active_at_most_nm
        blocks.append(block)
    pairs = list(zip(endpoints, sheets, strict=True))
    return RawTable(
        rows=tuple(f"{name}:{number}" for name, sheet in pairs for number in sheet.numbers),
        smiles=tuple(text for sheet in sheets for text in sheet.column("smiles")),
        endpoints=endpoints,
        labels=np.concatenate(blocks),
        meaning=f"Active means a mean measured potency of {pool.active_at_most_nm:g} nM or better.",
        ignored_columns={},
        dropped=tuple(f._replace(row=f"{name}:{f.row}") for name, sheet in pairs for f in sheet.dropped),
    )


def csv_table(pool: CsvPool | MolNetPool, path: Path) -> RawTable:
    """One table with a SMILES column and endpoint columns of 0, 1 or nothing.

    Raises BadSource for an empty or unreadable table, repeated header names, an absent SMILES or
    endpoint column, and an asked endpoint that holds anything else (naming row, column, value).
    """
    sheet = _sheet(path)
    smiles = _smiles_column(sheet, pool.smiles_column)
    if pool.endpoints is None:
        columns, ignored = _usable_columns(sheet, smiles)
    else:
        columns, ignored = _asked_columns(sheet, pool.endpoints), {}
    return RawTable(
        rows=tuple(map(str, sheet.numbers)),
        smiles=tuple(sheet.column(smiles)),
        endpoints=tuple(columns),
        labels=np.column_stack(list(columns.values())),
        meaning="Active means label 1 in the table.",
        ignored_columns=ignored,
        dropped=tuple(sheet.dropped),
    )


def _sheet(path: Path) -> _Sheet:
    name = path.name.removesuffix(".gz")
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        lines = [line for line in reader if line]
    except csv.Error as error:
        raise BadSource(f"{name} line {reader.line_num} is not CSV: {error}; correct the table") from None
    if not lines:
        raise BadSource(f"{name} is empty; give a table with a header and rows")
    header = [cell.strip() for cell in lines[0]]
    _check_header(header, name)
    whole = [(number, line) for number, line in enumerate(lines[1:], start=1) if len(line) == len(header)]
    if not whole:
        raise BadSource(f"{name} has a header and no row that fits it; give a table with rows")
    ragged = [
        Finding(str(number), "ragged", f"{len(line)} fields under a header of {len(header)}")
        for number, line in enumerate(lines[1:], start=1)
        if len(line) != len(header)
    ]
    return _Sheet(name, header, [number for number, _ in whole], [line for _, line in whole], ragged)


def _text(path: Path) -> str:
    data = path.read_bytes()
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{path.name} is a damaged gzip file ({error}); restore it") from None
    except UnicodeDecodeError as error:
        raise BadSource(f"{path.name} is not UTF-8 at byte {error.start}; save the table as UTF-8") from None


def _check_header(header: Sequence[str], name: str) -> None:
    named = [cell for cell in header if cell]
    repeated = sorted({cell for cell in named if named.count(cell) > 1})
    if repeated:
        raise BadSource(
            f"{name} has {len(repeated)} repeated header names, first {repeated[0]!r}; "
            "give each column a name of its own"
        )


def _smiles_column(sheet: _Sheet, asked: str | None) -> str:
    if asked is not None:
        if asked not in sheet.header:
            raise BadSource(f"{sheet.name} has no column {asked!r}; {_there(sheet)}; correct smiles_column")
        return asked
    for name in SMILES_NAMES:
        found = [column for column in sheet.header if column.lower() == name]
        if len(found) > 1:
            raise BadSource(f"{sheet.name} has the columns {found}; choose one in smiles_column")
        if found:
            return found[0]
    raise BadSource(
        f"{sheet.name} has no column called smiles or mol; {_there(sheet)}; name it in smiles_column"
    )


def _there(sheet: _Sheet) -> str:
    names = [repr(name) for name in sheet.header if name]
    more = f" and {len(names) - 6} more" if len(names) > 6 else ""
    return f"it holds {', '.join(names[:6])}{more}"


def _asked_columns(sheet: _Sheet, endpoints: Sequence[str]) -> dict[str, Array]:
    columns: dict[str, Array] = {}
    for name in endpoints:
        if name in columns:
            raise BadConfig(f"endpoint {name!r} is asked twice; name each once")
        if name not in sheet.header:
            raise BadSource(f"{sheet.name} has no endpoint {name!r}; {_there(sheet)}; correct endpoints")
        values = sheet.column(name)
        strange = _first_strange(values)
        if strange is not None:
            raise BadSource(
                f"{sheet.name} row {sheet.numbers[strange]}, column {name!r} holds {values[strange]!r}, "
                "not 0, 1 or missing; correct the table, or leave the column out of endpoints"
            )
        columns[name] = _labels(values)
    if not columns:
        raise BadConfig("endpoints is an empty list; name some, or set it to null for every usable column")
    return columns


def _usable_columns(sheet: _Sheet, smiles: str) -> tuple[dict[str, Array], dict[str, str]]:
    """Every column that holds only 0, 1 and missing, and why each other one is left out."""
    columns: dict[str, Array] = {}
    ignored: dict[str, str] = {}
    for position, name in enumerate(sheet.header):
        if not name:
            ignored[f"(column {position + 1})"] = "it has no name"
        elif name != smiles:
            values = sheet.column(name)
            strange = _first_strange(values)
            if strange is not None:
                ignored[name] = f"row {sheet.numbers[strange]} holds {values[strange]!r}"
            elif np.isnan(labels := _labels(values)).all():
                ignored[name] = "every value is missing"
            else:
                columns[name] = labels
    if not columns:
        first = next((f"; {name}: {why}" for name, why in ignored.items()), "")
        raise BadSource(f"{sheet.name} has no column of only 0, 1 and missing{first}; give it an endpoint")
    return columns, ignored


def _label(text: str) -> float | None:
    """0.0, 1.0, NaN for missing; None for anything else."""
    if text.lower() in MISSING:
        return math.nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if value in (0.0, 1.0) else None


def _first_strange(values: Sequence[str]) -> int | None:
    strange = {text for text in set(values) if _label(text) is None}
    return next((index for index, text in enumerate(values) if text in strange), None) if strange else None


def _labels(values: Sequence[str]) -> Array:
    known = {text: _label(text) for text in set(values)}
    return np.array([known[text] for text in values], dtype=float)


def _potencies(sheet: _Sheet) -> Array:
    """Mean potency in nM. Raises BadSource for a cell that is no positive number."""
    for name in ("smiles", POTENCY):
        if name not in sheet.header:
            raise BadSource(f"{sheet.name} has no column {name!r}; {_there(sheet)}; fetch the pinned version")
    values = sheet.column(POTENCY)
    for number, text in zip(sheet.numbers, values, strict=True):
        if not _is_positive(text):
            raise BadSource(f"{sheet.name} row {number} holds the potency {text!r}; fetch the pinned version")
    return np.array(values, dtype=float)


def _is_positive(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    return math.isfinite(value) and value > 0
