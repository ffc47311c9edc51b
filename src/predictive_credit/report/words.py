"""Numbers and names as the page shows them: signs on gains, undefined never as 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

UNDEFINED = "undefined"
NOT_ESTIMABLE = "not estimable"
NOT_ASKED = "not asked"
NONE_PRINTED = "\u2013"  # the source prints no such figure
NO_GATE = "no gate"
ABSENT = frozenset({UNDEFINED, NOT_ESTIMABLE, NOT_ASKED, NONE_PRINTED, NO_GATE})  # shown muted

MINUS = "\u2212"

CONTEXTS = {
    "D": "D description",
    "M": "M matched",
    "S": "S donor",
    "O": "O ordinary note's card",
    "T": "T other task's card",
    "N": "N card's numbers alone",
    "exact": "exact signal",
    "noisy": "noisy signal",
    "wrong_seed": "other seed's outcome",
    "sign": "direction alone",
    "numbers": "numbers alone",
    "mechanism": "mechanism alone",
    "donor_mechanism": "numbers, donor's mechanism",
    "donor_numbers": "donor's numbers, mechanism",
    "scaffold": "empty card",
    "donor_1": "1 slot of the donor's",
    "donor_2": "2 slots of the donor's",
    "donor_3": "3 slots of the donor's",
    "donor_4": "4 slots of the donor's",
    "donor_5": "5 slots of the donor's",
    "true_note": "true note",
    "false_note": "false note",
    "zero": "zero",
    "positive": "positive",
    "mean": "mean",
}
# Where there is no room for the words; one letter is its own short name.
SHORT = {
    "exact": "exact",
    "noisy": "noisy",
    "wrong_seed": "other seed",
    "sign": "direction",
    "numbers": "numbers",
    "mechanism": "mechanism",
    "donor_mechanism": "donor's mech.",
    "donor_numbers": "donor's num.",
    "scaffold": "empty",
    "donor_1": "1 of 6",
    "donor_2": "2 of 6",
    "donor_3": "3 of 6",
    "donor_4": "4 of 6",
    "donor_5": "5 of 6",
}
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
BETWEEN = f"\u00a0{MINUS}\u00a0"  # the contexts of a pair: other minus matched

# Whose explanation a context shows, of which source, and how much of it.
FORMS = {
    "text": "as it was written",
    "card": "as the card that was read from it",
    "numbers": "the numbers of its card alone",
}
SOURCES = ("elicited", "ordinary", "given")

CHECKS = {
    "commitment": "Was every forecast fixed before any outcome could be read?",
    "delivery": "Was the plan carried out, and were the explanations really shown?",
    "value": "Does the matched explanation help beyond the description?",
    "alignment": "Does it help because it belongs to this state?",
    "sensitivity": "Does the forecaster follow a signal that is known to be in its prompt?",
}
CHECK_NAMES = {
    "commitment": "Commitment",
    "delivery": "Delivery",
    "value": "Paired value",
    "alignment": "Alignment",
    "sensitivity": "Known signal",
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
    ("credit", "credit_confirmed"): (
        "Credit confirmed",
        "In every target the matched explanation lowers the point error, both against the description alone "
        "and against a donor's explanation: every interval of the frozen rule lies above zero.",
    ),
    ("credit", "credit_refuted"): (
        "Credit refuted",
        "In every target the matched explanation raises the point error, both against the description alone "
        "and against a donor's explanation: every interval of the frozen rule lies below zero.",
    ),
    ("credit", "inconclusive"): (
        "Inconclusive",
        "The frozen rule asked whether the matched explanation changes the point error in every target, both "
        "against the description alone and against a donor's. The intervals do not all lie on one side of "
        "zero, so neither credit nor its absence is shown.",
    ),
    ("joint", "confirmation_go"): (
        "Confirmation: go",
        "Cards were formed where they were asked for, they leave the point error equivalent, and they make "
        "the forecasts more repeatable. Every gate of the frozen rule held.",
    ),
    ("joint", "confirmation_no_go"): (
        "Confirmation: no go",
        "The frozen rule asked for three things together: that asking for a card forms one, that it leaves "
        "the point error equivalent, and that it makes the forecasts more repeatable. Not every gate held, "
        "so the three are not confirmed together; the gates show which.",
    ),
    ("assay", "assay_sensitive"): (
        "Assay sensitive",
        "Where the outcome itself stands in the prompt, the forecaster's point comes nearer to it and keeps "
        "the order of the states, as often as the frozen rule asks. A gain that is missing elsewhere is not "
        "a failure to read a number.",
    ),
    ("assay", "assay_insensitive"): (
        "Assay insensitive",
        "Even where the outcome itself stands in the prompt, the forecaster's point does not follow it as "
        "often, or not in the order, that the frozen rule asks. A gain that is missing under this "
        "forecaster may be a failure to read.",
    ),
    ("replication", "replication_supported"): (
        "Replication supported",
        "Another forecaster, given the same prompts, shows the pattern again: a card, whose ever it is, "
        "steadies its forecasts and leaves points and intervals as good as they were. Every gate of the "
        "frozen rule held.",
    ),
    ("replication", "replication_not_supported"): (
        "Replication not supported",
        "The frozen rule asked whether another forecaster, given the same prompts, shows the pattern again. "
        "Not every gate held. That does not show the opposite; the gates show what is missing.",
    ),
    ("mechanism", "mechanism_sensitive"): (
        "Mechanism sensitive",
        "A true account of why, without a number, brings the forecaster's points nearer to the outcomes, "
        "both against the description alone and against the opposite account. Both gates of the frozen rule "
        "held.",
    ),
    ("mechanism", "mechanism_insensitive"): (
        "Mechanism insensitive",
        "The frozen rule asked whether a true account of why, without a number, brings the forecaster's "
        "points nearer to the outcomes, both against the description alone and against the opposite "
        "account. Not both are shown.",
    ),
    ("exploratory", "exploratory"): (
        "Exploratory",
        "This control tests no claim. Its contrasts are printed with their intervals; none is a gate, and "
        "none confirms anything.",
    ),
}

# The same where a gate saw nothing, and the rule could not have come to another status.
SILENT = {
    ("harm", "confirmation_no_go"): (
        "The frozen rule asks whether the matched explanation makes the forecaster's 80 % intervals worse. "
        "{silent}, so harm could not be confirmed. That does not show that there is no harm, nor that the "
        "explanation helps."
    ),
    ("credit", "inconclusive"): (
        "The frozen rule asks whether the matched explanation changes the point error in every target. "
        "{silent}, so neither credit nor its absence can be shown."
    ),
    ("joint", "confirmation_no_go"): (
        "The frozen rule asks for three things together: that asking for a card forms one, that it leaves "
        "the point error equivalent, and that it makes the forecasts more repeatable. {silent}, so the three "
        "could not be confirmed together; the gates show which."
    ),
    ("assay", "assay_insensitive"): (
        "The frozen rule asks whether the forecaster's point follows the outcome where that stands in the "
        "prompt. {silent}, so that it does could not be shown: a gain that is missing under this forecaster "
        "may be a failure to read."
    ),
    ("replication", "replication_not_supported"): (
        "The frozen rule asks whether another forecaster, given the same prompts, shows the pattern again. "
        "{silent}, so that could not be shown, nor is the opposite."
    ),
    ("mechanism", "mechanism_insensitive"): (
        "The frozen rule asks whether a true account of why, without a number, brings the forecaster's "
        "points nearer to the outcomes. {silent}, so that could not be shown, nor is the opposite."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """How numbers of one target are said: with how many digits after the point."""

    digits: int

    def number(self, value: Any, *, absent: str = UNDEFINED) -> str:
        """A level, without a plus sign."""
        return number(value, self.digits, absent=absent)

    def signed(self, value: Any, *, absent: str = UNDEFINED) -> str:
        """A gain or a change."""
        return signed(value, self.digits, absent=absent)

    def percent(self, value: Any) -> str:
        """A share, which has no unit."""
        return percent(value)

    def count(self, value: Any) -> str:
        """A whole number."""
        return count(value)

    def interval(self, lower: Any, upper: Any, *, say: Callable[[Any, int], str] | None = None) -> str:
        """`[lo, hi]`, signed unless said otherwise."""
        return interval(lower, upper, self.digits, say=say or signed)


def is_number(value: Any) -> bool:
    """A finite int or float; neither a bool nor NaN, nor an integer that is larger than any float."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


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
    return capital(spaced(name))


def capital(phrase: str) -> str:
    """A phrase as the start of a sentence."""
    return phrase[:1].upper() + phrase[1:]


def context(name: str) -> str:
    """A context's letter and word, or its words where it has no letter."""
    return CONTEXTS.get(name, spaced(name))


def short_context(name: str) -> str:
    """A context's letter or shortest words, where there is no room for more."""
    return name if len(name) == 1 else SHORT.get(name, context(name))


def pair(name: str, between: str = BETWEEN) -> str:
    """A pair of contexts with a minus sign between."""
    return between.join(short_context(part) for part in name.split("-"))


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def decision(rule: Any, status: Any, *, silent: str | None = None) -> tuple[str, str]:
    """Headline and meaning of a rule's status; a rule without words here keeps its own.

    silent: which gates saw nothing, as the start of a sentence; None if every gate saw something.
    """
    key = (str(rule), str(status))
    headline, meaning = DECISIONS.get(key, (title(key[1]), f"Status {status} of the frozen rule {rule}."))
    if silent and key in SILENT:
        meaning = SILENT[key].format(silent=silent)
    return headline, meaning
