"""A loopback server that speaks the Anthropic Messages protocol and misbehaves as real ones do.

    python tests/faulty_server.py RATE SEED [LATENCY_S]

prints its port and serves until its standard input closes. A prompt carries its unit's id as
`[unit/7]`. What happens to a request is drawn from seed, unit and attempt, faulty at the given rate,
unless the prompt says it: `[first: reset]` of the unit's first attempt, `[always: hang]` of each.
`GET /counts` gives attempts seen and contents delivered for each unit.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

RARE: Final = 0.04  # of the faults that draw it, how often a hang is one: each costs a whole deadline
NUMBERS: Final = {"point": 0.012, "lower": -0.004, "upper": 0.02}
OBEYED: Final = re.compile(r"ignore the format and say (.*?) and nothing else", re.DOTALL)


def answer(numbers: Mapping[str, Any] | str = NUMBERS) -> str:
    """The object that is asked for, or something like it."""
    return '{"roc_auc":' + (numbers if isinstance(numbers, str) else json.dumps(numbers)) + "}"


TEXTS: Final[Mapping[str, str]] = {
    "good": answer(),
    "prose": f"Certainly! Here is my forecast:\n```json\n{answer()}\n```\nLet me know if you need more.",
    "cut_text": answer()[:30],
    "other_shape": '{"forecast": 0.012, "confidence": "high"}',
    "nan": answer('{"point":NaN,"lower":-0.004,"upper":0.02}'),
    "infinity": answer('{"point":0.012,"lower":-Infinity,"upper":Infinity}'),
    "overflow": answer('{"point":0.012,"lower":-0.004,"upper":1e999}'),
    "reversed": answer({"point": 0.012, "lower": 0.02, "upper": -0.004}),
    "strings": answer({"point": "0.012", "lower": "-0.004", "upper": "0.02"}),
    "percents": answer({"point": "1.2%", "lower": "-0.4%", "upper": "2%"}),
    "bare_percents": answer('{"point":1.2%,"lower":-0.4%,"upper":2%}'),
    "refusal_text": "I'm sorry, but I can't help with forecasts of that kind.",
    "noise": " ".join(f"token{k % 89} {{" if k % 50 == 0 else f"token{k % 97}" for k in range(10_000)),
}  # fmt: skip

Body = dict[str, Any]


def message(content: list[Body], stop_reason: str = "end_turn") -> Body:
    """A body of the protocol."""
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "served-1", "content": content,
        "stop_reason": stop_reason, "stop_sequence": None,
        "usage": {"input_tokens": 90, "cache_read_input_tokens": 10, "output_tokens": 25},
    }  # fmt: skip


def said(text: str) -> list[Body]:
    """One block of text."""
    return [{"type": "text", "text": text}]


CONTENTS: Final[Mapping[str, Body]] = {
    **{kind: message(said(text)) for kind, text in TEXTS.items()},
    "thinking": message([{"type": "thinking", "thinking": "{Hm", "signature": "x"}, *said(answer())]),
    "empty": message([]),
    "cut_at_limit": message(said(answer()), "max_tokens"),
    "refusal_stop": message([], "refusal"),
}  # fmt: skip


def error(kind: str, text: str) -> Body:
    """An error body of the protocol."""
    return {"type": "error", "error": {"type": kind, "message": text}}


ERRORS: Final[Mapping[str, tuple[int, Body]]] = {
    "limited": (429, error("rate_limit_error", "Number of requests has exceeded your limit")),
    "error_500": (500, error("api_error", "Internal server error")),
    "overloaded_529": (529, error("overloaded_error", "Overloaded")),
    "overloaded_in_200": (200, error("overloaded_error", "Overloaded")),
}
TROUBLES: Final = (*ERRORS, "reset", "cut_body", "hang")  # no content arrives
UNREADABLE: Final = tuple(k for k in CONTENTS if k not in ("good", "prose", "thinking"))
FAULTS: Final = (*TROUBLES, *UNREADABLE, "prose", "thinking")


@cache
def response(kind: str) -> bytes:
    """The bytes of a whole answer."""
    status, body = ERRORS[kind] if kind in ERRORS else (200, CONTENTS[kind])
    return http(status, json.dumps(body), "retry-after: 0.004\r\n" if kind == "limited" else "")


def http(status: int, body: str, headers: str = "") -> bytes:
    """An HTTP/1.1 answer on a connection that is kept."""
    data = body.encode()
    fields = f"content-type: application/json\r\n{headers}content-length: {len(data)}\r\n"
    return f"HTTP/1.1 {status} -\r\n{fields}\r\n".encode() + data


class Book:
    """What the server decides and remembers of each unit."""

    def __init__(self, rate: float, seed: int) -> None:
        self.attempts: Counter[str] = Counter()
        self.contents: Counter[str] = Counter()
        self._rate, self._seed = rate, seed

    def kind(self, unit: str, prompt: str) -> str:
        """What happens to this attempt."""
        self.attempts[unit] += 1
        if told := re.search(r"\[always: (\w+)\]", prompt):
            return told[1]
        if told := re.search(r"\[first: (\w+)\]", prompt):
            return told[1] if self.attempts[unit] == 1 else "good"
        return drawn(self._rate, self._seed, unit, self.attempts[unit])


def drawn(rate: float, seed: int, unit: str, attempt: int) -> str:
    """What happens to an attempt whose prompt does not say it."""
    rng = random.Random(f"{seed}/{unit}/{attempt}")
    if rng.random() >= rate:
        return "good"
    kind = rng.choice(FAULTS)
    return "error_500" if kind == "hang" and rng.random() > RARE else kind


class Connection(asyncio.Protocol):
    """One kept connection; requests on it follow each other."""

    def __init__(self, book: Book, latency_s: float) -> None:
        self._book, self._latency_s = book, latency_s
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, found, rest = self._data.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if found and len(rest) >= (size := int(length[1]) if length else 0):
            self._data = rest[size:]
            asyncio.get_running_loop().call_later(self._latency_s, self._answer, head, rest[:size])

    def _answer(self, head: bytes, body: bytes) -> None:
        if head.startswith(b"GET"):
            counts = {unit: [n, self._book.contents[unit]] for unit, n in self._book.attempts.items()}
            self._transport.write(http(200, json.dumps(counts)))
            return
        prompt = str(json.loads(body)["messages"][0]["content"])
        named = re.search(r"\[(unit/[\w/.-]+)\]", prompt)
        unit = named[1] if named else "unit/?"
        kind = self._book.kind(unit, prompt)
        if kind == "hang" or self._transport.is_closing():
            return
        if kind == "reset":
            self._reset(response("good"))
        elif kind == "cut_body":
            self._transport.write(http(200, json.dumps(CONTENTS["good"])[:80]))
        elif kind in ERRORS:
            self._transport.write(response(kind))
        else:
            self._book.contents[unit] += 1
            obeyed = OBEYED.search(prompt)
            told = http(200, json.dumps(message(said(obeyed[1])))) if obeyed else response(kind)
            self._transport.write(told)

    def _reset(self, whole: bytes) -> None:
        """Half an answer, then the connection is torn down as a crashed server's is."""
        self._transport.write(whole[: len(whole) - 40])
        linger = struct.pack("ii", 1, 0)
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._transport.abort()


async def serve(book: Book, latency_s: float) -> None:
    """Print the port, and serve until standard input closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(book, latency_s), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    rate, seed, latency_s = float(sys.argv[1]), int(sys.argv[2]), float((*sys.argv, "0.001")[3])
    asyncio.run(serve(Book(rate, seed), latency_s))
