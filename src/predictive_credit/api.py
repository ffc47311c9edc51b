"""From two data frames to contrasts and a decision, in a few lines of a notebook.

    import predictive_credit as pc
    table = pc.contrast_table(forecasts, outcomes, seed=1)
    print(pc.decide(forecasts, outcomes, seed=1))

`forecasts` has one row per answered unit, with the columns state, task, budget, seed, context (D,
M, S or some of them), call (1 and 2, or 1 alone), point, lower, upper, and, if some replies could
not be read, is_fallback. `outcomes` has one row per state, with the columns state and value; an
undefined outcome keeps its row with an empty value. Neither frame is changed.

All three functions refuse, naming the row, rather than drop, fill or repair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictive_credit import panel as panels
from predictive_credit.config import Inference
from predictive_credit.decisions import Decision
from predictive_credit.errors import BadConfig, BadSource, Unpaired
from predictive_credit.panel import Panel
from predictive_credit.studies import STUDIES, evaluation
from predictive_credit.studies.study import Study

Array = NDArray[np.float64]
Bounds = tuple[float, float]
T = TypeVar("T")

DESIGN = ("task", "budget", "seed")
FORECAST_COLUMNS = ("state", *DESIGN, "context", "call", "point", "lower", "upper")
OUTCOME_COLUMNS = ("state", "value")


def loss_table(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, *, outcome_bounds: Bounds = (-1.0, 1.0)
) -> pd.DataFrame:
    """Losses of every forecast, one row per unit, sorted by unit id.

    Adds point_error, interval_score, width (in the outcome's unit), covered and direction_correct.
    Raises BadSource for columns or values that cannot be used, Unpaired for gaps and duplicates.
    """
    panel, design = _read(forecasts, outcomes, outcome_bounds)
    return evaluation.loss_table(panel, design)


def contrast_table(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, *,
    seed: int, draws: int = 10_000, level: float = 0.95,
    outcome_bounds: Bounds = (-1.0, 1.0), study: str = "molecular",
) -> pd.DataFrame:  # fmt: skip
    """Mean gains with their intervals, one row per measure and pair of contexts.

    A gain is the other context's loss minus the matched one's, in the outcome's unit; positive
    favours the matched explanation. `D-M` asks whether it helps beyond the description, `S-M`
    whether it helps more than a donor's. `covered` counts misses and `direction` wrong signs.

    seed names the random streams: the same seed gives the same digits, here and in a study.
    draws, level: of the hierarchical bootstrap over task, budget, seed, and its two-sided interval.
    outcome_bounds: what an outcome can be at all; the worst and best case are counted in them.
    Raises as `loss_table` does.
    """
    panel, _ = _read(forecasts, outcomes, outcome_bounds)
    declared, inference = _settings(study, draws, level, outcome_bounds)
    found = evaluation.all_contrasts(panel, declared, study, seed=seed, inference=inference)
    rows = []
    for measure, pairs in found.items():
        for pair, contrast in pairs.items():
            plain = asdict(contrast)
            complete = plain.pop("complete_case")
            role = "primary" if measure == declared.primary_loss else "exploratory"
            row = {"measure": measure, "pair": pair, "role": role, **plain}
            rows.append(row | {f"complete_case_{name}": value for name, value in complete.items()})
    return pd.DataFrame(rows)


def decide(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, *,
    seed: int, draws: int = 10_000, level: float = 0.95,
    outcome_bounds: Bounds = (-1.0, 1.0), study: str = "molecular",
) -> Decision:  # fmt: skip
    """Apply a study's frozen rule, gate by gate; `print` shows its working.

    Takes what `contrast_table` takes and rests on the same numbers. The thresholds are the rule's
    and cannot be set here. Whether the forecasts were frozen before the outcomes were opened is not
    known here, so the decision says so.
    """
    panel, _ = _read(forecasts, outcomes, outcome_bounds)
    declared, inference = _settings(study, draws, level, outcome_bounds)
    primary = evaluation.primary_contrasts(panel, declared, study, seed=seed, inference=inference)
    unfrozen = "The order of events was not checked: only a frozen study shows that forecasts came first."
    return replace(
        declared.decide(study, primary), limits=(*evaluation.notes(panel, declared, primary), unfrozen)
    )


def _settings(study: str, draws: int, level: float, bounds: Bounds) -> tuple[Study, Inference]:
    if study not in STUDIES:
        raise BadConfig(f"no study {study!r}; there are {', '.join(sorted(STUDIES))}")
    if draws < 1 or not 0.5 < level < 1.0:
        raise BadConfig(f"draws is at least 1 and level between 0.5 and 1; seen draws={draws}, level={level}")
    return replace(STUDIES[study], outcome_bounds=bounds), Inference(draws=draws, level=level)


def _read(forecasts: pd.DataFrame, outcomes: pd.DataFrame, bounds: Bounds) -> tuple[Panel, pd.DataFrame]:
    """The frames as a gap-free panel, and one row of design per state, in the panel's order."""
    _columns("forecasts", forecasts, FORECAST_COLUMNS)
    _columns("outcomes", outcomes, OUTCOME_COLUMNS)
    point, lower, upper = (_numbers("forecasts", forecasts, name) for name in ("point", "lower", "upper"))
    reversed_ = lower > upper
    if reversed_.any():
        raise BadSource(
            f"forecasts {_first(forecasts, reversed_)} has lower above upper; "
            "a forecast is never sorted or repaired: use the fallback, with is_fallback true"
        )
    call = _integers("forecasts", forecasts, "call")
    context = _names("forecasts", forecasts, "context")
    rows = pd.DataFrame(
        {
            "state_id": _names("forecasts", forecasts, "state"),
            "task": _names("forecasts", forecasts, "task"),
            "budget": _numbers("forecasts", forecasts, "budget"),
            "seed": _integers("forecasts", forecasts, "seed"),
        }
    )
    design = _design(rows)
    states = tuple(design["state_id"])
    contexts = _among("context", context, ("D", "M", "S"))
    calls = (1,) if set(call) == {1} else (1, 2)
    _among("call", call, (1, 2))
    keys = list(zip(rows["state_id"], context, call.tolist(), strict=True))
    place = _place(keys, states, contexts, calls)
    endpoints, cells = _cells(design)
    panel = Panel(
        states=states,
        contexts=contexts,
        calls=calls,
        endpoints=endpoints,
        cells=cells,
        point=point[place],
        lower=lower[place],
        upper=upper[place],
        is_fallback=_fallbacks(forecasts)[place],
        outcome=_values(outcomes, states),
        bounds=bounds,
    )
    return panel, design


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


def _names(name: str, frame: pd.DataFrame, column: str) -> list[str]:
    """A column as text, every row filled."""
    empty = frame[column].isna().to_numpy()
    if empty.any():
        raise BadSource(f"{name} {_first(frame, empty)} has no {column}; every row says which unit it is")
    return [str(value) for value in frame[column]]


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


def _among(column: str, values: Iterable[T], known: tuple[T, ...]) -> tuple[T, ...]:
    """The known values that occur, in their own order."""
    seen = set(values)
    strange = sorted(str(value) for value in seen - set(known))
    if strange:
        raise BadSource(
            f"forecasts has {column} {strange[0]}; it is one of {', '.join(map(str, known))} "
            "(D description, M matched and S donor's explanation, each called once or twice)"
        )
    return tuple(value for value in known if value in seen)


def _design(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per state, sorted by id. A state has one task, one budget and one seed."""
    design = rows.drop_duplicates().sort_values("state_id", kind="stable", ignore_index=True)
    torn = design["state_id"].duplicated()
    if torn.any():
        state = design.loc[torn, "state_id"].iloc[0]
        places = design.loc[design["state_id"] == state, list(DESIGN)].astype(str).agg("/".join, axis=1)
        raise Unpaired(
            f"state {state} is said to be at {' and at '.join(places)} (task/budget/seed); "
            "one state has one place in the design"
        )
    return design


def _place(
    keys: list[tuple[str, str, int]],
    states: tuple[str, ...],
    contexts: tuple[str, ...],
    calls: tuple[int, ...],
) -> NDArray[np.intp]:
    """Which row answers which unit. Raises Unpaired for a unit without a row or with two."""
    counted = Counter(keys)
    key, times = counted.most_common(1)[0]
    if times > 1:
        raise Unpaired(
            f"forecasts answers {'/'.join(map(str, key))} (state/context/call) {times} times; "
            "the first answer stands, remove the others"
        )
    gaps = [(s, c, k) for s in states for c in contexts for k in calls if (s, c, k) not in counted]
    if gaps:
        raise Unpaired(
            f"forecasts has no row for {'/'.join(map(str, gaps[0]))} (state/context/call; "
            f"{len(gaps)} missing); an unanswered unit gets the fallback, with is_fallback true, "
            "for dropping it would unpair the contexts"
        )
    return panels.order(keys, states, contexts, calls)


def _cells(design: pd.DataFrame) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Endpoints and the cube of states; every task at every budget and seed, once."""
    keys = list(design[list(DESIGN)].itertuples(index=False, name=None))
    (task, budget, seed), times = Counter(keys).most_common(1)[0]
    if times > 1:
        raise Unpaired(
            f"{times} states are at task {task}, budget {budget:g}, seed {seed}; number them by seed"
        )
    levels = [sorted(set(design[column])) for column in DESIGN]
    gaps = sorted(set(product(*levels)) - set(keys))
    if gaps:
        task, budget, seed = gaps[0]
        raise Unpaired(
            f"no state at task {task}, budget {budget:g}, seed {seed} ({len(gaps)} such gaps); every task is "
            "studied at every budget and seed: add the state, with an empty outcome if it has none"
        )
    return panels.cells(keys)


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


def _values(outcomes: pd.DataFrame, states: tuple[str, ...]) -> Array:
    """Outcomes in the order of the states, NaN where the row's value is empty."""
    names = _names("outcomes", outcomes, "state")
    values = dict(zip(names, _numbers("outcomes", outcomes, "value", may_be_empty=True), strict=True))
    if len(values) != len(names):
        name, times = Counter(names).most_common(1)[0]
        raise Unpaired(f"outcomes has {times} rows for state {name}; a state has one executed outcome")
    absent = [state for state in states if state not in values]
    extra = sorted(values.keys() - set(states))
    if absent:
        raise Unpaired(
            f"outcomes has no row for state {absent[0]} ({len(absent)} such states); "
            "an undefined outcome keeps its row, with an empty value"
        )
    if extra:
        raise Unpaired(
            f"outcomes has state {extra[0]}, which forecasts does not ({len(extra)} such states); "
            "states are not dropped: add their forecasts, or remove them from both frames on purpose"
        )
    return np.array([values[state] for state in states])
