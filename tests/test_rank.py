"""`predictive-credit rank`, from a file and evidence to a ranking; and the replay of the evidence."""

from __future__ import annotations

import functools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import cli, tables
from predictive_credit.errors import BadConfig, BadSource, PredictiveCreditError, Tampered
from predictive_credit.forecasters import forecaster
from predictive_credit.records import Prompt, PromptText, Reply
from predictive_credit.selection import proposals, replay
from predictive_credit.stages import rank
from predictive_credit.stages.rank import Asked, Candidate
from predictive_credit.studies.table import sheets
from tests.small_project import decided, project

EXAMPLE = "example_proposals.jsonl"
REPLIES = "example_proposals.replies.jsonl"
SAID = "ROC AUC will increase by 0.0030 (80% interval: minus 0.0010, plus 0.0010)"
Rank = Callable[..., str]


@pytest.fixture
def molecular(root: Path) -> Path:
    return root / "results" / "molecular-moleculeace-full"


@pytest.fixture
def file(root: Path, tmp_path: Path) -> Path:
    """The example beside the replies that SmolLM2 once gave to it."""
    for name in (EXAMPLE, REPLIES):
        shutil.copy(root / "tests" / "data" / name, tmp_path / name)
    return tmp_path / EXAMPLE


@pytest.fixture
def forecasts(tmp_path: Path) -> Callable[..., Path]:
    """Writes three proposals that bring forecasts."""

    def write(*changes: dict[str, Any]) -> Path:
        rows = [
            {"id": f"p{k}", "situation": f"Assay {k}.", "intervention": "Prune.", "cost": 1 + k,
             "point": 0.01 * (2 - k), "lower": -0.01, "upper": 0.03, "forecaster": "smollm2", "context": "M"}
            for k in range(3)
        ]  # fmt: skip
        for row, change in zip(rows, changes, strict=False):
            row.update(change)
        path = tmp_path / "mine.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


@pytest.fixture
def ranked(tmp_path: Path) -> Rank:
    def run(proposals: Path | None, *using: Path, **words: Any) -> str:
        said: dict[str, Any] = {
            "root": tmp_path, "replay": None, "study": None, "target": None, "baseline": None, "budget": None,
            "top": 3, "seed": 1, "equal_costs": False, "replies": None, "max_cost": None, "out": None,
            "as_json": False,
        }  # fmt: skip
        return rank.run(Asked(proposals=proposals, using=using, **(said | words)))

    return run


@pytest.fixture
def nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a model was asked for")

    monkeypatch.setattr(forecaster, "make", refuse)


class Says:
    """A model that always says one sentence, and counts how often it was asked."""

    def __init__(self, text: str, resolved: str | None = None) -> None:
        self.text, self.resolved, self.asked = text, resolved, list[Prompt]()

    def answer(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        return Reply(
            text=self.text, finish_reason="stop", model_requested="smollm2", model_resolved=self.resolved
        )

    def close(self) -> None:
        """Nothing to end."""


@pytest.fixture
def as_if(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has evidence read as if some of its checks had another status."""
    whole = rank.candidate

    def change(**statuses: str) -> None:
        def changed(place: Path, study: str | None, target: str | None) -> Candidate:
            found = whole(place, study, target)
            checks = {name: dict(found.checks[name]) for name in rank.ALL_CHECKS}
            for name, status in statuses.items():
                checks[name]["status"] = status
            return replace(found, checks=checks)

        monkeypatch.setattr(rank, "candidate", changed)

    return change


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A decided small project of a forecaster that reads its card."""
    folder = tmp_path_factory.mktemp("rank")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, _ = decided(folder / "reader", patch)
        yield made.root


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    """Each evidence is verified once for all tests of this file, and replayed with few resamples."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank, "candidate", functools.cache(rank.candidate))
        patch.setattr(replay, "replay", functools.partial(replay.replay, draws=100))
        yield


@pytest.mark.usefixtures("nobody_answers")
def test_the_example_ranks_from_its_kept_replies_without_a_model(file, molecular, ranked):
    found = json.loads(ranked(file, molecular, budget=2.0, as_json=True))
    rows = found["ranking"]["rows"]
    assert [row["id"] for row in rows] == [
        "kinase_bits", "kinase_l2", "channel_l2", "solubility_radius", "channel_weak", "solubility_bits",
    ]  # fmt: skip
    assert [row["is_worth"] for row in rows] == [True, True, True, False, False, False]
    assert {row["id"] for row in rows if row["context"] == "D"} == {"solubility_bits"}
    assert found["ranking"]["bought"]["ids"] == ["kinase_bits", "kinase_l2"]
    assert found["source"]["checks"]["alignment"] == "failed"


@pytest.mark.usefixtures("nobody_answers")
def test_a_context_whose_order_is_not_told_from_random_is_cautioned_against_in_text_and_json(
    file, molecular, ranked
):
    found = json.loads(ranked(file, molecular, as_json=True))
    areas = {policy["name"]: policy["area"] for policy in found["record"]["policies"]}
    assert areas["D"]["lower"] < 1.0 < areas["D"]["upper"]
    assert areas["M"]["upper"] < 1.0
    (caution,) = found["cautions"]
    assert caution.startswith("the order by forecasts in context D is not told from random on the evidence's")
    head, _, _ = ranked(file, molecular).partition("\n\n")
    assert head.splitlines()[-1] == f"CAUTION: {caution}"


@pytest.mark.usefixtures("nobody_answers")
def test_what_is_printed_says_checks_record_and_limits(file, molecular, ranked, tmp_path):
    said = ranked(file, molecular, budget=2.0, out=tmp_path / "ranking.csv")
    for words in (
        "commitment, delivery, sensitivity and value passed, alignment failed",
        "rests on the number that an explanation states and not on its reasons",
        "not worth their cost",
        "budget 2: run kinase_bits, kinase_l2 for 1.5 (exact)",
        "On the evidence's own states the order by forecasts in context M had a regret of 0.",
        "the burn-in mean of each intervention",
        "1 proposal forecast without an explanation (D)",
        "they hold for proposals like those",
    ):
        assert words in said
    rows = tables.parse_csv((tmp_path / "ranking.csv").read_bytes(), "ranking.csv")
    assert [row["rank"] for row in rows] == list("123456")


def test_a_proposal_is_asked_in_the_words_settings_and_calls_of_the_study(
    file, molecular, ranked, monkeypatch
):
    (file.parent / REPLIES).unlink()
    model = Says(SAID)
    monkeypatch.setattr(forecaster, "make", lambda *_, **__: model)
    first = ranked(file, molecular, as_json=True)
    assert len(model.asked) == 12
    assert len({prompt.seed for prompt in model.asked}) == 12
    recorded = tables.read_records(molecular / "prompts.jsonl", PromptText)
    one = next(prompt for prompt in recorded if prompt.key.endswith("/M"))
    for prompt in model.asked:
        assert (prompt.system, prompt.grammar, prompt.temperature) == (
            one.system, one.grammar, one.temperature
        )  # fmt: skip
        assert prompt.user.rsplit("\n\n", 1)[1] == one.user.rsplit("\n\n", 1)[1]
    shown = [("<explanation>" in prompt.user) for prompt in model.asked]
    assert shown.count(False) == 2
    assert ranked(file, molecular, as_json=True) == first
    assert len(model.asked) == 12


def test_an_unreadable_reply_is_the_frozen_fallback_and_said(file, molecular, ranked, monkeypatch):
    (file.parent / REPLIES).unlink()
    monkeypatch.setattr(forecaster, "make", lambda *_, **__: Says("I would rather not say."))
    said = ranked(file, molecular)
    assert "12 calls could not be read and became the frozen fallback." in said
    assert "All forecasts are equal: nothing but costs tells the proposals apart." in said


def test_another_model_than_the_evidences_is_refused(file, molecular, ranked, monkeypatch):
    (file.parent / REPLIES).unlink()
    monkeypatch.setattr(forecaster, "make", lambda *_, **__: Says(SAID, resolved="other@1"))
    with pytest.raises(BadSource, match=r"smollm2 was served as other@1, and .* is about SmolLM2-135M"):
        ranked(file, molecular)


@pytest.mark.usefixtures("nobody_answers")
def test_forecasts_of_the_file_are_taken_and_nobody_is_asked(forecasts, molecular, ranked):
    said = ranked(forecasts(), molecular)
    assert "smollm2 (forecasts of the file), checked in" in said
    assert "That the forecasts are smollm2's is the file's word: nothing here can check it" in said
    assert not (forecasts().parent / "mine.replies.jsonl").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"point": 3.0}, r"line 1, column 'point': 3 is outside what roc_auc can be, \[-1, 1\]"),
        ({"cost": -1}, r"line 1, column 'cost': the cost is -1"),
    ],
)
def test_a_forecast_or_cost_that_cannot_be_is_refused_by_line_and_column(
    forecasts, molecular, ranked, change, sentence
):
    with pytest.raises(BadSource, match=sentence):
        ranked(forecasts(change), molecular)


def test_a_forecaster_without_evidence_is_refused(forecasts, molecular, ranked):
    path = forecasts(*[{"forecaster": "oracle9"}] * 3)
    with pytest.raises(BadSource, match=r"line 1, column 'forecaster': 'oracle9' .* smollm2 has"):
        ranked(path, molecular)


def test_evidence_whose_sensitivity_failed_may_not_rank(forecasts, root, ranked):
    with pytest.raises(BadSource) as refused:
        ranked(forecasts(), root / "results" / "tabular-packaged-full")
    said = str(refused.value)
    assert "tabular-packaged-full does not let its forecaster rank: sensitivity failed (0.29" in said


def test_of_two_evidences_the_one_that_failed_is_left_out_and_named(forecasts, molecular, root, ranked):
    tabular = root / "results" / "tabular-packaged-full"
    said = ranked(forecasts(), tabular, molecular)
    assert f"checked in {molecular}" in said
    assert f"{tabular}: not used, sensitivity failed" in said


def test_evidence_on_unlike_outcomes_is_not_mixed(forecasts, molecular, root, ranked):
    with pytest.raises(BadConfig, match=r"roc_auc in .* and accuracy_pp in .*; name one by --target"):
        ranked(forecasts(), molecular, root / "results" / "controlled-full")


def test_of_several_that_passed_the_one_with_the_best_interval_score_is_taken(molecular):
    found = rank.candidate(molecular, None, None)
    worse = replace(found, where="worse", panel=replace(found.panel, lower=found.panel.lower - 1.0))
    assert worse.score > found.score
    given = proposals.read(sheets.read(molecular.parents[1] / "tests" / "data" / EXAMPLE))
    for order in ([worse, found], [found, worse]):
        assert rank.choose(order, given, "p.jsonl") is found


def test_without_value_explanations_are_set_aside(file, molecular, ranked, as_if, monkeypatch):
    as_if(value="failed")
    (file.parent / REPLIES).unlink()
    model = Says(SAID)
    monkeypatch.setattr(forecaster, "make", lambda *_, **__: model)
    found = json.loads(ranked(file, molecular, as_json=True))
    assert {row["context"] for row in found["ranking"]["rows"]} == {"D"}
    assert not any("<explanation>" in prompt.user for prompt in model.asked)
    assert "explanations are not used" in found["notes"][0]


def test_without_value_a_forecast_that_saw_its_explanation_is_refused(forecasts, molecular, ranked, as_if):
    as_if(value="not_estimable")
    with pytest.raises(BadSource, match=r"column 'context': context M may not be used, for value did not"):
        ranked(forecasts(), molecular)
    assert "shown D" not in ranked(forecasts(*[{"context": "D"}] * 3), molecular)


@pytest.mark.parametrize("name", ["commitment", "delivery", "sensitivity"])
def test_each_needed_check_stops_a_ranking(forecasts, molecular, ranked, as_if, name):
    as_if(**{name: "not_estimable"})
    with pytest.raises(BadSource, match=f"does not let its forecaster rank: {name} not estimable"):
        ranked(forecasts(), molecular)


def test_a_changed_bundle_ranks_nothing(forecasts, molecular, ranked, tmp_path):
    spoiled = Path(shutil.copytree(molecular, tmp_path / "bundle"))
    outcomes = spoiled / "outcomes.csv"
    outcomes.write_bytes(outcomes.read_bytes().replace(b"0.", b"1.", 1))
    with pytest.raises(Tampered, match=r"bundle does not verify: outcomes.csv: its bytes are not"):
        ranked(forecasts(), spoiled)


def test_a_project_is_evidence_too(forecasts, reader, ranked):
    found = json.loads(ranked(forecasts(), reader, as_json=True))
    assert found["source"]["where"] == str(reader)
    assert [row["id"] for row in found["ranking"]["rows"]] == ["p0", "p1", "p2"]


def test_a_project_that_is_not_decided_ranks_nothing(forecasts, ranked, tmp_path):
    project(tmp_path / "young")
    with pytest.raises(Tampered, match=r"young does not verify: ledger.jsonl: .* is not decided yet"):
        ranked(forecasts(), tmp_path / "young")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"study": "tabular"}, r"holds no study 'tabular'; it holds molecular"),
        ({"target": "skill"}, r"has no target 'skill'; it forecasts roc_auc"),
        ({"budget": 0.0}, r"--budget is an amount above 0"),
        ({"baseline": float("nan")}, r"--baseline is a finite outcome in ROC AUC; seen nan"),
        ({"baseline": 3.0}, r"--baseline 3 is outside what roc_auc can be, \[-1, 1\]"),
        ({"max_cost": -1.0}, r"--max-cost is an amount above 0 in USD; seen -1"),
        ({"equal_costs": True}, r"--equal-costs belongs to --replay"),
    ],
)
def test_words_that_do_not_fit_are_refused(forecasts, molecular, ranked, words, sentence):
    with pytest.raises(BadConfig, match=sentence):
        ranked(forecasts(), molecular, **words)


def test_a_replay_takes_no_proposals_and_a_ranking_needs_evidence(forecasts, molecular, ranked):
    with pytest.raises(BadConfig, match="leave a file of proposals out"):
        ranked(forecasts(), replay=molecular)
    with pytest.raises(BadConfig, match=r"give a file of proposals and --using EVIDENCE"):
        ranked(forecasts())
    with pytest.raises(PredictiveCreditError, match="is neither a project"):
        ranked(forecasts(), molecular / "metrics")


def test_a_level_needs_to_be_told_which_one_is_no_gain(molecular, ranked, forecasts, monkeypatch):
    whole = rank.candidate

    def level(*words: Any) -> Candidate:
        found = whole(*words)
        return replace(found, panel=replace(found.panel, target=replace(found.panel.target, form="level")))

    monkeypatch.setattr(rank, "candidate", level)
    with pytest.raises(BadConfig, match=r"roc_auc is a level, .* give it by --baseline"):
        ranked(forecasts(), molecular)
    found = json.loads(ranked(forecasts(), molecular, baseline=0.5, as_json=True))
    assert all(row["gain"] < -0.4 for row in found["ranking"]["rows"])


def test_the_replay_of_the_molecular_study_tells_cards_from_chance_and_the_bare_description_not(
    molecular, ranked
):
    said = ranked(None, replay=molecular)
    lines = {line.split("  ")[1]: line for line in said.splitlines() if " random" in line and "[" in line}
    assert lines["M"].endswith("better than random")
    assert lines["D"].endswith("not told from random")
    assert "0 is the oracle's order, 1 what a random order does" in said
    assert said.count("may rank") == 1


def test_the_replay_of_the_tabular_study_says_that_it_may_not_rank(root, ranked):
    said = ranked(None, replay=root / "results" / "tabular-packaged-full")
    assert "smollm2 may not rank: sensitivity failed" in said


def test_passed_checks_and_a_worthless_order_are_both_told(root, ranked):
    found = json.loads(ranked(None, replay=root / "results" / "controlled-full", as_json=True))
    by_name = {policy["name"]: policy for policy in found["replayed"]["policies"]}
    assert found["refusal"] is None
    assert by_name["M"]["verdict"] == "not told from random"


def test_lower_log_loss_is_the_gain_of_the_controlled_studys_other_target(root, ranked):
    found = json.loads(
        ranked(None, replay=root / "results" / "controlled-full", target="log_loss", as_json=True)
    )
    assert found["source"]["better"] == "lower"
    assert max(found["replayed"]["oracle"]) > 0.0 > found["replayed"]["all"]


def test_the_command_line_prints_or_refuses_in_one_sentence(file, molecular, root, capsys, tmp_path):
    def run(*words: object) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as stop:
            cli.main(["rank", *map(str, words)])
        captured = capsys.readouterr()
        return stop.value.code, captured.out, captured.err

    code, out, _ = run(file, "--using", molecular, "--root", tmp_path)
    assert code == 0
    assert "6 proposals by expected gain per cost" in out
    code, out, err = run(file, "--using", root / "results" / "tabular-packaged-full")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    code, out, err = run(tmp_path / "none.jsonl", "--using", molecular)
    assert (code, out, err.count("\n")) == (1, "", 1)
