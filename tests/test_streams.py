import numpy as np
from numpy.typing import NDArray

from predictive_credit.streams import stream, unit_seed


def draws(*names: str, seed: int = 7) -> NDArray[np.float64]:
    return stream(seed, *names).random(5)


def test_the_same_name_gives_the_same_draws_and_another_name_other_draws():
    np.testing.assert_array_equal(draws("molecular", "D-M"), draws("molecular", "D-M"))
    assert not np.array_equal(draws("molecular", "D-M"), draws("molecular", "S-M"))
    assert not np.array_equal(draws("molecular", "D-M"), draws("molecular", "D-M", seed=8))


def test_names_do_not_run_into_each_other():
    assert not np.array_equal(draws("a", "bc"), draws("ab", "c"))


def test_unit_seeds_fit_31_bits_and_differ_between_the_two_calls():
    seeds = {unit_seed(7, f"molecular/A/0.25/1/M/{call}") for call in range(1000)}
    assert len(seeds) == 1000
    assert all(0 <= seed < 2**31 for seed in seeds)
