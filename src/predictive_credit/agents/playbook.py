"""A deterministic author: textbook mechanisms, numbers from the burn-in, adapted to public facts.

The number a card states is the burn-in's mean change under the same intervention, times the state's
headroom, which the study's textbook reads from public facts. The interval is scaled alike. Nothing
is learned from the study's own outcomes, so a card can be wrong, and often is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from predictive_credit import prompts, wording
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, JsonScalar, Prompt, Reply, Source, State, Target
from predictive_credit.wording import Stated

Facts = Mapping[str, JsonScalar]


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What a textbook says of one intervention: why it may help or harm, what to watch, where, what if.

    Each is a clause without a full stop: `helps` and `harms` follow "because" (they explain a move of the
    first target to its better and to its worse side), `regime` follows "strongest where", the other two
    stand alone.
    """

    helps: str
    harms: str
    intermediate: str
    regime: str
    counterfactual: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Textbook:
    """What the playbook knows of one study's interventions and of reading its states' facts."""

    plays: Mapping[str, Play]  # by intervention name
    headroom: Callable[[Facts], float]  # the factor on the burn-in's change; 1 where nothing is known
    here: Callable[[Facts], str]  # the state's own numbers ("2,620 compounds, 11.8 % active"), or ""


class Playbook:
    """Writes the same text for the same public state, source and burn-in, whatever it is prompted with."""

    def __init__(self, burn_in: BurnIn, textbook: Textbook, targets: Sequence[Target], *, name: str) -> None:
        self.name = name
        self._burn_in = burn_in
        self._textbook = textbook
        self._targets = tuple(targets)

    def write(self, state: State, source: Source, prompt: Prompt) -> Reply:
        """The card or the note about a state. Raises BadConfig for an intervention no play is known for."""
        write = {"elicited": card_text, "ordinary": note_text}[source]
        return Reply(
            text=write(state, self._burn_in, self._textbook, self._targets),
            finish_reason="stop",
            model_requested=self.name,
            model_resolved=f"playbook on burn-in {self._burn_in.name}",
        )

    def close(self) -> None:
        """Nothing to end."""


def card_text(state: State, burn_in: BurnIn, textbook: Textbook, targets: Sequence[Target]) -> str:
    """Six labelled lines about one state.

    Raises BadConfig if the playbook or the burn-in does not know the state's intervention.
    """
    play = _play(state, textbook)
    stated = [stated_change(state, burn_in, textbook, target) for target in targets]
    verbs = [wording.verb(change.point) for change in stated]
    first = verbs[0]
    each = [f"{wording.in_sentence(t)} will {verb}" for t, verb in zip(targets, verbs, strict=True)]
    return prompts.text("playbook_card").format(
        direction=first if len(targets) == 1 else wording.listed(each),
        why=_why(play, first, targets[0]),
        target="; ".join(wording.said(change, t) for change, t in zip(stated, targets, strict=True)),
        intermediate=play.intermediate,
        regime=play.regime,
        here=_here(state, textbook),
        falsified=f"{wording.in_sentence(targets[0])} does not {first}",
        counterfactual=play.counterfactual,
    )


def note_text(state: State, burn_in: BurnIn, textbook: Textbook, targets: Sequence[Target]) -> str:
    """A paragraph in which a researcher proposes the change in passing: no size, no test of it.

    Raises BadConfig like `card_text`.
    """
    play = _play(state, textbook)
    verbs = [wording.verb(stated_change(state, burn_in, textbook, target).point) for target in targets]
    each = [f"{wording.in_sentence(t)} to {verb}" for t, verb in zip(targets, verbs, strict=True)]
    return prompts.text("playbook_note").format(
        planned=state.intervention.text.rstrip("."),
        expected=wording.listed(each),
        why=_why(play, verbs[0], targets[0]),
        hoped=wording.in_sentence(targets[0]),
        regime=play.regime,
        here=_here(state, textbook),
    )


def stated_change(state: State, burn_in: BurnIn, textbook: Textbook, target: Target) -> Stated:
    """The change that a card states of one target, in its unit."""
    learned = burn_in.targets[target.name].by_intervention
    found = learned.get(state.intervention.name)
    if found is None:
        raise BadConfig(
            f"{state.id}: burn-in {burn_in.name} holds no outcome of {state.intervention.name!r}, only of "
            f"{', '.join(sorted(learned)) or 'nothing'}; take another burn_in pool"
        )
    factor = textbook.headroom(state.facts)
    mean, low, high = (factor * found[key] for key in ("mean", "q10", "q90"))
    return Stated(point=mean, minus=max(mean - low, 0.0), plus=max(high - mean, 0.0))


def _play(state: State, textbook: Textbook) -> Play:
    play = textbook.plays.get(state.intervention.name)
    if play is None:
        raise BadConfig(
            f"{state.id}: the playbook knows nothing of {state.intervention.name!r}, only of "
            f"{', '.join(textbook.plays)}; choose another agent"
        )
    return play


def _why(play: Play, verb: str, first: Target) -> str:
    """The mechanism that goes with what the first target will do."""
    better = "increase" if first.better == "higher" else "decrease"
    return play.helps if verb == better else play.harms


def _here(state: State, textbook: Textbook) -> str:
    said = textbook.here(state.facts)
    return f"; here {said}" if said else ""
