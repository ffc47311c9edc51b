"""The figures of coverage forecasts as inline SVG: plain records in, text out.

Every forecaster has a mark of its own and every line a dash of its own, so that nothing rests on colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, PercentFormatter

from predictive_credit.coverage.rule import COVERAGE, MAE
from predictive_credit.report import svg, words
from predictive_credit.report.figures import NARROW, WIDE, short
from predictive_credit.report.svg import INKS

Record = Mapping[str, Any]

MARKS = {
    "independence": ("v", "T"),
    "kish": ("<", "D"),
    "shared_shock": (">", "N"),
    "beta_binomial": ("s", "S"),
    "rasch": ("^", "ink"),
    "incidence": ("o", "O"),
    "pilot_only": ("X", "muted"),
    "calibrated": ("D", "M"),
}
DASHED = (0, (4, 3))


def curve(name: str, made: Record) -> str:
    """One forecast: coverage by number of agents with its band, and the truth where it is known."""
    k, agents = len(made["pilot"]), made["agents"]
    with svg.canvas(name, WIDE, 330) as figure:
        axes = figure.subplots()
        sizes = made["sizes"]
        axes.fill_between(
            sizes, made["lower"], made["upper"], color=INKS["M"], alpha=0.2, linewidth=0,
            label="95 % interval, each size by itself",
        )  # fmt: skip
        inside = range(1, k + 1)
        axes.plot(inside, made["inside"], color=INKS["ink"], linewidth=1.8, label="part of the pilot, exact")
        axes.plot(sizes, made["curve"], color=INKS["M"], linewidth=2.2, label="pilot and more, forecast")
        if made["truth"] is not None:
            axes.plot(
                sizes, made["truth"]["curve"], color=INKS["S"], linewidth=1.8, linestyle=DASHED,
                label="pilot and more, truth",
            )  # fmt: skip
            axes.plot([agents], [made["truth"]["coverage"]], "s", color=INKS["S"], markersize=7, zorder=4)
        axes.plot([k], [made["observed"]], "o", color=INKS["ink"], markersize=7, zorder=4, gid="pilot")
        axes.axvline(k, color=INKS["rule"], linewidth=1, zorder=0)
        axes.set_xlim(0, agents * 1.02)
        axes.set_ylim(top=min(1.0, max(made["upper"]) + 0.05))
        axes.set_xlabel(f"agents (line: the pilot's {k})")
        axes.set_title("Tasks solved by at least one agent", loc="left")
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        _grid(axes, "both")
        figure.legend(loc="outside lower left", ncols=2, frameon=False, fontsize=11)
        return svg.inline(
            figure, name, label=_said(made), titles={"pilot": [f"pilot: {words.percent(made['observed'])}"]}
        )


def errors(name: str, study: Record, tolerance: float) -> str:
    """Mean absolute errors of every forecaster on one real matrix: of all agents, and of the curve."""
    rows = study["rows"]
    title = short(study["name"], 36)
    with svg.canvas(name, NARROW, 84 + 27 * len(rows)) as figure:
        axes = figure.subplots()
        for at, row in enumerate(rows):
            mark, ink = _mark(row["forecaster"])
            axes.plot(
                [row["curve_mae"]], [at], mark, markerfacecolor=INKS["surface"], markeredgecolor=ink,
                markersize=7, markeredgewidth=1.5,
            )  # fmt: skip
            axes.plot([row["coverage_mae"]], [at], mark, color=ink, markersize=8, zorder=3)
        axes.axvline(tolerance, color=INKS["good"], linewidth=1.5, linestyle=DASHED, zorder=0)
        axes.set_yticks(range(len(rows)), [words.spaced(row["forecaster"]) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.set_xlabel(f"filled: all agents; hollow: curve; line: {tolerance:g}")
        axes.set_title(title, loc="left")
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        _grid(axes, "x")
        said = "; ".join(
            f"{words.spaced(r['forecaster'])} {words.number(r['coverage_mae'], 3)}" for r in rows
        )
        return svg.inline(figure, name, label=f"{title}, mean absolute errors: {said}")


def accuracy(name: str, scenario: str, rows: Sequence[Record], limits: tuple[float, float]) -> str:
    """Error against interval coverage in one scenario; good forecasts are in the upper left corner.

    limits: of the horizontal axis, shared by the scenarios so that they compare.
    """
    title = words.title(scenario)
    with svg.canvas(name, NARROW, 285) as figure:
        axes = figure.subplots()
        for at, row in enumerate(rows):
            mark, ink = _mark(row["forecaster"])
            # A task bootstrap's mark is filled, an agent bootstrap's is hollow.
            face = INKS["surface"] if row["scheme"] == "agent" else ink
            axes.plot(
                [row["mae"]], [row["coverage"]], mark, markersize=8, markeredgewidth=1.5, markeredgecolor=ink,
                markerfacecolor=face, gid=f"pair{at}", zorder=3,
            )  # fmt: skip
        axes.axvline(MAE, color=INKS["good"], linewidth=1.5, linestyle=DASHED, zorder=0)
        axes.axhline(COVERAGE, color=INKS["good"], linewidth=1.5, linestyle=DASHED, zorder=0)
        axes.set_xlim(*limits)
        axes.set_ylim(-0.05, 1.05)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_xlabel("mean absolute error of coverage")
        axes.set_ylabel("intervals with the truth")
        axes.set_title(title, loc="left")
        _grid(axes, "both")
        titles = {f"pair{at}": [_pair_said(row)] for at, row in enumerate(rows)}
        said = "; ".join(map(_pair_said, rows))
        return svg.inline(figure, name, label=f"{title}: {said}", titles=titles)


def _mark(forecaster: str) -> tuple[str, str]:
    mark, ink = MARKS.get(forecaster, ("o", "ink"))
    return mark, INKS[ink]


def _grid(axes: Axes, axis: Any) -> None:
    axes.grid(visible=True, axis=axis, color=INKS["rule"], linewidth=0.6, alpha=0.6)
    axes.set_axisbelow(True)


def _pair_said(row: Record) -> str:
    return (
        f"{words.spaced(row['forecaster'])}/{row['scheme']} error {words.number(row['mae'], 3)}, "
        f"coverage {words.percent(row['coverage'])}"
    )


def _said(made: Record) -> str:
    whole = made["coverage"]
    said = (
        f"Coverage by number of agents: the pilot of {len(made['pilot'])} solves "
        f"{words.percent(made['observed'])}; forecast for {made['agents']} {words.percent(whole['point'])}, "
        f"95 % interval {words.percent(whole['lower'])} to {words.percent(whole['upper'])}"
    )
    return said if made["truth"] is None else f"{said}; truth {words.percent(made['truth']['coverage'])}"
