"""Agents learn what they are told and no more; a failed session is named for what it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.certification import searchers, tasks
from predictive_credit.certification.agents import Asked, InProcess, Script, Unavailable, prompt_of
from predictive_credit.certification.episodes import Episode, replay, run
from predictive_credit.certification.episodes import packet as packet_of
from predictive_credit.certification.ledger import Ledger
from predictive_credit.certification.records import Outcome
from predictive_credit.certification.tasks.task import Channel

SECRET = b"s" * 32
FEEDBACK_TASKS = ("sqlite", "catalyst", "device")


def episode(name: str, channel: Channel, label: str = "main") -> Episode:
    task = tasks.BUILD[name](SECRET, "main")
    return Episode(label=label, role="test", task=task, channel=channel, contract="c")


def packet(name: str) -> dict[str, Any]:
    one = episode(name, Channel.TRUTHFUL)
    return packet_of(one, replay(one, ()), "ab" * 32)


def play(name: str, channel: Channel, tmp_path: Path, **told: Any) -> Any:
    with Ledger(tmp_path / f"{channel}.jsonl") as ledger:
        return run(episode(name, channel), InProcess(**told), ledger, b"nonce")


def mean(name: str, artifact: Any) -> float:
    scores = tasks.BUILD[name](SECRET, "main").score(artifact)
    return sum(scores) / len(scores)


def script(tmp_path: Path, text: str) -> Script:
    path = tmp_path / "agent.py"
    path.write_text(text)
    return Script(path=path, timeout=20)


@pytest.mark.parametrize("name", FEEDBACK_TASKS)
def test_the_searcher_finds_the_answer_with_truthful_feedback(name: str, tmp_path: Path) -> None:
    result = play(name, Channel.TRUTHFUL, tmp_path)
    best = mean(name, tasks.BUILD[name](SECRET, "main").answer())
    assert mean(name, result.artifact) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("channel", [Channel.NEUTRAL, Channel.WITHHELD], ids=str)
@pytest.mark.parametrize("name", FEEDBACK_TASKS)
def test_the_searcher_guesses_without_it(name: str, channel: Channel, tmp_path: Path) -> None:
    result = play(name, channel, tmp_path)
    assert result.outcome == Outcome.ARTIFACT
    assert len(result.turns) == 1  # one experiment shows that answers tell nothing
    assert mean(name, result.artifact) < 0.87


@pytest.mark.parametrize("name", tasks.BUILD)
def test_the_script_in_its_process_acts_as_the_function_does(name: str) -> None:
    told = packet(name)
    apart, here = Script().session(told, {}), InProcess().session(told, {})
    assert apart.failure is None
    assert json.loads(str(apart.action)) == json.loads(str(here.action))
    candidate = str(searchers.CANDIDATE)
    assert json.loads(apart.files[candidate]) == json.loads(here.files[candidate])


@pytest.mark.parametrize(
    "text",
    [
        "open({secret!r}).read()",
        "import os; os.listdir({folder!r})",
        "import socket; socket.socket().connect(('127.0.0.1', 9))",
        "import subprocess; subprocess.run(['ls'])",
        "open({outside!r}, 'w')",
        "import predictive_credit",
    ],
    ids=["read", "list", "network", "process", "write", "package"],
)
def test_a_script_cannot_leave_its_directory(tmp_path: Path, text: str) -> None:
    secret, outside = tmp_path / "secret", tmp_path / "outside"
    secret.write_text("sealed")
    code = text.format(secret=str(secret), folder=str(tmp_path), outside=str(outside))
    turn = script(tmp_path, code).session(packet("device"), {})
    assert turn.failure == Outcome.MODEL_FAILURE
    assert turn.reason == "exit status 1"
    assert not outside.exists()


def test_a_script_has_no_environment_and_only_the_public_packet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRIVATE_KEY", "sealed")
    seen = "import os, json; json.dump([dict(os.environ), sorted(os.listdir('.'))], open('seen.json', 'w'))"
    turn = script(tmp_path, seen).session(packet("device"), {"notes.txt": "kept"})
    environment, files = json.loads(turn.files["seen.json"])
    assert "PRIVATE_KEY" not in environment
    assert files == [".dcp", "notes.txt"]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("open('.dcp/other', 'w').close()", Outcome.MODEL_FAILURE),
        ("open('.dcp/packet.json', 'w').close()", Outcome.VIOLATION),
        ("open('candidate.json', 'w').write('x' * 200_000)", Outcome.VIOLATION),
        ("open('candidate.json', 'wb').write(b'\\xff')", Outcome.VIOLATION),
        ("raise SystemExit(3)", Outcome.MODEL_FAILURE),
        ("", None),
    ],
    ids=["extra file", "packet changed", "too large", "no text", "exit status", "no action"],
)
def test_what_a_session_leaves_is_judged(tmp_path: Path, text: str, failure: Outcome | None) -> None:
    turn = script(tmp_path, text).session(packet("device"), {})
    assert turn.failure == failure
    assert turn.action is None


def test_a_script_that_does_not_end_is_a_model_failure(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("while True: pass")
    turn = Script(path=tmp_path / "agent.py", timeout=0.5).session(packet("device"), {})
    assert (turn.failure, turn.reason) == (Outcome.MODEL_FAILURE, "out of time")


def test_isolation_is_vouched_for_in_our_own_script_only(tmp_path: Path) -> None:
    assert Script().isolation[0]
    for agent in (script(tmp_path, ""), InProcess(), asked("")):
        assert not agent.isolation[0]


def asked(reply: str) -> Asked:
    return Asked(ask=lambda prompt: reply, identity="model")


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "\n {} \n"], ids=["plain", "fenced", "blanks"])
def test_a_reply_that_is_one_json_object_is_an_action(fence: str) -> None:
    said = '{"action":"experiment","payload":{"controls":["c01"]},"candidate":{"gains":{}}}'
    turn = asked(fence.replace("{}", said)).session(packet("device"), {})
    assert turn.action is not None
    assert json.loads(turn.action)["payload"] == {"controls": ["c01"]}
    assert json.loads(turn.files["candidate.json"]) == {"gains": {}}


@pytest.mark.parametrize(
    "reply",
    ["", "I would finish.", '{"action":"finish"} and more', '{"action":"run"}', '{"action":"finish","x":1}',
     '{"action":"finish","action":"finish"}', '{"action":"finish","candidate":NaN}', "[]"],
    ids=["empty", "prose", "more", "action", "key", "twice", "nan", "list"],
)  # fmt: skip
def test_an_unreadable_reply_is_the_models_failure(reply: str) -> None:
    turn = asked(reply).session(packet("device"), {})
    assert turn.failure == Outcome.MODEL_FAILURE
    assert turn.reason.startswith("unreadable")


def test_a_model_out_of_reach_is_infrastructure_before_its_first_action_only(tmp_path: Path) -> None:
    replies = iter(['{"action":"experiment","payload":{"controls":["c01"]}}'])

    def ask(prompt: str) -> str:
        try:
            return next(replies)
        except StopIteration:
            raise Unavailable("down") from None

    agent = Asked(ask=ask, identity="model")
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        after = run(episode("device", Channel.TRUTHFUL, "one"), agent, ledger, b"n")
        before = run(episode("device", Channel.TRUTHFUL, "two"), agent, ledger, b"n")
    assert (after.outcome, before.outcome) == (Outcome.MODEL_FAILURE, Outcome.INFRASTRUCTURE)


@pytest.mark.parametrize("name", tasks.BUILD)
def test_a_prompt_tells_the_public_text_the_history_and_the_form_of_an_answer(name: str) -> None:
    told = packet(name) | {
        "sites": ["https://docs.example/"],
        "history": [{"action": "experiment", "payload": {}, "observation": {"x": "seen"}}],
    }
    prompt = prompt_of(told, {"schema.sql": "CREATE"})
    parts = (told["background"]["text"], '"seen"', "CREATE", "https://docs.example/", "one JSON object")
    for part in parts:
        assert part in prompt
    assert told["draw"] not in prompt
    assert prompt != prompt_of(told | {"draw": "cd" * 32}, {"schema.sql": "CREATE"})
