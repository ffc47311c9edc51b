"""The page's figures as inline SVG: numbers in, text out, the same bytes for the same numbers.

Positive gains favour the matched explanation and lie to the right. Every context of a study has a mark of
its own (D a circle, M a square, S and O triangles, T a plus, N a cross), a published figure a hollow
diamond, so that nothing rests on colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from predictive_credit.report import svg, words
from predictive_credit.report.svg import INKS
from predictive_credit.report.words import Voice

WIDE, NARROW = 520.0, 360.0
MARKS = {"D": "o", "M": "s", "S": "^", "O": "v", "T": "P", "N": "X", "seventh": "p", "eighth": "*"}
PLAIN = ("D", "scaffold")  # contexts that hold nothing of an explanation
LONG = 18  # characters of a row's label, beyond which it takes two lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One row of a forest plot: a mean with its two intervals, None where not estimable."""

    pair: str
    mean: float | None
    percentile: tuple[float, float] | None
    t: tuple[float, float] | None
    published: tuple[float, float | None, float | None] | None = None  # mean, lower, upper


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One mark of a scatter plot and the words of its tooltip."""

    x: float
    y: float
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Coverage (shares) and width of one context or baseline."""

    name: str
    coverage: float | None
    coverage_large: float | None
    width: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One point of a curve over distance: a mean gain and its percentile interval, None if there is none."""

    distance: int  # slots
    context: str
    mean: float | None
    interval: tuple[float, float] | None


def pair_context(pair: str) -> str:
    """Whose colour and mark a pair has: the context that is compared, not what it is compared with.

    `D-M` is M's, and so is every drift gain over the description the other context's; `S-M` is S's.
    """
    first, _, second = pair.partition("-")
    return second if first in PLAIN else first


def mark(context: str, otherwise: str = "o") -> str:
    """A context's mark; what is none the page knows gets another."""
    return MARKS.get(svg.part(context), otherwise)


def forest(name: str, title: str, spans: Sequence[Span], *, unit: str, say: Voice) -> str:
    """Mean gains with percentile interval (thick) and t interval (thin), published ones below."""
    published = any(s.published for s in spans)
    with svg.canvas(name, NARROW, 68 + (46 if published else 34) * len(spans)) as figure:
        axes = figure.subplots()
        for row, span in enumerate(spans):
            _span(axes, row, span)
        axes.axvline(0, color=INKS["muted"], linewidth=1, zorder=0)
        axes.set_yticks(range(len(spans)), [_row(s.pair) for s in spans])
        axes.set_ylim(len(spans) - 0.5, -0.5)
        axes.margins(x=0.06)
        _signed_ticks(axes)
        axes.set_xlabel(f"gain, {unit}; right favours the second")
        axes.set_title(title, loc="left")
        _bare(axes)
        return svg.inline(figure, name, label=_said(title, spans, say))


def scatter(
    name: str, context: str, points: Sequence[Point], *,
    limits: tuple[tuple[float, float], tuple[float, float]], labels: tuple[str, str], title: str,
    diagonal: bool = False,
) -> str:  # fmt: skip
    """One context's states; limits are shared by the panels of a row, so that they compare."""
    with svg.canvas(name, NARROW, 270) as figure:
        axes = figure.subplots()
        ink = svg.ink(context)
        if diagonal:
            axes.axhline(0, color=INKS["rule"], linewidth=1, zorder=0)
            axes.axvline(0, color=INKS["rule"], linewidth=1, zorder=0)
            low, high = max(limits[0][0], limits[1][0]), min(limits[0][1], limits[1][1])
            axes.plot([low, high], [low, high], color=INKS["muted"], linewidth=1, linestyle=(0, (4, 3)))
        xs, ys = [p.x for p in points], [p.y for p in points]
        axes.plot(
            xs,
            ys,
            mark(context),
            color=ink,
            markersize=5,
            alpha=0.55,
            markeredgewidth=0,
            gid="states",
        )
        if points and not diagonal:
            mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
            axes.plot([mean_x], [mean_y], "+", color=INKS["ink"], markersize=13, markeredgewidth=1.6)
        axes.set_xlim(*limits[0])
        axes.set_ylim(*limits[1])
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.set_title(title, loc="left")
        axes.tick_params(axis="y", labelcolor=INKS["muted"])
        axes.grid(visible=True, color=INKS["rule"], linewidth=0.6, alpha=0.6)
        axes.set_axisbelow(True)
        said = f"{title}: {labels[1]} against {labels[0]}, {len(points)} states"
        return svg.inline(figure, name, label=said, titles={"states": [p.title for p in points]})


def coverage(
    name: str, levels: Sequence[Level], *, unit: str, nominal: float, large: float, say: Voice
) -> str:
    """Coverage against its nominal level, and the width it was bought with."""
    with svg.canvas(name, WIDE, 84 + 27 * len(levels)) as figure:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2.2))
        for row, level in enumerate(levels):
            ink = svg.ink(level.name, "muted")
            shape = mark(level.name, "D")
            if level.coverage is not None:
                left.plot([level.coverage], [row], shape, color=ink, markersize=8, zorder=3)
            if level.coverage_large is not None:
                left.plot(
                    [level.coverage_large], [row], shape, markerfacecolor=INKS["surface"],
                    markeredgecolor=ink, markersize=7, markeredgewidth=1.5, zorder=2,
                )  # fmt: skip
            if level.width is not None:
                right.barh([row], [level.width], height=0.5, color=ink)
                right.annotate(
                    say.number(level.width), (level.width, row), (5, 0), textcoords="offset points",
                    va="center", fontsize=11, color=INKS["muted"],
                )  # fmt: skip
        left.axvline(nominal, color=INKS["good"], linewidth=1.5, linestyle=(0, (4, 3)), zorder=0)
        left.set_xlim(-0.03, 1.03)
        left.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        left.set_yticks(range(len(levels)), [words.context(level.name) for level in levels])
        left.set_ylim(len(levels) - 0.5, -0.5)
        left.set_title("Outcomes inside the interval", loc="left")
        left.set_xlabel(f"filled: all; hollow: |y| \u2265 {large:g}")
        right.set_title("Mean width", loc="left")
        right.set_xlim(0, 1.5 * max((level.width or 0.0 for level in levels), default=0.0) or 1.0)
        right.xaxis.set_major_locator(MaxNLocator(3))
        right.set_xlabel(unit)
        for axes in (left, right):
            _bare(axes)
        return svg.inline(figure, name, label=_said_levels(levels, nominal, say))


def influence(
    name: str, title: str, tasks: Sequence[str], without: Mapping[str, Sequence[float | None]],
    whole: Mapping[str, float | None], *, unit: str, task_words: tuple[str, str],
) -> str:  # fmt: skip
    """Mean gain without each task in turn, beside the mean over all (vertical lines)."""
    with svg.canvas(name, NARROW, 92 + 22 * len(tasks)) as figure:
        axes = figure.subplots()
        axes.axvline(0, color=INKS["muted"], linewidth=1, zorder=0)
        handles = []
        for offset, (pair, values) in zip((-0.14, 0.14), without.items(), strict=False):
            ink = svg.ink(pair_context(pair))
            if (mean := whole.get(pair)) is not None:
                axes.axvline(mean, color=ink, linewidth=1.2, linestyle=(0, (4, 3)), zorder=0)
            rows = [(v, r + offset) for r, v in enumerate(values) if v is not None]
            handles += axes.plot(
                [v for v, _ in rows], [r for _, r in rows], mark(pair_context(pair)), color=ink,
                markersize=6,
                label=words.pair(pair),
            )  # fmt: skip
        axes.set_yticks(range(len(tasks)), [short(t) for t in tasks])
        axes.set_ylim(len(tasks) - 0.5, -0.5)
        axes.margins(x=0.08)
        _signed_ticks(axes)
        axes.set_xlabel(f"mean gain of the others, {unit}")
        axes.set_title(title, loc="left")
        _bare(axes, rows=True)
        if handles:
            figure.legend(handles=handles, loc="outside lower left", ncols=2, frameon=False, fontsize=11)
        return svg.inline(
            figure, name, label=f"{title}: {len(tasks)} {task_words[1]}; the table holds the numbers"
        )


def shares(
    name: str, title: str, tasks: Sequence[str], share: Mapping[str, Sequence[float | None]], *,
    task_words: tuple[str, str],
) -> str:  # fmt: skip
    """Each task's share of a context's total error, beside equal shares (the line)."""
    with svg.canvas(name, NARROW, 92 + 22 * len(tasks) + 16 * ((len(share) - 1) // 3)) as figure:
        axes = figure.subplots()
        handles = []
        for context, values in share.items():
            rows = [(v, r) for r, v in enumerate(values) if v is not None]
            handles += axes.plot(
                [v for v, _ in rows], [r for _, r in rows], mark(context), markersize=7,
                markeredgewidth=1.5, markerfacecolor="none", markeredgecolor=svg.ink(context),
                label=words.short_context(context) if len(share) > 3 else words.context(context),
            )  # fmt: skip
        if tasks:
            axes.axvline(1 / len(tasks), color=INKS["muted"], linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        axes.set_yticks(range(len(tasks)), [short(t) for t in tasks])
        axes.set_ylim(len(tasks) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("share of the total (dashed: equal)")
        axes.set_title(title, loc="left")
        _bare(axes, rows=True)
        if handles:
            figure.legend(handles=handles, loc="outside lower left", ncols=3, frameon=False, fontsize=11)
        return svg.inline(
            figure, name, label=f"{title}: {len(tasks)} {task_words[1]}; the table holds the numbers"
        )


def curve(name: str, title: str, steps: Sequence[Step], *, unit: str, say: Voice) -> str:
    """Mean gain at each distance from the state's own card, inside the band of its percentile intervals."""
    with svg.canvas(name, WIDE, 280) as figure:
        axes = figure.subplots()
        axes.axhline(0, color=INKS["muted"], linewidth=1, zorder=0)
        known = [(s, s.mean) for s in steps if s.mean is not None]
        banded = [(s.distance, *s.interval) for s in steps if s.interval is not None]
        if banded:
            at, lower, upper = zip(*banded, strict=True)
            axes.fill_between(at, lower, upper, color=INKS["M"], alpha=0.2, linewidth=0)
        axes.plot([s.distance for s, _ in known], [m for _, m in known], color=INKS["muted"], linewidth=1.4)
        for s, mean in known:
            axes.plot([s.distance], [mean], mark(s.context), color=svg.ink(s.context), markersize=8)
        axes.set_xticks([s.distance for s in steps])
        axes.set_xlabel("slots of the donor's; none: the state's own card")
        axes.set_ylabel(f"gain over no card, {unit}")
        axes.yaxis.set_major_formatter(FuncFormatter(_signed_tick))
        axes.set_title(title, loc="left")
        axes.tick_params(axis="y", labelcolor=INKS["muted"])
        axes.grid(visible=True, color=INKS["rule"], linewidth=0.6, alpha=0.6)
        axes.set_axisbelow(True)
        return svg.inline(figure, name, label=_said_steps(title, steps, say))


def strips(name: str, title: str, groups: Mapping[str, Sequence[Point]], *, unit: str, form: str) -> str:
    """Executed outcomes, one row an intervention, one mark a state; the bar is the row's mean."""
    with svg.canvas(name, WIDE, 72 + 27 * len(groups)) as figure:
        axes = figure.subplots()
        axes.axvline(0, color=INKS["muted"], linewidth=1, zorder=0)
        titles = {}
        for row, points in enumerate(groups.values()):
            xs = [p.x for p in points]
            axes.plot(
                xs, [row + p.y for p in points], "o", color=INKS["ink"], alpha=0.4, markersize=5,
                markeredgewidth=0, gid=f"row{row}",
            )  # fmt: skip
            titles[f"row{row}"] = [p.title for p in points]
            if xs:
                mean = sum(xs) / len(xs)
                axes.plot([mean, mean], [row - 0.34, row + 0.34], color=INKS["M"], linewidth=2.2)
        axes.set_yticks(range(len(groups)), [short(words.spaced(g)) for g in groups])
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.margins(x=0.05)
        _signed_ticks(axes)
        axes.set_xlabel(f"executed {form}, {unit} (bar: mean)")
        axes.set_title(title, loc="left")
        _bare(axes, rows=True)
        return svg.inline(figure, name, label=f"{title}, by intervention", titles=titles)


def _span(axes: Axes, row: int, span: Span) -> None:
    context = pair_context(span.pair)
    ink = svg.ink(context)
    at = row - 0.14 if span.published else row
    if span.t is not None:
        axes.plot(span.t, [at, at], color=ink, linewidth=1.2, marker="|", markersize=8)
    if span.percentile is not None:
        axes.plot(span.percentile, [at, at], color=ink, linewidth=5, alpha=0.45, solid_capstyle="butt")
    if span.mean is None:
        axes.text(0, at, f" {words.NOT_ESTIMABLE}", va="center", color=INKS["muted"])
    else:
        axes.plot([span.mean], [at], mark(context), color=ink, markersize=8, zorder=4)
    if span.published is not None:
        mean, lower, upper = span.published
        if lower is not None and upper is not None:
            axes.plot([lower, upper], [row + 0.26] * 2, color=INKS["muted"], linewidth=1.2)
        axes.plot(
            [mean], [row + 0.26], "D", markerfacecolor=INKS["surface"], markeredgecolor=INKS["muted"],
            markersize=6, markeredgewidth=1.3, zorder=4,
        )  # fmt: skip


def _row(pair: str) -> str:
    """A pair as the label of its row, in two lines if it is long."""
    said = words.pair(pair)
    return said if len(said) <= LONG else words.pair(pair, f"\n{words.MINUS}\u00a0")


def _signed_ticks(axes: Axes) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))

    axes.xaxis.set_major_formatter(FuncFormatter(_signed_tick))


def _signed_tick(value: float, _: Any) -> str:
    return f"{value:+.3g}".replace("-", words.MINUS) if abs(value) > 1e-12 else "0"


def _bare(axes: Axes, *, rows: bool = False) -> None:
    """No left spine and no ticks: the rows name themselves."""
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=True, axis="both" if rows else "x", color=INKS["rule"], linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)


def _said(title: str, spans: Sequence[Span], say: Voice) -> str:
    rows = (
        f"{words.pair(s.pair, '-')} {say.signed(s.mean, absent=words.NOT_ESTIMABLE)}"
        + (f" {say.interval(*s.percentile)}" if s.percentile else "")
        for s in spans
    )
    return f"{title}: " + "; ".join(rows)


def _said_steps(title: str, steps: Sequence[Step], say: Voice) -> str:
    rows = (
        f"{s.distance} {say.signed(s.mean, absent=words.NOT_ESTIMABLE)}"
        + (f" {say.interval(*s.interval)}" if s.interval else "")
        for s in steps
    )
    return f"{title}, by slots of the donor's: " + "; ".join(rows)


def _said_levels(levels: Sequence[Level], nominal: float, say: Voice) -> str:
    rows = (
        f"{words.context(v.name)} {words.percent(v.coverage)}, width {say.number(v.width)}" for v in levels
    )
    return f"Coverage against the nominal {nominal:.0%}: " + "; ".join(rows)


def short(name: str, longest: int = 24) -> str:
    """A name that leaves room for its row; the tables hold it whole."""
    shown = "".join(c if c.isprintable() else "\ufffd" for c in name)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}\u2026"
