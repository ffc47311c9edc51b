"""A card taken apart: numbers and mechanism, each the state's own or the donor's.

The numbers are the direction slot, up to its reason, and the target slot. The mechanism is the reason
and the four other slots. Every context shows all six lines, so that what they hold alone differs.
"""

from __future__ import annotations

from collections.abc import Mapping

from predictive_credit.cards import before_reason, reason
from predictive_credit.contexts import labelled
from predictive_credit.records import SLOT_NAMES, Card, Explanation, SlotName, Source
from predictive_credit.studies.controls.frozen import composed
from predictive_credit.studies.study import Stimuli

Said = Mapping[SlotName, str]


def components(stimuli: Stimuli) -> tuple[Explanation, ...]:
    """Five explanations a state; D, the full card and the donor's need none."""
    made = []
    for state in stimuli.states:
        own = stimuli.explanations[state.id, "elicited"].card
        lent = stimuli.explanations[stimuli.donors[state.id], "elicited"].card
        shown: dict[Source, Said] = {
            "numbers": joined(own, None),
            "mechanism": joined(None, own),
            "donor_mechanism": joined(own, lent),
            "donor_numbers": joined(lent, own),
            "scaffold": joined(None, None),
        }
        made += [composed(state.id, source, labelled(SLOT_NAMES, said)) for source, said in shown.items()]
    return tuple(made)


def joined(numbers: Card | None, mechanism: Card | None) -> dict[SlotName, str]:
    """The slots of a card whose numbers are one card's and whose mechanism is another's; None: empty."""
    first, second = _said(numbers), _said(mechanism)
    direction = before_reason(first["direction"]) if "direction" in first else ""
    why = reason(second["direction"]) if "direction" in second else ""
    both = ", ".join(part for part in (direction, why) if part)
    found: dict[SlotName, str] = {"direction": both} if both else {}
    if "target" in first:
        found["target"] = first["target"]
    return found | {name: text for name, text in second.items() if name not in ("direction", "target")}


def _said(card: Card | None) -> dict[SlotName, str]:
    return {} if card is None else {name: slot.text for name, slot in card.filled()}
