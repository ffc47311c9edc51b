"""The frozen prompt texts, one file each. None holds the size of a change: small models copy it."""

from __future__ import annotations

from functools import cache
from importlib import resources

from predictive_credit import canonical


@cache
def text(name: str) -> str:
    """The text called `name`, without its last line end."""
    return (resources.files(__name__) / f"{name}.txt").read_text(encoding="utf-8").rstrip("\n")


def names() -> tuple[str, ...]:
    """Every text, in order."""
    files = (file.name for file in resources.files(__name__).iterdir())
    return tuple(sorted(name.removesuffix(".txt") for name in files if name.endswith(".txt")))


def digest() -> str:
    """SHA-256 over all texts and their names, for the freeze record."""
    return canonical.digest({name: text(name) for name in names()})
