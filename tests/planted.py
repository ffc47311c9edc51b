"""Synthetic studies with a planted truth: what scoring has to find is known beforehand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from predictive_credit.config import Inference
from predictive_credit.contexts import Showing
from predictive_credit.decisions import Decision, Gate
from predictive_credit.records import (
    BurnIn,
    Card,
    Context,
    Explanation,
    Forecast,
    Intervention,
    Outcome,
    Slot,
    Source,
    State,
    Target,
    TargetBurnIn,
)  # fmt: skip
from predictive_credit.streams import stream
from predictive_credit.studies import STUDIES
from predictive_credit.studies.evaluation import Scored
from predictive_credit.studies.study import Donors, Findings, Level, Study

INFERENCE = Inference(draws=2_000, level=0.95)
SOUND = {"chain_ok": True, "commitments_ok": True, "opened_after_freeze": True, "planned_after_opening": None}
INTERVENTIONS = (
    "class_balanced", "add_descriptors", "radius_3", "bits_2048", "stronger_l2", "weaker_l2",
)  # fmt: skip
MOLECULAR = STUDIES["molecular"]


def _burn_in(scale: float = 1.0) -> TargetBurnIn:
    return TargetBurnIn(
        n_outcomes=100, n_undefined=0, mean=0.002 * scale, mean_absolute=0.016 * scale,
        q10=-0.02 * scale, q90=0.025 * scale, by_intervention={},
    )  # fmt: skip


BURN_IN = BurnIn(name="planted", tasks=("other",), targets={"roc_auc": _burn_in()})

POINTS = Target(
    name="accuracy_pp", phrase="Accuracy", unit="percentage points", suffix=" percentage points",
    size="?#.##", lower=-100.0, upper=100.0, large=1.0,
)  # fmt: skip
NATS = Target(
    name="log_loss", phrase="log loss", unit="nats", suffix=" nats", size="#.####", lower=-10.0, upper=10.0,
)  # fmt: skip
SKILL = Target(name="skill", phrase="Skill", unit="skill", suffix="", size="0.####", lower=-2.0, upper=2.0)


def _formed(study: str, findings: Findings) -> Decision:
    """A rule that asks of every target's D-M gain, and of the formation, to be above 0."""
    gains = {target: of["interval_score"]["D-M"].one_sided_lower for target, of in findings.contrasts.items()}
    formed = None if findings.formation is None else findings.formation.lower
    seen = {**gains, "formation": formed}
    gates = tuple(
        Gate(name=name, asked="> 0", seen=bound, held=bound is not None and bound > 0)
        for name, bound in seen.items()
    )
    status = "credit" if all(gate.held for gate in gates) else "no_credit"
    return Decision(study=study, rule="planted", status=status, gates=gates)


# Six regimes, kept as strata; one note or card a state; two targets in one forecast.
PAIR: Study = replace(
    MOLECULAR, name="pair", n_tasks=6, n_states=120, task_words=("regime", "regimes"),
    targets=(POINTS, NATS), levels=(Level(name="regime", is_drawn=False), Level(name="state", is_drawn=True)),
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source=None, donor=False, form="card"),
        Context.DONOR: Showing(source=None, donor=True, form="card"),
    },
    decide=_formed, published={},
)  # fmt: skip
# Two kinds, kept as strata; the tables of each drawn, with all their states; both sources a state.
JOINT: Study = replace(
    MOLECULAR, name="joint", n_tasks=24, n_states=144, task_words=("task", "tasks"), targets=(SKILL,),
    levels=(
        Level(name="kind", is_drawn=False),
        Level(name="task", is_drawn=True),
        Level(name="state", is_drawn=False),
    ),
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source="elicited", donor=False, form="card"),
        Context.DONOR: Showing(source="elicited", donor=True, form="card"),
        Context.ORDINARY: Showing(source="ordinary", donor=False, form="card"),
        Context.OTHER_TASK: Showing(source="elicited", donor=True, form="card"),
        Context.NUMBERS: Showing(source="elicited", donor=False, form="numbers"),
    },
    decide=_formed, published={},
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
    contexts: Sequence[Context] = tuple(MOLECULAR.contexts),
    undefined: Collection[str] = (),
    fallbacks: Collection[str] = (),
    seed: int = 7,
    name: str = "molecular",
    card_noise: float = 0.004,
) -> Scored:
    """A scored molecular study whose cards state the outcome up to noise; donors are the next seed's.

    undefined: state ids whose outcome is undefined. fallbacks: unit ids that got the fallback.
    """
    states = [
        _state(name, f"assay-{e:02d}", budget, s, INTERVENTIONS[(e + b) % 6])
        for e in range(endpoints)
        for b, budget in enumerate(budgets)
        for s in seeds
    ]
    donors = {Context.DONOR: {s.id: _next_seed(s, seeds) for s in states}}
    found = scored(
        MOLECULAR, states, donors, answer, contexts=contexts, undefined=undefined, seed=seed,
        card_noise=card_noise,
    )  # fmt: skip
    return replace(found, forecasts={**found.forecasts, **{unit: (fallback(unit),) for unit in fallbacks}})


def pair(answer: Answer, *, seeds: int = 20, seed: int = 7, undefined: Collection[str] = ()) -> Scored:
    """A scored study of two targets: six regimes, half of the states with a note, half with a card."""
    states = [
        replace(
            _state("pair", f"regime-{r}", None, k, INTERVENTIONS[(r + k) % 6]),
            cluster=(f"regime-{r}", str(k)), sources=("ordinary",) if k % 2 else ("elicited",),
        )
        for r in range(6)
        for k in range(seeds)
    ]  # fmt: skip
    donors = {s.id: f"pair/{s.task}/{((s.seed or 0) + 1) % seeds}" for s in states}
    return scored(PAIR, states, {Context.DONOR: donors}, answer, undefined=undefined, seed=seed)


def joint(answer: Answer, *, tasks: int = 24, seed: int = 7) -> Scored:
    """A scored study of six contexts: tables of two kinds in turn, and both sources of every state."""
    states = [
        replace(
            _state("joint", f"table-{t:02d}", budget, k, INTERVENTIONS[(t + b) % 6]),
            cluster=("regression" if t % 2 else "classification", f"table-{t:02d}", f"{budget:g}/{k}"),
            sources=("elicited", "ordinary"),
        )
        for t in range(tasks)
        for b, budget in enumerate((0.25, 0.5, 1.0))
        for k in (1, 2)
    ]
    elsewhere = {
        s.id: f"joint/table-{(int(s.task[-2:]) + 6) % tasks:02d}/{s.budget:g}/{s.seed}" for s in states
    }
    donors = {Context.DONOR: {s.id: _next_seed(s, (1, 2)) for s in states}, Context.OTHER_TASK: elsewhere}
    return scored(JOINT, states, donors, answer, seed=seed)


def scored(
    declared: Study,
    states: Sequence[State],
    donors: Donors,
    answer: Answer,
    *,
    contexts: Sequence[Context] | None = None,
    undefined: Collection[str] = (),
    seed: int = 7,
    card_noise: float = 0.004,
) -> Scored:
    """Outcomes drawn, cards that state them, and an answer to every call of any study.

    An outcome of `large` size in its target's unit is as common in every target.
    """
    states, asked = tuple(sorted(states, key=lambda s: s.id)), tuple(contexts or declared.contexts)
    outcomes, explanations, forecasts = {}, {}, {}
    for state in states:
        for target in declared.targets:
            rng = _named(seed, "outcome", state.id, target, declared)
            value = _size(target) * float(rng.normal(0.004, 0.02))
            outcomes[state.id, target.name] = Outcome(state_id=state.id, target=target.name, value=value)
    for state in states:
        for source in state.sources:
            stated = {}
            for target in declared.targets:
                name = state.id if source == "elicited" else f"{state.id}/{source}"
                rng = _named(seed, "card", name, target, declared)
                noise = _size(target) * float(rng.normal(0.0, card_noise))
                stated[target] = round((outcomes[state.id, target.name].value or 0.0) + noise, 4)
            explanations[state.id, source] = explanation(state, stated, source)
    for state in states:
        for context in asked:
            told = _told(declared, context, state, donors, explanations)
            for call in range(1, declared.calls_per_context + 1):
                unit = f"{state.id}/{context}/{call}"
                forecasts[unit] = tuple(
                    _forecast(
                        unit, target, answer, told, outcomes, _named(seed, "answer", unit, target, declared)
                    )
                    for target in declared.targets
                )
    for state_id, target_name in outcomes:
        if state_id in undefined:
            outcomes[state_id, target_name] = Outcome(
                state_id=state_id, target=target_name, value=None, reason="single-class test set"
            )
    return Scored(
        study=declared,
        states=states,
        contexts=asked,
        forecasts=forecasts,
        outcomes=outcomes,
        burn_in=BurnIn(
            name="planted", tasks=("other",), targets={t.name: _burn_in(_size(t)) for t in declared.targets}
        ),
        explanations=explanations,
        donors=donors,
    )


def fallback(unit: str) -> Forecast:
    """The frozen fallback of a molecular unit whose reply could not be read."""
    known = BURN_IN.targets["roc_auc"]
    return Forecast(
        unit_id=unit, target="roc_auc", point=0.0, lower=known.q10, upper=known.q90,
        is_fallback=True, reason="no sentence found",
    )  # fmt: skip


def swapped(found: Scored) -> Scored:
    """The same study with the forecasts of M and S exchanged, as if every donor had been the match."""
    other = {"M": "S", "S": "M", "D": "D"}
    forecasts = {}
    for unit, of in found.forecasts.items():
        state, context, call = unit.rsplit("/", 2)
        name = f"{state}/{other[context]}/{call}"
        forecasts[name] = tuple(replace(forecast, unit_id=name) for forecast in of)
    return replace(found, forecasts=forecasts)


def explanation(state: State, stated: Mapping[Target, float], source: Source = "elicited") -> Explanation:
    """A card that states a number a target, every slot quoted from its text.

    An elicited one is complete; an ordinary note says direction and numbers alone.
    """
    ways = (f"{'increase' if value > 0 else 'decrease'} of {t.phrase}" for t, value in stated.items())
    amounts = (f"{t.phrase} changes by {value:+.4f}{t.suffix}" for t, value in stated.items())
    lines = {"direction": "; ".join(ways), "target": "; ".join(amounts)}
    if source == "elicited":
        lines |= {
            "intermediate": "training loss of the minority class falls",
            "regime": "few labelled actives",
            "falsifier": "no change of recall on the training folds",
            "counterfactual": "with balanced classes nothing would change",
        }
    text = "\n".join(f"{name.capitalize()}: {line}" for name, line in lines.items())
    card = Card(**{name: Slot(text=line, quote=line) for name, line in lines.items()})
    return Explanation(state_id=state.id, source=source, agent="planted", text=text, card=card)


def values(found: Scored, target: str = "roc_auc") -> np.ndarray:
    """Defined outcomes, in the order of the states."""
    seen = [found.outcomes[s.id, target].value for s in found.states]
    return np.array([v for v in seen if v is not None])


def _forecast(
    unit: str,
    target: Target,
    answer: Answer,
    told: Explanation | None,
    outcomes: Mapping[tuple[str, str], Outcome],
    rng: Generator,
) -> Forecast:
    size, state_id = _size(target), unit.rsplit("/", 2)[0]
    shown = None if told is None else _number(told, target) / size
    point, half = answer(shown, (outcomes[state_id, target.name].value or 0.0) / size, rng)
    return Forecast(
        unit_id=unit, target=target.name, point=size * point, lower=size * (point - half),
        upper=size * (point + half),
    )  # fmt: skip


def _told(
    declared: Study,
    context: Context,
    state: State,
    donors: Donors,
    explanations: Mapping[tuple[str, Source], Explanation],
) -> Explanation | None:
    showing = declared.contexts[context]
    if showing is None:
        return None
    owner = donors[context][state.id] if showing.donor else state.id
    first: Source = next(source for of, source in explanations if of == owner)
    return explanations[owner, showing.source or first]


def _number(told: Explanation, target: Target) -> float:
    """The number on a planted card, by the words it was written in."""
    assert told.card.target is not None
    return float(told.card.target.text.split(f"{target.phrase} changes by ")[1].split(";")[0].split(" ")[0])


def _named(seed: int, what: str, name: str, target: Target, declared: Study) -> Generator:
    return stream(seed, what, name, *([target.name] if len(declared.targets) > 1 else []))


def _size(target: Target) -> float:
    return target.large / 0.01


def _state(name: str, task: str, budget: float | None, seed: int, intervention: str) -> State:
    cell = task if budget is None else f"{task}/{budget:g}"
    return State(
        id=f"{name}/{cell}/{seed}", study=name, task=task, budget=budget, seed=seed,
        cluster=(task, f"{budget or 1:g}", str(seed)),
        description="A planted assay.", facts={},
        intervention=Intervention(name=intervention, text=intervention),
    )  # fmt: skip


def _next_seed(state: State, seeds: Sequence[int]) -> str:
    following = seeds[(list(seeds).index(state.seed or 0) + 1) % len(seeds)]
    return f"{state.id.rsplit('/', 1)[0]}/{following}"
