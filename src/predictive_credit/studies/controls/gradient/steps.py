"""From the matched card to the donor's, one slot at a time.

In which order a state's slots are replaced is drawn from its name: over many states every slot is
replaced equally early, and the distance is the number of replaced slots, whichever they are.
"""

from __future__ import annotations

from predictive_credit.contexts import labelled
from predictive_credit.records import SLOT_NAMES, Explanation, SlotName, Source, State
from predictive_credit.streams import stream
from predictive_credit.studies.controls.frozen import composed
from predictive_credit.studies.study import Stimuli

STEPS: tuple[Source, ...] = ("donor_1", "donor_2", "donor_3", "donor_4", "donor_5")


def steps(stimuli: Stimuli) -> tuple[Explanation, ...]:
    """Five explanations a state; the matched card and the donor's are the ends."""
    made = []
    for state in stimuli.states:
        own = stimuli.explanations[state.id, "elicited"].card
        lent = stimuli.explanations[stimuli.donors[state.id], "elicited"].card
        ours, theirs = ({n: s.text for n, s in card.filled()} for card in (own, lent))
        replaced = order(state, seed=stimuli.seed, study=stimuli.study)
        for k, source in enumerate(STEPS, start=1):
            said = {name: (theirs if name in replaced[:k] else ours).get(name, "") for name in SLOT_NAMES}
            made.append(composed(state.id, source, labelled(SLOT_NAMES, said)))
    return tuple(made)


def order(state: State, *, seed: int, study: str) -> tuple[SlotName, ...]:
    """In which order a state's slots become the donor's."""
    drawn = stream(seed, study, "order", state.id).permutation(len(SLOT_NAMES))
    return tuple(SLOT_NAMES[k] for k in drawn)
