"""What is known of discovery audits, out of bundles: a tab of the project's page, or a page of its own.

    python -m predictive_credit.stages.certify_evidence results/certification --to results/certification.html

writes the page of the bundles in a folder.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

from predictive_credit import __version__, tables
from predictive_credit.certification import page, reading
from predictive_credit.certification.bundle import MANIFEST
from predictive_credit.certification.page import Shown
from predictive_credit.certification.verify import verify
from predictive_credit.errors import BadSource, Tampered
from predictive_credit.report.page import Extra
from predictive_credit.stages import guard
from predictive_credit.stages.paths import Project

TITLE = "Discovery audits"
ORDER = ("sqlite", "catalyst", "device", "knapsack")


def tab(project: Project) -> tuple[Extra, ...]:
    """The tab of a project that ran audits, and the committed ones beside them."""
    here = project.audit("*").parent
    runs = sorted(here.glob(f"*/bundle/{MANIFEST}"), key=lambda path: _rank(path.parents[1]))
    if not runs:
        return ()
    shown = [read(path.parent, "this run") for path in runs]
    shown += [read(folder, "committed") for folder in folders(project.audit_evidence)]
    html = Markup("\n".join(page.sections(shown)))
    return (Extra(prefix=page.PREFIX, title=TITLE, html=html),)


def folders(under: Path) -> list[Path]:
    """The bundles in a folder, in the order of the tasks."""
    return sorted((path.parent for path in under.glob(f"*/{MANIFEST}")), key=_rank)


def _rank(folder: Path) -> tuple[int, str]:
    return (ORDER.index(folder.name) if folder.name in ORDER else len(ORDER), folder.name)


def read(folder: Path, where: str) -> Shown:
    """A bundle for the page, with its model's name. Raises Tampered for one that does not verify."""
    report = verify(folder)
    if not report.ok:
        raise Tampered(f"{folder} does not verify: {'; '.join(report.errors)}; make it again")
    audit = reading.open_audit(folder)
    by = () if audit.model is None else (f"by {audit.model}",)
    return Shown(where=", ".join(word for word in (*by, where) if word), audit=audit)


def write(folder: Path, to: Path) -> str:
    """The page of a folder's bundles."""
    shown = [read(one, "") for one in folders(folder)]
    if not shown:
        raise BadSource(f"{folder} holds no folder with a {MANIFEST}; give one that holds audits' bundles")
    tables.write_bytes(to, page.document(TITLE, shown, version=__version__).encode())
    return f"{to}: open it in any browser"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--to", type=Path, required=True)
    args = parser.parse_args(argv)

    def action() -> int:
        print(write(args.folder, args.to))
        return 0

    sys.exit(guard.guarded(action))


if __name__ == "__main__":
    main()
