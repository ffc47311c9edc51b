"""What a burn-in's outcomes say in all and by intervention: all that cards, fallbacks and priors may know."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome, Target, TargetBurnIn

Array = NDArray[np.float64]


def summary(
    outcomes: Sequence[Outcome], *,
    name: str, tasks: Sequence[str], targets: Sequence[Target], interventions: Sequence[str],
) -> BurnIn:  # fmt: skip
    """Mean, mean size, and 10 and 90 % quantiles of the defined outcomes of each target.

    A burn-in outcome's state id ends with its intervention, `burn-in/.../stronger_l2`. An
    intervention without a defined outcome is left out of `by_intervention`. Quantiles are NumPy's
    linear ones. Raises BadConfig when no outcome of a target is defined.
    """
    return BurnIn(
        name=name,
        tasks=tuple(tasks),
        targets={
            target.name: _target([o for o in outcomes if o.target == target.name], name, interventions)
            for target in targets
        },
    )


def _target(outcomes: Sequence[Outcome], name: str, interventions: Sequence[str]) -> TargetBurnIn:
    values = _values(outcomes)
    if not len(values):
        raise BadConfig(f"burn_in: all {len(outcomes)} outcomes of {name} are undefined; take another pool")
    by_name = {n: _values([o for o in outcomes if o.state_id.endswith(f"/{n}")]) for n in interventions}
    return TargetBurnIn(
        n_outcomes=len(values),
        n_undefined=len(outcomes) - len(values),
        mean=float(values.mean()),
        mean_absolute=float(np.abs(values).mean()),
        q10=_quantile(values, 0.1),
        q90=_quantile(values, 0.9),
        by_intervention={n: _spread(found) for n, found in by_name.items() if len(found)},
    )


def _values(outcomes: Sequence[Outcome]) -> Array:
    return np.array([outcome.value for outcome in outcomes if outcome.value is not None], dtype=float)


def _quantile(values: Array, share: float) -> float:
    return float(np.quantile(values, share))


def _spread(values: Array) -> dict[str, float]:
    return {
        "mean": float(values.mean()),
        "q10": _quantile(values, 0.1),
        "q90": _quantile(values, 0.9),
        "n": float(len(values)),
    }
