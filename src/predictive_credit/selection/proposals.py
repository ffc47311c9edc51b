"""A user's planned experiments: what each is, what it costs, and, if somebody made one, its forecast.

A proposal's situation and intervention are what a forecaster is shown of it; its explanation is shown
where the evidence allows. `task` names what several proposals share (an assay, a table): their
outcomes are then drawn together. Read as strictly as the states of a `table` study.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from predictive_credit.errors import BadSource
from predictive_credit.records import Context
from predictive_credit.studies.table import reading
from predictive_credit.studies.table.reading import Refused
from predictive_credit.studies.table.sheets import Record, Sheet, Trouble, is_blank, refuse

NEEDED: Final = ("id", "situation", "intervention", "cost")
MADE: Final = ("point", "lower", "upper", "forecaster", "context")
COLUMNS: Final = (*NEEDED, "task", "explanation", *MADE)
LEAST_COST: Final = 1e-9
LARGEST_COST: Final = 1e12  # beyond either a gain per cost, or a sum of costs, may be no number
MOST: Final = 2_000  # every one is drawn thousands of times, together with all others


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A forecast that the file brings: ensemble point in the target's unit, and whose.

    lower, upper: its 80 % interval, if it has one. It is not used: errors come from the evidence.
    """

    point: float
    lower: float | None
    upper: float | None
    forecaster: str
    context: Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One planned experiment. `cost` is above 0, in whatever unit the user counts."""

    where: str  # as its reader calls the row: `line 4`
    id: str
    task: str | None
    situation: str
    intervention: str
    explanation: str | None
    cost: float
    made: Made | None


def read(sheet: Sheet) -> tuple[Proposal, ...]:
    """The proposals of a sheet, sorted by id.

    Raises BadSource for a column that is missing or that nothing reads, a cell that is not what its
    column asks, an id or an experiment that stands twice, more than MOST rows, and forecasts that some
    rows bring and others do not, or that are of several forecasters.
    """
    _check_columns(sheet)
    troubles: list[Trouble] = []
    found = [_proposal(record, troubles) for record in sheet.records]
    refuse(sheet.name, troubles)
    reading.check_repeated(sheet.name, "id", [(one.id, one.where) for one in found], what="proposal")
    _check_twins(sheet.name, found)
    _check_made(sheet.name, found)
    if len(found) > MOST:
        raise BadSource(f"{sheet.name} holds {len(found):,} proposals; give {MOST:,} at most")
    return tuple(sorted(found, key=lambda one: one.id))


def _check_columns(sheet: Sheet) -> None:
    there = ", ".join(map(repr, sheet.columns))
    for name in (name for name in sheet.columns if name not in COLUMNS):
        raise BadSource(
            f"{sheet.name} has a column {name!r} that nothing reads{reading.did_you_mean(name, COLUMNS)}; "
            f"rename or remove it: there are {', '.join(COLUMNS)}"
        )
    for name in (name for name in NEEDED if name not in sheet.columns):
        raise BadSource(f"{sheet.name} has no column {name!r}; it holds {there}; add it")


def _proposal(record: Record, troubles: list[Trouble]) -> Proposal:
    """A row; of a cell that cannot be read only the trouble is kept, and the row is never used."""

    def words(column: str) -> str:
        return reading.read_cell(record, column, reading.text, troubles) or ""

    def optional(column: str) -> str | None:
        return None if is_blank(record.cells.get(column)) else words(column)

    task = record.cells.get("task")
    return Proposal(
        where=record.where,
        id=reading.read_cell(record, "id", reading.name, troubles) or "",
        task=None if is_blank(task) else reading.read_cell(record, "task", reading.name, troubles),
        situation=words("situation"),
        intervention=words("intervention"),
        explanation=optional("explanation"),
        cost=reading.read_cell(record, "cost", cost, troubles) or math.nan,
        made=_made(record, troubles),
    )


def cost(cell: Any) -> float:
    """A number from LEAST_COST to LARGEST_COST: a gain per cost of nothing says nothing."""
    value = number(cell)
    if value <= 0.0:
        raise Refused(f"the cost is {value:g}, and gain per cost needs one above 0", "give what it costs")
    if not LEAST_COST <= value <= LARGEST_COST:
        raise Refused(
            f"the cost is {value:g}, outside [{LEAST_COST:g}, {LARGEST_COST:g}]", "count it in another unit"
        )
    return value


def number(cell: Any) -> float:
    """A finite number. Raises Refused."""
    if is_blank(cell):
        raise Refused("the cell is empty", "write a number")
    try:
        return reading.number(cell)
    except Refused as refused:
        raise Refused(refused.reason, "write a plain number") from None


def context(cell: Any) -> Context:
    """The letter of a context. Raises Refused."""
    said = reading.text(cell)
    if said not in (Context.DESCRIPTION, Context.MATCHED):
        raise Refused(
            f"{said!r} is no context a proposal can be forecast in",
            "write D where the forecaster saw the situation alone, M where it saw the explanation too",
        )
    return Context(said)


def _made(record: Record, troubles: list[Trouble]) -> Made | None:
    """The forecast a row brings, None if all its cells are empty."""
    if all(is_blank(record.cells.get(column)) for column in MADE):
        return None
    found = len(troubles)
    point = reading.read_cell(record, "point", number, troubles)
    lower, upper = (
        None if is_blank(record.cells.get(end)) else reading.read_cell(record, end, number, troubles)
        for end in ("lower", "upper")
    )
    whose = reading.read_cell(record, "forecaster", reading.text, troubles)
    shown = reading.read_cell(record, "context", context, troubles)
    if len(troubles) > found or point is None or not whose or not shown:
        return None
    if lower is not None and upper is not None and lower > upper:
        reason = f"the interval is reversed, {lower:g} > {upper:g}"
        troubles.append(Trouble(record.where, "lower", reason, "a forecast is never repaired: correct it"))
    return Made(point=point, lower=lower, upper=upper, forecaster=whose, context=shown)


def _check_twins(file: str, found: Sequence[Proposal]) -> None:
    """Raise BadSource where two ids are one experiment, which would be bought twice."""
    first: dict[tuple[str | None, str, str], str] = {}
    troubles = []
    for one in found:
        key = (one.task, one.situation, one.intervention)
        if key in first:
            reason = f"task, situation and intervention are those of {first[key]!r}"
            troubles.append(Trouble(one.where, "intervention", reason, "propose an experiment once"))
        first.setdefault(key, one.id)
    refuse(file, troubles)


def _check_made(file: str, found: Sequence[Proposal]) -> None:
    """Raise BadSource unless all rows bring a forecast of one forecaster, or none does."""
    made = [one for one in found if one.made is not None]
    if not made:
        return
    remedy = "give every proposal its forecast, or none and the evidence's forecaster is asked"
    refuse(file, [Trouble(one.where, "point", "the row brings no forecast and others do", remedy)
                  for one in found if one.made is None])  # fmt: skip
    whose = {one.made.forecaster: one for one in reversed(made) if one.made is not None}
    if len(whose) > 1:
        names = ", ".join(sorted(whose))
        raise BadSource(
            f"{file} column 'forecaster' names {names}, and the errors of one say nothing of the other; "
            "rank their proposals apart"
        )
