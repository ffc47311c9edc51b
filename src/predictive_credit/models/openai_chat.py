"""The OpenAI chat protocol through its SDK: OpenAI itself, vLLM, Ollama, llama.cpp's server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
import openai

from predictive_credit.models import sdk
from predictive_credit.records import Prompt, Reply

FINISH_REASONS: Final = {"content_filter": "refusal"}


class OpenAIChat(sdk.SdkProvider):
    """One chat completion a unit, not streamed."""

    content = "choices"

    def _connected(self) -> openai.AsyncOpenAI:
        with sdk.unseen("OPENAI_"):
            return openai.AsyncOpenAI(api_key=self._key, base_url=self._base_url, max_retries=0)

    async def _send(self, prompt: Prompt, timeout: httpx2.Timeout) -> httpx2.Response:
        create = self._client.chat.completions.with_raw_response.create
        request = self._request(prompt)
        extra = sdk.merged(request, self.settings.extra)
        try:
            raw = await create(**request, extra_body=extra, timeout=timeout)
        except openai.APIStatusError as error:
            return error.response
        except openai.APIConnectionError as error:
            raise sdk.request_error(error) from None
        response: httpx2.Response = raw.http_response
        return response

    def _limit(self, prompt: Prompt) -> dict[str, int]:
        """The answer's limit under the name that the server knows.

        OpenAI's newer models refuse `max_tokens`; servers compatible with it may never have heard of
        `max_completion_tokens`, and would pass it over and write on and on.
        """
        host = urlsplit(self._base_url).hostname or ""
        is_openai = host.endswith((".openai.com", ".openai.azure.com"))
        return {"max_completion_tokens" if is_openai else "max_tokens": prompt.max_tokens}

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.settings.model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "seed": prompt.seed,
        }
        if prompt.grammar is not None and sdk.is_schema(prompt.grammar):
            shape = {"name": "answer", "strict": True, "schema": json.loads(prompt.grammar)}
            request["response_format"] = {"type": "json_schema", "json_schema": shape}
        return request | sdk.sampling(prompt) | self._limit(prompt)

    def _read(self, body: Mapping[str, Any]) -> Reply:
        choice = _first(body.get("choices"))
        message, usage = _mapping(choice.get("message")), body.get("usage")
        refusal = message.get("refusal")
        reason = "refusal" if refusal else sdk.finish_reason(choice.get("finish_reason"), FINISH_REASONS)
        return self._reply(
            sdk.text(message.get("content")) or sdk.text(refusal),
            reason,
            body.get("model"),
            prompt_tokens=sdk.count(usage, "prompt_tokens"),
            completion_tokens=sdk.count(usage, "completion_tokens"),
            cached_tokens=sdk.count(usage, "prompt_tokens_details", "cached_tokens"),
        )


def _first(choices: Any) -> Mapping[str, Any]:
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
