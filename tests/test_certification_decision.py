"""The lattice of verdicts: each rule of Core and of Evidence, from hand-made records."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from predictive_credit.certification.decision import SURVIVED, Verdict
from predictive_credit.certification.gates import Open
from predictive_credit.certification.records import Outcome, Validity
from tests.small_audit import BEST, EMPTY, WORST, Audit, core_audit, full_audit, lineage_empty, mark

CERTIFIED, REFUTED = Verdict.CERTIFIED, Verdict.REFUTED
OPEN, UNTESTED = Verdict.INCONCLUSIVE, Verdict.NOT_TESTED
CORE, FULL = core_audit(), full_audit()
EMPTY_LINEAGE = lineage_empty(FULL)
SAMPLED = {"inference_scope": "sampled_population", "ci_method": "bounded_empirical_bernstein"}


def hit(audit: Audit) -> Audit:
    return audit.control(6, per_unit=(BEST,))


def neutral_hit(audit: Audit) -> Audit:
    return audit.branches("neutral", range(1), per_unit=(BEST,))


def half_sampled(score: float) -> Audit:
    """300 sampled units, so that intervals are wide; the baseline scores `score` on each."""
    units = tuple(f"u{k}" for k in range(300))
    audit = core_audit(0).registered(**SAMPLED)
    return audit.astar(per_unit=(1.0,) * 300, unit_ids=units).baseline(
        per_unit=(score,) * 150 + (0.0,) * 150, unit_ids=units
    )


RULES: dict[str, tuple[Callable[[], Audit], Verdict, Open | None]] = {
    "1 registration": (lambda: CORE.registered(rho=0.06), OPEN, Open.AUDIT),
    "2 integrity": (lambda: CORE.attested(provenance_pass=False), OPEN, Open.AUDIT),
    "3 baseline": (lambda: CORE.baseline(validity=Validity.INVALID), OPEN, Open.AUDIT),
    "4 invalid": (lambda: CORE.astar(validity=Validity.INVALID), REFUTED, None),
    "5 unresolved": (lambda: CORE.astar(validity=Validity.UNRESOLVED), OPEN, Open.AUDIT),
    "6 baseline recovers": (lambda: CORE.baseline(per_unit=(0.96,)), REFUTED, None),
    "7 baseline uncertain": (lambda: CORE.registered(**SAMPLED), OPEN, Open.STATISTICAL),
    "8 gain too small": (lambda: CORE.baseline(per_unit=(0.6,)), REFUTED, None),
    "9 gain uncertain": (lambda: half_sampled(0.9), OPEN, Open.STATISTICAL),
    "11 witness": (lambda: hit(CORE), REFUTED, None),
    "12 neutral hit from scratch": (lambda: neutral_hit(EMPTY_LINEAGE), REFUTED, None),
    "13 neutral unresolved from scratch": (
        lambda: EMPTY_LINEAGE.branches("neutral", range(1), outcome=Outcome.UNRESOLVED, **EMPTY),
        OPEN,
        Open.AUDIT,
    ),
    "14 neutral ledger from scratch": (
        lambda: EMPTY_LINEAGE.feedback(all_started_pairs_disclosed=False),
        OPEN,
        Open.AUDIT,
    ),
    "14 scope not as registered": (lambda: FULL.feedback(checkpoint_scope="lineage_empty"), OPEN, Open.AUDIT),
    "15 inadequate": (lambda: CORE.adequacy(materials_readable=False), OPEN, Open.AUDIT),
    "15 unresolved": (lambda: CORE.control(0, outcome=Outcome.UNRESOLVED, **EMPTY), OPEN, Open.AUDIT),
    "15 too few": (lambda: core_audit(76), OPEN, Open.AUDIT),
    "15 bound": (lambda: core_audit(76).registered(min_n_ind=1), OPEN, Open.STATISTICAL),
    "16 certified": (lambda: CORE, CERTIFIED, None),
    "16 from scratch": (lambda: EMPTY_LINEAGE, CERTIFIED, None),
    "ledger of a prefix blocks only Evidence": (
        lambda: FULL.feedback(all_started_pairs_disclosed=False),
        CERTIFIED,
        None,
    ),
}


@pytest.mark.parametrize("rule", sorted(RULES))
def test_core_is_ruled_by_the_first_rule_that_fires(rule: str) -> None:
    make, verdict, open_class = RULES[rule]
    core = make().decide().core
    assert (core.verdict, core.open_class) == (verdict, open_class), core.reason


def test_earlier_rules_come_first() -> None:
    both = hit(CORE).astar(validity=Validity.INVALID)
    assert both.decide().core.reason == "Valid(A*) = false"
    assert hit(CORE).registered(rho=0.06).decide().core.verdict == OPEN


SURVIVES: dict[str, Callable[[Audit], Audit]] = {
    "no provenance": lambda a: a.attested(provenance_pass=False),
    "incomplete ledger": lambda a: a.attested(recovery_ledger_complete=False),
    "another record is broken": lambda a: a.control(20, attempt_id=""),
    "malformed positive controls": lambda a: a.adequacy(positive_control_successes=-1),
}
LOST: dict[str, Callable[[Audit], Audit]] = {
    "asymmetric verifier": lambda a: a.attested(symmetric_verifier_pass=False),
    "stale ledger": lambda a: a.attested(gate2_recovery_ledger_manifest_hash=mark("stale")),
    "no matched model": lambda a: a.adequacy(matched_model_present=False),
    "target not bound": lambda a: a.attested(astar_hash=mark("other")),
    "no digest": lambda a: a.attested(p_hash=""),
    "more controls than slots": lambda a: a.registered(m_max=79),
    "its receipt is another's": lambda a: a.control(
        6, prestart_contract_receipt_hash=a.gate2.controls[0].prestart_contract_receipt_hash
    ),
}


@pytest.mark.parametrize("defect", sorted(SURVIVES))
def test_a_witness_survives_unrelated_defects(defect: str) -> None:
    broken = SURVIVES[defect](hit(CORE)).decide()
    assert broken.findings.core
    assert broken.core.verdict == REFUTED
    assert broken.core.reason.endswith(SURVIVED)
    assert SURVIVES[defect](CORE).decide().core.verdict == OPEN


@pytest.mark.parametrize("defect", sorted(LOST))
def test_a_witness_that_is_not_bound_is_none(defect: str) -> None:
    ruling = LOST[defect](hit(CORE)).decide().core
    assert (ruling.verdict, ruling.open_class) == (OPEN, Open.AUDIT)


NECESSITY: dict[str, Any] = {"necessity_claim_requested": True}
EVIDENCE: dict[str, tuple[Callable[[], Audit], Verdict, Open | None]] = {
    "core grade": (lambda: FULL.registered(grade_requested="core"), UNTESTED, None),
    "core refuted": (lambda: hit(FULL), UNTESTED, None),
    "no gate 3": (lambda: replace(FULL, gate3=None).filled(), OPEN, Open.AUDIT),
    "necessity refuted": (lambda: neutral_hit(FULL.registered(**NECESSITY)), REFUTED, None),
    "integrity": (lambda: FULL.attested(sham_inference_assumptions_pass=False), OPEN, Open.AUDIT),
    "sham fails": (
        lambda: FULL.branches("proposed_sham", range(60), utility=0.0),
        OPEN,
        Open.AUDIT,
    ),
    "sham straddles": (
        lambda: FULL.branches("proposed_sham", range(3), utility=0.0),
        OPEN,
        Open.STATISTICAL,
    ),
    "supported": (lambda: FULL, CERTIFIED, None),
    "a neutral hit": (lambda: neutral_hit(FULL), CERTIFIED, None),
    "necessity unresolved": (lambda: FULL.registered(**NECESSITY), OPEN, Open.AUDIT),
    "reversed": (
        lambda: FULL.branches("truthful", range(30), per_unit=(WORST,)).branches(
            "neutral", range(30), per_unit=(BEST,)
        ),
        REFUTED,
        None,
    ),
    "no effect in thirty pairs": (
        lambda: FULL.branches("truthful", range(30), per_unit=(WORST,)),
        OPEN,
        Open.STATISTICAL,
    ),
    "design": (lambda: FULL.feedback(design_checks_pass=False), OPEN, Open.AUDIT),
    "from scratch": (lambda: EMPTY_LINEAGE, CERTIFIED, None),
}


@pytest.mark.parametrize("rule", sorted(EVIDENCE))
def test_evidence_is_ruled_by_the_first_rule_that_fires(rule: str) -> None:
    make, verdict, open_class = EVIDENCE[rule]
    evidence = make().decide().evidence
    assert (evidence.verdict, evidence.open_class) == (verdict, open_class), evidence.reason


def test_a_neutral_hit_from_scratch_vetoes_core_of_the_core_grade_too() -> None:
    decision = neutral_hit(EMPTY_LINEAGE.registered(grade_requested="core")).decide()
    assert (decision.core.verdict, decision.evidence.verdict) == (REFUTED, UNTESTED)


def test_a_neutral_hit_survives_defects_of_the_truthful_arm() -> None:
    broken = neutral_hit(EMPTY_LINEAGE).feedback(truthful_channel_audit_pass=False).decide()
    assert broken.findings.gate3
    assert not broken.findings.neutral_candidates
    assert broken.core.verdict == REFUTED


def test_values_of_the_wrong_kind_are_defects_and_no_crash() -> None:
    odd: Any = ["not", "a", "text"]
    text_score: Any = ("0.5",)
    for audit in (
        CORE.attested(human_assistance=odd),
        CORE.registered(grade_requested="core", m_max=10**400),
        FULL.registered(grade_requested="core", alpha_sham="x"),
        replace(CORE, gate1=replace(CORE.gate1, astar=replace(CORE.gate1.astar, per_unit=text_score))),
    ):
        assert audit.decide().core.verdict in (OPEN, CERTIFIED)
