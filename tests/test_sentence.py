import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit.forecasters import forecaster, sentence
from predictive_credit.records import MalformedForecast
from tests.trials import burn_in, reply

WHOLE = "ROC AUC will decrease by 0.0120 (80% interval: minus 0.0300, plus 0.0050)"
ten_thousandths = st.integers(0, 999).map(lambda n: n / 1e4)


def test_the_word_carries_the_sign_and_the_distances_reach_down_and_up():
    forecast = sentence.read(WHOLE, "u")
    assert (forecast.point, forecast.lower, forecast.upper) == pytest.approx((-0.012, -0.042, -0.007))
    assert not forecast.is_fallback


@given(point=ten_thousandths, minus=ten_thousandths, plus=ten_thousandths, down=st.booleans())
def test_what_is_written_is_read_again(point: float, minus: float, plus: float, down: bool):
    signed = -point if down else point
    forecast = sentence.read(sentence.write(signed, minus, plus), "u")
    assert forecast.point == pytest.approx(signed)
    assert forecast.lower == pytest.approx(signed - minus)
    assert forecast.upper == pytest.approx(signed + plus)
    assert forecast.lower <= forecast.point <= forecast.upper


def test_white_space_around_the_sentence_is_forgiven():
    assert sentence.read(f" \n{WHOLE}\n", "u") == sentence.read(WHOLE, "u")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot help with that.",
        f"{WHOLE}.",
        f"Sure! {WHOLE}",
        f"{WHOLE} {WHOLE}",
        WHOLE[:-1],
        WHOLE.replace("decrease", "change"),
        WHOLE.replace("ROC AUC", "roc auc"),
        WHOLE.replace("0.0120", "-0.0120"),
        WHOLE.replace("0.0120", "nan"),
        WHOLE.replace("0.0120", "1e-2"),
        WHOLE.replace("0.0120", ".0120"),
        WHOLE.replace("0.0120", "٠.٠١"),
        WHOLE.replace("minus 0.0300", "minus -0.0300"),
        WHOLE.replace("80%", "90%"),
        WHOLE.replace("0.0120", "9" * 400 + ".0"),  # reads as infinity
    ],
)
def test_anything_else_is_malformed(text: str):
    with pytest.raises(MalformedForecast, match="unit molecular/x/1"):
        sentence.read(text, "molecular/x/1")


def test_the_grammar_and_the_reader_agree_on_the_words_around_the_numbers():
    literals = re.findall(r'"([^"]*)"', sentence.GRAMMAR.splitlines()[0])
    written = sentence.write(0.0, 0.0, 0.0)
    assert all(literal in written for literal in literals)
    assert len(literals) == 5


def test_an_unreadable_reply_becomes_the_frozen_fallback_with_its_reason():
    forecast = forecaster.read_or_fallback(reply("BANANA"), "u", burn_in(q10=-0.011, q90=0.022))
    assert (forecast.point, forecast.lower, forecast.upper) == (0.0, -0.011, 0.022)
    assert forecast.is_fallback
    assert forecast.reason == "not the sentence asked for: 'BANANA'"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "truncated"), ("content_filter", "not finished"), ("error: 400", "error: 400")],
)
def test_an_answer_that_did_not_finish_is_not_read_even_if_it_would_parse(finish: str, reason: str):
    forecast = forecaster.read_or_fallback(reply(WHOLE, finish), "u", burn_in())
    assert forecast.is_fallback
    assert forecast.reason is not None
    assert reason in forecast.reason


@pytest.mark.parametrize("finish", ["stop", None])
def test_a_finished_answer_is_read(finish: str | None):
    assert forecaster.read_or_fallback(reply(WHOLE, finish), "u", burn_in()) == sentence.read(WHOLE, "u")


def test_a_long_unreadable_reply_is_quoted_in_part():
    with pytest.raises(MalformedForecast) as raised:
        sentence.read("x" * 10_000, "u")
    assert len(str(raised.value)) < 200
