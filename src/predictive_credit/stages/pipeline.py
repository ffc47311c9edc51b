"""Every stage in order, in this process: what `dvc repro` runs, without DVC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig, OutOfOrder, PredictiveCreditError, Sealed
from predictive_credit.ledger import Phase
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
    shell,
    spending,
    states,
)  # fmt: skip
from predictive_credit.stages import open as open_stage
from predictive_credit.stages.paths import Project
from predictive_credit.stages.shell import Run
from predictive_credit.studies import params as study_params

POOL_STAGES: tuple[Run, ...] = (fetch.run, features.run)
STUDY_STAGES: tuple[Run, ...] = (
    states.run, burn_in.run, execute.run, explain.run, plan.run, forecast.run, freeze.run, open_stage.run,
    score.run, decide.run,
)  # fmt: skip
TO_FREEZE = STUDY_STAGES[: STUDY_STAGES.index(freeze.run) + 1]
SWEEP = "sweep.json"  # in a sweep's folder once every job of it has ended: which there were

Say = Callable[[str], None]


def open_and_decide(
    project: Project, params: config.Params, name: str, outcomes: Path | None, say: Say = print
) -> None:
    """Open a frozen study with the outcomes that arrived, decide it, and write the page."""
    if name not in params.studies:
        raise BadConfig(f"no study {name!r} in params.yaml; it holds {', '.join(sorted(params.studies))}")
    _decide(project, params, name, outcomes, say)
    _page(project, params, say)


def open_sweep(folder: Path, outcomes: Path | None = None, say: Say = print) -> None:
    """Open and decide every study of every job of a sweep that was run with `--freeze-only`.

    No outcome is opened before every cell is frozen, so that none is a post-outcome comparison.
    outcomes: the file of those that arrived, for the studies that wait for some.
    Raises Sealed while a job is not frozen, OutOfOrder for a file where no study waits for one.
    """
    jobs = frozen_jobs(folder)
    waiting = {(job.root, name) for job, params in jobs.items() for name in params.studies
               if tables.read_json(job.study(name).commitment)["pending"]}  # fmt: skip
    if outcomes is not None and not waiting:
        raise OutOfOrder(f"{folder}: no study waits for outcomes; leave --outcomes out to open them")
    for job, params in jobs.items():
        for name in params.studies:
            _decide(job, params, name, outcomes if (job.root, name) in waiting else None, say)
        _page(job, params, say)


def frozen_jobs(folder: Path) -> Mapping[Project, config.Params]:
    """Every job of a sweep, each with its params. Raises Sealed unless all studies of all are frozen."""
    if not (folder / SWEEP).is_file():
        raise Sealed(
            f"{folder} holds no {SWEEP}, so a job may still be to come: finish the sweep with "
            f"`predictive-credit run --freeze-only -m ... hydra.sweep.dir={folder}`"
        )
    jobs: dict[Project, config.Params] = {}
    refused: list[str] = []
    for listed in tables.read_json(folder / SWEEP)["jobs"]:
        job = Project(folder / listed["folder"])
        try:
            if not listed["ended"]:
                raise Sealed("the job failed")
            jobs[job] = study_params.load(job.params)
            for name in jobs[job].studies:
                check_frozen(job, jobs[job], name)
        except PredictiveCreditError as error:
            refused.append(f"{job.root} ({listed['asked']}): {error}")
    if refused:
        raise Sealed(
            f"{len(refused)} jobs of {folder} are not frozen, so no outcome of any is opened; first "
            f"{refused[0]}; run the sweep again with hydra.sweep.dir={folder}, which asks only what is "
            "unanswered"
        )
    return jobs


def check_frozen(project: Project, params: config.Params, name: str) -> None:
    """Raise Sealed, Tampered or OutOfOrder unless a study is frozen, under these params, as it stands."""
    paths = project.study(name)
    open_stage.refuse_before_freeze(name, paths)
    events = shell.read_ledger(paths.ledger("frozen"))
    if not events or events[-1].phase is not Phase.FROZEN:
        raise Sealed(f"{name}: {paths.ledger('frozen')} does not end with a freeze")
    open_stage.check_frozen(name, paths, events[-1].digests["freeze.json"])
    if tables.read_json(paths.freeze)["params"] != freeze.frozen_params(params, name):
        raise OutOfOrder(f"{name}: it was frozen under other params than {project.params} holds")


def run_all(project: Project, params: config.Params, say: Say = print) -> None:
    """Run every stage for every pool and study of `params`, then the report."""
    _run(project, params, STUDY_STAGES, say)
    say(report.run(project, params))


def freeze_all(project: Project, params: config.Params, say: Say = print) -> None:
    """Run every stage up to the freeze: every outcome stays sealed, or to come.

    Raises BadConfig, before anything is asked, for a control of a study that would not be decided.
    """
    for name in params.studies:
        if (study := _reused(params, name)) is not None:
            raise BadConfig(
                f"{name} reuses what {study} freezes and opens, and here nothing is opened; leave {name} "
                f"out, or give pools.{params.studies[name].pool}.path a bundle"
            )
    _run(project, params, TO_FREEZE, say)


def _run(project: Project, params: config.Params, stages: tuple[Run, ...], say: Say) -> None:
    for study in params.studies:  # a control may have a forecaster of its own
        spending.check(project, config.of_study(params, study))
    ready = set[str]()
    for study, chosen in in_order(params).items():
        for pool in (chosen.pool, chosen.burn_in):
            if pool not in ready:
                for stage in POOL_STAGES:
                    say(stage(project, params, pool))
                ready.add(pool)
        for stage in stages:
            say(stage(project, config.of_study(params, study), study))


def in_order(params: config.Params) -> dict[str, config.StudyConfig]:
    """The studies, controls after what they reuse: a params.yaml that was sorted names them anyhow."""
    return dict(sorted(params.studies.items(), key=lambda item: _reused(params, item[0]) is not None))


def _reused(params: config.Params, name: str) -> str | None:
    """Which study of these same params a control reuses, None if none."""
    pool = params.pools[params.studies[name].pool]
    if not isinstance(pool, config.FrozenPool) or Path(pool.path) != Path():
        return None
    return pool.study if pool.study in params.studies else None


def _decide(project: Project, params: config.Params, name: str, outcomes: Path | None, say: Say) -> None:
    own = config.of_study(params, name)
    say(open_stage.run(project, own, name, outcomes))
    for stage in (score.run, decide.run):
        say(stage(project, own, name))


def _page(project: Project, params: config.Params, say: Say) -> None:
    decided = [study for study in params.studies if project.study(study).decided.exists()]
    found = [evidence.workspace(project, study) for study in decided]
    say(report.write(found, project.page, report.tabs(project)))
