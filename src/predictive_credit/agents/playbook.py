"""A deterministic author: textbook mechanisms, numbers from the burn-in, adapted to public facts.

The number a card states is the burn-in's mean change under the same intervention, times the
state's headroom: the parent's cross-validated ROC AUC leaves 1 - AUC to gain or lose by ordering,
measured against that of an ordinary parent. The interval is scaled alike. Nothing is learned from
the study's own outcomes, so a card can be wrong, and often is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from predictive_credit import prompts
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, JsonScalar, Prompt, Reply, State

# 1 - ROC AUC of a usual fingerprint model; a state with this headroom is told the burn-in's change as it is.
ORDINARY_HEADROOM: Final = 0.15
HEADROOM_LIMITS: Final = (0.5, 2.0)  # a factor beyond these would trust one cross-validation too far


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """What a textbook says of one intervention: why it may help or harm, what to watch, where, what if."""

    helps: str
    harms: str
    intermediate: str
    regime: str
    counterfactual: str


PLAYS: Final[dict[str, Play]] = {
    "class_balanced": Play(
        helps="the few actives get an equal say in the fit",
        harms="the extra weight makes the fit follow the noise of few actives",
        intermediate="scores of actives rise while the order of scores hardly moves",
        regime="actives are rare",
        counterfactual="with classes of equal size the weights would all be one",
    ),
    "add_descriptors": Play(
        helps="weight, lipophilicity and polarity carry signal that single bits miss",
        harms="the descriptors repeat what the bits say and add variance",
        intermediate="some descriptor coefficients grow as large as the largest of the bits",
        regime="bulk properties drive activity and training compounds are few",
        counterfactual="with descriptors shuffled between compounds the change would vanish",
    ),
    "radius_3": Play(
        helps="larger atom environments tell close analogues apart",
        harms="larger environments recur in fewer compounds and collide more",
        intermediate="more bits are set in each compound, each shared by fewer compounds",
        regime="many close analogues are available for training",
        counterfactual="with twice the bits fewer of the added environments would collide",
    ),
    "bits_2048": Play(
        helps="fewer unrelated substructures share a bit",
        harms="more coefficients must be learned from the same compounds",
        intermediate="fewer bits are shared by unrelated substructures",
        regime="compounds are large and diverse, so that bits collide",
        counterfactual="with a bit for every substructure from the start nothing would change",
    ),
    "stronger_l2": Play(
        helps="smaller coefficients overfit less",
        harms="smaller coefficients miss real substructures",
        intermediate="the coefficient norm shrinks and training ROC AUC falls",
        regime="compounds are few for so many bits",
        counterfactual="with ten times the training compounds the penalty would hardly matter",
    ),
    "weaker_l2": Play(
        helps="larger coefficients can follow real substructures",
        harms="larger coefficients follow noise",
        intermediate="the coefficient norm grows and training ROC AUC nears one",
        regime="compounds are many for so few bits",
        counterfactual="with ten times the training compounds the penalty would hardly matter",
    ),
}


class Playbook:
    """Writes the same card for the same public state and burn-in, whatever it is prompted with."""

    def __init__(self, burn_in: BurnIn, *, name: str = "playbook") -> None:
        self.name = name
        self._burn_in = burn_in

    def write(self, state: State, prompt: Prompt) -> Reply:
        """The card of a state as a reply. Raises BadConfig for an intervention no play is known for."""
        return Reply(
            text=card_text(state, self._burn_in),
            finish_reason="stop",
            model_requested=self.name,
            model_resolved=f"playbook on burn-in {self._burn_in.name}",
        )

    def close(self) -> None:
        """Nothing to end."""


def card_text(state: State, burn_in: BurnIn) -> str:
    """Six labelled lines about one state.

    Raises BadConfig if the playbook or the burn-in does not know the state's intervention.
    """
    play = PLAYS.get(state.intervention.name)
    if play is None:
        raise BadConfig(
            f"{state.id}: the playbook knows nothing of {state.intervention.name!r}, only of "
            f"{', '.join(PLAYS)}; choose another agent"
        )
    mean, minus, plus = stated_change(state, burn_in)
    up = mean >= 0
    return prompts.text("playbook_card").format(
        verb="increase" if up else "decrease",
        why=play.helps if up else play.harms,
        size=f"{abs(mean):.4f}",
        minus=f"{minus:.4f}",
        plus=f"{plus:.4f}",
        intermediate=play.intermediate,
        regime=play.regime,
        here=_here(state.facts),
        counterfactual=play.counterfactual,
    )


def stated_change(state: State, burn_in: BurnIn) -> tuple[float, float, float]:
    """The change a card states and the distances down and up to its 80 % interval's ends, in ROC AUC."""
    found = burn_in.by_intervention.get(state.intervention.name)
    if found is None:
        raise BadConfig(
            f"{state.id}: burn-in {burn_in.name} holds no outcome of {state.intervention.name!r}, only of "
            f"{', '.join(sorted(burn_in.by_intervention)) or 'nothing'}; take another burn_in pool"
        )
    factor = headroom(state.facts.get("cv_auc"))
    mean, low, high = (factor * found[key] for key in ("mean", "q10", "q90"))
    return mean, max(mean - low, 0.0), max(high - mean, 0.0)


def headroom(auc: JsonScalar) -> float:
    """A state's 1 - ROC AUC relative to an ordinary parent's, within limits; 1 where it is unknown."""
    if not isinstance(auc, int | float):
        return 1.0
    low, high = HEADROOM_LIMITS
    return min(max((1.0 - auc) / ORDINARY_HEADROOM, low), high)


def _here(facts: Mapping[str, JsonScalar]) -> str:
    """The state's own numbers, as far as they are known."""
    n, share, auc = (facts.get(key) for key in ("n_train", "prevalence", "cv_auc"))
    known = [
        f"{n:,} compounds" if isinstance(n, int) else None,
        f"{100 * share:.1f} % active" if isinstance(share, int | float) else None,
        f"cross-validated ROC AUC {auc:.3f}" if isinstance(auc, int | float) else None,
    ]
    said = ", ".join(fact for fact in known if fact is not None)
    return f"; here {said}" if said else ""
