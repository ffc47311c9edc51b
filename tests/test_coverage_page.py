"""The sections on coverage are whole, refer to nothing outside, and show names as text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from predictive_credit import canonical
from predictive_credit.coverage import calibrated, page, pilot, real, rule
from predictive_credit.coverage.expectation import Judged, Judgement
from predictive_credit.coverage.matrix import Matrix
from predictive_credit.coverage.pilot import Forecast
from predictive_credit.coverage.populations import SCENARIOS, draw
from predictive_credit.coverage.real import RealStudy
from predictive_credit.coverage.scoring import Pooled
from predictive_credit.decisions import Decision

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> &amp; {{ 7 * 7 }} $x$"
QUICK = replace(calibrated.FROZEN, draws=60, gaps=(2.0,), shares=(0.5,))


def matrix(name: str, agents: int) -> Matrix:
    solved = draw(SCENARIOS["rasch_moderate"], np.random.default_rng(2), agents=agents, tasks=110)
    return Matrix(
        name=name,
        agents=tuple(f"{name}{j}" for j in range(agents)),
        tasks=tuple(f"{name}{t}" for t in range(110)),
        solved=solved,
        sha256="0" * 64,
    )


def pooled(scenario: str, forecaster: str, scheme: str, k: int = 10, **values: float) -> Pooled:
    found: dict[str, float] = {
        "truth": 0.9, "bias": -0.0123, "mae": 0.0234, "mae_se": 0.0012, "within": 0.8, "coverage": 0.91,
        "coverage_se": 0.02, "width": 0.0678, "min_population_coverage": 0.7, **values,
    }  # fmt: skip
    return Pooled(
        scenario=scenario, pilot_agents=k, forecaster=forecaster, scheme=scheme, populations=6, pilots=180,
        **found,
    )  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> tuple[Pooled, ...]:
    return tuple(
        pooled(scenario, name, scheme, k)
        for scenario in rule.SCENARIOS
        for k in (3, 10)
        for name in ("beta_binomial", "incidence")
        for scheme in ("task", "agent")
    )


@pytest.fixture(scope="module")
def decision(rows: tuple[Pooled, ...]) -> Decision:
    return rule.decide("coverage", rows)


@pytest.fixture(scope="module")
def studies() -> tuple[RealStudy, RealStudy]:
    """One feasible study of agents with hostile names, and one that is not."""
    settings = real.Settings(
        seed=1, pilot=5, pilots=6, calibrated_pilots=2, replicates=20, draws=30, splits=3
    )
    large = matrix(HOSTILE, 24)
    large.solved[0] = False
    return real.study(large, settings, method=QUICK), real.study(matrix("small", 8), settings)


@pytest.fixture(scope="module")
def made() -> Forecast:
    return pilot.forecast(matrix(HOSTILE, 9), pilot.Settings(seed=1, pilot=5, target=0.9), method=QUICK)


@pytest.fixture(scope="module")
def sections(
    rows: tuple[Pooled, ...], decision: Decision, studies: tuple[RealStudy, RealStudy], made: Forecast
) -> tuple[str, str, str]:
    fresh = [pooled(s, "calibrated", "predictive", mae=0.0211) for s in rule.SCENARIOS]
    return (
        page.synthetic_section(rows, decision=decision, held_out=fresh, outside=fresh[:1]),
        page.real_section(studies),
        page.forecast_section(made),
    )


def cells(section: str, caption: str) -> list[list[str]]:
    """The rows of the table whose caption starts so."""
    for table in ElementTree.fromstring(section).iter("table"):
        if "".join(table.find("caption").itertext()).startswith(caption):  # type: ignore[union-attr]
            return [["".join(cell.itertext()) for cell in row] for row in table.find("tbody")]  # type: ignore[union-attr]
    raise AssertionError(caption)


def test_every_section_is_well_formed_with_unique_ids_that_exist(sections: tuple[str, ...]) -> None:
    elements = [e for section in sections for e in ElementTree.fromstring(section).iter()]
    ids = Counter(e.attrib["id"] for e in elements if "id" in e.attrib)
    assert max(ids.values()) == 1
    wanted = {e.attrib["aria-labelledby"] for e in elements if "aria-labelledby" in e.attrib}
    assert wanted <= set(ids)
    figures = [e for e in elements if e.tag == "svg"]
    assert len(figures) == 4 + 1 + 1
    assert all(e.attrib["aria-label"] for e in figures)


def test_nothing_is_styled_inline_scripted_or_fetched(sections: tuple[str, ...]) -> None:
    elements = [e for section in sections for e in ElementTree.fromstring(section).iter()]
    assert not {e.tag for e in elements} & {"script", "link", "style", "img", "image"}
    names = {name for e in elements for name in e.attrib}
    assert "style" not in names
    assert not [name for name in names if name.startswith("on") or name == "src"]
    values = [v for e in elements for name, v in e.attrib.items() if name != "aria-label"]
    assert not [value for value in values if re.search(r"url\(|https?:", value)]


def test_names_are_shown_as_text(sections: tuple[str, ...]) -> None:
    for section in sections[1:]:
        assert "<img" not in section
        assert "{{ 7 * 7 }}" in section


def test_records_and_what_was_read_back_from_a_file_give_the_same_section(
    sections: tuple[str, ...], rows: tuple[Pooled, ...], studies: tuple[RealStudy, ...], made: Forecast
) -> None:
    assert page.real_section(canonical.plain(studies)) == sections[1]
    assert page.forecast_section(canonical.plain(made)) == sections[2]


def test_a_published_figure_stands_beside_ours_and_a_dash_where_none_is_printed(
    rows: tuple[Pooled, ...], decision: Decision
) -> None:
    printed = {
        "scenario": "rasch_moderate", "pilot_agents": 10, "forecaster": "beta_binomial", "scheme": "task",
        "bias": -0.0143, "mae": 0.0163,
    }  # fmt: skip
    found = page.synthetic_section(rows, decision=decision, published=[printed])
    first, second = cells(found, "Pilots of 10 agents")[:2]
    assert first[:5] == ["rasch moderate, beta binomial/task", "\u22120.012", "\u22120.014", "0.023", "0.016"]
    assert first[-2:] == ["0.068", "\u2013"]
    assert second[1:3] == ["\u22120.012", "\u2013"]


def test_the_mean_of_many_sets_and_what_chance_does_stand_beside_the_published_numbers(
    rows: tuple[Pooled, ...], decision: Decision
) -> None:
    key = {"scenario": "rasch_moderate", "pilot_agents": 10, "forecaster": "incidence", "scheme": "task"}
    expected = [
        {**key, "measure": "bias", "printed": -0.02, "expected": -0.01, "error": 0.004},
        {**key, "measure": "coverage", "printed": 0.9, "expected": 0.85, "error": 0.1},
    ]
    one = Judgement(numbers=76, outside=5, chance=7.14, as_many=0.68)
    judged = {"all": Judged(one_mean=one, two_means=None, expectation=replace(one, outside=2))}
    found = page.synthetic_section(rows, decision=decision, expected=expected, judged=judged)
    (row,) = cells(found, "Published, mean of many sets")
    assert row[:5] == ["rasch moderate, incidence/task", "10", "\u22120.020", "\u22120.010", "\u22122.5"]
    assert row[5:8] == ["\u2013"] * 3
    assert row[11:14] == ["0.900", "0.850", "+0.5"]
    run, mean = cells(found, "Published numbers outside their bands")
    assert run == ["this run's six populations", "the draw of one set", "76: all", "5", "7.1", "68 %"]
    assert mean[:4] == ["the mean of many sets of six", "the published set's draw", "76: all", "2"]


def test_what_is_outside_its_band_is_named(rows: tuple[Pooled, ...], decision: Decision) -> None:
    near = {
        "scenario": "rasch_moderate", "pilot_agents": 10, "forecaster": "incidence", "scheme": "task",
        "measure": "mae", "printed": 0.05, "ours": 0.06, "band": 0.011,
    }  # fmt: skip
    found = page.synthetic_section(rows, decision=decision, compared=[near, {**near, "band": 0.009}])
    assert (
        "1 of 2 printed numbers are inside their bands. Outside: rasch moderate, incidence/task, mae "
        in found
    )


def test_the_verdict_its_gates_and_every_pilot_size_are_shown(
    sections: tuple[str, ...], decision: Decision
) -> None:
    assert f"Synthetic populations: {decision.status}" in sections[0]
    assert cells(sections[0], "Gates")[0] == ["beta binomial/task MAE", "\u2264 0.03", "0.023", "yes"]
    errors = cells(sections[0], "MAE by agents")
    assert len(errors) == 8
    assert errors[0] == ["rasch moderate, beta binomial", "0.023", "0.023"]
    assert len(cells(sections[0], "Coverage by agents")) == 16


def test_the_calibrated_forecaster_is_shown_with_its_standard_errors(sections: tuple[str, ...]) -> None:
    row = cells(sections[0], "Calibrated forecaster on fresh")[0]
    assert row[:3] == ["rasch moderate", "10", "6"]
    assert row[3:] == ["\u22120.012", "0.021", "0.0012", "0.80", "0.910", "0.020", "0.068", "0.70"]
    assert len(cells(sections[0], "Calibrated forecaster on populations of another make")) == 1


def test_a_real_study_shows_its_numbers_and_that_it_is_one_population(
    sections: tuple[str, ...], studies: tuple[RealStudy, ...]
) -> None:
    row = studies[0].rows[3]
    shown = cells(sections[1], "Errors on")[3]
    assert shown[:4] == ["beta binomial", "6", f"{row.curve_mae:.3f}", f"{row.coverage_mae:.3f}"]
    across = cells(sections[1], "Mean absolute error")[3]
    assert across == ["beta binomial", f"{row.coverage_mae:.3f}", f"{int(row.coverage_mae <= 0.03)} of 1"]
    assert [r[2] for r in cells(sections[1], "Hypotheses")] == [h.status for h in studies[0].hypotheses]
    assert page.ONE_POPULATION in sections[1]
    assert "1 of 2 matrices are large enough" in sections[1]


def test_a_matrix_too_small_says_why_and_has_no_table(sections: tuple[str, ...]) -> None:
    assert "Not feasible: 8 competent agents where the study needs 20." in sections[1]
    alone = page.real_section([canonical.plain(real.study(matrix("small", 8), real.Settings(seed=1)))])
    assert "None of 1 matrices is large enough for the study" in alone
    assert "<table" not in alone


def test_a_forecast_shows_its_interval_its_gains_and_its_truth(
    sections: tuple[str, ...], made: Forecast
) -> None:
    coverage, floor, truth = cells(sections[2], "Coverage of 9 agents")
    assert coverage[1] == f"{100 * made.coverage.point:.1f} %"
    assert floor[2] == f"{100 * made.floor.lower:.1f} % to {100 * made.floor.upper:.1f} %"
    assert made.truth is not None
    assert truth[1:] == [
        f"{100 * made.truth.coverage:.1f} %",
        f"{'in' if made.truth.inside else 'out'}side the interval",
    ]
    assert [row[0] for row in cells(sections[2], "Newly solved")] == ["+1", "+2", "+4"]
    assert "50 % of the forecast gain" in sections[2]
    (figure,) = ElementTree.fromstring(sections[2]).iter("svg")
    assert "the pilot of 5 solves" in figure.attrib["aria-label"]


def test_a_page_of_its_own_has_a_policy_and_the_same_bytes_twice(sections: tuple[str, ...]) -> None:
    html = page.document(HOSTILE, sections, version="1")
    assert html == page.document(HOSTILE, sections, version="1")
    assert "default-src 'none'" in html.replace("&#39;", "'")
    assert html.count("<section") == 3
    assert "<img" not in html
