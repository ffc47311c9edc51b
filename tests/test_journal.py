import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.journal import Journal, ask_all
from predictive_credit.records import Prompt, Reply
from tests.trials import prompt, reply

ASKED = [(f"unit/{n}", prompt(seed=n)) for n in range(6)]
WHO = {"name": "fake", "temperature": 0.7}


class Counting:
    """Answers, and remembers in which order it was asked."""

    def __init__(self) -> None:
        self.seeds: list[int] = []

    def answer(self, prompt: Prompt) -> Reply:
        self.seeds.append(prompt.seed)
        return reply(f"reply {prompt.seed}")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "forecast.jsonl"


def fill(path: Path, n: int) -> None:
    with Journal(path, WHO) as journal:
        ask_all(ASKED[:n], Counting(), journal)


def test_units_are_asked_in_order_and_never_again(path: Path):
    model = Counting()
    with Journal(path, WHO) as journal:
        first = ask_all(ASKED[:4], model, journal)
    with Journal(path, WHO) as journal:
        replies = ask_all(ASKED, model, journal)
    assert model.seeds == [0, 1, 2, 3, 4, 5]
    assert list(replies) == [unit_id for unit_id, _ in ASKED]
    assert replies == first | {"unit/4": reply("reply 4"), "unit/5": reply("reply 5")}


def test_a_reply_comes_back_from_disk_as_it_was(path: Path):
    odd = Reply(
        text='line one\nline "two" \u2028 naïve', finish_reason=None, model_requested="a",
        model_resolved=None, prompt_tokens=3, latency_s=0.125,
    )  # fmt: skip
    with Journal(path, WHO) as journal:
        journal.append("u", prompt(), odd)
    with Journal(path, WHO) as journal:
        assert journal.get(prompt()) == odd


def test_another_forecaster_shares_the_file_and_is_asked_itself(path: Path):
    fill(path, 2)
    other = Counting()
    with Journal(path, WHO | {"temperature": 0.2}) as journal:
        ask_all(ASKED[:2], other, journal)
    again = Counting()
    with Journal(path, WHO) as journal:
        ask_all(ASKED[:2], again, journal)
    assert (other.seeds, again.seeds) == ([0, 1], [])


def test_a_second_reply_to_a_prompt_is_refused_and_nothing_changes(path: Path):
    fill(path, 1)
    before = path.read_bytes()
    with Journal(path, WHO) as journal, pytest.raises(OutOfOrder, match="the first one stands"):
        journal.append("unit/0", prompt(seed=0), reply("better"))
    assert path.read_bytes() == before


def test_a_line_cut_at_any_byte_is_cut_off_reported_and_asked_again(path: Path):
    fill(path, 2)
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for end in {start + 1, start + 7, (start + len(whole)) // 2, len(whole) - 2, len(whole) - 1}:
        path.write_bytes(whole[:end])
        model = Counting()
        with Journal(path, WHO) as journal:
            assert journal.repaired is not None
            assert f"{end - start} bytes" in journal.repaired
            ask_all(ASKED[:2], model, journal)
        assert model.seeds == [1]
        assert path.read_bytes() == whole


def test_a_repair_is_told_on_stderr(path: Path, capsys: pytest.CaptureFixture[str]):
    fill(path, 1)
    with path.open("ab") as file:
        file.write(b'{"key":"ab')
    with Journal(path, WHO) as journal:
        ask_all(ASKED[:1], Counting(), journal)
    assert "cut off a half-written last line of 10 bytes" in capsys.readouterr().err


@pytest.mark.parametrize("line", [b"garbage\n", b"{}\n", b"[1]\n", b"\xff\n"])
def test_a_damaged_line_that_a_kill_cannot_explain_is_tampering(path: Path, line: bytes):
    fill(path, 1)
    path.write_bytes(path.read_bytes() + line)
    with pytest.raises(Tampered, match="line 2 is not a reply"):
        Journal(path, WHO)


def test_a_repeated_line_is_tampering(path: Path):
    fill(path, 1)
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(Tampered, match="line 2 repeats a key"):
        Journal(path, WHO)


def test_a_second_writer_is_turned_away_and_welcome_afterwards(path: Path):
    with Journal(path, WHO), pytest.raises(OutOfOrder, match="another process is writing"):
        Journal(path, WHO)
    Journal(path, WHO).close()


def test_a_model_that_fails_leaves_what_was_committed(path: Path):
    class Failing(Counting):
        def answer(self, prompt: Prompt) -> Reply:
            if prompt.seed == 3:
                raise OSError("the network is gone")
            return super().answer(prompt)

    with Journal(path, WHO) as journal, pytest.raises(OSError, match="network"):
        ask_all(ASKED, Failing(), journal)
    assert len(path.read_bytes().splitlines()) == 3


def test_ctrl_c_commits_the_reply_in_flight_and_stops(path: Path):
    class Interrupted(Counting):
        def answer(self, prompt: Prompt) -> Reply:
            if prompt.seed == 2:
                signal.raise_signal(signal.SIGINT)
            return super().answer(prompt)

    before = signal.getsignal(signal.SIGINT)
    with Journal(path, WHO) as journal, pytest.raises(KeyboardInterrupt):
        ask_all(ASKED, Interrupted(), journal)
    assert signal.getsignal(signal.SIGINT) is before
    model = Counting()
    with Journal(path, WHO) as journal:
        ask_all(ASKED, model, journal)
    assert model.seeds == [3, 4, 5]


def test_a_second_ctrl_c_does_not_wait(path: Path):
    class Stuck(Counting):
        def answer(self, prompt: Prompt) -> Reply:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            return super().answer(prompt)

    with Journal(path, WHO) as journal, pytest.raises(KeyboardInterrupt):
        ask_all(ASKED, Stuck(), journal)
    assert path.read_bytes() == b""


def test_units_can_be_asked_outside_the_main_thread(path: Path):
    model = Counting()
    with Journal(path, WHO) as journal:
        thread = threading.Thread(target=ask_all, args=(ASKED, model, journal))
        thread.start()
        thread.join()
    assert model.seeds == [0, 1, 2, 3, 4, 5]


SLOW = """
import os, sys, time
from pathlib import Path
from predictive_credit.journal import Journal, ask_all
from predictive_credit.records import Prompt, Reply

class Slow:
    def answer(self, prompt):
        os.write(asks, f"{prompt.seed}\\n".encode())
        time.sleep(0.003)
        text = f"reply {prompt.seed}"
        return Reply(text=text, finish_reason="stop", model_requested="slow", model_resolved=None)

folder = Path(sys.argv[1])
asks = os.open(folder / "asks", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
units = [
    (f"unit/{n}", Prompt(system="", user="?", grammar=None, max_tokens=1, temperature=0.0, top_p=1.0, seed=n))
    for n in range(int(sys.argv[2]))
]
with Journal(folder / "journal.jsonl", {}) as journal:
    ask_all(units, Slow(), journal)
"""


def test_killed_at_random_moments_no_reply_is_lost_and_none_is_asked_again(tmp_path: Path):
    n_units, rng = 120, random.Random(20261130)
    asks, journal = tmp_path / "asks", tmp_path / "journal.jsonl"
    command = [sys.executable, "-c", SLOW, str(tmp_path), str(n_units)]
    kills, committed_before_ask = 0, 0
    while True:
        committed = whole_units(journal)
        known = len(seeds(asks))
        process = subprocess.Popen(command)
        while process.poll() is None and len(seeds(asks)) < known + rng.randint(5, 40):
            time.sleep(0.001)
        time.sleep(rng.random() * 0.01)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        finished = process.wait() == 0
        again = committed & set(seeds(asks)[known:])
        assert not again, f"asked again although their reply was on disk: {again}"
        assert committed <= whole_units(journal)
        committed_before_ask += len(committed)
        if finished:
            break
    assert kills >= 2
    assert committed_before_ask > 0
    assert whole_units(journal) == set(range(n_units))
    # Only a reply in flight at a kill can have been asked for twice.
    assert n_units <= len(seeds(asks)) <= n_units + kills


def seeds(asks: Path) -> list[int]:
    return [int(line) for line in asks.read_text().split()] if asks.exists() else []


def whole_units(journal: Path) -> set[int]:
    if not journal.exists():
        return set()
    lines = journal.read_bytes().split(b"\n")[:-1]
    return {int(json.loads(line)["reply"]["text"].removeprefix("reply ")) for line in lines}
