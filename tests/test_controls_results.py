"""The committed full-scale controls replay, reuse the committed studies, and are quoted as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import canonical
from predictive_credit.stages.verify import verify

RESULTS = Path(__file__).parents[1] / "results"
UNITS = {
    "calibration": 1440,
    "replay": 432,
    "crossover": 1152,
    "raw_note": 864,
    "mechanism": 240,
    "gradient": 960,
}
STUDIES = {
    "tabular": "tabular-packaged-full", "molecular": "molecular-moleculeace-full",
    "controlled": "controlled-full",
}  # fmt: skip


def metric(control: str, name: str) -> Any:
    return json.loads((RESULTS / "controls" / control / "metrics" / f"{name}.json").read_text())


@pytest.mark.parametrize("control", UNITS)
def test_every_committed_control_verifies_at_full_scale(control: str):
    found, findings = verify(RESULTS / "controls" / control)
    assert findings == []
    freeze = found[0].freeze
    assert (freeze["scale"], freeze["units"]["forecasts"]) == ("full", UNITS[control])
    assert not any("+dirty" in (event.git_revision or "") for event in found[0].ledger)


@pytest.mark.parametrize("control", [name for name in UNITS if name != "mechanism"])
def test_a_committed_control_reuses_the_committed_study_by_digest(control: str):
    stimuli = json.loads((RESULTS / "controls" / control / "freeze.json").read_text())["stimuli"]
    study = RESULTS / STUDIES[stimuli["study"]]
    head = json.loads((study / "ledger.jsonl").read_text().splitlines()[-1])["hash"]
    assert stimuli["ledger_head"] == head
    assert stimuli["digests"] == {name: canonical.digest_file(study / name) for name in stimuli["digests"]}


def test_the_readme_quotes_the_controls_as_they_are(root: Path):
    readme = " ".join((root / "README.md").read_text().split())
    for control, units in UNITS.items():
        decision = metric(control, "decision")
        held = sum(gate["held"] for gate in decision["gates"].values())
        quoted = f"`{decision['status']}`, {held} of {len(decision['gates'])} gates"
        assert f"| {units:,} | {quoted if decision['gates'] else 'exploratory'} |" in readme
    exact = metric("calibration", "decision")["shown"]["exact"]
    assert f"{exact['wins']} of 144 states are won ({100 * exact['win_share']:.0f} %" in readme
    assert f"correlation is {exact['spearman']:.2f}".replace("0.", ".") in readme
    found = metric("crossover", "contrasts")["roc_auc"]["point_error"]
    for pair in ("D-M", "D-numbers", "D-mechanism"):
        c = found[pair]
        assert f"{c['mean']:.4f} [{c['lower']:.4f}, {c['upper']:.4f}]" in readme
    found = metric("mechanism", "contrasts")["accuracy_pp"]["point_error"]
    for pair in ("D-true_note", "false_note-true_note"):
        c = found[pair]
        assert f"{c['mean']:.1f} [{c['lower']:.1f}, {c['upper']:.1f}]" in readme
    effect = metric("mechanism", "decision")["shown"]["executed"]
    shown = [f"{effect[kind]['mean_effect_pp']:+.1f}" for kind in ("nonlinear", "linear")]
    assert f"by {shown[0]} on nonlinear and {shown[1]} on linear tasks" in readme
    found = metric("gradient", "contrasts")["accuracy_pp"]["point_error"]
    for pair in ("D-M", *(f"D-donor_{k}" for k in range(1, 6)), "D-S", "S-M"):
        c = found[pair]
        assert f"{c['mean']:.1f} [{c['lower']:.1f}, {c['upper']:.1f}]" in readme
    for pair, c in metric("raw_note", "decision")["shown"].items():
        assert f"{pair} {c['task_balanced']:+.1f} [{c['lower']:+.1f}, {c['upper']:+.1f}]" in readme
