"""The action ledger of a run: one hash-chained line an event, appended under a lock and kept whole.

An episode is announced before it starts, and that announcement's hash is its prestart receipt; what it
drew by chance is the HMAC of its label under a nonce whose digest was registered, so that nobody can
draw again until the outcome pleases.

Beside the chain lie the pauses: which announced session ended without an answer, because nobody was there
to give one, and may be held again. They are no events, so that a run that was paused has the receipts of
one that was not; the last event of a run, `bundle_written`, tells them. Until then no hash covers
`pauses.jsonl`: whoever can write in a run's folder can add or strike a pause, and no check will see it.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from predictive_credit import canonical, tables
from predictive_credit.errors import OutOfOrder, Tampered

GENESIS = "genesis"
PAUSES = "pauses.jsonl"


def now() -> str:
    """The machine's clock, ISO 8601: evidence of order, not of date."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def marked(value: Any) -> str:
    """The digest of a canonical value with its algorithm's name, as receipts and contracts spell it."""
    return f"sha256:{canonical.digest(value)}"


def draw(nonce: bytes, label: str) -> str:
    """The draw receipt of a label: HMAC-SHA256 under the run's nonce, in hexadecimal."""
    return hmac.new(nonce, label.encode(), hashlib.sha256).hexdigest()


def first_arm(receipt: str, arms: tuple[str, str]) -> tuple[str, str]:
    """The order in which a pair's arms run: as they are if the receipt's last bit is 0."""
    return arms if int(receipt[-1], 16) % 2 == 0 else (arms[1], arms[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line. `event_hash` covers every other field."""

    event_index: int
    event_type: str
    recorded_at: str
    previous_event_hash: str
    payload: Mapping[str, Any]
    event_hash: str

    @property
    def receipt(self) -> str:
        """The event's hash with its algorithm's name."""
        return f"sha256:{self.event_hash}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A session's start that stands while the session waits, or goes on: the last word on it counts."""

    event_hash: str
    recorded_at: str
    reason: str | None  # None: it goes on


def event_hash(fields: Mapping[str, Any]) -> str:
    """Digest of an event's fields other than its hash."""
    return canonical.digest({k: v for k, v in fields.items() if k != "event_hash"})


def check_chain(events: Sequence[Event]) -> None:
    """Raise Tampered at the first event whose index, link or hash does not hold."""
    previous = GENESIS
    for index, event in enumerate(events):
        if event.event_index != index or event.previous_event_hash != previous:
            raise Tampered(f"ledger event {index} ({event.event_type}) does not follow the event before it")
        if event_hash(canonical.plain(event)) != event.event_hash:
            raise Tampered(f"ledger event {index} ({event.event_type}) does not match its own hash")
        previous = event.event_hash


def read(path: Path) -> tuple[Event, ...]:
    """The whole events of a ledger file, their chain checked. Raises Tampered."""
    data = path.read_bytes()
    return _parse(data[: data.rfind(b"\n") + 1], path)


class Ledger:
    """An open ledger, one writer at a time; also a context manager.

    A half-written last line, which only a kill leaves behind, is cut off on opening.
    """

    def __init__(self, path: Path, *, clock: Callable[[], str] = now) -> None:
        self.path = path
        self._clock = clock
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            self._lock()
            self._events = list(self._load())
            self._pauses = list(_read_pauses(self.pauses_path))
        except BaseException:
            os.close(self._file)
            raise
        self._of: dict[str, list[Event]] = defaultdict(list)
        for event in self._events:
            self._file_event(event)

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far."""
        return tuple(self._events)

    @property
    def pauses_path(self) -> Path:
        """Where the pauses are kept, in lines that are appended like the events."""
        return self.path.with_name(PAUSES)

    @property
    def pauses(self) -> tuple[Pause, ...]:
        """Every pause so far, without the notes that it ended."""
        return tuple(pause for pause in self._pauses if pause.reason is not None)

    def pause(self, started: Event, reason: str) -> None:
        """Note that a session got no answer and waits."""
        self._note(Pause(event_hash=started.event_hash, recorded_at=self._clock(), reason=reason))

    def resume(self, started: Event) -> None:
        """Note that a session that waits goes on: a kill from here on is a session cut short."""
        if self.is_paused(started):
            self._note(Pause(event_hash=started.event_hash, recorded_at=self._clock(), reason=None))

    def is_paused(self, started: Event) -> bool:
        """Whether the session that began so waits for an answer."""
        said = [pause.reason for pause in self._pauses if pause.event_hash == started.event_hash]
        return bool(said) and said[-1] is not None

    def append(self, event_type: str, payload: Mapping[str, Any]) -> Event:
        """Commit an event: one write, then on disk."""
        fields: dict[str, Any] = {
            "event_index": len(self._events),
            "event_type": event_type,
            "recorded_at": self._clock(),
            "previous_event_hash": self._events[-1].event_hash if self._events else GENESIS,
            "payload": canonical.plain(payload),
        }
        event = Event(**fields, event_hash=event_hash(fields))
        self._write(canonical.encode(event) + b"\n")
        self._events.append(event)
        self._file_event(event)
        return event

    def _write(self, line: bytes) -> None:
        """All of a line, on disk, or nothing of it. Raises OSError with the file's name."""
        end = os.fstat(self._file).st_size
        try:
            if os.write(self._file, line) != len(line):
                os.ftruncate(self._file, end)
                raise OSError(errno.ENOSPC, "the disk took only a part of an event")
            os.fsync(self._file)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.path)) from None

    def once(self, event_type: str, payload: Mapping[str, Any]) -> Event:
        """The event of this type, appended if there is none. Raises OutOfOrder if it says something else."""
        known = self.find(event_type)
        if known is None:
            return self.append(event_type, payload)
        if known.payload != canonical.plain(payload):
            raise OutOfOrder(
                f"{self.path} has another {event_type} than this run; continue it with the settings it was "
                "started with, or start in another folder"
            )
        return known

    def find(self, event_type: str) -> Event | None:
        """The first event of a type that belongs to no episode."""
        return next((e for e in self._of[""] if e.event_type == event_type), None)

    def of(self, episode: str) -> tuple[Event, ...]:
        """The events of one episode, in order."""
        return tuple(self._of[episode])

    def check(self) -> None:
        """Raise Tampered unless the file holds exactly the events of this run, chained."""
        if read(self.path) != self.events:
            raise Tampered(f"{self.path} is not what this run wrote; restore the file")

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

    def _file_event(self, event: Event) -> None:
        self._of[str(event.payload.get("episode", ""))].append(event)

    def _note(self, pause: Pause) -> None:
        # The whole file each time: it has a line a pause, and no half of one may be left behind.
        self._pauses.append(pause)
        tables.write_bytes(self.pauses_path, b"".join(canonical.encode(p) + b"\n" for p in self._pauses))

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutOfOrder(
                f"another process is writing {self.path}; wait for it or stop it, then run this again"
            ) from None

    def _load(self) -> tuple[Event, ...]:
        data = self.path.read_bytes()
        end = data.rfind(b"\n") + 1
        events = _parse(data[:end], self.path)
        if end < len(data):
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        return events


def _read_pauses(path: Path) -> tuple[Pause, ...]:
    """The pauses of a run; none without a file. Raises Tampered."""
    data = path.read_bytes() if path.exists() else b""
    try:
        return tuple(Pause(**json.loads(line)) for line in data.splitlines())
    except (ValueError, TypeError):
        raise Tampered(f"{path} holds a line that is no pause; restore the file") from None


def _parse(data: bytes, path: Path) -> tuple[Event, ...]:
    try:
        events = tuple(Event(**json.loads(line)) for line in data.splitlines())
    except (ValueError, TypeError):
        raise Tampered(f"{path} holds a line that is no event; restore the file") from None
    check_chain(events)
    return events
