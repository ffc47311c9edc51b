"""What a frozen rule hands back: every gate with what it asked and saw, and a status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One clause of a rule. `seen` is None where the contrast was not asked or has no estimate."""

    name: str
    asked: str
    seen: float | None
    held: bool

    def __post_init__(self) -> None:
        if self.held and self.seen is None:
            raise ValueError(f"gate {self.name} cannot hold on something that was not seen")

    def __str__(self) -> str:
        seen = "nothing" if self.seen is None else f"{self.seen:+.6f}"
        return f"{self.name}: asked {self.asked}, seen {seen}, {'held' if self.held else 'not held'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A rule's status, out of the rule's own closed list, and the gates it came from."""

    study: str
    rule: str
    status: str
    gates: tuple[Gate, ...]
    limits: tuple[str, ...] = ()  # sentences on what the status cannot be taken to mean

    def __str__(self) -> str:
        notes = (f"note: {limit}" for limit in self.limits)
        return "\n  ".join([f"{self.study}: {self.status} (rule {self.rule})", *map(str, self.gates), *notes])


def by_name(gates: Sequence[Gate]) -> dict[str, dict[str, Any]]:
    """Gates as a JSON-plain dict keyed by name. Raises ValueError if two share one."""
    table = {g.name: {"asked": g.asked, "seen": g.seen, "held": g.held} for g in gates}
    if len(table) != len(gates):
        raise ValueError("two gates share a name, and one would hide the other")
    return table
