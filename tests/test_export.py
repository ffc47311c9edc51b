"""Exports of a real bundle, as such and unpacked into a workspace at several phases."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from predictive_credit import canonical, config, tables
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder, Tampered
from predictive_credit.forecasters.filed import Filed
from predictive_credit.ledger import Event
from predictive_credit.records import Answer, Reply, Unit, UnitKind
from predictive_credit.stages import forecast
from predictive_credit.stages.evidence import DATA_FILES
from predictive_credit.stages.export import export
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from predictive_credit.studies.molecular.interventions import TARGET as ROC_AUC
from tests.conftest import ROOT

BUNDLE = ROOT / "results" / "molecular-moleculeace-full"
NAME = "molecular"


def unpacked(folder: Path, *, events: int) -> Project:
    """The bundle as the project that it came from, once its ledger had so many events."""
    made = Project(folder)
    paths = made.study(NAME)
    ledger = tables.read_records(BUNDLE / "ledger.jsonl", Event)
    for name in DATA_FILES:
        if name != "outcomes.csv" or events > 3:
            tables.write_bytes(paths.data / name, (BUNDLE / name).read_bytes())
    for number, phase in enumerate(("planned", "sealed", "frozen", "opened")[:events], start=1):
        tables.write_bytes(paths.ledger(phase), tables.encode_lines(ledger[:number]))
    shutil.copy(BUNDLE / "params.yaml", made.params)
    return made


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("log") / "log.json"
    export(ROOT, "inspect", str(BUNDLE), to)
    return to


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("hub") / "hub"
    export(ROOT, "hub", str(BUNDLE), to)
    return to


def answers() -> tuple[Answer, ...]:
    return tables.read_records(BUNDLE / "forecasts.jsonl", Answer)


def test_a_hub_of_a_bundle_scores_to_the_same_numbers_as_a_forecaster(hub: Path):
    (file,) = (hub / "model-output").rglob("*.csv")
    filed = Filed(file, [ROC_AUC], name="file")
    replies = filed.replies(a.unit_id for a in answers())
    for answer in answers():
        (told,) = json.loads(replies[answer.unit_id].text).values()
        (forecast_,) = answer.forecasts
        assert told == {"point": forecast_.point, "lower": forecast_.lower, "upper": forecast_.upper}


def test_a_hub_says_how_much_it_holds(tmp_path: Path):
    said = export(ROOT, "hub", str(BUNDLE), tmp_path / "hub")
    assert said == (
        f"{tmp_path / 'hub'}: {len(answers())} forecasts of predictive_credit-smollm2 in round "
        "molecular_full, 0 fallbacks; 72 outcomes as target data, 0 undefined"
    )


def test_a_folder_that_holds_something_is_not_written_over(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(BadSource, match="exists and is not an empty folder"):
        export(ROOT, "hub", str(BUNDLE), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_log_of_a_bundle_holds_every_forecast_with_usage_and_scores(log: Path):
    written = json.loads(log.read_bytes())
    samples = {sample["id"]: sample for sample in written["samples"]}
    assert samples.keys() == {a.unit_id for a in answers()}
    assert all(sample["output"]["time"] > 0 for sample in samples.values())
    assert all(len(sample["scores"]) == 2 for sample in samples.values())
    # The mean over all units is what the study reports by context, each asked equally often.
    contexts = tables.read_json(BUNDLE / "metrics" / "contexts.json")["roc_auc"]
    reported = sum(contexts[asked]["point_mae_call"] for asked in ("D", "M", "S")) / 3
    means = {score["name"]: score["metrics"]["mean"]["value"] for score in written["results"]["scores"]}
    assert means["roc_auc_point_error"] == pytest.approx(reported)


def test_a_replayed_log_gives_the_forecasts_byte_for_byte(tmp_path: Path, log: Path):
    made = unpacked(tmp_path / "p", events=2)
    paths, params = made.study(NAME), study_params.load(made.params)
    chosen = params.forecaster
    few = [u for u in tables.read_records(paths.plan, Unit) if u.kind is UnitKind.FORECAST][::40]
    tables.write_records(paths.plan, few, scale="full")
    written = []
    for recording in (BUNDLE / "forecasts.jsonl", log):
        replay = config.Replay(
            kind="replay", name="replay", path=str(recording), watch="", elicitation=chosen.elicitation,
            temperature=chosen.temperature, top_p=chosen.top_p, max_tokens=chosen.max_tokens,
            acknowledged_models=(),
        )  # fmt: skip
        forecast.run(made, replace(params, forecaster=replay), NAME)
        written.append(paths.forecasts.read_bytes())
        paths.forecasts.unlink()
    assert written[0] == written[1]
    wanted = {unit.id for unit in few}
    assert tables.parse_records(written[1], Answer, "f") == tuple(a for a in answers() if a.unit_id in wanted)


def test_before_the_freeze_nothing_is_exported(tmp_path: Path):
    made = unpacked(tmp_path / "p", events=2)
    for kind in ("hub", "inspect"):
        with pytest.raises(OutOfOrder, match="molecular: not frozen yet"):
            export(made.root, kind, NAME, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_between_freeze_and_opening_no_outcome_is_exported(tmp_path: Path):
    made = unpacked(tmp_path / "p", events=3)
    # An outcomes file that the ledger knows nothing of, as an earlier run may leave one.
    shutil.copy(BUNDLE / "outcomes.csv", made.study(NAME).outcomes)
    assert "no target data, for the outcomes of molecular are not" in export(made.root, "hub", NAME, None)
    assert not (made.root / "exports" / "molecular-hub" / "target-data").exists()
    assert "no scores, for the outcomes of molecular are not" in export(made.root, "inspect", NAME, None)
    samples = json.loads((made.root / "exports" / "molecular.json").read_bytes())["samples"]
    assert {sample["target"] for sample in samples} == {""}
    assert not any("scores" in sample for sample in samples)


def test_a_project_and_its_bundle_give_the_same_hub(tmp_path: Path, hub: Path):
    made = unpacked(tmp_path / "p", events=4)
    export(made.root, "hub", NAME, tmp_path / "hub")
    files = sorted(path.relative_to(hub) for path in hub.rglob("*") if path.is_file())
    assert files == sorted(
        p.relative_to(tmp_path / "hub") for p in (tmp_path / "hub").rglob("*") if p.is_file()
    )
    assert all((tmp_path / "hub" / name).read_bytes() == (hub / name).read_bytes() for name in files)


@pytest.mark.parametrize("name", ["forecasts.jsonl", "outcomes.csv", "freeze.json"])
def test_a_file_changed_since_its_event_is_not_exported(tmp_path: Path, name: str):
    made = unpacked(tmp_path / "p", events=4)
    path = made.study(NAME).data / name
    path.write_bytes(path.read_bytes().replace(b"full", b"fake", 1))
    with pytest.raises(Tampered, match=rf"{name} is not the file that was frozen"):
        export(made.root, "hub", NAME, None)


def test_journalled_calls_of_an_agent_are_in_the_log_where_their_text_counted(tmp_path: Path):
    made = unpacked(tmp_path / "p", events=3)
    paths = made.study(NAME)
    (unit, *_) = (u for u in tables.read_records(paths.plan, Unit) if u.kind is UnitKind.ELICIT)
    (explanation,) = (
        e
        for e in map(json.loads, paths.explanations.read_bytes().splitlines())
        if unit.id.startswith(e["state_id"])
    )
    lines = [
        {"key": str(n), "unit_id": unit.id, "prompt_digest": unit.prompt_digest,
         "reply": Reply(text=text, finish_reason="stop", model_requested=text[:5], model_resolved=None)}
        for n, text in enumerate(("written by another model", explanation["text"]))
    ]  # fmt: skip
    journal = paths.journal("explain")
    tables.write_bytes(journal, b"".join(canonical.encode(line) + b"\n" for line in lines) + b'{"half')
    assert f"1 elicit, {len(answers())} forecast calls" in export(
        made.root, "inspect", NAME, tmp_path / "log"
    )
    first, *_ = json.loads((tmp_path / "log").read_bytes())["samples"]
    assert (first["id"], first["output"]["completion"]) == (unit.id, explanation["text"])


def test_what_is_neither_study_nor_bundle_is_one_sentence(tmp_path: Path):
    made = unpacked(tmp_path / "p", events=3)
    with pytest.raises(BadConfig, match=r"tabular is no bundle's folder and no study of .* holds molecular"):
        export(made.root, "hub", "tabular", None)
