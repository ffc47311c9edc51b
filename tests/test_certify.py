"""`predictive-credit certify` and its stage: what a user types, sees and gets."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from predictive_credit import cli, config
from predictive_credit.agents import model_agent
from predictive_credit.certification import ledger, tasks
from predictive_credit.certification.tasks.task import Budget
from predictive_credit.errors import BadConfig, Stopped
from predictive_credit.models import asking
from predictive_credit.records import Prompt, Reply
from predictive_credit.sources import wheels
from predictive_credit.stages import certify, certify_evidence, freeze
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from tests.loopback import Said, scripted

SMALL = Budget(challengers=2, positive_controls=1)
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both budgets of the device are as small as can be."""
    design = replace(tasks.DESIGNS["device"], quick=SMALL, full=SMALL)
    monkeypatch.setattr(tasks, "DESIGNS", {**tasks.DESIGNS, "device": design})


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], root: Path) -> Run:
    def words(*given: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main(("certify", "--root", str(root), *given))
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    return words


@pytest.fixture
def params(root: Path) -> config.Params:
    return study_params.load(root / "params.yaml")


def outcome(to: Path) -> str:
    return str(json.loads((to / "episodes" / "main.json").read_text())["result"]["outcome"])


def test_an_audit_is_run_told_gate_by_gate_and_verifies(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("2026\n")
    to = tmp_path / "run"
    words = ("device", "--budget", "quick", "--to", str(to), "--secret-file", str(tmp_path / "secret"))
    code, out, err = run(*words)
    assert code == 0
    assert "5/5" in err  # episodes, in the bar
    lines = out.splitlines()
    assert lines[0] == "Device calibration"
    assert lines[1].startswith("  core inconclusive (audit incomplete): ")
    assert [line for line in lines if "challengers that reach the line" in line and line.endswith("held")]
    assert [line for line in lines if "positive controls" in line and "1 of 1" in line and "not held" in line]
    assert lines[-1] == f"{to}/bundle: check it with `predictive-credit verify {to}/bundle`"
    kept = (to / "ledger.jsonl").read_bytes()
    assert run(*words)[1] == out  # it goes on, and nothing is left to do
    assert (to / "ledger.jsonl").read_bytes() == kept
    with pytest.raises(SystemExit) as stop:
        cli.main(("verify", str(to / "bundle"), "--json"))
    assert stop.value.code == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("chess",), "there is no task chess; the tasks are sqlite, catalyst, device, knapsack"),
        (("device", "--agent", "playbook"), "agent playbook writes explanations and cannot act"),
        (("device", "--agent", "nobody"), "cannot compose agent=nobody"),
        (("device", "--agent", "pro"), "needs a key and the environment variable"),
        (("device", "--secret-file", "gone"), "gone holds no secret"),
        (("device", "--attest-isolation", " "), "attest_isolation needs isolation_reason"),
    ],
    ids=["task", "playbook", "agent", "key", "secret", "isolation"],
)
def test_words_that_do_not_fit_are_one_sentence_and_write_nothing(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str
) -> None:
    for variable in ("DEEPSEEK_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    code, out, err = run(*words, "--to", str(tmp_path / "run"))
    assert (code, out) == (1, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


class Nonsense:
    """A model that greets."""

    name = "nonsense"

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []

    def answer(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        return Reply(text="Hello!", finish_reason="stop", model_requested=self.name, model_resolved=None)

    def close(self) -> None:
        pass


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Nonsense:
    made = Nonsense()
    monkeypatch.setattr(wheels, "gguf", lambda chosen: Path("model.gguf"))
    monkeypatch.setattr(model_agent, "embedded", lambda path, chosen: made)
    return made


def test_a_models_replies_are_kept_and_it_is_not_asked_again(
    run: Run, tmp_path: Path, model: Nonsense
) -> None:
    words = ("device", "--agent", "smollm2", "--to", str(tmp_path))
    code, out, _ = run(*words)
    assert code == 0
    assert "core inconclusive (audit incomplete)" in out
    assert outcome(tmp_path) == "model_failure"
    assert (tmp_path / certify.REPLIES).read_text().count('"text":"Hello!"') == len(model.prompts) == 1
    assert '"action": "experiment" or "finish"' in model.prompts[0].user
    for gone in ("bundle", "episodes"):
        shutil.rmtree(tmp_path / gone)
    (tmp_path / "ledger.jsonl").unlink()
    (tmp_path / "registration.json").unlink()
    assert run(*words)[0] == 0  # everything is made again, and the reply is still there
    assert len(model.prompts) == 1


def test_a_provider_acts_over_the_network_and_its_key_stays_out_of_every_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-secret-key")
    action = {"action": "finish", "candidate": {"gains": {f"c{k:02d}": 1 for k in range(24)}}}
    said = {"content": [{"type": "text", "text": json.dumps(action)}], "stop_reason": "end_turn"}
    with scripted(Said(body=said)) as server:
        monkeypatch.setenv("DEEPSEEK_BASE_URL", server.url)
        code, _, _ = run("device", "--agent", "pro", "--to", str(tmp_path))
    assert code == 0
    certificate = json.loads((tmp_path / "bundle" / "payload" / "certificate.json").read_text())
    assert "private_isolation_pass not attested" in certificate["integrity"]["errors"]
    assert outcome(tmp_path) == "artifact"
    assert len(server.got) == len({got.body["messages"][-1]["content"] for got in server.got}) == 5
    for path in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert b"a-secret-key" not in path.read_bytes()


def test_a_model_that_is_not_there_is_infrastructure_and_no_failure_of_the_model(
    run: Run, tmp_path: Path, model: Nonsense, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: object, **told: object) -> None:
        raise Stopped("the server is away")

    monkeypatch.setattr(asking, "ask", stopped)
    assert run("device", "--agent", "smollm2", "--to", str(tmp_path))[0] == 0
    assert outcome(tmp_path) == "infrastructure_invalid"
    assert "the server is away" in (tmp_path / "episodes" / "main.json").read_text()


def test_isolation_of_a_model_is_attested_only_with_a_registered_reason(
    run: Run, tmp_path: Path, model: Nonsense
) -> None:
    for to, words, attested in (("one", (), False), ("two", ("--attest-isolation", "a container"), True)):
        run("device", "--agent", "smollm2", "--to", str(tmp_path / to), *words)
        payload = tmp_path / to / "bundle" / "payload"
        integrity = json.loads((payload / "integrity.json").read_text())
        assert integrity["private_isolation_pass"] is attested
        notes = json.loads((payload / "registration.json").read_text())["notes"]
        assert (notes["isolation_basis"] == "a container") is attested


# -- the stage


def test_the_stage_graph_audits_every_task_at_the_scales_budget(params: config.Params, root: Path) -> None:
    chosen = certify.audits(params)
    assert {name: audit.task for name, audit in chosen.items()} == {name: name for name in tasks.BUILD}
    assert {(audit.agent, audit.budget) for audit in chosen.values()} == {("scripted", "quick")}
    default = yaml.safe_load((root / "conf" / "certification" / "default.yaml").read_text())
    assert {audit["budget"] for audit in default["audits"].values()} == {"${scale}"}
    ignored = (root / "data" / "certification" / ".gitignore").read_text().split()
    assert sorted(ignored) == sorted(f"/{name}" for name in chosen)


def test_the_stage_writes_a_bundle_its_metric_and_a_tab(params: config.Params, tmp_path: Path) -> None:
    project = Project(tmp_path)
    assert certify_evidence.tab(project) == ()
    said = certify.run(project, params, "device")
    assert said == "device: core inconclusive, evidence not_tested"
    metric = json.loads(project.audit_metric("device").read_text())
    assert metric["counts"]["challengers"] == 2
    assert metric["core"] == {"class": "audit_incomplete", "verdict": "inconclusive"}
    assert metric["budget"] == "quick"
    (tab,) = certify_evidence.tab(project)
    assert tab.title == "Discovery audits"
    assert f'id="{tab.prefix}-title"' in tab.html
    assert "Device calibration, this run" in tab.html
    assert "full budget" not in tab.html
    told = ledger.read(project.audit("device") / "ledger.jsonl")[-1].payload["secret"]
    assert told == hashlib.sha256(str(params.seed).encode()).hexdigest()


def test_what_the_params_do_not_hold_is_one_sentence(params: config.Params, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"no audit 'chess' in params.yaml; it holds catalyst, device"):
        certify.run(Project(tmp_path), params, "chess")
    with pytest.raises(BadConfig, match=r"params.yaml has no certification; write it with"):
        certify.run(Project(tmp_path), replace(params, certification=None), "device")
    assert not any(tmp_path.iterdir())


def test_no_study_of_explanations_is_frozen_with_it(params: config.Params) -> None:
    assert "certification" not in freeze.frozen_params(params, "molecular")
