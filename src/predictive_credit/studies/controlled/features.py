"""What there is to know of the regimes without a study: their mechanisms, and how large their data are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predictive_credit import tables
from predictive_credit.studies.controlled.regimes import HELD_OUT, REGIMES, Regime, dataset

# Drawn for this table alone, under a seed of its own: no study and no burn-in meets these data sets.
SHOWN_SEED = 0
SHOWN = range(1, 6)


def save(folder: Path) -> dict[str, Any]:
    """Write regimes.json, each regime in words and numbers; return the counts for the report."""
    counts = {name: _counts(name) for name in REGIMES}
    written = {name: _words(REGIMES[name]) | counts[name] for name in REGIMES}
    tables.write_json(folder / "regimes.json", {"regimes": written})
    return {
        "regimes": counts,
        "data_sets_shown": len(SHOWN),
        "held_out_rows": HELD_OUT,
        "said": f"{len(REGIMES)} regimes, generated where they are needed; nothing is fetched",
    }


def _words(regime: Regime) -> dict[str, Any]:
    return {"description": regime.phrase, "mechanism": regime.mechanism}


def _counts(regime: str) -> dict[str, Any]:
    """Smallest and largest training rows, features and percentage of positives over the data sets shown."""
    samples = [dataset(regime, number, seed=SHOWN_SEED).train for number in SHOWN]
    return {
        "train_rows": _range([len(sample.labels) for sample in samples]),
        "features": _range([sample.inputs.shape[1] for sample in samples]),
        "positive_percent": _range([round(100.0 * float(sample.labels.mean()), 1) for sample in samples]),
    }


def _range(values: list[Any]) -> dict[str, Any]:
    return {"least": min(values), "most": max(values)}
