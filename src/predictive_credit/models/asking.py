"""Asking: every unit once, one after another in this process or many at a time behind a provider.

Only units that the journal lacks are asked, in their order, and a reply is on disk before it counts.
"""

from __future__ import annotations

import signal
import sys
import threading
from asyncio import CancelledError, Runner, new_event_loop
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn, TypeGuard, cast

from tqdm import tqdm

from predictive_credit import config
from predictive_credit.errors import OutOfOrder
from predictive_credit.journal import Journal
from predictive_credit.models.model import Model
from predictive_credit.models.provider import Provider
from predictive_credit.models.sending import Sender, Till
from predictive_credit.records import Prompt, Reply

Asked = tuple[str, Prompt]  # a unit's id, and what it is sent


@dataclass(frozen=True, slots=True, kw_only=True)
class Purse:
    """What a budget is held against."""

    price: config.Price | None  # None: nobody wrote it down, and costs stay unknown
    spent_usd: float  # by this model in this project before


def answered(asked: Sequence[Asked], journal: Journal) -> dict[str, Reply]:
    """Replies by unit id, in the order of `asked`. Raises OutOfOrder if one is missing."""
    return {unit_id: _reply(journal, unit_id, prompt) for unit_id, prompt in asked}


def ask(
    asked: Sequence[Asked],
    model: Model | Provider,
    journal: Journal,
    *,
    title: str | None = None,
    purse: Purse | None = None,
) -> dict[str, Reply]:
    """Replies by unit id. Only units the journal lacks are asked, in the order of `asked`.

    Closes the model. With a `title` there is a progress bar on stderr. Ctrl-C stops after what is in
    flight is committed, and raises KeyboardInterrupt; a second one does not wait. Raises Stopped where
    a provider's budget or quota is used up, or it is not there, or will not take our requests.
    """
    if journal.repaired is not None:
        print(journal.repaired, file=sys.stderr)
    units = _open(asked, journal)
    with tqdm(
        total=len(asked), initial=len(asked) - len(units), desc=title, unit="unit",
        disable=title is None or not units, file=sys.stderr, mininterval=0.5,
    ) as bar:  # fmt: skip
        if _is_provider(model):
            _ask_provider(
                units,
                model,
                journal,
                purse or Purse(price=None, spent_usd=0.0),
                bar,
                known=len(asked) - len(units),
            )
        else:
            _ask_model(units, cast(Model, model), journal, bar)
    return answered(asked, journal)


def _open(asked: Sequence[Asked], journal: Journal) -> list[Asked]:
    """The units without a reply, in order; of units with one prompt, the first."""
    first: dict[str, Asked] = {}
    for unit_id, prompt in asked:
        if journal.get(prompt) is None:
            first.setdefault(journal.key(prompt), (unit_id, prompt))
    return list(first.values())


def _is_provider(model: Model | Provider) -> TypeGuard[Provider]:
    return hasattr(model, "aclose")


def _ask_model(units: Sequence[Asked], model: Model, journal: Journal, bar: tqdm[NoReturn]) -> None:
    """One unit after another; Ctrl-C waits for the one in flight, so that it is not paid for twice."""
    stop = threading.Event()

    def at_once() -> None:
        raise KeyboardInterrupt

    try:
        with _interruptible(first=stop.set, again=at_once):
            for unit_id, prompt in units:
                if stop.is_set():
                    break
                journal.append(unit_id, prompt, model.answer(prompt))
                bar.update()
            if stop.is_set():  # also after the last: what follows in this process should not start
                raise KeyboardInterrupt
    finally:
        model.close()


def _ask_provider(
    units: Sequence[Asked], provider: Provider, journal: Journal, purse: Purse, bar: tqdm[NoReturn],
    *, known: int,
) -> None:  # fmt: skip
    """Many units at a time, in an event loop of our own."""
    till = Till(purse.price, spent_usd=purse.spent_usd, max_cost=provider.settings.max_cost)

    async def run() -> None:
        try:
            if units:
                await sender.run(units, known=known)
        finally:
            await provider.aclose()

    with Runner(loop_factory=new_event_loop) as runner:
        loop = runner.get_loop()
        sender = Sender(provider, journal, till, bar)
        with _interruptible(
            first=lambda: loop.call_soon_threadsafe(sender.interrupt),
            again=lambda: loop.call_soon_threadsafe(sender.cancel),
            terminates=True,
        ):
            try:
                runner.run(run())
            except CancelledError:
                raise KeyboardInterrupt from None


@contextmanager
def _interruptible(
    *, first: Callable[[], object], again: Callable[[], object], terminates: bool = False
) -> Iterator[None]:
    """Call `first` on the first Ctrl-C and `again` on each further one; with `terminates` on SIGTERM too."""
    numbers = [signal.SIGINT, signal.SIGTERM] if terminates else [signal.SIGINT]
    previous = {number: signal.getsignal(number) for number in numbers}
    if threading.current_thread() is not threading.main_thread() or None in previous.values():
        yield
        return
    calls = iter([first])

    def interrupted(number: int, frame: FrameType | None) -> None:
        next(calls, again)()

    for number in numbers:
        signal.signal(number, interrupted)
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _reply(journal: Journal, unit_id: str, prompt: Prompt) -> Reply:
    reply = journal.get(prompt)
    if reply is None:
        raise OutOfOrder(f"{unit_id} has no reply in {journal.path}; run the stage again")
    return reply
