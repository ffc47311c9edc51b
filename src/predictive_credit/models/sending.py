"""Many units at a time behind a provider: the pause they share, the budget they share, how they end.

A unit ends in one of three ways. Content came, whatever it says: that is its reply for good. The
server was there but gave no content until the unit's deadline, and again none when the unit was asked
once more after all others, though others got content between the two: an empty reply that says so, put
on record once the run has come to its end. Or it stays open for the next run: asking ended before, the
server was never reached, or nobody's content shows that it was this unit and not an outage. Neither
an outage nor a rate limit is the unit's failure, so pauses do not count against a deadline.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NoReturn

from tqdm import tqdm

from predictive_credit import config
from predictive_credit.errors import Stopped
from predictive_credit.journal import Journal
from predictive_credit.models.provider import Delivery, Provider, Rejected, Trouble
from predictive_credit.records import Prompt, Reply

BACKOFF_S = 1.0  # the first retry waits up to this, each further one up to twice as long as the last
MAX_BACKOFF_S = 30.0
MAX_PAUSE_S = 600.0  # who has us wait longer, at once or without content in between, sees us another time
GRACE_S = 1.0  # beyond a request's time-out: the provider's own word on it says more than ours
HAIR_S: Final = 0.001  # timers may ring this early
NO_REPLY: Final = "no reply in "  # begins the finish reason of a unit that was given no content
TEMPLATE_TOKENS: Final = 200  # what a chat template may add to a prompt, generously

Entry = tuple[str, Prompt, Reply]

log = logging.getLogger(__name__)


class Gate:
    """The pause that all workers keep, since a rate limit is the key's and not one request's."""

    def __init__(self, ended: asyncio.Event) -> None:
        self._ended = ended
        self._opens = -math.inf

    def shut(self, seconds: float) -> None:
        """Let nobody pass for so long from now, or for longer if that was asked before."""
        self._opens = max(self._opens, _now() + seconds)

    async def passed(self) -> None:
        """Return once it is open, or asking has ended."""
        while not self._ended.is_set() and self._opens > _now():
            await self.rest(self._opens - _now())

    async def rest(self, seconds: float) -> None:
        """Sleep, unless asking ends meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()


class Waits:
    """Seconds that the server has had us wait, those at the same time counted once."""

    def __init__(self) -> None:
        self.total = 0.0
        self._until = -math.inf

    def add(self, seconds: float) -> None:
        """A wait from now on."""
        until = max(self._until, _now() + seconds)
        self.total += until - max(self._until, _now())
        self._until = until


class Till:
    """USD that were spent, and that the calls in flight may cost at worst: together never over `max_cost`.

    What a provider charges for a call that gave no content is not known here, and not counted.
    """

    def __init__(self, price: config.Price | None, *, spent_usd: float, max_cost: float | None) -> None:
        self.price, self.spent, self.max_cost = price, spent_usd, max_cost
        self._aside: dict[str, float] = {}  # by unit id
        self._settled = asyncio.Event()

    def cost(self, reply: Reply) -> float | None:
        """What a reply costs by the price list, None where tokens or price are unknown."""
        read, written = reply.prompt_tokens, reply.completion_tokens
        if self.price is None or read is None or written is None:
            return None
        cached = min(reply.cached_tokens or 0, read)
        fresh = (read - cached) * self.price.input
        return (fresh + cached * self.price.cached_input + written * self.price.output) / 1e6

    def worst(self, prompt: Prompt) -> float:
        """What a call can cost at most: a token is a byte or longer, and the answer is cut at its limit."""
        if self.price is None:
            return 0.0
        read = len((prompt.system + prompt.user + (prompt.grammar or "")).encode()) + TEMPLATE_TOKENS
        return (read * self.price.input + prompt.max_tokens * self.price.output) / 1e6

    async def reserve(self, unit_id: str, prompt: Prompt) -> bool:
        """Set the worst case aside, if need be after calls in flight made room; False if none can."""
        worst = self.worst(prompt)
        while self.max_cost is not None and self._claimed() + worst > self.max_cost:
            if not self._aside:
                return False
            self._settled.clear()
            await self._settled.wait()
        self._aside[unit_id] = worst
        return True

    def settle(self, unit_id: str, reply: Reply | None) -> float | None:
        """Spend the reply's cost, or the worst case where it is unknown; the rest is free again.

        Returns what was charged without being known, None where that is nothing.
        """
        worst = self._aside.pop(unit_id)
        self._settled.set()
        if reply is None:
            return None
        self.spent += worst if reply.cost_usd is None else reply.cost_usd
        return worst if reply.cost_usd is None and self.price is not None else None

    def _claimed(self) -> float:
        return self.spent + math.fsum(self._aside.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """How a unit's deadline passed without content."""

    said: str  # the last trouble
    attempts: int  # those before an earlier deadline included
    is_reached: bool  # the server, by any attempt
    n_contents: int  # that had come in this run until then


class Sender:
    """Sends units to a provider, `settings.concurrency` at a time, until each has come to its end."""

    def __init__(self, provider: Provider, journal: Journal, till: Till, bar: tqdm[NoReturn]) -> None:
        self._provider, self._settings = provider, provider.settings
        self._who = f"{provider.name} ({provider.settings.model})"
        self._journal, self._till, self._bar = journal, till, bar
        self._ended = asyncio.Event()
        self._gate = Gate(self._ended)
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[object] | None = None
        self._why: tuple[str, str] | None = None  # asking ended before its time, and what to do about it
        self._arrived: list[Entry] = []  # and not on disk yet
        self._charged: dict[str, float] = {}  # for replies of unknown cost, by unit id
        self._few = max(5, 2 * self._settings.concurrency)  # units in a row that are no accident any more
        self._missed: dict[str, Missed] = {}  # the first time, by unit id; until content comes
        self._aside: list[tuple[str, Prompt]] = []  # missed, and to be asked once more
        self._twice: list[Entry] = []  # missed again
        self._doubtful: str | None = None  # the end of one of them that may as well be an outage's
        self._silent: set[str] = set()  # units that missed since the last content
        self._waits = Waits()  # since the last content
        self._n_contents = self._n_written = self._n_unfinished = self._n_not_stop = 0

    async def run(self, units: Sequence[tuple[str, Prompt]], *, known: int = 0) -> None:
        """Ask all units, none of which has a reply; `known` others have.

        Raises Stopped or, after `interrupt`, KeyboardInterrupt; whatever came until then is on disk.
        """
        self._task = asyncio.current_task()
        try:
            for todo in (units, self._aside):
                await self._ask_all(todo)
            self._finish()
        except BaseExceptionGroup as raised:
            raise raised.exceptions[0] from None
        finally:
            self._write()
        if self._why is not None:
            seen, then = self._why
            spent = f" and {self._till.spent:.4g} USD are spent" if self._till.price else ""
            have = f"{known + self._n_written:,} of {known + len(units):,} units have their replies{spent}"
            raise Stopped(f"{seen}; {have}; {then}")
        if self._ended.is_set():
            raise KeyboardInterrupt

    async def _ask_all(self, units: Sequence[tuple[str, Prompt]]) -> None:
        todo = iter(units)
        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._settings.concurrency, len(units))):
                group.create_task(self._work(todo))

    def interrupt(self) -> None:
        """Send nothing more; what is in flight comes to its end."""
        print(
            f"\nwaiting for what {self._who} was sent already, {self._settings.deadline_s:g} s at most; "
            "Ctrl-C again drops it",
            file=sys.stderr,
        )
        self._ended.set()

    def cancel(self) -> None:
        """Drop what is in flight."""
        if self._task is not None:
            self._task.cancel()

    async def _work(self, todo: Iterator[tuple[str, Prompt]]) -> None:
        while (unit := await self._next(todo)) is not None:
            ended = charged = None
            try:
                ended = await self._asked(*unit)
            finally:
                charged = self._till.settle(unit[0], ended if isinstance(ended, Reply) else None)
            if charged is not None:
                self._charged[unit[0]] = charged
            if isinstance(ended, Reply):
                await self._keep((*unit, ended))
            elif ended is not None:
                self._miss(*unit, ended)

    async def _next(self, todo: Iterator[tuple[str, Prompt]]) -> tuple[str, Prompt] | None:
        """The next unit, once it may be sent. One worker at a time waits here, so that order is kept."""
        async with self._turn:
            await self._gate.passed()
            if self._ended.is_set() or (unit := next(todo, None)) is None:
                return None
            if not await self._till.reserve(*unit):
                limit, worst = f"{self._till.max_cost:.4g}", f"{self._till.worst(unit[1]):.2g}"
                self._stop(
                    f"{self._who} may cost {limit} USD, which {unit[0]} could pass with {worst} USD at worst",
                    "raise max_cost and run the same command again to go on",
                )
                return None
            if self._ended.is_set():  # while it waited for room
                self._till.settle(unit[0], None)
                return None
            return unit

    async def _asked(self, unit_id: str, prompt: Prompt) -> Reply | Missed | None:
        """How the unit ended, this time; None where it stays open."""
        deadline, is_reached = _now() + self._settings.deadline_s, False
        before = self._missed[unit_id].attempts if unit_id in self._missed else 0
        for attempt in itertools.count(1):
            began = _now()
            try:
                delivery = await self._sent(prompt, deadline - began)
            except Rejected as rejected:  # which names the provider
                self._stop(
                    f"{unit_id} was refused: {rejected}", "put that right and run the same command again"
                )
                return None
            except Trouble as caught:
                trouble = caught
            else:
                return self._delivered(delivery, before + attempt)
            is_reached = is_reached or trouble.is_reached
            deadline = await self._back_off(trouble, attempt, began, deadline)
            if self._ended.is_set():
                return None
            if _now() > deadline - HAIR_S:
                break
            log.info("%s: attempt %d of %s, after %s", self._who, before + attempt + 1, unit_id, trouble)
        return Missed(
            said=str(trouble), attempts=before + attempt, is_reached=is_reached, n_contents=self._n_contents
        )

    def _delivered(self, delivery: Delivery, attempts: int) -> Reply:
        """The reply with what it cost and how often it was asked for."""
        self._waits = Waits()
        if delivery.wait_s is not None:
            self._pause(delivery.wait_s)
        reply = delivery.reply
        cost = self._till.cost(reply) if reply.cost_usd is None else reply.cost_usd
        return replace(reply, attempts=attempts, cost_usd=cost)

    async def _sent(self, prompt: Prompt, seconds: float) -> Delivery:
        """One request. A server that trickles its answer may outlast a client's own time-out."""
        try:
            async with asyncio.timeout(seconds + GRACE_S):
                return await self._provider.answer(prompt, timeout_s=seconds)
        except TimeoutError:
            raise Trouble(f"no answer in {seconds:.0f} s") from None

    def _pause(self, seconds: float) -> None:
        """Hold every worker back for as long as the server asked."""
        if seconds > MAX_PAUSE_S:
            self._stop(
                f"{self._who} asks for a pause of {seconds:,.0f} s", "run the same command again after it"
            )
        self._gate.shut(seconds)

    async def _back_off(self, trouble: Trouble, attempt: int, began: float, deadline: float) -> float:
        """Wait before the next attempt: exponential backoff with full jitter, and the shared pause.

        Returns the deadline, moved by what does not count against it: the shared pause and, where a
        rate limit was met, all the time since the attempt `began`.
        """
        backoff = random.uniform(0, min(MAX_BACKOFF_S, BACKOFF_S * 2 ** min(attempt - 1, 30)))
        asked_to_wait = trouble.retry_after_s
        if trouble.is_rate_limit and asked_to_wait is None:
            asked_to_wait = backoff
        if asked_to_wait is not None:
            self._pause(asked_to_wait)
            self._wait(max(asked_to_wait, backoff), trouble)
        if trouble.is_rate_limit:
            await self._gate.rest(backoff)  # of its own, so that not all are back in the same moment
            await self._gate.passed()
            return deadline + _now() - began
        await self._gate.rest(min(backoff, deadline - _now()))
        rested = _now()
        await self._gate.passed()
        return deadline + _now() - rested

    def _wait(self, seconds: float, trouble: Trouble) -> None:
        """Note a wait on the server's account; without content in between they may not add up for ever."""
        self._waits.add(seconds)
        if self._waits.total > MAX_PAUSE_S:
            self._stop(
                f"{self._who} has had us wait {self._waits.total:,.0f} s without content, as where a rate "
                f"limit or a quota is used up: {trouble}",
                "run the same command again when it takes requests again, perhaps with a smaller concurrency",
            )

    async def _keep(self, entry: Entry) -> None:
        """Commit a reply."""
        unit_id, _, reply = entry
        self._n_contents += 1
        self._n_unfinished += is_unfinished(reply)
        self._silent.clear()
        self._missed.pop(unit_id, None)
        if self._n_contents == self._n_unfinished == self._few:
            self._warn(reply)
        self._arrived.append(entry)
        await asyncio.sleep(0)  # replies of the same moment share a write
        self._write()

    def _warn(self, last: Reply) -> None:
        """Tell that a setting, and no unit, seems to be why nothing is finished."""
        print(
            f"\nthe first {self._few} replies of {self._who} are all cut off or errors, the last one "
            f"{last.finish_reason!r}; if that is not what you want, press Ctrl-C and raise max_tokens, turn "
            "thinking off, or give the model a larger context",
            file=sys.stderr,
        )

    def _miss(self, unit_id: str, prompt: Prompt, missed: Missed) -> None:
        """Set a unit without content aside, and end asking where that is plainly an outage."""
        tried = f"{missed.said} ({missed.attempts} attempts)"
        seconds = f"{self._settings.deadline_s:g} s"
        if not missed.is_reached:
            self._stop(
                f"{self._who} was not reached in {seconds}: {tried}",
                "see to the network and the address, and run the same command again to go on",
            )
            return
        first = self._missed.get(unit_id)
        if first is None:
            self._missed[unit_id] = missed
            self._aside.append((unit_id, prompt))
            reason = f"{NO_REPLY}{seconds}: {tried}"
        else:
            reason = f"{NO_REPLY}2 x {seconds}: {tried}"
            reply = Reply(
                text="", finish_reason=reason, model_requested=self._settings.model, model_resolved=None,
                attempts=missed.attempts,
            )  # fmt: skip
            self._twice.append((unit_id, prompt, reply))
            if first.n_contents == self._n_contents and self._settings.unanswered == "stop":
                self._doubtful = reason
        self._silent.add(unit_id)
        if len(self._silent) >= self._few and self._settings.unanswered == "stop":
            self._stop_for_outage(f"the last {len(self._silent)} units", reason)

    def _finish(self) -> None:
        """Units that missed twice are recorded together, or stay open together."""
        if self._ended.is_set():
            return
        if self._doubtful is None:
            self._arrived += self._twice
        else:
            more = f" and {len(self._twice) - 1} more" if len(self._twice) > 1 else ""
            which = f"{self._twice[0][0]}{more}, asked twice, nor to others in between"
            self._stop_for_outage(which, self._doubtful)

    def _stop_for_outage(self, units: str, reason: str) -> None:
        self._stop(
            f"{self._who} gave no content to {units}, which stay open: {reason}",
            "run the same command again when it is back; if it is, and gives these units nothing, "
            "unanswered=fallback records them as such",
        )

    def _stop(self, seen: str, then: str) -> None:
        """End asking before its time; the first reason is the one that is told."""
        if not self._ended.is_set():
            self._why = (seen, then)
            self._ended.set()

    def _write(self) -> None:
        """Put on disk what arrived since."""
        if not self._arrived:
            return
        batch, self._arrived = self._arrived, []
        self._journal.append_all(batch, charged=self._charged)
        self._n_written += len(batch)
        self._n_not_stop += sum(reply.finish_reason != "stop" for _, _, reply in batch)
        cost = f"{self._till.spent:.4g} USD, " if self._till.spent else ""
        counts = f"{self._n_not_stop} not ended by stop, {len(self._missed)} without content"
        self._bar.set_postfix_str(cost + counts, refresh=False)
        self._bar.update(len(batch))


def is_unfinished(reply: Reply) -> bool:
    """Whether a reply is cut off at a limit, or its prompt's failure: what settings cause in every unit."""
    return reply.finish_reason == "length" or (reply.finish_reason or "").startswith("error:")


def is_missing(reply: Reply) -> bool:
    """Whether a reply stands for none: the server gave this unit no content, and gave others some."""
    return not reply.text and (reply.finish_reason or "").startswith(NO_REPLY)


def _now() -> float:
    return asyncio.get_running_loop().time()
