"""Bytes are what their pin promises, or nothing is used."""

from __future__ import annotations

from predictive_credit import canonical
from predictive_credit.errors import BadSource


def check(data: bytes, sha256: str, *, what: str, remedy: str) -> str:
    """The sha256 of `data`, which is `sha256`. Raises BadSource naming `what` and the remedy."""
    return check_digest(canonical.digest_bytes(data), sha256, what=what, remedy=remedy)


def check_digest(seen: str, asked: str, *, what: str, remedy: str) -> str:
    """`seen`, which is `asked`. Raises BadSource naming `what` and the remedy."""
    if seen != asked:
        raise BadSource(f"{what} has sha256 {seen[:12]}..., not the pinned {asked[:12]}...; {remedy}")
    return seen
