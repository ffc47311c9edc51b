"""Audits as parts of a page, or a page of their own: bundles in, HTML out; nothing else is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from predictive_credit.certification.gates import Status
from predictive_credit.certification.reading import Audit, Gate, held, interval, ruling
from predictive_credit.report import article, words
from predictive_credit.report.article import Part, Section
from predictive_credit.report.tables import Table

PREFIX = "audits"  # of every id
QUESTION = "Is the gain real, could agents without the run's history reach it, and did feedback cause it?"
SHOWN = 5  # witnesses listed, the best ones
LIMITS = (
    "A certificate speaks of one claim under its registered scope: this model, this task, this budget. It "
    "bounds one challenger's chance to recover, and says nothing of open search, of other agents, or of "
    "novelty.",
    "Scores, the success of positive controls, validity and every attestation are taken as recorded. Digests "
    "bind them, and no score is measured again when a bundle is verified.",
    "Receipts are opaque texts. No registry has countersigned any: formal_certificate_issued is false "
    "everywhere, and nobody counts how often a family was audited: its error budget holds for one audit, "
    "and who repeats one until it certifies has spent it.",
    "Verified means honestly recorded and decided by the rules; a refuted claim verifies too.",
    "Null pairs are played on fresh instances whose first observations tell the answer, as the protocol "
    "allows; for a script that takes it they are equal by construction.",
    "That units are independent, and that inference may be drawn from them, is asserted where isolation is "
    "attested, and is measured nowhere.",
    "Isolation is attested for our own scripted agents, and for a model where its user says so, on the basis "
    "that each registration quotes. It is no container, and no defence against code that attacks the "
    "interpreter. Whoever knows the secret knows the sealed answer before the run; the agents are not given "
    "it.",
    "The four tasks were made for this. Their agents show what the protocol tells apart, and discover "
    "nothing new.",
)


@dataclass(frozen=True, kw_only=True)
class Shown:
    """An audit on the page; `where` tells two audits of one task apart."""

    where: str
    audit: Audit

    @property
    def name(self) -> str:
        """`Device calibration, this run`."""
        return f"{self.audit.title}, {self.where}" if self.where else self.audit.title


def sections(audits: Sequence[Shown]) -> tuple[str, ...]:
    """A summary with what is not claimed, then a section for each audit."""
    return (_summary(audits), *(_section(one, f"{PREFIX}-{k}") for k, one in enumerate(audits, start=1)))


def document(title: str, audits: Sequence[Shown], *, version: str) -> str:
    """A page of its own. The same bundles give the same bytes."""
    return article.document(title, sections(audits), question=QUESTION, version=version)


def _summary(audits: Sequence[Shown]) -> str:
    cores = [words.spaced(one.audit.decision.core.verdict) for one in audits]
    counted = [f"{cores.count(word)} {word}" for word in dict.fromkeys(cores)]
    return article.summary(
        prefix=PREFIX,
        eyebrow="Discovery audits",
        headline=f"Core: {words.listed(counted)}.",
        lead=QUESTION,
        verdicts=_verdicts(audits),
        limits_heading="What a certificate does not claim",
        limits=LIMITS,
    )


def _verdicts(audits: Sequence[Shown]) -> Table:
    return Table(
        caption="Verdicts",
        columns=("audit", "Core", "Evidence", "score", "line", "best challenger", "hits", "bound"),
        text=frozenset({1, 2}),
        rows=tuple((one.name, *_row(one.audit)) for one in audits),
        note=(
            "Core: gates 1 and 2. Evidence: gate 3 on top. Line: the score from which a challenger recovers. "
            "Hits: challengers that reach it, of those that count. Bound: of one challenger's chance to, "
            "undefined where one did or the gate is not adequate."
        ),
    )


def _row(audit: Audit) -> Iterator[str]:
    d, best = audit.decision, audit.candidates()[:1]
    yield _verdict(ruling(d.core))
    yield _verdict(ruling(d.evidence))
    yield words.number(audit.score, 4)
    yield words.number(audit.line, 4)
    yield words.number(best[0].score if best else None, 4)
    yield f"{audit.hits} of {d.gate2.evaluable}" if d.gate2 is not None else words.UNDEFINED
    yield words.number(audit.bound, 4)


def _verdict(told: dict[str, str | None]) -> str:
    of = f" ({words.spaced(told['class'])})" if told["class"] else ""
    return f"{words.spaced(told['verdict'] or '')}{of}"


def _section(one: Shown, prefix: str) -> str:
    audit = one.audit
    d = audit.decision
    parts = (
        Part(heading="Gates", tables=(_gates(audit),)),
        Part(
            heading="Challengers and witnesses",
            text=(_challenge(audit),),
            tables=(_witnesses(audit),) if d.gate2 is not None else (),
        ),
        Part(heading="Intervals and counts", tables=(*_intervals(audit), _counts(audit))),
        Part(heading="Scope", tables=(_scope(audit),)),
    )
    lead = (
        f"Core {_verdict(ruling(d.core))}: {d.core.reason}.",
        f"Evidence {_verdict(ruling(d.evidence))}: {d.evidence.reason}.",
    )
    return article.section(Section(prefix=prefix, title=one.name, lead=lead, parts=parts))


def _gates(audit: Audit) -> Table:
    return Table(
        caption="What each asked and saw",
        columns=("gate", "clause", "asked", "seen", "held"),
        text=frozenset({1, 4}),
        rows=tuple((g.gate, g.name, _printed(g.asked), _printed(g.seen), _said(g)) for g in audit.gates()),
    )


def _printed(said: str) -> str:
    signed = said.replace("[-", f"[{words.MINUS}").replace(", -", f", {words.MINUS}")
    return signed.replace("<=", "\u2264").replace(">=", "\u2265").replace("+-", "\u00b1")


def _said(gate: Gate) -> str:
    return {"held": "yes", "not held": "no", "-": words.UNDEFINED}[held(gate)]


def _challenge(audit: Audit) -> str:
    if audit.decision.gate2 is None:
        return f"Gate 2 was not evaluated: {audit.decision.core.reason}."
    hits = audit.hits
    if hits:
        return (
            f"{hits} {'challenger reaches' if hits == 1 else 'challengers reach'} the line without the run's "
            "history. One is enough: the score shows no discovery of this run."
        )
    return "No challenger is a witness against the claim. The best of them, for comparison:"


def _witnesses(audit: Audit) -> Table:
    hits, found = audit.hits, audit.candidates()
    shown = [c for c in found if c.status == Status.HIT or not hits][:SHOWN]
    more = hits - len(shown)
    return Table(
        caption="Witnesses" if hits else "Best challengers",
        columns=("challenger", "score", "line", "status"),
        text=frozenset({3}),
        rows=tuple(
            (c.attempt_id, words.number(c.score, 4), words.number(audit.line, 4), words.spaced(c.status))
            for c in shown
        ),
        note=f"And {more} more." if more > 0 else None,
    )


def _intervals(audit: Audit) -> Iterator[Table]:
    d, r = audit.decision, audit.registration
    rows: list[tuple[str, ...]] = []
    if d.gate1 is not None:
        rows.append(("gain over the baseline", _printed(interval(d.gate1.gain)), f"{r.alpha_main:.4g}"))
    if d.gate2 is not None:
        rows.append(
            ("chance of recovery", f"at most {words.number(d.gate2.bound, 4)}", f"{r.alpha_recovery:.4g}")
        )
        rows.append(
            ("positive controls' recall", f"at least {d.gate2.recall_lower:.4f}", f"{r.alpha_adequacy:.4g}")
        )
    if d.gate3 is not None:
        neutral = words.number(d.gate3.neutral.bound, 4)
        rows += [
            ("truthful minus neutral", _printed(interval(d.gate3.difference)), f"{r.alpha_evidence:.4g}"),
            ("null pairs", _printed(interval(d.gate3.sham.difference)), f"{r.alpha_sham:.4g}"),
            ("neutral branches' chance of recovery", f"at most {neutral}", f"{r.alpha_neutral:.4g}"),
        ]
    if rows:
        yield Table(caption="Bounds", columns=("of", "bound", "error probability"), rows=tuple(rows))


def _counts(audit: Audit) -> Table:
    return Table(
        caption="Counts",
        columns=("what", "number"),
        rows=tuple((what, words.count(n)) for what, n in audit.counts().items()),
    )


def _scope(audit: Audit) -> Table:
    r = audit.registration
    notes = r.notes if isinstance(r.notes, dict) else {}  # a record may hold anything
    rows = (
        ("claim", str(r.claim_id)),
        ("model", str(r.model_id)),
        ("task", str(r.task_family_profile)),
        ("isolation attested", "yes" if audit.bundle.integrity.private_isolation_pass is True else "no"),
        ("isolation rests on", str(notes.get("isolation_basis", words.NONE_PRINTED))),
        ("web", words.spaced(str(audit.bundle.integrity.web_replay_scope))),
        ("bundle", audit.bundle.bundle_id),
    )
    return Table(
        caption="Registered scope", columns=("what", "as registered"), text=frozenset({1}), rows=rows
    )
