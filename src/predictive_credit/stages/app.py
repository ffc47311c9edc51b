"""The Hydra application behind `predictive-credit run`: one folder a job, `-m` for a sweep."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from predictive_credit import compose, config, tables
from predictive_credit.errors import PredictiveCreditError, Stopped, Tampered
from predictive_credit.stages import pipeline
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params

FREEZE_ONLY = "--freeze-only"  # ours; every other word is Hydra's


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job that Hydra ran."""

    folder: Path
    sweep: Path | None  # the folder of the sweep it belongs to
    asked: str
    params: config.Params | None  # None: what was asked is no configuration
    ended: bool  # it did all it was to do


def run(words: Sequence[str]) -> int:
    """Run Hydra on `words`; 1 if any job failed, each having said why in one sentence.

    With `--freeze-only` every job stops at the freeze, so that a sweep's cells are all frozen before
    the first outcome is opened. Raises BadConfig before the first job when the words do not compose.
    """
    import hydra
    from omegaconf import DictConfig

    freeze_only = FREEZE_ONLY in words
    words = [word for word in words if word != FREEZE_ONLY]
    conf = compose.conf_dir(Path())
    compose.check_run(Path(), words)
    jobs: list[Job] = []

    def job(composed: DictConfig) -> None:
        jobs.append(_job(composed, freeze_only=freeze_only))

    sys.argv = ["predictive-credit run", *words]
    hydra.main(config_path=str(conf), config_name="config", version_base="1.3")(job)()
    if freeze_only and jobs and jobs[0].sweep is not None:
        write_sweep(jobs[0].sweep, jobs)
    for line in next_steps(jobs, freeze_only=freeze_only):
        print(line)
    return 0 if all(job.ended for job in jobs) else 1


def _job(composed: object, *, freeze_only: bool) -> Job:
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    hydra = HydraConfig.get()
    folder, asked = Path(hydra.runtime.output_dir), " ".join(hydra.overrides.task) or "the defaults"
    sweep = Path(hydra.sweep.dir) if hydra.mode == RunMode.MULTIRUN else None
    if sweep is not None:  # what it lists is no longer all there is
        (sweep / pipeline.SWEEP).unlink(missing_ok=True)
    params, ended = None, False
    # A run without it begins in a new folder, where nothing is answered yet.
    resume = f"hydra.run.dir={folder}" if sweep is None else f"hydra.sweep.dir={sweep}"
    try:
        values = compose.plain(composed, asked)
        params = study_params.parse(values, origin=asked)
        tables.write_bytes(folder / "params.yaml", compose.text(values).encode())
        if sweep is not None:
            share_elicited(sweep, Project(folder), params)
        (pipeline.freeze_all if freeze_only else pipeline.run_all)(Project(folder), params)
        print(f"{asked}: {folder}")
        ended = True
    except PredictiveCreditError as error:
        again = f" ({resume}, with the same words otherwise)" if isinstance(error, Stopped) else ""
        print(f"error: {asked}: {error}{again}", file=sys.stderr)
    except OSError as error:
        if (path := error.filename2 or error.filename) is None:
            raise
        print(f"error: {asked}: {path}: {error.strerror}; check the path and who may use it", file=sys.stderr)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"run the same words with {resume}") from None
    return Job(folder=folder, sweep=sweep, asked=asked, params=params, ended=ended)


def share_elicited(sweep: Path, project: Project, params: config.Params) -> None:
    """Give a job what agents and extractors already told other jobs of its sweep.

    A generator is asked, and paid, once: all forecasters of a sweep then see the same explanations. A
    reply's key holds who was asked for what, so that a journal may hold what this job never asks.
    """
    for name in params.studies:
        for kind in ("explain", "extract"):
            mine = project.study(name).journal(kind)
            others = sorted(sweep.glob(f"*/data/{name}/journal/{kind}.jsonl"))
            if lines := merged(file for file in others if file.resolve() != mine.resolve()):
                lines |= merged([mine]) if mine.is_file() else {}  # its own replies stand
                tables.write_bytes(mine, b"".join(lines.values()))


def merged(files: Iterable[Path]) -> dict[str, bytes]:
    """The whole lines of journals by their key, the first of each key."""
    found: dict[str, bytes] = {}
    for file in files:
        for line in file.read_bytes().splitlines(keepends=True):
            if line.endswith(b"\n"):
                found.setdefault(_key(line, file), line)
    return found


def _key(line: bytes, file: Path) -> str:
    try:
        return str(json.loads(line)["key"])
    except (ValueError, TypeError, KeyError):
        raise Tampered(
            f"{file} holds a line that is no reply; restore it, or sweep in another folder"
        ) from None


def write_sweep(sweep: Path, jobs: Sequence[Job]) -> None:
    """List the jobs of a sweep that has ended, for whoever opens it."""
    listed = [{"folder": j.folder.name, "asked": j.asked, "ended": j.ended} for j in jobs]
    tables.write_json(sweep / pipeline.SWEEP, {"jobs": listed})


def next_steps(jobs: Sequence[Job], *, freeze_only: bool) -> list[str]:
    """What can be done with the jobs that ended, a line each."""
    if not jobs:
        return []
    sweep, ended = jobs[0].sweep, [job for job in jobs if job.ended]
    if freeze_only and sweep is None:
        return [f"frozen, nothing is opened: `predictive-credit open STUDY --root {j.folder}`" for j in ended]
    if freeze_only and len(ended) < len(jobs):
        return [
            f"{len(ended)} of {len(jobs)} jobs are frozen: run the sweep again with hydra.sweep.dir={sweep}, "
            "which asks only what is unanswered, before any outcome is opened"
        ]
    if freeze_only:
        return [f"{len(jobs)} jobs are frozen: `predictive-credit open --sweep {sweep}` opens them together"]
    pairs = {repr((j.params.agent, j.params.forecaster)) for j in ended if j.params is not None}
    if sweep is None or len(pairs) < 2:
        return []
    return [
        f"credit by generator and forecaster: `predictive-credit exchange {sweep}`",
        "each job opened its outcomes before the next was frozen; `predictive-credit run --freeze-only -m` "
        "freezes all of them first",
    ]
