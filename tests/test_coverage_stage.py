"""The stage of the synthetic coverage study, and its tab on the project's page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from predictive_credit import canonical, config, tables
from predictive_credit.coverage import expectation, page, published, summary
from predictive_credit.coverage.expectation import Sets
from predictive_credit.coverage.scoring import Cell
from predictive_credit.coverage.summary import Evidence
from predictive_credit.errors import BadConfig
from predictive_credit.stages import coverage, coverage_evidence, freeze
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params

SMALL = config.Coverage(populations=2, pilots=3, pilot_sizes=(10, 20), replicates=20, calibrated_pilots=1)


@pytest.fixture(scope="module")
def params(root: Path) -> config.Params:
    return study_params.load(root / "params.yaml")


@pytest.fixture(scope="module")
def made(params: config.Params, tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("coverage"))
    coverage.run(project, replace(params, coverage=SMALL))
    return project


def test_the_committed_params_run_the_whole_study(params: config.Params) -> None:
    chosen = params.coverage
    assert chosen is not None
    assert (chosen.populations, chosen.pilots, chosen.replicates) == (6, 30, 100)
    assert chosen.pilot_sizes == (3, 5, 10, 20, 30)


def test_metrics_are_read_off_the_cells(made: Project) -> None:
    cells = tables.read_records(made.coverage_cells, Cell)
    assert len(cells) == 4 * 2 * (2 * 4 * 2 + 1)
    pooled = json.loads(made.coverage_metric("pooled").read_text())
    row = pooled["rasch_moderate"]["k10"]["beta_binomial"]["task"]
    mine = [
        c.mae
        for c in cells
        if (c.scenario, c.pilot_agents, c.forecaster, c.scheme)
        == ("rasch_moderate", 10, "beta_binomial", "task")
    ]
    assert row["mae"] == pytest.approx(sum(mine) / 2)
    assert set(row) == set(published.MEASURES)
    decision = json.loads(made.coverage_metric("decision").read_text())
    frozen = summary.decided(summary.of(cells, calibrated=False))
    assert decision["frozen"] == canonical.plain(coverage.gates(frozen))
    assert set(decision["calibrated"]["gates"]) == {
        "calibrated/predictive MAE", "calibrated/predictive coverage",
    }  # fmt: skip


def test_what_is_outside_its_band_is_named_in_the_readings(made: Project) -> None:
    readings = json.loads(made.coverage_metric("readings").read_text())
    off = [one for one in readings["compared"] if abs(one["ours"] - one["printed"]) > one["band"]]
    assert len(readings["compared"]) == 76
    assert len(readings["outside"]) == len(off) > 0
    assert readings["verdict"]["published"] == "mixed"


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(
    made: Project, params: config.Params, tmp_path: Path
) -> None:
    again, other = Project(tmp_path / "again"), Project(tmp_path / "other")
    coverage.run(again, replace(params, coverage=SMALL))
    coverage.run(other, replace(params, coverage=SMALL, seed=params.seed + 1))
    assert again.coverage_cells.read_bytes() == made.coverage_cells.read_bytes()
    assert other.coverage_cells.read_bytes() != made.coverage_cells.read_bytes()


@pytest.mark.parametrize(
    ("chosen", "sentence"),
    [
        (None, r"params.yaml has no coverage; write it with"),
        (replace(SMALL, pilot_sizes=(3, 20)), r"coverage.pilot_sizes lacks 10, which the rule"),
        (replace(SMALL, pilot_sizes=(10,)), r"coverage.pilot_sizes lacks 20, which the rule"),
    ],
    ids=["none", "no 10", "no 20"],
)
def test_what_the_rule_could_not_read_is_refused_before_it_runs(
    params: config.Params, tmp_path: Path, chosen: config.Coverage | None, sentence: str
) -> None:
    with pytest.raises(BadConfig, match=sentence):
        coverage.run(Project(tmp_path), replace(params, coverage=chosen))
    assert not any(tmp_path.iterdir())


def test_no_study_of_explanations_is_frozen_with_it(params: config.Params) -> None:
    assert "coverage" not in freeze.frozen_params(params, "molecular")


def test_the_tab_shows_what_there_is(made: Project, root: Path, tmp_path: Path) -> None:
    assert coverage_evidence.tab(Project(tmp_path)) == ()
    (alone,) = coverage_evidence.tab(made)
    assert alone.title == "Coverage forecasting"
    assert 'id="coverage-title"' in alone.html
    assert "held-out populations" not in alone.html
    assert "Calibrated forecaster on some pilots" in alone.html
    assert "Real matrices" not in alone.html
    whole = Project(tmp_path)
    tables.write_bytes(whole.coverage_cells, made.coverage_cells.read_bytes())
    whole.coverage_evidence.parent.mkdir()
    whole.coverage_evidence.symlink_to(root / "results" / "coverage")
    (full,) = coverage_evidence.tab(whole)
    assert "calibrated, held-out populations" in full.html
    assert "Real matrices" in full.html


def test_limits_are_told_where_they_are_and_not_where_they_are_not(root: Path) -> None:
    folder = root / "results" / "coverage"
    found = coverage_evidence.read(folder / "synthetic.jsonl", folder)
    fresh, outside = (summary.of(found.held_out, calibrated=True, known=known) for known in (True, False))

    def told(fresh: object = fresh, outside: object = outside) -> str:
        return " ".join(summary.limits(fresh, outside, (), ()))  # type: ignore[arg-type]

    assert "98 % to 100 % of the pilots" in told()
    exact = [replace(row, coverage=0.95) for row in fresh]
    assert "too wide" not in told(exact)
    assert "(0.025 was reached)" in told()
    assert "(0.025 was missed)" in told([replace(row, mae=0.026) for row in fresh])
    assert "30 % of those of the worst population" in told()
    near = [replace(row, mae=0.02) for row in outside]
    assert "another make" in told()
    assert "another make" not in told(outside=near)


def test_a_calibrated_forecaster_that_misses_is_not_called_supported(root: Path) -> None:
    folder = root / "results" / "coverage"
    found = coverage_evidence.read(folder / "synthetic.jsonl", folder)
    worse = tuple(replace(one, mae=0.05) if one.forecaster == "calibrated" else one for one in found.held_out)
    (first, *_) = summary.sections(Evidence(cells=found.cells, held_out=worse))
    assert "Published forecasters: mixed. Calibrated: falsified." in first


def test_a_page_of_the_evidence_is_written_with_its_decisions(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "coverage"
    folder.mkdir()
    for name in ("synthetic.jsonl", "held_out.jsonl"):
        (folder / name).write_bytes((root / "results" / "coverage" / name).read_bytes())
    with pytest.raises(SystemExit) as stop:
        coverage_evidence.main([str(folder), "--to", str(tmp_path / "page.html")])
    assert stop.value.code == 0
    committed = root / "results" / "coverage" / "held_out.json"
    assert (folder / "held_out.json").read_bytes() == committed.read_bytes()
    assert (tmp_path / "page.html").read_text().count("<section") == 2
    html = (tmp_path / "page.html").read_text()
    assert page.ONE_POPULATION not in html
    assert "how many chance puts there" not in html


def test_the_expectation_is_drawn_anew_where_it_is_asked_for(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = root / "results" / "coverage"
    for name in ("synthetic.jsonl", "held_out.jsonl"):
        (tmp_path / name).write_bytes((committed / name).read_bytes())
    sets = tables.read_records(committed / "expectation.jsonl", Sets)
    monkeypatch.setattr(expectation, "draw", lambda: sets)
    with pytest.raises(SystemExit) as stop:
        coverage_evidence.main([str(tmp_path), "--to", str(tmp_path / "page.html"), "--expectation"])
    assert stop.value.code == 0
    assert (tmp_path / "expectation.jsonl").read_bytes() == (committed / "expectation.jsonl").read_bytes()
    assert "how many chance puts there" in (tmp_path / "page.html").read_text()
