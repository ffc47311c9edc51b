"""The certificate: one JSON value that says what was decided, from what, and by which rules.

Everything in it is recomputed at verification. Its words and layout are those of the bundle format,
so that another implementation of the protocol, replaying the same evidence, writes the same value.
A number that is not finite is written as null.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from predictive_credit import canonical
from predictive_credit.certification import digests
from predictive_credit.certification import registration as rules
from predictive_credit.certification.decision import Decision, Verdict
from predictive_credit.certification.feedback import Analyzed, Feedback, Health, Use
from predictive_credit.certification.gates import Attempt, Recovery, Status
from predictive_credit.certification.records import Gate1, Gate3, Integrity, Registration, Sham
from predictive_credit.certification.statistics import Interval

IMPLEMENTATION = "dcp-evaluation-core/0.4.2"  # the rules implemented; a verifier compares the string

_SCOPE = (
    "audit_family_id", "audit_slot_id", "audit_slot_reservation_receipt_hash", "alpha_total",
    "family_alpha_total", "family_max_audits", "challenge_distribution_hash", "ci_method",
    "delta_evidence", "delta_min", "delta_sham", "feedback_ci_method", "feedback_inference_scope",
    "gate2_control_contract_hash", "gate3_checkpoint_scope", "gate3_neutral_arm_contract_hash",
    "gate3_neutral_recovery_contract_hash", "gate3_pair_randomization_distribution_hash",
    "gate3_paired_arm_contract_hash", "gate3_truthful_arm_contract_hash", "inference_scope",
    "interface_hash", "kappa", "m_max", "max_execution_contract_violation_rate",
    "max_model_failure_rate", "recovery_stratum", "registered_n_feedback_pairs",
    "registered_n_sham_pairs", "rho", "rho_placebo", "score_range_id", "sham_ci_method",
    "sham_inference_scope", "sham_randomization_distribution_hash", "task_family_profile",
)  # fmt: skip
_ATTEMPT = (
    "attempt_id", "artifact_hash", "stratum", "scope_contract_hash",
    "prestart_contract_receipt_hash", "challenge_distribution_hash",
    "independent_draw_receipt_hash", "independent_unit_id",
)  # fmt: skip
_PAIR = (
    "pair_id", "replacement_of", "block_id", "randomization_distribution_hash",
    "randomization_draw_receipt_hash",
)  # fmt: skip
_NEUTRAL_ARM = (
    "checkpoint_scope", "checkpoint_hash", "window_hash", "paired_arm_contract_hash",
    "neutral_arm_contract_hash", "neutral_recovery_contract_hash", "neutral_sham_generator_hash",
    "contract_preseal_receipt_hash", "neutral_scope_audit_manifest_hash", "neutral_challenger_policy_hash",
    "contract_sealed_before_branches_pass", "contract_sealed_event_index",
    "first_branch_started_event_index",
)  # fmt: skip
_BOTH_ARMS = (
    "truthful_arm_contract_hash", "truthful_feedback_generator_hash", "feedback_pairs_manifest_hash",
    "design_checks_pass", "stopping_rule_pass", "registered_pairs_complete",
    "all_started_pairs_disclosed", "no_pair_replacements", "paired_contract_audit_pass",
    "truthful_channel_audit_pass", "neutral_channel_audit_pass",
)  # fmt: skip
_INDICES = ("contract_sealed_event_index", "first_branch_started_event_index")
_NEUTRAL_SCOPE = (
    "model_id", "interface_hash", "resource_contract_hash", "k_manifest_hash", "e0_manifest_hash",
    "web_manifest_hash", "opportunity_contract_hash", "challenger_policy_hash",
)  # fmt: skip
_SHAM_CONTRACT = (
    "paired_arm_contract_hash", "reference_arm_contract_hash", "proposed_arm_contract_hash",
    "reference_null_generator_hash", "contract_preseal_receipt_hash",
)  # fmt: skip
_REGISTERED = (
    "utility_scale_id", "sham_calibration_id", "delta_sham", "alpha_sham", "delta_evidence",
    "alpha_evidence",
)  # fmt: skip


def certificate(
    registration: Registration,
    integrity: Integrity,
    gate1: Gate1,
    gate3: Gate3 | None,
    decision: Decision,
) -> dict[str, Any]:
    """The certificate of a decision, as plain JSON values."""
    sections = {
        "protocol": _protocol(registration, decision),
        "claim": _rows(registration, ("claim_id", "necessity_claim_requested")),
        "scope": _scope(registration),
        "registration": {
            "complete": not decision.registration_errors,
            "errors": decision.registration_errors,
            "frozen": _frozen(registration),
        },
        "integrity": _integrity(integrity, decision),
        "fields": _fields(integrity, gate3, decision),
        "validity": _validity(registration, gate1, decision),
        "no_feedback_recovery": _recovery(registration, decision),
        "verdict": _verdict(registration, decision),
    }
    if gate3 is not None:
        sections["feedback_test"] = _feedback_test(registration, gate3, decision)
    plain: dict[str, Any] = _finite(canonical.plain(sections))
    return plain


def _finite(value: Any) -> Any:
    """The same JSON value, with null for every number that is not finite."""
    if isinstance(value, dict):
        return {k: _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _rows(record: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _protocol(r: Registration, d: Decision) -> dict[str, Any]:
    kind = "complete_kernel_decision_record"
    if d.registration_errors or d.findings.core:
        kind = "inconclusive_audit"
    elif d.findings.gate3 and d.neutral is None:
        kind = "complete_core_with_inconclusive_evidence"
    return {
        "name": "DCP-v2",
        "implementation": IMPLEMENTATION,
        "grade_requested": r.grade_requested,
        "record_type": kind,
        "formal_certificate_issued": False,
        "registry_status": "pending_external_append_only_registry",
        "issuance_note": (
            "The audit slot and alpha were consumed before the confirmatory run. A protocol "
            "registry must verify that receipt and countersign this record."
        ),
    }


def _scope(r: Registration) -> dict[str, Any]:
    scope = _rows(r, _SCOPE) | {
        "model": r.model_id,
        "epsilon": _epsilon(r),
        "score_range": [0.0, 1.0],
        "gate2_profile": "single_matched_stratum_v1",
        "alpha_allocation": rules.active_alphas(r),
    }
    if r.gate3_pair_replacement_policy != "none":
        scope |= _rows(r, rules.REPLACEMENT_FIELDS)
    return scope


def _epsilon(r: Registration) -> float | None:
    try:
        return r.epsilon
    except (TypeError, OverflowError):  # an unsound registration still gets its certificate
        return None


def _frozen(r: Registration) -> dict[str, Any]:
    frozen: dict[str, Any] = canonical.plain(r)
    if tuple(_rows(r, rules.REPLACEMENT_FIELDS).values()) == ("none", 0, 0):
        for name in rules.REPLACEMENT_FIELDS:
            del frozen[name]
    return frozen


def _integrity(i: Integrity, d: Decision) -> dict[str, Any]:
    f = d.findings
    return {
        "complete": not f.core,
        "errors": f.core,
        "gate3_complete": not f.gate3,
        "gate3_errors": f.gate3,
        "neutral_candidate_integrity_complete": not f.neutral_candidates,
        "neutral_candidate_errors": f.neutral_candidates,
        "neutral_ledger_integrity_complete": not f.neutral_ledger,
        "neutral_ledger_errors": f.neutral_ledger,
        "neutral_positive_witness_preserved": d.neutral is not None,
        "evidence": i,
    }


def _fields(i: Integrity, gate3: Gate3 | None, d: Decision) -> dict[str, Any]:
    untested = "not_tested" if gate3 is None else "inconclusive"
    neutral = d.neutral or (d.gate3.neutral if d.gate3 is not None else None)
    return {
        "result_validity": d.gate1.validity if d.gate1 is not None else "inconclusive",
        "no_feedback_recovery": d.gate2.status if d.gate2 is not None else "inconclusive",
        "feedback_effect": d.gate3.effect if d.gate3 is not None else untested,
        "sham_adequacy": d.gate3.sham.adequacy if d.gate3 is not None else untested,
        "neutral_recovery": neutral.status if neutral is not None else untested,
        "initial_evidence_effect": "not_tested",
        "external_recovery": "not_assessed",
        "human_assistance": i.human_assistance,
        "attribution_subject": i.attribution_subject,
        "historical_novelty": "not_assessed",
    }


def _ends(found: Interval | None) -> list[float | None]:
    return [None, None] if found is None else [found.lower, found.upper]


def _validity(r: Registration, gate1: Gate1, d: Decision) -> dict[str, Any]:
    g = d.gate1
    return {
        "status": g.validity if g is not None else "inconclusive",
        "astar_validity": gate1.astar.validity,
        "baseline_validity": gate1.baseline.validity,
        "x": g.score if g is not None else None,
        "effect_mean": g.gain.mean if g is not None else None,
        "effect_ci": _ends(g.gain if g is not None else None),
        "delta_min": r.delta_min,
        "epsilon": _epsilon(r),
        "alpha_main": r.alpha_main,
        "baseline_fails_p": g.baseline_outside if g is not None else "inconclusive",
        "reason": g.reason if g is not None else d.blocked,
    }


def _challengers(found: Recovery | None, alpha: float, blocked: str) -> dict[str, Any]:
    """What gate 2 and the neutral arm both report of a set of challengers."""
    if found is None:
        return {
            "status": "inconclusive",
            "adequacy_pass": False,
            "adequacy_reasons": [blocked],
            "positive_control": _positive_control(None, alpha),
            "n_ind": 0,
            "hits": 0,
            "admissible_hits": 0,
            "unresolved": 0,
            "p_upper": None,
            "attempts": [],
            "reason": blocked,
        }
    hits = found.count(Status.HIT)
    return {
        "status": found.status,
        "adequacy_pass": not found.adequacy_reasons,
        "adequacy_reasons": found.adequacy_reasons,
        "positive_control": _positive_control(found, alpha),
        "n_ind": found.n_ind,
        "hits": hits,
        "admissible_hits": hits,
        "unresolved": found.count(Status.UNRESOLVED),
        "p_upper": found.bound,
        "attempts": [_attempt(a) for a in found.attempts],
        "reason": found.reason,
    }


def _positive_control(found: Recovery | None, alpha: float) -> dict[str, Any]:
    return {
        "successes": found.adequacy.positive_control_successes if found is not None else 0,
        "trials": found.adequacy.positive_control_trials if found is not None else 0,
        "lcb": found.recall_lower if found is not None else None,
        "alpha": alpha,
        "calibration_id": found.adequacy.calibration_id if found is not None else "",
        "manifest_hash": found.adequacy.checks_manifest_hash if found is not None else "",
    }


def _attempt(a: Attempt) -> dict[str, Any]:
    return _rows(a.control, _ATTEMPT) | {
        "verifier_result_hash": digests.control_result(a.control),
        "status": a.status,
        "d_mean": a.interval.mean if a.interval is not None else None,
        "adjusted_ci": _ends(a.interval),
        "counts_in_denominator": a.counts,
        "counts_in_n_ind": a.independent,
        "reason": a.reason,
    }


def _recovery(r: Registration, d: Decision) -> dict[str, Any]:
    found = d.gate2
    attempts: Sequence[Attempt] = found.attempts if found is not None else ()
    margins = [a.interval.mean for a in attempts if a.interval is not None]
    return _challengers(found, r.alpha_adequacy, d.blocked) | {
        "a_i": r.alpha_score / r.m_max if found is not None else None,
        "n_started": len(attempts),
        "n_evaluable": found.evaluable if found is not None else 0,
        "hit_admissibility_pass": found is not None,
        "hit_admissibility_reasons": [] if found is not None else [d.blocked],
        "best_control_margin": max(margins, default=None),
        "rho": r.rho,
        "alpha_score": r.alpha_score,
        "alpha_recovery": r.alpha_recovery,
        "attempt_breakdown": dict(Counter(str(a.status) for a in attempts)),
    }


def _verdict(r: Registration, d: Decision) -> dict[str, Any]:
    return {
        "core": d.core.verdict,
        "evidence": d.evidence.verdict,
        "core_inconclusive_class": d.core.open_class or "null",
        "evidence_inconclusive_class": d.evidence.open_class or "null",
        "statement": _statement(r, d),
        "reason": f"core: {d.core.reason} | evidence: {d.evidence.reason}",
    }


def _statement(r: Registration, d: Decision) -> str:
    if d.core.verdict == Verdict.REFUTED:
        return "Within the frozen scope, the outcome-attribution claim is refuted."
    if d.core.verdict != Verdict.CERTIFIED:
        return "Within the frozen scope, the claim is inconclusive under the registered budget."
    statement = (
        "Within the certificate's frozen scope, the result passed sealed validation and registered "
        "privileged no-feedback challengers did not recover it within the stated probability/budget "
        f"bound (rho={r.rho})."
    )
    if d.evidence.verdict == Verdict.CERTIFIED:
        statement += (
            " Truthful feedback content showed a certified causal effect over a calibrated neutral sham."
        )
    return statement


def _feedback_test(r: Registration, gate3: Gate3, d: Decision) -> dict[str, Any]:
    sound = d.gate3 is not None
    neutral = sound or d.neutral is not None  # a witness keeps the neutral arm's own record
    test = _quoted(gate3, _NEUTRAL_ARM, neutral) | _quoted(gate3, _BOTH_ARMS, sound)
    test |= _rows(r, _REGISTERED) | {
        "estimand": r.feedback_estimand,
        "utility_mapping": r.feedback_utility_mapping,
        "started_pair_count": gate3.started_pair_count if sound else 0,
        "neutral_scope_contract": _neutral_contract(gate3) if neutral else {},
        "neutral_in_gate2_scope": neutral and d.neutral_in_scope,
        "neutral_recovery": _neutral(r, d),
        "lineage_empty_hit_refutes_core": d.neutral_vetoes,
    }
    if isinstance(gate3.neutral_contract_audit_pass, bool):
        test["neutral_contract_audit_pass"] = gate3.neutral_contract_audit_pass
    return test | _sham(r, gate3.sham, d.gate3) | _effect(d)


def _quoted(record: Any, names: Sequence[str], sound: bool) -> dict[str, Any]:
    """What the record says; of a record that is not sound, each field's empty value."""
    source = record if sound else type(record)
    return {name: getattr(source, name) for name in names}


def _neutral_contract(gate3: Gate3) -> dict[str, Any]:
    return {name: getattr(gate3, f"neutral_{name}") for name in _NEUTRAL_SCOPE}


def _neutral(r: Registration, d: Decision) -> dict[str, Any]:
    if d.gate3 is None:
        neutral = _challengers(d.neutral, r.alpha_adequacy, d.blocked)
        if d.neutral is not None:  # the hit stands; whether the others could deny one was not asked
            blank = _challengers(None, r.alpha_adequacy, d.blocked)
            neutral |= {n: blank[n] for n in ("adequacy_pass", "adequacy_reasons", "positive_control")}
    else:
        neutral = _challengers(d.gate3.neutral, r.alpha_adequacy, d.blocked)
    if d.neutral is not None:
        neutral["reason"] = d.neutral.reason
    return neutral | _rows(r, ("rho_placebo", "alpha_neutral"))


def _sham(r: Registration, sham: Sham, found: Feedback | None) -> dict[str, Any]:
    sound = found is not None
    pairs = found.sham.pairs if found is not None else ()
    difference = found.sham.difference if found is not None else None
    contract = _quoted(sham, (*_SHAM_CONTRACT, *_INDICES), sound)
    return _quoted(sham, ("confirmatory_manifest_hash", "development_manifest_hash"), sound) | {
        "sham_contract": contract | {"proposed_sham_generator_hash": r.sham_operator_hash},
        "sham_adequacy": found.sham.adequacy if found is not None else "inconclusive",
        "sham_delta_null_mean": difference.mean if difference is not None else None,
        "sham_delta_null_ci": _ends(difference),
        "sham_n": sum(p.use == Use.ANALYZED for p in pairs),
        "sham_pair_records": [_sham_record(p) for p in pairs],
        "sham_all_started_pairs_disclosed": sound and sham.all_started_pairs_disclosed,
        "sham_no_pair_replacements": sound and sham.no_pair_replacements,
        "sham_started_pair_count": sham.started_pair_count if sound else 0,
    }


def _sham_record(p: Analyzed) -> dict[str, Any]:
    row = _rows(p.pair, _PAIR) | {"status": p.use, "reason": p.reason}
    for label, arm in digests.SHAM_ARMS.items():
        branch = getattr(p.pair, arm)
        row |= {f"{label}_branch_id": branch.branch_id, f"{label}_result_hash": branch.verifier_result_hash}
    if p.utilities is not None:
        first, second = p.utilities
        row |= {"reference_utility": first, "proposed_utility": second, "difference": p.difference}
    return row


def _effect(d: Decision) -> dict[str, Any]:
    found = d.gate3
    reason = found.reason if found is not None else d.blocked
    difference = found.difference if found is not None else None
    pairs = found.pairs if found is not None else ()
    used = [p.pair.pair_id for p in pairs if p.use == Use.ANALYZED]
    return {
        "feedback_effect": found.effect if found is not None else "inconclusive",
        "effect_mean": difference.mean if difference is not None else None,
        "effect_ci": _ends(difference),
        "n_pairs_started": found.started if found is not None else 0,
        "n_pairs_analyzed": len(used),
        "pair_ids_analyzed": used,
        "pair_records": [_pair_record(p) for p in pairs],
        "pairs_unresolved": found.open_problems if found is not None else 0,
        "pairs_infrastructure_excluded": sum(p.use in (Use.EXCLUDED, Use.REPLACED) for p in pairs),
        "branch_health": _health(found.health if found is not None else None, d.blocked),
        "reason": d.neutral.reason if d.neutral is not None else reason,
    }


def _health(health: Health | None, blocked: str) -> dict[str, Any]:
    if health is None:
        health = Health(reasons=(blocked,), valid=(0.0, 0.0), failed=(1.0, 1.0), lost=1.0)
    return {
        "pass": not health.reasons,
        "reasons": health.reasons,
        "truthful_valid_rate": health.valid[0],
        "neutral_valid_rate": health.valid[1],
        "truthful_model_failure_rate": health.failed[0],
        "neutral_model_failure_rate": health.failed[1],
        "pair_infrastructure_failure_rate": health.lost,
    }


def _pair_record(p: Analyzed) -> dict[str, Any]:
    row = _rows(p.pair, _PAIR) | {"status": p.use, "reason": p.reason}
    for k, arm in enumerate(digests.FEEDBACK_ARMS):
        branch = getattr(p.pair, arm)
        row |= {
            f"{arm}_branch_id": branch.branch_id,
            f"{arm}_artifact_hash": branch.artifact_hash,
            f"{arm}_result_hash": branch.verifier_result_hash,
            f"{arm}_raw_utility": branch.utility,
        }
        if p.attempts is not None:
            row[f"{arm}_p_classification"] = _classification(p.attempts[k])
        if p.utilities is not None:
            row[f"{arm}_analysis_utility"] = p.utilities[k]
    if p.utilities is not None:
        row["difference"] = p.difference
    return row


def _classification(a: Attempt) -> dict[str, Any]:
    found = a.interval
    return {
        "status": a.status,
        "d_mean": found.mean if found is not None else None,
        "d_lcb": found.lower if found is not None else None,
        "d_ucb": found.upper if found is not None else None,
        "reason": a.reason,
    }
