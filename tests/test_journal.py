from pathlib import Path

import pytest

from predictive_credit import journal
from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.journal import Journal
from predictive_credit.records import Reply
from tests.trials import prompt, reply

ASKED = [(f"unit/{n}", prompt(seed=n)) for n in range(6)]
WHO = {"name": "fake", "temperature": 0.7}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "forecast.jsonl"


def fill(path: Path, n: int) -> None:
    with Journal(path, WHO) as opened:
        for unit_id, asked in ASKED[:n]:
            opened.append(unit_id, asked, reply(f"reply {asked.seed}"))


def test_a_reply_comes_back_from_disk_as_it_was(path: Path):
    odd = Reply(
        text='line one\nline "two" \u2028 naïve', finish_reason=None, model_requested="a",
        model_resolved=None, prompt_tokens=3, latency_s=0.125,
    )  # fmt: skip
    with Journal(path, WHO) as opened:
        opened.append("u", prompt(), odd)
    with Journal(path, WHO) as opened:
        assert opened.get(prompt()) == odd


def test_another_forecaster_shares_the_file_and_has_replies_of_its_own(path: Path):
    fill(path, 2)
    with Journal(path, WHO | {"temperature": 0.2}) as opened:
        assert opened.get(ASKED[0][1]) is None
        opened.append(*ASKED[0], reply("another's"))
    with Journal(path, WHO) as opened:
        assert opened.get(ASKED[0][1]) == reply("reply 0")


def test_a_second_reply_to_a_prompt_is_refused_and_nothing_changes(path: Path):
    fill(path, 1)
    before = path.read_bytes()
    with Journal(path, WHO) as opened, pytest.raises(OutOfOrder, match="the first one stands"):
        opened.append("unit/0", prompt(seed=0), reply("better"))
    assert path.read_bytes() == before


def test_replies_that_came_together_share_one_write_and_all_or_none_are_taken(path: Path):
    fill(path, 1)
    before = path.read_bytes()
    entries = [(unit_id, asked, reply(f"reply {asked.seed}")) for unit_id, asked in ASKED]
    with Journal(path, WHO) as opened:
        with pytest.raises(OutOfOrder, match="unit/0 has its reply"):
            opened.append_all(entries[2:] + entries[:1])
        with pytest.raises(OutOfOrder, match="unit/3 has its reply"):
            opened.append_all([entries[3], entries[3]])
        assert path.read_bytes() == before
        assert opened.get(ASKED[3][1]) is None
        opened.append_all(entries[1:])
        assert [opened.get(asked) for _, asked in ASKED] == [r for _, _, r in entries]
    together = path.read_bytes()
    path.unlink()
    fill(path, 6)
    assert path.read_bytes() == together


def test_replies_are_read_beside_a_writer_without_the_line_it_is_at(path: Path):
    assert list(journal.replies(path)) == []
    fill(path, 2)
    with Journal(path, WHO), path.open("ab") as file:
        file.write(b'{"key":"ab')
        file.flush()
        assert list(journal.replies(path)) == [reply("reply 0"), reply("reply 1")]
    path.write_bytes(b"garbage\n")
    with pytest.raises(Tampered, match="line 1 is not a reply"):
        list(journal.replies(path))


def test_a_line_cut_at_any_byte_is_cut_off_and_reported_and_its_unit_open_again(path: Path):
    fill(path, 2)
    whole = path.read_bytes()
    start = whole.index(b"\n") + 1
    for end in {start + 1, start + 7, (start + len(whole)) // 2, len(whole) - 2, len(whole) - 1}:
        path.write_bytes(whole[:end])
        with Journal(path, WHO) as opened:
            assert opened.repaired is not None
            assert f"{end - start} bytes" in opened.repaired
            assert opened.get(ASKED[0][1]) == reply("reply 0")
            opened.append(*ASKED[1], reply("reply 1"))
        assert path.read_bytes() == whole


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
