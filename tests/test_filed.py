import json
from dataclasses import replace
from pathlib import Path

import pytest

from predictive_credit import canonical, compose, config
from predictive_credit.errors import BadSource
from predictive_credit.forecasters import forecaster, json_object
from predictive_credit.forecasters.filed import Filed
from predictive_credit.records import BurnIn, Target, TargetBurnIn
from predictive_credit.studies import params as study_params
from predictive_credit.studies.molecular.interventions import TARGET as ROC_AUC
from tests.conftest import ROOT

LOG_LOSS = replace(ROC_AUC, name="log_loss", phrase="log loss")
LEARNED = TargetBurnIn(
    n_outcomes=9, n_undefined=0, mean=0.0, mean_absolute=0.01, q10=-0.03, q90=0.02, by_intervention={}
)
BURN_IN = BurnIn(name="b", tasks=("t",), targets={"roc_auc": LEARNED, "log_loss": LEARNED})


def rows(state: str, call: str, numbers: str, target: str = "roc_auc") -> list[str]:
    return [
        f"{state},{target},M,{call},quantile,{level},{value}"
        for level, value in zip(("0.1", "0.5", "0.9"), numbers.split(), strict=True)
    ]


def filed(folder: Path, *lines: str, targets: tuple[Target, ...] = (ROC_AUC,)) -> Filed:
    path = folder / "theirs.csv"
    path.write_text("\n".join(("state,target,context,call,output_type,output_type_id,value", *lines, "")))
    return Filed(path, targets, name="file")


def read(found: Filed, unit_id: str, targets: tuple[Target, ...] = (ROC_AUC,)):
    reply = found.reply(unit_id)
    return forecaster.read_or_fallback(reply, unit_id, BURN_IN, targets, elicitation="json")


def test_a_unit_gets_its_own_call_as_the_object_a_model_would_write(tmp_path: Path):
    found = filed(tmp_path, *rows("a/1", "1", "-.01 0.0200 0.03"), *rows("a/1", "2", "-0.02 0.01 0.04"))
    reply = found.reply("a/1/M/1")
    assert reply.text == '{"roc_auc": {"point": 0.0200, "lower": -0.01, "upper": 0.03}}'
    (second,) = json_object.read(found.reply("a/1/M/2").text, "a/1/M/2", [ROC_AUC])
    assert (second.point, second.lower, second.upper) == (0.01, -0.02, 0.04)


def test_a_reply_names_the_file_and_its_digest(tmp_path: Path):
    reply = filed(tmp_path, *rows("a/1", "1", "0 0 0")).reply("a/1/M/1")
    digest = canonical.digest_file(tmp_path / "theirs.csv")
    assert reply.model_resolved == f"theirs.csv@sha256:{digest[:12]}"
    assert reply.model_requested == "file"


def test_without_a_call_column_both_calls_get_the_same_forecast(tmp_path: Path):
    path = tmp_path / "f.csv"
    lines = [line.replace("M,1,", "M,") for line in rows("a/1", "1", "0 0.1 0.2")]
    path.write_text("\n".join(("state,target,context,output_type,output_type_id,value", *lines)))
    found = Filed(path, [ROC_AUC], name="file")
    assert found.reply("a/1/M/1") == found.reply("a/1/M/2")
    assert json.loads(found.reply("a/1/M/1").text)["roc_auc"]["point"] == 0.1


def test_a_unit_without_rows_is_the_fallback_with_the_reason(tmp_path: Path):
    found = filed(tmp_path, *rows("a/1", "1", "0 0 0"))
    assert found.reply("a/1/M/2").text == ""
    (forecast,) = read(found, "a/1/M/2")
    assert forecast.is_fallback
    assert forecast.reason == "not finished: error: no row of roc_auc of a/1/M/2"


def test_a_unit_that_lacks_one_of_two_targets_is_the_fallback_in_both(tmp_path: Path):
    both = (ROC_AUC, LOG_LOSS)
    found = filed(tmp_path, *rows("a/1", "1", "0 0 0"), targets=both)
    forecasts = read(found, "a/1/M/1", both)
    assert [f.is_fallback for f in forecasts] == [True, True]
    assert "no row of log_loss" in str(forecasts[0].reason)


def test_crossing_quantiles_are_kept_and_refused_by_the_reader(tmp_path: Path):
    found = filed(tmp_path, *rows("a/1", "1", "0.05 0.01 -0.02"))
    assert '"lower": 0.05, "upper": -0.02' in found.reply("a/1/M/1").text
    (forecast,) = read(found, "a/1/M/1")
    assert forecast.is_fallback
    assert "reversed" in str(forecast.reason)


def test_rows_of_states_that_are_not_planned_are_ignored(tmp_path: Path):
    found = filed(tmp_path, *rows("elsewhere/1", "1", "0 0 0"), *rows("a/1", "1", "0 0.01 0.02"))
    replies = found.replies(["a/1/M/1", "a/1/M/2"])
    assert [bool(reply.text) for reply in replies.values()] == [True, False]


def test_a_file_about_something_else_is_refused_with_what_it_holds(tmp_path: Path):
    found = filed(tmp_path, *rows("elsewhere/1", "1", "0 0 0", target="cases"))
    with pytest.raises(
        BadSource, match=r"any of the 1 units .* begins with cases of state elsewhere/1 in .* M"
    ):
        found.replies(["a/1/M/1"])
    with pytest.raises(BadSource, match="has no rows of output_type quantile"):
        filed(tmp_path).replies(["a/1/M/1"])


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path):
    with pytest.raises(BadSource, match=r"no forecasts at .*absent\.csv"):
        Filed(tmp_path / "absent.csv", [ROC_AUC], name="file")


def test_the_configured_file_is_watched_and_read_as_json():
    raw = compose.compose(ROOT, ["forecaster=file", "forecaster.path=theirs.csv"])
    chosen = study_params.parse(raw, origin="conf/").forecaster
    assert isinstance(chosen, config.Filed)
    assert (chosen.watch, chosen.elicitation) == ("theirs.csv", "json")
