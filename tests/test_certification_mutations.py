"""231 variants of the public bundles, and what another implementation answers for each."""

import csv
import importlib.util
import json
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from predictive_credit.certification.bundle import Bundle
from predictive_credit.certification.records import Gate1, Gate2, Gate3, Integrity, Registration, read
from predictive_credit.certification.verify import compare, replay, verify
from tests.public_bundles import ABSENT, PUBLIC

pytestmark = [
    pytest.mark.skipif(PUBLIC is None, reason=ABSENT),
    # the kit leaves the files it has read to the collector
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
ROWS: list[dict[str, str]] = []
if PUBLIC is not None:
    with (PUBLIC / "mutations/mutations.csv").open(newline="") as _file:
        ROWS = list(csv.DictReader(_file))
ANSWER = ("ok", "core", "evidence", "core_class", "evidence_class")
VERDICT = ("core", "evidence", "core_inconclusive_class", "evidence_inconclusive_class")
DECISION_ONLY = {"certificate_other_version", "certificate_last_digit"}


def load_kit() -> ModuleType:
    assert PUBLIC is not None
    spec = importlib.util.spec_from_file_location("mutations", PUBLIC / "mutations/make_mutations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def kit() -> ModuleType:
    return load_kit()


@cache
def payloads(base: str) -> dict[str, bytes]:
    assert PUBLIC is not None
    return {p.stem: p.read_bytes() for p in (PUBLIC / base / "payload").iterdir()}


def published(base: str) -> dict[str, Any]:
    return {name: json.loads(data) for name, data in payloads(base).items()}


def expected(row: dict[str, str]) -> dict[str, str]:
    """The other implementation's answer; where it ends in a traceback, a refusal."""
    return {key: "false" if row[key] == "crash" else row[key] for key in ANSWER}


def answer(ok: bool, verdict: dict[str, Any] | None) -> dict[str, str]:
    verdict = verdict or {}
    return {
        "ok": str(ok).lower(),
        "core": verdict.get("core", ""),
        "evidence": verdict.get("evidence", ""),
        "core_class": verdict.get("core_inconclusive_class", ""),
        "evidence_class": verdict.get("evidence_inconclusive_class", ""),
    }


def test_every_variant_is_covered() -> None:
    assert len(ROWS) == 231


FILES = [r for r in ROWS if r["level"] == "files"]
EVIDENCE = [r for r in ROWS if r["level"] == "evidence"]


@pytest.mark.parametrize("row", FILES, ids=[r["name"] for r in FILES])
def test_variants_of_files(kit: ModuleType, tmp_path: Path, row: dict[str, str]) -> None:
    kit.build(row["name"], str(tmp_path / "bundle"))
    report = verify(tmp_path / "bundle")
    assert answer(report.ok, report.replayed_verdict) == expected(row), report.errors
    if row["name"] in DECISION_ONLY:
        assert report.levels.decision


@pytest.mark.parametrize("row", EVIDENCE, ids=[r["name"] for r in EVIDENCE])
def test_variants_of_evidence(kit: ModuleType, row: dict[str, str]) -> None:
    base, _, _, change, repaired = kit.MUTATIONS[row["name"]]
    values = published(base)
    change(values)
    if repaired:
        kit.repair(values)
    found = Bundle(
        bundle_id="",
        registration=read(Registration, values["registration"], "registration"),
        integrity=read(Integrity, values["integrity"], "integrity"),
        gate1=read(Gate1, values["gate1"], "gate1"),
        gate2=read(Gate2, values["gate2"], "gate2"),
        gate3=read(Gate3, values["gate3"], "gate3") if "gate3" in values else None,
        certificate=values["certificate"],
    )
    replayed = replay(found)
    verdict = {key: replayed["verdict"][key] for key in VERDICT}
    saved = found.certificate["verdict"]
    same_words = all(saved[key] == word for key, word in verdict.items())
    ok = same_words and compare(found.certificate, replayed).exact
    assert answer(ok, verdict) == expected(row)
