"""`predictive-credit rank`: planned experiments by expected gain per cost, on evidence that verifies.

Of several forecasters whose checks passed the one with the lowest interval score is taken, relative to
the size of its evidence's outcomes. A pool of all would need one distribution of errors for a mixture that
was never frozen or scored; the chosen one's is its own record.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from predictive_credit import canonical, streams, tables
from predictive_credit.errors import BadConfig, BadSource, Tampered
from predictive_credit.panel import Panel, by_group, context_losses
from predictive_credit.records import Context, Target
from predictive_credit.selection import admission, pages, proposals, ranking, replay
from predictive_credit.selection import errors as erring
from predictive_credit.selection.pages import Record, Shown, ShownReplay, Source
from predictive_credit.selection.proposals import Proposal
from predictive_credit.selection.ranking import Ranking, Settings, Told
from predictive_credit.selection.replay import Replayed
from predictive_credit.stages import evidence, rank_forecasts, verify
from predictive_credit.stages.evidence import MANIFEST, Evidence
from predictive_credit.stages.paths import Project
from predictive_credit.stages.rank_forecasts import Place
from predictive_credit.studies import params as study_params
from predictive_credit.studies.evaluation import to_panels
from predictive_credit.studies.table import sheets

ALL_CHECKS = (*admission.NEEDED, "value", "alignment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line said; see its help."""

    root: Path
    proposals: Path | None
    using: Sequence[Path]
    replay: Path | None
    study: str | None
    target: str | None
    baseline: float | None
    budget: float | None
    top: int
    seed: int
    equal_costs: bool
    replies: Path | None
    max_cost: float | None
    out: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One verified evidence, its panel of the ranked target, and what its checks allow."""

    where: str
    evidence: Evidence
    panel: Panel
    forecaster: str
    checks: dict[str, Any]

    @property
    def contexts(self) -> tuple[Context, ...]:
        """What its forecaster may be asked in, the best first."""
        return tuple(c for c in admission.allowed(self.checks) if c in self.panel.contexts)

    @property
    def refusal(self) -> str | None:
        """Why its forecaster may not rank, None if it may."""
        if (missed := admission.refusal(self.checks)) is not None:
            return missed
        return None if self.contexts else "value did not pass and context D was not asked"

    @property
    def score(self) -> float:
        """Interval score in the best context over the mean absolute outcome, tasks weighing alike."""
        loss = context_losses(self.panel, "interval_score")[:, self.panel.of(self.contexts[0])]
        size = np.abs(self.panel.outcome)
        total, scale = (_balanced(self.panel, values) for values in (loss, size))
        return total / scale if scale else float("inf")


def run(asked: Asked) -> str:
    """The ranking, or the replay, as text or one line of JSON.

    Raises BadConfig for words, BadSource for a file or checks, Tampered for evidence, that do not hold.
    """
    _check_words(asked)
    return _replay(asked) if asked.replay is not None else _rank(asked)


def _rank(asked: Asked) -> str:
    file = asked.proposals or Path()
    given = proposals.read(sheets.read(file))
    # What only the command line can have wrong is refused before anything is verified or asked.
    wanted = Settings(seed=asked.seed, top=min(asked.top, len(given)), baseline=0.0, budget=asked.budget)
    ranking.check(wanted)
    found = [candidate(place, asked.study, asked.target) for place in dict.fromkeys(asked.using)]
    admitted, refused = sort(found)
    chosen = choose(admitted, given, str(file))
    settings = replace(wanted, baseline=_baseline(chosen.panel.target, asked.baseline))
    told = _told(chosen, given, asked, file)
    errors = erring.of(chosen.panel, chosen.contexts, chosen.where)
    made = ranking.rank(told, errors, settings, streams.stream(asked.seed, "rank", errors.target.name))
    record = _record(chosen, made, settings)
    shown = Shown(
        file=str(file), source=_source(chosen), is_brought=given[0].made is not None,
        others=tuple(one.where for one in admitted if one is not chosen), refused=refused,
        settings=settings, notes=admission.notes(chosen.checks), record=record,
        ranking=made, cautions=pages.cautions(record),
    )  # fmt: skip
    if asked.out is not None:
        tables.write_csv(asked.out, ranking.header(), ranking.table(made))
    if asked.as_json:
        return canonical.encode(shown).decode()
    wrote = "" if asked.out is None else f"\n\n{asked.out}: the ranking with every figure"
    return pages.ranked(shown) + wrote


def _replay(asked: Asked) -> str:
    one = candidate(asked.replay or Path(), asked.study, asked.target)
    baseline = _baseline(one.panel.target, asked.baseline)
    shown = ShownReplay(
        source=_source(one), baseline=baseline, refusal=one.refusal,
        replayed=_replayed(one, baseline, asked.seed, equal_costs=asked.equal_costs),
    )  # fmt: skip
    return canonical.encode(shown).decode() if asked.as_json else pages.replayed(shown)


def _replayed(one: Candidate, baseline: float, seed: int, *, equal_costs: bool) -> Replayed:
    target = one.panel.target.name
    return replay.replay(
        one.panel, one.evidence.states, one.evidence.burn_in.targets[target], where=one.where,
        baseline=baseline, equal_costs=equal_costs, rng=streams.stream(seed, "rank", "replay", target),
    )  # fmt: skip


def _record(chosen: Candidate, made: Ranking, settings: Settings) -> Record:
    """The replay of the contexts that the ranking uses, and of the burn-in mean to beat.

    Checks are about explanations, not about orders: a forecaster may pass them and rank no better than
    chance.
    """
    found = _replayed(chosen, settings.baseline, settings.seed, equal_costs=False)
    return Record(
        policies=tuple(p for p in found.policies if p.name in (*made.bias, replay.BURN_IN)),
        predicted=tuple(p for p in found.predicted if p.context in made.bias),
    )


def sort(found: Sequence[Candidate]) -> tuple[list[Candidate], dict[str, str]]:
    """Who may rank, and why the others may not, by where. Raises BadSource where nobody may."""
    refused = {one.where: why for one in found if (why := one.refusal) is not None}
    admitted = [one for one in found if one.where not in refused]
    if not admitted:
        where, why = next(iter(refused.items()))
        more = f" (nor do {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise BadSource(
            f"{where} does not let its forecaster rank: {why}{more}; "
            "rank on evidence whose commitment, delivery and sensitivity passed"
        )
    return admitted, refused


def candidate(place: Path, study: str | None, target: str | None) -> Candidate:
    """A verified evidence. Raises Tampered where it does not verify, BadConfig where it lacks the target."""
    found = _evidence(place, study)
    if findings := verify.verify_evidence(found):
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        raise Tampered(f"{place} does not verify: {findings[0]}{more}; rank on evidence that does")
    params = study_params.parse(found.freeze["params"], origin="freeze.json")
    panels = to_panels(found.scored())
    name = next(iter(panels)) if target is None else target
    if name not in panels:
        raise BadConfig(f"{place} has no target {name!r}; it forecasts {', '.join(panels)}")
    return Candidate(
        where=str(place), evidence=found, panel=panels[name], forecaster=params.forecaster.name,
        checks=found.metrics()["checks"],
    )  # fmt: skip


def choose(admitted: Sequence[Candidate], given: Sequence[Proposal], file: str) -> Candidate:
    """Whose errors the ranking takes: those of the file's forecaster, else of the best that may be asked.

    Raises BadSource where the file's forecasts are of nobody who may rank, BadConfig where candidates
    forecast different targets.
    """
    targets = {(one.panel.target.name, one.panel.target.unit): one.where for one in admitted}
    if len(targets) > 1:
        said = " and ".join(f"{name} in {where}" for (name, _), where in targets.items())
        raise BadConfig(f"what is ranked is one outcome, and here are {said}; name one by --target")
    made = given[0].made
    mine = [one for one in admitted if made is None or one.forecaster == made.forecaster]
    if made is not None and not mine:
        names = ", ".join(sorted({one.forecaster for one in admitted}))
        raise BadSource(
            f"{file} {given[0].where}, column 'forecaster': {made.forecaster!r} has passed no checks in the "
            f"evidence given, {names} has; give its evidence by --using, or leave the forecasts out"
        )
    return min(mine, key=lambda one: one.score)


def _told(chosen: Candidate, given: Sequence[Proposal], asked: Asked, file: Path) -> tuple[Told, ...]:
    """The forecasts that the file brings, or those that the evidence's forecaster makes."""
    if given[0].made is not None:
        return _brought(chosen, given, str(file))
    contexts = [
        Context.MATCHED if Context.MATCHED in chosen.contexts and one.explanation else Context.DESCRIPTION
        for one in given
    ]
    beside = file.with_name(f"{file.name.partition('.')[0]}.replies.jsonl")
    place = Place(replies=asked.replies or beside, root=asked.root, max_cost=asked.max_cost)
    return rank_forecasts.tell(chosen.evidence, given, contexts, chosen.panel.target.name, place)


def _brought(chosen: Candidate, given: Sequence[Proposal], file: str) -> tuple[Told, ...]:
    """Raises BadSource for a forecast in a context that is not allowed, or of what cannot be."""
    target, told, troubles = chosen.panel.target, [], []
    for one in given:
        made = one.made
        if made is None:  # the reader saw to it that all bring one
            continue
        if made.context not in chosen.contexts:
            why = f"context {made.context} may not be used, for value did not pass in {chosen.where}"
            troubles.append(sheets.Trouble(one.where, "context", why, "forecast in context D"))
        if not target.lower <= made.point <= target.upper:
            why = f"{made.point:g} is outside what {target.name} can be, [{target.lower:g}, {target.upper:g}]"
            troubles.append(sheets.Trouble(one.where, "point", why, f"give it in {target.unit}"))
        told.append(
            Told(
                id=one.id, task=one.task, cost=one.cost, context=str(made.context), point=made.point,
                fallbacks=0,
            )
        )  # fmt: skip
    sheets.refuse(file, troubles)
    return tuple(told)


def _evidence(place: Path, study: str | None) -> Evidence:
    """One study's files. Raises BadSource for a folder that holds none, BadConfig where a name is needed."""
    if not (place / MANIFEST).is_file() and (place / "params.yaml").is_file():
        name = _named(place, sorted(study_params.load(place / "params.yaml").studies), study)
        return evidence.workspace(Project(place), name)
    found = evidence.bundle(place)
    _named(place, [str(found.freeze["study"])], study)
    return found


def _named(place: Path, there: Sequence[str], study: str | None) -> str:
    if study is None and len(there) > 1:
        raise BadConfig(f"{place} holds {', '.join(there)}; name one by --study")
    if study is not None and study not in there:
        raise BadConfig(f"{place} holds no study {study!r}; it holds {', '.join(there)}")
    return study or there[0]


def _source(one: Candidate) -> Source:
    target = one.panel.target
    statuses = {name: admission.status(one.checks, name) for name in ALL_CHECKS}
    return Source(
        where=one.where, study=str(one.evidence.freeze["study"]), forecaster=one.forecaster,
        checks=statuses, target=target.name, phrase=target.phrase, unit=target.unit, better=target.better,
        states=len(one.panel.states), tasks=len(one.panel.tasks),
        score=one.score if one.contexts else None,
    )  # fmt: skip


def _baseline(target: Target, given: float | None) -> float:
    """The outcome that is no gain: 0 for a change; a level has none of itself."""
    if given is None and target.form == "level":
        raise BadConfig(
            f"{target.name} is a level, and only the user knows which one is no gain; give it by --baseline"
        )
    if given is not None and not math.isfinite(given):
        raise BadConfig(f"--baseline is a finite outcome in {target.unit}; seen {given:g}")
    if given is not None and not target.lower <= given <= target.upper:
        raise BadConfig(
            f"--baseline {given:g} is outside what {target.name} can be, "
            f"[{target.lower:g}, {target.upper:g}]; give an outcome in {target.unit}"
        )
    return 0.0 if given is None else given


def _balanced(panel: Panel, values: Any) -> float:
    """Mean over tasks of the mean over a task's states with a defined outcome."""
    total, count = by_group(
        np.where(np.isnan(panel.outcome), np.nan, values), panel.task_of, len(panel.tasks)
    )
    there = count > 0
    return float((total[there] / count[there]).mean())


def _check_words(asked: Asked) -> None:
    """Raise BadConfig unless the words are of a ranking or of a replay."""
    if asked.replay is None:
        if asked.proposals is None or not asked.using:
            raise BadConfig("give a file of proposals and --using EVIDENCE, or --replay EVIDENCE alone")
        if asked.equal_costs:
            raise BadConfig("--equal-costs belongs to --replay; a proposal's cost is in its file")
        if asked.max_cost is not None and not asked.max_cost > 0.0:
            raise BadConfig(f"--max-cost is an amount above 0 in USD; seen {asked.max_cost:g}")
        return
    strange = {
        "a file of proposals": asked.proposals is not None, "--using": bool(asked.using),
        "--budget": asked.budget is not None, "--out": asked.out is not None,
        "--replies": asked.replies is not None, "--max-cost": asked.max_cost is not None,
    }  # fmt: skip
    for what in (what for what, is_given in strange.items() if is_given):
        raise BadConfig(f"--replay plays the evidence's own states; leave {what} out")
