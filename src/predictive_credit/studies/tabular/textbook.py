"""What a textbook says of the seven changes to a boosted model, adapted to a state's public facts.

A state's headroom is what its parent leaves to gain: 1 minus its cross-validated skill, measured
against that of an ordinary parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from predictive_credit.agents.playbook import Play, Textbook
from predictive_credit.records import JsonScalar

# 1 - skill of the parent on the median table of the packaged burn-in; a state with this headroom is told the
# burn-in's change as it is.
ORDINARY_HEADROOM: Final = 0.55
HEADROOM_LIMITS: Final = (0.5, 2.0)  # a factor beyond these would trust one cross-validation too far

PLAYS: Final[dict[str, Play]] = {
    "more_leaves": Play(
        helps="larger trees follow interactions that small ones miss",
        harms="larger trees split on noise and the model was overfitting already",
        intermediate="training loss falls faster while held-out loss turns up earlier",
        regime="training rows are many and columns interact",
        counterfactual="with a few dozen training rows no tree could grow the added leaves",
    ),
    "fewer_leaves": Play(
        helps="smaller trees average over more rows and overfit less",
        harms="smaller trees miss interactions that the table holds",
        intermediate="training loss falls more slowly and nears held-out loss",
        regime="training rows are few or the target is noisy",
        counterfactual="with half the learning rate the parent would have overfitted less to begin with",
    ),
    "stronger_l2": Play(
        helps="leaf values of few rows are drawn towards zero and overfit less",
        harms="leaf values are drawn towards zero although many rows support them",
        intermediate="leaf values shrink and predictions move towards the constant",
        regime="leaves hold few rows",
        counterfactual="with ten times the training rows the penalty would hardly matter",
    ),
    "subsampling": Play(
        helps="trees that see different rows and columns err differently, and their errors average out",
        harms="each tree sees less of a table that is small already",
        intermediate="single trees get worse while their sum varies less",
        regime="columns are many and repeat one another",
        counterfactual="with one strong column the trees would often miss what they need",
    ),
    "slower_learning": Play(
        helps="many small steps average out the noise that few large ones follow",
        harms="many small steps fit the noise in the end as well, and more closely",
        intermediate="held-out loss falls more smoothly from tree to tree",
        regime="large steps overshoot, as they do on noisy targets",
        counterfactual="with as few trees as the parent the slower model would be far from done",
    ),
    "class_weights": Play(
        helps="rare classes get an equal say in the fit",
        harms="predicted probabilities move away from the true class shares, which log loss punishes",
        intermediate="the mean predicted probability of the rare classes rises above their share",
        regime="classes are of unequal size",
        counterfactual="with classes of equal size the weights would all be one",
    ),
    "robust_objective": Play(
        helps="a few extreme targets no longer pull the trees towards themselves",
        harms="squared error counts the extreme targets that the fit now plays down",
        intermediate="residuals of the extreme rows grow while those of the others shrink",
        regime="the target has heavy tails or gross errors",
        counterfactual="with all targets within one standard deviation nothing would change",
    ),
}


def headroom(facts: Mapping[str, JsonScalar]) -> float:
    """A state's 1 - skill relative to an ordinary parent's, within limits; 1 where it is unknown."""
    skill = facts.get("cv_skill")
    if not isinstance(skill, int | float):
        return 1.0
    low, high = HEADROOM_LIMITS
    return min(max((1.0 - skill) / ORDINARY_HEADROOM, low), high)


def here(facts: Mapping[str, JsonScalar]) -> str:
    """The state's own numbers, as far as they are known."""
    n, columns, share, skill = (facts.get(k) for k in ("n_train", "n_features", "largest_class", "cv_skill"))
    known = [
        f"{n:,} training rows" if isinstance(n, int) else None,
        f"{columns:,} columns" if isinstance(columns, int) else None,
        f"{100 * share:.1f} % in the largest class" if isinstance(share, int | float) else None,
        f"cross-validated skill {skill:.3f}" if isinstance(skill, int | float) else None,
    ]
    return ", ".join(fact for fact in known if fact is not None)


TEXTBOOK: Final = Textbook(plays=PLAYS, headroom=headroom, here=here)
