"""`predictive-credit verify` on what is no evidence at all: a refusal, never a crash or a hang."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import canonical, tables
from predictive_credit.certification import bundle, harness
from predictive_credit.certification.agents import Script
from predictive_credit.errors import Tampered
from predictive_credit.stages.verdict import LARGEST, verdict

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


ANSWER = {"ok", "bundle_id", "errors", "replayed_verdict"}  # what dcp-audit's report shares with ours


@pytest.mark.parametrize("payload", [False, True], ids=["alone", "with payload"])
@pytest.mark.parametrize(
    "text",
    ["", "{", '{"format": "dcp-', "[]", "null", "3", '{"format": 3}', '{"x": 1}', "\ufeff{}", "[" * 200_000,
     '{"format": "dcp-audit-bundle", "format": "other"}', " " * (LARGEST + 1)],
    ids=["empty", "open", "cut", "list", "null", "number", "format", "keys", "mark", "deep", "twice", "big"],
)  # fmt: skip
def test_a_manifest_that_cannot_be_read_is_refused_in_the_words_of_an_audit(
    tmp_path: Path, text: str, payload: bool
) -> None:
    folder = manifest(tmp_path / "b", text)
    if payload:
        (folder / "payload").mkdir()
    told = json.loads(verdict(folder).json())
    assert set(told) == ANSWER
    assert (told["ok"], told["bundle_id"], told["replayed_verdict"]) == (False, None, None)
    assert len(told["errors"]) == 1
    other = pytest.importorskip("dcp.bundle", reason="dcp-audit is not installed")
    if text[:2] != "[[":  # which it does not survive
        theirs = other.verify_bundle(folder)
        assert {key: theirs[key] for key in ("ok", "bundle_id", "replayed_verdict")} == {
            key: told[key] for key in ("ok", "bundle_id", "replayed_verdict")
        }


def test_a_studys_manifest_that_cannot_be_read_is_refused_in_the_words_of_a_study(
    tmp_path: Path, root: Path
) -> None:
    folder = tmp_path / "b"
    shutil.copytree(root / "results" / "molecular-moleculeace-full", folder)
    for text in ("{", (folder / "manifest.json").read_text().replace('"digest":"', '"digest":"0')):
        manifest(folder, text)
        told = json.loads(verdict(folder).json())
        assert told == {
            "ok": False, "decision": {}, "errors": ["manifest.json: it was changed since it was written"],
        }  # fmt: skip


def test_verifying_an_audit_imports_no_forecaster_and_no_model(root: Path):
    audit = root / "results" / "certification" / "device"
    done = subprocess.run(
        [sys.executable, "-c", MODULES, str(audit)], capture_output=True, text=True, check=True, cwd=root
    )
    told, imported = done.stdout.splitlines()
    assert json.loads(told)["ok"] is True
    assert imported == "[]"


def save(folder: Path, certificate: dict[str, Any]) -> None:
    """Put another certificate into a bundle, every digest made anew."""
    file = folder / "payload" / "certificate.json"
    tables.write_bytes(file, canonical.encode(certificate) + b"\n")
    told = json.loads((folder / "manifest.json").read_text())
    told["payloads"]["certificate"] |= {
        "content_digest": f"sha256:{canonical.digest_file(file)}", "size_bytes": file.stat().st_size,
    }  # fmt: skip
    told["bundle_id"] = bundle.bundle_id(told)
    tables.write_bytes(folder / "manifest.json", canonical.encode(told) + b"\n")


def test_a_certificate_of_another_version_is_refused_and_said_to_agree_in_every_verdict(
    tmp_path: Path, root: Path
):
    folder = tmp_path / "bundle"
    shutil.copytree(root / "results" / "certification" / "device", folder)
    saved = json.loads((folder / "payload" / "certificate.json").read_text())
    saved["protocol"]["implementation"] = "another 1.0"
    save(folder, saved)
    told = verdict(folder)
    assert not told.ok
    assert told.told["errors"] == ("saved certificate does not match a fresh replay",)
    assert "every verdict is the replayed one" in told.errors[1]
    saved["verdict"]["core"] = "refuted"
    save(folder, saved)
    assert len(verdict(folder).errors) == 1


@pytest.mark.parametrize("text", ["", "2026 is no secret"])
def test_a_secret_that_is_none_starts_no_audit(tmp_path: Path, text: str):
    (tmp_path / "secret").write_text(text)
    with pytest.raises(Tampered, match="is not the secret of a run"):
        harness.certify(harness.Settings(task="device", agent=Script(), budget="quick"), tmp_path)
