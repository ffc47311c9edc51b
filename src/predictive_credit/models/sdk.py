"""What the SDKs of two protocols share: one request is sent, its answer judged, nothing secret said.

The SDKs bring clients, keys and request fields. Retrying is left to who asks (one layer only), and
bodies are read as plain JSON: compatible servers send what the SDKs' own types do not foresee.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

import httpx2

from predictive_credit import config
from predictive_credit.errors import BadConfig
from predictive_credit.models import http_faults, providers, rate_limits
from predictive_credit.models.http_faults import Fault
from predictive_credit.models.provider import Delivery, Rejected, Trouble
from predictive_credit.records import Prompt, Reply

NO_KEY: Final = "none"  # the SDKs insist on a key; a server that needs none does not look at it
CONNECT_S: Final = 15.0  # a server that is there is reached sooner
MIN_SECRET: Final = 4  # characters; anything shorter is no secret and occurs in any text
# What the request is made of, and what is sent once: the budget counts on both.
OWN_FIELDS: Final = (
    "model", "messages", "system", "max_tokens", "max_completion_tokens", "n", "stream",
)  # fmt: skip
# Why a message of the Anthropic protocol ended, whoever brought it, in our words; others stay as they are.
MESSAGE_ENDS: Final = {
    "end_turn": "stop", "stop_sequence": "stop",
    "max_tokens": "length", "model_context_window_exceeded": "length",
}  # fmt: skip
# They log whole addresses, a user and a query in them too, at a level that people log at.
_TALKATIVE: Final = ("httpx2", "httpx", "httpcore2", "httpcore", "anthropic", "openai")
_NOT_REACHED: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
_NEVER_SENT: Final = (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol)
_LIKE_A_KEY: Final = re.compile(r"\bsk-[\w*.-]{4,}|[\w-]*\*{3,}[\w-]*")  # a wrong key, as providers quote it


class SdkProvider(ABC):
    """A provider behind an SDK: the subclass sends and reads, what an answer means is decided here."""

    content: ClassVar[str]  # the key that no reply's body lacks

    def __init__(self, chosen: config.Endpoint, *, base_url: str, key: str | None) -> None:
        """Raises BadConfig for an address, a key or an extra field that no request could be made with."""
        _check_address(chosen, base_url)
        _check_extra(chosen)
        _check_key(chosen, key)
        self.name = chosen.name
        self.settings = chosen
        self._base_url = base_url
        self._key = NO_KEY if key is None else key
        self._secrets = _secrets(base_url, key)
        self._client: Any = None

    @abstractmethod
    def _connected(self) -> Any:
        """The SDK's async client."""

    @abstractmethod
    async def _send(self, prompt: Prompt, timeout: httpx2.Timeout) -> httpx2.Response:
        """The answer to one request, whatever its status. Raises httpx2.RequestError."""

    @abstractmethod
    def _read(self, body: Mapping[str, Any]) -> Reply:
        """The reply in a body, whatever its content."""

    async def answer(self, prompt: Prompt, *, timeout_s: float) -> Delivery:
        """The reply to one prompt, from one request. Raises Trouble or Rejected."""
        if self._client is None:  # inside the running loop, to which its connections belong
            _hush()
            self._client = self._connected()
        started = time.perf_counter()
        response = await self._response(prompt, timeout_s)
        latency_s, now = time.perf_counter() - started, datetime.now(UTC)
        body = http_faults.decoded(response.status_code, response.text, content=self.content)
        reply = self._failed(body, response, now) if isinstance(body, Fault) else self._read(body)
        return Delivery(
            reply=replace(reply, latency_s=latency_s, endpoint=providers.public(self._base_url)),
            wait_s=rate_limits.wait_s(response.headers, now),
        )

    async def aclose(self) -> None:
        """Close connections. A second call does nothing."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _response(self, prompt: Prompt, timeout_s: float) -> httpx2.Response:
        """One request and the whole of its answer within the time."""
        # The SDKs' time is for one read each; a server that sends a byte now and then would never end.
        # Connecting has less of it, so that a server that is not there is told from one that is slow.
        timeout = httpx2.Timeout(timeout_s, connect=min(0.9 * timeout_s, CONNECT_S))
        try:
            async with asyncio.timeout(timeout_s):
                return await self._send(prompt, timeout)
        except (TimeoutError, httpx2.ReadTimeout):
            raise Trouble(f"no answer within {timeout_s:.3g} s") from None
        except _NEVER_SENT as error:
            raise self._rejection(f"no request can be made: {error}") from None
        except httpx2.RequestError as error:
            said = http_faults.shortened(self._sanitised(f"{type(error).__name__} {error}"))
            raise Trouble(said, is_reached=not isinstance(error, _NOT_REACHED)) from None

    def _failed(self, fault: Fault, response: httpx2.Response, now: datetime) -> Reply:
        """A prompt that cannot be answered is a reply without text. Else raises Trouble or Rejected."""
        said = http_faults.shortened(self._sanitised(str(fault)))  # in this order: half a key is one too
        match fault.meaning:
            case "trouble":
                raise Trouble(
                    said,
                    retry_after_s=rate_limits.retry_after_s(response.headers, now),
                    is_rate_limit=fault.is_rate_limit,
                )
            case "rejected":
                raise self._rejection(said + self._hint(fault.status))
            case "prompt":
                return self._reply("", f"error: {said}")

    def _reply(
        self,
        text: str,
        finish_reason: str | None,
        resolved: Any = None,
        *,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
        cached_tokens: int | None = None,
    ) -> Reply:
        """A reply of this provider's model; `resolved` is who the body says has answered."""
        return Reply(
            text=text,
            finish_reason=finish_reason,
            model_requested=self.settings.model,
            model_resolved=resolved if isinstance(resolved, str) and resolved else None,
            prompt_tokens=prompt_tokens,
            completion_tokens=completion_tokens,
            cached_tokens=cached_tokens,
        )

    def _rejection(self, said: str) -> Rejected:
        where = f"{self.settings.model} at {providers.public(self._base_url)}"
        return Rejected(self._sanitised(f"{self.name} ({where}): {said}"))

    def _hint(self, status: int) -> str:
        if status in (401, 403):
            variable = self.settings.key_env
            return f"; check the key in {variable}" if variable else "; it wants a key: set key_env"
        return "; check the model id and the address" if status == 404 else ""

    def _sanitised(self, said: str) -> str:
        for secret in self._secrets:
            said = said.replace(secret, "[secret]")
        return _LIKE_A_KEY.sub("[key]", said)


@contextmanager
def unseen(prefix: str) -> Iterator[None]:
    """The environment without an SDK's own variables, which would add keys and headers nobody configured.

    A token or a gateway's header meant for one provider would otherwise go to every other one.
    """
    kept = {name: value for name, value in os.environ.items() if name.startswith(prefix)}
    for name in kept:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(kept)


def _hush() -> None:
    """Let the libraries below say no more than warnings, whatever the root logger is set to."""
    for name in _TALKATIVE:
        logger = logging.getLogger(name)
        logger.setLevel(max(logger.level, logging.WARNING))


def request_error(raised: Exception) -> httpx2.RequestError:
    """What lies under an SDK's connection error."""
    cause = raised.__cause__
    return cause if isinstance(cause, httpx2.RequestError) else httpx2.RequestError(str(cause or raised))


def is_schema(grammar: str | None) -> bool:
    """Whether a prompt's shape is a JSON Schema, which providers hold answers to, and not a GBNF."""
    return grammar is not None and grammar.startswith("{")


def sampling(prompt: Prompt) -> dict[str, float]:
    """The sampling settings that are set; a provider may refuse even its own defaults."""
    chosen = {"temperature": prompt.temperature, "top_p": prompt.top_p}
    return {field: value for field, value in chosen.items() if value is not None}


def merged(request: Mapping[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`extra` as it goes into the request's body; where both hold a mapping, the request's keys stay.

    An effort and an answer's format, say, share one field.
    """
    return {field: _both(request.get(field), value) for field, value in extra.items()}


def text(content: Any) -> str:
    """The text in a message's content: a string, or blocks of which those of type `text` count.

    Thinking is passed over. Content of no known shape is kept as JSON: it came, so it is the reply.
    """
    match content:
        case None:
            found = ""
        case str():
            found = content
        case list():
            found = "".join(_block_text(block) for block in content)
        case _:
            found = json.dumps(content)
    return found.encode(errors="replace").decode()  # half a surrogate pair could not be written to a file


def count(usage: Any, *path: str) -> int | None:
    """A token count at `path` in the usage, None where there is none."""
    for key in path:
        usage = usage.get(key) if isinstance(usage, Mapping) else None
    return usage if isinstance(usage, int) and not isinstance(usage, bool) and usage >= 0 else None


def finish_reason(said: Any, known: Mapping[str, str]) -> str | None:
    """The provider's reason in our words, its own where we have none."""
    return None if said is None else known.get(str(said), str(said))


def _both(ours: Any, extra: Any) -> Any:
    return {**ours, **extra} if isinstance(ours, Mapping) and isinstance(extra, Mapping) else extra


def _block_text(block: Any) -> str:
    if isinstance(block, str):
        return block
    is_text = isinstance(block, Mapping) and block.get("type", "text") == "text"
    return text(block.get("text")) if is_text else ""


def _check_address(chosen: config.Endpoint, base_url: str) -> None:
    try:
        parts = urlsplit(base_url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_usable = False
    # Not quoted: what is no address may hold anything, a password too.
    where = "base_url" if chosen.base_url_env is None else f"{chosen.base_url_env} or base_url"
    if not is_usable:
        raise BadConfig(f"{chosen.name}: {where} is no address such as http://localhost:8080/v1; correct it")
    if "?" in base_url or "#" in base_url:
        raise BadConfig(
            f"{chosen.name}: {where} holds a query or a fragment (from `?` or `#` on), behind which a "
            "request's own path would be lost; leave it out"
        )


def _check_extra(chosen: config.Endpoint) -> None:
    if found := [field for field in OWN_FIELDS if field in chosen.extra]:
        raise BadConfig(
            f"{chosen.name}: extra may not hold {', '.join(found)}, for the request's own fields are set by "
            "settings that a budget counts on; take it out (for an answer's limit there is max_tokens)"
        )


def _check_key(chosen: config.Endpoint, key: str | None) -> None:
    if key is not None and not (key.isascii() and key.isprintable()):
        raise BadConfig(
            f"{chosen.name}: the key in {chosen.key_env} holds a character that no key has (a line break, a "
            "typographic quote); set the variable again"
        )


def _secrets(base_url: str, key: str | None) -> tuple[str, ...]:
    """What must never be said, the longest first."""
    parts = urlsplit(base_url)
    candidates = {key or "", parts.password or parts.username or ""}
    return tuple(sorted((c for c in candidates if len(c) >= MIN_SECRET), key=len, reverse=True))
