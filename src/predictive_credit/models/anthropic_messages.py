"""The Anthropic Messages protocol through its SDK: Anthropic itself, DeepSeek, llama.cpp's server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2

from predictive_credit.models import sdk
from predictive_credit.records import Prompt, Reply


class AnthropicMessages(sdk.SdkProvider):
    """One message a unit, not streamed: an overloaded server then says so where it is seen."""

    content = "content"

    def _connected(self) -> anthropic.AsyncAnthropic:
        # The SDK shows its key as a bearer's; compatible servers document the header of old.
        host = urlsplit(self._base_url).hostname or ""
        headers = {} if host.endswith(".anthropic.com") else {"X-Api-Key": self._key}
        with sdk.unseen("ANTHROPIC_"):
            return anthropic.AsyncAnthropic(
                api_key=self._key, base_url=self._base_url, default_headers=headers, max_retries=0
            )

    async def _send(self, prompt: Prompt, timeout: httpx2.Timeout) -> httpx2.Response:
        create = self._client.messages.with_raw_response.create
        request = self._request(prompt)
        # The SDK no longer has fields for these, which the newest models refuse; other servers take them.
        extra = sdk.sampling(prompt) | sdk.merged(request, self.settings.extra)
        try:
            raw = await create(**request, extra_body=extra, timeout=timeout)
        except anthropic.APIStatusError as error:
            return error.response
        except anthropic.APIConnectionError as error:
            raise sdk.request_error(error) from None
        response: httpx2.Response = raw.http_response
        return response

    def _request(self, prompt: Prompt) -> dict[str, Any]:
        """The message's fields. A seed is none of them: the protocol knows no such thing."""
        request: dict[str, Any] = {
            "model": self.settings.model,
            "max_tokens": prompt.max_tokens,
            "system": prompt.system,
            "messages": [{"role": "user", "content": prompt.user}],
        }
        if prompt.grammar is not None and sdk.is_schema(prompt.grammar):
            shape = {"type": "json_schema", "schema": json.loads(prompt.grammar)}
            request["output_config"] = {"format": shape}
        return request

    def _read(self, body: Mapping[str, Any]) -> Reply:
        usage = body.get("usage")
        fresh, cached = sdk.count(usage, "input_tokens"), sdk.count(usage, "cache_read_input_tokens")
        written = sdk.count(usage, "cache_creation_input_tokens")
        return self._reply(
            sdk.text(body.get("content")),
            sdk.finish_reason(body.get("stop_reason"), sdk.MESSAGE_ENDS),
            body.get("model"),
            # Tokens read from a cache, and written to one, are counted apart from the others.
            prompt_tokens=None if fresh is None else fresh + (cached or 0) + (written or 0),
            completion_tokens=sdk.count(usage, "output_tokens"),
            cached_tokens=cached,
        )
