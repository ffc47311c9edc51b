"""Stage `forecast`: ask the forecaster each unit once; never reads outcomes, resumes after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from predictive_credit import canonical, config, tables
from predictive_credit.forecasters import forecaster
from predictive_credit.forecasters.filed import Filed
from predictive_credit.journal import Journal
from predictive_credit.models import asking
from predictive_credit.models.replay import Replay
from predictive_credit.records import (
    Answer,
    BurnIn,
    Prompt,
    PromptText,
    Reply,
    Target,
    Unit,
    UnitKind,
    Usage,
)  # fmt: skip
from predictive_credit.sources import wheels
from predictive_credit.stages import shell, spending
from predictive_credit.stages.paths import Project


def run(project: Project, params: config.Params, name: str) -> str:
    """Write forecasts.jsonl and usage.jsonl once every unit has its reply; the journal grows as they come."""
    (study, _), paths, chosen = shell.study(project, params, name), project.study(name), params.forecaster
    units = [u for u in tables.read_records(paths.plan, Unit) if u.kind is UnitKind.FORECAST]
    texts = {t.key: t for t in tables.read_records(paths.prompts, PromptText)}
    burn_in = tables.read_record(paths.burn_in, BurnIn)
    asked = [(unit.id, prompt_of(unit, texts)) for unit in units]
    with Journal(paths.journal("forecast"), identity(chosen, burn_in)) as journal:
        known = sum(journal.get(prompt) is not None for _, prompt in asked)
        if isinstance(chosen, config.Filed):  # looked up, not asked: the file is read anew each time
            filed = Filed(Path(chosen.path), study.targets, name=chosen.name)
            replies = filed.replies(unit_id for unit_id, _ in asked)
        elif known == len(asked):  # nothing to ask: the model need not even be loaded
            replies = asking.answered(asked, journal)
        else:
            model = forecaster.make(chosen, burn_in, study.targets, locate=wheels.gguf)
            if isinstance(model, Replay):
                model.expect([prompt for _, prompt in asked])
            purse = spending.purse(project, params, chosen)
            replies = asking.ask(asked, model, journal, title=f"{name} forecasts", purse=purse)
    answers = [
        answer(unit, replies[unit.id], burn_in, study.targets, elicitation=chosen.elicitation)
        for unit in units
    ]
    answers.sort(key=lambda a: a.unit_id)
    tables.write_records(paths.forecasts, map(without_usage, answers), scale=params.scale)
    tables.write_records(paths.usage, map(usage, answers), scale=params.scale)
    fallbacks = sum(a.is_fallback for a in answers)
    return (
        f"{name}: {len(answers)} forecasts by {chosen.name} ({known} were answered before, "
        f"{fallbacks} unreadable and now the fallback{spending.said([a.reply for a in answers])})"
    )


def prompt_of(unit: Unit, texts: dict[str, PromptText]) -> Prompt:
    """A forecast unit's whole prompt."""
    return texts[unit.id.rsplit("/", 1)[0]].prompt(unit.seed)


def identity(chosen: config.Forecaster, burn_in: BurnIn) -> dict[str, Any]:
    """Everything but the prompt that a reply depends on: the journal's key must change with it."""
    settings = forecaster.identity(chosen)
    if isinstance(chosen, config.Priors):
        settings["burn_in"] = canonical.digest(burn_in)
    if isinstance(chosen, config.Replay) and Path(chosen.path).is_file():
        settings["recording"] = canonical.digest_file(Path(chosen.path))
    return settings


def answer(
    unit: Unit, reply: Reply, burn_in: BurnIn, targets: Sequence[Target], *, elicitation: str
) -> Answer:
    """A reply with the forecasts read from it, or the frozen fallback."""
    read = forecaster.read_or_fallback(reply, unit.id, burn_in, targets, elicitation=elicitation)
    return Answer(unit_id=unit.id, prompt_digest=unit.prompt_digest, reply=reply, forecasts=read)


def without_usage(full: Answer) -> Answer:
    """An answer without what varies between equal runs: time, cache hits, cost, and the way there."""
    same = replace(
        full.reply, latency_s=None, cached_tokens=None, cost_usd=None, attempts=None, endpoint=None
    )
    return replace(full, reply=same)


def usage(full: Answer) -> Usage:
    """What one answer took."""
    return Usage(
        unit_id=full.unit_id, prompt_tokens=full.reply.prompt_tokens,
        completion_tokens=full.reply.completion_tokens, cached_tokens=full.reply.cached_tokens,
        latency_s=full.reply.latency_s, cost_usd=full.reply.cost_usd, attempts=full.reply.attempts,
        endpoint=full.reply.endpoint,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
