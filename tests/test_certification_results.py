"""The committed full audits verify, with our verifier and with another, and are what README and page say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.certification import page, reading
from predictive_credit.certification.reading import Audit
from predictive_credit.certification.verify import verify
from predictive_credit.stages import certify_evidence

FOLDER = Path(__file__).parents[1] / "results" / "certification"
VERDICTS = {
    "sqlite": ("certified", "certified"),
    "catalyst": ("certified", "certified"),
    "device": ("certified", "not_tested"),
    "knapsack": ("refuted", "not_tested"),
    "smollm2-sqlite": ("inconclusive", "not_tested"),
    "smollm2-catalyst": ("refuted", "not_tested"),
    "smollm2-device": ("refuted", "not_tested"),
    "smollm2-knapsack": ("inconclusive", "not_tested"),
}
BUNDLES = tuple(VERDICTS)
TASKS = tuple(name for name in BUNDLES if "-" not in name)


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    return {task: reading.open_audit(FOLDER / task) for task in TASKS}


@pytest.mark.parametrize("task", BUNDLES)
def test_a_committed_audit_verifies_to_the_last_digit(task: str) -> None:
    report = verify(FOLDER / task)
    assert report.ok, report.errors
    assert report.levels.exact
    assert report.replayed_verdict is not None
    assert (report.replayed_verdict["core"], report.replayed_verdict["evidence"]) == VERDICTS[task]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.parametrize("task", BUNDLES)
def test_a_committed_audit_verifies_with_dcp_audit(task: str) -> None:
    other = pytest.importorskip("dcp.bundle", reason="dcp-audit is not installed")
    answer: dict[str, Any] = other.verify_bundle(FOLDER / task)
    assert answer["ok"], answer
    assert (answer["replayed_verdict"]["core"], answer["replayed_verdict"]["evidence"]) == VERDICTS[task]


def test_the_published_bounds_come_out_at_the_published_budgets(audits: dict[str, Audit]) -> None:
    bounds = {task: audit.bound for task, audit in audits.items()}
    assert bounds["sqlite"] == bounds["catalyst"] == pytest.approx(0.0468381, abs=1e-7)
    assert bounds["device"] == pytest.approx(0.0477239, abs=1e-7)
    assert bounds["knapsack"] is None
    for task in ("sqlite", "catalyst"):
        numbers = audits[task].numbers()
        assert numbers["recall_lower"] == pytest.approx(0.8889268, abs=1e-7)
        assert numbers["feedback"] == pytest.approx([0.6379275, 1.0], abs=1e-7)
        assert numbers["null"] == pytest.approx([-0.0950339, 0.0950339], abs=1e-7)
        assert numbers["neutral_bound"] == pytest.approx(0.1618939, abs=1e-7)


def test_the_knapsacks_witnesses_reach_the_line(audits: dict[str, Audit]) -> None:
    found = audits["knapsack"]
    assert found.line is not None
    reached = [c for c in found.candidates() if c.score >= found.line]
    assert len(reached) == found.hits == 39
    assert {c.status for c in reached} == {"confirmed_hit"}


def test_the_committed_page_is_what_the_bundles_give(tmp_path: Path) -> None:
    certify_evidence.write(FOLDER, tmp_path / "page.html")
    shown = (tmp_path / "page.html").read_text().replace("\r", "")
    committed = FOLDER.with_suffix(".html").read_text()
    assert shown.partition("<footer>")[0] == committed.partition("<footer>")[0]


def rows(text: str) -> Iterator[list[str]]:
    for line in text.splitlines():
        if line.startswith("| "):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def test_the_readme_tells_the_committed_numbers(audits: dict[str, Audit], root: Path) -> None:
    told = {row[0]: row[1:] for row in rows((root / "README.md").read_text())}
    for task, audit in audits.items():
        d, numbers = audit.decision, audit.numbers()
        assert d.gate2 is not None
        bound = "-" if audit.bound is None else f"{audit.bound:.4f}"
        seen = [
            f"{audit.score:.4f} / {audit.line:.4f}",
            f"{audit.hits} of {d.gate2.evaluable}, {numbers['best_challenger']:.4f}",
            bound,
            f"{numbers['counts']['positive controls that recovered']} of "
            f"{numbers['counts']['positive controls']}, {numbers['recall_lower']:.4f}",
        ]
        assert told[task][:4] == seen
        assert told[task][5] == "**" + d.core.verdict + "**"


def test_the_readme_tells_what_the_models_audits_came_to(root: Path) -> None:
    told = {row[0]: row[1:] for row in rows((root / "README.md").read_text())}
    for name in sorted(set(BUNDLES) - set(TASKS)):
        audit = reading.open_audit(FOLDER / name)
        assert audit.model == "smollm2"
        d, counts = audit.decision, audit.counts()
        seen = ["not evaluated"] * 3
        if d.gate1 is not None and d.gate2 is not None:
            seen = [
                f"{audit.score:.4f} / {audit.line:.4f}",
                f"{audit.hits} of {d.gate2.evaluable}",
                f"{counts['positive controls that recovered']} of {counts['positive controls']}",
            ]
        why = d.core.reason if d.core.open_class is None else reading.said(d.core).partition(": ")[2]
        assert told[name] == [*seen, f"**{d.core.verdict}**: {why}"]


def test_isolation_rests_on_what_the_registration_quotes(audits: dict[str, Audit]) -> None:
    for audit in audits.values():
        assert audit.registration.model_id.startswith("script:")
        assert "No container" in audit.registration.notes["isolation_basis"]
        assert audit.registration.notes["formal_certificate_issued"] is False


def test_the_page_names_every_limit(audits: dict[str, Audit]) -> None:
    html = FOLDER.with_suffix(".html").read_text()
    for limit in page.LIMITS:
        assert limit.replace("'", "&#39;") in html
    manifest = json.loads((FOLDER / "sqlite" / "manifest.json").read_text())
    assert manifest["bundle_id"] in html
