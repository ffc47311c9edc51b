"""Figures of contexts, endpoints and outcomes, as JSON-plain dicts keyed by name.

An undefined figure is None, never NaN, and never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictive_credit import scoring
from predictive_credit.config import Inference
from predictive_credit.contrasts import leave_one_out, level_interval
from predictive_credit.panel import Measure, Panel, context_losses, gain, share_of_error, task_scale
from predictive_credit.records import BurnIn
from predictive_credit.streams import stream

Array = NDArray[np.float64]
Forecasts = tuple[Array, Array, Array]  # point, lower and upper, each (state, call)

LARGE = 0.01  # an outcome of this absolute size or more is worth knowing beforehand
SCALED: tuple[Measure, ...] = ("interval_score", "point_error")  # losses that grow with the outcomes
# The levels that have an interval, and the loss that each is the mean of.
WITH_INTERVAL: dict[str, Measure] = {
    "drift": "drift", "point_mae_call": "point_error", "interval_score_call": "interval_score",
}  # fmt: skip


def contexts(
    panel: Panel, burn_in: BurnIn, study: str, *, seed: int, inference: Inference
) -> dict[str, dict[str, Any]]:
    """Levels of every context asked, and of three forecasters that need no model; see `baselines`.

    A context's drift, point error and interval score of single calls have the percentile interval
    of the hierarchical bootstrap beside them, each from a stream of its own under `study`.
    """
    rows = {
        context: _levels(
            panel.outcome,
            panel.point[:, at],
            panel.lower[:, at],
            panel.upper[:, at],
            panel.is_fallback[:, at],
        )
        | _level_intervals(panel, at, study, seed=seed, inference=inference)
        for at, context in enumerate(panel.contexts)
    }
    for name, forecasts in baselines(len(panel.states), burn_in).items():
        levels = _levels(panel.outcome, *forecasts, np.zeros((len(panel.states), 1), dtype=bool))
        rows[name] = levels | {"drift": 0.0}  # it says the same however often it is asked
    return rows


def baselines(n_states: int, burn_in: BurnIn) -> dict[str, Forecasts]:
    """What three forecasters that need no model say of every state, in a single call.

    zero: no change. positive: the burn-in's mean absolute change, always upwards. mean: the burn-in
    mean. All three give the burn-in's 10 % to 90 % quantiles as their interval.
    """
    one = np.ones((n_states, 1))
    points = {"zero": 0.0, "positive": burn_in.mean_absolute, "mean": burn_in.mean}
    return {name: (one * point, one * burn_in.q10, one * burn_in.q90) for name, point in points.items()}


def endpoints(panel: Panel, burn_in: BurnIn) -> dict[str, dict[str, Any]]:
    """Each endpoint's own levels and gains, its share of the error, and the mean gain without it.

    Its contexts hold the baselines too, in the same shape.
    """
    pairs = [(o, m) for o, m in (("D", "M"), ("S", "M")) if {o, m} <= set(panel.contexts)]
    gains = {k: {f"{o}-{m}": gain(panel, k, o, m).all for o, m in pairs} for k in SCALED}
    without = {k: {pair: leave_one_out(cube) for pair, cube in of.items()} for k, of in gains.items()}
    error, scale = context_losses(panel, "point_error"), task_scale(panel)
    share = {c: share_of_error(panel, error[:, k]) for k, c in enumerate(panel.contexts)}
    table = {}
    for e, task in enumerate(panel.endpoints):
        at = panel.cells[e].ravel()
        table[task] = {
            "n_states": len(at),
            "n_undefined": int(np.isnan(panel.outcome[at]).sum()),
            "mean_absolute_outcome": _mean(np.abs(panel.outcome[at])),
            "share_of_error": {c: _mean(of[e]) for c, of in share.items()},
            "gain": {k: {pair: _mean(g[e]) for pair, g in of.items()} for k, of in gains.items()},
            "scaled_gain": {
                k: {pair: _mean(g[e] / scale[e]) for pair, g in of.items()} for k, of in gains.items()
            },
            "leave_one_out": {k: {pair: _mean(r[e]) for pair, r in of.items()} for k, of in without.items()},
            "contexts": {
                c: _endpoint_levels(
                    panel.outcome[at], panel.point[at, k], panel.lower[at, k], panel.upper[at, k]
                )
                for k, c in enumerate(panel.contexts)
            }
            | {
                name: _endpoint_levels(panel.outcome[at], *forecasts) | {"drift": 0.0}
                for name, forecasts in baselines(len(at), burn_in).items()
            },
        }
    return table


def outcomes(panel: Panel, interventions: Sequence[str], reasons: Sequence[str | None]) -> dict[str, Any]:
    """What the executed outcomes look like. interventions, reasons: one per state of the panel."""
    y = panel.outcome
    defined = y[~np.isnan(y)]
    names = np.array(interventions)
    return {
        "n": len(y),
        "n_undefined": len(y) - len(defined),
        "reasons": dict(sorted(Counter(r for r in reasons if r is not None).items())),
        "mean": _mean(y),
        "mean_absolute": _mean(np.abs(y)),
        "median_absolute": float(np.median(np.abs(defined))) if defined.size else None,
        "positive_share": float((defined > 0).mean()) if defined.size else None,
        "seed_pairs": _seed_pairs(y[panel.cells]),
        "by_intervention": {
            name: {"n": int((~np.isnan(y[names == name])).sum()), "mean": _mean(y[names == name])}
            for name in sorted(set(interventions))
        },
    }


def _levels(
    outcome: Array, point: Array, lower: Array, upper: Array, fallback: NDArray[np.bool_]
) -> dict[str, Any]:
    """Figures of one context or baseline; arrays (state, call), a baseline has a single call."""
    y = outcome[:, None]
    large = np.where(np.abs(y) >= LARGE, y, np.nan)
    middle = [a.mean(axis=1) for a in (point, lower, upper)]
    return {
        "n_forecasts": int(point.size),
        "n_fallback": int(fallback.sum()),
        "point_mae_call": _mean(scoring.point_error(y, point)),
        "point_mae_ensemble": _mean(scoring.point_error(outcome, middle[0])),
        "interval_score_call": _mean(scoring.interval_score(y, lower, upper)),
        "interval_score_ensemble": _mean(scoring.interval_score(outcome, middle[1], middle[2])),
        "drift": _drift(point),
        "direction_accuracy": _mean(scoring.direction(y, point)),
        "positive_share": float((point > 0).mean()),
        "coverage": _mean(scoring.covered(y, lower, upper)),
        "coverage_large": _mean(scoring.covered(large, lower, upper)),
        "width": _mean(scoring.width(lower, upper)),
        "bias": _mean(point - y),
    }


def _drift(point: Array) -> float | None:
    return _mean(scoring.drift(point)) if point.shape[1] == 2 else None


def _level_intervals(
    panel: Panel, at: int, study: str, *, seed: int, inference: Inference
) -> dict[str, float | None]:
    """`drift_lower`, `drift_upper` and so on for the context at a position."""
    ends: dict[str, float | None] = {}
    for figure, measure in WITH_INTERVAL.items():
        lower, upper = None, None
        if measure != "drift" or len(panel.calls) == 2:
            lower, upper = level_interval(
                context_losses(panel, measure)[:, at][panel.cells],
                draws=inference.draws,
                level=inference.level,
                rng=stream(seed, study, "level", panel.contexts[at], figure),
            )
        ends |= {f"{figure}_lower": lower, f"{figure}_upper": upper}
    return ends


def _endpoint_levels(outcome: Array, point: Array, lower: Array, upper: Array) -> dict[str, Any]:
    y = outcome[:, None]
    return {
        "mae": _mean(scoring.point_error(y, point)),
        "interval_score": _mean(scoring.interval_score(y, lower, upper)),
        "drift": _drift(point),
        "coverage": _mean(scoring.covered(y, lower, upper)),
    }


def _seed_pairs(cube: Array) -> dict[str, Any]:
    """How alike two seeds of a cell come out, over every pair of defined outcomes.

    Both got the same intervention, so the more alike they are, the weaker a placebo a donor from
    the other seed is.
    """
    pairs = list(combinations(range(cube.shape[2]), 2))
    first = np.concatenate([cube[:, :, i].ravel() for i, _ in pairs]) if pairs else np.empty(0)
    second = np.concatenate([cube[:, :, j].ravel() for _, j in pairs]) if pairs else np.empty(0)
    both = ~np.isnan(first) & ~np.isnan(second)
    gaps = np.abs(first[both] - second[both])
    return {
        "n": int(both.sum()),
        "equal_signs": int((np.sign(first[both]) == np.sign(second[both])).sum()),
        "median_gap": float(np.median(gaps)) if gaps.size else None,
    }


def _mean(values: Any) -> float | None:
    """Mean of the defined entries, None if there is none."""
    flat = np.asarray(values, dtype=float)
    return None if np.isnan(flat).all() else scoring.mean(flat)
