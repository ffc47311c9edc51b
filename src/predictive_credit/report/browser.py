"""The data behind the browser of states, as JSON that is safe inside a script element.

Explanations and replies are untrusted: they travel as JSON strings and reach the page as text. What
many prompts share (a state's situation, the question, the grammar) travels once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from predictive_credit import scoring
from predictive_credit.contexts import FENCE_CLOSE, FENCE_OPEN
from predictive_credit.records import (
    SLOT_NAMES,
    Answer,
    Context,
    Explanation,
    Forecast,
    Outcome,
    PromptText,
    State,
    Target,
    Unit,
    UnitKind,
    Usage,
)  # fmt: skip
from predictive_credit.report import svg, words
from predictive_credit.report.view import StudyView, voice

Plain = dict[str, Any]
# Without these three no string can end its script element or open a comment in it.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts that many prompts share, each once: a prompt names them by their place."""

    places: dict[str, int] = field(default_factory=dict)

    def place(self, text: str) -> int:
        """Where a text stands, after adding it if it is new."""
        return self.places.setdefault(text, len(self.places))


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A view's records by the key under which a state or a unit looks for them."""

    view: StudyView
    units: Mapping[str, Sequence[Unit]]  # forecast units by state id
    answers: Mapping[str, Answer]  # by unit id
    usage: Mapping[str, Usage]  # by unit id
    outcomes: Mapping[str, Outcome]  # by state id and target
    explanations: Mapping[str, Sequence[Explanation]]  # by state id
    places: Mapping[str, int]  # of states by id
    texts: Texts = field(default_factory=Texts)


def script_json(value: Any) -> str:
    """JSON for the inside of a script element of type application/json."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def data(view: StudyView) -> Plain:
    """Everything the browser shows of one study, numbers already in words; JSON-plain.

    A prompt's user text is the state's `stem`, then text `before`, what was `shown`, text `after`.
    """
    index = _index(view)
    states = [_state(state, index) for state in view.states]
    return {
        "name": view.name,
        "targets": [
            {"phrase": words.capital(t.phrase), "unit": t.unit, "form": t.form} for t in view.study.targets
        ],
        "texts": list(index.texts.places),
        "states": states,
    }


def _index(view: StudyView) -> Index:
    units: dict[str, list[Unit]] = {}
    for unit in view.plan:
        if unit.kind is UnitKind.FORECAST and unit.context is not None:
            units.setdefault(unit.state_id, []).append(unit)
    explanations: dict[str, list[Explanation]] = {}
    for explanation in view.explanations:
        explanations.setdefault(explanation.state_id, []).append(explanation)
    return Index(
        view=view,
        units=units,
        answers={a.unit_id: a for a in view.answers},
        usage={u.unit_id: u for u in view.usage},
        outcomes={o.id: o for o in view.outcomes},
        explanations=explanations,
        places={state.id: at for at, state in enumerate(view.states)},
    )


def _state(state: State, index: Index) -> Plain:
    units = index.units.get(state.id, ())
    contexts = {
        c: [u for u in units if u.context is c] for c in Context if any(u.context is c for u in units)
    }
    answers = [index.answers[u.id] for u in units if u.id in index.answers]
    stem = _stem(state, contexts, index)
    return {
        "id": state.id,
        "task": state.task,
        "where": _where(state),
        "intervention": words.spaced(state.intervention.name),
        "action": state.intervention.text,
        "description": state.description,
        "facts": [[words.spaced(str(k)), words.anything(v)] for k, v in state.facts.items()],
        "outcomes": [
            _outcome(index.outcomes.get(f"{state.id}/{t.name}"), t) for t in index.view.study.targets
        ],
        "fallbacks": sum(a.is_fallback for a in answers),
        "explanations": [_explanation(e) for e in index.explanations.get(state.id, ())],
        "stem": stem,
        "contexts": [_context(state, c, asked, stem, index) for c, asked in contexts.items()],
    }


def _where(state: State) -> str:
    """Label fraction and seed, where the state has them."""
    budget = None if state.budget is None else f"{state.budget:g}"
    seed = None if state.seed is None else f"seed {state.seed}"
    return ", ".join(part for part in (budget, seed) if part is not None)


def _outcome(outcome: Outcome | None, target: Target) -> Plain:
    value = None if outcome is None else outcome.value
    return {
        "value": voice(target).signed(value),
        "defined": value is not None,
        "reason": "no outcome is in the records" if outcome is None else outcome.reason,
    }


def _explanation(explanation: Explanation) -> Plain:
    slots = {name: getattr(explanation.card, name) for name in SLOT_NAMES}
    return {
        "source": words.spaced(explanation.source),
        "agent": explanation.agent,
        "text": explanation.text,
        "extraction": explanation.extraction,
        "slots": [[n, s.text, s.quote] if s is not None else [n, None, None] for n, s in slots.items()],
    }


def _stem(state: State, contexts: Mapping[Context, Sequence[Unit]], index: Index) -> str:
    """What the prompts of a state begin with alike, up to its last whole line before an explanation."""
    found = []
    for context, units in contexts.items():
        prompt = index.view.prompts.get(f"{state.id}/{context}")
        if prompt is not None:
            before, _, _ = _parts(prompt.user, shows=units[0].explanation_of is not None)
            found.append(before)
    first, last = min(found, default=""), max(found, default="")  # in order, these two differ soonest
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, last, strict=False)))
    return first[: first.rfind("\n", 0, shared) + 1]


def _parts(user: str, *, shows: bool) -> tuple[str, str | None, str]:
    """A prompt before the explanation, the explanation as shown (None in D), and the rest."""
    at, end = user.rfind(f"{FENCE_OPEN}\n"), user.rfind(f"\n{FENCE_CLOSE}")
    if not shows or not 0 <= at < end:
        return user, None, ""
    start = at + len(FENCE_OPEN) + 1
    return user[:start], user[start:end], user[end:]


def _context(state: State, context: Context, units: Sequence[Unit], stem: str, index: Index) -> Plain:
    of = units[0].explanation_of
    prompt = index.view.prompts.get(f"{state.id}/{context}")
    return {
        "letter": svg.part(context),
        "label": words.context(context),
        "of": of,
        "place": None if of in (None, state.id) else index.places.get(str(of)),
        "says": _says(state, context, of, index),
        "drift": [_drift(t, units, index) for t in index.view.study.targets],
        "calls": [_call(unit, index) for unit in units],
        "prompt": None if prompt is None else _prompt(prompt, stem, index.texts, shows=of is not None),
    }


def _says(state: State, context: Context, of: str | None, index: Index) -> list[str] | None:
    """Whose explanation a context showed and of which source, and how much of it; None in D."""
    showing = index.view.study.contexts.get(context)
    if of is None or showing is None:
        return None
    return [words.spaced(showing.source or state.sources[0]), words.FORMS[showing.form]]


def _drift(target: Target, units: Sequence[Unit], index: Index) -> str:
    points = [
        f.point
        for u in units
        if u.id in index.answers
        for f in index.answers[u.id].forecasts
        if f.target == target.name
    ]
    return voice(target).number(float(scoring.drift(points))) if len(points) == 2 else words.UNDEFINED


def _prompt(prompt: PromptText, stem: str, texts: Texts, *, shows: bool) -> Plain:
    sampling = {"temperature": prompt.temperature, "top p": prompt.top_p, "max tokens": prompt.max_tokens}
    before, shown, after = _parts(prompt.user, shows=shows)
    return {
        "system": texts.place(prompt.system),
        "before": texts.place(before.removeprefix(stem)),
        "shown": shown,
        "after": texts.place(after),
        "grammar": None if prompt.grammar is None else texts.place(prompt.grammar),
        "sampling": ", ".join(
            f"{k} {'as the provider has it' if v is None else format(v, 'g')}" for k, v in sampling.items()
        ),
    }


def _call(unit: Unit, index: Index) -> Plain:
    row: Plain = {"call": unit.call, "seed": unit.seed, "digest": unit.prompt_digest}
    answer, usage = index.answers.get(unit.id), index.usage.get(unit.id)
    if answer is None:
        return row | {"answered": False}
    latency = usage.latency_s if usage is not None else None
    read = {f.target: f for f in answer.forecasts}
    reason = next((f.reason for f in answer.forecasts if f.reason is not None), None)
    return row | {
        "answered": True,
        "raw": answer.reply.text,
        "finish": answer.reply.finish_reason or "not reported",
        "model": answer.reply.model_resolved or answer.reply.model_requested,
        "latency": f"{latency:.2f} s" if latency is not None else "not reported",
        "fallback": answer.is_fallback,
        "reason": reason,
        "read": [
            _read(t, read[t.name], index.outcomes.get(f"{unit.state_id}/{t.name}"))
            if t.name in read
            else None
            for t in index.view.study.targets
        ],
    }


def _read(target: Target, read: Forecast, outcome: Outcome | None) -> list[str]:
    """Point, interval, interval score, point error and whether the outcome is inside, as said."""
    say, y = voice(target), None if outcome is None else outcome.value
    forecast = [say.signed(read.point), say.interval(read.lower, read.upper)]
    if y is None:
        return [*forecast, *[words.UNDEFINED] * 3]
    return [
        *forecast,
        say.number(float(scoring.interval_score(y, read.lower, read.upper))),
        say.number(float(scoring.point_error(y, read.point))),
        "yes" if read.lower <= y <= read.upper else "no",
    ]
