"""The verifier: honest bundles verify at every verdict, and another implementation agrees."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import canonical
from predictive_credit.certification import bundle
from predictive_credit.certification.records import Outcome
from predictive_credit.certification.verify import Levels, verify
from tests.public_bundles import ABSENT, PUBLIC
from tests.small_audit import BEST, EMPTY, Audit, core_audit, full_audit, lineage_empty
from tests.test_certification_bundle import resealed

CORE, FULL = core_audit(), full_audit()
NO_VERDICT = (None, Levels())


def written(tmp_path: Path, audit: Audit) -> Path:
    bundle.write(tmp_path / "audit", *audit.parts())
    return tmp_path / "audit"


def edited(folder: Path, old: str, new: str) -> None:
    text = (folder / "payload/certificate.json").read_text("utf-8")
    assert old in text
    resealed(folder, "certificate", text.replace(old, new, 1).encode())


AUDITS: dict[str, Audit] = {
    "certified core": CORE,
    "refuted": CORE.control(6, per_unit=(BEST,)),
    "broken registration": CORE.registered(rho=0.06),
    "broken record with a witness": CORE.control(6, per_unit=(BEST,)).control(9, attempt_id=""),
    "mixed outcomes": CORE.control(1, outcome=Outcome.MODEL_FAILURE, **EMPTY).control(
        2, outcome=Outcome.INFRASTRUCTURE, infrastructure_outcome_independent=True, **EMPTY
    ),
    "sampled": CORE.registered(inference_scope="sampled_population", ci_method="bounded_empirical_bernstein"),
    "certified evidence": FULL,
    "evidence blocked": FULL.feedback(stopping_rule_pass=False).attested(
        feedback_inference_assumptions_pass=False
    ),
    "neutral hit from scratch": lineage_empty(FULL).branches("neutral", range(1), per_unit=(BEST,)),
    "unhealthy arm": FULL.branches("truthful", range(5), outcome=Outcome.MODEL_FAILURE, **EMPTY),
}


@pytest.mark.parametrize("name", sorted(AUDITS))
def test_what_is_written_verifies_at_every_verdict(tmp_path: Path, name: str) -> None:
    report = verify(written(tmp_path, AUDITS[name]))
    decision = AUDITS[name].decide()
    assert report.ok, report.errors
    assert report.levels == Levels(decision=True, exact=True)
    assert report.replayed_verdict is not None
    assert report.replayed_verdict["core"] == decision.core.verdict
    assert report.replayed_verdict["evidence"] == decision.evidence.verdict


@pytest.mark.parametrize("name", sorted(AUDITS))
def test_another_implementation_accepts_what_is_written(tmp_path: Path, name: str) -> None:
    other = pytest.importorskip("dcp.bundle", reason="dcp-audit is not installed")
    folder = written(tmp_path, AUDITS[name])
    theirs, ours = other.verify_bundle(folder), verify(folder)
    assert theirs["ok"], theirs["errors"]
    assert theirs["bundle_id"] == ours.bundle_id
    assert theirs["replayed_verdict"] == ours.replayed_verdict


def test_an_edited_verdict_is_seen_at_both_levels(tmp_path: Path) -> None:
    folder = written(tmp_path, CORE)
    edited(folder, '"core":"certified"', '"core":"refuted"')
    report = verify(folder)
    assert (report.ok, report.levels) == (False, Levels(decision=False, exact=False))
    assert report.replayed_verdict is not None
    assert report.replayed_verdict["core"] == "certified"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("dcp-evaluation-core/0.4.2", "dcp-evaluation-core/0.4.3"),
        ("0.04772392127148661", "0.0477239212714866"),
        ("scoped non-recovery", "no recovery"),
    ],
)
def test_words_and_last_digits_are_seen_at_the_exact_level_only(tmp_path: Path, old: str, new: str) -> None:
    folder = written(tmp_path, CORE)
    edited(folder, old, new)
    assert verify(folder).levels == Levels(decision=True, exact=False)


def test_numbers_of_another_kind_are_the_same_numbers(tmp_path: Path) -> None:
    folder = written(tmp_path, CORE)
    edited(folder, '"n_ind":80', '"n_ind":80.0')
    assert verify(folder).ok


def test_a_folder_that_is_no_bundle_gets_a_report(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent", Path("with\0nul")):
        report = verify(path)
        assert not report.ok
        assert report.errors
        assert (report.replayed_verdict, report.levels) == NO_VERDICT


def test_records_nested_too_deeply_to_replay_get_a_report(tmp_path: Path) -> None:
    folder = written(tmp_path, CORE)
    text = (folder / "payload/registration.json").read_bytes()
    for depth in (400, 700, 900):
        nested = b'"notes":{"x":' + b"[" * depth + b"]" * depth + b"}"
        resealed(folder, "registration", text.replace(b'"notes":{}', nested))
        assert not verify(folder).ok


def test_an_infinite_score_is_a_defect_of_the_record(tmp_path: Path) -> None:
    folder = written(tmp_path, CORE)
    text = (folder / "payload/gate2.json").read_bytes()
    resealed(folder, "gate2", text.replace(b"[0.2]", b"[1e999]", 1))
    report = verify(folder)
    assert not report.ok
    assert report.replayed_verdict is not None
    assert report.replayed_verdict["core_inconclusive_class"] == "audit_incomplete"


@pytest.mark.skipif(PUBLIC is None, reason=ABSENT)
@pytest.mark.parametrize(
    ("name", "bundle_id", "evidence"),
    [
        ("sqlite-web", "eff6cf27afa58da58fc2591fff3be9116c0ee0fe896dc9f60a8c51376e504846", "certified"),
        ("sqlite-core", "3690bebc8b3ac882ab17ad0f8a61b05ea630443dbc85e36965eabf27e1f1bbca", "not_tested"),
        (
            "device-calibration-core",
            "dff7b57b062362e036fb26e7da94959e7d4900e5007b839e43e5fa107a507945",
            "not_tested",
        ),
    ],
)
def test_the_whole_public_bundles_verify(name: str, bundle_id: str, evidence: str) -> None:
    assert PUBLIC is not None
    report = verify(PUBLIC / name)
    assert (report.ok, report.bundle_id) == (True, f"sha256:{bundle_id}")
    assert report.levels.exact
    assert report.replayed_verdict is not None
    assert (report.replayed_verdict["core"], report.replayed_verdict["evidence"]) == ("certified", evidence)


@pytest.mark.skipif(PUBLIC is None, reason=ABSENT)
def test_the_partial_public_bundle_is_refused() -> None:
    assert PUBLIC is not None
    report = verify(PUBLIC / "virtual-catalyst")
    assert not report.ok
    assert "file set mismatch" in report.errors[0]


@pytest.mark.skipif(PUBLIC is None, reason=ABSENT)
def test_a_public_bundle_is_rewritten_byte_for_byte(tmp_path: Path) -> None:
    assert PUBLIC is not None
    public = PUBLIC / "sqlite-web"
    b = bundle.load(public)
    bundle.write(tmp_path / "again", b.registration, b.integrity, b.gate1, b.gate2, b.gate3)
    for name in ("certificate", "gate1", "gate2", "gate3", "integrity"):
        again = (tmp_path / f"again/payload/{name}.json").read_bytes()
        assert again == (public / f"payload/{name}.json").read_bytes(), name
    frozen: dict[str, Any] = json.loads((public / "payload/registration.json").read_bytes())
    assert canonical.plain(dataclasses.asdict(b.registration)) == frozen
