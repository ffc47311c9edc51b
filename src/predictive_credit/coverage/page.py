"""Coverage forecasts as parts of a page, or a page of their own: records in, HTML out.

Every function takes records or mappings with the records' names, so that what was written to a file and
read back shows as what was just computed. A section's `prefix` starts every id in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from predictive_credit import canonical
from predictive_credit.coverage import figures, pilot, rule
from predictive_credit.coverage.published import ERRORS
from predictive_credit.coverage.scoring import TOLERANCE
from predictive_credit.report import article, words
from predictive_credit.report.article import Part, Section
from predictive_credit.report.tables import Table

Record = Mapping[str, Any]

MEASURES = {"bias": "bias", "mae": "MAE", "within": "within .03", "coverage": "coverage", "width": "width"}
ONE_POPULATION = (
    "Each matrix is one population: its pilots overlap and share one truth, so how often an interval held "
    "that truth describes this matrix and does not estimate a calibration."
)
VERDICTS = {
    "supported": "One forecaster with one kind of interval is near enough and honest in every scenario.",
    "mixed": "Some forecasts are near enough somewhere; none is near enough and honest in every scenario.",
    "falsified": "No forecast is near enough in any scenario.",
}


QUESTION = "How many tasks will all agents together solve, and how far can a few of them tell?"


def synthetic_section(
    pooled: Iterable[Any],
    *,
    decision: Any,
    published: Iterable[Any] = (),
    compared: Iterable[Any] = (),
    here: Iterable[Any] = (),
    held_out: Iterable[Any] = (),
    outside: Iterable[Any] = (),
    expected: Iterable[Any] = (),
    judged: Mapping[str, Any] | None = None,
    prefix: str = "coverage-synthetic",
) -> str:
    """The synthetic study.

    pooled, published: rows of the frozen forecasters, one a scenario, pilot size, forecaster and
    scheme. compared: printed numbers beside ours, with the band that ours may be off. decision: of the
    rule on `pooled`. here: rows of the calibrated forecaster on some of the same pilots; held_out: on
    the populations kept for its one trial; outside: on populations of another make. expected: printed
    numbers beside the mean of many sets of populations. judged: by measures in words, how many numbers
    are outside their bands, this run's and that mean's; without this run's where it is no such set.
    """
    rows, made, fresh, other = _plain(pooled), canonical.plain(decision), _plain(held_out), _plain(outside)
    own = _plain(here)
    printed = {_key(row): row for row in _plain(published)}
    sizes = sorted({row["pilot_agents"] for row in rows})
    beside = {rule.PILOT_AGENTS, *(key[1] for key in printed)}
    status = str(made["status"])
    parts = [
        Part(heading="Error and honesty", figures=_accuracy(prefix, rows, fresh or own), note=_MARKS_SAID),
        Part(heading="The rule", tables=(_gates(made),)),
        Part(
            heading="Beside the published rows",
            text=_bands(_plain(compared)),
            tables=(
                *_judgements({said: canonical.plain(one) for said, one in (judged or {}).items()}),
                *(_beside(rows, printed, k) for k in sizes if k in beside),
                *_expected(_plain(expected)),
            ),
        ),
        Part(
            heading="Every pilot size",
            tables=(_by_size(rows, sizes, "mae"), _by_size(rows, sizes, "coverage")),
        ),
    ]
    scored = [(fresh, _FRESH_CAPTION), (own, _OWN_CAPTION)]
    if fresh or own:
        parts.append(
            Part(
                heading="The calibrated forecaster",
                text=(_FRESH,) if fresh else (),
                tables=tuple(_scored(found, caption) for found, caption in scored if found),
            )
        )
    if other:
        parts.append(
            Part(heading="Outside its family", text=(_OUTSIDE,), tables=(_scored(other, _OUTSIDE_CAPTION),))
        )
    return article.section(
        Section(
            prefix=prefix,
            title=f"Synthetic populations: {status}",
            lead=(
                VERDICTS.get(status, f"Status {status} of the rule {made['rule']}."),
                _synthetic_lead(rows),
            ),
            parts=tuple(parts),
        )
    )


def real_section(studies: Iterable[Any], *, prefix: str = "coverage-real") -> str:
    """Studies of real matrices, each with its errors, intervals and hypotheses."""
    found = _plain(studies)
    feasible = [one for one in found if one["feasibility"]["status"] == "feasible"]
    drawn = tuple(
        _svg(figures.errors(f"{prefix}-e{at}", one, TOLERANCE)) for at, one in enumerate(feasible, start=1)
    )
    parts = [Part(heading="Across the matrices", tables=(_within(feasible),), figures=drawn)] * bool(feasible)
    parts += map(_real, found)
    return article.section(
        Section(
            prefix=prefix, title="Real matrices", lead=(_real_lead(found, feasible), ONE_POPULATION),
            parts=tuple(parts),
        )
    )  # fmt: skip


def forecast_section(made: Any, *, prefix: str = "coverage-forecast") -> str:
    """One user's forecast: its figure, what more agents would bring, and the other forecasters."""
    one = canonical.plain(made)
    k, agents = len(one["pilot"]), one["agents"]
    lead = (
        f"A pilot of {k} of {agents} agents ({pilot.how_words(one['how'], one['seed'])}) solves "
        f"{words.percent(one['observed'])} of {words.count(one['tasks'])} tasks.",
        "The interval allows for which agents were drawn, how able further ones are and which tasks nobody "
        "solves, under a model whose prior was chosen on synthetic populations. It takes further agents for "
        "ones like the pilot's.",
    )
    parts = (
        Part(
            figures=(_svg(figures.curve(f"{prefix}-curve", one)),), kind="wide", tables=(_forecast(one),),
        ),
        Part(
            heading="How many more agents would help",
            text=tuple(f"{_reach(reach, k, agents)}." for reach in one["reaches"]),
            tables=(_gains(one),),
            note="At best and at worst: where the upper and the lower limit of the curve are that high.",
        ),
        Part(heading="Other forecasters", tables=(_others(one),)),
    )  # fmt: skip
    return article.section(
        Section(prefix=prefix, title=f"Forecast for {one['name']}", lead=lead, parts=parts)
    )


def document(title: str, sections: Sequence[str], *, version: str) -> str:
    """A page of its own that asks nothing of a network. The same sections give the same bytes."""
    return article.document(title, sections, question=QUESTION, version=version)


def _plain(records: Iterable[Any]) -> list[Any]:
    return [canonical.plain(record) for record in records]


def _svg(drawn: str) -> Markup:
    # SVG that Matplotlib wrote and svg.py rebuilt as a tree: its texts are escaped there.
    return Markup(drawn)


# Synthetic

_MARKS_SAID = (
    "Triangle: independence; square: beta binomial; circle: incidence; cross: pilot only; diamond: "
    "calibrated. Hollow: bootstrap over agents; dashed: the limits of the rule. Good is the upper left."
)
_FRESH = (
    "Populations whose seeds nobody had looked at while the method was made. They come from the same four "
    "kinds of simulator, which is the favourable case."
)
_FRESH_CAPTION = "Calibrated forecaster on fresh populations"
_OWN_CAPTION = "Calibrated forecaster on some pilots of this run's populations"
_OUTSIDE = (
    "Kinds of population other than the rule's four. All were known while the method was made; two clusters "
    "and the two with more unsolvable tasks lie within its family of models."
)
_OUTSIDE_CAPTION = "Calibrated forecaster on populations of another make"
_JUDGED = {
    "one_mean": "this run's six populations",
    "two_means": "this run's six populations",
    "expectation": "the mean of many sets of six",
}
_ALLOWED = {
    "one_mean": "the draw of one set",
    "two_means": "the draws of both sets",
    "expectation": "the published set's draw",
}


def _synthetic_lead(rows: Sequence[Record]) -> str:
    scenarios = list(dict.fromkeys(row["scenario"] for row in rows))
    populations = max(row["populations"] for row in rows)
    return (
        f"{len(scenarios)} kinds of simulated populations, {populations} of each, whose coverage is known. "
        f"The rule reads pilots of {rule.PILOT_AGENTS} agents and asks for a mean absolute error of at most "
        f"{rule.MAE:g} and nominal 95 % intervals that hold the truth in at least {100 * rule.COVERAGE:g} %."
    )


_KEY = ("scenario", "pilot_agents", "forecaster", "scheme")


def _key(row: Record) -> tuple[str, int, str, str]:
    return row["scenario"], row["pilot_agents"], row["forecaster"], row["scheme"]


def _pair(row: Record) -> str:
    scheme = "" if row["scheme"] == "none" else f"/{row['scheme']}"
    return f"{words.spaced(row['forecaster'])}{scheme}"


def _named(row: Record) -> str:
    return f"{words.spaced(row['scenario'])}, {_pair(row)}"


def _said(measure: str, value: Any, absent: str) -> str:
    if measure == "bias":
        return words.signed(value, 3, absent=absent)
    return words.number(value, 3, absent=absent)


def _accuracy(prefix: str, rows: Sequence[Record], fresh: Sequence[Record]) -> tuple[Markup, ...]:
    """A figure for each scenario at the rule's pilot size, the calibrated forecaster's row included."""
    shown = [
        r for r in (*rows, *fresh) if r["pilot_agents"] == rule.PILOT_AGENTS and r["coverage"] is not None
    ]  # fmt: skip
    scenarios = dict.fromkeys(row["scenario"] for row in rows)
    limits = (0.0, 1.08 * max((row["mae"] for row in shown), default=rule.MAE))
    return tuple(
        _svg(figures.accuracy(f"{prefix}-a{at}", name, [r for r in shown if r["scenario"] == name], limits))
        for at, name in enumerate(scenarios, start=1)
    )


def _gates(made: Record) -> Table:
    return Table(
        caption=f"Gates of the rule {made['rule']}: a pair's largest error and smallest coverage",
        columns=("pair and measure", "asked", "seen", "held"),
        rows=tuple(
            (
                words.spaced(gate["name"]),
                gate["asked"].replace("<=", "\u2264").replace(">=", "\u2265"),
                words.number(gate["seen"], 3),
                "yes" if gate["held"] else "no",
            )
            for gate in made["gates"]
        ),
    )


def _beside(rows: Sequence[Record], printed: Mapping[Any, Record], agents: int) -> Table:
    """Our rows of one pilot size and the published ones; a dash where none is printed."""
    ours = [row for row in rows if row["pilot_agents"] == agents and row["coverage"] is not None]
    return Table(
        caption=f"Pilots of {agents} agents, ours and published",
        columns=("scenario, pair", *(("ours", "published") * len(MEASURES))),
        groups=(("", 1), *((label, 2) for label in MEASURES.values())),
        rows=tuple((_named(row), *_both(row, printed.get(_key(row), {}))) for row in ours),
    )


def _bands(compared: Sequence[Record]) -> tuple[str, ...]:
    """How many of our numbers are inside the bands of the printed ones, and which are not."""
    if not compared:
        return ()
    off = [
        f"{_named(one)}, {one['measure']} {_compared(one, 'ours')} for {_compared(one, 'printed')}"
        for one in compared
        if abs(one["ours"] - one["printed"]) > one["band"]
    ]
    said = f"{len(compared) - len(off)} of {len(compared)} printed numbers are inside their bands."
    return (f"{said} Outside: {'; '.join(off)}." if off else said,)


def _judgements(judged: Mapping[str, Record]) -> Iterable[Table]:
    """How many printed numbers are outside their bands and how many would be by chance."""
    rows = [
        (_JUDGED[what], _ALLOWED[what], said, one)
        for said, by in judged.items()
        for what in _JUDGED
        if (one := by[what]) is not None
    ]
    if rows:
        yield Table(
            caption="Published numbers outside their bands, and how many chance puts there",
            columns=("compared with them", "band allows for", "numbers", "outside", "by chance", "as many"),
            text=frozenset({1, 2}),
            rows=tuple(
                (
                    what,
                    allowed,
                    f"{one['numbers']}: {said}",
                    str(one["outside"]),
                    words.number(one["chance"], 1),
                    words.percent(one["as_many"], 0),
                )
                for what, allowed, said, one in rows
            ),
            note=(
                f"Every band is {ERRORS:g} standard errors of what it allows for. By chance: the mean number "
                "outside where our simulators draw both sides; as many: how often at least as many are. "
                "Numbers of a scenario come from the same populations, so that they are outside together."
            ),
        )


def _expected(rows: Sequence[Record]) -> Iterable[Table]:
    """Each printed number, the mean of many sets, and the distance in standard errors of one set."""
    found = {(_key(row), row["measure"]): row for row in rows}
    if found:
        yield Table(
            caption="Published, mean of many sets of six populations, and distance in errors of one set",
            columns=("scenario, pair", "pilot", *(("published", "mean", "distance") * len(MEASURES))),
            groups=(("", 2), *((label, 3) for label in MEASURES.values())),
            rows=tuple(
                (
                    _named(dict(zip(_KEY, key, strict=True))),
                    str(key[1]),
                    *(said for measure in MEASURES for said in _distance(found.get((key, measure)))),
                )
                for key in dict.fromkeys(map(_key, rows))
            ),
        )


def _distance(row: Record | None) -> tuple[str, str, str]:
    if row is None:
        return (words.NONE_PRINTED,) * 3
    off = (row["printed"] - row["expected"]) / row["error"]
    return _compared(row, "printed"), _compared(row, "expected"), words.signed(off, 1)


def _compared(one: Record, which: str) -> str:
    return _said(one["measure"], one[which], words.UNDEFINED)


def _both(row: Record, published: Record) -> Iterable[str]:
    for measure in MEASURES:
        yield _said(measure, row[measure], words.UNDEFINED)
        yield _said(measure, published.get(measure), words.NONE_PRINTED)


def _by_size(rows: Sequence[Record], sizes: Sequence[int], measure: str) -> Table:
    """One measure by the pilot's size; no error depends on how the interval is made."""
    shown = [
        {**row, "scheme": "none"} if measure == "mae" else row for row in rows if row[measure] is not None
    ]
    found = {_key(row): row for row in shown}
    keys = dict.fromkeys((row["scenario"], row["forecaster"], row["scheme"]) for row in shown)
    return Table(
        caption=f"{words.capital(MEASURES[measure])} by agents in the pilot",
        columns=("scenario, pair", *map(str, sizes)),
        rows=tuple(
            (
                _named({"scenario": scenario, "forecaster": forecaster, "scheme": scheme}),
                *(
                    words.number(found.get((scenario, k, forecaster, scheme), {}).get(measure), 3)
                    for k in sizes
                ),
            )
            for scenario, forecaster, scheme in keys
        ),
    )


def _scored(rows: Sequence[Record], caption: str) -> Table:
    """Rows of one forecaster with the standard errors over populations."""
    return Table(
        caption=caption,
        columns=(
            "scenario", "pilot", "populations", "bias", "MAE", "SE", "within .03", "coverage", "SE", "width",
            "worst population",
        ),
        rows=tuple(
            (
                words.spaced(row["scenario"]),
                str(row["pilot_agents"]),
                str(row["populations"]),
                words.signed(row["bias"], 3),
                words.number(row["mae"], 3),
                words.number(row["mae_se"], 4),
                words.number(row["within"], 2),
                words.number(row["coverage"], 3),
                words.number(row["coverage_se"], 3),
                words.number(row["width"], 3),
                words.number(row["min_population_coverage"], 2),
            )
            for row in rows
        ),
        note="SE: standard error over populations, since the pilots of one share its truth.",
    )  # fmt: skip


# Real


def _real_lead(found: Sequence[Record], feasible: Sequence[Record]) -> str:
    if not feasible:
        return f"None of {len(found)} matrices is large enough for the study; a forecast is possible still."
    settings = feasible[0]["settings"]
    return (
        f"{len(feasible)} of {len(found)} matrices are large enough. {settings['pilots']} random pilots of "
        f"{settings['pilot']} agents, the first {settings['calibrated_pilots']} of them for the calibrated "
        "forecaster, are set against what all competent agents solve."
    )


def _within(feasible: Sequence[Record]) -> Table:
    """Mean absolute error of every forecaster on every matrix, and on how many it is within .03."""
    names = list(dict.fromkeys(row["forecaster"] for one in feasible for row in one["rows"]))
    errors = [{row["forecaster"]: row["coverage_mae"] for row in one["rows"]} for one in feasible]
    return Table(
        caption="Mean absolute error of the forecast for all agents",
        columns=("forecaster", *(one["name"] for one in feasible), f"within {TOLERANCE:g}"),
        rows=tuple(
            (
                words.spaced(name),
                *(words.number(found.get(name), 3) for found in errors),
                f"{sum(found.get(name, 1.0) <= TOLERANCE for found in errors)} of {len(errors)}",
            )
            for name in names
        ),
    )


def _real(one: Record) -> Part:
    feasible = one["feasibility"]
    screened = feasible["screened"]
    said = f"{feasible['competent']} of {feasible['agents']} agents are competent; {feasible['tasks']} tasks."
    if screened:
        said += f" Left out: {words.listed(screened)}."
    if feasible["status"] != "feasible":
        return Part(heading=one["name"], text=(said, f"Not feasible: {feasible['reason']}."))
    facts = (
        f"All of them together solve {words.percent(one['covered'])}, which leaves a blind-spot floor of "
        f"{words.percent(one['floor'])}; mean solve rate {words.percent(one['rate'])}, mean phi "
        f"{words.number(one['phi'], 2)}."
    )
    return Part(
        heading=one["name"],
        text=(said, facts),
        tables=(_real_rows(one), _real_intervals(one), _hypotheses(one)),
        note=f"Matrix sha256 {one['sha256']}",
    )


def _real_rows(one: Record) -> Table:
    return Table(
        caption=f"Errors on {one['name']}, fractions of the tasks",
        columns=("forecaster", "pilots", "curve MAE", "coverage MAE", "bias", "pilots within .03"),
        rows=tuple(
            (
                words.spaced(row["forecaster"]),
                str(row["pilots"]),
                words.number(row["curve_mae"], 3),
                words.number(row["coverage_mae"], 3),
                words.signed(row["bias"], 3),
                words.percent(row["within"], 0),
            )
            for row in one["rows"]
        ),
    )


def _real_intervals(one: Record) -> Table:
    return Table(
        caption=f"Nominal 95 % intervals on {one['name']}: one truth, so descriptive",
        columns=("forecaster/scheme", "pilots", "held the truth", "mean width"),
        rows=tuple(
            (_pair(row), str(row["pilots"]), words.percent(row["coverage"]), words.number(row["width"], 3))
            for row in one["intervals"]
        ),
    )


def _hypotheses(one: Record) -> Table:
    return Table(
        caption=f"Hypotheses on {one['name']}",
        columns=("name", "hypothesis", "status", "estimates, 95 % intervals", "detail"),
        text=frozenset({1, 2, 3, 4}),
        rows=tuple(
            (
                h["name"],
                h["claim"],
                h["status"],
                "; ".join(
                    f"{e['name']} {words.signed(e['value'], 3)} {words.interval(e['lower'], e['upper'], 3)}"
                    for e in h["estimates"]
                ),
                h["detail"],
            )
            for h in one["hypotheses"]
        ),
    )


# A user's forecast


def _forecast(one: Record) -> Table:
    rows = [
        ("forecast for all agents", one["coverage"]),
        ("blind-spot floor, solved by none", one["floor"]),
    ]
    made = [
        (
            what,
            words.percent(ends["point"]),
            f"{words.percent(ends['lower'])} to {words.percent(ends['upper'])}",
        )
        for what, ends in rows
    ]
    if (truth := one["truth"]) is not None:
        held = "inside the interval" if truth["inside"] else "outside the interval"
        made.append(("truth, solved by any agent of the matrix", words.percent(truth["coverage"]), held))
    return Table(
        caption=f"Coverage of {one['agents']} agents", columns=("what", "tasks", "95 % interval"),
        rows=tuple(made), note=f"Matrix sha256 {one['sha256']}",
    )  # fmt: skip


def _gains(one: Record) -> Table:
    return Table(
        caption="Newly solved tasks beyond the pilot's",
        columns=("further agents", "tasks", "95 % interval"),
        rows=tuple(
            (
                f"+{gain['more']}",
                words.number(gain["tasks"]["point"], 1),
                f"{words.number(gain['tasks']['lower'], 1)} to {words.number(gain['tasks']['upper'], 1)}",
            )
            for gain in one["gains"]
        ),
    )


def _reach(reach: Record, k: int, agents: int) -> str:
    return words.capital(pilot.reach_words(pilot.Reach(**reach), k, agents))


def _others(one: Record) -> Table:
    return Table(
        caption=f"Other forecasts of the coverage of {one['agents']} agents",
        columns=("forecaster", "tasks"),
        rows=tuple((words.spaced(name), words.percent(value)) for name, value in one["others"]),
        note="Points alone; the study of real matrices shows how far each is off.",
    )
