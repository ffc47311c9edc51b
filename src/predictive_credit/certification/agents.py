"""Who acts in an audit: a script in a process of its own, or a model that is asked with text.

An agent is asked for one action a session. It is told what the packet holds and nothing else, keeps
its candidate in a file, and is started afresh each time, so what it knows is what the ledger shows.
"""

from __future__ import annotations

import json
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from predictive_credit import canonical
from predictive_credit.certification import searchers, tasks
from predictive_credit.certification.records import Outcome
from predictive_credit.certification.tasks.task import LARGEST, Malformed, exact_form, strict_json
from predictive_credit.records import Reply

CHANNEL = ".dcp"  # the folder of a workspace through which actions go
CANDIDATE = str(searchers.CANDIDATE)
FIXED = ("fixed_scientific", "agent_given_fixed_human_input")


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one session left: its action's text, the workspace's files, and how it went."""

    files: Mapping[str, str]
    action: str | None = None
    receipt: Mapping[str, Any] = field(default_factory=dict)
    failure: Outcome | None = None
    reason: str = ""


class Agent(Protocol):
    """Anything that answers a packet with a turn."""

    @property
    def identity(self) -> str:
        """The registered model id."""

    @property
    def interface(self) -> Mapping[str, Any]:
        """How it is asked, digested into the registration."""

    def may_repeat(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> bool:
        """Whether a session cut short may run again, since it could only give the same turn."""

    @property
    def isolation(self) -> tuple[bool, str]:
        """Whether private isolation may be attested without a further word, and on what basis."""

    @property
    def assistance(self) -> tuple[str, str]:
        """What people gave it, and whom a discovery is attributed to, in the format's words."""

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        """One session on a workspace's files. Raises Stopped to pause the run, with nothing drawn."""


class Unavailable(Exception):  # somebody else's trouble: recorded, not raised to a user
    """This one session got no answer and never will, whatever it would have been; others did."""


# -- a script

# Refuses what the interpreter announces of ways out of the session's directory, by its audit events, and
# the modules whose ways out it does not announce. It holds back a script that errs, not one that attacks
# the interpreter: the script is ours, or the user's who runs it. What has no audit event passes: stat,
# access, readlink, statvfs and their like tell whether a file is there, how large it is and where a link
# leads, though not a byte of it, and mkfifo and mknod make an entry wherever the user may. No directory
# is opened: a path beside its descriptor would lead elsewhere than it says.
_GUARD = """
import json, math, os, random, sys
code = compile(sys.stdin.read(), "agent", "exec")
here = os.path.realpath(".")
library = os.path.realpath(os.path.dirname(os.__file__))
others = ("socket.", "subprocess.", "ctypes.", "shutil.", "sqlite3.", "pty.", "fcntl.", "resource.",
          "syslog.", "signal.", "tempfile.")
changes = ("exec", "fork", "spawn", "posix_spawn", "startfile", "system", "kill", "remove", "rename", "rmdir",
           "link", "symlink", "truncate", "chmod", "chown", "chflags", "chdir", "mkdir", "utime", "lockf",
           "getxattr", "listxattr", "setxattr", "removexattr", "putenv", "unsetenv")
refused = others + tuple("os." + name for name in changes)
barred = {"_posixsubprocess", "_posixshmem", "_multiprocessing", "multiprocessing", "subprocess", "_socket",
          "socket", "_ctypes", "ctypes", "_sqlite3", "sqlite3", "mmap", "_interpreters", "_xxsubinterpreters",
          "concurrent", "asyncio", "pty", "termios", "_dbm", "_gdbm", "dbm", "readline"}
def refuse(event, args):
    if event.startswith(refused) or (event == "import" and args[0].partition(".")[0] in barred):
        raise PermissionError(event)
    if event in ("open", "os.listdir", "os.scandir") and not isinstance(args[0], (int, type(None))):
        path = os.path.realpath(os.fsdecode(args[0]))
        if event == "open" and os.path.isdir(path):
            raise PermissionError(event)
        reads = event != "open" or not args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        if not any(path == root or path.startswith(root + os.sep) for root in (here, library)[: 1 + reads]):
            raise PermissionError(event)
sys.addaudithook(refuse)
exec(code, {"__name__": "__main__"})
"""


@dataclass(frozen=True, kw_only=True)
class Script:
    """A Python file run anew for each session: standard library alone, empty environment and directory."""

    path: Path = Path(searchers.__file__)
    timeout: float = 120.0  # seconds of one session

    @property
    def identity(self) -> str:
        """Named by the script's bytes."""
        return f"script:{self.path.stem}:{canonical.digest_file(self.path)[:16]}"

    @property
    def interface(self) -> Mapping[str, Any]:
        """The file channel, and what runs the script."""
        return {
            "kind": "script in a separate process",
            "script": canonical.digest_file(self.path),
            "guard": canonical.digest(_GUARD),
            "python": platform.python_version(),
            "channel": "one action a session in .dcp/action.json",
            "timeout_seconds": self.timeout,
        }

    def may_repeat(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> bool:
        """A script's only chance is the draw in its packet."""
        return True

    @property
    def isolation(self) -> tuple[bool, str]:
        """Attested for our own script, which anybody can read; of another its user must say so."""
        return self.path == Path(searchers.__file__), (
            "script: each session is a separate process with the standard library alone, an empty "
            "environment, and a new directory that holds the public packet only; file, network and process "
            "calls that lead out of it are refused as far as the interpreter announces them (not all are: "
            "stat, readlink and mkfifo, among others, are not), and the sealed secret is in the recording "
            "process. No container, and no defence against code that attacks the interpreter."
        )

    @property
    def assistance(self) -> tuple[str, str]:
        """People wrote its policy for the task, before the run."""
        return FIXED

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        """Run the script in a new directory and read what it left there."""
        with tempfile.TemporaryDirectory(prefix="session-") as folder:
            given = {**files, f"{CHANNEL}/packet.json": canonical.encode(packet).decode()}
            _lay_out(Path(folder), given)
            try:
                run = self._run(folder)
            except OSError as error:  # no process or memory to be had, whatever the script would do
                reason = f"not started: {type(error).__name__}"
                return _failed(files, {}, Outcome.INFRASTRUCTURE, reason)
            receipt = {"exit_status": run[0], "stdout": run[1], "stderr": run[2]}
            return _collect(Path(folder), given, receipt)

    def _run(self, folder: str) -> tuple[int | None, str, str]:
        """Exit status, None if out of time, and digests of both outputs. Raises OSError where none starts."""
        command = [sys.executable, "-I", "-S", "-c", _GUARD]
        try:
            done = subprocess.run(
                command, input=self.path.read_bytes(), cwd=folder, env={}, capture_output=True,
                timeout=self.timeout, check=False, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return None, "", ""
        return done.returncode, canonical.digest_bytes(done.stdout), canonical.digest_bytes(done.stderr)


def _lay_out(folder: Path, files: Mapping[str, str]) -> None:
    (folder / CHANNEL).mkdir()
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _collect(folder: Path, given: Mapping[str, str], receipt: Mapping[str, Any]) -> Turn:
    """The action and the files left behind, or what was wrong with them."""
    private = f"{CHANNEL}/packet.json"
    before = {name: text for name, text in given.items() if name != private}
    if receipt["exit_status"] is None:
        return _failed(before, receipt, Outcome.MODEL_FAILURE, "out of time")
    try:
        left = dict(_texts(folder))
    except Malformed as error:
        return _failed(before, receipt, Outcome.VIOLATION, str(error))
    if left.pop(private, None) != given[private]:
        return _failed(before, receipt, Outcome.VIOLATION, "the packet was changed")
    action = left.pop(f"{CHANNEL}/action.json", None)
    if any(name.startswith(f"{CHANNEL}/") for name in left):
        return _failed(before, receipt, Outcome.MODEL_FAILURE, f"another file in {CHANNEL}")
    if receipt["exit_status"] != 0:
        return _failed(left, receipt, Outcome.MODEL_FAILURE, f"exit status {receipt['exit_status']}")
    return Turn(action=action, files=left, receipt=receipt)


def _failed(files: Mapping[str, str], receipt: Mapping[str, Any], outcome: Outcome, reason: str) -> Turn:
    return Turn(files=files, receipt=receipt, failure=outcome, reason=reason)


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file below a folder. Raises Malformed on what a workspace may not hold."""
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_file() or path.is_dir()):
            raise Malformed(f"{name} is not a regular file")
        if path.is_file():
            if path.stat().st_size > LARGEST:
                raise Malformed(f"{name} is larger than {LARGEST} bytes")
            try:
                yield name, path.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                raise Malformed(f"{name} is not text") from None


@dataclass(frozen=True, kw_only=True)
class InProcess:
    """The scripted searcher called as a function: quick, and no isolation to attest."""

    act: Callable[[Mapping[str, Any]], tuple[Any, Any]] = searchers.act
    identity: str = "script:in-process"
    isolation: tuple[bool, str] = (False, "a function in the recording process: not isolated")
    assistance: tuple[str, str] = FIXED

    @property
    def interface(self) -> Mapping[str, Any]:
        """A call."""
        return {"kind": "function in the recording process"}

    def may_repeat(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> bool:
        """A policy's only chance is the draw in its packet."""
        return True

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        """Call the policy."""
        action, candidate = self.act(packet)
        kept = dict(files)
        if candidate is not None:
            kept[CANDIDATE] = json.dumps(candidate, sort_keys=True)
        return Turn(action=json.dumps(action, sort_keys=True), files=kept)


# -- a model


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A model or provider: `ask` takes a prompt and an answer's form, and returns the reply.

    It has no tools and sees the prompt alone; the form, a JSON Schema, is for a model that can be held to
    one. `ask` raises Stopped where nobody can be asked for now, which pauses the run, and Unavailable where
    this prompt is on record as unanswered, which is a loss. `kept` says whether what came of a prompt is on
    disk and would be found again.
    """

    ask: Callable[[str, Mapping[str, Any]], Reply]
    identity: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    kept: Callable[[str, Mapping[str, Any]], bool] = lambda prompt, form: False

    @property
    def interface(self) -> Mapping[str, Any]:
        """The prompt's form and the model's settings."""
        return {"kind": "text in, text out", "prompt": canonical.digest(_PROMPT), "settings": self.settings}

    @property
    def isolation(self) -> tuple[bool, str]:
        """Not attested: what serves the model is not ours to vouch for."""
        return False, "a model asked with text alone; what serves it was not examined"

    def may_repeat(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> bool:
        """Asking twice would be a second draw, unless the first reply is kept."""
        return self.kept(prompt_of(packet, files), form_of(packet))

    @property
    def assistance(self) -> tuple[str, str]:
        """Nobody helped."""
        return "none", "autonomous_agent"

    def session(self, packet: Mapping[str, Any], files: Mapping[str, str]) -> Turn:
        """Ask once. A reply that is not the asked JSON object is the model's failure."""
        prompt = prompt_of(packet, files)
        receipt: dict[str, Any] = {"prompt_hash": canonical.digest_bytes(prompt.encode())}
        try:
            reply = self.ask(prompt, form_of(packet))
        except Unavailable as error:
            return Turn(files=files, receipt=receipt, failure=Outcome.INFRASTRUCTURE, reason=str(error))
        receipt |= {
            "reply_hash": canonical.digest_bytes(reply.text.encode(errors="replace")),
            "model": reply.model_resolved,
            "finish_reason": reply.finish_reason,
        }
        try:
            action, kept = _answer(reply.text, files)
        except Malformed as error:
            return Turn(
                files=files, receipt=receipt, failure=Outcome.MODEL_FAILURE, reason=f"unreadable: {error}"
            )
        return Turn(action=action, files=kept, receipt=receipt)


def _answer(reply: str, files: Mapping[str, str]) -> tuple[str, Mapping[str, str]]:
    """The action as it was given, and the workspace with the candidate. Raises Malformed for no answer.

    The action itself is read where every agent's is, so that a malformed one is the same offence.
    """
    value = strict_json(_unfenced(reply))
    if not isinstance(value, dict) or not {"action"} <= set(value) <= {"action", "payload", "candidate"}:
        raise Malformed("must be an object with action, payload and candidate")
    kept = dict(files)
    if value.get("candidate") is not None:
        kept[CANDIDATE] = json.dumps(value["candidate"], sort_keys=True)
    action = {"action": value["action"], "payload": value.get("payload", {})}
    return json.dumps({"schema": "dcp_action_v1"} | action), kept


def form_of(packet: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of what answers a packet: an experiment only while there are any left."""
    return form(packet["task"], packet["sites"], experiments=packet["experiments_left"] > 0)


def form(task: str, sites: Sequence[str] = (), *, experiments: bool = True) -> dict[str, Any]:
    """JSON Schema of an answer in a task, given the addresses that may be read.

    What it holds is an action that the task can read; two of a list's entries may still be equal.
    """
    forms = tasks.FORMS[task]
    payloads = ({"experiment": forms["experiment"]} if experiments else {}) | {"finish": exact_form()}
    if sites:
        payloads["web_fetch"] = exact_form(url={"enum": list(sites)})
    return {
        "anyOf": [
            exact_form(action={"const": action}, payload=payload, candidate=forms["candidate"])
            for action, payload in payloads.items()
        ]
    }


def _unfenced(reply: str) -> str:
    """The reply without the one pair of fence lines that models put around JSON."""
    lines = reply.strip().splitlines()
    if len(lines) > 2 and lines[0] in ("```json", "```") and lines[-1] == "```":
        return "\n".join(lines[1:-1])
    return reply.strip()


def prompt_of(packet: Mapping[str, Any], files: Mapping[str, str]) -> str:
    """What a model is asked: what the packet tells, as text, and the form of an answer."""
    background = packet["background"]
    return _PROMPT.format(
        text=background["text"],
        files="\n".join(f"{name}:\n{text}" for name, text in sorted(files.items())) or "none",
        tag=packet["draw"][:16],
        first=_shown(packet["first"]),
        web="\n\n".join(f"{page['url']}\n{page['text']}" for page in packet["web"]) or "none",
        sites=", ".join(packet["sites"]) or "none",
        notes=_history(packet["notes"]),
        history=_history(packet["history"]),
        experiments=packet["experiments_left"],
        turns=packet["turns_left"],
        experiment=_shown(background["schema"]["experiment"]),
        candidate=_shown(background["schema"]["candidate"]),
    )


def _history(turns: Any) -> str:
    return "\n".join(f"{i}. {_shown(turn)}" for i, turn in enumerate(turns, start=1)) or "none"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# What stays the same comes first: a session's prompt begins as the one before it did, and a model that
# keeps what it has read reads only the rest. The tag keeps two episodes' prompts apart, so that a reply
# that is kept serves one draw only.
_PROMPT = """\
{text}

First observations: {first}

Web pages:
{web}
Addresses you may read, with the action "web_fetch" and the payload {{"url": the address}}: {sites}

Each answer is one JSON object and nothing else:
{{"action": "experiment" or "finish", "payload": the experiment ({experiment}) or {{}},
"candidate": your best artifact so far ({candidate})}}

Tag of this run, without meaning: {tag}

Notes handed over to you:
{notes}

Your actions so far and what they showed:
{history}

Files:
{files}

Experiments left: {experiments}. Turns left, this one included: {turns}. Without a finish in time, your
last candidate counts. Answer now.
"""
