"""The JSON object a forecast is elicited in, and how it is read: strictly, but for what surrounds it.

A hosted model thinks aloud, greets, or puts a code fence around its answer. That is forgiven. Inside
the object nothing is: a number in quotes, a percent sign or a missing key is not guessed at, for a
guess about units would be ours and not the model's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from predictive_credit.forecasters.possible import check_possible, shortened
from predictive_credit.records import Forecast, MalformedForecast, Target
from predictive_credit.wording import FORECAST_KEYS

MAX_CHARACTERS: Final = 200_000  # a longer reply is noise
MAX_BRACES: Final = 1_000  # tried at most: a failed try costs the length of the text before it
# Some templates open the thought themselves, so that only its end is in the answer.
_THINKING: Final = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)


def schema(targets: Sequence[Target]) -> str:
    """The JSON Schema of the object; its keys are in asking order, in which a held answer is written."""
    numbers = _closed({key: {"type": "number"} for key in FORECAST_KEYS})
    return json.dumps(_closed({target.name: numbers for target in targets}), separators=(",", ":"))


def read(text: str, unit_id: str, targets: Sequence[Target]) -> tuple[Forecast, ...]:
    """The forecasts in the one JSON object that the text holds, in each target's unit.

    Thinking, prose and a code fence around the object are passed over; a second one that says something
    else is not, since nobody can say which was meant. Raises MalformedForecast.
    """
    if len(text) > MAX_CHARACTERS:
        raise MalformedForecast(
            f"unit {unit_id}: {len(text):,} characters where one JSON object was asked for"
        )
    found: list[dict[str, Any]] = []
    for value in _objects(_THINKING.sub(" ", text)):
        if value and value not in found:  # an empty pair of braces is prose, and the same again says no more
            found.append(value)
    if len(found) != 1:
        many = "no JSON object" if not found else f"{len(found)} JSON objects"
        raise MalformedForecast(f"unit {unit_id}: {many} in {shortened(text)!r}")
    _check_keys(found[0], [t.name for t in targets], unit_id, "the object")
    return tuple(_forecast(found[0][target.name], unit_id, target) for target in targets)


def _closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object", "properties": dict(properties), "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Every whole JSON object, outermost ones only; braces that begin none are prose."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
    at = text.find("{")
    for _ in range(MAX_BRACES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = text.find("{", end)


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key twice")
    return dict(pairs)


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _check_keys(value: Any, asked: Sequence[str], unit_id: str, where: str) -> None:
    if not isinstance(value, dict) or set(value) != set(asked):
        seen = f"the keys {', '.join(map(repr, value))}" if isinstance(value, dict) else repr(value)
        raise MalformedForecast(
            f"unit {unit_id}: {where} was to hold {', '.join(asked)} and holds {shortened(seen)}"
        )


def _forecast(value: Any, unit_id: str, target: Target) -> Forecast:
    _check_keys(value, FORECAST_KEYS, unit_id, target.name)
    point, lower, upper = (_number(value[key], unit_id, f"{target.name}.{key}") for key in FORECAST_KEYS)
    read = Forecast(unit_id=unit_id, target=target.name, point=point, lower=lower, upper=upper)
    check_possible(read, target)
    return read


def _number(value: Any, unit_id: str, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MalformedForecast(f"unit {unit_id}: {where} is {shortened(repr(value))}, not a number")
    try:
        return float(value)
    except OverflowError:
        raise MalformedForecast(f"unit {unit_id}: {where} is larger than any number can be") from None
