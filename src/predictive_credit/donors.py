"""Frozen mappings from a state to the state whose explanation it is shown as a donor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from predictive_credit.errors import BadConfig
from predictive_credit.records import State


def seed_donors(states: Iterable[State]) -> dict[str, str]:
    """Each state's donor: the next seed, cyclically, of the same endpoint and label fraction.

    Returns donor ids by state id, sorted. Both seeds of a cell get the same intervention, so this
    is a weak placebo by design: in 27 of the paper's 36 pairs the two outcomes share their sign.
    Raises BadConfig for a cell with one seed, which has nobody to borrow from.
    """
    cells: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for state in states:
        if state.seed is None:
            raise ValueError(f"{state.id} has no seed, so there is no next one")
        cells[f"{state.study}/{state.cell}"].append((state.seed, state.id))
    donors: dict[str, str] = {}
    for cell, members in sorted(cells.items()):
        ordered = sorted(members)
        if len(ordered) < 2:
            raise BadConfig(
                f"{cell} has one seed ({ordered[0][0]}), so no other state can lend it an explanation; "
                "give the study two seeds or more, or leave context S out"
            )
        for (_, borrower), (_, donor) in zip(ordered, ordered[1:] + ordered[:1], strict=True):
            donors[borrower] = donor
    return dict(sorted(donors.items()))
