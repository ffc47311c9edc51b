"""The rules of a registration: one breach at a time, and the error budget."""

import dataclasses
from typing import Any

import pytest

from predictive_credit.certification import registration as rules
from tests.small_audit import core_audit, full_audit

CORE, FULL = core_audit(1).registration, full_audit(2, 2).registration


def test_a_sound_registration_has_no_errors() -> None:
    assert rules.errors(CORE) == rules.errors(FULL) == ()


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("claim_id", "my claim", "whitespace-free"),
        ("claim_id", "e\u0301", "whitespace-free"),
        ("claim_id", "a\u200bb", "whitespace-free"),
        ("claim_id", "", "non-placeholder"),
        ("model_id", "Unspecified-model", "non-placeholder"),
        ("grade_requested", "gold", "core|evidence"),
        ("ci_method", "bounded_empirical_bernstein", "inference_scope/ci_method"),
        ("score_range_id", "other", "score_range_id"),
        ("delta_min", 0, "delta_min"),
        ("delta_min", True, "delta_min"),
        ("kappa", 1.0, "kappa"),
        ("rho", 0.06, "rho"),
        ("rho", "0.05", "rho"),
        ("m_max", True, "m_max"),
        ("m_max", 45.0, "m_max"),
        ("min_n_ind", 0, "min_n_ind"),
        ("positive_control_recall_min", 0.79, "protocol floor 0.8"),
        ("min_valid_candidate_rate", 0.4, "protocol floor 0.5"),
        ("max_model_failure_rate", 0.3, "protocol cap 0.2"),
        ("max_execution_contract_violation_rate", 0.01, "must be 0"),
        ("alpha_score", 0.0, "alpha_score"),
        ("alpha_score", float("inf"), "alpha_score"),
        ("alpha_recovery", 0.05, "exceeds alpha_total"),
        ("family_max_audits", 2, "exceeds family_alpha_total"),
        ("family_alpha_total", 0.06, "family_alpha_total"),
        ("necessity_claim_requested", True, "requires grade_requested"),
        ("notes", [], "notes"),
        ("delta_min", 10**400, "schema error"),
    ],
)
def test_each_core_rule_names_its_breach(field: str, value: Any, part: str) -> None:
    changes: dict[str, Any] = {field: value}
    assert any(part in e for e in rules.errors(dataclasses.replace(CORE, **changes)))


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("delta_evidence", 0, "delta_evidence"),
        ("delta_sham", 0.18, "delta_sham"),
        ("rho_placebo", 0.06, "rho_placebo"),
        ("feedback_estimand", "median", "continuous|binary"),
        ("feedback_estimand", [], "continuous|binary"),
        ("feedback_ci_method", "bounded_empirical_bernstein", "binary feedback requires"),
        ("sham_ci_method", "finite_set_exact", "binary sham requires"),
        ("feedback_utility_mapping", "other", "mapping"),
        ("registered_n_sham_pairs", 1, "registered_n_sham_pairs"),
        ("max_sham_pair_replacements", 1, "must be zero"),
        ("gate3_pair_replacement_policy", "any", "gate3_pair_replacement_policy"),
        ("worst_utility", 0.1, "worst_utility"),
        ("scaffold_hash", " ", "scaffold_hash"),
        ("sham_operator_hash", "other", "calibrated sham operator"),
        ("gate3_checkpoint_scope", "middle", "gate3_checkpoint_scope"),
        ("min_feedback_arm_valid_rate", 0.4, "protocol floor 0.5"),
        ("alpha_neutral", 1, "alpha_neutral"),
    ],
)
def test_each_evidence_rule_names_its_breach(field: str, value: Any, part: str) -> None:
    changes: dict[str, Any] = {field: value}
    assert any(part in e for e in rules.errors(dataclasses.replace(FULL, **changes)))
    core = dataclasses.replace(FULL, grade_requested="core", **changes)
    assert not any(part in e for e in rules.errors(core))


def test_replacements_stay_below_the_registered_attrition() -> None:
    policy: dict[str, Any] = {
        "gate3_pair_replacement_policy": rules.REPLACEMENT_POLICY,
        "registered_n_feedback_pairs": 30,
        "registered_n_sham_pairs": 60,
    }
    allowed = dataclasses.replace(
        FULL, **policy, max_feedback_pair_replacements=3, max_sham_pair_replacements=12
    )
    assert rules.errors(allowed) == ()
    over = dataclasses.replace(allowed, max_feedback_pair_replacements=4)
    assert "attrition cap" in rules.errors(over)[0]


def test_only_the_evidence_grade_spends_its_alphas() -> None:
    assert sum(rules.active_alphas(CORE).values()) == pytest.approx(0.035)
    assert sum(rules.active_alphas(FULL).values()) == pytest.approx(0.05)


def test_epsilon_is_the_floating_point_product() -> None:
    assert dataclasses.replace(CORE, kappa=1 / 7, delta_min=0.35).epsilon == 0.049999999999999996
