"""Which provider a configuration names; their clients are imported where one is used."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from predictive_credit import config
from predictive_credit.errors import BadConfig
from predictive_credit.models.provider import Provider

# What may change without another answer being expected: not part of a reply's key.
TERMS = (
    "key_env", "concurrency", "deadline_s", "max_cost", "unanswered", "base_url", "base_url_env", "command",
)  # fmt: skip


def make(chosen: config.Provided) -> Provider:
    """The configured provider. Raises BadConfig where its key is not in the environment."""
    match chosen:
        case config.AnthropicApi():
            from predictive_credit.models.anthropic_messages import AnthropicMessages  # noqa: PLC0415

            return AnthropicMessages(chosen, base_url=endpoint(chosen), key=key(chosen))
        case config.OpenAIApi():
            from predictive_credit.models.openai_chat import OpenAIChat  # noqa: PLC0415

            return OpenAIChat(chosen, base_url=endpoint(chosen), key=key(chosen))
        case config.ClaudeCli():
            from predictive_credit.models.claude_cli import ClaudeCliSession  # noqa: PLC0415

            return ClaudeCliSession(chosen, key=key(chosen))
        case _:
            raise TypeError(f"no provider for {type(chosen).__name__}")


def key(chosen: config.Provided) -> str | None:
    """The provider's key, None where it needs none. Raises BadConfig naming the variable that lacks it."""
    if chosen.key_env is None:
        return None
    if not (found := os.environ.get(chosen.key_env, "").strip()):
        raise BadConfig(
            f"{chosen.name} ({chosen.model}) needs a key and the environment variable {chosen.key_env} is "
            f"not set; set it, or choose a forecaster and agent that need none, such as smollm2"
        )
    return found


def endpoint(chosen: config.Endpoint) -> str:
    """The address in use: the one the environment names, else the configured one."""
    named = os.environ.get(chosen.base_url_env, "").strip() if chosen.base_url_env else ""
    return (named or chosen.base_url).rstrip("/")


def identity(chosen: config.Provided) -> dict[str, Any]:
    """The settings under which a reply counts as this provider's: who was asked, where, and how."""
    settings = {k: v for k, v in config.section(chosen).items() if k not in TERMS}
    if isinstance(chosen, config.Endpoint):
        return settings | {"endpoint": public(endpoint(chosen))}
    return settings | {"endpoint": public(os.environ.get("ANTHROPIC_BASE_URL", ""))}  # the CLI's own variable


def public(address: str) -> str:
    """An address without user, password, query and fragment, as it may stand in an artifact."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
