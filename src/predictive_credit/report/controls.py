"""What a control shows about the instrument: its own figures beside the printed ones, and one sentence.

The sentence follows from the numbers; no control has one of its own that stands whatever came out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from predictive_credit.report import figures, words
from predictive_credit.report.figures import Step
from predictive_credit.report.tables import Row, Table, dig, known_pairs, mapping, printed_gain
from predictive_credit.report.view import StudyView
from predictive_credit.report.words import NONE_PRINTED, Voice
from predictive_credit.studies.controls.calibration import rule as assay

Side = Literal["above", "below", "across"]
UNTOLD = "cannot be told from this run"
FINE = 1e-3  # an error below this takes more digits to be seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """One sentence, and the figures and tables it rests on. Figures are SVG."""

    says: str
    figures: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


def instrument(view: StudyView, prefix: str) -> Instrument | None:
    """What the control of a whole view shows; None for a study, and for a control without words here."""
    make = MAKERS.get(view.study.name)
    return make(view, prefix) if make is not None and view.is_control else None


def origin(view: StudyView) -> str | None:
    """Whose stimuli a control reuses and when it was planned, as one paragraph; None for a study."""
    if not view.is_control:
        return None
    found = mapping(view.freeze, "stimuli")
    if not found:
        return (
            "A control, planned when the outcomes of the studies were known. It takes nothing over from "
            "them: its states and outcomes are its own."
        )
    n = len(mapping(found, "states"))
    size = f"{words.count(n)} states, {found.get('scale')} scale, " if n else ""
    return (
        f"A control, planned when the outcomes of {found.get('study')} were known. It reuses that study's "
        f"frozen stimuli ({size}ledger head {str(found.get('ledger_head'))[:12]}); their digests stand under "
        "evidence."
    )


def calibration(view: StudyView, prefix: str) -> Instrument:
    """How the forecaster follows each signal."""
    one, shown = view.of(view.target), mapping(view.metrics, "decision", "shown")
    printed, levels = mapping(view.study.published, "shown"), mapping(one.metrics, "contexts")

    def row(context: str) -> Row:
        ours, theirs = mapping(shown, context), mapping(printed, context)
        error = dig(levels, context, "point_mae_ensemble")
        return (
            words.context(context),
            _of(ours.get("wins"), ours.get("n_states"), absent=NONE_PRINTED),
            words.percent(ours.get("win_share"), absent=NONE_PRINTED),
            words.number(ours.get("spearman"), 5, absent=words.UNDEFINED if ours else NONE_PRINTED),
            _fine(error),
            _of(theirs.get("wins"), theirs.get("n_states"), absent=NONE_PRINTED),
            words.number(theirs.get("spearman"), 5, absent=NONE_PRINTED),
            _fine(dig(levels, "published", context, "point_mae_ensemble"), absent=NONE_PRINTED),
        )

    asked = [c for c in view.contexts if c in levels or c in shown]
    table = Table(
        caption="How the forecaster follows each signal",
        columns=(
            "context", "states won", "share", "Spearman", "point error", "states won", "Spearman",
            "point error",
        ),
        groups=(("", 1), ("here", 4), ("published", 3)),
        rows=tuple(map(row, asked)),
        note="A state is won where the mean point of two calls lies nearer to the outcome than without a "
        f"signal. Spearman is over states, with the outcomes. Errors are in {view.target.unit}.",
    )  # fmt: skip
    return Instrument(says=_followed(mapping(shown, str(view.study.matched))), tables=(table,))


def replay(view: StudyView, prefix: str) -> Instrument:
    """By how much drift falls under another forecaster."""
    one, printed = view.of(view.target), mapping(view.study.published, "contrasts", view.target.name, "drift")
    voice = _finer(one)
    rows = tuple(
        (
            words.context(context),
            voice.number(dig(one.metrics, "contexts", context, "drift")),
            *_gain_cells(one, "drift", f"D-{context}"),
            words.percent(_reduction(one, context)),
            words.percent(dig(printed, f"D-{context}", "reduction_share"), absent=NONE_PRINTED),
        )
        for context in ("M", "S")
    )
    table = Table(
        caption="By how much two calls agree more with a card",
        columns=("context", "drift", "fall of drift", "interval", "in per cent", "published"),
        rows=rows,
        note=f"Without a card the drift is {voice.number(dig(one.metrics, 'contexts', 'D', 'drift'))} "
        f"{view.target.unit}. The nine gates stand with the decision.",
    )
    return Instrument(says=_repeated(one), tables=(table,))


def crossover(view: StudyView, prefix: str) -> Instrument:
    """Which part of a card carries what."""
    one = view.of(view.target)
    return Instrument(says=_carried(one), tables=(_parts(one), _against_each_other(one)))


def raw_note(view: StudyView, prefix: str) -> Instrument:
    """The note as it was written: whether it was shown, and what it brought."""
    one, delivery = view.of(view.target), mapping(view.metrics, "checks", "delivery")
    contrasts = mapping(one.metrics, "contrasts", "point_error_scaled")
    gains = Table(
        caption="Task-balanced scaled gain in point error",
        columns=("contrast", "gain", "interval", "t interval", "published"),
        rows=tuple(
            (
                words.pair(pair),
                words.signed(found.get("task_balanced"), absent=words.NOT_ESTIMABLE),
                words.interval(found.get("lower"), found.get("upper")),
                words.interval(found.get("t_lower"), found.get("t_upper")),
                printed_gain(Voice(digits=4), mapping(contrasts, pair, "published")),
            )
            for pair, found in _shown_pairs(view)
        ),
        note=f"Each {view.study.task_words[0]}'s mean gain over its mean absolute outcome, then the mean "
        f"over {view.study.task_words[1]}.",
    )
    stood, planned = delivery.get("explained"), delivery.get("to_explain")
    shown = Table(
        caption="Delivery of the note",
        columns=("prompts that were to hold it", "in which it stood", "share"),
        rows=((words.count(planned), words.count(stood), words.percent(_share(stood, planned))),),
    )
    return Instrument(says=_as_written(view), tables=(gains, shown))


def mechanism(view: StudyView, prefix: str) -> Instrument:
    """What was executed, how far off the forecasts were, and what each note brought."""
    one = view.of(view.target)
    return Instrument(says=_understood(one), tables=(_executed(one), _errors(one), _note_gains(one)))


def gradient(view: StudyView, prefix: str) -> Instrument:
    """Credit as a curve over how much of the card is somebody else's, by target."""
    ones = [view.of(target) for target in view.study.targets]
    return Instrument(
        says=_faded(ones),
        figures=tuple(
            _curve(one, f"{prefix}-curve-{k}") for k, one in enumerate(ones, start=1) if _steps(one)
        ),
        tables=tuple(map(_distances, ones)),
    )


MAKERS: Mapping[str, Callable[[StudyView, str], Instrument]] = {
    "calibration": calibration, "replay": replay, "crossover": crossover, "raw_note": raw_note,
    "mechanism": mechanism, "gradient": gradient,
}  # fmt: skip


def _followed(exact: Mapping[str, Any]) -> str:
    won, rho = _share(exact.get("wins"), exact.get("n_states")), _number(exact.get("spearman"))
    if won is None:
        return f"Whether the forecaster follows a number that it is shown {UNTOLD}."
    nearer = f"in {words.percent(won)} of {words.count(exact.get('n_states'))} states"
    rank = "points that do not vary" if rho is None else f"Spearman {words.number(rho, 5)}"
    if won >= assay.WINS and rho is not None and rho >= assay.ORDER:
        return (
            "The forecaster follows a number that it is shown: its point comes nearer to the outcome "
            f"{nearer}, in the outcomes' order ({rank}), so a gain that is missing elsewhere is no failure "
            "to read."
        )
    return (
        "The forecaster does not reliably follow a number that it is shown: its point comes nearer to the "
        f"outcome {nearer} ({rank}), so a gain that is missing elsewhere may be a failure to read."
    )


def _repeated(one: StudyView) -> str:
    gates = mapping(one.metrics, "decision", "gates")
    held = [name for name, gate in gates.items() if dig(gate, "held") is True]
    falls = [f"{words.percent(_reduction(one, c))} with the {who} card"
             for c, who in (("M", "matched"), ("S", "donor's"))]  # fmt: skip
    steadied = [name for name in held if name.endswith("drift reduction")]
    drift = f"drift falls by {words.listed(falls)}"
    if gates and len(held) == len(gates):
        return (
            f"The pattern is not one forecaster's own: {drift}, and points and intervals stay within every "
            "margin."
        )
    if any(dig(gate, "seen") is None for gate in gates.values()) or not gates:
        return (
            f"Whether the pattern is one forecaster's own {UNTOLD}: {len(held)} of {len(gates)} gates held."
        )
    lost = [name for name in gates if name not in held]
    missing = f"not held {'is' if len(lost) == 1 else 'are'} {words.listed(lost)}"
    if len(steadied) == 2:
        return f"A card steadies this forecaster too ({drift}); the whole pattern is not shown: {missing}."
    return f"That a card steadies forecasts may be one forecaster's own: {drift}, and {missing}."


def _carried(one: StudyView) -> str:
    cards = [c for c in one.contexts if c != "D" and _side(one, "point_error", f"D-{c}") is not None]
    if not cards:
        return f"Which part of a card carries what {UNTOLD}."
    nearer = [words.context(c) for c in cards if _side(one, "point_error", f"D-{c}") == "above"]
    farther = [words.context(c) for c in cards if _side(one, "point_error", f"D-{c}") == "below"]
    steadier = [words.context(c) for c in cards if _side(one, "drift", f"D-{c}") == "above"]
    said = [
        f"Point error falls beyond no card with {_either(nearer, cards)}"
        + (f" and rises with {_quoted(farther)}" if farther else ""),
        f"two calls agree more with {_either(steadier, cards)}",
        _halves(one),
    ]
    if words.context("scaffold") in steadier:
        said.append("six empty lines steady it too, so steadiness is no sign of what a card says")
    return "; ".join(said) + "."


def _halves(one: StudyView) -> str:
    side = _side(one, "point_error", "mechanism-numbers")
    return {
        "above": "numbers alone serve the point better than the mechanism alone",
        "below": "the mechanism alone serves the point better than numbers alone",
        "across": "numbers alone and mechanism alone are not shown to differ in point error",
        None: "numbers and mechanism were not set against each other",
    }[side]


def _as_written(view: StudyView) -> str:
    shown = mapping(view.metrics, "decision", "shown")
    delivery = mapping(view.metrics, "checks", "delivery")
    over_none, over_donor = (_where(dig(shown, p, "lower"), dig(shown, p, "upper")) for p in ("D-M", "S-M"))
    stood = words.percent(_share(delivery.get("explained"), delivery.get("to_explain")))
    where = f"The note as it was written stood in {stood} of the prompts that were to hold it"
    if over_none is None or over_donor is None:
        return f"{where}, but whether it brings more than the card that was read from it {UNTOLD}."
    if over_none == "above" and over_donor == "above":
        return f"{where} and helps beyond a donor's: what is lost on the way to a card matters."
    if over_none == "above":
        return f"{where} and helps, but is not shown to help more than a donor's: any note may do."
    if over_none == "below":
        return f"{where} and makes points worse: that a card helps little is not for what an extractor lost."
    return (
        f"{where}, and no gain over the description alone is shown: what an extractor loses is not what "
        "hides one."
    )


def _understood(one: StudyView) -> str:
    pairs = ("D-true_note", "false_note-true_note")
    over_none, over_false = (_side(one, "point_error", pair) for pair in pairs)
    none, false = (
        one.voice.signed(dig(one.metrics, "contrasts", "point_error", pair, "mean")) for pair in pairs
    )
    gains = f"{none} against no note and {false} against the false one, {one.target.unit}"
    if over_none is None or over_false is None:
        return f"Whether the forecaster uses an account of why {UNTOLD}."
    if over_none == over_false == "above":
        return (
            f"The forecaster uses a true account of why, without a number in it ({gains}), so a gain that is "
            "missing elsewhere is not a failure to read mechanisms."
        )
    if over_false == "above":
        return (
            f"The forecaster tells a true account of why from a false one, but is not shown to be helped by "
            f"it ({gains}): what it reads moves it, not always for the better."
        )
    return (
        f"A true account of why, without a number, is not shown to be used ({gains}), so the mechanism on a "
        "card may go unread by this forecaster."
    )


def _faded(ones: Sequence[StudyView]) -> str:
    said = [_ends(one) for one in ones]
    clauses = [f"{words.capital(one.target.phrase) if len(ones) > 1 else 'Credit'}: {clause}"
               for one, clause in zip(ones, said, strict=True)]  # fmt: skip
    sides = {_side(one, "point_error", "S-M") for one in ones}
    if sides == {"above"}:
        meaning = "credit depends on whose the card is"
    elif sides >= {"above", "below"}:
        meaning = "credit depends on whose the card is, and not in one direction"
    elif "above" in sides:
        meaning = "credit depends on whose the card is in one target alone"
    elif "below" in sides:
        meaning = (
            "the donor's card serves better where they differ, so credit is not for being the state's own"
        )
    elif None in sides:
        meaning = f"whether credit depends on whose the card is {UNTOLD}"
    else:
        meaning = "credit is not shown to depend on whose the card is"
    return f"{'; '.join(clauses)}: {meaning}."


def _ends(one: StudyView) -> str:
    own, lent = (
        one.voice.signed(dig(one.metrics, "contrasts", "point_error", f"D-{c}", "mean"),
                         absent=words.NOT_ESTIMABLE)
        for c in ("M", "S")
    )  # fmt: skip
    found = mapping(one.metrics, "contrasts", "point_error", "S-M")
    between = one.voice.interval(found.get("lower"), found.get("upper"))
    return f"{own} with the state's own card, {lent} with the donor's (difference {between})"


def _parts(one: StudyView) -> Table:
    levels, voice = mapping(one.metrics, "contexts"), _finer(one)
    asked = [c for c in one.contexts if c in levels]

    def gain(measure: str, other: str, context: str) -> str:
        return NONE_PRINTED if context in ("D", other) else _gain_words(one, measure, f"{other}-{context}")

    return Table(
        caption="Which slot carries what",
        columns=(
            "context", "point error", "drift", "no card", "empty card", "no card", "empty card",
            "point error", "drift", "fall of drift",
        ),
        groups=(("", 1), ("levels", 2), ("gain in point error over", 2), ("fall of drift against", 2),
                ("published", 3)),
        rows=tuple(
            (
                words.context(c),
                voice.number(dig(levels, c, "point_mae_call")),
                voice.number(dig(levels, c, "drift")),
                *(gain(m, other, c) for m in ("point_error", "drift") for other in ("D", "scaffold")),
                *(
                    voice.number(dig(levels, "published", c, key), absent=NONE_PRINTED)
                    for key in ("point_mae_call", "drift")
                ),
                _printed(one, "drift", f"D-{c}"),
            )
            for c in asked
        ),
        note=f"Positive favours the context of the row. In {one.target.unit}.",
    )  # fmt: skip


def _against_each_other(one: StudyView) -> Table:
    """The pairs in which neither side is empty or no card."""
    found = mapping(one.metrics, "contrasts", "point_error")
    pairs = [p for p in known_pairs(one) if p in found and p.split("-")[0] not in figures.PLAIN]
    return Table(
        caption="Numbers against mechanism, whole against part",
        columns=("first minus second", "gain in point error", "published", "fall of drift", "published"),
        rows=tuple(
            (
                f"{words.context(pair.split('-')[0])}{words.BETWEEN}{words.context(pair.split('-')[1])}",
                *(cell for m in ("point_error", "drift") for cell in
                  (_gain_words(one, m, pair), _printed(one, m, pair))),
            )
            for pair in pairs
        ),
        note=f"Positive favours the second context. In {one.target.unit}.",
    )  # fmt: skip


def _executed(one: StudyView) -> Table:
    shown = mapping(one.metrics, "decision", "shown", "executed")
    printed = mapping(one.study.published, "shown", "executed")
    say = Voice(digits=2).signed
    return Table(
        caption="What the change did when it was executed",
        columns=("kind of task", "tasks", "mean change", "published"),
        rows=tuple(
            (
                words.spaced(kind),
                words.count(dig(row, "n")),
                say(dig(row, "mean_effect_pp")),
                say(dig(printed, kind, "mean_effect_pp"), absent=NONE_PRINTED),
            )
            for kind, row in shown.items()
        ),
        note=f"In {one.target.unit}.",
    )


def _errors(one: StudyView) -> Table:
    levels = mapping(one.metrics, "contexts")
    return Table(
        caption="Point error by context",
        columns=("context", "here", "published"),
        rows=tuple(
            (
                words.context(c),
                words.number(dig(levels, c, "point_mae_call"), 3),
                words.number(dig(levels, "published", c, "point_mae_call"), 3, absent=NONE_PRINTED),
            )
            for c in one.contexts
            if c in levels
        ),
    )


def _note_gains(one: StudyView) -> Table:
    pairs = [p for p in known_pairs(one) if p in mapping(one.metrics, "contrasts", "point_error")]
    return Table(
        caption="Gain in point error of the true note",
        columns=("contrast", "gain", "interval", "published"),
        rows=tuple(
            (words.pair(p), *_gain_cells(one, "point_error", p), _printed(one, "point_error", p))
            for p in pairs
        ),
    )


def _steps(one: StudyView) -> tuple[Step, ...]:
    found = mapping(one.metrics, "decision", "shown", one.target.name)
    return tuple(
        Step(
            distance=int(distance),
            context=str(dig(row, "context")),
            mean=_number(dig(row, "mean")),
            interval=_both(dig(row, "lower"), dig(row, "upper")),
        )
        for distance, row in sorted(found.items(), key=lambda item: int(item[0]))
    )


def _curve(one: StudyView, name: str) -> str:
    title = f"{words.capital(one.target.phrase)}: credit by distance from the own card"
    return figures.curve(name, title, _steps(one), unit=one.target.unit, say=one.voice)


def _distances(one: StudyView) -> Table:
    found, voice = mapping(one.metrics, "decision", "shown", one.target.name), one.voice
    return Table(
        caption=f"Gain in point error over no card: {one.target.phrase}, {one.target.unit}",
        columns=("slots of the donor's", "context", "gain", "interval", "t interval"),
        rows=tuple(
            (
                distance,
                words.context(str(dig(row, "context"))),
                voice.signed(dig(row, "mean"), absent=words.NOT_ESTIMABLE),
                voice.interval(dig(row, "lower"), dig(row, "upper")),
                voice.interval(dig(row, "t_lower"), dig(row, "t_upper")),
            )
            for distance, row in sorted(found.items(), key=lambda item: int(item[0]))
        ),
        text=frozenset({1}),
    )


def _shown_pairs(view: StudyView) -> list[tuple[str, Mapping[str, Any]]]:
    found = mapping(view.metrics, "decision", "shown")
    return [(pair, mapping(found, pair)) for pair in known_pairs(view) if pair in found]


def _gain_cells(one: StudyView, measure: str, pair: str) -> Row:
    found, voice = mapping(one.metrics, "contrasts", measure, pair), _finer(one)
    absent = words.NOT_ESTIMABLE if found else words.NOT_ASKED
    mean = voice.signed(found.get("mean"), absent=absent)
    return mean, voice.interval(found.get("lower"), found.get("upper")) if found else absent


def _gain_words(one: StudyView, measure: str, pair: str) -> str:
    mean, interval = _gain_cells(one, measure, pair)
    return mean if mean == interval else f"{mean} {interval}"


def _printed(one: StudyView, measure: str, pair: str) -> str:
    return printed_gain(_finer(one), mapping(one.metrics, "contrasts", measure, pair, "published"))


def _finer(one: StudyView) -> Voice:
    """A digit more than elsewhere: as many as the printed figures of the controls have."""
    return Voice(digits=one.voice.digits + 1)


def _reduction(one: StudyView, context: str) -> float | None:
    """The fall of drift as a share of the drift without a card."""
    fall = dig(one.metrics, "contrasts", "drift", f"D-{context}", "mean")
    return _share(fall, dig(one.metrics, "contexts", "D", "drift"))


def _side(one: StudyView, measure: str, pair: str) -> Side | None:
    found = mapping(one.metrics, "contrasts", measure, pair)
    return _where(found.get("lower"), found.get("upper"))


def _where(lower: Any, upper: Any) -> Side | None:
    """On which side of 0 an interval lies; None where there is none."""
    ends = _both(lower, upper)
    if ends is None:
        return None
    return "above" if ends[0] > 0 else "below" if ends[1] < 0 else "across"


def _both(lower: Any, upper: Any) -> tuple[float, float] | None:
    low, high = _number(lower), _number(upper)
    return None if low is None or high is None else (low, high)


def _number(value: Any) -> float | None:
    return float(value) if words.is_number(value) else None


def _share(part: Any, whole: Any) -> float | None:
    return part / whole if words.is_number(part) and words.is_number(whole) and whole else None


def _of(part: Any, whole: Any, *, absent: str) -> str:
    known = words.is_number(part) and words.is_number(whole)
    return f"{words.count(part)} of {words.count(whole)}" if known else absent


def _fine(value: Any, *, absent: str = words.UNDEFINED) -> str:
    """An error in the digits that show it."""
    return words.number(value, 7 if words.is_number(value) and abs(value) < FINE else 6, absent=absent)


def _either(names: Sequence[str], among: Sequence[str]) -> str:
    if 1 < len(names) == len(among):
        return "every one of them"
    return _quoted(names) if names else "none of them"


def _quoted(names: Sequence[str]) -> str:
    # Some names hold a comma: without marks a list of them could not be read.
    return words.listed([f"\u201c{name}\u201d" for name in names])
