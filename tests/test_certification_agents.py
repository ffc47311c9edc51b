"""Agents learn what they are told and no more; a failed session is named for what it was."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import canonical
from predictive_credit.certification import searchers, tasks
from predictive_credit.certification.agents import Asked, InProcess, Script, Unavailable, form, prompt_of
from predictive_credit.certification.episodes import Episode, replay, run
from predictive_credit.certification.episodes import packet as packet_of
from predictive_credit.certification.ledger import Ledger
from predictive_credit.certification.records import Outcome
from predictive_credit.certification.tasks.task import Channel
from predictive_credit.records import Reply

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
        "import os; os.listdir({folder!r}.encode())",
        "import os, pathlib; os.scandir(pathlib.Path({folder!r}))",
        "import socket; socket.socket().connect(('127.0.0.1', 9))",
        "import subprocess; subprocess.run(['ls'])",
        "open({outside!r}, 'w')",
        "import predictive_credit",
        "import os; os.mkdir({outside!r})",
        "import os; os.link({secret!r}, {outside!r})",
        "import os; os.symlink({secret!r}, {outside!r})",
        "import os; os.symlink({secret!r}, 'inside')",
        "import os; os.rename({secret!r}, {outside!r})",
        "import os; os.replace({secret!r}, {outside!r})",
        "import os; os.remove({secret!r})",
        "import os; os.unlink({secret!r})",
        "import os; os.rmdir({folder!r})",
        "import os; os.chmod({secret!r}, 0)",
        "import os; os.truncate({secret!r}, 0)",
        "import os; os.utime({secret!r}, (0, 0))",
        "import os; os.getxattr({secret!r}, 'user.x')",
        "import os; os.setxattr({secret!r}, 'user.x', b'1')",
        "import os; os.chdir({folder!r})",
        "import sqlite3; sqlite3.connect({outside!r})",
        "import tempfile; tempfile.mkdtemp(dir={folder!r})",
        "import multiprocessing.util",
        "import _posixsubprocess",
        "from _posixshmem import shm_open",
        "import importlib; importlib.import_module('_multiprocessing')",
        "import mmap",
        "import os; os.open('os.py', os.O_RDWR, dir_fd=os.open(os.path.dirname(os.__file__), os.O_RDONLY))",
        "import os; os.open('inside', os.O_RDWR | os.O_CREAT, dir_fd=os.open('.', os.O_RDONLY))",
    ],
)
def test_a_script_cannot_leave_its_directory(tmp_path: Path, text: str) -> None:
    secret, outside = tmp_path / "secret", tmp_path / "outside"
    secret.write_text("sealed")
    before = secret.stat()
    refused = "\nexcept PermissionError as error:\n    raise SystemExit(7)"
    if "import predictive_credit" in text:  # which no path leads to
        refused = "\nexcept ModuleNotFoundError:\n    raise SystemExit(7)"
    code = (
        "try:\n    " + text.format(secret=str(secret), folder=str(tmp_path), outside=str(outside)) + refused
    )
    turn = script(tmp_path, code).session(packet("device"), {})
    assert turn.failure == Outcome.MODEL_FAILURE
    assert turn.reason == "exit status 7"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agent.py", "secret"]
    after = secret.stat()
    assert (after.st_mode, after.st_mtime_ns, after.st_size) == (
        before.st_mode, before.st_mtime_ns, before.st_size,
    )  # fmt: skip


def test_what_the_interpreter_does_not_announce_passes_and_the_registration_says_so(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("sealed")
    text = f"import os; open('seen', 'w').write(str(os.stat({str(tmp_path / 'secret')!r}).st_size))"
    agent = script(tmp_path, text)
    assert agent.session(packet("device"), {}).files["seen"] == "6"
    assert "stat, readlink and mkfifo, among others, are not" in agent.isolation[1]


def test_a_script_that_no_process_can_be_had_for_is_lost_whatever_it_would_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*given: object, **told: object) -> None:
        raise BlockingIOError("no process")

    monkeypatch.setattr(subprocess, "run", none)
    turn = script(tmp_path, "").session(packet("device"), {"candidate.json": "{}"})
    assert (turn.failure, turn.reason) == (Outcome.INFRASTRUCTURE, "not started: BlockingIOError")
    assert turn.files == {"candidate.json": "{}"}


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


def said(text: str, model: str | None = None) -> Reply:
    return Reply(text=text, finish_reason="stop", model_requested="model", model_resolved=model)


def asked(reply: str) -> Asked:
    return Asked(ask=lambda prompt, form: said(reply, "model-1"), identity="model")


def test_a_models_session_leaves_who_answered_and_how_in_its_receipt() -> None:
    for reply in ('{"action":"finish"}', "Hello!"):
        receipt = asked(reply).session(packet("device"), {}).receipt
        assert (receipt["model"], receipt["finish_reason"]) == ("model-1", "stop")
        assert receipt["reply_hash"] == canonical.digest_bytes(reply.encode())


def test_a_session_that_another_model_answered_breaks_the_contract(tmp_path: Path) -> None:
    models = iter(["model-1", None, "model-2"])

    def ask(prompt: str, form: object) -> Reply:
        return said('{"action":"experiment","payload":{"controls":["c01"]}}', next(models))

    agent = Asked(ask=ask, identity="model")
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        ended = run(episode("device", Channel.TRUTHFUL, "one"), agent, ledger, b"n")
        assert ledger.of("one")[-1].payload["receipt"]["model"] == "model-2"
    assert ended.outcome == Outcome.VIOLATION
    assert ended.reason == "answered by model-2, and the run's first turn by model-1"
    assert len(ended.turns) == 2  # a reply that does not name its model is taken


@pytest.mark.parametrize("fence", ["{}", "```json\n{}\n```", "\n {} \n"], ids=["plain", "fenced", "blanks"])
def test_a_reply_that_is_one_json_object_is_an_action(fence: str) -> None:
    answer = '{"action":"experiment","payload":{"controls":["c01"]},"candidate":{"gains":{}}}'
    turn = asked(fence.replace("{}", answer)).session(packet("device"), {})
    assert turn.action is not None
    assert json.loads(turn.action)["payload"] == {"controls": ["c01"]}
    assert json.loads(turn.files["candidate.json"]) == {"gains": {}}


@pytest.mark.parametrize(
    "reply",
    ["", "I would finish.", '{"action":"finish"} and more', '{"payload":{}}', '{"action":"finish","x":1}',
     '{"action":"finish","action":"finish"}', '{"action":"finish","candidate":NaN}', "[]"],
    ids=["empty", "prose", "more", "none", "key", "twice", "nan", "list"],
)  # fmt: skip
def test_a_reply_that_is_no_answer_is_the_models_failure(reply: str) -> None:
    turn = asked(reply).session(packet("device"), {})
    assert turn.failure == Outcome.MODEL_FAILURE
    assert turn.reason.startswith("unreadable")


@pytest.mark.parametrize(
    "reply",
    ['{"action":"run"}', '{"action":7}', '{"action":"finish","payload":{"a":1}}'],
    ids=["unknown", "number", "payload"],
)  # fmt: skip
def test_a_malformed_action_breaks_the_contract_whoever_gives_it(tmp_path: Path, reply: str) -> None:
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        ended = run(episode("device", Channel.TRUTHFUL, "one"), asked(reply), ledger, b"n")
    assert ended.outcome == Outcome.VIOLATION
    assert ended.reason.startswith("malformed action: ")


def test_a_model_out_of_reach_is_infrastructure_before_its_first_action_only(tmp_path: Path) -> None:
    replies = iter(['{"action":"experiment","payload":{"controls":["c01"]}}'])

    def ask(prompt: str, form: object) -> Reply:
        try:
            return said(next(replies))
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


def made(form: Any, pick: int) -> Any:
    """A value of a JSON Schema as the tasks write theirs: the `pick`th choice, the longest list."""
    if "anyOf" in form:
        return made(form["anyOf"][pick], pick)
    if "const" in form:
        return form["const"]
    if "enum" in form:
        return form["enum"][pick]
    if form["type"] == "array":
        choices = form["items"].get("enum")
        if choices is None:  # objects, told apart by their first key
            (first, *_) = form["items"]["properties"]
            return [made(form["items"], k) | {first: made(form["items"]["properties"][first], k)} for k in
                    range(form["maxItems"])]  # fmt: skip
        return list(choices[pick : pick + max(form["minItems"], 1)])
    return {name: made(value, pick) for name, value in form["properties"].items()}


@pytest.mark.parametrize("pick", [0, 1])
@pytest.mark.parametrize("name", tasks.BUILD)
def test_what_a_tasks_forms_admit_is_an_action_and_a_candidate_that_the_task_reads(
    name: str, pick: int
) -> None:
    task = tasks.BUILD[name](SECRET, "main")
    answer = json.dumps(made(form(name), pick))
    turn = asked(answer).session(packet(name), {})
    assert turn.failure is None
    action = json.loads(str(turn.action))
    assert action["action"] == ("experiment", "finish")[pick]
    task.artifact(json.loads(turn.files["candidate.json"]))
    if pick == 0:
        task.plan(action["payload"])
    else:
        assert action["payload"] == {}


def test_a_form_offers_the_addresses_that_may_be_read_and_the_web_to_nobody_else() -> None:
    told = form("device", ["https://docs.example/"])
    turn = asked(json.dumps(made(told, 0) | made(told["anyOf"][2], 0))).session(packet("device"), {})
    assert json.loads(str(turn.action))["payload"] == {"url": "https://docs.example/"}
    assert "web_fetch" not in json.dumps(form("device"))


@pytest.mark.parametrize("left", [0, 1])
def test_the_form_of_an_answer_offers_an_experiment_only_while_there_are_any_left(left: int) -> None:
    told = packet("device") | {"experiments_left": left, "sites": ["https://docs.example/"]}
    forms: list[Any] = []

    def ask(prompt: str, form: Any) -> Reply:
        forms.append(form)
        return said('{"action":"finish"}')

    Asked(ask=ask, identity="model").session(told, {})
    actions = [one["properties"]["action"]["const"] for one in forms[0]["anyOf"]]
    assert actions == ["experiment"] * left + ["finish", "web_fetch"]


def test_a_sessions_prompt_begins_as_the_one_before_it_did() -> None:
    turn = {"action": "experiment", "payload": {"controls": ["c01"]}, "observation": {"x": "seen"}}
    before = prompt_of(packet("device"), {"candidate.json": "{}"})
    after = prompt_of(packet("device") | {"history": [turn], "experiments_left": 4}, {"candidate.json": "[]"})
    same = next(k for k, (a, b) in enumerate(zip(before, after, strict=False)) if a != b)
    assert before[:same].endswith("Your actions so far and what they showed:\n")
    assert len(before) - same < 250  # characters: files, counters, and the call for an answer
