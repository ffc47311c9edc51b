"""What a textbook says of the six changes to a logistic regression, adapted to a state's public facts.

A state's headroom is what its parent gets wrong: its cross-validated error, measured against that of
an ordinary parent of these regimes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from predictive_credit.agents.playbook import Play, Textbook
from predictive_credit.records import JsonScalar

# Percent of rows. A state with this cross-validated error is told the burn-in's change as it is.
ORDINARY_ERROR: Final = 25.0
HEADROOM_LIMITS: Final = (0.5, 2.0)  # a factor beyond these would trust one cross-validation too far

PLAYS: Final[dict[str, Play]] = {
    "quadratic_features": Play(
        helps="squares and products let the model bend its boundary",
        harms="the many added coefficients fit the noise of few rows",
        intermediate="some coefficients of squares grow as large as the largest linear one",
        regime="the boundary is curved, and rows are many for the number of products",
        counterfactual="with a truly linear boundary the products would only add variance",
    ),
    "stronger_l2": Play(
        helps="smaller coefficients overfit less and make less extreme probabilities",
        harms="smaller coefficients understate real slopes and leave probabilities too timid",
        intermediate="the coefficient norm shrinks and training fit gets worse",
        regime="rows are few for so many features, or labels are noisy",
        counterfactual="with ten times the training rows the penalty would hardly matter",
    ),
    "weaker_l2": Play(
        helps="larger coefficients can follow a steep boundary",
        harms="larger coefficients follow noise and make overconfident probabilities",
        intermediate="the coefficient norm grows and predicted probabilities near zero and one",
        regime="rows are many for so few features and classes are well apart",
        counterfactual="with ten times the training rows the penalty would hardly matter",
    ),
    "class_weights": Play(
        helps="the rarer class gets an equal say in the fit",
        harms="the fit gives up many rows of the common class for few of the rarer one",
        intermediate="the share of rows predicted as the rarer class rises",
        regime="one class is rare",
        counterfactual="with classes of equal size the weights would all be one",
    ),
    "select_features": Play(
        helps="features without signal no longer add variance",
        harms="features with a share in the signal are thrown away",
        intermediate="training fit gets worse while the gap to held-out fit narrows",
        regime="few of many features bear on the class",
        counterfactual="with signal spread over all features the selection would lose some of it",
    ),
    "clip_features": Play(
        helps="a few extreme values no longer rule scale and slope",
        harms="clipped values lose what the tails say of the class",
        intermediate="the standard deviations of the heavy-tailed features shrink",
        regime="features have heavy tails",
        counterfactual="with Gaussian features clipping would change little",
    ),
}


def headroom(facts: Mapping[str, JsonScalar]) -> float:
    """A parent's error relative to an ordinary one's, within limits; 1 where it is unknown."""
    accuracy = facts.get("cv_accuracy")
    if not isinstance(accuracy, int | float):
        return 1.0
    low, high = HEADROOM_LIMITS
    return min(max((100.0 - accuracy) / ORDINARY_ERROR, low), high)


def here(facts: Mapping[str, JsonScalar]) -> str:
    """The state's own numbers, as far as they are known."""
    n, features, share, accuracy = (
        facts.get(key) for key in ("n_train", "n_features", "positive_percent", "cv_accuracy")
    )
    known = [
        f"{n:,} rows" if isinstance(n, int) else None,
        f"{features:,} features" if isinstance(features, int) else None,
        f"{share:.1f} % positive" if isinstance(share, int | float) else None,
        f"cross-validated accuracy {accuracy:.1f} %" if isinstance(accuracy, int | float) else None,
    ]
    return ", ".join(fact for fact in known if fact is not None)


TEXTBOOK: Final = Textbook(plays=PLAYS, headroom=headroom, here=here)
