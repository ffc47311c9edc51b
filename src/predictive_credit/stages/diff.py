"""Which outcomes, explanations and forecasts changed between two revisions, unit by unit."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictive_credit import tables
from predictive_credit.errors import BadSource
from predictive_credit.stages import evidence
from predictive_credit.stages.evidence import MANIFEST
from predictive_credit.studies import params as study_params

WORKSPACE = "workspace"


class NothingThere(BadSource):
    """A side that is what it says it is, and holds nothing of a study."""


@dataclass(frozen=True, slots=True)
class Change:
    """One record that is not the same on both sides; None where a side has no such record."""

    what: str  # "outcome", "explanation" or "forecast"
    id: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        sides = (side if side is not None else "(absent)" for side in (self.old, self.new))
        return f"{self.what} {self.id}: " + " -> ".join(sides)


def diff(root: Path, old: str, new: str, study: str | None) -> list[Change]:
    """Changes from `old` to `new` of one study, or of every study of the project's params.yaml.

    Each is a git revision, a DVC experiment, `workspace`, or a folder (a bundle or a project). A study
    that one side lacks is listed as added or gone; one that both lack is passed over, unless it is named.
    """
    if study is not None:
        return list(_changes(_read(root, old, study), _read(root, new, study)))
    if any((Path(side) / MANIFEST).is_file() for side in (old, new)):  # a bundle is of one study
        study = evidence.bundle(Path(old if (Path(old) / MANIFEST).is_file() else new)).freeze["study"]
        return diff(root, old, new, study)
    changes: list[Change] = []
    missing: list[BadSource] = []
    names = list(study_params.load(root / "params.yaml").studies)
    for name in names:
        sides: list[Mapping[str, bytes]] = []
        for side in (old, new):
            try:
                sides.append(_read(root, side, name))
            except NothingThere as error:
                missing.append(error)
                sides.append({})
        changes += _changes(*sides)
    if len(missing) == 2 * len(names):
        raise missing[0]
    return changes


def _changes(old: Mapping[str, bytes], new: Mapping[str, bytes]) -> Iterator[Change]:
    for file, (what, say) in _READERS.items():
        before, after = ({r[0]: r[1] for r in say(side.get(file, b""), file)} for side in (old, new))
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                yield Change(what, key, before.get(key), after.get(key))


def _outcomes(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    for row in tables.parse_csv(data, name):
        yield f"{row['state_id']}/{row['target']}", row["value"] or f"undefined ({row['reason']})"


def _explanations(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    for line in data.splitlines():
        row = json.loads(line)
        yield f"{row['state_id']}/{row['source']}", f"[{row['agent']}] {row['text']}"


def _forecasts(data: bytes, name: str) -> Iterator[tuple[str, str]]:
    for line in data.splitlines():
        row = json.loads(line)
        model = row["reply"]["model_resolved"] or row["reply"]["model_requested"]
        numbers = [f"{f['point']:+.4f} [{f['lower']:+.4f}, {f['upper']:+.4f}]" for f in row["forecasts"]]
        reasons = {f["reason"] for f in row["forecasts"] if f["is_fallback"]}
        fallback = f" fallback: {min(reasons)}" if reasons else ""
        yield row["unit_id"], f"{'; '.join(numbers)}{fallback} ({model})"


_READERS: dict[str, tuple[str, Any]] = {
    "outcomes.csv": ("outcome", _outcomes),
    "explanations.jsonl": ("explanation", _explanations),
    "forecasts.jsonl": ("forecast", _forecasts),
}


def _read(root: Path, side: str, study: str) -> dict[str, bytes]:
    """The three files of one side, by name. Raises BadSource for a side that has none of them."""
    folder = root if side == WORKSPACE else Path(side)
    if (folder / MANIFEST).is_file():
        return dict(evidence.bundle(folder).files)
    if side == WORKSPACE or (folder / "params.yaml").is_file():
        data = folder / "data" / study
        found = {name: (data / name).read_bytes() for name in _READERS if (data / name).is_file()}
    else:
        found = _from_dvc(root, side, study)
    if not found:
        raise NothingThere(
            f"{side} holds no outcomes, explanations or forecasts of {study}; "
            "if they were made elsewhere, `dvc pull` or `dvc fetch --all-commits` brings them here"
        )
    return found


def _from_dvc(root: Path, revision: str, study: str) -> dict[str, bytes]:
    """The three files as DVC tracked them at a git revision or under an experiment's name."""
    # DVC takes about a second to import, and a workspace or a bundle does not need it.
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException
    from dvc.scm import RevError

    logging.getLogger("dvc").setLevel(logging.CRITICAL)
    try:
        system = DVCFileSystem(str(root), rev=commit(root, revision))
        found = {}
        for name in _READERS:
            path = f"data/{study}/{name}"
            if system.exists(path):
                found[name] = system.read_bytes(path)
        return found
    except RevError:
        raise BadSource(
            f"{revision} is no git revision, DVC experiment, bundle or project folder; "
            "`git log` and `dvc exp show` list the first two"
        ) from None
    except (DvcException, OSError) as error:
        raise BadSource(f"cannot read {study} at {revision}: {str(error).splitlines()[0]}") from None


def commit(root: Path, revision: str) -> str:
    """The commit of a git revision or of an experiment's name. Raises RevError."""
    from dvc.repo import Repo
    from dvc.repo.experiments.utils import resolve_name
    from dvc.scm import RevError, resolve_rev

    with Repo(str(root)) as repo:
        try:
            return str(resolve_rev(repo.scm, revision))
        except RevError:
            ref = resolve_name(repo.scm, revision)[revision]
            if ref is None:
                raise
            return str(repo.scm.get_ref(str(ref)))
