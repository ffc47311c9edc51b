"""Sessions of the Claude command line, with a stand-in that says what the command said when it was tried."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig, Stopped
from predictive_credit.journal import Journal
from predictive_credit.models import asking
from predictive_credit.models.claude_cli import MAX_LINE, ClaudeCliSession
from predictive_credit.models.provider import Rejected, Trouble
from predictive_credit.records import Prompt, Reply
from predictive_credit.studies import params as study_params

# The model's name says how it behaves. It notes how it was called, and by whom.
STAND_IN = r"""#!{python} -IS
import json, os, sys, time
arguments = sys.argv[1:]
how = arguments[arguments.index("--model") + 1]
note = dict(arguments=arguments, cwd=os.getcwd(), found=os.listdir("."), environment=dict(os.environ))
note |= dict(user=sys.stdin.buffer.read().decode(), began=time.time(), group=os.getpgid(0))

def noted(**more):
    path = os.path.join({folder!r}, "note-%d.json" % os.getpid())
    with open(path + ".part", "w") as file:
        json.dump(note | more, file)
    os.rename(path + ".part", path)

def say(**event):
    print(json.dumps(event), flush=True)

def stream(type, **part):
    say(type="stream_event", event=dict(part, type=type))

def begin(text, pieces=2):
    usage = dict(input_tokens=10, output_tokens=1, cache_read_input_tokens=3, cache_creation_input_tokens=2)
    stream("message_start", message=dict(model="served-" + how, content=[], usage=usage))
    size = max(1, len(text) // pieces)
    for at in range(0, len(text), size):
        stream("content_block_delta", index=0, delta=dict(type="text_delta", text=text[at:at + size]))

def complete(reason="end_turn"):
    stream("message_delta", delta=dict(stop_reason=reason), usage=dict(output_tokens=5, input_tokens=None))
    stream("message_stop")

def result(is_error=False, said="", status=None, code=0, kind=None, **more):
    if kind:
        say(type="assistant", message=dict(model="<synthetic>"), error=kind)
    noted(ended=time.time())  # now: whoever has its result need not wait for the end
    say(type="result", is_error=is_error, api_error_status=status, result=said, **more)
    sys.exit(code)

def linger(child=""):
    pid = os.fork()
    if pid == 0:
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(30)
        os._exit(0)
    noted(child=pid)
    time.sleep(30)

noted()
tools = ["Bash"] if how == "tools" else []
if how == "silent":
    sys.exit(3)
if how == "old":
    sys.exit("error: unknown option '--tools'")
say(type="system", subtype="init", tools=tools, mcp_servers=[], claude_code_version="2.1.197")
say(type="system", subtype="status", status="requesting")
if how in ("hello", "slow"):
    time.sleep(0.3 if how == "slow" else 0)
    begin('{{"auc": "half"}}'); complete(); result(said="half", total_cost_usd=0.25)
if how in ("cut", "empty", "refusing"):
    begin("" if how != "cut" else "half an ans")
    complete(dict(cut="max_tokens", refusing="refusal").get(how, "end_turn"))
    time.sleep(0.3)
    begin("the rest"); complete(); noted(again=True); result(said="the rest", total_cost_usd=0.5)
if how == "huge":
    begin("noise " * 100_000, pieces=50); complete(); result(said="noise", total_cost_usd=1.5)
if how == "endless":
    sys.stdout.write("x" * {max_line} * 2); sys.stdout.flush(); linger()
if how == "broken":
    begin("half"); stream("message_stop"); linger()
if how == "twice":
    begin("half"); begin("whole"); complete(); linger()
if how == "hanging":
    linger()
if how == "unfinished":
    begin("whole"); complete(); linger()
if how == "garbage":
    print("<html>proxy {key}</html>"); print("[1, 2"); print("7"); sys.exit(0)
if how == "command":
    result(said="Unknown command: /nonesuch", num_turns=0)
if how.startswith("status-"):
    result(True, "API Error: it said {key}", int(how[7:]), code=1, kind="unknown")
if how == "too-long":
    result(True, "Prompt is too long", 400, code=1, kind="invalid_request")
if how.startswith("kind-"):
    result(True, "Something is wrong", code=1, kind=how[5:])
if how.startswith("network-"):
    result(True, "API Error: Unable to connect to API (%s)" % how[8:], code=1, kind="server_error")
if how == "turns":
    say(type="result", is_error=True, errors=["Reached maximum number of turns (1)"]); sys.exit(1)
sys.exit("no such behaviour: " + how)
"""
KEY = "sk-secret-key"


@pytest.fixture
def command(tmp_path: Path) -> Path:
    path = tmp_path / "bin" / "claude"
    path.parent.mkdir()
    script = STAND_IN.format(python=sys.executable, folder=str(tmp_path), max_line=MAX_LINE, key=KEY)
    path.write_text(script, encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def settings(command: Path | str, model: str = "hello", **changed: Any) -> config.ClaudeCli:
    values: dict[str, Any] = {
        "kind": "claude_cli", "name": "claude_cli", "model": model, "command": str(command), "key_env": None,
        "concurrency": 2, "deadline_s": 20.0, "max_cost": None,
        "unanswered": "stop", "temperature": None, "top_p": None,
        "max_tokens": 64,
    }  # fmt: skip
    return config.ClaudeCli(**values | changed)


def prompt(user: str = "How much?", seed: int = 1) -> Prompt:
    return Prompt(
        system="You forecast.", user=user, grammar='{"type": "object"}', max_tokens=64, temperature=None,
        top_p=None, seed=seed,
    )  # fmt: skip


def answered(chosen: config.ClaudeCli, user: str = "How much?", *, key: str | None = None, timeout_s=10.0):
    session = ClaudeCliSession(chosen, key=key)
    return asyncio.run(session.answer(prompt(user), timeout_s=timeout_s)).reply


def notes(command: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(command.parent.parent.glob("note-*.json"))]


def note(command: Path) -> dict[str, Any]:
    (only,) = notes(command)
    return only


def is_gone(pid: int) -> bool:
    """Whether a process that was killed is gone, or soon is: a busy machine takes its time."""
    for _ in range(200):
        if not is_running(pid):
            return True
        time.sleep(0.05)
    return False


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_reply_holds_what_the_command_said_of_it(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    reply = answered(settings(command))
    assert reply.latency_s is not None
    assert 0 < reply.latency_s < 5
    assert replace(reply, latency_s=None) == Reply(
        text='{"auc": "half"}', finish_reason="stop", model_requested="hello", model_resolved="served-hello",
        prompt_tokens=15, cached_tokens=3, completion_tokens=5, cost_usd=0.25, endpoint="Claude CLI 2.1.197",
    )  # fmt: skip


def test_the_endpoint_says_where_the_command_asked_but_no_password(
    command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://me:hidden@gateway.example/v1")
    assert answered(settings(command)).endpoint == "Claude CLI 2.1.197 at https://gateway.example/v1"


def test_a_session_has_our_system_prompt_and_nothing_else_to_work_with(command: Path) -> None:
    answered(settings(command))
    given = note(command)["arguments"]
    assert given[:4] == ["--print", "--output-format", "stream-json", "--verbose"]
    for flag, value in {
        "--tools": "", "--setting-sources": "", "--max-turns": "1", "--model": "hello",
        "--system-prompt": "You forecast.",
    }.items():  # fmt: skip
        assert given[given.index(flag) + 1] == value
    assert {"--strict-mcp-config", "--disable-slash-commands", "--no-session-persistence"} <= set(given)
    assert not {"--append-system-prompt", "--mcp-config", "--continue", "--resume", "--add-dir"} & set(given)
    assert "How much?" not in " ".join(given)
    assert note(command)["user"] == "How much?"


def test_a_session_works_in_an_empty_folder_outside_the_project_which_is_gone_afterwards(
    command: Path,
) -> None:
    answered(settings(command))
    where = Path(note(command)["cwd"])
    assert note(command)["found"] == []
    assert where.is_relative_to(Path(tempfile.gettempdir()).resolve())
    assert not where.is_relative_to(Path.cwd())
    assert not where.parent.exists()


def test_with_a_key_a_session_sees_that_one_secret_and_an_empty_home(
    command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTHER_API_KEY", "ANTHROPIC_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "MY_KEY"):
        monkeypatch.setenv(name, f"secret of {name}")
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    answered(settings(command, key_env="MY_KEY"), key=KEY)
    seen = note(command)["environment"]
    assert [name for name, value in seen.items() if "secret" in value] == ["ANTHROPIC_API_KEY"]
    assert seen["ANTHROPIC_API_KEY"] == KEY
    assert seen["https_proxy"] == "http://proxy.example"
    assert seen["HOME"] == seen["CLAUDE_CONFIG_DIR"] != os.environ["HOME"]
    assert Path(seen["HOME"]).parent == Path(note(command)["cwd"]).parent
    assert seen["CLAUDE_CODE_MAX_OUTPUT_TOKENS"] == "64"
    assert seen["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"


def test_a_token_of_the_commands_own_keeps_its_name(command: Path) -> None:
    answered(settings(command, key_env="CLAUDE_CODE_OAUTH_TOKEN"), key=KEY)
    seen = note(command)["environment"]
    assert [name for name, value in seen.items() if value == KEY] == ["CLAUDE_CODE_OAUTH_TOKEN"]


def test_without_a_key_a_session_finds_the_users_login_and_no_key(
    command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/home/someone/.config/claude")
    answered(settings(command))
    seen = note(command)["environment"]
    assert seen["HOME"] == os.environ["HOME"]
    assert seen["CLAUDE_CONFIG_DIR"] == "/home/someone/.config/claude"
    assert KEY not in seen.values()


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ("/cost", " /cost"),
        ("see @/etc/passwd", "see @ /etc/passwd"),
        ('@"a file"\n@~/key。@x', '@ "a file"\n@ ~/key。@ x'),
        ("precision@10, a @ b / c", "precision@10, a @ b / c"),
        ("Größe µ 🙂\nline", "Größe µ 🙂\nline"),
    ],
    ids=["slash", "path", "quoted", "words", "unicode"],
)
def test_nothing_in_a_prompt_is_a_command_or_a_file(command: Path, user: str, sent: str) -> None:
    answered(settings(command), user)
    assert note(command)["user"] == sent


@pytest.mark.parametrize(
    ("how", "text", "finish_reason"),
    [("cut", "half an ans", "length"), ("empty", "", "stop"), ("refusing", "", "refusal")],
)
def test_the_first_answer_stands_and_no_second_is_waited_for(
    command: Path, how: str, text: str, finish_reason: str
) -> None:
    reply = answered(settings(command, how))
    assert (reply.text, reply.finish_reason) == (text, finish_reason)
    assert (reply.prompt_tokens, reply.completion_tokens) == (15, 5)
    assert reply.cost_usd is None
    assert "again" not in note(command)


def test_a_huge_answer_comes_back_whole(command: Path) -> None:
    assert answered(settings(command, "huge")).text == "noise " * 100_000


def test_an_answer_that_came_is_the_reply_even_if_the_command_then_hangs(command: Path) -> None:
    reply = answered(settings(command, "unfinished"), timeout_s=2)
    assert (reply.text, reply.finish_reason, reply.cost_usd) == ("whole", "stop", None)
    assert is_gone(note(command)["child"])


def test_time_out_ends_the_session_and_all_that_it_started(command: Path) -> None:
    with pytest.raises(Trouble, match=r"no answer within 2 s") as caught:
        answered(settings(command, "hanging"), timeout_s=2)
    assert caught.value.is_reached
    seen = note(command)
    assert seen["group"] != os.getpgid(0)
    assert is_gone(seen["child"])  # which had ignored the polite signal
    assert not Path(seen["cwd"]).exists()


def test_cancelling_ends_the_session_too(command: Path) -> None:
    async def run() -> None:
        session = ClaudeCliSession(settings(command, "hanging"), key=None)
        task = asyncio.create_task(session.answer(prompt(), timeout_s=20))
        while not any("child" in seen for seen in notes(command)):
            await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # a second time, while it is ending
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    assert is_gone(note(command)["child"])


@pytest.mark.parametrize(
    ("how", "said", "is_reached"),
    [
        ("broken", "broke off before its end", True),
        ("twice", "began another", True),
        ("endless", "a line of more than 4,194,304 bytes", True),
        ("garbage", r"ended with 0 and no answer; it said: <html>proxy \[secret\]</html>", True),
        ("silent", "ended with 3 and no answer; it said: nothing", True),
        ("command", "answered by itself, without the model: Unknown command", True),
        ("turns", "maximum number of turns", True),
        ("status-408", r"API Error: it said \[secret\]", True),
        ("status-429", "API Error", True),
        ("status-500", "API Error", True),
        ("status-529", "API Error", True),
        ("kind-rate_limit", "Something is wrong", True),
        ("kind-unknown", "Something is wrong", True),
        ("network-ConnectionRefused", "ConnectionRefused", False),
        ("network-FailedToOpenSocket", "FailedToOpenSocket", False),
        ("network-ECONNRESET", "ECONNRESET", True),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_may_pass_is_trouble(command: Path, how: str, said: str, is_reached: bool) -> None:
    with pytest.raises(Trouble, match=said) as caught:
        answered(settings(command, how, key_env="MY_KEY"), key=KEY)
    assert caught.value.is_reached is is_reached
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("status-400", r"claude_cli \(status-400, by the command .*\): API Error: it said \[secret\]$"),
        ("status-401", r"\[secret\]; check the key in MY_KEY"),
        ("status-403", "check the key in MY_KEY"),
        ("status-404", "API Error"),
        ("kind-authentication_failed", "Something is wrong; check the key"),
        ("kind-billing_error", "Something is wrong$"),
        ("kind-model_not_found", "Something is wrong$"),
        ("tools", "offers the model 1 tools or servers although none may be offered, the first Bash"),
        ("old", r"too old, or too new, .*unknown option '--tools'\); update it"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_will_not_pass_is_rejected_in_the_commands_own_words(command: Path, how: str, said: str) -> None:
    with pytest.raises(Rejected, match=said) as caught:
        answered(settings(command, how, key_env="MY_KEY"), key=KEY)
    assert KEY not in str(caught.value)


def test_without_a_login_the_user_is_told_to_log_in(command: Path) -> None:
    with pytest.raises(Rejected, match="log in with the command, or name the variable"):
        answered(settings(command, "kind-authentication_failed"))


def test_a_prompt_that_is_too_long_fails_alone(command: Path) -> None:
    reply = answered(settings(command, "too-long"))
    assert (reply.text, reply.finish_reason) == ("", "error: Prompt is too long")


def test_a_command_that_is_not_there_is_one_sentence_that_says_how_to_get_it() -> None:
    with pytest.raises(
        BadConfig, match=r"'no-such-claude' is not installed.*npm install.*or set `command` to where"
    ):
        ClaudeCliSession(settings("no-such-claude"), key=None)


def test_a_command_that_cannot_be_started_is_rejected(command: Path) -> None:
    session = ClaudeCliSession(settings(command), key=None)
    command.unlink()
    with pytest.raises(Rejected, match="cannot be started: No such file"):
        asyncio.run(session.answer(prompt(), timeout_s=5))


@pytest.mark.parametrize("setting", ["temperature", "top_p"])
def test_sampling_settings_are_refused_since_the_command_takes_none(command: Path, setting: str) -> None:
    changed: dict[str, Any] = {setting: 0.5}
    with pytest.raises(BadConfig, match=f"{setting} is 0.5, and the Claude command line takes none"):
        ClaudeCliSession(settings(command, **changed), key=None)


@pytest.mark.parametrize("group", ["forecaster", "agent"])
def test_the_shipped_configuration_can_be_used(command: Path, root: Path, group: str) -> None:
    params = study_params.parse(compose.compose(root, [f"{group}=claude_cli"]))
    chosen = getattr(params, group)
    assert isinstance(chosen, config.ClaudeCli)
    session = ClaudeCliSession(replace(chosen, command=str(command)), key=None)
    assert (session.name, session.settings.model) == ("claude_cli", "claude-sonnet-5-5")


def test_a_command_is_found_from_a_relative_path(command: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(command.parent)
    assert answered(settings("./claude")).text


def test_units_are_asked_two_at_a_time_and_journalled(command: Path, tmp_path: Path) -> None:
    asked = [(f"u{n}", prompt(f"How much? {n}", seed=n)) for n in range(5)]
    session = ClaudeCliSession(settings(command, "slow"), key=None)
    with Journal(tmp_path / "replies.jsonl", {"model": "slow"}) as journal:
        replies = asking.ask(asked, session, journal)
    assert list(replies) == [unit_id for unit_id, _ in asked]
    assert {(reply.text, reply.attempts, reply.cost_usd) for reply in replies.values()} == {
        ('{"auc": "half"}', 1, 0.25)
    }
    edges = [(seen["began"], 1) for seen in notes(command)] + [(seen["ended"], -1) for seen in notes(command)]
    running = [sum(step for _, step in sorted(edges)[: n + 1]) for n in range(len(edges))]
    assert max(running) == 2
    assert len(notes(command)) == 5


def test_a_rejection_ends_asking_with_nothing_recorded(command: Path, tmp_path: Path) -> None:
    session = ClaudeCliSession(settings(command, "status-401"), key=None)
    with Journal(tmp_path / "replies.jsonl", {}) as journal, pytest.raises(Stopped, match="log in with"):
        asking.ask([("u", prompt())], session, journal)
    assert (tmp_path / "replies.jsonl").read_bytes() == b""
