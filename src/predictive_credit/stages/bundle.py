"""Pack one decided study into a directory that verifies anywhere."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import yaml

from predictive_credit import tables
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder
from predictive_credit.stages import evidence
from predictive_credit.stages.evidence import FILES, MANIFEST
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params


def pack(project: Project, study: str, destination: Path) -> Path:
    """Write the bundle of a decided study; the destination appears whole or not at all.

    Raises OutOfOrder while the study is undecided, BadSource if something else is in the way, BadConfig
    for a study that the project does not have.
    """
    held = study_params.load(project.params).studies
    if study not in held:
        raise BadConfig(f"no study {study!r} in {project.params}; it holds {', '.join(sorted(held))}")
    found = evidence.workspace(project, study)
    if missing := [name for name in FILES if name not in found.files]:
        raise OutOfOrder(
            f"{study}: cannot bundle before it is decided; {missing[0]} is missing "
            f"({len(missing)} files are); run `dvc repro`, or `predictive-credit open` for outcomes to come"
        )
    if destination.exists() and not (destination / MANIFEST).exists():
        raise BadSource(f"{destination} exists and is not a bundle; choose another destination")
    freeze = found.freeze
    files = {name: found.files[name] for name in FILES}
    files["params.yaml"] = yaml.safe_dump(freeze["params"], sort_keys=True).encode()
    files["rule.py"] = found.study.rule_source
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".bundle.") as temporary:
        staging = Path(temporary) / "bundle"
        for name, data in files.items():
            tables.write_bytes(staging / name, data)
        tables.write_bytes(staging / MANIFEST, evidence.manifest(files))
        if destination.exists():
            shutil.rmtree(destination)
        staging.replace(destination)
    return destination
