import json
from typing import Any

import pytest

from predictive_credit.models.http_faults import SAID_CHARACTERS, Fault, decoded, shortened


def fault(status: int, body: Any) -> Fault:
    found = decoded(status, body if isinstance(body, str) else json.dumps(body), content="content")
    assert isinstance(found, Fault)
    return found


def error(type: str, message: str = "It failed.", **more: Any) -> dict[str, Any]:
    return {"type": "error", "error": {"type": type, "message": message, **more}}


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_passes_is_trouble(status: int):
    assert fault(status, error("api_error")).meaning == "trouble"
    assert fault(status, "<html>Bad gateway</html>").meaning == "trouble"


@pytest.mark.parametrize("status", [408, 429, 500, 503, 529])
def test_a_429_alone_is_a_rate_limit(status: int):
    assert fault(status, error("api_error")).is_rate_limit == (status == 429)


@pytest.mark.parametrize("status", [304, 400, 401, 402, 403, 404, 405, 422, 501])
def test_what_every_request_would_meet_ends_asking(status: int):
    assert fault(status, error("invalid_request_error", "temperature: unknown field")).meaning == "rejected"


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"code": "insufficient_quota", "message": "You exceeded your current quota."}},
        error("rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
    ],
    ids=["quota", "spend limit"],
)
def test_a_429_without_credit_would_stay_one_and_ends_asking(body: Any):
    assert fault(429, body).meaning == "rejected"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (413, "Request Entity Too Large"),
        (413, error("request_too_large")),
        (400, error("invalid_request_error", "prompt is too long: 213041 tokens > 200000 maximum")),
        (400, error("invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 8")),
        (400, {"error": {"code": "context_length_exceeded", "type": "other", "message": "No."}}),
        (400, {"error": {"code": 400, "type": "exceed_context_size_error", "message": "No."}}),
        (400, {"message": "This model's maximum context length is 2048 tokens.", "code": 400}),
        (400, error("invalid_request_error", "Content Exists Risk")),
        (400, {"error": {"code": "content_filter", "message": "The prompt was filtered."}}),
        (200, error("request_too_large")),
    ],
)  # fmt: skip
def test_a_prompt_that_cannot_be_answered_is_its_own_units_failure(status: int, body: Any):
    assert fault(status, body).meaning == "prompt"


@pytest.mark.parametrize(
    "message",
    [
        "max_tokens: 900000 > 8192, which is the maximum allowed number of output tokens",
        "'max_tokens' or 'max_completion_tokens' is too large: 9. This model's maximum context length is 4.",
    ],
)
def test_an_answers_limit_that_is_too_high_fails_every_prompt_and_ends_asking(message: str):
    assert fault(400, error("invalid_request_error", message)).meaning == "rejected"


@pytest.mark.parametrize(
    ("body", "status", "meaning"),
    [
        (error("overloaded_error"), 529, "trouble"),
        (error("api_error"), 500, "trouble"),
        (error("never_heard_of"), 200, "trouble"),
        ({"error": {"code": 502, "message": "Upstream failed."}}, 502, "trouble"),
        ({"error": "the model crashed"}, 200, "trouble"),
        (error("authentication_error"), 401, "rejected"),
        ({"error": {"code": 402, "message": "Insufficient credits."}}, 402, "rejected"),
    ],
)
def test_an_error_inside_a_200_means_what_its_own_status_would(body: Any, status: int, meaning: str):
    found = fault(200, body)
    assert (found.status, found.meaning) == (status, meaning)


@pytest.mark.parametrize(
    "text", ["", "<html>Log in</html>", '{"content": [', "[]", '"ok"', '{"status": "ok"}', "[" * 9999]
)
def test_a_200_that_is_no_reply_at_all_is_trouble(text: str):
    assert fault(200, text).meaning == "trouble"


def test_a_reply_is_its_body_even_beside_an_empty_error():
    body: dict[str, Any] = {"content": [], "error": None}
    assert decoded(200, json.dumps(body), content="content") == body


def test_a_fault_says_its_status_its_code_and_what_the_provider_says():
    assert str(fault(529, error("overloaded_error", "Overloaded"))) == "529 overloaded_error Overloaded"
    assert str(fault(404, {"detail": "Not Found"})) == "404 Not Found"
    assert str(fault(502, "<html>Bad</html>")) == "502 <html>Bad</html>"


def test_what_is_said_at_length_is_one_short_line():
    assert shortened("Over-\n  loaded") == "Over- loaded"
    assert shortened("x" * 9999) == "x" * SAID_CHARACTERS + "..."
