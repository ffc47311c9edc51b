"""A reader that is rules: labelled lines as they stand, else the sentences that hold a slot's cue words.

It understands nothing, and leaves a slot empty rather than guess. Its quotes are whole sentences.
"""

from __future__ import annotations

import re
from typing import Final

from predictive_credit.cards import read_card, write_extraction
from predictive_credit.contexts import FENCE_CLOSE, FENCE_OPEN
from predictive_credit.records import Card, Prompt, Reply, Slot, SlotName

# A line end alone ends no sentence, for people wrap their lines; a blank line or a list's next item does.
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[\"'(]?[A-Z0-9+\-−–])|\n\s*\n|\n(?=\s*[-*•])")
_MOVES: Final = (
    r"(?:increas\w*|decreas\w*|improv\w*|declin\w*|worsen\w*|ris(?:e|es|ing)|rose|fall(?:s|ing)?|fell|"
    r"drop\w*|gain\w*|los(?:e|es|ing)|higher|lower|go(?:es)? (?:up|down)|reduc\w*|rais\w*)"
)
_OUTLOOK: Final = (
    r"(?:will|would|should|may|might|could|expect\w*|predict\w*|anticipat\w*|forecast\w*|think|believe"
    r"|likely)"
)
LONGEST_SENTENCE: Final = 1_000  # characters; what is longer was not written as a sentence
_UNIT: Final = r"(?:percentage points?|points?|pp|nats?|ROC AUC|AUC)"


def _cue(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


# In this order: a sentence that says what would prove the text wrong, or what would happen without the
# cause, often names a rise or a fall too, and states neither direction nor target.
_CONDITIONAL: Final[dict[SlotName, re.Pattern[str]]] = {
    "falsifier": _cue(
        r"\bfalsif|\brefut|\bdisprov|\bcontradict|\b(?:count|speak|tell)s? against\b"
        r"|\bwrong (?:if|when|unless)\b|\b(?:if|prov\w*|show\w*)\b.*\bwrong\b"
    ),
    "counterfactual": _cue(
        r"\bcounterfactual|\bwithout\b.*\bwould\b|\bwould\b.*\bwithout\b|\bwere\b.*\bwould\b"
        r"|\bwould\b.*\bwere\b|\bhad\b.*\bwould\b|\bin the absence of\b|\bwould (?:vanish|disappear)\b"
    ),
}
_PLAIN: Final[dict[SlotName, re.Pattern[str]]] = {
    "direction": _cue(rf"\b{_OUTLOOK}\b.*\b{_MOVES}\b|\b{_MOVES}\b.*\b(?:is|are) (?:expected|likely)\b"),
    "target": _cue(
        rf"(?<![\w.,\-−–+])(?:[+\-−–]|(?:minus|plus)\s+)\.?\d"
        rf"|\d\s*{_UNIT}\b"
        rf"|\b{_MOVES}\b[^.;]{{0,40}}\b(?:by|of)\s+(?:about |around |roughly |some |perhaps |~\s?)?\.?\d"
    ),
    "intermediate": _cue(
        r"\bintermediate|\binside the model\b|\balong the way\b|\bbefore that\b|\bobservable\b"
        r"|\b(?:first|early)\b.*\b(?:see|seen|visible|show)\b|\b(?:see|seen|visible|show)\b.*\bfirst\b"
        r"|\bshould (?:first )?be (?:seen|visible)\b"
    ),
    "regime": _cue(
        r"\b(?:strongest|largest|weakest|most|mostly|mainly|especially|particularly|above all|chiefly|best"
        r"|only)\s+(?:where|when|for|in|on|if|with)\b|\bregimes?\b|\bholds? (?:where|when|for)\b"
    ),
}


class RulesReader:
    """Answers an extraction prompt from its fenced text alone; the same text gives the same answer."""

    def __init__(self, *, name: str) -> None:
        self.name = name

    def answer(self, prompt: Prompt) -> Reply:
        """The JSON object that the prompt asks for."""
        text = prompt.user.partition(f"{FENCE_OPEN}\n")[2].rpartition(f"\n{FENCE_CLOSE}")[0]
        return Reply(
            text=write_extraction(read(text)),
            finish_reason="stop",
            model_requested=self.name,
            model_resolved=self.name,
        )

    def close(self) -> None:
        """Nothing to end."""


def read(text: str) -> Card:
    """The card in a text: its labelled lines if it has any, else what its sentences say."""
    labelled = read_card(text)
    return labelled if any(labelled.filled()) else _from_prose(text)


def _from_prose(text: str) -> Card:
    """Each slot holds the first sentence with a cue of its own."""
    sentences = [s.strip() for s in _SENTENCE_END.split(text) if len(s) <= LONGEST_SENTENCE]
    conditional = {name: _first(cue, sentences) for name, cue in _CONDITIONAL.items()}
    rest = [s for s in sentences if all(_first(cue, [s]) is None for cue in _CONDITIONAL.values())]
    return Card(**conditional, **{name: _first(cue, rest) for name, cue in _PLAIN.items()})


def _first(cue: re.Pattern[str], sentences: list[str]) -> Slot | None:
    for sentence in sentences:
        text = " ".join(sentence.split())
        if cue.search(text):
            return Slot(text=text, quote=sentence)
    return None
