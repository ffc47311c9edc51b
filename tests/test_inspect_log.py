import json
from typing import Any

import pytest

from predictive_credit import canonical
from predictive_credit.errors import BadSource
from predictive_credit.formats import inspect_log
from predictive_credit.formats.inspect_log import Call, Header
from predictive_credit.records import Context, Forecast, Outcome, Prompt, Reply, Unit, UnitKind
from tests.trials import prompt

HEADER = Header(
    study="molecular", scale="quick", model="flash", planned="2026-03-01T10:00:00+00:00",
    frozen="2026-03-01T11:00:00+00:00", version="0.1.0", frozen_digest="ab" * 32,
)  # fmt: skip
FLASH = Reply(
    text='{"roc_auc": …}\n', finish_reason="stop", model_requested="flash", model_resolved="flash-2026",
    prompt_tokens=100, completion_tokens=20, cached_tokens=60, latency_s=1.5, cost_usd=0.002, attempts=2,
    endpoint="https://example.org/v1",
)  # fmt: skip
SILENT = Reply(text="", finish_reason="no reply in 120 s", model_requested="flash", model_resolved=None)
VALUE = Outcome(state_id="m/a/1", target="roc_auc", value=0.5)
UNDEFINED = Outcome(state_id="m/a/1", target="log_loss", value=None, reason="one class")


def call(n: int, reply: Reply, *outcomes: Outcome) -> Call:
    asked = prompt(seed=n)
    unit = Unit(
        id=f"m/a/1/M/{n}", kind=UnitKind.FORECAST, state_id="m/a/1", context=Context.MATCHED, call=n,
        explanation_of="m/a/1", prompt_digest=canonical.digest(asked), seed=n,
    )  # fmt: skip
    forecasts = [
        Forecast(unit_id=unit.id, target=name, point=0.25, lower=0.0, upper=0.25 * n)
        for name in ("roc_auc", "log_loss")
    ]
    return Call(unit=unit, prompt=asked, reply=reply, forecasts=forecasts, outcomes=outcomes)


def written(*calls: Call) -> dict[str, Any]:
    return dict(json.loads(inspect_log.write(HEADER, calls)))


def foreign(**changed: Any) -> bytes:
    """A log as Inspect writes it of a run that knew nothing of us."""
    sample = {
        "id": 1, "epoch": 3, "input": "What will happen?", "target": "",
        "messages": [
            {"role": "system", "content": "You forecast."},
            {"role": "user", "content": "What will happen?"},
            {"role": "assistant", "content": "It rises."},
        ],
        "output": {
            "model": "gpt-x-2026",
            "choices": [{"message": {"role": "assistant", "content": "It rises."}, "stop_reason": "stop"}],
            "usage": {
                "input_tokens": 5, "output_tokens": 4, "total_tokens": 12, "input_tokens_cache_read": 3,
            },
            "time": 0.5,
        },
        "metadata": {},
    } | changed  # fmt: skip
    return json.dumps({"version": 2, "eval": {"model": "openai/gpt-x"}, "samples": [sample]}).encode()


def test_a_logged_reply_reads_back_whole():
    calls = [call(1, FLASH), call(2, SILENT)]
    read = list(inspect_log.read(inspect_log.write(HEADER, calls), "log.json"))
    assert [(logged.digest, logged.reply) for logged in read] == [
        (c.unit.prompt_digest, c.reply) for c in calls
    ]


def test_a_sample_says_what_was_asked_and_what_came_back():
    (sample,) = written(call(1, FLASH))["samples"]
    assert (sample["id"], sample["epoch"], sample["target"]) == ("m/a/1/M/1", 1, "")
    assert [m["role"] for m in sample["messages"]] == ["system", "user", "assistant"]
    assert sample["input"] == sample["messages"][:2]
    assert sample["output"]["model"] == "flash-2026"
    assert (
        sample["output"]["choices"][0]["message"]["content"] == sample["output"]["completion"] == FLASH.text
    )
    assert sample["output"]["time"] == 1.5
    assert {"context", "call", "seed", "temperature", "grammar", "cost_usd"} <= sample["metadata"].keys()


def test_the_metadata_and_messages_give_the_planned_prompt_again():
    (sample,) = written(call(1, FLASH))["samples"]
    said = {message["role"]: message["content"] for message in sample["input"]}
    settings = ("grammar", "max_tokens", "temperature", "top_p", "seed")
    again = Prompt(
        system=said["system"], user=said["user"], **{key: sample["metadata"][key] for key in settings}
    )
    assert canonical.digest(again) == sample["metadata"]["prompt_digest"]


def test_cached_tokens_are_counted_apart_and_summed_by_model():
    log = written(call(1, FLASH), call(2, FLASH), call(3, SILENT))
    assert log["samples"][0]["output"]["usage"] == {
        "input_tokens": 40, "output_tokens": 20, "total_tokens": 120, "input_tokens_cache_read": 60,
        "total_cost": 0.002,
    }  # fmt: skip
    assert log["samples"][2]["output"]["usage"] is None
    assert log["stats"]["model_usage"] == {
        "flash-2026": {
            "input_tokens": 80, "output_tokens": 40, "total_tokens": 240, "input_tokens_cache_read": 120,
            "total_cost": 0.004,
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("reason", "stop"), [("length", "max_tokens"), ("no reply in 9 s", "unknown"), (None, "unknown")]
)
def test_a_finish_reason_becomes_one_of_inspects_and_survives(reason: str | None, stop: str):
    reply = Reply(text="x", finish_reason=reason, model_requested="m", model_resolved=None)
    data = inspect_log.write(HEADER, [call(1, reply)])
    assert json.loads(data)["samples"][0]["output"]["choices"][0]["stop_reason"] == stop
    (logged,) = inspect_log.read(data, "log.json")
    assert logged.reply.finish_reason == reason


def test_before_the_opening_nothing_is_scored():
    log = written(call(1, FLASH))
    assert "scores" not in log["samples"][0]
    assert log["results"]["scores"] == []


def test_after_the_opening_each_defined_target_has_its_scores_and_their_means():
    log = written(call(1, FLASH, VALUE, UNDEFINED), call(2, FLASH, VALUE, UNDEFINED))
    first, second = log["samples"]
    assert first["target"] == ["0.5", "undefined: one class"]
    assert {name: score["value"] for name, score in first["scores"].items()} == {
        "roc_auc_point_error": 0.25,
        "roc_auc_interval_score": pytest.approx(0.25 + 10 * 0.25),
    }
    assert second["scores"]["roc_auc_interval_score"]["value"] == 0.5  # the interval ends at the outcome
    means = {score["name"]: score["metrics"]["mean"]["value"] for score in log["results"]["scores"]}
    assert means == {"roc_auc_point_error": 0.25, "roc_auc_interval_score": pytest.approx((2.75 + 0.5) / 2)}


def test_what_describes_the_samples_stands_before_them():
    # Inspect reads a log's header by streaming, and stops at the samples.
    assert list(written(call(1, FLASH)))[-1] == "samples"


def test_equal_studies_give_equal_logs():
    assert inspect_log.write(HEADER, [call(1, FLASH)]) == inspect_log.write(HEADER, [call(1, FLASH)])


def test_a_log_from_elsewhere_gives_text_model_tokens_and_epoch():
    (logged,) = inspect_log.read(foreign(), "theirs.json")
    assert (logged.digest, logged.said, logged.epoch) == (None, ("You forecast.", "What will happen?"), 3)
    assert logged.reply == Reply(
        text="It rises.", finish_reason="stop", model_requested="openai/gpt-x", model_resolved="gpt-x-2026",
        prompt_tokens=8, completion_tokens=4, cached_tokens=3, latency_s=0.5,
    )  # fmt: skip


def test_long_texts_may_be_attached_and_reasoning_is_no_part_of_an_answer():
    parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "attachment://k"}]
    output = {"choices": [{"message": {"content": parts}, "stop_reason": "max_tokens"}]}
    (logged,) = inspect_log.read(foreign(output=output, attachments={"k": "It falls."}), "theirs.json")
    assert (logged.reply.text, logged.reply.finish_reason) == ("It falls.", "length")
    assert logged.reply.prompt_tokens is None


@pytest.mark.parametrize("data", [b"PK\x03\x04", b"[]", b'{"samples": []}'], ids=["zip", "list", "no eval"])
def test_what_is_no_log_is_one_sentence(data: bytes):
    with pytest.raises(BadSource, match=r"log\.eval is not an Inspect log in JSON"):
        list(inspect_log.read(data, "log.eval"))


@pytest.mark.parametrize(
    "changed", [{"output": {}}, {"messages": [{}]}, {"epoch": None}], ids=["output", "messages", "epoch"]
)
def test_a_sample_without_messages_or_output_is_named(changed: dict[str, Any]):
    with pytest.raises(BadSource, match=r"log\.json sample 1 is not one of an Inspect log"):
        list(inspect_log.read(foreign(**changed), "log.json"))
