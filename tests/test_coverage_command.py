"""`predictive-credit coverage`: what a user types, sees and gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from predictive_credit import cli
from tests.data import make_matrix

MATRIX = make_matrix.MATRIX


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[object, str, str]:
    with pytest.raises(SystemExit) as stop:
        cli.main(("coverage", *words))
    captured = capsys.readouterr()
    return stop.value.code, captured.out, captured.err


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_example_matrix_is_what_its_script_makes() -> None:
    assert MATRIX.read_bytes() == make_matrix.matrix()


def test_a_forecast_is_printed_and_drawn(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    code, out, err = run(capsys, str(MATRIX), "--pilot", "34", "--target", "0.9")
    assert (code, err) == (0, "")
    assert out.startswith("example_matrix: a pilot of 34 of 40 agents (drawn at random, seed 1), 150 tasks")
    assert "forecast for all 40 agents" in out
    assert "solved by all 40 in truth" in out
    assert "coverage 0.9: " in out
    assert out.splitlines()[-1] == "coverage.html: with the curve, open it in any browser"
    html = (elsewhere / "coverage.html").read_text()
    assert "<svg" in html
    assert "Coverage forecast for example_matrix" in html


def test_json_is_one_line_and_writes_a_page_only_where_asked(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    words = (str(MATRIX), "--pilot", "36", "--first", "--json")
    code, out, _ = run(capsys, *words)
    assert code == 0
    made = json.loads(out)
    assert made["pilot"] == [f"agent_{j:02}" for j in range(1, 37)]
    assert made["coverage"]["lower"] <= made["coverage"]["point"] <= made["coverage"]["upper"]
    assert list(elsewhere.iterdir()) == []
    _, again, _ = run(capsys, *words, "--to", "sub/page.html")
    assert again == out
    assert [p.name for p in elsewhere.iterdir()] == ["sub"]


def test_the_whole_matrix_as_the_pilot_has_no_truth(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, str(MATRIX), "--pilot", "all", "--agents", "43")
    assert code == 0
    assert "forecast for all 43 agents" in out
    assert "in truth" not in out


def test_a_study_of_a_matrix_too_small_says_so(capsys: pytest.CaptureFixture[str], elsewhere: Path) -> None:
    (elsewhere / "small.csv").write_text("agent,t1,t2\na,1,0\nb,0,1\nc,1,1\n")
    code, out, _ = run(capsys, "small.csv", "--study", "--pilot", "2")
    assert code == 0
    assert "not_feasible, 3 competent agents where the study needs 20" in out
    assert "Not feasible" in (elsewhere / "coverage.html").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--pilot", "ten"), "--pilot is a number of agents, or `all`; seen 'ten'"),
        (("--pilot", "40"), "a pilot of 40 leaves none of the 40 agents"),
        (("--pilot", "all"), "say with --agents how many there are in all"),
        (("--agents", "60"), "give --agents with --pilot all"),
        (("--target", "2"), "a target is a coverage above 0 and at most 1"),
        (("--tasks", "t.txt"), "leave --tasks out"),
        (("--study", "--first"), "leave --first out"),
        (("--study", "--target", "0.5"), "leave --target out"),
        (("--study", "--pilot", "all"), "give --pilot a number"),
        (("--study", "--pilot", "39000"), "does not fit 40 competent agents"),
    ],
    ids=lambda value: "_".join(value) if isinstance(value, tuple) else "",
)
def test_words_that_do_not_fit_are_one_sentence_and_write_nothing(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, words: tuple[str, ...], sentence: str
) -> None:
    code, out, err = run(capsys, str(MATRIX), *words)
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert sentence in err
    assert err.count("\n") == 1
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("agent,t1,t2\na,1,2\nb,0,1\n", "bad.csv line 2 has '2' for agent 'a' on task 't2'"),
        ("agent,t1,t1\na,1,1\nb,0,1\n", "the task 't1' 2 times"),
        ("agent,t1,t2\na,0,0\nb,0,0\n", "no agent of bad solves any task"),
    ],
    ids=["not 0 or 1", "task twice", "nothing solved"],
)
def test_a_matrix_that_is_none_is_one_sentence(
    capsys: pytest.CaptureFixture[str], elsewhere: Path, text: str, sentence: str
) -> None:
    (elsewhere / "bad.csv").write_text(text)
    code, out, err = run(capsys, "bad.csv")
    assert (code, out) == (1, "")
    assert sentence in err
    assert not (elsewhere / "coverage.html").exists()
