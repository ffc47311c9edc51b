"""The protocol's claims, on a whole run of the small project."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from predictive_credit import tables, vault
from predictive_credit.config import CsvPool, Params
from predictive_credit.errors import BadConfig, OutOfOrder, Sealed, Tampered
from predictive_credit.journal import Journal
from predictive_credit.records import Answer, Outcome, PromptText, Unit
from predictive_credit.stages import burn_in as burn_in_stage
from predictive_credit.stages import (
    decide,
    evidence,
    execute,
    explain,
    features,
    fetch,
    forecast,
    freeze,
    pipeline,
    plan,
    report,
    score,
    states,
)  # fmt: skip
from predictive_credit.stages import open as open_stage
from predictive_credit.stages.paths import RECALIBRATION, Project
from predictive_credit.studies.molecular import execute as execution
from predictive_credit.studies.molecular import features as molecular_features
from predictive_credit.studies.molecular import states as molecular
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.study import Study
from tests import small_pool
from tests.small_project import N_STATES, Reader, decided, project, use, write_table

NAME = "molecular"
TO_PLAN = (states, burn_in_stage, execute, explain, plan)


def run_until(made: Project, params, last, *, pools=True):
    """Every stage up to and including `last`."""
    if pools:
        for pool in params.pools:
            fetch.run(made, params, pool)
            features.run(made, params, pool)
    for stage in (*TO_PLAN, forecast, freeze, open_stage, score, decide):
        stage.run(made, params, NAME)
        if stage is last:
            return


@pytest.fixture(scope="module")
def moments(tmp_path_factory):
    """Two runs in one vault: one kept as it was planned, forecast and frozen, one run to its end.

    A moment is a folder of a project `p` and the `vault` as it was then.
    """
    folder = tmp_path_factory.mktemp("moments")

    def keep(made: Project, moment: str) -> None:
        shutil.copytree(made.root, folder / moment / "p")
        shutil.copytree(folder / "vault", folder / moment / "vault")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, params = project(folder / "staged")
        use(Reader(), patch)
        run_until(made, params, plan)
        keep(made, "planned")
        forecast.run(made, params, NAME)
        keep(made, "forecast")
        freeze.run(made, params, NAME)
        keep(made, "frozen")
        whole, chosen = decided(folder / "whole", patch)
        keep(whole, "decided")
    return folder, {"planned": params, "forecast": params, "frozen": params, "decided": chosen}


@pytest.fixture
def at(moments, tmp_path):
    """A project of this test's own, in its own vault, at one of the moments."""
    folder, params = moments

    def copied(moment: str) -> tuple[Project, Params]:
        shutil.copytree(folder / moment, tmp_path, dirs_exist_ok=True)
        return Project(tmp_path / "p"), params[moment]

    return copied


def checked(made: Project) -> dict[str, Any]:
    """The commitment check of a decided project."""
    return dict(tables.read_json(made.study(NAME).metric("checks"))["commitment"])


def test_a_run_ends_with_a_decision_a_page_and_a_closed_ledger(at):
    made, _ = at("decided")
    paths = made.study(NAME)
    decision = tables.read_json(paths.metric("decision"))
    assert decision["status"] in ("harm_confirmed", "confirmation_no_go")
    assert len(decision["gates"]) == 4
    assert made.page.stat().st_size > 100_000
    found = evidence.workspace(made, NAME)
    assert [e.phase for e in found.ledger] == ["planned", "sealed", "frozen", "opened", "decided"]
    assert len(found.answers) == N_STATES * 3 * 2
    # The scale is on every artifact that a person may meet alone.
    for name in ("states.jsonl", "plan.jsonl", "forecasts.jsonl", "outcomes.csv", "freeze.json"):
        assert b"quick" in found.bytes(name)


def test_a_reader_of_cards_drifts_less_with_a_card_than_without(at):
    made, _ = at("decided")
    contexts = tables.read_json(made.study(NAME).metric("contexts"))["roc_auc"]
    assert contexts["M"]["drift"] < 0.1 * contexts["D"]["drift"]
    assert tables.read_json(made.study(NAME).metric("checks"))["sensitivity"]["status"] == "passed"


def test_equal_runs_give_equal_artifacts_byte_for_byte(moments, at, tmp_path, monkeypatch):
    first, _ = at("decided")
    folder, params = moments
    shutil.copytree(folder / "frozen", tmp_path / "other")
    monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(tmp_path / "other" / "vault"))
    second = Project(tmp_path / "other" / "p")
    open_stage.run(second, params["frozen"], NAME)
    for name in ("states", "explanations", "plan", "prompts", "forecasts", "sealed", "outcomes"):
        assert getattr(first.study(NAME), name).read_bytes() == getattr(second.study(NAME), name).read_bytes()


def test_recalibration_stands_beside_the_metrics_and_outside_what_is_bundled(at):
    made, _ = at("decided")
    found = tables.read_json(made.study(NAME).metric(RECALIBRATION))
    assert (found["study"], found["scale"]) == (NAME, "quick")
    contexts = tables.read_json(made.study(NAME).metric("contexts"))["roc_auc"]
    for context in "DMS":
        assert found["roc_auc"][context]["raw"]["coverage"] == contexts[context]["coverage"]
    workspace = evidence.workspace(made, NAME)
    assert evidence.BESIDE in workspace.ledger[-1].digests
    assert evidence.BESIDE not in evidence.FILES
    assert "Recalibrated on the other endpoints" in made.page.read_text()


class TestNothingHeldOutReachesAPrompt:
    def test_no_planted_outcome_appears_in_any_prompt_or_card(self, tmp_path, monkeypatch):
        made, params = project(tmp_path / "p")
        canaries: dict[str, float] = {}

        def planted(table, computed, wanted, splits, *, execution):
            rng = np.random.default_rng(11)
            for state in wanted:
                canaries[state.id] = float(rng.uniform(-0.09, 0.09))
            return tuple(Outcome(state_id=s.id, target="roc_auc", value=canaries[s.id]) for s in wanted)

        monkeypatch.setattr(execution, "execute", planted)
        use(Reader(), monkeypatch)
        run_until(made, params, forecast)
        paths = made.study(NAME)
        seen = b"".join(
            path.read_bytes()
            for path in (paths.prompts, paths.explanations, paths.states, paths.journal("forecast"))
        ).decode()
        assert len(canaries) == N_STATES
        for value in canaries.values():
            digits = f"{abs(value):.6f}"
            # Four digits of a ROC AUC change as they would be printed, or as percentage points.
            assert not re.search(rf"{digits[:7]}\d", seen)
            assert repr(value) not in seen
            assert f"{100 * abs(value):.4f}" not in seen

    def test_flipping_every_held_out_label_changes_outcomes_and_no_prompt(self, at, monkeypatch):
        made, params = at("planned")
        before = {n: (made.study(NAME).data / n).read_bytes() for n in ("states.jsonl", "prompts.jsonl")}
        sealed = made.study(NAME).sealed.read_bytes()
        true_table, true_features = molecular_features.load(made.features("small"))
        chosen = params.studies[NAME]
        assert isinstance(chosen, MolecularConfig)
        splits = molecular.splits(true_table, chosen, seed=params.seed)
        for endpoint in true_table.endpoints:
            # A molecule held out under one seed trains under another: flip those held out in both.
            tests = [set(split.test) for (name, _), split in splits.items() if name == endpoint]
            rows = sorted(set.intersection(*tests))
            assert rows
            flipped = true_table.label(endpoint).copy()
            flipped[rows] = 1 - flipped[rows]
            true_table.labels[endpoint] = flipped
        monkeypatch.setattr(molecular_features, "load", lambda folder: (true_table, true_features))
        # The true splits: a fresh stratification would itself have read the flipped labels.
        monkeypatch.setattr(molecular, "splits", lambda *_, **__: splits)
        for stage in (states, execute, explain, plan):
            stage.run(made, params, NAME)
        assert before == {n: (made.study(NAME).data / n).read_bytes() for n in before}
        assert made.study(NAME).sealed.read_bytes() != sealed


class TestOrder:
    def test_outcomes_stay_sealed_until_the_freeze(self, at):
        made, params = at("planned")
        with pytest.raises(Sealed) as refusal:
            open_stage.run(made, params, NAME)
        assert str(refusal.value) == (
            f"molecular: outcomes are sealed while the ledger is planned; unanswered units: {N_STATES * 6}, "
            "first molecular/E0/0.5/1/D/1. Run the forecast and freeze stages first."
        )
        assert not made.study(NAME).outcomes.exists()
        committed = tables.read_json(made.study(NAME).commitment)["outcomes"].values()
        assert vault.opened_before(committed) == (0, None)

    def test_an_unanswered_unit_blocks_the_freeze(self, at):
        made, params = at("forecast")
        paths = made.study(NAME)
        answers = tables.read_records(paths.forecasts, Answer)
        tables.write_records(paths.forecasts, answers[:3] + answers[4:], scale="quick")
        with pytest.raises(OutOfOrder, match=f"unanswered units: 1, first {answers[3].unit_id}"):
            freeze.run(made, params, NAME)
        assert not paths.freeze.exists()

    @pytest.mark.parametrize("name", ["forecasts.jsonl", "explanations.jsonl", "burn_in.json", "freeze.json"])
    def test_a_file_changed_after_the_freeze_keeps_the_outcomes_sealed(self, at, name):
        made, params = at("frozen")
        path = made.study(NAME).data / name
        path.write_bytes(path.read_bytes().replace(b"quick", b"quack", 1))
        with pytest.raises(Tampered, match=re.escape(name)):
            open_stage.run(made, params, NAME)
        assert not made.study(NAME).outcomes.exists()

    def test_a_served_model_that_changes_inside_a_study_blocks_the_freeze(self, at, monkeypatch):
        class Moving(Reader):
            def answer(self, prompt):
                return replace(super().answer(prompt), model_resolved=f"reader {1 + (self.asked > 9)}")

        made, params = at("planned")
        use(Moving(), monkeypatch)
        forecast.run(made, params, NAME)
        with pytest.raises(OutOfOrder, match=r"2 model ids \(reader 1, reader 2\)"):
            freeze.run(made, params, NAME)
        told = replace(
            params, forecaster=replace(params.forecaster, acknowledged_models=("reader 1", "reader 2"))
        )
        freeze.run(made, told, NAME)
        assert tables.read_json(made.study(NAME).freeze)["models"]["resolved"] == ["reader 1", "reader 2"]

    def test_a_commitment_made_after_the_forecasts_is_refused(self, at, monkeypatch):
        made, params = at("forecast")
        convenient = lambda table, features, wanted, splits, *, execution: tuple(  # noqa: E731
            Outcome(state_id=s.id, target="roc_auc", value=0.01) for s in wanted
        )
        monkeypatch.setattr(execution, "execute", convenient)
        execute.run(made, params, NAME)
        with pytest.raises(Tampered, match=r"commitment\.json changed after it was planned"):
            freeze.run(made, params, NAME)

    @pytest.mark.parametrize("again", ["equal", "other draws", "other replies"])
    def test_what_is_frozen_after_the_opening_says_so_unless_it_is_equal(self, at, monkeypatch, again):
        made, params = at("decided")
        use(Reader(), monkeypatch)
        paths = made.study(NAME)
        before = paths.decided.read_bytes()
        assert checked(made)["status"] == "passed"
        if again == "other draws":
            params = replace(params, inference=replace(params.inference, draws=400))
        if again == "other replies":
            paths.journal("forecast").unlink()
            use(Reader(name="another"), monkeypatch)
        run_until(made, params, decide, pools=False)
        if again == "equal":
            assert paths.decided.read_bytes() == before
        else:
            assert checked(made)["status"] == "failed"
            assert f"({N_STATES} of {N_STATES} outcomes)" in checked(made)["planned_after_opening"]

    def test_outcomes_known_from_a_smaller_run_are_counted(self, tmp_path, monkeypatch):
        use(Reader(), monkeypatch)
        run_until(*project(tmp_path / "p", n_endpoints=1), open_stage)
        made, params = project(tmp_path / "p", n_endpoints=3)
        run_until(made, params, decide)
        assert checked(made)["status"] == "failed"
        assert f"(4 of {N_STATES} outcomes)" in checked(made)["planned_after_opening"]

    def test_a_second_answer_to_a_unit_blocks_the_freeze(self, at):
        made, params = at("forecast")
        answers = tables.read_records(made.study(NAME).forecasts, Answer)
        tables.write_records(made.study(NAME).forecasts, [*answers, answers[0]], scale="quick")
        with pytest.raises(Tampered, match=f"answers {answers[0].unit_id} more than once"):
            freeze.run(made, params, NAME)

    def test_a_forecast_that_its_reply_does_not_say_blocks_the_freeze(self, at):
        made, params = at("forecast")
        first, *rest = tables.read_records(made.study(NAME).forecasts, Answer)
        moved = replace(first, forecasts=(replace(first.forecasts[0], point=0.0),))
        tables.write_records(made.study(NAME).forecasts, [moved, *rest], scale="quick")
        with pytest.raises(
            OutOfOrder, match=f"1 forecasts are not what their replies say, first {first.unit_id}"
        ):
            freeze.run(made, params, NAME)

    def test_a_reply_that_is_not_the_journals_blocks_the_freeze_although_its_forecast_follows(self, at):
        made, params = at("forecast")
        first, second, *rest = tables.read_records(made.study(NAME).forecasts, Answer)
        moved = replace(first, reply=second.reply, forecasts=tuple(
            replace(forecast, unit_id=first.unit_id) for forecast in second.forecasts
        ))  # fmt: skip
        assert moved.reply.text != first.reply.text
        tables.write_records(made.study(NAME).forecasts, [moved, second, *rest], scale="quick")
        with pytest.raises(
            Tampered, match=f"the reply to {first.unit_id} is not the one in .*forecast.jsonl"
        ):
            freeze.run(made, params, NAME)

    @pytest.mark.parametrize("what", ["rule", "scoring code", "params"])
    def test_nothing_is_decided_by_another_rule_code_or_params_than_were_frozen(self, at, monkeypatch, what):
        made, params = at("decided")
        before = made.study(NAME).metric("decision").read_bytes()
        if what == "rule":
            monkeypatch.setattr(Study, "rule_source", property(lambda study: b"# as we like it"))
        elif what == "scoring code":
            monkeypatch.setattr(freeze, "scoring_digest", lambda study: "of something else")
        else:
            params = replace(params, seed=params.seed + 1)
        with pytest.raises(OutOfOrder, match=f"{NAME}: {what} changed after the freeze; restore"):
            decide.run(made, params, NAME)
        assert made.study(NAME).metric("decision").read_bytes() == before

    def test_a_ledger_that_does_not_end_with_a_freeze_opens_nothing(self, at):
        made, params = at("frozen")
        paths = made.study(NAME)
        for spoiled in (b"", paths.ledger("planned").read_bytes()):
            paths.ledger("frozen").write_bytes(spoiled)
            with pytest.raises(Sealed, match="does not end with a freeze"):
                open_stage.run(made, params, NAME)


def test_a_study_whose_states_have_no_donor_ends_before_anything_is_executed_or_asked(tmp_path, monkeypatch):
    monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(tmp_path / "vault"))
    made, params = project(tmp_path / "p")
    chosen = params.studies[NAME]
    assert isinstance(chosen, MolecularConfig)
    alone = replace(params, studies={NAME: replace(chosen, seeds=(1,))})
    with pytest.raises(BadConfig, match=r"has one seed \(1\), so no other state can lend it an explanation"):
        run_until(made, alone, states)
    assert not made.study(NAME).states.exists()


class TestAskedOnce:
    def test_a_second_run_asks_nothing(self, at, monkeypatch):
        made, params = at("planned")
        reader = Reader()
        use(reader, monkeypatch)
        forecast.run(made, params, NAME)
        forecasts = made.study(NAME).forecasts.read_bytes()
        assert reader.asked == N_STATES * 6
        made.study(NAME).forecasts.unlink()
        assert "(72 were answered before" in forecast.run(made, params, NAME)
        assert reader.asked == N_STATES * 6
        assert made.study(NAME).forecasts.read_bytes() == forecasts

    def test_changing_one_endpoints_data_asks_that_endpoints_units_only(self, at, monkeypatch):
        made, params = at("planned")
        reader = Reader()
        use(reader, monkeypatch)
        forecast.run(made, params, NAME)
        before = {u.id: u.prompt_digest for u in tables.read_records(made.study(NAME).plan, Unit)}
        labels = small_pool.labels(3)["E1"]
        flipped = [1 - v if i % 7 == 0 else v for i, v in enumerate(labels)]
        write_table(made.root / "table.csv", 3, E1=flipped)
        small = params.pools["small"]
        assert isinstance(small, CsvPool)
        moved = replace(small, path=str(made.root / "table.csv"))
        run_until(made, replace(params, pools=params.pools | {"small": moved}), forecast)
        after = {u.id: u.prompt_digest for u in tables.read_records(made.study(NAME).plan, Unit)}
        changed = {unit.split("/")[1] for unit in before if before[unit] != after[unit]}
        assert changed == {"E1"}
        assert reader.asked == N_STATES * 6 + 4 * 6

    def test_an_unreadable_reply_is_the_fallback_and_stays_in_the_denominator(self, at, monkeypatch):
        class Mumbling(Reader):
            def answer(self, prompt):
                reply = super().answer(prompt)
                broken = {
                    3: "I cannot say.",
                    5: "",
                    8: "ROC AUC will increase by nan (80% interval: minus 1, plus 1)",
                }
                return replace(reply, text=broken.get(self.asked, reply.text))

        made, params = at("planned")
        use(Mumbling(), monkeypatch)
        for stage in (forecast, freeze, open_stage, score, decide):
            stage.run(made, params, NAME)
        found = evidence.workspace(made, NAME)
        fallbacks = [a for a in found.answers if a.is_fallback]
        burn_in = found.burn_in.targets["roc_auc"]
        assert len(found.answers) == N_STATES * 6
        assert len(fallbacks) == 3
        assert {a.reply.text for a in fallbacks} >= {"I cannot say.", ""}
        for answer in fallbacks:
            (read,) = answer.forecasts
            assert (read.point, read.lower, read.upper) == (0.0, burn_in.q10, burn_in.q90)
            assert read.reason
        contrast = found.json("metrics/contrasts.json")["roc_auc"]["interval_score"]["D-M"]
        assert contrast["n_states"] == N_STATES
        assert contrast["complete_case"]["n_states"] < N_STATES
        assert contrast["worst_case"] <= contrast["mean"] <= contrast["best_case"]

    def test_two_processes_cannot_write_one_journal(self, at):
        made, params = at("planned")
        path = made.study(NAME).journal("forecast")
        with Journal(path, {}), pytest.raises(OutOfOrder, match="another process is writing"):
            forecast.run(made, params, NAME)


def test_every_prompt_and_seed_follows_from_the_plan(at):
    made, _ = at("planned")
    texts = {t.key: t for t in tables.read_records(made.study(NAME).prompts, PromptText)}
    units = tables.read_records(made.study(NAME).plan, Unit)
    assert len(units) == N_STATES * 7
    assert len({u.seed for u in units}) == len(units)
    pairs = {(u.state_id, u.explanation_of) for u in units if u.context == "S"}
    assert all(donor and state[:-1] == donor[:-1] and state != donor for state, donor in pairs)
    assert len(texts) == N_STATES * 4


def test_the_page_refuses_a_study_that_is_not_decided(tmp_path, monkeypatch):
    made, params = project(tmp_path / "p")
    with pytest.raises(OutOfOrder, match="no page before the study is decided"):
        report.run(made, params)
    assert not made.page.exists()


def test_a_study_without_donors_is_decided_without_its_gates(tmp_path, monkeypatch):
    made, _ = decided(tmp_path / "p", monkeypatch, contexts=["D", "M"], seeds=[1])
    decision = json.loads(made.study(NAME).metric("decision").read_text())
    assert decision["status"] == "confirmation_no_go"
    assert decision["gates"]["M-S bound"] == {"asked": "> 0", "held": False, "seen": None}


def test_pipeline_and_stage_graph_name_the_same_stages(root: Path):
    graph = list(yaml.safe_load((root / "dvc.yaml").read_text())["stages"])
    in_process = [
        run.__module__.rpartition(".")[2] for run in (*pipeline.POOL_STAGES, *pipeline.STUDY_STAGES)
    ]
    # A sweep's jobs repeat neither the coverage study nor the audits: no study depends on them.
    assert graph == [*in_process, "coverage", "certify", "report"]
