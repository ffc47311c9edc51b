"""The sentence a forecast is elicited in, and how it is read.

Two distances make every interval ordered by construction, and the word carries the sign: a small
model that was asked for bounds crossed most of them, and asked for a signed number it lost the
sign of its own card.
"""

from __future__ import annotations

import re
from typing import Final

from predictive_credit.records import Forecast, MalformedForecast

# GBNF. Four decimals below a tenth: all but freak changes of a ROC AUC.
GRAMMAR: Final = r"""
root ::= "ROC AUC will " verb " by " size " (80% interval: minus " size ", plus " size ")"
verb ::= "increase" | "decrease"
size ::= "0.0" [0-9] [0-9] [0-9]
""".strip()

_SENTENCE: Final = re.compile(
    r"ROC AUC will (?P<verb>increase|decrease) by (?P<size>[0-9]+\.[0-9]+) "
    r"\(80% interval: minus (?P<minus>[0-9]+\.[0-9]+), plus (?P<plus>[0-9]+\.[0-9]+)\)"
)


def write(point: float, minus: float, plus: float, *, decimals: int = 4) -> str:
    """The sentence of a point and its distances down and up, in ROC AUC. A negative distance becomes 0."""
    verb = "decrease" if point < 0 else "increase"
    size, down, up = (f"{abs(value):.{decimals}f}" for value in (point, max(minus, 0.0), max(plus, 0.0)))
    return f"ROC AUC will {verb} by {size} (80% interval: minus {down}, plus {up})"


def read(text: str, unit_id: str) -> Forecast:
    """The forecast a sentence states, in ROC AUC; `increase` is positive.

    White space around the sentence is forgiven and nothing else. Raises MalformedForecast.
    """
    found = _SENTENCE.fullmatch(text.strip())
    if found is None:
        raise MalformedForecast(f"unit {unit_id}: not the sentence asked for: {_shortened(text)!r}")
    point = float(found["size"]) * (1 if found["verb"] == "increase" else -1)
    lower, upper = point - float(found["minus"]), point + float(found["plus"])
    return Forecast(unit_id=unit_id, point=point, lower=lower, upper=upper)


def _shortened(text: str, length: int = 80) -> str:
    return text if len(text) <= length else text[:length] + "..."
