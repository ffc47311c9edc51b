"""Recorded replies instead of a model: the same prompt gives the same reply, offline."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from predictive_credit import canonical
from predictive_credit.errors import BadSource
from predictive_credit.formats import inspect_log
from predictive_credit.formats.inspect_log import Logged
from predictive_credit.records import Prompt, Reply

REPLY = TypeAdapter(Reply)
Said = tuple[str, str]  # system and user text


class Replay:
    """Answers from a forecasts.jsonl, a journal, an Inspect log, or every forecasts.jsonl below a directory.

    A model sees only the prompt, so the key is the prompt's digest, which covers texts, sampling
    settings and the unit's seed. A log from elsewhere has no digests; there the key is the messages'
    text, and where several epochs answered the same text, `expect` says which call each answers.
    Raises BadSource for a recording that cannot be read or that holds two replies to one prompt.
    """

    def __init__(self, path: Path, *, name: str = "replay") -> None:
        self.name = name
        self._path = path
        self._replies: dict[str, Reply] = {}
        self._by_text: dict[Said, dict[int, Reply]] = {}
        for where, key, reply in _recorded(path):
            if isinstance(key, str):
                first = self._replies.setdefault(key, reply)
            else:
                said, epoch = key
                first = self._by_text.setdefault(said, {}).setdefault(epoch, reply)
            if first != reply:
                raise BadSource(f"{where} holds a second, different reply to a prompt; which one was first?")

    def expect(self, prompts: Sequence[Prompt]) -> None:
        """Say what will be asked, in order: of prompts with one text, the first has the first epoch's reply.

        Only a log from elsewhere needs it. Raises BadSource where a text has fewer epochs than calls,
        unless one reply is all it has, which then serves every call.
        """
        asked: dict[Said, list[Prompt]] = {}
        for prompt in prompts:
            asked.setdefault((prompt.system, prompt.user), []).append(prompt)
        for said, calls in asked.items():
            epochs = self._by_text.get(said, {})
            if 1 < len(epochs) < len(calls):
                raise BadSource(
                    f"{self._path} has {len(epochs)} epochs of a prompt that is asked {len(calls)} times; "
                    f"log one epoch for each call, or a single one: {said[1][:60]!r}"
                )
            for prompt, epoch in zip(calls, sorted(epochs), strict=False):
                self._replies.setdefault(canonical.digest(prompt), epochs[epoch])

    def answer(self, prompt: Prompt) -> Reply:
        """The recorded reply. Raises BadSource for a prompt that was never asked."""
        if (known := self._replies.get(canonical.digest(prompt))) is not None:
            return known
        epochs = self._by_text.get((prompt.system, prompt.user), {})
        if len(epochs) == 1:
            return next(iter(epochs.values()))
        if epochs:
            raise BadSource(
                f"{self._path} has {len(epochs)} epochs of this prompt and no prompt_digest that says which "
                "call each answers"
            )
        held = len(self._replies) + sum(map(len, self._by_text.values()))
        raise BadSource(
            f"{self._path} holds {held} replies and none to this prompt; replay the plan "
            "it was recorded with (same states, explanations, elicitation, structured, sampling settings "
            "and seed)"
        )

    def close(self) -> None:
        """Nothing to end."""


def _recorded(path: Path) -> Iterator[tuple[str, str | tuple[Said, int], Reply]]:
    """Where each reply stands, what it is found by, and the reply."""
    files = sorted(path.rglob("forecasts.jsonl")) if path.is_dir() else [path]
    if not files or not files[0].exists():
        raise BadSource(f"no recorded replies at {path}; give a forecasts.jsonl, or a folder that holds one")
    for file in files:
        if file.suffix in (".json", ".eval"):
            for logged in inspect_log.read(file.read_bytes(), str(file)):
                yield logged.where, _key(logged), logged.reply
            continue
        for number, line in enumerate(file.read_bytes().splitlines(), start=1):
            where = f"{file} line {number}"
            yield where, *_entry(line, where)


def _key(logged: Logged) -> str | tuple[Said, int]:
    return (logged.said, logged.epoch) if logged.digest is None else logged.digest


def _entry(line: bytes, where: str) -> tuple[str, Reply]:
    try:
        row: Any = json.loads(line)
        return str(row["prompt_digest"]), REPLY.validate_python(row["reply"])
    except (ValueError, TypeError, KeyError, ValidationError):
        raise BadSource(f"{where} is not a recorded reply; give a forecasts.jsonl or a journal") from None
