"""Provider settings, and one question put to a provider, for tests."""

import asyncio
from typing import Any

import pytest

from predictive_credit import config
from predictive_credit.models.provider import Delivery, Provider
from predictive_credit.records import Prompt, Reply

KEY = "sk-test-0123456789abcdef"
SETTINGS: dict[str, Any] = {
    "name": "tried", "model": "asked-for-1", "base_url": "http://unused", "base_url_env": "TRIED_BASE_URL",
    "key_env": "TRIED_API_KEY", "concurrency": 2, "deadline_s": 20, "max_cost": None,
    "unanswered": "stop", "structured": True,
    "extra": {}, "temperature": None, "top_p": None, "max_tokens": 16,
}  # fmt: skip


def anthropic_settings(**changed: Any) -> config.AnthropicApi:
    return config.AnthropicApi(**{**SETTINGS, "kind": "anthropic", **changed})


def openai_settings(**changed: Any) -> config.OpenAIApi:
    return config.OpenAIApi(**{**SETTINGS, "kind": "openai", **changed})


def asked(
    user: str = "What will happen?", *, grammar: str | None = None, max_tokens: int = 16,
    temperature: float | None = None, top_p: float | None = None,
) -> Prompt:  # fmt: skip
    return Prompt(
        system="You forecast.", user=user, grammar=grammar, max_tokens=max_tokens, temperature=temperature,
        top_p=top_p, seed=7,
    )  # fmt: skip


def deliveries(provider: Provider, *prompts: Prompt, timeout_s: float = 20.0) -> list[Delivery]:
    """What one connected provider delivers, prompt after prompt; closed twice afterwards."""

    async def one_after_another() -> list[Delivery]:
        try:
            return [await provider.answer(prompt, timeout_s=timeout_s) for prompt in prompts]
        finally:
            await provider.aclose()
            await provider.aclose()

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NO_PROXY", "127.0.0.1")
        return asyncio.run(one_after_another())


def reply(provider: Provider, prompt: Prompt | None = None, *, timeout_s: float = 20.0) -> Reply:
    """The reply to one prompt."""
    (delivery,) = deliveries(provider, prompt or asked(), timeout_s=timeout_s)
    return delivery.reply
