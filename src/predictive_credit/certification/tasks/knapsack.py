"""A knapsack of several resources, whose whole instance is public.

Nothing an experiment tells could not be computed, so fresh agents reach the outcome without the run's
history: the task where the recovery gate should veto the claim.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator

from predictive_credit.certification.tasks.task import (
    Budget,
    Design,
    Malformed,
    exact_form,
    exactly,
    list_form,
    sealed,
    shuffled,
)

ITEMS = tuple(f"i{n:02d}" for n in range(60))
RESOURCES = 5
SHARE = 0.4  # capacity, as a share of what all items need

DESIGN = Design(
    name="knapsack",
    profile="multidimensional_knapsack_60_items_5_resources_v1",
    title="Multidimensional knapsack",
    grade="core",
    delta_min=0.02,
    kappa=0.1,
    answer_tokens=1000,
    experiments=3,
    full=Budget(challengers=80, positive_controls=45),
    quick=Budget(challengers=6, positive_controls=8),
)
_PACKING = exact_form(items=list_form({"enum": ITEMS}, least=0, most=len(ITEMS)))
FORMS = {"experiment": _PACKING, "candidate": _PACKING}


@dataclass(frozen=True, kw_only=True)
class Knapsack:
    """`values[item]`, `needs[item]` by resource, `capacity` by resource: integers, all public."""

    values: Mapping[str, int]
    needs: Mapping[str, tuple[int, ...]]
    capacity: tuple[int, ...]
    known: bool = False
    design: Design = DESIGN

    def background(self, order: Generator | None = None) -> Mapping[str, Any]:
        """The text and the instance; the order of the items is drawn."""
        items = {name: [self.values[name], *self.needs[name]] for name in shuffled(ITEMS, order)}
        rows = "\n".join(f"{name}: {' '.join(map(str, row))}" for name, row in items.items())
        return {
            "text": _TEXT.format(rows=rows, capacity=" ".join(map(str, self.capacity))),
            "files": {},
            "schema": {"experiment": {"items": "list of items"}, "candidate": {"items": "list of items"}},
            "items": items,
            "capacity": list(self.capacity),
        }

    def first(self) -> Mapping[str, Any]:
        """The score of the baseline; a null task adds a good packing."""
        seen: dict[str, Any] = {"baseline_score": self._reading(self.baseline)}
        return seen | ({"known_best": self.answer()} if self.known else {})

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """The one instance."""
        return ("public_instance",)

    @property
    def baseline(self) -> Any:
        """The smallest items first, as long as they fit."""
        return {"items": self._fill(sorted(ITEMS, key=lambda n: (sum(self.needs[n]), n)))}

    def answer(self) -> Any:
        """Items by value for what they need, then exchanged one for one while that helps."""
        chosen = self._fill(sorted(ITEMS, key=lambda n: (-self._density(n), n)))
        while better := self._exchange(chosen):
            chosen = better
        return {"items": chosen}

    def artifact(self, value: Any) -> Any:
        """`{"items": [...]}`: different items that fit together."""
        (names,) = exactly(value, "items")
        if not isinstance(names, list) or not all(isinstance(n, str) and n in self.values for n in names):
            raise Malformed("items must be a list of items of the instance")
        if len(set(names)) != len(names):
            raise Malformed("an item is repeated")
        if not self._fits(names):
            raise Malformed("the items do not fit")
        return {"items": sorted(names)}

    def plan(self, value: Any) -> Any:
        """The same schema."""
        return self.artifact(value)

    def measure(self, plan: Any) -> list[tuple[str, str]]:
        """The score of the packing."""
        return [("score", self._reading(plan))]

    def score(self, artifact: Any) -> tuple[float, ...]:
        """Value as a share of an upper bound of every packing's value."""
        return (sum(self.values[n] for n in artifact["items"]) / self._bound(),)

    def _reading(self, artifact: Any) -> str:
        return f"{self.score(artifact)[0]:.6f}"

    def _density(self, name: str) -> float:
        return self.values[name] / sum(n / c for n, c in zip(self.needs[name], self.capacity, strict=True))

    def _fits(self, names: Sequence[str]) -> bool:
        return all(sum(self.needs[n][r] for n in names) <= most for r, most in enumerate(self.capacity))

    def _fill(self, order: Sequence[str], start: Sequence[str] = ()) -> list[str]:
        chosen = list(start)
        for name in order:
            if name not in chosen and self._fits([*chosen, name]):
                chosen.append(name)
        return sorted(chosen)

    def _exchange(self, chosen: Sequence[str]) -> list[str] | None:
        worth = sum(self.values[n] for n in chosen)
        order = sorted(ITEMS, key=lambda n: (-self._density(n), n))
        for gone in chosen:
            rest = [n for n in chosen if n != gone]
            for new in (n for n in order if n not in chosen and self._fits([*rest, n])):
                other = self._fill([n for n in order if n != gone], [*rest, new])
                if sum(self.values[n] for n in other) > worth:
                    return other
        return None

    def _bound(self) -> float:
        """Of the relaxation to one summed resource, items divisible."""
        need = {
            name: sum(n / c for n, c in zip(self.needs[name], self.capacity, strict=True)) for name in ITEMS
        }
        room, worth = float(RESOURCES), 0.0
        for name in sorted(ITEMS, key=lambda n: (-self.values[n] / need[n], n)):
            share = min(1.0, room / need[name])
            worth += share * self.values[name]
            room -= share * need[name]
            if room <= 0:
                break
        return worth


def build(secret: bytes, label: str, *, known: bool = False) -> Knapsack:
    """The instance called `label` under a secret."""
    rng = sealed(secret, DESIGN.name, label)
    needs = {name: tuple(rng.integers(20, 100, size=RESOURCES).tolist()) for name in ITEMS}
    values = {name: int(sum(needs[name]) / RESOURCES + rng.integers(0, 60)) for name in ITEMS}
    capacity = tuple(int(SHARE * sum(needs[name][r] for name in ITEMS)) for r in range(RESOURCES))
    return Knapsack(values=values, needs=needs, capacity=capacity, known=known)


_TEXT = """\
Pack a knapsack. Every item has a value and needs some of each of five resources; the chosen items
together may need no more than the capacity of each. A packing is judged by its value as a share of an
upper bound. One experiment reads the score of one packing. Capacity: {capacity}
Items, value first, then what they need of each resource:
{rows}"""
