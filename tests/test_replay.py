from pathlib import Path

import pytest

from predictive_credit import canonical, tables
from predictive_credit.errors import BadSource
from predictive_credit.journal import Journal
from predictive_credit.models.replay import Replay
from predictive_credit.records import Answer, Forecast, Prompt
from tests.trials import prompt, reply


def answer(unit_id: str, asked: Prompt, text: str) -> Answer:
    forecast = Forecast(unit_id=unit_id, target="roc_auc", point=0.0, lower=0.0, upper=0.0)
    return Answer(
        unit_id=unit_id, prompt_digest=canonical.digest(asked), reply=reply(text), forecasts=(forecast,)
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    answers = [answer(f"u{n}", prompt(seed=n), f"reply {n}") for n in (1, 2)]
    tables.write_records(tmp_path / "bundle" / "forecasts.jsonl", answers, scale="quick")
    return tmp_path / "bundle" / "forecasts.jsonl"


def test_a_recorded_prompt_gets_its_recorded_reply_whole(recorded: Path):
    assert Replay(recorded).answer(prompt(seed=2)) == reply("reply 2")


def test_a_bundle_is_as_good_as_its_file(recorded: Path):
    assert Replay(recorded.parent).answer(prompt(seed=1)) == Replay(recorded).answer(prompt(seed=1))


def test_a_journal_can_be_replayed(tmp_path: Path):
    with Journal(tmp_path / "forecast.jsonl", {}) as journal:
        journal.append("u1", prompt(), reply("first"))
    assert Replay(tmp_path / "forecast.jsonl").answer(prompt()) == reply("first")


def test_another_seed_is_another_prompt_and_was_never_asked(recorded: Path):
    with pytest.raises(BadSource, match="holds 2 replies and none to this prompt"):
        Replay(recorded).answer(prompt(seed=3))


def test_two_different_replies_to_one_prompt_are_refused(recorded: Path):
    both = [answer("u1", prompt(), "a"), answer("u1", prompt(), "b")]
    tables.write_records(recorded, both, scale="quick")
    with pytest.raises(BadSource, match=r"line 2 holds a second, different reply"):
        Replay(recorded)


@pytest.mark.parametrize("line", ["not JSON", "[]", '{"prompt_digest": "a"}'])
def test_a_line_that_is_no_reply_is_named(recorded: Path, line: str):
    recorded.write_text(line + "\n")
    with pytest.raises(BadSource, match="line 1 is not a recorded reply"):
        Replay(recorded)


@pytest.mark.parametrize("name", ["", "absent.jsonl"])
def test_nothing_to_replay_is_one_sentence(tmp_path: Path, name: str):
    with pytest.raises(BadSource, match="no recorded replies at"):
        Replay(tmp_path / name)
