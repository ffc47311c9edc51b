"""Credit by generator and forecaster: decided studies as the cells of one table.

The generator wrote the explanations, the forecaster read them; a sweep chooses them apart. Cells stand
in one table only if they share what was asked: the study's settings, states, interventions, outcomes.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from predictive_credit import canonical
from predictive_credit.errors import BadSource
from predictive_credit.models.providers import TERMS
from predictive_credit.records import Target
from predictive_credit.report import words
from predictive_credit.report.tables import Table, dig, main_pairs, mapping
from predictive_credit.report.view import StudyView, voice

PAIRS = ("D-M", "S-M")  # credit over the description alone, and over a donor's explanation
MEASURES = ("point_error", "interval_score")
BOUNDS = ("mean", "lower", "upper", "t_lower", "t_upper")
SHARED = ("scale", "pool", "seed", "settings", "states", "outcomes")  # by all cells of one table
NOT_RUN = "not run"

# How a model is reached and how fast, not what is asked of it: no two models differ by these alone.
OPERATIONS = frozenset({*TERMS, "watch", "threads", "prefix_cache", "acknowledged_models"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A generator or a forecaster: its name, and every setting that makes it another under that name."""

    name: str
    settings: tuple[tuple[str, str], ...]  # dotted key and value, in the order of the frozen params


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One decided study: who wrote the explanations, who forecast, and what came of it."""

    where: str  # the folder or revision it was read from
    study: str
    scale: str
    pool: str
    seed: int
    settings: str  # digest of the study's configuration but for its contexts, its rule and its inference
    states: str  # digest of ids, descriptions and interventions
    outcomes: str  # digest of values and reasons
    explanations: str  # digest of the texts and the cards read from them
    n_states: int
    is_own: bool  # the user's own states
    brought: bool  # outcomes that are not executed here, but brought by a user
    generator: Party
    forecaster: Party
    targets: tuple[Target, ...]
    primary: str  # the measure that the rule reads
    level: float | None  # of the two-sided intervals
    contrasts: Mapping[str, Any]  # by target, measure and pair
    contexts: Mapping[str, Any]  # by target and context
    units: int
    fallbacks: int
    commitment: str  # passed, post-outcome, failed, or not estimable
    planned_after: str | None  # when outcomes had been opened before, and how many
    decision: str

    @property
    def scale_words(self) -> str:
        """`quick scale`; the user's own states are of no scale."""
        return "own states" if self.is_own else f"{self.scale} scale"

    @property
    def shared(self) -> tuple[Any, ...]:
        """What all cells of one table have in common, the study first."""
        return (self.study, *(getattr(self, key) for key in SHARED))

    @property
    def result(self) -> tuple[Any, ...]:
        """What two runs of the same pair must agree in."""
        return (self.contrasts, self.contexts, self.units, self.fallbacks, self.commitment, self.decision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Population:
    """The cells that share states, interventions and outcomes, by the labels of their parties, sorted."""

    cells: Mapping[tuple[str, str], Cell]  # by generator and forecaster

    @property
    def first(self) -> Cell:
        """A cell, for what all of them share."""
        return next(iter(self.cells.values()))

    @property
    def digest(self) -> str:
        """Eight digits that name this population."""
        return canonical.digest(self.first.shared)[:8]

    @property
    def heading(self) -> str:
        """Scale, pool, seed and size, in words."""
        cell = self.first
        return (
            f"{cell.study}: {cell.scale_words}, pool {cell.pool}, seed {cell.seed}, {cell.n_states} states, "
            f"population {self.digest}"
        )


def cell(view: StudyView, where: str) -> Cell:
    """The cell of one decided study."""
    frozen = view.freeze
    params = mapping(frozen, "params")
    config = mapping(params, "studies", view.name)
    check = mapping(view.metrics, "checks", "commitment")
    asked = {key: value for key, value in config.items() if key != "contexts"}
    return Cell(
        where=where,
        study=view.name,
        scale=str(frozen["scale"]),
        pool=str(config.get("pool")),
        seed=int(params["seed"]),
        settings=canonical.digest([asked, params.get("inference"), dig(frozen, "rule", "sha256")]),
        states=canonical.digest([[s.id, s.description, s.intervention.text] for s in view.states]),
        outcomes=canonical.digest([[o.id, o.value, o.reason] for o in view.outcomes]),
        explanations=canonical.digest(view.explanations),
        n_states=len(view.states),
        is_own=not view.study.n_states,
        brought=view.study.arrived is not None,
        generator=generator(view),
        forecaster=forecaster(view),
        targets=view.study.targets,
        primary=view.study.primary_loss,
        level=dig(params, "inference", "level"),
        contrasts=mapping(view.metrics, "contrasts"),
        contexts=mapping(view.metrics, "contexts"),
        units=int(frozen["units"]["forecasts"]),
        fallbacks=int(frozen["units"]["fallbacks"]),
        commitment=_commitment(check),
        planned_after=check.get("planned_after_opening"),
        decision=str(dig(view.metrics, "decision", "status")),
    )


def generator(view: StudyView) -> Party:
    """Who wrote the explanations: the agent, with whoever read its texts into cards; or the user's file."""
    params = mapping(view.freeze, "params")
    if {source for state in view.states for source in state.sources} == {"given"}:
        path = dig(params, "pools", str(dig(params, "studies", view.name, "pool")), "path")
        texts = canonical.digest([[e.id, e.text] for e in view.explanations])[:8]
        return Party(name="given", settings=_settings({"file": PurePath(str(path)).name, "texts": texts}))
    reader = {"extractor": mapping(params, "extractor")} if view.study.extracted else {}
    return _party(mapping(params, "agent"), reader)


def forecaster(view: StudyView) -> Party:
    """Who forecast, under the model id that answered."""
    resolved = {"resolved": " ".join(map(str, mapping(view.freeze, "models").get("resolved", ())))}
    return _party(mapping(view.freeze, "params", "forecaster"), resolved)


def labels(parties: Iterable[Party]) -> dict[Party, str]:
    """A name each; parties that share one are told apart by the fewest settings in which they differ."""
    unique = list(dict.fromkeys(parties))
    named: dict[Party, str] = {}
    for party in unique:
        alike = [other for other in unique if other.name == party.name]
        told = ", ".join(f"{key}={dict(party.settings).get(key, 'none')}" for key in _telling(alike))
        named[party] = f"{party.name} ({told})" if told else party.name
    return named


def populations(cells: Sequence[Cell]) -> tuple[Population, ...]:
    """The cells by what they share, sorted.

    Raises BadSource if a generator and a forecaster stand twice in one population with different
    results. Equal results, a bundle beside its project say, are one cell.
    """
    grouped: dict[tuple[Any, ...], dict[tuple[str, str], Cell]] = {}
    for one, pair in zip(cells, _pairs(cells), strict=True):
        kept = grouped.setdefault(one.shared, {}).setdefault(pair, one)
        if kept.result != one.result:
            raise BadSource(
                f"{one.study} ({one.scale_words}): {pair[0]} read by {pair[1]} stands twice with different "
                f"results, in {kept.where} and in {one.where}; leave one of the two out"
            )
    found = [Population(cells=dict(sorted(of.items()))) for _, of in sorted(grouped.items())]
    return tuple(found)


def rows(found: Iterable[Population]) -> list[dict[str, Any]]:
    """One flat row per study, target, generator and forecaster: every figure, unrounded; None if unknown."""
    return [
        _row(population, pair, one, target)
        for population in found
        for target in population.first.targets
        for pair, one in population.cells.items()
    ]


def columns() -> tuple[str, ...]:
    """The keys of every row, in order."""
    return (
        "study", "scale", "pool", "seed", "population", "n_states", "target", "unit", "generator",
        "forecaster", *(f"{m} {p} {b}" for m in MEASURES for p in PAIRS for b in BOUNDS), "primary",
        "drift D", "drift M", "units", "fallbacks", "commitment", "planned_after_opening", "decision",
        "where",
    )  # fmt: skip


def tables(population: Population, measure: str | None = None) -> tuple[Table, ...]:
    """Per target a table of cells and, of several, the matrix of S-M gains; how to read them at the end.

    measure: whose gains are shown; None for the one that the study's rule reads.
    """
    shown = measure or population.first.primary
    makers = (listing, matrix) if len(population.cells) > 1 else (listing,)
    made = [make(population, target, shown) for target in population.first.targets for make in makers]
    return (*made[:-1], replace(made[-1], note=" ".join(_notes(population, shown))))


def listing(population: Population, target: Target, measure: str) -> Table:
    """One row per cell."""
    return Table(
        caption=f"{_subject(population, target)}: credit by generator and forecaster",
        columns=(
            "generator", "forecaster", *(f"{words.pair(pair)} gain" for pair in PAIRS), "drift D",
            "drift M", "fallbacks", "commitment", "decision",
        ),
        rows=tuple(
            (
                *pair,
                *(_gain(one, target, measure, p) for p in PAIRS),
                *(_drift(one, target, context) for context in "DM"),
                f"{words.count(one.fallbacks)} of {words.count(one.units)}",
                one.commitment,
                words.spaced(one.decision),
            )
            for pair, one in population.cells.items()
        ),
        text=frozenset({1, 7, 8}),
    )  # fmt: skip


def matrix(population: Population, target: Target, measure: str) -> Table:
    """Generators as rows, forecasters as columns: the gain over the donor's explanation."""
    generators = dict.fromkeys(generator for generator, _ in population.cells)
    forecasters = sorted({forecaster for _, forecaster in population.cells})
    return Table(
        caption=f"{_subject(population, target)}: {words.pair('S-M')} gain",
        columns=("generator", *forecasters),
        rows=tuple(
            (
                generator,
                *(
                    NOT_RUN if one is None else _gain(one, target, measure, "S-M")
                    for one in (population.cells.get((generator, f)) for f in forecasters)
                ),
            )
            for generator in generators
        ),
    )


def apart(found: Sequence[Population]) -> list[str]:
    """Why a study comes in several tables, a sentence each."""
    said = []
    for study in sorted({population.first.study for population in found}):
        cells = [population.first for population in found if population.first.study == study]
        differing = [key for key in SHARED if len({getattr(c, key) for c in cells}) > 1]
        if differing:
            said.append(
                f"{study} comes in {len(cells)} tables that differ in {words.listed(differing)}: "
                "a cell of one is not to be compared with a cell of another."
            )
    return said


def text(table: Table) -> str:
    """A table in aligned columns of plain characters, its caption above and its note below."""
    lines = [table.columns, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    words_in = table.text | {0}
    aligned = [
        "  ".join(
            cell.ljust(width) if k in words_in else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    whole = "\n".join([table.caption, *aligned, *([table.note] if table.note else [])])
    return whole.replace(words.MINUS, "-").replace("\u00a0", " ")


def on_page(views: Sequence[StudyView], names: Sequence[str]) -> tuple[Table, ...]:
    """The tables of a page that holds several runs of one population; none where it holds no two.

    names: what each view is called, in its order.
    """
    shown = Counter(view.name for view in views)
    named = zip(views, names, strict=True)
    cells = [
        cell(view, name)
        for view, name in named
        if shown[view.name] > 1 and view.freeze and main_pairs(view) == PAIRS
    ]
    try:
        found = populations(cells)
    except BadSource as error:  # the page shows both runs; only this table cannot hold them
        caption = "Credit by generator and forecaster"
        return (Table(caption=caption, columns=("generator",), rows=(), note=words.capital(f"{error}.")),)
    return tuple(made for one in found if len(one.cells) > 1 for made in tables(one))


def _pairs(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """The labels of each cell's generator and forecaster, told apart within its study."""
    made: dict[str, tuple[dict[Party, str], dict[Party, str]]] = {}
    for study in {one.study for one in cells}:
        of = [one for one in cells if one.study == study]
        made[study] = (labels(c.generator for c in of), labels(c.forecaster for c in of))
    return [(made[c.study][0][c.generator], made[c.study][1][c.forecaster]) for c in cells]


def _party(settings: Mapping[str, Any], more: Mapping[str, Any]) -> Party:
    kept = {key: value for key, value in settings.items() if key != "name"}
    return Party(name=str(settings.get("name")), settings=_settings({**kept, **more}))


def _settings(values: Mapping[str, Any], within: str = "") -> tuple[tuple[str, str], ...]:
    """Nested settings as dotted keys, without what only says how a model is reached."""
    found: list[tuple[str, str]] = []
    for key, value in values.items():
        if key in OPERATIONS:
            continue
        if isinstance(value, Mapping):
            found += _settings(value, f"{within}{key}.")
        else:
            found.append((f"{within}{key}", "none" if value is None else str(value)))
    return tuple(found)


def _telling(parties: Sequence[Party]) -> tuple[str, ...]:
    """The fewest keys by whose values all these parties differ, earlier keys first."""
    settings = [dict(party.settings) for party in parties]
    keys = [k for k in dict.fromkeys(itertools.chain(*settings)) if len({s.get(k) for s in settings}) > 1]
    return next(
        chosen
        for n in range(len(keys) + 1)
        for chosen in itertools.combinations(keys, n)
        if len({tuple(s.get(k) for k in chosen) for s in settings}) == len(settings)
    )


def _commitment(check: Mapping[str, Any]) -> str:
    status = check.get("status")
    if status == "failed" and check.get("planned_after_opening"):
        return "post-outcome"
    return str(status or words.NOT_ESTIMABLE).replace("_", " ")


def _row(population: Population, pair: tuple[str, str], one: Cell, target: Target) -> dict[str, Any]:
    gains = [dig(one.contrasts, target.name, m, p, b) for m in MEASURES for p in PAIRS for b in BOUNDS]
    drifts = [dig(one.contexts, target.name, context, "drift") for context in "DM"]
    values = (
        one.study, one.scale, one.pool, one.seed, population.digest, one.n_states, target.name,
        target.unit, *pair, *gains, one.primary, *drifts, one.units, one.fallbacks, one.commitment,
        one.planned_after, one.decision, one.where,
    )  # fmt: skip
    return dict(zip(columns(), values, strict=True))


def _subject(population: Population, target: Target) -> str:
    several = len(population.first.targets) > 1
    return f"{population.heading}; {target.phrase} in {target.unit}" if several else population.heading


def _gain(one: Cell, target: Target, measure: str, pair: str) -> str:
    found, say = mapping(one.contrasts, target.name, measure, pair), voice(target)
    if not found:
        return words.NOT_ASKED
    if not words.is_number(found.get("mean")):
        return words.NOT_ESTIMABLE
    return f"{say.signed(found['mean'])} {say.interval(found.get('lower'), found.get('upper'))}"


def _drift(one: Cell, target: Target, context: str) -> str:
    found = mapping(one.contexts, target.name, context)
    return voice(target).number(found.get("drift")) if found else words.NOT_ASKED


def _notes(population: Population, measure: str) -> list[str]:
    cell = population.first
    role = "which the rule reads" if measure == cell.primary else "exploratory"
    said = [
        f"A gain is the first context's loss minus the matched one's in {words.spaced(measure)} ({role}), "
        f"with its {words.percent(cell.level, 0, absent='two-sided')} percentile interval; positive favours "
        "the matched explanation."
    ]
    after = sum(one.commitment == "post-outcome" for one in population.cells.values())
    if after:
        said.append(
            f"Post-outcome: outcomes were open on the machine that ran it before {after} of the "
            f"{len(population.cells)} cells {'was' if after == 1 else 'were'} planned or frozen; "
            "`predictive-credit run --freeze-only -m` freezes every cell first."
        )
    if cell.brought:
        said.append("That nobody had seen the outcomes earlier rests on the word of whoever brought them.")
    told: dict[str, set[str]] = {}
    for (generator, _), one in population.cells.items():
        told.setdefault(generator, set()).add(one.explanations)
    if changing := sorted(generator for generator, texts in told.items() if len(texts) > 1):
        said.append(
            f"The explanations of {words.listed(changing)} are not the same in all columns: they were asked "
            "for anew, so a row compares forecasters over other texts too."
        )
    return said
