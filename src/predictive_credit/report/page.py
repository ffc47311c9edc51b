"""The page: one HTML file that asks nothing of a network, under a policy that forbids it to."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import jinja2
from markupsafe import Markup

from predictive_credit.records import Context
from predictive_credit.report import (
    browser,
    comparison,
    controls,
    exchange,
    gallery,
    provenance,
    tables,
    words,
)  # fmt: skip
from predictive_credit.report.provenance import Entry
from predictive_credit.report.tables import Check, Gate, Table, Tile, dig, mapping, sequence
from predictive_credit.report.view import StudyView


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One target of a study: everything that is measured in its unit."""

    prefix: str  # of every id in this block
    phrase: str
    unit: str
    tiles: tuple[Tile, ...]
    forests: tuple[Markup, ...]
    contrasts: Table
    cases: Table
    drift: tuple[Markup, ...]
    drift_says: str | None
    points: tuple[Markup, ...]
    coverage: tuple[Markup, ...]
    coverage_table: Table
    recalibration: Table
    levels: Table
    outcomes: Table
    interventions: Table
    strips: tuple[Markup, ...]
    influence: tuple[Markup, ...]
    task_influence: Table
    task_levels: Table
    task_baselines: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """What a control shows about the instrument: a sentence, and what it rests on."""

    says: str
    figures: tuple[Markup, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One study, as the template lays it out. Figures are SVG made here, everything else is text."""

    prefix: str  # of every id in this section
    is_control: bool
    name: str
    title: str  # the name, and the pool and forecaster that tell two runs of one study apart
    scale: str  # full, quick, or own where the population is the user's
    scale_words: str
    headline: str
    status: str
    rule: str
    meaning: str
    design: str
    origin: str | None  # of a control: whose stimuli, and when it was planned
    instrument: Instrument | None  # of a control: what it shows
    asked_of: str | None  # where other contexts than M and S are compared: which, for the checks
    matched: str  # the context that is compared with the others
    gates: tuple[Gate, ...]
    limits: tuple[str, ...]
    checks: tuple[Check, ...]
    level: str  # of the two-sided intervals
    bootstrap: str
    clusters: str
    blocks: tuple[Block, ...]
    comparison: Table | None
    tally: str | None
    weak: tuple[str, ...]
    explanations: Table
    directions: Table
    task_words: tuple[str, str]
    tasks: tuple[str, ...]
    actions: tuple[str, ...]
    n_states: int
    n_units: int
    pool: tuple[Table, ...]
    usage: Table
    ledger: tuple[Entry, ...]
    head: str | None
    digests: Table
    stimuli: Table | None  # digests of what a control took over
    params: str
    source: str | None
    published_decision: str

    @property
    def badge(self) -> str:
        """`quick scale`; the user's own states are of no scale."""
        return "own states" if self.scale == "own" else f"{self.scale} scale"

    @property
    def gates_held(self) -> str:
        """`2 of 4`."""
        held = f"{sum(gate.held for gate in self.gates)} of {len(self.gates)}"
        return words.NO_GATE if self.has_no_gates else held

    @property
    def has_no_gates(self) -> bool:
        """Whether its rule decides nothing; a study's rule has gates, and says so if none is recorded."""
        return self.is_control and not self.gates


@dataclass(frozen=True, slots=True, kw_only=True)
class Extra:
    """A tab of its own that is no study. html is one article's content, whose heading is `prefix`-title."""

    prefix: str  # of every id in it
    title: str
    html: Markup


def render(studies: Sequence[StudyView], *, version: str, extra: Sequence[Extra] = ()) -> str:
    """The whole page, controls after the studies. The same views give the same bytes."""
    studies = sorted(studies, key=lambda view: view.is_control)
    style, script = _asset("page.css"), _asset("page.js")
    sections = [section(view, f"s{index}") for index, view in enumerate(studies, start=1)]
    template = environment().get_template("page.html.j2")
    return template.render(
        sections=sections,
        groups=groups(sections),
        counted=counted(sections),
        extra=extra,
        is_tabbed=len(sections) + len(extra) > 1,
        is_published=any(view.study.published for view in studies),
        version=version,
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        data={
            s.prefix: Markup(browser.script_json(browser.data(v)))
            for s, v in zip(sections, studies, strict=True)
        },
        exchange=exchange.on_page(studies, [s.title for s in sections]),
        names=words.CHECK_NAMES,
    )


def groups(sections: Sequence[Section]) -> tuple[tuple[str, list[Section]], ...]:
    """Studies, then controls under their heading; a page without the one or the other leaves it out."""
    named = (("", False), ("Controls", True))
    found = tuple((heading, [s for s in sections if s.is_control is kind]) for heading, kind in named)
    return tuple(group for group in found if group[1])


def counted(sections: Sequence[Section]) -> str:
    """`3 studies`, `3 studies and 1 control`."""
    kinds = (("study", "studies", False), ("control", "controls", True))
    numbers = [(sum(s.is_control is kind for s in sections), one, several) for one, several, kind in kinds]
    return words.listed([f"{n} {one if n == 1 else several}" for n, one, several in numbers if n])


def environment(*packages: str) -> jinja2.Environment:
    """The templates of this package, and of others besides; text is escaped unless it is Markup."""
    found = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(p, ".") for p in (__package__, *packages)]),
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    found.globals["absent"] = words.ABSENT  # macros that are imported see globals alone
    return found


def policy(style: str, script: str) -> str:
    """The content security policy: our one stylesheet and our one script, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_source(style)}'; script-src '{_source(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def section(view: StudyView, prefix: str) -> Section:
    """Everything the page shows of one study; what the view does not hold is said, not assumed."""
    decision = mapping(view.metrics, "decision")
    headline, meaning = words.decision(
        decision.get("rule"), decision.get("status"), silent=tables.silent_gates(view)
    )
    scale = str(decision.get("scale") or dig(view.freeze, "scale") or "unknown scale")
    is_own = not view.study.n_states
    targets = view.study.targets
    prefixes = [prefix] if len(targets) == 1 else [f"{prefix}-{k}" for k in range(1, len(targets) + 1)]
    compared = comparison.table(view)
    shown = controls.instrument(view, prefix)
    return Section(
        prefix=prefix,
        is_control=view.is_control,
        name=view.name,
        title=title(view),
        scale="own" if is_own else scale,
        scale_words=scale_words(scale, len(view.states), view.study.n_states),
        headline=headline,
        status=str(decision.get("status")),
        rule=str(decision.get("rule")),
        meaning=meaning,
        design=design(view),
        origin=controls.origin(view),
        instrument=None
        if shown is None
        else Instrument(says=shown.says, figures=_figures(shown.figures), tables=shown.tables),
        asked_of=asked_of(view),
        matched=words.context(view.study.matched),
        gates=tables.gates(view),
        limits=tuple(map(str, sequence(decision, "limits"))),
        checks=tables.checks(view),
        level=tables.interval_level(view),
        bootstrap=tables.bootstrap_words(view),
        clusters=tables.cluster_words(view),
        blocks=tuple(block(view.of(t), p) for t, p in zip(targets, prefixes, strict=True)),
        comparison=compared,
        tally=None if compared is None else comparison.tally(compared),
        weak=comparison.limits(view),
        explanations=tables.explanations(view),
        directions=tables.directions(view),
        task_words=view.study.task_words,
        tasks=tuple(sorted({s.task for s in view.states})),
        actions=tuple(sorted({words.spaced(s.intervention.name) for s in view.states})),
        n_states=len(view.states),
        n_units=len(view.plan),
        pool=provenance.pool(view),
        usage=provenance.usage(view),
        ledger=provenance.ledger(view),
        head=view.ledger[-1].hash if view.ledger else None,
        digests=provenance.digests(view),
        stimuli=provenance.stimuli(view),
        params=provenance.params(view),
        source=dig(view.study.published, "source"),
        published_decision=published_decision(view),
    )


def block(view: StudyView, prefix: str) -> Block:
    """Everything the page shows of the one target of a view."""
    return Block(
        prefix=prefix,
        phrase=words.capital(view.target.phrase),
        unit=view.target.unit,
        tiles=tables.tiles(view),
        forests=_figures(gallery.forests(view, prefix)),
        contrasts=tables.contrasts(view),
        cases=tables.cases(view),
        drift=_figures(gallery.drift_against_error(view, prefix)),
        drift_says=gallery.drift_says(view),
        points=_figures(gallery.point_against_outcome(view, prefix)),
        coverage=_figures(gallery.coverage(view, prefix)),
        coverage_table=tables.coverage(view),
        recalibration=tables.recalibration(view),
        levels=tables.levels(view),
        outcomes=tables.outcomes(view),
        interventions=tables.interventions(view),
        strips=_figures(gallery.outcomes(view, prefix)),
        influence=_figures(gallery.influence(view, prefix)),
        task_influence=tables.task_influence(view),
        task_levels=tables.task_levels(view),
        task_baselines=tables.task_baselines(view),
    )


def published_decision(view: StudyView) -> str:
    """The headline of the published decision under the same rule, or a dash."""
    status = view.study.published.get("decision")
    if status is None:
        return words.NONE_PRINTED
    return words.decision(view.study.rule.NAME, status)[0]


def title(view: StudyView) -> str:
    """`molecular, tox21, smollm2`: a page may hold several runs of one study."""
    params = mapping(view.freeze, "params")
    pool = dig(params, "studies", view.name, "pool")
    if (
        view.is_control
    ):  # its pool is a study's frozen stimuli, and is told where that is another's than usual
        study = dig(view.freeze, "stimuli", "study")
        pool = None if study in (None, view.study.reuses) else f"of {study}"
    return ", ".join(str(part) for part in (view.name, pool, dig(params, "forecaster", "name")) if part)


def asked_of(view: StudyView) -> str | None:
    """Which contexts the checks value and alignment compare, where these are not M and S."""
    matched, against = view.study.matched, view.study.against
    if (matched, against) == (Context.MATCHED, Context.DONOR):
        return None
    return (
        f"Here the matched explanation is the {words.context(matched)}: value asks for its gain over the "
        f"description, alignment for its gain over the {words.context(against)}."
    )


def scale_words(scale: str, n_states: int, full: int) -> str:
    """What the scale label means, in one sentence; full 0 where the population is the user's."""
    if not full:
        return f"The user's own {n_states} states."
    if scale == "full" and n_states < full:
        return f"Asked at full scale; the pool gave {n_states} of {full} states."
    if scale == "full":
        return f"Full scale: {n_states} states."
    return (
        f"A stated subset, {n_states} of the study's {full} states: a trial of the whole path, not the study."
    )


def design(view: StudyView) -> str:
    """Population, contexts, forecaster and agent of a study, in one sentence."""
    levels = {level.name for level in view.study.levels}
    budget = "label fraction" if "label fraction" in levels else "training budget"
    counted = [(len({s.task for s in view.states}), *view.study.task_words)]
    for key, one, several in (("budget", budget, f"{budget}s"), ("seed", "seed", "seeds")):
        counted.append((len({getattr(s, key) for s in view.states} - {None}), one, several))
    made = [f"{n} {one if n == 1 else several}" for n, one, several in counted if n]
    planned = dict.fromkeys(str(u.context) for u in view.plan if u.context is not None)
    contexts = [words.short_context(context) for context in planned]
    calls = max((u.call or 0 for u in view.plan), default=0)
    params = mapping(view.freeze, "params")
    (config,) = [*mapping(params, "studies").values()][:1] or [{}]
    sources = {source for state in view.states for source in state.sources}
    author = "the user's file" if sources == {"given"} else dig(params, "agent", "name")
    if view.is_control:  # nobody is asked for an explanation
        author = words.listed(sorted({e.agent for e in view.explanations})) or None
    names = (
        ("pool", dig(config, "pool")),
        ("forecaster", dig(params, "forecaster", "name")),
        ("explanations by", author),
    )
    return "; ".join(
        [
            f"{len(view.states)} states from {words.listed(made) or 'nothing'}",
            f"contexts {', '.join(contexts) or 'none'}, {calls} calls each",
            *(f"{what} {name}" for what, name in names if name is not None),
        ]
    )


def _figures(drawn: Sequence[str]) -> tuple[Markup, ...]:
    # SVG that Matplotlib wrote and svg.py rebuilt as a tree: its texts are escaped there.
    return tuple(map(Markup, drawn))


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _source(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
