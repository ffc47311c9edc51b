"""The rules of a registration, each with the sentence that names its breach.

A breach makes the claim inconclusive, whatever the run showed. The sentences are part of the
certificate, so they and their order are those of the bundle format.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from typing import Any, TypeGuard

from predictive_credit.certification.records import Registration
from predictive_credit.certification.statistics import Method

SLACK = 1e-12  # room for a sum of alphas that is not a binary fraction
BUDGET = 0.05  # largest error probability of a claim, and of a family of them
REPLACEMENT_POLICY = "preaction_transport_pair_replacement_v1"
CORE_ALPHAS = ("alpha_main", "alpha_score", "alpha_recovery", "alpha_adequacy")
EVIDENCE_ALPHAS = ("alpha_evidence", "alpha_sham", "alpha_neutral")
REPLACEMENT_FIELDS = (
    "gate3_pair_replacement_policy", "max_feedback_pair_replacements", "max_sham_pair_replacements",
)  # fmt: skip

_POPULATION = ("sampled_population", Method.BERNSTEIN)
_GATE1_METHODS = (_POPULATION, ("exhaustive_finite_set", Method.FINITE_SET))
_RATES = (
    "positive_control_recall_min", "min_valid_candidate_rate", "max_infrastructure_failure_rate",
    "max_model_failure_rate", "max_execution_contract_violation_rate",
)  # fmt: skip
_FLOORS = {"positive_control_recall_min": 0.8, "min_valid_candidate_rate": 0.5}
_CAPS = {"max_infrastructure_failure_rate": 0.2, "max_model_failure_rate": 0.2}
_ARM_RATES = (
    "min_feedback_arm_valid_rate", "max_feedback_arm_model_failure_rate",
    "max_feedback_pair_infrastructure_rate",
)  # fmt: skip
_ARM_FLOORS = {"min_feedback_arm_valid_rate": 0.5}
_ARM_CAPS = {"max_feedback_arm_model_failure_rate": 0.2, "max_feedback_pair_infrastructure_rate": 0.2}
_CONTRACTS = (
    "scaffold_hash", "feedback_schema_hash", "sham_operator_hash", "utility_scale_id",
    "sham_calibration_id", "gate3_paired_arm_contract_hash", "gate3_truthful_arm_contract_hash",
    "gate3_neutral_arm_contract_hash", "gate3_neutral_recovery_contract_hash",
    "gate3_checkpoint_selection_rule_hash", "gate3_resource_contract_hash",
    "gate3_opportunity_contract_hash", "gate3_branch_policy_hash",
    "truthful_feedback_generator_hash", "neutral_sham_generator_hash",
    "gate3_pair_randomization_distribution_hash", "sham_randomization_distribution_hash",
    "sham_paired_arm_contract_hash", "sham_reference_arm_contract_hash",
    "sham_proposed_arm_contract_hash", "reference_null_generator_hash",
)  # fmt: skip


def is_number(value: Any) -> TypeGuard[float]:
    """A finite int or float; a truth value is none. Raises OverflowError beyond the largest float."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_integer(value: Any, *, least: int) -> TypeGuard[int]:
    """An int of at least `least`; neither a truth value nor a float such as 45.0."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def is_explicit(value: Any) -> TypeGuard[str]:
    """A text that is not blank and not a placeholder."""
    return isinstance(value, str) and bool(value.strip()) and "unspecified" not in value.lower()


def is_identifier(value: Any) -> TypeGuard[str]:
    """An explicit text that can be compared byte by byte: NFC, no blank, control or format character."""
    normal = is_explicit(value) and unicodedata.normalize("NFC", value) == value
    return normal and value.isprintable() and " " not in value


def active_alphas(registration: Registration) -> dict[str, float]:
    """The error probabilities that the requested grade spends."""
    evidence = registration.grade_requested == "evidence"
    return {n: getattr(registration, n) for n in CORE_ALPHAS + (EVIDENCE_ALPHAS if evidence else ())}


def errors(registration: Registration) -> tuple[str, ...]:
    """Every breach, in the order of the format; empty for a sound registration."""
    try:
        return tuple(_errors(registration))
    except (TypeError, OverflowError) as error:
        return (f"registration schema error: {type(error).__name__}: {error}",)


def _errors(r: Registration) -> Iterator[str]:
    yield from _identity(r)
    yield from _margins(r)
    yield from _rates(r, _RATES, _FLOORS, _CAPS)
    if r.max_execution_contract_violation_rate != 0 and is_number(r.max_execution_contract_violation_rate):
        yield "max_execution_contract_violation_rate must be 0 in this kernel"
    yield from _budget(r)
    yield from _identifiers(r, "audit_slot_id", "audit_slot_reservation_receipt_hash")
    if r.grade_requested == "evidence":
        yield from _evidence(r)
    elif r.necessity_claim_requested:
        yield "necessity_claim_requested requires grade_requested='evidence'"
    if not isinstance(r.notes, dict):
        yield "notes must be a JSON object"


def _identifiers(r: Registration, *names: str) -> Iterator[str]:
    for name in names:
        value = getattr(r, name)
        if not is_explicit(value):
            yield f"{name} must be an explicit non-placeholder string"
        elif not is_identifier(value):
            yield f"{name} must be a canonical whitespace-free identifier"


def _texts(r: Registration, *names: str) -> Iterator[str]:
    for name in names:
        if not is_explicit(getattr(r, name)):
            yield f"{name} must be an explicit non-placeholder string"


def _integers(r: Registration, least: int, *names: str) -> Iterator[str]:
    for name in names:
        if not is_integer(getattr(r, name), least=least):
            yield f"{name} must be an integer >= {least}"


def _within(value: Any, highest: float) -> bool:
    return is_number(value) and 0 < value <= highest


def _identity(r: Registration) -> Iterator[str]:
    yield from _identifiers(r, "claim_id", "audit_family_id")
    yield from _texts(r, "model_id", "interface_hash", "task_family_profile")
    if r.grade_requested not in ("core", "evidence"):
        yield f"grade_requested must be core|evidence, got {r.grade_requested!r}"
    if (r.inference_scope, r.ci_method) not in _GATE1_METHODS:
        yield (
            "inference_scope/ci_method must be sampled_population/bounded_empirical_bernstein "
            "or exhaustive_finite_set/finite_set_exact"
        )
    if r.score_range_id != "normalized_unit_interval_v1":
        yield "score_range_id must be normalized_unit_interval_v1"


def _margins(r: Registration) -> Iterator[str]:
    if not (is_number(r.delta_min) and r.delta_min > 0):
        yield "delta_min must be finite and > 0"
    if not (is_number(r.kappa) and 0 <= r.kappa < 1):
        yield "kappa must satisfy 0 <= kappa < 1"
    if is_number(r.delta_min) and is_number(r.kappa) and not 0 <= r.epsilon < r.delta_min:
        yield "epsilon must satisfy 0 <= epsilon < delta_min"
    if not _within(r.rho, BUDGET):
        yield "rho must satisfy 0 < rho <= 0.05"
    yield from _integers(r, 1, "m_max")
    yield from _identifiers(r, "recovery_stratum")
    yield from _texts(r, "gate2_control_contract_hash", "challenge_distribution_hash")
    yield from _integers(r, 1, "min_n_ind")
    if not isinstance(r.necessity_claim_requested, bool):
        yield "necessity_claim_requested must be a boolean"


def _rates(
    r: Registration, names: tuple[str, ...], floors: dict[str, float], caps: dict[str, float]
) -> Iterator[str]:
    numbers = {name: value for name in names if is_number(value := getattr(r, name))}
    for name in names:
        if name not in numbers or not 0 <= numbers[name] <= 1:
            yield f"{name} must be finite and in [0,1]"
    for name, floor in floors.items():
        if numbers.get(name, floor) < floor:
            yield f"{name} cannot be below protocol floor {floor}"
    for name, cap in caps.items():
        if numbers.get(name, cap) > cap:
            yield f"{name} cannot exceed protocol cap {cap}"


def _budget(r: Registration) -> Iterator[str]:
    alphas = active_alphas(r)
    if not _within(r.alpha_total, BUDGET):
        yield "alpha_total must satisfy 0 < alpha_total <= 0.05"
    for name, value in alphas.items():
        if not (is_number(value) and 0 < value < 1):
            yield f"{name} must be finite and in (0,1), got {value}"
    if is_number(r.alpha_total) and all(map(is_number, alphas.values())):
        spent = sum(alphas.values())
        if spent > r.alpha_total + SLACK:
            yield f"sum(active alphas)={spent:.4f} exceeds alpha_total={r.alpha_total:.4f}"
    if not _within(r.family_alpha_total, BUDGET):
        yield "family_alpha_total must satisfy 0 < family_alpha_total <= 0.05"
    yield from _integers(r, 1, "family_max_audits")
    if (
        is_integer(r.family_max_audits, least=1)
        and is_number(r.alpha_total)
        and is_number(r.family_alpha_total)
        and r.alpha_total * r.family_max_audits > r.family_alpha_total + SLACK
    ):
        yield "alpha_total * family_max_audits exceeds family_alpha_total"


def _evidence(r: Registration) -> Iterator[str]:
    if not (is_number(r.delta_evidence) and r.delta_evidence > 0):
        yield "delta_evidence must be finite and > 0 for evidence grade"
    if not (is_number(r.delta_evidence) and _within(r.delta_sham, r.delta_evidence / 2)):
        yield "delta_sham must satisfy 0 < delta_sham <= delta_evidence/2"
    if not _within(r.rho_placebo, BUDGET):
        yield "rho_placebo must satisfy 0 < rho_placebo <= 0.05"
    yield from _estimand(r)
    yield from _integers(r, 2, "registered_n_feedback_pairs", "registered_n_sham_pairs")
    yield from _replacements(r)
    if not is_number(r.worst_utility) or r.worst_utility != 0:
        yield "normalized Gate-3 ITT requires worst_utility=0"
    yield from _texts(r, *_CONTRACTS)
    if r.neutral_sham_generator_hash != r.sham_operator_hash:
        yield "target neutral-sham generator must equal the calibrated sham operator"
    if r.gate3_checkpoint_scope not in ("lineage_empty", "lineage_prefix"):
        yield "gate3_checkpoint_scope must be lineage_empty|lineage_prefix"
    yield from _rates(r, _ARM_RATES, _ARM_FLOORS, _ARM_CAPS)


def _estimand(r: Registration) -> Iterator[str]:
    required = {
        "continuous": ("mean_normalized_private_units_v1", Method.BERNSTEIN),
        "binary": ("canonical_p_wrapper_v1", Method.PAIRED_BINARY),
    }
    if not isinstance(r.feedback_estimand, str) or r.feedback_estimand not in required:
        yield "feedback_estimand must be continuous|binary"
        return
    mapping, method = required[r.feedback_estimand]
    if r.feedback_utility_mapping != mapping:
        yield f"{r.feedback_estimand} feedback requires {mapping} mapping"
    for kind in ("feedback", "sham"):
        seen = getattr(r, f"{kind}_inference_scope"), getattr(r, f"{kind}_ci_method")
        if seen != ("sampled_population", method):
            yield f"{r.feedback_estimand} {kind} requires sampled_population/{method}"


def _replacements(r: Registration) -> Iterator[str]:
    limits = (r.max_feedback_pair_replacements, r.max_sham_pair_replacements)
    if r.gate3_pair_replacement_policy not in ("none", REPLACEMENT_POLICY):
        yield f"gate3_pair_replacement_policy must be none|{REPLACEMENT_POLICY}"
    yield from _integers(r, 0, "max_feedback_pair_replacements", "max_sham_pair_replacements")
    if r.gate3_pair_replacement_policy == "none" and limits != (0, 0):
        yield "replacement limits must be zero when replacement policy is none"
    if r.gate3_pair_replacement_policy != "none":
        yield from _attrition_cap(
            "feedback", limits[0], r.registered_n_feedback_pairs, r.max_feedback_pair_infrastructure_rate
        )
        yield from _attrition_cap(
            "sham", limits[1], r.registered_n_sham_pairs, r.max_infrastructure_failure_rate
        )


def _attrition_cap(kind: str, limit: Any, pairs: Any, rate: Any) -> Iterator[str]:
    countable = is_integer(limit, least=0) and isinstance(pairs, int) and not isinstance(pairs, bool)
    if countable and is_number(rate) and limit > math.floor(pairs * rate + SLACK):
        yield (f"max_{kind}_pair_replacements exceeds the registered {kind} infrastructure-attrition cap")
