"""The closed list of six interventions on the parent model, and which state gets which.

Parent: L2-regularised logistic regression, C = 1, on Morgan fingerprints of radius 2 and 1,024
bits. Each intervention changes one thing of that recipe.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from predictive_credit.records import Intervention, Target

FingerprintName = Literal["morgan_r2_1024", "morgan_r3_1024", "morgan_r2_2048"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one model is built. `c` is the inverse strength of the L2 penalty, as in scikit-learn."""

    fingerprint: FingerprintName
    with_descriptors: bool
    c: float
    class_balanced: bool


PARENT = Recipe(fingerprint="morgan_r2_1024", with_descriptors=False, c=1.0, class_balanced=False)
PARENT_TEXT = (
    "L2-regularised logistic regression with inverse penalty C = 1 on Morgan fingerprints of radius 2 "
    "with 1,024 bits"
)

TARGET = Target(
    name="roc_auc", phrase="ROC AUC", unit="ROC AUC", suffix="",
    size="0.0###",  # below a tenth: all but freak changes
    lower=-1.0, upper=1.0,
)  # fmt: skip

# In this order: an assignment is an index into it.
INTERVENTIONS: tuple[Intervention, ...] = (
    Intervention(
        name="class_balanced",
        text="Weight the training loss by inverse class frequency, so that actives and inactives count "
        "equally.",
    ),
    Intervention(
        name="add_descriptors",
        text="Add 15 standardised physicochemical descriptors, such as weight, lipophilicity and polar "
        "surface, to the fingerprint.",
    ),
    Intervention(
        name="radius_3",
        text="Use Morgan fingerprints of radius 3 instead of radius 2, with the same number of bits.",
    ),
    Intervention(
        name="bits_2048",
        text="Fold the Morgan fingerprint to 2,048 bits instead of 1,024, with the same radius.",
    ),
    Intervention(
        name="stronger_l2",
        text="Make the L2 penalty ten times stronger, with inverse penalty C = 0.1 instead of 1.",
    ),
    Intervention(
        name="weaker_l2",
        text="Make the L2 penalty ten times weaker, with inverse penalty C = 10 instead of 1.",
    ),
)

RECIPES: dict[str, Recipe] = {
    "class_balanced": replace(PARENT, class_balanced=True),
    "add_descriptors": replace(PARENT, with_descriptors=True),
    "radius_3": replace(PARENT, fingerprint="morgan_r3_1024"),
    "bits_2048": replace(PARENT, fingerprint="morgan_r2_2048"),
    "stronger_l2": replace(PARENT, c=0.1),
    "weaker_l2": replace(PARENT, c=10.0),
}


def assigned(endpoint_index: int, budget_index: int) -> Intervention:
    """The intervention of a cell: (endpoint + budget) mod 6, from positions in the study's lists.

    The seed has no part in it, so both seeds of a cell get the same intervention.
    """
    return INTERVENTIONS[(endpoint_index + budget_index) % len(INTERVENTIONS)]
