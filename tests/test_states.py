"""The public side of a state: who is in the population, and that no held-out label reaches it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from predictive_credit import canonical
from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig
from predictive_credit.records import State
from predictive_credit.stages import features, fetch
from predictive_credit.stages import states as stage
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.molecular import states
from predictive_credit.studies.molecular.execute import execute
from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.interventions import assigned
from predictive_credit.studies.molecular.pool import Table
from predictive_credit.studies.molecular.states import Splits
from tests import small_pool
from tests.small_project import project

CONFIG = small_pool.config()


@pytest.fixture(scope="module")
def small() -> tuple[Table, Features]:
    return small_pool.made()


@pytest.fixture(scope="module")
def splits(small: tuple[Table, Features]) -> Splits:
    return states.splits(small[0], CONFIG, seed=1)


def population(small: tuple[Table, Features], splits: Splits) -> tuple[State, ...]:
    return states.states(*small, CONFIG, splits, study="molecular", execution=workers.HERE)


def flipped(table: Table, splits: Splits, side: str) -> Table:
    """The table with every label of one side of every split inverted (both seeds' union)."""
    frame = table.labels.copy()
    for endpoint in {name for name, _ in splits}:
        values = frame[endpoint].to_numpy(dtype=float, copy=True)
        rows = getattr(splits[endpoint, 1], side)
        values[rows] = 1 - values[rows]
        frame[endpoint] = values
    return replace(table, labels=frame)


def test_the_largest_endpoints_come_first_and_ties_go_by_name(small: tuple[Table, Features]):
    table = small[0]
    assert states.choose_endpoints(table, small_pool.config(n_endpoints=3)) == ("E0", "E1", "E2")
    tied = replace(table, labels=table.labels.assign(A=table.labels["E0"]))
    assert states.choose_endpoints(tied, small_pool.config(n_endpoints=2)) == ("A", "E0")


def test_a_smaller_scale_is_a_subset_of_a_larger_one(small: tuple[Table, Features]):
    made = []
    for n_endpoints in (1, 3):
        config = small_pool.config(n_endpoints=n_endpoints)
        there = states.splits(small[0], config, seed=1)
        made.append(states.states(*small, config, there, study="molecular", execution=workers.HERE))
    assert set(map(canonical.encode, made[0])) < set(map(canonical.encode, made[1]))


def test_named_endpoints_stand_as_named_and_may_be_written_unescaped(small: tuple[Table, Features]):
    assert states.choose_endpoints(small[0], small_pool.config(endpoints=("E2", "E0"))) == ("E2", "E0")
    renamed = replace(small[0], labels=small[0].labels.rename(columns={"E0": "a%2Fb"}))
    for asked in ("a/b", "a%2Fb"):
        assert states.choose_endpoints(renamed, small_pool.config(endpoints=(asked,))) == ("a%2Fb",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"endpoints": ("E9",)}, "no endpoint 'E9'; it holds E0, E1, E2; correct"),
        ({"endpoints": ("E0", "E0")}, "endpoints holds E0 twice"),
    ],
)
def test_a_population_that_cannot_be_meant_is_one_sentence(
    small: tuple[Table, Features], changes: dict[str, object], message: str
):
    def run() -> None:
        config = small_pool.config(**changes)
        there = states.splits(small[0], config, seed=1)
        states.states(*small, config, there, study="molecular", execution=workers.HERE)

    with pytest.raises(BadConfig, match=re.escape(message)):
        run()


def test_ids_are_paths_sorted_and_both_seeds_get_the_intervention_of_their_cell(
    small: tuple[Table, Features], splits: Splits
):
    made = population(small, splits)
    assert [state.id for state in made] == [
        f"molecular/{task}/{budget}/{seed}"
        for task in ("E0", "E1")
        for budget in ("0.5", "1")
        for seed in (1, 2)
    ]
    for state in made:
        cell = ("E0", "E1").index(state.task), (0.5, 1.0).index(state.budget)
        assert state.intervention == assigned(*cell)


def test_a_smaller_label_fraction_is_inside_a_larger_one(splits: Splits):
    for split in splits.values():
        quarter, half, whole = (set(split.prefix(budget).tolist()) for budget in (0.25, 0.5, 1.0))
        assert quarter < half < whole == set(split.train.tolist())


@given(
    actives=st.integers(0, 30),
    inactives=st.integers(0, 30),
    missing=st.integers(0, 5),
    seed=st.integers(0, 9),
)
def test_a_split_parts_all_labelled_rows_and_both_classes_where_it_can(
    actives: int, inactives: int, missing: int, seed: int
):
    labels = np.array([1.0] * actives + [0.0] * inactives + [np.nan] * missing)
    split = states.split(labels, rng=stream(seed, "test"))
    assert sorted([*split.train, *split.test]) == list(range(actives + inactives))
    if min(actives, inactives) >= 2:
        assert set(labels[split.train]) == set(labels[split.test]) == {0.0, 1.0}
        assert abs(len(split.test) - 0.2 * (actives + inactives)) <= 1.5


def test_each_endpoint_and_seed_has_a_split_of_its_own_and_keeps_it(
    small: tuple[Table, Features], splits: Splits
):
    again = states.splits(small[0], CONFIG, seed=1)
    other = states.splits(small[0], CONFIG, seed=2)
    for key, split in splits.items():
        np.testing.assert_array_equal(split.train, again[key].train)
        assert not np.array_equal(split.train, other[key].train)
    assert not np.array_equal(splits["E0", 1].train, splits["E0", 2].train)


def test_no_held_out_label_reaches_a_state_though_every_one_reaches_the_outcomes(
    small: tuple[Table, Features], splits: Splits
):
    table, computed = small
    one = {key: split for key, split in splits.items() if key[1] == 1}
    config = small_pool.config(seeds=(1,))

    def run(labelled: Table) -> tuple[bytes, list[float | None]]:
        made = states.states(labelled, computed, config, one, study="molecular", execution=workers.HERE)
        outcomes = execute(labelled, computed, made, one, execution=workers.HERE)
        return canonical.encode(made), [outcome.value for outcome in outcomes]

    public, outcomes = run(table)
    public_flipped, outcomes_flipped = run(flipped(table, one, "test"))
    assert public_flipped == public
    # Inverted labels turn an area of A into 1 - A, so every change turns its sign.
    assert outcomes_flipped == pytest.approx([-(y or 0.0) for y in outcomes])
    assert any(outcomes)


def test_a_training_label_does_reach_the_state(small: tuple[Table, Features], splits: Splits):
    one = {key: split for key, split in splits.items() if key[1] == 1}
    config = small_pool.config(seeds=(1,))
    made = [
        states.states(table, small[1], config, one, study="molecular", execution=workers.HERE)
        for table in (small[0], flipped(small[0], one, "train"))
    ]
    assert all(a.facts["n_train_active"] != b.facts["n_train_active"] for a, b in zip(*made, strict=True))


def test_facts_are_those_of_the_states_own_training_labels(small: tuple[Table, Features], splits: Splits):
    for state in population(small, splits):
        train, test = states.rows(splits, state)
        labels = small[0].label(state.task)[train]
        assert state.facts["n_train"] == len(labels)
        assert state.facts["n_train_active"] == labels.sum()
        assert state.facts["prevalence"] == pytest.approx(labels.mean(), abs=5e-5)
        assert state.facts["n_held_out"] == len(test)
        assert isinstance(state.facts["cv_auc"], float)


def test_the_cross_validated_area_tells_a_planted_rule_from_none():
    rng = stream(5, "planted")
    dense = rng.integers(0, 2, size=(200, 32), dtype=np.uint8)
    bits = csr_array(dense)
    planted = dense[:, 0].astype(float)
    found = states.cross_validated_auc((bits, planted))
    nothing = states.cross_validated_auc((bits, rng.permutation(planted)))
    assert found is not None
    assert nothing is not None
    assert found > 0.8
    assert 0.35 < nothing < 0.65


def test_a_class_of_two_has_no_cross_validated_area():
    bits = csr_array((10, 1024), dtype=np.uint8)
    assert states.cross_validated_auc((bits, np.array([1.0] * 2 + [0.0] * 8))) is None
    assert states.cross_validated_auc((bits, np.array([1.0] * 3 + [0.0] * 7))) == 0.5


def test_a_state_without_a_cross_validated_area_says_so_in_words(small: tuple[Table, Features]):
    labels = np.full(len(small_pool.SMILES), np.nan)
    labels[:12] = [1.0, 1.0] + [0.0] * 10
    table = replace(small[0], labels=small[0].labels.assign(rare=labels))
    config = small_pool.config(endpoints=("rare",), seeds=(1,))
    there = states.splits(table, config, seed=1)
    for state in states.states(table, small[1], config, there, study="molecular", execution=workers.HERE):
        assert state.facts["cv_auc"] is None
        assert "ROC AUC is not available" in state.description


def test_a_description_is_a_hundred_plain_words_without_the_size_of_a_change(
    small: tuple[Table, Features], splits: Splits
):
    for state in population(small, splits):
        assert 80 <= len(state.description.split()) <= 140
        assert state.intervention.text in state.description
        assert state.description.count("ROC AUC") == 2
        decimals = set(re.findall(r"\d+\.\d+", state.description)) - {"0.1"}  # 0.1 is a penalty
        assert decimals == {
            f"{state.facts['cv_auc']:.3f}",
            f"{100 * float(str(state.facts['prevalence'])):.1f}",
        }


def test_two_processes_write_the_same_states(small: tuple[Table, Features], splits: Splits):
    two = Execution(backend="loky", n_jobs=2, address=None)
    made = states.states(*small, CONFIG, splits, study="molecular", execution=two)
    assert canonical.encode(made) == canonical.encode(population(small, splits))


def test_the_stage_says_when_the_pool_has_fewer_endpoints_than_asked(tmp_path: Path):
    for n_endpoints, said in (
        (5, "12 states of the 20 asked: the pool has no more, 3 endpoints from pool small (quick)"),
        (3, "12 states, 3 endpoints from pool small (quick)"),
    ):
        made, params = project(tmp_path / str(n_endpoints), n_endpoints=n_endpoints)
        fetch.run(made, params, "small")
        features.run(made, params, "small")
        assert stage.run(made, params, "molecular") == f"molecular: {said}"
