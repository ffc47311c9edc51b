"""The embedded model as an author, its text complete by grammar. Kept for comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final

from predictive_credit import config, wording
from predictive_credit.models import llama_cpp
from predictive_credit.models.llama_cpp import LlamaCppModel
from predictive_credit.records import Target

# GBNF. A line holds one sentence or two; the card's labels and their order are given.
_CARD: Final = r"""
root ::= "Direction: " {direction} "\nTarget: " target "\nIntermediate: " line "\nRegime: " line rest
rest ::= "\nFalsifier: " line "\nCounterfactual: " line
target ::= {target}
{shared}
line ::= [A-Za-z] [^\n<>]{{10,160}}
""".strip()
NOTE_GRAMMAR: Final = r"root ::= [A-Za-z] [^\n<>]{80,480} [.]"


def card_grammar(targets: Sequence[Target]) -> str:
    """Six lines; the target's is the sentence that forecasts are elicited in."""
    is_one_change = [target.form for target in targets] == ["change"]
    return _CARD.format(
        direction="verb" if is_one_change else "line",
        target=wording.forecast_rule(targets),
        shared=wording.shared_rules(targets),
    )


def held_to(schema: Mapping[str, Any]) -> str:
    """The grammar of the JSON values that a JSON Schema admits, written without white space.

    JSON lets any amount of it stand between two words, and a small model spends its tokens there.
    """
    import xllamacpp  # noqa: PLC0415  # a second's work, and most who come by here need no model

    dense = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
    return str(xllamacpp.json_schema_to_grammar(json.dumps({"x-guidance": dense, **schema})))


def embedded(
    path: Path,
    chosen: config.ModelAgent | config.ModelExtractor,
    *,
    context_tokens: int = llama_cpp.CONTEXT_TOKENS,
) -> LlamaCppModel:
    """The configured model in this process, its file found at `path`; the caller closes it."""
    return LlamaCppModel(
        path, name=chosen.name, threads=chosen.threads, prefix_cache=chosen.prefix_cache,
        file_name=PurePosixPath(chosen.member).name, context_tokens=context_tokens,
    )  # fmt: skip
