"""One table of credit by generator and forecaster, out of sweeps, projects, bundles and revisions."""

from __future__ import annotations

import json
import logging
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictive_credit import canonical, config, ledger, tables
from predictive_credit.errors import BadSource, OutOfOrder, Tampered
from predictive_credit.ledger import Phase
from predictive_credit.report import exchange
from predictive_credit.report.exchange import Cell, Population
from predictive_credit.stages import evidence, report
from predictive_credit.stages.diff import commit
from predictive_credit.stages.evidence import DATA_FILES, FILES, MANIFEST, Evidence
from predictive_credit.stages.paths import METRICS, READINGS, Project
from predictive_credit.studies import params as study_params


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One study of one place; `evidence` lacks files while it is undecided."""

    where: str
    study: str
    evidence: Evidence

    @property
    def is_decided(self) -> bool:
        """Whether every file of a decided study is there."""
        return all(name in self.evidence.files for name in FILES)


def run(
    root: Path, places: Sequence[str], *, measure: str | None = None, csv: Path | None = None,
    as_json: bool = False,
) -> str:  # fmt: skip
    """The table of every decided study of the places: as text, or as JSON rows; also as a CSV file.

    A place is a folder (of a sweep, a project, a bundle), else a git revision or DVC experiment of the
    project at `root`. Raises BadSource for a place that holds nothing, OutOfOrder while nothing is decided.
    """
    sides = [side for place in dict.fromkeys(places) for side in of_place(root, place)]
    decided = [side for side in sides if side.is_decided]
    if not decided:
        raise OutOfOrder(
            f"{', '.join(places)}: no study is decided yet, first {sides[0].study} in {sides[0].where}; "
            "open and decide it first"
        )
    found = exchange.populations([cell(side) for side in decided])
    rows = exchange.rows(found)
    if csv is not None:
        tables.write_csv(csv, exchange.columns(), [tuple(row.values()) for row in rows])
    if as_json:
        return json.dumps(rows, indent=2, ensure_ascii=False, allow_nan=False)
    left_out = [f"left out, not decided: {s.study} in {s.where}" for s in sides if not s.is_decided]
    return "\n\n".join(printed(found, measure) + (["\n".join(left_out)] if left_out else []))


def printed(found: Sequence[Population], measure: str | None) -> list[str]:
    """The tables as text, then why there are several of one study."""
    made = [exchange.text(table) for population in found for table in exchange.tables(population, measure)]
    return made + exchange.apart(found)


def of_place(root: Path, place: str) -> list[Side]:
    """Every study of a bundle, of a project's root, of all of these below a folder, or of a revision."""
    folder = Path(place)
    if not folder.is_dir():
        return at_revision(root, place)
    sides = list(_below(folder))
    if not sides:
        raise BadSource(f"{place} holds neither a project (params.yaml) nor a bundle ({MANIFEST})")
    return sides


def _below(folder: Path) -> Iterator[Side]:
    if (folder / MANIFEST).is_file():
        found = evidence.bundle(folder)
        yield Side(where=str(folder), study=str(found.freeze["study"]), evidence=found)
    elif (folder / "params.yaml").is_file():
        project = Project(folder)
        for study in study_params.load(project.params).studies:
            yield Side(where=str(folder), study=study, evidence=evidence.workspace(project, study))
    else:
        for inner in sorted(p for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")):
            yield from _below(inner)


def cell(side: Side) -> Cell:
    """The cell of a decided study whose files are the ones that its ledger tells of."""
    check_digests(side)
    return exchange.cell(report.view(side.evidence), side.where)


def check_digests(side: Side) -> None:
    """Raise Tampered unless freeze, outcomes and metrics are what one unbroken ledger digested.

    After a new freeze a project's old metrics lie there until the study is decided again: they are no
    credit of the new pair. That the figures follow from the files is what `verify` replays.
    """
    found = side.evidence
    ledger.check_chain(found.ledger)
    events = {event.phase: event.digests for event in found.ledger}
    promised = {
        name: digest
        for phase in (Phase.FROZEN, Phase.OPENED, Phase.DECIDED)
        for name, digest in events.get(phase, {}).items()
        if name in found.files
    }
    missing = [name for name in FILES if name.startswith("metrics/") and name not in promised]
    promised |= found.freeze["digests"]
    changed = [
        name for name, digest in promised.items() if canonical.digest_bytes(found.bytes(name)) != digest
    ]
    if missing or changed:
        raise Tampered(
            f"{side.where}: {[*missing, *changed][0]} is not what the ledger of {side.study} tells of; "
            f"decide the study again, or ask `predictive-credit verify {side.where}`"
        )


def at_revision(root: Path, revision: str) -> list[Side]:
    """Every study of the project at a git revision or DVC experiment, as git and DVC hold its files."""
    # DVC takes about a second to import, and a folder does not need it.
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException
    from dvc.scm import RevError

    logging.getLogger("dvc").setLevel(logging.CRITICAL)
    try:
        system = DVCFileSystem(str(root), rev=commit(root, revision))
        with tempfile.TemporaryDirectory() as temporary:
            there = Project(Path(temporary))
            _copy(system, Project(Path()).params, there.params)
            params = study_params.load(there.params)
            for here in _files(Project(Path()), params):
                _copy(system, here, there.root / here)
            return [
                Side(where=revision, study=name, evidence=evidence.workspace(there, name))
                for name in params.studies
            ]
    except RevError:
        raise BadSource(
            f"{revision} is no folder, git revision or DVC experiment; `git log` and `dvc exp show` list the "
            "last two"
        ) from None
    except (DvcException, OSError) as error:
        raise BadSource(
            f"cannot read studies at {revision}: {str(error).splitlines()[0]}; `dvc pull` or `dvc fetch "
            "--all-commits` brings what was made elsewhere"
        ) from None


def _files(project: Project, params: config.Params) -> Iterator[Path]:
    """Where a project keeps what its studies' evidence is made of."""
    for name, study in params.studies.items():
        paths = project.study(name)
        yield from (paths.data / file for file in DATA_FILES)
        yield from (paths.metric(metric) for metric in (*METRICS, READINGS))
        yield paths.decided
        yield project.pool_metrics(study.pool)


def _copy(system: Any, path: Path, to: Path) -> None:
    if system.exists(path.as_posix()):
        tables.write_bytes(to, system.read_bytes(path.as_posix()))
