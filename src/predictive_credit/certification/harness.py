"""An audit from its registration to its bundle: register, capture, challenge, gate 3, finalize.

Every episode of a phase is played before any of them is scored. A run that was stopped is continued
with the same settings: what has ended is reused, a registration that differs is refused.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

from tqdm import tqdm

from predictive_credit import canonical, tables
from predictive_credit.certification import bundle, contracts, digests, episodes, evidence, tasks
from predictive_credit.certification.agents import Agent
from predictive_credit.certification.contracts import Plan
from predictive_credit.certification.decision import Decision, decide
from predictive_credit.certification.episodes import Checkpoint, Episode, Result
from predictive_credit.certification.evidence import FEEDBACK, NULL, Material, Played, PlayedPair
from predictive_credit.certification.ledger import Ledger, draw, first_arm, marked, now
from predictive_credit.certification.records import Gate1, Gate2, Gate3, Integrity, Outcome, Registration
from predictive_credit.certification.tasks.task import Budget, Channel, Task
from predictive_credit.certification.verify import verify
from predictive_credit.certification.web import Gateway, Limits, Snapshot
from predictive_credit.errors import BadConfig, OutOfOrder, Tampered

SECRET = 32  # bytes
DEVELOPMENT = 2  # null pairs on which the fillers are tried before the confirmatory ones


T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What the caller chooses. `secret` fixes the sealed instance and all draws; None draws one.

    `attest_isolation` overrides what the agent's own basis says of private isolation, and needs a
    reason; both are registered.
    """

    task: str
    agent: Agent
    budget: Budget | str = "full"  # full | quick | a budget of one's own
    secret: bytes | None = None
    attest_isolation: bool | None = None
    isolation_reason: str = ""
    sites: tuple[str, ...] = ()  # pages the main run is told of
    web: Limits | None = None  # within which it may read the web; None: not at all
    clock: Callable[[], str] = now

    def plan(self) -> Plan:
        """What is registered. Raises BadConfig."""
        design = tasks.design(self.task)
        attested, basis = self.agent.isolation
        if self.attest_isolation is not None:
            if not self.isolation_reason.strip():
                raise BadConfig(
                    "attest_isolation needs isolation_reason: say what separates agents from the secret"
                )
            attested, basis = self.attest_isolation, self.isolation_reason
        room = design.turns - design.experiments - 1
        if len(self.sites) > room:
            raise BadConfig(
                f"{len(self.sites)} pages were given, and beside its experiments and its end an episode of "
                f"{design.name} has turns for {room}; give fewer"
            )
        return Plan(
            design=design, agent=self.agent, budget=_budget(design, self.budget), isolated=attested,
            isolation_basis=basis, sites=self.sites, web=self.web,
        )  # fmt: skip


def _budget(design: Any, asked: Budget | str) -> Budget:
    if isinstance(asked, Budget):
        return asked
    if asked not in ("full", "quick"):
        raise BadConfig(f"there is no budget {asked}; the budgets are full and quick")
    budget: Budget = design.full if asked == "full" else design.quick
    return budget


@dataclass(frozen=True, kw_only=True)
class Audited:
    """What an audit came to, and where its bundle is."""

    bundle_id: str
    decision: Decision
    folder: Path


def certify(settings: Settings, to: Path, *, title: str | None = None) -> Audited:
    """Run an audit in a folder, or continue the one that is there.

    Writes `ledger.jsonl`, `registration.json`, `episodes/`, `web/`, `secret` (readable by its owner
    alone, for continuing) and at last `bundle/`. With a `title` there is a progress bar on stderr.
    Ctrl-C stops at the next turn, and raises KeyboardInterrupt; a second one does not wait. Raises
    Stopped where the agent is not there for now, and OutOfOrder if the folder holds another audit.
    """
    plan = settings.plan()
    _known_secret(to, settings.secret)  # what cannot be gone on with is refused before anything is written
    with Ledger(to / "ledger.jsonl", clock=settings.clock) as ledger, _pausing() as stop:
        secret = _secret(to, settings.secret)  # under the lock: of two that start at once, one draws it
        run = _Run(settings=settings, plan=plan, secret=secret, ledger=ledger, to=to, stop=stop)
        with tqdm(
            total=_episodes(plan.budget), desc=title, unit="episode", disable=title is None, file=sys.stderr
        ) as bar:
            run.progress = bar.update
            return run.all()


def _episodes(budget: Budget) -> int:
    nulls = 2 * (budget.null_pairs + DEVELOPMENT) if budget.null_pairs else 0
    return 1 + budget.challengers + 2 * budget.positive_controls + 2 * budget.feedback_pairs + nulls


def _secret(to: Path, given: bytes | None) -> bytes:
    """The run's secret: given, or kept from before, or drawn. Written for the owner's eyes alone."""
    kept = _known_secret(to, given)
    if kept is not None:
        return kept
    path = to / "secret"
    secret = os.urandom(SECRET) if given is None else given
    to.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: half a secret would seal nothing.
    part = path.with_name("secret.part")
    part.unlink(missing_ok=True)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(f"{secret.hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)
    return secret


def _known_secret(to: Path, given: bytes | None) -> bytes | None:
    """What an earlier start left, None without one. Raises Tampered for anything that is no secret of ours.

    Raises OutOfOrder if another one is given.
    """
    path = to / "secret"
    if not path.exists():
        return None
    try:
        kept = bytes.fromhex(path.read_text().strip())
    except ValueError:
        kept = b""
    if not kept:
        raise Tampered(f"{path} is not the secret of a run, in hexadecimal; give another folder")
    if given is not None and given != kept:
        raise OutOfOrder(
            f"{to} was started with another secret; continue it with that one, or start elsewhere"
        )
    return kept


def _key(secret: bytes, name: str) -> bytes:
    return hmac.new(secret, name.encode(), hashlib.sha256).digest()


@contextmanager
def _pausing() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C sets, so that no session is cut short; a second one does not wait."""
    stop = threading.Event()
    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or previous is None:
        yield stop
        return

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    signal.signal(signal.SIGINT, asked)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, previous)


@dataclass(frozen=True, kw_only=True)
class _Branches:
    """A pair that was played and is not scored yet."""

    label: str
    arms: dict[str, tuple[Episode, Result]]
    replacement_of: str

    @property
    def is_lost(self) -> bool:
        """Whether infrastructure took a branch, which it is only said to before the branch has acted."""
        return any(result.outcome == Outcome.INFRASTRUCTURE for _, result in self.arms.values())


@dataclass(kw_only=True)
class _Run:
    """A run in progress. Instances are made from the secret and kept while they are in use."""

    settings: Settings
    plan: Plan
    secret: bytes
    ledger: Ledger
    to: Path
    stop: threading.Event
    progress: Callable[[], object] = lambda: None
    _tasks: dict[tuple[str, bool], Task] = field(default_factory=dict)
    _scores: dict[tuple[str, bool, str], tuple[float, ...]] = field(default_factory=dict)

    def all(self) -> Audited:
        """The phases, in order; the ledger is checked before each."""
        registration, texts = self._phase(self.register)
        main, snapshot = self._phase(self.capture)
        material = Material(
            plan=self.plan, registration=registration, texts=texts, ledger=self.ledger, nonce=self.nonce,
            main=self._played(*main), baseline=self.score("main", main[0].task.baseline),
            challengers=(), positive=(), pages_hash=snapshot.digest, web_used=bool(snapshot.pages),
        )  # fmt: skip
        if material.main.scores is not None:  # without an artifact there is nothing to recover
            challengers, positive = self._phase(lambda: self.challenge(registration, snapshot))
            material = replace(material, challengers=challengers, positive=positive)
            if self.plan.evidence:
                material = self._phase(lambda: self.gate3(material, snapshot))
        return self._phase(lambda: self.finalize(material))

    def _phase(self, phase: Callable[[], T]) -> T:
        self.ledger.check()
        return phase()

    @property
    def nonce(self) -> bytes:
        """The key of all draw receipts."""
        return _key(self.secret, "nonce")

    def task(self, label: str, *, known: bool = False) -> Task:
        """The instance called `label`."""
        key = (label, known)
        if key not in self._tasks:
            self._tasks[key] = tasks.BUILD[self.plan.design.name](
                _key(self.secret, "instances"), label, known=known
            )
        return self._tasks[key]

    def score(self, label: str, artifact: Any, *, known: bool = False) -> tuple[float, ...]:
        """An artifact's scores on the sealed units of an instance."""
        key = (label, known, marked(artifact))
        if key not in self._scores:
            task = self.task(label, known=known)
            self._scores[key] = task.score(task.artifact(artifact))
        return self._scores[key]

    def play(self, episode: Episode) -> Result:
        """An episode to its end, with a readable copy of it in a file."""
        result = episodes.run(episode, self.plan.agent, self.ledger, self.nonce, paused=self.stop.is_set)
        path = self.to / "episodes" / f"{episode.label}.json"
        if not path.exists():
            tables.write_json(path, {"role": episode.role, "result": canonical.plain(result)})
        self.progress()
        return result

    # -- register

    def register(self) -> tuple[Registration, dict[str, Any]]:
        """Reserve the audit's slot, freeze the registration, commit to the secret, seal the contracts."""
        slot = self.ledger.once("slot_reserved", {"family": self.plan.name, "slot": 1, "alpha_total": 0.05})
        texts = contracts.contracts(self.plan, self.task("main"))
        registration = contracts.registration(self.plan, texts, slot.receipt)
        self.ledger.once(
            "registration_frozen",
            {
                "registration_hash": marked(registration),
                "contracts_hash": marked(texts),
                "budget": self.plan.budget,
                "nonce_commitment": canonical.digest_bytes(self.nonce),
                "instances_commitment": canonical.digest_bytes(_key(self.secret, "instances")),
            },
        )
        tables.write_json(self.to / "registration.json", {"registration": registration, "contracts": texts})
        sealed = {name: marked(text) for name, text in texts.items() if name.startswith("gate3_")}
        nulls = {
            name: marked(text) for name, text in texts.items() if name.startswith(("sham_", "reference_"))
        }
        self.ledger.once("gate3_contract_sealed", {"contracts": sealed})
        self.ledger.once("null_contract_sealed", {"contracts": nulls})
        return registration, texts

    # -- capture

    def capture(self) -> tuple[tuple[Episode, Result], Snapshot]:
        """The main run, what it read of the web, the checkpoint, and the artifact by the registered rule."""
        limits = self.settings.web
        gateway = None if limits is None else Gateway(self.to / "web", limits, self.ledger.append)
        main = Episode(
            label="main", role="main", task=self.task("main"), channel=Channel.TRUTHFUL,
            contract=marked(self.plan.agent.interface), sites=self.plan.sites, web=gateway,
        )  # fmt: skip
        result = self.play(main)
        snapshot = Snapshot() if gateway is None else gateway.snapshot()
        self.ledger.once("web_frozen", {"snapshot_hash": snapshot.digest})
        checkpoint = self.checkpoint(main)
        self.ledger.once("checkpoint_chosen", {"checkpoint_hash": checkpoint.digest})
        self.ledger.once(
            "artifact_chosen", {"artifact_hash": result.artifact_hash, "lineage_hash": marked(result.turns)}
        )
        return (main, result), snapshot

    def checkpoint(self, main: Episode) -> Checkpoint:
        """The main run right after its first experiment was committed; its start if it made none."""
        events = self.ledger.of(main.label)
        for k, event in enumerate(events, start=1):
            if event.event_type == "action_committed" and event.payload["action"]["action"] == "experiment":
                state = episodes.replay(main, events[:k])
                return Checkpoint(history=tuple(state.history), pending=state.pending, files=state.files)
        return Checkpoint()

    # -- challenge

    def challenger(self, label: str, registration: Registration, snapshot: Snapshot) -> Episode:
        """A fresh matched agent: K, E0 and every web page, no history, and no answers."""
        return Episode(
            label=label, role="challenger", task=self.task("main"), channel=Channel.WITHHELD,
            contract=registration.gate2_control_contract_hash, pages=snapshot.texts(), web=snapshot,
        )  # fmt: skip

    def challenge(
        self, registration: Registration, snapshot: Snapshot
    ) -> tuple[tuple[Played, ...], tuple[tuple[Played, bool], ...]]:
        """All challengers, then all scores; then the positive controls the same way."""
        labels = [f"challenger-{k:03d}" for k in range(1, self.plan.budget.challengers + 1)]
        played = [(e, self.play(e)) for e in (self.challenger(n, registration, snapshot) for n in labels)]
        challengers = tuple(self._played(*one) for one in played)
        self._record("challengers_scored", challengers)
        numbers = range(1, self.plan.budget.positive_controls + 1)
        canaries = [self._canary(f"{k:03d}", registration, snapshot) for k in numbers]
        positive = tuple((self._played(*one, canary), self._recovers(*one, source, canary, registration))
                         for one, source, canary in canaries)  # fmt: skip
        self._record("positive_controls_scored", tuple(p for p, _ in positive))
        return challengers, positive

    def _canary(
        self, number: str, registration: Registration, snapshot: Snapshot
    ) -> tuple[tuple[Episode, Result], Result, str]:
        """A run on another sealed instance, then a challenger to whom that run's history is handed over."""
        name = f"canary-{number}"
        source = self.play(Episode(
            label=f"{name}-source", role="canary", task=self.task(name), channel=Channel.TRUTHFUL,
            contract=marked(self.plan.agent.interface),
        ))  # fmt: skip
        control = replace(
            self.challenger(f"positive-{number}", registration, snapshot),
            role="positive_control",
            task=self.task(name),
            notes=source.turns,
        )
        return (control, self.play(control)), source, name

    def _recovers(
        self, control: Episode, result: Result, source: Result, canary: str, registration: Registration
    ) -> bool:
        """Whether a positive control used a history in which there was something to recover."""
        if source.artifact is None or result.artifact is None:
            return False
        told, target = self.score(canary, result.artifact), self.score(canary, source.artifact)
        baseline = self.score(canary, self.task(canary).baseline)
        found = evidence.gains(target, baseline, registration.delta_min)
        return found and evidence.reaches(told, target, registration.epsilon)

    def _played(
        self, episode: Episode, result: Result, label: str = "main", *, known: bool = False
    ) -> Played:
        scores = None if result.artifact is None else self.score(label, result.artifact, known=known)
        return Played(episode=episode, result=result, scores=scores)

    def _record(self, event_type: str, played: Sequence[Played]) -> None:
        rows = {p.result.label: marked([p.result.artifact_hash, p.scores]) for p in played}
        self.ledger.once(event_type, {"results": rows})

    # -- gate 3

    def gate3(self, material: Material, snapshot: Snapshot) -> Material:
        """Feedback pairs from the checkpoint, then null pairs on instances whose answer is told."""
        r = material.registration
        start = self.checkpoint(material.main.episode)
        contract = {
            "truthful": r.gate3_truthful_arm_contract_hash,
            "neutral": r.gate3_neutral_arm_contract_hash,
        }
        channels = {"truthful": Channel.TRUTHFUL, "neutral": Channel.NEUTRAL}

        def branch(label: str, arm: str) -> Episode:
            return Episode(
                label=f"{label}-{arm}", role="branch", task=self.task("main"), channel=channels[arm],
                contract=contract[arm], start=start, pages=snapshot.texts(), web=snapshot,
            )  # fmt: skip

        budget, allowed = self.plan.budget.feedback_pairs, self.plan.replacements[0]
        played = self._pairs("pair", budget, allowed, FEEDBACK, branch)
        pairs = tuple(self._played_pair(one, "main") for one in played)
        self._record("branches_scored", [p for pair in pairs for p in pair.arms.values()])
        return self._null(replace(material, pairs=pairs))

    def _null(self, material: Material) -> Material:
        r = material.registration
        contract = {"reference_null": r.sham_reference_arm_contract_hash,
                    "proposed_sham": r.sham_proposed_arm_contract_hash}  # fmt: skip
        channels = {"reference_null": Channel.REFERENCE, "proposed_sham": Channel.NEUTRAL}

        def branch(label: str, arm: str) -> Episode:
            return Episode(
                label=f"{label}-{arm}", role="null_branch" if label.startswith("null") else "development",
                task=self.task(label, known=True), channel=channels[arm], contract=contract[arm],
            )  # fmt: skip

        tried = [f"development-{k:03d}" for k in range(1, DEVELOPMENT + 1)]
        development = [self._pair(label, NULL, branch) for label in tried]
        budget, allowed = self.plan.budget.null_pairs, self.plan.replacements[1]
        played = self._pairs("null", budget, allowed, NULL, branch)
        pairs, beforehand = (
            tuple(self._played_pair(one, one.label, known=True) for one in some)
            for some in (played, development)
        )
        self._record("null_branches_scored", [p for pair in pairs for p in pair.arms.values()])
        hits = {
            p.result.label: self._null_hit(pair.label, p, r) for pair in pairs for p in pair.arms.values()
        }
        return replace(material, null_pairs=pairs, null_hits=hits, development=beforehand)

    def _null_hit(self, label: str, played: Played, registration: Registration) -> bool:
        if played.scores is None:
            return False
        target = self.score(label, self.task(label, known=True).answer(), known=True)
        return evidence.reaches(played.scores, target, registration.epsilon)

    def _pairs(
        self,
        name: str,
        count: int,
        allowed: int,
        arms: tuple[str, str],
        branch: Callable[[str, str], Episode],
    ) -> list[_Branches]:
        """So many pairs; one that infrastructure took is followed by another, as often as was registered."""
        played: list[_Branches] = []
        for number in range(1, count + 1):
            played.append(self._pair(f"{name}-{number:03d}", arms, branch))
            for again in range(1, allowed + 1):
                if not played[-1].is_lost:
                    break
                allowed -= 1
                lost = played[-1].label
                played.append(self._pair(f"{name}-{number:03d}-again-{again}", arms, branch, lost))
        return played

    def _pair(
        self, label: str, arms: tuple[str, str], branch: Callable[[str, str], Episode], lost: str = ""
    ) -> _Branches:
        """Both branches, in the drawn order; `lost` is the pair that they replace."""
        ran = {}
        for arm in first_arm(draw(self.nonce, label), arms):
            episode = branch(label, arm)
            ran[arm] = (episode, self.play(episode))
        return _Branches(label=label, arms=ran, replacement_of=lost)

    def _played_pair(self, pair: _Branches, instance: str, *, known: bool = False) -> PlayedPair:
        played = {arm: self._played(*one, instance, known=known) for arm, one in pair.arms.items()}
        return PlayedPair(
            label=pair.label, receipt=draw(self.nonce, pair.label), arms=played,
            replacement_of=pair.replacement_of,
        )  # fmt: skip

    # -- finalize

    def finalize(self, material: Material) -> Audited:
        """Assemble, decide and write the bundle; the secret is told, since nothing is left to be guessed."""
        integrity, gate1, gate2, gate3 = digests.fill(*evidence.assemble(material))
        decision = decide(material.registration, integrity, gate1, gate2, gate3)
        records = (material.registration, integrity, gate1, gate2, gate3)
        bundle_id = _write_whole(self.to / "bundle", records)
        told: dict[str, Any] = {"bundle_id": bundle_id, "secret": self.secret.hex()}
        if self.ledger.pauses:
            told["pauses"] = self.ledger.pauses
        self.ledger.once("bundle_written", told)
        return Audited(bundle_id=bundle_id, decision=decision, folder=self.to / "bundle")


def _write_whole(folder: Path, records: tuple[Registration, Integrity, Gate1, Gate2, Gate3 | None]) -> str:
    """Write a bundle beside its place, verify it, and move it there whole; an equal one may be there."""
    part = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    bundle_id = bundle.write(part, *records)
    report = verify(part)
    if not report.ok:
        raise Tampered(f"{part} does not verify after it was written: {'; '.join(report.errors)}")
    if not folder.exists():
        part.rename(folder)
        return bundle_id
    shutil.rmtree(part)
    if verify(folder).bundle_id != bundle_id:
        raise Tampered(f"{folder} is not the bundle of this run; move it away, then run this again")
    return bundle_id
