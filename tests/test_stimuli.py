"""The controls' stages: what is taken over and refused, and that the study they reuse stays as it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from predictive_credit import compose, config, tables
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder, Tampered
from predictive_credit.records import PromptText
from predictive_credit.stages import (
    burn_in,
    decide,
    evidence,
    execute,
    explain,
    fetch,
    forecast,
    freeze,
    pipeline,
    plan,
    report,
    score,
    states,
    stimuli,
)  # fmt: skip
from predictive_credit.stages import open as open_stage
from predictive_credit.stages.bundle import pack
from predictive_credit.stages.paths import Project
from predictive_credit.stages.verify import verify, verify_evidence
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from tests import small_controls, small_studies
from tests.conftest import ROOT
from tests.small_controls import BUNDLES
from tests.test_verify import edit, forge, named, other_outcome

STUDY_NAMES = ("controlled", "molecular", "tabular")
CONTROL_NAMES = ("calibration", "crossover", "gradient", "mechanism", "raw_note", "replay")
STAGES = (
    states.run, burn_in.run, execute.run, explain.run, plan.run, forecast.run, freeze.run, open_stage.run,
    score.run, decide.run,
)  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def fast():
    """No page is made, and a disk that these tests fill need not be safe against a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        patch.setattr(report, "run", lambda project, params: "no page")
        yield


def run(project: Project, params: config.Params, *stages, name: str) -> None:
    for stage in stages:
        stage(project, config.of_study(params, name), name)


def with_controls(made: Project) -> config.Params:
    """The project's params.yaml with every control of its own studies added, sorted by name."""
    raw = yaml.safe_load(made.params.read_text())
    own = compose.compose(ROOT, ["studies=none", "controls=all", "forecaster=priors"])
    raw["pools"] |= own["pools"]
    raw["studies"] |= own["studies"]
    raw["studies"]["replay"]["forecaster"] = raw["forecaster"] | {"point": "zero"}
    made.params.write_text(yaml.safe_dump(raw))
    return study_params.load(made.params)


def digests(made: Project, *studies: str) -> dict[str, str]:
    """SHA-256 of every file that belongs to some studies."""
    places = [p for s in studies for p in (made.study(s).data, made.study(s).metrics)]
    files = [file for place in places for file in place.rglob("*") if file.is_file()]
    files += [made.study(s).decided for s in studies]
    return {str(f.relative_to(made.root)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three small studies, decided; their files' digests; then all their controls, in the same project."""
    folder = tmp_path_factory.mktemp("stimuli")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, params = small_studies.project(folder / "p")
        raw = yaml.safe_load(made.params.read_text())
        del raw["studies"]["table"], raw["pools"]["own"]
        made.params.write_text(yaml.safe_dump(raw))
        params = study_params.load(made.params)
        pipeline.run_all(made, params, say=lambda line: None)
        before = digests(made, *STUDY_NAMES)
        params = with_controls(made)
        said: list[str] = []
        pipeline.run_all(made, params, say=said.append)
        yield made, params, before, said


def test_no_byte_of_a_study_changes_when_all_its_controls_run(whole):
    made, _, before, _ = whole
    assert len(before) > 60
    assert digests(made, *STUDY_NAMES) == before
    assert all(made.study(name).decided.is_file() for name in CONTROL_NAMES)


def test_a_project_with_its_controls_verifies(whole):
    made, _, _, _ = whole
    found, findings = verify(made.root)
    assert findings == []
    status = {one.freeze["study"]: one.json("metrics/decision.json")["status"] for one in found}
    assert len(status) == 9
    assert status["calibration"] == "assay_insensitive"  # priors read nothing
    assert status["mechanism"] == "mechanism_insensitive"
    assert status["replay"] == "replication_not_supported"
    assert {status[name] for name in ("crossover", "gradient", "raw_note")} == {"exploratory"}


def test_controls_run_after_the_studies_they_reuse_whatever_their_names(whole):
    _, params, _, said = whole
    assert next(iter(params.studies)) == "calibration"  # sorted, and before the tabular study
    order = list(pipeline.in_order(params))
    for name in CONTROL_NAMES:
        if (study := STUDIES[name].reuses) is not None:
            assert order.index(study) < order.index(name)
    decided = [line.partition(":")[0] for line in said if "gates held" in line]
    assert decided == order


def test_a_freeze_record_holds_what_was_taken_over(whole):
    made, _, _, _ = whole
    record = json.loads(made.study("calibration").freeze.read_text())["stimuli"]
    theirs = evidence.workspace(made, "tabular")
    assert record["ledger_head"] == theirs.ledger[-1].hash
    assert (record["study"], record["rule"], record["scale"]) == ("tabular", "tabular", "quick")
    assert record["digests"]["outcomes.csv"] == hashlib.sha256(theirs.bytes("outcomes.csv")).hexdigest()
    assert set(record["states"]) == {state.id for state in theirs.states}
    mechanism = json.loads(made.study("mechanism").freeze.read_text())
    assert "stimuli" not in mechanism


def test_a_replay_freezes_its_own_forecaster_and_leaves_the_runs_to_the_others(whole):
    made, params, _, _ = whole
    points = {
        name: json.loads(made.study(name).freeze.read_text())["params"]["forecaster"]["point"]
        for name in ("molecular", "crossover", "replay")
    }
    assert points == {"molecular": "mean", "crossover": "mean", "replay": "zero"}
    assert freeze.frozen_params(params, "replay")["studies"]["replay"]["forecaster"] is None


def test_the_commitment_check_says_which_outcomes_were_known(whole):
    made, _, _, _ = whole
    readings = json.loads((made.study("replay").metrics / "readings.json").read_text())
    assert "when the outcomes of molecular are known" in readings["checks"]["commitment"]["reading"]
    assert "The plan was made after the outcomes of molecular were known." in readings["limits"]
    mechanism = json.loads((made.study("mechanism").metrics / "readings.json").read_text())
    assert not any("were known" in limit for limit in mechanism["limits"])


# A bundle of a control


@pytest.fixture
def bundle(whole, tmp_path):
    def made(name: str) -> Path:
        return pack(whole[0], name, tmp_path / name)

    return made


@pytest.mark.parametrize("name", CONTROL_NAMES)
def test_a_controls_bundle_verifies_without_the_study(bundle, monkeypatch, name):
    packed = bundle(name)
    monkeypatch.delenv("PREDICTIVE_CREDIT_VAULT")
    monkeypatch.chdir(packed)
    assert named(packed) == []


@pytest.mark.parametrize(
    ("control", "file", "change"),
    [
        ("calibration", "states.jsonl", edit(description="A state that was never there.")),
        ("calibration", "explanations.jsonl", edit(text="Direction: increase")),
        ("replay", "explanations.jsonl", edit(agent="somebody else")),
        ("gradient", "states.jsonl", edit(donor="gradient/controlled/label_noise/1")),
        ("mechanism", "explanations.jsonl", edit(text="The class boundary is a plane.")),
        ("raw_note", "outcomes.csv", other_outcome),
        ("crossover", "burn_in.json", lambda data: data.replace(b'"name": "', b'"name": "other ', 1)),
    ],
)
def test_a_controls_bundle_whose_checksums_were_mended_is_still_found_out(bundle, control, file, change):
    packed = bundle(control)
    before = (packed / file).read_bytes()
    forge(packed, file, change)
    assert (packed / file).read_bytes() != before
    assert file in named(packed)


def again(
    whole, tmp_path: Path, name: str, after: Callable[..., str], spoil: Callable[[Project], None]
) -> list[str]:
    """The whole control anew in a copy, something changed after one stage: what verifying names."""
    _, params, _, _ = whole
    made = Project(Path(shutil.copytree(whole[0].root, tmp_path / "copy")))
    shutil.rmtree(made.study(name).data)
    made.study(name).decided.unlink()
    at = STAGES.index(after) + 1
    run(made, params, *STAGES[:at], name=name)
    spoil(made)
    run(made, params, *STAGES[at:], name=name)
    return [str(finding) for finding in verify_evidence(evidence.workspace(made, name))]


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    data = path.read_bytes()
    assert change(data) != data
    path.write_bytes(change(data))


def test_a_control_that_was_run_on_a_reworded_state_names_it(whole, tmp_path):
    def spoil(made: Project) -> None:
        rewrite(made.study("crossover").states, edit(description="It has always helped."))

    first = whole[0].study("crossover").states.read_text().partition("\n")[0]
    found = again(whole, tmp_path, "crossover", states.run, spoil)
    assert found == [f"states.jsonl: {json.loads(first)['id']} is not what molecular froze and opened"]


def test_a_control_that_left_a_state_out_names_it(whole, tmp_path):
    def spoil(made: Project) -> None:
        # Both of a cell, which lend to each other.
        rewrite(made.study("raw_note").states, lambda data: b"".join(data.splitlines(keepends=True)[2:]))

    found = again(whole, tmp_path, "raw_note", states.run, spoil)
    assert len([line for line in found if line.startswith("states.jsonl")]) == 2
    assert all("is not what tabular froze and opened" in line for line in found)


def test_a_control_that_was_run_on_another_outcome_names_it(whole, tmp_path):
    def spoil(made: Project) -> None:
        (state, *_) = made.study("replay").states.read_text().splitlines()
        own = made.features("frozen_molecular") / "outcomes.csv"
        kept = own.read_bytes()
        theirs = json.loads(state)["id"].removeprefix("replay/")
        lines = kept.decode().splitlines()
        cells = next(line.split(",") for line in lines if line.startswith(f"{theirs},"))
        changed = ",".join([*cells[:2], "0.25", *cells[3:]])
        own.write_text("\n".join(changed if line == ",".join(cells) else line for line in lines) + "\n")
        run(made, whole[1], execute.run, name="replay")
        own.write_bytes(kept)

    found = again(whole, tmp_path, "replay", execute.run, spoil)
    assert len(found) == 1
    assert found[0].startswith("outcomes.csv: replay/molecular/")


def test_a_control_that_was_shown_a_rewritten_card_names_it(whole, tmp_path):
    def spoil(made: Project) -> None:
        path = made.study("gradient").explanations
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        row = next(row for row in rows if row["source"] == "donor_3")
        row["text"] += " It has always helped."
        tables.write_bytes(path, tables.encode_lines(rows))

    found = again(whole, tmp_path, "gradient", explain.run, spoil)
    assert len(found) == 1
    assert found[0].startswith("explanations.jsonl: gradient/controlled/")
    assert found[0].endswith("/donor_3 does not follow from what the control is made of")


def test_what_was_taken_over_may_not_change_before_the_freeze(whole, tmp_path):
    _, params, _, _ = whole
    made = Project(Path(shutil.copytree(whole[0].root, tmp_path / "copy")))
    path = made.features("frozen_tabular") / "outcomes.csv"
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(Tampered, match="was changed since it was taken over; fetch frozen_tabular again"):
        run(made, params, freeze.run, name="calibration")


# Refusals


def pool(study: str, path: Path | str) -> config.FrozenPool:
    return config.FrozenPool(kind="frozen", watch=".", study=study, path=str(path))


def test_a_study_that_is_not_decided_is_refused(whole, tmp_path):
    made = Project(Path(shutil.copytree(whole[0].root, tmp_path / "copy")))
    made.study("tabular").decided.unlink()
    with pytest.raises(BadSource) as error:
        fetch.frozen_study(made, pool("tabular", "."))
    assert "is not decided yet: its outcomes have not been opened; a control reuses" in str(error.value)
    assert "decide tabular first, or name its bundle" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_bundle_that_does_not_verify_is_refused(bundle, tmp_path):
    packed = bundle("replay")  # any bundle
    (packed / "usage.jsonl").write_bytes(b"")
    with pytest.raises(
        BadSource, match=r"usage\.jsonl: its bytes are not the ones that were packed; a contr"
    ):
        fetch.frozen_study(Project(tmp_path), pool("replay", packed))


def test_a_bundle_of_another_study_is_refused(whole, tmp_path):
    packed = pack(whole[0], "molecular", tmp_path / "molecular")
    with pytest.raises(BadSource, match="is the study 'molecular', and 'tabular' was asked for; correct"):
        fetch.frozen_study(Project(tmp_path), pool("tabular", packed))


def test_a_path_with_nothing_there_is_refused(tmp_path):
    with pytest.raises(BadSource, match=r"nowhere is neither a bundle .* nor a project .*; correct pools"):
        fetch.frozen_study(Project(tmp_path), pool("tabular", "nowhere"))


def test_a_replay_under_the_studys_own_forecaster_is_refused_by_any_name(whole):
    made, params, _, _ = whole
    study = STUDIES["replay"]
    for same in (params.forecaster, replace(params.forecaster, name="another name")):
        with pytest.raises(BadConfig, match=r"is the one that was frozen there; give studies\.replay\.forec"):
            stimuli.refuse_same_forecaster(made, replace(params, forecaster=same), "replay", study)
    warmer = replace(params, forecaster=replace(params.forecaster, point="positive"))
    stimuli.refuse_same_forecaster(made, warmer, "replay", study)
    stimuli.refuse_same_forecaster(made, params, "crossover", STUDIES["crossover"])


def test_a_replay_that_was_run_under_the_same_forecaster_is_found_out(whole, tmp_path):
    found = evidence.workspace(whole[0], "replay")
    record = found.freeze
    record["params"]["forecaster"]["point"] = record["stimuli"]["forecaster"]["point"]
    packed = pack(whole[0], "replay", tmp_path / "replay")
    (packed / "params.yaml").write_text(yaml.safe_dump(record["params"], sort_keys=True))
    forge(packed, "freeze.json", lambda data: json.dumps(record).encode())
    assert "freeze.json" in named(packed)


def test_a_replay_in_other_words_is_refused(whole):
    made, params, _, _ = whole
    own = config.of_study(params, "replay")
    (text, *_) = evidence.workspace(made, "replay").records("prompts.jsonl", PromptText)
    study = STUDIES["replay"]
    stimuli.refuse_other_words(made, own, "replay", study, [text])
    with pytest.raises(OutOfOrder, match="is not asked in the words in which molecular was asked, so it wo"):
        stimuli.refuse_other_words(made, own, "replay", study, [replace(text, user=f"{text.user} ")])


def test_a_control_does_not_put_its_runs_scale_on_anothers_stimuli(whole):
    made, params, _, _ = whole
    stimuli.refuse_other_scale(made, params, "calibration")
    with pytest.raises(
        BadConfig, match="were frozen at scale quick, and this run's scale is full; give scale"
    ):
        stimuli.refuse_other_scale(made, replace(params, scale="full"), "calibration")


def test_a_control_cannot_be_frozen_beside_a_study_that_stays_sealed(whole, tmp_path):
    _, params, _, _ = whole
    with pytest.raises(
        BadConfig, match="calibration reuses what tabular freezes and opens, and here nothing"
    ):
        pipeline.freeze_all(Project(tmp_path), params)
    assert not (tmp_path / "data").exists()


def test_a_control_whose_hosted_forecaster_has_no_key_stops_before_anything_is_computed(
    tmp_path, monkeypatch
):
    params = small_controls.params("forecaster@studies.replay.forecaster=pro")
    assert isinstance(config.of_study(params, "replay").forecaster, config.Provided)
    for name in list(os.environ):
        if "KEY" in name or "TOKEN" in name:
            monkeypatch.delenv(name)
    with pytest.raises(BadConfig):
        pipeline.run_all(Project(tmp_path), params, say=lambda line: None)
    assert not (tmp_path / "data").exists()


# Counting before anything runs


def test_a_plan_counts_a_bundles_states_and_an_undecided_studys():
    on_bundles = small_controls.params()
    units = {name: study_params.counts(on_bundles, name).units for name in CONTROL_NAMES}
    assert units == {
        "calibration": 1440, "replay": 432, "crossover": 1152, "raw_note": 864, "mechanism": 240,
        "gradient": 960,
    }  # fmt: skip
    to_come = study_params.parse(compose.compose(ROOT, ["controls=all", "scale=full"]))
    assert {name: study_params.counts(to_come, name).units for name in CONTROL_NAMES} == units


def test_a_control_without_its_study_or_of_a_control_cannot_be_counted():
    alone = small_controls.params("pools.frozen_tabular.path=.")
    with pytest.raises(BadConfig, match=r"nor is it among the studies .*; give pools\.frozen_tabular\.path"):
        study_params.counts(alone, "calibration")
    of_control = small_controls.params("pools.frozen_tabular.path=.", "pools.frozen_tabular.study=replay")
    with pytest.raises(BadConfig, match="reuses replay, which is a control itself"):
        study_params.counts(of_control, "calibration")


# The committed bundles, end to end


@pytest.fixture(scope="module")
def at_full_scale(tmp_path_factory):
    """Every control on the committed bundles under the priors, from fetching to its decision."""
    folder = tmp_path_factory.mktemp("full")
    before = {path: path.read_bytes() for b in BUNDLES.values() for path in b.rglob("*") if path.is_file()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        composed = small_controls.params()
        raw = config.section(composed)
        raw["inference"]["draws"] = 100
        raw["studies"]["replay"]["forecaster"] = raw["forecaster"] | {"point": "zero"}
        raw["execution"] |= {"backend": "sequential", "n_jobs": 1}
        made = Project(folder / "p")
        made.root.mkdir()
        made.params.write_text(yaml.safe_dump(raw))
        pipeline.run_all(made, study_params.load(made.params), say=lambda line: None)
        yield made, before


def test_the_committed_bundles_are_reused_at_full_scale_and_stay_as_they_are(at_full_scale):
    made, before = at_full_scale
    found, findings = verify(made.root)
    assert findings == []
    units = {one.freeze["study"]: one.freeze["units"]["forecasts"] for one in found}
    assert units == {
        "calibration": 1440, "crossover": 1152, "gradient": 960, "mechanism": 240, "raw_note": 864,
        "replay": 432,
    }  # fmt: skip
    assert all(path.read_bytes() == data for path, data in before.items())
    for one in found:
        decision = one.json("metrics/decision.json")
        assert decision["scale"] == "full"
        assert decision["rule"] == STUDIES[one.freeze["study"]].rule.NAME
