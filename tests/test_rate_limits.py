from datetime import UTC, datetime

import pytest

from predictive_credit.models.rate_limits import retry_after_s, wait_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Mon, 30 Nov 2026 12:01:30 GMT"}, 90.0),
        ({"retry-after": "Mon, 30 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "2"}, 1.5),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "soon", "retry-after": "2"}, 2.0),
    ],
)
def test_a_failed_requests_headers_ask_for_a_wait(headers: dict[str, str], seconds: float | None):
    assert retry_after_s(headers, NOW) == seconds


def anthropic(limit: str, remaining: str, reset: str) -> dict[str, str]:
    prefix = f"anthropic-ratelimit-{limit}"
    return {f"{prefix}-remaining": remaining, f"{prefix}-reset": reset}


def openai(limit: str, remaining: str, reset: str) -> dict[str, str]:
    return {f"x-ratelimit-remaining-{limit}": remaining, f"x-ratelimit-reset-{limit}": reset}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        (anthropic("requests", "0", "2026-11-30T12:00:21Z"), 21.0),
        (anthropic("tokens", "0", "2026-11-30T13:00:21+01:00"), 21.0),
        (anthropic("input-tokens", "0", "2026-11-30T12:00:05Z"), 5.0),
        (anthropic("output-tokens", "0", "2026-11-30T11:59:00Z"), 0.0),
        (anthropic("requests", "1", "2026-11-30T12:00:21Z"), None),
        (anthropic("requests", "0", "later"), None),
        (openai("requests", "0", "1s"), 1.0),
        (openai("requests", "0", "6m0s"), 360.0),
        (openai("tokens", "0", "120ms"), 0.12),
        (openai("tokens", "0", "1h2m3.5s"), 3723.5),
        (openai("tokens", "0", "12"), 12.0),
        (openai("tokens", "0", "1s or so"), None),
        (openai("tokens", "99", "1s"), None),
        (openai("tokens", "0", "1s") | openai("requests", "0", "9s"), 9.0),
    ],
)
def test_a_limit_that_is_used_up_holds_back_until_its_reset(headers: dict[str, str], seconds: float | None):
    assert wait_s(headers, NOW) == seconds
