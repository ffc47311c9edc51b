"""A sweep that freezes every cell before any outcome is opened, and the table that its cells make."""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from predictive_credit import tables
from predictive_credit.errors import BadSource, OutOfOrder, Sealed, Tampered
from predictive_credit.stages import app, exchange, pipeline, report
from predictive_credit.stages.app import Job
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from tests.conftest import ROOT

DATA = Path(__file__).parent / "data"
STUDY = "table"


@dataclass(frozen=True)
class Sweep:
    """A sweep's folder, the vault it was run with, and what the command printed."""

    folder: Path
    vault: Path
    printed: str = ""

    def job(self, name: str) -> Project:
        return Project(self.folder / name)


def some_states(path: Path, source: str) -> Path:
    """The worked example's first two tables, twelve states, as a file of its own."""
    with (DATA / source).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))[:12]
    columns = tuple(rows[0])
    tables.write_csv(path, columns, [tuple(row[c] for c in columns) for row in rows])
    return path


def said_nothing(line: str) -> None:
    """Where the stages' lines go."""


@pytest.fixture(scope="module")
def frozen(tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """Two forecasters on twelve states, each run up to its freeze by one command."""
    folder = tmp_path_factory.mktemp("frozen")
    states = some_states(folder / "states.csv", "example_states.csv")
    words = (
        "--freeze-only", "-m", "studies=table", f"pools.own.path={states}", "forecaster=priors",
        "forecaster.point=zero,mean", "inference.draws=100", f"hydra.sweep.dir={folder / 'sweep'}",
        "hydra/job_logging=none", "hydra/hydra_logging=none",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as printed:
        patch.chdir(ROOT)
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        patch.setattr(sys, "argv", sys.argv)  # which Hydra reads
        assert app.run(words) == 0
    return Sweep(folder / "sweep", folder / "vault", printed.getvalue())


@pytest.fixture
def copied(frozen: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """The frozen sweep and its vault again, to be changed."""
    made = Sweep(tmp_path / "sweep", tmp_path / "its_vault")
    shutil.copytree(frozen.folder, made.folder)
    shutil.copytree(frozen.vault, made.vault)
    monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(made.vault))
    return made


@pytest.fixture(scope="module")
def opened(frozen: Sweep, tmp_path_factory: pytest.TempPathFactory) -> Sweep:
    """The frozen sweep, opened and decided together; without pages, which take long and show nothing new."""
    folder = tmp_path_factory.mktemp("opened")
    made = Sweep(folder / "sweep", folder / "vault")
    shutil.copytree(frozen.folder, made.folder)
    shutil.copytree(frozen.vault, made.vault)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(made.vault))
        patch.setattr(report, "write", lambda found, page, *tabs: str(page))
        pipeline.open_sweep(made.folder, say=said_nothing)
    return made


def commitment(project: Project) -> object:
    return tables.read_json(project.study(STUDY).metric("checks"))["commitment"]["status"]


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/vault/key")

    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(pipeline, "run_all", full)
    quiet = ("hydra/job_logging=none", "hydra/hydra_logging=none")
    assert app.run(("studies=controlled", f"hydra.run.dir={tmp_path}", *quiet)) == 1
    said = capsys.readouterr().err
    assert said == (
        "error: studies=controlled: /vault/key: No space left on device; check the path and who may use it\n"
    )


class TestFreezeOnly:
    def test_every_job_stops_at_the_freeze_and_says_how_to_go_on(self, frozen: Sweep):
        for name in ("0", "1"):
            paths = frozen.job(name).study(STUDY)
            assert paths.ledger("frozen").exists()
            assert not paths.outcomes.exists()
            assert not paths.decided.exists()
        assert not (frozen.vault / "openings.jsonl").exists()
        *_, last = frozen.printed.splitlines()
        assert last == (
            f"2 jobs are frozen: `predictive-credit open --sweep {frozen.folder}` opens them together"
        )
        listed = json.loads((frozen.folder / "sweep.json").read_text())["jobs"]
        assert [(job["folder"], job["ended"]) for job in listed] == [("0", True), ("1", True)]

    def test_the_commitment_checks_of_all_cells_pass_where_a_later_run_does_not(
        self, opened: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ):
        assert [commitment(opened.job(name)) for name in ("0", "1")] == ["passed", "passed"]
        monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(opened.vault))
        monkeypatch.setattr(report, "run", lambda project, params: "")
        later = Project(tmp_path / "later")
        shutil.copytree(opened.job("1").root, later.root, ignore=shutil.ignore_patterns("data", "metrics"))
        pipeline.run_all(later, study_params.load(later.params), say=said_nothing)
        assert commitment(later) == "failed"
        with pytest.raises(BadSource, match=r"priors \(point=mean\) stands twice with different results"):
            exchange.run(Path(), [str(opened.folder), str(later.root)])
        alone = exchange.run(Path(), [str(later.root)])
        assert "post-outcome" in alone

    def test_opening_again_changes_nothing(self, opened: Sweep, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(opened.vault))
        monkeypatch.setattr(report, "write", lambda found, page, *tabs: str(page))
        ledgers = [opened.job(name).study(STUDY).decided for name in ("0", "1")]
        before = [path.read_bytes() for path in ledgers]
        pipeline.open_sweep(opened.folder, say=said_nothing)
        assert [path.read_bytes() for path in ledgers] == before


class TestNothingOpensEarly:
    @pytest.mark.parametrize("what", ["not frozen", "forecasts", "params", "failed", "not listed"])
    def test_a_sweep_with_one_job_that_is_not_frozen_opens_none(self, copied: Sweep, what: str):
        job, listed = copied.job("1"), copied.folder / "sweep.json"
        paths, sentence = job.study(STUDY), f"1 jobs of {copied.folder} are not frozen"
        if what == "not frozen":
            paths.ledger("frozen").unlink()
        elif what == "forecasts":
            paths.forecasts.write_bytes(paths.forecasts.read_bytes() + b"\n")
        elif what == "params":
            values = yaml.safe_load(job.params.read_text())
            values["forecaster"]["point"] = "positive"
            job.params.write_text(yaml.safe_dump(values))
        elif what == "failed":
            jobs = tables.read_json(listed)
            jobs["jobs"][1]["ended"] = False
            tables.write_json(listed, jobs)
        else:
            listed.unlink()
            sentence = "holds no sweep.json, so a job may still be to come"
        with pytest.raises(Sealed) as refusal:
            pipeline.open_sweep(copied.folder, say=said_nothing)
        assert sentence in str(refusal.value)
        assert not any(copied.job(name).study(STUDY).outcomes.exists() for name in ("0", "1"))
        assert not (copied.vault / "openings.jsonl").exists()

    def test_a_file_of_outcomes_that_nobody_waits_for_is_refused(self, copied: Sweep):
        with pytest.raises(OutOfOrder, match="no study waits for outcomes"):
            pipeline.open_sweep(copied.folder, DATA / "example_outcomes.csv", said_nothing)
        assert not (copied.vault / "openings.jsonl").exists()


def test_outcomes_that_came_later_open_every_cell_of_a_sweep(
    frozen: Sweep, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(report, "write", lambda found, page, *tabs: str(page))
    states = some_states(tmp_path / "pending.csv", "example_pending.csv")
    came = some_states(tmp_path / "came.csv", "example_outcomes.csv")
    jobs = []
    for name in ("0", "1"):
        job = Project(tmp_path / "sweep" / name)
        values = yaml.safe_load(frozen.job(name).params.read_text())
        values["pools"]["own"] |= {"path": str(states), "watch": str(states)}
        tables.write_bytes(job.params, yaml.safe_dump(values).encode())
        pipeline.freeze_all(job, params := study_params.load(job.params), said_nothing)
        jobs.append(Job(folder=job.root, sweep=tmp_path / "sweep", asked=name, params=params, ended=True))
    app.write_sweep(tmp_path / "sweep", jobs)
    with pytest.raises(Sealed, match="24 of the 24 outcomes that were to come"):
        pipeline.open_sweep(tmp_path / "sweep", None, said_nothing)
    pipeline.open_sweep(tmp_path / "sweep", came, said_nothing)
    assert [commitment(Project(job.folder)) for job in jobs] == ["passed", "passed"]


class TestNextSteps:
    def jobs(self, frozen: Sweep, *ended: bool, one: bool = False) -> list[Job]:
        params = [study_params.load(frozen.job("0" if one else str(k)).params) for k in range(2)]
        return [
            Job(folder=Path(str(k)), sweep=Path("sweep"), asked="", params=params[k], ended=of)
            for k, of in enumerate(ended)
        ]

    def test_a_sweep_over_forecasters_names_the_command_of_the_table(self, frozen: Sweep):
        first, second = app.next_steps(self.jobs(frozen, True, True), freeze_only=False)
        assert first == "credit by generator and forecaster: `predictive-credit exchange sweep`"
        assert "`predictive-credit run --freeze-only -m`" in second

    def test_a_sweep_over_anything_else_has_no_such_table(self, frozen: Sweep):
        assert app.next_steps(self.jobs(frozen, True, True, one=True), freeze_only=False) == []
        assert app.next_steps(self.jobs(frozen, True, False), freeze_only=False) == []

    def test_a_sweep_that_is_not_frozen_whole_is_not_to_be_opened(self, frozen: Sweep):
        (line,) = app.next_steps(self.jobs(frozen, True, False), freeze_only=True)
        assert line.startswith("1 of 2 jobs are frozen: run the sweep again with hydra.sweep.dir=sweep")

    def test_a_single_job_is_opened_by_its_folder(self, frozen: Sweep):
        (job,) = [replace(job, sweep=None) for job in self.jobs(frozen, True)]
        (line,) = app.next_steps([job], freeze_only=True)
        assert line.endswith("`predictive-credit open STUDY --root 0`")


class TestTable:
    def test_a_sweep_is_one_table_as_text_as_csv_and_as_json(self, opened: Sweep, tmp_path: Path):
        file = tmp_path / "credit.csv"
        printed = exchange.run(Path(), [str(opened.folder)], csv=file)
        assert printed.count("given      priors (point=mean)") == 2  # a row for each of two targets
        assert printed.count("passed") == 4
        rows = json.loads(exchange.run(Path(), [str(opened.folder)], as_json=True))
        assert {(row["generator"], row["forecaster"]) for row in rows} == {
            ("given", "priors (point=mean)"), ("given", "priors (point=zero)"),
        }  # fmt: skip
        with file.open(newline="") as lines:
            written = list(csv.DictReader(lines))
        assert [row["where"] for row in written] == [row["where"] for row in rows]
        for job in ("0", "1"):
            of = tables.read_json(opened.job(job).study(STUDY).metric("contrasts"))["log_loss"]
            (row,) = [
                r for r in rows if r["target"] == "log_loss" and r["where"] == str(opened.job(job).root)
            ]
            assert row["point_error D-M mean"] == of["point_error"]["D-M"]["mean"]
            assert row["interval_score S-M mean"] == of["interval_score"]["S-M"]["mean"]

    def test_a_job_that_is_not_decided_is_left_out_and_named(
        self, opened: Sweep, frozen: Sweep, tmp_path: Path
    ):
        shutil.copytree(opened.job("0").root, tmp_path / "jobs" / "0")
        shutil.copytree(frozen.job("1").root, tmp_path / "jobs" / "1")
        printed = exchange.run(Path(), [str(tmp_path / "jobs")])
        assert printed.endswith(f"left out, not decided: table in {tmp_path / 'jobs' / '1'}")
        with pytest.raises(OutOfOrder, match="no study is decided yet, first table in"):
            exchange.run(Path(), [str(frozen.folder)])

    def test_metrics_of_an_earlier_freeze_are_no_credit_of_the_new_pair(
        self, opened: Sweep, frozen: Sweep, tmp_path: Path
    ):
        job = tmp_path / "0"
        shutil.copytree(opened.job("0").root, job)
        frozen_anew = frozen.job("1").study(STUDY)
        for name in ("freeze.json", "forecasts.jsonl", "prompts.jsonl", "plan.jsonl"):
            shutil.copy(frozen_anew.data / name, job / "data" / STUDY / name)
        with pytest.raises(Tampered, match=r"freeze\.json is not what the ledger of table tells of"):
            exchange.run(Path(), [str(job)])

    def test_a_place_that_is_nothing_is_one_sentence(self, tmp_path: Path):
        with pytest.raises(BadSource, match="holds neither a project"):
            exchange.run(Path(), [str(tmp_path)])

    def test_a_revision_is_a_place_too(self, opened: Sweep, tmp_path: Path):
        project = tmp_path / "project"
        shutil.copytree(opened.job("0").root, project)
        git = ("git", "-c", "user.name=t", "-c", "user.email=t@t")
        for words in (
            (*git, "init", "-q"), (sys.executable, "-m", "dvc", "init", "-q"), (*git, "add", "-A"),
            (*git, "commit", "-q", "-m", "run"),
        ):  # fmt: skip
            subprocess.run(words, cwd=project, check=True, env=os.environ | {"DVC_NO_ANALYTICS": "1"})
        shutil.rmtree(project / "metrics")
        (from_folder,) = {tuple(map(tuple, self.figures(Path(), opened.job("0").root)))}
        assert tuple(map(tuple, self.figures(project, "HEAD"))) == from_folder
        with pytest.raises(BadSource, match="nowhere is no folder, git revision or DVC experiment"):
            exchange.run(project, ["nowhere"])

    def figures(self, root: Path, place: object) -> list[list[object]]:
        rows = json.loads(exchange.run(root, [str(place)], as_json=True))
        return [[value for key, value in row.items() if key != "where"] for row in rows]


def journalled(sweep: Path, job: str, *entries: dict[str, str]) -> Path:
    file = Project(sweep / job).study("table").journal("explain")
    tables.write_bytes(file, b"".join(json.dumps(entry).encode() + b"\n" for entry in entries))
    return file


def test_a_generator_is_asked_once_for_all_forecasters_of_a_sweep(tmp_path: Path):
    params = study_params.load(ROOT / "params.yaml")
    params = replace(params, studies={"table": next(iter(params.studies.values()))})
    first, second = {"key": "a", "reply": "first"}, {"key": "b", "reply": "second"}
    journalled(tmp_path, "0", first)
    journalled(tmp_path, "1", {"key": "a", "reply": "again"}, second)
    torn = journalled(tmp_path, "2", {"key": "c", "reply": "its own"})
    torn.write_bytes(torn.read_bytes() + b'{"key": "d", "rep')
    app.share_elicited(tmp_path, Project(tmp_path / "2"), params)
    shared = [json.loads(line) for line in torn.read_bytes().splitlines()]
    assert shared == [first, second, {"key": "c", "reply": "its own"}]
    app.share_elicited(tmp_path, Project(tmp_path / "3"), params)
    assert Project(tmp_path / "3").study("table").journal("explain").read_bytes() == torn.read_bytes()


def test_a_damaged_journal_of_another_job_is_one_sentence(tmp_path: Path):
    params = study_params.load(ROOT / "params.yaml")
    params = replace(params, studies={"table": next(iter(params.studies.values()))})
    journalled(tmp_path, "0").write_bytes(b"{}\n")
    with pytest.raises(Tampered, match="holds a line that is no reply"):
        app.share_elicited(tmp_path, Project(tmp_path / "1"), params)
