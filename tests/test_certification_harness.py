"""An audit from registration to bundle: what certifies, what refutes, and what a stop may not change."""

import json
import signal
import stat
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.certification import contracts, harness, tasks
from predictive_credit.certification.agents import Asked, InProcess, Script, Turn
from predictive_credit.certification.decision import Verdict
from predictive_credit.certification.episodes import Episode
from predictive_credit.certification.feedback import Use
from predictive_credit.certification.gates import Open
from predictive_credit.certification.harness import Audited, Settings, certify
from predictive_credit.certification.ledger import draw, read
from predictive_credit.certification.reading import open_audit
from predictive_credit.certification.records import Outcome
from predictive_credit.certification.tasks.task import Budget
from predictive_credit.certification.verify import verify
from predictive_credit.certification.web import Limits, Page, Snapshot, limits
from predictive_credit.errors import BadConfig, OutOfOrder, Stopped, Tampered
from predictive_credit.records import Reply
from predictive_credit.tables import record_of
from tests.loopback import website
from tests.test_certification_web import HTML, Site

ISOLATED = (True, "a test: the policy is a pure function of its packet")
CORE = Budget(challengers=77, positive_controls=24)  # the least that can certify at .02
SMALL = Budget(challengers=2, positive_controls=1, feedback_pairs=2, null_pairs=2)


def settings(task: str = "device", budget: Budget = SMALL, **told: Any) -> Settings:
    given: dict[str, Any] = {
        "agent": InProcess(isolation=ISOLATED), "secret": b"7" * 32, "clock": lambda: "2026-01-01T00:00:00Z",
    }  # fmt: skip
    return Settings(task=task, budget=budget, **(given | told))


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return certify(settings(budget=CORE), tmp_path_factory.mktemp("device"))


@pytest.fixture(scope="module")
def catalyst(tmp_path_factory: pytest.TempPathFactory) -> Audited:
    return certify(settings("catalyst"), tmp_path_factory.mktemp("catalyst"))


def payload(audited: Audited, name: str) -> Any:
    return json.loads((audited.folder / "payload" / f"{name}.json").read_text())


def test_device_calibration_is_certified_at_the_least_budget_that_can(device: Audited) -> None:
    assert device.decision.core.verdict == Verdict.CERTIFIED
    assert device.decision.gate2 is not None
    assert device.decision.gate2.bound == pytest.approx(1 - 0.02 ** (1 / 77), abs=1e-12)
    assert device.decision.findings.core == ()
    report = verify(device.folder)
    assert report.ok
    assert report.bundle_id == device.bundle_id
    assert report.replayed_verdict is not None
    assert report.replayed_verdict["core"] == "certified"


def test_challengers_share_the_registered_contract_and_no_draw(device: Audited) -> None:
    controls = payload(device, "gate2")["controls"]
    registration = payload(device, "registration")
    assert {c["scope_contract_hash"] for c in controls} == {registration["gate2_control_contract_hash"]}
    assert len({c["independent_draw_receipt_hash"] for c in controls}) == 77
    assert len({c["artifact_hash"] for c in controls}) > 70


def test_the_recorded_draws_are_those_of_the_nonce_committed_at_registration(device: Audited) -> None:
    events = read(device.folder.parent / "ledger.jsonl")
    secret = bytes.fromhex(events[-1].payload["secret"])
    nonce = harness._key(secret, "nonce")
    for control in payload(device, "gate2")["controls"]:
        assert control["independent_draw_receipt_hash"] == f"sha256:{draw(nonce, control['attempt_id'])}"


def test_no_challenger_is_scored_before_the_last_has_ended(device: Audited) -> None:
    types = [e.event_type for e in read(device.folder.parent / "ledger.jsonl")]
    labels = [e.payload.get("episode", "") for e in read(device.folder.parent / "ledger.jsonl")]
    last = max(k for k, label in enumerate(labels) if label.startswith("challenger"))
    first_canary = min(k for k, label in enumerate(labels) if label.startswith("canary"))
    assert last < types.index("challengers_scored") < first_canary


def test_the_secret_is_for_its_owners_eyes_and_in_no_artifact(device: Audited) -> None:
    kept = device.folder.parent / "secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    sealed = kept.read_text().strip()
    for path in [*device.folder.rglob("*.json"), *(device.folder.parent / "episodes").iterdir()]:
        assert sealed not in path.read_text()


def test_truthful_branches_hit_and_neutral_ones_miss(catalyst: Audited) -> None:
    found = catalyst.decision.gate3
    assert found is not None
    assert found.difference is not None
    assert found.difference.mean == 1.0
    assert catalyst.decision.findings.gate3 == ()


def test_null_pairs_are_equal_and_both_arms_hit(catalyst: Audited) -> None:
    pairs = payload(catalyst, "gate3")["sham"]["pairs"]
    assert len(pairs) == 2
    for pair in pairs:
        assert pair["reference_null"]["utility"] == pair["proposed_sham"]["utility"] == 1.0


def test_a_branch_starts_from_the_first_experiment_before_its_answer(catalyst: Audited) -> None:
    episodes = catalyst.folder.parent / "episodes"
    main = json.loads((episodes / "main.json").read_text())["result"]["turns"][0]
    for arm in ("truthful", "neutral"):
        turn = json.loads((episodes / f"pair-001-{arm}.json").read_text())["result"]["turns"][0]
        assert turn["payload"] == main["payload"]
        assert (turn["observation"] == main["observation"]) is (arm == "truthful")


def test_small_budgets_leave_the_question_open(catalyst: Audited) -> None:
    assert catalyst.decision.core.verdict == Verdict.INCONCLUSIVE
    assert catalyst.decision.evidence.verdict == Verdict.NOT_TESTED


def test_the_knapsack_is_recovered_and_its_claim_refuted(tmp_path: Path) -> None:
    audited = certify(settings("knapsack", Budget(challengers=5, positive_controls=1)), tmp_path)
    assert audited.decision.core.verdict == Verdict.REFUTED
    assert "hit" in audited.decision.core.reason


def test_the_catalyst_runs_with_scripts_in_their_own_processes(tmp_path: Path) -> None:
    budget = Budget(challengers=1, positive_controls=1, feedback_pairs=2, null_pairs=2)
    audited = certify(settings("catalyst", budget, agent=Script()), tmp_path)
    assert audited.decision.findings.core == audited.decision.findings.gate3 == ()
    assert payload(audited, "integrity")["private_isolation_pass"] is True
    assert payload(audited, "gate2")["adequacy"]["positive_control_successes"] == 1


# -- what must not pass


def leaking(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hands the main run's history to every challenger."""
    honest = harness._Run.challenger

    def challenger(self: Any, label: str, registration: Any, snapshot: Snapshot) -> Episode:
        told = honest(self, label, registration, snapshot)
        main = json.loads((self.to / "episodes" / "main.json").read_text())["result"]["turns"]
        return replace(told, notes=tuple(main))

    monkeypatch.setattr(harness._Run, "challenger", challenger)


def test_a_history_leaked_to_challengers_is_noticed_and_refutes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaking(monkeypatch)
    audited = certify(settings(), tmp_path)
    assert audited.decision.core.verdict == Verdict.REFUTED
    assert "challenger_contract_pass not attested" in audited.decision.findings.core


def test_an_agent_that_remembers_the_main_run_is_caught_by_its_recoveries(tmp_path: Path) -> None:
    memory: list[Any] = []

    def act(packet: Mapping[str, Any]) -> tuple[Any, Any]:
        if any(turn["observation"].get("readings") for turn in packet["history"]):
            memory[:] = packet["history"]
        return harness_policy({**packet, "notes": memory})

    agent = InProcess(act=act, isolation=ISOLATED)
    assert certify(settings(agent=agent), tmp_path).decision.core.verdict == Verdict.REFUTED


def harness_policy(packet: Mapping[str, Any]) -> tuple[Any, Any]:
    return InProcess().act(packet)


def test_positive_controls_without_their_notes_show_that_nothing_was_tested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(packet: Mapping[str, Any]) -> tuple[Any, Any]:
        return harness_policy({**packet, "notes": []})  # an agent that does not read what it is handed

    audited = certify(settings(agent=InProcess(act=act, isolation=ISOLATED)), tmp_path)
    assert payload(audited, "gate2")["adequacy"]["positive_control_successes"] == 0
    assert audited.decision.core.verdict == Verdict.INCONCLUSIVE
    assert audited.decision.core.open_class == Open.AUDIT


def test_positive_controls_whose_sources_found_nothing_recover_nothing(tmp_path: Path) -> None:
    def act(packet: Mapping[str, Any]) -> tuple[Any, Any]:
        if packet["draw"] == draw(nonce, "main"):  # the main run alone does anything
            return harness_policy(packet)
        gains = dict.fromkeys(packet["background"]["schema"]["candidate"]["gains"], 0)
        return {"schema": "dcp_action_v1", "action": "finish", "payload": {}}, {
            "gains": gains | packet["first"]["gains"]
        }

    nonce = harness._key(b"7" * 32, "nonce")
    audited = certify(settings(agent=InProcess(act=act, isolation=ISOLATED)), tmp_path)
    adequacy = payload(audited, "gate2")["adequacy"]
    assert adequacy["positive_control_trials"] == SMALL.positive_controls
    assert adequacy["positive_control_successes"] == 0  # though each hands in what its source handed in
    artifacts = [
        json.loads((tmp_path / "episodes" / f"{name}.json").read_text())["result"]["artifact"]
        for name in ("canary-001-source", "positive-001")
    ]
    assert artifacts[0] == artifacts[1]


def test_a_channel_that_tells_the_truth_to_a_neutral_branch_fails_its_audit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from predictive_credit.certification import episodes  # noqa: PLC0415  # the module is patched
    from predictive_credit.certification.tasks.task import Channel, observe  # noqa: PLC0415

    deliver = episodes._answer

    def answer(episode: Episode, *rest: Any) -> None:
        if episode.label == "pair-001-neutral":
            monkeypatch.setattr(
                episodes, "observe", lambda task, plan, channel: observe(task, plan, Channel.TRUTHFUL)
            )
        deliver(episode, *rest)
        monkeypatch.setattr(episodes, "observe", observe)

    monkeypatch.setattr(episodes, "_answer", answer)
    audited = certify(settings("catalyst"), tmp_path)
    assert "Gate 3 neutral channel audit failed" in audited.decision.findings.gate3
    assert "Gate 3 truthful channel audit failed" not in audited.decision.findings.gate3


def test_without_isolation_nothing_is_certified(tmp_path: Path) -> None:
    audited = certify(settings(agent=InProcess()), tmp_path)
    assert audited.decision.findings.core == (
        "private_isolation_pass not attested", "inference_assumptions_pass not attested",
    )  # fmt: skip
    assert not any(control["independence_ok"] for control in payload(audited, "gate2")["controls"])
    assert audited.decision.core.open_class == Open.AUDIT


def test_isolation_is_attested_against_the_agents_own_word_only_with_a_reason(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="isolation_reason"):
        certify(settings(agent=InProcess(), attest_isolation=True), tmp_path / "one")
    told = settings(agent=InProcess(), attest_isolation=True, isolation_reason="a container without network")
    audited = certify(told, tmp_path / "two")
    assert payload(audited, "registration")["notes"]["isolation_basis"] == "a container without network"
    assert audited.decision.findings.core == ()


def said(text: str, model: str | None = None) -> Reply:
    return Reply(text=text, finish_reason="stop", model_requested="model", model_resolved=model)


@pytest.mark.parametrize("task", ["device", "catalyst"])
def test_a_model_that_answers_nonsense_leaves_the_audit_incomplete(tmp_path: Path, task: str) -> None:
    audited = certify(
        settings(task, agent=Asked(ask=lambda prompt, form: said("Hello!"), identity="model")), tmp_path
    )
    assert audited.decision.core.open_class == Open.AUDIT
    main = json.loads((tmp_path / "episodes" / "main.json").read_text())["result"]
    assert (main["outcome"], main["reason"][:10]) == (Outcome.MODEL_FAILURE, "unreadable")
    assert payload(audited, "gate1")["astar"]["validity"] == "invalid"
    assert verify(audited.folder).ok


def reading(prompt: str) -> str:
    """What a model answers that reads its prompt: an experiment, then the public gains and a guess."""
    public = json.loads(prompt.split("First observations: ")[1].splitlines()[0])["gains"]
    gains = {f"c{i:02d}": public.get(f"c{i:02d}", 1) for i in range(24)}
    if "Experiments left: 5." in prompt:
        return json.dumps({"action": "experiment", "payload": {"controls": ["c00"]}})
    return json.dumps({"action": "finish", "candidate": {"gains": gains}})


def test_a_challenger_that_another_model_answered_broke_its_contract_and_gate_2_is_not_adequate(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    def ask(prompt: str, form: object) -> Reply:
        asked.append(prompt)
        return said(reading(prompt), "model-2" if len(asked) == 4 else "model-1")

    agent = Asked(ask=ask, identity="model")
    audited = certify(settings(agent=agent, attest_isolation=True, isolation_reason="a container"), tmp_path)
    outcomes = [control["outcome"] for control in payload(audited, "gate2")["controls"]]
    assert outcomes == ["execution_contract_violation"] + ["artifact"] * (len(outcomes) - 1)
    assert audited.decision.gate2 is not None
    reasons = audited.decision.gate2.adequacy_reasons
    assert any(reason.startswith("execution-contract-violation rate") for reason in reasons)
    assert verify(audited.folder).ok
    told = json.loads((tmp_path / "episodes" / "challenger-001.json").read_text())["result"]["reason"]
    assert told == "answered by model-2, and the run's first turn by model-1"


def test_a_model_that_reads_its_prompt_goes_through_the_same_phases(tmp_path: Path) -> None:
    def ask(prompt: str, form: object) -> Reply:
        return said(reading(prompt), "model-1")

    audited = certify(settings(agent=Asked(ask=ask, identity="model")), tmp_path)
    control = payload(audited, "gate2")["controls"][0]
    assert (control["outcome"], control["validity"]) == ("artifact", "valid")
    assert payload(audited, "integrity")["attribution_subject"] == "autonomous_agent"
    assert "private_isolation_pass not attested" in audited.decision.findings.core


# -- stopping and going on


@dataclass(frozen=True, kw_only=True)
class Stopping(InProcess):
    """Counts its sessions, and is killed in one of them."""

    at: int = -1
    repeats: bool = True
    sessions: list[str] = field(default_factory=list)

    def may_repeat(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> bool:
        return self.repeats

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        self.sessions.append(packet["draw"])
        if len(self.sessions) == self.at:
            raise KeyboardInterrupt
        return super().session(packet, files)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stopping, Audited]:
    """An audit that nothing stopped, and its agent."""
    agent = Stopping(isolation=ISOLATED)
    return agent, certify(settings(agent=agent), tmp_path_factory.mktemp("whole"))


def stopped(to: Path, at: int, **told: Any) -> Stopping:
    """An audit killed in its `at`th session; the agent with which it may go on."""
    agent = Stopping(isolation=ISOLATED, at=at, **told)
    with pytest.raises(KeyboardInterrupt):
        certify(settings(agent=agent), to)
    return agent


def scores(audited: Audited) -> Any:
    keep = ("attempt_id", "outcome", "per_unit", "artifact_hash", "independent_draw_receipt_hash")
    return [{k: c[k] for k in keep} for c in payload(audited, "gate2")["controls"]]


@pytest.mark.parametrize("at", [4, 14])
def test_a_run_goes_on_after_a_kill_and_repeats_only_the_session_cut_short(
    whole: tuple[Stopping, Audited], tmp_path: Path, at: int
) -> None:
    unbroken, expected = whole
    agent = stopped(tmp_path, at)
    audited = certify(settings(agent=agent), tmp_path)
    assert agent.sessions[:at] == unbroken.sessions[:at]
    assert agent.sessions[at:] == unbroken.sessions[at - 1 :]
    assert scores(audited) == scores(expected)
    assert audited.decision.core == expected.decision.core


def test_ctrl_c_waits_for_the_session_and_changes_nothing_of_the_bundle(
    whole: tuple[Stopping, Audited], tmp_path: Path
) -> None:
    def act(packet: Mapping[str, Any]) -> tuple[Any, Any]:
        sessions.append(packet["draw"])
        if len(sessions) == 9:
            signal.raise_signal(signal.SIGINT)
        return harness_policy(packet)

    sessions: list[str] = []
    agent = InProcess(act=act, isolation=ISOLATED)
    with pytest.raises(KeyboardInterrupt):
        certify(settings(agent=agent), tmp_path / "cut")
    assert len(sessions) == 9
    assert certify(settings(agent=agent), tmp_path / "cut").bundle_id == whole[1].bundle_id


@dataclass(frozen=True, kw_only=True)
class Away(Stopping):
    """Is not there in its `at`th session, until it is asked again."""

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        try:
            return super().session(packet, files)
        except KeyboardInterrupt:
            raise Stopped("nobody answers; run the same command again") from None


@pytest.mark.parametrize("at", [1, 8, 14])
def test_an_agent_that_is_away_pauses_the_run_and_changes_nothing_of_the_bundle(
    whole: tuple[Stopping, Audited], tmp_path: Path, at: int
) -> None:
    agent = Away(isolation=ISOLATED, at=at, repeats=False)
    with pytest.raises(
        Stopped, match=r"is paused in its turn \d: nobody answers; run the same command again"
    ):
        certify(settings(agent=agent), tmp_path)
    assert "episode_ended" not in [e.event_type for e in read(tmp_path / "ledger.jsonl")[-1:]]
    audited = certify(settings(agent=agent), tmp_path)
    assert agent.sessions[:at] + agent.sessions[at + 1 :] == whole[0].sessions
    assert audited.bundle_id == whole[1].bundle_id


def test_a_kill_after_a_pause_is_a_session_cut_short(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        certify(settings(agent=Away(isolation=ISOLATED, at=8, repeats=False)), tmp_path)
    with pytest.raises(KeyboardInterrupt):  # asked again, and killed while it may have been answered
        certify(settings(agent=Stopping(isolation=ISOLATED, at=1, repeats=False)), tmp_path)
    audited = certify(settings(agent=Stopping(isolation=ISOLATED, repeats=False)), tmp_path)
    outcomes = [c["outcome"] for c in payload(audited, "gate2")["controls"]]
    assert outcomes == ["unresolved", "artifact"]


def test_pauses_that_are_no_pauses_are_tampered(tmp_path: Path) -> None:
    with pytest.raises(Stopped):
        certify(settings(agent=Away(isolation=ISOLATED, at=2)), tmp_path)
    (tmp_path / "pauses.jsonl").write_text('{"event_hash":1}\n')
    with pytest.raises(Tampered, match=r"pauses.jsonl holds a line that is no pause"):
        certify(settings(), tmp_path)


def test_a_session_that_may_not_be_repeated_leaves_its_episode_unresolved(tmp_path: Path) -> None:
    agent = stopped(tmp_path, 8, repeats=False)  # the main run takes six, challenger-001 is in its second
    audited = certify(settings(agent=agent), tmp_path)
    outcomes = [c["outcome"] for c in payload(audited, "gate2")["controls"]]
    assert outcomes == ["unresolved", "artifact"]
    assert audited.decision.core.open_class == Open.AUDIT


def test_a_finished_audit_is_not_run_again(tmp_path: Path) -> None:
    first = certify(settings(), tmp_path)
    ledger = (tmp_path / "ledger.jsonl").read_bytes()
    agent = Stopping(isolation=ISOLATED)
    assert certify(settings(agent=agent), tmp_path).bundle_id == first.bundle_id
    assert agent.sessions == []
    assert (tmp_path / "ledger.jsonl").read_bytes() == ledger


def test_another_bundle_in_the_way_is_named(tmp_path: Path) -> None:
    audited = certify(settings(), tmp_path)
    manifest = audited.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace(audited.bundle_id, f"sha256:{'0' * 64}"))
    with pytest.raises(Tampered, match="not the bundle of this run"):
        certify(settings(), tmp_path)


def test_one_clock_and_one_secret_give_one_bundle(catalyst: Audited, tmp_path: Path) -> None:
    assert certify(settings("catalyst"), tmp_path).bundle_id == catalyst.bundle_id


@pytest.mark.parametrize(
    "other",
    [{"budget": replace(SMALL, challengers=4)}, {"secret": b"8" * 32}, {"task": "knapsack"},
     {"attest_isolation": False, "isolation_reason": "doubt"}, {"agent": InProcess(identity="another")}],
    ids=["budget", "secret", "task", "isolation", "agent"],
)  # fmt: skip
def test_a_folder_goes_on_with_its_own_settings_only(tmp_path: Path, other: dict[str, Any]) -> None:
    stopped(tmp_path, 3)
    with pytest.raises(OutOfOrder, match="start"):
        certify(settings(**other), tmp_path)


def test_a_ledger_changed_between_two_runs_is_tampered(tmp_path: Path) -> None:
    stopped(tmp_path, 9)
    path = tmp_path / "ledger.jsonl"
    path.write_text(path.read_text().replace('"outcome":"artifact"', '"outcome":"model_failure"', 1))
    with pytest.raises(Tampered):
        certify(settings(), tmp_path)


@pytest.mark.parametrize("other", [{"task": "chess"}, {"budget": "huge"}], ids=["task", "budget"])
def test_a_name_that_nothing_has_is_refused_and_the_names_are_told(tmp_path: Path, other: Any) -> None:
    with pytest.raises(BadConfig, match=r"device|quick"):
        certify(settings(**other), tmp_path / "run")
    assert not (tmp_path / "run").exists()


# -- the web


def test_what_the_main_run_read_is_whole_in_every_challengers_hands(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as site:
        site.seen = []  # type: ignore[attr-defined]
        thread = threading.Thread(target=site.serve_forever, daemon=True)
        thread.start()
        page = f"http://127.0.0.1:{site.server_port}/page"
        told: list[Any] = []

        def act(packet: Mapping[str, Any]) -> tuple[Any, Any]:
            told.append((packet["sites"], packet["web"]))
            return harness_policy(packet)

        allowed = Limits(hosts=frozenset({"127.0.0.1"}), loopback=True)
        agent = InProcess(act=act, isolation=ISOLATED)
        budget = Budget(challengers=2, positive_controls=1, feedback_pairs=2, null_pairs=2)
        audited = certify(settings("sqlite", budget, agent=agent, sites=(page,), web=allowed), tmp_path)
        site.shutdown()
        thread.join()
    assert len(site.seen) == 1  # type: ignore[attr-defined]
    integrity = payload(audited, "integrity")
    assert (integrity["web_access_used"], integrity["web_replay_scope"]) == (
        True, "observed_request_response_frozen",
    )  # fmt: skip
    challengers = [web for sites, web in told if not sites and web]
    assert challengers
    assert all(web[0]["text"] == "Partial indexes\ncover & speed" for web in challengers)
    assert (tmp_path / "web" / "objects").is_dir()
    assert HTML in [p.read_bytes() for p in (tmp_path / "web" / "objects").iterdir()]
    assert audited.decision.findings.core == audited.decision.findings.gate3 == ()


READER = """
import json
packet = json.load(open(".dcp/packet.json"))
actions = [turn["action"] for turn in packet["history"]]
shown = [turn["observation"].get("text") for turn in packet["history"] if turn["action"] == "web_fetch"]
texts = [text for text in shown if text] + [page["text"] for page in packet["web"]]
action = {"action": "finish", "payload": {}}
if packet["sites"] and not actions:
    action = {"action": "web_fetch", "payload": {"url": packet["sites"][0]}}
elif packet["sites"] and "experiment" not in actions:
    action = {"action": "experiment", "payload": {"controls": ["c00"]}}
elif packet["web"] and len(actions) < 2:
    url = packet["web"][0]["url"] + ("?page=2" if actions else "")
    action = {"action": "web_fetch", "payload": {"url": url}}
if texts:
    json.dump({"gains": json.loads(texts[0])}, open("candidate.json", "w"))
json.dump({"schema": "dcp_action_v1", **action}, open(".dcp/action.json", "w"))
"""


@dataclass(frozen=True, kw_only=True)
class Read:
    """An audit whose agent took its artifact from a page; and what the site was asked for."""

    audited: Audited
    page: str
    text: str
    seen: list[str]


def read_a_page(to: Path) -> Read:
    """The page tells every gain, so that nothing is left to be found by experiment."""
    told = settings("device", Budget(challengers=2, positive_controls=1))
    sealed = tasks.BUILD["device"](harness._key(b"7" * 32, "instances"), "main").answer()["gains"]
    (to / "reader.py").write_text(READER)
    text = json.dumps(sealed, indent=1)
    with website({"/gains": text}) as site:
        page = f"{site.url}/gains"
        agent = Script(path=to / "reader.py")
        told = replace(
            told, agent=agent, sites=(page,), web=limits([page]), attest_isolation=True,
            isolation_reason="a test: its code is above",
        )  # fmt: skip
        audited = certify(told, to / "run")
    return Read(audited=audited, page=page, text=text, seen=site.seen)


def test_a_page_that_tells_the_answer_is_replayed_to_challengers_and_refutes_the_claim(
    tmp_path: Path,
) -> None:
    run = read_a_page(tmp_path)
    assert run.seen == ["/gains"]
    assert run.audited.decision.core.verdict == Verdict.REFUTED
    assert run.audited.decision.findings.core == ()
    events = read(tmp_path / "run" / "ledger.jsonl")
    for label in ("challenger-001", "challenger-002"):
        mine = [e.payload for e in events if e.payload.get("episode") == label]
        replayed, other = (e["observation"] for e in mine if "observation" in e)
        assert (replayed["status"], replayed["url"], replayed["text"]) == ("fetched", run.page, run.text)
        assert other == {"status": "refused", "reason": "this address is not in the snapshot"}
    integrity, registration = payload(run.audited, "integrity"), payload(run.audited, "registration")
    kept = json.loads((tmp_path / "run" / "web" / "snapshot.json").read_text())
    wobs = Snapshot(pages=tuple(record_of(row, Page, "snapshot.json") for row in kept)).digest
    assert integrity["observed_web_manifest_hash"] == wobs != Snapshot().digest
    assert integrity["web_replay_scope"] == "observed_request_response_frozen"
    assert registration["recovery_stratum"] == "matched-web-privileged"
    assert "other addresses are refused" in registration["notes"]["gate2_web"]
    assert_both_accept(run.audited)


def test_a_page_that_is_replayed_with_another_byte_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from predictive_credit.certification import episodes  # noqa: PLC0415  # the module is patched

    deliver, page = episodes._answer, episodes._page

    def answer(episode: Episode, *rest: Any) -> None:
        if episode.label == "challenger-001":
            monkeypatch.setattr(episodes, "_page", lambda *given: {**page(*given), "text": "{}"})
        deliver(episode, *rest)
        monkeypatch.setattr(episodes, "_page", page)

    monkeypatch.setattr(episodes, "_answer", answer)
    assert "challenger_contract_pass not attested" in read_a_page(tmp_path).audited.decision.findings.core


def test_more_pages_than_an_episode_has_turns_for_are_refused(tmp_path: Path) -> None:
    pages = tuple(f"https://docs.example/{k}" for k in range(3))
    with pytest.raises(BadConfig, match=r"3 pages were given, and beside its experiments .* has turns for 2"):
        certify(settings(sites=pages, web=limits(pages)), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def assert_both_accept(audited: Audited) -> None:
    """Our verifier to the last digit, and dcp-audit, with one verdict."""
    report = verify(audited.folder)
    assert report.ok
    assert report.levels.exact
    other = pytest.importorskip("dcp.bundle", reason="dcp-audit is not installed")
    theirs = other.verify_bundle(audited.folder)
    assert theirs["ok"], theirs["errors"]
    assert theirs["replayed_verdict"] == report.replayed_verdict


# -- pairs that infrastructure takes

PAIRS = Budget(challengers=2, positive_controls=1, feedback_pairs=10, null_pairs=10)


@dataclass(frozen=True, kw_only=True)
class Losing(InProcess):
    """Gets no answer in the first session of the episodes called so."""

    lost: frozenset[str] = frozenset()

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        if packet["draw"] in {draw(harness._key(b"7" * 32, "nonce"), label) for label in self.lost}:
            return Turn(files=files, failure=Outcome.INFRASTRUCTURE, reason="no answer")
        return super().session(packet, files)


def losing(to: Path, *labels: str, budget: Budget = PAIRS) -> Audited:
    return certify(settings("sqlite", budget, agent=Losing(isolation=ISOLATED, lost=frozenset(labels))), to)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_pair_that_infrastructure_took_is_replaced_and_stays_listed(tmp_path: Path) -> None:
    audited = losing(tmp_path, "pair-004-neutral", "null-010-reference_null")
    registration, gate3 = payload(audited, "registration"), payload(audited, "gate3")
    assert registration["gate3_pair_replacement_policy"] == "preaction_transport_pair_replacement_v1"
    assert registration["m_max"] == 2 + 2 * 11
    for part, name, first in ((gate3, "pair-004", 3), (gate3["sham"], "null-010", 9)):
        assert (part["started_pair_count"], part["no_pair_replacements"]) == (11, False)
        lost, again = part["pairs"][first : first + 2]
        assert (lost["pair_id"], lost["replacement_of"]) == (name, "")
        assert (again["pair_id"], again["replacement_of"]) == (f"{name}-again-1", name)
    assert gate3["pairs"][3]["truthful"]["outcome"] == "artifact"  # its twin was played all the same
    assert gate3["pairs"][3]["neutral"]["infrastructure_outcome_independent"] is True
    found = audited.decision.gate3
    assert found is not None
    assert [p.use for p in found.pairs].count(Use.ANALYZED) == 10
    assert [p.use for p in found.pairs].count(Use.REPLACED) == 1
    counts = open_audit(audited.folder).counts()
    assert {name: n for name, n in counts.items() if "pairs lost" in name} == {
        "feedback pairs lost, neutral arm": 1, "null pairs lost, reference null arm": 1,
    }  # fmt: skip
    assert audited.decision.findings.core == audited.decision.findings.gate3 == ()
    assert_both_accept(audited)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_no_more_pairs_are_replaced_than_were_registered(tmp_path: Path) -> None:
    audited = losing(tmp_path, "pair-002-truthful", "pair-002-again-1-neutral", "pair-005-neutral")
    pairs = payload(audited, "gate3")["pairs"]
    assert [p["pair_id"] for p in pairs if p["replacement_of"]] == ["pair-002-again-1"]
    found = audited.decision.gate3
    assert found is not None
    assert [p.use for p in found.pairs].count(Use.EXCLUDED) == 2
    assert found.effect == "inconclusive"
    assert audited.decision.findings.gate3 == ()
    assert_both_accept(audited)


def test_a_task_that_registers_no_replacement_replaces_no_pair(tmp_path: Path) -> None:
    agent = Losing(isolation=ISOLATED, lost=frozenset({"pair-002-neutral"}))
    audited = certify(settings("catalyst", agent=agent), tmp_path)
    assert payload(audited, "registration")["gate3_pair_replacement_policy"] == "none"
    assert [p["pair_id"] for p in payload(audited, "gate3")["pairs"]] == ["pair-001", "pair-002"]
    assert_both_accept(audited)


@pytest.mark.parametrize(("of", "allowed"), [("full", (3, 6)), ("quick", (0, 0))])
def test_the_event_service_registers_the_published_replacements(of: str, allowed: tuple[int, int]) -> None:
    plan = settings("sqlite", budget=getattr(tasks.DESIGNS["sqlite"], of)).plan()
    assert plan.replacements == allowed
    made = contracts.registration(plan, contracts.contracts(plan, tasks.BUILD["sqlite"](b"s", "main")), "r")
    assert (made.max_feedback_pair_replacements, made.max_sham_pair_replacements) == allowed
    assert made.m_max == {"full": 162, "quick": 12}[of]


def test_our_instances_bear_names_of_their_own(catalyst: Audited) -> None:
    names = {design.profile for design in tasks.DESIGNS.values()}
    assert not names & {design.formerly for design in tasks.DESIGNS.values()}
    assert payload(catalyst, "registration")["task_family_profile"] == "predictive_credit_catalyst_recipe_v1"
    assert_both_accept(catalyst)
