"""The embedded model with its prefix cache against no cache, and against JSON answers without one.

    python benchmarks/embedded.py

A small project is made and planned in a temporary folder, and its real prompts are asked. All sides
have the same model file, one slot, the configured threads, sampling and seeds. They take turns
state by state (6 units: three contexts, two calls each), so a busy moment meets all of them.

The JSON answer holds the same three numbers under named keys, after a reason of 100 to 200
characters, as such formats usually have.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path

import measure
from measure import Side
from tests import small_project

from predictive_credit import config, prompts, tables
from predictive_credit.models.llama_cpp import LlamaCppModel
from predictive_credit.records import Prompt, PromptText, Reply, Unit, UnitKind
from predictive_credit.sources import wheels
from predictive_credit.stages import burn_in, execute, explain, features, fetch, forecast, plan, states

NAME = "molecular"
UNITS_PER_STATE = 6

NUMBERS = r"""
verb ::= "\"increase\"" | "\"decrease\""
size ::= "0.0" [0-9] [0-9] [0-9]
signed ::= "-"? size
numbers ::= "\"direction\": " verb ", \"point\": " signed ", " ends
ends ::= "\"lower_80\": " signed ", \"upper_80\": " signed "}"
""".strip()
JSON = r'root ::= "{\"reason\": \"" [A-Za-z0-9 ,.%()-]{100,200} "\", " numbers' + "\n" + NUMBERS
QUESTION = (
    "Using all of the above, forecast the measured change in ROC AUC as a JSON object with the keys "
    "reason, direction, point, lower_80 and upper_80."
)


@dataclass(slots=True, kw_only=True)
class Asker:
    """One side: a loaded model, what it makes of a planned prompt, and every reply so far."""

    name: str
    model: LlamaCppModel
    change: Callable[[Prompt], Prompt]
    replies: list[Reply] = field(default_factory=list)

    def ask(self, asked: Sequence[Prompt]) -> None:
        """Answer these prompts one after another."""
        self.replies += [self.model.answer(self.change(prompt)) for prompt in asked]


def main() -> None:
    """Print seconds and tokens of each side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--units", type=int, default=24, help="planned units, by sixes up to 72 (default 24)")
    args = parser.parse_args()
    measure.machine()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as models:
        chosen, asked = planned(Path(folder), args.units)
        sides = [
            Asker(name=name, model=models.enter_context(closing(_load(chosen, cached))), change=change)
            for name, cached, change in (
                ("ours: sentence, prefix cache", True, _unchanged),
                ("sentence, no cache", False, _unchanged),
                ("JSON with a reason, no cache", False, _as_json),
            )
        ]
        compare(sides, asked)


def planned(folder: Path, units: int) -> tuple[config.LlamaCpp, list[Prompt]]:
    """The forecast prompts of a small project, planned as a user's would be, in their order."""
    os.environ["PREDICTIVE_CREDIT_VAULT"] = str(folder / "vault")
    project, params = small_project.project(folder / "project")
    for pool in params.pools:
        fetch.run(project, params, pool)
        features.run(project, params, pool)
    for stage in (states, burn_in, execute, explain, plan):
        stage.run(project, params, NAME)
    paths, chosen = project.study(NAME), params.forecaster
    if not isinstance(chosen, config.LlamaCpp):
        raise SystemExit(f"the configured forecaster is {chosen.kind}; this needs forecaster=smollm2")
    texts = {text.key: text for text in tables.read_records(paths.prompts, PromptText)}
    plan_ = [u for u in tables.read_records(paths.plan, Unit) if u.kind is UnitKind.FORECAST]
    return chosen, [forecast.prompt_of(unit, texts) for unit in plan_[:units]]


def compare(sides: Sequence[Asker], asked: Sequence[Prompt]) -> None:
    """Ask every state of every side in turn; a round is one state."""
    blocks = [asked[at : at + UNITS_PER_STATE] for at in range(0, len(asked), UNITS_PER_STATE)]
    waiting = {side.name: iter(blocks) for side in sides}

    def asks(side: Asker) -> Callable[[], None]:
        return lambda: side.ask(next(waiting[side.name]))

    timings = measure.interleaved([Side(name=s.name, run=asks(s)) for s in sides], repeats=len(blocks))
    first = sum(timings[0].seconds)
    rows: list[tuple[str, ...]] = [
        ("side", "s a unit", "ratio", "states' range", "tokens read", "written", "unfinished")
    ]
    for side, timing in zip(sides, timings, strict=True):
        found, total = measure.ratios(timing, timings[0]), sum(timing.seconds)
        read = sum((r.prompt_tokens or 0) - (r.cached_tokens or 0) for r in side.replies)
        rows.append(
            (
                side.name, f"{total / len(asked):.3f}", f"{total / first:.2f}",
                f"{min(found):.2f} to {max(found):.2f}", f"{read / len(asked):.0f}",
                f"{sum(r.completion_tokens or 0 for r in side.replies) / len(asked):.0f}",
                str(sum(r.finish_reason != "stop" for r in side.replies)),
            )
        )  # fmt: skip
    measure.table(f"{len(asked)} planned units, means a unit, ratio of the totals", rows)


def _load(chosen: config.LlamaCpp, cached: bool) -> LlamaCppModel:
    return LlamaCppModel(
        wheels.gguf(chosen), name=chosen.name, threads=chosen.threads, prefix_cache=cached
    )  # fmt: skip


def _unchanged(prompt: Prompt) -> Prompt:
    return prompt


def _as_json(prompt: Prompt) -> Prompt:
    user = prompt.user.replace(prompts.text("forecast_question"), QUESTION)
    return replace(prompt, user=user, grammar=JSON, max_tokens=192)


if __name__ == "__main__":
    main()
