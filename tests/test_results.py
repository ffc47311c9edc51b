"""Committed results replay, and the README quotes them as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.stages.verify import verify

FOLDERS = sorted(p.parent for p in (Path(__file__).parents[1] / "results").glob("*/manifest.json"))
UNITS = {"controlled": (900, 720), "molecular": (504, 432), "tabular": (2304, 1728)}
DIGITS = {"accuracy_pp": 2}  # percentage points; everything else has four
BASELINES = ("zero", "positive", "mean")


def metric(folder: Path, name: str) -> dict[str, Any]:
    return dict(json.loads((folder / "metrics" / f"{name}.json").read_text()))


def targets(folder: Path) -> dict[str, dict[str, Any]]:
    """Levels by target."""
    return {k: v for k, v in metric(folder, "contexts").items() if isinstance(v, dict)}


def test_there_are_results_of_every_study_at_full_scale():
    assert {folder.name.partition("-")[0] for folder in FOLDERS} == UNITS.keys()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_committed_result_verifies_and_was_planned_before_its_opening(folder: Path):
    found, findings = verify(folder)
    assert findings == []
    assert found[0].freeze["scale"] == "full"
    units = found[0].freeze["units"]
    assert (units["planned"], units["forecasts"]) == UNITS[found[0].freeze["study"]]
    assert found[0].json("metrics/checks.json")["commitment"]["planned_after_opening"] is None
    # None where the run's folder lay outside the clone; see results/README.md.
    assert not any("+dirty" in (event.git_revision or "") for event in found[0].ledger)


def rows(folder: Path) -> list[str]:
    """The README's lines about one result."""
    lines = []
    for target, levels in targets(folder).items():
        n = DIGITS.get(target, 4)
        for context, f in levels.items():
            if context == "published":
                continue
            drift = (
                "-"
                if context in BASELINES
                else f"{f['drift']:.{n}f} [{f['drift_lower']:.{n}f}, {f['drift_upper']:.{n}f}]"
            )
            lines.append(
                f"| {context} | {f['interval_score_call']:.{n}f} | {f['point_mae_call']:.{n}f} | {drift} | "
                f"{100 * f['direction_accuracy']:.1f} % | {100 * f['coverage']:.1f} % |"
            )
        measure = "interval_score" if folder.name.startswith("molecular") else "point_error"
        for pair in ("D-M", "S-M"):
            c = metric(folder, "contrasts")[target][measure][pair]
            lines.append(
                f"{pair} {c['mean']:+.{n}f} [{c['lower']:+.{n}f}, {c['upper']:+.{n}f}], "
                f"t [{c['t_lower']:+.{n}f}, {c['t_upper']:+.{n}f}]"
            )
        pairs = metric(folder, "outcomes")[target].get("seed_pairs") or {"n": 0}
        if pairs["n"]:
            lines.append(f"{pairs['equal_signs']} of {pairs['n']} seed pairs")
    return lines


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_readme_quotes_the_results_as_they_are(root: Path, folder: Path):
    readme = " ".join((root / "README.md").read_text().split())
    for line in rows(folder):
        assert line in readme
    decision = metric(folder, "decision")
    held = sum(gate["held"] for gate in decision["gates"].values())
    assert f"`{decision['status']}`, {held} of {len(decision['gates'])} gates" in readme
