"""A hubverse model-output table as forecasts: the quantiles .1, .5 and .9 of each task.

A task is a state, a context, a call and a target, each in a column of its name. `call` may be missing:
the same quantiles then serve both calls. Other columns, output types and quantile levels are passed over.

Format: the hubverse's model-output documentation (hubdocs.readthedocs.io, "Model output").
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from predictive_credit.errors import BadSource

LEVELS: Final = {"lower": 0.1, "point": 0.5, "upper": 0.9}
"""The quantile level of each number of a forecast. The median is taken as the point."""
TASK: Final = ("state", "target", "context", "call")
COLUMNS: Final = ("state", "target", "context", "output_type", "output_type_id", "value")
_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one triple of quantiles is of; call None serves every call."""

    state: str
    target: str
    context: str
    call: str | None


Row = tuple[str, Mapping[str, Any]]  # where it stands, as `line 3`, and its cells by column


def parse(data: bytes, name: str) -> dict[Task, dict[str, str]]:
    """The numbers of every task by forecast key (`point`, `lower`, `upper`), as JSON writes them.

    data: the bytes of a .csv or .parquet file called `name`. A number of a CSV stays as it stands there.
    Raises BadSource, naming line and column, for a missing column, a cell that is empty or no number, a
    task that has a quantile twice, or one that lacks one of the three.
    """
    found: dict[Task, dict[str, str]] = {}
    first: dict[Task, str] = {}
    for where, row in _rows(data, name):
        if str(row["output_type"]) != "quantile":
            continue
        key = _key(_number(row, "output_type_id", f"{name} {where}"))
        task = _task(row, f"{name} {where}")
        numbers = found.setdefault(task, {})
        first.setdefault(task, where)
        if key is None:
            continue
        if key in numbers:
            raise BadSource(
                f"{name} {where}: column output_type_id has quantile {LEVELS[key]:g} of {_said(task)} a "
                "second time; give a file of one model, in which each quantile of a task stands once"
            )
        numbers[key] = _number(row, "value", f"{name} {where}")
    for task, numbers in found.items():
        if missing := [LEVELS[key] for key in LEVELS if key not in numbers]:
            raise BadSource(
                f"{name} {first[task]}: column output_type_id has no quantile {missing[0]:g} of "
                f"{_said(task)}; each task needs .1, .5 and .9"
            )
    return found


def _rows(data: bytes, name: str) -> Iterator[Row]:
    read = _parquet if name.endswith(".parquet") else _csv
    columns, rows = read(data, name)
    if missing := [column for column in COLUMNS if column not in columns]:
        raise BadSource(
            f"{name} line 1: column {missing[0]} is missing; a model-output file has {', '.join(COLUMNS)} "
            f"and, where the two calls differ, call; seen {', '.join(columns) or 'nothing'}"
        )
    return rows


def _csv(data: bytes, name: str) -> tuple[list[str], Iterator[Row]]:
    try:
        reader = csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        columns = list(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadSource(f"{name} is not a CSV in UTF-8: {error}") from None

    def rows() -> Iterator[Row]:
        try:
            for row in reader:
                yield f"line {reader.line_num}", row
        except csv.Error as error:
            raise BadSource(f"{name} line {reader.line_num} is not of a CSV: {error}") from None

    return columns, rows()


def _parquet(data: bytes, name: str) -> tuple[list[str], Iterator[Row]]:
    try:
        table = pd.read_parquet(io.BytesIO(data))
    except (ValueError, OSError) as error:  # ArrowInvalid is a ValueError
        raise BadSource(f"{name} is not a Parquet file: {error}") from None
    cells = table.astype(object).where(table.notna(), None)
    rows = (dict(zip(table.columns, row, strict=True)) for row in cells.itertuples(index=False, name=None))
    return list(table.columns), ((f"row {i}", row) for i, row in enumerate(rows, start=1))


def _task(row: Mapping[str, Any], where: str) -> Task:
    state, target, context = (_text(row, column, where) for column in ("state", "target", "context"))
    # A table that passed through floats writes the first call as 1.0.
    call = _text(row, "call", where).removesuffix(".0") if "call" in row else None
    return Task(state=state, target=target, context=context, call=call)


def _text(row: Mapping[str, Any], column: str, where: str) -> str:
    value = row[column]
    if value is None or not (text := str(value).strip()):
        raise BadSource(f"{where}: column {column} is empty")
    return text


def _number(row: Mapping[str, Any], column: str, where: str) -> str:
    text = _text(row, column, where)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadSource(f"{where}: column {column} holds {text[:40]!r}, which is not a number")
    return text if _JSON_NUMBER.fullmatch(text) else repr(value)


def _key(level: str) -> str | None:
    """Which number of a forecast a quantile level is, None for a level that no forecast has."""
    return next((key for key, wanted in LEVELS.items() if math.isclose(float(level), wanted)), None)


def _said(task: Task) -> str:
    call = "" if task.call is None else f", call {task.call}"
    return f"{task.target} of {task.state}, context {task.context}{call}"
