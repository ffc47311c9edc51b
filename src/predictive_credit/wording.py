"""How a target is said: its name inside a sentence, a forecast of it in words, and the GBNF of those words.

Two distances make every interval ordered by construction, and a word carries the sign: a small
model that was asked for bounds crossed most of them, and asked for a signed number it lost the
sign of its own card.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from predictive_credit.records import Target

FORECAST_KEYS: Final = ("point", "lower", "upper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """A point and the distances down and up to the ends of its 80 % interval, in a target's unit."""

    point: float
    minus: float
    plus: float


def in_sentence(target: Target) -> str:
    """A target's phrase after other words: `Accuracy` becomes `accuracy`, `ROC AUC` stays."""
    phrase = target.phrase
    is_word = phrase[:1].isupper() and phrase[1:2].islower()
    return phrase[0].lower() + phrase[1:] if is_word else phrase


def listed(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def verb(point: float) -> str:
    """What a change of this sign does."""
    return "decrease" if point < 0 else "increase"


def said(stated: Stated, target: Target, *, decimals: int | None = None) -> str:
    """`ROC AUC will increase by 0.0123 (80% interval: minus 0.0040, plus 0.0050)`.

    decimals: digits after the point; None: as many as the target's size has. A negative distance
    becomes 0.
    """
    digits = target.decimals if decimals is None else decimals
    sizes = (abs(stated.point), max(stated.minus, 0.0), max(stated.plus, 0.0))
    size, minus, plus = (f"{value:.{digits}f}" for value in sizes)
    sign = "be minus" if stated.point < 0 else "be"
    does = f"{verb(stated.point)} by" if target.form == "change" else sign
    return f"{target.phrase} will {does} {size}{target.suffix} (80% interval: minus {minus}, plus {plus})"


def shape(targets: Sequence[Target]) -> str:
    """The JSON object that holds a forecast of every target, `number` where one belongs."""
    numbers = ", ".join(f'"{key}": number' for key in FORECAST_KEYS)
    return "{" + ", ".join(f'"{target.name}": {{{numbers}}}' for target in targets) + "}"


def forecast_rule(targets: Sequence[Target]) -> str:
    """The right side of the GBNF rule that holds what `said` says of every target, joined by `; `."""
    return ' "; " '.join(_clause(target, targets) for target in targets)


def shared_rules(targets: Sequence[Target]) -> str:
    """The GBNF rules that `forecast_rule` refers to: the two verbs, and a size for each pattern."""
    verbs = ['verb ::= "increase" | "decrease"'] if any(t.form == "change" for t in targets) else []
    sizes = [f"{_size_name(size, targets)} ::= {_size(size)}" for size in _patterns(targets)]
    return "\n".join(verbs + sizes)


def _clause(target: Target, targets: Sequence[Target]) -> str:
    size = _size_name(target.size, targets)
    after = _literal(f"{target.suffix} (80% interval: minus ")
    if target.form == "change":
        start = f'{_literal(f"{target.phrase} will ")} verb " by "'
    else:
        sign = ' "minus "?' if target.lower < 0 else ""
        start = f"{_literal(f'{target.phrase} will be ')}{sign}"
    return f'{start} {size} {after} {size} ", plus " {size} ")"'


def _patterns(targets: Sequence[Target]) -> list[str]:
    return list(dict.fromkeys(target.size for target in targets))


def _size_name(size: str, targets: Sequence[Target]) -> str:
    place = _patterns(targets).index(size)
    return "size" if place == 0 else f"size-{place + 1}"


def _size(pattern: str) -> str:
    """`0.0###` as `"0.0" [0-9] [0-9] [0-9]`."""
    digits = {"#": "[0-9]", "?": "[0-9]?"}
    parts: list[str] = []
    literal = ""
    for character in pattern:
        if character not in digits:
            literal += character
            continue
        parts += [_literal(literal)] if literal else []
        parts.append(digits[character])
        literal = ""
    return " ".join(parts + ([_literal(literal)] if literal else []))


def _literal(text: str) -> str:
    """A GBNF string; its escapes are JSON's."""
    return json.dumps(text, ensure_ascii=False)
