"""A lottery whose draw nobody steers: an order by hash, which sees a name and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from predictive_credit import canonical

Name = TypeVar("Name", int, str)


def order(names: Iterable[Name], *, salt: str, group: str | int) -> list[Name]:
    """`names` by SHA-256 of "salt/group/name", whatever order they are listed in."""
    return sorted(names, key=lambda name: (canonical.digest_bytes(f"{salt}/{group}/{name}".encode()), name))
