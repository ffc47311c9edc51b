"""Gates 1 and 2: is the gain real, and could fresh challengers recover it without the history?

Pure functions of sound evidence: the integrity checks come first. The neutral arm of the feedback
gate is a second set of challengers and is classified by the same code.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from predictive_credit.certification.records import (
    Adequacy,
    Artifact,
    Control,
    Gate1,
    Gate2,
    Outcome,
    Registration,
    Validity,
)
from predictive_credit.certification.registration import is_integer
from predictive_credit.certification.statistics import (
    Interval,
    interval,
    recall_bound,
    recovery_bound,
)


class Tri(StrEnum):
    """A question that evidence may leave open."""

    PASS = "pass"
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Status(StrEnum):
    """What one candidate's record shows."""

    HIT = "confirmed_hit"
    MISS = "confirmed_miss"
    MODEL_FAILURE = "model_failure"
    VIOLATION = "execution_contract_violation"
    INFRASTRUCTURE = "infrastructure_invalid"
    UNRESOLVED = "unresolved"


class Recovered(StrEnum):
    """What a set of challengers shows."""

    YES = "recovered"
    NO = "not_recovered_within_scope"
    INCONCLUSIVE = "inconclusive"


class Open(StrEnum):
    """Why a verdict is inconclusive: broken or missing evidence, or sound evidence but too little."""

    AUDIT = "audit_incomplete"
    STATISTICAL = "statistical_uncertainty"


@dataclass(frozen=True, kw_only=True)
class Utility:
    """Gate 1: the artifact's score, its gain over the baseline, and where the baseline stands."""

    validity: Tri
    score: float
    gain: Interval
    gain_enough: Tri  # fail: confirmed below the registered minimum
    baseline_outside: Tri  # fail: the baseline itself satisfies the recovery predicate
    reason: str


_VALIDITY = {Validity.VALID: Tri.PASS, Validity.INVALID: Tri.FAIL, Validity.UNRESOLVED: Tri.INCONCLUSIVE}


def utility(registration: Registration, gate1: Gate1) -> Utility:
    """Gate 1, from per-unit differences at coverage 1 - alpha_main."""
    method, alpha = registration.ci_method, registration.alpha_main
    gain = interval(differences(gate1.astar, gate1.baseline.per_unit), method=method, alpha=alpha)
    below = interval(differences(gate1.baseline, gate1.astar.per_unit), method=method, alpha=alpha)
    outside = Tri.INCONCLUSIVE
    if below.upper < -registration.epsilon:
        outside = Tri.PASS
    elif below.lower >= -registration.epsilon:
        outside = Tri.FAIL
    enough = Tri.INCONCLUSIVE
    if gain.lower >= registration.delta_min:
        enough = Tri.PASS
    elif gain.upper < registration.delta_min:
        enough = Tri.FAIL
    score = sum(gate1.astar.per_unit) / len(gate1.astar.per_unit)
    return Utility(
        validity=_VALIDITY[gate1.astar.validity],
        score=score,
        gain=gain,
        gain_enough=enough,
        baseline_outside=outside,
        reason=(
            f"x={score:.4f}, effect LCB={gain.lower:.4f} (delta_min={registration.delta_min}), "
            f"baseline_fails_P={outside}"
        ),
    )


def differences(first: Artifact | Control, second: Sequence[float]) -> list[float]:
    """Score of the first minus score of the second, unit by unit."""
    return list(np.asarray(first.per_unit, dtype=np.float64) - np.asarray(second, dtype=np.float64))


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """One candidate, classified; `interval` is that of its score minus the artifact's."""

    control: Control
    status: Status
    reason: str
    interval: Interval | None = None
    independent: bool = False  # whether it counts in n_ind

    @property
    def counts(self) -> bool:
        """Whether it counts in the denominator."""
        return self.status in (Status.HIT, Status.MISS, Status.MODEL_FAILURE)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The conditions under which a set of challengers was registered to run, and its error budget."""

    contract: str
    distribution: str
    alpha: float
    rho: float


def classify(registration: Registration, astar: Artifact, control: Control, scope: Scope) -> Attempt:
    """What one candidate shows, by the first rule that applies."""
    status, reason = _status(registration, astar, control, scope)
    if status is not None:
        return Attempt(control=control, status=status, reason=reason)
    found = interval(
        differences(control, astar.per_unit),
        method=registration.ci_method,
        alpha=registration.alpha_score / registration.m_max,
    )
    line = -registration.epsilon
    status, reason = Status.UNRESOLVED, "score interval crosses recovery line"
    if found.lower >= line:
        status, reason = Status.HIT, "multiplicity-adjusted LCB reaches recovery line"
    elif found.upper < line:
        status, reason = Status.MISS, "multiplicity-adjusted UCB is below recovery line"
    return Attempt(control=control, status=status, reason=reason, interval=found)


def _status(
    registration: Registration, astar: Artifact, c: Control, scope: Scope
) -> tuple[Status | None, str]:
    """The status of a candidate that has no comparable scores; None for one that has."""
    registered = registration.recovery_stratum
    excluded = c.per_unit is None and c.infrastructure_outcome_independent is True
    contradicted = c.per_unit is not None or c.validity == Validity.VALID
    lost, failed = c.outcome == Outcome.INFRASTRUCTURE, c.outcome == Outcome.MODEL_FAILURE
    rules = (
        (
            c.stratum != registered,
            Status.UNRESOLVED,
            f"attempt stratum is outside registered scope {registered!r}",
        ),
        (
            c.scope_contract_hash != scope.contract,
            Status.VIOLATION,
            "attempt violated the frozen model/resource/opportunity contract",
        ),
        (
            c.challenge_distribution_hash != scope.distribution,
            Status.VIOLATION,
            "attempt was not drawn from the frozen challenger episode distribution",
        ),
        (lost and excluded, Status.INFRASTRUCTURE, "outcome-independent infrastructure failure"),
        (
            lost,
            Status.UNRESOLVED,
            "infrastructure exclusion is outcome-dependent or conflicts with an artifact",
        ),
        (failed and contradicted, Status.UNRESOLVED, "model failure conflicts with an artifact"),
        (failed, Status.MODEL_FAILURE, "explicit model failure under the registered contract"),
        (c.outcome == Outcome.VIOLATION, Status.VIOLATION, "explicit execution-contract violation"),
        (c.outcome == Outcome.UNRESOLVED, Status.UNRESOLVED, "raw attempt unresolved"),
        *_artifact_rules(astar, c),
    )
    return next(((status, why) for fires, status, why in rules if fires), (None, ""))


def _artifact_rules(astar: Artifact, c: Control) -> tuple[tuple[bool, Status, str], ...]:
    scores = c.per_unit or ()
    aligned = len(scores) == len(astar.per_unit) and all(map(math.isfinite, scores))
    return (
        (
            c.validity == Validity.INVALID,
            Status.MODEL_FAILURE,
            "artifact violates the registered outcome contract",
        ),
        (c.validity != Validity.VALID, Status.UNRESOLVED, "artifact validity unresolved"),
        (not scores, Status.UNRESOLVED, "valid artifact lacks private verifier scores"),
        (not c.artifact_hash, Status.UNRESOLVED, "artifact hash missing"),
        (c.unit_ids != astar.unit_ids, Status.UNRESOLVED, "private-unit manifest mismatch"),
        (not aligned, Status.UNRESOLVED, "private-unit scores are misaligned or not finite"),
    )


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What a set of challengers shows, with the bound on their chance of recovery."""

    status: Recovered
    reason: str
    open_class: Open | None
    attempts: tuple[Attempt, ...]
    adequacy: Adequacy
    adequacy_reasons: tuple[str, ...]
    recall_lower: float
    bound: float | None
    n_ind: int

    def count(self, status: Status) -> int:
        """How many candidates have this status."""
        return sum(a.status == status for a in self.attempts)

    @property
    def evaluable(self) -> int:
        """The denominator: hits, misses and model failures."""
        return sum(a.counts for a in self.attempts)


def gate2_scope(registration: Registration) -> Scope:
    """The challengers' own scope."""
    return Scope(
        contract=registration.gate2_control_contract_hash,
        distribution=registration.challenge_distribution_hash,
        alpha=registration.alpha_recovery,
        rho=registration.rho,
    )


def recovery(registration: Registration, astar: Artifact, gate2: Gate2, scope: Scope) -> Recovery:
    """Gate 2: one hit recovers, whatever else; otherwise only sound, sufficient evidence denies."""
    attempts = _independent([classify(registration, astar, c, scope) for c in gate2.controls])
    recall, inadequate = _adequacy(registration, gate2.adequacy, attempts)
    counts = Counter(a.status for a in attempts)
    n_ind = sum(a.independent for a in attempts)
    clean = not counts[Status.HIT] and not counts[Status.UNRESOLVED] and not inadequate
    bound = recovery_bound(n_ind, alpha=scope.alpha) if clean else None
    status, reason, open_class = _recovered(registration, scope, attempts, inadequate, n_ind, bound)
    return Recovery(
        status=status,
        reason=reason,
        open_class=open_class,
        attempts=attempts,
        adequacy=gate2.adequacy,
        adequacy_reasons=inadequate,
        recall_lower=recall,
        bound=bound,
        n_ind=n_ind,
    )


def _independent(attempts: Sequence[Attempt]) -> tuple[Attempt, ...]:
    """Mark which candidates count as independent: of one unit's several, the first."""
    seen: set[str] = set()
    marked = []
    for a in attempts:
        unit = a.control.independent_unit_id
        if a.counts and a.control.independence_ok is True and unit:
            if unit in seen:
                a = replace(a, reason=f"{a.reason}; duplicate independent-unit cluster")  # noqa: PLW2901
            else:
                a = replace(a, independent=True)  # noqa: PLW2901
            seen.add(unit)
        marked.append(a)
    return tuple(marked)


def _adequacy(
    r: Registration, adequacy: Adequacy, attempts: Sequence[Attempt]
) -> tuple[float, tuple[str, ...]]:
    """The positive controls' recall bound, and why the set is not fit to deny recovery."""
    hits, trials = adequacy.positive_control_successes, adequacy.positive_control_trials
    recall = recall_bound(hits, trials, alpha=r.alpha_adequacy) if _countable(hits, trials) else 0.0
    reasons = []
    if not adequacy.matched_model_present:
        reasons.append("matched model absent")
    if not adequacy.materials_readable:
        reasons.append("privileged materials not readable/retrievable")
    if not adequacy.opportunity_floor_met:
        reasons.append("opportunity floor not met")
    if not adequacy.health_audit_pass:
        reasons.append("health audit failed")
    if recall < r.positive_control_recall_min:
        least = r.positive_control_recall_min
        reasons.append(f"positive-control recall LCB {recall:.3f} < registered minimum {least:.3f}")
    reasons += _strata(r, attempts)
    reasons += _rates(r, attempts)
    return recall, tuple(reasons)


def _countable(hits: object, trials: object) -> bool:
    return is_integer(hits, least=0) and is_integer(trials, least=1) and hits <= trials


def _strata(r: Registration, attempts: Sequence[Attempt]) -> list[str]:
    strata = {a.control.stratum for a in attempts}
    reasons = []
    if r.recovery_stratum not in strata:
        reasons.append(f"no actual control in registered stratum {r.recovery_stratum!r}")
    if len(strata) > 1:
        reasons.append("heterogeneous strata require a registered mixture/per-stratum bound")
    return reasons


def _rates(r: Registration, attempts: Sequence[Attempt]) -> list[str]:
    counts = Counter(a.status for a in attempts)
    started = len(attempts)
    eligible = started - counts[Status.INFRASTRUCTURE]
    compared = sum(a.interval is not None for a in attempts)

    def share(part: int, whole: int) -> float:
        return part / whole if whole else 0.0

    reasons = []
    valid = share(compared, eligible)
    if valid < r.min_valid_candidate_rate:
        reasons.append(
            f"valid-candidate rate {valid:.3f} < registered minimum {r.min_valid_candidate_rate:.3f}"
        )
    for what, rate, highest in (
        (
            "infrastructure-failure",
            share(counts[Status.INFRASTRUCTURE], started),
            r.max_infrastructure_failure_rate,
        ),
        ("model-failure", share(counts[Status.MODEL_FAILURE], eligible), r.max_model_failure_rate),
        (
            "execution-contract-violation",
            share(counts[Status.VIOLATION], started),
            r.max_execution_contract_violation_rate,
        ),
    ):
        if rate > highest:
            reasons.append(f"{what} rate {rate:.3f} > registered maximum {highest:.3f}")
    return reasons


def _recovered(
    r: Registration,
    scope: Scope,
    attempts: Sequence[Attempt],
    inadequate: Sequence[str],
    n_ind: int,
    bound: float | None,
) -> tuple[Recovered, str, Open | None]:
    hits = sum(a.status == Status.HIT for a in attempts)
    unresolved = [a for a in attempts if a.status == Status.UNRESOLVED]
    if hits:
        return Recovered.YES, f"{hits} admissible adjusted confirmed hit(s)", None
    if inadequate:
        return Recovered.INCONCLUSIVE, "control adequacy failed", Open.AUDIT
    if unresolved:
        compared = all(a.interval is not None for a in unresolved)
        why = Open.STATISTICAL if compared else Open.AUDIT
        return Recovered.INCONCLUSIVE, f"{len(unresolved)} unresolved attempt(s)", why
    if n_ind < r.min_n_ind:
        return Recovered.INCONCLUSIVE, f"n_ind={n_ind} < required {r.min_n_ind}", Open.AUDIT
    if bound is None or bound > scope.rho:
        return Recovered.INCONCLUSIVE, f"p_upper={bound:.4f} > rho={scope.rho}", Open.STATISTICAL
    return Recovered.NO, f"0/{n_ind} hits, p_upper={bound:.4f} <= rho={scope.rho}", None
