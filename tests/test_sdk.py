"""What both protocols do alike: each test runs through both SDKs, over a real connection."""

import logging
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.errors import BadConfig
from predictive_credit.models import providers, sdk
from predictive_credit.models.anthropic_messages import AnthropicMessages
from predictive_credit.models.openai_chat import OpenAIChat
from predictive_credit.models.provider import Rejected, Trouble
from predictive_credit.models.sdk import SdkProvider
from tests.loopback import Said, scripted
from tests.providers import KEY, anthropic_settings, asked, deliveries, openai_settings, reply

Make = Callable[..., SdkProvider]
FINE = {
    "content": [{"type": "text", "text": "Up."}], "stop_reason": "end_turn", "model": "served-2",
    "choices": [{"message": {"content": "Up."}, "finish_reason": "stop"}],
}  # fmt: skip
HEADERS = "Authorization: others\nX-Gateway: others"
# What an environment may hold for other programs, each of which one of the SDKs would pick up by itself.
OTHERS = {
    "ANTHROPIC_API_KEY": "others-key", "ANTHROPIC_AUTH_TOKEN": "others-token",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_CUSTOM_HEADERS": HEADERS,
    "ANTHROPIC_PROFILE": "others", "OPENAI_API_KEY": "others-key", "OPENAI_ADMIN_KEY": "others-admin",
    "OPENAI_BASE_URL": "http://127.0.0.1:9", "OPENAI_ORG_ID": "others-org",
    "OPENAI_PROJECT_ID": "others-project",
    "OPENAI_CUSTOM_HEADERS": HEADERS,
}  # fmt: skip


def anthropic(url: str, key: str | None = KEY, **changed: Any) -> SdkProvider:
    return AnthropicMessages(anthropic_settings(**changed), base_url=url, key=key)


def openai(url: str, key: str | None = KEY, **changed: Any) -> SdkProvider:
    return OpenAIChat(openai_settings(**changed), base_url=url, key=key)


@pytest.fixture(params=[anthropic, openai], ids=["anthropic", "openai"])
def make(request: pytest.FixtureRequest) -> Make:
    chosen: Make = request.param
    return chosen


def test_a_reply_says_who_was_asked_who_answered_where_and_how_long_it_took(make: Make):
    with scripted(Said(body=FINE, hang_s=0.05)) as server:
        got = reply(make(server.url))
    assert (got.text, got.finish_reason) == ("Up.", "stop")
    assert (got.model_requested, got.model_resolved) == ("asked-for-1", "served-2")
    assert got.endpoint == server.url
    assert got.latency_s is not None
    assert 0.05 <= got.latency_s < 20
    assert (got.cost_usd, got.attempts) == (None, None)


def test_an_endpoint_is_named_without_user_password_and_query():
    assert providers.public("https://me:pass@host:8443/v1?key=abc#x") == "https://host:8443/v1"
    assert providers.public("http://me@[::1]:80/v1") == "http://[::1]:80/v1"


def test_the_environments_own_keys_addresses_and_headers_stay_out(
    make: Make, monkeypatch: pytest.MonkeyPatch
):
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    with scripted(Said(body=FINE)) as server:
        assert reply(make(server.url)).text == "Up."
        assert reply(make(server.url, key=None)).text == "Up."
    keyed, keyless = (got.headers for got in server.got)
    assert keyed["authorization"] == f"Bearer {KEY}"
    assert "others" not in str(keyed) + str(keyless)
    assert KEY not in str(keyless)


def test_the_environment_is_whole_again_afterwards(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "others-token")
    with sdk.unseen("ANTHROPIC_"):
        assert "ANTHROPIC_AUTH_TOKEN" not in os.environ
    assert os.environ["ANTHROPIC_AUTH_TOKEN"] == "others-token"


def test_an_overloaded_server_is_trouble_and_is_asked_only_once(make: Make):
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with scripted(Said(status=529, body=body, headers={"retry-after": "7"})) as server:
        with pytest.raises(Trouble, match=r"^529 overloaded_error Overloaded$") as caught:
            reply(make(server.url))
        assert (caught.value.is_reached, caught.value.retry_after_s) == (True, 7.0)
        assert len(server.got) == 1


@pytest.mark.parametrize(
    ("status", "kind", "is_rate_limit"),
    [(429, "rate_limit_error", True), (200, "rate_limit_error", True), (529, "overloaded_error", False)],
)
def test_a_rate_limit_is_told_from_other_trouble(make: Make, status: int, kind: str, is_rate_limit: bool):
    body = {"type": "error", "error": {"type": kind, "message": "Slow down."}}
    with scripted(Said(status=status, body=body)) as server, pytest.raises(Trouble) as caught:
        reply(make(server.url))
    assert caught.value.is_rate_limit == is_rate_limit


def test_an_error_inside_a_200_is_trouble(make: Make):
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    with scripted(Said(body=body)) as server, pytest.raises(Trouble, match="529 overloaded_error"):
        reply(make(server.url))


def test_a_connection_that_is_lost_in_the_middle_of_the_body_is_trouble(make: Make):
    with scripted(Said(body=FINE, missing=10)) as server, pytest.raises(Trouble, match="closed") as caught:
        reply(make(server.url))
    assert caught.value.is_reached


def test_a_body_that_breaks_off_or_is_no_json_is_trouble(make: Make):
    with (
        scripted(Said(body=b'{"choices": [{"mess'), Said(body=b"<html>Log in</html>")) as server,
        pytest.raises(Trouble, match="no JSON object"),
    ):
        reply(make(server.url))


def test_a_server_that_hangs_is_left_in_time(make: Make):
    started = time.monotonic()
    with (
        scripted(Said(body=FINE, hang_s=10)) as server,
        pytest.raises(Trouble, match=r"within 0.2 s") as caught,
    ):
        reply(make(server.url), timeout_s=0.2)
    assert time.monotonic() - started < 5
    assert caught.value.is_reached


def test_a_server_that_is_not_there_was_not_reached(make: Make):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: refused, and nobody else gets the port
        with pytest.raises(Trouble, match="ConnectError") as caught:
            reply(make(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert not caught.value.is_reached


def test_a_rejected_key_ends_asking_and_is_never_said(make: Make, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    for message in (f"Incorrect API key provided: {KEY}.", "Your api key sk-te***********cdef is invalid"):
        body = {"type": "error", "error": {"type": "authentication_error", "message": message}}
        with scripted(Said(status=401, body=body)) as server, pytest.raises(Rejected) as caught:
            reply(make(server.url))
        said = str(caught.value)
        assert said.startswith(f"tried (asked-for-1 at {server.url}): 401 authentication_error ")
        assert said.endswith("; check the key in TRIED_API_KEY")
        assert not any(part in said for part in (KEY, "sk-te", "cdef"))
    assert KEY not in caplog.text


def test_no_part_of_a_key_is_left_where_a_long_message_is_cut(make: Make):
    key = "unlike-any-other-key-0123456789"
    body = {"error": {"message": "x" * 275 + key + " is wrong"}}
    with scripted(Said(status=400, body=body)) as server, pytest.raises(Rejected) as caught:
        reply(make(server.url, key=key))
    assert "unlike" not in str(caught.value)


def test_an_unknown_model_ends_asking_with_what_the_provider_said(make: Make):
    body = {"error": {"type": "not_found_error", "message": "model: asked-for-1"}}
    with (
        scripted(Said(status=404, body=body)) as server,
        pytest.raises(Rejected, match=r"404 .*; check the model id"),
    ):
        reply(make(server.url))


def test_a_prompt_that_is_too_long_is_a_reply_without_text(make: Make):
    body = {"error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}}
    with scripted(Said(status=400, body=body)) as server:
        got = reply(make(server.url))
    assert got.text == ""
    assert got.finish_reason == "error: 400 invalid_request_error prompt is too long: 9 tokens > 8 maximum"
    assert got.model_resolved is None


def test_limits_that_are_used_up_come_with_the_reply(make: Make):
    headers = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2s"}
    with scripted(Said(body=FINE, headers=headers), Said(body=FINE)) as server:
        first, second = deliveries(make(server.url), asked(), asked())
    assert (first.wait_s, second.wait_s) == (62.0, None)


def test_further_fields_of_the_body_are_sent_as_they_are_configured(make: Make):
    extra = {"thinking": {"type": "disabled"}, "top_k": 0}
    with scripted(Said(body=FINE)) as server:
        reply(make(server.url, extra=extra))
    assert server.got[0].body.items() >= extra.items()


def test_what_is_not_set_is_not_sent_and_a_gbnf_never_is(make: Make):
    with scripted(Said(body=FINE)) as server:
        deliveries(
            make(server.url), asked(grammar='root ::= "yes"'), asked(temperature=0.0, top_p=0.5)
        )  # fmt: skip
    bare, set_ = (got.body for got in server.got)
    assert bare.keys().isdisjoint({"temperature", "top_p", "grammar", "output_config", "response_format"})
    assert (set_["temperature"], set_["top_p"]) == (0.0, 0.5)


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://host/v1", "http://", "http://[::1", "me:pass@host"]
)
def test_an_address_that_is_none_is_one_sentence_that_does_not_quote_it(make: Make, url: str):
    with pytest.raises(
        BadConfig, match=r"^tried: TRIED_BASE_URL or base_url is no address such as"
    ) as caught:
        make(url)
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize("url", ["https://host/v1?key=secret", "https://host/v1#secret", "https://host/v1?"])
def test_an_address_with_a_query_or_a_fragment_is_one_sentence_that_does_not_quote_it(make: Make, url: str):
    with pytest.raises(
        BadConfig, match=r"^tried: TRIED_BASE_URL or base_url holds a query or a fragment .* leave it out$"
    ) as caught:
        make(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("field", sdk.OWN_FIELDS)
def test_an_extra_field_that_would_pass_the_budget_by_is_refused(make: Make, field: str):
    with pytest.raises(BadConfig, match=rf"^tried: extra may not hold {field}, .* there is max_tokens\)$"):
        make("http://127.0.0.1:9", extra={"top_k": 0, field: 9})


def test_nothing_secret_of_an_address_or_a_key_is_logged_by_whoever_logs(
    make: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    for name in ("httpx2", "httpx", "httpcore2", "httpcore", "anthropic", "openai"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.NOTSET)
        logging.getLogger(name).manager._clear_cache()  # type: ignore[attr-defined]
    log = tmp_path / "log"
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.root.level)
    logging.basicConfig(level=logging.INFO, filename=log)
    with scripted(Said(body=FINE)) as server:
        reply(make(server.url.replace("://", "://somebody:password@")))
    logging.info("the log is written")
    logging.root.handlers[0].close()
    assert "the log is written" in log.read_text()
    assert not any(part in log.read_text() for part in (KEY, "somebody", "password", "127.0.0.1"))


@pytest.mark.parametrize("key", ["sk-one\nsk-two", "sk-“quoted”"], ids=["line break", "quotes"])
def test_a_key_that_no_header_can_hold_is_one_sentence_that_does_not_quote_it(make: Make, key: str):
    with pytest.raises(BadConfig, match="tried: the key in TRIED_API_KEY holds a character") as caught:
        make("http://127.0.0.1:9", key=key)
    assert "sk-" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("as it is\n", "as it is\n"),
        ([], ""),
        ([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Up."}], "Up."),
        ([{"type": "redacted_thinking", "data": "xx"}, {"type": "text", "text": None}], ""),
        (["Up", {"text": "."}, 5], "Up."),
        ({"roc_auc": 0.1}, '{"roc_auc": 0.1}'),
        (5, "5"),
        ("half a pair \ud83d", "half a pair ?"),
    ],
    ids=["null", "string", "none", "thinking", "null text", "odd blocks", "object", "number", "surrogate"],
)  # fmt: skip
def test_whatever_content_came_is_text(content: Any, text: str):
    assert sdk.text(content) == text


@pytest.mark.parametrize("tokens", [None, "12", 1.5, True, -1, {}])
def test_a_token_count_of_another_type_is_unknown(tokens: Any):
    assert sdk.count({"input_tokens": tokens}, "input_tokens") is None
    assert sdk.count(tokens, "input_tokens") is None
    assert sdk.count({"details": {"cached": 12}}, "details", "cached") == 12
