"""Which numbers can be a forecast of a target at all, however they were elicited."""

from __future__ import annotations

from predictive_credit.records import Forecast, MalformedForecast, Target


def check_possible(read: Forecast, target: Target) -> None:
    """Raise MalformedForecast for a point out of the target's range, or an interval far out of it.

    An end of the interval may stick out by as much as the range is wide. Beyond that a number says
    nothing of the target, and one such score would outweigh all others.
    """
    possible = f"where [{target.lower:g}, {target.upper:g}] is possible"
    if not target.lower <= read.point <= target.upper:
        raise MalformedForecast(
            f"unit {read.unit_id}: {target.name} has a point of {read.point:g} {possible}"
        )
    width = target.upper - target.lower
    if read.lower < target.lower - width or read.upper > target.upper + width:
        interval = f"[{read.lower:g}, {read.upper:g}]"
        raise MalformedForecast(
            f"unit {read.unit_id}: {target.name} has the interval {interval} {possible}, too far out by more "
            f"than {width:g}"
        )


def shortened(text: str, length: int = 80) -> str:
    """The beginning of a text, for a message."""
    return text if len(text) <= length else text[:length] + "..."
