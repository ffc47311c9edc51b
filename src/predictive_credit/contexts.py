"""A state in a context as text: description, matched or donor explanation, question.

All contexts of a state begin with the same words, so that a model with a prefix cache reads them
once. An explanation is data: it stands in a fence that its own text cannot close.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from predictive_credit import prompts
from predictive_credit.records import Context, Explanation, PromptText, State

FENCE_OPEN: Final = "<explanation>"
FENCE_CLOSE: Final = "</explanation>"

# Anything shaped like a tag: our fence in any spelling, and the control tokens of chat templates
# (<|im_end|>, </s>, [INST]), which a tokenizer would read as the end of the user's turn.
_TAG_OPENING: Final = re.compile(r"[<＜](?=\s*[|/!?｜▁A-Za-z_])")
_BRACKET_TOKEN: Final = re.compile(r"\[(?=\s*/?\s*(?:INST|SYS|AVAILABLE_TOOLS|TOOL))", re.IGNORECASE)
_CONTROL: Final = re.compile(
    r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What is sent beside the words. `grammar` is GBNF, None where none holds the answer."""

    grammar: str | None
    max_tokens: int
    temperature: float
    top_p: float


def neutralised(text: str) -> str:
    """An untrusted text that can hold neither our fence nor a chat template's control token.

    The opening bracket of anything tag-like becomes a look-alike, control and invisible characters
    become spaces, a lone surrogate a question mark. Everything else stays as it was written.
    """
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    visible = _CONTROL.sub(" ", encodable.replace("\r\n", "\n").replace("\r", "\n"))
    return _BRACKET_TOKEN.sub("(", _TAG_OPENING.sub("‹", visible)).strip()


def forecast_prompt(
    state: State, context: Context, explanation: Explanation | None, *, sampling: Sampling
) -> PromptText:
    """What both calls of a state and context are asked; each call adds its own seed.

    `explanation` is the matched state's or the donor's, None in the description context. Raises
    ValueError if context and explanation do not go together.
    """
    if (context is Context.DESCRIPTION) != (explanation is None):
        have = "none" if explanation is None else f"that of {explanation.state_id}"
        raise ValueError(f"{state.id}: context {context} was given the wrong explanation: {have}")
    parts = [situation(state)]
    if explanation is not None:
        parts.append(fenced(explanation.text))
    parts.append(prompts.text("forecast_question"))
    return PromptText(
        key=f"{state.id}/{context}",
        system=prompts.text("forecast_system"),
        user="\n\n".join(parts),
        grammar=sampling.grammar,
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
    )


def situation(state: State) -> str:
    """The public side of a state. The intervention is added where the description does not name it."""
    if state.intervention.text in state.description:
        return state.description
    return f"{state.description}\nPlanned change: {state.intervention.text}"


def fenced(text: str) -> str:
    """An explanation as data, after a line that says so."""
    return "\n".join((prompts.text("explanation_intro"), FENCE_OPEN, neutralised(text), FENCE_CLOSE))
