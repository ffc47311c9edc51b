"""Checks that an audit's records are complete, well-formed and bound to each other.

No check raises: each yields the sentence that names the defect, in the order of the bundle format,
and all are collected, since an auditor wants every defect at once. The sentences are part of the
certificate. Core defects block both grades; feedback defects block Evidence, and some of them Core.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from predictive_credit.certification import digests
from predictive_credit.certification.records import (
    Adequacy,
    Artifact,
    Branch,
    Control,
    FeedbackPair,
    Gate1,
    Gate2,
    Gate3,
    Integrity,
    Outcome,
    Pair,
    Registration,
    Sham,
    Validity,
)
from predictive_credit.certification.registration import is_explicit, is_identifier, is_integer, is_number
from predictive_credit.certification.replacements import ledger_errors

CORE_ATTESTATIONS = (
    "registration_frozen", "claim_frozen", "provenance_pass", "iterative_lineage_eligible",
    "lineage_dataflow_audit_pass", "challenger_contract_pass", "private_isolation_pass",
    "symmetric_verifier_pass", "inference_assumptions_pass", "familywise_budget_audit_pass",
    "recovery_ledger_complete",
)  # fmt: skip
CORE_DIGESTS = (
    "astar_hash", "baseline_hash", "verifier_hash", "astar_results_hash", "baseline_results_hash",
    "private_unit_manifest_hash", "private_results_manifest_hash", "p_hash", "resource_contract_hash",
    "selection_rule_hash", "k_manifest_hash", "e0_manifest_hash", "lineage_manifest_hash",
    "observed_web_manifest_hash", "challenger_policy_hash", "opportunity_contract_hash",
    "recovery_ledger_manifest_hash", "gate2_recovery_ledger_manifest_hash",
    "claim_family_manifest_hash", "alpha_ledger_receipt_hash", "audit_slot_registry_entry_hash",
)  # fmt: skip
# A hit stands although the audit is broken elsewhere, as long as these hold.
WITNESS_ATTESTATIONS = (
    "registration_frozen", "claim_frozen", "iterative_lineage_eligible",
    "lineage_dataflow_audit_pass", "symmetric_verifier_pass", "familywise_budget_audit_pass",
)  # fmt: skip
FEEDBACK_ATTESTATIONS = ("feedback_inference_assumptions_pass", "sham_inference_assumptions_pass")

_WORDS = {
    "human_assistance": ("none", "operational", "fixed_scientific", "adaptive_scientific"),
    "attribution_subject": ("autonomous_agent", "agent_given_fixed_human_input", "human_agent_joint"),
    "web_replay_scope": ("not_used", "observed_bytes_frozen", "observed_request_response_frozen"),
}
_ADEQUACY_FLAGS = (
    "matched_model_present", "materials_readable", "opportunity_floor_met", "health_audit_pass",
)  # fmt: skip
_GATE3_FLAGS = (
    "design_checks_pass", "stopping_rule_pass", "registered_pairs_complete",
    "all_started_pairs_disclosed", "no_pair_replacements", "paired_contract_audit_pass",
    "truthful_channel_audit_pass", "neutral_channel_audit_pass", "contract_sealed_before_branches_pass",
)  # fmt: skip
_GATE3_TEXTS = (
    "checkpoint_hash", "window_hash", "feedback_pairs_manifest_hash", "paired_arm_contract_hash",
    "truthful_arm_contract_hash", "neutral_arm_contract_hash", "neutral_recovery_contract_hash",
    "truthful_feedback_generator_hash", "neutral_sham_generator_hash",
    "contract_preseal_receipt_hash", "neutral_scope_audit_manifest_hash",
)  # fmt: skip
_NEUTRAL_TEXTS = (
    "neutral_model_id", "neutral_interface_hash", "neutral_resource_contract_hash",
    "neutral_k_manifest_hash", "neutral_e0_manifest_hash", "neutral_web_manifest_hash",
    "neutral_opportunity_contract_hash", "neutral_challenger_policy_hash",
)  # fmt: skip
_WITNESS_TEXTS = (
    "checkpoint_hash", "window_hash", "paired_arm_contract_hash", "neutral_arm_contract_hash",
    "neutral_recovery_contract_hash", "neutral_sham_generator_hash",
    "contract_preseal_receipt_hash", "neutral_scope_audit_manifest_hash", *_NEUTRAL_TEXTS,
)  # fmt: skip
# What the recorded feedback gate must repeat: its field, and where that was fixed beforehand.
_NEUTRAL_CONTRACT = {
    "checkpoint_scope": ("registration", "gate3_checkpoint_scope"),
    "paired_arm_contract_hash": ("registration", "gate3_paired_arm_contract_hash"),
    "neutral_arm_contract_hash": ("registration", "gate3_neutral_arm_contract_hash"),
    "neutral_recovery_contract_hash": ("registration", "gate3_neutral_recovery_contract_hash"),
    "neutral_sham_generator_hash": ("registration", "neutral_sham_generator_hash"),
    "neutral_model_id": ("registration", "model_id"),
    "neutral_interface_hash": ("registration", "interface_hash"),
    "neutral_resource_contract_hash": ("registration", "gate3_resource_contract_hash"),
    "neutral_opportunity_contract_hash": ("registration", "gate3_opportunity_contract_hash"),
    "neutral_challenger_policy_hash": ("registration", "gate3_branch_policy_hash"),
    "neutral_k_manifest_hash": ("integrity", "k_manifest_hash"),
    "neutral_e0_manifest_hash": ("integrity", "e0_manifest_hash"),
    "neutral_web_manifest_hash": ("integrity", "observed_web_manifest_hash"),
    "contract_preseal_receipt_hash": ("integrity", "gate3_contract_preseal_receipt_hash"),
}
_PAIRED_CONTRACT = _NEUTRAL_CONTRACT | {
    "truthful_arm_contract_hash": ("registration", "gate3_truthful_arm_contract_hash"),
    "truthful_feedback_generator_hash": ("registration", "truthful_feedback_generator_hash"),
}
_SHAM_FLAGS = (
    "channel_checks_pass", "freshness_pass", "operator_frozen_before_confirmatory",
    "development_confirmatory_disjoint", "all_started_pairs_disclosed", "no_pair_replacements",
    "contract_sealed_before_branches_pass",
)  # fmt: skip
_SHAM_TEXTS = (
    "calibration_id", "development_manifest_hash", "confirmatory_manifest_hash",
    "task_family_profile", "model_id", "interface_hash", "scaffold_hash", "feedback_schema_hash",
    "operator_hash", "reference_null_generator_hash", "utility_scale_id",
    "paired_arm_contract_hash", "reference_arm_contract_hash", "proposed_arm_contract_hash",
    "contract_preseal_receipt_hash",
)  # fmt: skip
_SHAM_CONTRACTS = {
    "paired-arm contract": ("paired_arm_contract_hash", "sham_paired_arm_contract_hash"),
    "reference-arm contract": ("reference_arm_contract_hash", "sham_reference_arm_contract_hash"),
    "proposed-arm contract": ("proposed_arm_contract_hash", "sham_proposed_arm_contract_hash"),
    "reference-null generator": ("reference_null_generator_hash", "reference_null_generator_hash"),
}
_FAILURES = {
    Outcome.MODEL_FAILURE: "model failure",
    Outcome.VIOLATION: "execution-contract violation",
    Outcome.INFRASTRUCTURE: "infrastructure failure",
}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """Every defect found: of the Core audit, of the feedback gate, and of its neutral arm alone."""

    core: tuple[str, ...] = ()
    gate3: tuple[str, ...] = ()
    neutral_candidates: tuple[str, ...] = ()
    neutral_ledger: tuple[str, ...] = ()


def check(
    registration: Registration, integrity: Integrity, gate1: Gate1, gate2: Gate2, gate3: Gate3 | None
) -> Findings:
    """All defects of an audit's records; the registration has its own rules."""
    core = _collect(_core(registration, integrity, gate1, gate2), "integrity")
    if gate3 is None:
        return Findings(core=core)
    candidates = _collect(_neutral_witness(registration, integrity, gate2, gate3), "neutral-hit")
    ledger = _collect(_neutral_ledger(registration, gate3), "neutral-ledger")
    return Findings(
        core=core,
        gate3=_collect(_gate3(registration, integrity, gate2, gate3), "Gate 3"),
        neutral_candidates=candidates,
        neutral_ledger=candidates + ledger,
    )


def _collect(found: Iterator[str], what: str) -> tuple[str, ...]:
    errors: list[str] = []
    try:
        errors.extend(found)
    except (TypeError, ValueError, OverflowError) as error:  # a value no check foresees is a defect too
        return (f"{what} schema error: {type(error).__name__}: {error}",)
    return tuple(errors)


def same_digest(recorded: Any, recompute: Callable[[], str]) -> bool | None:
    """Whether a recorded digest is the recomputed one; None where nothing can be recomputed."""
    try:
        return bool(recorded == recompute())
    except (TypeError, ValueError, OverflowError):
        return None


def _bound(recorded: Any, recompute: Callable[[], str], what: str, gone: str = "") -> Iterator[str]:
    same = same_digest(recorded, recompute)
    if same is None:
        yield f"{gone or what} could not be recomputed"
    elif not same:
        yield f"{what} mismatch"


def _flags(record: Any, names: Iterable[str], label: str) -> Iterator[str]:
    for name in names:
        if not isinstance(getattr(record, name), bool):
            yield f"{label}{name} must be a boolean"


def _attested(integrity: Integrity, names: Iterable[str]) -> Iterator[str]:
    for name in names:
        value = getattr(integrity, name)
        if not isinstance(value, bool):
            yield f"{name} must be a boolean"
        elif not value:
            yield f"{name} not attested"


def _texts(record: Any, names: Iterable[str], label: str) -> Iterator[str]:
    for name in names:
        if not is_explicit(getattr(record, name)):
            yield f"{label}{name} missing"


def repeated(values: Iterable[Hashable]) -> bool:
    """Whether a value occurs twice."""
    seen = list(values)
    return len(set(seen)) != len(seen)


def is_score(value: Any) -> bool:
    """A number in [0, 1]."""
    return is_number(value) and 0 <= value <= 1


# -- Core


def _core(r: Registration, i: Integrity, g1: Gate1, g2: Gate2) -> Iterator[str]:
    yield from _envelope(r, i)
    yield from _artifact(g1.astar, "A*")
    yield from _artifact(g1.baseline, "baseline")
    yield from target_errors(i, g1)
    yield from _adequacy(g2.adequacy, "gate2.adequacy")
    for k, control in enumerate(g2.controls):
        yield from control_errors(control, f"gate2.controls[{k}]")
    yield from _control_ledger(r, i, g2)


def _envelope(r: Registration, i: Integrity) -> Iterator[str]:
    yield from _attested(i, CORE_ATTESTATIONS)
    yield from _flags(i, ("web_access_used",), "")
    yield from _texts(i, CORE_DIGESTS, "")
    yield from _slot(r, i)
    for name in ("human_assistance", "attribution_subject"):
        if getattr(i, name) not in _WORDS[name]:
            yield f"{name} is missing or invalid"
    if i.human_assistance == "adaptive_scientific" and i.attribution_subject != "human_agent_joint":
        yield "adaptive scientific assistance requires human_agent_joint attribution"
    if i.attribution_subject == "autonomous_agent" and i.human_assistance not in ("none", "operational"):
        yield "autonomous attribution conflicts with scientific human assistance"
    yield from _web(i)


def _slot(r: Registration, i: Integrity) -> Iterator[str]:
    receipt = i.alpha_ledger_receipt_hash
    if is_explicit(receipt) and receipt != r.audit_slot_reservation_receipt_hash:
        yield "audit-slot reservation receipt differs from frozen registration"


def _web(i: Integrity) -> Iterator[str]:
    if i.web_replay_scope not in _WORDS["web_replay_scope"]:
        yield "web_replay_scope is missing or invalid"
    if i.web_access_used is True and i.web_replay_scope == "not_used":
        yield "Web was used but no frozen replay scope was supplied"
    if i.web_access_used is False and i.web_replay_scope != "not_used":
        yield "Web replay scope conflicts with web_access_used=false"


def _artifact(a: Artifact, label: str) -> Iterator[str]:
    yield from _texts(a, ("name", "artifact_hash"), f"{label}.")
    if not a.per_unit or len(a.per_unit) != len(a.unit_ids):
        yield f"{label} private-unit ids/scores are empty or misaligned"
    elif not all(map(is_identifier, a.unit_ids)) or repeated(a.unit_ids):
        yield f"{label} private-unit ids are missing or duplicated"
    if not a.per_unit or not all(map(is_number, a.per_unit)):
        yield f"{label} scores must be finite JSON numbers"
    elif not all(map(is_score, a.per_unit)):
        yield f"{label} normalized scores must be in [0,1]"


def target_errors(i: Integrity, g1: Gate1) -> Iterator[str]:
    """Whether both artifacts and their results are those the envelope froze."""
    if g1.astar.artifact_hash != i.astar_hash:
        yield "A* hash does not match frozen integrity envelope"
    if g1.baseline.artifact_hash != i.baseline_hash:
        yield "baseline hash does not match frozen integrity envelope"
    if g1.astar.unit_ids != g1.baseline.unit_ids:
        yield "baseline and A* private-unit manifests differ"
    try:
        recomputed = (
            (i.private_unit_manifest_hash, digests.units(g1.astar.unit_ids), "private-unit manifest"),
            (i.astar_results_hash, digests.artifact_result(g1.astar), "A* verifier-result"),
            (i.baseline_results_hash, digests.artifact_result(g1.baseline), "baseline verifier-result"),
            (
                i.private_results_manifest_hash,
                digests.results(g1, i.verifier_hash),
                "private-results manifest",
            ),
        )
    except (TypeError, ValueError, OverflowError):
        yield "target verifier-result hashes could not be recomputed"
        return
    for recorded, fresh, what in recomputed:
        if recorded != fresh:
            yield f"{what} hash mismatch"


def _adequacy(a: Adequacy, label: str) -> Iterator[str]:
    yield from _flags(a, _ADEQUACY_FLAGS, f"{label}.")
    hits, trials = a.positive_control_successes, a.positive_control_trials
    if not (is_integer(hits, least=0) and is_integer(trials, least=1) and hits <= trials):
        yield f"{label} positive-control h/n are malformed"
    yield from _texts(a, ("calibration_id",), f"{label}.")
    if not is_explicit(a.checks_manifest_hash):
        yield f"{label}.checks_manifest_hash missing"
    else:
        what = f"{label}.checks_manifest_hash"
        yield from _bound(a.checks_manifest_hash, lambda: digests.adequacy_checks(a), what)


def control_errors(c: Control, label: str) -> Iterator[str]:
    """Defects of one challenger's record by itself."""
    yield from _flags(c, ("independence_ok", "infrastructure_outcome_independent"), f"{label}.")
    for name in ("attempt_id", "stratum"):
        if not is_identifier(getattr(c, name)):
            yield f"{label}.{name} missing or non-canonical"
    yield from _texts(c, ("scope_contract_hash",), f"{label}.")
    yield from _identifiers(c, ("prestart_contract_receipt_hash",), f"{label}.")
    yield from _texts(c, ("challenge_distribution_hash",), f"{label}.")
    yield from _identifiers(c, ("independent_draw_receipt_hash",), f"{label}.")
    if c.independence_ok is True:
        yield from _identifiers(c, ("independent_unit_id",), f"{label}.")
    yield from _outcome(c, label)
    if not all(map(is_identifier, c.unit_ids)):
        yield f"{label}.unit_ids must be canonical whitespace-free string ids"
    if c.per_unit is not None and not all(map(is_number, c.per_unit)):
        yield f"{label}.per_unit must contain finite JSON numbers"
    elif c.per_unit is not None and not all(map(is_score, c.per_unit)):
        yield f"{label}.per_unit normalized scores must be in [0,1]"


def _identifiers(record: Any, names: Iterable[str], label: str) -> Iterator[str]:
    for name in names:
        if not is_identifier(getattr(record, name)):
            yield f"{label}{name} missing"


def _outcome(record: Control | Branch, label: str) -> Iterator[str]:
    """Whether what is recorded fits the way the episode ended."""
    scored = record.per_unit is not None or bool(record.unit_ids) or is_explicit(record.artifact_hash)
    scored = scored or record.validity == Validity.VALID or getattr(record, "utility", None) is not None
    judged = scored or record.validity != Validity.UNRESOLVED  # a failed model may leave an invalid artifact
    flagged = bool(record.infrastructure_outcome_independent)
    if record.outcome == Outcome.ARTIFACT:
        yield from _texts_for_artifact(record, label)
    elif record.outcome == Outcome.UNRESOLVED:
        if judged or flagged:
            yield f"{label} unresolved outcome contains contradictory data"
    else:
        what = _FAILURES[record.outcome]
        if judged if record.outcome == Outcome.INFRASTRUCTURE else scored:
            yield f"{label} {what} conflicts with artifact data"
        if flagged and record.outcome != Outcome.INFRASTRUCTURE:
            yield f"{label} {what} has an infrastructure-only flag"


def _texts_for_artifact(record: Control | Branch, label: str) -> Iterator[str]:
    if not is_explicit(record.artifact_hash):
        yield f"{label}.artifact_hash missing for artifact outcome"


def _control_ledger(r: Registration, i: Integrity, g2: Gate2) -> Iterator[str]:
    if repeated(c.attempt_id for c in g2.controls):
        yield "control attempt ids are duplicated"
    if repeated(c.prestart_contract_receipt_hash for c in g2.controls):
        yield "control prestart contract receipts are duplicated"
    yield from _draws(g2.controls)
    matched = any(c.scope_contract_hash == r.gate2_control_contract_hash for c in g2.controls)
    if g2.adequacy.matched_model_present is False and matched:
        yield "gate2 adequacy contradicts candidate-level matched contract receipts"
    if isinstance(r.m_max, int) and len(g2.controls) > r.m_max:
        yield f"main candidate slots {len(g2.controls)} exceed registered M_max={r.m_max}"
    recorded = i.gate2_recovery_ledger_manifest_hash
    what = "Gate-2 recovery-ledger manifest hash"
    gone = "recovery-ledger manifest hash"
    yield from _bound(recorded, lambda: digests.gate2_ledger(g2.controls), what, gone)


def _witness_condition(r: Registration, i: Integrity, g1: Gate1, g2: Gate2) -> Iterator[str]:
    """What must hold of the whole audit before a single hit is evidence by itself."""
    yield from _attested(i, WITNESS_ATTESTATIONS)
    yield from _flags(i, ("web_access_used",), "")
    yield from _texts(i, (n for n in CORE_DIGESTS if n != "recovery_ledger_manifest_hash"), "")
    yield from _slot(r, i)
    yield from _web(i)
    yield from _artifact(g1.astar, "A*")
    yield from _artifact(g1.baseline, "baseline")
    yield from target_errors(i, g1)
    if g2.adequacy.matched_model_present is not True:
        yield "no matched model"
    if not is_integer(r.m_max, least=len(g2.controls)):
        yield "more controls than registered"
    if not same_digest(i.gate2_recovery_ledger_manifest_hash, lambda: digests.gate2_ledger(g2.controls)):
        yield "Gate-2 recovery-ledger manifest hash mismatch"


def admitted_controls(r: Registration, i: Integrity, g1: Gate1, g2: Gate2) -> tuple[Control, ...]:
    """Scored challengers that are evidence by themselves, whatever is wrong with the others."""
    if _collect(_witness_condition(r, i, g1, g2), "witness"):
        return ()
    ids = ("attempt_id", "prestart_contract_receipt_hash", "independent_draw_receipt_hash")
    counts = Counter((name, getattr(c, name)) for c in g2.controls for name in ids)
    return tuple(
        c
        for c in g2.controls
        if all(counts[name, getattr(c, name)] == 1 for name in ids) and _admissible(r, g1, c)
    )


def _admissible(r: Registration, g1: Gate1, c: Control) -> bool:
    return (
        not any(control_errors(c, ""))
        and c.outcome == Outcome.ARTIFACT
        and c.validity == Validity.VALID
        and c.per_unit is not None
        and c.stratum == r.recovery_stratum
        and c.scope_contract_hash == r.gate2_control_contract_hash
        and c.challenge_distribution_hash == r.challenge_distribution_hash
        and c.unit_ids == g1.astar.unit_ids
        and len(c.per_unit) == len(g1.astar.per_unit)
    )


def _draws(controls: Sequence[Control]) -> Iterator[str]:
    """One draw of the challenger distribution makes one independent episode, and one only."""
    links = {(c.independent_unit_id, c.independent_draw_receipt_hash) for c in controls if c.independence_ok}
    if repeated(unit for unit, _ in links):
        yield "one independent episode maps to multiple draw receipts"
    if repeated(draw for _, draw in links):
        yield "one draw receipt is reused across independent episodes"


# -- feedback


def _gate3(r: Registration, i: Integrity, g2: Gate2, g3: Gate3) -> Iterator[str]:
    yield from _attested(i, FEEDBACK_ATTESTATIONS)
    yield from _gate3_envelope(r, i, g3)
    adequacy = g2.adequacy if g3.neutral_adequacy is None else g3.neutral_adequacy
    yield from _adequacy(adequacy, "gate3.neutral_adequacy")
    reused = ("calibration_id", "checks_manifest_hash")
    if any(getattr(adequacy, n) != getattr(g2.adequacy, n) for n in reused):
        yield "main/neutral adequacy must reuse the registered calibration or allocate separate alpha"
    for k, pair in enumerate(g3.pairs):
        yield from _feedback_pair(r, i, pair, f"gate3.pairs[{k}]")
    yield from _pair_ledger(r, g3, "feedback", "Gate 3")
    what = "feedback-pairs manifest hash"
    yield from _bound(g3.feedback_pairs_manifest_hash, lambda: digests.feedback_pairs(g3.pairs), what)
    yield from _sham(r, i, g3.sham)
    slots = len(g2.controls) + 2 * len(g3.pairs)
    if isinstance(r.m_max, int) and slots > r.m_max:
        yield f"total scored candidate slots {slots} exceed registered M_max={r.m_max}"
    yield from _gate3_digests(i, g2, g3)


def _gate3_envelope(r: Registration, i: Integrity, g3: Gate3) -> Iterator[str]:
    yield from _flags(g3, _GATE3_FLAGS, "gate3.")
    yield from _neutral_audit(g3, "Gate 3 neutral contract audit failed")
    if g3.all_started_pairs_disclosed is not True:
        yield "Gate 3 started-pair ledger is not complete"
    if g3.contract_sealed_before_branches_pass is not True:
        yield "Gate 3 paired contract was not presealed"
    if g3.checkpoint_scope not in ("lineage_empty", "lineage_prefix"):
        yield "Gate 3 checkpoint_scope must be lineage_empty|lineage_prefix"
    elif g3.checkpoint_scope != r.gate3_checkpoint_scope:
        yield "Gate 3 checkpoint_scope differs from frozen registration"
    yield from _texts(g3, _GATE3_TEXTS, "Gate 3 ")
    if r.gate3_checkpoint_selection_rule_hash != i.selection_rule_hash:
        yield "Gate 3 checkpoint selection rule differs from frozen integrity"
    yield from _preseal(g3, i.gate3_contract_preseal_receipt_hash, "Gate 3", " integrity envelope")
    yield from _sealed(g3, "Gate 3 ", "Gate 3 contract was not sealed before the first branch")
    for name, what in _GATE3_AUDITS.items():
        if getattr(g3, name) is not True:
            yield f"Gate 3 {what} audit failed"
    if not _repeats(_PAIRED_CONTRACT, tuple(_GATE3_AUDITS), r, i, g3):
        yield "Gate 3 paired contract differs from frozen registration"
    yield from _texts(g3, _NEUTRAL_TEXTS, "Gate 3 ")


_GATE3_AUDITS = {
    "paired_contract_audit_pass": "paired contract",
    "truthful_channel_audit_pass": "truthful channel",
    "neutral_channel_audit_pass": "neutral channel",
}


def _neutral_audit(g3: Gate3, failed: str) -> Iterator[str]:
    if g3.neutral_contract_audit_pass is not None:
        yield from _flags(g3, ("neutral_contract_audit_pass",), "gate3.")
        if g3.neutral_contract_audit_pass is not True:
            yield failed


def _preseal(record: Gate3 | Sham, receipt: str, label: str, envelope: str) -> Iterator[str]:
    if not is_explicit(receipt):
        missing = f" missing from{envelope}" if envelope != " integrity" else " missing"
        yield f"{label} frozen preseal receipt{missing}"
    elif record.contract_preseal_receipt_hash != receipt:
        yield f"{label} preseal receipt differs from{envelope}"


def _sealed(record: Gate3 | Sham, label: str, late: str) -> Iterator[str]:
    """Contracts are sealed before the first branch starts, by the event ledger's own count."""
    sealed, first = record.contract_sealed_event_index, record.first_branch_started_event_index
    for name in ("contract_sealed_event_index", "first_branch_started_event_index"):
        if not is_integer(getattr(record, name), least=0):
            yield f"{label}{name} must be a non-negative integer"
    integers = all(isinstance(n, int) and not isinstance(n, bool) for n in (sealed, first))
    if integers and sealed >= first:
        yield late


def _repeats(
    contract: dict[str, tuple[str, str]], audits: Sequence[str], r: Registration, i: Integrity, g3: Gate3
) -> bool:
    """Whether the recorded contract is the one fixed beforehand, audited, and sealed in time."""
    sources: dict[str, Any] = {"registration": r, "integrity": i}
    sealed, first = g3.contract_sealed_event_index, g3.first_branch_started_event_index
    return (
        all(getattr(g3, n) == getattr(sources[where], field) for n, (where, field) in contract.items())
        and r.gate3_checkpoint_selection_rule_hash == i.selection_rule_hash
        and all(getattr(g3, name) is True for name in audits)
        and g3.contract_sealed_before_branches_pass is True
        and all(isinstance(n, int) and not isinstance(n, bool) for n in (sealed, first))
        and sealed < first
    )


def _pair(p: Pair, label: str, distribution: str) -> Iterator[str]:
    for name in ("pair_id", "block_id"):
        if not is_identifier(getattr(p, name)):
            yield f"{label}.{name} missing or non-canonical"
    yield from _texts(p, ("randomization_distribution_hash",), f"{label}.")
    yield from _identifiers(p, ("randomization_draw_receipt_hash",), f"{label}.")
    yield from _flags(p, ("assignment_frozen", "independence_ok"), f"{label}.")
    if p.replacement_of != "" and not is_identifier(p.replacement_of):
        yield f"{label}.replacement_of is malformed"
    seen = p.randomization_distribution_hash
    if is_explicit(seen) and seen != distribution:
        yield f"{label}.randomization_distribution_hash differs from registration"


def _feedback_pair(r: Registration, i: Integrity, p: FeedbackPair, label: str) -> Iterator[str]:
    yield from _pair(p, label, r.gate3_pair_randomization_distribution_hash)
    if p.assignment_frozen is not True:
        yield f"{label}.assignment_frozen must be true"
    if p.independence_ok is not True:
        yield f"{label}.independence_ok must be true for effect inference"
    contracts = {"truthful": r.gate3_truthful_arm_contract_hash, "neutral": r.gate3_neutral_arm_contract_hash}
    for arm, contract in contracts.items():
        yield from _branch(getattr(p, arm), f"{label}.{arm}", contract, i.private_unit_manifest_hash)
    if r.binary and not (p.truthful.utility is None and p.neutral.utility is None):
        yield f"{label} binary utilities must be derived by the canonical P wrapper"


def _branch(b: Branch, label: str, contract: str, units: str | None = None) -> Iterator[str]:
    """Defects of one branch's record; `units` is the sealed units' digest, where it is scored on them."""
    yield from _flags(b, ("infrastructure_outcome_independent",), f"{label}.")
    if not is_identifier(b.branch_id):
        yield f"{label}.branch_id missing or non-canonical"
    yield from _texts(b, ("execution_contract_hash",), f"{label}.")
    yield from _identifiers(b, ("prestart_contract_receipt_hash",), f"{label}.")
    yield from _texts(b, ("verifier_result_hash",), f"{label}.")
    if contract and is_explicit(b.execution_contract_hash) and b.execution_contract_hash != contract:
        yield f"{label}.execution_contract_hash differs from registration"
    if not all(map(is_identifier, b.unit_ids)):
        yield f"{label}.unit_ids contains a non-canonical id"
    if b.utility is not None and not is_number(b.utility):
        yield f"{label}.utility must be a finite JSON number or null"
    if b.per_unit is not None and not all(map(is_number, b.per_unit)):
        yield f"{label}.per_unit must contain finite JSON numbers"
    yield from _outcome(b, label)
    if units is not None:
        yield from _target(b, label, units)
    if is_explicit(b.verifier_result_hash):
        what, gone = f"{label}.verifier_result_hash", f"{label} verifier-result hash"
        yield from _bound(b.verifier_result_hash, lambda: digests.branch_result(b), what, gone)


def _target(b: Branch, label: str, manifest: str) -> Iterator[str]:
    """A branch towards the registered outcome is scored on the sealed units, all of them."""
    if b.outcome != Outcome.ARTIFACT:
        return
    if not b.per_unit or not b.unit_ids:
        yield f"{label} lacks private verifier scores"
    elif len(b.per_unit) != len(b.unit_ids):
        yield f"{label} private-unit ids/scores are misaligned"
    elif not all(map(is_identifier, b.unit_ids)) or repeated(b.unit_ids):
        yield f"{label} private-unit ids are missing or duplicated"
    elif all(map(is_number, b.per_unit)):
        if not all(map(is_score, b.per_unit)):
            yield f"{label} normalized private scores must be in [0,1]"
        elif manifest and digests.units(b.unit_ids) != manifest:
            yield f"{label} private-unit manifest mismatch"


def _pair_ledger(r: Registration, record: Gate3 | Sham, kind: str, label: str) -> Iterator[str]:
    """Every started pair is listed, once, and replaced only as registered."""
    pairs: Sequence[Pair] = record.pairs
    found, replaced = ledger_errors(r, pairs, kind)
    yield from found
    if record.no_pair_replacements is not (replaced == 0):
        yield f"{label} no_pair_replacements disagrees with disclosed ledger"
    if not is_integer(record.started_pair_count, least=0) or record.started_pair_count != len(pairs):
        yield f"{label} started_pair_count does not match disclosed pairs"
    arms = digests.FEEDBACK_ARMS if kind == "feedback" else digests.SHAM_ARMS
    branches = [getattr(p, arm) for p in pairs for arm in arms.values()]
    if repeated(p.pair_id for p in pairs):
        yield f"{kind} pair ids are duplicated"
    if repeated(p.block_id for p in pairs):
        yield f"{kind} block ids are duplicated; clustered estimator unsupported"
    if repeated(b.branch_id for b in branches):
        yield f"{kind} branch ids are duplicated"
    if repeated(b.prestart_contract_receipt_hash for b in branches):
        yield f"{kind} branch prestart receipts are duplicated"
    if repeated(p.randomization_draw_receipt_hash for p in pairs):
        yield f"{kind} randomization draw receipts are duplicated"


def _sham(r: Registration, i: Integrity, s: Sham) -> Iterator[str]:
    yield from _flags(s, _SHAM_FLAGS, "gate3.sham.")
    if s.all_started_pairs_disclosed is not True:
        yield "sham started-pair ledger is not complete"
    if s.contract_sealed_before_branches_pass is not True:
        yield "sham contract was not presealed"
    yield from _texts(s, _SHAM_TEXTS, "gate3.sham.")
    for what, (seen, registered) in _SHAM_CONTRACTS.items():
        if getattr(s, seen) != getattr(r, registered):
            yield f"sham {what} differs from registration"
    yield from _preseal(s, i.sham_contract_preseal_receipt_hash, "sham", " integrity envelope")
    yield from _sealed(s, "gate3.sham.", "sham contract was not sealed before the first branch")
    contracts = {
        "reference_null": r.sham_reference_arm_contract_hash,
        "proposed_sham": r.sham_proposed_arm_contract_hash,
    }
    for k, p in enumerate(s.pairs):
        label = f"gate3.sham.pairs[{k}]"
        yield from _pair(p, label, r.sham_randomization_distribution_hash)
        for name in ("assignment_frozen", "independence_ok"):
            if getattr(p, name) is not True:
                yield f"{label}.{name} must be true"
        for arm, contract in contracts.items():
            yield from _branch(getattr(p, arm), f"{label}.{arm}", contract)
    yield from _pair_ledger(r, s, "sham", "sham")
    what = "sham confirmatory manifest hash"
    yield from _bound(s.confirmatory_manifest_hash, lambda: digests.sham_pairs(s.pairs), what)


def _gate3_digests(i: Integrity, g2: Gate2, g3: Gate3) -> Iterator[str]:
    try:
        scope = digests.neutral_scope(g3, i.selection_rule_hash)
        neutral = digests.neutral_ledger(g3.pairs)
        ledger = digests.recovery_ledger(g2.controls, g3)
    except (TypeError, ValueError, OverflowError):
        yield "Gate-3 scope/global-ledger hash could not be recomputed"
        return
    if g3.neutral_scope_audit_manifest_hash != scope:
        yield "Gate-3 neutral-scope manifest hash mismatch"
    if i.gate3_neutral_scope_manifest_hash != scope:
        yield "Gate-3 neutral scope is not bound by integrity"
    if i.gate3_neutral_recovery_ledger_manifest_hash != neutral:
        yield "Gate-3 neutral recovery ledger is not bound by integrity"
    if i.recovery_ledger_manifest_hash != ledger:
        yield "global recovery-ledger manifest hash mismatch"


# -- the neutral arm by itself: its hits count even where the feedback gate is broken


def _neutral_witness(r: Registration, i: Integrity, g2: Gate2, g3: Gate3) -> Iterator[str]:
    yield from _neutral_condition(r, i, g2, g3)
    yield from _neutral_pairs(r, i, g3)


def admitted_neutral(r: Registration, i: Integrity, g2: Gate2, g3: Gate3) -> tuple[FeedbackPair, ...]:
    """Pairs whose neutral branch is evidence by itself, whatever is wrong with the others."""
    if _collect(_neutral_condition(r, i, g2, g3), "neutral-hit"):
        return ()
    ids = [_neutral_ids(p) for p in g3.pairs]
    counts = Counter(item for row in ids for item in row.items())
    return tuple(
        p
        for p, row in zip(g3.pairs, ids, strict=True)
        if all(counts[item] == 1 for item in row.items()) and not any(_neutral_pair(r, i, p, ""))
    )


def _neutral_condition(r: Registration, i: Integrity, g2: Gate2, g3: Gate3) -> Iterator[str]:
    yield from _flags(g3, ("neutral_channel_audit_pass", "contract_sealed_before_branches_pass"), "gate3.")
    yield from _neutral_audit(g3, "neutral witness neutral-contract audit failed")
    if g3.neutral_channel_audit_pass is not True:
        yield "neutral witness channel audit failed"
    if g3.contract_sealed_before_branches_pass is not True:
        yield "neutral witness contract was not presealed"
    if g3.checkpoint_scope not in ("lineage_empty", "lineage_prefix"):
        yield "neutral witness checkpoint_scope is invalid"
    elif g3.checkpoint_scope != r.gate3_checkpoint_scope:
        yield "neutral witness checkpoint_scope differs from registration"
    yield from _texts(g3, _WITNESS_TEXTS, "neutral witness ")
    if r.gate3_checkpoint_selection_rule_hash != i.selection_rule_hash:
        yield "neutral witness selection rule differs from registration"
    yield from _preseal(g3, i.gate3_contract_preseal_receipt_hash, "neutral witness", " integrity")
    yield from _sealed(g3, "neutral witness ", "neutral witness contract was not sealed before branches")
    audit = (
        "paired_contract_audit_pass"
        if g3.neutral_contract_audit_pass is None
        else "neutral_contract_audit_pass"
    )
    if not _repeats(_NEUTRAL_CONTRACT, (audit, "neutral_channel_audit_pass"), r, i, g3):
        yield "neutral witness contract differs from frozen registration"
    yield from _neutral_digests(r, i, g2, g3)


def _neutral_digests(r: Registration, i: Integrity, g2: Gate2, g3: Gate3) -> Iterator[str]:
    scope = digests.neutral_scope(g3, i.selection_rule_hash)
    if g3.neutral_scope_audit_manifest_hash != scope:
        yield "neutral witness scope manifest hash mismatch"
    if i.gate3_neutral_scope_manifest_hash != scope:
        yield "neutral witness scope is not bound by integrity"
    slots = len(g2.controls) + 2 * len(g3.pairs)
    if not isinstance(r.m_max, int) or isinstance(r.m_max, bool):
        yield "neutral witness M_max is malformed"
    elif slots > r.m_max:
        yield f"neutral witness candidate slots {slots} exceed M_max={r.m_max}"
    same = same_digest(
        i.gate3_neutral_recovery_ledger_manifest_hash, lambda: digests.neutral_ledger(g3.pairs)
    )
    if same is None:
        yield "neutral witness ledger hash could not be recomputed"
    elif not same:
        yield "neutral witness ledger is not bound by integrity"


def _neutral_pairs(r: Registration, i: Integrity, g3: Gate3) -> Iterator[str]:
    counts = Counter(item for p in g3.pairs for item in _neutral_ids(p).items())
    for k, p in enumerate(g3.pairs):
        yield from _neutral_pair(r, i, p, f"neutral witness pair[{k}]")
        for what, value in _neutral_ids(p).items():
            if counts[what, value] > 1:
                yield f"neutral witness {what} is duplicated"


def _neutral_pair(r: Registration, i: Integrity, p: FeedbackPair, label: str) -> Iterator[str]:
    yield from _pair(p, label, r.gate3_pair_randomization_distribution_hash)
    if p.assignment_frozen is not True:
        yield f"{label} assignment was not frozen"
    manifest = i.private_unit_manifest_hash
    yield from _branch(p.neutral, f"{label}.neutral", r.gate3_neutral_arm_contract_hash, manifest)


def _neutral_ids(p: FeedbackPair) -> dict[str, Hashable]:
    return {
        "pair id": p.pair_id,
        "block id": p.block_id,
        "draw receipt": p.randomization_draw_receipt_hash,
        "branch id": p.neutral.branch_id,
        "prestart contract receipt": p.neutral.prestart_contract_receipt_hash,
    }


def _neutral_ledger(r: Registration, g3: Gate3) -> Iterator[str]:
    yield from _flags(g3, ("all_started_pairs_disclosed", "no_pair_replacements"), "neutral ledger ")
    if g3.all_started_pairs_disclosed is not True:
        yield "neutral recovery started-pair ledger is not complete"
    if not is_integer(g3.started_pair_count, least=0) or g3.started_pair_count != len(g3.pairs):
        yield "neutral recovery started_pair_count does not match disclosure"
    found, replaced = ledger_errors(r, g3.pairs, "feedback")
    yield from found
    if g3.no_pair_replacements is not (replaced == 0):
        yield "neutral recovery no_pair_replacements disagrees with disclosed ledger"
