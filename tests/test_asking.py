from __future__ import annotations

import asyncio
import math
import os
import random
import selectors
import signal
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from predictive_credit import config, journal
from predictive_credit.errors import OutOfOrder, Stopped
from predictive_credit.journal import Journal
from predictive_credit.models import asking, sending
from predictive_credit.models.asking import Purse
from predictive_credit.models.provider import Delivery, Rejected, Trouble
from predictive_credit.models.sending import Till
from predictive_credit.records import Prompt, Reply
from predictive_credit.stages import spending
from predictive_credit.stages.paths import Project
from tests.trials import prompt, reply

ASKED = [(f"unit/{n}", prompt(seed=n)) for n in range(6)]
WHO = {"name": "fake", "temperature": 0.7}
PRICE = config.Price(input=2.0, cached_input=0.5, output=10.0)

Script = Callable[[Prompt, int], Awaitable[Delivery]]  # of a prompt and the how-manieth attempt at it


# Models in this process


class Counting:
    """Answers at once, and remembers in which order it was asked."""

    name = "counting"

    def __init__(self) -> None:
        self.seeds: list[int] = []
        self.is_closed = False

    def answer(self, prompt: Prompt) -> Reply:
        self.seeds.append(prompt.seed)
        return reply(f"reply {prompt.seed}")

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal" / "forecast.jsonl"


def ask(path: Path, model: Any, asked: Sequence[tuple[str, Prompt]] = ASKED, **more: Any) -> dict[str, Reply]:
    with Journal(path, WHO) as opened:
        return asking.ask(asked, model, opened, **more)


def texts(path: Path) -> list[str]:
    return [r.text for r in journal.replies(path)]


def test_units_are_asked_in_order_and_never_again_and_the_model_is_closed(path: Path):
    model = Counting()
    first = ask(path, model, ASKED[:4])
    assert model.is_closed
    replies = ask(path, model)
    assert model.seeds == [0, 1, 2, 3, 4, 5]
    assert list(replies) == [unit_id for unit_id, _ in ASKED]
    assert replies == first | {"unit/4": reply("reply 4"), "unit/5": reply("reply 5")}


def test_units_with_one_prompt_share_the_reply(path: Path):
    model = Counting()
    replies = ask(path, model, [("a", prompt()), ("b", prompt())])
    assert model.seeds == [1]
    assert replies["a"] == replies["b"]


def test_what_lacks_a_reply_is_not_answered(path: Path):
    ask(path, Counting(), ASKED[:2])
    with Journal(path, WHO) as opened:
        assert list(asking.answered(ASKED[:2], opened)) == ["unit/0", "unit/1"]
        with pytest.raises(OutOfOrder, match="unit/2 has no reply"):
            asking.answered(ASKED[:3], opened)


def test_a_repair_is_told_on_stderr(path: Path, capsys: pytest.CaptureFixture[str]):
    ask(path, Counting(), ASKED[:1])
    with path.open("ab") as file:
        file.write(b'{"key":"ab')
    ask(path, Counting(), ASKED[:1])
    assert "cut off a half-written last line of 10 bytes" in capsys.readouterr().err


def test_a_model_that_fails_leaves_what_was_committed_and_is_closed(path: Path):
    class Failing(Counting):
        def answer(self, prompt: Prompt) -> Reply:
            if prompt.seed == 3:
                raise OSError("the network is gone")
            return super().answer(prompt)

    model = Failing()
    with pytest.raises(OSError, match="network"):
        ask(path, model)
    assert len(texts(path)) == 3
    assert model.is_closed


def test_ctrl_c_commits_the_reply_in_flight_and_stops(path: Path):
    class Interrupted(Counting):
        def answer(self, prompt: Prompt) -> Reply:
            if prompt.seed == 2:
                signal.raise_signal(signal.SIGINT)
            return super().answer(prompt)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        ask(path, Interrupted())
    assert signal.getsignal(signal.SIGINT) is before
    model = Counting()
    ask(path, model)
    assert model.seeds == [3, 4, 5]


def test_a_second_ctrl_c_does_not_wait(path: Path):
    class Stuck(Counting):
        def answer(self, prompt: Prompt) -> Reply:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            return super().answer(prompt)

    with pytest.raises(KeyboardInterrupt):
        ask(path, Stuck())
    assert path.read_bytes() == b""


def test_units_can_be_asked_outside_the_main_thread(path: Path):
    model = Counting()
    thread = threading.Thread(target=ask, args=(path, model))
    thread.start()
    thread.join()
    assert model.seeds == [0, 1, 2, 3, 4, 5]


# Providers, by a clock that leaps to the next timer


class Leaping(asyncio.SelectorEventLoop):
    """An event loop in which nothing takes time but what waits for a timer, and that not really."""

    def __init__(self) -> None:
        self._at = 1000.0
        super().__init__(_LeapingSelector(self))

    def time(self) -> float:
        return self._at

    def leap(self, seconds: float) -> None:
        self._at += seconds


class _LeapingSelector(selectors.SelectSelector):
    def __init__(self, loop: Leaping) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise AssertionError("everybody waits, and for nothing")
        self._loop.leap(max(timeout, 0.0))
        return super().select(0)


@pytest.fixture(autouse=True)
def leaping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "new_event_loop", Leaping)


def chosen(
    *,
    concurrency: int = 1,
    deadline_s: float = 120.0,
    max_cost: float | None = None,
    unanswered: Literal["stop", "fallback"] = "stop",
) -> config.ClaudeCli:
    return config.ClaudeCli(
        kind="claude_cli", name="far", model="far-1", temperature=None, top_p=None, max_tokens=16,
        key_env=None, concurrency=concurrency, deadline_s=deadline_s, max_cost=max_cost,
        unanswered=unanswered,
        command="",
    )  # fmt: skip


class Scripted:
    """A provider that does what its script says, and remembers when what was sent."""

    name = "far"

    def __init__(self, script: Script, **settings: Any) -> None:
        self.settings = chosen(**settings)
        self.sent: list[tuple[int, float]] = []  # seed and time
        self.contents: Counter[int] = Counter()
        self.in_flight = self.most_in_flight = 0
        self.is_closed = False
        self._script = script
        self._attempts: Counter[int] = Counter()

    async def answer(self, prompt: Prompt, *, timeout_s: float) -> Delivery:
        loop = asyncio.get_running_loop()
        self.sent.append((prompt.seed, loop.time() - 1000))
        self._attempts[prompt.seed] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            delivery = await self._script(prompt, self._attempts[prompt.seed])
        finally:
            self.in_flight -= 1
        self.contents[prompt.seed] += 1
        return delivery

    async def aclose(self) -> None:
        self.is_closed = True

    @property
    def seeds(self) -> list[int]:
        return [seed for seed, _ in self.sent]


def content(prompt: Prompt, *, wait_s: float | None = None, **more: Any) -> Delivery:
    return Delivery(reply=replace(reply(f"reply {prompt.seed}"), **more), wait_s=wait_s)


async def good(prompt: Prompt, attempt: int) -> Delivery:
    await asyncio.sleep(1 + prompt.seed % 3)
    return content(prompt)


def units(n: int) -> list[tuple[str, Prompt]]:
    return [(f"unit/{k}", prompt(seed=k)) for k in range(n)]


def failing(*seeds: int, trouble: Callable[[], Exception]) -> Script:
    """Gives these seeds nothing but trouble, ten seconds after each attempt, and all others content."""

    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed in seeds:
            await asyncio.sleep(10)
            raise trouble()
        return await good(prompt, attempt)

    return script


def overloaded() -> Trouble:
    return Trouble("529 overloaded")


def unreachable() -> Trouble:
    return Trouble("connection refused", is_reached=False)


def test_a_provider_is_sent_units_in_order_up_to_its_concurrency_and_closed(path: Path):
    provider = Scripted(good, concurrency=4)
    replies = ask(path, provider, units(30))
    assert provider.seeds == list(range(30))
    assert provider.most_in_flight == 4
    assert provider.is_closed
    assert {k: r.text for k, r in replies.items()} == {f"unit/{k}": f"reply {k}" for k in range(30)}
    assert {r.attempts for r in replies.values()} == {1}


def test_replies_of_a_previous_run_are_not_asked_again(path: Path):
    ask(path, Scripted(good), units(4))
    provider = Scripted(good, concurrency=3)
    assert len(ask(path, provider, units(9))) == 9
    assert provider.seeds == [4, 5, 6, 7, 8]
    again = Scripted(good)
    ask(path, again, units(9))
    assert (again.sent, again.is_closed) == ([], True)


def test_trouble_is_retried_with_growing_jittered_waits_until_content_comes(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    longest: list[float] = []

    def uniform(low: float, high: float) -> float:
        assert low == 0
        longest.append(high)
        return high

    monkeypatch.setattr(random, "uniform", uniform)

    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if attempt < 8:
            raise overloaded()
        return content(prompt)

    provider = Scripted(script)
    with caplog.at_level("INFO"):
        replies = ask(path, provider, units(1))
    assert longest == [1, 2, 4, 8, 16, 30, 30]
    assert [at for _, at in provider.sent] == pytest.approx([0, 1, 3, 7, 15, 31, 61, 91], abs=0.01)
    assert replies["unit/0"].attempts == 8
    assert [r.getMessage() for r in caplog.records if r.name == sending.__name__] == [
        f"far (far-1): attempt {k} of unit/0, after 529 overloaded" for k in range(2, 9)
    ]


def test_a_server_that_asks_for_a_pause_holds_back_every_worker(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(prompt.seed + 1)
        if prompt.seed == 1 and attempt == 1:  # at 2 s
            raise Trouble("429 rate limited", retry_after_s=50)
        return content(prompt)

    provider = Scripted(script, concurrency=3)
    ask(path, provider, units(8))
    paused = [(seed, at) for seed, at in provider.sent if at > 2]
    assert {seed for seed, at in provider.sent if at < 2} == {0, 1, 2, 3}
    assert min(at for _, at in paused) == pytest.approx(52, abs=0.01)
    assert provider.contents == Counter(range(8))


def test_headers_that_say_a_limit_is_used_up_hold_back_every_worker_too(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(1)
        return content(prompt, wait_s=30 if prompt.seed == 0 else None)

    provider = Scripted(script, concurrency=2)
    ask(path, provider, units(4))
    assert [round(at) for _, at in provider.sent] == [0, 0, 31, 31]


@pytest.mark.parametrize("of", ["trouble", "delivery"])
def test_a_pause_that_nobody_would_sit_through_ends_asking(path: Path, of: str):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if of == "trouble":
            raise Trouble("429 daily quota", retry_after_s=86_400)
        return content(prompt, wait_s=86_400)

    provider = Scripted(script)
    with pytest.raises(Stopped, match=r"far \(far-1\) asks for a pause of 86,400 s; . of 3 units"):
        ask(path, provider, units(3))
    assert len(texts(path)) == (of == "delivery")
    assert len(provider.sent) == 1


def test_a_unit_without_content_is_asked_again_after_all_others_and_then_recorded_as_one(path: Path):
    provider = Scripted(failing(1, trouble=overloaded), concurrency=2, deadline_s=25)
    replies = ask(path, provider, units(40))
    missed = replies["unit/1"]
    attempts = provider.seeds.count(1)
    assert provider.seeds[-1] == 1
    assert max(at for seed, at in provider.sent if seed == 39) < provider.sent[-1][1] - 10
    assert missed.finish_reason in {  # the last attempt may have been cut off
        f"no reply in 2 x 25 s: {said} ({attempts} attempts)"
        for said in ("529 overloaded", *(f"no answer in {k} s" for k in range(11)))
    }
    assert missed == Reply(
        text="", finish_reason=missed.finish_reason, model_requested="far-1", model_resolved=None,
        attempts=attempts,
    )  # fmt: skip
    assert [r.text for k, r in replies.items() if k != "unit/1"] == [f"reply {k}" for k in (0, *range(2, 40))]
    again = Scripted(good)
    assert ask(path, again, units(40)) == replies
    assert again.sent == []


def test_content_that_comes_when_a_unit_is_asked_again_is_its_reply_and_all_attempts_count(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed == 0 and attempt < 4:
            await asyncio.sleep(20)
            raise overloaded()
        return await good(prompt, attempt)

    provider = Scripted(script, concurrency=2, deadline_s=30)
    replies = ask(path, provider, units(9))
    assert (replies["unit/0"].text, replies["unit/0"].attempts) == ("reply 0", 4)
    assert texts(path)[-1] == "reply 0"


def test_a_provider_that_hangs_beyond_its_timeout_is_cut_off(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed == 0:
            await asyncio.sleep(10_000)
        return await good(prompt, attempt)

    provider = Scripted(script, concurrency=2, deadline_s=60)
    replies = ask(path, provider, units(50))
    assert replies["unit/0"].finish_reason == "no reply in 2 x 60 s: no answer in 60 s (2 attempts)"


def down_between(start: float, end: float) -> Script:
    """Overloaded for all units between these seconds of the run, five seconds after each attempt."""

    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(5)
        if start < asyncio.get_running_loop().time() - 1000 < end:
            raise overloaded()
        return content(prompt)

    return script


@pytest.mark.parametrize("concurrency", [1, 2, 4])
def test_an_outage_that_ends_turns_no_unit_into_a_fallback(path: Path, concurrency: int):
    provider = Scripted(down_between(22, 240), concurrency=concurrency)
    replies = ask(path, provider, units(40))
    assert {k: r.text for k, r in replies.items()} == {f"unit/{k}": f"reply {k}" for k in range(40)}
    asked = list(dict.fromkeys(provider.seeds))
    assert asked == list(range(40))
    late = [seed for seed, at in provider.sent if at > max(at for seed, at in provider.sent if seed == 39)]
    assert len(late) >= concurrency  # those the outage met, after all others
    assert all((replies[f"unit/{seed}"].attempts or 0) > 2 for seed in late)


def test_without_content_to_others_in_between_a_unit_stays_open(path: Path):
    script = failing(38, 39, trouble=overloaded)  # the last of the run: is it they, or is it an outage?
    with pytest.raises(Stopped) as stopped:
        ask(path, Scripted(script, deadline_s=25), units(40))
    said = "far (far-1) gave no content to unit/38 and 1 more, asked twice, nor to others in between, which "
    assert str(stopped.value).startswith(f"{said}stay open: no reply in 2 x 25 s: ")
    assert "38 of 40 units have their replies" in str(stopped.value)
    assert texts(path) == [f"reply {k}" for k in range(38)]
    assert len(ask(path, Scripted(good), units(40))) == 40


@pytest.mark.parametrize("end", ["outage", "refusal", "interrupt", "doubt"])
def test_nothing_that_was_set_aside_is_recorded_once_asking_has_stopped(path: Path, end: str):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed in {1, 3}:
            raise overloaded()
        if end == "refusal" and prompt.seed == 25:
            raise Rejected("far: 401")
        if end == "interrupt" and prompt.seed == 25:
            signal.raise_signal(signal.SIGINT)
        if (end == "outage" and prompt.seed > 20) or (end == "doubt" and prompt.seed == 29):
            raise overloaded()
        return await good(prompt, attempt)

    with pytest.raises(KeyboardInterrupt if end == "interrupt" else Stopped):
        ask(path, Scripted(script, deadline_s=20), units(30))
    assert "" not in texts(path)
    assert len(texts(path)) >= 19


def test_a_provider_never_reached_stops_asking_and_nothing_is_recorded(path: Path):
    provider = Scripted(failing(*range(9), trouble=unreachable), concurrency=2)
    with pytest.raises(Stopped) as stopped:
        ask(path, provider, units(9))
    assert "far (far-1) was not reached in 120 s: connection refused (" in str(stopped.value)
    assert "0 of 9 units have their replies; see to the network" in str(stopped.value)
    assert set(provider.seeds) == {0, 1}
    assert texts(path) == []
    assert provider.is_closed
    assert len(ask(path, Scripted(good), units(9))) == 9


def test_a_unit_that_reached_the_server_only_once_still_reached_it(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed == 0:
            await asyncio.sleep(10)
            raise overloaded() if attempt % 3 == 1 else unreachable()
        return await good(prompt, attempt)

    replies = ask(path, Scripted(script, concurrency=2), units(200))
    assert (replies["unit/0"].finish_reason or "").startswith("no reply in 2 x 120 s: ")


@pytest.mark.parametrize(("concurrency", "at_most"), [(1, 5), (4, 8 + 4)])
def test_an_outage_stops_asking_and_turns_no_unit_into_a_fallback(path: Path, concurrency: int, at_most: int):
    down = failing(*range(10, 100), trouble=overloaded)
    provider = Scripted(down, concurrency=concurrency)
    with pytest.raises(
        Stopped, match=r"gave no content to the last \d+ units, which stay open: no reply in 120"
    ):
        ask(path, provider, units(100))
    assert sorted(texts(path)) == sorted(f"reply {k}" for k in range(10))
    assert 5 <= len({k for k in provider.seeds if k >= 10}) <= at_most
    back = Scripted(good, concurrency=8)
    assert len(ask(path, back, units(100))) == 100
    assert back.seeds == list(range(10, 100))


def test_an_outage_of_few_units_is_one_too(path: Path):
    with pytest.raises(Stopped, match="no content to unit/0 and 2 more, asked twice"):
        ask(path, Scripted(failing(0, 1, 2, trouble=overloaded)), units(3))
    assert texts(path) == []


def test_who_says_so_has_units_recorded_that_never_get_content(path: Path):
    down = failing(*range(20), trouble=overloaded)
    replies = ask(path, Scripted(down, unanswered="fallback"), units(20))
    assert {r.text for r in replies.values()} == {""}

    async def unplugged(prompt: Prompt, attempt: int) -> Delivery:
        raise unreachable()

    away = Scripted(unplugged, unanswered="fallback")
    with pytest.raises(Stopped, match="was not reached"):
        ask(path, away, units(21))
    assert len(texts(path)) == 20


# Rate limits


def limited(retry_after_s: float | None = None) -> Trouble:
    return Trouble("429 too many requests", retry_after_s=retry_after_s, is_rate_limit=True)


def test_a_rate_limit_without_a_pause_holds_every_worker_back_for_the_backoff(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(random, "uniform", lambda low, high: 20.0)

    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(prompt.seed + 1)
        if prompt.seed == 0 and attempt == 1:  # at 1 s
            raise limited()
        return content(prompt)

    provider = Scripted(script, concurrency=3)
    ask(path, provider, units(8))
    assert {seed for seed, at in provider.sent if at < 1} == {0, 1, 2}
    assert min(at for _, at in provider.sent if at > 0) == pytest.approx(21, abs=0.01)


@pytest.mark.parametrize("retry_after_s", [None, 0.0, 7.0, 70.0])
def test_a_rate_limit_longer_than_a_deadline_is_waited_through(path: Path, retry_after_s: float | None):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(5)
        if 1010 < asyncio.get_running_loop().time() < 1350:
            raise limited(retry_after_s)
        return content(prompt)

    provider = Scripted(script, concurrency=2, deadline_s=25)
    replies = ask(path, provider, units(20))
    assert {k: r.text for k, r in replies.items()} == {f"unit/{k}": f"reply {k}" for k in range(20)}
    assert list(dict.fromkeys(provider.seeds)) == list(range(20))
    times = dict(provider.sent)
    assert times.pop(19) > max(at for seed, at in times.items() if seed < 18)  # none was set aside


def test_a_pause_of_all_is_not_held_against_a_units_deadline(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(1)
        if prompt.seed == 0 and attempt == 1:
            raise Trouble("503", retry_after_s=300)
        if prompt.seed == 1 and attempt == 1:
            raise overloaded()
        return content(prompt)

    provider = Scripted(script, concurrency=2, deadline_s=60)
    replies = ask(path, provider, units(4))
    assert [r.attempts for r in replies.values()] == [2, 2, 1, 1]
    assert min(at for _, at in provider.sent if at > 0) == pytest.approx(301, abs=0.01)


@pytest.mark.parametrize("retry_after_s", [None, 0.0, 50.0])
def test_a_quota_that_is_used_up_ends_asking_and_nothing_is_recorded(path: Path, retry_after_s: float | None):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(0.1)
        if prompt.seed > 2:
            raise limited(retry_after_s)
        return content(prompt)

    provider = Scripted(script, concurrency=2, deadline_s=25)
    with pytest.raises(Stopped) as stopped:
        ask(path, provider, units(9))
    assert "far (far-1) has had us wait 6" in str(stopped.value)
    assert "a quota is used up: 429 too many requests; 3 of 9 units have" in str(stopped.value)
    assert texts(path) == ["reply 0", "reply 1", "reply 2"]
    assert set(provider.seeds) == {0, 1, 2, 3, 4}
    assert provider.sent[-1][1] < 1300


def test_content_in_between_shows_that_a_rate_limit_is_no_used_up_quota(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(0.1)
        if attempt == 1:
            raise limited(100)
        return content(prompt)

    provider = Scripted(script)
    assert len(ask(path, provider, units(20))) == 20
    assert provider.sent[-1][1] > 1900


# What settings cause in every unit


@pytest.mark.parametrize("reason", ["length", "error: 400 the prompt is too long"])
@pytest.mark.parametrize(("odd", "times"), [(5, 1), (40, 1), (4, 0)])
def test_replies_that_are_all_cut_off_or_errors_are_told_of_once(
    path: Path, reason: str, odd: int, times: int, capsys: pytest.CaptureFixture[str]
):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        return content(prompt, finish_reason=reason if prompt.seed < odd else "stop")

    assert len(ask(path, Scripted(script), units(40), title="study")) == 40
    said = capsys.readouterr().err
    assert (
        said.count(f"the first 5 replies of far (far-1) are all cut off or errors, the last one {reason!r}")
        == times
    )
    assert said.count("raise max_tokens, turn thinking off, or give the model a larger context") == times
    assert f"{odd} not ended by stop, 0 without content" in said


def test_a_request_that_is_not_taken_ends_asking_at_once(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(1)
        if prompt.seed == 2:
            raise Rejected("far: 401 invalid x-api-key")
        await asyncio.sleep(5)
        return content(prompt)

    provider = Scripted(script, concurrency=4)
    with pytest.raises(Stopped, match="unit/2 was refused: far: 401 invalid x-api-key; 3 of 20 units have"):
        ask(path, provider, units(20))
    assert provider.seeds == [0, 1, 2, 3]
    assert sorted(texts(path)) == ["reply 0", "reply 1", "reply 3"]  # what was in flight is paid for


def test_an_error_of_our_own_is_raised_as_it_is_and_what_came_is_kept(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed == 3:
            raise ZeroDivisionError
        return content(prompt)

    provider = Scripted(script)
    with pytest.raises(ZeroDivisionError):
        ask(path, provider, units(9))
    assert texts(path) == ["reply 0", "reply 1", "reply 2"]
    assert provider.is_closed


# Ctrl-C


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_provider_finishes_what_is_in_flight_and_resumes(
    path: Path, number: signal.Signals, capsys: pytest.CaptureFixture[str]
):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed == 5:
            await asyncio.sleep(0.5)
            signal.raise_signal(number)
        if prompt.seed == 4:
            raise overloaded()  # it waits to be sent again, and is not
        return await good(prompt, attempt)

    before = signal.getsignal(number)
    provider = Scripted(script, concurrency=3)
    with pytest.raises(KeyboardInterrupt):
        ask(path, provider, units(50))
    assert signal.getsignal(number) is before
    assert "waiting for what far (far-1) was sent already, 120 s at most" in capsys.readouterr().err
    done = {k for k in range(50) if provider.contents[k]}
    assert {int(t.removeprefix("reply ")) for t in texts(path)} == done
    assert 5 in done
    assert 4 not in done
    assert set(provider.seeds) == done | {4}
    again = Scripted(good, concurrency=3)
    assert len(ask(path, again, units(50))) == 50
    assert set(again.seeds) == set(range(50)) - done


def test_a_second_interrupt_drops_what_is_in_flight_and_keeps_what_came(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        if prompt.seed == 4:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(1)
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(60)
        return content(prompt)

    provider = Scripted(script)
    with pytest.raises(KeyboardInterrupt):
        ask(path, provider, units(9))
    assert len(texts(path)) == 4
    assert provider.is_closed


def test_a_signal_from_outside_wakes_a_loop_that_waits_for_the_network(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(asking, "new_event_loop", asyncio.new_event_loop)
    timers = [threading.Timer(at, os.kill, (os.getpid(), signal.SIGINT)) for at in (0.2, 0.4)]

    async def script(prompt: Prompt, attempt: int) -> Delivery:
        for timer in timers:
            timer.start()
        await asyncio.sleep(60)
        return content(prompt)

    with pytest.raises(KeyboardInterrupt):
        ask(path, Scripted(script), units(2))
    for timer in timers:
        timer.join()
    assert texts(path) == []


def test_an_interrupt_also_ends_the_wait_for_room_in_the_budget(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        await asyncio.sleep(1)
        signal.raise_signal(signal.SIGINT)
        await asyncio.sleep(4)
        return content(prompt, prompt_tokens=1, completion_tokens=1)

    worst = Till(PRICE, spent_usd=0.0, max_cost=None).worst(prompt())
    provider = Scripted(script, concurrency=2, max_cost=1.5 * worst)
    with pytest.raises(KeyboardInterrupt):
        ask(path, provider, units(3), purse=Purse(price=PRICE, spent_usd=0.0))
    assert provider.seeds == [0]
    assert texts(path) == ["reply 0"]


# Cost


def read_and_written(prompt: Prompt) -> tuple[int, int]:
    """Tokens of a prompt, within what its worst case allows."""
    rng = random.Random(prompt.seed)
    return rng.randint(0, len(prompt.system + prompt.user) + 100), rng.randint(0, prompt.max_tokens)


async def priced(prompt: Prompt, attempt: int) -> Delivery:
    await asyncio.sleep(random.Random(prompt.seed).uniform(0, 9))
    read, written = read_and_written(prompt)
    return content(prompt, prompt_tokens=read, completion_tokens=written)


def test_cached_tokens_are_counted_once_and_at_their_own_price():
    till = Till(PRICE, spent_usd=0.0, max_cost=None)
    used = replace(reply(""), prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=200_000)
    assert till.cost(used) == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.2 * 10.0)
    assert till.cost(replace(used, cached_tokens=None)) == pytest.approx(2.0 + 2.0)
    assert till.cost(replace(used, completion_tokens=None)) is None
    assert Till(None, spent_usd=0.0, max_cost=None).cost(used) is None


def test_the_worst_case_counts_bytes_and_the_shape_that_is_sent():
    asked = replace(prompt(), system="é" * 10, user="abc", grammar='{"type":"object"}', max_tokens=50)
    assert Till(PRICE, spent_usd=0.0, max_cost=None).worst(asked) == pytest.approx(
        ((20 + 3 + 17 + 200) * 2.0 + 50 * 10.0) / 1e6
    )


def test_a_cost_the_provider_states_stands_and_others_are_computed(path: Path):
    async def script(prompt: Prompt, attempt: int) -> Delivery:
        stated = 0.25 if prompt.seed else None
        return content(prompt, prompt_tokens=100, completion_tokens=10, cost_usd=stated)

    replies = ask(path, Scripted(script), units(2), purse=Purse(price=PRICE, spent_usd=0.0))
    assert replies["unit/0"].cost_usd == pytest.approx(300e-6)
    assert replies["unit/1"].cost_usd == 0.25
    unpriced = ask(path, Scripted(script), [("other", prompt("Else?", seed=0))])
    assert unpriced["other"].cost_usd is None


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    concurrency=st.integers(1, 12), share=st.floats(0.0, 1.2), n=st.integers(1, 30), before=st.floats(0, 1e-3)
)
def test_a_budget_is_never_passed_and_is_used_up_whatever_the_order(
    tmp_path_factory: pytest.TempPathFactory, concurrency: int, share: float, n: int, before: float
):
    path = tmp_path_factory.mktemp("budget") / "journal.jsonl"
    asked = [(unit, replace(p, max_tokens=16 * (1 + p.seed % 5))) for unit, p in units(n)]
    till = Till(PRICE, spent_usd=0.0, max_cost=None)
    costs = [2e-6 * a + 10e-6 * b for a, b in (read_and_written(p) for _, p in asked)]
    max_cost = before + share * math.fsum(costs) + 1e-9
    provider = Scripted(priced, concurrency=concurrency, max_cost=max_cost)
    stopped = ""
    try:
        ask(path, provider, asked, purse=Purse(price=PRICE, spent_usd=before))
    except Stopped as error:
        stopped = str(error)
    spent = math.fsum(r.cost_usd or 0.0 for r in journal.replies(path))
    assert before + spent <= max_cost
    assert provider.seeds == list(range(len(provider.seeds)))  # a small unit does not overtake a large one
    assert bool(stopped) == (len(texts(path)) < n)
    if stopped:
        assert f"{len(texts(path))} of {n} units have their replies" in stopped
        assert "raise max_cost and run the same command again" in stopped
        # The next unit might really have passed it.
        assert before + spent + max(till.worst(p) for _, p in asked) > max_cost
    more = Scripted(priced, concurrency=concurrency, max_cost=1.0)
    ask(path, more, asked, purse=Purse(price=PRICE, spent_usd=before + spent))
    assert provider.contents + more.contents == Counter(range(n))


def test_a_reply_of_unknown_cost_is_held_for_its_worst_case(path: Path):
    worst = Till(PRICE, spent_usd=0.0, max_cost=None).worst(prompt())
    provider = Scripted(good, concurrency=4, max_cost=3.5 * worst)
    with pytest.raises(Stopped, match="3 of 9 units have their replies"):
        ask(path, provider, units(9), purse=Purse(price=PRICE, spent_usd=0.0))


def spent(root: Path, price: config.Price) -> float:
    """What a new run in the project takes as spent."""
    prices = SimpleNamespace(models={"fake": price})
    far = replace(chosen(), model="fake")  # as the replies of these tests say
    purse = spending.purse(Project(root=root), cast(Any, SimpleNamespace(prices=prices)), far)
    assert purse is not None
    return purse.spent_usd


def test_a_budget_holds_over_runs_whatever_the_replies_say_of_their_tokens(tmp_path: Path):
    path = tmp_path / "data" / "study" / "journal" / "forecast.jsonl"
    worst = Till(PRICE, spent_usd=0.0, max_cost=None).worst(prompt())
    for _ in range(4):
        provider = Scripted(good, concurrency=4, max_cost=3.5 * worst)
        with pytest.raises(Stopped, match="3 of 9 units have their replies"):
            ask(path, provider, units(9), purse=Purse(price=PRICE, spent_usd=spent(tmp_path, PRICE)))
        assert spent(tmp_path, PRICE) == pytest.approx(3 * worst)
    assert {r.cost_usd for r in journal.replies(path)} == {None}  # a charge is no cost


def test_replies_from_before_there_was_a_price_are_spent_at_todays(tmp_path: Path):
    path = tmp_path / "data" / "study" / "journal" / "forecast.jsonl"

    async def counted(prompt: Prompt, attempt: int) -> Delivery:
        return content(prompt, prompt_tokens=100, completion_tokens=10)

    ask(path, Scripted(counted), units(2))
    ask(path, Scripted(good), units(3))  # of the third nobody knows anything
    assert b"charged_usd" not in path.read_bytes()
    assert spent(tmp_path, PRICE) == pytest.approx(2 * 300e-6)
