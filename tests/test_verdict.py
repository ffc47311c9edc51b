"""`predictive-credit verify` on what is no evidence at all: a refusal, never a crash or a hang."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from predictive_credit.certification import bundle, harness
from predictive_credit.certification.agents import Script
from predictive_credit.errors import Tampered
from predictive_credit.stages.verdict import verdict

MODULES = """
import sys
from predictive_credit import cli
try:
    cli.main(["verify", sys.argv[1], "--json"])
except SystemExit:
    pass
apart = ("forecasters", "models", "agents", "sources", "studies")
print([name for name in sys.modules if name.startswith(tuple(f"predictive_credit.{part}" for part in apart))])
"""


def manifest(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(text)
    return folder


def test_a_payload_that_leads_to_a_whole_disk_is_refused_after_its_first_files(tmp_path: Path, root: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    for number in range(bundle.MOST_FILES + 1):
        (disk / str(number)).touch()
    folder = manifest(tmp_path / "b", (root / "results/certification/device/manifest.json").read_text())
    (folder / "payload").symlink_to(disk)
    found = verdict(folder)
    assert not found.ok
    assert f"more than {bundle.MOST_FILES} files" in found.errors[0]


@pytest.mark.parametrize("name", ["deep", "a" * 300, "\udcff", "nothing"])
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str):
    folder = tmp_path / name
    if name == "deep":
        manifest(folder, '{"format":"dcp-audit-bundle","x":' + "[" * 200_000)
    found = verdict(folder)
    assert not found.ok
    assert len(found.errors) == 1
    assert json.loads(found.json())["ok"] is False


def test_verifying_an_audit_imports_no_forecaster_and_no_model(root: Path):
    audit = root / "results" / "certification" / "device"
    done = subprocess.run(
        [sys.executable, "-c", MODULES, str(audit)], capture_output=True, text=True, check=True, cwd=root
    )
    told, imported = done.stdout.splitlines()
    assert json.loads(told)["ok"] is True
    assert imported == "[]"


@pytest.mark.parametrize("text", ["", "2026 is no secret"])
def test_a_secret_that_is_none_starts_no_audit(tmp_path: Path, text: str):
    (tmp_path / "secret").write_text(text)
    with pytest.raises(Tampered, match="is not the secret of a run"):
        harness.certify(harness.Settings(task="device", agent=Script(), budget="quick"), tmp_path)
