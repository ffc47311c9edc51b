import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.models.openai_chat import OpenAIChat
from predictive_credit.models.serving import Served
from predictive_credit.records import Reply
from tests.loopback import Said, model_server, scripted
from tests.providers import KEY, asked, deliveries, openai_settings, reply

DIGITS = {"type": "object", "properties": {"n": {"enum": [1, 2, 3]}}, "required": ["n"]}


@pytest.fixture(scope="module")
def server(root: Path) -> Iterator[Served]:
    with model_server(root) as served:
        yield served


def provider(url: str, key: str | None = KEY, **changed: Any) -> OpenAIChat:
    return OpenAIChat(openai_settings(**changed), base_url=url, key=key)


def answered(*bodies: Any) -> list[Reply]:
    with scripted(*(Said(body=body) for body in bodies)) as server:
        return [d.reply for d in deliveries(provider(server.url), *[asked()] * len(bodies))]


def choice(message: Any, finish_reason: Any = "stop") -> dict[str, Any]:
    return {"choices": [{"message": message, "finish_reason": finish_reason}]}


def test_a_real_server_without_a_key_holds_the_answer_to_the_schema(server: Served):
    extra = {"top_k": 1}
    got = reply(
        provider(f"{server.url}/v1", key=None, key_env=None, extra=extra),
        asked("Give the number two.", grammar=json.dumps(DIGITS), max_tokens=40),
    )
    assert json.loads(got.text)["n"] in (1, 2, 3)
    assert (got.finish_reason, got.model_resolved) == ("stop", "tiny-1")
    assert got.prompt_tokens is not None
    assert got.completion_tokens is not None
    assert got.prompt_tokens > got.completion_tokens > 3
    assert got.endpoint == f"{server.url}/v1"


def test_a_real_server_keeps_to_the_answers_limit(server: Served):
    got = reply(provider(f"{server.url}/v1"), asked(max_tokens=3))
    assert (got.finish_reason, got.completion_tokens) == ("length", 3)


def test_the_request_holds_the_prompt_the_seed_and_the_schema():
    with scripted(Said(body={"choices": []})) as server:
        reply(provider(f"{server.url}/v1"), asked(grammar=json.dumps(DIGITS), max_tokens=99))
    (got,) = server.got
    assert got.path == "/v1/chat/completions"
    assert got.body == {
        "model": "asked-for-1",
        "messages": [
            {"role": "system", "content": "You forecast."},
            {"role": "user", "content": "What will happen?"},
        ],
        "max_tokens": 99,
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": DIGITS},
        },
    }


@pytest.mark.parametrize(
    ("url", "limit"),
    [
        ("https://api.openai.com/v1", {"max_completion_tokens": 16}),
        ("https://eu.api.openai.com/v1", {"max_completion_tokens": 16}),
        ("https://mine.openai.azure.com/openai/v1", {"max_completion_tokens": 16}),
        ("https://notopenai.com/v1", {"max_tokens": 16}),
        ("http://localhost:11434/v1", {"max_tokens": 16}),
    ],
)
def test_the_answers_limit_has_the_name_that_the_server_knows(url: str, limit: Any):
    assert provider(url)._limit(asked()) == limit


def test_reasoning_is_passed_over_and_cached_tokens_are_told():
    usage = {"prompt_tokens": 80, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 64}}
    (got,) = answered(choice({"content": "Up.", "reasoning_content": "Hm."}) | {"usage": usage})
    assert (got.text, got.finish_reason) == ("Up.", "stop")
    assert (got.prompt_tokens, got.cached_tokens, got.completion_tokens) == (80, 64, 9)


def test_the_finish_reason_is_said_in_our_words():
    reasons = {
        "stop": "stop", "length": "length", "content_filter": "refusal", "tool_calls": "tool_calls",
        None: None,
    }  # fmt: skip
    got = answered(*(choice({"content": "Up."}, said) for said in reasons))
    assert [reply.finish_reason for reply in got] == list(reasons.values())


def test_a_refusal_is_one_whatever_the_finish_reason_says():
    (got,) = answered(choice({"content": None, "refusal": "I cannot help with that."}))
    assert (got.text, got.finish_reason) == ("I cannot help with that.", "refusal")


def test_an_odd_completion_is_an_empty_reply():
    odd: tuple[Any, ...] = ([], None, [None], "x", [{"message": "x"}], [{"message": {}}])
    for got in answered(*({"choices": choices, "usage": 5} for choices in odd)):
        assert got.text == ""
        assert (got.model_resolved, got.prompt_tokens, got.completion_tokens) == (None, None, None)
