"""Six slots, read out of a text, each with the words of the text that say it.

Nothing here understands chemistry: a slot is filled if the text has a line for it that says
something, and a quote is true if it occurs in the text.
"""

from __future__ import annotations

import re
from typing import Final

from predictive_credit.records import SLOT_NAMES, Card, Explanation, Slot, SlotName

_LABEL: Final = re.compile(
    rf"^[-*#• \t]*(?P<name>{'|'.join(SLOT_NAMES)})[ \t]*(?:\*\*)?[ \t]*:(?:\*\*)?(?P<rest>.*)$",
    re.IGNORECASE | re.MULTILINE,
)
# What people and models write to leave a slot open.
_PLACEHOLDERS: Final = frozenset(
    {"n/a", "na", "none", "null", "nil", "unknown", "unspecified", "not stated", "not specified",
     "not available", "not applicable", "tbd", "todo", "empty", "blank"}
)  # fmt: skip


def read_card(text: str) -> Card:
    """The card in a text of labelled lines: `Direction:`, `Target:`, ... in any order and case.

    A slot runs to the next label or blank line. Of two lines with one label the first that says
    something stands. A missing, blank or placeholder slot (`n/a`, `...`, `[to fill in]`) is None.
    Never raises: a text without a label gives the empty scaffold.
    """
    slots: dict[str, Slot] = {}
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    for label, end in zip(labels, ends, strict=False):  # without a label there is one end too many
        name = label["name"].lower()
        slot = _slot(text[label.start("rest") : end])
        if slot is not None and name not in slots:
            slots[name] = slot
    return Card(**slots)


def has_quote(quote: str, source: str) -> bool:
    """Whether the words of `quote` occur in `source` in that order; only white space may differ."""
    return bool(quote.strip()) and _words(quote) in _words(source)


def supported(card: Card, source: str) -> Card:
    """The card without the slots whose quote does not occur in `source`."""
    return Card(**{name: slot for name, slot in card.filled() if has_quote(slot.quote, source)})


def check_quotes(explanation: Explanation) -> tuple[SlotName, ...]:
    """Names of the filled slots whose quote does not occur in the explanation's text."""
    filled = explanation.card.filled()
    return tuple(name for name, slot in filled if not has_quote(slot.quote, explanation.text))


def _slot(passage: str) -> Slot | None:
    quote = re.split(r"\n[ \t]*\n", passage.strip(), maxsplit=1)[0].strip()
    text = _words(quote)
    return None if _is_placeholder(text) else Slot(text=text, quote=quote)


def _is_placeholder(text: str) -> bool:
    bracketed = re.fullmatch(r"\[[^\]]*\]|<[^>]*>|\([^)]*\)", text) is not None
    says_something = re.search(r"\w", text.replace("_", "")) is not None
    return bracketed or not says_something or text.lower().strip(" .-–—[]<>()") in _PLACEHOLDERS


def _words(text: str) -> str:
    return " ".join(text.split())


_SIGN: Final = r"(?:[+\-−–]|minus\s+|plus\s+|negative\s+)?"
_NUMBER: Final = r"(?:\d+(?:\.\d+)?|\.\d+)"
_NO_SHARE: Final = r"(?!\.?\d)(?!\s*(?:%|per\s?cent|percentage|points?\b|pp\b))"
_SIGNED: Final = re.compile(rf"(?<![\w.])(?P<sign>{_SIGN})(?P<number>{_NUMBER}){_NO_SHARE}", re.IGNORECASE)
_BETWEEN: Final = re.compile(
    rf"\bbetween\s+(?P<low>{_SIGN}{_NUMBER})\s+and\s+(?P<high>{_SIGN}{_NUMBER}){_NO_SHARE}", re.IGNORECASE
)
_VERB: Final = re.compile(
    r"\b(?:(?P<up>increas|improv|rise|rising|gain|higher|up\b|benefit|positive)"
    r"|(?P<down>decreas|declin|worsen|fall|drop|los[est]|lower|down\b|harm|reduc|negative))",
    re.IGNORECASE,
)
# "not", "at most", "from .81 to .83": what follows is no point forecast of the change.
_NOT_A_POINT: Final = re.compile(
    r"\b(?:not|between|no more|at most|at least|less than|more than|up to)\b"
    rf"|\bfrom\s+[+\-−]?{_NUMBER}\s+to\b",
    re.IGNORECASE,
)


def stated_target(card: Card) -> float | None:
    """The signed change in ROC AUC that the card's target states; positive is an increase.

    A sign beside the number counts first (`-0.012`, `minus 0.012`), then a word before it in the
    slot (`decrease by 0.012`), then the direction slot. `between a and b` gives the midpoint. None
    where the slot states no single number, a percentage, a bound, a level beyond 1, or no sign.
    """
    if card.target is None:
        return None
    text = card.target.text
    between = _BETWEEN.search(text)
    if between is not None:
        ends = [_signed(end, _direction(text[: between.start()], card)) for end in between.groups()]
        return None if None in ends else sum(end for end in ends if end is not None) / 2
    found = _SIGNED.search(text)
    if found is None or _NOT_A_POINT.search(text[: found.end() + 4]):
        return None
    return _signed(found.group(), _direction(text[: found.start()], card))


def _direction(before: str, card: Card) -> int | None:
    """+1, -1, or None: the last word of direction before the number, else the direction slot's first."""
    verbs = list(_VERB.finditer(before))
    if not verbs and card.direction is not None:
        verbs = list(_VERB.finditer(card.direction.text))[:1]
    return (1 if verbs[-1]["up"] else -1) if verbs else None


def _signed(words: str, direction: int | None) -> float | None:
    found = _SIGNED.fullmatch(words.strip())
    if found is None:
        return None
    sign = found["sign"].strip().lower()
    if sign:
        direction = 1 if sign in ("+", "plus") else -1
    size = float(found["number"])
    if size == 0.0:
        return 0.0
    return None if direction is None or size > 1 else direction * size
