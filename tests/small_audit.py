"""A hand-made audit of one sealed unit: certified at both grades until a test changes one thing."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass, replace
from typing import Any

from predictive_credit.certification import digests
from predictive_credit.certification.decision import Decision, decide
from predictive_credit.certification.integrity import CORE_ATTESTATIONS, CORE_DIGESTS, FEEDBACK_ATTESTATIONS
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

UNITS = ("unit-1",)
BEST, WORST = 1.0, 0.2
EMPTY: dict[str, Any] = {
    "per_unit": None,
    "unit_ids": (),
    "artifact_hash": "",
    "validity": Validity.UNRESOLVED,
}


def mark(text: str) -> str:
    """A receipt: any digest will do."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The records of one audit."""

    registration: Registration
    integrity: Integrity
    gate1: Gate1
    gate2: Gate2
    gate3: Gate3 | None

    def parts(self) -> tuple[Registration, Integrity, Gate1, Gate2, Gate3 | None]:
        return self.registration, self.integrity, self.gate1, self.gate2, self.gate3

    def decide(self) -> Decision:
        return decide(*self.parts())

    def registered(self, **changes: Any) -> Audit:
        return replace(self, registration=replace(self.registration, **changes))

    def attested(self, **changes: Any) -> Audit:
        return replace(self, integrity=replace(self.integrity, **changes))

    def astar(self, **changes: Any) -> Audit:
        return replace(self, gate1=replace(self.gate1, astar=replace(self.gate1.astar, **changes))).filled()

    def baseline(self, **changes: Any) -> Audit:
        gate1 = replace(self.gate1, baseline=replace(self.gate1.baseline, **changes))
        return replace(self, gate1=gate1).filled()

    def control(self, k: int, **changes: Any) -> Audit:
        controls = list(self.gate2.controls)
        controls[k] = replace(controls[k], **changes)
        return replace(self, gate2=replace(self.gate2, controls=tuple(controls))).filled()

    def adequacy(self, **changes: Any) -> Audit:
        adequacy = replace(self.gate2.adequacy, **changes)
        return replace(self, gate2=replace(self.gate2, adequacy=adequacy)).filled()

    def feedback(self, **changes: Any) -> Audit:
        assert self.gate3 is not None
        return replace(self, gate3=replace(self.gate3, **changes)).filled()

    def sham(self, **changes: Any) -> Audit:
        assert self.gate3 is not None
        return self.feedback(sham=replace(self.gate3.sham, **changes))

    def branches(self, arm: str, rows: range, **changes: Any) -> Audit:
        """Change one arm of some feedback or null pairs."""
        assert self.gate3 is not None
        null = arm in digests.SHAM_ARMS.values()
        pairs: list[Any] = list(self.gate3.sham.pairs if null else self.gate3.pairs)
        for k in rows:
            pairs[k] = replace(pairs[k], **{arm: replace(getattr(pairs[k], arm), **changes)})
        return self.sham(pairs=tuple(pairs)) if null else self.feedback(pairs=tuple(pairs))

    def filled(self) -> Audit:
        """The same records with every digest that follows from them."""
        i, g1, g2, g3 = digests.fill(self.integrity, self.gate1, self.gate2, self.gate3)
        return replace(self, integrity=i, gate1=g1, gate2=g2, gate3=g3)


def core_audit(controls: int = 80) -> Audit:
    """A certified Core audit."""
    registration = Registration(
        claim_id="claim-1",
        audit_family_id="family-1",
        model_id="model",
        interface_hash=mark("interface"),
        task_family_profile="task",
        inference_scope="exhaustive_finite_set",
        ci_method="finite_set_exact",
        delta_min=0.5,
        kappa=0.1,
        m_max=200,
        min_n_ind=77,
        gate2_control_contract_hash=mark("challenger contract"),
        challenge_distribution_hash=mark("challenger distribution"),
        audit_slot_id="slot-1",
        audit_slot_reservation_receipt_hash=mark("slot"),
    )
    flags = dict.fromkeys(CORE_ATTESTATIONS, True)
    texts = {name: mark(name) for name in CORE_DIGESTS} | {
        "astar_hash": mark("best"),
        "baseline_hash": mark("baseline"),
        "alpha_ledger_receipt_hash": mark("slot"),
    }
    integrity = Integrity(
        **flags,  # type: ignore[arg-type]  # flags and texts have their own names
        **texts,  # type: ignore[arg-type]
        human_assistance="none",
        attribution_subject="autonomous_agent",
        web_replay_scope="not_used",
    )
    gate1 = Gate1(astar=artifact("best", BEST), baseline=artifact("baseline", 0.0))
    gate2 = Gate2(
        controls=tuple(control(registration, k) for k in range(controls)),
        adequacy=Adequacy(
            matched_model_present=True,
            materials_readable=True,
            opportunity_floor_met=True,
            health_audit_pass=True,
            positive_control_successes=45,
            positive_control_trials=45,
            calibration_id="calibration-1",
        ),
    )
    return Audit(
        registration=registration, integrity=integrity, gate1=gate1, gate2=gate2, gate3=None
    ).filled()


def artifact(name: str, score: float) -> Artifact:
    return Artifact(
        name=name, per_unit=(score,), validity=Validity.VALID, artifact_hash=mark(name), unit_ids=UNITS
    )


def control(registration: Registration, k: int, score: float = WORST) -> Control:
    return Control(
        attempt_id=f"attempt-{k}",
        outcome=Outcome.ARTIFACT,
        per_unit=(score,),
        validity=Validity.VALID,
        artifact_hash=mark(f"artifact {k}"),
        unit_ids=UNITS,
        stratum=registration.recovery_stratum,
        scope_contract_hash=registration.gate2_control_contract_hash,
        prestart_contract_receipt_hash=mark(f"start {k}"),
        challenge_distribution_hash=registration.challenge_distribution_hash,
        independent_draw_receipt_hash=mark(f"draw {k}"),
        independent_unit_id=f"unit-{k}",
        independence_ok=True,
    )


def branch(name: str, contract: str, **outcome: Any) -> Branch:
    return Branch(
        branch_id=name,
        outcome=Outcome.ARTIFACT,
        validity=Validity.VALID,
        artifact_hash=mark(name),
        execution_contract_hash=contract,
        prestart_contract_receipt_hash=mark(f"start {name}"),
        **outcome,
    )


def full_audit(pairs: int = 30, null_pairs: int = 60) -> Audit:
    """A certified audit with the feedback gate, as in the published ones."""
    core = core_audit(96)
    names = [f.name for f in dataclasses.fields(Registration)]
    contracts = {n: mark(n) for n in names if n.endswith("_hash") and getattr(core.registration, n) == ""} | {
        "neutral_sham_generator_hash": mark("neutral"),
        "sham_operator_hash": mark("neutral"),
        "gate3_checkpoint_selection_rule_hash": core.integrity.selection_rule_hash,
    }
    audit = core.registered(
        **contracts,
        grade_requested="evidence",
        feedback_estimand="binary",
        feedback_utility_mapping="canonical_p_wrapper_v1",
        feedback_ci_method="paired_binary_exact",
        sham_ci_method="paired_binary_exact",
        utility_scale_id="scale",
        sham_calibration_id="null-1",
        alpha_recovery=0.01,
        alpha_evidence=0.01,
        alpha_sham=0.01,
        delta_evidence=0.34,
        delta_sham=0.17,
        min_n_ind=90,
        registered_n_feedback_pairs=pairs,
        registered_n_sham_pairs=null_pairs,
    ).attested(
        **dict.fromkeys(FEEDBACK_ATTESTATIONS, True),
        gate3_contract_preseal_receipt_hash=mark("seal"),
        sham_contract_preseal_receipt_hash=mark("sham seal"),
    )
    return replace(audit, gate3=_gate3(audit.registration, audit.integrity)).filled()


def _gate3(r: Registration, i: Integrity) -> Gate3:
    sealed = {"contract_sealed_before_branches_pass": True, "all_started_pairs_disclosed": True}
    order = {"contract_sealed_event_index": 1, "first_branch_started_event_index": 2}
    n, nulls = r.registered_n_feedback_pairs, r.registered_n_sham_pairs
    return Gate3(
        pairs=tuple(_feedback_pair(r, k) for k in range(n)),
        sham=_sham(r, sealed | order | {"no_pair_replacements": True, "started_pair_count": nulls}),
        checkpoint_scope="lineage_prefix",
        checkpoint_hash=mark("checkpoint"),
        window_hash=mark("window"),
        paired_arm_contract_hash=r.gate3_paired_arm_contract_hash,
        truthful_arm_contract_hash=r.gate3_truthful_arm_contract_hash,
        neutral_arm_contract_hash=r.gate3_neutral_arm_contract_hash,
        neutral_recovery_contract_hash=r.gate3_neutral_recovery_contract_hash,
        truthful_feedback_generator_hash=r.truthful_feedback_generator_hash,
        neutral_sham_generator_hash=r.neutral_sham_generator_hash,
        contract_preseal_receipt_hash=mark("seal"),
        neutral_model_id=r.model_id,
        neutral_interface_hash=r.interface_hash,
        neutral_resource_contract_hash=r.gate3_resource_contract_hash,
        neutral_opportunity_contract_hash=r.gate3_opportunity_contract_hash,
        neutral_challenger_policy_hash=r.gate3_branch_policy_hash,
        neutral_k_manifest_hash=i.k_manifest_hash,
        neutral_e0_manifest_hash=i.e0_manifest_hash,
        neutral_web_manifest_hash=i.observed_web_manifest_hash,
        paired_contract_audit_pass=True,
        truthful_channel_audit_pass=True,
        neutral_channel_audit_pass=True,
        neutral_contract_audit_pass=True,
        design_checks_pass=True,
        stopping_rule_pass=True,
        registered_pairs_complete=True,
        no_pair_replacements=True,
        started_pair_count=n,
        **sealed,  # type: ignore[arg-type]  # flags
        **order,  # type: ignore[arg-type]  # counts
    )


def _feedback_pair(r: Registration, k: int) -> FeedbackPair:
    scored = {"unit_ids": UNITS}
    truthful, neutral = r.gate3_truthful_arm_contract_hash, r.gate3_neutral_arm_contract_hash
    return FeedbackPair(
        pair_id=f"pair-{k}",
        block_id=f"block-{k}",
        randomization_distribution_hash=r.gate3_pair_randomization_distribution_hash,
        randomization_draw_receipt_hash=mark(f"pair draw {k}"),
        assignment_frozen=True,
        independence_ok=True,
        truthful=branch(f"truthful-{k}", truthful, per_unit=(BEST,), **scored),
        neutral=branch(f"neutral-{k}", neutral, per_unit=(WORST,), **scored),
    )


def _sham(r: Registration, fixed: dict[str, Any]) -> Sham:
    reference, proposed = r.sham_reference_arm_contract_hash, r.sham_proposed_arm_contract_hash
    pairs = tuple(
        ShamPair(
            pair_id=f"null-{k}",
            block_id=f"null-block-{k}",
            randomization_distribution_hash=r.sham_randomization_distribution_hash,
            randomization_draw_receipt_hash=mark(f"null draw {k}"),
            assignment_frozen=True,
            independence_ok=True,
            reference_null=branch(f"reference-{k}", reference, utility=1.0),
            proposed_sham=branch(f"proposed-{k}", proposed, utility=1.0),
        )
        for k in range(r.registered_n_sham_pairs)
    )
    return Sham(
        pairs=pairs,
        calibration_id=r.sham_calibration_id,
        model_id=r.model_id,
        interface_hash=r.interface_hash,
        task_family_profile=r.task_family_profile,
        scaffold_hash=r.scaffold_hash,
        feedback_schema_hash=r.feedback_schema_hash,
        operator_hash=r.sham_operator_hash,
        utility_scale_id=r.utility_scale_id,
        paired_arm_contract_hash=r.sham_paired_arm_contract_hash,
        reference_arm_contract_hash=reference,
        proposed_arm_contract_hash=proposed,
        reference_null_generator_hash=r.reference_null_generator_hash,
        development_manifest_hash=mark("development"),
        contract_preseal_receipt_hash=mark("sham seal"),
        operator_frozen_before_confirmatory=True,
        development_confirmatory_disjoint=True,
        freshness_pass=True,
        channel_checks_pass=True,
        **fixed,
    )


def lineage_empty(audit: Audit) -> Audit:
    """The same audit branched from scratch, its neutral arm run as gate 2's challengers are."""
    r, i = audit.registration, audit.integrity
    assert audit.gate3 is not None
    pairs = tuple(
        replace(p, randomization_distribution_hash=r.challenge_distribution_hash) for p in audit.gate3.pairs
    )
    return audit.registered(
        gate3_checkpoint_scope="lineage_empty",
        gate3_neutral_recovery_contract_hash=r.gate2_control_contract_hash,
        gate3_pair_randomization_distribution_hash=r.challenge_distribution_hash,
        gate3_resource_contract_hash=i.resource_contract_hash,
        gate3_opportunity_contract_hash=i.opportunity_contract_hash,
        gate3_branch_policy_hash=i.challenger_policy_hash,
    ).feedback(
        pairs=pairs,
        checkpoint_scope="lineage_empty",
        neutral_recovery_contract_hash=r.gate2_control_contract_hash,
        neutral_resource_contract_hash=i.resource_contract_hash,
        neutral_opportunity_contract_hash=i.opportunity_contract_hash,
        neutral_challenger_policy_hash=i.challenger_policy_hash,
    )
