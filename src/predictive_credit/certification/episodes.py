"""One episode: sessions that each commit one action, answered through a registered channel.

Everything is in the ledger before it counts, so an episode is continued from its last committed turn.
A session that was cut short is run again only if the same packet always gives the same turn; otherwise
the episode is unresolved, since a second try would be a second draw. One that nobody was there to answer
is no draw at all: it pauses the run, and is held again when the run goes on. Neither is announced twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from predictive_credit import canonical
from predictive_credit.certification.agents import CANDIDATE, Agent, Turn
from predictive_credit.certification.ledger import Event, Ledger, draw, marked
from predictive_credit.certification.records import Outcome
from predictive_credit.certification.tasks.task import Channel, Malformed, Task, exactly, observe, strict_json
from predictive_credit.errors import Stopped
from predictive_credit.streams import stream

ACTION = "dcp_action_v1"


class Denied(Exception):  # an answer to the agent, not trouble of ours
    """A page that is not served."""


class Web(Protocol):
    """What serves pages: a recording gateway, or the replay of what one recorded."""

    live: ClassVar[bool]  # whether an address may be answered otherwise another time

    def fetch(self, url: str) -> Mapping[str, Any]:
        """The page as the agent sees it, with its `url`, `status` and `text`. Raises Denied."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where branches start: turns answered so far, then one action whose answer is still to come."""

    history: tuple[Mapping[str, Any], ...] = ()
    pending: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Of everything a branch inherits."""
        return marked({"history": self.history, "pending": self.pending, "files": self.files})


@dataclass(frozen=True, kw_only=True)
class Episode:
    """What is fixed before an episode starts."""

    label: str
    role: str
    task: Task
    channel: Channel
    contract: str  # digest of the contract it runs under
    notes: tuple[Mapping[str, Any], ...] = ()  # turns of another run, handed over
    sites: tuple[str, ...] = ()  # pages its agent is told of
    pages: tuple[Mapping[str, Any], ...] = ()  # pages it holds from the start
    web: Web | None = None
    start: Checkpoint = Checkpoint()


@dataclass(frozen=True, kw_only=True)
class Result:
    """How an episode ended. `artifact` is checked, or None; `receipt` announced the episode."""

    label: str
    outcome: Outcome
    reason: str
    artifact: Any
    receipt: str
    drawn: str
    first_event: int
    turns: tuple[Mapping[str, Any], ...]

    @property
    def artifact_hash(self) -> str:
        """Digest of the artifact; empty without one."""
        return "" if self.artifact is None else marked(self.artifact)


@dataclass
class _State:
    """An episode in progress, as its events tell it."""

    history: list[Mapping[str, Any]]
    pending: Mapping[str, Any] | None
    files: dict[str, str]
    turn: int
    opened: Event | None = None  # the start of a session that has not ended
    ended: Event | None = None


def run(
    episode: Episode,
    agent: Agent,
    ledger: Ledger,
    nonce: bytes,
    *,
    paused: Callable[[], bool] = lambda: False,
) -> Result:
    """The episode's result: read from the ledger if it has ended, else played to its end.

    Raises KeyboardInterrupt between two turns once `paused` says so, and Stopped where the agent is not
    there: both leave the episode as far as it came, to be gone on with.
    """
    events = ledger.of(episode.label)
    if not events:
        events = (ledger.append("episode_prestarted", announcement(episode, nonce)),)
    state = replay(episode, events)
    if not _may_go_on(episode, agent, ledger, state, nonce):
        _end(ledger, episode, state, Outcome.UNRESOLVED, "a session was cut short")
    while state.ended is None:
        if paused():
            raise KeyboardInterrupt
        _step(episode, agent, ledger, state, nonce)
    return result(episode, ledger)


def _may_go_on(episode: Episode, agent: Agent, ledger: Ledger, state: _State, nonce: bytes) -> bool:
    """Whether no session was cut short, or holding it again is no second draw."""
    if state.opened is None or ledger.is_paused(state.opened):
        return True
    return agent.may_repeat(_told(episode, state, nonce), state.files)


def announcement(episode: Episode, nonce: bytes) -> dict[str, Any]:
    """What is said of an episode before it starts."""
    return {
        "episode": episode.label,
        "role": episode.role,
        "contract_hash": episode.contract,
        "channel": episode.channel,
        "draw_receipt": draw(nonce, episode.label),
        "checkpoint_hash": episode.start.digest,
        "notes_hash": marked(episode.notes),
        "pages_hash": marked(episode.pages),
    }


def replay(episode: Episode, events: Sequence[Event]) -> _State:
    """The state after a part of an episode's events."""
    start = episode.start
    turns = len(start.history) + (start.pending is not None)
    files = {**episode.task.background()["files"], **start.files}
    state = _State(history=list(start.history), pending=start.pending, files=files, turn=turns)
    for event in events:
        _apply(state, event)
    return state


def _apply(state: _State, event: Event) -> None:
    payload = event.payload
    if event.event_type == "turn_started":
        state.opened = event
    elif event.event_type == "action_committed":
        state.opened = None
        state.turn += 1
        state.pending = payload["action"]
        _change(state.files, payload["changed"])
    elif event.event_type == "observation_delivered" and state.pending is not None:
        action = {k: state.pending[k] for k in ("action", "payload")}
        state.history.append({**action, "observation": payload["observation"]})
        state.pending = None
    elif event.event_type == "episode_ended":
        state.opened = None
        _change(state.files, payload["changed"])
        state.ended = event


def _change(files: dict[str, str], changed: Mapping[str, str | None]) -> None:
    for name, text in changed.items():
        if text is None:
            files.pop(name, None)
        else:
            files[name] = text


def packet(episode: Episode, state: _State, drawn: str) -> dict[str, Any]:
    """What a session is told. Nothing here depends on the sealed instance but through E0 and answers."""
    design = episode.task.design
    used = sum(turn["action"] == "experiment" for turn in state.history)
    return {
        "task": design.name,
        "background": episode.task.background(stream(int(drawn, 16), "presentation")),
        "first": episode.task.first(),
        "sites": episode.sites,
        "web": episode.pages,
        "notes": episode.notes,
        "history": state.history,
        "experiments_left": design.experiments - used,
        "turns_left": design.turns - state.turn,
        "draw": drawn,
    }


def _told(episode: Episode, state: _State, nonce: bytes) -> dict[str, Any]:
    return packet(episode, state, draw(nonce, episode.label))


def _step(episode: Episode, agent: Agent, ledger: Ledger, state: _State, nonce: bytes) -> None:
    if state.pending is not None:
        _answer(episode, ledger, state)
    elif state.turn >= episode.task.design.turns:
        _end(ledger, episode, state, Outcome.MODEL_FAILURE, "out of turns")
    else:
        _session(episode, agent, ledger, state, nonce)


def _session(episode: Episode, agent: Agent, ledger: Ledger, state: _State, nonce: bytes) -> None:
    told = _told(episode, state, nonce)
    here = {"episode": episode.label, "turn": state.turn}
    started = here | {"packet_hash": marked(told), "workspace_hash": marked(state.files)}
    opened = state.opened or ledger.append("turn_started", started)
    ledger.resume(opened)
    _apply(state, opened)
    try:
        turn = agent.session(told, state.files)
    except Stopped as error:
        ledger.pause(opened, str(error))
        raise Stopped(f"{episode.label} is paused in its turn {state.turn + 1}: {error}") from None
    start = episode.start
    first = state.turn == len(start.history) + (start.pending is not None)
    model = model_of(ledger) if turn.receipt.get("model") else None
    action, failure, reason = _read(turn, first=first, model=model)
    changed = _diff(state.files, turn.files)
    if failure is not None:
        _end(ledger, episode, state, failure, reason, changed=changed, receipt=turn.receipt)
        return
    committed = here | {"action": action, "action_hash": marked(action), "changed": changed,
                        "receipt": turn.receipt, "identity": agent.identity}  # fmt: skip
    _apply(state, ledger.append("action_committed", committed))


def model_of(ledger: Ledger) -> str | None:
    """The model that took the run's first turn, by what its provider says; None where nobody says."""
    told = (event.payload.get("receipt", {}).get("model") for event in ledger.events)
    return next((model for model in told if model is not None), None)


def _is_another(receipt: Mapping[str, Any], model: str | None) -> bool:
    """Whether a session says that another model answered it than the run's."""
    return model is not None and receipt.get("model") not in (None, model)


def _read(turn: Turn, *, first: bool, model: str | None) -> tuple[Any, Outcome | None, str]:
    """The action, or how the session failed. `model` took the run's first turn."""
    if _is_another(turn.receipt, model):
        said = turn.receipt["model"]
        return None, Outcome.VIOLATION, f"answered by {said}, and the run's first turn by {model}"
    if turn.failure == Outcome.INFRASTRUCTURE and not first:
        return None, Outcome.MODEL_FAILURE, turn.reason  # after an action, loss may depend on the outcome
    if turn.failure is not None:
        return None, turn.failure, turn.reason
    if turn.action is None:
        return None, Outcome.MODEL_FAILURE, "no action"
    try:
        return read_action(turn.action), None, ""
    except Malformed as error:
        return None, Outcome.VIOLATION, f"malformed action: {error}"


def read_action(text: str) -> dict[str, Any]:
    """An action by its closed schema. Raises Malformed."""
    value = strict_json(text)
    schema, action, payload = exactly(value, "schema", "action", "payload")
    if schema != ACTION or action not in ("web_fetch", "experiment", "finish"):
        raise Malformed(f"schema must be {ACTION} and action web_fetch, experiment or finish")
    if action == "finish" and payload != {}:
        raise Malformed("finish has an empty payload")
    try:
        canonical.encode(value)
    except (ValueError, TypeError):
        raise Malformed("a value has no canonical form") from None
    return {"schema": schema, "action": action, "payload": payload}


def _answer(episode: Episode, ledger: Ledger, state: _State) -> None:
    action = state.pending
    if action is None:
        return
    if action["action"] == "finish":
        _end(ledger, episode, state, Outcome.ARTIFACT, "finished")
        return
    answer = observation(episode, state.history, action)
    payload = {"episode": episode.label, "action_hash": marked(action), "channel": episode.channel}
    _apply(state, ledger.append("observation_delivered", payload | {"observation": answer}))


def observation(
    episode: Episode, history: Sequence[Mapping[str, Any]], action: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The answer to an action, given the turns before it."""
    if action["action"] == "web_fetch":
        return _page(episode.web, action["payload"])
    used = sum(turn["action"] == "experiment" for turn in history)
    if used >= episode.task.design.experiments:
        return {"status": "refused", "reason": "no experiments left"}
    try:
        plan = episode.task.plan(action["payload"])
    except Malformed as error:
        return {"status": "refused", "reason": str(error)}
    return observe(episode.task, plan, episode.channel)


def _page(web: Web | None, payload: Any) -> Mapping[str, Any]:
    try:
        (url,) = exactly(payload, "url")
        if web is None or not isinstance(url, str):
            raise Denied("there is no web here")
        return {"status": "fetched", **web.fetch(url)}
    except (Malformed, Denied) as error:
        return {"status": "refused", "reason": str(error)}


def _is_live(episode: Episode, action: Mapping[str, Any]) -> bool:
    """Whether an action was answered by what may change, so that its answer cannot be made again."""
    return action["action"] == "web_fetch" and episode.web is not None and episode.web.live


def _diff(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str | None]:
    changed: dict[str, str | None] = {k: v for k, v in after.items() if before.get(k) != v}
    return changed | dict.fromkeys(k for k in before if k not in after)


def _end(
    ledger: Ledger,
    episode: Episode,
    state: _State,
    outcome: Outcome,
    reason: str,
    *,
    changed: Mapping[str, str | None] | None = None,
    receipt: Mapping[str, Any] | None = None,
) -> None:
    """The last event. A candidate that is valid counts however its author ended, but for a violation."""
    changed = changed or {}
    _change(state.files, changed)
    candidate = candidate_of(episode.task, state.files)
    if outcome in (Outcome.ARTIFACT, Outcome.MODEL_FAILURE):
        outcome = Outcome.MODEL_FAILURE if candidate is None else Outcome.ARTIFACT
    payload = {
        "episode": episode.label, "outcome": outcome, "reason": reason, "changed": changed,
        "artifact": candidate if outcome == Outcome.ARTIFACT else None, "receipt": receipt or {},
    }  # fmt: skip
    _apply(state, ledger.append("episode_ended", payload))


def candidate_of(task: Task, files: Mapping[str, str]) -> Any:
    """The checked candidate in a workspace, or None."""
    try:
        return task.artifact(strict_json(files[CANDIDATE])) if CANDIDATE in files else None
    except Malformed:
        return None


def result(episode: Episode, ledger: Ledger) -> Result:
    """What the ledger says of an ended episode."""
    events = ledger.of(episode.label)
    state, end = replay(episode, events), events[-1].payload
    return Result(
        label=episode.label,
        outcome=Outcome(end["outcome"]),
        reason=end["reason"],
        artifact=end["artifact"],
        receipt=events[0].receipt,
        drawn=events[0].payload["draw_receipt"],
        first_event=events[0].event_index,
        turns=tuple(state.history),
    )


def defects(episode: Episode, ledger: Ledger, agent: Agent, nonce: bytes) -> Iterator[str]:
    """Where an ended episode was told or answered something else than its contract says.

    Packets and answers are made again from what is registered and compared with what the ledger
    recorded, so a history that leaked into a packet, a channel that told too much, or a page that was
    replayed with another byte, is named.
    """
    events = ledger.of(episode.label)
    if events[0].payload != canonical.plain(announcement(episode, nonce)):
        yield f"{episode.label}: it was announced as something else"
    state, model = replay(episode, ()), model_of(ledger)
    for event in events[1:]:
        yield from _defect(episode, state, event, agent, model, draw(nonce, episode.label))
        _apply(state, event)


def is_taken_by(event: Event, identity: str, model: str | None) -> bool:
    """Whether a committed action is the registered agent's, and its model the run's."""
    return event.payload["identity"] == identity and not _is_another(event.payload["receipt"], model)


def _defect(
    episode: Episode, state: _State, event: Event, agent: Agent, model: str | None, drawn: str
) -> Iterator[str]:
    payload = event.payload
    if event.event_type == "turn_started" and payload["packet_hash"] != marked(packet(episode, state, drawn)):
        yield f"{episode.label}: turn {state.turn} was told something else than its contract says"
    if event.event_type == "action_committed" and not is_taken_by(event, agent.identity, model):
        taken = payload["receipt"].get("model") or payload["identity"]
        yield f"{episode.label}: turn {state.turn} was taken by {taken}"
    pending = state.pending
    if event.event_type == "observation_delivered" and pending and not _is_live(episode, pending):
        due = canonical.plain(observation(episode, state.history, pending))
        if payload["observation"] != due or payload["channel"] != episode.channel:
            yield f"{episode.label}: turn {state.turn} was answered otherwise than its channel says"
