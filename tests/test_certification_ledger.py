"""The action ledger keeps what was committed, notices what was changed, and lets nobody draw twice."""

import errno
import json
import os
import re
from pathlib import Path

import pytest

from predictive_credit.certification import ledger as ledgers
from predictive_credit.certification.ledger import Ledger, check_chain, draw, first_arm, read
from predictive_credit.errors import OutOfOrder, Tampered


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "ledger.jsonl"


def filled(path: Path, count: int = 3) -> None:
    with Ledger(path, clock=lambda: "2026-01-01T00:00:00+00:00") as ledger:
        for k in range(count):
            ledger.append("turn_started", {"episode": f"e{k % 2}", "turn": k})


def test_events_are_chained_from_genesis_and_read_back(path: Path) -> None:
    filled(path)
    events = read(path)
    assert [e.event_index for e in events] == [0, 1, 2]
    assert events[0].previous_event_hash == "genesis"
    assert [e.previous_event_hash for e in events[1:]] == [e.event_hash for e in events[:-1]]
    check_chain(events)


def test_a_reopened_ledger_goes_on_where_it_stopped(path: Path) -> None:
    filled(path, 2)
    filled(path, 2)
    assert [e.event_index for e in read(path)] == [0, 1, 2, 3]
    with Ledger(path) as ledger:
        assert [e.payload["turn"] for e in ledger.of("e1")] == [1, 1]


@pytest.mark.parametrize("damage", ["changed", "removed", "swapped", "no event"])
def test_a_changed_file_is_tampered(path: Path, damage: str) -> None:
    filled(path)
    lines = path.read_text().splitlines()
    changed = {
        "changed": [lines[0].replace('"turn":0', '"turn":7'), *lines[1:]],
        "removed": [lines[0], lines[2]],
        "swapped": [lines[1], lines[0], lines[2]],
        "no event": [*lines, '{"event_index": 3}'],
    }
    path.write_text("".join(f"{line}\n" for line in changed[damage]))
    with pytest.raises(Tampered):
        Ledger(path)


def test_a_rehashed_event_breaks_the_link_after_it(path: Path) -> None:
    filled(path)
    lines = path.read_text().splitlines()
    event = json.loads(lines[1]) | {"payload": {"episode": "e1", "turn": 9}}
    event["event_hash"] = ledgers.event_hash(event)
    path.write_text("\n".join([lines[0], json.dumps(event), lines[2], ""]))
    with pytest.raises(Tampered, match="event 2"):
        read(path)


def test_a_half_written_last_line_is_cut_off(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event_index":3,"event_ty')
    with Ledger(path) as ledger:
        assert len(ledger.events) == 3
        ledger.check()
    assert path.read_bytes() == whole


@pytest.mark.parametrize("taken", [None, 7], ids=["none", "a part"])
def test_a_full_disk_takes_all_of_an_event_or_nothing_and_names_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, taken: int | None
) -> None:
    with Ledger(path) as ledger:
        ledger.append("one", {})
        before, write = path.read_bytes(), os.write

        def full(descriptor: int, data: bytes) -> int:
            if taken is None:
                raise OSError(errno.ENOSPC, "No space left on device")
            return write(descriptor, data[:taken])

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(OSError, match=re.escape(str(path))) as raised:
                ledger.append("two", {})
        assert raised.value.errno == errno.ENOSPC
        assert path.read_bytes() == before
        ledger.append("two", {})
    assert [event.event_type for event in read(path)] == ["one", "two"]


def test_a_ledger_has_one_writer(path: Path) -> None:
    with Ledger(path), pytest.raises(OutOfOrder, match="another process"):
        Ledger(path)


def test_a_file_changed_while_the_run_goes_on_is_noticed(path: Path) -> None:
    with Ledger(path) as ledger:
        ledger.append("turn_started", {"episode": "e"})
        path.write_bytes(b"")
        with pytest.raises(Tampered):
            ledger.check()


def test_what_is_said_once_cannot_be_said_otherwise(path: Path) -> None:
    with Ledger(path) as ledger:
        first = ledger.once("registration_frozen", {"hash": "a"})
        assert ledger.once("registration_frozen", {"hash": "a"}) is first
        with pytest.raises(OutOfOrder, match="another registration_frozen"):
            ledger.once("registration_frozen", {"hash": "b"})


def test_a_draw_is_the_hmac_of_its_label() -> None:
    # RFC 4231, test case 2
    assert draw(b"Jefe", "what do ya want for nothing?") == (
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )
    assert draw(b"Jefe", "a") != draw(b"Jefe", "b") != draw(b"another", "b")


def test_the_last_bit_of_a_draw_orders_a_pair() -> None:
    arms = ("truthful", "neutral")
    assert first_arm("ab0", arms) == first_arm("ab8", arms) == arms
    assert first_arm("ab1", arms) == first_arm("abf", arms) == ("neutral", "truthful")


def test_a_pause_lies_outside_the_chain_and_can_be_struck_unseen(path: Path) -> None:
    filled(path)
    with Ledger(path) as ledger:
        ledger.pause(ledger.events[-1], "nobody is there")
        assert [pause.reason for pause in ledger.pauses] == ["nobody is there"]
        kept = path.read_bytes()
    path.with_name(ledgers.PAUSES).write_bytes(b"")
    with Ledger(path) as ledger:
        ledger.check()
        assert ledger.pauses == ()
    assert path.read_bytes() == kept
