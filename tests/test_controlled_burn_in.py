"""The controlled burn-in shares no seed with the study, and does not move with its scale."""

from __future__ import annotations

import numpy as np
import pytest

from predictive_credit import canonical
from predictive_credit.errors import BadConfig
from predictive_credit.studies.controlled import burn_in, regimes, states
from predictive_credit.studies.controlled.execute import execute
from predictive_credit.studies.controlled.interventions import RECIPES
from predictive_credit.studies.controlled.regimes import REGIMES
from tests.small_controlled import HERE, SEED, config


@pytest.fixture
def two_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two reserved seeds instead of ten: a fifth of the time."""
    monkeypatch.setattr(burn_in, "SEEDS", range(1001, 1003))


def run(**changes: object):
    return burn_in.burn_in(config(**changes), pool="regimes", seed=SEED, execution=HERE)


@pytest.mark.usefixtures("two_seeds")
def test_every_intervention_runs_in_both_targets_on_every_reserved_seed_of_every_regime():
    outcomes, summary = run()
    assert len(outcomes) == 6 * 2 * 6 * 2
    assert outcomes[0].id == "burn-in/class_imbalance/1001/class_weights/accuracy_pp"
    assert [o.id for o in outcomes] == sorted({o.id for o in outcomes})
    assert summary.name == "regimes"
    assert summary.tasks == tuple(f"{regime} seeds 1001-1002" for regime in REGIMES)
    for name, target in summary.targets.items():
        own = [o.value for o in outcomes if o.target == name]
        assert (target.n_outcomes, target.n_undefined) == (len(own), 0) == (72, 0)
        assert set(target.by_intervention) == set(RECIPES)
        weaker = [o.value for o in outcomes if o.target == name and o.state_id.endswith("/weaker_l2")]
        assert target.by_intervention["weaker_l2"]["mean"] == pytest.approx(np.mean(np.array(weaker)))


@pytest.mark.usefixtures("two_seeds")
def test_the_burn_in_is_the_same_at_every_scale_of_the_study():
    some, more = run(seeds=(1, 2)), run(regimes=("small_sample",), seeds=tuple(range(1, 21)))
    assert canonical.encode(some) == canonical.encode(more)


@pytest.mark.usefixtures("two_seeds")
def test_the_burn_in_says_what_the_study_would_have_said_of_that_seed():
    """Same streams, same models: only the seeds differ between study and burn-in."""
    asked = config(regimes=("class_imbalance",), seeds=(1001,))
    data = regimes.datasets(asked, seed=SEED)
    (state,) = states.states(asked, data, study="controlled", execution=HERE)
    known = {o.id: o.value for o in run()[0]}
    for outcome in execute((state,), data, execution=HERE):
        name = f"burn-in/class_imbalance/1001/{state.intervention.name}/{outcome.target}"
        assert known[name] == outcome.value


@pytest.mark.parametrize("seed", [1001, 1010])
def test_a_reserved_seed_is_refused_before_anything_is_fitted(seed: int):
    with pytest.raises(BadConfig, match=f"seeds holds {seed}, and 1001 to 1010 are the burn-in's"):
        run(seeds=(1, seed))
