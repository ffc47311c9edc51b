"""JSONL, JSON and CSV to records and back, written whole or not at all; rows to a gap-free cube."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from predictive_credit import canonical
from predictive_credit.errors import OutOfOrder, Tampered, Unpaired
from predictive_credit.records import Outcome

T = TypeVar("T")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file atomically: a reader or a kill sees the old bytes or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Indented JSON with sorted keys: an artifact people and `git diff` read."""
    text = json.dumps(canonical.plain(value), sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False)
    write_bytes(path, text.encode() + b"\n")


def read_json(path: Path) -> Any:
    """Raises OutOfOrder if the file is not there yet, Tampered if it is not JSON."""
    return parse_json(read_bytes(path), path.name)


def parse_json(data: bytes, name: str) -> Any:
    """JSON out of bytes. Raises Tampered, naming the file, when it is not JSON."""
    try:
        return json.loads(data)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise Tampered(f"{name} is not JSON: {error}") from None


def read_bytes(path: Path) -> bytes:
    """Raises OutOfOrder, naming the file, when an earlier stage has not made it."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise OutOfOrder(f"{path} does not exist yet; run the stage that makes it, or `dvc repro`") from None


def encode_lines(records: Iterable[Any]) -> bytes:
    """One canonical JSON object a line."""
    return b"".join(canonical.encode(record) + b"\n" for record in records)


def encode_records(records: Iterable[Any], *, scale: str) -> bytes:
    """One canonical JSON object a line, each labelled with the scale of its run."""
    return encode_lines(canonical.plain(record) | {"scale": scale} for record in records)


def write_records(path: Path, records: Iterable[Any], *, scale: str) -> None:
    """Write records as JSONL, atomically; the caller sorts them by id."""
    write_bytes(path, encode_records(records, scale=scale))


def parse_records(data: bytes, kind: type[T], name: str) -> tuple[T, ...]:
    """Records out of JSONL bytes. Raises Tampered with the file and line that cannot be one."""
    adapter = TypeAdapter(kind)
    names = {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]  # kind is a record
    records = []
    for number, line in enumerate(data.splitlines(), start=1):
        try:
            row = json.loads(line)
            if "scale" not in names:  # the label of encode_records, no field of the record
                row.pop("scale", None)
            records.append(adapter.validate_python(row))
        except (ValueError, AttributeError, ValidationError) as error:
            raise Tampered(f"{name} line {number} is not a {kind.__name__}: {error}") from None
    return tuple(records)


def read_records(path: Path, kind: type[T]) -> tuple[T, ...]:
    """Records of a JSONL file."""
    return parse_records(read_bytes(path), kind, path.name)


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV, atomically; see `encode_csv`."""
    write_bytes(path, encode_csv(header, rows))


def encode_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A CSV with Unix line ends; None becomes an empty field, floats round-trip."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(
        ["" if v is None else repr(v) if isinstance(v, float) else v for v in row] for row in rows
    )
    return buffer.getvalue().encode()


def cube(
    values: Mapping[tuple[str, str, int], float],
    states: Sequence[str], contexts: Sequence[str], calls: Sequence[int],
) -> NDArray[np.float64]:  # fmt: skip
    """Rows keyed (state, context, call) as an array of shape (state, context, call).

    Raises Unpaired for a gap or an extra row: dropping a state from one context would break the
    pairing, and with it intention-to-treat.
    """
    wanted = [(s, c, k) for s in states for c in contexts for k in calls]
    missing = [key for key in wanted if key not in values]
    extra = values.keys() - set(wanted)
    if missing or extra:
        first = "/".join(map(str, missing[0] if missing else min(extra)))
        raise Unpaired(
            f"losses are not paired: {len(missing)} rows missing, {len(extra)} not planned, "
            f"first {first}; run the forecast and score stages again"
        )
    flat = np.array([values[key] for key in wanted], dtype=float)
    return flat.reshape(len(states), len(contexts), len(calls))


def read_record(path: Path, kind: type[T]) -> T:
    """The one record of a JSON file."""
    return record_of(read_json(path), kind, path.name)


def record_of(row: Any, kind: type[T], name: str) -> T:
    """One record out of a JSON object, without its scale label. Raises Tampered, naming the file."""
    try:
        plain = {k: v for k, v in row.items() if k != "scale"}
        return TypeAdapter(kind).validate_python(plain)
    except (AttributeError, ValidationError) as error:
        raise Tampered(f"{name} is not a {kind.__name__}: {error}") from None


def parse_csv(data: bytes, name: str) -> list[dict[str, str]]:
    """Rows of a CSV with a header. Raises Tampered, naming the file, when it is not text."""
    try:
        return list(csv.DictReader(io.StringIO(data.decode())))
    except (UnicodeDecodeError, csv.Error) as error:
        raise Tampered(f"{name} is not a CSV: {error}") from None


def parse_outcomes(data: bytes, name: str) -> tuple[tuple[Outcome, ...], dict[str, str]]:
    """Opened outcomes, and the salts of their commitments by `state/target`. Raises Tampered."""
    rows = parse_csv(data, name)
    try:
        outcomes = tuple(
            Outcome(
                state_id=row["state_id"], target=row["target"],
                value=float(row["value"]) if row["value"] else None, reason=row["reason"] or None,
            )
            for row in rows
        )  # fmt: skip
        return outcomes, {f"{row['state_id']}/{row['target']}": row["salt"] for row in rows}
    except (KeyError, ValueError, TypeError) as error:
        raise Tampered(f"{name} does not hold outcomes: {error}") from None
