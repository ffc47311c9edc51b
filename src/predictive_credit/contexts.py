"""A state in a context as text: description, what the context shows of an explanation, question.

All contexts of a state begin with the same words, so that a model with a prefix cache reads them
once. An explanation is data: it stands in a fence that its own text cannot close.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from predictive_credit import prompts, wording
from predictive_credit.cards import before_reason
from predictive_credit.records import (
    SLOT_NAMES,
    Context,
    Explanation,
    PromptText,
    SlotName,
    Source,
    State,
    Target,
)

FENCE_OPEN: Final = "<explanation>"
FENCE_CLOSE: Final = "</explanation>"
NUMERIC_SLOTS: Final[tuple[SlotName, ...]] = ("direction", "target")
NOT_STATED: Final = "not stated"  # an empty slot, which `read_card` reads as empty again

# Anything shaped like a tag: our fence in any spelling, and the control tokens of chat templates
# (<|im_end|>, </s>, [INST]), which a tokenizer would read as the end of the user's turn.
_TAG_OPENING: Final = re.compile(r"[<＜](?=\s*[|/!?｜▁A-Za-z_])")
_BRACKET_TOKEN: Final = re.compile(r"\[(?=\s*/?\s*(?:INST|SYS|AVAILABLE_TOOLS|TOOL))", re.IGNORECASE)
_CONTROL: Final = re.compile(
    r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


Form = Literal["text", "card", "numbers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Showing:
    """What a context shows: whose explanation of which source, and how much of it.

    Form `text` is the explanation as it was written, `card` what was read from it as six labelled
    lines, `numbers` of these the direction and target alone, without the reason they give.
    """

    source: Source | None  # None: the first of the state's sources
    donor: bool  # another state's explanation, under the study's mapping
    form: Form


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What is sent beside the words, and which words ask for a forecast.

    `grammar` is GBNF or a JSON Schema, None where nothing holds the answer to its shape.
    """

    grammar: str | None
    max_tokens: int
    temperature: float | None
    top_p: float | None
    question: str = "forecast_question"


def neutralised(text: str) -> str:
    """An untrusted text that can hold neither our fence nor a chat template's control token.

    The opening bracket of anything tag-like becomes a look-alike, control and invisible characters
    become spaces, a lone surrogate a question mark. Everything else stays as it was written.
    """
    encodable = text.encode("utf-8", "replace").decode("utf-8")
    visible = _CONTROL.sub(" ", encodable.replace("\r\n", "\n").replace("\r", "\n"))
    return _BRACKET_TOKEN.sub("(", _TAG_OPENING.sub("‹", visible)).strip()


def forecast_prompt(
    state: State,
    context: Context,
    explanation: Explanation | None,
    *,
    showing: Showing | None,
    targets: Sequence[Target],
    sampling: Sampling,
) -> PromptText:
    """What both calls of a state and context are asked; each call adds its own seed.

    `explanation` is the matched state's or the donor's, None where the context shows none. Raises
    ValueError if context, showing and explanation do not go together.
    """
    if not _goes_together(state, context, explanation, showing):
        have = "none" if explanation is None else explanation.id
        raise ValueError(f"{state.id}: context {context} was given the wrong explanation: {have}")
    parts = [situation(state)]
    if explanation is not None and showing is not None:
        parts.append(fenced(shown(explanation, showing.form), intro="explanation_intro"))
    parts.append(question(targets, sampling.question))
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
    """The public side of a state. The intervention is added where the description does not name it.

    A user's own description is neutralised like any other text that somebody else wrote.
    """
    if state.intervention.text in state.description:
        return neutralised(state.description)
    return neutralised(f"{state.description}\nPlanned change: {state.intervention.text}")


def shown(explanation: Explanation, form: Form) -> str:
    """An explanation in one form: as written, as six labelled lines, or direction and target alone.

    Direction and target alone end where they turn to their reason, for a mechanism is no number.
    """
    if form == "text":
        return explanation.text
    said = {name: slot.text for name, slot in explanation.card.filled()}
    if form == "card":
        return labelled(SLOT_NAMES, said)
    return labelled(NUMERIC_SLOTS, {name: before_reason(text) for name, text in said.items()})


def question(targets: Sequence[Target], name: str = "forecast_question") -> str:
    """What is asked below every situation: the prompt text called `name`, filled in."""
    each = "" if len(targets) == 1 else " each"
    units = [f"{t.name} is a {t.form} in {t.unit}" for t in targets]
    return prompts.text(name).format(
        what=_measured(targets), each=each, shape=wording.shape(targets), units="; ".join(units)
    )


def fenced(text: str, *, intro: str) -> str:
    """An untrusted text as data, after a line that says so (the prompt text called `intro`)."""
    return "\n".join((prompts.text(intro), FENCE_OPEN, neutralised(text), FENCE_CLOSE))


def labelled(names: Sequence[SlotName], said: Mapping[SlotName, str]) -> str:
    """One line a slot, `Direction: ...`; an empty one is `not stated`."""
    return "\n".join(f"{name.capitalize()}: {said.get(name) or NOT_STATED}" for name in names)


def _goes_together(
    state: State, context: Context, explanation: Explanation | None, showing: Showing | None
) -> bool:
    """The description context shows nothing; any other shows the one explanation it promises."""
    if context is Context.DESCRIPTION or explanation is None or showing is None:
        return context is Context.DESCRIPTION and explanation is None and showing is None
    is_right_state = (explanation.state_id != state.id) == showing.donor
    return is_right_state and showing.source in (None, explanation.source)


def _measured(targets: Sequence[Target]) -> str:
    """`the measured change in accuracy and in log loss`, `the measured yield`."""
    changes = [f"in {wording.in_sentence(target)}" for target in targets if target.form == "change"]
    levels = [wording.in_sentence(target) for target in targets if target.form == "level"]
    parts = [f"the measured change {wording.listed(changes)}"] if changes else []
    return " and ".join(parts + ([f"the measured {wording.listed(levels)}"] if levels else []))
