"""What an audit records: the registration, the evidence of three gates, and the integrity envelope.

Field names are the wire names of the bundle format. A record read from a bundle may hold a value of
the wrong kind (a count that is a text, say): that is a defect of the evidence, which the checks
name, so only its shape is refused here. What is missing falls back to a default that proves nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from predictive_credit.errors import PredictiveCreditError

T = TypeVar("T")


class Refused(PredictiveCreditError):
    """A bundle, or a part of one, that cannot be read as what it says it is."""


class Validity(StrEnum):
    """Whether an artifact meets the registered outcome contract."""

    VALID = "valid"
    INVALID = "invalid"
    UNRESOLVED = "unresolved"


class Outcome(StrEnum):
    """How a started episode or branch ended."""

    ARTIFACT = "artifact"
    MODEL_FAILURE = "model_failure"
    VIOLATION = "execution_contract_violation"
    INFRASTRUCTURE = "infrastructure_invalid"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, kw_only=True)
class Registration:
    """What is frozen before the main run; `registration.errors` holds the rules."""

    claim_id: str
    audit_family_id: str = ""
    model_id: str = ""
    interface_hash: str = ""
    task_family_profile: str = ""
    grade_requested: str = "core"
    inference_scope: str = "sampled_population"
    ci_method: str = "bounded_empirical_bernstein"
    score_range_id: str = "normalized_unit_interval_v1"
    delta_min: float = 0.05
    kappa: float = 0.0
    rho: float = 0.05
    m_max: int = 100
    min_n_ind: int = 1
    recovery_stratum: str = "matched"
    gate2_control_contract_hash: str = ""
    challenge_distribution_hash: str = ""
    positive_control_recall_min: float = 0.80
    min_valid_candidate_rate: float = 0.50
    max_infrastructure_failure_rate: float = 0.20
    max_model_failure_rate: float = 0.20
    max_execution_contract_violation_rate: float = 0.0
    alpha_main: float = 0.005
    alpha_score: float = 0.005
    alpha_recovery: float = 0.02
    alpha_adequacy: float = 0.005
    alpha_evidence: float = 0.005
    alpha_sham: float = 0.005
    alpha_neutral: float = 0.005
    alpha_total: float = 0.05
    family_alpha_total: float = 0.05
    family_max_audits: int = 1
    audit_slot_id: str = ""
    audit_slot_reservation_receipt_hash: str = ""
    necessity_claim_requested: bool = False
    delta_evidence: float = 0.05
    delta_sham: float = 0.02
    rho_placebo: float = 0.05
    feedback_estimand: str = "continuous"
    feedback_utility_mapping: str = "mean_normalized_private_units_v1"
    feedback_inference_scope: str = "sampled_population"
    feedback_ci_method: str = "bounded_empirical_bernstein"
    sham_inference_scope: str = "sampled_population"
    sham_ci_method: str = "bounded_empirical_bernstein"
    registered_n_feedback_pairs: int = 2
    registered_n_sham_pairs: int = 2
    gate3_pair_replacement_policy: str = "none"
    max_feedback_pair_replacements: int = 0
    max_sham_pair_replacements: int = 0
    worst_utility: float = 0.0
    scaffold_hash: str = ""
    feedback_schema_hash: str = ""
    sham_operator_hash: str = ""
    utility_scale_id: str = ""
    sham_calibration_id: str = ""
    gate3_checkpoint_scope: str = "lineage_prefix"
    gate3_paired_arm_contract_hash: str = ""
    gate3_truthful_arm_contract_hash: str = ""
    gate3_neutral_arm_contract_hash: str = ""
    gate3_neutral_recovery_contract_hash: str = ""
    gate3_checkpoint_selection_rule_hash: str = ""
    gate3_resource_contract_hash: str = ""
    gate3_opportunity_contract_hash: str = ""
    gate3_branch_policy_hash: str = ""
    truthful_feedback_generator_hash: str = ""
    neutral_sham_generator_hash: str = ""
    gate3_pair_randomization_distribution_hash: str = ""
    sham_randomization_distribution_hash: str = ""
    sham_paired_arm_contract_hash: str = ""
    sham_reference_arm_contract_hash: str = ""
    sham_proposed_arm_contract_hash: str = ""
    reference_null_generator_hash: str = ""
    min_feedback_arm_valid_rate: float = 0.8
    max_feedback_arm_model_failure_rate: float = 0.1
    max_feedback_pair_infrastructure_rate: float = 0.1
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epsilon(self) -> float:
        """How far below the artifact's score a candidate may stay and still count as recovery."""
        return self.kappa * self.delta_min

    @property
    def binary(self) -> bool:
        """Whether the feedback gate compares hits rather than mean scores."""
        return self.feedback_estimand == "binary"


@dataclass(frozen=True, kw_only=True)
class Artifact:
    """A frozen artifact's scores on the sealed units, each in [0, 1], in the order of `unit_ids`."""

    name: str
    per_unit: tuple[float, ...]
    validity: Validity = Validity.UNRESOLVED
    artifact_hash: str = ""
    unit_ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Gate1:
    """Evidence of utility: the chosen artifact and the baseline on the same units."""

    astar: Artifact = field(metadata={"part": Artifact})
    baseline: Artifact = field(metadata={"part": Artifact})


@dataclass(frozen=True, kw_only=True)
class Control:
    """One started challenger episode."""

    attempt_id: str
    outcome: Outcome = Outcome.UNRESOLVED
    per_unit: tuple[float, ...] | None = None
    validity: Validity = Validity.UNRESOLVED
    artifact_hash: str = ""
    unit_ids: tuple[str, ...] = ()
    stratum: str = ""
    scope_contract_hash: str = ""
    prestart_contract_receipt_hash: str = ""
    challenge_distribution_hash: str = ""
    independent_draw_receipt_hash: str = ""
    independent_unit_id: str = ""
    independence_ok: bool = False
    infrastructure_outcome_independent: bool = False


@dataclass(frozen=True, kw_only=True)
class Adequacy:
    """Whether challengers could have recovered at all: attestations and positive controls."""

    matched_model_present: bool = False
    materials_readable: bool = False
    opportunity_floor_met: bool = False
    health_audit_pass: bool = False
    positive_control_successes: int = -1
    positive_control_trials: int = -1
    calibration_id: str = ""
    checks_manifest_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class Gate2:
    """Evidence of recovery: every started challenger, in order, and their adequacy."""

    controls: tuple[Control, ...] = field(default=(), metadata={"parts": Control})
    adequacy: Adequacy = field(default=Adequacy(), metadata={"part": Adequacy})


@dataclass(frozen=True, kw_only=True)
class Branch:
    """One arm of a pair; `utility` is a number only where the pair's design reports one."""

    branch_id: str = ""
    outcome: Outcome = Outcome.UNRESOLVED
    per_unit: tuple[float, ...] | None = None
    utility: float | None = None
    validity: Validity = Validity.UNRESOLVED
    artifact_hash: str = ""
    unit_ids: tuple[str, ...] = ()
    execution_contract_hash: str = ""
    prestart_contract_receipt_hash: str = ""
    infrastructure_outcome_independent: bool = False
    verifier_result_hash: str = ""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """What two randomised branches of one block share."""

    pair_id: str
    block_id: str = ""
    randomization_distribution_hash: str = ""
    randomization_draw_receipt_hash: str = ""
    assignment_frozen: bool = False
    independence_ok: bool = False
    replacement_of: str = ""


@dataclass(frozen=True, kw_only=True)
class FeedbackPair(Pair):
    """A branch with truthful feedback against one with neutral messages."""

    truthful: Branch = field(metadata={"part": Branch})
    neutral: Branch = field(metadata={"part": Branch})


@dataclass(frozen=True, kw_only=True)
class ShamPair(Pair):
    """A null pair: a reference channel against the proposed neutral one, where none informs."""

    reference_null: Branch = field(metadata={"part": Branch})
    proposed_sham: Branch = field(metadata={"part": Branch})


@dataclass(frozen=True, kw_only=True)
class Sham:
    """The confirmatory calibration of the neutral channel."""

    pairs: tuple[ShamPair, ...] = field(metadata={"parts": ShamPair})
    calibration_id: str = ""
    model_id: str = ""
    interface_hash: str = ""
    task_family_profile: str = ""
    scaffold_hash: str = ""
    feedback_schema_hash: str = ""
    operator_hash: str = ""
    utility_scale_id: str = ""
    paired_arm_contract_hash: str = ""
    reference_arm_contract_hash: str = ""
    proposed_arm_contract_hash: str = ""
    reference_null_generator_hash: str = ""
    development_manifest_hash: str = ""
    confirmatory_manifest_hash: str = ""
    contract_preseal_receipt_hash: str = ""
    contract_sealed_before_branches_pass: bool = False
    contract_sealed_event_index: int = -1
    first_branch_started_event_index: int = -1
    operator_frozen_before_confirmatory: bool = False
    development_confirmatory_disjoint: bool = False
    freshness_pass: bool = False
    channel_checks_pass: bool = False
    all_started_pairs_disclosed: bool = False
    no_pair_replacements: bool = False
    started_pair_count: int = -1


@dataclass(frozen=True, kw_only=True)
class Gate3:
    """Evidence of feedback: pairs branched from one checkpoint, and the sham calibration."""

    pairs: tuple[FeedbackPair, ...] = field(metadata={"parts": FeedbackPair})
    sham: Sham = field(metadata={"part": Sham})
    neutral_adequacy: Adequacy | None = field(default=None, metadata={"part": Adequacy})
    checkpoint_scope: str = ""
    checkpoint_hash: str = ""
    window_hash: str = ""
    paired_arm_contract_hash: str = ""
    truthful_arm_contract_hash: str = ""
    neutral_arm_contract_hash: str = ""
    neutral_recovery_contract_hash: str = ""
    truthful_feedback_generator_hash: str = ""
    neutral_sham_generator_hash: str = ""
    contract_preseal_receipt_hash: str = ""
    contract_sealed_before_branches_pass: bool = False
    contract_sealed_event_index: int = -1
    first_branch_started_event_index: int = -1
    neutral_scope_audit_manifest_hash: str = ""
    feedback_pairs_manifest_hash: str = ""
    neutral_model_id: str = ""
    neutral_interface_hash: str = ""
    neutral_resource_contract_hash: str = ""
    neutral_k_manifest_hash: str = ""
    neutral_e0_manifest_hash: str = ""
    neutral_web_manifest_hash: str = ""
    neutral_opportunity_contract_hash: str = ""
    neutral_challenger_policy_hash: str = ""
    paired_contract_audit_pass: bool = False
    truthful_channel_audit_pass: bool = False
    neutral_channel_audit_pass: bool = False
    neutral_contract_audit_pass: bool | None = None
    design_checks_pass: bool = False
    stopping_rule_pass: bool = False
    registered_pairs_complete: bool = False
    all_started_pairs_disclosed: bool = False
    no_pair_replacements: bool = False
    started_pair_count: int = -1


@dataclass(frozen=True, kw_only=True)
class Integrity:
    """The envelope: attestations of what bytes cannot show, and the digests that bind the rest."""

    registration_frozen: bool = False
    claim_frozen: bool = False
    provenance_pass: bool = False
    iterative_lineage_eligible: bool = False
    lineage_dataflow_audit_pass: bool = False
    challenger_contract_pass: bool = False
    private_isolation_pass: bool = False
    symmetric_verifier_pass: bool = False
    inference_assumptions_pass: bool = False
    feedback_inference_assumptions_pass: bool = False
    sham_inference_assumptions_pass: bool = False
    familywise_budget_audit_pass: bool = False
    recovery_ledger_complete: bool = False
    astar_hash: str = ""
    baseline_hash: str = ""
    verifier_hash: str = ""
    astar_results_hash: str = ""
    baseline_results_hash: str = ""
    private_unit_manifest_hash: str = ""
    private_results_manifest_hash: str = ""
    p_hash: str = ""
    resource_contract_hash: str = ""
    selection_rule_hash: str = ""
    k_manifest_hash: str = ""
    e0_manifest_hash: str = ""
    lineage_manifest_hash: str = ""
    observed_web_manifest_hash: str = ""
    challenger_policy_hash: str = ""
    opportunity_contract_hash: str = ""
    recovery_ledger_manifest_hash: str = ""
    gate2_recovery_ledger_manifest_hash: str = ""
    gate3_neutral_scope_manifest_hash: str = ""
    gate3_neutral_recovery_ledger_manifest_hash: str = ""
    gate3_contract_preseal_receipt_hash: str = ""
    sham_contract_preseal_receipt_hash: str = ""
    claim_family_manifest_hash: str = ""
    alpha_ledger_receipt_hash: str = ""
    audit_slot_registry_entry_hash: str = ""
    human_assistance: str = ""
    attribution_subject: str = ""
    web_access_used: bool = False
    web_replay_scope: str = ""


_ENUMS: dict[str, type[StrEnum]] = {"validity": Validity, "outcome": Outcome}


def read(kind: type[T], value: Any, label: str) -> T:
    """A record from a payload's JSON value. Raises Refused, naming the part, on another shape."""
    if not isinstance(value, dict):
        raise Refused(f"{label} must be a JSON object")
    known, required = _known(kind)  # type: ignore[arg-type]  # a class can be hashed
    if unknown := sorted(value.keys() - known.keys()):
        raise Refused(f"{label} has unknown fields: {unknown}")
    if missing := sorted(required - value.keys()):
        raise Refused(f"{label} has no {', '.join(missing)}")
    return kind(**{name: _read_field(known[name], value[name], f"{label}.{name}") for name in value})


@cache
def _known(kind: type) -> tuple[dict[str, dataclasses.Field[Any]], frozenset[str]]:
    """A record's fields by name, and the names of those without a default."""
    known = {f.name: f for f in dataclasses.fields(kind)}
    missing = dataclasses.MISSING
    bare = (f.name for f in known.values() if f.default is missing and f.default_factory is missing)
    return known, frozenset(bare)


def _read_field(f: dataclasses.Field[Any], value: Any, label: str) -> Any:
    if value is None and f.default is None:
        return None
    if "part" in f.metadata:
        return read(f.metadata["part"], value, label)
    if f.name in _ENUMS:
        return _read_word(_ENUMS[f.name], value, label)
    if "parts" not in f.metadata and f.name not in ("per_unit", "unit_ids"):
        return value
    if not isinstance(value, list):
        raise Refused(f"{label} must be a JSON array")
    if "parts" not in f.metadata:
        return tuple(value)
    return tuple(read(f.metadata["parts"], item, f"{label}[{i}]") for i, item in enumerate(value))


def _read_word(words: type[StrEnum], value: Any, label: str) -> StrEnum:
    if not isinstance(value, str) or value not in set(words):
        raise Refused(f"{label} must be one of {', '.join(words)}")
    return words(value)
