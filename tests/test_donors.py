import pytest

from predictive_credit.donors import seed_donors
from predictive_credit.errors import BadConfig
from tests.trials import state


def test_a_donor_is_the_next_seed_of_the_same_cell_and_the_last_borrows_from_the_first():
    states = [
        state(seed, task=task, budget=b) for task in ("A", "B") for b in (0.25, 1.0) for seed in (3, 1, 2)
    ]
    donors = seed_donors(states)
    assert donors["molecular/A/0.25/1"] == "molecular/A/0.25/2"
    assert donors["molecular/A/0.25/3"] == "molecular/A/0.25/1"
    assert list(donors) == sorted(s.id for s in states)


def test_every_explanation_is_lent_once_and_never_to_its_own_state_or_another_cell():
    states = [state(seed, task=task) for task in ("A", "B") for seed in (1, 2, 5)]
    donors = seed_donors(states)
    assert sorted(donors.values()) == sorted(donors)
    for borrower, donor in donors.items():
        assert borrower != donor
        assert borrower.rsplit("/", 1)[0] == donor.rsplit("/", 1)[0]


def test_the_order_of_the_states_does_not_matter():
    states = [state(seed) for seed in (1, 2, 3)]
    assert seed_donors(states) == seed_donors(states[::-1])


def test_a_cell_with_one_seed_has_no_donor_and_says_so():
    with pytest.raises(BadConfig, match=r"molecular/B/0.5 has one seed \(1\).*leave context S out"):
        seed_donors([state(1, task="A"), state(2, task="A"), state(1, task="B")])
