"""What an audit's bundle tells a reader: the gates with what each asked and saw, counts, and witnesses.

Everything is recomputed from the bundle's records; its saved certificate is not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from predictive_credit.certification import bundle, replacements, tasks
from predictive_credit.certification.bundle import Bundle
from predictive_credit.certification.decision import Decision, Ruling, decide
from predictive_credit.certification.feedback import Effect, Feedback, Use
from predictive_credit.certification.gates import Recovery, Status, Tri, Utility
from predictive_credit.certification.records import Registration
from predictive_credit.certification.statistics import Interval

UNTOLD = "not evaluated"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One clause: what it asked, what was seen, and whether it held; None where it was not evaluated."""

    gate: str
    name: str
    asked: str
    seen: str
    held: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A challenger's artifact with its mean score over the sealed units."""

    attempt_id: str
    score: float
    status: Status


@dataclass(frozen=True, kw_only=True)
class Audit:
    """A bundle and the decision that its records make."""

    bundle: Bundle
    decision: Decision

    @property
    def registration(self) -> Registration:
        """What was frozen before the run."""
        return self.bundle.registration

    @property
    def title(self) -> str:
        """The task, by its registered profile; the profile itself for a family that none of ours is of."""
        profile = self.registration.task_family_profile
        known = tasks.DESIGNS.values()
        return next((d.title for d in known if profile in (d.profile, d.formerly)), str(profile))

    @property
    def model(self) -> str | None:
        """The audited model by its configured name; None for a script."""
        kind, name, *_ = (*str(self.registration.model_id).split(":"), "")
        return name if kind == "model" else None

    @property
    def score(self) -> float | None:
        """The artifact's mean score; None where gate 1 was not evaluated."""
        return None if self.decision.gate1 is None else self.decision.gate1.score

    @property
    def line(self) -> float | None:
        """The score from which a challenger recovers."""
        return None if self.score is None else self.score - self.registration.epsilon

    @property
    def bound(self) -> float | None:
        """Upper bound of a challenger's chance to recover; None with a hit or without a sound gate 2."""
        return None if self.decision.gate2 is None else self.decision.gate2.bound

    @property
    def hits(self) -> int:
        """How many challengers reach the line; one of them refutes."""
        return 0 if self.decision.gate2 is None else self.decision.gate2.count(Status.HIT)

    def candidates(self) -> tuple[Candidate, ...]:
        """The challengers with a score, best first; of equal ones the first to start."""
        attempts = () if self.decision.gate2 is None else self.decision.gate2.attempts
        scored = [
            Candidate(
                attempt_id=a.control.attempt_id,
                score=sum(a.control.per_unit) / len(a.control.per_unit),
                status=a.status,
            )
            for a in attempts
            if a.control.per_unit
        ]
        return tuple(sorted(scored, key=lambda c: -c.score))

    def gates(self) -> tuple[Gate, ...]:
        """Every clause, in the order of the gates."""
        return (*self._record(), *self._gain(), *self._recovery(), *self._feedback())

    def counts(self) -> dict[str, int]:
        """How many episodes and pairs there were, and what became of them."""
        b, d = self.bundle, self.decision
        found = {
            "challengers": len(b.gate2.controls),
            "distinct artifacts": len({c.artifact_hash for c in b.gate2.controls if c.artifact_hash}),
        }
        statuses = Counter(str(a.status) for a in d.gate2.attempts) if d.gate2 is not None else Counter()
        found |= {f"challengers, {name.replace('_', ' ')}": n for name, n in sorted(statuses.items())}
        found |= {
            "positive controls": b.gate2.adequacy.positive_control_trials,
            "positive controls that recovered": b.gate2.adequacy.positive_control_successes,
        }
        if b.gate3 is not None:
            found |= {"feedback pairs": len(b.gate3.pairs), "null pairs": len(b.gate3.sham.pairs)}
            for kind, pairs in (("feedback", b.gate3.pairs), ("null", b.gate3.sham.pairs)):
                lost = sorted(replacements.lost_by_arm(pairs).items())
                found |= {f"{kind} pairs lost, {arm.replace('_', ' ')} arm": n for arm, n in lost}
        if d.gate3 is not None:
            found |= {
                "feedback pairs analysed": sum(p.use == Use.ANALYZED for p in d.gate3.pairs),
                "null pairs analysed": sum(p.use == Use.ANALYZED for p in d.gate3.sham.pairs),
            }
        return found

    def numbers(self) -> dict[str, Any]:
        """What is counted and bounded, as plain values: a metric."""
        d = self.decision
        return {
            "core": ruling(d.core),
            "evidence": ruling(d.evidence),
            "score": self.score,
            "line": self.line,
            "recovery_bound": self.bound,
            "recall_lower": None if d.gate2 is None else d.gate2.recall_lower,
            "best_challenger": next((c.score for c in self.candidates()), None),
            "feedback": ends(None if d.gate3 is None else d.gate3.difference),
            "null": ends(None if d.gate3 is None else d.gate3.sham.difference),
            "neutral_bound": None if d.gate3 is None else d.gate3.neutral.bound,
            "counts": self.counts(),
        }

    def text(self) -> str:
        """Verdicts and gates as lines for a terminal."""
        heads = (f"core {said(self.decision.core)}", f"evidence {said(self.decision.evidence)}")
        rows = [(g.gate, g.name, g.asked, g.seen, held(g)) for g in self.gates()]
        widths = [max(len(row[k]) for row in rows) for k in range(4)]
        lines = ["  ".join((*(c.ljust(w) for c, w in zip(r, widths, strict=False)), r[4])) for r in rows]
        return "\n".join((self.title, *(f"  {head}" for head in heads), "", *(f"  {row}" for row in lines)))

    # -- the clauses

    def _record(self) -> Iterator[Gate]:
        d = self.decision
        errors = (*d.registration_errors, *d.findings.core)
        yield Gate(
            gate="record", name="registered before the run, whole, attested", asked="no objection",
            seen=errors[0] + (f" and {len(errors) - 1} more" if errors[1:] else "") if errors else "none",
            held=not errors,
        )  # fmt: skip

    def _gain(self) -> Iterator[Gate]:
        g, r = self.decision.gate1, self.registration
        yield Gate(
            gate="1 utility", name="artifact is valid", asked="valid",
            seen=str(self.bundle.gate1.astar.validity), held=_held(None if g is None else g.validity),
        )  # fmt: skip
        yield Gate(
            gate="1 utility", name="gain over the baseline, lower end", asked=f">= {figure(r.delta_min)}",
            seen=UNTOLD if g is None else f"{g.gain.lower:.4f}",
            held=_held(None if g is None else g.gain_enough),
        )  # fmt: skip
        yield Gate(
            gate="1 utility", name="baseline misses the line", asked=_below(self.line),
            seen=_baseline(g), held=_held(None if g is None else g.baseline_outside),
        )  # fmt: skip

    def _recovery(self) -> Iterator[Gate]:
        found, r = self.decision.gate2, self.registration
        hits = self.hits
        yield Gate(
            gate="2 recovery", name="challengers that reach the line", asked="0",
            seen=UNTOLD if found is None else f"{hits} of {found.evaluable}",
            held=None if found is None else not hits,
        )  # fmt: skip
        yield Gate(
            gate="2 recovery", name="a challenger's chance to, upper bound", asked=f"<= {figure(r.rho)}",
            seen=_bound(found, found is not None and bool(hits)),
            held=None if found is None or found.bound is None else found.bound <= r.rho,
        )  # fmt: skip
        yield Gate(
            gate="2 recovery", name="positive controls that recover, lower bound",
            asked=f">= {figure(r.positive_control_recall_min)}", seen=_recall(found),
            held=None if found is None else found.recall_lower >= r.positive_control_recall_min,
        )  # fmt: skip
        objections = () if found is None else found.adequacy_reasons
        yield Gate(
            gate="2 recovery", name="challengers were adequate", asked="no objection",
            seen=UNTOLD if found is None else "; ".join(objections) or "none",
            held=None if found is None else not objections,
        )  # fmt: skip

    def _feedback(self) -> Iterator[Gate]:
        found, r = self.decision.gate3, self.registration
        if self.bundle.gate3 is None:
            return
        yield Gate(
            gate="3 feedback", name="null pairs differ, interval", asked=f"within +-{figure(r.delta_sham)}",
            seen=UNTOLD if found is None else interval(found.sham.difference),
            held=_held(None if found is None else found.sham.adequacy),
        )  # fmt: skip
        yield Gate(
            gate="3 feedback", name="truthful minus neutral, interval",
            asked=f">= {figure(r.delta_evidence)}",
            seen=UNTOLD if found is None else interval(found.difference), held=_supported(found),
        )  # fmt: skip


def open_audit(folder: Path) -> Audit:
    """The audit in a bundle's folder. Raises Refused for a folder that is no whole bundle."""
    b = bundle.load(folder)
    return Audit(bundle=b, decision=decide(b.registration, b.integrity, b.gate1, b.gate2, b.gate3))


def ruling(found: Ruling) -> dict[str, str | None]:
    """A verdict with its class, as plain words."""
    open_class = None if found.open_class is None else str(found.open_class)
    return {"verdict": str(found.verdict), "class": open_class}


def said(found: Ruling) -> str:
    """A verdict, for an open one its class, and why."""
    of = "" if found.open_class is None else f" ({str(found.open_class).replace('_', ' ')})"
    return f"{str(found.verdict).replace('_', ' ')}{of}: {found.reason}"


def held(gate: Gate) -> str:
    """`held`, `not held`, or a dash where it was not evaluated."""
    return {True: "held", False: "not held", None: "-"}[gate.held]


def ends(found: Interval | None) -> list[float] | None:
    """Both ends of an interval; None for one that bounds nothing."""
    return None if found is None or not found.bounded else [found.lower, found.upper]


def figure(value: Any) -> str:
    """A registered number to four digits; what else a record may hold in its place is said to be none."""
    try:
        return f"{value:.4g}"
    except (TypeError, ValueError, OverflowError):
        return f"no number ({type(value).__name__})"


def interval(found: Interval | None) -> str:
    """`[0.6379, 1.0000]`, or that there is none."""
    if found is None or not found.bounded:
        return "no interval"
    return f"[{found.lower:.4f}, {found.upper:.4f}]"


def _held(found: Tri | None) -> bool | None:
    return None if found is None or found == Tri.INCONCLUSIVE else found == Tri.PASS


def _supported(found: Feedback | None) -> bool | None:
    if found is None or found.effect == Effect.INCONCLUSIVE:
        return None
    return found.effect == Effect.SUPPORTED


def _below(line: float | None) -> str:
    return "< line" if line is None else f"< {line:.4f}"


def _baseline(found: Utility | None) -> str:
    return UNTOLD if found is None else f"{found.score - found.gain.mean:.4f}"


def _bound(found: Recovery | None, hit: bool) -> str:
    if found is None:
        return UNTOLD
    if found.bound is None:
        return "none, a challenger reached it" if hit else "none, gate not adequate"
    return f"{found.bound:.4f}"


def _recall(found: Recovery | None) -> str:
    if found is None:
        return UNTOLD
    told = found.adequacy
    return f"{told.positive_control_successes} of {told.positive_control_trials}, {found.recall_lower:.4f}"
