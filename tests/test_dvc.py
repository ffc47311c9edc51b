"""The stage graph under DVC and Hydra, as a user drives it, on the small project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import small_pool
from tests.small_project import write_table

POOL = """\
# @package _global_
pools:
  small: {kind: csv, watch: table.csv, path: table.csv, sha256: null, smiles_column: null, endpoints: null}
  spare: {kind: csv, watch: spare.csv, path: spare.csv, sha256: null, smiles_column: null, endpoints: null}
sizes:
  molecular: {endpoints: 3}
studies:
  molecular: {pool: small, burn_in: spare, budgets: [0.5, 1.0]}
"""


class Shell:
    """Commands in a scratch project, with this interpreter's scripts first on the path."""

    def __init__(self, folder: Path, vault: Path) -> None:
        self.folder = folder
        scripts = str(Path(sys.executable).parent)
        self.env = os.environ | {
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}", "PREDICTIVE_CREDIT_VAULT": str(vault),
            "GIT_AUTHOR_NAME": "t", "GIT_AUTHOR_EMAIL": "t@t", "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@t", "DVC_NO_ANALYTICS": "1", "PYTHONPATH": str(folder / "src"),
            "PYTHONDONTWRITEBYTECODE": "",  # thirty stages start here: none need compile the package again
        }  # fmt: skip

    def run(self, *words: str, status: int = 0) -> str:
        done = subprocess.run(
            words, cwd=self.folder, env=self.env, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, f"{words}: {done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def metric(self, name: str) -> dict[str, object]:
        return dict(json.loads((self.folder / "metrics" / "molecular" / f"{name}.json").read_text()))


@pytest.fixture(scope="module")
def shell(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A repository of the project on the small pool, reproduced once and committed."""
    folder = tmp_path_factory.mktemp("dvc")
    made = Shell(folder / "project", folder / "vault")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("conf", "src", "results/coverage", "results/certification/knapsack"):
        shutil.copytree(root / name, made.folder / name, ignore=ignore)
    for name in ("dvc.yaml", ".dvcignore", ".gitignore"):
        shutil.copy(root / name, made.folder / name)
    (made.folder / "conf" / "pool" / "small.yaml").write_text(POOL)
    config = made.folder / "conf" / "config.yaml"
    config.write_text(
        config.read_text()
        .replace("studies: all", "studies: molecular")
        .replace("forecaster: smollm2", "forecaster: priors")
    )
    alone = made.folder / "conf" / "studies" / "molecular.yaml"
    alone.write_text(alone.read_text().replace("/pool: moleculeace", "/pool: small"))
    inference = made.folder / "conf" / "inference" / "default.yaml"
    inference.write_text(inference.read_text().replace("10000", "500"))
    execution = made.folder / "conf" / "execution" / "local.yaml"
    # Tables this small are done before a second process has started.
    execution.write_text(
        execution.read_text().replace("loky", "sequential").replace("n_jobs: 2", "n_jobs: 1")
    )
    coverage = made.folder / "conf" / "coverage" / "default.yaml"
    coverage.write_text(
        coverage.read_text()
        .replace("populations: 6", "populations: 1")
        .replace("pilots: 30", "pilots: 2")
        .replace("calibrated_pilots: 5", "calibrated_pilots: 1")
    )
    audits = made.folder / "conf" / "certification" / "default.yaml"
    audits.write_text("audits:\n  device: {task: device, agent: scripted, budget: quick}\n")
    write_table(made.folder / "table.csv", 3)
    write_table(made.folder / "spare.csv", 14)
    made.run("git", "init", "-q", "-b", "main")
    made.run("dvc", "init", "-q")
    shutil.copy(root / ".dvc" / "config", made.folder / ".dvc" / "config")
    made.run("predictive-credit", "params", "--write")
    made.run("dvc", "repro")
    made.run("git", "add", "-A")
    made.run("git", "commit", "-q", "-m", "run")
    return made


def test_every_stage_says_what_it_is_for(root: Path):
    graph = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]
    assert len(graph) == 15
    for name, stage in graph.items():
        assert stage.get("do", stage)["desc"].endswith("."), name


def test_repro_again_does_nothing(shell: Shell):
    assert "Data and pipelines are up to date" in shell.run("dvc", "repro")
    assert shell.run("git", "status", "--porcelain") == ""


def test_another_forecaster_runs_forecasts_and_what_follows_but_not_execution(shell: Shell):
    printed = shell.run("dvc", "exp", "run", "-n", "zero", "-S", "forecaster.point=zero")
    ran = {
        line.split("'")[1].split("@")[0] for line in printed.splitlines() if line.startswith("Running stage")
    }
    assert {"plan", "forecast", "freeze", "open", "score", "decide", "report"} == ran
    table = shell.run("dvc", "metrics", "diff", "main", "zero", "--all")
    assert "roc_auc.interval_score.D-M.mean" in table
    assert "roc_auc.M.point_mae_call" in table
    listed = shell.run("predictive-credit", "diff", "main", "zero")
    assert (
        listed.splitlines()[-1]
        == "0 outcomes, 0 explanations, 72 forecasts changed (52 more lines with --limit 0)"
    )
    assert listed.startswith("forecast molecular/E0/0.5/1/D/1: ")
    # Where the outcomes had been opened before, the ledger and the check say so.
    assert shell.metric("checks")["commitment"]["planned_after_opening"] is not None  # type: ignore[index]
    shell.run("git", "checkout", "-q", ".")
    shell.run("dvc", "checkout", "-q")


def test_what_is_no_revision_is_one_sentence(shell: Shell):
    printed = shell.run("predictive-credit", "diff", "main", "nowhere", status=1)
    assert printed.startswith("error: nowhere is no git revision, DVC experiment, bundle or project folder")
    assert len(printed.splitlines()) == 1


def test_a_hydra_option_that_does_not_exist_is_refused_by_exp_run(shell: Shell):
    assert "oracle" in shell.run("dvc", "exp", "run", "-S", "forecaster=oracle", status=255)


def test_plots_are_declared_and_drawn(shell: Shell):
    assert "dvc_plots" in shell.run("dvc", "plots", "show")
    page = (shell.folder / "dvc_plots" / "index.html").read_text()
    assert "mean gain by contrast" in page
    assert "drift against point error" in page


def test_changing_one_endpoints_data_runs_what_depends_on_it_and_no_more(shell: Shell):
    labels = small_pool.labels(3)["E1"]
    write_table(shell.folder / "table.csv", 3, E1=[1 - v if i % 7 == 0 else v for i, v in enumerate(labels)])
    printed = shell.run("dvc", "repro")
    assert "Running stage 'fetch@small'" in printed
    assert "Stage 'features@spare' didn't change, skipping" in printed
    assert "48 were answered before" in printed
    changed = shell.run("predictive-credit", "diff", "HEAD", "workspace", "--limit", "0")
    assert "outcome molecular/E1/" in changed
    assert "E0/" not in changed
    assert "E2/" not in changed
    shell.run("git", "checkout", "-q", ".")
    shell.run("dvc", "checkout", "-q")


def test_a_hydra_sweep_runs_a_job_per_combination(shell: Shell):
    shell.run("predictive-credit", "run", "-m", "forecaster.point=zero,mean", "hydra.sweep.dir=sweep")
    jobs = sorted(p for p in (shell.folder / "sweep").iterdir() if p.is_dir())
    assert [yaml.safe_load((j / "params.yaml").read_text())["forecaster"]["point"] for j in jobs] == [
        "zero",
        "mean",
    ]
    for job in jobs:
        assert (job / "report" / "index.html").stat().st_size > 100_000
        assert "replays to" in shell.run("predictive-credit", "verify", str(job))
    assert "72 forecasts changed" in shell.run("predictive-credit", "diff", str(jobs[0]), str(jobs[1]))


def test_a_failing_job_is_one_sentence_and_a_status(shell: Shell):
    printed = shell.run(
        "predictive-credit",
        "run",
        "forecaster=priors",
        "pools.small.path=gone.csv",
        "hydra.run.dir=failed",
        status=1,
    )
    assert "error:" in printed
    assert "gone.csv" in printed
    assert "Traceback" not in printed
