"""Six slots, read out of a text, each with the words of the text that say it.

Nothing here understands what it reads: a slot is filled if the text has a line for it that says
something, and a quote is true if its whole words occur in the text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from predictive_credit.records import SLOT_NAMES, Card, Explanation, Slot, SlotName, Target

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


def write_extraction(card: Card) -> str:
    """The JSON object that `read_extraction` reads."""
    said = {name: {"text": slot.text, "quote": slot.quote} for name, slot in card.filled()}
    return json.dumps({name: said.get(name) for name in SLOT_NAMES}, ensure_ascii=False)


def read_extraction(text: str) -> Card:
    """The card in one JSON object of the six slot names, each null or {"text", "quote"}.

    A placeholder is an empty slot. Never raises: anything else, a key too many or too few, or text
    around the object, gives the empty scaffold.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return Card()
    if not isinstance(values, dict) or set(values) != set(SLOT_NAMES):
        return Card()
    if not all(value is None or _is_slot(value) for value in values.values()):
        return Card()
    return Card(**{name: _extracted(value) for name, value in values.items() if value is not None})


def has_quote(quote: str, source: str) -> bool:
    """Whether the whole words and numbers of `quote` occur in `source` in that order.

    Only white space may differ: `in` is not in `increase`, nor 0.01 in 0.012. A bracket's
    look-alike counts as the bracket, for a reader is shown the one for the other.
    """
    return bool(quote.strip()) and f" {_tokens(quote)} " in f" {_tokens(source)} "


def supported(card: Card, source: str) -> Card:
    """The card without the slots that their quotes do not support.

    A quote has to occur in `source`, to hold every number of the slot's text, and to be two words
    or a word of four letters at least; a shorter one vouches for nothing but itself.
    """
    return Card(**{name: slot for name, slot in card.filled() if _is_supported(slot, source)})


def check_quotes(explanation: Explanation) -> tuple[SlotName, ...]:
    """Names of the filled slots that their quotes do not support, by the rule of `supported`."""
    filled = explanation.card.filled()
    return tuple(name for name, slot in filled if not _is_supported(slot, explanation.text))


def before_reason(text: str) -> str:
    """What a slot says before it gives its reason: `decrease` of `decrease, because trees overfit`."""
    said, *reasons = _REASON.split(text, maxsplit=1)
    return said.rstrip(" ,;:.(–—-") if reasons else text


def reason(text: str) -> str:
    """What follows in a slot: `because trees overfit` of `decrease, because trees overfit`; else ""."""
    found = _REASON.search(text)
    return text[found.start() :] if found else ""


def _slot(passage: str) -> Slot | None:
    quote = re.split(r"\n[ \t]*\n", passage.strip(), maxsplit=1)[0].strip()
    text = _words(quote)
    return None if _is_placeholder(text) else Slot(text=text, quote=quote)


def _is_slot(value: Any) -> bool:
    is_object = isinstance(value, dict) and set(value) == {"text", "quote"}
    return is_object and all(isinstance(words, str) for words in value.values())


def _extracted(value: dict[str, str]) -> Slot | None:
    text, quote = (words.encode("utf-8", "replace").decode() for words in (value["text"], value["quote"]))
    return None if _is_placeholder(_words(text)) else Slot(text=_words(text), quote=quote.strip())


def _is_supported(slot: Slot, source: str) -> bool:
    says_itself = _words(slot.text) == _words(slot.quote)
    return has_quote(slot.quote, source) and (says_itself or _vouches(slot.quote, slot.text))


def _vouches(quote: str, text: str) -> bool:
    """Whether a quote is long enough to stand for a text in other words, and holds its numbers."""
    words = re.findall(r"[^\W_]+", quote)
    is_long = len(words) > 1 or any(re.search(r"[^\W\d_]{4}", word) for word in words)
    return is_long and _numbers(text) <= _numbers(quote)


def _numbers(text: str) -> set[float]:
    """The sizes of the numbers in a text; the 2 of L2 is none."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    return {float(number) for number in re.findall(rf"(?<![\w.]){_NUMBER}", plain)}


def _tokens(text: str) -> str:
    """Words, numbers and single marks, a space between any two."""
    return " ".join(re.findall(r"\d+(?:[.,]\d+)*|[^\W_]+|[^\w\s]|_", _plain(text)))


def _plain(text: str) -> str:
    """What `contexts.neutralised` replaces, taken back as far as one character stands for another."""
    return text.replace("‹", "<").replace("＜", "<").replace("[", "(")


def _is_placeholder(text: str) -> bool:
    bracketed = re.fullmatch(r"\[[^\]]*\]|<[^>]*>|\([^)]*\)", text) is not None
    says_something = re.search(r"\w", text.replace("_", "")) is not None
    return bracketed or not says_something or text.lower().strip(" .-–—[]<>()") in _PLACEHOLDERS


def _words(text: str) -> str:
    return " ".join(text.split())


_SIGN: Final = r"(?:[+\-−–]|minus\s+|plus\s+|negative\s+)?"
_NUMBER: Final = r"(?:(?:\d+(?:\.\d+)?|\.\d+)(?:e[+\-]?\d+)?)"
_SIGNED: Final = re.compile(rf"(?P<sign>{_SIGN})(?P<number>{_NUMBER})", re.IGNORECASE)
_SHARE: Final = r"(?:%|per\s?cent|percentage(?:\s+points?)?|points?\b|pp\b)"
# Words of direction, and words of value, whose direction is that of the target's better side. The loss
# of "log loss" is a quantity and no harm.
_VERB: Final = re.compile(
    r"\b(?:(?P<up>increas|rise|rising|higher|up\b|positive)"
    r"|(?P<down>decreas|declin|fall|drop|lower|down\b|reduc|negative)"
    r"|(?P<better>improv|gain|benefit|better\b)"
    r"|(?P<worse>worse|harm|(?<!log )(?<!log-)los[est]))",
    re.IGNORECASE,
)
# "not", "at most", "from .81 to .83": what follows is no point forecast of the change.
_NOT_A_POINT: Final = re.compile(
    r"\b(?:not|between|no more|at most|at least|less than|more than|up to)\b"
    rf"|\bfrom\s+[+\-−]?{_NUMBER}\s+to\b",
    re.IGNORECASE,
)
_ANOTHER: Final = re.compile(rf"\s*(?:[\-–−]|to\b|or\b)\s*{_NUMBER}", re.IGNORECASE)  # "0.01-0.03"
_NEGATION: Final = re.compile(r"\b(?:not|no|never|neither|nor|hardly)\b|n't\b", re.IGNORECASE)
_REASON: Final = re.compile(r"\b(?:because|since|due to|owing to|thanks to)\b", re.IGNORECASE)
_LEVEL_OF_INTERVAL: Final = re.compile(r"\b\d+\s?%(?=[^.;]{0,20}\binterval)", re.IGNORECASE)
# A clause ends at a stop, a comma or an "and", but for that of `between 1 and 2`.
_CLAUSE_END: Final = re.compile(
    rf";|\n|(?<=[.!?])\s+|,\s+|\s+(?:and|but|while|whereas)\s+(?!{_SIGN}{_NUMBER})", re.IGNORECASE
)


def stated_target(card: Card, target: Target, *, among: Sequence[Target] = ()) -> float | None:
    """The signed number that the card states of one target, in its unit; for a change, a rise is positive.

    A sign beside the number counts first (`-0.012`, `minus 0.012`), then a word before it in the
    slot (`decrease by 0.012`; `improve` is a fall where lower is better), then the direction slot; a
    level needs none. `between a and b` gives
    the midpoint. The clause that names the target is read before the whole slot, and alone if the
    slot names others of `among`, the study's targets. A number with the target's unit goes first; a
    bare one counts only beside the target's name, where the target has a unit to say. None where
    there is no single number, another unit, a bound, no sign, or what the target's range excludes.
    """
    if card.target is None:
        return None
    text = _LEVEL_OF_INTERVAL.sub("", card.target.text)
    for passage in _passages(text, target, among):
        value = _number(passage, card, target, among)
        if value is not None:
            return value if target.lower <= value <= target.upper else None
    return None


def stated_direction(card: Card, target: Target, *, among: Sequence[Target] = ()) -> int | None:
    """+1 for a rise of the target, -1 for a fall, as the direction slot says; None where it does not.

    What is said before the reason goes first, and in it the clause that names the target. Nothing is
    read where the slot names only others of `among`, or denies the first word of direction.
    """
    if card.direction is None:
        return None
    text = card.direction.text
    for passage in (*_passages(before_reason(text), target, among), *_passages(text, target, among)):
        verb = _VERB.search(_unnamed(passage, target, among))
        if verb is not None:
            return None if _NEGATION.search(passage[: verb.start()]) else _sign(verb, target)
    return None


def _passages(text: str, target: Target, among: Sequence[Target]) -> list[str]:
    """Where to look for a target: the clauses that name it; then all, unless others are named there."""
    named = [clause for clause in _CLAUSE_END.split(text) if _name(target).search(clause)]
    others = [other for other in among if other.name != target.name]
    return named if any(_name(other).search(text) for other in others) else [*named, text]


def _number(passage: str, card: Card, target: Target, among: Sequence[Target]) -> float | None:
    """The one number of a passage, signed."""
    is_named = re.search(_words_of(target.phrase, target.name), passage, re.IGNORECASE) is not None
    text = _unnamed(passage, target, among)
    needs_unit = bool(target.suffix.strip()) and not is_named
    between = _first(
        rf"\bbetween\s+(?P<low>{_SIGN}{_NUMBER})\s+and\s+(?P<high>{_SIGN}{_NUMBER})", text, target
    )
    if between is not None and (between["unit"] or not needs_unit):
        before = _direction(text[: between.start()], card, target, among)
        ends = [_signed(between[end], before, target) for end in ("low", "high")]
        return None if None in ends else sum(end for end in ends if end is not None) / 2
    found = _first(rf"(?<![\w.])(?<!\d,){_SIGN}{_NUMBER}", text, target)
    if found is None or (needs_unit and not found["unit"]) or _NOT_A_POINT.search(text[: found.end() + 4]):
        return None
    if _ANOTHER.match(text, found.end()):
        return None
    return _signed(found["amount"], _direction(text[: found.start()], card, target, among), target)


def _first(amount: str, text: str, target: Target) -> re.Match[str] | None:
    """The first amount with the target's own unit, else the first that has no other."""
    own = _unit(target)
    foreign = "" if own == _SHARE else rf"(?!\s*{_SHARE})"
    pattern = rf"(?P<amount>{amount})(?!\.?\d|,\d|e[+\-]?\d)(?P<unit>\s*{own})?{foreign}"
    found = list(re.finditer(pattern, text, re.IGNORECASE))
    return next((match for match in found if match["unit"]), found[0] if found else None)


def _unit(target: Target) -> str:
    """A pattern of the target's unit after an amount: a share's many spellings, or the suffix as it is."""
    suffix = target.suffix.strip()
    if not suffix:
        return r"(?!)"
    return _SHARE if re.match(_SHARE, suffix, re.IGNORECASE) else rf"{re.escape(suffix)}(?!\w)"


def _name(target: Target) -> re.Pattern[str]:
    """The target's phrase, name or unit."""
    return re.compile(_words_of(target.phrase, target.name, target.suffix.strip()), re.IGNORECASE)


def _words_of(*names: str) -> str:
    return rf"(?<!\w)(?:{'|'.join(re.escape(name) for name in names if name)})(?!\w)"


def _unnamed(passage: str, target: Target, among: Sequence[Target]) -> str:
    """A passage whose targets are called x, for a name may hold a number or a word of direction."""
    for known in (target, *among):
        pattern = _words_of(known.phrase, known.name)
        passage = re.sub(pattern, lambda found: "x" * len(found.group()), passage, flags=re.IGNORECASE)
    return passage


def _direction(before: str, card: Card, target: Target, among: Sequence[Target]) -> int | None:
    """+1, -1, or None: the last word of direction before the number, else what the direction slot says."""
    verbs = list(_VERB.finditer(before))
    return _sign(verbs[-1], target) if verbs else stated_direction(card, target, among=among)


def _sign(verb: re.Match[str], target: Target) -> int:
    towards_better = 1 if target.better == "higher" else -1
    return {"up": 1, "down": -1, "better": towards_better, "worse": -towards_better}[str(verb.lastgroup)]


def _signed(words: str, direction: int | None, target: Target) -> float | None:
    found = _SIGNED.fullmatch(words.strip())
    if found is None:
        return None
    sign, size = found["sign"].strip().lower(), float(found["number"])
    if sign:
        return size if sign in ("+", "plus") else -size
    if target.form == "level" or size == 0.0:
        return size
    return None if direction is None else direction * size
