from dataclasses import replace

import pytest

from predictive_credit import config
from predictive_credit.agents import agent, playbook
from predictive_credit.cards import stated_target
from predictive_credit.errors import BadConfig
from predictive_credit.records import Intervention
from predictive_credit.studies.molecular.interventions import INTERVENTIONS
from tests.trials import ACTIONS, burn_in, prompt, reply, state

CHOSEN = config.Playbook(kind="playbook", name="playbook")


def test_the_playbook_knows_every_intervention_of_the_molecular_study():
    assert set(playbook.PLAYS) == {intervention.name for intervention in INTERVENTIONS}


@pytest.mark.parametrize("action", sorted(ACTIONS))
@pytest.mark.parametrize("mean", [0.0061, -0.0061])
def test_every_card_is_complete_and_states_the_burn_ins_change_scaled_by_headroom(action: str, mean: float):
    here = state(action=action, cv_auc=0.80)
    card = agent.explanation(here.id, "playbook", reply(playbook.card_text(here, burn_in(mean)))).card
    assert card.is_complete
    assert stated_target(card) == pytest.approx(mean * 0.20 / playbook.ORDINARY_HEADROOM, abs=5e-5)
    assert card.direction is not None
    assert card.direction.text.startswith("increase" if mean > 0 else "decrease")


def test_cards_of_two_seeds_differ_where_their_public_facts_differ():
    texts = {playbook.card_text(state(seed, cv_auc=auc), burn_in()) for seed, auc in ((1, 0.84), (2, 0.80))}
    assert len(texts) == 2
    assert len({t.splitlines()[1] for t in texts}) == 2  # the numbers too


def test_the_same_public_state_gives_the_same_card_whatever_it_is_prompted_with():
    author = agent.make(CHOSEN, burn_in(), locate=lambda _: pytest.fail("the playbook needs no file"))
    first, second = (author.write(state(), prompt(user)) for user in ("a", "b"))
    assert first == second
    assert first.model_resolved == "playbook on burn-in synthetic"


def test_a_parent_without_a_known_level_has_ordinary_headroom():
    assert playbook.headroom(None) == 1.0
    assert "ROC AUC None" not in playbook.card_text(state(cv_auc=None), burn_in())


@pytest.mark.parametrize(("auc", "factor"), [(0.85, 1.0), (0.999, 0.5), (0.40, 2.0), (1.0, 0.5)])
def test_headroom_is_relative_to_an_ordinary_parent_and_limited(auc: float, factor: float):
    assert playbook.headroom(auc) == pytest.approx(factor)


def test_a_mean_outside_its_own_quantiles_gives_a_distance_of_zero():
    _, minus, plus = playbook.stated_change(state(), burn_in(0.03, q10=-0.01, q90=0.02))
    assert minus > 0
    assert plus == 0.0


def test_an_intervention_that_nobody_knows_is_named():
    stranger = replace(state(), intervention=Intervention(name="dropout", text="Add dropout."))
    with pytest.raises(BadConfig, match=r"the playbook knows nothing of 'dropout'.*choose another agent"):
        playbook.card_text(stranger, burn_in())


def test_a_burn_in_that_lacks_the_intervention_is_named():
    with pytest.raises(BadConfig, match="burn-in synthetic holds no outcome of 'stronger_l2'"):
        playbook.card_text(state(), replace(burn_in(), by_intervention={}))


def test_a_card_prompt_holds_the_public_state_and_is_keyed_by_its_unit():
    text = agent.card_prompt(state(), sampling=agent.sampling(CHOSEN))
    assert text.key == "molecular/NR-AhR/0.5/1/card"
    assert state().description in text.user
    assert "_" not in text.user  # no intervention's internal name


def test_a_cut_off_card_keeps_the_slots_it_reached():
    told = agent.explanation("s", "smollm2", reply("Direction: increase\nTarget: +0.01\nInter", "length"))
    assert [name for name, _ in told.card.filled()] == ["direction", "target"]
    assert told.text.endswith("Inter")
