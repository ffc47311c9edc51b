"""Replies as they come back: appended, on disk before the next unit is asked, never rewritten.

A unit is asked once. After a kill the journal is opened again, a half-written last line is cut
off, and only the units without a reply are asked.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Protocol, Self

from pydantic import TypeAdapter, ValidationError
from tqdm import tqdm

from predictive_credit import canonical
from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.records import Prompt, Reply

REPLY = TypeAdapter(Reply)


class Answering(Protocol):
    """The part of a model that asking needs."""

    def answer(self, prompt: Prompt) -> Reply:
        """The reply to one prompt."""


class Journal:
    """An append-only file of replies, one writer at a time; also a context manager.

    `identity` holds the settings of who is asked: with the prompt's digest it makes a reply's key,
    so the replies of several forecasters can share a file. `repaired` says what a kill left behind.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any]) -> None:
        self.path = path
        self.repaired: str | None = None
        self._identity = canonical.plain(identity)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._lock()
            self._replies = self._load()
        except BaseException:
            os.close(self._file)
            raise

    def key(self, prompt: Prompt) -> str:
        """What a reply is filed under."""
        return canonical.digest({"prompt": canonical.digest(prompt), "asked": self._identity})

    def get(self, prompt: Prompt) -> Reply | None:
        """The reply to this prompt, or None while it has none."""
        return self._replies.get(self.key(prompt))

    def append(self, unit_id: str, prompt: Prompt, reply: Reply) -> None:
        """Commit a reply: one write, then on disk. Raises OutOfOrder if the prompt has one already."""
        key = self.key(prompt)
        if key in self._replies:
            raise OutOfOrder(f"{unit_id} has its reply in {self.path} already, and the first one stands")
        entry = {
            "key": key, "unit_id": unit_id, "prompt_digest": canonical.digest(prompt), "reply": reply,
        }  # fmt: skip
        line = canonical.encode(entry) + b"\n"
        end = os.fstat(self._file).st_size
        if os.write(self._file, line) != len(line):
            os.ftruncate(self._file, end)
            raise OSError(f"{self.path}: the disk took only a part of the reply of {unit_id}")
        os.fsync(self._file)
        self._replies[key] = reply

    def close(self) -> None:
        """Let go of the file and its lock. A second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._replies)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutOfOrder(
                f"another process is writing {self.path}; wait for it or stop it, then run this again"
            ) from None

    def _load(self) -> dict[str, Reply]:
        data = _read_all(self._file)
        whole, torn = _split(data)
        if torn:
            os.ftruncate(self._file, len(whole))
            os.fsync(self._file)
            self.repaired = (
                f"{self.path}: cut off a half-written last line of {len(torn)} bytes; its unit is asked again"
            )
        replies: dict[str, Reply] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            key, reply = self._entry(line, number)
            if key in replies:
                raise Tampered(f"{self.path} line {number} repeats a key; a unit has one reply")
            replies[key] = reply
        return replies

    def _entry(self, line: bytes, number: int) -> tuple[str, Reply]:
        try:
            row = json.loads(line)
            return str(row["key"]), REPLY.validate_python(row["reply"])
        except (ValueError, TypeError, KeyError, ValidationError):
            raise Tampered(f"{self.path} line {number} is not a reply; restore the file") from None


def ask_all(
    asked: Sequence[tuple[str, Prompt]], model: Answering, journal: Journal, *, title: str | None = None
) -> dict[str, Reply]:
    """Replies by unit id. Only units the journal lacks are asked, in the order of `asked`.

    With a `title` there is a progress bar on stderr. Ctrl-C stops after the unit in flight is
    committed, and raises KeyboardInterrupt; a second Ctrl-C does not wait.
    """
    if journal.repaired is not None:
        print(journal.repaired, file=sys.stderr)
    open_units = [(unit_id, prompt) for unit_id, prompt in asked if journal.get(prompt) is None]
    with (
        tqdm(
            total=len(asked), initial=len(asked) - len(open_units), desc=title, unit="unit",
            disable=title is None or not open_units, file=sys.stderr, mininterval=0.5,
        ) as bar,
        _stop_between_units() as stop,
    ):  # fmt: skip
        for unit_id, prompt in open_units:
            if stop.is_set():
                raise KeyboardInterrupt
            if journal.get(prompt) is None:
                journal.append(unit_id, prompt, model.answer(prompt))
            bar.update()
        if stop.is_set():  # everything is answered, but what follows in this process should not start
            raise KeyboardInterrupt
    return {unit_id: _answered(journal, unit_id, prompt) for unit_id, prompt in asked}


def _answered(journal: Journal, unit_id: str, prompt: Prompt) -> Reply:
    reply = journal.get(prompt)
    if reply is None:
        raise OutOfOrder(f"{unit_id} has no reply in {journal.path}; run the stage again")
    return reply


@contextmanager
def _stop_between_units() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that the reply in flight is not paid for twice."""
    stop = threading.Event()
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous is None:
        yield stop
        return

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, asked)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)


def _read_all(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file), "rb") as copy:
        return copy.read()


def _split(data: bytes) -> tuple[bytes, bytes]:
    """What ends in a line end, and the rest. A reply whose line end is missing was not committed."""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]
