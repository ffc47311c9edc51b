import json
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit import config
from predictive_credit.forecasters import forecaster, sentence
from predictive_credit.records import BurnIn, MalformedForecast, Target
from predictive_credit.wording import Stated
from tests.trials import ACCURACY, LOG_LOSS, ONE, ROC_AUC, TWO, burn_in, learned, reply

WHOLE = "ROC AUC will decrease by 0.0120 (80% interval: minus 0.0300, plus 0.0050)"
BOTH = (
    "Accuracy will increase by 1.20 percentage points (80% interval: minus 0.50, plus 0.90); "
    "log loss will decrease by 0.0200 nats (80% interval: minus 0.0100, plus 0.0300)"
)
YIELD = Target(
    name="yield",
    phrase="Yield (isolated)",
    unit="%",
    suffix=" %",
    size="??#",
    lower=0,
    upper=100,
    form="level",
)
SHIFT = replace(YIELD, name="shift", phrase='The "shift"', suffix="", size="#.##", lower=-9)
ten_thousandths = st.integers(0, 999).map(lambda n: n / 1e4)


def test_the_molecular_sentence_is_held_by_the_grammar_it_always_had():
    assert sentence.grammar(ONE).splitlines() == [
        'root ::= "ROC AUC will " verb " by " size " (80% interval: minus " size ", plus " size ")"',
        'verb ::= "increase" | "decrease"',
        'size ::= "0.0" [0-9] [0-9] [0-9]',
    ]


def test_the_word_carries_the_sign_and_the_distances_reach_down_and_up():
    (forecast,) = sentence.read(WHOLE, "u", ONE)
    assert (forecast.point, forecast.lower, forecast.upper) == pytest.approx((-0.012, -0.042, -0.007))
    assert forecast.target == "roc_auc"
    assert not forecast.is_fallback


@given(point=ten_thousandths, minus=ten_thousandths, plus=ten_thousandths, down=st.booleans())
def test_what_is_written_is_read_again(point: float, minus: float, plus: float, down: bool):
    signed = -point if down else point
    text = sentence.write([Stated(point=signed, minus=minus, plus=plus)], ONE)
    assert is_held(text, ONE)
    (forecast,) = sentence.read(text, "u", ONE)
    assert forecast.point == pytest.approx(signed)
    assert forecast.lower == pytest.approx(signed - minus)
    assert forecast.upper == pytest.approx(signed + plus)
    assert forecast.lower <= forecast.point <= forecast.upper


def test_two_targets_are_two_clauses_each_in_its_unit():
    stated = [Stated(point=1.2, minus=0.5, plus=0.9), Stated(point=-0.02, minus=0.01, plus=0.03)]
    assert sentence.write(stated, TWO) == BOTH
    accuracy, log_loss = sentence.read(BOTH, "u", TWO)
    assert (accuracy.target, log_loss.target) == ("accuracy_pp", "log_loss")
    assert (accuracy.point, accuracy.lower, accuracy.upper) == pytest.approx((1.2, 0.7, 2.1))
    assert (log_loss.point, log_loss.lower, log_loss.upper) == pytest.approx((-0.02, -0.03, 0.01))


amounts = st.lists(st.integers(0, 9999), min_size=3, max_size=3)


@given(in_hundredths=amounts, in_ten_thousandths=amounts, signs=st.tuples(st.booleans(), st.booleans()))
def test_two_targets_are_read_as_they_were_written_and_held_by_their_grammar(
    in_hundredths: list[int], in_ten_thousandths: list[int], signs: tuple[bool, bool]
):
    scaled = [n / 100 for n in in_hundredths], [n / 1e4 for n in in_ten_thousandths]
    stated = [
        Stated(point=-point if is_down else point, minus=minus, plus=plus)
        for (point, minus, plus), is_down in zip(scaled, signs, strict=True)
    ]
    text = sentence.write(stated, TWO)
    assert is_held(text, TWO)
    for forecast, told in zip(sentence.read(text, "u", TWO), stated, strict=True):
        assert forecast.point == pytest.approx(told.point)
        assert forecast.lower == pytest.approx(told.point - told.minus)
        assert forecast.upper == pytest.approx(told.point + told.plus)


def test_a_level_is_said_without_a_verb_of_change_and_with_a_sign_only_where_it_can_have_one():
    levels = (YIELD, SHIFT)
    text = sentence.write(
        [Stated(point=71, minus=10, plus=9), Stated(point=-2.5, minus=1, plus=0.25)], levels
    )
    assert text == (
        "Yield (isolated) will be 71 % (80% interval: minus 10, plus 9); "
        'The "shift" will be minus 2.50 (80% interval: minus 1.00, plus 0.25)'
    )
    assert is_held(text, levels)
    found = sentence.read(text, "u", levels)
    assert [(f.point, f.lower, f.upper) for f in found] == [(71, 61, 80), (-2.5, -3.5, -2.25)]
    with pytest.raises(MalformedForecast):
        sentence.read("Yield (isolated) will be minus 71 % (80% interval: minus 1, plus 1)", "u", (YIELD,))


def test_white_space_around_the_sentence_is_forgiven():
    assert sentence.read(f" \n{WHOLE}\n", "u", ONE) == sentence.read(WHOLE, "u", ONE)


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
        sentence.read(text, "molecular/x/1", ONE)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        BOTH.partition("; ")[0],
        "; ".join(reversed(BOTH.split("; "))),
        BOTH.replace("; ", " and "),
        BOTH.replace(" percentage points", ""),
        BOTH.replace(" nats", " percentage points"),
        BOTH + "; " + WHOLE,
    ],
)
def test_a_sentence_that_lacks_a_target_its_unit_or_their_order_is_malformed(text: str):
    with pytest.raises(MalformedForecast, match="not the sentence asked for"):
        sentence.read(text, "u", TWO)


@pytest.mark.parametrize(
    ("point", "minus", "plus", "said"),
    [
        ("500.00", "0.50", "0.90", r"accuracy_pp has a point of 500 where \[-100, 100\] is possible"),
        ("100.01", "0.50", "0.90", "has a point of 100.01"),
        ("9" * 308 + ".0", "0.50", "0.90", r"has a point of 1e\+308"),
        ("1.00", "301.01", "0.90", r"has the interval \[-300\.01, 1\.9\].*too far out by more than 200"),
        ("1.00", "0.50", "299.01", r"has the interval \[0\.5, 300\.01\]"),
        ("1.00", "9" * 308 + ".0", "0.90", r"has the interval \[-1e\+308, 1\.9\]"),
    ],
)
def test_a_number_beyond_what_is_possible_is_malformed_and_costs_one_forecast_alone(
    point: str, minus: str, plus: str, said: str
):
    text = BOTH.replace("1.20", point).replace("0.50,", f"{minus},").replace("0.90", plus)
    with pytest.raises(MalformedForecast, match=said) as raised:
        sentence.read(text, "u", TWO)
    assert len(str(raised.value)) < 200
    known = burn_in(q10=-0.1, q90=0.2, targets=TWO)
    found = forecaster.read_or_fallback(reply(text), "u", known, TWO, elicitation="sentence")
    assert [(f.point, f.lower, f.upper, f.is_fallback) for f in found] == [(0.0, -0.1, 0.2, True)] * 2


def test_a_possible_point_may_be_extreme_and_its_interval_stick_out_by_the_width_of_the_range():
    text = BOTH.replace("1.20", "100.00").replace("0.50,", "400.00,").replace("0.90", "200.00")
    accuracy, _ = sentence.read(text, "u", TWO)
    assert (accuracy.point, accuracy.lower, accuracy.upper) == (100.0, -300.0, 300.0)
    level, below = "Yield (isolated) will be {} % (80% interval: minus 1, plus 1)", "[0, 100] is possible"
    assert sentence.read(level.format(0), "u", (YIELD,))[0].lower == -1
    with pytest.raises(MalformedForecast, match=re.escape(below)):
        sentence.read(level.format(101), "u", (YIELD,))


def test_an_unreadable_reply_becomes_the_frozen_fallback_with_its_reason():
    (forecast,) = forecaster.read_or_fallback(
        reply("BANANA"), "u", burn_in(q10=-0.011, q90=0.022), ONE, elicitation="sentence"
    )
    assert (forecast.point, forecast.lower, forecast.upper) == (0.0, -0.011, 0.022)
    assert forecast.is_fallback
    assert forecast.reason == "not the sentence asked for: 'BANANA'"


def test_a_reply_that_is_unreadable_in_one_target_is_the_fallback_in_all():
    known = BurnIn(
        name="b",
        tasks=(),
        targets={"accuracy_pp": learned(q10=-2, q90=3), "log_loss": learned(q10=-0.1, q90=0.2)},
    )
    broken = reply(BOTH.replace("0.0200", "2e-2"))
    found = forecaster.read_or_fallback(broken, "u", known, TWO, elicitation="sentence")
    assert [(f.target, f.point, f.lower, f.upper, f.is_fallback) for f in found] == [
        ("accuracy_pp", 0.0, -2, 3, True),
        ("log_loss", 0.0, -0.1, 0.2, True),
    ]


def test_the_fallback_of_a_level_is_the_burn_ins_mean():
    known = burn_in(60.0, q10=20.0, q90=90.0, targets=(YIELD,))
    (forecast,) = forecaster.read_or_fallback(reply(""), "u", known, (YIELD,), elicitation="sentence")
    assert (forecast.point, forecast.lower, forecast.upper) == (60.0, 20.0, 90.0)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("length", "truncated"), ("content_filter", "not finished"), ("error: 400", "error: 400")],
)
def test_an_answer_that_did_not_finish_is_not_read_even_if_it_would_parse(finish: str, reason: str):
    (forecast,) = forecaster.read_or_fallback(
        reply(WHOLE, finish), "u", burn_in(), ONE, elicitation="sentence"
    )
    assert forecast.is_fallback
    assert forecast.reason is not None
    assert reason in forecast.reason


@pytest.mark.parametrize("finish", ["stop", None])
def test_a_finished_answer_is_read(finish: str | None):
    found = forecaster.read_or_fallback(reply(WHOLE, finish), "u", burn_in(), ONE, elicitation="sentence")
    assert found == sentence.read(WHOLE, "u", ONE)


def test_a_long_unreadable_reply_is_quoted_in_part():
    with pytest.raises(MalformedForecast) as raised:
        sentence.read("x" * 10_000, "u", ONE)
    assert len(str(raised.value)) < 200


def test_each_target_gets_its_share_of_tokens_and_the_grammar_of_all():
    chosen = config.Priors(
        kind="priors", watch="x", name="priors", point="mean", elicitation="sentence", temperature=0.0,
        top_p=1.0, max_tokens=64, acknowledged_models=(),
    )  # fmt: skip
    assert forecaster.sampling(chosen, ONE).max_tokens == 64
    assert forecaster.sampling(chosen, TWO).max_tokens == 128
    assert forecaster.sampling(chosen, TWO).grammar == sentence.grammar(TWO)


def is_held(text: str, targets: tuple[Target, ...]) -> bool:
    """Whether the grammar generates the text: its rules as one regular expression."""
    rules = dict(line.split(" ::= ", 1) for line in sentence.grammar(targets).splitlines())
    return re.fullmatch(expression("root", rules), text) is not None


def expression(name: str, rules: dict[str, str]) -> str:
    parts = []
    for literal, optional, digit, other in re.findall(
        r'("(?:[^"\\]|\\.)*")(\??)|(\[0-9\]\??)|([\w|-]+)', rules[name]
    ):
        if literal:
            parts.append(f"(?:{re.escape(json.loads(literal))}){optional}")
        else:
            parts.append(digit or ("|" if other == "|" else expression(other, rules)))
    return f"(?:{''.join(parts)})"


def test_a_grammar_refuses_what_its_sizes_do_not_allow():
    assert is_held(BOTH, TWO)
    assert not is_held(BOTH.replace("0.0200", "0.02"), TWO)
    assert not is_held(BOTH.replace("1.20", "101.20"), TWO)
    assert not is_held(WHOLE.replace("0.0120", "0.1120"), (ROC_AUC,))


def test_targets_of_one_size_share_a_rule():
    twin = replace(LOG_LOSS, name="twin", phrase="twin")
    assert sentence.grammar((ACCURACY, LOG_LOSS, twin)).count("::=") == 4
