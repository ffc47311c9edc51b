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


def digest(question: str) -> str:
    """SHA-256 over the texts of a run and their names, for the freeze record.

    Of the questions for a forecast it covers the one that is asked, `question`, so that a new way to
    elicit leaves the digests of the others as they were.
    """
    used = [name for name in names() if name == question or not name.startswith("forecast_question")]
    return canonical.digest({name: text(name) for name in used})
