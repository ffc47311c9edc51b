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
from predictive_credit.stages.guard import guarded
from predictive_credit.stages.paths import Project
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.study import Setting, Study

Run = Callable[[Project, config.Params, str], str]

# What an event says of outcomes that were open already, beside the digests of its artifacts.
OPENINGS = ("opened_before", "first_opened")


def main(run: Run, option: str, doc: str | None, argv: Sequence[str] | None) -> None:
    """The command line of a stage that works on one pool or one study."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument(f"--{option}", required=True, dest="name", help=f"which {option} of params.yaml")
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    args = parser.parse_args(argv)

    def action() -> int:
        project = Project(args.root)
        params = study_params.load(project.params)
        known = params.pools if option == "pool" else params.studies
        if args.name not in known:
            raise BadConfig(f"no {option} {args.name!r} in params.yaml; it holds {', '.join(sorted(known))}")
        print(run(project, config.of_study(params, args.name), args.name))
        return 0

    sys.exit(guarded(action))


def study(project: Project, params: config.Params, name: str) -> tuple[Study, Setting]:
    """A configured study's declaration, and where its suite works."""
    chosen = params.studies[name]
    setting = Setting(
        name=name, config=chosen, seed=params.seed, execution=params.execution,
        features=project.features(chosen.pool), burn_in=project.features(chosen.burn_in),
    )  # fmt: skip
    return STUDIES[chosen.rule].configured(chosen), setting


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
    project: Project, path: Path, events: Sequence[Event], phase: Phase,
    *, study: str, scale: str, digests: Mapping[str, object], opened: tuple[int, str | None] | None = None,
) -> tuple[Event, ...]:  # fmt: skip
    """The ledger with one more event, written to `path` and stamped with this moment and revision.

    If `path` already holds these events followed by this one, about the same artifacts, it stays as
    it is: making equal bytes again, after an edit of the page say, is no new event, and must not
    turn a plan that came before the outcomes into one that came after.

    opened: how many of the study's outcomes had been opened before, and when first.
    """
    if (kept := _kept(path, events, phase, digests)) is not None:
        return kept
    openings = {} if opened is None else dict(zip(OPENINGS, opened, strict=True))
    grown = ledger.append(
        events, phase, study=study, scale=scale, time_utc=now(), package_version=__version__,
        git_revision=git_revision(project.root), digests={**digests, **openings},
    )  # fmt: skip
    tables.write_bytes(path, tables.encode_lines(grown))
    return grown


def _kept(
    path: Path, events: Sequence[Event], phase: Phase, digests: Mapping[str, object]
) -> tuple[Event, ...] | None:
    """What `path` holds up to and with this event, or None where it tells another story."""
    try:
        found = read_ledger(path)
    except PredictiveCreditError:
        return None
    n = len(events)
    if len(found) <= n or found[:n] != tuple(events) or found[n].phase is not phase:
        return None
    artifacts = {k: v for k, v in found[n].digests.items() if k not in OPENINGS}
    return found[: n + 1] if artifacts == dict(digests) else None


def read_ledger(path: Path) -> tuple[Event, ...]:
    """A ledger file whose chain holds."""
    events = tables.read_records(path, Event)
    ledger.check_chain(events)
    return events
