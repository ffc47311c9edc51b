"""The forecast stage is really killed, at moments of chance, and loses nothing."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from predictive_credit import tables
from predictive_credit.records import Answer
from predictive_credit.stages import (
    burn_in,
    execute,
    explain,
    features,
    fetch,
    forecast,
    freeze,
    plan,
    states,
)
from tests.small_project import project

NAME = "molecular"
N_UNITS = 8  # two states, two contexts, two calls: a prompt after its like, and after another state's


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    """A planned project of eight units for the embedded model."""
    folder = tmp_path_factory.mktemp("kill")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, params = project(folder / "p", n_endpoints=1, budgets=[1.0], contexts=["D", "M"])
        for pool in params.pools:
            fetch.run(made, params, pool)
            features.run(made, params, pool)
        for stage in (states, burn_in, execute, explain, plan):
            stage.run(made, params, NAME)
        yield made, params


def start(made) -> subprocess.Popen[bytes]:
    words = [
        sys.executable,
        "-m",
        "predictive_credit.stages.forecast",
        "--study",
        NAME,
        "--root",
        str(made.root),
    ]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ))


def lines(journal) -> list[bytes]:
    data = journal.read_bytes() if journal.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines()


def test_a_killed_forecast_stage_resumes_without_loss_or_repetition(planned):
    made, params = planned
    paths, rng = made.study(NAME), random.Random(3)
    journal = paths.journal("forecast")
    before = {path.name: path.read_bytes() for path in (paths.plan, paths.prompts, paths.ledger("planned"))}
    committed: list[bytes] = []
    for more in (1, 1, 2):  # replies to wait for, then a random while, so that any instant can be hit
        wanted = len(committed) + more
        process = start(made)
        deadline = time.monotonic() + 120
        while len(lines(journal)) < wanted and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(rng.uniform(0.0, 1.0))
        process.send_signal(signal.SIGKILL)
        _, errors = process.communicate()
        assert process.returncode == -signal.SIGKILL, errors.decode()
        now = lines(journal)
        assert now[: len(committed)] == committed  # nothing committed was lost or rewritten
        assert len(now) >= wanted
        assert not paths.forecasts.exists()
        committed = now
    # A kill inside the write itself leaves half a line.
    with journal.open("ab") as file:
        file.write(committed[-1][: len(committed[-1]) // 2])
    process = start(made)
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors.decode()
    assert b"cut off a half-written last line" in errors
    assert f"({len(committed)} were answered before".encode() in printed
    whole = lines(journal)
    assert whole[: len(committed)] == committed
    entries = [json.loads(line) for line in whole]
    assert len(entries) == len({entry["unit_id"] for entry in entries}) == N_UNITS  # each unit asked once
    assert {
        path.name: path.read_bytes() for path in (paths.plan, paths.prompts, paths.ledger("planned"))
    } == before
    freeze.run(made, params, NAME)
    record = tables.read_json(paths.freeze)
    assert record["units"]["forecasts"] == N_UNITS
    assert {e["unit_id"]: e["reply"]["text"] for e in entries} == {
        a.unit_id: a.reply.text for a in tables.read_records(paths.forecasts, Answer)
    }


def test_an_interrupted_stage_says_how_to_resume(planned):
    made, _ = planned
    made.study(NAME).journal("forecast").unlink()
    made.study(NAME).forecasts.unlink(missing_ok=True)
    process = start(made)
    while not lines(made.study(NAME).journal("forecast")) and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"run the same command again to resume" in errors
    assert b"Traceback" not in errors
    assert len(lines(made.study(NAME).journal("forecast"))) >= 1


def test_a_fresh_run_in_the_same_order_gives_the_same_replies(planned, tmp_path):
    made, params = planned
    texts = []
    for _ in range(2):
        made.study(NAME).journal("forecast").unlink(missing_ok=True)
        forecast.run(made, params, NAME)
        texts.append(made.study(NAME).forecasts.read_bytes())
    assert texts[0] == texts[1]
