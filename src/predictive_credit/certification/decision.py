"""The two verdicts: Core from gates 1 and 2, Evidence from gate 3 on top; the first rule that fires.

Nothing is judged: both verdicts are recomputed from recorded outcomes, and a defect of the record
makes them inconclusive. One thing survives a defect elsewhere: a hit, since a counterexample stays one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from predictive_credit.certification import integrity as checks
from predictive_credit.certification import registration as rules
from predictive_credit.certification.feedback import (
    NEUTRAL_WITNESS,
    Effect,
    Feedback,
    feedback,
    in_gate2_scope,
    neutral_recovery,
)
from predictive_credit.certification.gates import (
    Open,
    Recovered,
    Recovery,
    Status,
    Tri,
    Utility,
    gate2_scope,
    recovery,
    utility,
)
from predictive_credit.certification.records import (
    Gate1,
    Gate2,
    Gate3,
    Integrity,
    Registration,
    Validity,
)


class Verdict(StrEnum):
    """Of Core or Evidence; only Evidence can be untested."""

    CERTIFIED = "certified"
    REFUTED = "refuted"
    INCONCLUSIVE = "inconclusive"
    NOT_TESTED = "not_tested"


@dataclass(frozen=True, kw_only=True)
class Ruling:
    """A verdict, why, and for an inconclusive one what kind of evidence is wanting."""

    verdict: Verdict
    reason: str
    open_class: Open | None = None


@dataclass(frozen=True, kw_only=True)
class Decision:
    """Both rulings, and everything they were read from; a gate is None where it was not evaluated."""

    core: Ruling
    evidence: Ruling
    registration_errors: tuple[str, ...]
    findings: checks.Findings
    gate1: Utility | None
    gate2: Recovery | None
    gate3: Feedback | None
    neutral: Recovery | None  # a neutral hit that stands by itself, even where gate 3 is blocked
    neutral_in_scope: bool  # whether the neutral arm ran as gate 2's challengers do
    blocked: str  # why a gate was not evaluated

    @property
    def neutral_vetoes(self) -> bool:
        """Whether a neutral hit refutes Core."""
        return self.neutral is not None and self.neutral_in_scope


BLOCKED = "input failed registration/integrity validation"
BLOCKED_FEEDBACK = "Gate 3 integrity validation failed"
FAILED_CLOSED = "Gate 3 evaluation failed closed"
SURVIVED = "separately validated local witness survived unrelated full-ledger defects"


def decide(
    registration: Registration,
    integrity: Integrity,
    gate1: Gate1,
    gate2: Gate2,
    gate3: Gate3 | None = None,
) -> Decision:
    """Both verdicts of an audit, whatever state its records are in."""
    errors = rules.errors(registration)
    findings = checks.check(registration, integrity, gate1, gate2, gate3)
    blocked = _blocked(errors, findings)
    if not errors:
        try:
            blocked = _evaluated(registration, integrity, gate1, gate2, gate3, blocked)
        except (TypeError, ValueError, ArithmeticError) as error:  # a value that no rule of this grade covers
            why = f"evaluation input error: {type(error).__name__}: {error}"
            blocked = _blocked(errors, replace(findings, core=(*findings.core, why)))
    return replace(blocked, evidence=_evidence(registration, gate3, blocked))


def _blocked(errors: tuple[str, ...], findings: checks.Findings) -> Decision:
    what, why = ("registration", errors) if errors else ("integrity", findings.core)
    return Decision(
        core=_open(f"{what} incomplete: {'; '.join(why)}", Open.AUDIT),
        evidence=Ruling(verdict=Verdict.NOT_TESTED, reason=""),
        registration_errors=errors,
        findings=findings,
        gate1=None,
        gate2=None,
        gate3=None,
        neutral=None,
        neutral_in_scope=False,
        blocked=BLOCKED,
    )


def _evaluated(
    r: Registration, i: Integrity, gate1: Gate1, gate2: Gate2, gate3: Gate3 | None, blocked: Decision
) -> Decision:
    """The decision with every gate that the record's defects leave standing."""
    challenge = _challenge(r, i, gate1, gate2, sound=not blocked.findings.core)
    if challenge is None:
        return blocked
    done = replace(blocked, gate1=utility(r, gate1), gate2=challenge)
    if gate3 is not None and not done.findings.core:
        done = _with_gate3(r, i, gate1, gate2, gate3, done)
    return replace(done, core=_core(gate1, gate3, done))


def _challenge(r: Registration, i: Integrity, gate1: Gate1, gate2: Gate2, *, sound: bool) -> Recovery | None:
    """Gate 2 of a sound record; of a broken one only a hit that stands by itself."""
    if sound:
        return recovery(r, gate1.astar, gate2, gate2_scope(r))
    admitted = checks.admitted_controls(r, i, gate1, gate2)
    if not admitted:
        return None
    found = recovery(r, gate1.astar, replace(gate2, controls=admitted), gate2_scope(r))
    if found.status != Recovered.YES:
        return None
    return replace(found, reason=f"{found.reason}; {SURVIVED}")


def _with_gate3(
    r: Registration, i: Integrity, gate1: Gate1, gate2: Gate2, gate3: Gate3, done: Decision
) -> Decision:
    admitted = checks.admitted_neutral(r, i, gate2, gate3)
    neutral = neutral_recovery(r, gate1, gate2, gate3, admitted) if admitted else None
    if neutral is not None and neutral.status == Recovered.YES:
        neutral = replace(neutral, reason=NEUTRAL_WITNESS)
    else:
        neutral = None
    in_scope = in_gate2_scope(r, i, gate3)
    if done.findings.gate3:
        return replace(done, neutral=neutral, neutral_in_scope=in_scope, blocked=BLOCKED_FEEDBACK)
    try:
        found = feedback(r, gate1, gate2, gate3)
    except (TypeError, ValueError, ArithmeticError) as error:  # a value that no rule of this grade covers
        why = f"Gate 3 evaluation input error: {type(error).__name__}: {error}"
        findings = replace(done.findings, gate3=(why,))
        return replace(
            done, findings=findings, neutral=neutral, neutral_in_scope=in_scope, blocked=FAILED_CLOSED
        )
    return replace(done, gate3=found, neutral=neutral, neutral_in_scope=in_scope)


def _open(reason: str, open_class: Open | None) -> Ruling:
    return Ruling(verdict=Verdict.INCONCLUSIVE, reason=reason, open_class=open_class)


def _refuted(reason: str) -> Ruling:
    return Ruling(verdict=Verdict.REFUTED, reason=reason)


def _core(gate1: Gate1, gate3: Gate3 | None, d: Decision) -> Ruling:
    """Rules 3 to 16, in their order."""
    return _gain_rules(gate1, d.gate1) or _recovery_rules(d) or _neutral_rules(gate3, d) or _last_rules(d)


def _gain_rules(gate1: Gate1, gain: Utility | None) -> Ruling | None:
    assert gain is not None  # the caller has evaluated gate 1
    rules_in_order = (
        (
            gate1.baseline.validity != Validity.VALID,
            _open("Valid(baseline) is false or unresolved", Open.AUDIT),
        ),
        (gain.validity == Tri.FAIL, _refuted("Valid(A*) = false")),
        (gain.validity != Tri.PASS, _open("Valid(A*) unresolved", Open.AUDIT)),
        (gain.baseline_outside == Tri.FAIL, _refuted("baseline satisfies P")),
        (
            gain.baseline_outside != Tri.PASS,
            _open("baseline position vs recovery line uncertain", Open.STATISTICAL),
        ),
        (gain.gain_enough == Tri.FAIL, _refuted("main utility confirmed below delta_min")),
        (gain.gain_enough != Tri.PASS, _open("main utility uncertain around delta_min", Open.STATISTICAL)),
    )
    return next((ruling for fires, ruling in rules_in_order if fires), None)


def _recovery_rules(d: Decision) -> Ruling | None:
    if d.gate2 is not None and d.gate2.status == Recovered.YES:
        return _refuted(f"no-feedback recovery: {d.gate2.reason}")
    if d.neutral_vetoes:
        return _refuted("lineage-empty neutral recovery reached P")
    return None


_SCOPE_ERRORS = ("scope manifest", "checkpoint_scope", "checkpoint_hash")


def _neutral_rules(gate3: Gate3 | None, d: Decision) -> Ruling | None:
    """A neutral arm that ran as gate 2's challengers do must not leave a possible hit open."""
    neutral = d.gate3.neutral if d.gate3 is not None else None
    if d.neutral_in_scope and neutral is not None and neutral.count(Status.UNRESOLVED):
        why = "lineage-empty recovery ledger contains an unresolved P classification"
        return _open(why, neutral.open_class)
    if gate3 is None or not d.findings.neutral_ledger:
        return None
    scoped = any(part in e for e in d.findings.neutral_ledger for part in _SCOPE_ERRORS)
    if gate3.checkpoint_scope != "lineage_prefix" or scoped:
        why = "; ".join(d.findings.neutral_ledger)
        return _open(f"lineage-empty recovery ledger is malformed: {why}", Open.AUDIT)
    return None


def _last_rules(d: Decision) -> Ruling:
    assert d.gate2 is not None  # the caller has evaluated gate 2
    if d.gate2.status != Recovered.NO:
        return _open(f"no-feedback recovery inconclusive: {d.gate2.reason}", d.gate2.open_class)
    return Ruling(verdict=Verdict.CERTIFIED, reason=f"scoped non-recovery: {d.gate2.reason}")


def _evidence(r: Registration, gate3: Gate3 | None, d: Decision) -> Ruling:
    if r.grade_requested != "evidence":
        return Ruling(verdict=Verdict.NOT_TESTED, reason="evidence grade not requested")
    if d.core.verdict != Verdict.CERTIFIED:
        return Ruling(verdict=Verdict.NOT_TESTED, reason="Core not certified; evidence grade unreachable")
    if gate3 is None:
        return _open("no feedback evidence supplied", Open.AUDIT)
    if r.necessity_claim_requested and d.neutral is not None:
        return _refuted("neutral branch recovered the registered outcome")
    if d.gate3 is None:
        return _open("feedback audit integrity is incomplete", Open.AUDIT)
    return _feedback_ruling(r, d.gate3)


def _feedback_ruling(r: Registration, found: Feedback) -> Ruling:
    if found.sham.adequacy != Tri.PASS:
        why = Open.STATISTICAL if found.sham.straddles else Open.AUDIT
        return _open(f"sham_adequacy={found.sham.adequacy}", why)
    if found.effect == Effect.SUPPORTED:
        if r.necessity_claim_requested and found.neutral.status != Recovered.NO:
            return _open("neutral recovery is unresolved", found.neutral.open_class)
        reason = "feedback_effect supported with passing sham calibration"
        return Ruling(verdict=Verdict.CERTIFIED, reason=reason)
    if found.effect == Effect.NOT_SUPPORTED:
        return _refuted("feedback_effect confirmed below the registered minimum")
    why = Open.STATISTICAL if found.open_statistical else Open.AUDIT
    return _open(f"feedback_effect inconclusive: {found.reason}", why)
