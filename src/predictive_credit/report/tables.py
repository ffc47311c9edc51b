"""A study's view as plain rows of text. What was not asked or not estimable says so, never 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predictive_credit.records import SLOT_NAMES
from predictive_credit.report import words
from predictive_credit.report.view import StudyView
from predictive_credit.report.words import Voice
from predictive_credit.studies.evaluation import pairs_of

Format = Callable[[Voice, Any], str]
Row = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A captioned table; the first cell of a row names it, the others are numbers unless in `text`."""

    caption: str
    columns: Row
    rows: tuple[Row, ...]
    note: str | None = None
    text: frozenset[int] = frozenset()  # columns that hold words and align left
    groups: tuple[tuple[str, int], ...] = ()  # an upper head: label and number of columns each


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """One figure of the first screen: a value with its interval, or one value a context."""

    label: str
    value: str | None
    parts: tuple[Row, ...]  # context, this run, published
    detail: str
    published: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """One clause of the rule."""

    name: str
    meaning: str
    asked: str
    seen: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One of the five checks."""

    name: str
    question: str
    status: str  # passed, failed, not_estimable
    word: str
    asked: str
    seen: str
    reading: str
    numbers: tuple[tuple[str, str], ...]


def dig(value: Any, *path: str) -> Any:
    """The value at a path of keys, None where the path ends early."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    """The mapping at a path of keys, empty where there is none."""
    found = dig(value, *path)
    return found if isinstance(found, Mapping) else {}


def sequence(value: Any, *path: str) -> Sequence[Any]:
    """The list at a path of keys, empty where there is none."""
    found = dig(value, *path)
    return found if isinstance(found, list | tuple) else ()


def gates(view: StudyView) -> tuple[Gate, ...]:
    """The gates of the decision."""
    found = mapping(view.metrics, "decision", "gates")
    return tuple(
        Gate(
            name=name,
            meaning=_gate_meaning(view, name),
            asked=str(dig(gate, "asked"))
            .replace(">=", "\u2265")
            .replace("<=", "\u2264")
            .replace("+-", "\u00b1"),
            seen=words.signed(dig(gate, "seen"), absent="nothing"),
            held=dig(gate, "held") is True,
        )
        for name, gate in found.items()
    )


def silent_gates(view: StudyView) -> str | None:
    """How many gates saw nothing, and which contexts were not asked; None if every gate saw something."""
    found = mapping(view.metrics, "decision", "gates")
    n = sum(dig(gate, "seen") is None for gate in found.values())
    if not n:
        return None
    asked = {str(unit.context) for unit in view.plan}
    needed = dict.fromkeys(("D", str(view.study.matched), str(view.study.against)))
    absent = [words.context(c) for c in needed if c not in asked]
    saw = f"{n} of the {len(found)} gates saw nothing (not asked or not estimable)"
    if not absent:
        return saw
    are = "context {} was" if len(absent) == 1 else "contexts {} were"
    return f"The {are.format(words.listed(absent))} not asked, and {saw}"


def interval_level(view: StudyView) -> str:
    """The level of the two-sided intervals, as it was frozen with the rule."""
    return words.percent(dig(view.freeze, "params", "inference", "level"), 0, absent="two-sided")


def tiles(view: StudyView) -> tuple[Tile, ...]:
    """What the first screen says in numbers of one target."""
    found = [_gain_tile(view, pair) for pair in main_pairs(view)]
    found += [
        _level_tile(view, "point_mae_call", "Point error", Voice.number, baseline="zero"),
        _level_tile(view, "drift", "Drift between two calls", Voice.number, baseline=None),
        _level_tile(view, "coverage", "Inside the 80 % interval", Voice.percent, baseline="mean"),
    ]
    return tuple(found)


def checks(view: StudyView) -> tuple[Check, ...]:
    """The five checks; one that the metrics do not hold is not estimable."""
    return tuple(_check(name, mapping(view.metrics, "checks", name)) for name in words.CHECKS)


def contrasts(view: StudyView) -> Table:
    """Every contrast with its intervals and bounds, beside the published one."""
    level, voice = interval_level(view), view.voice
    named = _named_contrasts(view)
    is_published = bool(view.study.published)
    reasons: dict[str, list[str]] = {}
    for name, found in named:
        if found.get("reason"):
            reasons.setdefault(str(found["reason"]), []).append(name)
    return Table(
        caption="Contrasts: mean gain over states, intention-to-treat",
        columns=(
            "contrast", "mean gain", f"{level} percentile", f"{level} t, cluster means", "one-sided bounds",
            "states", "clusters", *(["published"] if is_published else []),
        ),
        rows=tuple(
            (
                name,
                _mean(voice, found),
                voice.interval(found.get("lower"), found.get("upper")),
                voice.interval(found.get("t_lower"), found.get("t_upper")),
                voice.interval(found.get("one_sided_lower"), found.get("one_sided_upper")),
                words.count(found.get("n_states")),
                words.count(found.get("n_clusters")),
                *([printed_gain(voice, mapping(found, "published"))] if is_published else []),
            )
            for name, found in named
        ),
        note=(
            "All but the primary contrasts are exploratory. Every measure counts as a loss, so a positive "
            "gain favours the second context of its pair. Missed outcomes and wrong directions are shares of "
            f"forecasts; a task-scaled gain is in units of its {view.study.task_words[0]}'s mean absolute "
            f"outcome. A cluster is {cluster_words(view)}. Each one-sided bound holds alone."
        )
        + "".join(
            f" Not estimable, since {reason}: {'all' if len(names) == len(named) else '; '.join(names)}."
            for reason, names in reasons.items()
        ),
    )  # fmt: skip


def cluster_words(view: StudyView) -> str:
    """What the t interval's clusters are: what the bootstrap draws first."""
    drawn = next((level.name for level in view.study.levels if level.is_drawn), "state")
    return f"what the bootstrap draws first, the {words.spaced(drawn)}"


def bootstrap_words(view: StudyView) -> str:
    """Which levels the bootstrap draws anew and which it keeps, in words."""
    drawn = [words.spaced(level.name) for level in view.study.levels if level.is_drawn]
    kept = [words.spaced(level.name) for level in view.study.levels if not level.is_drawn]
    said = f"draws {', then '.join(drawn)} anew" if drawn else "draws states anew"
    return said + (f" and keeps {words.listed(kept)}" if kept else "")


def cases(view: StudyView) -> Table:
    """Intention-to-treat beside complete cases and the worst and best case of every contrast."""
    voice = view.voice
    return Table(
        caption="The same contrasts if unreadable replies and undefined outcomes are treated otherwise",
        columns=(
            "contrast",
            "intention-to-treat",
            "task-balanced",
            "complete cases",
            f"{interval_level(view)} percentile",
            "states",
            "worst",
            "best",
        ),
        rows=tuple(
            (
                name,
                _mean(voice, found),
                voice.signed(found.get("task_balanced"), absent=words.NOT_ESTIMABLE),
                _mean(voice, complete := mapping(found, "complete_case")),
                voice.interval(complete.get("lower"), complete.get("upper")),
                words.count(complete.get("n_states")),
                voice.signed(found.get("worst_case")),
                voice.signed(found.get("best_case")),
            )
            for name, found in _named_contrasts(view)
        ),
        note=(
            "Intention-to-treat counts an unreadable reply as its frozen fallback. Task-balanced is the mean "
            f"of the means of {view.study.task_words[1]}; it differs where these have "
            "unequally many defined outcomes. Complete cases leave out "
            "every state in which a fallback took part. Worst and best case bound what the mean could have "
            "been had every reply been readable and every outcome defined."
        ),
    )


def levels(view: StudyView) -> Table:
    """Levels of every context beside the baselines that need no model, and the published levels."""
    found = mapping(view.metrics, "contexts")
    models = [c for c in view.contexts if c in found]
    printed = [c for c in models if mapping(_published_levels(found, c))]
    voice = view.voice
    shown = [*models, *words.BASELINES]
    rows: list[Row] = []
    for key, label, say in LEVELS:
        values = (say(voice, dig(found, c, key)) for c in shown)
        beside = (say_printed(voice, say, dig(_published_levels(found, c), key)) for c in printed)
        rows.append((label.format(large=f"{view.target.large:g}"), *values, *beside))
        low, high = f"{key}_lower", f"{key}_upper"
        if any(low in mapping(found, c) for c in models):
            ends = (voice.interval(dig(found, c, low), dig(found, c, high), say=words.number) for c in models)
            none = [words.NONE_PRINTED] * (len(words.BASELINES) + len(printed))
            rows.append((f"{label}, {interval_level(view)} interval", *ends, *none))
    return Table(
        caption="Levels by context, beside baselines that need no model",
        columns=("figure", *(words.context(c) for c in shown), *(words.context(c) for c in printed)),
        rows=tuple(rows),
        groups=tuple(
            (label, n)
            for label, n in (
                ("", 1), ("forecaster", len(models)), ("baselines", len(words.BASELINES)),
                ("published", len(printed)),
            )
            if n
        ),
        note=(
            "zero forecasts no change, positive the burn-in's mean absolute change upwards, mean the "
            "burn-in's mean; all three with the burn-in's 10 % to 90 % quantiles as their interval. Zero "
            "names no direction, so it is never right about one. Losses are of single calls; an ensemble is "
            f"the mean of the two calls. Intervals are percentile intervals of a bootstrap that "
            f"{bootstrap_words(view)}. Losses are in {view.target.unit}."
        ),
    )  # fmt: skip


def coverage(view: StudyView) -> Table:
    """Coverage and width of contexts and baselines: the numbers of the figure beside it."""
    found = mapping(view.metrics, "contexts")
    rows = tuple(
        (
            words.context(name),
            words.percent(dig(found, name, "coverage")),
            words.percent(dig(found, name, "coverage_large")),
            view.voice.number(dig(found, name, "width")),
            view.voice.number(dig(found, name, "interval_score_call")),
        )
        for name in (*view.contexts, *words.BASELINES)
        if name in found
    )
    return Table(
        caption="Coverage against the nominal 80 %, and what it costs",
        columns=(
            "context or baseline",
            "inside",
            f"inside, |y| \u2265 {view.target.large:g}",
            "mean width",
            "interval score",
        ),
        rows=rows,
    )


def recalibration(view: StudyView) -> Table:
    """Raw intervals beside those with ends moved as the other tasks would have needed."""
    found = mapping(view.metrics, "recalibration")
    shown = [name for name in (*view.contexts, "burn_in") if name in found]
    reasons = dict.fromkeys(str(found[name]["reason"]) for name in shown if dig(found, name, "reason"))
    level, several = interval_level(view), view.study.task_words[1]
    figures = ("inside", f"{level} interval", "mean width", "interval score")
    return Table(
        caption=f"The same intervals, raw and recalibrated on the other {several}",
        columns=("context or baseline", *figures, *figures, "ends move by", "met in the middle"),
        groups=(("", 1), ("raw", len(figures)), ("recalibrated", len(figures) + 2)),
        rows=tuple(_recalibrated(view.voice, name, mapping(found, name)) for name in shown),
        note=(
            "Nominal coverage is 80 %. Burn-in is one interval for all states, the burn-in outcomes' 10 % to "
            "90 % quantiles: it needs no forecaster. Ends move by an amount fitted without the "
            f"{_task(view)}'s own outcomes, from the least to the most over {several}. On average over "
            f"further {several} like these that gives at least 80 %, and the more above it the fewer it was "
            "fitted on. Ends that would cross meet in the middle. Intervals of a coverage are percentile "
            f"intervals of a bootstrap that {bootstrap_words(view)}, corrections kept."
        )
        + "".join(f" Not estimable: {reason}." for reason in reasons),
    )


def outcomes(view: StudyView) -> Table:
    """What the executed outcomes look like, beside the published figures."""
    found = mapping(view.metrics, "outcomes")
    printed = mapping(found, "published")
    figures: list[tuple[str, tuple[str, ...], Format]] = [
        ("states", ("n",), Voice.count),
        ("undefined outcomes", ("n_undefined",), Voice.count),
        ("mean |y|", ("mean_absolute",), Voice.number),
        ("median |y|", ("median_absolute",), Voice.number),
        ("mean y", ("mean",), Voice.signed),
        ("positive share", ("positive_share",), Voice.percent),
        ("seed pairs", ("seed_pairs", "n"), Voice.count),
        ("seed pairs with equal signs", ("seed_pairs", "equal_signs"), Voice.count),
        ("median gap of a seed pair", ("seed_pairs", "median_gap"), Voice.number),
    ]
    if not mapping(found, "seed_pairs"):
        figures = [figure for figure in figures if figure[1][0] != "seed_pairs"]
    rows: list[Row] = [
        (label, say(view.voice, dig(found, *path)), say_printed(view.voice, say, dig(printed, *path)))
        for label, path, say in figures
    ]
    reasons = mapping(found, "reasons")
    rows += [(f"undefined: {reason}", words.count(n), words.NONE_PRINTED) for reason, n in reasons.items()]
    columns: Row = ("figure", "this run", "published")
    shown = len(columns) if view.study.published else len(columns) - 1
    return Table(
        caption="Executed outcomes",
        columns=columns[:shown],
        rows=tuple(row[:shown] for row in rows),
        note="Both seeds of a cell share their intervention: the more their outcomes agree, the weaker a "
        "placebo the explanation of the other seed is."
        if mapping(found, "seed_pairs")
        else None,
    )


def interventions(view: StudyView) -> Table:
    """Outcomes by intervention."""
    found = mapping(view.metrics, "outcomes", "by_intervention")
    rows = tuple(
        (words.spaced(name), words.count(dig(row, "n")), view.voice.signed(dig(row, "mean")))
        for name, row in found.items()
    )
    return Table(
        caption="Outcomes by intervention",
        columns=("intervention", "outcomes", f"mean {view.target.form}"),
        rows=rows,
    )


def task_metrics(view: StudyView) -> Mapping[str, Any]:
    """The metrics of each task, by name."""
    return {k: v for k, v in mapping(view.metrics, "tasks").items() if isinstance(v, Mapping)}


def task_influence(view: StudyView) -> Table:
    """Each task's gains, and the mean gains without it."""
    found = task_metrics(view)
    pairs = _pairs(view, found)
    measures = ("interval_score", "point_error")
    kinds = (("gain", "gain"), ("leave_one_out", "all without it"))
    columns = [
        (kind, label, measure, pair) for measure in measures for kind, label in kinds for pair in pairs
    ]
    rows = tuple(
        (task, *(view.voice.signed(dig(row, kind, measure, pair)) for kind, _, measure, pair in columns))
        for task, row in found.items()
    )
    return Table(
        caption=f"Influence of each {_task(view)}: its own mean gain, and the mean gain of all others",
        columns=(_task(view), *(f"{label}, {words.pair(pair)}" for _, label, _, pair in columns)),
        groups=(("", 1), *((words.MEASURES[m].lower(), 2 * len(pairs)) for m in measures)) if pairs else (),
        rows=rows,
    )


def task_levels(view: StudyView) -> Table:
    """Size of the outcomes, share of the error and levels of each task."""
    found = task_metrics(view)
    models = [c for c in view.contexts if any(c in mapping(row, "contexts") for row in found.values())]
    figures: tuple[tuple[str, str, Format], ...] = (
        ("mae", "point error", Voice.number),
        ("interval_score", "interval score", Voice.number),
        ("drift", "drift", Voice.number),
        ("coverage", "coverage", Voice.percent),
    )
    rows = tuple(
        (
            task,
            words.count(dig(row, "n_states")),
            words.count(dig(row, "n_undefined")),
            view.voice.number(dig(row, "mean_absolute_outcome")),
            *(words.percent(dig(row, "share_of_error", c)) for c in models),
            *(say(view.voice, dig(row, "contexts", c, key)) for key, _, say in figures for c in models),
        )
        for task, row in found.items()
    )
    wide = [label for label in ("share of error", *(label for _, label, _ in figures)) if models]
    return Table(
        caption=f"Levels of each {_task(view)}",
        columns=(
            _task(view),
            "states",
            "undefined",
            "mean |y|",
            *(words.short_context(c) for _ in wide for c in models),
        ),
        groups=(("", 4), *((label, len(models)) for label in wide)),
        rows=rows,
    )


def task_baselines(view: StudyView) -> Table:
    """Point error and interval score of each task, models beside baselines."""
    found = task_metrics(view)
    shown = [
        c for c in (*view.contexts, *words.BASELINES)
        if any(c in mapping(row, "contexts") for row in found.values())
    ]  # fmt: skip
    figures = (("mae", "point error"), ("interval_score", "interval score"))
    return Table(
        caption=f"Each {_task(view)} beside baselines that need no model",
        columns=(_task(view), *(words.short_context(c) for _ in figures for c in shown)),
        groups=(("", 1), *((label, len(shown)) for _, label in figures)) if shown else (),
        rows=tuple(
            (task, *(view.voice.number(dig(row, "contexts", c, key)) for key, _ in figures for c in shown))
            for task, row in found.items()
        ),
        note="Losses of single calls; zero, positive and mean are the baselines of the levels by context.",
    )


def explanations(view: StudyView) -> Table:
    """Explanations by source: complete and empty cards, and how often each slot is filled."""
    found = _sources(view)
    printed = mapping(view.metrics, "explanations", "published")
    figures = (
        ("explanations", ("n",)),
        ("complete cards", ("complete",)),
        ("empty cards", ("empty",)),
        *((f"with {name} filled", ("filled", name)) for name in SLOT_NAMES),
    )
    beside = [source for source in found if mapping(printed, source)]
    return Table(
        caption="Cards by source",
        columns=("figure", *map(words.spaced, found), *(f"{source}, published" for source in beside)),
        rows=tuple(
            (
                label,
                *(_of(dig(row, *path), row.get("n"), path) for row in found.values()),
                *(say_printed(view.voice, Voice.count, dig(printed, source, *path)) for source in beside),
            )
            for label, path in figures
        ),
        note=_formation_words(view),
    )


def directions(view: StudyView) -> Table:
    """Directions that cards state in words, and how many of them came true."""
    rows = tuple(
        (
            words.spaced(source)
            if len(view.study.targets) == 1
            else f"{words.spaced(source)}, {target.phrase}",
            *(
                words.count(dig(row, "directions", target.name, key))
                for key in ("stated", "up", "n_scored", "correct", "always_up_correct")
            ),
        )
        for source, row in _sources(view).items()
        for target in view.study.targets
        if mapping(row, "directions", target.name)
    )
    return Table(
        caption="Directions that the cards state",
        columns=("source", "stated", "upwards", "scored", "right", "right if always upwards"),
        rows=rows,
        note="Scored are stated directions whose outcome is defined and not 0.",
    )


def _sources(view: StudyView) -> dict[str, Mapping[str, Any]]:
    found = mapping(view.metrics, "explanations")
    return {source: mapping(found, source) for source in view.sources if mapping(found, source)}


def _of(value: Any, n: Any, path: tuple[str, ...]) -> str:
    """A count with the share it is of, but for the total itself."""
    if path == ("n",) or not (words.is_number(value) and words.is_number(n) and n):
        return words.count(value)
    return f"{words.count(value)} ({words.percent(value / n, 0)})"


def _formation_words(view: StudyView) -> str | None:
    found = mapping(view.metrics, "explanations", "formation")
    if not words.is_number(found.get("difference")):
        return None
    bound = words.signed(_times(found.get("lower"), 100), 1, absent=words.NOT_ESTIMABLE)
    return (
        f"Complete cards, elicited minus ordinary: {words.signed(100 * found['difference'], 1)} percentage "
        f"points, one-sided lower bound {bound}."
    )


def _times(value: Any, factor: float) -> Any:
    return factor * value if words.is_number(value) else None


def say_printed(voice: Voice, say: Format, value: Any) -> str:
    """A published figure, or a dash where the source prints none."""
    return words.NONE_PRINTED if value is None else say(voice, value)


LEVELS: tuple[tuple[str, str, Format], ...] = (
    ("interval_score_call", "interval score", Voice.number),
    ("interval_score_ensemble", "interval score, ensemble", Voice.number),
    ("point_mae_call", "point error (MAE)", Voice.number),
    ("point_mae_ensemble", "point error, ensemble", Voice.number),
    ("drift", "drift between calls", Voice.number),
    ("direction_accuracy", "direction accuracy", Voice.percent),
    ("positive_share", "positive points", Voice.percent),
    ("coverage", "coverage, nominal 80 %", Voice.percent),
    ("coverage_large", "coverage where |y| \u2265 {large}", Voice.percent),
    ("width", "interval width", Voice.number),
    ("bias", "bias (point minus outcome)", Voice.signed),
    ("n_forecasts", "forecasts", Voice.count),
    ("n_fallback", "fallbacks", Voice.count),
)


CLAUSES = {
    "margin": "the mean",
    "bound": "its one-sided lower bound",
    "lower bound": "its one-sided lower bound",
    "upper bound": "its one-sided upper bound",
    "point equivalence": "in point error, the farther end of its 90 % interval",
    "drift bound": "in drift, its one-sided lower bound",
    "drift equivalence": "in drift, the farther end of its 90 % interval",
    "interval-score equivalence": "in interval score, the farther end of its 90 % interval",
}
GATES = {
    "formation bound": "share of complete cards, elicited minus ordinary: its one-sided lower bound",
    "exact signal wins": "share of states in which the exact signal's point error is below the description's",
    "Spearman": "rank correlation of the exact signal's points with the outcomes",
    "M drift reduction": "drift of D description minus drift of M matched: its one-sided lower bound",
    "S drift reduction": "drift of D description minus drift of S donor: its one-sided lower bound",
    "integrity": "share of planned forecasts whose reply could be read",
    "unanswered units": "planned forecasts without an answer",
}


def _gate_meaning(view: StudyView, name: str) -> str:
    """`M-D margin` or `log_loss D-M lower bound` in words; a gate of another form keeps its name."""
    parts = name.split(" ")
    phrases = {target.name: target.phrase for target in view.study.targets}
    target = phrases.get(parts[0])
    pair, clause = (parts[1:2], parts[2:]) if target else (parts[:1], parts[1:])
    first, _, second = "".join(pair).partition("-")
    said = CLAUSES.get(" ".join(clause))
    if said is None or first not in words.CONTEXTS or second not in words.CONTEXTS:
        return GATES.get(name, name)
    of = f"{target}, " if target else ""
    return f"{of}loss of {words.CONTEXTS[first]} minus loss of {words.CONTEXTS[second]}: {said}"


OTHERS = {
    "D": "the description alone", "S": "a donor's explanation", "wrong_seed": "the other seed's outcome",
    "false_note": "the false note",
}  # fmt: skip


def _gain_tile(view: StudyView, pair: str) -> Tile:
    loss = view.study.primary_loss
    contrast = mapping(view.metrics, "contrasts", loss, pair)
    other = OTHERS.get(pair.partition("-")[0], words.context(pair.partition("-")[0]))
    printed, voice = mapping(contrast, "published"), view.voice
    absent = words.NOT_ESTIMABLE if contrast else words.NOT_ASKED
    return Tile(
        label=f"{words.MEASURES[loss]}: gain over {other}, {words.pair(pair)}",
        value=voice.signed(dig(contrast, "mean"), absent=absent),
        parts=(),
        detail=voice.interval(dig(contrast, "lower"), dig(contrast, "upper")) if contrast else "",
        published=printed_gain(voice, printed) if printed else None,
    )


def _level_tile(view: StudyView, key: str, label: str, say: Format, *, baseline: str | None) -> Tile:
    found, voice = mapping(view.metrics, "contexts"), view.voice
    models = [c for c in view.contexts if c in found]
    return Tile(
        label=label,
        value=None if models else words.NOT_ASKED,
        parts=tuple(
            (
                words.short_context(c),
                say(voice, dig(found, c, key)),
                say_printed(voice, say, dig(_published_levels(found, c), key)),
            )
            for c in models
        ),
        detail=f"baseline {baseline}: {say(voice, dig(found, baseline, key))}"
        if baseline
        else "a baseline has none",
    )


def _published_levels(found: Mapping[str, Any], context: str) -> Mapping[str, Any]:
    return mapping(found, "published", context) or mapping(found, context, "published")


# Numbers of a check that are absent because there was nothing of the kind.
NONE_MEANS = {"planned_after_opening": "no", "arrived_after_freeze": "0"}


def _check(name: str, found: Mapping[str, Any]) -> Check:
    known = {"status", "asked", "seen", "reading"}
    status = str(found.get("status", "not_estimable"))
    is_known = status != "not_estimable"
    numbers = tuple(
        (
            words.spaced(k).replace(".", ": "),
            NONE_MEANS[k] if v is None and is_known and k in NONE_MEANS else words.anything(v),
        )
        for k, v in found.items()
        if k not in known
    )
    return Check(
        name=name,
        question=words.CHECKS[name],
        status=status if status in words.STATUSES else "not_estimable",
        word=words.STATUSES.get(status, words.title(status)),
        asked=str(found.get("asked", "")),
        seen=str(found.get("seen", "nothing")),
        reading=str(found.get("reading", "This check is not in the metrics.")),
        numbers=numbers,
    )


def _named_contrasts(view: StudyView) -> list[tuple[str, Mapping[str, Any]]]:
    """Contrasts with their names, known measures first."""
    found = mapping(view.metrics, "contrasts")
    others = [m for m in found if m not in words.MEASURES]
    return [
        (_contrast_name(measure, pair, contrast), contrast)
        for measure in (*words.MEASURES, *others)
        for pair, contrast in in_order(view, mapping(found, measure))
        if isinstance(contrast, Mapping)
    ]


def in_order(view: StudyView, pairs: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Contrasts of one measure, known pairs first: files keep their keys sorted by name."""
    known = known_pairs(view)
    return sorted(pairs.items(), key=lambda item: [*known, item[0]].index(item[0]))


def known_pairs(view: StudyView) -> list[str]:
    """The pairs that the study contrasts, in its order."""
    return [f"{other}-{matched}" for other, matched in pairs_of(view.contexts, view.study)]


def main_pairs(view: StudyView) -> tuple[str, str]:
    """What the checks ask of: the matched context beside the description, and beside the one against it."""
    return f"D-{view.study.matched}", f"{view.study.against}-{view.study.matched}"


def _contrast_name(measure: str, pair: str, found: Mapping[str, Any]) -> str:
    primary = " (primary)" if found.get("role") == "primary" else ""
    return f"{words.MEASURES.get(measure, words.title(measure))}, {words.pair(pair)}{primary}"


def _mean(voice: Voice, found: Mapping[str, Any]) -> str:
    return voice.signed(found.get("mean"), absent=words.NOT_ESTIMABLE)


def _recalibrated(voice: Voice, name: str, found: Mapping[str, Any]) -> Row:
    """One context's row; what could not be fitted says so."""
    absent = words.NOT_ESTIMABLE if found.get("reason") else words.UNDEFINED
    moved = [c for c in mapping(found, "corrections").values() if words.is_number(c)]
    cells: list[str] = []
    for side in ("raw", "recalibrated"):
        of = mapping(found, side)
        low, high = of.get("coverage_lower"), of.get("coverage_upper")
        cells += [
            words.percent(of.get("coverage"), absent=absent),
            words.interval(low, high, 1, say=words.percent),
            voice.number(of.get("width"), absent=absent),
            voice.number(of.get("interval_score"), absent=absent),
        ]
    return (
        "burn-in" if name == "burn_in" else words.context(name),
        *cells,
        f"{voice.signed(min(moved))} to {voice.signed(max(moved))}" if moved else absent,
        words.count(found.get("n_collapsed"), absent=absent),
    )


def _task(view: StudyView) -> str:
    return view.study.task_words[0]


def printed_gain(voice: Voice, printed: Mapping[str, Any]) -> str:
    """A published contrast: its mean with its interval, or by how much a drift fell."""
    if words.is_number(printed.get("reduction_share")):
        return f"{words.percent(printed['reduction_share'])} less drift"
    if not words.is_number(printed.get("mean")):
        return words.NONE_PRINTED
    mean = voice.signed(printed["mean"])
    if words.is_number(printed.get("lower")) and words.is_number(printed.get("upper")):
        return f"{mean} {voice.interval(printed['lower'], printed['upper'])}"
    return mean


def _pairs(view: StudyView, found: Mapping[str, Any]) -> list[str]:
    return [
        p
        for p in known_pairs(view)
        if any(p in mapping(row, "gain", "interval_score") for row in found.values())
    ]
