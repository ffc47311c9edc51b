"""A sheet's cells as typed rows and outcomes, under the columns that a study declares.

Generous in what is understood (white space, integers as names, a numeral written as text, another
separator), strict in what is accepted: nothing is guessed, filled or dropped. Every error names the
file, the row as its reader counts it, the column, the reason and the remedy.
"""

from __future__ import annotations

import difflib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from predictive_credit.errors import BadSource
from predictive_credit.records import Context
from predictive_credit.studies.table.config import TableConfig, TableTarget
from predictive_credit.studies.table.sheets import Record, Sheet, Trouble, is_blank, refuse

T = TypeVar("T")

LONGEST_NAME: Final = 100
NEAR: Final = 0.8  # of difflib's ratio: a misspelled column, not one that shares a word
_NUMERAL: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_UNDEFINED: Final = re.compile(r"(?:undefined|n/?a)\s*:\s*(?P<reason>.*)", re.IGNORECASE | re.DOTALL)
_NO_VALUE: Final = frozenset(
    {"undefined", "na", "n/a", "nan", "none", "null", "nil", "-", "--", "–", "?", ".", "missing", "inf",
     "-inf", "+inf", "infinity", "-infinity", "#n/a", "#div/0!", "#value!"}
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """The public side of one state as its file gives it."""

    where: str
    id: str
    cluster: tuple[str, ...]  # a key for each declared level, outermost first
    description: str
    intervention: str
    explanation: str
    donor: str | None  # another row's id, where the file names the donors


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnInRow:
    """What a burn-in file gives of one state: where it belongs and which intervention it had."""

    where: str
    id: str
    task: str
    intervention: str
    description: str | None  # None: the file says none


class Known(NamedTuple):
    """An outcome that is there: a number in the target's unit, or None with the reason."""

    value: float | None
    reason: str | None


Outcomes = Mapping[tuple[str, str], Known]  # by id and target; a pending outcome is absent


class Refused(ValueError):
    """A cell that is not what its column asks for."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason, self.remedy = reason, remedy


def rows(sheet: Sheet, config: TableConfig) -> tuple[Row, ...]:
    """The states of a sheet, sorted by id; outcome columns are not looked at.

    Raises BadSource for a missing column, a cell that is empty or not what it should be, an id that
    stands twice, and a donor that cannot be found under the declared policy.
    """
    columns = [config.id, *config.cluster, config.description, config.intervention, config.explanation]
    columns += [config.given_donor] if config.given_donor else []
    _check_columns(sheet, columns)
    found = _each(sheet, lambda record, troubles: _row(record, config, troubles))
    check_repeated(sheet.name, config.id, [(row.id, row.where) for row in found])
    if Context.DONOR in config.contexts:
        _check_donors(sheet.name, found, config)
    return tuple(sorted(found, key=lambda row: row.id))


def outcomes(sheet: Sheet, config: TableConfig, ids: Collection[str]) -> dict[tuple[str, str], Known]:
    """The outcomes of a sheet of its own, which holds the id column and one target's or more.

    An empty cell is pending and absent from the result. Raises BadSource for an id that is not
    among `ids` or stands twice, and for a cell that is no number in its target's range.
    """
    _check_columns(sheet, [config.id])
    _check_targets(sheet, config, needed=True)
    found = _each(sheet, lambda record, troubles: _outcome_row(record, config, troubles))
    named = [(key, where) for key, where, _ in found]
    check_repeated(sheet.name, config.id, named)
    remedy = "correct or remove the row"
    refuse(sheet.name, [
        Trouble(where, config.id, f"no state is called {key!r}{did_you_mean(key, ids)}", remedy)
        for key, where in named if key not in ids
    ])  # fmt: skip
    return {(key, target): known for key, _, cells in found for target, known in cells.items()}


def known(states: Sheet, apart: Sheet | None, config: TableConfig) -> dict[tuple[str, str], Known]:
    """All outcomes there are: those beside the states and those of a sheet apart.

    An outcome may stand in both if it says the same twice. Raises BadSource as `outcomes` does, and
    for two that differ.
    """
    _check_columns(states, [config.id])
    _check_targets(states, config, needed=False)
    found = _each(states, lambda record, troubles: _outcome_row(record, config, troubles))
    beside = {(key, target): value for key, _, cells in found for target, value in cells.items()}
    ids = {key for key, _, _ in found}
    return beside if apart is None else united(beside, outcomes(apart, config, ids), apart.name, states.name)


def united(before: Outcomes, later: Outcomes, file: str, other: str) -> dict[tuple[str, str], Known]:
    """Both together. Raises BadSource where `file` says another outcome than `other` did."""
    changed = [key for key, value in later.items() if key in before and before[key] != value]
    if changed:
        (state, target), more = changed[0], len(changed) - 1
        raise BadSource(
            f"{file}: state {state!r}, target {target!r} has another outcome than in {other}"
            f"{f' (and {more} more)' if more else ''}; an outcome is given once, so keep one of the two"
        )
    return {**before, **later}


def burn_in(
    sheet: Sheet, config: TableConfig, states: Sequence[Row]
) -> tuple[tuple[BurnInRow, ...], dict[tuple[str, str], Known]]:
    """The rows of a burn-in file, sorted by id, and their outcomes.

    It needs the columns of id, outermost cluster, intervention and every target. Raises BadSource
    for a row that tells of the study's own `states`, by its id, its outermost cluster or its
    description and intervention, and for a target without a single number.
    """
    columns = [config.id, config.cluster[0], config.intervention, *(t.column for t in config.targets)]
    _check_columns(sheet, columns)
    found = _each(sheet, lambda record, troubles: _burn_in_row(record, config, troubles))
    check_repeated(sheet.name, config.id, [(row.id, row.where) for row in found])
    _check_unused(sheet.name, found, states, config)
    values = outcomes(sheet, config, {row.id for row in found})
    for target in config.targets:
        if not any(known.value is not None for (_, of), known in values.items() if of == target.name):
            raise BadSource(
                f"{sheet.name} column {target.column!r} holds no number; fill it, or leave the file out"
            )
    return tuple(sorted(found, key=lambda row: row.id)), values


def counts(found: Sequence[Row], values: Outcomes, config: TableConfig) -> dict[str, Any]:
    """What a user's table holds, as plain JSON values: rows, clusters, words, outcomes, policy."""
    levels = {
        column: len({row.cluster[: depth + 1] for row in found})
        for depth, column in enumerate(config.cluster)
    }
    return {
        "rows": len(found),
        "clusters": levels,
        "interventions": len({row.intervention for row in found}),
        "explanations": len(found),  # a state without one is refused
        "mean_words": round(sum(len(row.explanation.split()) for row in found) / len(found), 1),
        "outcomes": {t.name: _outcome_counts(found, values, t.name) for t in config.targets},
        "donor": config.donor,
    }


def _outcome_counts(found: Sequence[Row], values: Outcomes, target: str) -> dict[str, int]:
    given = [values[row.id, target] for row in found if (row.id, target) in values]
    undefined = sum(known.value is None for known in given)
    return {"known": len(given) - undefined, "undefined": undefined, "pending": len(found) - len(given)}


def _each(sheet: Sheet, make: Callable[[Record, list[Trouble]], T]) -> list[T]:
    """What `make` reads from every row; raises BadSource with the first of all its troubles."""
    troubles: list[Trouble] = []
    found = [make(record, troubles) for record in sheet.records]
    refuse(sheet.name, troubles)
    return found


def _row(record: Record, config: TableConfig, troubles: list[Trouble]) -> Row:
    """A row; of a cell that cannot be read only the trouble is kept, and the row is never used."""
    where = record.where

    def cell(column: str, read: Callable[[Any], str]) -> str:
        return read_cell(record, column, read, troubles) or ""

    return Row(
        where=where,
        id=cell(config.id, name),
        cluster=tuple(cell(column, name) for column in config.cluster),
        description=cell(config.description, text),
        intervention=cell(config.intervention, text),
        explanation=cell(config.explanation, explanation),
        donor=cell(config.given_donor, donor) if config.given_donor else None,
    )


def _burn_in_row(record: Record, config: TableConfig, troubles: list[Trouble]) -> BurnInRow:
    return BurnInRow(
        where=record.where,
        id=read_cell(record, config.id, name, troubles) or "",
        task=read_cell(record, config.cluster[0], name, troubles) or "",
        intervention=read_cell(record, config.intervention, text, troubles) or "",
        description=None
        if is_blank(record.cells.get(config.description))
        else read_cell(record, config.description, text, troubles),
    )


def _outcome_row(
    record: Record, config: TableConfig, troubles: list[Trouble]
) -> tuple[str, str, dict[str, Known]]:
    """Id, where it stands, and the outcomes of a row by target; empty cells are pending and left out."""
    cells = {
        target.name: read_cell(record, target.column, partial(outcome, target=target), troubles)
        for target in config.targets
        if not is_blank(record.cells.get(target.column))
    }
    found = {target: value for target, value in cells.items() if value is not None}
    return read_cell(record, config.id, name, troubles) or "", record.where, found


def read_cell(record: Record, column: str, read: Callable[[Any], T], troubles: list[Trouble]) -> T | None:
    """What `read` makes of a cell; None with one more trouble where it refuses it."""
    try:
        return read(record.cells.get(column))
    except Refused as refused:
        troubles.append(Trouble(record.where, column, refused.reason, refused.remedy))
        return None


def text(cell: Any) -> str:
    """A cell's words, without white space around them; a whole number reads as its digits."""
    if is_blank(cell):
        raise Refused("the cell is empty", "fill it, or leave the row out")
    if isinstance(cell, dict | list):
        raise Refused("the value is nested", "write plain text or a number")
    if isinstance(cell, bool):
        return str(cell).lower()
    # A column of integers with one gap comes out of many tools as floats.
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def name(cell: Any) -> str:
    """An id or a cluster key: it becomes a part of paths and a key in files."""
    found = text(cell)
    strange = next(
        (c for c in found if c in "/\\" or (unicodedata.category(c)[0] in "CZ" and c != " ")), None
    )
    if strange is not None:
        raise Refused(
            f"{_shown(found)} holds {strange!r}, which breaks a path",
            "use letters, digits, spaces and visible signs other than slashes",
        )
    if found in {".", ".."}:
        raise Refused(f"{found!r} means a folder in a path", "give it a name")
    if len(found) > LONGEST_NAME:
        raise Refused(f"{_shown(found)} has {len(found)} characters", f"use {LONGEST_NAME} at most")
    return found


def explanation(cell: Any) -> str:
    """A state's explanation, which contexts M and S show."""
    if is_blank(cell):
        raise Refused(
            "the state has no explanation, and without one contexts M and S would show nothing",
            "write the explanation, or leave the row out",
        )
    return text(cell)


def donor(cell: Any) -> str:
    """The id of the state whose explanation is the donor's."""
    if is_blank(cell):
        raise Refused("the state has no donor id", "name another state, or choose another donor policy")
    return name(cell)


def outcome(cell: Any, *, target: TableTarget) -> Known:
    """A number in the target's range, or `undefined: reason`."""
    if isinstance(cell, str) and (said := _UNDEFINED.fullmatch(cell.strip())):
        if not said["reason"].strip():
            raise Refused("the outcome is undefined without a reason", "write `undefined: ` and the reason")
        return Known(None, said["reason"].strip())
    value = number(cell)
    if not target.lower <= value <= target.upper:
        raise Refused(
            f"{str(cell).strip()} is outside the declared range "
            f"[{target.lower:g}, {target.upper:g}] {target.unit}",
            f"correct the cell or the range of target {target.name}",
        )
    return Known(value, None)


def number(cell: Any) -> float:
    """A finite number, or its numeral as text with a decimal point; a typographic minus is understood."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        kind = "a truth value" if isinstance(cell, bool) else "nested"
        raise Refused(f"the value is {kind}, not a number", "write a number")
    plain = cell.strip().replace("\u2212", "-") if isinstance(cell, str) else cell
    if isinstance(plain, str) and not _NUMERAL.fullmatch(plain):
        raise _no_number(plain)
    try:
        value = float(plain)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        raise Refused(f"{_shown(str(cell))} is too large to be a finite number", "write a finite number")
    return value


def _no_number(seen: str) -> Refused:
    """Why a text is no numeral, as exactly as can be told."""
    if seen.lower() in _NO_VALUE:
        reason = f"{seen!r} is not a finite number"
        return Refused(
            reason, "leave the cell empty if the outcome is to come, or write `undefined: ` and why"
        )
    if re.fullmatch(r"[+-]?\d{1,3},\d{3}", seen):
        either = f"write {seen.replace(',', '.')} or {seen.replace(',', '')}"
        return Refused(f"{seen!r} has a comma, which may mean decimals or thousands", either)
    if re.fullmatch(r"[+-]?\d*,\d+", seen):
        return Refused(
            f"{seen!r} has a decimal comma", f"write {seen.replace(',', '.')} with a decimal point"
        )
    if re.fullmatch(r"[+-]?\d{1,3}([, _'\u00a0\u202f]\d{3})+(\.\d+)?", seen):
        return Refused(f"{seen!r} has thousands separators", "write the digits without them")
    if re.fullmatch(r"[+-]?[\d.,]+\s*[^\d\s.,].*", seen, re.DOTALL):
        return Refused(
            f"{_shown(seen)} has more than a number in it", "write the number alone, in the target's unit"
        )
    return Refused(
        f"{_shown(seen)} is text where a number is needed", "write a number, or leave the cell empty"
    )


def _check_columns(sheet: Sheet, needed: Iterable[str]) -> None:
    missing = [column for column in needed if column not in sheet.columns]
    if missing:
        near = did_you_mean(missing[0], sheet.columns)
        more = f" (nor {len(missing) - 1} more)" if len(missing) > 1 else ""
        raise BadSource(
            f"{sheet.name} has no column {missing[0]!r}{more}{near}; it holds {_listed(sheet.columns)}; "
            "rename the column, or name yours in conf/study"
        )


def _check_targets(sheet: Sheet, config: TableConfig, *, needed: bool) -> None:
    """Raise BadSource for a target's column that is misspelled, or for none at all where one is needed.

    A target without a column is pending throughout, so a misspelled one would never be missed.
    """
    absent = [target for target in config.targets if target.column not in sheet.columns]
    columns = [config.id, *config.cluster, config.description, config.intervention, config.explanation]
    taken = {*columns, config.donor_column, *(target.column for target in config.targets)}
    free = [column for column in sheet.columns if column not in taken]
    for target in absent:
        if difflib.get_close_matches(target.column.lower(), [c.lower() for c in free], cutoff=NEAR):
            raise BadSource(
                f"{sheet.name} has no column {target.column!r} of target {target.name}"
                f"{did_you_mean(target.column, free)}; rename the column, or name yours in conf/study"
            )
    if needed and len(absent) == len(config.targets):
        _check_columns(sheet, [target.column for target in absent])


def check_repeated(file: str, column: str, named: Sequence[tuple[str, str]], *, what: str = "state") -> None:
    """Raise BadSource where two rows have one name; named: each row's name and where it stands."""
    first: dict[str, str] = {}
    troubles = []
    for found, where in named:
        if found in first:
            reason = f"{found!r} stands already on {first[found]}"
            troubles.append(Trouble(where, column, reason, f"give each {what} one row and an id of its own"))
        first.setdefault(found, where)
    refuse(file, troubles)


def _check_unused(file: str, found: Sequence[BurnInRow], states: Sequence[Row], config: TableConfig) -> None:
    """Raise BadSource for a row of the burn-in that would tell of the study's own states."""
    ids, tasks = {row.id for row in states}, {row.cluster[0] for row in states}
    changes = {(row.description, row.intervention): row.id for row in states}
    remedy = "a burn-in holds states that the study never uses, so leave the row out"
    troubles = []
    for row in found:
        twin = changes.get((row.description or "", row.intervention))
        if row.id in ids:
            troubles.append(Trouble(row.where, config.id, f"{row.id!r} is a state of the study", remedy))
        elif twin is not None:
            reason = f"description and intervention are those of state {twin!r} of the study"
            troubles.append(Trouble(row.where, config.description, reason, remedy))
        elif row.task in tasks:
            reason = f"{row.task!r} is a cluster of the study, with which the row shares its task"
            troubles.append(Trouble(row.where, config.cluster[0], reason, remedy))
    refuse(file, troubles)


def _check_donors(file: str, found: Sequence[Row], config: TableConfig) -> None:
    """Raise BadSource where the declared policy finds no donor."""
    if config.donor == "column":
        ids = {row.id for row in found}
        refuse(file, [trouble for row in found if (trouble := _donor_trouble(row, ids, config.donor_column))])
    elif config.donor == "same_cluster":
        sizes = Counter(row.cluster for row in found)
        refuse(file, [
            Trouble(
                row.where, config.cluster[-1], f"{row.id!r} is alone in cluster "
                f"{'/'.join(row.cluster)!r}, so nobody there can lend it an explanation",
                "add a state to the cluster, or set donor to other_cluster",
            )
            for row in found if sizes[row.cluster] < 2
        ])  # fmt: skip
    elif len({row.cluster[0] for row in found}) < 2:
        raise BadSource(
            f"{file} column {config.cluster[0]!r} holds one cluster, {found[0].cluster[0]!r}, and donor: "
            "other_cluster borrows from another; add a cluster, or set donor to same_cluster"
        )


def _donor_trouble(row: Row, ids: Collection[str], column: str | None) -> Trouble | None:
    if row.donor == row.id:
        return Trouble(row.where, column, f"{row.id!r} is its own donor", "name another state")
    if row.donor not in ids:
        reason = f"no state is called {row.donor!r}{did_you_mean(str(row.donor), ids)}"
        return Trouble(row.where, column, reason, "name a state of this file")
    return None


def did_you_mean(wanted: str, there: Iterable[str]) -> str:
    """`, did you mean 'x'?` for the closest of the names there, or nothing."""
    by_lower = {name.lower(): name for name in sorted(there)}
    close = difflib.get_close_matches(wanted.lower(), by_lower, n=1, cutoff=0.6)
    return f" (did you mean {by_lower[close[0]]!r}?)" if close else ""


def _listed(columns: Sequence[str]) -> str:
    shown = ", ".join(map(repr, columns[:12]))
    return f"{shown} and {len(columns) - 12} more" if len(columns) > 12 else shown or "no named column"


def _shown(seen: str, length: int = 40) -> str:
    return repr(seen if len(seen) <= length else seen[:length] + "...")
