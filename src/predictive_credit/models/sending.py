"""Many units at a time behind a provider: the pause they share, the budget they share, how they end.

A unit ends in one of three ways. Content came, whatever it says: that is its reply for good. The
server was there but gave no content until the unit's deadline: an empty reply that says so, held back
until another unit's content shows that it was this unit and not an outage. Or it stays open for the
next run: asking ended before, or the server was never reached.
"""

from __future__ import annotations

import asyncio
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
MAX_PAUSE_S = 600.0  # who asks us to wait longer has us come back another time
GRACE_S = 1.0  # beyond a request's time-out: the provider's own word on it says more than ours
HAIR_S: Final = 0.001  # timers may ring this early
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

    async def passed(self, *, until: float = math.inf) -> None:
        """Return once it is open, or asking has ended, or the loop's clock shows `until`."""
        while not self._ended.is_set() and min(self._opens, until) > _now():
            await self.rest(min(self._opens, until) - _now())

    async def rest(self, seconds: float) -> None:
        """Sleep, unless asking ends meanwhile."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()


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

    def settle(self, unit_id: str, reply: Reply | None) -> None:
        """Spend the reply's cost, or the worst case where it is unknown; the rest is free again."""
        worst = self._aside.pop(unit_id)
        if reply is not None:
            self.spent += worst if reply.cost_usd is None else reply.cost_usd
        self._settled.set()

    def _claimed(self) -> float:
        return self.spent + math.fsum(self._aside.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """How a unit's deadline passed without content."""

    said: str  # the last trouble
    attempts: int
    is_reached: bool  # the server, by any attempt


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
        self._held: list[Entry] = []  # without content, since the last unit with content
        self._n_contents = self._n_written = self._n_missed = 0

    async def run(self, units: Sequence[tuple[str, Prompt]], *, known: int = 0) -> None:
        """Ask all units, none of which has a reply; `known` others have.

        Raises Stopped or, after `interrupt`, KeyboardInterrupt; whatever came until then is on disk.
        """
        self._task = asyncio.current_task()
        todo = iter(units)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._settings.concurrency, len(units))):
                    group.create_task(self._work(todo))
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
            ended = None
            try:
                ended = await self._asked(*unit)
            finally:
                self._till.settle(unit[0], ended if isinstance(ended, Reply) else None)
            if isinstance(ended, Reply):
                await self._keep((*unit, ended))
            elif ended is not None:
                self._hold(*unit, ended)

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
        """How the unit ended; None where it stays open."""
        deadline, attempt, is_reached = _now() + self._settings.deadline_s, 0, False
        while True:
            attempt += 1
            try:
                delivery = await self._sent(prompt, deadline - _now())
            except Rejected as rejected:  # which names the provider
                self._stop(
                    f"{unit_id} was refused: {rejected}", "put that right and run the same command again"
                )
                return None
            except Trouble as trouble:
                said, asked_to_wait = str(trouble), trouble.retry_after_s
                is_reached = is_reached or trouble.is_reached
            else:
                self._pause(delivery.wait_s)
                cost = delivery.reply.cost_usd
                cost = self._till.cost(delivery.reply) if cost is None else cost
                return replace(delivery.reply, attempts=attempt, cost_usd=cost)
            self._pause(asked_to_wait)
            await self._back_off(attempt, deadline)
            if self._ended.is_set():
                return None
            if _now() > deadline - HAIR_S:
                return Missed(said=said, attempts=attempt, is_reached=is_reached)
            log.info("%s: attempt %d of %s, after %s", self._who, attempt + 1, unit_id, said)

    async def _sent(self, prompt: Prompt, seconds: float) -> Delivery:
        """One request. A server that trickles its answer may outlast a client's own time-out."""
        try:
            async with asyncio.timeout(seconds + GRACE_S):
                return await self._provider.answer(prompt, timeout_s=seconds)
        except TimeoutError:
            raise Trouble(f"no answer in {seconds:.0f} s") from None

    def _pause(self, seconds: float | None) -> None:
        """Hold every worker back for as long as the server asked."""
        if seconds is None:
            return
        if seconds > MAX_PAUSE_S:
            self._stop(
                f"{self._who} asks for a pause of {seconds:,.0f} s", "run the same command again after it"
            )
        self._gate.shut(seconds)

    async def _back_off(self, attempt: int, deadline: float) -> None:
        """Exponential backoff with full jitter, then the shared pause, both up to the deadline."""
        longest = min(MAX_BACKOFF_S, BACKOFF_S * 2 ** min(attempt - 1, 30))
        await self._gate.rest(min(random.uniform(0, longest), deadline - _now()))
        await self._gate.passed(until=deadline)

    async def _keep(self, entry: Entry) -> None:
        """Commit a reply, and the units before it whose missing content was no outage, as it now shows."""
        self._n_contents += 1
        self._arrived += [*self._held, entry]
        self._held = []
        await asyncio.sleep(0)  # replies of the same moment share a write
        self._write()

    def _hold(self, unit_id: str, prompt: Prompt, missed: Missed) -> None:
        """Keep a unit without content back, and end asking where that is plainly an outage."""
        tried = f"{missed.said} ({missed.attempts} attempts)"
        seconds = f"{self._settings.deadline_s:g} s"
        if not missed.is_reached:
            self._stop(
                f"{self._who} was not reached in {seconds}: {tried}",
                "see to the network and the address, and run the same command again to go on",
            )
            return
        self._n_missed += 1
        reply = Reply(
            text="", finish_reason=f"no reply in {seconds}: {tried}", model_requested=self._settings.model,
            model_resolved=None, attempts=missed.attempts,
        )  # fmt: skip
        self._held.append((unit_id, prompt, reply))
        is_outage = len(self._held) >= max(5, 2 * self._settings.concurrency)
        if is_outage and self._settings.unanswered == "stop":
            self._stop_for_outage()

    def _finish(self) -> None:
        """The last units without content are settled by the run as a whole."""
        if self._ended.is_set() or not self._held:
            return
        if self._n_contents or self._settings.unanswered == "fallback":
            self._arrived += self._held
        else:
            self._stop_for_outage()

    def _stop_for_outage(self) -> None:
        last = self._held[-1][2].finish_reason
        self._stop(
            f"{self._who} gave no content to the last {len(self._held)} units, which stay open: {last}",
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
        self._journal.append_all(batch)
        self._n_written += len(batch)
        cost = f"{self._till.spent:.4g} USD, " if self._till.spent else ""
        self._bar.set_postfix_str(f"{cost}{self._n_missed} without content", refresh=False)
        self._bar.update(len(batch))


def _now() -> float:
    return asyncio.get_running_loop().time()
