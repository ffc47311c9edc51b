"""The committed evidence on coverage forecasts is what its cells, and the code, say it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from predictive_credit import canonical, tables
from predictive_credit.coverage import calibrated, expectation, published, summary, synthetic
from predictive_credit.coverage.scoring import Cell
from predictive_credit.coverage.summary import Evidence
from predictive_credit.stages import coverage_evidence
from predictive_credit.stages.coverage import keyed

FOLDER = Path(__file__).parents[1] / "results" / "coverage"
MEASURES = ("truth", "bias", "mae", "within", "coverage", "width")


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    return coverage_evidence.read(FOLDER / "synthetic.jsonl", FOLDER)


def test_held_out_rows_and_decisions_come_from_the_cells(evidence: Evidence) -> None:
    committed = json.loads((FOLDER / "held_out.json").read_text())
    assert canonical.plain(coverage_evidence.trial(evidence.held_out)) == committed
    assert committed["decision"]["calibrated"]["status"] == "supported"
    assert committed["decision"]["frozen"]["status"] == "mixed"


def test_the_trial_is_on_populations_nobody_had_looked_at_and_enough_of_them(evidence: Evidence) -> None:
    assert synthetic.HELD_OUT_SEED not in synthetic.DEVELOPMENT_SEEDS
    fresh = summary.of(evidence.held_out, calibrated=True)
    assert {row.populations for row in fresh} == {24}
    assert {row.pilot_agents for row in fresh} == {10}


def found(cells: tuple[Cell, ...], like: Cell) -> Cell:
    key = (like.scenario, like.population, like.pilot_agents, like.forecaster, like.scheme)
    (one,) = (c for c in cells if (c.scenario, c.population, c.pilot_agents, c.forecaster, c.scheme) == key)
    return one


@pytest.mark.parametrize(
    ("scenario", "pilots"), [("rasch_unsolvable", 30), ("skewed_abilities", 10), ("two_clusters", 10)]
)
def test_a_held_out_cell_of_the_calibrated_forecaster_comes_out_again(
    evidence: Evidence, scenario: str, pilots: int
) -> None:
    plan = replace(synthetic.TRIAL, scenarios=(scenario,), populations=1, pilots=pilots)
    (again,) = synthetic.run_calibrated(plan, calibrated.FROZEN)
    committed = found(evidence.held_out, again)
    for measure in MEASURES:
        # Single precision differs in its last digit from one processor to another.
        assert getattr(again, measure) == pytest.approx(getattr(committed, measure), abs=1e-3), measure


def test_held_out_cells_of_the_frozen_forecasters_come_out_again(evidence: Evidence) -> None:
    cells = synthetic.run(replace(synthetic.TRIAL, scenarios=("rasch_hard_tail",), populations=1))
    assert len(cells) == 8
    for again in cells:
        committed = found(evidence.held_out, again)
        for measure in MEASURES:
            assert getattr(again, measure) == pytest.approx(getattr(committed, measure), abs=1e-12), measure


def test_the_metrics_of_the_default_run_come_from_the_committed_cells(evidence: Evidence, root: Path) -> None:
    frozen, own = (summary.of(evidence.cells, calibrated=which) for which in (False, True))
    metrics = root / "metrics" / "coverage"
    assert canonical.plain(keyed((*frozen, *own))) == json.loads((metrics / "pooled.json").read_text())
    decision = json.loads((metrics / "decision.json").read_text())
    assert decision["frozen"]["status"] == summary.decided(frozen).status == published.VERDICT
    assert decision["calibrated"]["status"] == summary.decided(own).status
    readings = json.loads((metrics / "readings.json").read_text())
    assert readings["compared"] == canonical.plain(published.compare(frozen))


@pytest.mark.parametrize("number", [0, 199])
def test_a_set_of_populations_of_the_expectation_comes_out_again(evidence: Evidence, number: int) -> None:
    again = expectation.one_set(number)
    assert len(again) == len(evidence.sets) == 76
    for one, committed in zip(again, evidence.sets, strict=True):
        where = (one.scenario, one.pilot_agents, one.forecaster, one.scheme, one.measure)
        assert where == (
            committed.scenario, committed.pilot_agents, committed.forecaster, committed.scheme,
            committed.measure,
        )  # fmt: skip
        assert len(committed.means) == expectation.SETS
        assert committed.means[number] == pytest.approx(one.ours, abs=1e-6), where


def test_every_published_bias_error_and_width_is_where_our_simulators_expect_it(evidence: Evidence) -> None:
    judged = [one for one in expectation.expected(evidence.sets) if one.measure in published.JUDGED]
    assert len(judged) == 44
    assert max(abs(one.off) for one in judged) < 1.6
    frozen = summary.of(evidence.cells, calibrated=False)
    found = summary.judged(evidence.sets, published.compare(frozen), whole=expectation.is_a_set(frozen))
    # All 76, coverage included: no more outside than sets of the simulators' own have.
    for one in (found["all"].one_mean, found["all"].two_means, found["all"].expectation):
        assert one is not None
        assert one.outside <= one.chance + 2
        assert one.as_many > 0.1
    readme = (FOLDER.parent / "README.md").read_text()
    assert found["all"].one_mean is not None
    assert f"in {found['all'].one_mean.chance:.1f} of the 76 numbers on average" in readme


def test_the_calibrated_forecaster_is_near_on_more_real_matrices_than_any_published_one(
    evidence: Evidence,
) -> None:
    errors = [{row.forecaster: row.coverage_mae for row in one.rows} for one in evidence.studies]
    assert len(errors) == 4
    near = {name: sum(of[name] <= 0.03 for of in errors) for name in errors[0]}
    assert near["calibrated"] == 3
    assert max(n for name, n in near.items() if name != "calibrated") < 3


def test_the_page_shows_the_evidence_and_its_limits(evidence: Evidence) -> None:
    html = (FOLDER.parent / "coverage.html").read_text()
    sections = summary.sections(evidence)
    (lead, synthetic_part, real) = (section for section in sections)
    # Without the figures, whose bytes are those of a version of Matplotlib.
    assert lead in html
    for part in (synthetic_part, real):
        for table in part.split("<table>")[1:]:
            assert table.partition("</table>")[0] in html
    for told in (
        "too wide",
        "skewed abilities",
        "livecodebench_codegen",
        "outside their bands",
        "many sets of six",
    ):
        assert told in lead


def test_the_readme_quotes_the_trial_and_the_real_matrices_as_they_are(
    evidence: Evidence, root: Path
) -> None:
    readme = " ".join((root / "README.md").read_text().split())
    for calibrated_rows in (True, False):
        rows = summary.of(evidence.held_out, calibrated=calibrated_rows)
        for row in rows:
            if row.forecaster in ("calibrated", "beta_binomial", "incidence"):
                assert row.coverage is not None
                assert f"| {row.mae:.3f} / {100 * row.coverage:.1f} % |" in readme, row
    for name in ("calibrated", "beta_binomial", "incidence"):
        errors = [r.coverage_mae for one in evidence.studies for r in one.rows if r.forecaster == name]
        first, second, third, last = (f"{error:.3f}" for error in errors)
        assert f"{first}, {second}, {third} and {last}" in readme, name


def test_no_matrix_is_among_the_evidence() -> None:
    assert {p.name for p in FOLDER.iterdir()} == {
        "expectation.jsonl", "held_out.json", "held_out.jsonl", "real.jsonl", "synthetic.jsonl",
    }  # fmt: skip
    for line in tables.read_bytes(FOLDER / "real.jsonl").splitlines():
        assert "solved" not in json.loads(line)
