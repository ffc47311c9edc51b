"""A small synthetic study, from states to ledger, for tests that need a whole StudyView."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from predictive_credit import canonical, ledger
from predictive_credit.cards import read_card
from predictive_credit.config import Inference
from predictive_credit.ledger import Event, Phase
from predictive_credit.records import (
    Answer,
    BurnIn,
    Context,
    Explanation,
    Forecast,
    Intervention,
    Outcome,
    PromptText,
    Reply,
    State,
    Unit,
    UnitKind,
    Usage,
)  # fmt: skip
from predictive_credit.report.view import StudyView
from predictive_credit.streams import stream
from predictive_credit.studies import STUDIES
from predictive_credit.studies.evaluation import Scored, evaluate

ACTIONS = (
    ("class_balanced", "Weight the training loss by inverse class frequency."),
    ("radius_3", "Use Morgan fingerprints of radius 3 instead of radius 2."),
    ("stronger_l2", "Make the L2 penalty ten times stronger."),
)
BURN_IN = BurnIn(
    name="synthetic", tasks=("unused",), n_outcomes=40, n_undefined=0, mean=0.002, mean_absolute=0.012,
    q10=-0.018, q90=0.021,
    by_intervention={name: {"mean": 0.002, "q10": -0.018, "q90": 0.021, "n": 13} for name, _ in ACTIONS},
)  # fmt: skip
INTEGRITY = {
    "chain_ok": True, "commitments_ok": True, "opened_after_freeze": True, "planned_after_opening": None,
}  # fmt: skip
SYSTEM = "You forecast the outcome of a planned change to a model. Answer in one sentence."
Contexts = Sequence[Context]
ALL: Contexts = tuple(Context)


def study_view(
    *, endpoints: int = 4, contexts: Contexts = ALL, scale: str = "quick", seed: int = 7,
    name: str = "molecular", undefined: int = 1, fallbacks: int = 1, draws: int = 200,
) -> StudyView:  # fmt: skip
    """One decided study of endpoints x 3 label fractions x 2 seeds."""
    states = states_of(name, endpoints)
    rng = stream(seed, "sample")
    values = dict(zip((s.id for s in states), rng.normal(0.003, 0.018, len(states)).tolist(), strict=True))
    outcomes = tuple(
        Outcome(state_id=s.id, value=None, reason="held-out labels of one class") if i < undefined
        else Outcome(state_id=s.id, value=values[s.id])
        for i, s in enumerate(states)
    )  # fmt: skip
    targets = {s.id: float(t) for s, t in zip(states, rng.normal(0.004, 0.012, len(states)), strict=True)}
    explanations = tuple(explanation(s, targets[s.id]) for s in states)
    plan = plan_of(states, contexts)
    answers = answers_of(plan, targets, rng, fallbacks)
    scored = Scored(
        study=STUDIES["molecular"],
        states=states,
        contexts=tuple(contexts),
        forecasts={a.unit_id: a.forecast for a in answers},
        outcomes={o.state_id: o for o in outcomes},
        burn_in=BURN_IN,
        explanations={e.state_id: e for e in explanations},
        donors={s.id: donor(s.id) for s in states},
    )
    metrics = evaluate(
        scored, seed=seed, inference=Inference(draws=draws, level=0.95), scale=scale, integrity=INTEGRITY
    )
    return StudyView(
        name=name,
        metrics=metrics,
        pool=POOL,
        freeze=freeze_of(name, scale, plan, answers, contexts),
        ledger=ledger_of(name, scale),
        states=states,
        explanations=explanations,
        plan=plan,
        prompts=prompts_of(states, explanations, contexts),
        answers=answers,
        outcomes=outcomes,
        usage=tuple(
            Usage(
                unit_id=a.unit_id, prompt_tokens=210, completion_tokens=31, cached_tokens=180, latency_s=0.43
            )
            for a in answers
        ),
    )


def states_of(study: str, endpoints: int) -> tuple[State, ...]:
    """A fully crossed design, sorted by id."""
    found = []
    for (e, b), seed in product(product(range(endpoints), range(3)), (1, 2)):
        task, budget = f"CHEMBL{2000 + 37 * e}_{'Ki' if e % 2 else 'EC50'}", (0.25, 0.5, 1.0)[b]
        action, text = ACTIONS[(e + b) % len(ACTIONS)]
        n_train = round(1600 * budget)
        cv_auc = 0.79 + 0.01 * e
        description = (
            f"Endpoint {task}: potency of molecules, 1 where a molecule acts at 100 nM or better. The parent "
            "is an L2-regularised logistic regression on Morgan fingerprints, trained on "
            f"{n_train} molecules ({budget:.0%} of the training labels). "
            f"Its cross-validated ROC AUC is {cv_auc:.2f}. "
            "What will be measured is the change of held-out ROC AUC, child minus parent."
        )
        facts = {
            "n_train": n_train,
            "prevalence": 0.31 + 0.01 * seed,
            "cv_auc": None if e == 0 else cv_auc,
        }
        found.append(
            State(
                id=f"{study}/{task}/{budget:g}/{seed}", study=study, task=task, budget=budget, seed=seed,
                description=description, facts=facts, intervention=Intervention(name=action, text=text),
            )
        )  # fmt: skip
    return tuple(sorted(found, key=lambda s: s.id))


def explanation(state: State, target: float) -> Explanation:
    """A card with one empty slot, every quote of which is in its text."""
    said = {
        "direction": "increase" if target > 0 else "decrease",
        "target": f"{target:+.4f} ROC AUC",
        "intermediate": "Calibration of the rare class moves first.",
        "regime": f"Strongest at {state.budget:.0%} of the labels.",
        "falsifier": "No change of the cross-validated ROC AUC.",
    }
    text = "\n".join(f"{name.capitalize()}: {words}" for name, words in said.items())
    return Explanation(state_id=state.id, agent="playbook", text=text, card=read_card(text))


def donor(state_id: str) -> str:
    """The other seed of the same cell."""
    return state_id[:-1] + {"1": "2", "2": "1"}[state_id[-1]]


def plan_of(states: Sequence[State], contexts: Contexts) -> tuple[Unit, ...]:
    """A card and two calls a context for every state."""
    units = []
    for state in states:
        units.append(
            Unit(
                id=f"{state.id}/card", kind=UnitKind.ELICIT, state_id=state.id, context=None, call=None,
                explanation_of=None, prompt_digest=canonical.digest(state.id), seed=1,
            )
        )  # fmt: skip
        for context, call in product(contexts, (1, 2)):
            unit = f"{state.id}/{context}/{call}"
            shown = {Context.MATCHED: state.id, Context.DONOR: donor(state.id)}.get(context)
            units.append(
                Unit(
                    id=unit, kind=UnitKind.FORECAST, state_id=state.id, context=context, call=call,
                    explanation_of=shown, prompt_digest=canonical.digest(unit), seed=len(units),
                )
            )  # fmt: skip
    return tuple(units)


def answers_of(
    plan: Sequence[Unit], targets: Mapping[str, float], rng: np.random.Generator, fallbacks: int
) -> tuple[Answer, ...]:
    """Replies that follow the card they were shown, and wander without one; the last ones are unreadable."""
    asked = [u for u in plan if u.kind is UnitKind.FORECAST]
    found = [_answer(unit, targets, rng) for unit in asked]
    for k in range(len(found) - fallbacks, len(found)):
        unreadable = Forecast(
            unit_id=found[k].unit_id, point=0.0, lower=BURN_IN.q10, upper=BURN_IN.q90, is_fallback=True,
            reason="the reply is not a forecast sentence",
        )  # fmt: skip
        found[k] = replace(
            found[k], forecast=unreadable, reply=replace(found[k].reply, text="I would rather not say.")
        )
    return tuple(found)


def _answer(unit: Unit, targets: Mapping[str, float], rng: np.random.Generator) -> Answer:
    shown = unit.explanation_of
    point = rng.normal(0.02, 0.014) if shown is None else targets[shown] + rng.normal(0, 0.0015)
    point, minus, plus = (
        round(point, 4),
        round(rng.uniform(0.004, 0.02), 4),
        round(rng.uniform(0.004, 0.02), 4),
    )
    text = (
        f"ROC AUC will {'increase' if point >= 0 else 'decrease'} by {abs(point):.4f} "
        f"(80% interval: minus {minus:.4f}, plus {plus:.4f})"
    )
    reply = Reply(
        text=text,
        finish_reason="stop",
        model_requested="smollm2",
        model_resolved="SmolLM2-135M-Instruct.Q4_1.gguf",
    )
    read = Forecast(unit_id=unit.id, point=point, lower=point - minus, upper=point + plus)
    return Answer(unit_id=unit.id, prompt_digest=unit.prompt_digest, reply=reply, forecast=read)


def prompts_of(
    states: Sequence[State], explanations: Sequence[Explanation], contexts: Contexts
) -> dict[str, PromptText]:
    """What each context was asked."""
    by_state = {e.state_id: e.text for e in explanations}
    found = {}
    for state, context in product(states, contexts):
        shown = {Context.MATCHED: state.id, Context.DONOR: donor(state.id)}.get(context)
        fenced = f"\n\n<explanation>\n{by_state[shown]}\n</explanation>" if shown else ""
        key = f"{state.id}/{context}"
        found[key] = PromptText(
            key=key, system=SYSTEM,
            user=f"{state.description}\n\nPlanned: {state.intervention.text}{fenced}\n\nWhat will happen?",
            grammar='root ::= "ROC AUC will " word', max_tokens=64, temperature=0.7, top_p=0.95,
        )  # fmt: skip
    return found


def freeze_of(
    name: str, scale: str, plan: Sequence[Unit], answers: Sequence[Answer], contexts: Contexts
) -> dict[str, Any]:
    """A freeze record in the form the freeze stage writes."""
    return {
        "study": name,
        "scale": scale,
        "package_version": "0.1.0",
        "digests": {f: canonical.digest(f) for f in ("states.jsonl", "plan.jsonl", "forecasts.jsonl")},
        "rule": {"name": "molecular", "sha256": canonical.digest("rule")},
        "prompt_texts": canonical.digest("prompts"),
        "params": {
            "seed": 7,
            "scale": scale,
            "agent": {"name": "playbook"},
            "inference": {"draws": 200, "level": 0.95},
            "forecaster": {"name": "smollm2", "temperature": 0.7},
            "studies": {
                name: {"pool": "moleculeace", "rule": "molecular", "contexts": [*map(str, contexts)]}
            },
        },
        "units": {"planned": len(plan), "forecasts": len(answers), "fallbacks": 1},
        "models": {"requested": ["smollm2"], "resolved": ["SmolLM2-135M-Instruct.Q4_1.gguf"]},
    }


def ledger_of(name: str, scale: str) -> tuple[Event, ...]:
    """A whole chain of events."""
    events: tuple[Event, ...] = ()
    for minute, phase in enumerate(Phase):
        events = ledger.append(
            events, phase, study=name, scale=scale, time_utc=f"2026-03-01T09:{minute:02d}:00+00:00",
            package_version="0.1.0", git_revision=None,
            digests={f"{phase}.json": canonical.digest(str(phase))},
        )  # fmt: skip
    return events


POOL: dict[str, Any] = {
    "rows_read": 48707,
    "molecules": 34514,
    "dropped": {"ragged": 0, "blank": 2, "unparsable": 1, "zero_atom": 0},
    "counted": {"trailing_text": 0, "multi_fragment": 31, "duplicate": 14191, "conflict": 6},
    "first": {"blank": [{"row": "CHEMBL2000_EC50:17", "detail": "no SMILES"}]},
    "endpoints": {
        "CHEMBL2000_EC50": {"labelled": 2800, "active": 1311, "missing": 31714},
        "CHEMBL2037_Ki": {"labelled": 2602, "active": 0, "missing": 31912},
    },
    "single_class_endpoints": ["CHEMBL2037_Ki"],
    "ignored_columns": {},
    "meaning": "1 where a molecule acts at 100 nM or better",
    "rdkit": "2025.03.1",
}
