"""How long a provider's headers say to wait, in seconds. Pure: the moment is given."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

ANTHROPIC_LIMITS: Final = ("requests", "tokens", "input-tokens", "output-tokens")
OPENAI_LIMITS: Final = ("requests", "tokens")
_UNITS: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[dhms])")


def retry_after_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """What a failed request's headers ask for: `retry-after-ms`, else `retry-after` in seconds or as a date.

    headers: names in lower case, or a mapping that does not mind. None where nothing readable is asked.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    asked = headers.get("retry-after")
    return _number(asked) if _number(asked) is not None else _until(_http_date(asked), now)


def wait_s(headers: Mapping[str, str], now: datetime) -> float | None:
    """How long until every limit that is used up is reset; None where none is, or the headers do not say.

    Anthropic's resets are RFC 3339 moments (`anthropic-ratelimit-tokens-reset`), OpenAI's are durations
    such as `6m0s` (`x-ratelimit-reset-tokens`).
    """
    waits = [wait for wait in _waits(headers, now) if wait is not None]
    return max(waits, default=None)


def _waits(headers: Mapping[str, str], now: datetime) -> Iterator[float | None]:
    for limit in ANTHROPIC_LIMITS:
        if _number(headers.get(f"anthropic-ratelimit-{limit}-remaining")) == 0:
            yield _until(_rfc3339(headers.get(f"anthropic-ratelimit-{limit}-reset")), now)
    for limit in OPENAI_LIMITS:
        if _number(headers.get(f"x-ratelimit-remaining-{limit}")) == 0:
            yield _duration(headers.get(f"x-ratelimit-reset-{limit}"))


def _number(text: str | None) -> float | None:
    """A finite number that is not negative."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _duration(text: str | None) -> float | None:
    """`120ms`, `1.5s`, `6m0s`, `1d2h`; a bare number is seconds."""
    parts = _PART.findall(text or "")
    if parts and "".join(number + unit for number, unit in parts) == text:
        return sum(float(number) * _UNITS[unit] for number, unit in parts)
    return _number(text)


def _http_date(text: str | None) -> datetime | None:
    try:
        return parsedate_to_datetime(text or "")
    except ValueError:
        return None


def _rfc3339(text: str | None) -> datetime | None:
    try:
        return datetime.fromisoformat(text or "")
    except ValueError:
        return None


def _until(moment: datetime | None, now: datetime) -> float | None:
    """Seconds from `now`, none for a moment that is past. One without a zone is UTC."""
    if moment is None:
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
