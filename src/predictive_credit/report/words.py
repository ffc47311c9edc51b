"""Numbers and names as the page shows them: four decimals, signs on gains, undefined never as 0."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

UNDEFINED = "undefined"
NOT_ESTIMABLE = "not estimable"
NOT_ASKED = "not asked"
NONE_PRINTED = "\u2013"  # the source prints no such figure
ABSENT = frozenset({UNDEFINED, NOT_ESTIMABLE, NOT_ASKED, NONE_PRINTED})  # shown muted

MINUS = "\u2212"

CONTEXTS = {
    "D": "D description",
    "M": "M matched",
    "S": "S donor",
    "zero": "zero",
    "positive": "positive",
    "mean": "mean",
}
MODELS = ("D", "M", "S")
BASELINES = ("zero", "positive", "mean")

MEASURES = {
    "interval_score": "Interval score",
    "point_error": "Point error",
    "drift": "Drift",
    "width": "Interval width",
    "covered": "Missed outcomes",
    "direction": "Wrong directions",
    "interval_score_scaled": "Interval score, task-scaled",
    "point_error_scaled": "Point error, task-scaled",
}
PAIRS = {pair: pair.replace("-", f"\u00a0{MINUS}\u00a0") for pair in ("D-M", "S-M", "D-S")}

CHECKS = {
    "commitment": "Was every forecast fixed before any outcome could be read?",
    "delivery": "Was the plan carried out, and were the explanations really shown?",
    "value": "Does the matched explanation help beyond the description?",
    "alignment": "Does it help because it belongs to this state?",
    "sensitivity": "Does the forecaster follow a signal that is known to be in its prompt?",
}
STATUSES = {"passed": "Passed", "failed": "Not passed", "not_estimable": "Not estimable"}

# What a rule's status means, for somebody who has not read the rule. Keyed by (rule, status).
DECISIONS = {
    ("harm", "harm_confirmed"): (
        "Harm confirmed",
        "The matched explanation makes the forecaster's 80 % intervals worse, both against the description "
        "alone and against a donor's explanation. Every gate of the frozen rule held.",
    ),
    ("harm", "confirmation_no_go"): (
        "Harm not confirmed",
        "The frozen rule asked whether the matched explanation makes the forecaster's 80 % intervals worse. "
        "Not every gate held. That does not show that there is no harm, nor that the explanation helps: "
        "the checks value and alignment ask whether it helps.",
    ),
}


def is_number(value: Any) -> bool:
    """A finite int or float; neither a bool nor NaN."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number(value: Any, digits: int = 4, *, absent: str = UNDEFINED) -> str:
    """A level, without a plus sign."""
    return f"{value:.{digits}f}".replace("-", MINUS) if is_number(value) else absent


def signed(value: Any, digits: int = 4, *, absent: str = UNDEFINED) -> str:
    """A gain or a change: its sign is always shown, except on an exact 0."""
    if not is_number(value):
        return absent
    return number(abs(value), digits) if value == 0 else f"{value:+.{digits}f}".replace("-", MINUS)


def percent(value: Any, digits: int = 1, *, absent: str = UNDEFINED) -> str:
    """A share, as a percentage."""
    return f"{100 * value:.{digits}f} %" if is_number(value) else absent


def count(value: Any, *, absent: str = UNDEFINED) -> str:
    """A whole number with thousands separated."""
    return f"{value:,.0f}" if is_number(value) else absent


def interval(lower: Any, upper: Any, digits: int = 4, *, say: Callable[[Any, int], str] = signed) -> str:
    """`[lo, hi]`, signed unless said otherwise; both ends or neither."""
    if not (is_number(lower) and is_number(upper)):
        return NOT_ESTIMABLE
    return f"[{say(lower, digits)}, {say(upper, digits)}]"


def anything(value: Any) -> str:
    """A value of unknown kind, for facts and counts whose names the report does not know."""
    if value is None:
        return UNDEFINED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return number(value) if math.isfinite(value) else UNDEFINED
    return str(value)


def spaced(name: str) -> str:
    """An identifier as words: `n_undefined` to `n undefined`."""
    return name.replace("_", " ")


def title(name: str) -> str:
    """An identifier as the start of a sentence."""
    words = spaced(name)
    return words[:1].upper() + words[1:]


def context(name: str) -> str:
    """A context's letter and word."""
    return CONTEXTS.get(name, name)


def pair(name: str) -> str:
    """A pair of contexts with a minus sign between."""
    return PAIRS.get(name, name)


def decision(rule: Any, status: Any) -> tuple[str, str]:
    """Headline and meaning of a rule's status; a rule without words here keeps its own."""
    known = DECISIONS.get((str(rule), str(status)))
    return known or (title(str(status)), f"Status {status} of the frozen rule {rule}.")
