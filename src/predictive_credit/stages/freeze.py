"""Stage `freeze`: digest everything the decision will rest on; refuse while a unit is unanswered."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predictive_credit import (
    bootstrap,
    canonical,
    cards,
    checks,
    config,
    contrasts,
    decisions,
    equivalence,
    exact,
    journal,
    panel,
    prompts,
    records,
    scoring,
    streams,
    tables,
    wording,
)  # fmt: skip
from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.forecasters import forecaster, json_object, possible, sentence
from predictive_credit.ledger import Phase
from predictive_credit.models import providers
from predictive_credit.records import Answer, BurnIn, Target, Unit, UnitKind
from predictive_credit.stages import forecast, openings, shell, stimuli
from predictive_credit.stages.paths import Project, StudyPaths
from predictive_credit.studies import evaluation, summaries
from predictive_credit.studies import study as study_module
from predictive_credit.studies.study import Study

# Everything a prompt, a reply or an outcome came from. The names are the bundle's file names.
FROZEN = (
    "states.jsonl", "explanations.jsonl", "burn_in.json", "burn_in.jsonl", "plan.jsonl", "prompts.jsonl",
    "forecasts.jsonl", "usage.jsonl", "commitment.json",
)  # fmt: skip

# What turns replies and outcomes into figures. An edit after the freeze is another freeze.
SCORING = (
    records, tables, wording, sentence, json_object, possible, forecaster, cards, streams, scoring, bootstrap,
    panel, contrasts, equivalence, exact, checks, decisions, study_module, evaluation, summaries,
)  # fmt: skip


def run(project: Project, params: config.Params, name: str) -> str:
    """Write freeze.json and the frozen event."""
    paths, (study, _) = project.study(name), shell.study(project, params, name)
    events = shell.read_ledger(paths.ledger("planned"))
    plan = tables.read_records(paths.plan, Unit)
    answers = tables.read_records(paths.forecasts, Answer)
    check_answered(name, plan, answers)
    burn_in = tables.read_record(paths.burn_in, BurnIn)
    elicitation = params.forecaster.elicitation
    if misread := unfaithful(answers, burn_in, study.targets, elicitation=elicitation):
        raise OutOfOrder(
            f"{name}: {len(misread)} forecasts are not what their replies say, first {misread[0]}; "
            f"read the replies again with `dvc repro -f -s forecast@{name}`"
        )
    check_as_answered(name, paths, answers, params.forecaster, burn_in)
    resolved = sorted({a.reply.model_resolved for a in answers if a.reply.model_resolved is not None})
    check_one_model(name, resolved, params.forecaster.acknowledged_models)
    digests = {file: canonical.digest_file(paths.data / file) for file in FROZEN}
    check_as_planned(name, {k: v for event in events for k, v in event.digests.items()}, digests)
    record: dict[str, Any] = {
        "study": name,
        "scale": params.scale,
        "digests": digests,
        "rule": {"name": params.studies[name].rule, "sha256": canonical.digest_bytes(study.rule_source)},
        "prompt_texts": prompts.digest(forecaster.QUESTIONS[elicitation]),
        "scoring": scoring_digest(study),
        "params": frozen_params(params, name),
        "units": {
            "planned": len(plan),
            "forecasts": len(answers),
            "fallbacks": sum(a.is_fallback for a in answers),
        },
        "models": {
            "requested": sorted({a.reply.model_requested for a in answers}),
            "resolved": resolved,
        },
    }
    if (reused := stimuli.of(project, params, name)) is not None:
        record["stimuli"] = reused
    tables.write_json(paths.freeze, record)
    shell.record(
        project, paths.ledger("frozen"), events, Phase.FROZEN, study=name, scale=params.scale,
        digests={"freeze.json": canonical.digest_file(paths.freeze)},
        opened=openings.known(project, params, name),
    )  # fmt: skip
    return f"{name}: frozen, {len(answers)} forecasts, {record['units']['fallbacks']} of them fallbacks"


def scoring_digest(study: Study) -> str:
    """SHA-256 over the source of every module that reads, scores, resamples or checks.

    That of the study's declaration, which says what its rule is given, is among them.
    """
    modules = (*SCORING, sys.modules[study.decide.__module__])
    sources = {module.__name__: Path(str(module.__file__)).read_bytes() for module in modules}
    return canonical.digest({name: canonical.digest_bytes(source) for name, source in sources.items()})


def frozen_params(params: config.Params, name: str) -> dict[str, Any]:
    """The part of params.yaml that one study's result depends on."""
    params = config.of_study(params, name)
    whole = {
        k: v for k, v in config.section(params).items() if k not in ("certification", "coverage", "prices")
    }
    for who in ("forecaster", "agent", "extractor"):  # on which terms it was asked changes no answer
        if isinstance(getattr(params, who), config.Provided):
            whole[who] = {k: v for k, v in whole[who].items() if k not in providers.TERMS}
    study = params.studies[name]
    used = {study.pool, study.burn_in}
    own = whole["studies"][name]
    if isinstance(study, config.ControlConfig):  # whose forecaster now stands where the run's stood
        own = own | {"forecaster": None}
    return whole | {
        "studies": {name: own},
        "pools": {pool: whole["pools"][pool] for pool in sorted(used)},
    }


def unanswered(plan: Sequence[Unit], answers: Sequence[Answer]) -> list[str]:
    """Ids of the planned forecast units without an answer to the planned prompt, in plan order."""
    answered = {(a.unit_id, a.prompt_digest) for a in answers}
    return [u.id for u in plan if u.kind is UnitKind.FORECAST and (u.id, u.prompt_digest) not in answered]


def check_answered(name: str, plan: Sequence[Unit], answers: Sequence[Answer]) -> None:
    """Raise OutOfOrder while a planned unit has no answer, Tampered if an answer was not planned."""
    if missing := unanswered(plan, answers):
        raise OutOfOrder(
            f"{name}: cannot freeze, unanswered units: {len(missing)}, first {missing[0]}; "
            "run the forecast stage first"
        )
    if len(answers) != len({a.unit_id for a in answers}):
        twice = Counter(a.unit_id for a in answers).most_common(1)[0][0]
        raise Tampered(f"{name}: forecasts.jsonl answers {twice} more than once; the first reply stands")
    if strangers := {a.unit_id for a in answers} - {u.id for u in plan}:
        raise Tampered(f"{name}: forecasts.jsonl answers a unit that was not planned: {min(strangers)}")


def check_as_answered(
    name: str, paths: StudyPaths, answers: Sequence[Answer], chosen: config.Forecaster, burn_in: BurnIn
) -> None:
    """Raise Tampered if a reply is not the one in the journal: the first that came is the one that counts.

    Forecasts that are looked up in a file were never asked for, and have no journal.
    """
    if isinstance(chosen, config.Filed):
        return
    held, identity = journal.by_key(paths.journal("forecast")), forecast.identity(chosen, burn_in)
    for answer in answers:
        reply = held.get(journal.key(answer.prompt_digest, identity))
        if reply is None or reply.text != answer.reply.text:
            raise Tampered(
                f"{name}: the reply to {answer.unit_id} is not the one in {paths.journal('forecast')}; "
                f"restore the file, or read the replies again with `dvc repro -f -s forecast@{name}`"
            )


def check_unchanged(name: str, record: Mapping[str, Any], params: config.Params, study: Study) -> None:
    """Raise OutOfOrder unless rule, scoring code and params are those of the freeze record."""
    now = {
        "rule": canonical.digest_bytes(study.rule_source),
        "scoring code": scoring_digest(study),
        "params": frozen_params(params, name),
    }
    frozen = {"rule": record["rule"]["sha256"], "scoring code": record["scoring"], "params": record["params"]}
    if changed := [what for what, value in now.items() if value != frozen[what]]:
        raise OutOfOrder(
            f"{name}: {' and '.join(changed)} changed after the freeze; restore what was frozen, or plan the "
            "study anew under another name"
        )


def unfaithful(
    answers: Sequence[Answer], burn_in: BurnIn, targets: Sequence[Target], *, elicitation: str
) -> list[str]:
    """Ids of the units whose recorded forecasts are not what their raw reply says, nor its fallback."""
    return [
        a.unit_id
        for a in answers
        if forecaster.read_or_fallback(a.reply, a.unit_id, burn_in, targets, elicitation=elicitation)
        != a.forecasts
    ]


def check_one_model(name: str, resolved: Sequence[str], acknowledged: Sequence[str]) -> None:
    """A served model that changed inside a study blocks the freeze until it is acknowledged."""
    if len(resolved) > 1 and not set(resolved) <= set(acknowledged):
        raise OutOfOrder(
            f"{name}: the forecaster answered under {len(resolved)} model ids ({', '.join(resolved)}); "
            "if that is acceptable, list them in forecaster.acknowledged_models"
        )


def check_as_planned(name: str, planned: Any, seen: dict[str, str]) -> None:
    """Raise Tampered if a file the planned event digested has changed since."""
    for file, digest in planned.items():
        if file in seen and seen[file] != digest:
            raise Tampered(f"{name}: {file} changed after it was planned; run the plan stage again")


def unanswered_now(paths: StudyPaths) -> list[str]:
    """The units without an answer as the files stand, for the sentence of a refusal."""
    if not paths.plan.exists():
        return []
    answers = tables.read_records(paths.forecasts, Answer) if paths.forecasts.exists() else ()
    return unanswered(tables.read_records(paths.plan, Unit), answers)


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
