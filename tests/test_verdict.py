"""`predictive-credit verify` of audits: which verifier answers, in which words, whatever the folder holds."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import cli
from predictive_credit.certification import bundle
from tests.small_audit import BEST, core_audit

KEYS = {"ok", "bundle_id", "errors", "replayed_verdict"}
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def words(*given: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main(("verify", *map(str, given)))
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return words


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    bundle.write(tmp_path / "audit", *core_audit().control(3, per_unit=(BEST,)).parts())
    return tmp_path / "audit"


def test_an_audit_answers_in_exactly_four_keys_and_a_refuted_claim_is_ok(run: Run, audit: Path) -> None:
    code, out, err = run(audit, "--json")
    told = json.loads(out)
    assert (code, err, set(told)) == (0, "", KEYS)
    assert (told["ok"], told["errors"], told["replayed_verdict"]["core"]) == (True, [], "refuted")
    assert told["bundle_id"] == json.loads((audit / "manifest.json").read_text())["bundle_id"]
    code, out, err = run(audit)
    assert (code, err) == (0, "")
    assert "honestly recorded; replays to core refuted, evidence not_tested; bundle sha256:" in out


def test_a_changed_byte_is_an_error_and_status_1(run: Run, audit: Path) -> None:
    path = audit / "payload" / "gate2.json"
    path.write_bytes(path.read_bytes().replace(b"attempt-5", b"attempt-6", 1))
    code, out, _ = run(audit, "--json")
    told = json.loads(out)
    assert (code, set(told), told["ok"], told["replayed_verdict"]) == (1, KEYS, False, None)
    code, out, err = run(audit)
    assert (code, out) == (1, "")
    assert err.startswith(f"{audit}: ")


def twice(folder: Path) -> None:
    text = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text('{"format":"dcp-core-evidence-bundle",' + text.lstrip("{"))


def deep(folder: Path) -> None:
    (folder / "manifest.json").write_text("[" * 100_000)


def pipe(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")


def piped_payload(folder: Path) -> None:
    (folder / "payload" / "gate1.json").unlink()
    os.mkfifo(folder / "payload" / "gate1.json")


def link(folder: Path) -> None:
    (folder / "manifest.json").rename(folder.parent / "m.json")
    (folder / "manifest.json").symlink_to(folder.parent / "m.json")


def gone(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def binary(folder: Path) -> None:
    (folder / "manifest.json").write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize(
    "harm", [twice, deep, pipe, piped_payload, link, gone, binary], ids=lambda f: f.__name__
)
def test_a_hostile_audit_is_refused_in_the_same_four_keys(
    run: Run, audit: Path, harm: Callable[[Path], None]
) -> None:
    harm(audit)
    code, out, _ = run(audit, "--json")
    told = json.loads(out)
    assert (code, set(told), told["ok"], told["bundle_id"]) == (1, KEYS, False, None)
    assert len(told["errors"]) == 1


def test_what_is_neither_is_refused_in_words_and_in_json(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for target in (tmp_path, tmp_path / "gone", tmp_path / "pipe"):
        code, out, err = run(target)
        assert (code, out) == (1, "")
        assert err.startswith(f"error: {target} is neither a project")
        code, out, _ = run(target, "--json")
        assert (code, set(json.loads(out))) == (1, KEYS)


def test_a_studys_bundle_answers_with_its_decision(run: Run, root: Path, tmp_path: Path) -> None:
    code, out, _ = run(root / "results" / "controlled-full", "--json")
    told: dict[str, Any] = json.loads(out)
    assert (code, set(told), told["ok"], told["errors"]) == (0, {"ok", "errors", "decision"}, True, [])
    assert told["decision"]["controlled"]["scale"] == "full"
    (tmp_path / "manifest.json").write_text("{}")
    code, out, _ = run(tmp_path, "--json")
    told = json.loads(out)
    assert (code, told["ok"], told["decision"]) == (1, False, {})
    assert any("manifest.json" in error for error in told["errors"])
