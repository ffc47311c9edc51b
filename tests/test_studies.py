"""Four studies in one project: each is decided, verifies, and keeps what it declares."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from predictive_credit import canonical, tables
from predictive_credit.errors import OutOfOrder, Sealed
from predictive_credit.ledger import Phase
from predictive_credit.records import Answer, Explanation, Unit, UnitKind
from predictive_credit.stages import (
    burn_in,
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
    score,
    states,
)  # fmt: skip
from predictive_credit.stages import open as open_stage
from predictive_credit.stages.bundle import pack
from predictive_credit.stages.paths import Project
from predictive_credit.stages.verify import verify
from tests.small_studies import EXAMPLE, project
from tests.test_verify import forge, named

TO_FREEZE = (states, burn_in, execute, explain, plan, forecast, freeze)


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """The whole project, run once."""
    folder = tmp_path_factory.mktemp("studies")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, params = project(folder / "p")
        said: list[str] = []
        pipeline.run_all(made, params, say=said.append)
        yield made, params, said


def test_four_studies_end_decided_on_one_page_and_verify(decided):
    made, _, said = decided
    assert said[-1].endswith("4 studies, open it in any browser")
    found, findings = verify(made.root)
    assert findings == []
    rules = {one.freeze["study"]: one.json("metrics/decision.json")["rule"] for one in found}
    assert rules == {"controlled": "credit", "molecular": "harm", "tabular": "joint", "table": "credit"}
    for one in found:
        assert [e.phase for e in one.ledger][-1] is Phase.DECIDED
        assert one.json("metrics/checks.json")["commitment"]["status"] == "passed"
    page = made.page.read_text()
    assert all(f"{name} " in page or f"{name}," in page for name in rules)


@pytest.mark.parametrize(
    ("name", "n_states", "n_elicited", "n_extracted", "n_forecasts"),
    [("controlled", 12, 12, 6, 72), ("tabular", 8, 16, 16, 96), ("table", 30, 0, 0, 180)],
)
def test_the_plan_holds_every_declared_unit(decided, name, n_states, n_elicited, n_extracted, n_forecasts):
    made, _, _ = decided
    units = tables.read_records(made.study(name).plan, Unit)
    kinds = [unit.kind for unit in units]
    assert len({unit.state_id for unit in units}) == n_states
    assert kinds.count(UnitKind.ELICIT) == n_elicited
    assert kinds.count(UnitKind.EXTRACT) == n_extracted
    assert kinds.count(UnitKind.FORECAST) == n_forecasts
    assert len({unit.seed for unit in units}) == len(units)


def test_every_forecast_of_two_targets_is_scored_in_both_units(decided):
    made, _, _ = decided
    contexts = tables.read_json(made.study("controlled").metric("contexts"))
    assert {"accuracy_pp", "log_loss"} <= contexts.keys()
    answers = tables.read_records(made.study("controlled").forecasts, Answer)
    assert {tuple(f.target for f in a.forecasts) for a in answers} == {("accuracy_pp", "log_loss")}
    outcomes = tables.parse_csv(made.study("controlled").outcomes.read_bytes(), "outcomes.csv")
    assert len(outcomes) == 2 * 12


def test_an_extraction_shows_the_text_and_nothing_of_its_state_or_source(decided):
    made, _, _ = decided
    prompts = made.study("tabular").prompts.read_text().splitlines()
    asked = [p for p in map(json.loads, prompts) if p["key"].endswith("/extract")]
    assert len(asked) == 16
    texts = {e.id: e.text for e in tables.read_records(made.study("tabular").explanations, Explanation)}
    rest = {p["user"].replace(texts[p["key"].removesuffix("/extract")], "TEXT") for p in asked}
    (frame,) = rest  # but for the text, every prompt is the same
    assert not any(word in frame.lower() for word in ("elicited", "ordinary", "classification_0"))


class TestOneChangedPlace:
    """Each forgery mends every checksum; only replay can find it."""

    @pytest.fixture
    def copy(self, decided, tmp_path):
        def packed(name: str) -> Path:
            return pack(decided[0], name, tmp_path / name)

        return packed

    @pytest.mark.parametrize(
        ("name", "file", "old", "new"),
        [
            ("controlled", "forecasts.jsonl", '"target":"log_loss"', '"target":"accuracy_pp"'),
            ("tabular", "explanations.jsonl", '"extraction":"', '"extraction":" '),
            ("tabular", "explanations.jsonl", "I expect skill to", "I expect SKILL to"),
            ("controlled", "outcomes.csv", ",log_loss,", ",accuracy_pp,"),
            ("tabular", "plan.jsonl", '"context":"T"', '"context":"O"'),
            ("table", "states.jsonl", '"donor":null', '"donor":"table/none"'),
        ],
    )
    def test_is_named(self, copy, name, file, old, new):
        folder = copy(name)
        assert named(folder) == []
        forge(folder, file, lambda data: data.replace(old.encode(), new.encode(), 1))
        found = named(folder)
        if (file, old) == ("explanations.jsonl", '"extraction":"'):
            assert found == []  # a blank before the JSON says the same
        elif file == "states.jsonl":
            assert set(found) <= {"states.jsonl", "prompts.jsonl", "plan.jsonl"}
        else:
            assert found

    def test_a_plan_without_its_extractions_is_named(self, copy):
        def dropped(data: bytes) -> bytes:
            return b"".join(line + b"\n" for line in data.splitlines() if b'"kind":"extract"' not in line)

        folder = copy("controlled")
        forge(folder, "plan.jsonl", dropped)
        assert named(folder) == ["plan.jsonl"]

    def test_a_reader_told_what_it_reads_is_named(self, copy):
        def told(data: bytes) -> bytes:
            return data.replace(b"A text that somebody wrote.", b"A note that somebody wrote.", 1)

        folder = copy("tabular")
        forge(folder, "prompts.jsonl", told)
        assert set(named(folder)) == {"prompts.jsonl"}

    def test_outcomes_left_open_by_a_study_that_executes_them_are_named(self, copy):
        def opened(data: bytes) -> bytes:
            record = json.loads(data)
            record |= {"pending": sorted(record["outcomes"]), "outcomes": {}}
            return json.dumps(record).encode()

        folder = copy("controlled")
        forge(folder, "commitment.json", opened)
        assert set(named(folder)) <= {"commitment.json", "outcomes.csv"}
        assert named(folder)


@pytest.fixture(scope="module")
def frozen_once(tmp_path_factory):
    """A project frozen before its outcomes came, made once."""
    folder = tmp_path_factory.mktemp("frozen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, params = project(folder / "p", "example_pending.csv")
        fetch.run(made, params, "own")
        features.run(made, params, "own")
        for stage in TO_FREEZE:
            stage.run(made, params, "table")
    return folder, params


@pytest.fixture(scope="module")
def opened_once(frozen_once, tmp_path_factory):
    """The frozen project after its outcomes came: opened, decided and on its page."""
    folder = tmp_path_factory.mktemp("opened") / "there"
    shutil.copytree(frozen_once[0], folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, params = Project(folder / "p"), frozen_once[1]
        pipeline.open_and_decide(
            made, params, "table", EXAMPLE / "example_outcomes.csv", say=lambda line: None
        )
    return folder, params


class TestOutcomesThatComeLater:
    @pytest.fixture
    def frozen(self, frozen_once, tmp_path, monkeypatch):
        """A copy of a frozen project and of the vault it was sealed with."""
        folder, params = frozen_once
        shutil.copytree(folder, tmp_path / "frozen")
        monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(tmp_path / "frozen" / "vault"))
        return Project(tmp_path / "frozen" / "p"), params

    @pytest.fixture
    def opened(self, opened_once, tmp_path, monkeypatch):
        """A copy of the project whose outcomes came, and of its vault."""
        folder, params = opened_once
        shutil.copytree(folder, tmp_path / "opened")
        monkeypatch.setenv("PREDICTIVE_CREDIT_VAULT", str(tmp_path / "opened" / "vault"))
        return Project(tmp_path / "opened" / "p"), params

    def test_the_forecasts_are_frozen_first_and_the_refusal_says_what_to_do(self, frozen):
        made, params = frozen
        with pytest.raises(
            Sealed,
            match=r"60 of the 60 outcomes .* have not come yet.*open table --outcomes FILE --root",
        ):
            open_stage.run(made, params, "table")
        assert not made.study("table").outcomes.exists()

    def test_they_are_opened_and_decided_when_they_do(self, opened, tmp_path):
        made, params = opened
        found = evidence.workspace(made, "table")
        assert [e.phase for e in found.ledger][-2:] == [Phase.OPENED, Phase.DECIDED]
        checked = found.json("metrics/checks.json")["commitment"]
        assert (checked["status"], checked["arrived_after_freeze"]) == ("passed", 60)
        _, findings = verify(pack(made, "table", tmp_path / "bundle"))
        assert findings == []
        before = made.study("table").decided.read_bytes()
        pipeline.open_and_decide(made, params, "table", None, say=lambda line: None)
        assert made.study("table").decided.read_bytes() == before

    def test_a_file_that_lacks_one_opens_none(self, frozen, tmp_path):
        made, params = frozen
        lines = (EXAMPLE / "example_outcomes.csv").read_text().splitlines(keepends=True)
        (tmp_path / "short.csv").write_text("".join(lines[:-1]))
        with pytest.raises(Sealed, match=r"short\.csv lacks 2 of the 60 outcomes that were to come"):
            pipeline.open_and_decide(made, params, "table", tmp_path / "short.csv")
        assert not made.study("table").outcomes.exists()
        assert not made.arrived("table").exists()

    @pytest.mark.parametrize("route", ["given", "edited", "removed and given"])
    def test_other_outcomes_after_the_opening_are_refused(self, opened, tmp_path, route):
        made, params = opened
        before = made.study("table").outcomes.read_bytes()
        rows = tables.parse_csv((EXAMPLE / "example_outcomes.csv").read_bytes(), "o")
        rows[0] = rows[0] | {"accuracy_pp": "1.25"}
        path = made.arrived("table") / "outcomes.csv" if route == "edited" else tmp_path / "other.csv"
        tables.write_csv(path, list(rows[0]), [list(row.values()) for row in rows])
        if route == "removed and given":
            shutil.rmtree(made.arrived("table"))
            made.study("table").ledger("opened").unlink()
        with pytest.raises(OutOfOrder, match="and they stand"):
            pipeline.open_and_decide(made, params, "table", None if route == "edited" else path)
        assert made.study("table").outcomes.read_bytes() == before

    def test_the_same_values_in_another_format_are_the_same_outcomes(self, opened, tmp_path):
        made, params = opened
        before = made.study("table").decided.read_bytes()
        rows = tables.parse_csv((EXAMPLE / "example_outcomes.csv").read_bytes(), "o")
        (tmp_path / "same.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pipeline.open_and_decide(made, params, "table", tmp_path / "same.jsonl", say=lambda line: None)
        assert made.study("table").decided.read_bytes() == before
        assert [p.name for p in made.arrived("table").iterdir()] == ["outcomes.jsonl"]

    @pytest.mark.usefixtures("opened")
    def test_outcomes_opened_in_another_project_are_known_in_this_one(self, tmp_path):
        other, others = project(tmp_path / "q", "example_pending.csv")
        fetch.run(other, others, "own")
        features.run(other, others, "own")
        for stage in TO_FREEZE:
            stage.run(other, others, "table")
        pipeline.open_and_decide(
            other, others, "table", EXAMPLE / "example_outcomes.csv", say=lambda line: None
        )
        checked = tables.read_json(other.study("table").metric("checks"))["commitment"]
        assert checked["status"] == "failed"

    def test_what_is_planned_after_they_were_opened_says_so(self, opened):
        made, params = opened
        again = replace(params, forecaster=replace(params.forecaster, point="positive"))
        for stage in (plan, forecast, freeze, open_stage, score, decide):
            stage.run(made, again, "table")
        checked = tables.read_json(made.study("table").metric("checks"))["commitment"]
        assert checked["status"] == "failed"
        assert "60 of 60" in checked["planned_after_opening"]

    def test_a_file_that_was_there_at_the_freeze_did_not_arrive_after_it(self, tmp_path):
        made, params = project(tmp_path / "p", "example_pending.csv", outcomes=str(tmp_path / "came.csv"))
        fetch.run(made, params, "own")
        features.run(made, params, "own")
        for stage in TO_FREEZE[:-1]:
            stage.run(made, params, "table")
        shutil.copy(EXAMPLE / "example_outcomes.csv", tmp_path / "came.csv")
        for stage in (freeze, open_stage, score, decide):
            stage.run(made, params, "table")
        checked = tables.read_json(made.study("table").metric("checks"))["commitment"]
        assert checked["status"] == "failed"
        assert "a file of outcomes that was there" in checked["planned_after_opening"]

    def test_the_filed_copy_can_be_given_again_and_is_kept(self, opened):
        made, params = opened
        filed = made.arrived("table") / "outcomes.csv"
        before = filed.read_bytes()
        pipeline.open_and_decide(made, params, "table", filed, say=lambda line: None)
        assert filed.read_bytes() == before

    def test_outcomes_that_were_sealed_cannot_arrive(self, decided, tmp_path):
        made, params, _ = decided
        copy = type(made)(Path(shutil.copytree(made.root, tmp_path / "copy")))
        with pytest.raises(OutOfOrder, match="every outcome was sealed before the freeze"):
            pipeline.open_and_decide(copy, params, "table", EXAMPLE / "example_outcomes.csv")
        assert canonical.digest_file(copy.study("table").decided) == canonical.digest_file(
            made.study("table").decided
        )
