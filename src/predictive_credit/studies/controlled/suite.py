"""The controlled study's stages: from generated data to sealed outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predictive_credit.config import Execution, Pool
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Context, Outcome, State
from predictive_credit.studies.controlled import burn_in as burning
from predictive_credit.studies.controlled import execute as executing
from predictive_credit.studies.controlled import features as featuring
from predictive_credit.studies.controlled import states as populating
from predictive_credit.studies.controlled.config import ControlledConfig
from predictive_credit.studies.controlled.regimes import chosen, datasets
from predictive_credit.studies.study import Counts, Donors, Setting

CALLS = 2


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """Nothing is fetched or encoded; what is known of the regimes is written down."""
    if pool.kind != "regimes":
        raise BadConfig(
            f"the controlled study generates its own data and cannot use a pool of kind {pool.kind}; "
            "give it a pool of kind regimes"
        )
    return featuring.save(folder)


def count(config: ControlledConfig, pools: Mapping[str, Pool]) -> Counts:
    """States and units of a configuration; only ordinary notes are extracted from."""
    burning.refuse_reserved(config)
    regimes, seeds = len(chosen(config)), len(config.seeds)
    ordinary = sum(populating.condition(j) == "ordinary" for j in range(seeds))
    states = regimes * seeds
    return Counts(
        states=states, sources=states, extractions=regimes * ordinary,
        forecasts=states * len(config.contexts) * CALLS, design=f"{regimes} regimes x {seeds} seeds",
    )  # fmt: skip


def states(setting: Setting) -> tuple[State, ...]:
    """Public state, intervention and ids of every state."""
    data = datasets(setting.config, seed=setting.seed)
    return populating.states(setting.config, data, study=setting.name, execution=setting.execution)


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Every intervention on seeds that are reserved for it."""
    return burning.burn_in(
        setting.config, pool=setting.config.burn_in, seed=setting.seed, execution=setting.execution
    )


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """Run the parent and the changed model of each state."""
    data = datasets(setting.config, seed=setting.seed)
    return executing.execute(states, data, execution=setting.execution)


def donors(config: ControlledConfig, states: Sequence[State]) -> Donors:
    """Another seed of the same regime and condition, whose intervention differs."""
    return {Context.DONOR: populating.donors(states, config)} if Context.DONOR in config.contexts else {}
