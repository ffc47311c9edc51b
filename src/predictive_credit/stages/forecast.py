"""Stage `forecast`: ask the forecaster each unit once; never reads outcomes, resumes after a kill."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from predictive_credit import canonical, config, tables
from predictive_credit.forecasters import forecaster
from predictive_credit.journal import Journal, ask_all
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
from predictive_credit.stages import shell
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
        if known == len(asked):  # nothing to ask: the model need not even be loaded
            replies = {unit_id: journal.get(prompt) for unit_id, prompt in asked}
        else:
            with closing(forecaster.make(chosen, burn_in, study.targets, locate=wheels.gguf)) as model:
                replies = dict(ask_all(asked, model, journal, title=f"{name} forecasts"))
    answers = [
        answer(unit, reply, burn_in, study.targets)
        for unit in units
        if (reply := replies[unit.id]) is not None
    ]
    answers.sort(key=lambda a: a.unit_id)
    tables.write_records(paths.forecasts, map(without_usage, answers), scale=params.scale)
    tables.write_records(paths.usage, map(usage, answers), scale=params.scale)
    fallbacks = sum(a.is_fallback for a in answers)
    return (
        f"{name}: {len(answers)} forecasts by {chosen.name} ({known} were answered before, "
        f"{fallbacks} unreadable and now the fallback)"
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


def answer(unit: Unit, reply: Reply, burn_in: BurnIn, targets: Sequence[Target]) -> Answer:
    """A reply with the forecasts read from it, or the frozen fallback."""
    read = forecaster.read_or_fallback(reply, unit.id, burn_in, targets)
    return Answer(unit_id=unit.id, prompt_digest=unit.prompt_digest, reply=reply, forecasts=read)


def without_usage(full: Answer) -> Answer:
    """An answer without what varies between equal runs: time and cache hits."""
    return replace(full, reply=replace(full.reply, latency_s=None, cached_tokens=None))


def usage(full: Answer) -> Usage:
    """What one answer took."""
    return Usage(
        unit_id=full.unit_id, prompt_tokens=full.reply.prompt_tokens,
        completion_tokens=full.reply.completion_tokens, cached_tokens=full.reply.cached_tokens,
        latency_s=full.reply.latency_s,
    )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
