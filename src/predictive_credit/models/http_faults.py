"""What an answer over HTTP that is no reply means: trouble, a rejection, or one prompt's own failure.

Judged by status and body, for a provider may report trouble inside a 200. Pure: no SDK, no network.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

SAID_CHARACTERS: Final = 300
# Timed out, in conflict with itself, too early, too many, gave up waiting; 5xx but for `not implemented`.
_PASSING: Final = frozenset({408, 409, 425, 429, 499})
_NOT_IMPLEMENTED: Final = 501
_TOO_MANY: Final = 429
_TOO_LARGE: Final = 413
# An error inside a 200 names its type, which stands for the status it should have had.
_STATUS_OF: Final[Mapping[str, int]] = {
    "invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
    "not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
    "timeout_error": 504, "overloaded_error": 529,
}  # fmt: skip
# A 429 that stays one, however long we wait.
_OUT_OF_CREDIT: Final = frozenset({
    "insufficient_quota", "billing_hard_limit_reached", "contract_spend_limit_reached",
    "enforced_spend_limit_reached", "linked_organization_spend_limit_reached",
})  # fmt: skip
_ABOUT_A_PROMPT: Final = frozenset({
    "context_length_exceeded", "exceed_context_size_error", "string_above_max_length", "request_too_large",
    "content_filter", "content_policy_violation", "invalid_prompt",
})  # fmt: skip
_TOO_LONG: Final = re.compile(
    r"prompt (?:is )?too long|input (?:is )?too long|content exists risk"
    r"|context (?:length|size|window|limit)|input length|too many (?:input |prompt )?tokens",
    re.IGNORECASE,
)
# A limit on the answer that is too high fails every prompt alike, though its message may name the context.
_OUR_LIMIT: Final = re.compile(
    r"max_(?:completion_|output_)?tokens\W*(?:is |are )?too (?:large|high)", re.IGNORECASE
)

Meaning = Literal["trouble", "prompt", "rejected"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An answer that is no reply: its status (what it should have been, inside a 200), and what it says."""

    status: int
    codes: tuple[str, ...]  # the provider's words for it, the closest first
    said: str

    @property
    def meaning(self) -> Meaning:
        """Whether the unit may be sent again, fails for its own prompt, or all asking ends."""
        if not _OUT_OF_CREDIT.isdisjoint(self.codes):
            return "rejected"
        is_server_trouble = self.status >= 500 and self.status != _NOT_IMPLEMENTED
        if _is_success(self.status) or is_server_trouble or self.status in _PASSING:
            return "trouble"
        return "prompt" if self._is_about_the_prompt else "rejected"

    @property
    def is_rate_limit(self) -> bool:
        """Whether we asked too often or too much, as others may not have."""
        return self.status == _TOO_MANY

    @property
    def _is_about_the_prompt(self) -> bool:
        if self.status == _TOO_LARGE or not _ABOUT_A_PROMPT.isdisjoint(self.codes):
            return True
        is_too_long = _TOO_LONG.search(self.said) is not None and _OUR_LIMIT.search(self.said) is None
        return self.status in (400, 422) and is_too_long

    def __str__(self) -> str:
        return " ".join(part for part in (str(self.status), *self.codes[:1], self.said) if part)


def decoded(status: int, text: str, *, content: str) -> Mapping[str, Any] | Fault:
    """The body of an answer, or what is wrong with it. `content`: the key that a reply cannot lack.

    A 200 without that key (a proxy's page, another service, half a body) is no reply.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not _is_success(status):
        return _fault(status, body, text)
    if not isinstance(body, dict):
        said = f"a body that is no JSON object: {text.strip() or 'empty'}"
        return Fault(status=status, codes=(), said=said)
    if body.get("error") and not body.get(content):
        fault = _fault(status, body, text)
        return replace(fault, status=_status(status, body["error"], fault.codes))
    if content not in body:
        return Fault(status=status, codes=(), said=f"an object without {content!r}: {text}")
    return body


def shortened(text: str) -> str:
    """One line of at most 300 characters."""
    line = " ".join(text.split())
    return line if len(line) <= SAID_CHARACTERS else f"{line[:SAID_CHARACTERS]}..."


def _is_success(status: int) -> bool:
    return 200 <= status < 300


def _fault(status: int, body: Any, text: str) -> Fault:
    """Of {"error": {"type", "code", "message"}}, {"error": "..."}, {"message"}, {"detail"}, or plain text."""
    outer = body if isinstance(body, dict) else {}
    inner = outer.get("error") or outer
    if not isinstance(inner, dict):
        return Fault(status=status, codes=(), said=str(inner))
    details = inner.get("details")
    named = (
        details.get("error_code") if isinstance(details, dict) else None,
        inner.get("code"),
        inner.get("type"),
    )
    said = inner.get("message") or inner.get("detail") or text
    codes = tuple(word for word in named if isinstance(word, str) and word)
    return Fault(status=status, codes=codes, said=str(said))


def _status(status: int, error: Any, codes: Sequence[str]) -> int:
    """The status that an error inside a 200 stands for; as it came, which is tried again, if it says none."""
    given = error.get("code") if isinstance(error, dict) else None
    if isinstance(given, int) and 400 <= given < 600:
        return given
    return next((_STATUS_OF[code] for code in codes if code in _STATUS_OF), status)
