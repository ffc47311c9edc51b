"""An invented study of any size, as the two data frames that the package's functions take."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

BUDGETS, SEEDS, CONTEXTS, CALLS = (0.25, 0.5, 1.0), (1, 2), ("D", "M", "S"), (1, 2)
STATES_PER_ENDPOINT = len(BUDGETS) * len(SEEDS)
UNITS_PER_STATE = len(CONTEXTS) * len(CALLS)
ERROR = {"D": 0.015, "M": 0.008, "S": 0.012}  # of a point, in ROC AUC: matched explanations help


def study(
    endpoints: int, *, undefined: int = 0, fallbacks: int = 0, seed: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Forecasts (one row a unit) and outcomes (one row a state) of endpoints x 6 states x 6 units.

    The first `undefined` states have no outcome, the last `fallbacks` units got the fallback.
    """
    rng = np.random.default_rng(seed)
    cells = product((f"assay-{e:06d}" for e in range(endpoints)), BUDGETS, SEEDS)
    states = pd.DataFrame(cells, columns=["task", "budget", "seed"])
    states.insert(
        0, "state", states["task"] + "/" + states["budget"].astype(str) + "/" + states["seed"].astype(str)
    )
    assay = np.repeat(rng.normal(0.004, 0.010, endpoints), STATES_PER_ENDPOINT)
    values = assay + rng.normal(0.0, 0.015, len(states))
    forecasts = states.loc[states.index.repeat(UNITS_PER_STATE)].reset_index(drop=True)
    forecasts["context"] = np.tile(np.repeat(CONTEXTS, len(CALLS)), len(states))
    forecasts["call"] = np.tile(CALLS, len(states) * len(CONTEXTS))
    error = np.tile(np.repeat([ERROR[c] for c in CONTEXTS], len(CALLS)), len(states))
    # A state's contexts share part of their error, as forecasts of one thing do.
    shared = np.repeat(rng.normal(0.0, 0.006, len(states)), UNITS_PER_STATE)
    forecasts["point"] = np.repeat(values, UNITS_PER_STATE) + shared + rng.normal(0.0, error)
    forecasts["lower"] = forecasts["point"] - rng.uniform(0.005, 0.03, len(forecasts))
    forecasts["upper"] = forecasts["point"] + rng.uniform(0.005, 0.03, len(forecasts))
    forecasts["is_fallback"] = np.arange(len(forecasts)) >= len(forecasts) - fallbacks
    outcomes = pd.DataFrame({"state": states["state"], "value": values})
    outcomes.loc[: undefined - 1, "value"] = np.nan
    return forecasts, outcomes
