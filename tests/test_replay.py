import json
from pathlib import Path
from typing import Any

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


class TestAnInspectLog:
    """Recorded calls in the format of Inspect, written here or elsewhere."""

    def write(self, folder: Path, *samples: dict[str, Any]) -> Replay:
        log = {"version": 2, "status": "success", "eval": {"model": "theirs"}, "samples": samples}
        (folder / "log.json").write_text(json.dumps(log))
        return Replay(folder / "log.json")

    def sample(self, text: str, *, epoch: int = 1, digest: str | None = None) -> dict[str, Any]:
        asked = prompt()
        said = [{"role": "system", "content": asked.system}, {"role": "user", "content": asked.user}]
        answer = {"role": "assistant", "content": text}
        return {
            "id": 1, "epoch": epoch, "messages": [*said, answer],
            "output": {"model": "theirs 1", "choices": [{"message": answer, "stop_reason": "stop"}]},
            "metadata": {} if digest is None else {"prompt_digest": digest},
        }  # fmt: skip

    def test_with_digests_each_call_gets_its_own_reply(self, tmp_path: Path):
        digests = [canonical.digest(prompt(seed=n)) for n in (1, 2)]
        replay = self.write(
            tmp_path, self.sample("a", digest=digests[0]), self.sample("b", digest=digests[1])
        )
        assert [replay.answer(prompt(seed=n)).text for n in (1, 2)] == ["a", "b"]

    def test_without_digests_one_reply_to_a_text_serves_every_call(self, tmp_path: Path):
        replay = self.write(tmp_path, self.sample("a"))
        replay.expect([prompt(seed=1), prompt(seed=2)])
        assert [replay.answer(prompt(seed=n)).text for n in (1, 2)] == ["a", "a"]

    def test_without_digests_the_calls_get_the_epochs_in_the_order_of_the_plan(self, tmp_path: Path):
        replay = self.write(tmp_path, self.sample("second", epoch=2), self.sample("first", epoch=1))
        replay.expect([prompt(seed=7), prompt("Another question", seed=8), prompt(seed=9)])
        # Whatever was answered before: the order of asking does not matter.
        assert [replay.answer(prompt(seed=n)).text for n in (9, 7)] == ["second", "first"]

    def test_without_the_plan_several_epochs_are_refused(self, tmp_path: Path):
        replay = self.write(tmp_path, self.sample("a", epoch=1), self.sample("b", epoch=2))
        with pytest.raises(BadSource, match="has 2 epochs of this prompt and no prompt_digest"):
            replay.answer(prompt())

    def test_fewer_epochs_than_calls_are_refused(self, tmp_path: Path):
        replay = self.write(tmp_path, self.sample("a", epoch=1), self.sample("b", epoch=2))
        with pytest.raises(BadSource, match="has 2 epochs of a prompt that is asked 3 times"):
            replay.expect([prompt(seed=n) for n in (1, 2, 3)])

    def test_two_replies_in_one_epoch_are_refused(self, tmp_path: Path):
        with pytest.raises(BadSource, match="sample 2 holds a second, different reply"):
            self.write(tmp_path, self.sample("a"), self.sample("b"))

    def test_another_text_was_never_asked(self, tmp_path: Path):
        with pytest.raises(BadSource, match="holds 1 replies and none to this prompt"):
            self.write(tmp_path, self.sample("a")).answer(prompt("Another question"))
