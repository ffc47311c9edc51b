"""Stage `explain`: explanations from public state and intervention only, and the cards read from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from predictive_credit import config, tables
from predictive_credit.agents import agent, extractor
from predictive_credit.journal import Answering, Journal, ask_all
from predictive_credit.planning import source_unit
from predictive_credit.records import BurnIn, Explanation, Prompt, PromptText, Reply, Source, State, UnitKind
from predictive_credit.sources import wheels
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies.study import Study


@dataclass(frozen=True, slots=True)
class Author:
    """An agent as something that answers prompts: each prompt is one state's, for one source."""

    agent: agent.Agent
    asked: dict[Prompt, tuple[State, Source]]

    def answer(self, prompt: Prompt) -> Reply:
        """What the agent writes about the prompt's state."""
        state, source = self.asked[prompt]
        return self.agent.write(state, source, prompt)


def run(project: Project, params: config.Params, name: str) -> str:
    """Write explanations.jsonl; a model's replies are journalled as they come."""
    (study, setting), paths = shell.study(project, params, name), project.study(name)
    states = tables.read_records(paths.states, State)
    burn_in = tables.read_record(paths.burn_in, BurnIn)
    with (
        Journal(paths.journal("explain"), agent.identity(params.agent)) as journal,
        Journal(paths.journal("extract"), extractor.identity(params.extractor)) as readings,
    ):
        if study.given is not None:
            written = list(study.given(setting))
        else:
            written = elicited(study, states, burn_in, params, journal, title=f"{name} explanations")
        explanations = read(study, written, params, readings, title=f"{name} extractions")
    explanations.sort(key=lambda e: e.id)
    tables.write_records(paths.explanations, explanations, scale=params.scale)
    return f"{name}: {said(explanations)}"


def sources(
    study: Study, states: Sequence[State], params: config.Params
) -> list[tuple[State, Source, PromptText]]:
    """Who is asked for what, in asking order: no prompt where the explanations are given."""
    if study.given is not None:
        return []
    sampling = agent.sampling(params.agent, study.targets)
    return [
        (state, source, agent.source_prompt(state, source, study.targets, sampling=sampling))
        for state in states
        for source in state.sources
    ]


def extractions(
    study: Study, explanations: Sequence[Explanation], params: config.Params
) -> list[tuple[Explanation, PromptText]]:
    """What an extractor reads, in order: the text of an explanation and nothing else of it."""
    sampling = extractor.sampling(params.extractor)
    return [
        (e, extractor.extraction_prompt(e, sampling=sampling))
        for e in explanations
        if e.source in study.extracted
    ]


def elicited(
    study: Study, states: Sequence[State], burn_in: BurnIn, params: config.Params, journal: Journal,
    *, title: str,
) -> list[Explanation]:  # fmt: skip
    """What the agent writes about every state and source."""
    asked: list[tuple[str, Prompt]] = []
    by_prompt: dict[Prompt, tuple[State, Source]] = {}
    for state, source, text in sources(study, states, params):
        prompt = text.prompt(source_unit(state.id, UnitKind.ELICIT, text, seed=params.seed).seed)
        asked.append((text.key, prompt))
        by_prompt[prompt] = (state, source)  # unique, since each unit has a seed of its own
    chosen = params.agent
    # The journal is opened for the playbook too, so that the stage's output exists; but the playbook
    # is rules, not calls: it writes anew each time, for its rules may have changed.
    with closing(agent.make(chosen, burn_in, study.textbook, study.targets, locate=wheels.gguf)) as author:
        model = Author(author, by_prompt)
        replies = replied(asked, model, journal, isinstance(chosen, config.Playbook), title)
    return [
        agent.explanation(state.id, source, chosen.name, replies[key])
        for (key, _), (state, source) in zip(asked, by_prompt.values(), strict=True)
    ]


def read(
    study: Study, written: Sequence[Explanation], params: config.Params, journal: Journal, *, title: str
) -> list[Explanation]:
    """The explanations with the cards that the extractor read, where the study has them read."""
    by_id = {e.id: e for e in written}
    asked, read_by = [], {}
    for explanation, text in extractions(study, written, params):
        unit = source_unit(explanation.state_id, UnitKind.EXTRACT, text, seed=params.seed)
        asked.append((text.key, text.prompt(unit.seed)))
        read_by[text.key] = explanation.id
    if asked:
        chosen = params.extractor
        with closing(extractor.make(chosen, locate=wheels.gguf)) as model:
            replies = replied(asked, model, journal, isinstance(chosen, config.Rules), title)
        for key, _ in asked:
            by_id[read_by[key]] = extractor.extracted(by_id[read_by[key]], replies[key])
    return list(by_id.values())


def replied(
    asked: Sequence[tuple[str, Prompt]], model: Answering, journal: Journal, is_rules: bool, title: str
) -> dict[str, Reply]:
    """Replies by unit id: rules write anew, a model is asked once for good."""
    if is_rules:
        return {key: model.answer(prompt) for key, prompt in asked}
    return ask_all(asked, model, journal, title=title)


def said(explanations: Sequence[Explanation]) -> str:
    """How many explanations of each source there are, and how many of their cards are complete."""
    counts = Counter((e.source, e.agent) for e in explanations)
    complete = Counter((e.source, e.agent) for e in explanations if e.card.is_complete)
    return "; ".join(
        f"{n} {source} by {author}, {complete[source, author]} with all six slots filled"
        for (source, author), n in sorted(counts.items())
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
