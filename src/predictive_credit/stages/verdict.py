"""`predictive-credit verify`: which verifier a folder is for, and what it answers."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictive_credit import canonical
from predictive_credit.certification import verify as audits
from predictive_credit.certification.bundle import MANIFEST
from predictive_credit.errors import PredictiveCreditError

LARGEST = 2**20  # bytes of a manifest that is looked into to see whose it is
OF_STUDIES = ("ledger.jsonl", "params.yaml", "plan.jsonl")  # in every study's bundle, in no audit's


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """ok, what does not hold, what does as lines, and all of it as one JSON value."""

    ok: bool
    errors: tuple[str, ...]
    lines: tuple[str, ...]
    told: Mapping[str, Any]

    def json(self) -> str:
        """One line."""
        return json.dumps(canonical.plain(self.told), sort_keys=True, separators=(",", ":"))


def verdict(target: Path) -> Verdict:
    """Verify a discovery audit's bundle, a study's bundle, or a project. Whatever is wrong is an error."""
    audit = True
    try:
        audit = is_audit(target)
        return _audit(target) if audit else _studies(target)
    except (OSError, RecursionError, ValueError) as error:
        return _refused(target, f"{target} cannot be read: {str(error)[:200]}", audit=audit)


def is_audit(target: Path) -> bool:
    """Whether a folder is a discovery audit's bundle, a broken one included, by its manifest's format.

    Where it names neither an audit's nor a study's, the files beside it tell: an audit's bundle has a
    folder `payload`, or at least nothing that every study has. A pipe or a device is never opened.
    """
    if not target.is_dir():
        return False
    name = _format(target / MANIFEST)
    if name.startswith(("dcp-", "predictive-credit")):
        return name.startswith("dcp-")
    if (target / "payload").is_dir():
        return True
    return os.path.lexists(target / MANIFEST) and not any((target / name).exists() for name in OF_STUDIES)


def _format(manifest: Path) -> str:
    """The format that a manifest names; empty where it names none that can be read."""
    try:
        found = manifest.lstat()
        if stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST:
            told = json.loads(manifest.read_bytes())
            return told["format"] if isinstance(told["format"], str) else ""
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        pass
    return ""


def _audit(target: Path) -> Verdict:
    report = audits.verify(target)
    told = {
        "ok": report.ok,
        "bundle_id": report.bundle_id,
        "errors": report.errors,
        "replayed_verdict": report.replayed_verdict,
    }
    lines: tuple[str, ...] = ()
    if report.ok and report.replayed_verdict is not None:
        v = report.replayed_verdict
        lines = (
            f"{target}: honestly recorded; replays to core {v['core']}, evidence {v['evidence']}; "
            f"bundle {report.bundle_id}",
            v["reason"],
        )
    errors = tuple(f"{target}: {error}" for error in report.errors)
    if report.levels.decision and not report.ok:
        errors += (
            f"{target}: yet every verdict is the replayed one, and every number to 1e-12 (the decision "
            "level): another version or another Python may have written it",
        )
    return Verdict(ok=report.ok, errors=errors, lines=lines, told=told)


def _studies(target: Path) -> Verdict:
    # Here and not above: who verifies an audit needs no study, no forecaster and no model.
    from predictive_credit.stages import verify as studies  # noqa: PLC0415
    from predictive_credit.stages.freeze import scoring_digest  # noqa: PLC0415

    try:
        found, findings = studies.verify(target)
        decided = {} if findings else {one.json("metrics/decision.json")["study"]: one for one in found}
        decisions = {name: one.json("metrics/decision.json") for name, one in decided.items()}
        lines = tuple(
            f"{one.where}: {len(one.files)} files hold; {name} ({decisions[name]['scale']}) "
            f"replays to {decisions[name]['status']}; ledger head {one.ledger[-1].hash}"
            for name, one in decided.items()
        ) + tuple(
            f"{one.where}: frozen under other code that reads and scores than this, which gives the same "
            "figures"
            for one in decided.values()
            if one.freeze["scoring"] != scoring_digest(one.study)
        )
    except PredictiveCreditError as error:
        return _refused(target, str(error), audit=False)
    errors = tuple(map(str, findings))
    told = {"ok": not errors, "errors": errors, "decision": decisions}
    return Verdict(ok=not errors, errors=errors, lines=lines, told=told)


def _refused(target: Path, error: str, *, audit: bool) -> Verdict:
    """What could not be read at all; of what is no study, in the words of an audit."""
    error = error.encode("utf-8", "backslashreplace").decode()
    told: dict[str, Any] = {"ok": False, "errors": (error,)}
    if not audit and any(
        os.path.isfile(target / name) for name in (MANIFEST, "params.yaml")
    ):  # false, whatever the name
        told["decision"] = {}
    else:
        told |= {"bundle_id": None, "replayed_verdict": None}
    return Verdict(ok=False, errors=(f"error: {error}",), lines=(), told=told)
