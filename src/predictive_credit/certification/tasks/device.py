"""Calibrating a device: 24 controls of gain +1 or -1, four of them known, predicted pair by pair.

The response to a setting is the sum of gains times settings. Ten of the twenty hidden gains are +1,
so a balanced guess is right in one of 184,756 cases, and one swapped pair already costs 46 units.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from numpy.random import Generator

from predictive_credit.certification.tasks.task import (
    Budget,
    Design,
    Malformed,
    exact_form,
    exactly,
    integer,
    list_form,
    sealed,
    shuffled,
)

CONTROLS = tuple(f"c{i:02d}" for i in range(24))
PUBLIC = 4
PROBED = 4  # controls one experiment drives, one after another

DESIGN = Design(
    name="device",
    profile="predictive_credit_device_calibration_v1",
    formerly="plain_device_calibration_24_controls_v2",
    title="Device calibration",
    grade="core",
    delta_min=0.5,
    kappa=0.1,
    experiments=5,
    full=Budget(challengers=80, positive_controls=60),
    quick=Budget(challengers=6, positive_controls=8),
)
FORMS = {
    "experiment": exact_form(controls=list_form({"enum": CONTROLS}, least=1, most=PROBED)),
    "candidate": exact_form(gains=exact_form(**{name: {"enum": (1, -1)} for name in CONTROLS})),
}


@dataclass(frozen=True, kw_only=True)
class Device:
    """`gains[control]` is +1 or -1; `public` names the controls whose gain is told."""

    gains: Mapping[str, int]
    public: tuple[str, ...]
    known: bool = False
    design: Design = DESIGN

    def background(self, order: Generator | None = None) -> Mapping[str, Any]:
        """The text and schemas; the order of the controls is drawn."""
        names = shuffled(CONTROLS, order)
        return {
            "text": _TEXT.format(controls=", ".join(names)),
            "files": {},
            "schema": {
                "experiment": {"controls": f"list of 1 to {PROBED} different controls"},
                "candidate": {"gains": dict.fromkeys(names, "integer -1, 0 or 1")},
            },
        }

    def first(self) -> Mapping[str, Any]:
        """The four public gains; a null task adds the rest."""
        told = {"gains": {name: self.gains[name] for name in self.public}}
        return told | ({"known_best": self.answer()} if self.known else {})

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """24 doubled controls, then 276 pairs."""
        singles = [f"double_{a}" for a in CONTROLS]
        return (*singles, *(f"pair_{a}_{b}" for a, b in combinations(CONTROLS, 2)))

    @property
    def baseline(self) -> Any:
        """The public gains, and no answer for the others."""
        return {"gains": {name: self.gains[name] if name in self.public else 0 for name in CONTROLS}}

    def answer(self) -> Any:
        """Every gain."""
        return {"gains": dict(self.gains)}

    def artifact(self, value: Any) -> Any:
        """`{"gains": {control: -1 | 0 | 1}}`, all 24."""
        (gains,) = exactly(value, "gains")
        values = exactly(gains, *CONTROLS)
        return {
            "gains": {
                name: integer(gain, least=-1, most=1, what=name)
                for name, gain in zip(CONTROLS, values, strict=True)
            }
        }

    def plan(self, value: Any) -> Any:
        """`{"controls": [...]}`: up to four different controls."""
        (names,) = exactly(value, "controls")
        if not isinstance(names, list) or not 1 <= len(names) <= PROBED:
            raise Malformed(f"controls must be a list of 1 to {PROBED}")
        if not all(isinstance(n, str) and n in CONTROLS for n in names) or len(set(names)) != len(names):
            raise Malformed("controls must be different controls of the device")
        return {"controls": list(names)}

    def measure(self, plan: Any) -> list[tuple[str, str]]:
        """The response to each named control driven alone by 1."""
        return [(name, f"{self.gains[name]:+d}") for name in plan["controls"]]

    def score(self, artifact: Any) -> tuple[float, ...]:
        """1 where the predicted response is exact."""
        said, true = artifact["gains"], self.gains
        doubles = [float(said[a] == true[a]) for a in CONTROLS]
        pairs = [float(said[a] + said[b] == true[a] + true[b]) for a, b in combinations(CONTROLS, 2)]
        return (*doubles, *pairs)


def build(secret: bytes, label: str, *, known: bool = False) -> Device:
    """The instance called `label` under a secret: ten hidden gains of each sign."""
    rng = sealed(secret, DESIGN.name, label)
    names = [CONTROLS[i] for i in rng.permutation(len(CONTROLS))]
    hidden = len(CONTROLS) - PUBLIC
    signs = [int(rng.choice((-1, 1))) for _ in range(PUBLIC)] + [1, -1] * (hidden // 2)
    gains = dict(zip(names, signs, strict=True))
    return Device(
        gains={name: gains[name] for name in CONTROLS}, public=tuple(sorted(names[:PUBLIC])), known=known
    )


_TEXT = """\
Calibrate a linear device with 24 controls ({controls}). Its response is the sum of gain times setting,
every gain is +1 or -1, four gains are told, and of the other twenty ten are +1 and ten are -1. One
experiment drives up to four controls, one after another, each alone by 1, and reads each response. Then
hand in all gains: they are judged by 300 responses they predict, to each control driven by 2 and to
each pair of controls driven by 1, each right or wrong."""
