"""Raw intervals beside recalibrated ones, as JSON-plain dicts: reported, and read by no rule.

No contrast, check, gate or decision knows of this module. An undefined figure is None, never NaN,
and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from predictive_credit import scoring
from predictive_credit.config import Inference
from predictive_credit.contrasts import group_means, level_intervals
from predictive_credit.panel import Panel
from predictive_credit.recalibration import Pool, corrected, leave_one_task_out, scores, tasks_needed
from predictive_credit.records import TargetBurnIn
from predictive_credit.streams import stream
from predictive_credit.studies.evaluation import Scored, to_panels
from predictive_credit.studies.summaries import baselines

Array = NDArray[np.float64]
Intervals = tuple[Array, Array]  # lower and upper, each (state, call)

BURN_IN = "burn_in"  # the constant interval that needs no forecaster, beside the contexts
FIGURES = (
    "coverage", "coverage_task_balanced", "coverage_lower", "coverage_upper", "width", "interval_score",
)  # fmt: skip


def recalibration(scored: Scored, *, seed: int, inference: Inference, scale: str) -> dict[str, Any]:
    """By target and context, and for the burn-in's interval: raw and recalibrated figures.

    The correction of a task is fitted on the forecasts of all other tasks under the same context. Of
    the burn-in's states there are no forecasts, only outcomes: their 10 % to 90 % quantiles are an
    interval of their own, the same for every state, which stands beside the contexts in the same shape.
    Two calls of a state are two intervals of one state; neither the fit nor an interval of a coverage
    counts them as two states.

    The intervals of the coverages come from resamples of the study's design under a context's own
    stream, with the corrections as they were fitted. Raises Unpaired as `to_panels` does.
    """
    panels, words = to_panels(scored), scored.study.task_words

    def of(panel: Panel, context: str, intervals: Intervals) -> dict[str, Any]:
        rng = stream(seed, scored.name, "recalibration", context)
        return _of_context(panel, intervals, words, inference, rng)

    found = {
        name: {
            context: of(panel, context, intervals)
            for context, intervals in _intervals(panel, scored.burn_in.targets[name]).items()
        }
        for name, panel in panels.items()
    }
    return {"study": scored.name, "scale": scale, **found}


def _intervals(panel: Panel, burn_in: TargetBurnIn) -> Mapping[str, Intervals]:
    """The intervals of every context asked, and the burn-in's; the latter of a single call."""
    asked = {c: (panel.lower[:, k], panel.upper[:, k]) for k, c in enumerate(panel.contexts)}
    _, lower, upper = baselines(len(panel.states), burn_in)["mean"]
    return asked | {BURN_IN: (lower, upper)}


def _of_context(
    panel: Panel, raw: Intervals, words: tuple[str, str], inference: Inference, rng: Generator
) -> dict[str, Any]:
    pool = Pool(score=scores(panel.outcome, *raw), task_of=panel.task_of)
    corrections = leave_one_task_out(pool, len(panel.tasks))
    reason = _why_not(pool, len(panel.tasks), words)
    mended = None if reason else corrected(*raw, corrections[panel.task_of])
    both = [raw] if mended is None else [raw, (mended.lower, mended.upper)]
    figures = [*_figures(panel, both, inference, rng), dict.fromkeys(FIGURES)]
    left_out = range(len(panel.tasks))
    return {
        "status": "not_estimable" if reason else "estimated",
        "reason": reason,
        # Of the fit with the least to go by: which task is left out decides how much is left.
        "n_tasks": min(pool.n_tasks(without=task) for task in left_out),
        "n_scores": min(pool.n_scores(without=task) for task in left_out),
        "n_collapsed": None if mended is None else mended.n_collapsed,
        # What a further task would get, fitted on all; and each task its own, fitted on the others.
        "correction": None if reason else pool.correction(),
        "corrections": {
            task: None if reason else float(of) for task, of in zip(panel.tasks, corrections, strict=True)
        },
        "raw": figures[0],
        "recalibrated": figures[1],
    }


def _why_not(pool: Pool, n_tasks: int, words: tuple[str, str]) -> str | None:
    """The reason why not every task can be given a correction, or None if it can."""
    found, needed = min(pool.n_tasks(without=task) for task in range(n_tasks)), tasks_needed()
    if found >= needed:
        return None
    return f"{found} other {words[found != 1]} with a defined outcome; an 80 % quantile needs {needed}"


def _figures(
    panel: Panel, several: list[Intervals], inference: Inference, rng: Generator
) -> list[dict[str, float | None]]:
    """Figures of several sets of intervals over the same states, their coverages over the same resamples."""
    y = panel.outcome[:, None]
    inside = [scoring.covered(y, *intervals).mean(axis=1) for intervals in several]
    ends = level_intervals(
        np.stack(inside), panel.design, draws=inference.draws, level=inference.level, rng=rng
    )
    return [
        {
            "coverage": _mean(scoring.covered(y, lower, upper)),
            "coverage_task_balanced": _mean(group_means(held, panel.task_of)),
            "coverage_lower": least,
            "coverage_upper": most,
            "width": _mean(scoring.width(lower, upper)),
            "interval_score": _mean(scoring.interval_score(y, lower, upper)),
        }
        for (lower, upper), held, (least, most) in zip(several, inside, ends, strict=True)
    ]


def _mean(values: Array) -> float | None:
    """Mean of the defined entries, None if there is none."""
    return None if np.isnan(values).all() else scoring.mean(values)
