"""From scored units to everything a study reports, as JSON-plain dicts keyed by name.

Pure: records in, dicts out. An undefined number is None, never NaN, and never 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictive_credit import checks
from predictive_credit.bootstrap import Design
from predictive_credit.cards import stated_target
from predictive_credit.checks import Signal
from predictive_credit.config import Inference
from predictive_credit.contrasts import Contrast, estimate
from predictive_credit.decisions import Decision, by_name
from predictive_credit.errors import Unpaired
from predictive_credit.panel import MEASURES, Gain, Measure, Panel, gain, order, task_scale
from predictive_credit.panel import losses as unit_losses
from predictive_credit.records import BurnIn, Context, Explanation, Forecast, Outcome, Source, State
from predictive_credit.streams import stream
from predictive_credit.studies.study import Donors, Findings, Formation, Study
from predictive_credit.studies.summaries import (
    SCALED,
    contexts,
    explanations,
    formation,
    outcomes,
    tasks,
)

Array = NDArray[np.float64]
Panels = Mapping[str, Panel]  # by target, in the study's order
Pair = tuple[str, str]  # other context, matched context
ByPair = Mapping[str, Contrast]
Contrasts = Mapping[str, Mapping[str, ByPair]]  # by target, measure and pair

FEW_CLUSTERS, FEWEST_CLUSTERS = 12, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """All that scoring needs: the frozen forecasts of one study and its opened outcomes."""

    study: Study
    states: tuple[State, ...]  # sorted by id
    contexts: tuple[Context, ...]  # as configured; may be fewer than the study declares
    forecasts: Mapping[str, tuple[Forecast, ...]]  # by unit id, one a target in the study's order
    outcomes: Mapping[tuple[str, str], Outcome]  # by state id and target
    burn_in: BurnIn
    explanations: Mapping[tuple[str, Source], Explanation]  # by state id and source
    donors: Donors  # by context that shows a donor's explanation

    @property
    def name(self) -> str:
        """The configured study's name: `tox21` where a configuration calls its molecular study so."""
        return self.states[0].study if self.states else self.study.name


def losses(scored: Scored) -> pd.DataFrame:
    """One row per forecast unit and target, sorted by these; see `loss_table` for the columns."""
    seeds = [s.seed for s in scored.states]
    by_state = pd.DataFrame(
        {
            "state_id": [s.id for s in scored.states],
            "task": [s.task for s in scored.states],
            "budget": pd.Series([s.budget for s in scored.states], dtype=float),
            "seed": pd.Series(seeds, dtype="Int64" if None in seeds else "int64"),
            "cluster": ["/".join(s.cluster) for s in scored.states],
            "intervention": [s.intervention.name for s in scored.states],
        }
    )
    return loss_table(to_panels(scored), by_state)


def evaluate(
    scored: Scored, *, seed: int, inference: Inference, scale: str, integrity: Mapping[str, Any]
) -> dict[str, Any]:
    """Decision, checks, contrasts, contexts, tasks, outcomes and explanations of one study.

    seed names, with the study and the analysis, every random stream. integrity is what the shell
    verified of the order of events; see `checks.commitment`. Raises Unpaired for a missing, extra
    or doubled forecast or state.
    """
    study, panels = scored.study, to_panels(scored)
    published = study.published
    contrasts = all_contrasts(panels, study, scored.name, seed=seed, inference=inference)
    formed = _formation(scored, _first(panels).design, seed=seed, inference=inference)
    decision = study.decide(scored.name, Findings(contrasts=contrasts, formation=formed, panels=panels))
    run_notes = _run_notes(_first(panels), study, scale, integrity)
    levels = contexts(panels, scored.burn_in, scored.name, seed=seed, inference=inference)
    pairs = [pair for pair in pairs_of(_first(panels).contexts, study) if is_full(pair, study)]
    reports: dict[str, dict[str, Any]] = {
        "decision": _decision(decision, run_notes + notes(panels, study, contrasts))
        | ({} if study.shows is None else {"shown": study.shows(panels, contrasts)}),
        "checks": _checks(panels, scored, contrasts, seed=seed, inference=inference, integrity=integrity),
        "contrasts": _contrasts(contrasts, study),
        "contexts": {
            target: of | {"published": _printed(published, "contexts", target)}
            for target, of in levels.items()
        },
        "tasks": {
            target: tasks(panel, scored.burn_in.targets[target], pairs) for target, panel in panels.items()
        },
        "outcomes": {
            target: outcomes(
                panel, scored.states, [scored.outcomes[s.id, target].reason for s in scored.states]
            )
            | {"published": _printed(published, "outcomes", target)}
            for target, panel in panels.items()
        },
        "explanations": explanations([*scored.explanations.values()], scored.outcomes, study.targets)
        | {
            "formation": None if formed is None else asdict(formed),
            "published": _printed(published, "explanations"),
        },
    }
    label = {"study": scored.name, "scale": scale}
    return {name: label | report for name, report in reports.items()}


def to_panels(scored: Scored) -> dict[str, Panel]:
    """Records as gap-free arrays by target, (state, context, call) in the configured order."""
    study, states = scored.study, tuple(s.id for s in scored.states)
    asked = tuple(str(c) for c in scored.contexts)
    calls = tuple(range(1, study.calls_per_context + 1))
    wanted = [(s, target.name) for s in states for target in study.targets]
    missing = ["/".join(key) for key in wanted if key not in scored.outcomes]
    if missing:
        raise Unpaired(
            f"{len(missing)} outcomes were not executed, first {missing[0]}; run the execute stage again"
        )
    place = order([_key(unit) for unit in scored.forecasts], states, asked, calls)
    task_names, task_of = np.unique([s.task for s in scored.states], return_inverse=True)
    design = design_of([s.cluster for s in scored.states], study)
    panels = {}
    for k, target in enumerate(study.targets):
        forecasts = [_of_target(unit, of, k, target.name) for unit, of in scored.forecasts.items()]
        values = [scored.outcomes[s, target.name].value for s in states]
        panels[target.name] = Panel(
            states=states,
            contexts=asked,
            calls=calls,
            tasks=tuple(map(str, task_names)),
            task_of=task_of,
            design=design,
            target=target,
            point=np.array([f.point for f in forecasts], dtype=float)[place],
            lower=np.array([f.lower for f in forecasts], dtype=float)[place],
            upper=np.array([f.upper for f in forecasts], dtype=float)[place],
            is_fallback=np.array([f.is_fallback for f in forecasts], dtype=bool)[place],
            outcome=np.array([np.nan if v is None else v for v in values], dtype=float),
        )
    return panels


def design_of(clusters: Sequence[tuple[str, ...]], study: Study) -> Design:
    """The bootstrap's design of a study; clusters: one path a state, in the states' order."""
    return Design(paths=tuple(clusters), drawn=tuple(level.is_drawn for level in study.levels))


def loss_table(panels: Panels, by_state: pd.DataFrame) -> pd.DataFrame:
    """Losses of every unit and target as rows, sorted by unit id, then target.

    by_state: one row per state of the panels, in their order, with `state_id`, `task`, `budget`,
    `seed`, `cluster` and whatever else should stand on each of its units. Adds unit_id, context,
    call, target, point, lower, upper, is_fallback, outcome, point_error, interval_score (NaN where
    the outcome is undefined), covered, width and direction_correct (NA where undefined or the
    outcome is 0).
    """
    panel, names = _first(panels), sorted(panels)
    # The order of the ids of units, which end in `/context/call`: `a/` comes after `a-b/`.
    states = np.array(_sorted_positions([f"{s}/" for s in panel.states]))
    asked = np.array(_sorted_positions(panel.contexts))
    units = [(panel.contexts[c], call, name) for c in asked for call in panel.calls for name in names]

    def of_units(values: Sequence[Any]) -> Any:
        """One value a unit and target of a state, for every state."""
        return pd.Series(values).iloc[np.tile(np.arange(len(units)), len(states))].array

    def column(values: Mapping[str, Array]) -> Array:
        return np.stack([values[name][states][:, asked] for name in names], axis=-1).ravel()

    def loss(measure: Measure) -> Array:
        return column({name: unit_losses(panels[name], measure) for name in names})

    rows = by_state.iloc[np.repeat(states, len(units))].reset_index(drop=True)
    rows["unit_id"] = rows["state_id"] + of_units([f"/{context}/{call}" for context, call, _ in units])
    for at, name in enumerate(("context", "call", "target")):
        rows[name] = of_units([unit[at] for unit in units])
    for field in ("point", "lower", "upper", "is_fallback"):
        rows[field] = column({name: getattr(panels[name], field) for name in names})
    rows["outcome"] = column(
        {name: np.broadcast_to(p.outcome[:, None, None], p.point.shape) for name, p in panels.items()}
    )
    rows["point_error"] = loss("point_error")
    rows["interval_score"] = loss("interval_score")
    rows["covered"] = _flags(1.0 - loss("covered"))
    rows["width"] = loss("width")
    rows["direction_correct"] = _flags(1.0 - loss("direction"))
    first = ["unit_id", "target", "state_id", "task", "budget", "seed", "cluster", "context", "call"]
    return rows[[*first, *(name for name in rows if name not in first)]]


def all_contrasts(
    panels: Panels, study: Study, name: str, *, seed: int, inference: Inference
) -> dict[str, dict[str, dict[str, Contrast]]]:
    """Contrasts by target, measure and pair; see `pairs_of`.

    A pair with a context that was not asked is absent. Each pair has its own stream, which its
    measures and targets share: neither a further pair nor a further measure moves an interval.
    """
    found: dict[str, dict[str, dict[str, Contrast]]] = {
        target: {m: {} for m in (*MEASURES, *map(_scaled, SCALED))} for target in panels
    }
    panel = _first(panels)
    for other, matched in pairs_of(panel.contexts, study):
        pair, full = f"{other}-{matched}", is_full((other, matched), study)
        gains = {
            (target, measure): of
            for target, panel_of in panels.items()
            for measure, of in _gains(panel_of, other, matched, full=full).items()
        }
        if not gains:
            continue
        contrasts = estimate(
            list(gains.values()),
            panel.design,
            panel.task_of,
            draws=inference.draws,
            level=inference.level,
            one_sided_level=study.one_sided_level,
            rng=stream(seed, name, pair),
        )
        for (target, measure), contrast in zip(gains, contrasts, strict=True):
            found[target][measure][pair] = contrast
    return found


def pairs_of(asked: Sequence[str], study: Study) -> list[Pair]:
    """Pairs to contrast: every context with the matched one, what else the study declares, then D with
    every other, which has a drift alone."""
    matched = str(study.matched)
    against_matched = [(c, matched) for c in asked if c != matched] if matched in asked else []
    declared = [(str(o), str(m)) for o, m in study.pairs if {str(o), str(m)} <= set(asked)]
    steadied = [("D", c) for c in asked if c not in ("D", matched)] if "D" in asked else []
    return list(dict.fromkeys(against_matched + declared + steadied))


def is_full(pair: Pair, study: Study) -> bool:
    """Whether a pair is contrasted in every measure, not in drift alone."""
    return pair[1] == str(study.matched) or pair in study.pairs


def notes(panels: Panels, study: Study, contrasts: Contrasts) -> tuple[str, ...]:
    """Sentences on what a decision from these units cannot be taken to mean."""
    panel = _first(panels)
    clusters = len(np.unique(panel.design.clusters))
    n_outcomes = len(panels) * len(panel.states)
    undefined = sum(int(np.isnan(p.outcome).sum()) for p in panels.values())
    fallbacks = int(panel.is_fallback.sum())
    absent = ", ".join(c for c in study.contexts if c not in panel.contexts)
    words = study.task_words[len(panel.tasks) != 1]
    few = f"{len(panel.tasks)} {words} instead of {study.n_tasks}: too few to confirm or exclude much."
    least = (
        f"With {FEWEST_CLUSTERS} clusters or fewer the percentile interval covers some 65 to 85 % where it "
        "says 95 %, and its gates and checks err as much; the t interval on cluster means stands beside it."
    )
    narrow = (
        "With a dozen clusters or fewer the percentile interval covers about 90 % where it says 95 %; "
        "the t interval on cluster means stands beside it."
    )
    sentences = (
        (absent, f"Not asked: {absent}; gates that need it saw nothing and did not hold."),
        (len(panel.tasks) < study.n_tasks, few),
        (clusters <= FEW_CLUSTERS, least if clusters <= FEWEST_CLUSTERS else narrow),
        (undefined, f"{undefined} of {n_outcomes} outcomes are undefined; see worst and best case."),
        (fallbacks, f"{fallbacks} of {panel.point.size} forecasts are the fallback and count as forecasts."),
    )
    silent = (
        f"{pair}{f' of {target}' if len(panels) > 1 else ''} has no interval: {contrast.reason}."
        for target, measures in contrasts.items()
        for pair, contrast in measures[study.primary_loss].items()
        if contrast.reason is not None
    )
    return (*(sentence for holds, sentence in sentences if holds), *silent)


def _run_notes(panel: Panel, study: Study, scale: str, integrity: Mapping[str, Any]) -> tuple[str, ...]:
    """What the run itself takes away from a decision."""
    earlier, known = integrity.get("planned_after_opening"), integrity.get("known_before")
    is_short = len(panel.tasks) < study.n_tasks
    short = (
        f"Asked at full scale, but {len(panel.tasks)} of {study.n_tasks} {study.task_words[1]} were there: "
        f"{len(panel.states)} of the study's {study.n_states} states."
    )
    subset = f"Scale is {scale}: a stated subset of the study's {study.n_states} states."
    sentences = (
        (scale == "full" and is_short, short),
        (scale != "full" and study.n_tasks, subset),  # a user's own population has no size to fall short of
        (earlier, f"The outcomes had been opened before this plan was made: {earlier}."),
        (known, f"The plan was made after the outcomes of {known} were known."),
    )
    return tuple(sentence for holds, sentence in sentences if holds)


def _gains(panel: Panel, other: str, matched: str, *, full: bool) -> dict[str, Gain]:
    """The gains to estimate for one pair, by measure."""
    with_drift = len(panel.calls) == 2
    if not full:  # one question only: does any explanation steady the forecasts too?
        return {"drift": gain(panel, "drift", other, matched)} if with_drift else {}
    plain: dict[str, Gain] = {
        m: gain(panel, m, other, matched) for m in MEASURES if m != "drift" or with_drift
    }
    scale = task_scale(panel)[panel.task_of]
    return plain | {_scaled(m): plain[m].scaled(scale) for m in SCALED}


def _scaled(measure: str) -> str:
    return f"{measure}_scaled"


def _formation(scored: Scored, design: Design, *, seed: int, inference: Inference) -> Formation | None:
    """Elicited minus ordinary, over the states of which both were written."""

    def complete(state: State, source: Source) -> float:
        found = scored.explanations.get((state.id, source))
        return math.nan if found is None else float(found.card.is_complete)

    return formation(
        np.array([complete(s, "elicited") - complete(s, "ordinary") for s in scored.states]),
        design,
        draws=inference.draws,
        level=scored.study.one_sided_level,
        rng=stream(seed, scored.name, "formation"),
    )


def _decision(decision: Decision, notes: Sequence[str]) -> dict[str, Any]:
    return {
        "rule": decision.rule,
        "status": decision.status,
        "gates": by_name(decision.gates),
        "limits": [*decision.limits, *notes],
    }


def _contrasts(found: Contrasts, study: Study) -> dict[str, Any]:
    return {
        target: {
            measure: {
                pair: asdict(contrast)
                | {
                    "role": role(measure, pair, study),
                    "published": _printed(study.published, "contrasts", target, measure, pair) or None,
                }
                for pair, contrast in pairs.items()
            }
            for measure, pairs in measures.items()
        }
        for target, measures in found.items()
    }


def role(measure: str, pair: str, study: Study) -> str:
    """Whether a contrast is one that the study's rule was planned for."""
    return "primary" if study.is_primary(measure, pair) else "exploratory"


def _checks(
    panels: Panels, scored: Scored, contrasts: Contrasts, *,
    seed: int, inference: Inference, integrity: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    study, primary = scored.study, scored.study.primary_loss
    value, alignment = (f"{other}-{study.matched}" for other in (Context.DESCRIPTION, study.against))

    def gains(pair: str) -> dict[str, checks.Gains]:
        return {t: (of[primary].get(pair), of["point_error"].get(pair)) for t, of in contrasts.items()}

    results = {
        "commitment": checks.commitment(integrity),
        "delivery": _delivery(_first(panels), scored),
        "value": checks.value(gains(value), level=study.one_sided_level, pair=value),
        "alignment": checks.alignment(gains(alignment), level=study.one_sided_level, pair=alignment),
        "sensitivity": checks.sensitivity(
            {target: _signal(panel, scored) for target, panel in panels.items()},
            _first(panels).design,
            draws=inference.draws,
            level=scored.study.one_sided_level,
            rng=lambda: stream(seed, scored.name, "sensitivity"),
        ),
    }
    return {name: result.plain() for name, result in results.items()}


def _delivery(panel: Panel, scored: Scored) -> checks.CheckResult:
    showing = [c for c in scored.contexts if scored.study.contexts[c] is not None]
    shown = [explanation for context in showing for explanation in _shown(scored, context)]
    found = scored.explanations.values()
    complete = Counter(e.source for e in found if e.card.is_complete)
    calls = len(panel.calls)
    # A gap would have been refused when the panel was made, so what is planned is what is answered.
    planned = panel.point.size
    return checks.delivery(
        planned=planned,
        answered=len(scored.forecasts),
        readable=planned - int(panel.is_fallback.sum()),
        to_explain=calls * len(shown),
        explained=calls * sum(e is not None and e.text.strip() != "" for e in shown),
        cards={source: (n, complete[source]) for source, n in Counter(e.source for e in found).items()},
    )


def _shown(scored: Scored, context: Context) -> list[Explanation | None]:
    """The explanation that a context shows of each state, None where there is none."""
    showing = scored.study.contexts.get(context)
    if showing is None:
        return [None] * len(scored.states)
    sources = {s.id: s.sources for s in scored.states}
    donors = scored.donors.get(context, {})
    owners = [donors.get(s.id) if showing.donor else s.id for s in scored.states]
    return [
        scored.explanations.get((owner, showing.source or sources[owner][0])) if owner in sources else None
        for owner in owners
    ]


def _signal(panel: Panel, scored: Scored) -> Signal:
    """What the matched cards state of the panel's target, beside the forecasts with and without them."""
    shown, among = _shown(scored, scored.study.matched), scored.study.targets
    stated = [None if e is None else stated_target(e.card, panel.target, among=among) for e in shown]
    return Signal(
        stated=np.array([math.nan if number is None else number for number in stated]),
        matched=_ensemble(panel, scored.study.matched),
        description=_ensemble(panel, "D"),
    )


def _ensemble(panel: Panel, context: str) -> Array:
    """Mean point of a context's calls, (state,); NaN if it was not asked."""
    if context not in panel.contexts:
        return np.full(len(panel.states), np.nan)
    points: Array = panel.point[:, panel.of(context)].mean(axis=1)
    return points


def _of_target(unit: str, forecasts: Sequence[Forecast], k: int, target: str) -> Forecast:
    """The forecast of the study's k-th target. Raises Unpaired if another stands there."""
    seen = [forecast.target for forecast in forecasts]
    if k >= len(seen) or seen[k] != target:
        raise Unpaired(
            f"{unit} holds forecasts of {', '.join(seen) or 'nothing'}; number {k + 1} has to be of {target}"
        )
    return forecasts[k]


def _key(unit_id: str) -> tuple[str, str, int]:
    state, context, call = unit_id.rsplit("/", 2)
    return state, context, int(call)


def _printed(published: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Published figures under the keys, empty where none were printed."""
    found: Any = published
    for key in keys:
        found = found.get(key, {})
    return dict(found)


def _first(panels: Panels) -> Panel:
    """Any target's panel, where it is asked for what all of them share."""
    return next(iter(panels.values()))


def _sorted_positions(names: Sequence[str]) -> list[int]:
    return sorted(range(len(names)), key=names.__getitem__)


def _flags(values: Array) -> pd.Series[bool]:
    """1, 0 and NaN as a column of True, False and NA."""
    return pd.Series(values).astype("boolean")
