"""Recorded replies instead of a model: the same prompt gives the same reply, offline."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from predictive_credit import canonical
from predictive_credit.errors import BadSource
from predictive_credit.records import Prompt, Reply

REPLY = TypeAdapter(Reply)


class Replay:
    """Answers from a forecasts.jsonl, a journal, or every forecasts.jsonl below a directory.

    A model sees only the prompt, so the key is the prompt's digest, which covers texts, sampling
    settings and the unit's seed. Raises BadSource for a recording that cannot be read or that
    holds two replies to one prompt.
    """

    def __init__(self, path: Path, *, name: str = "replay") -> None:
        self.name = name
        self._path = path
        self._replies: dict[str, Reply] = {}
        for where, digest, reply in _recorded(path):
            if self._replies.setdefault(digest, reply) != reply:
                raise BadSource(f"{where} holds a second, different reply to a prompt; which one was first?")

    def answer(self, prompt: Prompt) -> Reply:
        """The recorded reply. Raises BadSource for a prompt that was never asked."""
        try:
            return self._replies[canonical.digest(prompt)]
        except KeyError:
            raise BadSource(
                f"{self._path} holds {len(self._replies)} replies and none to this prompt; replay the plan "
                "it was recorded with (same states, explanations, sampling settings and seed)"
            ) from None

    def close(self) -> None:
        """Nothing to end."""


def _recorded(path: Path) -> Iterator[tuple[str, str, Reply]]:
    files = sorted(path.rglob("forecasts.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise BadSource(f"no recorded replies at {path}; give a forecasts.jsonl, or a folder that holds one")
    for file in files:
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            where = f"{file} line {number}"
            yield where, *_entry(line, where)


def _entry(line: bytes, where: str) -> tuple[str, Reply]:
    try:
        row: Any = json.loads(line)
        return str(row["prompt_digest"]), REPLY.validate_python(row["reply"])
    except (ValueError, TypeError, KeyError, ValidationError):
        raise BadSource(f"{where} is not a recorded reply; give a forecasts.jsonl or a journal") from None
