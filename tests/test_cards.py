import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit.cards import check_quotes, has_quote, read_card, stated_target, supported
from predictive_credit.records import SLOT_NAMES, Card, Explanation, Slot

WHOLE = """Direction: increase, because bits collide less.
Target: ROC AUC will increase by 0.0120 (80% interval: minus 0.0100, plus 0.0200).
Intermediate: fewer shared bits.
Regime: large compounds.
Falsifier: cross-validated ROC AUC falls.
Counterfactual: with no collisions nothing would change."""


def target(text: str, direction: str | None = None) -> float | None:
    return stated_target(
        Card(
            target=Slot(text=text, quote=text),
            direction=None if direction is None else Slot(text=direction, quote=direction),
        )
    )


def test_six_labelled_lines_fill_six_slots_with_their_own_words():
    card = read_card(WHOLE)
    assert card.is_complete
    assert card.regime == Slot(text="large compounds.", quote="large compounds.")
    assert check_quotes(Explanation(state_id="s", agent="a", text=WHOLE, card=card)) == ()


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
    assert stated_target(card) == -0.01


def test_a_slot_may_wrap_and_ends_at_a_blank_line():
    card = read_card("Regime: few actives,\n  many inactives\n\nThat is all.\nTarget: +0.01")
    assert card.regime == Slot(text="few actives, many inactives", quote="few actives,\n  many inactives")


def test_the_first_of_two_lines_with_one_label_stands():
    assert stated_target(read_card("Target: +0.01\nTarget: -0.05")) == 0.01


def test_a_quote_that_the_text_does_not_hold_is_named_and_its_slot_dropped():
    invented = Card(
        direction=Slot(text="up", quote="bits collide less"),
        regime=Slot(text="x", quote="never written"),
        falsifier=Slot(text="y", quote=" "),
    )
    assert check_quotes(Explanation(state_id="s", agent="a", text=WHOLE, card=invented)) == (
        "regime",
        "falsifier",
    )
    assert [name for name, _ in supported(invented, WHOLE).filled()] == ["direction"]


def test_a_quote_is_the_words_in_their_order():
    assert has_quote("bits\n collide", WHOLE)
    assert not has_quote("collide bits", WHOLE)


@given(st.text())
def test_any_text_gives_a_card_whose_quotes_occur_in_it(text: str):
    noisy = f"{text}\nTarget: {text}\nRegime:{text}"
    card = read_card(noisy)
    assert check_quotes(Explanation(state_id="s", agent="a", text=noisy, card=card)) == ()
    stated = stated_target(card)
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
        ("a clear rise", None, None),
    ],
)
def test_a_stated_target_is_one_signed_number_or_nothing(
    text: str, direction: str | None, stated: float | None
):
    assert target(text, direction) == (None if stated is None else pytest.approx(stated))


def test_an_empty_card_states_no_target():
    assert stated_target(Card()) is None


def test_every_slot_has_a_label():
    text = "\n".join(f"{name.title()}: words" for name in SLOT_NAMES)
    assert read_card(text).is_complete
