"""Recalibrated intervals stand beside the raw ones, never in their place, and no rule reads them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.config import Inference
from predictive_credit.records import Context
from predictive_credit.stages import evidence, report
from predictive_credit.stages.evidence import FILES
from predictive_credit.stages.freeze import SCORING
from predictive_credit.studies import params as study_params
from predictive_credit.studies.evaluation import Scored, evaluate
from predictive_credit.studies.recalibration import recalibration
from tests import planted
from tests.planted import INFERENCE, SOUND

FOLDERS = sorted(p.parent for p in (Path(__file__).parents[1] / "results").glob("*/manifest.json"))
FEW = Inference(draws=200, level=0.95)
# Where coverage was not brought nearer to 80 %: raw it was within 5 points, or the correction of five
# regimes, which has to hold for a sixth, is as far above as it was below.
NOT_NEARER = {
    ("controlled-full", "accuracy_pp", "burn_in"), ("controlled-full", "log_loss", "D"),
    ("controlled-full", "log_loss", "M"), ("controlled-full", "log_loss", "burn_in"),
    ("molecular-moleculeace-full", "roc_auc", "M"), ("molecular-moleculeace-full", "roc_auc", "S"),
    ("molecular-moleculeace-full", "roc_auc", "burn_in"),
}  # fmt: skip


def of(found: Scored, *, inference: Inference = FEW, seed: int = 7) -> dict[str, dict[str, dict[str, Any]]]:
    """The figures by target, without the two labels."""
    report = recalibration(found, seed=seed, inference=inference, scale="full")
    return {name: block for name, block in report.items() if not isinstance(block, str)}


def levels(found: Scored) -> dict[str, Any]:
    evaluated = evaluate(found, seed=7, inference=FEW, scale="full", integrity=SOUND)
    return dict(evaluated["contexts"])


def committed(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "metrics" / "contexts.json").read_text()))


def check_raw(found: dict[str, dict[str, dict[str, Any]]], expected: dict[str, Any]) -> None:
    """Raw figures are those of the contexts, to the last digit; the burn-in's those of a baseline."""
    for target, contexts in found.items():
        for context, figures in contexts.items():
            level = expected[target]["mean" if context == "burn_in" else context]
            raw = figures["raw"]
            assert raw["coverage"] == level["coverage"]
            assert raw["width"] == level["width"]
            assert raw["interval_score"] == level["interval_score_call"]


@pytest.mark.parametrize("made", [planted.study, planted.pair, planted.joint])
def test_raw_figures_are_those_of_the_contexts(made):
    found = made(planted.reader)
    figures = of(found)
    assert figures.keys() == {t.name for t in found.study.targets}
    assert all(list(contexts) == [*found.contexts, "burn_in"] for contexts in figures.values())
    check_raw(figures, levels(found))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_committed_runs_reach_the_nominal_coverage_and_the_nearer_the_more_tasks(folder: Path):
    found = evidence.bundle(folder)
    figures = of(found.scored())
    check_raw(figures, committed(folder))
    not_nearer = set()
    for target, contexts in figures.items():
        for context, block in contexts.items():
            before, after = block["raw"]["coverage"], block["recalibrated"]["coverage"]
            assert 0.8 <= after <= 0.8 + 1 / (block["n_tasks"] + 1) + 0.01
            if not abs(after - 0.8) < abs(before - 0.8):
                not_nearer.add((folder.name, target, context))
    assert not_nearer == {key for key in NOT_NEARER if key[0] == folder.name}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_page_of_a_bundle_shows_figures_that_the_bundle_does_not_hold(folder: Path):
    found = evidence.bundle(folder)
    params = study_params.parse(found.freeze["params"], origin="freeze.json")
    shown = report.beside(found, report.view(found)).metrics["recalibration"]
    assert shown == recalibration(
        found.scored(), seed=params.seed, inference=params.inference, scale=params.scale
    )
    assert "metrics/recalibration.json" not in found.files


def test_a_narrow_forecaster_is_widened_and_a_wide_one_narrowed():
    narrow = of(planted.study(lambda shown, outcome, rng: (0.0, 0.005)))["roc_auc"]["D"]
    wide = of(planted.study(lambda shown, outcome, rng: (0.0, 0.5)))["roc_auc"]["D"]
    assert narrow["raw"]["coverage"] < 0.4
    assert wide["raw"]["coverage"] == 1.0
    assert narrow["correction"] > 0 > wide["correction"]
    for found in (narrow, wide):
        assert 0.8 <= found["recalibrated"]["coverage"] < 0.9
        assert found["n_collapsed"] == 0
        assert (found["n_tasks"], found["n_scores"]) == (11, 132)
    # Both are centred alike, so that they are the same intervals once corrected.
    assert narrow["recalibrated"]["width"] == pytest.approx(wide["recalibrated"]["width"])


def test_narrow_intervals_that_a_correction_would_turn_round_meet_in_the_middle_and_are_counted():
    def uneven(shown: float | None, outcome: float, rng: Any) -> tuple[float, float]:
        return outcome, 0.5 if rng.random() < 0.9 else 0.001

    made = planted.study(uneven)
    wide = [
        read.upper - read.lower > 0.5
        for unit, (read,) in made.forecasts.items()
        if unit.rsplit("/", 2)[1] == "D"
    ]
    found = of(made)["roc_auc"]["D"]
    # Its point is the outcome, so that every interval could be narrowed to nothing.
    assert found["correction"] < -0.001
    assert found["n_collapsed"] == len(wide) - sum(wide) > 0
    assert found["recalibrated"]["coverage"] == 1.0


def test_too_few_endpoints_are_said_to_be_and_the_raw_figures_stay():
    found = of(planted.study(planted.reader, endpoints=4))["roc_auc"]
    for block in found.values():
        assert block["status"] == "not_estimable"
        assert block["reason"] == "3 other endpoints with a defined outcome; an 80 % quantile needs 4"
        assert set(block["recalibrated"].values()) == {None}
        assert set(block["corrections"].values()) == {None}
        assert block["correction"] is block["n_collapsed"] is None
        assert block["raw"]["coverage"] is not None
    assert of(planted.study(planted.reader, endpoints=5))["roc_auc"]["D"]["status"] == "estimated"


def test_one_endpoint_has_no_other():
    (block, *_) = of(planted.study(planted.reader, endpoints=1))["roc_auc"].values()
    assert block["reason"] == "0 other endpoints with a defined outcome; an 80 % quantile needs 4"


def test_without_any_defined_outcome_nothing_is_estimated_and_nothing_is_nan():
    every = [s.id for s in planted.study(planted.reader).states]
    found = recalibration(planted.study(planted.reader, undefined=every), seed=7, inference=FEW, scale="full")
    assert found["roc_auc"]["D"]["raw"]["coverage"] is None
    assert found["roc_auc"]["D"]["raw"]["width"] == pytest.approx(0.04)
    json.dumps(found, allow_nan=False)


def test_an_endpoints_own_outcomes_do_not_move_its_correction():
    found = planted.study(planted.reader)
    states = {s.id for s in found.states if s.task == "assay-03"}
    moved = {
        key: replace(outcome, value=0.9) if key[0] in states else outcome
        for key, outcome in found.outcomes.items()
    }
    before, after = of(found)["roc_auc"], of(replace(found, outcomes=moved))["roc_auc"]
    for context in before:
        ours, theirs = before[context]["corrections"], after[context]["corrections"]
        assert theirs["assay-03"] == ours["assay-03"]
        assert any(theirs[task] > ours[task] for task in ours if task != "assay-03")


def test_coverages_have_intervals_from_the_contexts_own_stream():
    found = planted.study(planted.reader)
    one, two = of(found, inference=INFERENCE), of(found, inference=INFERENCE, seed=8)
    for block in one["roc_auc"].values():
        for side in ("raw", "recalibrated"):
            assert block[side]["coverage_lower"] < block[side]["coverage"] < block[side]["coverage_upper"]
    assert one != two
    fewer = planted.study(planted.reader, contexts=[Context.MATCHED])
    assert of(fewer, inference=INFERENCE)["roc_auc"]["M"] == one["roc_auc"]["M"]


def test_nothing_that_is_frozen_or_decided_knows_of_it():
    names = [*FILES, *(module.__name__ for module in SCORING)]
    assert not [name for name in names if "recalibration" in name]
    evaluated = evaluate(planted.study(planted.reader), seed=7, inference=FEW, scale="full", integrity=SOUND)
    assert "recalibration" not in json.dumps(evaluated)
