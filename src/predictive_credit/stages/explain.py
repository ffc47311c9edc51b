"""Stage `explain`: explanations from public state and intervention only, and the cards read from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from predictive_credit import config, tables
from predictive_credit.agents import agent, extractor
from predictive_credit.agents.playbook import Playbook
from predictive_credit.agents.rules import RulesReader
from predictive_credit.journal import Journal
from predictive_credit.models import asking
from predictive_credit.models.model import Model
from predictive_credit.models.provider import Provider
from predictive_credit.planning import source_unit
from predictive_credit.records import BurnIn, Explanation, Prompt, PromptText, Reply, Source, State, UnitKind
from predictive_credit.sources import wheels
from predictive_credit.stages import shell, spending
from predictive_credit.stages.paths import Project
from predictive_credit.studies.study import Study


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
            written, asked = list(study.given(setting)), list[Reply]()
        else:
            title = f"{name} explanations"
            written, asked = elicited(study, states, burn_in, project, params, journal, title=title)
        title = f"{name} extractions"
        explanations, extracted = read(study, written, project, params, readings, title=title)
    explanations.sort(key=lambda e: e.id)
    tables.write_records(paths.explanations, explanations, scale=params.scale)
    return f"{name}: {said(explanations)}{spending.said([*asked, *extracted])}"


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
    study: Study, states: Sequence[State], burn_in: BurnIn, project: Project, params: config.Params,
    journal: Journal, *, title: str,
) -> tuple[list[Explanation], list[Reply]]:  # fmt: skip
    """What the agent writes about every state and source, and its replies.

    A model is asked once for good. The playbook is rules, not calls: it writes anew each time, for its
    rules may have changed.
    """
    chosen = params.agent
    asked = []
    for state, source, text in sources(study, states, params):
        seed = source_unit(state.id, UnitKind.ELICIT, text, seed=params.seed).seed
        asked.append((state, source, text.key, text.prompt(seed)))
    prompts = [(key, prompt) for _, _, key, prompt in asked]
    if isinstance(chosen, config.Playbook):
        author = agent.make(chosen, burn_in, study.textbook, study.targets, locate=wheels.gguf)
        playbook = cast(Playbook, author)
        replies = {key: playbook.write(state, source, prompt) for state, source, key, prompt in asked}
    else:
        replies = told(
            prompts, journal, title=title, purse=lambda: spending.purse(project, params, chosen),
            make=lambda: cast(
                Model | Provider,
                agent.make(chosen, burn_in, study.textbook, study.targets, locate=wheels.gguf),
            ),
        )  # fmt: skip
    written = [
        agent.explanation(state.id, source, chosen.name, replies[key]) for state, source, key, _ in asked
    ]
    return written, list(replies.values())


def read(
    study: Study, written: Sequence[Explanation], project: Project, params: config.Params,
    journal: Journal, *, title: str,
) -> tuple[list[Explanation], list[Reply]]:  # fmt: skip
    """The explanations with the cards that the extractor read, where it reads any, and its replies."""
    by_id, chosen = {e.id: e for e in written}, params.extractor
    asked, read_by = [], {}
    for explanation, text in extractions(study, written, params):
        unit = source_unit(explanation.state_id, UnitKind.EXTRACT, text, seed=params.seed)
        asked.append((text.key, text.prompt(unit.seed)))
        read_by[text.key] = explanation.id
    if isinstance(chosen, config.Rules):
        rules = RulesReader(name=chosen.name)
        replies = {key: rules.answer(prompt) for key, prompt in asked}
    else:
        replies = told(
            asked, journal, title=title, purse=lambda: spending.purse(project, params, chosen),
            make=lambda: extractor.make(chosen, locate=wheels.gguf),
        )  # fmt: skip
    for key, _ in asked:
        by_id[read_by[key]] = extractor.extracted(by_id[read_by[key]], replies[key])
    return list(by_id.values()), list(replies.values())


def told(
    asked: Sequence[tuple[str, Prompt]], journal: Journal, *, title: str,
    purse: Callable[[], asking.Purse | None], make: Callable[[], Model | Provider],
) -> dict[str, Reply]:  # fmt: skip
    """Replies by unit id. Where all are journalled, no model is loaded and no key is needed."""
    if all(journal.get(prompt) is not None for _, prompt in asked):
        return asking.answered(asked, journal)
    return asking.ask(asked, make(), journal, title=title, purse=purse())


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
