"""Sessions of the Claude command line, a process each: no tools, no files, no memory, one answer.

The command is an agent's shell, and much of it is switched off here. It would read a file that a
prompt names after an @ and send it along, take a leading / for a command of its own, continue an
answer that was cut off, and send what failed again. What it streams is therefore listened to, and it
is ended as soon as one answer is complete: that answer is the reply, whatever would have followed.

What it adds to a request cannot be switched off: a sentence that this is a Claude agent before our
system prompt, and before the user's prompt the day's date and, with a login, the user's address.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from predictive_credit import config
from predictive_credit.errors import BadConfig
from predictive_credit.models import providers, sdk
from predictive_credit.models.http_faults import SAID_CHARACTERS, Fault
from predictive_credit.models.provider import Delivery, Rejected, Trouble
from predictive_credit.records import Prompt, Reply

FLAGS: Final = (
    "--print", "--output-format", "stream-json", "--verbose", "--include-partial-messages",
    "--tools", "", "--strict-mcp-config", "--setting-sources", "", "--disable-slash-commands",
    "--no-session-persistence", "--max-turns", "1",
)  # fmt: skip
SWITCHES: Final = {
    "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # no files after an @, no words that change how it thinks
    "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
    "CLAUDE_CODE_SAFE_MODE": "1",  # no hooks, plugins, skills
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",  # who asks retries, and counts it
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_REFUSAL_FALLBACK": "1",  # no other model in the place of one that refuses
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_AUTOUPDATER": "1",  # a study is asked of one version
    "MAX_THINKING_TOKENS": "0",  # thinking would use up the tokens that the answer may have
}
PASSED_ON: Final = (
    "PATH", "LANG", "ANTHROPIC_BASE_URL", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE",
)  # fmt: skip
LOGIN: Final = ("HOME", "USER", "CLAUDE_CONFIG_DIR")  # where the command finds who is logged in
KEY_NAMES: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
MAX_LINE: Final = 2**22  # bytes of one line that the command may say
GRACE_S: Final = 0.4  # between asking a session to end and ending it; shorter than those who wait for us do

_MENTION: Final = re.compile(r"(?<!\w)@(?=\S)")
# The command's words for what went wrong, where it gives no status: the status that they stand for.
_STATUS_OF: Final[Mapping[str, int]] = {
    "authentication_failed": 401, "oauth_org_not_allowed": 403, "billing_error": 402,
    "invalid_request": 400, "model_not_found": 404, "rate_limit": 429, "overloaded": 529,
}  # fmt: skip
_NOT_REACHED: Final = re.compile(r"unable to connect(?!.*(?:ECONNRESET|EPIPE|Timeout))", re.IGNORECASE)
_ENDED_BY_ITSELF: Final = ("end_turn", "stop_sequence")


class ClaudeCliSession:
    """The configured command, asked one prompt a process. A seed cannot be set, nor how it samples."""

    def __init__(self, chosen: config.ClaudeCli, *, key: str | None) -> None:
        """Raises BadConfig if the command is not installed, or is to sample as it cannot."""
        _check_sampling(chosen)
        self._command = _found(chosen)
        self.name = chosen.name
        self.settings = chosen
        self._key = key

    async def answer(self, prompt: Prompt, *, timeout_s: float) -> Delivery:
        """The reply to one prompt, from one session. Raises Trouble or Rejected.

        `reply.cost_usd` is what the command says, None where it was ended before it did.
        """
        started = time.perf_counter()
        heard = _Heard()
        with _folders() as (work, home), _asking(prompt) as asked, tempfile.TemporaryFile() as errors:
            environment = self._environment(home) | {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(prompt.max_tokens)}
            async with self._session(prompt, work, environment, asked, errors) as process:
                try:
                    async with asyncio.timeout(timeout_s):
                        await _listen(process, heard)
                except TimeoutError:
                    if heard.stop_reason is None:  # else only its last word on cost is missing
                        raise Trouble(f"no answer within {timeout_s:.3g} s") from None
                latency_s = time.perf_counter() - started
            reply = self._reply(heard) if heard.stop_reason else self._failed(heard, process, errors)
        return Delivery(reply=replace(reply, latency_s=latency_s, endpoint=_endpoint(heard.version)))

    async def aclose(self) -> None:
        """Nothing stays open between sessions."""

    @asynccontextmanager
    async def _session(
        self, prompt: Prompt, work: Path, environment: Mapping[str, str], asked: IO[bytes], errors: IO[bytes]
    ) -> AsyncIterator[Process]:
        """A running session, which has ended with all that it started when this is left."""
        arguments = (*FLAGS, "--model", self.settings.model, "--system-prompt", prompt.system)
        try:
            process = await asyncio.create_subprocess_exec(
                self._command, *arguments, cwd=work, env=environment, start_new_session=True,
                stdin=asked, stdout=PIPE, stderr=errors, limit=MAX_LINE,
            )  # fmt: skip
        except OSError as error:
            raise self._rejection(f"it cannot be started: {error.strerror or error}") from None
        try:
            yield process
        finally:
            await _end(process)

    def _environment(self, home: Path) -> dict[str, str]:
        """Nothing but what the command needs: no secret of another program's.

        With a key it has an empty home of its own. A login is found only in the user's, which may also
        hold tokens that are renewed and must not be copied.
        """
        names = PASSED_ON if self._key is not None else (*PASSED_ON, *LOGIN)
        environment = {name: os.environ[name] for name in names if name in os.environ} | SWITCHES
        if self._key is None:
            return environment
        named = self.settings.key_env or ""
        secret = {named if named in KEY_NAMES else KEY_NAMES[0]: self._key}
        return environment | secret | {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)}

    def _reply(self, heard: _Heard) -> Reply:
        usage, result = heard.usage, heard.result or {}
        fresh, cached = sdk.count(usage, "input_tokens"), sdk.count(usage, "cache_read_input_tokens")
        written = sdk.count(usage, "cache_creation_input_tokens")
        cost = result.get("total_cost_usd")
        return Reply(
            text=sdk.text("".join(heard.text)),
            finish_reason=sdk.finish_reason(heard.stop_reason, sdk.MESSAGE_ENDS),
            model_requested=self.settings.model,
            model_resolved=heard.model or None,
            prompt_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
            completion_tokens=sdk.count(usage, "output_tokens"),
            cached_tokens=cached,
            cost_usd=float(cost) if isinstance(cost, int | float) and cost > 0 else None,
        )

    def _failed(self, heard: _Heard, process: Process, errors: IO[bytes]) -> Reply:
        """A prompt too long to answer is a reply without text. Raises Trouble or Rejected for the rest."""
        if heard.result is None:
            raise self._without_result(heard, process, errors)
        said, status = self._shown(_said(heard.result)), heard.result.get("api_error_status")
        if not heard.result.get("is_error"):
            raise Trouble(f"the command answered by itself, without the model: {said}")
        fault = Fault(
            status=status if isinstance(status, int) else _STATUS_OF.get(heard.kind, 500), codes=(), said=said
        )
        match fault.meaning:
            case "trouble":
                is_reached = _NOT_REACHED.search(said) is None
                raise Trouble(said, is_reached=is_reached, is_rate_limit=fault.is_rate_limit)
            case "rejected":
                raise self._rejection(said + (self._hint if fault.status in (401, 403) else ""))
            case "prompt":
                return Reply(
                    text="", finish_reason=f"error: {said}", model_requested=self.settings.model,
                    model_resolved=None,
                )  # fmt: skip

    def _without_result(self, heard: _Heard, process: Process, errors: IO[bytes]) -> Exception:
        """What it means that the command ended without a result."""
        errors.seek(0)
        complaint = self._shown(errors.read(MAX_LINE).decode(errors="replace"))
        if "unknown option" in complaint:
            return self._rejection(
                f"it is too old, or too new, for what is asked of it ({complaint}); update it"
            )
        said = complaint or self._shown(heard.noise) or "nothing"
        return Trouble(f"the command ended with {process.returncode} and no answer; it said: {said}")

    def _rejection(self, said: str) -> Rejected:
        return Rejected(
            f"{self.name} ({self.settings.model}, by the command {self.settings.command}): {said}"
        )

    @property
    def _hint(self) -> str:
        if self._key is not None:
            return f"; check the key in {self.settings.key_env}"
        return "; log in with the command, or name the variable that holds a key as key_env"

    def _shown(self, said: str) -> str:
        """The beginning of what was said, in one line and without the key."""
        shown = said.replace(self._key, "[secret]") if self._key else said
        return " ".join(shown.split())[:SAID_CHARACTERS]


@dataclass(slots=True)
class _Heard:
    """What a session has said so far."""

    version: str | None = None
    model: str | None = None  # as served; not None once an answer has begun
    text: list[str] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    stop_reason: str | None = None  # not None once an answer is complete
    kind: str = ""  # the command's word for what went wrong
    result: Mapping[str, Any] | None = None  # the last line, with what it cost or what went wrong
    noise: str = ""  # the first line that is none of the protocol's

    @property
    def is_over(self) -> bool:
        """Whether nothing is worth waiting for: after a cut or an empty answer it would ask again."""
        is_whole = self.stop_reason in _ENDED_BY_ITSELF and "".join(self.text).strip()
        return self.result is not None or (self.stop_reason is not None and not is_whole)

    def take(self, line: bytes) -> None:
        """Hear one line. Raises Trouble for an answer that breaks off, Rejected where tools are offered."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = None
        match event:
            case {"type": "system", "subtype": "init"}:
                self._begin(event)
            case {"type": "stream_event", "event": {"type": str()} as part} if self.stop_reason is None:
                self._stream(part)
            case {"type": "assistant", "error": str(kind)}:
                self.kind = kind
            case {"type": "result"}:
                self.result = event
            case {"type": str()}:
                pass  # its account of itself
            case _:
                self.noise = self.noise or line.decode(errors="replace")

    def _begin(self, event: Mapping[str, Any]) -> None:
        offered = [*(event.get("tools") or ()), *(event.get("mcp_servers") or ())]
        if offered:
            raise Rejected(
                f"the Claude command offers the model {len(offered)} tools or servers although none may be "
                f"offered, the first {offered[0]}; update the command"
            )
        self.version = str(event.get("claude_code_version") or "") or None

    def _stream(self, part: Mapping[str, Any]) -> None:
        """Hear a part of an answer, as the Messages protocol streams it."""
        match part:
            case {"type": "message_start", "message": {**message}}:
                if self.model is not None:
                    raise Trouble("the answer broke off, and the command began another")
                self.model = str(message.get("model") or "")
                self._count(message.get("usage"))
            case {"type": "content_block_delta", "delta": {"type": "text_delta", "text": str(text)}}:
                self.text.append(text)
            case {"type": "message_delta", "delta": {"stop_reason": str(reason)}}:
                self.stop_reason = reason
                self._count(part.get("usage"))
            case {"type": "message_stop"}:
                raise Trouble("the answer broke off before its end")

    def _count(self, usage: Any) -> None:
        if isinstance(usage, Mapping):
            self.usage.update({name: n for name, n in usage.items() if n is not None})


async def _listen(process: Process, heard: _Heard) -> None:
    """Hear the session until nothing more is worth waiting for, or it has ended."""
    assert process.stdout is not None
    while not heard.is_over:
        try:
            line = await process.stdout.readline()
        except ValueError:
            raise Trouble(f"the command said a line of more than {MAX_LINE:,} bytes") from None
        if not line:
            await process.wait()
            return
        heard.take(line)


async def _end(process: Process) -> None:
    """End the session and all that it started, politely for a moment.

    The second signal goes out even if we are cancelled meanwhile, and even if the session has ended:
    what it started may not have.
    """
    try:
        await _signalled(process, signal.SIGTERM)
    finally:
        await _signalled(process, signal.SIGKILL)


async def _signalled(process: Process, sign: signal.Signals) -> None:
    """Send the session's whole group a signal, and wait a moment until nobody speaks any more."""
    assert process.stdout is not None
    with suppress(ProcessLookupError, PermissionError):  # the latter: macOS, for a group of the dead
        os.killpg(process.pid, sign)
    with suppress(TimeoutError):
        async with asyncio.timeout(GRACE_S):
            while await process.stdout.read(MAX_LINE):
                pass
            await process.wait()


@contextmanager
def _folders() -> Iterator[tuple[Path, Path]]:
    """Two empty folders outside the project, gone afterwards: to work in, and to be at home in."""
    with tempfile.TemporaryDirectory(prefix="session-", ignore_cleanup_errors=True) as folder:
        work, home = Path(folder) / "work", Path(folder) / "home"
        work.mkdir()
        home.mkdir()
        yield work, home


@contextmanager
def _asking(prompt: Prompt) -> Iterator[IO[bytes]]:
    """A nameless file that holds what the user says, to be read as standard input."""
    with tempfile.TemporaryFile() as asked:
        asked.write(_inert(prompt.user).encode(errors="replace"))
        asked.seek(0)
        yield asked


def _inert(text: str) -> str:
    """The text without anything that the command would act on: a space parts an @ from a name of a file.

    Words with an @ inside (precision@10) are no mentions and stay as they are.
    """
    parted = _MENTION.sub("@ ", text)
    return f" {parted}" if parted.startswith("/") else parted


def _endpoint(version: str | None) -> str:
    """Which command was asked, and where it asked if not at its maker's."""
    elsewhere = os.environ.get("ANTHROPIC_BASE_URL")
    return f"Claude CLI {version or 'unknown'}" + (f" at {providers.public(elsewhere)}" if elsewhere else "")


def _said(result: Mapping[str, Any]) -> str:
    """The command's own sentence about what went wrong."""
    errors = result.get("errors")
    return str(
        result.get("result") or (errors[0] if isinstance(errors, list) and errors else "no reason given")
    )


def _check_sampling(chosen: config.ClaudeCli) -> None:
    for setting in ("temperature", "top_p"):
        if (value := getattr(chosen, setting)) is not None:
            raise BadConfig(
                f"{chosen.name}: {setting} is {value}, and the Claude command line takes none; set it to null"
            )


def _found(chosen: config.ClaudeCli) -> str:
    """The command's absolute path, since it will run elsewhere."""
    command = shutil.which(os.path.expanduser(chosen.command))  # a Path would lose a leading ./
    if command is None:
        raise BadConfig(
            f"{chosen.name}: the command {chosen.command!r} is not installed or not on PATH; install it "
            "(npm install -g @anthropic-ai/claude-code), or set `command` to where it is"
        )
    return str(Path(command).absolute())
