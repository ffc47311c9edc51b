"""Sides of one comparison timed in turn, A B A B, and the table that is printed of them."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUSY = 1.5  # a load above this at the start is said beside the numbers

if str(ROOT) not in sys.path:  # the small project of `tests` is benchmarked too
    sys.path.append(str(ROOT))


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One way to do the job. `times` scales the seconds of a side that does a stated share of it."""

    name: str
    run: Callable[[], object]
    times: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of one side, one for each round, scaled to the whole job."""

    name: str
    seconds: tuple[float, ...]


def interleaved(sides: Sequence[Side], *, repeats: int) -> list[Timing]:
    """Time every side once a round, so that a busy moment meets all of them."""
    rounds = [[seconds(side.run) * side.times for side in sides] for _ in range(repeats)]
    return [
        Timing(name=side.name, seconds=tuple(column))
        for side, column in zip(sides, zip(*rounds, strict=True), strict=True)
    ]


def seconds(run: Callable[[], object]) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def ratios(timing: Timing, reference: Timing) -> list[float]:
    """How many times the reference's seconds a side took, round by round."""
    return [a / b for a, b in zip(timing.seconds, reference.seconds, strict=True)]


def compared(timings: Sequence[Timing]) -> list[tuple[str, ...]]:
    """Rows for `table`: each side, its median and best seconds, and its ratio to the first side."""
    rows: list[tuple[str, ...]] = [("side", "median s", "best s", "ratio", "rounds' range")]
    for timing in timings:
        found = ratios(timing, timings[0])
        rows.append(
            (
                timing.name,
                f"{statistics.median(timing.seconds):.3f}",
                f"{min(timing.seconds):.3f}",
                f"{statistics.median(found):.2f}",
                f"{min(found):.2f} to {max(found):.2f}",
            )
        )
    return rows


def table(title: str, rows: Sequence[Sequence[str]], *notes: str) -> None:
    """Print rows, of which the first is the header, as a Markdown table with its columns aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["| " + " | ".join(_cells(row, widths)) + " |" for row in rows]
    lines.insert(
        1, "| " + " | ".join("-" * (w - 1) + ("-" if i == 0 else ":") for i, w in enumerate(widths)) + " |"
    )
    print(f"\n{title}\n", *lines, *(f"\n{note}" for note in notes), sep="\n")


def machine() -> None:
    """Print what the numbers were measured on, and whether others were at work there."""
    load = os.getloadavg()[0]
    state = "busy: trust the ratios, not the seconds" if load > BUSY else "quiet"
    print(
        f"Python {platform.python_version()}, {os.cpu_count()} cores, load {load:.1f} at the start ({state})"
    )


def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    first, *rest = zip(row, widths, strict=True)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in rest)]
