"""What an audit registers before its main run: every contract as text, and the registration that binds them.

The format holds digests; the texts behind them are written beside the bundle, so that a reader can see
what was promised and recompute each digest.
"""

from __future__ import annotations

import math
import platform
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from predictive_credit import canonical
from predictive_credit.certification import tasks
from predictive_credit.certification.agents import CANDIDATE, Agent
from predictive_credit.certification.ledger import marked
from predictive_credit.certification.records import Registration
from predictive_credit.certification.registration import REPLACEMENT_POLICY, SLACK
from predictive_credit.certification.statistics import Method, recovery_bound
from predictive_credit.certification.tasks.task import LARGEST, Budget, Channel, Design, Task
from predictive_credit.certification.web import Limits

RHO = 0.05
STRATUM = "matched"
WEB_STRATUM = "matched-web-privileged"
WEB_NOTES = {
    "main_web": "live, through a gateway that records every byte",
    "gate2_web": "every text the main run was shown, in one packet; other addresses are refused",
    "gate3_web": "the same packet, beside what the checkpoint holds",
}
SCOPE = "lineage_prefix"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is registered of an audit: the task, who acts, how often, and on which basis it is isolated."""

    design: Design
    agent: Agent
    budget: Budget
    isolated: bool
    isolation_basis: str
    sites: tuple[str, ...] = ()
    web: Limits | None = None

    @property
    def evidence(self) -> bool:
        """Whether gate 3 is registered."""
        return self.design.grade == "evidence"

    @property
    def replacements(self) -> tuple[int, int]:
        """Feedback and null pairs that others may replace where infrastructure takes them."""
        share, budget = self.design.replaceable, self.budget
        feedback, null = (math.floor(n * share + SLACK) for n in (budget.feedback_pairs, budget.null_pairs))
        return feedback, null

    @property
    def web_terms(self) -> dict[str, Any] | None:
        """Which pages the main run is told of, and the limits within which it may read."""
        if self.web is None:
            return None
        limits = {f.name: getattr(self.web, f.name) for f in fields(self.web)}
        return {"sites": self.sites, **limits, "hosts": sorted(self.web.hosts)}

    @property
    def name(self) -> str:
        """The family of the claim: task, agent and budget, without blanks."""
        told = canonical.digest([self.agent.identity, self.agent.interface, self.budget, self.web_terms])
        return f"{self.design.name}-{told[:12]}"


def contracts(plan: Plan, task: Task) -> dict[str, Any]:
    """Every contract's text by the name under which its digest is recorded."""
    design = plan.design
    window = {
        "turns": design.turns,
        "experiments": design.experiments,
        "bytes_of_an_action_or_candidate": LARGEST,
        "wall_clock": "a time limit on each session, none on the episode",
        "web_of_the_main_run": plan.web_terms,
    }
    told: dict[str, Any] = {"task": design.profile, "agent": plan.agent.identity, "window": window}
    selection = {
        "artifact": f"the valid {CANDIDATE} in the main run's workspace when it ends",
        "checkpoint": "the main run right after its first experiment is committed, before the answer",
    }
    texts = {
        "interface_hash": plan.agent.interface,
        "gate2_control_contract_hash": told
        | {"role": "challenger", "told": ["K", "E0", "Wobs"], "withheld": ["L"], "answers": Channel.WITHHELD},
        "challenge_distribution_hash": {
            "draw": "HMAC-SHA256 of the run's nonce over the episode's label",
            "draws": ["the order of the task's public lists", "the seed in the packet"],
            "labels": "one a challenger, numbered",
        },
        "p_hash": {
            "predicate": "valid, and mean score over the sealed units at least the artifact's less epsilon",
            "delta_min": design.delta_min,
            "kappa": design.kappa,
        },
        "k_manifest_hash": {"background": task.background(), "agent": plan.agent.interface},
        "e0_manifest_hash": task.first(),
        "verifier_hash": evaluator(design),
        "resource_contract_hash": window,
        "opportunity_contract_hash": window
        | {
            "floor": "every episode may use all of it",
            "positive_control": "recovers if its artifact satisfies P against its source's, and the source's "
            "beat its baseline by delta_min: who was handed nothing recovers nothing",
        },
        "challenger_policy_hash": {
            "policy": "the main run's agent, unchanged",
            "agent": plan.agent.interface,
        },
        "selection_rule_hash": selection,
        "claim_family_manifest_hash": {"claims": [plan.name], "family_max_audits": 1, "alpha_total": 0.05},
    }
    return texts | (_feedback(plan, told, selection) if plan.evidence else {})


def _feedback(plan: Plan, told: dict[str, Any], selection: dict[str, Any]) -> dict[str, Any]:
    neutral: dict[str, Any] = {"channel": Channel.NEUTRAL, "rule": "each character of a value becomes ?"}
    replaced = _replaced(plan)
    arms: dict[str, Any] = {
        "order": "the last bit of the pair's draw receipt",
        "start": "the checkpoint",
        "window": told["window"],
    } | replaced
    reading = {"of": "text", "value": "text of fixed width"}
    drawn: dict[str, Any] = {
        "draw": "HMAC-SHA256 of the run's nonce over the label",
        "labels": "one a pair, numbered",
    }
    null: dict[str, Any] = {
        "task": "a fresh instance of the same task whose first observations tell the answer"
    } | replaced
    return {
        "scaffold_hash": plan.agent.interface,
        "feedback_schema_hash": {"status": "recorded", "readings": [reading]},
        "sham_operator_hash": neutral,
        "neutral_sham_generator_hash": neutral,
        "truthful_feedback_generator_hash": {"channel": Channel.TRUTHFUL, "rule": "values as measured"},
        "reference_null_generator_hash": {"channel": Channel.REFERENCE, "rule": "characters become ~"},
        "utility_scale_id": {"utility": "1 if the branch's artifact satisfies P, else 0"},
        "gate3_paired_arm_contract_hash": told | {"arms": [Channel.TRUTHFUL, Channel.NEUTRAL]} | arms,
        "gate3_truthful_arm_contract_hash": told | {"arm": Channel.TRUTHFUL} | arms,
        "gate3_neutral_arm_contract_hash": told | {"arm": Channel.NEUTRAL} | arms,
        "gate3_neutral_recovery_contract_hash": told | {"arm": Channel.NEUTRAL, "judged": "by P"},
        "gate3_checkpoint_selection_rule_hash": selection,
        "gate3_resource_contract_hash": told["window"],
        "gate3_opportunity_contract_hash": {"floor": "what the checkpoint leaves of the main run's window"},
        "gate3_branch_policy_hash": {"policy": "the main run's agent, unchanged, from the checkpoint"},
        "gate3_pair_randomization_distribution_hash": drawn | arms,
        "sham_randomization_distribution_hash": drawn | null,
        "sham_paired_arm_contract_hash": told | null | {"arms": [Channel.REFERENCE, Channel.NEUTRAL]},
        "sham_reference_arm_contract_hash": told | null | {"arm": Channel.REFERENCE},
        "sham_proposed_arm_contract_hash": told | null | {"arm": Channel.NEUTRAL},
    }  # fmt: skip


def _replaced(plan: Plan) -> dict[str, Any]:
    """When a pair is replaced, and how; nothing where none may be."""
    feedback, null = plan.replacements
    if not feedback and not null:
        return {}
    return {
        "replacement": {
            "policy": REPLACEMENT_POLICY,
            "when": "a branch of the pair was lost before its first action, whatever it would have done",
            "how": "both branches are played; then a pair with draws of its own, right after it",
            "at_most": {"feedback": feedback, "null": null},
        }
    }


def evaluator(design: Design) -> dict[str, Any]:
    """What scores: the bytes of the task's module and of what it rests on, and the libraries it runs on."""
    module = Path(tasks.__file__).parent / f"{tasks.MODULES[design.name]}.py"
    return {
        "module": canonical.digest_file(module),
        "common": canonical.digest_file(module.with_name("task.py")),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
    }


def registration(plan: Plan, texts: Mapping[str, Any], slot_receipt: str) -> Registration:
    """The frozen registration; thresholds are the task's, error probabilities sum to .05 at most."""
    design, budget = plan.design, plan.budget
    hashes: dict[str, Any] = {f.name: marked(texts[f.name]) for f in fields(Registration) if f.name in texts}
    if plan.evidence:
        hashes |= {
            "grade_requested": "evidence",
            "feedback_estimand": "binary",
            "feedback_utility_mapping": "canonical_p_wrapper_v1",
            "feedback_ci_method": Method.PAIRED_BINARY.value,
            "sham_ci_method": Method.PAIRED_BINARY.value,
            "registered_n_feedback_pairs": budget.feedback_pairs,
            "registered_n_sham_pairs": budget.null_pairs,
            "delta_evidence": design.delta_evidence,
            "delta_sham": design.delta_sham,
            "gate3_checkpoint_scope": SCOPE,
            "sham_calibration_id": f"{plan.name}-null",
        } | _policy(plan)
    return Registration(
        claim_id=f"{plan.name}-claim",
        audit_family_id=plan.name,
        audit_slot_id=f"{plan.name}-slot-001",
        audit_slot_reservation_receipt_hash=slot_receipt,
        model_id=plan.agent.identity,
        task_family_profile=design.profile,
        inference_scope="exhaustive_finite_set",
        ci_method=Method.FINITE_SET.value,
        delta_min=design.delta_min,
        kappa=design.kappa,
        rho=RHO,
        m_max=budget.challengers + 2 * (budget.feedback_pairs + plan.replacements[0]),
        min_n_ind=needed(budget.challengers, design.alpha_recovery),
        recovery_stratum=STRATUM if plan.web is None else WEB_STRATUM,
        alpha_recovery=design.alpha_recovery,
        alpha_evidence=design.alpha_evidence,
        alpha_sham=design.alpha_sham,
        notes={
            "isolation_attested": plan.isolated,
            "isolation_basis": plan.isolation_basis,
            "gate2_independence_basis": "one registered draw an episode: presentation order and seed",
            "formal_certificate_issued": False,
            "novelty": "not_assessed",
        }
        | ({} if plan.web is None else WEB_NOTES),
        **hashes,
    )


def _policy(plan: Plan) -> dict[str, Any]:
    feedback, null = plan.replacements
    if not feedback and not null:
        return {}
    return {
        "gate3_pair_replacement_policy": REPLACEMENT_POLICY,
        "max_feedback_pair_replacements": feedback,
        "max_sham_pair_replacements": null,
    }


def needed(challengers: int, alpha: float) -> int:
    """Independent challengers without a hit that bring the bound to rho; all of a budget that cannot."""
    enough = (n for n in range(1, challengers + 1) if recovery_bound(n, alpha=alpha) <= RHO)
    return next(enough, challengers)
