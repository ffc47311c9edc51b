"""What every stage does around its core: arguments, one-sentence errors, the clock and git."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from predictive_credit import __version__, config, ledger, tables
from predictive_credit.errors import BadConfig, PredictiveCreditError
from predictive_credit.ledger import Event, Phase
from predictive_credit.stages.paths import Project, StudyPaths

Run = Callable[[Project, config.Params, str], str]


def guarded(action: Callable[[], int]) -> int:
    """Run an action; one of our errors becomes one sentence on stderr and exit status 1."""
    try:
        return action()
    except PredictiveCreditError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "interrupted; what was committed is kept, run the same command again to resume", file=sys.stderr
        )
        return 130


def main(run: Run, option: str, doc: str | None, argv: Sequence[str] | None) -> None:
    """The command line of a stage that works on one pool or one study."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument(f"--{option}", required=True, dest="name", help=f"which {option} of params.yaml")
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    args = parser.parse_args(argv)

    def action() -> int:
        project = Project(args.root)
        params = config.load(project.params)
        known = params.pools if option == "pool" else params.studies
        if args.name not in known:
            raise BadConfig(f"no {option} {args.name!r} in params.yaml; it holds {', '.join(sorted(known))}")
        print(run(project, params, args.name))
        return 0

    sys.exit(guarded(action))


def now() -> str:
    """UTC time, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def git_revision(root: Path) -> str | None:
    """The commit checked out at `root`, with "+dirty" if tracked files differ; None outside git."""

    def git(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)

    try:
        head = git("rev-parse", "HEAD")
        if head.returncode:
            return None
        dirty = git("status", "--porcelain", "--untracked-files=no").stdout.strip()
    except OSError:  # no git on this machine
        return None
    return head.stdout.strip() + ("+dirty" if dirty else "")


def record(
    project: Project,
    study: str,
    scale: str,
    events: Sequence[Event],
    phase: Phase,
    digests: Mapping[str, object],
) -> tuple[Event, ...]:
    """The ledger with one more event, stamped with this moment, package and revision."""
    return ledger.append(
        events, phase, study=study, scale=scale, time_utc=now(), package_version=__version__,
        git_revision=git_revision(project.root), digests=digests,
    )  # fmt: skip


def read_ledger(path: Path) -> tuple[Event, ...]:
    """A ledger file whose chain holds."""
    events = tables.read_records(path, Event)
    ledger.check_chain(events)
    return events


def write_ledger(path: Path, events: Sequence[Event]) -> None:
    """Write a ledger; every event carries its own scale."""
    tables.write_bytes(path, tables.encode_lines(events))


__all__ = [
    "Project",
    "StudyPaths",
    "git_revision",
    "guarded",
    "main",
    "now",
    "read_ledger",
    "record",
    "write_ledger",
]
