"""Units asked of a provider sixteen at a time against one after another, and what our own part costs.

    python benchmarks/asking.py

A server on the loopback speaks the Anthropic Messages protocol and takes 50 ms for every answer. Both
sides ask it through the real SDK, and every reply is on disk before it counts. The second table asks a
provider that answers at once, without SDK and network: what is left is the order, the budget, the
journal and its disk.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import measure
from measure import Side, Timing
from tests import faulty_server, providers

from predictive_credit import config
from predictive_credit.journal import Journal
from predictive_credit.models import asking
from predictive_credit.models.anthropic_messages import AnthropicMessages
from predictive_credit.models.provider import Delivery, Provider
from predictive_credit.records import Prompt, Reply

LATENCY_S = 0.05
PRICE = config.Price(input=1.0, cached_input=0.1, output=5.0)
PARALLEL = 16


class Instant:
    """A provider without SDK and network."""

    name = "instant"

    def __init__(self, settings: config.Provided) -> None:
        self.settings = settings

    async def answer(self, prompt: Prompt, *, timeout_s: float) -> Delivery:
        """The same few words at once."""
        return Delivery(
            reply=Reply(
                text=faulty_server.TEXTS["good"], finish_reason="stop", model_requested=self.settings.model,
                model_resolved="instant-1", prompt_tokens=100, completion_tokens=20,
            )
        )  # fmt: skip

    async def aclose(self) -> None:
        """Nothing to close."""


def main() -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--units", type=int, default=160, help="of the server with latency (default 160)")
    parser.add_argument("--instant-units", type=int, default=1000, help="of the instant one (default 1000)")
    args = parser.parse_args()
    measure.machine()
    with tempfile.TemporaryDirectory() as folder, serving() as address:

        def slow(concurrency: int) -> Provider:
            chosen = providers.anthropic_settings(concurrency=concurrency, max_cost=1000.0)
            return AnthropicMessages(chosen, base_url=address, key="unused")

        def instant(concurrency: int) -> Provider:
            return Instant(providers.anthropic_settings(concurrency=concurrency, max_cost=1000.0))

        asks = Asks(Path(folder))
        asks.of(slow(1), 1)()  # the first request loads the SDK
        report(
            f"{args.units} units, {1000 * LATENCY_S:.0f} ms each on the server",
            timed(asks, slow, args.units, args.repeats), args.units,
        )  # fmt: skip
        report(
            f"{args.instant_units:,} units of an instant provider",
            timed(asks, instant, args.instant_units, args.repeats), args.instant_units,
        )  # fmt: skip


class Asks:
    """Asks units that nobody asked before, each time into a journal of its own on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = count()

    def of(self, provider: Provider, units: int) -> Callable[[], None]:
        """A round of one side."""

        def ask() -> None:
            number = next(self._numbers)
            ids = [f"unit/{number}/{k}" for k in range(units)]
            asked = [(unit, providers.asked(f"[{unit}] [always: good]")) for unit in ids]
            with Journal(self._folder / f"{number}.jsonl", {}) as journal:
                purse = asking.Purse(price=PRICE, spent_usd=0.0)
                replies = asking.ask(asked, provider, journal, purse=purse)
            if len(replies) != units:
                raise SystemExit(f"{len(replies)} of {units} units have replies")

        return ask


def timed(asks: Asks, make: Callable[[int], Provider], units: int, repeats: int) -> list[Timing]:
    """Sixteen at a time and one after another, in turn."""
    sides = [
        Side(name=f"{PARALLEL} at a time", run=asks.of(make(PARALLEL), units)),
        Side(name="one after another", run=asks.of(make(1), units)),
    ]
    return measure.interleaved(sides, repeats=repeats)


def report(title: str, timings: list[Timing], units: int) -> None:
    """Print one comparison, and units a second."""
    rates = ", ".join(f"{t.name} {units / min(t.seconds):,.0f}" for t in timings)
    measure.table(title, measure.compared(timings), f"units a second at best: {rates}")


@contextmanager
def serving() -> Iterator[str]:
    """The server's address; it is a process of its own."""
    command = [sys.executable, faulty_server.__file__, "0", "1", str(LATENCY_S)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise SystemExit("the server has no pipes")
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
        server.stdin.close()


if __name__ == "__main__":
    main()
