"""The two targets, the closed list of six interventions on the parent, and which state gets which.

Parent: L2-regularised logistic regression, C = 1, on standardised features. Each intervention
changes one thing of that recipe.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from predictive_credit.records import Intervention, Target

# The changed model's minus the parent's. A better fit has the higher accuracy, and the lower log loss.
ACCURACY = Target(
    name="accuracy_pp", phrase="Accuracy", unit="percentage points", suffix=" percentage points",
    size="?#.##", lower=-100.0, upper=100.0, large=1.0,
)  # fmt: skip
LOG_LOSS = Target(
    name="log_loss", phrase="log loss", unit="nats", suffix=" nats",
    size="#.####", lower=-10.0, upper=10.0, large=0.01, better="lower",
)  # fmt: skip
TARGETS = (ACCURACY, LOG_LOSS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one model is built. `c` is the inverse strength of the L2 penalty, as in scikit-learn."""

    is_clipped: bool
    is_selected: bool
    is_quadratic: bool
    c: float
    class_balanced: bool


PARENT = Recipe(is_clipped=False, is_selected=False, is_quadratic=False, c=1.0, class_balanced=False)
PARENT_TEXT = "L2-regularised logistic regression with inverse penalty C = 1 on standardised features"

# In this order: an assignment is an index into it.
INTERVENTIONS: tuple[Intervention, ...] = (
    Intervention(
        name="quadratic_features",
        text="Add the squares and pairwise products of the standardised features, standardised as well.",
    ),
    Intervention(
        name="stronger_l2",
        text="Make the L2 penalty ten times stronger, with inverse penalty C = 0.1 instead of 1.",
    ),
    Intervention(
        name="weaker_l2",
        text="Make the L2 penalty ten times weaker, with inverse penalty C = 10 instead of 1.",
    ),
    Intervention(
        name="class_weights",
        text="Weight the training loss by inverse class frequency, so that both classes count equally.",
    ),
    Intervention(
        name="select_features",
        text="Keep only the third of the features with the largest univariate F statistic on the training "
        "rows.",
    ),
    Intervention(
        name="clip_features",
        text="Clip each feature to the range between its 5th and 95th training percentile before "
        "standardising.",
    ),
)

RECIPES: Mapping[str, Recipe] = {
    "quadratic_features": replace(PARENT, is_quadratic=True),
    "stronger_l2": replace(PARENT, c=0.1),
    "weaker_l2": replace(PARENT, c=10.0),
    "class_weights": replace(PARENT, class_balanced=True),
    "select_features": replace(PARENT, is_selected=True),
    "clip_features": replace(PARENT, is_clipped=True),
}


def assigned(regime_index: int, seed_index: int) -> Intervention:
    """The intervention of a state: (regime + seed // 2) mod 6, from a regime's and a seed's positions.

    The elicited state and the ordinary one that follows it share an intervention, and with 20 seeds
    every regime meets every intervention under both conditions.
    """
    return INTERVENTIONS[(regime_index + seed_index // 2) % len(INTERVENTIONS)]
