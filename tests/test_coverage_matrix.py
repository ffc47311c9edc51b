"""A matrix of agents and tasks is read whole from a CSV or reports, or refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from predictive_credit.coverage.matrix import Matrix, parse_csv, read
from predictive_credit.errors import BadSource

CSV = "agent,t1,t2,t3\na,1,0,0\nb,1,1,0\n"
REPORT = {"resolved_ids": ["t1"], "submitted_ids": ["t1", "t2", "t3"], "total_instances": 3}


def refusal(path: Path, tasks: Path | None = None) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(BadSource) as caught:
        read(path, tasks)
    return str(caught.value)


def written(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def content(matrix: Matrix) -> tuple[tuple[str, ...], tuple[str, ...], list[list[int]]]:
    return matrix.agents, matrix.tasks, matrix.solved.astype(int).tolist()


def test_a_csv_gives_agents_tasks_and_cells_in_the_order_of_the_file(tmp_path: Path) -> None:
    matrix = read(written(tmp_path, "runs.csv", CSV))
    assert content(matrix) == (("a", "b"), ("t1", "t2", "t3"), [[1, 0, 0], [1, 1, 0]])
    assert (matrix.name, matrix.covered, matrix.rates.tolist()) == ("runs", 2 / 3, [1 / 3, 2 / 3])


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + CSV,
        CSV.replace("\n", "\r\n"),
        CSV + "\n,,,\n",
        CSV.replace("agent", "model"),
        CSV.replace("1,0,0", "True, 0.0 ,false"),
        CSV.replace("t1,", '"t1",'),
    ],
    ids=["byte order mark", "CRLF", "blank lines", "another first column", "pandas words", "quotes"],
)
def test_spellings_of_one_matrix_read_alike(text: str) -> None:
    assert content(parse_csv(text.encode(), "runs.csv")) == content(parse_csv(CSV.encode(), "runs.csv"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "m.csv is empty"),
        (" \n\n", "m.csv is empty"),
        ("agent,t1,t2\n", "m has 0 agents; a forecast needs at least 2"),
        ("agent,t1,t2\na,1,0\n", "m has 1 agents; a forecast needs at least 2"),
        ("agent,t1\na,1\nb,0\n", "m has 1 tasks; a forecast needs at least 2"),
        (CSV.replace("1,1,0", "1,2,0"), "m.csv line 3 has '2' for agent 'b' on task 't2'; write 1"),
        (CSV.replace("1,1,0", "1,0.5,0"), "m.csv line 3 has '0.5' for agent 'b' on task 't2'"),
        (CSV.replace("1,1,0", "1,,0"), "m.csv line 3 has no value for agent 'b' on task 't2'"),
        (CSV.replace("1,1,0", "1,1"), "m.csv line 3 (agent 'b') has 3 cells where the header has 4"),
        (CSV.replace("1,1,0", "1,1,0,1"), "m.csv line 3 (agent 'b') has 5 cells where the header has 4"),
        (CSV.replace("b,", "a,"), "the first column of m.csv has the agent 'a' 2 times; keep one"),
        (CSV.replace("t3", "t1"), "the header of m.csv has the task 't1' 2 times; keep one"),
        (CSV.replace("t2", ""), "the header of m.csv has an empty task name"),
        (CSV.replace("b,", ","), "m.csv line 3 names no agent"),
        (CSV.replace("1", "0"), "no agent of m solves any task; there is nothing to forecast from"),
        (CSV + '"c,1', "m.csv line 4 is not CSV"),
    ],
)
def test_a_wrong_csv_is_refused_with_the_place_of_the_mistake(
    tmp_path: Path, text: str, sentence: str
) -> None:
    said = refusal(written(tmp_path, "m.csv", text))
    assert sentence in said
    assert "\n" not in said


def test_bytes_that_are_not_utf8_name_their_line(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_bytes(CSV.encode() + b"\xff,1,1,1\n")
    assert refusal(path) == "m.csv line 4 is not UTF-8; save the file as UTF-8"


def test_a_missing_file_names_its_path(tmp_path: Path) -> None:
    assert "No such file or directory); correct the path" in refusal(tmp_path / "none.csv")


@pytest.mark.parametrize("place", ["{}.json", "{}/results.json", "{}/results/results.json"])
def test_a_folder_of_reports_counts_every_submitted_task(tmp_path: Path, place: str) -> None:
    written(tmp_path, place.format("b"), REPORT)
    written(tmp_path, place.format("a"), {**REPORT, "resolved_ids": []})
    matrix = read(tmp_path)
    assert content(matrix) == (("a", "b"), ("t1", "t2", "t3"), [[0, 0, 0], [1, 0, 0]])


def test_the_digest_of_a_folder_follows_its_reports(tmp_path: Path) -> None:
    written(tmp_path, "a.json", REPORT)
    written(tmp_path, "b.json", REPORT)
    before = read(tmp_path).sha256
    assert read(tmp_path).sha256 == before
    written(tmp_path, "b.json", {**REPORT, "resolved_ids": ["t2"]})
    assert read(tmp_path).sha256 != before


def test_one_json_object_holds_reports_or_bare_lists(tmp_path: Path) -> None:
    path = written(tmp_path, "all.json", {"b": ["t2"], "a": REPORT})
    assert content(read(path)) == (("b", "a"), ("t1", "t2", "t3"), [[0, 1, 0], [1, 0, 0]])


@pytest.mark.parametrize(
    ("name", "text"), [("tasks.txt", "t3\nt1\n\nt2\n"), ("tasks.json", ["t3", "t1", "t2"])]
)
def test_resolved_lists_need_the_file_of_all_tasks_or_the_blind_spot_would_vanish(
    tmp_path: Path, name: str, text: Any
) -> None:
    path = written(tmp_path, "all.json", {"a": ["t1"], "b": ["t1", "t2"]})
    assert "the tasks that nobody solved are unknown; give the full list of tasks" in refusal(path)
    matrix = read(path, written(tmp_path, name, text))
    assert matrix.tasks == ("t3", "t1", "t2")
    assert matrix.covered == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        ({"a": ["t1", "t1"], "b": REPORT}, "resolved of all.json agent 'a' has the task 't1' 2 times"),
        ({"a": {"solved": []}, "b": REPORT}, "all.json agent 'a' has no list resolved_ids or resolved"),
        ({"a": "t1", "b": REPORT}, "all.json agent 'a' is not a report"),
        (
            {"a": {"resolved": "t1"}, "b": REPORT},
            "resolved of all.json agent 'a' is not a list of task names",
        ),
        ({"a": REPORT, "b": {**REPORT, "total_instances": 9}}, "all names 3 of 9 tasks; give the full list"),
        (["t1"], "all.json is not an object {agent: resolved tasks}"),
        ('{"a": ["t1"], "a": ["t2"]}', "all.json has the key 'a' 2 times"),
        ("{", "all.json is not JSON"),
        ({}, "all is empty; give a report for each agent"),
    ],
)
def test_wrong_reports_are_refused_with_their_agent(tmp_path: Path, found: Any, sentence: str) -> None:
    assert sentence in refusal(written(tmp_path, "all.json", found))


def test_a_resolved_task_outside_the_list_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "all.json", {"a": ["t1"], "b": ["t9"]})
    tasks = written(tmp_path, "tasks.txt", "t1\nt2\n")
    assert refusal(path, tasks) == "agent 'b' resolved 't9', which the list of tasks lacks; add it"


def test_a_folder_without_reports_or_with_two_of_one_agent_is_refused(tmp_path: Path) -> None:
    assert "holds no report; expected <agent>.json" in refusal(tmp_path)
    written(tmp_path, "a.json", REPORT)
    written(tmp_path, "a/results.json", REPORT)
    assert "has the agent 'a' 2 times; keep one" in refusal(tmp_path)


def test_a_csv_takes_no_file_of_tasks(tmp_path: Path) -> None:
    tasks = written(tmp_path, "tasks.txt", "t1\n")
    assert "has its tasks in its header" in refusal(written(tmp_path, "m.csv", CSV), tasks)


def test_some_of_the_agents_keep_their_rows() -> None:
    part = parse_csv(CSV.encode(), "m.csv").of([1])
    assert (part.agents, part.solved.tolist()) == (("b",), [[True, True, False]])
