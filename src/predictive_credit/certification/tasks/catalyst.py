"""A virtual catalyst: five controls of eight levels, one plate of 36 wells, then one recipe.

Off its best level a control costs yield, and costs add up: -ln(yield) is a whole number of thousandths
a control, so that one plate of one-factor variations is enough to read all five best levels, while
32,768 recipes are too many to guess. Two controls also react to the operating condition, in which the
256 sealed units differ.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from predictive_credit.certification.tasks.task import (
    Budget,
    Design,
    exact_form,
    exactly,
    integer,
    sealed,
    shuffled,
)

CONTROLS = ("temperature", "pressure", "flow", "loading", "acidity")
LEVELS = 8
CONDITIONS = 256
# Thousandths of -ln(yield) of the seven levels that are not best: any single one misses the line.
LOSSES = (70, 90, 110, 130, 150, 170, 190)
START_LOSSES = (90, 110, 130)  # what the starting level of a control may cost
BY_PARITY = (0, 5)  # extra thousandths in odd conditions while the temperature is off
BY_THIRD = (0, 4, 2)  # extra thousandths by (condition div 2) mod 3 while the pressure is off

DESIGN = Design(
    name="catalyst",
    profile="predictive_credit_catalyst_recipe_v1",
    formerly="virtual_catalyst_anchor_recipe_5knob_v3",
    title="Virtual catalyst",
    grade="evidence",
    delta_min=0.35,
    kappa=1 / 7,
    experiments=1,
    full=Budget(challengers=96, positive_controls=45, feedback_pairs=30, null_pairs=60),
    quick=Budget(challengers=6, positive_controls=8, feedback_pairs=3, null_pairs=3),
    alpha_recovery=0.01,
    alpha_evidence=0.01,
    alpha_sham=0.01,
)
_RECIPE = exact_form(**{name: {"enum": tuple(range(LEVELS))} for name in CONTROLS})
FORMS = {"experiment": exact_form(anchor=_RECIPE), "candidate": exact_form(recipe=_RECIPE)}


@dataclass(frozen=True, kw_only=True)
class Catalyst:
    """`losses[control][level]` in thousandths; with `known`, E0 states the best recipe."""

    losses: Mapping[str, tuple[int, ...]]
    known: bool = False
    design: Design = DESIGN

    def background(self, order: Generator | None = None) -> Mapping[str, Any]:
        """The text and schemas; the order of the controls is drawn."""
        names = shuffled(CONTROLS, order)
        recipe = dict.fromkeys(names, f"integer 0..{LEVELS - 1}")
        return {
            "text": _TEXT.format(controls=", ".join(names)),
            "files": {},
            "schema": {"experiment": {"anchor": recipe}, "candidate": {"recipe": recipe}},
        }

    def first(self) -> Mapping[str, Any]:
        """The yield of the starting recipe; a null task adds the best recipe."""
        seen: dict[str, Any] = {
            "start": self.baseline["recipe"],
            "yield": self._reading(self.baseline["recipe"]),
        }
        return seen | ({"known_best": self.answer()} if self.known else {})

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """One id a sealed condition."""
        return tuple(f"condition_{i:03d}" for i in range(CONDITIONS))

    @property
    def baseline(self) -> Any:
        """The starting recipe: level 0 everywhere."""
        return {"recipe": dict.fromkeys(CONTROLS, 0)}

    def answer(self) -> Any:
        """The best level of every control."""
        return {"recipe": {name: self.losses[name].index(0) for name in CONTROLS}}

    def artifact(self, value: Any) -> Any:
        """`{"recipe": {control: level}}`, all five."""
        (recipe,) = exactly(value, "recipe")
        return {"recipe": _recipe(recipe)}

    def plan(self, value: Any) -> Any:
        """`{"anchor": {control: level}}`: the plate's common recipe."""
        (anchor,) = exactly(value, "anchor")
        return {"anchor": _recipe(anchor)}

    def measure(self, plan: Any) -> list[tuple[str, str]]:
        """36 wells: the anchor, and each control at its seven other levels."""
        anchor = plan["anchor"]
        wells = [("anchor", anchor)]
        for name in CONTROLS:
            wells += [
                (f"{name}={level}", anchor | {name: level})
                for level in range(LEVELS)
                if level != anchor[name]
            ]
        return [(of, self._reading(recipe)) for of, recipe in wells]

    def score(self, artifact: Any) -> tuple[float, ...]:
        """The recipe's yield in each sealed condition; 1 where nothing is off."""
        return tuple(math.exp(-self._loss(artifact["recipe"], i) / 1000) for i in range(CONDITIONS))

    def _reading(self, recipe: Mapping[str, int]) -> str:
        return f"{math.exp(-self._loss(recipe, 0) / 1000):.4f}"

    def _loss(self, recipe: Mapping[str, int], condition: int) -> int:
        off = {name: self.losses[name][recipe[name]] for name in CONTROLS}
        parity = BY_PARITY[condition % 2] if off["temperature"] else 0
        third = BY_THIRD[(condition // 2) % 3] if off["pressure"] else 0
        return sum(off.values()) + parity + third


def build(secret: bytes, label: str, *, known: bool = False) -> Catalyst:
    """The instance called `label` under a secret."""
    rng = sealed(secret, DESIGN.name, label)
    losses = {}
    for name in CONTROLS:
        start = int(rng.choice(START_LOSSES))
        others = [0, *(loss for loss in LOSSES if loss != start)]
        losses[name] = (start, *(others[i] for i in rng.permutation(len(others))))
    return Catalyst(losses=losses, known=known)


def _recipe(value: Any) -> dict[str, int]:
    levels = exactly(value, *CONTROLS)
    return {
        name: integer(level, least=0, most=LEVELS - 1, what=name)
        for name, level in zip(CONTROLS, levels, strict=True)
    }


_TEXT = """\
Find the recipe of a catalyst. It has five controls ({controls}), each with the levels 0 to 7. A control
off its best level loses yield, losses of different controls multiply, and the best level of every
control is the same in all operating conditions. Level 0 is not the best level of any control. You may
run one plate of 36 wells: name an anchor recipe, and the plate reads the yield (0 to 1) of the anchor
and of every recipe that differs from it in one control. Then hand in one recipe: it is judged by its
yield in 256 operating conditions."""
