"""Committed results replay, and the README quotes them as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predictive_credit.stages.verify import verify

FOLDERS = sorted(p.parent for p in (Path(__file__).parents[1] / "results").glob("*/manifest.json"))


def metric(folder: Path, name: str) -> dict[str, dict[str, float]]:
    return dict(json.loads((folder / "metrics" / f"{name}.json").read_text()))


def test_there_are_results():
    assert {folder.name for folder in FOLDERS} >= {"molecular-tox21-full", "molecular-moleculeace-full"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_committed_result_verifies_and_was_planned_before_its_opening(folder: Path):
    found, findings = verify(folder)
    assert findings == []
    assert found[0].freeze["scale"] == "full"
    assert found[0].freeze["units"] == {"planned": 504, "forecasts": 432, "fallbacks": 0}
    assert found[0].json("metrics/checks.json")["commitment"]["planned_after_opening"] is None
    assert all(event.git_revision and "+dirty" not in event.git_revision for event in found[0].ledger)


def rows(folder: Path) -> list[str]:
    """The README's lines about one result."""
    levels = metric(folder, "contexts")
    lines = []
    for context in ("D", "M", "S"):
        f = levels[context]
        lines.append(
            f"| {context} | {f['interval_score_call']:.4f} | {f['point_mae_call']:.4f} | "
            f"{f['drift']:.4f} [{f['drift_lower']:.4f}, {f['drift_upper']:.4f}] | "
            f"{100 * f['direction_accuracy']:.1f} % | {100 * f['coverage']:.1f} % |"
        )
    for baseline in ("zero", "positive", "mean"):
        f = levels[baseline]
        lines.append(
            f"| {baseline} | {f['interval_score_call']:.4f} | {f['point_mae_call']:.4f} | - | "
            f"{100 * f['direction_accuracy']:.1f} % | {100 * f['coverage']:.1f} % |"
        )
    contrasts = json.loads((folder / "metrics" / "contrasts.json").read_text())
    for pair in ("D-M", "S-M"):
        c = contrasts["interval_score"][pair]
        lines.append(
            f"{pair} {c['mean']:+.4f} [{c['lower']:+.4f}, {c['upper']:+.4f}], "
            f"t [{c['t_lower']:+.4f}, {c['t_upper']:+.4f}]"
        )
    pairs = metric(folder, "outcomes")["seed_pairs"]
    lines.append(f"{pairs['equal_signs']} of {pairs['n']} seed pairs")
    return lines


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_quotes_the_results_as_they_are(root: Path, folder: Path):
    readme = " ".join((root / "README.md").read_text().split())
    for line in rows(folder):
        assert line in readme
