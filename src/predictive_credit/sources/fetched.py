"""What a pool's fetch found, before it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A pool's raw files by name, and what source.json says of them."""

    files: Mapping[str, bytes]
    source: str  # "mirror", "package index", "origin", "file" or "generated"
    origin: str  # which wheel, table or address
    licence: str | None
    distribution: str | None = None
    version: str | None = None
    unpinned: bool = False
    note: str | None = None
