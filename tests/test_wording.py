from dataclasses import replace

import pytest

from predictive_credit import wording
from predictive_credit.wording import Stated
from tests.trials import ACCURACY, LOG_LOSS, ROC_AUC


@pytest.mark.parametrize(
    ("phrase", "inside"),
    [
        ("Accuracy", "accuracy"),
        ("ROC AUC", "ROC AUC"),
        ("log loss", "log loss"),
        ("R2", "R2"),
        ("pH", "pH"),
        ("F", "F"),
        ("Log P", "log P"),
    ],
)
def test_a_phrase_loses_its_capital_inside_a_sentence_unless_it_is_an_abbreviation(phrase: str, inside: str):
    assert wording.in_sentence(replace(ROC_AUC, phrase=phrase)) == inside


@pytest.mark.parametrize(
    ("items", "words"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_a_list_reads_as_a_sentence_does(items: list[str], words: str):
    assert wording.listed(items) == words


def test_a_negative_distance_is_said_to_be_none():
    stated = Stated(point=-0.02, minus=-0.1, plus=0.03)
    assert wording.said(stated, LOG_LOSS) == (
        "log loss will decrease by 0.0200 nats (80% interval: minus 0.0000, plus 0.0300)"
    )


def test_more_digits_than_the_size_has_can_be_asked_for():
    stated = Stated(point=123.456789, minus=1, plus=1)
    assert wording.said(stated, ACCURACY, decimals=6).startswith(
        "Accuracy will increase by 123.456789 percent"
    )


def test_a_phrase_with_a_quotation_mark_is_escaped_in_the_grammar():
    quoted = replace(ROC_AUC, phrase='The "true" AUC')
    assert wording.forecast_rule([quoted]).startswith(r'"The \"true\" AUC will " verb')
