"""The calls of a study as an Inspect eval log in JSON, and replies out of such a log.

Each call is a sample: its messages, what came back, and in `metadata` whatever of the prompt and the
reply Inspect has no field for, so that a replay of the log is a replay of the study.

Format: Inspect's eval log, version 2 (inspect.aisi.org.uk, "Log Files").
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from predictive_credit import canonical, scoring
from predictive_credit.errors import BadSource
from predictive_credit.records import Forecast, Outcome, Prompt, Reply, Unit

REPLY: Final = TypeAdapter(Reply)
_ATTACHMENT: Final = "attachment://"
# Our finish reasons by Inspect's word; any other is "unknown" there, and itself in the metadata.
STOP_REASONS: Final = {"stop": "stop", "length": "max_tokens", "content_filter": "content_filter"}
FINISH_REASONS: Final = {"max_tokens": "length", "model_length": "length", "unknown": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One unit, what it was asked, and what came back; forecasts and outcomes in the targets' order."""

    unit: Unit
    prompt: Prompt
    reply: Reply
    forecasts: Sequence[Forecast] = ()
    outcomes: Sequence[Outcome] = ()  # empty until they are opened


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What a log says of the whole study. Times are ISO 8601."""

    study: str
    scale: str
    model: str  # as the forecaster was requested
    planned: str
    frozen: str
    version: str  # of this package
    frozen_digest: str  # sha256 of freeze.json


def write(header: Header, calls: Sequence[Call]) -> bytes:
    """The log's bytes. Parts stand in Inspect's order, the samples after what describes them."""
    samples = [_sample(call) for call in calls]
    log = {
        "version": 2,
        "status": "success",
        "eval": _eval(header, calls),
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": {
            "total_samples": len(calls), "completed_samples": len(calls), "scores": _means(samples),
        },
        "stats": {
            "started_at": header.planned, "completed_at": header.frozen, "model_usage": _totals(calls),
        },
        "samples": samples,
    }  # fmt: skip
    return json.dumps(log, indent=1, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _eval(header: Header, calls: Sequence[Call]) -> dict[str, Any]:
    ids = [call.unit.id for call in calls]
    return {
        "eval_id": header.frozen_digest[:22],
        "run_id": header.frozen_digest[22:44],
        "created": header.frozen,
        "task": header.study,
        "task_id": f"{header.study}_{header.scale}",
        "dataset": {"name": header.study, "samples": len(ids), "sample_ids": ids, "shuffled": False},
        "model": header.model,
        "config": {"epochs": 1},
        "packages": {"predictive_credit": header.version},
        "metadata": {"scale": header.scale, "freeze_sha256": header.frozen_digest},
    }


def _sample(call: Call) -> dict[str, Any]:
    asked = [{"role": role, "content": text} for role, text in _said(call.prompt)]
    scores = _scores(call)
    return {
        "id": call.unit.id,
        "epoch": 1,  # a unit is asked once; its two calls are two units
        "input": asked,
        "target": _target(call.outcomes),
        "messages": [*asked, _assistant(call.reply)],
        "output": _output(call.reply),
        **({"scores": scores} if scores else {}),
        "metadata": _metadata(call),
        "model_usage": _totals([call]),
    }


def _said(prompt: Prompt) -> tuple[tuple[str, str], ...]:
    return ("system", prompt.system), ("user", prompt.user)


def _assistant(reply: Reply) -> dict[str, Any]:
    return {"role": "assistant", "content": reply.text, "source": "generate", "model": _model(reply)}


def _output(reply: Reply) -> dict[str, Any]:
    stop = STOP_REASONS.get(reply.finish_reason or "", "unknown")
    return {
        "model": _model(reply),
        "choices": [{"message": _assistant(reply), "stop_reason": stop}],
        "completion": reply.text,
        "usage": _usage(reply),
        "time": reply.latency_s,
    }


def _model(reply: Reply) -> str:
    return reply.model_resolved or reply.model_requested


def _usage(reply: Reply) -> dict[str, Any] | None:
    """Tokens in Inspect's way, which counts cached input apart; None where the provider did not say."""
    if reply.prompt_tokens is None or reply.completion_tokens is None:
        return None
    return {
        "input_tokens": reply.prompt_tokens - (reply.cached_tokens or 0),
        "output_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
        "input_tokens_cache_read": reply.cached_tokens,
        "total_cost": reply.cost_usd,
    }


def _totals(calls: Sequence[Call]) -> dict[str, dict[str, Any]]:
    """Usage summed by model; a figure that no call states stays unknown."""
    totals: dict[str, dict[str, Any]] = {}
    for call in calls:
        for key, value in (_usage(call.reply) or {}).items():
            sums = totals.setdefault(_model(call.reply), {})
            known = [v for v in (sums.get(key), value) if v is not None]
            sums[key] = sum(known) if known else None
    return totals


def _metadata(call: Call) -> dict[str, Any]:
    """The call's place in the plan, and what Inspect has no field for. The reply lacks its text only."""
    unit, prompt = call.unit, call.prompt
    reply = {key: value for key, value in canonical.plain(call.reply).items() if key != "text"}
    return {
        "prompt_digest": unit.prompt_digest, "kind": str(unit.kind), "state": unit.state_id,
        "context": None if unit.context is None else str(unit.context), "call": unit.call,
        "explanation_of": unit.explanation_of, "seed": unit.seed, "temperature": prompt.temperature,
        "top_p": prompt.top_p, "max_tokens": prompt.max_tokens, "grammar": prompt.grammar,
        "cost_usd": call.reply.cost_usd, "reply": reply,
        "forecasts": [canonical.plain(forecast) for forecast in call.forecasts],
    }  # fmt: skip


def _target(outcomes: Sequence[Outcome]) -> str | list[str]:
    """The outcome as text, one a target where there are several; empty before the opening."""
    texts = [repr(o.value) if o.value is not None else f"undefined: {o.reason}" for o in outcomes]
    return texts[0] if len(texts) == 1 else texts or ""


def _scores(call: Call) -> dict[str, dict[str, Any]]:
    """Point error and interval score of each target whose outcome is defined; lower is better."""
    values = {o.target: o.value for o in call.outcomes if o.value is not None}
    scores = {}
    for f in call.forecasts:
        if (value := values.get(f.target)) is None:
            continue
        of = {
            "point_error": scoring.point_error(value, f.point),
            "interval_score": scoring.interval_score(value, f.lower, f.upper),
        }
        for name, score in of.items():
            scores[f"{f.target}_{name}"] = {
                "value": float(score),
                "answer": f"{f.point!r} [{f.lower!r}, {f.upper!r}]",
                "explanation": f"fallback: {f.reason}" if f.is_fallback else None,
            }
    return scores


def _means(samples: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    values: dict[str, list[float]] = {}
    for sample in samples:
        for name, score in sample.get("scores", {}).items():
            values.setdefault(name, []).append(score["value"])
    return [
        {
            "name": name, "scorer": name, "scored_samples": len(found),
            "metrics": {"mean": {"name": "mean", "value": scoring.mean(found)}},
        }
        for name, found in values.items()
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A reply out of a log. `digest` is None in a log that was not written here."""

    where: str
    digest: str | None
    said: tuple[str, str]  # system and user text; "" where there is none
    epoch: int
    reply: Reply


def read(data: bytes, name: str) -> Iterator[Logged]:
    """The replies of a log called `name`, in its order. Raises BadSource, naming the sample."""
    try:
        log = json.loads(data)
        samples, requested = log["samples"] or [], str(log["eval"]["model"])
    except (ValueError, TypeError, KeyError):
        raise BadSource(
            f"{name} is not an Inspect log in JSON; give a forecasts.jsonl, or what "
            "`inspect log convert --to json` writes"
        ) from None
    for number, sample in enumerate(samples, start=1):
        where = f"{name} sample {number}"
        try:
            yield _logged(sample, where, requested)
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, ValidationError):
            raise BadSource(f"{where} is not one of an Inspect log: no messages, or no output") from None


def _logged(sample: Mapping[str, Any], where: str, requested: str) -> Logged:
    metadata = sample.get("metadata") or {}
    attached = sample.get("attachments") or {}
    digest = metadata.get("prompt_digest")
    texts: dict[str, str] = {}
    for message in sample["messages"]:
        if message["role"] == "assistant":
            break
        texts.setdefault(message["role"], _content(message["content"], attached))
    return Logged(
        where=where,
        digest=None if digest is None else str(digest),
        said=(texts.get("system", ""), texts.get("user", "")),
        epoch=int(sample["epoch"]),
        reply=_reply(sample["output"], metadata.get("reply"), attached, requested),
    )


def _reply(
    output: Mapping[str, Any], own: Mapping[str, Any] | None, attached: Mapping[str, str], requested: str
) -> Reply:
    """The reply as we filed it, else what Inspect's fields say of it."""
    choice = output["choices"][0]
    text = _content(choice["message"]["content"], attached)
    if own is not None:
        return REPLY.validate_python({**own, "text": text})
    usage, stop = output.get("usage") or {}, str(choice["stop_reason"])
    completion, total = usage.get("output_tokens"), usage.get("total_tokens")
    return REPLY.validate_python(
        {
            "text": text, "finish_reason": FINISH_REASONS.get(stop, stop), "model_requested": requested,
            "model_resolved": output.get("model") or None, "completion_tokens": completion,
            # Who fills in `input_tokens` does not agree on whether cached ones are among them.
            "prompt_tokens": None if total is None or completion is None else total - completion,
            "cached_tokens": usage.get("input_tokens_cache_read"), "latency_s": output.get("time"),
            "cost_usd": usage.get("total_cost"),
        }
    )  # fmt: skip


def _content(content: str | Sequence[Mapping[str, Any]], attached: Mapping[str, str]) -> str:
    """A message's text. Reasoning and images are no part of it; a long text may be attached elsewhere."""
    if not isinstance(content, str):
        return "".join(_content(part["text"], attached) for part in content if part["type"] == "text")
    if content.startswith(_ATTACHMENT):
        return attached[content.removeprefix(_ATTACHMENT)]
    return content
