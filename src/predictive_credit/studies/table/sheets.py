"""A user's file as rows of named cells: CSV, JSONL or Parquet, before any column is given a meaning.

A row is called what its reader calls it: the line of a CSV or JSONL file on which it begins, the
row number in a Parquet file. Blank rows say nothing and are counted.
"""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from pyarrow import parquet

from predictive_credit.errors import BadSource

SUFFIXES = (".csv", ".csv.gz", ".jsonl", ".parquet")
DELIMITERS = (",", ";", "\t")
_GZIP_START = b"\x1f\x8b"


class Record(NamedTuple):
    """One row: where it stands (`line 4`, `row 4`) and its cells as plain JSON values."""

    where: str
    cells: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A whole file. `columns` in its own order; a cell that a JSONL line lacks is None."""

    name: str  # as the user calls the file
    columns: tuple[str, ...]
    records: tuple[Record, ...]
    blank: int = 0


class Trouble(NamedTuple):
    """One thing wrong with one row: where, in which column if any, why, and what to do."""

    where: str
    column: str | None
    reason: str
    remedy: str


def refuse(name: str, troubles: Sequence[Trouble]) -> None:
    """Raise BadSource for the first trouble, saying how many more there are; return if there is none."""
    if not troubles:
        return
    first, more = troubles[0], len(troubles) - 1
    column = "" if first.column is None else f", column {first.column!r}"
    others = f" (and {more} more, next {troubles[1].where})" if more else ""
    raise BadSource(f"{name} {first.where}{column}: {first.reason}{others}; {first.remedy}")


def is_blank(cell: Any) -> bool:
    """Whether a cell holds nothing."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def read(path: Path, name: str | None = None) -> Sheet:
    """The sheet in a file, which errors call `name`. Raises BadSource."""
    name = str(path) if name is None else name
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise BadSource(f"{name} cannot be read ({reason}); correct the path") from None
    return parse(data, name, path.name)


def parse(data: bytes, name: str, file: str | None = None) -> Sheet:
    """The sheet in a file's bytes; the ending of `file`, by default of `name`, says how to read it.

    Raises BadSource for bytes that are no such file, a header without rows, repeated column names,
    rows that do not fit the header, and lines that are not one flat JSON object.
    """
    lowered = (name if file is None else file).lower()
    if not lowered.endswith(SUFFIXES):
        raise BadSource(f"{name} is none of {', '.join(SUFFIXES)}; save the table as one of these")
    if not data.strip():
        raise BadSource(f"{name} is empty; give a table with a header and rows")
    if lowered.endswith(".parquet"):
        sheet = _parquet(data, name)
    else:
        text = _text(data, name)
        sheet = _jsonl(text, name) if lowered.endswith(".jsonl") else _csv(text, name)
    if not sheet.records:
        raise BadSource(f"{name} has no row with anything in it; give a table with rows")
    return sheet


def _text(data: bytes, name: str) -> str:
    try:
        if data.startswith(_GZIP_START):
            data = gzip.decompress(data)
        return data.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(f"{name} is a damaged gzip file ({error}); restore it") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadSource(f"{name} line {line} is not UTF-8 (byte {error.start}); save it as UTF-8") from None


def _csv(text: str, name: str) -> Sheet:
    lines = _csv_lines(text, name)
    if not lines:
        raise BadSource(f"{name} is empty; give a table with a header and rows")
    header = [cell.strip() for cell in lines[0][1]]
    _check_names(header, name)
    refuse(name, [
        Trouble(
            f"line {number}", None, f"{len(cells)} fields under a header of {len(header)}",
            "put quotes around a cell that holds the separator or a line end",
        )
        for number, cells in lines[1:] if len(cells) != len(header)
    ])  # fmt: skip
    records = [
        Record(f"line {number}", {key: cell for key, cell in zip(header, cells, strict=True) if key})
        for number, cells in lines[1:]
    ]
    return _sheet(name, [key for key in header if key], records)


def _csv_lines(text: str, name: str) -> list[tuple[int, list[str]]]:
    """Rows that are not empty lines, each with the line on which it begins."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    # A spreadsheet in many countries writes semicolons; the header shows which separator is meant.
    delimiter = max(DELIMITERS, key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    lines, start = [], 1
    try:
        for cells in reader:
            if cells:
                lines.append((start, cells))
            start = reader.line_num + 1
    except csv.Error as error:
        raise BadSource(
            f"{name} line {max(start, reader.line_num)} is not CSV: {error}; correct the line"
        ) from None
    return lines


def _jsonl(text: str, name: str) -> Sheet:
    troubles: list[Trouble] = []
    records = []
    columns: dict[str, None] = {}
    # Not splitlines: a JSON string may hold U+2028 and its kin as they are.
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            cells = _object(line)
        except ValueError as error:
            remedy = "write one flat JSON object a line"
            troubles.append(Trouble(f"line {number}", None, str(error), remedy))
            continue
        columns |= dict.fromkeys(cells)
        records.append(Record(f"line {number}", cells))
    refuse(name, troubles)
    return _sheet(name, columns, records)


def _object(line: str) -> dict[str, Any]:
    """The cells of a JSONL line. Raises ValueError with the reason if it is no object of distinct keys."""
    try:
        found = json.loads(line, object_pairs_hook=_distinct)
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON ({error.msg.lower()} at character {error.pos + 1})") from None
    except UnicodeEncodeError:
        raise ValueError("a string holds half a character (a lone surrogate)") from None
    except RecursionError:
        raise ValueError("values are nested too deep") from None
    if not isinstance(found, dict):
        kind = "null" if found is None else type(found).__name__.replace("str", "string")
        raise ValueError(f"a {kind} where an object is needed")
    return {key.strip(): _plain(cell) for key, cell in found.items()}


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key.strip() for key, _ in pairs]
    repeated = next((key for key in keys if keys.count(key) > 1), None)
    if repeated is not None:
        raise ValueError(f"the key {repeated!r} stands twice")
    return dict(pairs)


def _parquet(data: bytes, name: str) -> Sheet:
    try:
        table = parquet.read_table(io.BytesIO(data))
        _check_names(table.column_names, name)
        columns = {key.strip(): table.column(key).to_pylist() for key in table.column_names}
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadSource(f"{name} is not a readable Parquet file ({reason}); write it again") from None
    records = [
        Record(f"row {number}", {key: _plain(values[number - 1]) for key, values in columns.items()})
        for number in range(1, table.num_rows + 1)
    ]
    return _sheet(name, columns, records)


def _plain(cell: Any) -> Any:
    """A cell as a JSON value: numbers that JSON lacks, dates and decimals as they are written."""
    if isinstance(cell, float) and not math.isfinite(cell):
        return str(cell)
    if isinstance(cell, list | tuple):
        return [_plain(entry) for entry in cell]
    if isinstance(cell, Mapping):
        return {str(key): _plain(entry) for key, entry in cell.items()}
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    if isinstance(cell, decimal.Decimal):
        return str(cell)
    return cell if cell is None or isinstance(cell, str | bool | int | float) else [repr(cell)]


def _check_names(header: Sequence[str], name: str) -> None:
    named = [cell.strip() for cell in header if cell.strip()]
    repeated = next((cell for cell in named if named.count(cell) > 1), None)
    if repeated is not None:
        raise BadSource(
            f"{name} has {named.count(repeated)} columns called {repeated!r}; give each a name of its own"
        )


def _sheet(name: str, columns: Iterable[str], records: Sequence[Record]) -> Sheet:
    kept = tuple(record for record in records if not all(map(is_blank, record.cells.values())))
    return Sheet(name=name, columns=tuple(columns), records=kept, blank=len(records) - len(kept))
