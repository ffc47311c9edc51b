"""Forecasts of a user's proposals by an evidence's own forecaster, asked as it was asked there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from predictive_credit import config, prompts, streams
from predictive_credit.cards import read_card
from predictive_credit.contexts import Showing, forecast_prompt
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.forecasters import forecaster
from predictive_credit.journal import Journal
from predictive_credit.models import asking
from predictive_credit.models.asking import Asked, Purse
from predictive_credit.records import Context, Explanation, Intervention, Prompt, Reply, State
from predictive_credit.selection.proposals import Proposal
from predictive_credit.selection.ranking import Told
from predictive_credit.sources import wheels
from predictive_credit.stages import forecast, spending
from predictive_credit.stages.evidence import Evidence
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from predictive_credit.studies.study import Study
from predictive_credit.studies.table.states import slug

AGENT = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the answers are kept, the project whose prices and spending count, and a limit in USD."""

    replies: Path
    root: Path
    max_cost: float | None


class _Call(NamedTuple):
    proposal: Proposal
    unit: str
    prompt: Prompt


def tell(
    found: Evidence, proposals: Sequence[Proposal], contexts: Sequence[Context], target: str, place: Place
) -> tuple[Told, ...]:
    """The ensemble point of each proposal in its context, in the proposals' order.

    Every call has its reply on disk before it counts, so a second time nobody is asked. Raises BadConfig
    for a forecaster that cannot be asked anew or in the words it was checked with, BadSource for an
    explanation that cannot be shown, and where another model answers than the evidence is about.
    """
    params = study_params.parse(found.freeze["params"], origin="freeze.json")
    study, chosen = found.study, _askable(found, params, place)
    calls = [
        call
        for one, context in zip(proposals, contexts, strict=True)
        for call in _calls(one, context, study, params, chosen)
    ]
    replies = _replies(found, [(call.unit, call.prompt) for call in calls], chosen, place)
    _check_model(found, list(replies.values()), chosen)
    at = [t.name for t in study.targets].index(target)
    read = {
        call.unit: forecaster.read_or_fallback(
            replies[call.unit], call.unit, found.burn_in, study.targets, elicitation=chosen.elicitation
        )[at]
        for call in calls
    }
    told = []
    for one, context in zip(proposals, contexts, strict=True):
        mine = [read[call.unit] for call in calls if call.proposal is one]
        told.append(
            Told(
                id=one.id, task=one.task, cost=one.cost, context=str(context),
                point=sum(f.point for f in mine) / len(mine), fallbacks=sum(f.is_fallback for f in mine),
            )
        )  # fmt: skip
    return tuple(told)


def _askable(found: Evidence, params: config.Params, place: Place) -> config.Forecaster:
    chosen = params.forecaster
    if isinstance(chosen, config.Replay | config.Filed):
        raise BadConfig(
            f"{found.where}: forecaster {chosen.name} is a recording and cannot be asked about a proposal; "
            "give the file its forecasts (point, lower, upper, forecaster, context)"
        )
    if found.freeze["prompt_texts"] != prompts.digest(forecaster.QUESTIONS[chosen.elicitation]):
        raise BadConfig(
            f"{found.where} was asked in other words than this version's prompts, and its checks say nothing "
            "of these; install the version it was made with, or take newer evidence"
        )
    if isinstance(chosen, config.Provided):
        return replace(chosen, max_cost=place.max_cost)
    return chosen


def _calls(
    one: Proposal, context: Context, study: Study, params: config.Params, chosen: config.Forecaster
) -> list[_Call]:
    """The calls of one proposal, worded, sampled and seeded as the study's own."""
    state, showing = _state(one, study, params), study.contexts[context]
    explanation = None if showing is None else _explanation(one, state, showing)
    text = forecast_prompt(
        state, context, explanation, showing=showing, targets=study.targets,
        sampling=forecaster.sampling(chosen, study.targets),
    )  # fmt: skip
    units = [f"{text.key}/{call}" for call in range(1, study.calls_per_context + 1)]
    return [_Call(one, unit, text.prompt(streams.unit_seed(params.seed, unit))) for unit in units]


def _state(one: Proposal, study: Study, params: config.Params) -> State:
    (name,) = params.studies
    return State(
        id=f"{name}/proposed/{one.id}", study=name, task=one.task or one.id,
        cluster=(one.task or one.id, one.id), sources=("given",), description=one.situation, facts={},
        intervention=Intervention(name=slug(one.intervention), text=one.intervention),
    )  # fmt: skip


def _explanation(one: Proposal, state: State, showing: Showing) -> Explanation:
    """A proposal's explanation as the context shows it. Raises BadSource where that would be nothing."""
    card = read_card(one.explanation or "")
    if showing.form != "text" and not any(card.filled()):
        raise BadSource(
            f"proposal {one.id!r} ({one.where}): the evidence showed explanations as six slots, and this one "
            "has no labelled line; write `Direction: ...`, `Target: ...` and so on, each on its line"
        )
    return Explanation(
        state_id=state.id, source=showing.source or "given", agent=AGENT, text=one.explanation or "",
        card=card,
    )  # fmt: skip


def _replies(
    found: Evidence, asked: Sequence[Asked], chosen: config.Forecaster, place: Place
) -> dict[str, Reply]:
    """Replies by unit. Where all are on disk no model is loaded and no key is needed."""
    with Journal(place.replies, forecast.identity(chosen, found.burn_in)) as kept:
        if all(kept.get(prompt) is not None for _, prompt in asked):
            return asking.answered(asked, kept)
        purse = _purse(chosen, place)
        model = forecaster.make(chosen, found.burn_in, found.study.targets, locate=wheels.gguf)
        return asking.ask(asked, model, kept, title="proposals", purse=purse)


def _purse(chosen: config.Forecaster, place: Place) -> Purse | None:
    """Prices of the project's params.yaml, if there is one, and all that was spent there and here."""
    if not isinstance(chosen, config.Provided):
        return None
    project = Project(place.root)
    if not project.params.is_file():
        if chosen.max_cost is not None:
            raise BadConfig(
                f"--max-cost needs prices, and there is no {project.params}; give a project by --root"
            )
        return None
    purse = spending.purse(project, study_params.load(project.params), chosen, apart=place.replies)
    if purse is None:
        return None
    here = spending.spent(place.replies, chosen.model, purse.price)
    return replace(purse, spent_usd=purse.spent_usd + here)


def _check_model(found: Evidence, replies: Sequence[Reply], chosen: config.Forecaster) -> None:
    """Raise BadSource where a reply is of another model than the evidence: its errors are not this one's."""
    known = set(found.freeze["models"]["resolved"])
    served = {reply.model_resolved for reply in replies if reply.model_resolved is not None}
    if known and (strange := sorted(served - known)):
        raise BadSource(
            f"{chosen.name} was served as {strange[0]}, and {found.where} is about "
            f"{', '.join(sorted(known))}; make evidence on the model that is served now"
        )
