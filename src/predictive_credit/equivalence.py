"""Equivalence: an interval that lies inside a margin fixed beforehand."""

from __future__ import annotations


def inside_margin(lower: float, upper: float, *, margin: float) -> bool:
    """Whether [lower, upper] lies strictly inside (-margin, +margin), all in one unit.

    With a 90 % interval this is two one-sided tests at 5 %. Touching the margin is not inside.
    A wide interval around zero is not evidence of equivalence, and fails here as it should.
    Raises ValueError for a margin that is not positive, or for a reversed or undefined interval.

    Reference: Schuirmann (1987), J. Pharmacokinet. Biopharm. 15:657-680.
    """
    if not margin > 0.0:
        raise ValueError(f"an equivalence margin is positive; seen {margin}")
    if not lower <= upper:
        raise ValueError(f"no interval to hold against the margin: seen [{lower}, {upper}]")
    return -margin < lower and upper < margin
