"""Every stage in order, in this process: what `dvc repro` runs, without DVC."""

from __future__ import annotations

from collections.abc import Callable

from predictive_credit import config
from predictive_credit.stages import (
    burn_in,
    decide,
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


def run_all(project: Project, params: config.Params, say: Callable[[str], None] = print) -> None:
    """Run every stage for every pool and study of `params`, then the report."""
    for pool in params.pools:
        for stage in POOL_STAGES:
            say(stage(project, params, pool))
    for study in params.studies:
        for stage in STUDY_STAGES:
            say(stage(project, params, study))
    say(report.run(project, params))
