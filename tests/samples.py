"""Small synthetic studies, from states to ledger, for tests that need a whole StudyView."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

import numpy as np

from predictive_credit import canonical, ledger
from predictive_credit.cards import read_card
from predictive_credit.config import Inference
from predictive_credit.contexts import Sampling, forecast_prompt
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
    Source,
    State,
    Target,
    TargetBurnIn,
    Unit,
    UnitKind,
    Usage,
)  # fmt: skip
from predictive_credit.report.view import StudyView
from predictive_credit.streams import stream
from predictive_credit.studies.controlled import CONTROLLED
from predictive_credit.studies.evaluation import Scored, evaluate
from predictive_credit.studies.molecular import MOLECULAR
from predictive_credit.studies.recalibration import recalibration
from predictive_credit.studies.study import Donors, Study
from predictive_credit.studies.table import TABLE
from predictive_credit.studies.tabular import TABULAR

ACTIONS = (
    ("class_balanced", "Weight the training loss by inverse class frequency."),
    ("radius_3", "Use Morgan fingerprints of radius 3 instead of radius 2."),
    ("stronger_l2", "Make the L2 penalty ten times stronger."),
)
INTEGRITY = {
    "chain_ok": True, "commitments_ok": True, "opened_after_freeze": True, "planned_after_opening": None,
}  # fmt: skip
ALL: tuple[Context, ...] = tuple(MOLECULAR.contexts)
SIX: tuple[Context, ...] = tuple(TABULAR.contexts)
SAMPLING = Sampling(grammar='root ::= "ROC AUC will " word', max_tokens=64, temperature=0.7, top_p=0.95)
UNREADABLE = "the reply is not a forecast sentence"
# How large the changes of each target are; nothing else about the samples depends on it.
SPREAD = {"roc_auc": 0.018, "skill": 0.03, "accuracy_pp": 1.5, "log_loss": 0.08, "hours": 6.0}

SOURCES: tuple[Source, Source] = ("ordinary", "elicited")  # of even and of odd seeds

Numbers = Mapping[tuple[str, str], float]  # by state id and target
Shown = Mapping[tuple[str, Source], Explanation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What a sample study is made of before anybody is asked."""

    study: Study
    name: str
    states: tuple[State, ...]
    contexts: tuple[Context, ...]
    donors: Donors
    seed: int
    scale: str
    undefined: int  # states whose outcomes are
    fallbacks: int  # of the last replies
    draws: int


def study_view(
    *, endpoints: int = 4, contexts: Sequence[Context] = ALL, scale: str = "quick", seed: int = 7,
    name: str = "molecular", undefined: int = 1, fallbacks: int = 1, draws: int = 200,
) -> StudyView:  # fmt: skip
    """One decided molecular study of endpoints x 3 label fractions x 2 seeds."""
    tasks = [f"CHEMBL{2000 + 37 * e}_{'Ki' if e % 2 else 'EC50'}" for e in range(endpoints)]
    states = [
        state_of(name, task, budget, seed_, place=e + b, cluster=(task, f"{budget:g}", str(seed_)))
        for (e, task), (b, budget), seed_ in product(enumerate(tasks), enumerate((0.25, 0.5, 1.0)), (1, 2))
    ]
    return decided(
        Sample(
            study=MOLECULAR, name=name, states=in_order(states), contexts=tuple(contexts),
            donors={Context.DONOR: {s.id: other_seed(s.id) for s in states}}, seed=seed, scale=scale,
            undefined=undefined, fallbacks=fallbacks, draws=draws,
        )
    )  # fmt: skip


def tabular_view(
    *, tasks: int = 4, contexts: Sequence[Context] = SIX, scale: str = "quick", seed: int = 7,
    name: str = "tabular", undefined: int = 1, fallbacks: int = 1, draws: int = 200,
) -> StudyView:  # fmt: skip
    """One decided tabular study of tasks x 3 budgets x 2 seeds, six contexts and two sources."""
    names = [f"{'credit' if t % 2 else 'houses'}_{t}" for t in range(tasks)]
    states = [
        replace(
            state_of(
                name, task, budget, seed_, place=b,
                cluster=("regression" if t % 2 else "classification", task, f"{budget:g}/{seed_}"),
            ),
            sources=("elicited", "ordinary"),
        )
        for (t, task), (b, budget), seed_ in product(enumerate(names), enumerate((0.25, 0.5, 1.0)), (1, 2))
    ]  # fmt: skip
    following = dict(zip(names, [*names[1:], names[0]], strict=True))
    donors = {
        Context.DONOR: {s.id: other_seed(s.id) for s in states},
        Context.OTHER_TASK: {s.id: s.id.replace(s.task, following[s.task]) for s in states},
    }
    return decided(
        Sample(
            study=TABULAR, name=name, states=in_order(states), contexts=tuple(contexts), donors=donors,
            seed=seed, scale=scale, undefined=undefined, fallbacks=fallbacks, draws=draws,
        )
    )  # fmt: skip


def controlled_view(
    *, regimes: int = 3, seeds: int = 4, contexts: Sequence[Context] = tuple(CONTROLLED.contexts),
    scale: str = "quick", seed: int = 7, name: str = "controlled", undefined: int = 1, fallbacks: int = 1,
    draws: int = 200,
) -> StudyView:  # fmt: skip
    """One decided controlled study of regimes x seeds, two targets, elicited and ordinary in turn."""
    states = []
    for r, s in product(range(regimes), range(1, seeds + 1)):
        regime, source = f"regime_{r}", SOURCES[s % 2]
        made = state_of(name, regime, None, s, place=r + s, cluster=(regime, str(s)))
        states.append(replace(made, sources=(source,)))
    lent = {s.id: s.id[: s.id.rfind("/") + 1] + str((s.seed or 0) % seeds + 1) for s in states}
    # Two seeds on, so that the donor's explanation is of the same source.
    donors = {Context.DONOR: {state: lent[lent[state]] for state in lent}}
    return decided(
        Sample(
            study=CONTROLLED, name=name, states=in_order(states), contexts=tuple(contexts), donors=donors,
            seed=seed, scale=scale, undefined=undefined, fallbacks=fallbacks, draws=draws,
        )
    )  # fmt: skip


def control_view(study: Study, *, tasks: int = 4, seed: int = 7, draws: int = 100) -> StudyView:
    """One decided control of tasks x 2 label fractions x 2 seeds, with everything its contexts show."""
    sources = tuple(dict.fromkeys(s.source for s in study.contexts.values() if s is not None and s.source))
    names = ("linear", "nonlinear") if study.name == "mechanism" else tuple(f"task_{t}" for t in range(tasks))
    states = []
    for (t, task), (b, budget), seed_ in product(enumerate(names), enumerate((0.5, 1.0)), (1, 2)):
        kind = task if study.name == "mechanism" else str(t % 2)
        within = {"kind": kind, "label fraction": f"{budget:g}", "seed": str(seed_)}
        within |= dict.fromkeys(("pair", "state"), f"{budget:g}/{seed_}")
        cluster = tuple(within.get(level.name, task) for level in study.levels)
        made = state_of(study.name, task, budget, seed_, place=t + b, cluster=cluster)
        states.append(replace(made, sources=sources))
    donors = {Context.DONOR: {s.id: other_seed(s.id) for s in states}}
    return decided(
        Sample(
            study=study, name=study.name, states=in_order(states), contexts=tuple(study.contexts),
            donors={c: of for c, of in donors.items() if c in study.contexts}, seed=seed, scale="quick",
            undefined=1, fallbacks=1, draws=draws,
        )
    )  # fmt: skip


def own_view(*, groups: int = 4, name: str = "assays", scale: str = "full") -> StudyView:
    """One decided study of a user's own table: one cluster column, a level in hours, given texts."""
    hours = Target(
        name="hours", phrase="half life", unit="hours", suffix=" hours", size="?##.#", lower=0, upper=500,
        form="level", large=1.0,
    )  # fmt: skip
    study = replace(
        TABLE, targets=(hours,), levels=(replace(MOLECULAR.levels[0], name="lab"), *MOLECULAR.levels[2:])
    )
    states = [
        replace(
            state_of(name, f"lab {g}", None, None, place=g, cluster=(f"lab {g}", f"row {k}")),
            id=f"{name}/lab {g}/row {k}", sources=("given",),
        )
        for g, k in product(range(groups), range(3))
    ]  # fmt: skip
    return decided(
        Sample(
            study=study, name=name, states=in_order(states),
            contexts=(Context.DESCRIPTION, Context.MATCHED), donors={}, seed=7, scale=scale, undefined=1,
            fallbacks=0, draws=200,
        )
    )  # fmt: skip


def decided(sample: Sample) -> StudyView:
    """Everything that happens to a sample: explanations, prompts, replies, outcomes, metrics, ledger."""
    rng = stream(sample.seed, "sample")
    targets = sample.study.targets
    stated = numbers(sample.states, targets, rng, centre=0.2, spread=0.7)
    explanations = {
        (s.id, source): explanation(s, targets, stated, source) for s in sample.states for source in s.sources
    }
    plan = plan_of(sample)
    answers = answers_of(sample, plan, stated, rng)
    outcomes = outcomes_of(sample, numbers(sample.states, targets, rng, centre=0.15, spread=1.0))
    scored = Scored(
        study=sample.study,
        states=sample.states,
        contexts=sample.contexts,
        forecasts={a.unit_id: a.forecasts for a in answers},
        outcomes={(o.state_id, o.target): o for o in outcomes},
        burn_in=burn_in_of(targets),
        explanations=explanations,
        donors={c: of for c, of in sample.donors.items() if c in sample.contexts},
    )
    inference = Inference(draws=sample.draws, level=0.95)
    metrics = evaluate(scored, seed=sample.seed, inference=inference, scale=sample.scale, integrity=INTEGRITY)
    metrics["recalibration"] = recalibration(
        scored, seed=sample.seed, inference=inference, scale=sample.scale
    )
    return StudyView(
        name=sample.name,
        study=sample.study,
        metrics=metrics,
        pool=POOL,
        freeze=freeze_of(sample, plan, answers),
        ledger=ledger_of(sample.name, sample.scale),
        states=sample.states,
        explanations=tuple(explanations.values()),
        plan=plan,
        prompts=prompts_of(sample, explanations),
        answers=answers,
        outcomes=outcomes,
        usage=tuple(
            Usage(
                unit_id=a.unit_id, prompt_tokens=210, completion_tokens=31, cached_tokens=180, latency_s=0.43
            )
            for a in answers
        ),
    )


def in_order(states: Sequence[State]) -> tuple[State, ...]:
    """States sorted by id."""
    return tuple(sorted(states, key=lambda s: s.id))


def state_of(
    study: str, task: str, budget: float | None, seed: int | None, *, place: int, cluster: tuple[str, ...]
) -> State:
    """One state; its place decides its intervention and its numbers."""
    action, text = ACTIONS[place % len(ACTIONS)]
    n_train = round(1600 * (budget or 1.0))
    cv_auc = 0.79 + 0.01 * place
    tail = [part for part in (None if budget is None else f"{budget:g}", seed) if part is not None]
    description = (
        f"{task.capitalize()}: potency of molecules, 1 where a molecule acts at 100 nM or better. The parent "
        f"is an L2-regularised logistic regression on Morgan fingerprints, trained on {n_train} molecules.\n"
        f"Its cross-validated ROC AUC is {cv_auc:.2f}.\n"
        "What will be measured is the change on held-out rows, child minus parent."
    )
    return State(
        id="/".join(map(str, (study, task, *tail))), study=study, task=task, cluster=cluster, budget=budget,
        seed=seed, description=description, intervention=Intervention(name=action, text=text),
        facts={
            "n_train": n_train, "prevalence": 0.31 + 0.01 * place, "cv_auc": None if place == 0 else cv_auc,
        },
    )  # fmt: skip


def other_seed(state_id: str) -> str:
    """The other seed of the same cell."""
    return state_id[:-1] + {"1": "2", "2": "1"}[state_id[-1]]


def numbers(
    states: Sequence[State],
    targets: Sequence[Target],
    rng: np.random.Generator,
    *,
    centre: float,
    spread: float,
) -> Numbers:
    """A number of each state and target, some of them negative unless the target is a level."""
    found = {}
    for state, target in product(states, targets):
        value = SPREAD[target.name] * float(rng.normal(centre, spread))
        found[state.id, target.name] = abs(value) if target.form == "level" else value
    return found


def explanation(
    state: State, targets: Sequence[Target], stated: Numbers, source: Source = "elicited"
) -> Explanation:
    """A card with one empty slot, every quote of which is in its text; a note states a direction alone."""
    values = [stated[state.id, target.name] for target in targets]
    word = "increase" if values[0] > 0 else "decrease"
    amounts = [f"{t.phrase} {v:+.4f}{t.suffix}" for t, v in zip(targets, values, strict=True)]
    said = {
        "direction": word,
        "target": "; ".join(amounts),
        "intermediate": "Calibration of the rare class moves first.",
        "regime": f"Strongest at {state.budget or 1:.0%} of the labels.",
        "falsifier": "No change of the cross-validated score.",
    }
    lines = "\n".join(f"{name.capitalize()}: {words}" for name, words in said.items())
    if source != "ordinary":
        return Explanation(
            state_id=state.id, source=source, agent="playbook", text=lines, card=read_card(lines)
        )
    note = f"We expect things to {word}."
    return Explanation(
        state_id=state.id, source=source, agent="playbook", text=note, card=read_card(f"Direction: {word}"),
        extraction=f'{{"direction": {{"text": "{word}", "quote": "{word}"}}}}',
    )  # fmt: skip


def owner(sample: Sample, context: Context, state: State) -> str | None:
    """Whose explanation a context shows of a state."""
    showing = sample.study.contexts[context]
    if showing is None:
        return None
    return sample.donors[context][state.id] if showing.donor else state.id


def plan_of(sample: Sample) -> tuple[Unit, ...]:
    """What writes, what reads and two calls a context for every state."""
    units = []
    for state in sample.states:
        asked = [(f"{state.id}/{source}", UnitKind.ELICIT) for source in state.sources]
        asked += [
            (f"{state.id}/{source}/extract", UnitKind.EXTRACT)
            for source in state.sources
            if source in sample.study.extracted
        ]
        for unit, kind in asked:
            units.append(
                Unit(
                    id=unit, kind=kind, state_id=state.id, context=None, call=None, explanation_of=None,
                    prompt_digest=canonical.digest(unit), seed=1,
                )
            )  # fmt: skip
        for context, call in product(sample.contexts, (1, 2)):
            unit = f"{state.id}/{context}/{call}"
            units.append(
                Unit(
                    id=unit, kind=UnitKind.FORECAST, state_id=state.id, context=context, call=call,
                    explanation_of=owner(sample, context, state), prompt_digest=canonical.digest(unit),
                    seed=len(units),
                )
            )  # fmt: skip
    return tuple(units)


def answers_of(
    sample: Sample, plan: Sequence[Unit], stated: Numbers, rng: np.random.Generator
) -> tuple[Answer, ...]:
    """Replies that follow the card they were shown, and wander without one; the last ones are unreadable."""
    asked = [u for u in plan if u.kind is UnitKind.FORECAST]
    targets, learned = sample.study.targets, burn_in_of(sample.study.targets)
    found = [_answer(unit, targets, stated, rng) for unit in asked]
    for k in range(len(found) - sample.fallbacks, len(found)):
        unreadable = tuple(
            Forecast(
                unit_id=found[k].unit_id, target=t.name, point=0.0, lower=learned.targets[t.name].q10,
                upper=learned.targets[t.name].q90, is_fallback=True, reason=UNREADABLE,
            )
            for t in targets
        )  # fmt: skip
        found[k] = replace(
            found[k], forecasts=unreadable, reply=replace(found[k].reply, text="I would rather not say.")
        )
    return tuple(found)


def _answer(unit: Unit, targets: Sequence[Target], stated: Numbers, rng: np.random.Generator) -> Answer:
    read = tuple(_forecast(unit, target, stated, rng) for target in targets)
    said = [
        f"{t.phrase} will {'increase' if f.point >= 0 else 'decrease'} by {abs(f.point):.4f}{t.suffix} "
        f"(80% interval: minus {f.point - f.lower:.4f}, plus {f.upper - f.point:.4f})"
        for t, f in zip(targets, read, strict=True)
    ]
    reply = Reply(
        text="\n".join(said),
        finish_reason="stop",
        model_requested="smollm2",
        model_resolved="SmolLM2-135M-Instruct.Q4_1.gguf",
    )
    return Answer(unit_id=unit.id, prompt_digest=unit.prompt_digest, reply=reply, forecasts=read)


def _forecast(unit: Unit, target: Target, stated: Numbers, rng: np.random.Generator) -> Forecast:
    shown, spread = unit.explanation_of, SPREAD[target.name]
    follows = shown is not None and unit.context is not Context.ORDINARY
    centre = stated[str(shown), target.name] if follows else 1.1 * spread
    point = round(float(rng.normal(centre, (0.08 if follows else 0.8) * spread)), 4)
    minus, plus = (round(float(rng.uniform(0.2, 1.1)) * spread, 4) for _ in range(2))
    return Forecast(unit_id=unit.id, target=target.name, point=point, lower=point - minus, upper=point + plus)


def outcomes_of(sample: Sample, values: Numbers) -> tuple[Outcome, ...]:
    """Executed outcomes; those of the first states are undefined."""
    return tuple(
        Outcome(state_id=s.id, target=t.name, value=None, reason="held-out labels of one class")
        if at < sample.undefined
        else Outcome(state_id=s.id, target=t.name, value=values[s.id, t.name])
        for at, s in enumerate(sample.states)
        for t in sample.study.targets
    )


def burn_in_of(targets: Sequence[Target]) -> BurnIn:
    """A burn-in of the size of each target's changes."""
    return BurnIn(name="synthetic", tasks=("unused",), targets={t.name: _burn_in(t) for t in targets})


def _burn_in(target: Target) -> TargetBurnIn:
    spread = SPREAD[target.name]
    learned = {"mean": 0.1 * spread, "q10": -spread, "q90": 1.1 * spread, "n": 13}
    return TargetBurnIn(
        n_outcomes=40, n_undefined=0, mean=0.1 * spread, mean_absolute=0.7 * spread, q10=-spread,
        q90=1.1 * spread, by_intervention={name: learned for name, _ in ACTIONS},
    )  # fmt: skip


def prompts_of(sample: Sample, explanations: Shown) -> dict[str, PromptText]:
    """What each context was asked."""
    found = {}
    for state, context in product(sample.states, sample.contexts):
        showing, whose = sample.study.contexts[context], owner(sample, context, state)
        shown = None
        if showing is not None:
            shown = explanations[str(whose), showing.source or state.sources[0]]
        prompt = forecast_prompt(
            state, context, shown, showing=showing, targets=sample.study.targets, sampling=SAMPLING
        )
        found[prompt.key] = prompt
    return found


def freeze_of(sample: Sample, plan: Sequence[Unit], answers: Sequence[Answer]) -> dict[str, Any]:
    """A freeze record in the form the freeze stage writes."""
    rule = sample.study.name
    return {
        "study": sample.name,
        "scale": sample.scale,
        "package_version": "0.1.0",
        "digests": {f: canonical.digest(f) for f in ("states.jsonl", "plan.jsonl", "forecasts.jsonl")},
        "rule": {"name": rule, "sha256": canonical.digest("rule")},
        "prompt_texts": canonical.digest("prompts"),
        "params": {
            "seed": 7,
            "scale": sample.scale,
            "agent": {"kind": "playbook", "name": "playbook"},
            "inference": {"draws": sample.draws, "level": 0.95},
            "forecaster": {"name": "smollm2", "temperature": 0.7},
            "studies": {
                sample.name: {
                    "pool": POOL_NAMES.get(rule, "frozen"), "rule": rule,
                    "contexts": [*map(str, sample.contexts)],
                }
            },
        },
        "units": {"planned": len(plan), "forecasts": len(answers), "fallbacks": sample.fallbacks},
        "models": {"requested": ["smollm2"], "resolved": ["SmolLM2-135M-Instruct.Q4_1.gguf"]},
    } | ({} if sample.study.reuses is None else {"stimuli": stimuli_of(sample)})  # fmt: skip


def stimuli_of(sample: Sample) -> dict[str, Any]:
    """What a control took over, in the form its pool tells it."""
    return {
        "study": sample.study.reuses,
        "scale": "full",
        "ledger_head": canonical.digest("head"),
        "digests": {f: canonical.digest(f"frozen {f}") for f in ("states.jsonl", "outcomes.csv")},
        "states": {s.id: canonical.digest(s.id) for s in sample.states},
        "explanations": {},
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


POOL_NAMES: Mapping[str, Literal["moleculeace", "packaged", "regimes", "own"]] = {
    "molecular": "moleculeace", "tabular": "packaged", "controlled": "regimes", "table": "own",
}  # fmt: skip
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
    "tables": {
        "houses_0": {"rows": 900, "dropped": {"missing target": 3, "constant columns": 2}, "levels": [2, 3]},
        "credit_1": {"rows": 1000, "dropped": {"missing target": 0, "constant columns": 0}, "levels": []},
    },
    "single_class_endpoints": ["CHEMBL2037_Ki"],
    "ignored_columns": {},
    "meaning": "1 where a molecule acts at 100 nM or better",
    "rdkit": "2025.03.1",
}
