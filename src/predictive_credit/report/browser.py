"""The data behind the browser of states, as JSON that is safe inside a script element.

Explanations and replies are untrusted: they travel as JSON strings and reach the page as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predictive_credit import scoring
from predictive_credit.records import (
    SLOT_NAMES,
    Answer,
    Context,
    Explanation,
    Forecast,
    Outcome,
    PromptText,
    State,
    Unit,
    UnitKind,
    Usage,
)  # fmt: skip
from predictive_credit.report import words
from predictive_credit.report.view import StudyView

Plain = dict[str, Any]
# Without these three no string can end its script element or open a comment in it.
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """A view's records by the key under which a state or a unit looks for them."""

    units: Mapping[str, Sequence[Unit]]  # forecast units by state id
    answers: Mapping[str, Answer]  # by unit id
    usage: Mapping[str, Usage]  # by unit id
    outcomes: Mapping[str, Outcome]  # by state id
    explanations: Mapping[str, Explanation]  # by state id
    prompts: Mapping[str, PromptText]  # by state id and context
    systems: Sequence[str]  # system texts, each once


def script_json(value: Any) -> str:
    """JSON for the inside of a script element of type application/json."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def data(view: StudyView, unit: str) -> Plain:
    """Everything the browser shows of one study, numbers already in words; JSON-plain."""
    index = _index(view)
    states = [_state(state, index) for state in view.states]
    return {"name": view.name, "unit": unit, "systems": list(index.systems), "states": states}


def _index(view: StudyView) -> Index:
    units: dict[str, list[Unit]] = {}
    for unit in view.plan:
        if unit.kind is UnitKind.FORECAST and unit.context is not None:
            units.setdefault(unit.state_id, []).append(unit)
    return Index(
        units=units,
        answers={a.unit_id: a for a in view.answers},
        usage={u.unit_id: u for u in view.usage},
        outcomes={o.state_id: o for o in view.outcomes},
        explanations={e.state_id: e for e in view.explanations},
        prompts=view.prompts,
        systems=list(dict.fromkeys(p.system for p in view.prompts.values())),
    )


def _state(state: State, index: Index) -> Plain:
    units = index.units.get(state.id, ())
    outcome = index.outcomes.get(state.id)
    value = outcome.value if outcome is not None else None
    contexts = {
        c: [u for u in units if u.context is c] for c in Context if any(u.context is c for u in units)
    }
    answers = [index.answers[u.id] for u in units if u.id in index.answers]
    return {
        "id": state.id,
        "task": state.task,
        "budget": f"{state.budget:g}",
        "seed": state.seed,
        "intervention": words.spaced(state.intervention.name),
        "action": state.intervention.text,
        "description": state.description,
        "facts": [[words.spaced(str(k)), words.anything(v)] for k, v in state.facts.items()],
        "outcome": words.signed(value),
        "defined": value is not None,
        "reason": "no outcome is in the records" if outcome is None else outcome.reason,
        "fallbacks": sum(a.forecast.is_fallback for a in answers),
        "explanations": [
            {
                "context": words.context(c),
                "letter": str(c),
                "of": of,
                **_explanation(index.explanations.get(of)),
            }
            for c, asked in contexts.items()
            if (of := asked[0].explanation_of) is not None
        ],
        "contexts": [_context(state, c, asked, value, index) for c, asked in contexts.items()],
    }


def _explanation(explanation: Explanation | None) -> Plain:
    if explanation is None:
        return {"agent": None, "text": "", "slots": []}
    slots = {name: getattr(explanation.card, name) for name in SLOT_NAMES}
    return {
        "agent": explanation.agent,
        "text": explanation.text,
        "slots": [[n, s.text, s.quote] if s is not None else [n, None, None] for n, s in slots.items()],
    }


def _context(
    state: State, context: Context, units: Sequence[Unit], outcome: float | None, index: Index
) -> Plain:
    points = [index.answers[u.id].forecast.point for u in units if u.id in index.answers]
    prompt = index.prompts.get(f"{state.id}/{context}")
    return {
        "letter": str(context),
        "label": words.context(context),
        "drift": words.number(float(scoring.drift(points))) if len(points) == 2 else words.UNDEFINED,
        "calls": [_call(unit, outcome, index) for unit in units],
        "prompt": None if prompt is None else _prompt(prompt, index.systems),
    }


def _prompt(prompt: PromptText, systems: Sequence[str]) -> Plain:
    sampling = {"temperature": prompt.temperature, "top p": prompt.top_p, "max tokens": prompt.max_tokens}
    return {
        "system": systems.index(prompt.system),
        "user": prompt.user,
        "grammar": prompt.grammar,
        "sampling": ", ".join(f"{k} {v:g}" for k, v in sampling.items()),
    }


def _call(unit: Unit, outcome: float | None, index: Index) -> Plain:
    row: Plain = {"call": unit.call, "id": unit.id, "seed": unit.seed, "digest": unit.prompt_digest}
    answer, usage = index.answers.get(unit.id), index.usage.get(unit.id)
    if answer is None:
        return row | {"answered": False}
    read = answer.forecast
    latency = usage.latency_s if usage is not None else None
    return row | _losses(read, outcome) | {
        "answered": True,
        "raw": answer.reply.text,
        "finish": answer.reply.finish_reason or "not reported",
        "model": answer.reply.model_resolved or answer.reply.model_requested,
        "latency": f"{latency:.2f} s" if latency is not None else "not reported",
        "point": words.signed(read.point),
        "interval": words.interval(read.lower, read.upper),
        "fallback": read.is_fallback,
        "reason": read.reason,
    }  # fmt: skip


def _losses(read: Forecast, outcome: float | None) -> Plain:
    """The losses of one call, by the functions that scored the study."""
    if outcome is None:
        return dict.fromkeys(("point_error", "interval_score", "covered"), words.UNDEFINED)
    return {
        "point_error": words.number(float(scoring.point_error(outcome, read.point))),
        "interval_score": words.number(float(scoring.interval_score(outcome, read.lower, read.upper))),
        "covered": "yes" if read.lower <= outcome <= read.upper else "no",
    }
