from dataclasses import replace

import pytest

from predictive_credit import config
from predictive_credit.agents import agent, playbook
from predictive_credit.cards import stated_direction, stated_target
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Intervention, State, Target
from predictive_credit.studies.molecular import textbook
from predictive_credit.studies.molecular.interventions import INTERVENTIONS
from predictive_credit.studies.molecular.textbook import TEXTBOOK
from tests.trials import (
    ACCURACY,
    ACTIONS,
    LOG_LOSS,
    ONE,
    ROC_AUC,
    TWO,
    burn_in,
    learned,
    prompt,
    reply,
    state,
)

CHOSEN = config.Playbook(kind="playbook", name="playbook")
RISE = """\
Direction: increase, because smaller coefficients overfit less.
Target: ROC AUC will increase by 0.0064 (80% interval: minus 0.0170, plus 0.0146).
Intermediate: the coefficient norm shrinks and training ROC AUC falls.
Regime: strongest where compounds are few for so many bits; here 2,621 compounds, 11.8 % active, \
cross-validated ROC AUC 0.842.
Falsifier: cross-validated ROC AUC does not increase.
Counterfactual: with ten times the training compounds the penalty would hardly matter."""
FALL = """\
Direction: decrease, because more coefficients must be learned from the same compounds.
Target: ROC AUC will decrease by 0.0061 (80% interval: minus 0.0039, plus 0.0261).
Intermediate: fewer bits are shared by unrelated substructures.
Regime: strongest where compounds are large and diverse, so that bits collide; here 2,621 compounds, \
11.8 % active.
Falsifier: cross-validated ROC AUC does not decrease.
Counterfactual: with a bit for every substructure from the start nothing would change."""
NOTE = (
    "Make the L2 penalty ten times stronger. I expect accuracy to increase and log loss to decrease, since "
    "smaller coefficients overfit less. It would be nice to see better accuracy on new data. The case for it "
    "is strongest where compounds are few for so many bits; here 2,621 compounds, 11.8 % active, "
    "cross-validated ROC AUC 0.842."
)
OF_TWO = BurnIn(
    name="synthetic", tasks=(),
    targets={"accuracy_pp": learned(1.2, q10=-0.5, q90=2.0), "log_loss": learned(-0.02, q10=-0.03, q90=0.01)},
)  # fmt: skip


def card_text(of: State, known: BurnIn) -> str:
    return playbook.card_text(of, known, TEXTBOOK, ONE)


def author(known: BurnIn, targets: tuple[Target, ...] = ONE) -> playbook.Playbook:
    made = agent.make(CHOSEN, known, TEXTBOOK, targets, locate=lambda _: pytest.fail("it needs no file"))
    assert isinstance(made, playbook.Playbook)
    return made


def test_the_molecular_cards_read_as_they_always_did():
    assert card_text(state(), burn_in(0.0061)) == RISE
    assert card_text(state(action="bits_2048", cv_auc=None), burn_in(-0.0061)) == FALL


def test_the_playbook_knows_every_intervention_of_the_molecular_study():
    assert set(textbook.PLAYS) == {intervention.name for intervention in INTERVENTIONS}


@pytest.mark.parametrize("action", sorted(ACTIONS))
@pytest.mark.parametrize("mean", [0.0061, -0.0061])
def test_every_card_is_complete_and_states_the_burn_ins_change_scaled_by_headroom(action: str, mean: float):
    here = state(action=action, cv_auc=0.80)
    card = agent.explanation(here.id, "elicited", "playbook", reply(card_text(here, burn_in(mean)))).card
    assert card.is_complete
    stated = mean * 0.20 / textbook.ORDINARY_HEADROOM
    assert stated_target(card, ROC_AUC) == pytest.approx(stated, abs=5e-5)
    assert card.direction is not None
    assert card.direction.text.startswith("increase" if mean > 0 else "decrease")


def test_cards_of_two_seeds_differ_where_their_public_facts_differ():
    texts = {card_text(state(seed, cv_auc=auc), burn_in()) for seed, auc in ((1, 0.84), (2, 0.80))}
    assert len(texts) == 2
    assert len({t.splitlines()[1] for t in texts}) == 2  # the numbers too


def test_the_same_public_state_gives_the_same_card_whatever_it_is_prompted_with():
    writer = author(burn_in())
    first, second = (writer.write(state(), "elicited", prompt(user)) for user in ("a", "b"))
    assert first == second
    assert first.model_resolved == "playbook on burn-in synthetic"


def test_a_parent_without_a_known_level_has_ordinary_headroom():
    assert textbook.headroom({}) == 1.0
    assert "ROC AUC None" not in card_text(state(cv_auc=None), burn_in())


@pytest.mark.parametrize(("auc", "factor"), [(0.85, 1.0), (0.999, 0.5), (0.40, 2.0), (1.0, 0.5)])
def test_headroom_is_relative_to_an_ordinary_parent_and_limited(auc: float, factor: float):
    assert textbook.headroom({"cv_auc": auc}) == pytest.approx(factor)


def test_a_mean_outside_its_own_quantiles_gives_a_distance_of_zero():
    stated = playbook.stated_change(state(), burn_in(0.03, q10=-0.01, q90=0.02), TEXTBOOK, ROC_AUC)
    assert stated.minus > 0
    assert stated.plus == 0.0


def test_an_intervention_that_nobody_knows_is_named():
    stranger = replace(state(), intervention=Intervention(name="dropout", text="Add dropout."))
    with pytest.raises(BadConfig, match=r"the playbook knows nothing of 'dropout'.*choose another agent"):
        card_text(stranger, burn_in())


def test_a_burn_in_that_lacks_the_intervention_is_named():
    with pytest.raises(BadConfig, match="burn-in synthetic holds no outcome of 'stronger_l2'"):
        card_text(state(), replace(burn_in(), targets={"roc_auc": replace(learned(), by_intervention={})}))


def test_a_study_without_a_textbook_has_no_playbook():
    with pytest.raises(BadConfig, match="a study that has no textbook; give explanations"):
        agent.make(CHOSEN, burn_in(), None, ONE, locate=lambda _: pytest.fail("it needs no file"))


def test_a_card_of_two_targets_states_both_and_explains_the_first():
    text = author(OF_TWO, TWO).write(state(cv_auc=None), "elicited", prompt()).text
    lines = text.splitlines()
    assert lines[0] == (
        "Direction: accuracy will increase and log loss will decrease, because smaller coefficients "
        "overfit less."
    )
    assert lines[1] == (
        "Target: Accuracy will increase by 1.20 percentage points (80% interval: minus 1.70, plus 0.80); "
        "log loss will decrease by 0.0200 nats (80% interval: minus 0.0100, plus 0.0300)."
    )
    assert lines[4] == "Falsifier: cross-validated accuracy does not increase."
    card = agent.explanation("s", "elicited", "playbook", reply(text)).card
    assert card.is_complete
    assert (stated_target(card, ACCURACY), stated_target(card, LOG_LOSS)) == (1.2, -0.02)
    assert (stated_direction(card, ACCURACY), stated_direction(card, LOG_LOSS)) == (1, -1)


def test_a_fall_of_the_first_target_is_explained_by_what_harms():
    worse = replace(OF_TWO, targets={"accuracy_pp": learned(-1.2), "log_loss": learned(-0.02)})
    assert "because smaller coefficients miss real substructures" in playbook.card_text(
        state(), worse, TEXTBOOK, TWO
    )


@pytest.mark.parametrize(
    ("change", "why"),
    [(-0.02, "smaller coefficients overfit less"), (0.02, "smaller coefficients miss real substructures")],
)
def test_a_fall_of_a_first_target_of_which_less_is_better_is_explained_by_what_helps(change: float, why: str):
    known = burn_in(change, targets=(LOG_LOSS,))
    card = playbook.card_text(state(), known, TEXTBOOK, (LOG_LOSS,))
    verb = "decrease" if change < 0 else "increase"
    assert card.startswith(f"Direction: {verb}, because {why}.\nTarget: log loss will {verb} by ")
    assert f"I expect log loss to {verb}, since {why}." in playbook.note_text(
        state(), known, TEXTBOOK, (LOG_LOSS,)
    )


def test_an_ordinary_note_proposes_in_prose_without_a_size_or_a_test():
    note = author(OF_TWO, TWO).write(state(), "ordinary", prompt()).text
    assert note == NOTE
    told = agent.explanation("s", "ordinary", "playbook", reply(note))
    assert not any(told.card.filled())  # no labelled lines to read


def test_prompts_hold_the_public_state_and_are_keyed_by_their_unit():
    sampling = agent.sampling(CHOSEN, ONE)
    for source in ("elicited", "ordinary"):
        text = agent.source_prompt(state(), source, ONE, sampling=sampling)
        assert text.key == f"molecular/NR-AhR/0.5/1/{source}"
        assert text.user.startswith(state().description + "\n\n")
        assert "_" not in text.user  # no intervention's internal name
        assert "held-out ROC AUC" in text.user.removeprefix(state().description)


def test_the_molecular_card_is_asked_for_in_the_words_it_always_was():
    asked = agent.source_prompt(state(), "elicited", ONE, sampling=agent.sampling(CHOSEN, ONE))
    assert asked.user.removeprefix(state().description).strip() == (
        "Explain what the planned change will do to held-out ROC AUC and why. Write six lines, one each for\n"
        "Direction: increase or decrease.\n"
        "Target: the size of the change, with an 80% interval.\n"
        "Intermediate: what should be seen inside the model first.\n"
        "Regime: where the effect is strongest.\n"
        "Falsifier: what observation would prove this wrong.\n"
        "Counterfactual: what would happen if the cause were absent."
    )


def test_both_sources_of_a_state_are_asked_for_differently_and_name_every_target():
    sampling = agent.sampling(CHOSEN, TWO)
    card = agent.source_prompt(state(), "elicited", TWO, sampling=sampling).user
    note = agent.source_prompt(state(), "ordinary", TWO, sampling=sampling).user
    assert card != note
    assert all("held-out accuracy and held-out log loss" in user for user in (card, note))
    assert "Falsifier" not in note


def test_a_cut_off_card_keeps_the_slots_it_reached():
    cut = reply("Direction: increase\nTarget: +0.01\nInter", "length")
    told = agent.explanation("s", "elicited", "smollm2", cut)
    assert [name for name, _ in told.card.filled()] == ["direction", "target"]
    assert told.text.endswith("Inter")
