"""Which forecaster is configured, what it is asked beside the words, and how its reply is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from predictive_credit import config
from predictive_credit.contexts import Sampling
from predictive_credit.forecasters import json_object, sentence
from predictive_credit.forecasters.priors import PriorsModel
from predictive_credit.models import providers
from predictive_credit.models.llama_cpp import LlamaCppModel
from predictive_credit.models.model import Model
from predictive_credit.models.provider import Provider
from predictive_credit.models.replay import Replay
from predictive_credit.records import BurnIn, Forecast, MalformedForecast, Reply, Target, TargetBurnIn

Reader = Callable[[str, str, Sequence[Target]], tuple[Forecast, ...]]
QUESTIONS = {"sentence": "forecast_question", "json": "forecast_question_json"}
READERS: dict[str, Reader] = {"sentence": sentence.read, "json": json_object.read}


def make(
    chosen: config.Forecaster,
    burn_in: BurnIn,
    targets: Sequence[Target],
    *,
    locate: Callable[[config.LlamaCpp], Path],
) -> Model | Provider:
    """The configured model; who asks it closes it. `locate` finds a GGUF file (sources.wheels.gguf)."""
    match chosen:
        case config.LlamaCpp():
            return LlamaCppModel(
                locate(chosen), name=chosen.name, threads=chosen.threads, prefix_cache=chosen.prefix_cache,
                file_name=PurePosixPath(chosen.member).name,
            )  # fmt: skip
        case config.Priors():
            return PriorsModel(chosen.point, burn_in, targets, name=chosen.name)
        case config.Replay():
            return Replay(Path(chosen.path), name=chosen.name)
        case config.Provided():
            return providers.make(chosen)
        case config.Filed():
            raise TypeError("a file of forecasts is looked up by unit, not asked")


def sampling(chosen: config.Forecaster, targets: Sequence[Target]) -> Sampling:
    """What the configured forecaster is sent beside the words; part of every prompt's digest.

    The configured token limit is one target's.
    """
    return Sampling(
        grammar=_shape(chosen, targets),
        max_tokens=chosen.max_tokens * len(targets),
        temperature=chosen.temperature,
        top_p=chosen.top_p,
        question=QUESTIONS[chosen.elicitation],
    )


def _shape(chosen: config.Forecaster, targets: Sequence[Target]) -> str | None:
    """What the provider can hold an answer to: a grammar in this process, a JSON Schema elsewhere."""
    if isinstance(chosen, config.Replay) and not chosen.structured:
        return None
    if not isinstance(chosen, config.Provided):
        return sentence.grammar(targets) if chosen.elicitation == "sentence" else json_object.schema(targets)
    is_held = isinstance(chosen, config.Endpoint) and chosen.structured and chosen.elicitation == "json"
    return json_object.schema(targets) if is_held else None


def identity(chosen: config.Forecaster) -> dict[str, Any]:
    """The settings under which a reply counts as this forecaster's, for the journal's keys.

    Acknowledging a served model id afterwards must not ask the answered units again.
    """
    settings = providers.identity(chosen) if isinstance(chosen, config.Provided) else config.section(chosen)
    return {k: v for k, v in settings.items() if k not in ("acknowledged_models", "watch")}


def fallback(unit_id: str, burn_in: BurnIn, reason: str, targets: Sequence[Target]) -> tuple[Forecast, ...]:
    """The frozen fallback of every target, with the burn-in's 10/90 % quantiles.

    Its point is no change, or the burn-in's mean where a level is forecast.
    """
    return tuple(_fallback(unit_id, burn_in.targets[t.name], reason, t) for t in targets)


def _fallback(unit_id: str, learned: TargetBurnIn, reason: str, target: Target) -> Forecast:
    return Forecast(
        unit_id=unit_id,
        target=target.name,
        point=0.0 if target.form == "change" else learned.mean,
        lower=learned.q10,
        upper=learned.q90,
        is_fallback=True,
        reason=reason,
    )


def read_or_fallback(
    reply: Reply, unit_id: str, burn_in: BurnIn, targets: Sequence[Target], *, elicitation: str
) -> tuple[Forecast, ...]:
    """The forecasts in a reply, one a target; or the fallback in all, with the reason why there is none.

    The finish reason is read first: a truncated answer may happen to parse.
    """
    if reply.finish_reason == "length":
        return fallback(unit_id, burn_in, "truncated: the answer ran into the token limit", targets)
    if reply.finish_reason not in ("stop", None):
        return fallback(unit_id, burn_in, f"not finished: {reply.finish_reason}", targets)
    try:
        return READERS[elicitation](reply.text, unit_id, targets)
    except MalformedForecast as error:
        return fallback(unit_id, burn_in, str(error).removeprefix(f"unit {unit_id}: "), targets)
