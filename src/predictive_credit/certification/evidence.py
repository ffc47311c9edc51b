"""From a run's ledger to the records of a bundle: every attestation that can be recomputed is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from predictive_credit.certification import contracts, episodes
from predictive_credit.certification import registration as rules
from predictive_credit.certification.agents import Agent
from predictive_credit.certification.contracts import Plan
from predictive_credit.certification.episodes import Episode, Result
from predictive_credit.certification.ledger import Event, Ledger, first_arm, marked
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
    Registration,
    Sham,
    ShamPair,
    Validity,
)
from predictive_credit.certification.tasks.task import Channel

Scores = tuple[float, ...] | None
FEEDBACK = ("truthful", "neutral")
NULL = ("reference_null", "proposed_sham")


@dataclass(frozen=True, kw_only=True)
class Played:
    """An ended episode: what was registered of it, how it ended, and its scores on the sealed units."""

    episode: Episode
    result: Result
    scores: Scores


@dataclass(frozen=True, kw_only=True)
class PlayedPair:
    """Two branches of a block, by arm, in the order they ran."""

    label: str
    receipt: str  # the pair's draw
    arms: Mapping[str, Played]
    replacement_of: str = ""  # the pair that infrastructure took, listed right before it


@dataclass(frozen=True, kw_only=True)
class Material:
    """Everything a finished run recorded."""

    plan: Plan
    registration: Registration
    texts: Mapping[str, Any]
    ledger: Ledger
    nonce: bytes
    main: Played
    baseline: tuple[float, ...]
    challengers: tuple[Played, ...]
    positive: tuple[tuple[Played, bool], ...]  # and whether it recovered
    pairs: tuple[PlayedPair, ...] = ()
    null_pairs: tuple[PlayedPair, ...] = ()
    null_hits: Mapping[str, bool] = field(default_factory=dict)
    development: tuple[PlayedPair, ...] = ()  # null pairs on which the fillers were tried beforehand
    pages_hash: str = ""
    web_used: bool = False


def gains(scores: Sequence[float], baseline: Sequence[float], delta_min: float) -> bool:
    """Whether a run found anything: its mean beats the baseline's by the registered smallest gain."""
    gap = np.asarray(scores, dtype=np.float64) - np.asarray(baseline, dtype=np.float64)
    return bool(gap.mean() >= delta_min)


def reaches(scores: Sequence[float], target: Sequence[float], epsilon: float) -> bool:
    """Whether a candidate satisfies P: its mean is at least the artifact's less epsilon."""
    gap = np.asarray(scores, dtype=np.float64) - float(np.mean(np.asarray(target, dtype=np.float64)))
    return bool(gap.mean() >= -epsilon)


def gate1(material: Material) -> Gate1:
    """The chosen artifact and the baseline. A run that left none is recorded as an invalid artifact."""
    task, main = material.main.episode.task, material.main
    units = task.unit_ids
    valid = main.scores is not None
    return Gate1(
        astar=Artifact(
            name="main run's artifact",
            per_unit=main.scores if main.scores is not None else (0.0,) * len(units),
            validity=Validity.VALID if valid else Validity.INVALID,
            artifact_hash=main.result.artifact_hash or marked(None),
            unit_ids=units,
        ),
        baseline=Artifact(
            name="registered baseline",
            per_unit=material.baseline,
            validity=Validity.VALID,
            artifact_hash=marked(task.baseline),
            unit_ids=units,
        ),
    )


def assemble(material: Material) -> tuple[Integrity, Gate1, Gate2, Gate3 | None]:
    """The records of a bundle, but for the digests that follow from them."""
    told = contract_defects(material)
    feedback = _gate3(material) if material.pairs else None
    return _integrity(material, told), gate1(material), _gate2(material, told), feedback


def _gate2(material: Material, told: Sequence[str]) -> Gate2:
    """Every started challenger and the positive controls' count."""
    controls = tuple(_control(material, played) for played in material.challengers)
    everyone = [*material.challengers, *(played for played, _ in material.positive)]
    adequacy = Adequacy(
        matched_model_present=not _strangers(material),
        materials_readable=not told,
        opportunity_floor_met=not told,
        health_audit_pass=all(p.result.outcome != Outcome.UNRESOLVED for p in everyone),
        positive_control_successes=sum(hit for _, hit in material.positive),
        positive_control_trials=len(material.positive),
        calibration_id=f"{material.plan.name}-canary",
    )
    return Gate2(controls=controls, adequacy=adequacy)


def _control(material: Material, played: Played) -> Control:
    r = material.registration
    return Control(
        attempt_id=played.result.label,
        stratum=r.recovery_stratum,
        scope_contract_hash=played.episode.contract,
        prestart_contract_receipt_hash=played.result.receipt,
        challenge_distribution_hash=r.challenge_distribution_hash,
        independent_draw_receipt_hash=f"sha256:{played.result.drawn}",
        independent_unit_id=played.result.label,
        independence_ok=material.plan.isolated,
        **_outcome(played, units=True),
    )


def _outcome(played: Played, *, units: bool) -> dict[str, Any]:
    """The fields that challengers and branches share."""
    if played.result.outcome == Outcome.ARTIFACT:
        scored = {"per_unit": played.scores, "unit_ids": played.episode.task.unit_ids} if units else {}
        return scored | {
            "outcome": Outcome.ARTIFACT,
            "validity": Validity.VALID,
            "artifact_hash": played.result.artifact_hash,
        }
    lost = played.result.outcome == Outcome.INFRASTRUCTURE
    return {"outcome": played.result.outcome, "infrastructure_outcome_independent": lost}


def _gate3(material: Material) -> Gate3:
    """Both kinds of pair, with what was sealed before the first branch."""
    r, defects = material.registration, branch_defects(material)
    truthful = [d for d in defects if "truthful" in d]
    neutral = [d for d in defects if "truthful" not in d]
    sealed = _found(material.ledger, "gate3_contract_sealed")
    first = min((p.result.first_event for pair in material.pairs for p in pair.arms.values()), default=-1)
    complete = sum(not pair.replacement_of for pair in material.pairs) == r.registered_n_feedback_pairs
    return Gate3(
        pairs=tuple(_feedback_pair(material, pair) for pair in material.pairs),
        sham=_sham(material),
        checkpoint_scope=contracts.SCOPE,
        checkpoint_hash=_checkpoint(material),
        window_hash=r.gate3_resource_contract_hash,
        paired_arm_contract_hash=r.gate3_paired_arm_contract_hash,
        truthful_arm_contract_hash=r.gate3_truthful_arm_contract_hash,
        neutral_arm_contract_hash=r.gate3_neutral_arm_contract_hash,
        neutral_recovery_contract_hash=r.gate3_neutral_recovery_contract_hash,
        truthful_feedback_generator_hash=r.truthful_feedback_generator_hash,
        neutral_sham_generator_hash=r.neutral_sham_generator_hash,
        contract_preseal_receipt_hash=sealed.receipt,
        contract_sealed_before_branches_pass=sealed.event_index < first,
        contract_sealed_event_index=sealed.event_index,
        first_branch_started_event_index=first,
        neutral_model_id=r.model_id,
        neutral_interface_hash=r.interface_hash,
        neutral_resource_contract_hash=r.gate3_resource_contract_hash,
        neutral_k_manifest_hash=marked(material.texts["k_manifest_hash"]),
        neutral_e0_manifest_hash=marked(material.texts["e0_manifest_hash"]),
        neutral_web_manifest_hash=material.pages_hash,
        neutral_opportunity_contract_hash=r.gate3_opportunity_contract_hash,
        neutral_challenger_policy_hash=r.gate3_branch_policy_hash,
        paired_contract_audit_pass=not defects,
        truthful_channel_audit_pass=not truthful,
        neutral_channel_audit_pass=not neutral,
        neutral_contract_audit_pass=not neutral,
        design_checks_pass=all(map(_as_drawn, material.pairs)),
        stopping_rule_pass=complete,
        registered_pairs_complete=complete,
        all_started_pairs_disclosed=_started(material.ledger, "branch") == 2 * len(material.pairs),
        no_pair_replacements=not any(pair.replacement_of for pair in material.pairs),
        started_pair_count=len(material.pairs),
    )


def _sham(material: Material) -> Sham:
    r, pairs = material.registration, material.null_pairs
    sealed = _found(material.ledger, "null_contract_sealed")
    first = min((p.result.first_event for pair in pairs for p in pair.arms.values()), default=-1)
    fresh, tried = ([_instance(pair) for pair in some] for some in (pairs, material.development))
    defects = null_defects(material)
    return Sham(
        pairs=tuple(_sham_pair(material, pair) for pair in pairs),
        calibration_id=r.sham_calibration_id,
        model_id=r.model_id,
        interface_hash=r.interface_hash,
        task_family_profile=r.task_family_profile,
        scaffold_hash=r.scaffold_hash,
        feedback_schema_hash=r.feedback_schema_hash,
        operator_hash=r.sham_operator_hash,
        utility_scale_id=r.utility_scale_id,
        paired_arm_contract_hash=r.sham_paired_arm_contract_hash,
        reference_arm_contract_hash=r.sham_reference_arm_contract_hash,
        proposed_arm_contract_hash=r.sham_proposed_arm_contract_hash,
        reference_null_generator_hash=r.reference_null_generator_hash,
        development_manifest_hash=marked(tried),
        contract_preseal_receipt_hash=sealed.receipt,
        contract_sealed_before_branches_pass=sealed.event_index < first,
        contract_sealed_event_index=sealed.event_index,
        first_branch_started_event_index=first,
        operator_frozen_before_confirmatory=sealed.event_index < first,
        development_confirmatory_disjoint=not set(fresh) & set(tried),
        freshness_pass=len(set(fresh)) == len(fresh),
        channel_checks_pass=not defects,
        all_started_pairs_disclosed=_started(material.ledger, "null_branch") == 2 * len(pairs),
        no_pair_replacements=not any(pair.replacement_of for pair in pairs),
        started_pair_count=len(pairs),
    )


def _instance(pair: PlayedPair) -> str:
    """Digest of the sealed instance that both branches of a null pair play."""
    return marked(next(iter(pair.arms.values())).episode.task)


def _feedback_pair(material: Material, pair: PlayedPair) -> FeedbackPair:
    fields = _pair(material, pair, material.registration.gate3_pair_randomization_distribution_hash)
    fields |= {arm: _branch(pair.arms[arm]) for arm in FEEDBACK}
    return FeedbackPair(**fields)


def _sham_pair(material: Material, pair: PlayedPair) -> ShamPair:
    """A null branch reports its utility, since it is judged on its own instance."""
    fields = _pair(material, pair, material.registration.sham_randomization_distribution_hash)
    for arm in NULL:
        played = pair.arms[arm]
        hit = float(material.null_hits.get(played.result.label, False))
        fields[arm] = _branch(played, utility=hit if played.result.artifact is not None else None)
    return ShamPair(**fields)


def _pair(material: Material, pair: PlayedPair, distribution: str) -> dict[str, Any]:
    return {
        "pair_id": pair.label,
        "replacement_of": pair.replacement_of,
        "block_id": f"block-{pair.label}",
        "randomization_distribution_hash": distribution,
        "randomization_draw_receipt_hash": f"sha256:{pair.receipt}",
        "assignment_frozen": True,
        "independence_ok": material.plan.isolated,
    }


def _branch(played: Played, utility: float | None = None) -> Branch:
    null = played.episode.role == "null_branch"
    return Branch(
        branch_id=played.result.label,
        utility=utility,
        execution_contract_hash=played.episode.contract,
        prestart_contract_receipt_hash=played.result.receipt,
        **_outcome(played, units=not null),
    )


def _as_drawn(pair: PlayedPair) -> bool:
    started = sorted(pair.arms, key=lambda arm: pair.arms[arm].result.first_event)
    return tuple(started) == first_arm(pair.receipt, FEEDBACK)


def _found(ledger: Ledger, event_type: str) -> Event:
    event = ledger.find(event_type)
    if event is None:
        raise LookupError(event_type)
    return event


def _checkpoint(material: Material) -> str:
    return str(_found(material.ledger, "checkpoint_chosen").payload["checkpoint_hash"])


def _started(ledger: Ledger, role: str) -> int:
    return sum(e.event_type == "episode_prestarted" and e.payload["role"] == role for e in ledger.events)


def _all_ended(ledger: Ledger) -> bool:
    """Whether every announced episode has its end, and none went on without an announcement."""
    bounds = [e for e in ledger.events if e.event_type in ("episode_prestarted", "episode_ended")]
    ended = {e.payload["episode"] for e in bounds if e.event_type == "episode_ended"}
    return {e.payload["episode"] for e in bounds if e.event_type == "episode_prestarted"} == ended


# -- audits: what the ledger shows, made again


def _defects(material: Material, played: Sequence[Played], agent: Agent) -> list[str]:
    return [d for p in played for d in episodes.defects(p.episode, material.ledger, agent, material.nonce)]


def contract_defects(material: Material) -> list[str]:
    """Where a challenger or positive control was told or answered more than its contract allows."""
    found = _defects(
        material, [*material.challengers, *(p for p, _ in material.positive)], material.plan.agent
    )
    for played in material.challengers:
        label, e = played.result.label, played.episode
        if e.notes or e.start.pending is not None or e.start.history:
            found.append(f"{label}: it was handed a history")
        if e.channel != Channel.WITHHELD:
            found.append(f"{label}: its experiments were answered")
        if e.contract != material.registration.gate2_control_contract_hash:
            found.append(f"{label}: it ran under another contract")
    return found


def _strangers(material: Material) -> list[str]:
    """Challengers of which a turn was taken by another agent than the registered one."""
    registered, model = material.registration.model_id, episodes.model_of(material.ledger)
    return [
        p.result.label
        for p in material.challengers
        for event in material.ledger.of(p.result.label)
        if event.event_type == "action_committed" and not episodes.is_taken_by(event, registered, model)
    ]


def branch_defects(material: Material) -> list[str]:
    """The same for the branches from the checkpoint, which must all start there."""
    played = [p for pair in material.pairs for p in pair.arms.values()]
    found = _defects(material, played, material.plan.agent)
    checkpoint = _checkpoint(material)
    return found + [
        f"{p.result.label}: it did not start at the checkpoint"
        for p in played
        if p.episode.start.digest != checkpoint
    ]


def null_defects(material: Material) -> list[str]:
    """The same for the null branches, those on which the fillers were tried among them."""
    pairs = (*material.development, *material.null_pairs)
    return _defects(material, [p for pair in pairs for p in pair.arms.values()], material.plan.agent)


def is_iterative(material: Material) -> bool:
    """Whether the main run acted again after an experiment of its own was answered with readings."""
    types = [
        event.event_type
        for event in material.ledger.of(material.main.result.label)
        if event.event_type == "action_committed" or event.payload.get("observation", {}).get("readings")
    ]
    answered = "observation_delivered"
    return answered in types and "action_committed" in types[types.index(answered) :]


def _integrity(material: Material, told: Sequence[str]) -> Integrity:
    """The envelope. Digests that follow from the rest are filled in when the bundle is written."""
    plan, r, texts, ledger = material.plan, material.registration, material.texts, material.ledger
    first = material.main.result.first_event
    frozen = _found(ledger, "registration_frozen").event_index < first
    ledger.check()
    evidence = plan.evidence and bool(material.pairs)
    # Sessions that may reach what is sealed, or each other, are not known to be independent draws.
    independent = plan.isolated
    sealed = {
        "gate3_contract_preseal_receipt_hash": _found(ledger, "gate3_contract_sealed").receipt,
        "sham_contract_preseal_receipt_hash": _found(ledger, "null_contract_sealed").receipt,
    }
    named = (
        "verifier_hash", "p_hash", "resource_contract_hash", "selection_rule_hash", "k_manifest_hash",
        "e0_manifest_hash", "challenger_policy_hash", "opportunity_contract_hash",
        "claim_family_manifest_hash",
    )  # fmt: skip
    found = gate1(material)
    assistance, subject = plan.agent.assistance
    return Integrity(
        registration_frozen=frozen,
        claim_frozen=frozen,
        provenance_pass=_all_ended(ledger),
        iterative_lineage_eligible=is_iterative(material),
        lineage_dataflow_audit_pass=not _defects(material, [material.main], plan.agent),
        challenger_contract_pass=not told,
        private_isolation_pass=plan.isolated,
        symmetric_verifier_pass=marked(contracts.evaluator(plan.design)) == marked(texts["verifier_hash"]),
        inference_assumptions_pass=independent,
        feedback_inference_assumptions_pass=evidence and independent,
        sham_inference_assumptions_pass=evidence and independent,
        familywise_budget_audit_pass=not rules.errors(r),
        recovery_ledger_complete=_started(ledger, "challenger") == len(material.challengers),
        astar_hash=found.astar.artifact_hash,
        baseline_hash=found.baseline.artifact_hash,
        lineage_manifest_hash=marked(material.main.result.turns),
        observed_web_manifest_hash=material.pages_hash,
        alpha_ledger_receipt_hash=r.audit_slot_reservation_receipt_hash,
        audit_slot_registry_entry_hash=r.audit_slot_reservation_receipt_hash,
        human_assistance=assistance,
        attribution_subject=subject,
        web_access_used=material.web_used,
        web_replay_scope="observed_request_response_frozen" if material.web_used else "not_used",
        **{name: marked(texts[name]) for name in named},
        **(sealed if evidence else {}),
    )
