"""The molecular study's stages: from a fetched pool to sealed outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predictive_credit.config import Execution, Pool
from predictive_credit.donors import seed_donors
from predictive_credit.records import BurnIn, Context, Outcome, State
from predictive_credit.studies.molecular import burn_in as burning
from predictive_credit.studies.molecular import execute as executing
from predictive_credit.studies.molecular import features as featuring
from predictive_credit.studies.molecular import pool as pools
from predictive_credit.studies.molecular import states as populating
from predictive_credit.studies.molecular.config import MolecularConfig
from predictive_credit.studies.study import Counts, Donors, Setting

CALLS = 2


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """Clean and count the molecules of a pool; fingerprints and descriptors in bulk."""
    table = pools.read(pool, raw, execution)
    quality = featuring.save(folder, table, featuring.compute(table.smiles, execution))
    dropped = ", ".join(f"{n} {kind}" for kind, n in quality["dropped"].items() if n) or "none"
    said = f"{len(table.smiles):,} molecules, {len(table.endpoints)} endpoints; rows left out: {dropped}"
    return quality | {"said": said}


def count(config: MolecularConfig, pools: Mapping[str, Pool]) -> Counts:
    """States and units of a configuration; a pool with fewer endpoints than asked has fewer."""
    endpoints = len(config.endpoints) if config.endpoints is not None else config.n_endpoints
    states = endpoints * len(config.budgets) * len(config.seeds)
    return Counts(
        states=states, sources=states, extractions=0, forecasts=states * len(config.contexts) * CALLS,
        design=f"{endpoints} endpoints x {len(config.budgets)} label fractions x {len(config.seeds)} seeds",
    )  # fmt: skip


def states(setting: Setting) -> tuple[State, ...]:
    """Public state, intervention and ids of every state."""
    table, computed = featuring.load(setting.features)
    splits = populating.splits(table, setting.config, seed=setting.seed)
    return populating.states(
        table, computed, setting.config, splits, study=setting.name, execution=setting.execution
    )


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Every intervention on the endpoints of the burn-in pool that no study uses."""
    table, computed = featuring.load(setting.burn_in)
    return burning.burn_in(
        table, computed, setting.config, pool=setting.config.burn_in, exclude={s.task for s in states},
        seed=setting.seed, execution=setting.execution,
    )  # fmt: skip


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """Run the parent and the changed model of each state."""
    table, computed = featuring.load(setting.features)
    splits = populating.splits(table, setting.config, seed=setting.seed)
    return executing.execute(table, computed, states, splits, execution=setting.execution)


def donors(config: MolecularConfig, states: Sequence[State]) -> Donors:
    """The other seed of the same cell, which got the same intervention."""
    return {Context.DONOR: seed_donors(states)} if Context.DONOR in config.contexts else {}
