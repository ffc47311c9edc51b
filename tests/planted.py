"""Synthetic studies with a planted truth: what scoring has to find is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from predictive_credit.config import Inference
from predictive_credit.records import (
    BurnIn,
    Card,
    Context,
    Explanation,
    Forecast,
    Intervention,
    Outcome,
    Slot,
    State,
)  # fmt: skip
from predictive_credit.streams import stream
from predictive_credit.studies import STUDIES
from predictive_credit.studies.evaluation import Scored

INFERENCE = Inference(draws=2_000, level=0.95)
SOUND = {"chain_ok": True, "commitments_ok": True, "opened_after_freeze": True, "planned_after_opening": None}
INTERVENTIONS = (
    "class_balanced", "add_descriptors", "radius_3", "bits_2048", "stronger_l2", "weaker_l2",
)  # fmt: skip
BURN_IN = BurnIn(
    name="planted", tasks=("other",), n_outcomes=100, n_undefined=0,
    mean=0.002, mean_absolute=0.016, q10=-0.02, q90=0.025, by_intervention={},
)  # fmt: skip

# An answer is a point and the half width of its interval, given what the context shows: the number
# on the card, or None for the description alone, and the executed outcome, which only an oracle uses.
Answer = Callable[[float | None, float, Generator], tuple[float, float]]


def reader(shown: float | None, outcome: float, rng: Generator) -> tuple[float, float]:
    """Repeats the number it is shown, whoever's it is; guesses without one."""
    if shown is None:
        return float(rng.normal(0.004, 0.015)), 0.02
    return shown + float(rng.normal(0.0, 0.001)), 0.01


def misled(shown: float | None, outcome: float, rng: Generator) -> tuple[float, float]:
    """Deaf to the card's number, and thrown off by there being one at all."""
    return (0.0, 0.03) if shown is None else (0.06 + float(rng.normal(0.0, 0.001)), 0.01)


def oracle(shown: float | None, outcome: float, rng: Generator) -> tuple[float, float]:
    """Knows the outcome in every context."""
    return outcome, 0.001


def constant(shown: float | None, outcome: float, rng: Generator) -> tuple[float, float]:
    """Says the same whatever it is asked."""
    return 0.01, 0.02


def study(
    answer: Answer,
    *,
    endpoints: int = 12,
    budgets: Sequence[float] = (0.25, 0.5, 1.0),
    seeds: Sequence[int] = (1, 2),
    contexts: Sequence[Context] = tuple(Context),
    undefined: Collection[str] = (),
    fallbacks: Collection[str] = (),
    seed: int = 7,
    name: str = "molecular",
    card_noise: float = 0.004,
) -> Scored:
    """A scored study whose cards state the outcome up to noise, and whose donors are the next seed's.

    undefined: state ids whose outcome is undefined. fallbacks: unit ids that got the fallback.
    """
    states = sorted(
        (
            _state(name, f"assay-{e:02d}", budget, s, INTERVENTIONS[(e + b) % 6])
            for e in range(endpoints)
            for b, budget in enumerate(budgets)
            for s in seeds
        ),
        key=lambda s: s.id,
    )
    truth = {s.id: float(stream(seed, "outcome", s.id).normal(0.004, 0.02)) for s in states}
    stated = {
        i: round(y + float(stream(seed, "card", i).normal(0.0, card_noise)), 4) for i, y in truth.items()
    }
    donors = {s.id: _donor(s, seeds) for s in states}
    forecasts = {}
    for state in states:
        shown = {"D": None, "M": stated[state.id], "S": stated[donors[state.id]]}
        for context in contexts:
            for call in (1, 2):
                unit = f"{state.id}/{context}/{call}"
                point, half = answer(shown[context], truth[state.id], stream(seed, "answer", unit))
                forecasts[unit] = Forecast(unit_id=unit, point=point, lower=point - half, upper=point + half)
    forecasts |= {unit: fallback(unit) for unit in fallbacks}
    return Scored(
        study=STUDIES["molecular"],
        states=tuple(states),
        contexts=tuple(contexts),
        forecasts=forecasts,
        outcomes={
            i: Outcome(state_id=i, value=None, reason="single-class test set")
            if i in undefined
            else Outcome(state_id=i, value=y)
            for i, y in truth.items()
        },
        burn_in=BURN_IN,
        explanations={s.id: explanation(s, stated[s.id]) for s in states},
        donors=donors,
    )


def fallback(unit: str) -> Forecast:
    """The frozen fallback of a unit whose reply could not be read."""
    return Forecast(
        unit_id=unit, point=0.0, lower=BURN_IN.q10, upper=BURN_IN.q90,
        is_fallback=True, reason="no sentence found",
    )  # fmt: skip


def swapped(scored: Scored) -> Scored:
    """The same study with the forecasts of M and S exchanged, as if every donor had been the match."""
    other = {"M": "S", "S": "M", "D": "D"}
    forecasts = {}
    for unit, forecast in scored.forecasts.items():
        state, context, call = unit.rsplit("/", 2)
        name = f"{state}/{other[context]}/{call}"
        forecasts[name] = replace(forecast, unit_id=name)
    return replace(scored, forecasts=forecasts)


def explanation(state: State, target: float) -> Explanation:
    """A complete card that states a number, every slot quoted from its text."""
    lines = {
        "direction": "increase" if target > 0 else "decrease",
        "target": f"ROC AUC changes by {target:+.4f}",
        "intermediate": "training loss of the minority class falls",
        "regime": "few labelled actives",
        "falsifier": "no change of recall on the training folds",
        "counterfactual": "with balanced classes nothing would change",
    }
    text = "\n".join(f"{name.capitalize()}: {line}" for name, line in lines.items())
    card = Card(**{name: Slot(text=line, quote=line) for name, line in lines.items()})
    return Explanation(state_id=state.id, agent="planted", text=text, card=card)


def values(scored: Scored) -> np.ndarray:
    """Defined outcomes, in the order of the states."""
    found = [scored.outcomes[s.id].value for s in scored.states]
    return np.array([v for v in found if v is not None])


def _state(name: str, task: str, budget: float, seed: int, intervention: str) -> State:
    return State(
        id=f"{name}/{task}/{budget:g}/{seed}", study=name, task=task, budget=budget, seed=seed,
        description="A planted assay.", facts={},
        intervention=Intervention(name=intervention, text=intervention),
    )  # fmt: skip


def _donor(state: State, seeds: Sequence[int]) -> str:
    following = seeds[(list(seeds).index(state.seed) + 1) % len(seeds)]
    return f"{state.id.rsplit('/', 1)[0]}/{following}"
