"""The embedded model served on this machine's loopback, in the Anthropic and the OpenAI protocol.

For trials without a hosted model: the same clients, requests and studies, offline and at no cost.
"""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.models import http_faults, llama_cpp, sdk

HOST: Final = "127.0.0.1"
HTTP_THREADS: Final = 16  # a connection that is kept open keeps its thread

GUIDE: Final = """\
{name} answers at {url}, in the Anthropic and the OpenAI protocol. Ctrl-C ends it.
Set in another terminal what the forecaster or agent of a run needs:
  pro, flash   export DEEPSEEK_BASE_URL={url} DEEPSEEK_API_KEY={key}
  anthropic    export ANTHROPIC_BASE_URL={url} ANTHROPIC_API_KEY={key}
  openai       export OPENAI_BASE_URL={url}/v1 OPENAI_API_KEY={key}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server: the id that its replies name, and its address (OpenAI clients add `/v1`)."""

    name: str
    url: str


@contextmanager
def serve(
    path: Path,
    *,
    name: str,
    port: int = 0,
    threads: int = 1,
    grammar: str | None = None,
    parallel: int = 1,
    key: str | None = None,
) -> Iterator[Served]:
    """The GGUF model in `path` as `name`, until the block ends.

    port: 0 is any free one. grammar: a GBNF or a JSON Schema that holds every answer whose request
    brings none: the server's Anthropic protocol passes `output_config` over. parallel: requests at
    once, each with the whole context. key: what clients must show, None for nothing. Raises BadSource
    for a file that is no model, BadConfig for a port that is taken or a grammar that is none.
    """
    if not path.is_file():
        raise BadSource(f"{name}: no model file at {path}; fetch it, or give another")
    _check_port(port)
    params = _params(path, name, port, threads, parallel, key)
    server = _started(path, name, threads, params)
    if grammar is not None:
        gbnf = _gbnf(grammar, name)
        _check_grammar(server, gbnf, name)
        del server
        params.sampling.grammar.grammar = gbnf
        server = _started(path, name, threads, params)
    try:
        yield Served(name=name, url=server.listening_address)
    finally:
        del server  # its destructor ends its threads


def run(
    path: Path,
    *,
    name: str,
    port: int = 0,
    threads: int = 1,
    grammar: str | None = None,
    parallel: int = 1,
    key: str | None = None,
    say: Callable[[str], None] = print,
    wait: Callable[[], object] | None = None,
) -> None:
    """Serve until `wait` returns (None: until Ctrl-C); say how a run finds the server, but not the key."""
    with serve(
        path, name=name, port=port, threads=threads, grammar=grammar, parallel=parallel, key=key
    ) as served:
        say(GUIDE.format(name=name, url=served.url, key="none" if key is None else "YOUR_KEY"))
        if grammar is not None and not sdk.is_schema(grammar):
            say("Every answer is held to one form: forecasts need forecaster.elicitation=sentence.")
        try:
            (wait or threading.Event().wait)()
        except KeyboardInterrupt:
            say(f"{name} has ended.")


def _params(path: Path, name: str, port: int, threads: int, parallel: int, key: str | None) -> Any:
    params = llama_cpp.params_for(path, threads, llama_cpp.SILENT)
    params.model_alias = {name}
    params.port = port
    params.api_keys = [] if key is None else [key]
    params.n_ctx = llama_cpp.CONTEXT_TOKENS * parallel  # shared out among the slots
    params.n_parallel = parallel
    params.n_threads_http = HTTP_THREADS + parallel
    return params


def _started(path: Path, name: str, threads: int, params: Any) -> Any:
    import xllamacpp  # noqa: PLC0415  only where an embedded model is used

    try:
        server = xllamacpp.Server(params)
    except RuntimeError:
        reason = llama_cpp.load_error(path, threads)
    else:
        # Destroying a server whose loop has not begun waits for ever: one token says that it has.
        server.handle_completions({"prompt": "a", "n_predict": 1})
        return server
    raise BadSource(f"{name}: llama.cpp cannot serve {path} ({reason}); give another GGUF file")


def _check_grammar(server: Any, gbnf: str, name: str) -> None:
    """Raises BadConfig for a grammar that is none: as a default it would end the whole process."""
    with tempfile.TemporaryFile() as log:
        with llama_cpp.stderr_into(log):
            answer = server.handle_completions({"prompt": "a", "n_predict": 1, "grammar": gbnf})
        log.seek(0)
        said = " ".join(log.read().decode(errors="replace").split())
    if "error" in answer:
        reason = http_faults.shortened(said or str(answer["error"].get("message")))
        raise BadConfig(f"{name}: llama.cpp cannot read the grammar ({reason}); correct it")


def _gbnf(grammar: str, name: str) -> str:
    import xllamacpp  # noqa: PLC0415

    if not sdk.is_schema(grammar):
        return grammar
    try:
        return str(xllamacpp.json_schema_to_grammar(grammar))
    except (RuntimeError, ValueError) as error:
        raise BadConfig(f"{name}: llama.cpp cannot read the JSON Schema ({error}); correct it") from None


def _check_port(port: int) -> None:
    """Raises BadConfig for a port that cannot be had; llama.cpp would not say why it does not start."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError) as error:
            raise BadConfig(f"port {port} of {HOST} cannot be had ({error}); give another, or 0") from None
