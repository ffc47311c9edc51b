"""Gate 3: does truthful feedback raise the chance of the outcome over an equally shaped neutral channel?

Intention to treat: every registered pair is analysed. Only infrastructure loss that no outcome could
have caused removes a pair, and then the whole pair; a failed model or an invalid artifact scores the
worst utility. The neutral channel itself is calibrated on null pairs first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from predictive_credit.certification.gates import (
    Attempt,
    Recovered,
    Recovery,
    Scope,
    Status,
    Tri,
    classify,
    gate2_scope,
    recovery,
)
from predictive_credit.certification.records import (
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
    ShamPair,
    Validity,
)
from predictive_credit.certification.registration import is_explicit, is_number
from predictive_credit.certification.replacements import branches, is_lost, terminal, touches_infrastructure
from predictive_credit.certification.statistics import Interval, interval

UTILITY_TOLERANCE = 1e-12  # between a reported mean score and the one recomputed
NEUTRAL_WITNESS = (
    "at least one separately integrity-validated neutral branch reached P; "
    "feedback-effect/sham errors cannot erase this positive witness"
)
_SHAM_METADATA = {
    "calibration_id": "sham_calibration_id",
    "model_id": "model_id",
    "interface_hash": "interface_hash",
    "task_family_profile": "task_family_profile",
    "scaffold_hash": "scaffold_hash",
    "feedback_schema_hash": "feedback_schema_hash",
    "operator_hash": "sham_operator_hash",
    "utility_scale_id": "utility_scale_id",
    "paired_arm_contract_hash": "sham_paired_arm_contract_hash",
    "reference_arm_contract_hash": "sham_reference_arm_contract_hash",
    "proposed_arm_contract_hash": "sham_proposed_arm_contract_hash",
    "reference_null_generator_hash": "reference_null_generator_hash",
}


class Effect(StrEnum):
    """What the feedback pairs show."""

    SUPPORTED = "supported"
    NOT_SUPPORTED = "not_supported"
    INCONCLUSIVE = "inconclusive"


class Use(StrEnum):
    """What became of a started pair."""

    ANALYZED = "analyzed"
    REPLACED = "replaced_infrastructure"
    EXCLUDED = "infrastructure_excluded"
    UNRESOLVED = "unresolved"


@dataclass(frozen=True, kw_only=True)
class Analyzed:
    """One started pair: both arms' utilities (and classifications, when hits are compared)."""

    pair: Pair
    use: Use
    reason: str
    utilities: tuple[float, float] | None = None
    attempts: tuple[Attempt, Attempt] | None = None

    @property
    def difference(self) -> float | None:
        """Utility of the first arm minus the second's."""
        return None if self.utilities is None else self.utilities[0] - self.utilities[1]


@dataclass(frozen=True, kw_only=True)
class Health:
    """Whether both arms delivered enough to compare: rates over the pairs not lost."""

    reasons: tuple[str, ...]
    valid: tuple[float, float]
    failed: tuple[float, float]
    lost: float


@dataclass(frozen=True, kw_only=True)
class ShamResult:
    """Whether the neutral channel is equivalent to the reference null within the registered band."""

    adequacy: Tri
    reason: str
    pairs: tuple[Analyzed, ...] = ()
    difference: Interval | None = None
    straddles: bool = False  # the whole sample was analysed, and its interval crosses the band


@dataclass(frozen=True, kw_only=True)
class Feedback:
    """Everything the third gate shows."""

    sham: ShamResult
    effect: Effect
    reason: str
    difference: Interval | None
    pairs: tuple[Analyzed, ...]
    health: Health
    neutral: Recovery
    started: int  # pairs, replaced ones too
    open_problems: int  # unresolved pairs, and one more where the registered number was not analysed
    open_statistical: bool  # inconclusive although healthy, complete and with an interval


def neutral_scope(registration: Registration) -> Scope:
    """The scope of the neutral branches, taken as challengers."""
    return Scope(
        contract=registration.gate3_neutral_recovery_contract_hash,
        distribution=registration.gate3_pair_randomization_distribution_hash,
        alpha=registration.alpha_neutral,
        rho=registration.rho_placebo,
    )


def as_control(registration: Registration, pair: Pair, branch: Branch, contract: str) -> Control:
    """A branch as a challenger: its pair's block is the independent unit."""
    return Control(
        attempt_id=branch.branch_id,
        outcome=branch.outcome,
        per_unit=branch.per_unit,
        validity=branch.validity,
        artifact_hash=branch.artifact_hash,
        unit_ids=branch.unit_ids,
        stratum=registration.recovery_stratum,
        scope_contract_hash=contract,
        prestart_contract_receipt_hash=branch.prestart_contract_receipt_hash,
        challenge_distribution_hash=pair.randomization_distribution_hash,
        independent_draw_receipt_hash=pair.randomization_draw_receipt_hash,
        independent_unit_id=pair.block_id,
        independence_ok=pair.independence_ok,
        infrastructure_outcome_independent=branch.infrastructure_outcome_independent,
    )


def in_gate2_scope(registration: Registration, integrity: Integrity, gate3: Gate3) -> bool:
    """Whether the neutral branches ran as gate 2's challengers do: a hit then counts there too."""
    scope, challengers = neutral_scope(registration), gate2_scope(registration)
    same = {
        "neutral_resource_contract_hash": integrity.resource_contract_hash,
        "neutral_opportunity_contract_hash": integrity.opportunity_contract_hash,
        "neutral_challenger_policy_hash": integrity.challenger_policy_hash,
    }
    return (
        registration.gate3_checkpoint_scope == gate3.checkpoint_scope == "lineage_empty"
        and (scope.contract, scope.distribution) == (challengers.contract, challengers.distribution)
        and all(getattr(gate3, name) == value for name, value in same.items())
    )


def neutral_recovery(
    registration: Registration, gate1: Gate1, gate2: Gate2, gate3: Gate3, pairs: Sequence[FeedbackPair]
) -> Recovery:
    """The neutral branches of these pairs, taken as challengers."""
    adequacy = gate2.adequacy if gate3.neutral_adequacy is None else gate3.neutral_adequacy
    contract = gate3.neutral_recovery_contract_hash
    controls = tuple(as_control(registration, p, p.neutral, contract) for p in pairs)
    evidence = Gate2(controls=controls, adequacy=adequacy)
    return recovery(registration, gate1.astar, evidence, neutral_scope(registration))


def feedback(registration: Registration, gate1: Gate1, gate2: Gate2, gate3: Gate3) -> Feedback:
    """Gate 3 of sound evidence."""
    sham = sham_adequacy(registration, gate3.sham)
    neutral = neutral_recovery(registration, gate1, gate2, gate3, terminal(gate3.pairs))
    health = arm_health(registration, gate3.pairs)
    designed = (gate3.design_checks_pass, gate3.stopping_rule_pass, gate3.registered_pairs_complete)
    pairs: tuple[Analyzed, ...] = ()
    problems = ["paired design/stopping/completeness audit failed"]
    if all(flag is True for flag in designed):
        pairs = tuple(_feedback_pairs(registration, gate1.astar, gate3))
        problems = _problems(registration, pairs)
    found = None
    if used := [p.difference for p in pairs if p.difference is not None]:
        found = interval(used, method=registration.feedback_ci_method, alpha=registration.alpha_evidence)
    effect, why = _effect(registration, sham, health, problems, found)
    complete = not problems and not health.reasons and found is not None and found.bounded
    return Feedback(
        sham=sham,
        effect=effect,
        reason=NEUTRAL_WITNESS if neutral.status == Recovered.YES else why,
        difference=found,
        pairs=pairs,
        health=health,
        neutral=neutral,
        started=len(gate3.pairs),
        open_problems=len(problems) if pairs else len(gate3.pairs),
        open_statistical=complete,
    )


def _effect(
    r: Registration, sham: ShamResult, health: Health, problems: Sequence[str], found: Interval | None
) -> tuple[Effect, str]:
    if health.reasons:
        return Effect.INCONCLUSIVE, "; ".join([sham.reason, *health.reasons])
    if sham.adequacy != Tri.PASS:
        return Effect.INCONCLUSIVE, f"{sham.reason}; sham_adequacy={sham.adequacy}"
    if problems or found is None:
        return Effect.INCONCLUSIVE, "; ".join([sham.reason, *problems])
    effect, why = Effect.INCONCLUSIVE, "feedback interval crosses the adjusted evidence boundary"
    if found.lower - r.delta_sham >= r.delta_evidence:
        effect, why = Effect.SUPPORTED, "bias-adjusted feedback lower bound reaches delta_evidence"
    elif found.upper + r.delta_sham < r.delta_evidence:
        effect, why = Effect.NOT_SUPPORTED, "bias-adjusted feedback upper bound is below delta_evidence"
    return effect, f"{sham.reason}; {why}"


def _problems(r: Registration, pairs: Sequence[Analyzed]) -> list[str]:
    found = [f"pair {p.pair.pair_id}: {p.reason}" for p in pairs if p.use == Use.UNRESOLVED]
    used = sum(p.use == Use.ANALYZED for p in pairs)
    if used != r.registered_n_feedback_pairs:
        found.append(f"analyzed pairs {used} != registered fixed N={r.registered_n_feedback_pairs}")
    return found


def _feedback_pairs(r: Registration, astar: Artifact, gate3: Gate3) -> list[Analyzed]:
    last = {id(p) for p in terminal(gate3.pairs)}
    return [_feedback_pair(r, astar, gate3, p, id(p) in last) for p in gate3.pairs]


_KEPT = "retained in the started ledger; terminal replacement analyzed"


def _feedback_pair(r: Registration, astar: Artifact, gate3: Gate3, p: FeedbackPair, last: bool) -> Analyzed:
    if not last:
        return Analyzed(pair=p, use=Use.REPLACED, reason=_KEPT)
    if is_lost(p):
        return Analyzed(pair=p, use=Use.EXCLUDED, reason="whole randomized pair excluded")
    if touches_infrastructure(p):
        why = "informative/ambiguous infrastructure attrition"
        return Analyzed(pair=p, use=Use.UNRESOLVED, reason=why)
    if not r.binary:
        return _pair(p, [_mean_utility(r, b) for b in branches(p)], "ITT pair included")
    scope = neutral_scope(r)
    attempts = tuple(
        classify(r, astar, as_control(r, p, b, gate3.neutral_recovery_contract_hash), scope)
        for b in branches(p)
    )
    done = _pair(p, [_hit_utility(r, a) for a in attempts], "ITT pair included")
    return Analyzed(
        pair=p,
        use=done.use,
        reason=done.reason,
        utilities=done.utilities,
        attempts=(attempts[0], attempts[1]),
    )


def _pair(p: Pair, arms: Sequence[tuple[float | None, str]], included: str) -> Analyzed:
    (first, why), (second, other) = arms
    if first is None or second is None:
        return Analyzed(pair=p, use=Use.UNRESOLVED, reason=f"{why}; {other}")
    return Analyzed(pair=p, use=Use.ANALYZED, reason=included, utilities=(first, second))


def _hit_utility(r: Registration, attempt: Attempt) -> tuple[float | None, str]:
    if attempt.status == Status.HIT:
        return 1.0, "P confirmed"
    if attempt.status in (Status.MISS, Status.MODEL_FAILURE):
        return float(r.worst_utility), "P not reached"
    return None, "P classification unresolved"


def _mean_utility(r: Registration, b: Branch) -> tuple[float | None, str]:
    worst, why = _worst(r, b)
    if why:
        return worst, why
    if not b.per_unit:
        return None, "branch artifact validity or utility unresolved"
    mean = sum(b.per_unit) / len(b.per_unit)
    if b.utility is not None and abs(b.utility - mean) > UTILITY_TOLERANCE:
        return None, "branch artifact validity or utility unresolved"
    return mean, "valid branch"


def _worst(r: Registration, b: Branch) -> tuple[float | None, str]:
    """The utility of a branch without a valid artifact, and why; no reason where it has one."""
    if b.outcome == Outcome.MODEL_FAILURE:
        return float(r.worst_utility), "ITT model failure"
    if b.outcome == Outcome.VIOLATION:
        return None, "execution-contract violation is not an ITT model outcome"
    if b.outcome != Outcome.ARTIFACT:
        return None, "branch outcome unresolved"
    if b.validity == Validity.INVALID:
        return float(r.worst_utility), "ITT invalid artifact"
    if b.validity != Validity.VALID:
        return None, "branch artifact validity or utility unresolved"
    return None, ""


def arm_health(r: Registration, pairs: Sequence[FeedbackPair]) -> Health:
    """Rates of valid artifacts and of model failures per arm, and of pairs lost among the started."""
    kept = [branches(p) for p in terminal(pairs) if not touches_infrastructure(p)]
    valid, failed = _arm_rates(kept)
    lost = sum(is_lost(p) for p in pairs) / len(pairs) if pairs else 1.0
    reasons = []
    if min(valid) < r.min_feedback_arm_valid_rate:
        reasons.append("one feedback arm has a valid-artifact rate below the registered floor")
    if max(failed) > r.max_feedback_arm_model_failure_rate:
        reasons.append("one feedback arm has a model-failure rate above the registered cap")
    if lost > r.max_feedback_pair_infrastructure_rate:
        reasons.append("paired infrastructure-failure rate exceeds the registered cap")
    return Health(reasons=tuple(reasons), valid=valid, failed=failed, lost=lost)


def _arm_rates(
    kept: Sequence[tuple[Branch, Branch]],
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Per arm: the share with a valid artifact, and the share that failed."""
    if not kept:
        return (0.0, 0.0), (1.0, 1.0)
    arms = list(zip(*kept, strict=True))
    valid = [sum(_has(b, Validity.VALID) for b in arm) for arm in arms]
    failed = [
        sum(b.outcome == Outcome.MODEL_FAILURE or _has(b, Validity.INVALID) for b in arm) for arm in arms
    ]
    n = len(kept)
    return (valid[0] / n, valid[1] / n), (failed[0] / n, failed[1] / n)


def _has(branch: Branch, validity: Validity) -> bool:
    """Whether a branch left an artifact of this validity."""
    return branch.outcome == Outcome.ARTIFACT and branch.validity == validity


def sham_adequacy(r: Registration, s: Sham) -> ShamResult:
    """Whether the neutral channel was calibrated, by the first rule that applies.

    No significant difference is never enough: the interval must lie inside the registered band.
    """
    metadata = all(getattr(s, seen) == getattr(r, registered) for seen, registered in _SHAM_METADATA.items())
    manifests = (s.development_manifest_hash, s.confirmatory_manifest_hash)
    if not metadata or not all(map(is_explicit, manifests)) or manifests[0] == manifests[1]:
        return ShamResult(adequacy=Tri.INCONCLUSIVE, reason="sham calibration metadata mismatch")
    provenance = (
        s.freshness_pass,
        s.operator_frozen_before_confirmatory,
        s.development_confirmatory_disjoint,
    )
    if not all(flag is True for flag in provenance):
        return ShamResult(adequacy=Tri.INCONCLUSIVE, reason="confirmatory sham provenance incomplete")
    if s.channel_checks_pass is not True:
        return ShamResult(adequacy=Tri.FAIL, reason="sham channel checks failed")
    pairs = tuple(_sham_pairs(r, s.pairs))
    if not _sham_rates_hold(r, s.pairs):
        return ShamResult(
            adequacy=Tri.FAIL, reason="sham valid-submission or attrition-rate checks failed", pairs=pairs
        )
    used = [p.difference for p in pairs if p.difference is not None]
    if any(p.use == Use.UNRESOLVED for p in pairs) or len(used) != r.registered_n_sham_pairs:
        return ShamResult(
            adequacy=Tri.INCONCLUSIVE, reason="sham fixed sample is incomplete or unresolved", pairs=pairs
        )
    return _equivalence(r, pairs, interval(used, method=r.sham_ci_method, alpha=r.alpha_sham))


def _equivalence(r: Registration, pairs: tuple[Analyzed, ...], found: Interval) -> ShamResult:
    band = r.delta_sham
    if -band <= found.lower and found.upper <= band:
        adequacy, reason = Tri.PASS, "confirmatory sham equivalence passed"
    elif found.lower > band or found.upper < -band:
        adequacy, reason = Tri.FAIL, "confirmatory sham difference lies outside equivalence band"
    else:
        adequacy, reason = Tri.INCONCLUSIVE, "sham interval crosses equivalence boundary"
    straddles = adequacy == Tri.INCONCLUSIVE and found.bounded
    return ShamResult(adequacy=adequacy, reason=reason, pairs=pairs, difference=found, straddles=straddles)


def _sham_pairs(r: Registration, pairs: Sequence[ShamPair]) -> list[Analyzed]:
    last = {id(p) for p in terminal(pairs)}
    analyzed = []
    for p in pairs:
        if id(p) not in last:
            analyzed.append(Analyzed(pair=p, use=Use.REPLACED, reason=_KEPT))
        elif is_lost(p):
            analyzed.append(Analyzed(pair=p, use=Use.EXCLUDED, reason="whole sham pair excluded"))
        elif touches_infrastructure(p):
            analyzed.append(
                Analyzed(pair=p, use=Use.UNRESOLVED, reason="ambiguous sham infrastructure attrition")
            )
        else:
            arms = [_sham_utility(r, b) for b in branches(p)]
            analyzed.append(_pair(p, arms, "ITT sham pair included"))
    return analyzed


def _sham_utility(r: Registration, b: Branch) -> tuple[float | None, str]:
    worst, why = _worst(r, b)
    if why:
        return worst, why
    if not is_number(b.utility) or not 0 <= b.utility <= 1:
        return None, "branch artifact validity or utility unresolved"
    if r.binary and b.utility not in (0, 1):
        return None, "binary sham calibration requires 0/1 utility"
    return float(b.utility), "valid branch"


def _sham_rates_hold(r: Registration, pairs: Sequence[ShamPair]) -> bool:
    kept = [branches(p) for p in terminal(pairs) if not touches_infrastructure(p)]
    valid, failed = _arm_rates(kept)
    lost = sum(is_lost(p) for p in pairs) / len(pairs) if pairs else 1.0
    return (
        min(valid) >= r.min_valid_candidate_rate
        and max(failed) <= r.max_model_failure_rate
        and lost <= r.max_infrastructure_failure_rate
    )
