"""The closed list of six interventions for each kind of task, and which state gets which.

Parent: a modest LightGBM model. Each intervention changes one thing of that recipe. Five are the
same for both kinds; the sixth weights classes, or makes a regression robust.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from predictive_credit.records import Intervention, Target
from predictive_credit.studies.tabular.pool import Kind

KINDS: tuple[Kind, ...] = ("classification", "regression")
LADDER = (0.25, 0.5, 1.0)  # the budgets of the full scale, by which a budget counts whatever others are asked

TARGET = Target(
    name="skill", phrase="Skill", unit="skill", suffix="", size="0.####", lower=-2.0, upper=2.0, large=0.01
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How fast a model learns: the share of each tree's step that is taken, and how many trees."""

    rate: float
    trees: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How one LightGBM model is built.

    `share` is the part of the rows, and of the columns, that each tree sees. `balanced` is for
    classification alone, `huber` for regression alone.
    """

    leaves: int
    l2: float
    share: float
    pace: Pace
    balanced: bool
    huber: bool


# Hasty, so that a gentler model often gains: large steps overfit a little. Chosen once, among eleven and
# before any table of a study was fitted, so that changes have about the published size (62 % positive,
# median size .024). Eight tables too large for the study (adult, bank-marketing, letter, cps88wages and
# the like), cut to 400 to 3,000 rows, gave 62 % and .028; 16 of the packaged burn-in gave 52 % and .019.
PARENT = Recipe(leaves=8, l2=1.0, share=1.0, pace=Pace(rate=0.4, trees=40), balanced=False, huber=False)
PARENT_TEXT = "LightGBM with 40 trees of at most 8 leaves, learning rate 0.4, L2 penalty 1 and no subsampling"

_SHARED: tuple[Intervention, ...] = (
    Intervention(name="more_leaves", text="Let each tree have up to 31 leaves instead of 8."),
    Intervention(name="fewer_leaves", text="Let each tree have at most 4 leaves instead of 8."),
    Intervention(name="stronger_l2", text="Make the L2 penalty on leaf values 10 instead of 1."),
    Intervention(
        name="subsampling", text="Grow each tree on a random 80 % of the rows and 80 % of the columns."
    ),
    Intervention(
        name="slower_learning",
        text="Learn more slowly with more trees: learning rate 0.1 and 160 trees instead of 0.4 and 40.",
    ),
)

# In this order: an assignment is an index into it.
INTERVENTIONS: Mapping[Kind, tuple[Intervention, ...]] = {
    "classification": (
        *_SHARED,
        Intervention(
            name="class_weights",
            text="Weight the training loss by inverse class frequency, so that all classes count equally.",
        ),
    ),
    "regression": (
        *_SHARED,
        Intervention(
            name="robust_objective",
            text="Train with the Huber loss, linear beyond one standard deviation of the training target, "
            "instead of squared error.",
        ),
    ),
}

RECIPES: dict[str, Recipe] = {
    "more_leaves": replace(PARENT, leaves=31),
    "fewer_leaves": replace(PARENT, leaves=4),
    "stronger_l2": replace(PARENT, l2=10.0),
    "subsampling": replace(PARENT, share=0.8),
    "slower_learning": replace(PARENT, pace=Pace(rate=0.1, trees=160)),
    "class_weights": replace(PARENT, balanced=True),
    "robust_objective": replace(PARENT, huber=True),
}
NAMES = tuple(RECIPES)


def assigned(kind: Kind, position: int, budget: float) -> Intervention:
    """The intervention of the task at a position among those of its kind: (pair + rung) mod 6.

    Tasks pair up in their order, and a pair shares its interventions: so each of its states has a
    partner in the other task with the same intervention, budget and seed. Neither the seed nor how
    many tasks and budgets a scale has takes part in it: a state is the same at every scale.
    """
    offered = INTERVENTIONS[kind]
    return offered[(position // 2 + rung(budget)) % len(offered)]


def rung(budget: float) -> int:
    """How many budgets of the ladder lie below this one, which need not be on it."""
    return sum(step < budget for step in LADDER)
