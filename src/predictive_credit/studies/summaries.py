"""Figures of contexts, tasks, outcomes and explanations, as JSON-plain dicts keyed by name.

An undefined figure is None, never NaN, and never 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit import scoring
from predictive_credit.bootstrap import Design, nested_means, one_sided_bounds
from predictive_credit.cards import stated_direction
from predictive_credit.config import Inference
from predictive_credit.contrasts import group_means, leave_one_out, level_intervals, spread, too_few
from predictive_credit.exact import exact_lower_bound, exact_upper_bound
from predictive_credit.panel import Measure, Panel, context_losses, gain, share_of_error, task_scale
from predictive_credit.records import (
    SLOT_NAMES,
    BurnIn,
    Explanation,
    Outcome,
    State,
    Target,
    TargetBurnIn,
)
from predictive_credit.streams import stream
from predictive_credit.studies.study import Formation

Array = NDArray[np.float64]
Forecasts = tuple[Array, Array, Array]  # point, lower and upper, each (state, call)

SCALED: tuple[Measure, ...] = ("interval_score", "point_error")  # losses that grow with the outcomes
# The levels that have an interval, and the loss that each is the mean of.
WITH_INTERVAL: dict[str, Measure] = {
    "drift": "drift", "point_mae_call": "point_error", "interval_score_call": "interval_score",
}  # fmt: skip


def contexts(
    panels: Mapping[str, Panel], burn_in: BurnIn, study: str, *, seed: int, inference: Inference
) -> dict[str, dict[str, dict[str, Any]]]:
    """By target: levels of every context asked, and of three forecasters without a model; see `baselines`.

    A context's drift, point error and interval score of single calls have the percentile interval
    of the bootstrap beside them, all targets' from one stream of the context under `study`.
    """
    found = {}
    for name, panel in panels.items():
        once = np.zeros((len(panel.states), 1), dtype=bool)
        found[name] = {
            context: _levels(panel, *_asked(panel, at), panel.is_fallback[:, at])
            for at, context in enumerate(panel.contexts)
        } | {
            # A baseline says the same however often it is asked.
            baseline: _levels(panel, *forecasts, once) | {"drift": 0.0}
            for baseline, forecasts in baselines(len(panel.states), burn_in.targets[name]).items()
        }
    for context in next(iter(panels.values())).contexts:
        ends = _level_intervals(panels, context, stream(seed, study, "level", context), inference)
        for name in panels:
            found[name][context] |= ends[name]
    return found


def baselines(n_states: int, burn_in: TargetBurnIn) -> dict[str, Forecasts]:
    """What three forecasters that need no model say of every state, in a single call.

    zero: no change. positive: the burn-in's mean absolute change, always upwards. mean: the burn-in
    mean. All three give the burn-in's 10 % to 90 % quantiles as their interval.
    """
    one = np.ones((n_states, 1))
    points = {"zero": 0.0, "positive": burn_in.mean_absolute, "mean": burn_in.mean}
    return {name: (one * point, one * burn_in.q10, one * burn_in.q90) for name, point in points.items()}


def tasks(panel: Panel, burn_in: TargetBurnIn, pairs: Sequence[tuple[str, str]]) -> dict[str, dict[str, Any]]:
    """Each task's own levels and gains, its share of the error, and the mean gain without it.

    pairs: other and matched context. The contexts of a task hold the baselines too, in one shape.
    """
    gains = {k: {f"{o}-{m}": gain(panel, k, o, m).all for o, m in pairs} for k in SCALED}
    without = {
        k: {pair: leave_one_out(g, panel.task_of, len(panel.tasks)) for pair, g in of.items()}
        for k, of in gains.items()
    }
    error, scale = context_losses(panel, "point_error"), task_scale(panel)
    share = {c: share_of_error(panel, error[:, k]) for k, c in enumerate(panel.contexts)}
    table = {}
    for t, task in enumerate(panel.tasks):
        at = np.flatnonzero(panel.task_of == t)
        y = panel.outcome[at]
        table[task] = {
            "n_states": len(at),
            "n_undefined": int(np.isnan(y).sum()),
            "mean_absolute_outcome": _mean(np.abs(y)),
            "share_of_error": {c: _mean(of[t]) for c, of in share.items()},
            "gain": {k: {pair: _mean(g[at]) for pair, g in of.items()} for k, of in gains.items()},
            "scaled_gain": {
                k: {pair: _mean(g[at] / scale[t]) for pair, g in of.items()} for k, of in gains.items()
            },
            "leave_one_out": {k: {pair: _mean(r[t]) for pair, r in of.items()} for k, of in without.items()},
            "contexts": {
                c: _task_levels(y, *(a[at] for a in _asked(panel, k))) for k, c in enumerate(panel.contexts)
            }
            | {
                name: _task_levels(y, *forecasts) | {"drift": 0.0}
                for name, forecasts in baselines(len(at), burn_in).items()
            },
        }
    return table


def outcomes(panel: Panel, states: Sequence[State], reasons: Sequence[str | None]) -> dict[str, Any]:
    """What the executed outcomes look like. states, reasons: one a state of the panel, in its order."""
    y = panel.outcome
    defined = y[~np.isnan(y)]
    names = np.array([state.intervention.name for state in states])
    return {
        "n": len(y),
        "n_undefined": len(y) - len(defined),
        "reasons": dict(sorted(Counter(r for r in reasons if r is not None).items())),
        "mean": _mean(y),
        "mean_absolute": _mean(np.abs(y)),
        "median_absolute": float(np.median(np.abs(defined))) if defined.size else None,
        "positive_share": float((defined > 0).mean()) if defined.size else None,
        "seed_pairs": _seed_pairs(y, states),
        "by_intervention": {
            str(name): {"n": int((~np.isnan(y[names == name])).sum()), "mean": _mean(y[names == name])}
            for name in sorted(set(names))
        },
    }


def explanations(
    found: Sequence[Explanation], executed: Mapping[tuple[str, str], Outcome], targets: Sequence[Target]
) -> dict[str, dict[str, Any]]:
    """By source: how many there are, which slots are filled, and how often the direction was right."""
    by_source: dict[str, list[Explanation]] = defaultdict(list)
    for explanation in found:
        by_source[explanation.source].append(explanation)
    return {
        source: {
            "n": len(of),
            "complete": sum(e.card.is_complete for e in of),
            "empty": sum(not any(e.card.filled()) for e in of),
            "filled": {slot: sum(getattr(e.card, slot) is not None for e in of) for slot in SLOT_NAMES},
            "directions": {target.name: _directions(of, executed, target, targets) for target in targets},
        }
        for source, of in sorted(by_source.items())
    }


def formation(
    difference: Array, design: Design, *, draws: int, level: float, rng: Generator
) -> Formation | None:
    """How much more often a complete card was formed when it was asked for; None without a pair.

    difference: (state,) 1 where only the elicited card is complete, -1 where only the ordinary
    one, 0 where both or neither, NaN where one of the two was not written. The lower bound is the
    one-sided bootstrap bound over the design. Where every cluster of a stratum shows the same
    difference there is nothing to resample; then the bound is the exact lower bound of the share of
    clusters whose every pair gained, minus the exact upper bound of the share in which a pair lost
    (minus 0 where none did). Clusters too few for an interval, in all or in a stratum, have no bound.
    """
    if np.isnan(difference).all():
        return None
    mean, tail = scoring.mean(difference), 1.0 - level
    clusters = group_means(difference, design.clusters)
    if too_few(difference, design) is not None:
        return Formation(difference=mean, lower=None)
    if spread(difference, design) > 0.0:
        means = nested_means(difference, design, draws=draws, rng=rng)
        return Formation(difference=mean, lower=one_sided_bounds(means, level=level).lower)
    lost = len(np.unique(design.clusters[difference < 0.0]))
    lower = exact_lower_bound(int((clusters == 1.0).sum()), len(clusters), tail=tail)
    return Formation(
        difference=mean,
        lower=lower - (exact_upper_bound(lost, len(clusters), tail=tail) if lost else 0.0),
    )


def _asked(panel: Panel, at: int) -> Forecasts:
    """The forecasts of the context at a position."""
    return panel.point[:, at], panel.lower[:, at], panel.upper[:, at]


def _levels(
    panel: Panel, point: Array, lower: Array, upper: Array, fallback: NDArray[np.bool_]
) -> dict[str, Any]:
    """Figures of one context or baseline; arrays (state, call), a baseline has a single call."""
    outcome = panel.outcome
    y = outcome[:, None]
    large = np.where(np.abs(y) >= panel.target.large, y, np.nan)
    middle = [a.mean(axis=1) for a in (point, lower, upper)]
    return {
        "n_forecasts": int(point.size),
        "n_fallback": int(fallback.sum()),
        "point_mae_call": _mean(scoring.point_error(y, point)),
        "point_mae_ensemble": _mean(scoring.point_error(outcome, middle[0])),
        "point_mae_large": _mean(scoring.point_error(large, point)),
        "interval_score_call": _mean(scoring.interval_score(y, lower, upper)),
        "interval_score_ensemble": _mean(scoring.interval_score(outcome, middle[1], middle[2])),
        "drift": _drift(point),
        "direction_accuracy": _mean(scoring.direction(y, point)),
        "direction_accuracy_large": _mean(scoring.direction(large, point)),
        "positive_share": float((point > 0).mean()),
        "coverage": _mean(scoring.covered(y, lower, upper)),
        "coverage_large": _mean(scoring.covered(large, lower, upper)),
        "width": _mean(scoring.width(lower, upper)),
        "bias": _mean(point - y),
    }


def _drift(point: Array) -> float | None:
    return _mean(scoring.drift(point)) if point.shape[1] == 2 else None


def _level_intervals(
    panels: Mapping[str, Panel], context: str, rng: Generator, inference: Inference
) -> dict[str, dict[str, float | None]]:
    """By target, `drift_lower`, `drift_upper` and so on of one context, over the same resamples."""
    panel = next(iter(panels.values()))
    figures = {f: m for f, m in WITH_INTERVAL.items() if m != "drift" or len(panel.calls) == 2}
    keys = [(name, figure) for name in panels for figure in figures]
    rows = [context_losses(panels[name], figures[figure])[:, panel.of(context)] for name, figure in keys]
    intervals = level_intervals(
        np.stack(rows), panel.design, draws=inference.draws, level=inference.level, rng=rng
    )
    none = {f"{figure}_{end}": None for figure in WITH_INTERVAL for end in ("lower", "upper")}
    ends: dict[str, dict[str, float | None]] = {name: dict(none) for name in panels}
    for (name, figure), (lower, upper) in zip(keys, intervals, strict=True):
        ends[name] |= {f"{figure}_lower": lower, f"{figure}_upper": upper}
    return ends


def _task_levels(outcome: Array, point: Array, lower: Array, upper: Array) -> dict[str, Any]:
    y = outcome[:, None]
    return {
        "mae": _mean(scoring.point_error(y, point)),
        "interval_score": _mean(scoring.interval_score(y, lower, upper)),
        "drift": _drift(point),
        "coverage": _mean(scoring.covered(y, lower, upper)),
    }


def _seed_pairs(y: Array, states: Sequence[State]) -> dict[str, Any] | None:
    """How alike two seeds of a cell and intervention come out, over every pair of defined outcomes.

    The more alike they are, the weaker a placebo a donor from the other seed is. None where no
    cell holds two such states.
    """
    cells: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, state in enumerate(states):
        if state.budget is not None and state.seed is not None:
            cells[state.cell, state.intervention.name].append(at)
    pairs = [pair for members in cells.values() for pair in combinations(members, 2)]
    if not pairs:
        return None
    first, second = y[np.array(pairs)].T
    both = ~np.isnan(first) & ~np.isnan(second)
    gaps = np.abs(first[both] - second[both])
    return {
        "n": int(both.sum()),
        "equal_signs": int((np.sign(first[both]) == np.sign(second[both])).sum()),
        "median_gap": float(np.median(gaps)) if gaps.size else None,
    }


def _directions(
    found: Sequence[Explanation], executed: Mapping[tuple[str, str], Outcome],
    target: Target, among: Sequence[Target],
) -> dict[str, int]:  # fmt: skip
    """Stated directions of one target among the study's, and how many the outcomes bore out.

    n_scored counts those whose outcome is defined and not 0. always_up_correct is what saying "up"
    of each of these would have scored.
    """
    stated = [(e.state_id, stated_direction(e.card, target, among=among)) for e in found]
    given = [(state_id, sign) for state_id, sign in stated if sign is not None]
    values = [(sign, executed[state_id, target.name].value) for state_id, sign in given]
    scored = [(sign, value) for sign, value in values if value]
    return {
        "stated": len(given),
        "up": sum(sign > 0 for _, sign in given),
        "n_scored": len(scored),
        "correct": sum(sign * value > 0 for sign, value in scored),
        "always_up_correct": sum(value > 0 for _, value in scored),
    }


def _mean(values: Any) -> float | None:
    """Mean of the defined entries, None if there is none."""
    flat = np.asarray(values, dtype=float)
    return None if np.isnan(flat).all() else scoring.mean(flat)
