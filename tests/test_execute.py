"""Outcomes are what scikit-learn says, whoever computes them, and a planted truth is found."""

from __future__ import annotations

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import TypeAdapter
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from predictive_credit.config import Execution, Pool
from predictive_credit.errors import BadConfig
from predictive_credit.records import Outcome, State
from predictive_credit.sources import pools
from predictive_credit.streams import stream
from predictive_credit.studies import workers
from predictive_credit.studies.molecular import features, fitting, pool, states
from predictive_credit.studies.molecular.execute import execute
from predictive_credit.studies.molecular.features import DESCRIPTORS, Features
from predictive_credit.studies.molecular.interventions import INTERVENTIONS, PARENT, RECIPES
from predictive_credit.studies.molecular.pool import Table
from tests import small_pool

Tox21 = tuple[tuple[State, ...], tuple[Outcome, ...]]
TWO = Execution(backend="loky", n_jobs=2, address=None)
NAMES = tuple(intervention.name for intervention in INTERVENTIONS)


@pytest.fixture(scope="module")
def small() -> tuple[Table, Features]:
    return small_pool.made()


def trial_of(
    small: tuple[Table, Features], names: tuple[str, ...], labels: np.ndarray | None = None
) -> fitting.Trial:
    """Parent and some interventions on one split of the small pool's first endpoint."""
    table, computed = small
    values = table.label("E0") if labels is None else labels
    split = states.split(values, rng=stream(3, "test"))
    return fitting.trial(fitting.matrices(computed), values, split.train, split.test, names)


def changes_of(trial: fitting.Trial) -> tuple[float, ...]:
    """The changes of a trial that has them."""
    changes = fitting.changes(trial)
    assert not isinstance(changes, str)
    return changes


def by_hand(trial: fitting.Trial, name: str | None) -> float:
    """The same area from dense arrays and another solver."""
    recipe = PARENT if name is None else RECIPES[name]
    data = trial.bits[recipe.fingerprint].toarray().astype(float)
    n = trial.n_train
    if recipe.with_descriptors:
        assert trial.descriptors is not None
        train = trial.descriptors[:n]
        deviation = np.where(train.std(axis=0) > 0, train.std(axis=0), np.inf)
        data = np.hstack([data, (trial.descriptors - train.mean(axis=0)) / deviation])
    weight = "balanced" if recipe.class_balanced else None
    model = LogisticRegression(C=recipe.c, class_weight=weight, solver="lbfgs", tol=1e-7, max_iter=20_000)
    model.fit(data[:n], trial.labels[:n])
    return float(roc_auc_score(trial.labels[n:], model.decision_function(data[n:])))


@pytest.mark.parametrize("name", NAMES)
def test_a_change_is_what_dense_arrays_and_another_solver_give(small: tuple[Table, Features], name: str):
    trial = trial_of(small, (name,))
    (change,) = changes_of(trial)
    pairs = trial.labels[trial.n_train :].sum() * (1 - trial.labels[trial.n_train :]).sum()
    assert change == pytest.approx(by_hand(trial, name) - by_hand(trial, None), abs=2 / pairs)


def test_bits_become_the_same_matrix_through_a_dense_detour():
    packed = stream(1, "bits").integers(0, 256, size=(5, 16), dtype=np.uint8) * (np.arange(16) % 3 == 0)
    packed[2] = 0
    packed = packed.astype(np.uint8)
    dense = np.unpackbits(packed, axis=1, bitorder="little")
    np.testing.assert_array_equal(fitting.unpacked(packed).toarray(), dense)


def test_descriptors_show_what_fingerprints_cannot(small: tuple[Table, Features]):
    """Planted: the label is a threshold on weight, and no fingerprint has a bit."""
    blind = {name: np.zeros_like(bits) for name, bits in small[1].fingerprints.items()}
    unseen = (small[0], Features(fingerprints=blind, descriptors=small[1].descriptors))
    weight = small[1].descriptors[:, DESCRIPTORS.index("exact_weight")]
    weighty = (weight > np.median(weight)).astype(float)
    shuffled = stream(2, "shuffle").permutation(weighty)
    names = ("add_descriptors", "radius_3")
    gain, nothing = changes_of(trial_of(unseen, names, weighty))
    placebo, _ = changes_of(trial_of(unseen, names, shuffled))
    assert gain > 0.4
    assert nothing == 0.0
    assert abs(placebo) < 0.25


@pytest.mark.parametrize(
    ("train", "test", "reason"),
    [
        ([0, 0, 0], [0, 1], "single-class training labels: all 3 are inactive"),
        ([0, 1, 1], [1, 1], "single-class held-out labels: all 2 are active"),
        ([], [0, 1], "no training compound"),
        ([0, 1], [], "no held-out compound"),
    ],
)
def test_an_outcome_without_two_classes_is_undefined_with_its_reason(
    small: tuple[Table, Features], train: list[float], test: list[float], reason: str
):
    labels = np.full(len(small_pool.SMILES), np.nan)
    labels[: len(train) + len(test)] = [*train, *test]
    rows = np.arange(len(train)), np.arange(len(train), len(train) + len(test))
    trial = fitting.trial(fitting.matrices(small[1]), labels, *rows, ("radius_3",))
    assert fitting.changes(trial) == reason


def test_an_undefined_state_keeps_its_row_among_the_others(small: tuple[Table, Features]):
    table = replace(small[0], labels=small[0].labels.assign(all_active=1.0))
    config = small_pool.config(endpoints=("all_active", "E0"), seeds=(1,))
    there = states.splits(table, config, seed=1)
    made = states.states(table, small[1], config, there, study="molecular", execution=workers.HERE)
    outcomes = execute(table, small[1], made, there, execution=workers.HERE)
    assert [outcome.state_id for outcome in outcomes] == [state.id for state in made]
    for outcome in outcomes:
        assert (outcome.value is None) == ("all_active" in outcome.state_id)


def test_two_processes_give_the_outcomes_of_one(small: tuple[Table, Features]):
    config = small_pool.config()
    there = states.splits(small[0], config, seed=1)
    made = states.states(*small, config, there, study="molecular", execution=workers.HERE)
    assert execute(*small, made, there, execution=TWO) == execute(*small, made, there, execution=workers.HERE)


def test_equal_models_differ_by_exactly_nothing(
    small: tuple[Table, Features], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(RECIPES, "radius_3", PARENT)
    assert fitting.changes(trial_of(small, ("radius_3",))) == (0.0,)


def test_held_out_rows_have_no_part_in_the_scaling_of_descriptors():
    train = stream(4, "scale").normal(5.0, 2.0, size=(50, 3))
    train[:, 2] = 7.0  # constant in training
    for held_out in (np.zeros((4, 3)), np.full((4, 3), 1e6)):
        scaled = fitting.standardised(np.vstack([train, held_out]), 50)
        np.testing.assert_allclose(scaled[:50].mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(scaled[:50].std(axis=0), [1.0, 1.0, 0.0])
        np.testing.assert_array_equal(scaled[50:, 2], 0.0)


def test_a_missing_descriptor_becomes_the_training_median():
    values = np.array([[1.0, np.nan], [2.0, np.nan], [9.0, np.nan], [np.nan, 5.0]])
    filled = values.copy()
    filled[3, 0] = 2.0
    np.testing.assert_allclose(fitting.standardised(values, 3)[:, 0], fitting.standardised(filled, 3)[:, 0])
    np.testing.assert_array_equal(fitting.standardised(values, 3)[:3, 1], 0.0)


def test_a_recipe_that_needs_descriptors_does_not_run_without_them(small: tuple[Table, Features]):
    with pytest.raises(ValueError, match="without descriptors"):
        fitting.held_out_auc(RECIPES["add_descriptors"], trial_of(small, ("radius_3",)))


@pytest.mark.parametrize(("backend", "package"), [("dask", "distributed"), ("ray", "ray")])
def test_a_cluster_without_its_package_is_one_sentence(backend: str, package: str):
    if importlib.util.find_spec(package) is not None:
        pytest.skip(f"{package} is installed here")
    execution = TypeAdapter(Execution).validate_python(
        {"backend": backend, "n_jobs": 2, "address": "tcp://x:1"}
    )
    with pytest.raises(BadConfig, match=f"needs the package {package}.*set execution=local"):
        workers.run(math.sqrt, [1.0, 4.0], execution, title="roots")


def test_results_stand_in_the_order_of_the_jobs():
    assert workers.run(math.sqrt, [9.0, 4.0, 1.0], TWO, title="roots") == [3.0, 2.0, 1.0]
    assert workers.run(math.sqrt, [], TWO, title="roots") == []


@pytest.fixture(scope="module")
def tox21(root: Path, mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Tox21:
    """The whole molecular study on Tox21 at full scale: states and outcomes."""
    settings = yaml.safe_load((root / "conf" / "pool" / "tox21.yaml").read_text())["pools"]["tox21"]
    raw = tmp_path_factory.mktemp("tox21") / "raw"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_MIRROR", str(mirror))
        config = TypeAdapter(Pool).validate_python(settings)
        pools.fetch(config, raw)
    table = pool.read(config, raw, TWO)
    computed = features.compute(table.smiles, TWO)
    study = small_pool.config(pool="tox21", n_endpoints=12, budgets=(0.25, 0.5, 1.0))
    there = states.splits(table, study, seed=20260301)
    made = states.states(table, computed, study, there, study="molecular", execution=TWO)
    return made, execute(table, computed, made, there, execution=TWO)


def test_tox21_lands_in_the_published_neighbourhood(
    tox21: Tox21,
):
    made, outcomes = tox21
    assert len(made) == 72
    values = {state.id: outcome.value for state, outcome in zip(made, outcomes, strict=True)}
    assert None not in values.values()
    changes = {key: float(value or 0.0) for key, value in values.items()}
    pairs = [(changes[s.id], changes[s.id[:-1] + "2"]) for s in made if s.seed == 1]
    # Published: 27 of 36 pairs with equal signs and a median gap of .01362. Here the configured
    # base seed gives 28 and .0125; base seeds 1 to 5 give 28 to 31 and .006 to .011.
    assert sum(a * b > 0 for a, b in pairs) in range(25, 31)
    assert 0.007 < float(np.median([abs(a - b) for a, b in pairs])) < 0.0155
    assert 0.013 < float(np.mean(np.abs(list(changes.values())))) < 0.022


def test_tox21_parents_know_something_but_not_all(
    tox21: Tox21,
):
    areas = [state.facts["cv_auc"] for state in tox21[0]]
    assert all(isinstance(area, float) and 0.55 < area < 0.95 for area in areas)
