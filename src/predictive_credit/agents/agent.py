"""Which agent is configured, what it is asked, and the explanation in its reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from predictive_credit import config, prompts, wording
from predictive_credit.agents import model_agent
from predictive_credit.agents.playbook import Playbook, Textbook
from predictive_credit.cards import read_card
from predictive_credit.contexts import Sampling, situation
from predictive_credit.errors import BadConfig
from predictive_credit.models import providers
from predictive_credit.models.model import Model
from predictive_credit.models.provider import Provider
from predictive_credit.records import BurnIn, Explanation, PromptText, Reply, Source, State, Target

QUESTIONS: dict[Source, str] = {"elicited": "card_question", "ordinary": "note_question"}


def make(
    chosen: config.Agent,
    burn_in: BurnIn,
    textbook: Textbook | None,
    targets: Sequence[Target],
    *,
    locate: Callable[[config.ModelAgent], Path],
) -> Playbook | Model | Provider:
    """The configured agent; who asks a model closes it. `locate` finds a GGUF file (sources.wheels.gguf).

    Raises BadConfig for a playbook in a study without a textbook.
    """
    match chosen:
        case config.Playbook():
            if textbook is None:
                raise BadConfig(
                    "agent playbook was asked to explain states of a study that has no textbook; "
                    "give explanations in the study's own file, or choose another agent"
                )
            return Playbook(burn_in, textbook, targets, name=chosen.name)
        case config.ModelAgent():
            return model_agent.embedded(locate(chosen), chosen)
        case config.Provided():
            return providers.make(chosen)


def sampling(chosen: config.Agent, targets: Sequence[Target]) -> Mapping[Source, Sampling]:
    """What the configured agent is sent beside the words, by source. The playbook reads none of it.

    The embedded model's text is held by a grammar; a provider's is not, and is read as it comes.
    """
    if isinstance(chosen, config.Playbook):
        return dict.fromkeys(QUESTIONS, Sampling(grammar=None, max_tokens=400, temperature=0.0, top_p=1.0))
    grammars: dict[Source, str | None] = dict.fromkeys(QUESTIONS)
    if isinstance(chosen, config.ModelAgent):
        grammars = {"elicited": model_agent.card_grammar(targets), "ordinary": model_agent.NOTE_GRAMMAR}
    return {
        source: Sampling(
            grammar=grammar,
            max_tokens=chosen.max_tokens,
            temperature=chosen.temperature,
            top_p=chosen.top_p,
        )
        for source, grammar in grammars.items()
    }


def identity(chosen: config.Agent) -> dict[str, Any]:
    """The settings under which a reply counts as this agent's, for the journal's keys."""
    return providers.identity(chosen) if isinstance(chosen, config.Provided) else config.section(chosen)


def source_prompt(
    state: State, source: Source, targets: Sequence[Target], *, sampling: Mapping[Source, Sampling]
) -> PromptText:
    """What an agent is asked about one state for one source; its key is the elicit unit's id."""
    measured = wording.listed([f"held-out {wording.in_sentence(target)}" for target in targets])
    chosen = sampling[source]
    return PromptText(
        key=f"{state.id}/{source}",
        system=prompts.text("card_system"),
        user=f"{situation(state)}\n\n{prompts.text(QUESTIONS[source]).format(what=measured)}",
        grammar=chosen.grammar,
        max_tokens=chosen.max_tokens,
        temperature=chosen.temperature,
        top_p=chosen.top_p,
    )


def explanation(state_id: str, source: Source, agent: str, reply: Reply) -> Explanation:
    """What was written, as it was written, and the card in it; a cut-off text keeps the slots it reached."""
    return Explanation(
        state_id=state_id, source=source, agent=agent, text=reply.text, card=read_card(reply.text)
    )
