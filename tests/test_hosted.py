"""A whole study whose explanations and forecasts come from a provider, over HTTP on the loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from types import ModuleType
from typing import Any

import pytest

from predictive_credit import config, tables
from predictive_credit.agents import agent
from predictive_credit.errors import BadConfig, OutOfOrder, Stopped
from predictive_credit.records import Answer, Explanation, Usage
from predictive_credit.stages import forecast, freeze, pipeline, plan
from predictive_credit.stages.paths import Project
from predictive_credit.stages.verify import verify
from tests.small_project import N_STATES, project
from tests.trials import ONE, burn_in

KEY = "sk-secret-0123456789abcdef"
CARD = """\
Direction: increase, because rare labels weigh more.
Target: ROC AUC will increase by 0.0120 (80% interval: minus 0.0100, plus 0.0100).
Intermediate: larger weights of rare fragments.
Regime: strongest where labels are rare.
Falsifier: cross-validated ROC AUC does not increase.
Counterfactual: with balanced labels nothing would change."""
N_FORECASTS = N_STATES * 6
COST = (100 * 1.74 + 300 * 0.145 + 50 * 3.48) / 1e6  # USD a call


class Hosted:
    """Speaks the Messages protocol: writes cards, and forecasts what the card it is shown says."""

    def __init__(self) -> None:
        self.n_requests = 0
        self.served = "deepseek-v4-pro-0900"
        self.lock = Lock()
        hosted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with hosted.lock:
                    hosted.n_requests += 1
                raw = json.dumps(hosted.answer(body)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: object):
                """Silence."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        user = body["messages"][0]["content"]
        user = user if isinstance(user, str) else "".join(block["text"] for block in user)
        if "Answer with one JSON object" in user:
            point = 0.012 if "increase by 0.0120" in user else 0.03
            numbers = {"point": point, "lower": point - 0.01, "upper": point + 0.01}
            text = f"Here it is:\n```json\n{json.dumps({'roc_auc': numbers})}\n```"
        else:
            text = CARD
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": self.served,
            "content": [{"type": "thinking", "thinking": "hm {}", "signature": ""},
                        {"type": "text", "text": text}],
            "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 100, "cache_read_input_tokens": 300, "output_tokens": 50},
        }  # fmt: skip


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hosted]:
    made = Hosted()
    thread = Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("DEEPSEEK_BASE_URL", f"http://me:{KEY}@127.0.0.1:{made.server.server_port}")
    monkeypatch.setenv("DEEPSEEK_API_KEY", KEY)
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def quietly(line: str) -> None:
    """Say nothing."""


def run(made: Project, params: config.Params, *stages: ModuleType) -> None:
    """Some stages alone."""
    for stage in stages:
        stage.run(made, params, "molecular")


def test_a_provider_writes_and_forecasts_a_study_that_verifies(hosted: Hosted, tmp_path: Path):
    made, params = project(tmp_path, "forecaster=pro", "agent=pro")
    said: list[str] = []
    pipeline.run_all(made, params, say=said.append)
    paths = made.study("molecular")
    assert hosted.n_requests == N_STATES + N_FORECASTS
    assert any(f"{N_STATES} with all six slots filled, {N_STATES * COST:.4f} USD" in line for line in said)
    explanations = tables.read_records(paths.explanations, Explanation)
    assert {e.agent for e in explanations} == {"pro"}
    assert all(e.card.is_complete for e in explanations)
    answers = tables.read_records(paths.forecasts, Answer)
    assert {f.point for a in answers for f in a.forecasts if "/D/" in a.unit_id} == {0.03}
    assert {f.point for a in answers for f in a.forecasts if "/M/" in a.unit_id} == {0.012}
    for answer in answers:
        assert (answer.reply.model_requested, answer.reply.model_resolved) == (
            "deepseek-v4-pro",
            "deepseek-v4-pro-0900",
        )
        assert answer.reply.cost_usd is None  # equal replies give equal files
    for used in tables.read_records(paths.usage, Usage):
        assert used.cost_usd == pytest.approx(COST)
        assert (used.prompt_tokens, used.cached_tokens, used.completion_tokens) == (400, 300, 50)
        assert (used.attempts, used.endpoint) == (1, hosted.url)
    _, findings = verify(tmp_path)
    assert findings == []
    page = made.page.read_text()
    assert f"{N_FORECASTS * COST:,.4f} USD" in page
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_other_terms_after_the_opening_are_the_same_freeze(hosted: Hosted, tmp_path: Path):
    made, params = project(tmp_path, "forecaster=pro")
    pipeline.run_all(made, params, say=quietly)
    paths = made.study("molecular")
    frozen, replies = paths.freeze.read_bytes(), paths.forecasts.read_bytes()
    terms = ("forecaster.concurrency=3", "forecaster.max_cost=9", "prices.models.deepseek-v4-pro.input=2")
    pipeline.run_all(*project(tmp_path, "forecaster=pro", *terms), say=quietly)
    assert paths.freeze.read_bytes() == frozen
    assert tables.read_json(paths.metric("checks"))["commitment"]["status"] == "passed"
    assert hosted.n_requests == N_FORECASTS
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_bytes(replies)
    words = (
        "forecaster=replay", f"forecaster.path={recorded}", "forecaster.elicitation=json",
        "forecaster.structured=false", "forecaster.top_p=null", "forecaster.max_tokens=256",
    )  # fmt: skip
    again, params = project(tmp_path / "again", *words)
    pipeline.freeze_all(again, params, say=quietly)
    assert again.study("molecular").forecasts.read_bytes() == replies
    assert hosted.n_requests == N_FORECASTS


def test_a_budget_stops_before_it_is_passed_and_a_higher_one_goes_on(hosted: Hosted, tmp_path: Path):
    limit = 0.01
    made, params = project(tmp_path, "forecaster=pro", f"forecaster.max_cost={limit}")
    with pytest.raises(Stopped, match=r"72 units have their replies and .* raise max_cost") as raised:
        pipeline.run_all(made, params, say=quietly)
    spent = float(re.findall(r"and ([0-9.e-]+) USD are spent", str(raised.value))[0])
    assert 0 < spent <= limit
    asked = hosted.n_requests
    assert 0 < asked < N_FORECASTS
    assert not made.study("molecular").forecasts.exists()
    run(*project(tmp_path, "forecaster=pro", "forecaster.max_cost=1"), plan, forecast)
    assert hosted.n_requests == N_FORECASTS
    with pytest.raises(BadConfig, match="no price of deepseek-v9"):
        run_forecast(
            *project(tmp_path, "forecaster=pro", "forecaster.max_cost=1", "forecaster.model=deepseek-v9")
        )


def run_forecast(made: Project, params: config.Params) -> None:
    for stage in (plan.run, forecast.run):
        stage(made, params, "molecular")


def test_a_served_model_that_changes_blocks_the_freeze_until_it_is_acknowledged(
    hosted: Hosted, tmp_path: Path
):
    once, answered = hosted.answer, iter(range(10_000))
    hosted.answer = lambda body: once(body) | {"model": f"m-{min(next(answered), 1)}"}  # type: ignore[method-assign]
    made, params = project(tmp_path, "forecaster=pro")
    with pytest.raises(OutOfOrder, match=r"answered under 2 model ids .m-0, m-1."):
        pipeline.run_all(made, params, say=quietly)
    words = ("forecaster=pro", "forecaster.acknowledged_models=[m-0,m-1]")
    run(*project(tmp_path, *words), plan, forecast, freeze)
    assert hosted.n_requests == N_FORECASTS


def test_without_a_key_nothing_is_asked_and_the_variable_is_named(
    hosted: Hosted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("DEEPSEEK_API_KEY")
    _, params = project(tmp_path, "agent=flash")
    with pytest.raises(BadConfig, match=r"flash .deepseek-v4-flash. needs a key .* DEEPSEEK_API_KEY"):
        agent.make(params.agent, burn_in(), None, ONE, locate=lambda _: pytest.fail("it needs no file"))
    assert hosted.n_requests == 0
