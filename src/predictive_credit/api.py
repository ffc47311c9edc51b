"""From two data frames to contrasts and a decision, in a few lines of a notebook.

    import predictive_credit as pc
    table = pc.contrast_table(forecasts, outcomes, seed=1)
    print(pc.decide(forecasts, outcomes, seed=1))

`forecasts` has one row per answered unit, with the columns state, task, budget, seed, context (D,
M, S or some of them), call (1 and 2, or 1 alone), point, lower, upper, and, if some replies could
not be read, is_fallback. `outcomes` has one row per state, with the columns state and value; an
undefined outcome keeps its row with an empty value. Neither frame is changed.

That is the layout of the molecular study. With `study="tabular"` a column kind says which stratum a
task belongs to. With `study="controlled"` there is no budget, and both frames have a column target
and one row a target. A table study's clusters are in its configuration, so it is scored by its
stages alone.

All three functions refuse, naming the row, rather than drop, fill or repair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictive_credit.config import LEAST_DRAWS, Inference
from predictive_credit.decisions import Decision
from predictive_credit.errors import BadConfig, BadSource, Unpaired
from predictive_credit.panel import Panel
from predictive_credit.records import Target
from predictive_credit.studies import STUDIES, evaluation
from predictive_credit.studies.study import Findings, Study

Array = NDArray[np.float64]
Positions = NDArray[np.intp]
Bounds = tuple[float, float]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The design columns of a study's frames, and the path that a state has in its bootstrap."""

    columns: tuple[str, ...]
    crossed: tuple[str, ...]  # every combination of their values is a state
    path: Callable[..., Path]  # of the columns' values as text


LAYOUTS: Mapping[str, Layout] = {
    "molecular": Layout(
        columns=("task", "budget", "seed"),
        crossed=("task", "budget", "seed"),
        path=lambda task, budget, seed: (task, budget, seed),
    ),
    "tabular": Layout(
        columns=("kind", "task", "budget", "seed"),
        crossed=("task", "budget", "seed"),
        path=lambda kind, task, budget, seed: (kind, task, f"{budget}/{seed}"),
    ),
    "controlled": Layout(
        columns=("task", "seed"), crossed=("task", "seed"), path=lambda task, seed: (task, seed)
    ),
}


def loss_table(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, *,
    outcome_bounds: Bounds | Mapping[str, Bounds] | None = None, study: str = "molecular",
) -> pd.DataFrame:  # fmt: skip
    """Losses of every forecast, one row per unit and target, sorted by these.

    Adds point_error, interval_score, width (in the outcome's unit), covered and direction_correct.
    Raises BadSource for columns or values that cannot be used, Unpaired for gaps and duplicates.
    """
    panels, by_state = _read(forecasts, outcomes, _declared(study, outcome_bounds))
    return evaluation.loss_table(panels, by_state)


def contrast_table(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, *,
    seed: int, draws: int = 10_000, level: float = 0.95,
    outcome_bounds: Bounds | Mapping[str, Bounds] | None = None, study: str = "molecular",
) -> pd.DataFrame:  # fmt: skip
    """Mean gains with their intervals, one row per target, measure and pair of contexts.

    A gain is the other context's loss minus the matched one's, in the outcome's unit; positive
    favours the matched explanation. `D-M` asks whether it helps beyond the description, `S-M`
    whether it helps more than a donor's. `covered` counts misses and `direction` wrong signs.

    seed names the random streams: the same seed gives the same digits, here and in a study.
    draws, level: of the bootstrap over the study's clusters, and of its two-sided interval.
    outcome_bounds: what an outcome can be at all (by target where there are several), if not what
    the study says; the worst and best case are counted in them. Raises as `loss_table` does.
    """
    declared, inference = _declared(study, outcome_bounds), _inference(draws, level)
    panels, _ = _read(forecasts, outcomes, declared)
    found = evaluation.all_contrasts(panels, declared, study, seed=seed, inference=inference)
    rows = []
    for target, measures in found.items():
        for measure, pairs in measures.items():
            for pair, contrast in pairs.items():
                plain = asdict(contrast)
                complete = plain.pop("complete_case")
                place = {"target": target, "measure": measure, "pair": pair}
                row = place | {"role": evaluation.role(measure, pair, declared), **plain}
                rows.append(row | {f"complete_case_{name}": value for name, value in complete.items()})
    return pd.DataFrame(rows)


def decide(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, *,
    seed: int, draws: int = 10_000, level: float = 0.95,
    outcome_bounds: Bounds | Mapping[str, Bounds] | None = None, study: str = "molecular",
) -> Decision:  # fmt: skip
    """Apply a study's frozen rule, gate by gate; `print` shows its working.

    Takes what `contrast_table` takes and rests on the same numbers. The thresholds are the rule's
    and cannot be set here. Whether the forecasts were frozen before the outcomes were opened is not
    known here, nor how the cards were formed, so the decision says so.
    """
    declared, inference = _declared(study, outcome_bounds), _inference(draws, level)
    panels, _ = _read(forecasts, outcomes, declared)
    found = evaluation.all_contrasts(panels, declared, study, seed=seed, inference=inference)
    unknown = ["The order of events was not checked: only a frozen study shows that forecasts came first."]
    if any(showing is not None and showing.source == "ordinary" for showing in declared.contexts.values()):
        unknown.append("How cards were formed was not seen: a gate that asks for it saw nothing.")
    limits = (*evaluation.notes(panels, declared, found), *unknown)
    return replace(declared.decide(study, Findings(contrasts=found)), limits=limits)


def _declared(study: str, bounds: Bounds | Mapping[str, Bounds] | None) -> Study:
    """The study, with the outcome bounds that were asked for."""
    known = sorted(LAYOUTS.keys() & STUDIES.keys())
    if study not in known:
        raise BadConfig(f"no study {study!r} can be read from two frames; there are {', '.join(known)}")
    declared = STUDIES[study]
    names = [target.name for target in declared.targets]
    if bounds is None:
        return declared
    by_target = bounds if isinstance(bounds, Mapping) else {names[0]: bounds}
    if len(names) > 1 and not isinstance(bounds, Mapping):
        raise BadConfig(
            f"outcome_bounds is {bounds} where {study} has the targets {', '.join(names)}; "
            f"give bounds by target, as in {{{names[0]!r}: {bounds}}}"
        )
    strange = sorted(by_target.keys() - set(names))
    if strange:
        raise BadConfig(f"outcome_bounds names {strange[0]}; the targets of {study} are {', '.join(names)}")
    return replace(declared, targets=tuple(_bounded(target, by_target) for target in declared.targets))


def _bounded(target: Target, bounds: Mapping[str, Bounds]) -> Target:
    lower, upper = bounds.get(target.name, (target.lower, target.upper))
    if not lower < upper:
        raise BadConfig(f"outcome_bounds of {target.name} is [{lower}, {upper}], which holds nothing")
    return replace(target, lower=lower, upper=upper)


def _inference(draws: int, level: float) -> Inference:
    if not isinstance(draws, int) or draws < LEAST_DRAWS or not 0.5 < level < 1.0:
        raise BadConfig(
            f"draws is a whole number from {LEAST_DRAWS} on and level between 0.5 and 1; seen draws={draws}, "
            f"level={level}"
        )
    return Inference(draws=draws, level=level)


def _read(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, study: Study
) -> tuple[dict[str, Panel], pd.DataFrame]:
    """The frames as gap-free panels, and one row per state, in the panels' order."""
    layout, targets = LAYOUTS[study.name], [target.name for target in study.targets]
    by_target = ["target"] if len(targets) > 1 else []
    unit = ("context", "call", "point", "lower", "upper")
    _columns("forecasts", forecasts, ("state", *layout.columns, *by_target, *unit))
    _columns("outcomes", outcomes, ("state", *by_target, "value"))
    numbers = {name: _numbers("forecasts", forecasts, name) for name in ("point", "lower", "upper")}
    reversed_ = numbers["lower"] > numbers["upper"]
    if reversed_.any():
        raise BadSource(
            f"forecasts {_first(forecasts, reversed_)} has lower above upper; "
            "a forecast is never sorted or repaired: use the fallback, with is_fallback true"
        )
    state, states = _labels("forecasts", forecasts, "state")
    by_state = _by_state(forecasts, layout, state, states)
    known = [str(context) for context in study.contexts]
    context, contexts = _among("forecasts", forecasts, "context", known)
    context = (np.cumsum([label in contexts for label in known]) - 1)[context]  # among those that occur
    call, calls = _among("forecasts", forecasts, "call", ["1", "2"])
    calls = calls if calls == ["1"] else ["1", "2"]  # a second call alone is a gap
    axes = [states, contexts, calls, targets]
    place = _place(axes, [state, context, call, _target("forecasts", forecasts, targets)])
    fallback = _fallbacks(forecasts)[place]
    if (fallback.any(axis=3) != fallback.all(axis=3)).any():
        raise BadSource(
            "forecasts has units that are the fallback in one target alone; "
            "a reply that cannot be read in one target is the fallback in all"
        )
    values = _values(outcomes, states, targets)
    task, tasks = _codes(by_state["task"])
    design = evaluation.design_of([tuple(path) for path in by_state.pop("path")], study)
    panels = {
        target.name: Panel(
            states=tuple(states),
            contexts=tuple(contexts),
            calls=tuple(map(int, calls)),
            tasks=tuple(tasks),
            task_of=task,
            design=design,
            target=target,
            point=numbers["point"][place[..., k]],
            lower=numbers["lower"][place[..., k]],
            upper=numbers["upper"][place[..., k]],
            is_fallback=fallback[..., k],
            outcome=values[:, k],
        )
        for k, target in enumerate(study.targets)
    }
    return panels, by_state


def _columns(name: str, frame: pd.DataFrame, wanted: Sequence[str]) -> None:
    seen = list(map(str, frame.columns))
    missing = [column for column in wanted if column not in seen]
    if missing:
        raise BadSource(
            f"{name} has no column {', '.join(missing)}; it needs {', '.join(wanted)} and has "
            f"{', '.join(seen) or 'none'}; rename yours with .rename(columns=...)"
        )
    twice = [column for column in wanted if seen.count(column) > 1]
    if twice:
        raise BadSource(f"{name} has {seen.count(twice[0])} columns called {twice[0]}; keep the one you mean")
    if frame.empty:
        raise BadSource(f"{name} has no rows; there is nothing to score")


def _labels(name: str, frame: pd.DataFrame, column: str) -> tuple[Positions, list[str]]:
    """A column as positions among its sorted labels, and the labels; every row is filled.

    Numbers become text as they are written in a state's id: 0.25, 1.
    """
    if column == "budget":
        return _codes(_numbers(name, frame, column), "{:g}".format)
    if column in ("seed", "call"):
        return _codes(_integers(name, frame, column))
    empty = frame[column].isna().to_numpy()
    if empty.any():
        raise BadSource(f"{name} {_first(frame, empty)} has no {column}; every row says which unit it is")
    return _codes(frame[column])


def _codes(
    column: pd.Series[Any] | NDArray[Any], write: Callable[[Any], str] = str
) -> tuple[Positions, list[str]]:
    """Values as positions among their sorted texts. Two values of one text are one label."""
    codes, values = pd.factorize(column)
    texts = [write(value) for value in np.asarray(values)]
    labels = sorted(set(texts))
    rank = {label: at for at, label in enumerate(labels)}
    return np.array([rank[text] for text in texts], dtype=np.intp)[codes], labels


def _numbers(name: str, frame: pd.DataFrame, column: str, *, may_be_empty: bool = False) -> Array:
    """A column as finite numbers; NaN for an empty value where those are allowed."""
    values: Array = pd.to_numeric(frame[column], errors="coerce").to_numpy(dtype=float, na_value=np.nan)
    bad = ~np.isfinite(values)
    if may_be_empty:
        bad &= frame[column].notna().to_numpy()
    if bad.any():
        seen = _show(frame[column].iloc[int(np.argmax(bad))])
        raise BadSource(f"{name} {_first(frame, bad)} has {column} {seen} where a finite number is needed")
    return values


def _integers(name: str, frame: pd.DataFrame, column: str) -> NDArray[np.int64]:
    values = _numbers(name, frame, column)
    bad = values != np.round(values)
    if bad.any():
        seen = _show(frame[column].iloc[int(np.argmax(bad))])
        raise BadSource(f"{name} {_first(frame, bad)} has {column} {seen} where a whole number is needed")
    return values.astype(np.int64)


def _first(frame: pd.DataFrame, bad: NDArray[np.bool_]) -> str:
    """The first bad row by its own index label, and how many more there are."""
    more = f" (and {int(bad.sum()) - 1} more)" if bad.sum() > 1 else ""
    return f"row {_show(frame.index[int(np.argmax(bad))])}{more}"


def _show(value: object) -> str:
    """A cell as it would be typed: 82 rather than np.int64(82)."""
    return repr(value.item() if isinstance(value, np.generic) else value)


def _among(name: str, frame: pd.DataFrame, column: str, known: list[str]) -> tuple[Positions, list[str]]:
    """Each row's position among the known labels, and those of them that occur, in their order."""
    code, labels = _labels(name, frame, column)
    strange = sorted(set(labels) - set(known))
    if strange:
        raise BadSource(f"{name} has {column} {strange[0]}; it is one of {', '.join(known)}")
    found = [label for label in known if label in labels]
    return np.array([known.index(label) for label in labels], dtype=np.intp)[code], found


def _target(name: str, frame: pd.DataFrame, targets: list[str]) -> Positions:
    """Each row's position among the targets; where there is one the frame need not name it."""
    if len(targets) == 1:
        return np.zeros(len(frame), dtype=np.intp)
    return _among(name, frame, "target", targets)[0]


def _by_state(frame: pd.DataFrame, layout: Layout, state: Positions, states: list[str]) -> pd.DataFrame:
    """One row per state, in order: its design, its path and what `loss_table` wants of it."""
    first = np.empty(len(states), dtype=np.intp)  # the first row of each state
    first[state[::-1]] = np.arange(len(state))[::-1]
    codes, names = {}, {}
    for column in layout.columns:
        code, labels = _labels("forecasts", frame, column)
        codes[column], names[column] = code, np.array(labels, dtype=object)
    torn = np.any([code != code[first][state] for code in codes.values()], axis=0)
    if torn.any():
        at = int(np.argmax(torn))
        places = ("/".join(names[c][codes[c][row]] for c in codes) for row in (first[state[at]], at))
        raise Unpaired(
            f"state {states[state[at]]} is said to be at {' and at '.join(places)} "
            f"({'/'.join(codes)}); one state has one place in the design"
        )
    crossed = {column: codes[column][first] for column in layout.crossed}
    _crossed(crossed, {column: names[column] for column in crossed})
    design = {column: names[column][codes[column][first]] for column in layout.columns}
    paths = [layout.path(*place) for place in zip(*design.values(), strict=True)]
    return pd.DataFrame(
        {
            "state_id": states,
            "task": design["task"],
            "budget": _numbers("forecasts", frame, "budget")[first] if "budget" in design else np.nan,
            "seed": design["seed"].astype(np.int64),
            "cluster": ["/".join(path) for path in paths],
            "path": paths,
        }
    )


def _crossed(codes: Mapping[str, Positions], names: Mapping[str, NDArray[np.object_]]) -> None:
    """Raise Unpaired, naming a place, unless there is one state at every combination of labels."""
    shape = tuple(len(labels) for labels in names.values())
    flat, times = np.unique(np.ravel_multi_index(tuple(codes.values()), shape), return_counts=True)

    def place(at: int) -> str:
        labels = (names[column][k] for column, k in zip(names, np.unravel_index(at, shape), strict=True))
        return ", ".join(f"{column} {label}" for column, label in zip(names, labels, strict=True))

    if times.max() > 1:
        at = int(np.argmax(times))
        raise Unpaired(f"{times[at]} states are at {place(int(flat[at]))}; number them by seed")
    if len(flat) < prod(shape):
        gaps = np.flatnonzero(flat != np.arange(len(flat)))
        at = int(gaps[0]) if gaps.size else len(flat)
        raise Unpaired(
            f"no state at {place(at)} ({prod(shape) - len(flat)} such gaps); every task is "
            f"studied at every {' and '.join(list(names)[1:])}: add the state, "
            "with an empty outcome if it has none"
        )


def _place(axes: Sequence[Sequence[str]], codes: Sequence[Positions]) -> Positions:
    """Which row answers which unit, (state, context, call, target).

    Raises Unpaired for a unit without a row or with two.
    """
    shape = tuple(map(len, axes))
    words = "state/context/call" if shape[3] == 1 else "state/context/call/target"
    flat = np.ravel_multi_index(tuple(codes), shape)
    times = np.bincount(flat, minlength=prod(shape))

    def unit(at: int) -> str:
        labels = [axis[int(k)] for axis, k in zip(axes, np.unravel_index(at, shape), strict=True)]
        return "/".join(labels[: words.count("/") + 1])

    if times.max() > 1:
        at = int(np.argmax(times))
        raise Unpaired(
            f"forecasts answers {unit(at)} ({words}) {times[at]} times; "
            "the first answer stands, remove the others"
        )
    if times.min() == 0:
        raise Unpaired(
            f"forecasts has no row for {unit(int(np.argmin(times)))} ({words}; "
            f"{int((times == 0).sum())} missing); an unanswered unit gets the fallback, with is_fallback "
            "true, for dropping it would unpair the contexts"
        )
    place = np.empty(prod(shape), dtype=np.intp)
    place[flat] = np.arange(len(flat))
    return place.reshape(shape)


def _fallbacks(forecasts: pd.DataFrame) -> NDArray[np.bool_]:
    """The optional column is_fallback; without it every forecast was read from a reply."""
    if "is_fallback" not in forecasts.columns:
        return np.zeros(len(forecasts), dtype=bool)
    strange = ~forecasts["is_fallback"].isin([True, False]).to_numpy(dtype=bool)
    if strange.any():
        raise BadSource(
            f"forecasts {_first(forecasts, strange)} has is_fallback that is neither true nor false"
        )
    return forecasts["is_fallback"].to_numpy(dtype=bool)


def _values(outcomes: pd.DataFrame, states: list[str], targets: list[str]) -> Array:
    """Outcomes (state, target) in the panels' order, NaN where the row's value is empty."""
    code, names = _labels("outcomes", outcomes, "state")
    value = _numbers("outcomes", outcomes, "value", may_be_empty=True)
    target = _target("outcomes", outcomes, targets)
    each = " of each target" if len(targets) > 1 else ""
    times = np.bincount(code * len(targets) + target, minlength=len(names) * len(targets))
    if times.max() > 1:
        at = int(np.argmax(times))
        raise Unpaired(
            f"outcomes has {times[at]} rows for state {names[at // len(targets)]}; "
            f"a state has one executed outcome{each}"
        )
    filled = set(np.array(names, dtype=object)[times.reshape(-1, len(targets)).all(axis=1)])
    absent = [state for state in states if state not in filled]
    extra = sorted(set(names) - set(states))
    if absent:
        raise Unpaired(
            f"outcomes has no row for state {absent[0]} ({len(absent)} such states){each}; "
            "an undefined outcome keeps its row, with an empty value"
        )
    if extra:
        raise Unpaired(
            f"outcomes has state {extra[0]}, which forecasts does not ({len(extra)} such states); "
            "states are not dropped: add their forecasts, or remove them from both frames on purpose"
        )
    found = np.empty((len(names), len(targets)))  # names and states are sorted alike
    found[code, target] = value
    return found
