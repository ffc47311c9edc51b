"""From scored units to everything a study reports, as JSON-plain dicts keyed by name.

Pure: records in, dicts out. An undefined number is None, never NaN, and never 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictive_credit import checks
from predictive_credit import panel as panels
from predictive_credit.cards import stated_target
from predictive_credit.config import Inference
from predictive_credit.contrasts import Contrast, estimate
from predictive_credit.decisions import Decision, by_name
from predictive_credit.errors import Unpaired
from predictive_credit.panel import MEASURES, Gain, Panel
from predictive_credit.records import BurnIn, Context, Explanation, Forecast, Outcome, State
from predictive_credit.streams import stream
from predictive_credit.studies.study import Study
from predictive_credit.studies.summaries import SCALED, contexts, endpoints, outcomes

Array = NDArray[np.float64]

PAIRS: tuple[tuple[str, str], ...] = (("D", "M"), ("S", "M"), ("D", "S"))  # other, matched
FEW_CLUSTERS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """All that scoring needs: the frozen forecasts of one study and its opened outcomes."""

    study: Study
    states: tuple[State, ...]  # sorted by id
    contexts: tuple[Context, ...]  # as configured; may be fewer than the study declares
    forecasts: Mapping[str, Forecast]  # by unit id, `state id/context/call`
    outcomes: Mapping[str, Outcome]  # by state id
    burn_in: BurnIn
    explanations: Mapping[str, Explanation]  # by state id
    donors: Mapping[str, str]  # state id to the state whose explanation it is shown in S

    @property
    def name(self) -> str:
        """The configured study's name: `tox21` where a configuration calls its molecular study so."""
        return self.states[0].study if self.states else self.study.name


def losses(scored: Scored) -> pd.DataFrame:
    """One row per forecast unit, sorted by unit id; see `loss_table` for the columns."""
    panel = to_panel(scored)
    by_state = pd.DataFrame(
        {
            "state_id": [s.id for s in scored.states],
            "task": [s.task for s in scored.states],
            "budget": [s.budget for s in scored.states],
            "seed": [s.seed for s in scored.states],
            "intervention": [s.intervention.name for s in scored.states],
        }
    )
    return loss_table(panel, by_state)


def evaluate(
    scored: Scored, *, seed: int, inference: Inference, scale: str, integrity: Mapping[str, Any]
) -> dict[str, Any]:
    """Decision, checks, contrasts, contexts, endpoints and outcomes of one study.

    seed names, with the study and the analysis, every random stream. integrity is what the shell
    verified of the order of events; see `checks.commitment`. Raises Unpaired for a missing, extra
    or doubled forecast or state.
    """
    panel = to_panel(scored)
    found = all_contrasts(panel, scored.study, scored.name, seed=seed, inference=inference)
    primary = found[scored.study.primary_loss]
    decision = scored.study.decide(scored.name, primary)
    run_notes = _run_notes(panel, scored.study, scale, integrity)
    interventions = [s.intervention.name for s in scored.states]
    reasons = [scored.outcomes[s.id].reason for s in scored.states]
    reports: dict[str, dict[str, Any]] = {
        "decision": _decision(decision, run_notes + notes(panel, scored.study, primary)),
        "checks": _checks(panel, scored, found, seed=seed, inference=inference, integrity=integrity),
        "contrasts": _contrasts(found, scored.study),
        "contexts": contexts(panel, scored.burn_in, scored.name, seed=seed, inference=inference)
        | {"published": dict(scored.study.published.get("contexts", {}))},
        "endpoints": {"endpoints": endpoints(panel, scored.burn_in)},
        "outcomes": outcomes(panel, interventions, reasons)
        | {"published": dict(scored.study.published.get("outcomes", {}))},
    }
    label = {"study": scored.name, "scale": scale}
    return {name: label | report for name, report in reports.items()}


def to_panel(scored: Scored) -> Panel:
    """Records as gap-free arrays, (state, context, call) in the configured order."""
    states = tuple(s.id for s in scored.states)
    asked = tuple(str(c) for c in scored.contexts)
    calls = tuple(range(1, scored.study.calls_per_context + 1))
    missing = [s for s in states if s not in scored.outcomes]
    if missing:
        raise Unpaired(
            f"{len(missing)} states have no executed outcome, first {missing[0]}; run the execute stage again"
        )
    forecasts = list(scored.forecasts.values())
    place = panels.order([_key(unit) for unit in scored.forecasts], states, asked, calls)
    tasks, positions = panels.cells([(s.task, s.budget, s.seed) for s in scored.states])
    values = [scored.outcomes[s].value for s in states]
    return Panel(
        states=states,
        contexts=asked,
        calls=calls,
        endpoints=tasks,
        cells=positions,
        point=np.array([f.point for f in forecasts], dtype=float)[place],
        lower=np.array([f.lower for f in forecasts], dtype=float)[place],
        upper=np.array([f.upper for f in forecasts], dtype=float)[place],
        is_fallback=np.array([f.is_fallback for f in forecasts], dtype=bool)[place],
        outcome=np.array([np.nan if v is None else v for v in values], dtype=float),
        bounds=scored.study.outcome_bounds,
    )


def loss_table(panel: Panel, by_state: pd.DataFrame) -> pd.DataFrame:
    """Losses of every unit as rows sorted by unit id.

    by_state: one row per state of the panel, in its order, with `state_id`, `task`, `budget`,
    `seed` and whatever else should stand on each of its units. Adds unit_id, context, call, point,
    lower, upper, is_fallback, outcome, point_error, interval_score (NaN where the outcome is
    undefined), covered, width and direction_correct (NA where undefined or the outcome is 0).
    """
    n_state, n_context, n_call = panel.point.shape
    rows = by_state.loc[by_state.index.repeat(n_context * n_call)].reset_index(drop=True)
    rows["context"] = np.tile(np.repeat(panel.contexts, n_call), n_state)
    rows["call"] = np.tile(panel.calls, n_state * n_context)
    rows["unit_id"] = rows["state_id"] + "/" + rows["context"] + "/" + rows["call"].astype(str)
    rows["point"], rows["lower"], rows["upper"] = (a.ravel() for a in (panel.point, panel.lower, panel.upper))
    rows["is_fallback"] = panel.is_fallback.ravel()
    rows["outcome"] = np.repeat(panel.outcome, n_context * n_call)
    rows["point_error"] = panels.losses(panel, "point_error").ravel()
    rows["interval_score"] = panels.losses(panel, "interval_score").ravel()
    rows["covered"] = _flags(1.0 - panels.losses(panel, "covered"))
    rows["width"] = panels.losses(panel, "width").ravel()
    rows["direction_correct"] = _flags(1.0 - panels.losses(panel, "direction"))
    first = ["unit_id", "state_id", "task", "budget", "seed", "context", "call"]
    rows = rows[[*first, *(column for column in rows if column not in first)]]
    return rows.sort_values("unit_id", ignore_index=True)


def all_contrasts(
    panel: Panel, study: Study, name: str, *, seed: int, inference: Inference
) -> dict[str, dict[str, Contrast]]:
    """Contrasts by measure and pair, `D-M` and `S-M`, for drift also `D-S`.

    A pair with a context that was not asked is absent. Each pair has its own stream, so neither a
    further pair nor a further measure moves an interval.
    """
    found: dict[str, dict[str, Contrast]] = {m: {} for m in (*MEASURES, *map(_scaled, SCALED))}
    for other, matched in _pairs(panel):
        pair, gains = f"{other}-{matched}", _gains(panel, other, matched)
        contrasts = _estimates(gains, pair, study, name, seed=seed, inference=inference)
        for measure, contrast in contrasts.items():
            found[measure][pair] = contrast
    return found


def primary_contrasts(
    panel: Panel, study: Study, name: str, *, seed: int, inference: Inference
) -> dict[str, Contrast]:
    """Only what the rule reads, by pair, and in less time: the same numbers as in `all_contrasts`."""
    loss, found = study.primary_loss, {}
    for other, matched in _pairs(panel):
        if matched == "M":
            pair = f"{other}-{matched}"
            gains: dict[str, Gain] = {loss: panels.gain(panel, loss, other, matched)}
            found[pair] = _estimates(gains, pair, study, name, seed=seed, inference=inference)[loss]
    return found


def _pairs(panel: Panel) -> list[tuple[str, str]]:
    return [pair for pair in PAIRS if set(pair) <= set(panel.contexts)]


def _estimates(
    gains: Mapping[str, Gain], pair: str, study: Study, name: str, *, seed: int, inference: Inference
) -> dict[str, Contrast]:
    """Contrasts of one pair by measure, all over the resamples of the pair's own stream."""
    if not gains:
        return {}
    contrasts = estimate(
        list(gains.values()),
        draws=inference.draws,
        level=inference.level,
        one_sided_level=study.one_sided_level,
        rng=stream(seed, name, pair),
    )
    return dict(zip(gains, contrasts, strict=True))


def notes(panel: Panel, study: Study, primary: Mapping[str, Contrast]) -> tuple[str, ...]:
    """Sentences on what a decision from these units cannot be taken to mean."""
    clusters = len(panel.endpoints)
    undefined, fallbacks = int(np.isnan(panel.outcome).sum()), int(panel.is_fallback.sum())
    absent = ", ".join(c for c in study.contexts if c not in panel.contexts)
    few = f"{clusters} endpoints instead of {study.n_clusters}: too few to confirm or exclude much."
    narrow = (
        "With a dozen clusters or fewer the percentile interval covers about 90 % where it says 95 %; "
        "the t interval on cluster means stands beside it."
    )
    sentences = (
        (absent, f"Not asked: {absent}; gates that need it saw nothing and did not hold."),
        (clusters < study.n_clusters, few),
        (clusters <= FEW_CLUSTERS, narrow),
        (undefined, f"{undefined} of {len(panel.states)} outcomes are undefined; see worst and best case."),
        (fallbacks, f"{fallbacks} of {panel.point.size} forecasts are the fallback and count as forecasts."),
        (study.timing == "post-outcome", "The plan was made after the outcomes were known."),
    )
    silent = (f"{pair} has no interval: {c.reason}." for pair, c in primary.items() if c.reason is not None)
    return (*(sentence for holds, sentence in sentences if holds), *silent)


def _run_notes(panel: Panel, study: Study, scale: str, integrity: Mapping[str, Any]) -> tuple[str, ...]:
    """What the run itself takes away from a decision."""
    earlier = integrity.get("planned_after_opening")
    clusters = len(panel.endpoints)
    short = (
        f"Asked at full scale, but {clusters} of {study.n_clusters} endpoints were there: "
        f"{len(panel.states)} of the study's {study.n_states} states."
    )
    sentences = (
        (scale == "full" and clusters < study.n_clusters, short),
        (scale != "full", f"Scale is {scale}: a stated subset of the study's {study.n_states} states."),
        (earlier, f"The outcomes had been opened before this plan was made: {earlier}."),
    )
    return tuple(sentence for holds, sentence in sentences if holds)


def _gains(panel: Panel, other: str, matched: str) -> dict[str, Gain]:
    """The gains to estimate for one pair, by measure."""
    with_drift = len(panel.calls) == 2
    if matched != "M":  # D-S asks one thing only: does a donor's explanation steady the forecasts too?
        return {"drift": panels.gain(panel, "drift", other, matched)} if with_drift else {}
    plain: dict[str, Gain] = {
        m: panels.gain(panel, m, other, matched) for m in MEASURES if m != "drift" or with_drift
    }
    scale = panels.task_scale(panel)
    return plain | {_scaled(m): plain[m].scaled(scale) for m in SCALED}


def _scaled(measure: str) -> str:
    return f"{measure}_scaled"


def _decision(decision: Decision, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "rule": decision.rule,
        "status": decision.status,
        "gates": by_name(decision.gates),
        "limits": [*decision.limits, *notes],
    }


def _contrasts(found: Mapping[str, Mapping[str, Contrast]], study: Study) -> dict[str, Any]:
    printed = study.published.get("contrasts", {})
    return {
        measure: {
            pair: asdict(contrast)
            | {
                "role": "primary" if measure == study.primary_loss else "exploratory",
                "published": printed.get(measure, {}).get(pair),
            }
            for pair, contrast in pairs.items()
        }
        for measure, pairs in found.items()
    }


def _checks(
    panel: Panel, scored: Scored, found: Mapping[str, Mapping[str, Contrast]], *,
    seed: int, inference: Inference, integrity: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    primary, point = found.get(scored.study.primary_loss, {}), found.get("point_error", {})
    stated = [_stated(scored.explanations.get(s.id)) for s in scored.states]
    sensitivity = checks.sensitivity(
        np.array(stated, dtype=float)[panel.cells],
        _ensemble(panel, "M"),
        _ensemble(panel, "D"),
        draws=inference.draws,
        level=scored.study.one_sided_level,
        rng=stream(seed, scored.name, "sensitivity"),
    )
    results = {
        "commitment": checks.commitment(integrity),
        "delivery": _delivery(panel, scored),
        "value": checks.value(primary.get("D-M"), point.get("D-M")),
        "alignment": checks.alignment(primary.get("S-M"), point.get("S-M")),
        "sensitivity": sensitivity,
    }
    return {name: result.plain() for name, result in results.items()}


def _delivery(panel: Panel, scored: Scored) -> checks.CheckResult:
    told = {s: e.text.strip() != "" for s, e in scored.explanations.items()}
    shown = {
        "M": [told.get(s.id, False) for s in scored.states],
        "S": [told.get(scored.donors.get(s.id, ""), False) for s in scored.states],
    }
    asked = [c for c in shown if c in panel.contexts]
    calls = len(panel.calls)
    # A gap would have been refused when the panel was made, so what is planned is what is answered.
    planned = panel.point.size
    return checks.delivery(
        planned=planned,
        answered=len(scored.forecasts),
        readable=planned - int(panel.is_fallback.sum()),
        to_explain=calls * len(scored.states) * len(asked),
        explained=calls * sum(sum(shown[c]) for c in asked),
        cards=len(scored.explanations),
        complete=sum(e.card.is_complete for e in scored.explanations.values()),
    )


def _ensemble(panel: Panel, context: str) -> Array:
    """Mean point of a context's calls as a cube (endpoint, budget, seed); NaN if it was not asked."""
    if context not in panel.contexts:
        return np.full(panel.cells.shape, np.nan)
    points: Array = panel.point[:, panel.of(context)].mean(axis=1)[panel.cells]
    return points


def _stated(explanation: Explanation | None) -> float:
    target = None if explanation is None else stated_target(explanation.card)
    return math.nan if target is None else target


def _key(unit_id: str) -> tuple[str, str, int]:
    state, context, call = unit_id.rsplit("/", 2)
    return state, context, int(call)


def _flags(values: Array) -> pd.Series[bool]:
    """1, 0 and NaN as a column of True, False and NA."""
    return pd.Series(values.ravel()).astype("boolean")
