from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.ledger import NEXT, Event, Phase, advance, append, check_chain

ORDER = (Phase.PLANNED, Phase.SEALED, Phase.FROZEN, Phase.OPENED, Phase.DECIDED)


def add(events: Sequence[Event], phase: Phase) -> tuple[Event, ...]:
    return append(
        events, phase, study="molecular", scale="quick", time_utc="2026-01-01T00:00:00+00:00",
        package_version="0", git_revision=None, digests={"a.json": str(len(events))},
    )  # fmt: skip


def whole() -> tuple[Event, ...]:
    events: tuple[Event, ...] = ()
    for phase in ORDER:
        events = add(events, phase)
    return events


def test_the_five_events_in_order_make_a_chain_that_holds():
    check_chain(whole())


@given(st.lists(st.sampled_from(ORDER), max_size=8))
def test_no_walk_reaches_opened_without_passing_frozen_and_none_goes_back(walk):
    now, seen = None, []
    for step in walk:
        try:
            now = advance(now, step)
        except OutOfOrder:
            continue
        seen.append(now)
    assert tuple(seen) == ORDER[: len(seen)]


def test_a_refused_step_names_the_only_one_allowed_and_leaves_the_ledger_alone():
    events = add((), Phase.PLANNED)
    with pytest.raises(OutOfOrder, match="from planned the only step is sealed"):
        add(events, Phase.OPENED)
    assert len(events) == 1


def test_a_decided_study_is_closed():
    assert NEXT[Phase.DECIDED] == frozenset()
    with pytest.raises(OutOfOrder, match="nothing; this study is closed"):
        add(whole(), Phase.FROZEN)


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize(
    "change", [{"time_utc": "later"}, {"digests": {}}, {"scale": "full"}, {"previous": "0"}, {"hash": "0"}]
)
def test_any_edited_event_is_noticed(index, change):
    events = list(whole())
    events[index] = replace(events[index], **change)
    with pytest.raises(Tampered, match=r"ledger event \d"):
        check_chain(events)


def test_a_removed_event_is_noticed():
    events = whole()
    for gone in range(4):
        with pytest.raises((Tampered, OutOfOrder)):
            check_chain(events[:gone] + events[gone + 1 :])
