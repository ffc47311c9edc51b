"""A GGUF model in this process, through llama.cpp's server (the xllamacpp wheel).

One slot, so that one order of units gives one sequence of replies. The server insists on a port:
it gets a free one of the loopback, and a key nobody knows, so that runs cannot meet.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from predictive_credit import canonical
from predictive_credit.errors import BadSource
from predictive_credit.records import Prompt, Reply

CONTEXT_TOKENS = 2048  # prompt and answer; the longest card prompt takes some 600
SILENT, ERRORS_ONLY = 0, 1  # llama.cpp's verbosity
LOG_PATIENCE_S = 2.0


class LlamaCppModel:
    """The model in `path`. `file_name` and the file's digest are its resolved identity.

    A prompt and its answer have `context_tokens`. With `prefix_cache`, tokens shared with the prompt
    before are not read again: faster, but the last digits of a reply may depend on which unit came
    before. `threads` wait for each other by spinning: more of them than there are idle cores is slower
    by an order of magnitude, not faster.
    """

    def __init__(
        self,
        path: Path,
        *,
        name: str,
        threads: int,
        prefix_cache: bool,
        file_name: str | None = None,
        context_tokens: int = CONTEXT_TOKENS,
    ) -> None:
        if not path.is_file():
            raise BadSource(f"{name}: no model file at {path}; fetch it, or correct the member in conf/")
        self.name = name
        self.resolved = f"{file_name or path.name}@sha256:{canonical.digest_file(path)[:12]}"
        self._prefix_cache = prefix_cache
        self._server: Any = _server(path, name, threads, context_tokens)

    def answer(self, prompt: Prompt) -> Reply:
        """One chat completion. What the server refuses (a prompt too long) is a reply without text."""
        if self._server is None:
            raise RuntimeError(f"{self.name} was closed")
        started = time.perf_counter()
        try:
            raw = self._server.handle_chat_completions(_request(prompt, prefix_cache=self._prefix_cache))
        except (RuntimeError, ValueError) as error:  # thrown out of C++, or bytes that are not UTF-8
            raw = {"error": {"message": str(error)}}
        return _reply(raw, self.name, self.resolved, latency_s=time.perf_counter() - started)

    def close(self) -> None:
        """End the server's threads and free the model."""
        self._server = None  # its destructor joins them


def _request(prompt: Prompt, *, prefix_cache: bool) -> dict[str, Any]:
    request: dict[str, Any] = {
        "messages": [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ],
        "max_tokens": prompt.max_tokens,
        "temperature": prompt.temperature,
        "top_p": prompt.top_p,
        "seed": prompt.seed,
        # llama.cpp would cut the tail by its own defaults; only what the prompt says may shape a reply.
        "top_k": 0,
        "min_p": 0.0,
        "cache_prompt": prefix_cache,
    }
    return request if prompt.grammar is None else request | {"grammar": prompt.grammar}


def _reply(raw: Any, requested: str, resolved: str, *, latency_s: float) -> Reply:
    if "choices" not in raw:
        message = raw.get("error", {}).get("message", "no content")
        return Reply(
            text="", finish_reason=f"error: {message}", model_requested=requested,
            model_resolved=resolved, latency_s=latency_s,
        )  # fmt: skip
    choice, usage = raw["choices"][0], raw.get("usage", {})
    return Reply(
        text=choice["message"].get("content") or "",
        finish_reason=choice.get("finish_reason"),
        model_requested=requested,
        model_resolved=resolved,
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=usage.get("completion_tokens"),
        cached_tokens=usage.get("prompt_tokens_details", {}).get("cached_tokens"),
        latency_s=latency_s,
    )


def _server(path: Path, name: str, threads: int, context_tokens: int) -> Any:
    import xllamacpp  # noqa: PLC0415  only where an embedded model is used

    try:
        server = xllamacpp.Server(params_for(path, threads, SILENT, context_tokens))
    except RuntimeError:
        reason = load_error(path, threads)
    else:
        # Destroying a server whose loop has not begun waits for ever: one token says that it has.
        server.handle_completions({"prompt": "a", "n_predict": 1})
        return server
    raise BadSource(
        f"{name}: llama.cpp cannot load {path} ({reason}); remove the file and fetch it again, "
        "or name another GGUF member"
    )


def params_for(path: Path, threads: int, verbosity: int, context_tokens: int = CONTEXT_TOKENS) -> Any:
    import xllamacpp  # noqa: PLC0415

    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.n_gpu_layers = 0  # the same arithmetic on every machine of a kind
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.cache_ram_mib = 0  # the slot's own cache is all that units of one state need
    params.fit_params = False
    params.warmup = False
    params.verbosity = verbosity
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [secrets.token_hex(16)]
    params.n_threads_http = 1
    params.ui = False
    params.endpoint_slots = False
    return params


def load_error(path: Path, threads: int) -> str:
    """Why a load failed: tried again aloud, with the C library's stderr kept from the terminal."""
    import xllamacpp  # noqa: PLC0415

    with tempfile.TemporaryFile() as log, stderr_into(log):
        try:
            xllamacpp.Server(params_for(path, threads, ERRORS_ONLY))
        except RuntimeError as error:
            last = str(error)
        else:
            last = "the first attempt failed, a second one did not"
        return _first_error(_whole(log)) or last


@contextmanager
def stderr_into(log: IO[bytes]) -> Iterator[None]:
    """The process's file descriptor 2 leads to `log`; Python's own stderr is flushed first."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        os.dup2(log.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _whole(log: IO[bytes]) -> str:
    """What llama.cpp's own thread writes, up to the line it always ends a failed load with."""
    deadline = time.monotonic() + LOG_PATIENCE_S
    while True:
        log.seek(0)
        text = log.read().decode(errors="replace")
        if "exiting due to model loading error\n" in text or time.monotonic() > deadline:
            return text
        time.sleep(0.01)


def _first_error(log: str) -> str | None:
    """The first error line, which is the cause; the later ones repeat that loading failed."""
    found = re.search(r"^\S+ E +(?:\S+ +)?(?:\w+: +)?(.+)$", log, re.MULTILINE)
    return found.group(1).strip() if found else None
