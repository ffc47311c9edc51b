"""What is known of coverage forecasts, out of files: a tab of the project's page, or a page of its own.

    python -m predictive_credit.stages.coverage_evidence results/coverage --to results/coverage.html

pools and decides held_out.jsonl into held_out.json beside it, and writes the page of the folder. With
--expectation it first draws expectation.jsonl, the printed numbers in many sets of populations, anew.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from predictive_credit import __version__, tables
from predictive_credit.coverage import expectation, page, scoring, summary
from predictive_credit.coverage.expectation import Sets
from predictive_credit.coverage.real import RealStudy
from predictive_credit.coverage.scoring import Cell
from predictive_credit.coverage.summary import Evidence
from predictive_credit.report.page import Extra
from predictive_credit.stages import guard
from predictive_credit.stages.coverage import gates
from predictive_credit.stages.paths import Project

TITLE = "Coverage forecasting"
SYNTHETIC, HELD_OUT, REAL = "synthetic.jsonl", "held_out.jsonl", "real.jsonl"
EXPECTATION = "expectation.jsonl"


def tab(project: Project) -> tuple[Extra, ...]:
    """The tab of a project that ran the synthetic study, with the evidence that its folder holds."""
    if not project.coverage_cells.is_file():
        return ()
    shown = summary.sections(read(project.coverage_cells, project.coverage_evidence))
    return (Extra(prefix=summary.PREFIX, title=TITLE, html=Markup("\n".join(shown))),)


def read(cells: Path, folder: Path) -> Evidence:
    """A run's cells, and of a folder of evidence what there is."""
    held_out, real, sets = folder / HELD_OUT, folder / REAL, folder / EXPECTATION
    return Evidence(
        cells=tables.read_records(cells, Cell),
        held_out=tables.read_records(held_out, Cell) if held_out.is_file() else (),
        studies=tables.read_records(real, RealStudy) if real.is_file() else (),
        sets=tables.read_records(sets, Sets) if sets.is_file() else (),
    )


def trial(cells: Sequence[Cell]) -> dict[str, Any]:
    """Pooled rows of the held-out cells, and the rule's decisions on them."""
    frozen, calibrated = (summary.of(cells, calibrated=which) for which in (False, True))
    decided = {"frozen": summary.decided(frozen), "calibrated": summary.decided(calibrated)}
    return {
        "pooled": scoring.pool(cells),
        "decision": {name: gates(found) for name, found in decided.items()},
    }


def write(folder: Path, to: Path) -> str:
    """The folder's held_out.json and its page."""
    found = read(folder / SYNTHETIC, folder)
    tables.write_json(folder / "held_out.json", trial(found.held_out))
    html = page.document(TITLE, summary.sections(found), version=__version__)
    tables.write_bytes(to, html.encode())
    return f"{to}: open it in any browser"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument(
        "--expectation", action="store_true", help=f"draw {expectation.SETS} sets of populations (minutes)"
    )
    args = parser.parse_args(argv)

    def action() -> int:
        if args.expectation:
            tables.write_bytes(args.folder / EXPECTATION, tables.encode_lines(expectation.draw()))
        print(write(args.folder, args.to))
        return 0

    sys.exit(guard.guarded(action))


if __name__ == "__main__":
    main()
