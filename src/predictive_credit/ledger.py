"""The order of events as a table that refuses, and the hash chain that records it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from predictive_credit import canonical
from predictive_credit.errors import OutOfOrder, Tampered

GENESIS = "genesis"


class Phase(StrEnum):
    """Where a study stands."""

    PLANNED = "planned"
    SEALED = "sealed"
    FROZEN = "frozen"
    OPENED = "opened"
    DECIDED = "decided"


NEXT: dict[Phase | None, frozenset[Phase]] = {
    None: frozenset({Phase.PLANNED}),
    Phase.PLANNED: frozenset({Phase.SEALED}),  # the commitment stands before the first forecast
    Phase.SEALED: frozenset({Phase.FROZEN}),  # every unit answered or given its fallback
    Phase.FROZEN: frozenset({Phase.OPENED}),  # digests written; outcomes become readable
    Phase.OPENED: frozenset({Phase.DECIDED}),  # forecasts no longer accepted
    Phase.DECIDED: frozenset(),  # the rule has run once
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One line of a ledger. `hash` covers every other field, `previous` is the hash before."""

    index: int
    phase: Phase
    study: str
    scale: str
    time_utc: str  # ISO 8601, set by the machine's clock: evidence of order, not of date
    package_version: str
    git_revision: str | None
    digests: Mapping[str, Any]
    previous: str
    hash: str


def advance(now: Phase | None, to: Phase) -> Phase:
    """Return `to`, or refuse and leave the ledger as it was."""
    if to not in NEXT[now]:
        allowed = ", ".join(sorted(NEXT[now])) or "nothing; this study is closed"
        at = now or "not planned"
        raise OutOfOrder(f"cannot go from {at} to {to}; from {at} the only step is {allowed}")
    return to


def event_hash(fields: Mapping[str, Any]) -> str:
    """Digest of an event's fields other than `hash`."""
    return canonical.digest({k: v for k, v in fields.items() if k != "hash"})


def append(
    events: Sequence[Event], phase: Phase, *, study: str, scale: str, time_utc: str,
    package_version: str, git_revision: str | None, digests: Mapping[str, Any],
) -> tuple[Event, ...]:  # fmt: skip
    """The ledger with one more event. Raises OutOfOrder if the phase may not come next."""
    advance(events[-1].phase if events else None, phase)
    fields: dict[str, Any] = {
        "index": len(events), "phase": phase, "study": study, "scale": scale,
        "time_utc": time_utc, "package_version": package_version, "git_revision": git_revision,
        "digests": digests, "previous": events[-1].hash if events else GENESIS,
    }  # fmt: skip
    return (*events, Event(**fields, hash=event_hash(fields)))


def check_chain(events: Sequence[Event]) -> None:
    """Raise Tampered at the first event whose hash, link, index or order does not hold."""
    phase: Phase | None = None
    previous = GENESIS
    for index, event in enumerate(events):
        if event.index != index or event.previous != previous:
            raise Tampered(f"ledger event {index} ({event.phase}) does not follow event {index - 1}")
        if event_hash(canonical.plain(event)) != event.hash:
            raise Tampered(f"ledger event {index} ({event.phase}) does not match its own hash")
        phase = advance(phase, event.phase)
        previous = event.hash
