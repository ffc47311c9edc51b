"""What held of the published study, and what did not: claims with stated criteria, judged by this run.

A claim is data: a sentence about the published study, and how it is judged. Ours are read from the
metrics, theirs from the study's printed figures; what either lacks cannot be told.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from predictive_credit.exact import exact_interval
from predictive_credit.report import words
from predictive_credit.report.tables import Table, dig, mapping, printed_gain, silent_gates
from predictive_credit.report.view import StudyView

HELD, NOT_HELD, UNTOLD = "held", "not held", "cannot be told"
LEVEL_KEYS = {
    "point_error": "point_mae_call", "interval_score": "interval_score_call", "drift": "drift",
    "width": "width",
}  # fmt: skip
NOMINAL = 0.80
CLOSE = 0.05  # two shares this near to each other count as alike
CONCENTRATED = 0.25  # a task with this share of the error or more carries the mean
MANY_TASKS = 8  # twice as many as would make such a task certain
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was printed and what this run gives, in words, and whether the claim held (None: cannot tell)."""

    published: str
    here: str
    held: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim(ABC):
    """A sentence about the published study. `target` None: about the study as a whole."""

    sentence: str
    target: str | None = None

    @property
    @abstractmethod
    def criterion(self) -> str:
        """When this run counts as holding the claim."""

    @abstractmethod
    def judge(self, view: StudyView) -> Finding:
        """The claim in the view of its target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SameDecision(Claim):
    """The rule's status, which says nothing where a gate saw nothing: it could not have been another."""

    criterion = "the status is the same, and every gate saw something"

    def judge(self, view: StudyView) -> Finding:
        printed, here = view.study.published.get("decision"), dig(view.metrics, "decision", "status")
        return Finding(
            published=words.NONE_PRINTED if printed is None else words.spaced(str(printed)),
            here=words.UNDEFINED if here is None else words.spaced(str(here)),
            held=None if None in (printed, here) or silent_gates(view) else printed == here,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain(Claim):
    """Where the interval of a contrast lies: above or below 0, across it, or anywhere but above."""

    measure: str
    pair: str
    lies: Literal["above", "below", "across", "not above"]

    @property
    def criterion(self) -> str:
        where = {
            "above": "lies above 0", "below": "lies below 0", "across": "covers 0",
            "not above": "does not lie above 0",
        }[self.lies]  # fmt: skip
        return f"our two-sided interval of {words.pair(self.pair)} {where}"

    def judge(self, view: StudyView) -> Finding:
        found = mapping(view.metrics, "contrasts", self.measure, self.pair)
        lower, upper = found.get("lower"), found.get("upper")
        return Finding(
            published=_printed_gain(view, self.measure, self.pair),
            here=_gain_words(view, self.measure, self.pair, found),
            held=_lies(self.lies, lower, upper),
        )


def _lies(where: str, lower: Any, upper: Any) -> bool | None:
    """Whether an interval lies so; None where there is none, or where one across 0 shows no sign."""
    if not (words.is_number(lower) and words.is_number(upper)):
        return None
    side = "above" if lower > 0 else "below" if upper < 0 else "across"
    if where == "not above":
        return side != "above"
    if where == "across":
        return side == "across"
    return None if side == "across" else side == where


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered(Claim):
    """Contexts by a level, smallest first; levels that are printed alike are in no order."""

    key: str
    contexts: tuple[str, ...]

    @property
    def criterion(self) -> str:
        return f"the same order: {' < '.join(map(words.short_context, self.contexts))}"

    def judge(self, view: StudyView) -> Finding:
        printed, here = (
            [dig(view.metrics, "contexts", *inside, c, self.key) for c in self.contexts]
            for inside in (("published",), ())
        )
        return Finding(
            published=_each(view, self.contexts, printed, words.NONE_PRINTED),
            here=_each(view, self.contexts, here, words.NOT_ASKED),
            held=all(_exceeds(view, b, a) for a, b in pairwise(here)) if _all_known(here) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotBetterThan(Claim):
    """A context whose point error is not below a baseline's."""

    context: str
    baseline: str

    @property
    def criterion(self) -> str:
        return f"the point error of {self.context} is not below that of forecasting {self.baseline}"

    def judge(self, view: StudyView) -> Finding:
        names = (self.context, self.baseline)
        printed, here = (
            [dig(view.metrics, "contexts", *inside, n, "point_mae_call") for n in names]
            for inside in (("published",), ())
        )
        return Finding(
            published=_each(view, names, printed, words.NONE_PRINTED),
            here=_each(view, names, here, words.NOT_ASKED),
            held=not _exceeds(view, here[1], here[0]) if _all_known(here) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Undercovered(Claim):
    """Coverage below its nominal level in every context."""

    criterion = f"coverage is below {NOMINAL:.0%} in every context asked".replace("%", " %")

    def judge(self, view: StudyView) -> Finding:
        found = mapping(view.metrics, "contexts")
        printed = _coverages(view, mapping(found, "published"))
        here = _coverages(view, found)
        return Finding(
            published=_range(printed, words.NONE_PRINTED),
            here=_range(here, words.UNDEFINED),
            held=all(share < NOMINAL for share in here) if here else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SameShare(Claim):
    """A share of states or cards whose exact interval holds the printed one. Paths are to counts."""

    part: Path
    whole: Path

    criterion = "our exact 95 % interval contains the published share"

    def judge(self, view: StudyView) -> Finding:
        part, whole = dig(view.metrics, *self.part), dig(view.metrics, *self.whole)
        printed = [dig(view.metrics, path[0], "published", *path[1:]) for path in (self.part, self.whole)]
        return _shares(_counts(part, whole), _counts(*printed))


@dataclass(frozen=True, slots=True, kw_only=True)
class SamePositiveShare(Claim):
    """The share of outcomes above 0, which a constant positive forecast is right about."""

    criterion = "our exact 95 % interval contains the published share"

    def judge(self, view: StudyView) -> Finding:
        found = mapping(view.metrics, "outcomes")
        share, n = found.get("positive_share"), found.get("n")
        printed = dig(found, "published", "positive_share")
        if not isinstance(share, float) or not isinstance(n, int):
            return Finding(published=_percent(printed), here=words.UNDEFINED, held=None)
        defined = n - (found.get("n_undefined") or 0)
        low, high = exact_interval(round(share * defined), defined)
        return Finding(
            published=_percent(printed),
            here=f"{words.percent(share)} {words.interval(100 * low, 100 * high, 1, say=words.number)}",
            held=_holds(round(share * defined), defined, printed) if words.is_number(printed) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SameSize(Claim):
    """A size that is of the order of the printed one."""

    path: Path

    criterion = "ours is between half and twice the published figure"

    def judge(self, view: StudyView) -> Finding:
        here = dig(view.metrics, *self.path)
        printed = dig(view.metrics, self.path[0], "published", *self.path[1:])
        known = _all_known([here, printed]) and printed > 0
        return Finding(
            published=view.voice.number(printed, absent=words.NONE_PRINTED),
            here=view.voice.number(here),
            held=0.5 <= here / printed <= 2 if known else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Concentrated(Claim):
    """The task with the largest share of a context's point error."""

    context: str

    criterion = f"of at least {MANY_TASKS} tasks one holds {100 * CONCENTRATED:.0f} % of the error or more"

    def judge(self, view: StudyView) -> Finding:
        shares = {
            task: dig(row, "share_of_error", self.context)
            for task, row in mapping(view.metrics, "tasks").items()
        }
        known = {task: share for task, share in shares.items() if words.is_number(share)}
        printed = {
            task: dig(row, "share_of_error", self.context)
            for task, row in mapping(view.study.published, "tasks", view.target.name).items()
        }
        return Finding(
            published=_largest(printed, words.NONE_PRINTED),
            here=_largest(known, words.UNDEFINED),
            held=max(known.values()) >= CONCENTRATED if len(known) >= MANY_TASKS else None,
        )


def _largest(shares: Mapping[str, Any], absent: str) -> str:
    if not shares:
        return absent
    task = max(shares, key=lambda name: shares[name])
    return f"{words.percent(shares[task])}, {words.spaced(task)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionLikeConstant(Claim):
    """Direction accuracy of a context beside always saying upwards."""

    context: str

    criterion = f"the two are within {100 * CLOSE:.0f} percentage points"

    def judge(self, view: StudyView) -> Finding:
        found = mapping(view.metrics, "contexts")
        here = [dig(found, c, "direction_accuracy") for c in (self.context, "positive")]
        printed = [dig(found, "published", c, "direction_accuracy") for c in (self.context, "positive")]
        return Finding(
            published=f"{_percent(printed[0])} against {_percent(printed[1])}",
            here=f"{words.percent(here[0])} against {words.percent(here[1])}",
            held=abs(here[0] - here[1]) <= CLOSE if _all_known(here) else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Formed(Claim):
    """Complete cards, elicited against ordinary."""

    criterion = (
        "the one-sided 95 % lower bound of the paired difference is above 0; where there is no such bound, "
        "the exact 95 % intervals lie apart"
    )

    def judge(self, view: StudyView) -> Finding:
        found = mapping(view.metrics, "explanations")
        difference, lower = (dig(found, "formation", key) for key in ("difference", "lower"))
        return Finding(
            published=_against(mapping(found, "published"), words.NONE_PRINTED),
            here=_against(found, words.NOT_ASKED),
            held=_shown(lower > 0, difference > 0) if _all_known([difference, lower]) else _apart(found),
        )


def _apart(found: Mapping[str, Any]) -> bool | None:
    """Whether elicited cards are complete more often than ordinary ones, as two separate shares."""
    elicited, ordinary = (
        _counts(dig(found, source, "complete"), dig(found, source, "n"))
        for source in ("elicited", "ordinary")
    )
    if elicited is None or ordinary is None:
        return None
    return _shown(
        exact_interval(*elicited)[0] > exact_interval(*ordinary)[1],
        elicited[0] / elicited[1] > ordinary[0] / ordinary[1],
    )


def _shown(is_sure: bool, points_there: bool) -> bool | None:
    """Held if surely so, not held if it points nowhere or elsewhere; otherwise too few to tell."""
    return True if is_sure else None if points_there else False


@dataclass(frozen=True, slots=True, kw_only=True)
class MostlyUpwards(Claim):
    """Directions that cards state, nine in ten of them upwards."""

    criterion = "at least 90 % of the stated directions are upwards"

    def judge(self, view: StudyView) -> Finding:
        here, printed = _directions(view)
        return Finding(
            published=_out_of(printed.get("up"), printed.get("stated"), words.NONE_PRINTED),
            here=_out_of(here.get("up"), here.get("stated"), words.UNDEFINED),
            held=here["up"] >= 0.9 * here["stated"] if here.get("stated") else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionsLikeConstant(Claim):
    """Stated directions that came true beside always saying upwards."""

    criterion = f"the two shares are within {100 * CLOSE:.0f} percentage points"

    def judge(self, view: StudyView) -> Finding:
        here, printed = _directions(view)
        n = here.get("n_scored") or 0
        gap = (here.get("correct", 0) - here.get("always_up_correct", 0)) / n if n else None
        return Finding(
            published=_right(printed, words.NONE_PRINTED),
            here=_right(here, words.UNDEFINED),
            held=None if gap is None else abs(gap) <= CLOSE,
        )


CLAIMS: Mapping[str, tuple[Claim, ...]] = {
    "harm": (
        SameDecision(sentence="The rule does not confirm that a matched card harms the intervals."),
        Gain(
            sentence="A matched card makes two calls agree more than the description alone does.",
            target="roc_auc", measure="drift", pair="D-M", lies="above",
        ),
        Gain(
            sentence="A donor's card does that too.",
            target="roc_auc", measure="drift", pair="D-S", lies="above",
        ),
        Gain(
            sentence="The point error hardly moves with the card.",
            target="roc_auc", measure="point_error", pair="D-M", lies="across",
        ),
        Gain(
            sentence="A matched card is no better than a donor's in point error.",
            target="roc_auc", measure="point_error", pair="S-M", lies="not above",
        ),
        Gain(
            sentence="The interval score is not improved by the matched card.",
            target="roc_auc", measure="interval_score", pair="D-M", lies="not above",
        ),
        SameShare(
            sentence="Two seeds of a cell mostly agree in the sign of their outcomes.",
            target="roc_auc", part=("outcomes", "seed_pairs", "equal_signs"),
            whole=("outcomes", "seed_pairs", "n"),
        ),
        SameSize(
            sentence="The two outcomes of such a pair lie this far apart (median gap).",
            target="roc_auc", path=("outcomes", "seed_pairs", "median_gap"),
        ),
    ),
    "joint": (
        SameDecision(sentence="The joint rule is not confirmed."),
        Gain(
            sentence="The matched card makes the point error no better than the description alone.",
            target="skill", measure="point_error", pair="D-M", lies="not above",
        ),
        Gain(
            sentence="Its difference to the description alone may be none.",
            target="skill", measure="point_error", pair="D-M", lies="across",
        ),
        Gain(
            sentence="Its difference to a donor's card may be none.",
            target="skill", measure="point_error", pair="S-M", lies="across",
        ),
        NotBetterThan(
            sentence="Without a card the forecaster does not beat forecasting no change.",
            target="skill", context="D", baseline="zero",
        ),
        Concentrated(
            sentence="A single task carries a large share of the error without a card.",
            target="skill", context="D",
        ),
        Concentrated(
            sentence="It does so with the matched card.", target="skill", context="M",
        ),
        Undercovered(sentence="The 80 % intervals hold far fewer outcomes.", target="skill"),
        Gain(
            sentence="The intervals are wider with the matched card.",
            target="skill", measure="width", pair="D-M", lies="below",
        ),
        SamePositiveShare(
            sentence="This share of the changes is positive, so always saying so is as often right.",
            target="skill",
        ),
        DirectionLikeConstant(
            sentence="Without a card the sign is hardly better than always saying positive.",
            target="skill", context="D",
        ),
        SameShare(
            sentence="Two seeds of a cell mostly agree in the sign of their outcomes.",
            target="skill", part=("outcomes", "seed_pairs", "equal_signs"),
            whole=("outcomes", "seed_pairs", "n"),
        ),
        SameSize(
            sentence="The outcomes are of this size (median |y|).",
            target="skill", path=("outcomes", "median_absolute"),
        ),
        Formed(sentence="Asking slot by slot forms more complete cards than an ordinary note holds."),
        SameShare(
            sentence="Most elicited cards stay incomplete.",
            part=("explanations", "elicited", "complete"), whole=("explanations", "elicited", "n"),
        ),
        SameShare(
            sentence="About half of the cards are empty.",
            part=("explanations", "elicited", "empty"), whole=("explanations", "elicited", "n"),
        ),
    ),
    "credit": (
        SameDecision(sentence="The rule is inconclusive."),
        Ordered(
            sentence="In log loss the point error is smallest with the matched card, largest with a donor's.",
            target="log_loss", key="point_mae_call", contexts=("M", "D", "S"),
        ),
        Gain(
            sentence="Its gain over the description alone may be none, in log loss.",
            target="log_loss", measure="point_error", pair="D-M", lies="across",
        ),
        Gain(
            sentence="Its gain over a donor's card is positive, in log loss.",
            target="log_loss", measure="point_error", pair="S-M", lies="above",
        ),
        Gain(
            sentence="Its gain over the description alone may be none, in accuracy.",
            target="accuracy_pp", measure="point_error", pair="D-M", lies="across",
        ),
        Gain(
            sentence="The matched card makes the interval score worse, in accuracy.",
            target="accuracy_pp", measure="interval_score", pair="D-M", lies="below",
        ),
        Gain(
            sentence="It makes the interval score worse, in log loss.",
            target="log_loss", measure="interval_score", pair="D-M", lies="below",
        ),
        Formed(sentence="Asking slot by slot forms complete cards; an ordinary note never does."),
        MostlyUpwards(sentence="Nearly every card says that accuracy improves.", target="accuracy_pp"),
        DirectionsLikeConstant(
            sentence="These directions are hardly more often right than always saying so.",
            target="accuracy_pp",
        ),
    ),
    "assay": (
        SameDecision(sentence="The forecaster follows a signal that is known to be right."),
        Gain(
            sentence="The outcome itself, written in the prompt, lowers the point error.",
            target="skill", measure="point_error", pair="D-exact", lies="above",
        ),
        Gain(
            sentence="It does so beyond the other seed's outcome.",
            target="skill", measure="point_error", pair="wrong_seed-exact", lies="above",
        ),
        Ordered(
            sentence="The other seed's outcome stands between the outcome itself and nothing.",
            target="skill", key="point_mae_ensemble", contexts=("exact", "wrong_seed", "D"),
        ),
    ),
    "replication": (
        SameDecision(sentence="The pattern is not shown again as a whole."),
        Gain(
            sentence="A matched card makes two calls of this forecaster agree more, too.",
            target="roc_auc", measure="drift", pair="D-M", lies="above",
        ),
        Gain(
            sentence="So does a donor's card.",
            target="roc_auc", measure="drift", pair="D-S", lies="above",
        ),
        Gain(
            sentence="In interval score the donor's card and the matched one may be alike.",
            target="roc_auc", measure="interval_score", pair="S-M", lies="across",
        ),
    ),
    "mechanism": (
        SameDecision(sentence="A true account without a number helps the forecaster."),
        Gain(
            sentence="The true note lowers the point error.",
            target="accuracy_pp", measure="point_error", pair="D-true_note", lies="above",
        ),
        Gain(
            sentence="It does so beyond the false note.",
            target="accuracy_pp", measure="point_error", pair="false_note-true_note", lies="above",
        ),
        Ordered(
            sentence="The false note does harm: without a note the error lies between the two.",
            target="accuracy_pp", key="point_mae_call", contexts=("true_note", "D", "false_note"),
        ),
    ),
    "crossover": (
        Gain(
            sentence="That the full card makes two calls agree more is not shown.",
            target="roc_auc", measure="drift", pair="D-M", lies="across",
        ),
        Gain(
            sentence="That its numbers alone make them agree more is.",
            target="roc_auc", measure="drift", pair="D-numbers", lies="above",
        ),
        Gain(
            sentence="Whose mechanism stands beside the numbers may make no difference to the point error.",
            target="roc_auc", measure="point_error", pair="donor_mechanism-M", lies="across",
        ),
    ),
    "raw_note": (
        Gain(
            sentence="That the note as it was written lowers the point error is not shown.",
            target="skill", measure="point_error_scaled", pair="D-M", lies="across",
        ),
        Gain(
            sentence="Nor is that it does so beyond a donor's note.",
            target="skill", measure="point_error_scaled", pair="S-M", lies="across",
        ),
    ),
}  # fmt: skip


def table(view: StudyView) -> Table | None:
    """The claims of the study's rule, judged; None where the study has no published figures."""
    if not view.study.published:
        return None
    rows = []
    targets = {target.name: target for target in view.study.targets}
    for claim in _claims(view):
        if claim.target is not None and claim.target not in targets:
            continue
        found = claim.judge(view if claim.target is None else view.of(targets[claim.target]))
        rows.append((claim.sentence, found.published, found.here, claim.criterion, _verdict(found.held)))
    return Table(
        caption="Claims of the published study beside this run",
        columns=("claim", "published", "here", "held if", "verdict"),
        rows=tuple(rows),
        text=frozenset({1, 2, 3, 4}),
        note="A dash stands where the source prints no figure. Intervals are in brackets. Where the run is "
        "too small to show either, or small enough that the claim could not fail, it cannot be told.",
    )


def _claims(view: StudyView) -> tuple[Claim, ...]:
    """The claims under the study's rule; under its own name where controls share a rule."""
    return CLAIMS.get(str(view.study.rule.NAME)) or CLAIMS.get(view.study.name, ())


def tally(found: Table) -> str:
    """How many of the claims held, in one sentence."""
    verdicts = [row[-1] for row in found.rows]
    held, lost, untold = (verdicts.count(word) for word in (HELD, NOT_HELD, UNTOLD))
    return (
        f"Of {len(verdicts)} claims {held} held, {lost} did not, and {untold} cannot be told from this run."
    )


def limits(view: StudyView) -> tuple[str, ...]:
    """Where this run's forecaster or author is too weak to show an effect, in computed sentences."""
    found = [sentence for target in view.study.targets if (sentence := _weak_point(view.of(target)))]
    checked = mapping(view.metrics, "checks", "sensitivity")
    if checked.get("status") == "failed":
        found.append(
            "The forecaster does not visibly follow the number on its card, so a missing gain may be a "
            "failure to read rather than a failure of the explanation."
        )
    written = [s for s in ("elicited", "ordinary") if mapping(view.metrics, "explanations", s)]
    if written and _is_from_playbook(view):
        cards = mapping(view.metrics, "explanations", written[0])
        complete = _out_of(cards.get("complete"), cards.get("n"), words.UNDEFINED)
        found.append(
            "The explanations come from the playbook, whose templates decide which slots are filled "
            f"({complete} {written[0]} cards are complete): how often a card is formed says nothing about a "
            "model."
        )
    return tuple(found)


def _is_from_playbook(view: StudyView) -> bool:
    """Whether templates wrote what was shown; a control asks nobody, whatever agent is configured."""
    if view.is_control:
        return any(e.agent == "playbook" for e in view.explanations)
    return bool(dig(view.freeze, "params", "agent", "kind") == "playbook")


def _weak_point(view: StudyView) -> str | None:
    # Of a level, the burn-in's mean is what one would say without a forecaster.
    name, said = ("zero", "zero") if view.target.form == "change" else ("mean", "the burn-in's mean")
    without, baseline = (dig(view.metrics, "contexts", c, "point_mae_call") for c in ("D", name))
    if not _all_known([without, baseline]) or not _exceeds(view, without, baseline):
        return None
    return (
        f"Without an explanation the forecaster's point error is {view.voice.number(without)} "
        f"{view.target.unit}, above the {view.voice.number(baseline)} of forecasting {said}: one that does "
        "worse than no forecast cannot show what an explanation adds beyond its number."
    )


def _exceeds(view: StudyView, a: float, b: float) -> bool:
    """Whether a lies above b by more than the last digit that is printed: below that they are a tie."""
    return a - b > 10.0**-view.voice.digits


def _verdict(held: bool | None) -> str:
    return UNTOLD if held is None else HELD if held else NOT_HELD


def _all_known(values: list[Any]) -> bool:
    return all(words.is_number(value) for value in values)


def _gain_words(view: StudyView, measure: str, pair: str, found: Mapping[str, Any]) -> str:
    if not found:
        return words.NOT_ASKED
    mean = view.voice.signed(found.get("mean"), absent=words.NOT_ESTIMABLE)
    said = f"{mean} {view.voice.interval(found.get('lower'), found.get('upper'))}"
    other = dig(view.metrics, "contexts", pair.partition("-")[0], "drift")
    if measure == "drift" and _all_known([other, found.get("mean")]) and other > 0:
        said += f", {words.percent(found['mean'] / other)} less"
    return said


def _printed_gain(view: StudyView, measure: str, pair: str) -> str:
    """The printed contrast, or else the difference of the printed levels."""
    printed = dig(view.metrics, "contrasts", measure, pair, "published") or dig(
        view.study.published, "contrasts", view.target.name, measure, pair
    )
    if isinstance(printed, Mapping):
        return printed_gain(view.voice, printed)
    levels = [
        dig(view.metrics, "contexts", "published", c, LEVEL_KEYS.get(measure, "")) for c in pair.split("-")
    ]
    if not _all_known(levels):
        return words.NONE_PRINTED
    return words.signed(levels[0] - levels[1], view.voice.digits + 1)


def _each(view: StudyView, names: tuple[str, ...], values: list[Any], absent: str) -> str:
    if not any(words.is_number(value) for value in values):
        return absent
    return ", ".join(
        f"{words.short_context(name)} {view.voice.number(value, absent=absent)}"
        for name, value in zip(names, values, strict=True)
    )


def _coverages(view: StudyView, found: Mapping[str, Any]) -> list[float]:
    shares = [dig(found, c, "coverage") for c in view.contexts]
    return [share for share in shares if words.is_number(share)]


def _range(shares: list[float], absent: str) -> str:
    return f"{words.percent(min(shares))} to {words.percent(max(shares))}" if shares else absent


def _percent(value: Any) -> str:
    return words.percent(value, absent=words.NONE_PRINTED)


def _counts(part: Any, whole: Any) -> tuple[int, int] | None:
    return (int(part), int(whole)) if _all_known([part, whole]) and whole > 0 else None


def _shares(here: tuple[int, int] | None, printed: tuple[int, int] | None) -> Finding:
    low, high = exact_interval(*here) if here else (0.0, 0.0)
    return Finding(
        published=f"{printed[0]} of {printed[1]}" if printed else words.NONE_PRINTED,
        here=f"{here[0]} of {here[1]} {words.interval(100 * low, 100 * high, 1, say=words.number)} %"
        if here
        else words.UNDEFINED,
        held=_holds(*here, printed[0] / printed[1]) if here and printed else None,
    )


def _holds(part: int, whole: int, share: float) -> bool | None:
    """Whether the exact interval of a count holds a share; None if it would whatever the count."""
    if exact_interval(0, whole)[1] >= share >= exact_interval(whole, whole)[0]:
        return None
    low, high = exact_interval(part, whole)
    return low <= share <= high


def _out_of(part: Any, whole: Any, absent: str) -> str:
    return f"{part:g} of {whole:g}" if _all_known([part, whole]) else absent


def _against(found: Mapping[str, Any], absent: str) -> str:
    said = [
        f"{source} {_out_of(dig(found, source, 'complete'), dig(found, source, 'n'), absent)}"
        for source in ("elicited", "ordinary")
        if mapping(found, source)
    ]
    return ", ".join(said) or absent


def _directions(view: StudyView) -> tuple[dict[str, float], Mapping[str, Any]]:
    """Counts of stated directions over all sources of this run, and the printed ones."""
    found = mapping(view.metrics, "explanations")
    total: dict[str, float] = {}
    for source in words.SOURCES:
        for key, value in mapping(found, source, "directions", view.target.name).items():
            if words.is_number(value):
                total[key] = total.get(key, 0) + value
    printed = mapping(found, "published", "all")
    names = {
        "stated": "stated", "up": "improve", "n_scored": "stated", "correct": "correct",
        "always_up_correct": "always_improve_correct",
    }  # fmt: skip
    return total, {ours: printed[theirs] for ours, theirs in names.items() if theirs in printed}


def _right(found: Mapping[str, Any], absent: str) -> str:
    n = found.get("n_scored")
    if not _all_known([n, found.get("correct"), found.get("always_up_correct")]):
        return absent
    return f"{found['correct']:g} against {found['always_up_correct']:g} of {n:g}"
