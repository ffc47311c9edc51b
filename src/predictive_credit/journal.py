"""Replies as they come back: appended, on disk before the next unit is asked, never rewritten.

A unit is asked once. After a kill the journal is opened again, a half-written last line is cut
off, and only the units without a reply are asked.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from predictive_credit import canonical
from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.records import Prompt, Reply

REPLY = TypeAdapter(Reply)


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
        return self._key(canonical.digest(prompt))

    def get(self, prompt: Prompt) -> Reply | None:
        """The reply to this prompt, or None while it has none."""
        return self._replies.get(self.key(prompt))

    def append(self, unit_id: str, prompt: Prompt, reply: Reply) -> None:
        """Commit a reply: one write, then on disk. Raises OutOfOrder if the prompt has one already."""
        self.append_all([(unit_id, prompt, reply)])

    def append_all(
        self,
        entries: Sequence[tuple[str, Prompt, Reply]],
        *,
        charged: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Commit replies that came together: one write for all of them, then on disk.

        `charged` holds, by unit id, what a budget was charged in USD for a reply of unknown cost. Raises
        OutOfOrder, with nothing written, if a prompt has its reply already.
        """
        keyed: dict[str, Reply] = {}
        lines = []
        for unit_id, prompt, reply in entries:
            prompt_digest = canonical.digest(prompt)
            key = self._key(prompt_digest)
            if key in self._replies or key in keyed:
                raise OutOfOrder(f"{unit_id} has its reply in {self.path} already, and the first one stands")
            keyed[key] = reply
            entry = {"key": key, "unit_id": unit_id, "prompt_digest": prompt_digest, "reply": reply}
            if unit_id in charged:
                entry["charged_usd"] = charged[unit_id]
            lines.append(canonical.encode(entry) + b"\n")
        self._write(b"".join(lines), last=entries[-1][0])
        self._replies |= keyed

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

    def _key(self, prompt_digest: str) -> str:
        return key(prompt_digest, self._identity)

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
        return {key: reply for key, reply, _ in _entries(whole, self.path)}

    def _write(self, lines: bytes, *, last: str) -> None:
        end = os.fstat(self._file).st_size
        if os.write(self._file, lines) != len(lines):
            os.ftruncate(self._file, end)
            raise OSError(errno.ENOSPC, f"the disk took only a part of the reply of {last}", str(self.path))
        os.fsync(self._file)


def key(prompt_digest: str, identity: Mapping[str, Any]) -> str:
    """What the reply to a prompt is filed under, given the settings of who is asked."""
    return canonical.digest({"prompt": prompt_digest, "asked": canonical.plain(identity)})


def by_key(path: Path) -> dict[str, Reply]:
    """The replies in a journal by their keys, without its lock. Raises Tampered."""
    whole, _ = _split(path.read_bytes() if path.exists() else b"")
    return {key: reply for key, reply, _ in _entries(whole, path)}


def replies(path: Path) -> Iterator[Reply]:
    """The replies in a journal, without its lock; a line that is still being written is left out.

    A journal that does not exist yet holds none. Raises Tampered.
    """
    for reply, _ in charges(path):
        yield reply


def charges(path: Path) -> Iterator[tuple[Reply, float | None]]:
    """The same replies, each with what a budget was charged for it in USD where its cost was unknown."""
    data = path.read_bytes() if path.exists() else b""
    whole, _ = _split(data)
    for _, reply, charged in _entries(whole, path):
        yield reply, charged


def _entries(whole: bytes, path: Path) -> Iterator[tuple[str, Reply, float | None]]:
    """Key, reply and charge of each line. Raises Tampered for a line that no kill can explain."""
    seen: set[str] = set()
    for number, line in enumerate(whole.splitlines(), start=1):
        key, reply, charged = _entry(line, number, path)
        if key in seen:
            raise Tampered(f"{path} line {number} repeats a key; a unit has one reply")
        seen.add(key)
        yield key, reply, charged


def _entry(line: bytes, number: int, path: Path) -> tuple[str, Reply, float | None]:
    try:
        row = json.loads(line)
        charged = row.get("charged_usd")
        reply = REPLY.validate_python(row["reply"])
        return str(row["key"]), reply, None if charged is None else float(charged)
    except (ValueError, TypeError, KeyError, AttributeError, ValidationError):
        raise Tampered(f"{path} line {number} is not a reply; restore the file") from None


def _read_all(file: int) -> bytes:
    os.lseek(file, 0, os.SEEK_SET)
    with os.fdopen(os.dup(file), "rb") as copy:
        return copy.read()


def _split(data: bytes) -> tuple[bytes, bytes]:
    """What ends in a line end, and the rest. A reply whose line end is missing was not committed."""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]
