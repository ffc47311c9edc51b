import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit import contexts, wording
from predictive_credit.forecasters import forecaster, json_object
from predictive_credit.records import MalformedForecast
from tests.trials import ONE, TWO, burn_in, reply

GOOD = '{"roc_auc": {"point": 0.012, "lower": -0.004, "upper": 0.03}}'
DEEP = '{"roc_auc": ' * 100_000


def read(text: str) -> tuple[float, float, float]:
    (found,) = json_object.read(text, "u", ONE)
    return found.point, found.lower, found.upper


def body(**changed: Any) -> str:
    return json.dumps({"roc_auc": {"point": 0.012, "lower": -0.004, "upper": 0.03} | changed})


def test_an_object_is_read_in_the_targets_unit():
    assert read(GOOD) == (0.012, -0.004, 0.03)


def test_two_targets_are_read_in_the_studys_order_whatever_theirs():
    numbers = {"point": 1, "lower": 0, "upper": 2.5}
    text = json.dumps({"log_loss": numbers | {"upper": 2}, "accuracy_pp": numbers})
    assert [(f.target, f.upper) for f in json_object.read(text, "u", TWO)] == [
        ("accuracy_pp", 2.5),
        ("log_loss", 2.0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        f"  {GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"Let me think. A set {{a, b}} of labels helps.\n\n{GOOD}",
        f"<think>first {GOOD.replace('0.012', '0.5')} no</think>{GOOD}",
        f"<thinking>\n{{}}\n</thinking>\nSure! {GOOD} I hope this helps.",
        f"a draft {GOOD.replace('0.012', '0.5')} that its template opened\n</think>\n\n{GOOD}",
        f"Of an empty set {{}} nothing follows. {GOOD}",
        f"{GOOD}\nOnce more:\n{GOOD}",
    ],
    ids=["space", "fence", "prose with braces", "thinking", "prose around", "no opening", "empty", "twice"],
)
def test_what_surrounds_the_object_is_forgiven(text: str):
    assert read(text) == (0.012, -0.004, 0.03)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object in ''"),
        ("I cannot help with that.", "no JSON object"),
        (GOOD[:-1], "was to hold roc_auc and holds the keys 'point'"),
        (GOOD[:40], "no JSON object"),
        (GOOD + GOOD.replace("0.012", "0.013"), "2 JSON objects"),
        ('{"forecast": 0.012}', "was to hold roc_auc and holds the keys 'forecast'"),
        ('{"roc_auc": 0.012}', "roc_auc was to hold point, lower, upper and holds 0.012"),
        ('{"roc_auc": [0.012, -0.004, 0.03]}', "roc_auc was to hold point, lower, upper"),
        (body(confidence=0.8), "holds the keys 'point', 'lower', 'upper', 'confidence'"),
        (body(point="0.012"), "roc_auc.point is '0.012', not a number"),
        (body(point="1.2%"), "roc_auc.point is '1.2%', not a number"),
        (body(point=None), "roc_auc.point is None, not a number"),
        (body(point=True), "roc_auc.point is True, not a number"),
        (body(upper=float("nan")), "no JSON object"),
        (body(upper=float("inf")), "no JSON object"),
        (GOOD.replace("0.03", "1e999"), "holds a non-finite number"),
        (GOOD.replace("0.03", "1" + "0" * 400), "larger than any number can be"),
        (GOOD.replace("0.03", "9" * 5000), "no JSON object"),
        (body(lower=0.03, upper=-0.004), "is reversed, 0.03 > -0.004"),
        (body(point=1.7, upper=1.8), "has a point of 1.7 where [-1, 1] is possible"),
        (body(lower=-40), "too far out"),
        (GOOD.replace('"lower"', '"point"'), "no JSON object"),
        ("x" * 200_001, "200,001 characters"),
        (DEEP, "characters where one JSON object was asked for"),
        ("{" * 90_000, "no JSON object"),
    ],
    ids=lambda text: text[:24],
)
def test_what_is_not_the_object_is_malformed_and_says_how(text: str, reason: str):
    with pytest.raises(MalformedForecast) as raised:
        json_object.read(text, "u", ONE)
    assert reason in str(raised.value)
    assert len(str(raised.value)) < 300
    (found,) = forecaster.read_or_fallback(reply(text), "u", burn_in(), ONE, elicitation="json")
    assert found.is_fallback


@given(st.text(alphabet='{}[]"\\:,.0123456789eE+-truefalsnNaI rocau_pintlwp', max_size=200))
def test_any_text_is_a_forecast_or_malformed(text: str):
    with contextlib.suppress(MalformedForecast):
        (found,) = json_object.read(text, "u", ONE)
        assert found.lower <= found.upper


def test_the_schema_closes_every_object_and_asks_in_the_order_of_the_question():
    schema = json.loads(json_object.schema(TWO))
    assert list(schema["properties"]) == ["accuracy_pp", "log_loss"]
    inner = schema["properties"]["log_loss"]
    assert list(inner["properties"]) == inner["required"] == ["point", "lower", "upper"]
    assert not schema["additionalProperties"]
    assert not inner["additionalProperties"]


def test_the_question_shows_the_shape_and_each_unit_and_no_size():
    asked = contexts.question(TWO, forecaster.QUESTIONS["json"])
    assert wording.shape(TWO) in asked
    assert "accuracy_pp is a change in percentage points; log_loss is a change in nats" in asked
    assert not any(digit in asked.replace("80%", "") for digit in "0123456789")
