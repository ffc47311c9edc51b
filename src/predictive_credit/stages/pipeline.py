"""Every stage in order, in this process: what `dvc repro` runs, without DVC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from predictive_credit import config
from predictive_credit.errors import BadConfig
from predictive_credit.stages import (
    burn_in,
    decide,
    evidence,
    execute,
    explain,
    features,
    fetch,
    forecast,
    freeze,
    plan,
    report,
    score,
    states,
)  # fmt: skip
from predictive_credit.stages import open as open_stage
from predictive_credit.stages.paths import Project
from predictive_credit.stages.shell import Run

POOL_STAGES: tuple[Run, ...] = (fetch.run, features.run)
STUDY_STAGES: tuple[Run, ...] = (
    states.run, burn_in.run, execute.run, explain.run, plan.run, forecast.run, freeze.run, open_stage.run,
    score.run, decide.run,
)  # fmt: skip


def open_and_decide(
    project: Project, params: config.Params, name: str, outcomes: Path | None,
    say: Callable[[str], None] = print,
) -> None:  # fmt: skip
    """Open a frozen study with the outcomes that arrived, decide it, and write the page."""
    if name not in params.studies:
        raise BadConfig(f"no study {name!r} in params.yaml; it holds {', '.join(sorted(params.studies))}")
    say(open_stage.run(project, params, name, outcomes))
    for stage in (score.run, decide.run):
        say(stage(project, params, name))
    decided = [study for study in params.studies if project.study(study).decided.exists()]
    say(report.write([evidence.workspace(project, study) for study in decided], project.page))


def run_all(project: Project, params: config.Params, say: Callable[[str], None] = print) -> None:
    """Run every stage for every pool and study of `params`, then the report."""
    for pool in params.pools:
        for stage in POOL_STAGES:
            say(stage(project, params, pool))
    for study in params.studies:
        for stage in STUDY_STAGES:
            say(stage(project, params, study))
    say(report.run(project, params))
