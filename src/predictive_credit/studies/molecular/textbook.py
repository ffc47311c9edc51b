"""What a textbook says of the six changes to an assay model, adapted to a state's public facts.

A state's headroom is what its parent leaves to gain or lose by ordering: 1 minus its cross-validated
ROC AUC, measured against that of an ordinary parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from predictive_credit.agents.playbook import Play, Textbook
from predictive_credit.records import JsonScalar

# 1 - ROC AUC of a usual fingerprint model; a state with this headroom is told the burn-in's change as it is.
ORDINARY_HEADROOM: Final = 0.15
HEADROOM_LIMITS: Final = (0.5, 2.0)  # a factor beyond these would trust one cross-validation too far

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


def headroom(facts: Mapping[str, JsonScalar]) -> float:
    """A state's 1 - ROC AUC relative to an ordinary parent's, within limits; 1 where it is unknown."""
    auc = facts.get("cv_auc")
    if not isinstance(auc, int | float):
        return 1.0
    low, high = HEADROOM_LIMITS
    return min(max((1.0 - auc) / ORDINARY_HEADROOM, low), high)


def here(facts: Mapping[str, JsonScalar]) -> str:
    """The state's own numbers, as far as they are known."""
    n, share, auc = (facts.get(key) for key in ("n_train", "prevalence", "cv_auc"))
    known = [
        f"{n:,} compounds" if isinstance(n, int) else None,
        f"{100 * share:.1f} % active" if isinstance(share, int | float) else None,
        f"cross-validated ROC AUC {auc:.3f}" if isinstance(auc, int | float) else None,
    ]
    return ", ".join(fact for fact in known if fact is not None)


TEXTBOOK: Final = Textbook(plays=PLAYS, headroom=headroom, here=here)
