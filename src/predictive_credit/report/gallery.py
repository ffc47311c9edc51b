"""The view of one target to its figures: which numbers go into which plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predictive_credit import scoring
from predictive_credit.records import Answer, State, UnitKind
from predictive_credit.report import figures, words
from predictive_credit.report.figures import Level, Point, Span
from predictive_credit.report.tables import dig, in_order, main_pairs, mapping, task_metrics
from predictive_credit.report.view import StudyView


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
        _read(states[state], context, outcomes.get(state), [f.point for a in found for f in a.forecasts])
        for (state, context), found in grouped.items()
        if state in states
    )


def forests(view: StudyView, prefix: str) -> tuple[str, ...]:
    """One forest plot for each of the three losses that the study is about."""
    found = mapping(view.metrics, "contrasts")
    return tuple(
        figures.forest(
            f"{prefix}-forest-{measure}", words.MEASURES[measure],
            [_span(pair, contrast) for pair, contrast in in_order(view, mapping(found, measure))],
            unit=view.target.unit, say=view.voice,
        )
        for measure in ("interval_score", "point_error", "drift")
        if mapping(found, measure)
    )  # fmt: skip


def drift_against_error(view: StudyView, prefix: str) -> tuple[str, ...]:
    """One panel a context: a repeatable forecast is not for that an accurate one."""
    rows = [r for r in read(view) if r.drift is not None and r.error is not None]
    return _panels(
        view, rows, f"{prefix}-drift", ("drift", "point error"),
        lambda r: (r.drift or 0.0, r.error or 0.0), from_zero=True,
    )  # fmt: skip


def point_against_outcome(view: StudyView, prefix: str) -> tuple[str, ...]:
    """One panel a context: what was forecast beside what happened."""
    rows = [r for r in read(view) if r.outcome is not None]
    return _panels(
        view, rows, f"{prefix}-point", (f"executed {view.target.form}", "forecast, mean of calls"),
        lambda r: (r.outcome or 0.0, r.point), diagonal=True,
    )  # fmt: skip


def coverage(view: StudyView, prefix: str) -> tuple[str, ...]:
    """Coverage and width of contexts and baselines; nothing if the metrics hold no level."""
    found = mapping(view.metrics, "contexts")
    levels = [
        Level(
            name=name,
            coverage=_number(dig(found, name, "coverage")),
            coverage_large=_number(dig(found, name, "coverage_large")),
            width=_number(dig(found, name, "width")),
        )
        for name in (*view.contexts, *words.BASELINES)
        if name in found
    ]
    if not levels:
        return ()
    return (
        figures.coverage(
            f"{prefix}-coverage", levels, unit=view.target.unit, nominal=scoring.LEVEL,
            large=view.target.large, say=view.voice,
        ),
    )  # fmt: skip


def influence(view: StudyView, prefix: str) -> tuple[str, ...]:
    """Leave-one-task-out gains of the pairs that checks ask of, and the share of the error of each task."""
    found, called = task_metrics(view), view.study.task_words
    names = list(found)
    plots = []
    for measure in ("interval_score", "point_error"):
        pairs = [
            p for p in main_pairs(view)
            if any(p in mapping(f, "leave_one_out", measure) for f in found.values())
        ]  # fmt: skip
        if not pairs:
            continue
        without = {p: [_number(dig(found[n], "leave_one_out", measure, p)) for n in names] for p in pairs}
        whole = {p: _number(dig(view.metrics, "contrasts", measure, p, "mean")) for p in pairs}
        title = f"{words.MEASURES[measure]}: without each {called[0]}"
        plots.append(
            figures.influence(
                f"{prefix}-without-{measure}", title, names, without, whole, unit=view.target.unit,
                task_words=called,
            )
        )  # fmt: skip
    models = [c for c in view.contexts if any(c in mapping(f, "share_of_error") for f in found.values())]
    if models:
        share = {c: [_number(dig(found[n], "share_of_error", c)) for n in names] for c in models}
        plots.append(
            figures.shares(f"{prefix}-shares", "Share of the point error", names, share, task_words=called)
        )
    return tuple(plots)


def outcomes(view: StudyView, prefix: str) -> tuple[str, ...]:
    """Executed outcomes by intervention."""
    values = {o.state_id: o.value for o in view.outcomes}
    groups: dict[str, list[Point]] = {}
    for state in view.states:
        rows = groups.setdefault(state.intervention.name, [])
        if (value := values.get(state.id)) is not None:
            # Spread over five heights, so that equal outcomes stay apart.
            height = (len(rows) % 5 - 2) * 0.1
            rows.append(Point(x=value, y=height, title=f"{state.id}: {view.voice.signed(value)}"))
    if not any(groups.values()):
        return ()
    return (
        figures.strips(
            f"{prefix}-outcomes", "Executed outcomes", groups, unit=view.target.unit, form=view.target.form
        ),
    )


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
    view: StudyView, rows: Sequence[Read], prefix: str, labels: tuple[str, str], place: Any, *,
    from_zero: bool = False, diagonal: bool = False,
) -> tuple[str, ...]:  # fmt: skip
    if not rows:
        return ()
    places = [place(r) for r in rows]
    limits = (_limits((x for x, _ in places), from_zero), _limits((y for _, y in places), from_zero))
    say, unit = view.voice.number, view.target.unit
    by_context: Mapping[str, list[Point]] = {c: [] for c in view.contexts}
    for row, (x, y) in zip(rows, places, strict=True):
        title = f"{row.state.id}: {labels[0]} {say(x)}, {labels[1]} {say(y)}"
        by_context[row.context].append(Point(x=x, y=y, title=title))
    return tuple(
        figures.scatter(
            f"{prefix}-{context}", context, points, limits=limits,
            labels=(f"{labels[0]}, {unit}", labels[1] if diagonal else f"{labels[1]}, {unit}"),
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
    for context in view.contexts:
        pairs = [(r.drift or 0.0, r.error or 0.0) for r in rows if r.context == context]
        if len(pairs) > 2:
            rho = float(scoring.spearman(*zip(*pairs, strict=True)))
            said.append(f"{words.short_context(context)} {words.signed(rho, 2, absent=words.NOT_ESTIMABLE)}")
    return "Rank correlation of drift and error over states: " + ", ".join(said) + "." if said else None
