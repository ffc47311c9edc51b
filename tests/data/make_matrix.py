"""The worked example of a coverage forecast: made-up agents on made-up tasks, some of them unsolvable.

    python tests/data/make_matrix.py

writes example_matrix.csv beside itself: 40 agents, 150 tasks, a tenth of which nobody can solve.
"""

from __future__ import annotations

from pathlib import Path

from predictive_credit import streams, tables
from predictive_credit.coverage.populations import SCENARIOS, draw

MATRIX = Path(__file__).with_name("example_matrix.csv")


def matrix() -> bytes:
    """The file's bytes."""
    rng = streams.stream(1, "coverage", "example matrix")
    solved = draw(SCENARIOS["rasch_unsolvable"], rng, agents=40, tasks=150).astype(int)
    header = ("agent", *(f"task_{t:03}" for t in range(1, 151)))
    rows = [(f"agent_{j:02}", *row) for j, row in enumerate(solved.tolist(), start=1)]
    return tables.encode_csv(header, rows)


if __name__ == "__main__":
    tables.write_bytes(MATRIX, matrix())
