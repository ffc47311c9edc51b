"""A record's one byte string, and its digest.

JSON with sorted keys, no spaces, UTF-8, shortest round-trip floats; NaN and infinity are refused,
since they are not JSON and compare unequal to themselves.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

SCALARS = frozenset((str, int, float, bool))


def plain(value: Any) -> Any:
    """Records, enums, tuples and mappings as plain JSON values.

    Raises TypeError for anything that has no single JSON form (a set, a Path, a NumPy scalar).
    """
    if value is None or type(value) in SCALARS:  # first, since most values are
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    raise TypeError(f"{type(value).__name__} has no canonical form: {value!r}")


def encode(value: Any) -> bytes:
    """The canonical bytes of a value. Raises ValueError on NaN or infinity."""
    text = json.dumps(
        plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes, in hexadecimal."""
    return hashlib.sha256(encode(value)).hexdigest()


def digest_bytes(data: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
