"""Which forecaster is configured, what it is asked beside the words, and how its reply is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from predictive_credit import config
from predictive_credit.contexts import Sampling
from predictive_credit.forecasters import sentence
from predictive_credit.forecasters.priors import PriorsModel
from predictive_credit.models.llama_cpp import LlamaCppModel
from predictive_credit.models.model import Model
from predictive_credit.models.replay import Replay
from predictive_credit.records import BurnIn, Forecast, MalformedForecast, Reply, Target, TargetBurnIn

Reader = Callable[[str, str, Sequence[Target]], tuple[Forecast, ...]]
GRAMMARS: dict[str, Callable[[Sequence[Target]], str]] = {"sentence": sentence.grammar}
READERS: dict[str, Reader] = {"sentence": sentence.read}


def make(
    chosen: config.Forecaster,
    burn_in: BurnIn,
    targets: Sequence[Target],
    *,
    locate: Callable[[config.LlamaCpp], Path],
) -> Model:
    """The configured model; the caller closes it. `locate` finds a GGUF file (sources.wheels.gguf)."""
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


def sampling(chosen: config.Forecaster, targets: Sequence[Target]) -> Sampling:
    """What the configured forecaster is sent beside the words; part of every prompt's digest.

    The configured token limit is one target's.
    """
    return Sampling(
        grammar=GRAMMARS[chosen.elicitation](targets),
        max_tokens=chosen.max_tokens * len(targets),
        temperature=chosen.temperature,
        top_p=chosen.top_p,
    )


def identity(chosen: config.Forecaster) -> dict[str, Any]:
    """The settings under which a reply counts as this forecaster's, for the journal's keys.

    Acknowledging a served model id afterwards must not ask the answered units again.
    """
    return {k: v for k, v in config.section(chosen).items() if k not in ("acknowledged_models", "watch")}


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
    reply: Reply, unit_id: str, burn_in: BurnIn, targets: Sequence[Target], *, elicitation: str = "sentence"
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
