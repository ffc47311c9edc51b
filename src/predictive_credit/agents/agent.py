"""Which agent is configured, what it is asked, and the explanation in its reply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from predictive_credit import config, prompts
from predictive_credit.agents.model_agent import GRAMMAR, ModelAgent
from predictive_credit.agents.playbook import Playbook
from predictive_credit.cards import read_card
from predictive_credit.contexts import Sampling, situation
from predictive_credit.models.llama_cpp import LlamaCppModel
from predictive_credit.records import BurnIn, Explanation, Prompt, PromptText, Reply, State


class Agent(Protocol):
    """Anything that writes about a public state."""

    @property
    def name(self) -> str:
        """The configured name."""

    def write(self, state: State, prompt: Prompt) -> Reply:
        """What the agent writes about `state`, asked with `prompt`."""

    def close(self) -> None:
        """End threads and free memory. A second call does nothing."""


def make(chosen: config.Agent, burn_in: BurnIn, *, locate: Callable[[config.ModelAgent], Path]) -> Agent:
    """The configured agent; the caller closes it. `locate` finds a GGUF file (sources.wheels.gguf)."""
    match chosen:
        case config.Playbook():
            return Playbook(burn_in, name=chosen.name)
        case config.ModelAgent():
            model = LlamaCppModel(
                locate(chosen), name=chosen.name, threads=chosen.threads, prefix_cache=chosen.prefix_cache,
                file_name=PurePosixPath(chosen.member).name,
            )  # fmt: skip
            return ModelAgent(model)


def sampling(chosen: config.Agent) -> Sampling:
    """What the configured agent is sent beside the words. The playbook reads none of it."""
    match chosen:
        case config.Playbook():
            return Sampling(grammar=None, max_tokens=400, temperature=0.0, top_p=1.0)
        case config.ModelAgent():
            return Sampling(
                grammar=GRAMMAR,
                max_tokens=chosen.max_tokens,
                temperature=chosen.temperature,
                top_p=chosen.top_p,
            )


def identity(chosen: config.Agent) -> dict[str, Any]:
    """The settings under which a reply counts as this agent's, for the journal's keys."""
    return config.section(chosen)


def card_prompt(state: State, *, sampling: Sampling) -> PromptText:
    """What an agent is asked about one state; its key is the elicit unit's id."""
    return PromptText(
        key=f"{state.id}/card",
        system=prompts.text("card_system"),
        user=f"{situation(state)}\n\n{prompts.text('card_question')}",
        grammar=sampling.grammar,
        max_tokens=sampling.max_tokens,
        temperature=sampling.temperature,
        top_p=sampling.top_p,
    )


def explanation(state_id: str, agent: str, reply: Reply) -> Explanation:
    """What was written, as it was written, and the card in it; a cut-off text keeps the slots it reached."""
    return Explanation(state_id=state_id, agent=agent, text=reply.text, card=read_card(reply.text))
