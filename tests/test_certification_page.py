"""The tab of audits: every verdict, witness and count from the bundle alone, names as text."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from predictive_credit.certification import bundle, page, reading
from predictive_credit.certification.page import Shown
from predictive_credit.certification.reading import Audit
from predictive_credit.certification.verify import verify
from predictive_credit.errors import BadSource, Tampered
from predictive_credit.stages import certify_evidence
from tests.small_audit import BEST, WORST, core_audit, full_audit
from tests.small_audit import Audit as Records

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> &amp; {{ 7 * 7 }}"


def audit(records: Records, folder: Path) -> Audit:
    bundle.write(folder, *records.parts())
    return reading.open_audit(folder)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return audit(full_audit(), tmp_path_factory.mktemp("full") / "bundle")


@pytest.fixture(scope="module")
def refuted(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    records = core_audit()
    for k in range(7):
        records = records.control(k, per_unit=(BEST - k / 1000,))
    return audit(records, tmp_path_factory.mktemp("refuted") / "bundle")


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    records = core_audit().registered(rho=0.06, task_family_profile=HOSTILE)
    return audit(records, tmp_path_factory.mktemp("broken") / "bundle")


@pytest.fixture(scope="module")
def sections(full: Audit, refuted: Audit, broken: Audit) -> tuple[str, ...]:
    shown = [Shown(where=where, audit=a) for where, a in (("one", full), ("two", refuted), ("", broken))]
    return page.sections(shown)


@pytest.mark.parametrize("value", [None, "0.05", 10**400, [1]], ids=["null", "text", "huge", "list"])
def test_a_bundle_that_verifies_is_shown_whatever_its_registration_holds(tmp_path: Path, value: Any) -> None:
    fields = (
        "rho", "delta_min", "delta_sham", "delta_evidence", "positive_control_recall_min", "model_id",
        "task_family_profile", "claim_id", "notes",
    )  # fmt: skip
    for field in fields:
        shown = audit(full_audit().registered(**{field: value}), tmp_path / field)
        assert verify(tmp_path / field).ok
        assert "\n  core " in shown.text()
        assert all(map(ElementTree.fromstring, page.sections([Shown(where="", audit=shown)])))


def cells(section: str, caption: str) -> list[list[str]]:
    for table in ElementTree.fromstring(section).iter("table"):
        if "".join(table.find("caption").itertext()).startswith(caption):  # type: ignore[union-attr]
            return [["".join(cell.itertext()) for cell in row] for row in table.find("tbody")]  # type: ignore[union-attr]
    raise AssertionError(caption)


def test_every_section_is_well_formed_with_unique_ids_that_exist(sections: tuple[str, ...]) -> None:
    elements = [e for section in sections for e in ElementTree.fromstring(section).iter()]
    ids = Counter(e.attrib["id"] for e in elements if "id" in e.attrib)
    assert max(ids.values()) == 1
    assert {e.attrib["aria-labelledby"] for e in elements if "aria-labelledby" in e.attrib} <= set(ids)
    assert not {e.tag for e in elements} & {"script", "link", "style", "img"}


def test_the_summary_has_a_row_for_each_audit_and_says_what_is_not_claimed(sections: tuple[str, ...]) -> None:
    found = cells(sections[0], "Verdicts")
    assert [row[1:3] for row in found] == [
        ["certified", "certified"],
        ["refuted", "not tested"],
        ["inconclusive (audit incomplete)", "not tested"],
    ]
    assert found[0][3:] == ["1.0000", "0.9500", "0.2000", "0 of 96", "0.0468"]
    assert found[1][6:] == ["7 of 80", "undefined"]
    assert found[2][3:] == ["undefined"] * 5
    assert "1 certified, 1 refuted and 1 inconclusive" in sections[0]
    assert sections[0].count("<li>") == len(page.LIMITS)


def test_gates_show_what_was_asked_seen_and_whether_it_held(sections: tuple[str, ...]) -> None:
    gates = {row[1]: row[2:] for row in cells(sections[1], "What each asked")}
    assert gates["gain over the baseline, lower end"] == ["\u2265 0.5", "1.0000", "yes"]
    assert gates["a challenger's chance to, upper bound"] == ["\u2264 0.05", "0.0468", "yes"]
    assert gates["null pairs differ, interval"] == ["within \u00b10.17", "[\u22120.0950, 0.0950]", "yes"]
    assert gates["truthful minus neutral, interval"] == ["\u2265 0.34", "[0.6379, 1.0000]", "yes"]
    refuted = {row[1]: row[2:] for row in cells(sections[2], "What each asked")}
    assert refuted["challengers that reach the line"] == ["0", "7 of 80", "no"]
    assert refuted["a challenger's chance to, upper bound"][1] == "none, a challenger reached it"
    broken = cells(sections[3], "What each asked")
    assert broken[0][-1] == "no"
    assert {row[-1] for row in broken[1:]} == {"undefined"}


def test_witnesses_are_the_best_hits_with_the_line_they_reached(sections: tuple[str, ...]) -> None:
    found = cells(sections[2], "Witnesses")
    assert [row[:3] for row in found] == [
        [f"attempt-{k}", f"{1 - k / 1000:.4f}", "0.9500"] for k in range(page.SHOWN)
    ]
    assert {row[3] for row in found} == {"confirmed hit"}
    assert "And 2 more." in sections[2]
    assert cells(sections[1], "Best challengers")[0] == [
        "attempt-0",
        f"{WORST:.4f}",
        "0.9500",
        "confirmed miss",
    ]


def test_a_gate_that_was_not_evaluated_is_said_to_be_and_lists_no_challenger(
    sections: tuple[str, ...], broken: Audit
) -> None:
    assert broken.decision.gate2 is None
    shown = " ".join("".join(ElementTree.fromstring(sections[3]).itertext()).split())
    assert f"Gate 2 was not evaluated: {broken.decision.core.reason}." in shown
    assert "Best challengers" not in sections[3]
    assert "No challenger is a witness" not in sections[3]


def test_counts_and_bounds_are_those_of_the_records(sections: tuple[str, ...]) -> None:
    counts = dict(cells(sections[1], "Counts"))
    assert (counts["challengers"], counts["positive controls"]) == ("96", "45")
    assert (counts["feedback pairs"], counts["null pairs"]) == ("30", "60")
    bounds = {what: seen for what, *seen in cells(sections[1], "Bounds")}
    assert bounds["neutral branches' chance of recovery"] == ["at most 0.1619", "0.005"]
    assert bounds["positive controls' recall"] == ["at least 0.8889", "0.005"]


def test_names_are_shown_as_text(sections: tuple[str, ...]) -> None:
    assert "<img" not in "".join(sections)
    assert "{{ 7 * 7 }}" in sections[3]


def test_a_terminal_gets_the_same_gates(full: Audit, refuted: Audit) -> None:
    lines = full.text().splitlines()
    assert lines[1].startswith("  core certified: scoped non-recovery: 0/96 hits")
    assert len(lines) == 4 + len(full.gates())
    assert all(line.endswith("  held") for line in lines[4:])
    assert "7 of 80" in refuted.text()


def test_a_bundle_that_does_not_verify_stops_the_page_and_an_empty_folder_too(
    full: Audit, tmp_path: Path
) -> None:
    with pytest.raises(BadSource, match="holds no folder with a manifest"):
        certify_evidence.write(tmp_path, tmp_path / "page.html")
    bundle.write(tmp_path / "one", *replace(core_audit()).parts())
    certificate = tmp_path / "one" / "payload" / "certificate.json"
    certificate.write_bytes(certificate.read_bytes().replace(b"certified", b"certifIed", 1))
    with pytest.raises(Tampered, match="one does not verify"):
        certify_evidence.write(tmp_path, tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
