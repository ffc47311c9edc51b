"""A task's raw file as columns, exactly as written: CSV (also gzipped, also `.dat`) or Parquet."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictive_credit import tables
from predictive_credit.errors import BadSource
from predictive_credit.sources.manifest import TableFile
from predictive_credit.studies.tabular.cleaning import Column, Finding, RawTask


def read(raw: Path, file: TableFile) -> RawTask:
    """A raw table. Rows that do not have the header's number of fields are left out, each a finding.

    Raises OutOfOrder before the fetch, BadSource for a file that is not the table its name promises.
    """
    data = tables.read_bytes(raw / file.file)
    findings: tuple[Finding, ...] = ()
    if file.file.endswith(".parquet"):
        columns = _parquet(data, file)
    else:
        columns, findings = _csv(_text(data, file), file)
    if not columns or not len(columns[0].values):
        raise BadSource(f"the table {file.name} ({file.origin}) holds no rows; check the file")
    return RawTask(
        name=file.name, kind=file.kind, target=file.target, drop=file.drop, columns=columns, findings=findings
    )


def _text(data: bytes, file: TableFile) -> str:
    try:
        return (gzip.decompress(data) if file.file.endswith(".gz") else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error) as error:
        raise BadSource(
            f"the table {file.name} ({file.origin}) is no gzip file ({error}); check the file"
        ) from None
    except UnicodeDecodeError as error:
        raise BadSource(
            f"the table {file.name} ({file.origin}) is not UTF-8 at byte {error.start}; save it as UTF-8"
        ) from None


def _csv(text: str, file: TableFile) -> tuple[tuple[Column, ...], tuple[Finding, ...]]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=file.delimiter, skipinitialspace=True)
    try:
        lines = [(reader.line_num, line) for line in reader if line]
    except csv.Error as error:
        raise BadSource(
            f"the table {file.name} ({file.origin}) is no CSV at line {reader.line_num} ({error}); "
            "check the file"
        ) from None
    if not lines:
        return (), ()
    header = lines[0][1] if file.header else [f"column_{i}" for i in range(1, len(lines[0][1]) + 1)]
    body = lines[1:] if file.header else lines
    rows = [line for _, line in body if len(line) == len(header)]
    findings = tuple(
        Finding(
            file.name, "", "ragged_rows", f"line {number} has {len(line)} fields, not {len(header)}; left out"
        )
        for number, line in body
        if len(line) != len(header)
    )
    columns = zip(*rows, strict=True) if rows else ()
    return (
        tuple(
            Column(name=name, values=_objects(values), form="text")
            for name, values in zip(header, columns, strict=bool(rows))
        ),
        findings,
    )


def _parquet(data: bytes, file: TableFile) -> tuple[Column, ...]:
    try:
        frame = pd.read_parquet(io.BytesIO(data))
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise BadSource(
            f"the table {file.name} ({file.origin}) is no Parquet file ({error}); fetch it again"
        ) from None
    return tuple(_column(str(name), frame.iloc[:, place]) for place, name in enumerate(frame.columns))


def _column(name: str, series: pd.Series[Any]) -> Column:
    if isinstance(series.dtype, pd.CategoricalDtype):
        return Column(name=name, values=_objects(series.astype(object)), form="category")
    if pd.api.types.is_numeric_dtype(series.dtype):  # booleans too, as 0 and 1
        return Column(name=name, values=series.to_numpy(dtype=np.float64, na_value=np.nan), form="number")
    return Column(name=name, values=_objects(series.astype(object)), form="text")


def _objects(values: Any) -> NDArray[Any]:
    """Strings, and None for every sort of missing value."""
    found = list(values)
    array = np.empty(len(found), dtype=object)
    array[:] = [None if pd.isna(value) else str(value) for value in found]
    return array
