import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit.cards import (
    before_reason,
    check_quotes,
    has_quote,
    read_card,
    read_extraction,
    stated_direction,
    stated_target,
    supported,
    write_extraction,
)
from predictive_credit.records import SLOT_NAMES, Card, Explanation, Slot, Target
from tests.trials import ACCURACY, LOG_LOSS, ONE, ROC_AUC, TWO

WHOLE = """Direction: increase, because bits collide less.
Target: ROC AUC will increase by 0.0120 (80% interval: minus 0.0100, plus 0.0200).
Intermediate: fewer shared bits.
Regime: large compounds.
Falsifier: cross-validated ROC AUC falls.
Counterfactual: with no collisions nothing would change."""


BOTH = (
    "Accuracy will increase by 1.20 percentage points (80% interval: minus 1.70, plus 0.80); "
    "log loss will decrease by 0.0200 nats (80% interval: minus 0.0000, plus 0.0400)."
)


def card_of(text: str, direction: str | None = None) -> Card:
    return Card(
        target=Slot(text=text, quote=text),
        direction=None if direction is None else Slot(text=direction, quote=direction),
    )


def target(text: str, direction: str | None = None, *, of: Target = ROC_AUC) -> float | None:
    return stated_target(card_of(text, direction), of)


def told(text: str, card: Card) -> Explanation:
    return Explanation(state_id="s", source="given", agent="a", text=text, card=card)


def test_six_labelled_lines_fill_six_slots_with_their_own_words():
    card = read_card(WHOLE)
    assert card.is_complete
    assert card.regime == Slot(text="large compounds.", quote="large compounds.")
    assert check_quotes(told(WHOLE, card)) == ()


@pytest.mark.parametrize(
    "filler",
    ["", "   ", "-", "...", "n/a", "N/A.", "None", "unknown", "[to fill in]", "<target>", "____", "TBD", "—"],
)
def test_a_placeholder_is_an_empty_slot(filler: str):
    card = read_card(WHOLE.replace("large compounds.", filler))
    assert card.regime is None
    assert card.falsifier is not None
    assert not card.is_complete


def test_a_text_without_labels_is_the_empty_scaffold():
    assert list(read_card("It will go up, I think, by a lot.").filled()) == []


def test_labels_may_be_bold_listed_and_in_any_order_or_case():
    card = read_card("- **Target**: -0.01\n* REGIME : few actives\n## direction: decrease")
    assert [name for name, _ in card.filled()] == ["direction", "target", "regime"]
    assert stated_target(card, ROC_AUC) == -0.01


def test_a_slot_may_wrap_and_ends_at_a_blank_line():
    card = read_card("Regime: few actives,\n  many inactives\n\nThat is all.\nTarget: +0.01")
    assert card.regime == Slot(text="few actives, many inactives", quote="few actives,\n  many inactives")


def test_the_first_of_two_lines_with_one_label_stands():
    assert stated_target(read_card("Target: +0.01\nTarget: -0.05"), ROC_AUC) == 0.01


def test_a_quote_that_the_text_does_not_hold_is_named_and_its_slot_dropped():
    invented = Card(
        direction=Slot(text="up", quote="bits collide less"),
        regime=Slot(text="x", quote="never written"),
        falsifier=Slot(text="y", quote=" "),
    )
    assert check_quotes(told(WHOLE, invented)) == (
        "regime",
        "falsifier",
    )
    assert [name for name, _ in supported(invented, WHOLE).filled()] == ["direction"]


def test_a_quote_is_the_words_in_their_order():
    assert has_quote("bits\n collide", WHOLE)
    assert not has_quote("collide bits", WHOLE)


@pytest.mark.parametrize(
    "quote", ["e", "in", "crease", "ncrease, becaus", "by 0.012", "012", "0", "AU", "bit"]
)
def test_a_piece_of_a_word_or_of_a_number_is_no_quote(quote: str):
    assert quote in WHOLE
    assert not has_quote(quote, WHOLE)


@pytest.mark.parametrize(
    ("text", "quote", "stands"),
    [
        ("it goes up", "increase", True),  # a whole word of four letters
        ("it goes up", "be", False),
        ("it goes up", "no", False),
        ("it goes up", "7", False),
        ("it goes up", "2026", False),  # no letter
        ("it goes up", "to be", True),  # two words
        ("up", "up", True),  # says no more than itself
        ("+0.01", "+0.01", True),
        ("a rise of 0.01", "about 0.01", True),
        ("a rise of 0.01", "rise by .01", True),  # the same number
        ("a rise of 1,200 rows", "from 1200 rows", True),
        ("a rise of 0.5", "to increase", False),  # who said 0.5?
        ("a rise of 0.01 to 0.03", "about 0.01", False),
        ("an L2 penalty", "to increase", True),  # the 2 of a name is no number
    ],
)
def test_a_quote_vouches_for_a_text_if_it_is_words_and_holds_its_numbers(text: str, quote: str, stands: bool):
    source = f"It is to be. In 2026, no 7 will increase. {quote}"
    assert has_quote(quote, source)
    card = Card(regime=Slot(text=text, quote=quote))
    assert supported(card, source) == (card if stands else Card())
    assert check_quotes(told(source, card)) == (() if stands else ("regime",))


def test_a_direction_of_one_labelled_word_stands():
    source = "Direction: increase\nTarget: +0.01\nRegime: PCA"
    card = read_card(source)
    assert [name for name, _ in card.filled()] == ["direction", "target", "regime"]
    assert supported(card, source) == card


@given(st.text())
def test_any_text_gives_a_card_whose_quotes_occur_in_it(text: str):
    noisy = f"{text}\nTarget: {text}\nRegime:{text}"
    card = read_card(noisy)
    assert check_quotes(told(noisy, card)) == ()
    stated = stated_target(card, ROC_AUC)
    assert stated is None or abs(stated) <= 1


@given(size=st.integers(1, 9999), up=st.booleans())
def test_the_playbooks_sentence_states_its_number_with_the_words_sign(size: int, up: bool):
    verb = "increase" if up else "decrease"
    sentence = f"ROC AUC will {verb} by 0.{size:04d} (80% interval: minus 0.0100, plus 0.0200)."
    assert target(sentence) == pytest.approx(size / 1e4 * (1 if up else -1))


@pytest.mark.parametrize(
    ("text", "direction", "stated"),
    [
        ("+0.012", None, 0.012),
        ("−0.012 ROC AUC", None, -0.012),
        ("a change of minus .012", "increase", -0.012),
        ("a drop of 0.02 in ROC AUC", None, -0.02),
        ("0.02", "decrease, because of noise", -0.02),
        ("an 80% interval around +0.004", None, 0.004),
        ("between +0.01 and +0.03", None, 0.02),
        ("a fall between 0.01 and 0.03.", None, -0.02),
        ("0.0000", None, 0.0),
        ("0.02", None, None),  # no sign anywhere
        ("a rise of 2 %", None, None),
        ("a rise of 1.5 percentage points", None, None),
        ("a rise of 12", None, None),
        ("a rise between 0.5 and 0.9 %", None, None),
        ("between -.01 and minus .03", None, -0.02),
        ("will rise from 0.81 to 0.83", None, None),  # levels
        ("will not rise by more than 0.01", None, None),
        ("at most +0.01", None, None),
        ("a decrease by 1e-3", None, -0.001),
        ("a rise of 1.5E-2", None, 0.015),
        ("increase by 0.01-0.03", None, None),
        ("increase by 0.01 to 0.03", None, None),
        ("an increase of 0.02 or 0.03", None, None),
        ("a clear rise", None, None),
    ],
)
def test_a_stated_target_is_one_signed_number_or_nothing(
    text: str, direction: str | None, stated: float | None
):
    assert target(text, direction) == (None if stated is None else pytest.approx(stated))


def test_an_empty_card_states_no_target():
    assert stated_target(Card(), ROC_AUC) is None


def test_every_slot_has_a_label():
    text = "\n".join(f"{name.title()}: words" for name in SLOT_NAMES)
    assert read_card(text).is_complete


@pytest.mark.parametrize("among", [(), TWO])
def test_of_two_targets_each_is_read_in_its_own_clause_and_unit(among: tuple[Target, ...]):
    card = card_of(BOTH)
    assert stated_target(card, ACCURACY, among=among) == 1.2
    assert stated_target(card, LOG_LOSS, among=among) == -0.02


@pytest.mark.parametrize(
    ("text", "of", "stated"),
    [
        ("accuracy falls by 2 points", ACCURACY, -2),
        ("accuracy rises by 2 %", ACCURACY, 2),
        ("with 2,620 rows and 10 trees accuracy rises by 1.5 pp", ACCURACY, 1.5),
        ("a rise between 1 and 2 percentage points", ACCURACY, 1.5),
        ("accuracy rises by 0.5", ACCURACY, 0.5),  # bare, beside its name
        ("accuracy rises from 81 to 83 percentage points", ACCURACY, None),
        ("a rise of 0.5", ACCURACY, None),  # of what?
        ("a clear rise (an 80% interval)", ACCURACY, None),
        ("accuracy rises by 120 percentage points", ACCURACY, None),  # beyond its range
        ("accuracy rises by at most 2 percentage points", ACCURACY, None),
        ("log loss falls by 0.03", LOG_LOSS, -0.03),
        ("a change of -0.03 nats", LOG_LOSS, -0.03),
        ("a change of -0.03nats", LOG_LOSS, -0.03),
        ("log loss falls by 3 %", LOG_LOSS, None),
        ("log loss rises by 12 nats", LOG_LOSS, None),
        ("0.02 nats", LOG_LOSS, None),  # no sign: the loss of its name is no fall
        ("accuracy rises by 1 point and the rest falls by 0.03 nats", LOG_LOSS, -0.03),
        ("accuracy rises by 1 point and log loss falls by 0.03", LOG_LOSS, -0.03),
    ],
)
def test_a_target_with_a_unit_is_read_by_its_name_or_its_unit(text: str, of: Target, stated: float | None):
    assert target(text, of=of) == stated
    assert stated_target(card_of(text), of, among=TWO) == stated


def test_a_number_of_another_target_is_not_taken():
    card = card_of("Yield rises by 0.2 and purity falls by 0.1", "yield rises")
    purity, output, cost = (
        replace(ROC_AUC, name=name, phrase=name.capitalize()) for name in ("purity", "yield", "cost")
    )
    among = (purity, output, cost)
    assert stated_target(card, purity, among=among) == -0.1
    assert stated_target(card, output, among=among) == 0.2
    assert stated_target(card, cost, among=among) is None
    assert stated_direction(card, output, among=among) == 1
    assert stated_direction(card, cost, among=among) is None


@pytest.mark.parametrize(
    ("text", "stated"),
    [("Yield will be 71 %", 71), ("minus 3 %", None), ("between 60 and 70 %", 65), ("at least 50 %", None)],
)
def test_a_level_needs_no_sign_and_stays_in_its_range(text: str, stated: float | None):
    of = Target(
        name="yield", phrase="Yield", unit="%", suffix=" %", size="??#", lower=0, upper=100, form="level"
    )
    assert target(text, of=of) == stated


def test_a_targets_own_name_is_neither_a_number_nor_a_direction():
    of = replace(ROC_AUC, name="top5", phrase="Top-5 drop")
    assert target("the top-5 drop rises by 0.1", of=of) == 0.1


@pytest.mark.parametrize(
    ("text", "of", "among", "direction"),
    [
        ("increase, because ROC AUC falls in training", ROC_AUC, ONE, 1),
        ("decrease", ROC_AUC, ONE, -1),
        ("accuracy will increase and log loss will decrease, because it helps", ACCURACY, (), 1),
        ("accuracy will increase and log loss will decrease, because it helps", LOG_LOSS, (), -1),
        ("I expect log loss to go down and accuracy to go up, since fits improve", ACCURACY, TWO, 1),
        ("I expect accuracy to rise", LOG_LOSS, TWO, None),
        ("accuracy will not increase", ACCURACY, TWO, None),
        ("log loss stays as it is", LOG_LOSS, TWO, None),
        ("hard to say", ROC_AUC, ONE, None),
    ],
)
def test_a_stated_direction_is_that_of_the_clause_that_names_the_target(
    text: str, of: Target, among: tuple[Target, ...], direction: int | None
):
    assert stated_direction(Card(direction=Slot(text=text, quote=text)), of, among=among) == direction


@pytest.mark.parametrize(
    ("text", "of", "stated"),
    [
        ("log loss improves by 0.05 nats", LOG_LOSS, -0.05),
        ("log loss worsens by 0.05 nats", LOG_LOSS, 0.05),
        ("log loss gets better by 0.05 nats", LOG_LOSS, -0.05),
        ("log loss gets worse by 0.05 nats", LOG_LOSS, 0.05),
        ("a benefit of 0.05 nats", LOG_LOSS, -0.05),
        ("a gain of 0.05 nats", LOG_LOSS, -0.05),
        ("we lose 0.05 nats", LOG_LOSS, 0.05),
        ("log loss is harmed by 0.05 nats", LOG_LOSS, 0.05),
        ("log loss is lower by 0.05 nats", LOG_LOSS, -0.05),
        ("log loss increases by 0.05 nats", LOG_LOSS, 0.05),
        ("accuracy improves by 2 points", ACCURACY, 2),
        ("accuracy worsens by 2 points", ACCURACY, -2),
        ("accuracy gets better by 2 points", ACCURACY, 2),
        ("a gain of 2 points", ACCURACY, 2),
        ("we lose 2 points", ACCURACY, -2),
        ("a benefit of 0.02 ROC AUC", ROC_AUC, 0.02),
        ("ROC AUC is harmed by 0.02", ROC_AUC, -0.02),
    ],
)
def test_a_word_of_value_has_the_sign_of_the_targets_better_side(text: str, of: Target, stated: float):
    card = card_of(text, text)
    assert stated_target(card, of, among=TWO) == stated
    assert stated_direction(card, of, among=TWO) == (1 if stated > 0 else -1)


def test_what_improves_both_targets_raises_the_one_and_lowers_the_other():
    card = card_of("1.5 percentage points; 0.03 nats", "both improve, because the fit is worse without it")
    assert [stated_direction(card, of, among=TWO) for of in TWO] == [1, -1]
    assert [stated_target(card, of) for of in TWO] == [1.5, -0.03]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("decrease, because trees split on noise", "decrease"),
        ("decrease (due to noise)", "decrease"),
        ("It falls. Since trees split on noise", "It falls"),
        ("+0.01 owing to depth, because of noise", "+0.01"),
        ("because trees split on noise", ""),
        ("increase.", "increase."),
    ],
)
def test_what_is_said_before_the_reason_ends_without_a_trace_of_it(text: str, said: str):
    assert before_reason(text) == said


def test_an_empty_card_states_no_direction():
    assert stated_direction(Card(), ROC_AUC) is None


FULL = {name: {"text": f"the {name}", "quote": f"words of {name}"} for name in SLOT_NAMES}


def test_an_extraction_is_read_as_it_was_written():
    card = read_extraction(json.dumps(FULL | {"regime": None}))
    assert card.regime is None
    assert card.target == Slot(text="the target", quote="words of target")
    assert read_extraction(write_extraction(card)) == card


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I cannot",
        "[]",
        "null",
        "{}",
        json.dumps(FULL)[:-1],
        "Sure: " + json.dumps(FULL),
        json.dumps(FULL | {"verdict": None}),
        json.dumps({name: slot for name, slot in FULL.items() if name != "regime"}),
        json.dumps(FULL | {"regime": "few rows"}),
        json.dumps(FULL | {"regime": {"text": "few rows"}}),
        json.dumps(FULL | {"regime": {"text": 1, "quote": "few rows"}}),
        json.dumps(FULL | {"regime": {"text": "a", "quote": "a", "note": "a"}}),
        "[" * 100_000,
    ],
)
def test_an_unreadable_extraction_is_the_empty_scaffold(text: str):
    assert read_extraction(text) == Card()


@pytest.mark.parametrize("filler", ["", "n/a", "not stated", "  "])
def test_a_placeholder_in_an_extraction_is_an_empty_slot(filler: str):
    assert read_extraction(json.dumps(FULL | {"regime": {"text": filler, "quote": "x"}})).regime is None


def test_an_extraction_with_a_lone_surrogate_can_be_written_to_a_file():
    card = read_extraction(json.dumps(FULL | {"regime": {"text": "few \ud800", "quote": "\ud800"}}))
    assert write_extraction(card).encode()


def test_a_quote_may_hold_the_look_alike_that_its_reader_was_shown():
    assert has_quote("where n ‹m", "strongest where n <m holds")
