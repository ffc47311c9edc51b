"""`predictive-credit power`: offline, before anything is fetched, on stated numbers or an earlier run."""

from __future__ import annotations

import json
import re
import shutil
import socket
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import cli
from predictive_credit.errors import BadConfig, Tampered
from predictive_credit.stages import power as stage
from predictive_credit.stages.power import Asked, run
from predictive_credit.studies.molecular import rule
from predictive_credit.studies.power import Effort
from tests.conftest import ROOT
from tests.small_studies import EXAMPLE

BUNDLE = ROOT / "results" / "molecular-moleculeace-full"
STATED = {"effect": ["0.05"], "spread": ["0.02"], "within": ["0.01"], "drift": ["0.002"]}
MOLECULAR = Asked(study="molecular", overrides=("scale=full",), stated=STATED, studies=200, as_json=True)


def told(asked: Asked) -> Any:
    return json.loads(run(ROOT, asked))


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture(autouse=True)
def without_network_or_data(monkeypatch, tmp_path):
    """A socket or a file that is fetched would be refused."""
    monkeypatch.setattr(socket, "socket", None)
    monkeypatch.chdir(tmp_path)


def test_the_molecular_gates_are_told_with_errors_and_clusters():
    found = told(MOLECULAR)
    assert (found["states"], found["clusters"], found["cluster"]) == (72, 12, "endpoint")
    assert found["simulated"] == {"studies": 200, "draws": 1000, "search_studies": 800, "search_draws": 400}
    assert [gate["gate"] for gate in found["gates"]] == ["M-D margin", "M-D bound", "M-S margin", "M-S bound"]
    assert not any("independent" in limit for limit in found["limits"])  # one target, one measure
    for gate in found["gates"]:
        is_margin = gate["gate"].endswith("margin")
        assert gate["asked"] == (f"mean >= {rule.MARGIN}" if is_margin else "bound > 0")
        assert [r["interval"] for r in gate["resolved"]] == ([None] if is_margin else ["percentile", "t"])
        for one in gate["resolved"]:
            assert one["power"]["share"] > 0.9
            assert 0.0 < one["power"]["error"] < 0.03
            assert 0.0 < one["effect_80"] < one["effect_90"] < 0.05
            assert 3 <= one["clusters_80"] < 12
    assert [whole["interval"] for whole in found["together"]] == ["percentile", "t"]
    assert found["not_asked"] == found["not_simulated"] == []


def test_what_is_stated_is_told_with_what_the_drift_brings():
    gate = told(MOLECULAR)["gates"][1]
    assert (gate["target"], gate["measure"], gate["pair"]) == ("roc_auc", "interval_score", "D-M")
    assert [gate[option] for option in STATED] == [0.05, 0.02, 0.01, 0.002]
    assert gate["calls"] == pytest.approx(0.002 * (3.14159**0.5 / 2) * 10 * 0.2**0.5, rel=1e-4)


def test_the_same_words_tell_the_same_and_another_seed_another():
    first, again = run(ROOT, MOLECULAR), run(ROOT, MOLECULAR)
    assert first == again
    assert run(ROOT, replace(MOLECULAR, overrides=("scale=full", "seed=2"))) != first


def test_an_earlier_run_gives_all_but_the_effect():
    found = told(replace(MOLECULAR, stated={"effect": ["0.05"]}, like=BUNDLE))
    assert found["like"] == str(BUNDLE)
    by_pair = {gate["pair"]: gate for gate in found["gates"]}
    assert by_pair["D-M"]["drift"] > by_pair["S-M"]["drift"] > 0.0
    assert by_pair["D-M"]["calls"] > by_pair["S-M"]["calls"] > 0.0


def test_what_an_earlier_run_gives_is_told_to_be_uncertain_and_what_is_stated_is_not():
    def sentences(**changes: Any) -> list[str]:
        return [limit for limit in told(replace(MOLECULAR, **changes))["limits"] if "estimate" in limit]

    (sentence,) = sentences(stated={"effect": ["0.05"]}, like=BUNDLE)
    assert sentence.startswith(f"What is taken from {BUNDLE} is an estimate, an uncertain one where its clus")
    assert sentence.endswith("nothing of that uncertainty reaches the power.")
    assert sentences() == []


def test_the_legend_says_that_a_margin_gate_s_null_is_no_gain_and_not_its_margin():
    found = told(MOLECULAR)
    assert {gate["null"] for gate in found["gates"] if gate["asked"].startswith("mean >=")} == {0.0}
    legend = " ".join(run(ROOT, replace(MOLECULAR, as_json=False)).split())
    assert (
        "where the true gain is 0, which for a gate on the mean (mean >= margin) is not its margin" in legend
    )


def test_an_earlier_run_that_does_not_verify_gives_nothing(tmp_path):
    spoiled = Path(shutil.copytree(BUNDLE, tmp_path / "bundle"))
    outcomes = spoiled / "outcomes.csv"
    outcomes.write_bytes(outcomes.read_bytes().replace(b"0.", b"1.", 1))
    with pytest.raises(Tampered, match=r"bundle does not verify: outcomes.csv: .*; give --like a run that"):
        run(ROOT, replace(MOLECULAR, like=spoiled))


def test_the_tabular_rule_turns_on_drift_and_on_what_its_points_do(monkeypatch):
    monkeypatch.setattr(stage, "Effort", partial(Effort, search_studies=100, search_draws=50))
    stated = {"effect": ["point_error=0", "drift=0.01"], "spread": ["0.005"], "within": ["0.005"]}
    asked = replace(MOLECULAR, study="tabular", stated=stated | {"drift": ["0.01"]})
    steady = told(asked)
    assert (steady["states"], steady["clusters"], steady["most_clusters"]) == (144, 24, 1000)
    assert steady["not_simulated"] == ["formation bound"]
    names = [gate["gate"] for gate in steady["gates"]]
    assert names == ["D-M point equivalence", "S-M point equivalence", "D-M drift bound"]
    assert [gate["null"] for gate in steady["gates"]] == [0.01, 0.01, 0.0]
    loose = told(replace(asked, stated=stated | {"drift": ["0.1"]}))
    moved = told(replace(asked, stated=stated | {"drift": ["0.01"], "effect": ["0.01"]}))
    at = [of["together"][0]["power"]["share"] for of in (steady, loose, moved)]
    assert at[0] > 0.95
    assert at[1] < 0.05
    assert at[2] < 0.1  # points that are worse by the margin are not equivalent
    assert [of["clusters_80"] for of in moved["gates"][0]["resolved"]] == [None, None]


def test_a_user_s_own_clusters_and_targets_are_read_from_the_file():
    words = ("studies=table", f"pools.own.path={EXAMPLE / 'example_states.csv'}")
    found = told(replace(MOLECULAR, study="table", overrides=words, stated=STATED | {"effect": ["1"]}))
    assert (found["states"], found["clusters"], found["cluster"]) == (30, 5, "dataset")
    targets = [gate["target"] for gate in found["gates"]]
    assert targets == ["accuracy_pp", "accuracy_pp", "log_loss", "log_loss"]
    apart = "Gains in accuracy_pp point_error and log_loss point_error are simulated as independent of each"
    assert any(limit.startswith(apart) for limit in found["limits"])


def test_a_rule_without_a_context_cannot_hold_and_says_so():
    overrides = ("studies.molecular.contexts=[D,M]",)
    found = told(replace(MOLECULAR, overrides=overrides))
    assert found["not_asked"] == ["M-S margin", "M-S bound"]
    assert found["together"] == []
    assert "Not asked: M-S margin, M-S bound; the rule harm cannot hold without." in found["limits"]


def test_a_percentile_interval_that_errs_too_often_is_told():
    asked = replace(MOLECULAR, overrides=("scale=quick",), studies=1000)
    (sentence,) = [limit for limit in told(asked)["limits"] if "At the null" in limit]
    pattern = (
        r"At the null M-D bound and M-S bound held in ([\d.]+) to ([\d.]+) % of studies instead of 5\.0 %"
    )
    found = re.match(pattern, sentence)
    assert found is not None
    assert 7.0 < float(found[1]) < float(found[2]) < 16.0
    assert sentence.endswith("the percentile interval is too narrow with 4 clusters.")


def test_the_text_is_a_table_of_gates(capsys):
    words = [word for option, (number,) in STATED.items() for word in (f"--{option}", number)]
    code, out, _ = printed(
        capsys, "power", "molecular", "scale=full", "--root", str(ROOT), *words, "--simulations", "200"
    )
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == (
        "molecular (full, pool moleculeace): 72 states = 12 endpoints x 3 label fractions x 2 seeds; "
        "12 clusters (endpoint)"
    )
    assert lines[1].startswith("200 simulated studies of 1,000 bootstrap draws")
    assert any(line.split() == ["roc_auc", "interval_score", "D-M", "0.0500", "0.0200", "0.0100",
                                "0.00200", "0.00793"] for line in lines)  # fmt: skip
    gate = next(line for line in lines if line.startswith("M-D bound") and "percentile" in line)
    assert "100.0 +-" in gate
    assert sum(line.startswith("all of them") for line in lines) == 2


def test_the_text_says_what_no_number_of_clusters_can_do():
    text = run(ROOT, replace(MOLECULAR, stated=STATED | {"effect": ["0"]}, as_json=False))
    assert text.count("no number") == 8


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"study": "molecule"}, "no study 'molecule'; conf/ composes controlled, molecular, tabular"),
        (
            {"study": "calibration", "overrides": ("controls=calibration",)},
            "calibration is a post-outcome control, of which no power is told; ask for controlled, molecular",
        ),
        ({"stated": STATED | {"spread": ["-1"]}}, "--spread -1 is not a number from 0 up"),
        ({"stated": {}}, "needs --effect NUMBER, --spread NUMBER, --within NUMBER, --drift NUMBER; --like"),
        (
            {"like": ROOT / "results" / "controlled-full"},
            "controlled-full is a run of the controlled study, which says nothing of a molecular study",
        ),
        ({"studies": 5}, "5 simulated studies say next to nothing; give --simulations from 100 to 100000"),
        ({"studies": 10**9}, "1000000000 simulated studies take hours and tell no more; give --simulations"),
        (
            {"overrides": ("studies.molecular.contexts=[M]",)},
            "molecular asks M alone, and its rule reads nothing of that",
        ),
    ],
)
def test_a_wrong_word_is_refused_in_one_sentence(change, sentence):
    with pytest.raises(BadConfig, match=sentence):
        run(ROOT, replace(MOLECULAR, **change))


def test_a_run_of_other_targets_says_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "to_panels", lambda scored: {"other": None})
    with pytest.raises(BadConfig, match="forecasts other and not roc_auc; state the numbers"):
        run(ROOT, replace(MOLECULAR, like=BUNDLE))
    assert list(Path(tmp_path).iterdir()) == []
