from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.models.anthropic_messages import AnthropicMessages
from predictive_credit.models.provider import Rejected
from predictive_credit.models.serving import Served
from predictive_credit.records import Reply
from tests.loopback import Said, model_server, scripted
from tests.providers import KEY, anthropic_settings, asked, deliveries, reply

SCHEMA = '{"type":"object","properties":{"point":{"type":"number"}},"required":["point"]}'


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Served]:
    with model_server(root, key=KEY) as served:
        yield served


def provider(url: str, key: str | None = KEY, **changed: Any) -> AnthropicMessages:
    return AnthropicMessages(anthropic_settings(**changed), base_url=url, key=key)


def answered(*bodies: Any) -> list[Reply]:
    with scripted(*(Said(body=body) for body in bodies)) as server:
        return [d.reply for d in deliveries(provider(server.url), *[asked()] * len(bodies))]


def test_a_real_server_answers_and_counts_cached_tokens_among_the_prompts(server: Served):
    short = asked(max_tokens=4, temperature=0.0)  # a random model that is sampled may say its end at once
    first, second = (d.reply for d in deliveries(provider(server.url), short, short))
    assert first.text.strip()
    assert first.finish_reason == "length"
    assert (first.model_requested, first.model_resolved) == ("asked-for-1", "tiny-1")
    assert (first.cached_tokens, first.completion_tokens) == (0, 4)
    assert second.prompt_tokens == first.prompt_tokens  # although nearly all of them were cached
    assert second.cached_tokens is not None
    assert second.cached_tokens > 10


def test_a_real_server_refuses_a_prompt_that_is_too_long_and_that_is_its_reply(server: Served):
    got = reply(provider(server.url), asked("word " * 3000))
    assert got.text == ""
    assert "exceeds the available context size" in (got.finish_reason or "")


def test_a_real_server_rejects_another_key(server: Served):
    with pytest.raises(Rejected, match=r"401 .*; check the key in TRIED_API_KEY"):
        reply(provider(server.url, key="sk-another-one"))


def test_the_request_holds_the_prompt_and_the_schema_and_keeps_an_effort_beside_it():
    with scripted(Said(body={"content": []})) as server:
        reply(
            provider(
                server.url, extra={"output_config": {"effort": "low"}, "thinking": {"type": "disabled"}}
            ),
            asked(grammar=SCHEMA, max_tokens=99),
        )
    (got,) = server.got
    assert got.path == "/v1/messages"
    assert got.headers["x-api-key"] == KEY  # the header that compatible servers document
    schema = {"type": "object", "properties": {"point": {"type": "number"}}, "required": ["point"]}
    assert got.body == {
        "model": "asked-for-1",
        "max_tokens": 99,
        "system": "You forecast.",
        "messages": [{"role": "user", "content": "What will happen?"}],
        "output_config": {"format": {"type": "json_schema", "schema": schema}, "effort": "low"},
        "thinking": {"type": "disabled"},
    }


def test_a_base_address_with_a_path_keeps_it():
    with scripted(Said(body={"content": []})) as server:
        assert reply(provider(f"{server.url}/anthropic")).endpoint == f"{server.url}/anthropic"
    assert server.got[0].path == "/anthropic/v1/messages"


def test_thinking_is_passed_over_and_every_input_token_is_counted():
    usage = {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 300}
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "x"}, {"type": "text", "text": "Up."}]
    body = {"content": content, "stop_reason": "end_turn", "usage": usage | {"output_tokens": 9}}
    (got,) = answered(body)
    assert (got.text, got.finish_reason) == ("Up.", "stop")
    assert (got.prompt_tokens, got.cached_tokens, got.completion_tokens) == (375, 70, 9)


def test_the_stop_reason_is_said_in_our_words():
    reasons = {
        "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length",
        "model_context_window_exceeded": "length", "refusal": "refusal", "pause_turn": "pause_turn",
        None: None, 3: "3",
    }  # fmt: skip
    got = answered(*({"content": [], "stop_reason": said} for said in reasons))
    assert [reply.finish_reason for reply in got] == list(reasons.values())


def test_an_odd_message_is_an_empty_reply():
    odd = (
        {"content": None},
        {"content": [None, 5], "usage": [], "model": 7},
        {"content": "", "usage": {"input_tokens": "5"}},
    )
    for got in answered(*odd):
        assert got.text == ""
        assert (got.model_resolved, got.prompt_tokens, got.completion_tokens) == (None, None, None)
