"""The burn-in shares no endpoint with the study, and does not move with its scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from predictive_credit import canonical
from predictive_credit.errors import BadConfig
from predictive_credit.records import Outcome, TargetBurnIn
from predictive_credit.studies import workers
from predictive_credit.studies.burn_in import summary as summarise
from predictive_credit.studies.molecular import burn_in, states
from predictive_credit.studies.molecular.execute import execute
from predictive_credit.studies.molecular.features import Features
from predictive_credit.studies.molecular.interventions import TARGET
from predictive_credit.studies.molecular.pool import Table
from tests import small_pool

CONFIG = small_pool.config(budgets=(1.0,), seeds=(1,))


@pytest.fixture(scope="module")
def fourteen() -> tuple[Table, Features]:
    """A pool of 14 endpoints, E0 the largest: two more than are reserved."""
    return small_pool.made(14)


def run(small: tuple[Table, Features], *, exclude: tuple[str, ...] = (), **changes: object):
    config = small_pool.config(**({"budgets": (1.0,), "seeds": (1,)} | changes))
    return burn_in.burn_in(
        *small, config, pool="small", exclude=exclude, seed=1, execution=workers.HERE
    )  # fmt: skip


def test_every_intervention_runs_on_every_cell_of_the_unused_endpoints(fourteen: tuple[Table, Features]):
    outcomes, summary = run(fourteen, budgets=(0.5, 1.0), seeds=(1, 2))
    assert summary.tasks == ("E12", "E13")
    known = summary.targets["roc_auc"]
    assert len(outcomes) == 2 * 2 * 2 * 6 == known.n_outcomes + known.n_undefined
    assert outcomes[0].state_id == "burn-in/E12/0.5/1/add_descriptors"
    assert [o.state_id for o in outcomes] == sorted({o.state_id for o in outcomes})


def test_the_burn_in_is_the_same_at_every_scale_of_the_study(fourteen: tuple[Table, Features]):
    quick, full = run(fourteen, n_endpoints=2), run(fourteen, n_endpoints=12)
    assert canonical.encode(quick) == canonical.encode(full)


def test_an_endpoint_of_the_study_is_left_out_though_it_is_small(fourteen: tuple[Table, Features]):
    _, summary = run(fourteen, exclude=("E13", "not here"))
    assert summary.tasks == ("E12",)


def test_a_pool_without_an_unused_endpoint_is_one_sentence(fourteen: tuple[Table, Features]):
    with pytest.raises(BadConfig, match="14 endpoints leave none beside its 12 largest"):
        run(fourteen, exclude=("E12", "E13"))


def test_the_burn_in_says_what_the_study_would_have_said_of_that_endpoint(fourteen: tuple[Table, Features]):
    """Same split stream, same models: only the endpoints differ between study and burn-in."""
    table, computed = fourteen
    config = replace(CONFIG, endpoints=("E12",))
    there = states.splits(table, config, seed=1)
    (state,) = states.states(table, computed, config, there, study="molecular", execution=workers.HERE)
    (outcome,) = execute(table, computed, (state,), there, execution=workers.HERE)
    known = {o.state_id: o.value for o in run(fourteen)[0]}
    assert known[f"burn-in/E12/1/1/{state.intervention.name}"] == outcome.value


def outcome(name: str, value: float | None) -> Outcome:
    reason = "single-class" if value is None else None
    return Outcome(state_id=f"burn-in/E/1/{name}", target="roc_auc", value=value, reason=reason)


def summed(outcomes: Sequence[Outcome], name: str = "small") -> TargetBurnIn:
    found = summarise(outcomes, name=name, tasks=("E",), targets=(TARGET,), interventions=burn_in.NAMES)
    return found.targets["roc_auc"]


def test_the_summary_is_numpys_own_on_the_defined_outcomes():
    values = np.linspace(-0.03, 0.05, 24)
    outcomes = [outcome(f"{i}/{burn_in.NAMES[i % 6]}", float(v)) for i, v in enumerate(values)]
    summary = summed([*outcomes, outcome("9/radius_3", None)])
    assert (summary.n_outcomes, summary.n_undefined) == (24, 1)
    assert summary.mean == pytest.approx(values.mean())
    assert summary.mean_absolute == pytest.approx(np.abs(values).mean())
    assert (summary.q10, summary.q90) == pytest.approx(tuple(np.quantile(values, [0.1, 0.9])))
    own = values[1::6]
    assert summary.by_intervention["add_descriptors"] == pytest.approx(
        {"mean": own.mean(), "q10": np.quantile(own, 0.1), "q90": np.quantile(own, 0.9), "n": 4}
    )


def test_each_target_is_summed_up_on_its_own_outcomes():
    other = replace(TARGET, name="other")
    found = summarise(
        [outcome("1/radius_3", 0.01), replace(outcome("1/radius_3", 0.5), target="other")],
        name="small", tasks=("E",), targets=(TARGET, other), interventions=burn_in.NAMES,
    )  # fmt: skip
    assert {name: known.mean for name, known in found.targets.items()} == {"roc_auc": 0.01, "other": 0.5}


def test_an_intervention_without_a_defined_outcome_is_left_out_rather_than_zero():
    found = summed([outcome("1/radius_3", 0.01), outcome("1/bits_2048", None)])
    assert set(found.by_intervention) == {"radius_3"}


def test_a_burn_in_of_undefined_outcomes_is_refused():
    with pytest.raises(BadConfig, match="all 1 outcomes of small are undefined"):
        summed([outcome("1/bits_2048", None)])
