"""Stage `explain`: the agent writes one card a state, from public state and intervention only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from predictive_credit import config, planning, tables
from predictive_credit.agents import agent
from predictive_credit.journal import Journal, ask_all
from predictive_credit.records import BurnIn, Prompt, Reply, State
from predictive_credit.sources import wheels
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project


@dataclass(frozen=True, slots=True)
class Author:
    """An agent as something that answers prompts: each prompt is one state's."""

    agent: agent.Agent
    states: dict[str, State]  # by prompt text

    def answer(self, prompt: Prompt) -> Reply:
        """What the agent writes about the prompt's state."""
        return self.agent.write(self.states[prompt.user], prompt)


def run(project: Project, params: config.Params, name: str) -> str:
    """Write explanations.jsonl; a model's replies are journalled as they come."""
    paths, chosen = project.study(name), params.agent
    states = tables.read_records(paths.states, State)
    burn_in = tables.read_record(paths.burn_in, BurnIn)
    sampling = agent.sampling(chosen)
    asked, by_prompt = [], {}
    for state in states:
        text = agent.card_prompt(state, sampling=sampling)
        prompt = text.prompt(planning.card_unit(state, text, seed=params.seed).seed)
        asked.append((text.key, prompt))
        by_prompt[prompt.user] = state
    # The journal is opened for the playbook too, so that the stage's output exists; but the playbook
    # is rules, not calls: it writes anew each time, for its rules may have changed.
    with (
        closing(agent.make(chosen, burn_in, locate=wheels.gguf)) as author,
        Journal(paths.journal("explain"), agent.identity(chosen)) as journal,
    ):
        model = Author(author, by_prompt)
        if isinstance(chosen, config.Playbook):
            replies = {key: model.answer(prompt) for key, prompt in asked}
        else:
            replies = ask_all(asked, model, journal, title=f"{name} cards")
    explanations = [
        agent.explanation(state.id, chosen.name, replies[key])
        for state, (key, _) in zip(states, asked, strict=True)
    ]
    tables.write_records(paths.explanations, explanations, scale=params.scale)
    complete = sum(e.card.is_complete for e in explanations)
    return f"{name}: {len(explanations)} cards by {chosen.name}, {complete} with all six slots filled"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
