"""A dirty table as numbers a model can train on, with everything that was done to it counted.

Strings that are numbers become numbers, categories become codes of a frozen schema, and what carries
nothing (empty, constant and identifier columns) or cannot be used (rows without a target, classes of a
few rows) is left out. Nothing here looks at how well anything predicts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictive_credit.errors import BadSource
from predictive_credit.streams import stream

Array = NDArray[np.float64]
Kind = Literal["classification", "regression"]

MISSING = frozenset({"", "?", "na", "n/a", "nan", "null", "<null>"})  # in lower case
BOOLEAN = {"false": 0.0, "true": 1.0}  # in lower case
NUMERIC_SHARE = 0.95  # of a column's non-missing strings that must be numbers
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?")  # 1,234.56
MOST_LEVELS = 50
KEPT_LEVELS = 49  # of a column with more than MOST_LEVELS
OTHER = "(other)"
FEWEST_OF_A_CLASS = 4  # rows; a smaller class cannot be split
REFUSED = re.compile(r"[\[\]{}\",:\s]")  # LightGBM refuses JSON's characters, and takes a space for "_"


class Finding(NamedTuple):
    """Something a reader of the table should know: which task and column, what sort, and the detail."""

    task: str
    column: str  # empty: the table as a whole
    finding: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Column:
    """One column as read: numbers (float64, NaN missing), or strings with None for missing.

    A `category` is nominal because its source says so, even if its strings look like numbers.
    """

    name: str
    values: NDArray[Any]
    form: Literal["number", "text", "category"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RawTask:
    """A table as read, its target among its columns."""

    name: str
    kind: Kind
    target: str
    drop: tuple[str, ...]
    columns: tuple[Column, ...]
    findings: tuple[Finding, ...] = ()  # of the reading


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Task:
    """A table ready for a model.

    x is float64 (row, feature): NaN is missing, and the features at the positions `categorical` hold
    codes of sorted levels. y is float64 (row,): codes of `classes`, or values. Models train on positions,
    never on `features`, which are the names as the table writes them.
    """

    name: str
    kind: Kind
    target: str
    x: Array
    categorical: tuple[int, ...]
    y: Array
    classes: tuple[str, ...]
    features: tuple[str, ...]
    counts: Mapping[str, int]
    sha256: str | None = None  # of the raw file, once it is filed


class _Feature(NamedTuple):
    """A column as numbers; `levels` is empty unless they are codes."""

    name: str
    values: Array
    levels: tuple[str, ...]


def clean(raw: RawTask, *, max_rows: int) -> tuple[Task, tuple[Finding, ...]]:
    """A raw table as a Task, and the findings of its cleaning.

    A table of more than `max_rows` rows with a target keeps a random subset of so many, the same on every
    run. Raises BadSource, naming the table, for a target that is absent, not numeric in a regression, or
    of one value or class, and for a table without features.
    """
    log = _Log(raw.name, raw.findings)
    target, columns = _split(raw, log)
    rows, y, classes = _rows(raw, target, log, max_rows)
    features = [f for column in columns if (f := _feature(column, column.values[rows], log)) is not None]
    if not features:
        raise BadSource(f"the table {raw.name} has no column left to predict from; list less in its drop")
    log.names(features)
    x = np.column_stack([feature.values for feature in features])
    repeated = len(x) - len({row.tobytes() for row in np.column_stack([x, y])})
    log.add("repeated_rows", f"{repeated} rows equal an earlier one in every column; they stay", n=repeated)
    categorical = tuple(i for i, feature in enumerate(features) if feature.levels)
    counts = {
        "rows_read": len(target.values), "rows": len(x), "features": len(features),
        "categorical": len(categorical), "missing_values": int(np.isnan(x).sum()),
    } | dict(log.counts)  # fmt: skip
    task = Task(
        name=raw.name, kind=raw.kind, target=raw.target, x=x, categorical=categorical, y=y, classes=classes,
        features=tuple(feature.name for feature in features), counts=counts,
    )  # fmt: skip
    return task, tuple(log.findings)


class _Log:
    """Findings, and how many of each sort."""

    def __init__(self, task: str, findings: Sequence[Finding]) -> None:
        self._task = task
        self.findings = list(findings)
        self.counts: Counter[str] = Counter(finding.finding for finding in findings)

    def add(self, finding: str, detail: str, *, column: str = "", n: int = 1) -> None:
        """Nothing happened if n is 0."""
        if n:
            self.findings.append(Finding(self._task, column, finding, detail))
            self.counts[finding] += n

    def names(self, features: Sequence[_Feature]) -> None:
        """Names with which LightGBM would refuse the table, or take two columns for one."""
        plain = Counter(REFUSED.sub("_", feature.name) for feature in features)
        for feature in features:
            if REFUSED.search(feature.name) or plain[REFUSED.sub("_", feature.name)] > 1:
                self.add("positional_names", "models train on its position", column=feature.name)


def _split(raw: RawTask, log: _Log) -> tuple[Column, list[Column]]:
    """The target, and the other columns under names that occur once."""
    names = [column.name for column in raw.columns]
    absent = [name for name in (raw.target, *raw.drop) if name not in names]
    if absent:
        what = "target" if absent[0] == raw.target else "drop"
        raise BadSource(
            f"the table {raw.name} has no column {absent[0]!r}, which its {what} names; it has {_some(names)}"
        )
    if names.count(raw.target) > 1:
        raise BadSource(
            f"the table {raw.name} has {names.count(raw.target)} columns called {raw.target!r}; rename"
        )
    target = raw.columns[names.index(raw.target)]
    taken, others = set(names), []
    seen: Counter[str] = Counter()
    for place, column in enumerate(raw.columns, start=1):
        if column.name == raw.target or column.name in raw.drop:
            continue
        seen[column.name] += 1
        name = column.name
        if not name.strip() or seen[name] > 1:
            name = _free(f"{name.strip() or 'column'}_{place}", taken)
            log.add("renamed_columns", f"{column.name!r} is empty or occurs before", column=name)
        others.append(Column(name=name, values=column.values, form=column.form))
    return target, others


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _rows(
    raw: RawTask, target: Column, log: _Log, max_rows: int
) -> tuple[NDArray[np.intp], Array, tuple[str, ...]]:
    """Positions of the rows that stay, with their y and, for classification, the classes."""
    if raw.kind == "regression":
        values = _target_values(raw, target, log)
        present = ~np.isnan(values)
    else:
        labels = _strings(target)
        present = labels != None  # noqa: E711  # element by element
    n_missing = int((~present).sum())
    log.add("missing_targets", f"{n_missing} rows are left out", column=raw.target, n=n_missing)
    rows = _sampled(raw.name, np.flatnonzero(present), log, max_rows)
    if raw.kind == "regression":
        if len(set(values[rows].tolist())) < 2:
            raise BadSource(
                f"the target {raw.target!r} of the table {raw.name} has {_one(rows)} value; name another"
            )
        return rows, values[rows], ()
    return _classified(raw, rows, labels, log)


def _target_values(raw: RawTask, target: Column, log: _Log) -> Array:
    values = target.values
    if target.form != "number":
        strings = _strings(target)
        values, unread = _parsed(strings)
        if unread and not _is_numeric(strings, unread):
            first = next(s for s in strings if s is not None and np.isnan(_number(s)))
            raise BadSource(
                f"the target {raw.target!r} of the table {raw.name} is not numeric (it holds {first!r}); "
                "make the table a classification, or name another target"
            )
        log.add("unread_numbers", f"{unread} strings among numbers", column=raw.target, n=unread)
    return _finite(raw.target, values, log)


def _sampled(name: str, rows: NDArray[np.intp], log: _Log, max_rows: int) -> NDArray[np.intp]:
    if len(rows) <= max_rows:
        return rows
    log.add("rows_not_sampled", f"a random {max_rows} of {len(rows)} rows stay", n=len(rows) - max_rows)
    return np.sort(stream(0, "tabular", name).permutation(rows)[:max_rows])


def _classified(
    raw: RawTask, rows: NDArray[np.intp], labels: NDArray[Any], log: _Log
) -> tuple[NDArray[np.intp], Array, tuple[str, ...]]:
    sizes = Counter(labels[rows].tolist())
    for label in sorted(label for label, size in sizes.items() if size < FEWEST_OF_A_CLASS):
        log.add("rare_classes", f"class {label!r} has {sizes[label]} rows, left out", column=raw.target)
        log.counts["rare_class_rows"] += sizes.pop(label)
    classes = tuple(sorted(sizes))
    if len(classes) < 2:
        raise BadSource(
            f"the target {raw.target!r} of the table {raw.name} has {_one(classes)} class with at least "
            f"{FEWEST_OF_A_CLASS} rows; name another"
        )
    codes = {label: code for code, label in enumerate(classes)}
    rows = rows[[label in codes for label in labels[rows]]]
    return rows, np.array([codes[label] for label in labels[rows]], dtype=np.float64), classes


def _one(found: Sequence[Any] | NDArray[Any]) -> str:
    return "one" if len(found) else "no"


def _feature(column: Column, values: NDArray[Any], log: _Log) -> _Feature | None:
    """A column's kept rows as numbers or codes; None if it carries nothing."""
    column = Column(name=column.name, values=values, form=column.form)
    if column.form == "number":
        return _informative(_Feature(column.name, _finite(column.name, values, log), ()), log)
    strings = _strings(column)
    present = [s for s in strings if s is not None]
    if column.form == "text" and present:
        if {s.lower() for s in present} <= BOOLEAN.keys():
            log.add("boolean_columns", "true and false are 1 and 0", column=column.name)
            numbers = np.array([np.nan if s is None else BOOLEAN[s.lower()] for s in strings])
            return _informative(_Feature(column.name, numbers, ()), log)
        numbers, unread = _parsed(strings)
        if _is_numeric(strings, unread):
            log.add(
                "unread_numbers", f"{unread} strings among numbers are missing", column=column.name, n=unread
            )
            return _informative(_Feature(column.name, _finite(column.name, numbers, log), ()), log)
    if len(present) > 1 and len(set(present)) == len(present):
        log.add("identifier_columns", f"{len(present)} strings, no two the same", column=column.name)
        return None
    return _informative(_coded(column.name, strings, log), log)


def _informative(feature: _Feature, log: _Log) -> _Feature | None:
    """None, with a finding, for a column that is empty or has one value everywhere."""
    missing = np.isnan(feature.values)
    if missing.all():
        log.add("empty_columns", "no value", column=feature.name)
        return None
    if not missing.any() and (feature.values == feature.values[0]).all():
        value = feature.levels[0] if feature.levels else f"{feature.values[0]:g}"
        log.add("constant_columns", f"always {value}", column=feature.name)
        return None
    return feature


def _coded(name: str, strings: NDArray[Any], log: _Log) -> _Feature:
    """Codes of sorted levels; of many levels the most frequent stay, ties in sorted order."""
    sizes = Counter(s for s in strings if s is not None)
    levels = tuple(sorted(sizes))
    if len(levels) > MOST_LEVELS:
        kept = sorted(sizes, key=lambda level: (-sizes[level], level))[:KEPT_LEVELS]
        n_other = sum(sizes.values()) - sum(sizes[level] for level in kept)
        log.add(
            "other_values", f"{len(levels) - KEPT_LEVELS} rare levels are {OTHER}", column=name, n=n_other
        )
        levels = (*sorted(kept), OTHER)
    codes = {level: float(code) for code, level in enumerate(levels)}
    other = codes.get(OTHER, np.nan)
    return _Feature(name, np.array([np.nan if s is None else codes.get(s, other) for s in strings]), levels)


def _finite(name: str, values: Array, log: _Log) -> Array:
    infinite = np.isinf(values)
    log.add("infinite_values", f"{infinite.sum()} are missing", column=name, n=int(infinite.sum()))
    return np.where(infinite, np.nan, values)


def _strings(column: Column) -> NDArray[Any]:
    """Stripped strings, None where missing; whole numbers without their point."""
    if column.form == "number":
        return _objects(
            [
                None if np.isnan(v) else f"{v:.0f}" if v == np.round(v) else repr(v)
                for v in column.values.tolist()
            ]
        )
    stripped = [None if value is None else str(value).strip() for value in column.values.tolist()]
    return _objects([None if s is None or s.lower() in MISSING else s for s in stripped])


def _objects(values: Sequence[str | None]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _parsed(strings: NDArray[Any]) -> tuple[Array, int]:
    """Strings as numbers, NaN for what is none; and how many non-missing strings are none."""
    values = np.array([np.nan if s is None else _number(s) for s in strings], dtype=np.float64)
    present = np.array([s is not None for s in strings], dtype=bool)
    return values, int((np.isnan(values) & present).sum())


def _number(text: str) -> float:
    """A number as tables write it, `1,234.5` and `12.3%` too; NaN for anything else.

    Python also reads 1_000, which no table means as a number. A percentage keeps its size: a tree does
    not mind a column's unit.
    """
    bare = text.removesuffix("%").rstrip()
    if THOUSANDS.fullmatch(bare):
        bare = bare.replace(",", "")
    try:
        return float(bare) if "_" not in bare else np.nan
    except ValueError:
        return np.nan


def _is_numeric(strings: NDArray[Any], unread: int) -> bool:
    present = sum(s is not None for s in strings)
    return present - unread >= NUMERIC_SHARE * present and present > unread
