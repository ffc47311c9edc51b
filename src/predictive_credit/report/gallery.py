"""A study's view to its figures: which numbers go into which plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predictive_credit import scoring
from predictive_credit.records import Answer, State, UnitKind
from predictive_credit.report import figures, words
from predictive_credit.report.figures import Level, Point, Span
from predictive_credit.report.tables import dig, endpoint_metrics, in_order, mapping
from predictive_credit.report.view import StudyView
from predictive_credit.studies.summaries import LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """The forecasts of one state and context, averaged over its calls, beside the outcome."""

    state: State
    context: str
    outcome: float | None
    point: float  # mean of the calls
    drift: float | None  # None unless there are two calls
    error: float | None  # mean absolute error of the calls


def read(view: StudyView) -> tuple[Read, ...]:
    """One row for each state and context with an answer, in plan order."""
    answers = {a.unit_id: a for a in view.answers}
    outcomes = {o.state_id: o.value for o in view.outcomes}
    states = {s.id: s for s in view.states}
    grouped: dict[tuple[str, str], list[Answer]] = {}
    for unit in view.plan:
        if unit.kind is UnitKind.FORECAST and unit.context is not None and unit.id in answers:
            grouped.setdefault((unit.state_id, str(unit.context)), []).append(answers[unit.id])
    return tuple(
        _read(states[state], context, outcomes.get(state), [a.forecast.point for a in found])
        for (state, context), found in grouped.items()
        if state in states
    )


def forests(view: StudyView, unit: str, prefix: str) -> tuple[str, ...]:
    """One forest plot for each of the three losses that the study is about."""
    found = mapping(view.metrics, "contrasts")
    return tuple(
        figures.forest(
            f"{prefix}-forest-{measure}", words.MEASURES[measure],
            [_span(pair, contrast) for pair, contrast in in_order(mapping(found, measure))], unit=unit,
        )
        for measure in ("interval_score", "point_error", "drift")
        if mapping(found, measure)
    )  # fmt: skip


def drift_against_error(view: StudyView, unit: str, prefix: str) -> tuple[str, ...]:
    """One panel a context: a repeatable forecast is not for that an accurate one."""
    rows = [r for r in read(view) if r.drift is not None and r.error is not None]
    return _panels(
        rows, f"{prefix}-drift", (f"drift, {unit}", f"point error, {unit}"),
        lambda r: (r.drift or 0.0, r.error or 0.0), from_zero=True,
    )  # fmt: skip


def point_against_outcome(view: StudyView, unit: str, prefix: str) -> tuple[str, ...]:
    """One panel a context: what was forecast beside what happened."""
    rows = [r for r in read(view) if r.outcome is not None]
    return _panels(
        rows, f"{prefix}-point", (f"executed change, {unit}", "forecast, mean of calls"),
        lambda r: (r.outcome or 0.0, r.point), diagonal=True,
    )  # fmt: skip


def coverage(view: StudyView, unit: str, prefix: str) -> tuple[str, ...]:
    """Coverage and width of contexts and baselines; nothing if the metrics hold no level."""
    found = mapping(view.metrics, "contexts")
    levels = [
        Level(
            name=name,
            coverage=_number(dig(found, name, "coverage")),
            coverage_large=_number(dig(found, name, "coverage_large")),
            width=_number(dig(found, name, "width")),
        )
        for name in (*words.MODELS, *words.BASELINES)
        if name in found
    ]
    if not levels:
        return ()
    return (figures.coverage(f"{prefix}-coverage", levels, unit=unit, nominal=scoring.LEVEL, large=LARGE),)


def influence(view: StudyView, unit: str, prefix: str) -> tuple[str, ...]:
    """Leave-one-endpoint-out gains, and the share of the error of each endpoint."""
    found = endpoint_metrics(view)
    names = list(found)
    plots = []
    for measure in ("interval_score", "point_error"):
        pairs = [
            p for p in words.PAIRS if any(p in mapping(f, "leave_one_out", measure) for f in found.values())
        ]
        if not pairs:
            continue
        without = {p: [_number(dig(found[n], "leave_one_out", measure, p)) for n in names] for p in pairs}
        whole = {p: _number(dig(view.metrics, "contrasts", measure, p, "mean")) for p in pairs}
        title = f"{words.MEASURES[measure]}: without each endpoint"
        plots.append(
            figures.influence(f"{prefix}-without-{measure}", title, names, without, whole, unit=unit)
        )
    models = [c for c in words.MODELS if any(c in mapping(f, "share_of_error") for f in found.values())]
    if models:
        share = {c: [_number(dig(found[n], "share_of_error", c)) for n in names] for c in models}
        plots.append(figures.shares(f"{prefix}-shares", "Share of the point error", names, share))
    return tuple(plots)


def outcomes(view: StudyView, unit: str, prefix: str) -> tuple[str, ...]:
    """Executed outcomes by intervention."""
    values = {o.state_id: o.value for o in view.outcomes}
    groups: dict[str, list[Point]] = {}
    for state in view.states:
        rows = groups.setdefault(state.intervention.name, [])
        if (value := values.get(state.id)) is not None:
            # Spread over five heights, so that equal outcomes stay apart.
            height = (len(rows) % 5 - 2) * 0.1
            rows.append(Point(x=value, y=height, title=f"{state.id}: {words.signed(value)}"))
    if not any(groups.values()):
        return ()
    return (figures.strips(f"{prefix}-outcomes", "Executed outcomes", groups, unit=unit),)


def _read(state: State, context: str, outcome: float | None, points: Sequence[float]) -> Read:
    errors = None if outcome is None else [abs(outcome - p) for p in points]
    return Read(
        state=state,
        context=context,
        outcome=outcome,
        point=sum(points) / len(points),
        drift=float(scoring.drift(points)) if len(points) == 2 else None,
        error=sum(errors) / len(errors) if errors else None,
    )


def _span(pair: str, found: Any) -> Span:
    published = mapping(found, "published")
    mean = _number(published.get("mean"))
    ends = (_number(published.get("lower")), _number(published.get("upper")))
    return Span(
        pair=pair,
        mean=_number(dig(found, "mean")),
        percentile=_ends(found, "lower", "upper"),
        t=_ends(found, "t_lower", "t_upper"),
        published=None if mean is None else (mean, *ends),
    )


def _ends(found: Any, low: str, high: str) -> tuple[float, float] | None:
    lower, upper = _number(dig(found, low)), _number(dig(found, high))
    return None if lower is None or upper is None else (lower, upper)


def _number(value: Any) -> float | None:
    return float(value) if words.is_number(value) else None


def _panels(
    rows: Sequence[Read], prefix: str, labels: tuple[str, str], place: Any, *,
    from_zero: bool = False, diagonal: bool = False,
) -> tuple[str, ...]:  # fmt: skip
    if not rows:
        return ()
    places = [place(r) for r in rows]
    limits = (_limits((x for x, _ in places), from_zero), _limits((y for _, y in places), from_zero))
    by_context: Mapping[str, list[Point]] = {c: [] for c in words.MODELS}
    for row, (x, y) in zip(rows, places, strict=True):
        title = f"{row.state.id}: {labels[0]} {words.number(x)}, {labels[1]} {words.number(y)}"
        by_context[row.context].append(Point(x=x, y=y, title=title))
    return tuple(
        figures.scatter(
            f"{prefix}-{context}", context, points, limits=limits, labels=labels,
            title=words.context(context), diagonal=diagonal,
        )
        for context, points in by_context.items()
        if points
    )  # fmt: skip


def _limits(values: Iterable[float], from_zero: bool) -> tuple[float, float]:
    found = [*values, 0.0]
    low, high = min(found), max(found)
    room = 0.06 * (high - low) or 0.01
    return (-0.5 * room if from_zero else low - room, high + room)


def drift_says(view: StudyView) -> str | None:
    """How drift and error of a state go together in each context, as a sentence; None if unknown."""
    rows = [r for r in read(view) if r.drift is not None and r.error is not None]
    said = []
    for context in words.MODELS:
        pairs = [(r.drift or 0.0, r.error or 0.0) for r in rows if r.context == context]
        if len(pairs) > 2:
            rho = float(scoring.spearman(*zip(*pairs, strict=True)))
            said.append(f"{context} {words.signed(rho, 2, absent=words.NOT_ESTIMABLE)}")
    return "Rank correlation of drift and error over states: " + ", ".join(said) + "." if said else None
