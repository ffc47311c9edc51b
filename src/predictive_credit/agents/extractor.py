"""Who reads a text into a card, and what the reader is told: the text, and nothing else of it.

A reader knows neither state nor source nor agent nor context, so it reads an ordinary note and an
elicited card by the same lights. Whatever it answers, only quotes that the text holds count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from predictive_credit import config, prompts
from predictive_credit.agents import model_agent
from predictive_credit.agents.rules import RulesReader
from predictive_credit.cards import read_extraction, supported
from predictive_credit.contexts import Sampling, fenced
from predictive_credit.models import providers
from predictive_credit.models.model import Model
from predictive_credit.models.provider import Provider
from predictive_credit.records import SLOT_NAMES, Explanation, PromptText, Reply

# GBNF: the six keys in their order, each null or a short text and a short quote. No backslash, so that
# nothing needs an escape.
GRAMMAR: Final = "\n".join(
    (
        'root ::= "{" ' + ' "," '.join(rf'"\"{name}\":" slot' for name in SLOT_NAMES) + ' "}"',
        r'slot ::= "null" | "{\"text\":" string ",\"quote\":" string "}"',
        r'string ::= "\"" [^"\\\x00-\x1f<>]{1,120} "\""',
    )
)


def make(chosen: config.Extractor, *, locate: Callable[[config.ModelExtractor], Path]) -> Model | Provider:
    """The configured reader; who asks it closes it. `locate` finds a GGUF file (sources.wheels.gguf)."""
    match chosen:
        case config.Rules():
            return RulesReader(name=chosen.name)
        case config.ModelExtractor():
            return model_agent.embedded(locate(chosen), chosen)
        case config.Provided():
            return providers.make(chosen)


def sampling(chosen: config.Extractor) -> Sampling:
    """What the configured reader is sent beside the words. The rules read none of it."""
    if isinstance(chosen, config.Rules):
        return Sampling(grammar=None, max_tokens=600, temperature=0.0, top_p=1.0)
    return Sampling(
        grammar=GRAMMAR if isinstance(chosen, config.ModelExtractor) else None,
        max_tokens=chosen.max_tokens,
        temperature=chosen.temperature,
        top_p=chosen.top_p,
    )


def identity(chosen: config.Extractor) -> dict[str, Any]:
    """The settings under which a reply counts as this reader's, for the journal's keys."""
    return providers.identity(chosen) if isinstance(chosen, config.Provided) else config.section(chosen)


def extraction_prompt(explanation: Explanation, *, sampling: Sampling) -> PromptText:
    """What a reader is asked about one text; its key, which is not sent, is the extract unit's id."""
    return PromptText(
        key=f"{explanation.id}/extract",
        system=prompts.text("extract_system"),
        user=f"{fenced(explanation.text, intro='extract_intro')}\n\n{prompts.text('extract_question')}",
        grammar=sampling.grammar,
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
    )


def extracted(explanation: Explanation, reply: Reply) -> Explanation:
    """The explanation with the card in a reader's reply, as far as the text itself says it."""
    card = supported(read_extraction(reply.text), explanation.text)
    return replace(explanation, card=card, extraction=reply.text)
