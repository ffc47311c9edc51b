"""The Study record: one screen that is the map of a protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from predictive_credit.agents.playbook import Textbook
from predictive_credit.config import Execution, Pool, StudyConfig
from predictive_credit.contexts import Showing
from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision
from predictive_credit.panel import Measure, Panel
from predictive_credit.records import BurnIn, Context, Explanation, Outcome, Source, State, Target

Donors = Mapping[Context, Mapping[str, str]]  # context, then state id, to the donor's state id


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One level of a study's bootstrap: its clusters are drawn anew, or kept as strata."""

    name: str
    is_drawn: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Where a suite works: the configured study, its seed, and the folders of features."""

    name: str  # the configured study's name, with which its state ids begin
    config: Any  # an instance of the study's own configuration class
    seed: int
    execution: Execution
    features: Path  # data/features/<pool>
    burn_in: Path  # data/features/<burn-in pool>


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Planned units of a configured study, and what its states are made of, in words."""

    states: int
    sources: int  # elicit units
    extractions: int
    forecasts: int
    design: str  # `12 endpoints x 3 label fractions x 2 seeds`

    @property
    def units(self) -> int:
        """Planned calls in all."""
        return self.sources + self.extractions + self.forecasts


@dataclass(frozen=True, slots=True, kw_only=True)
class Formation:
    """How often a complete card was formed, elicited minus ordinary, with its one-sided lower bound."""

    difference: float
    lower: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What a frozen rule may read: contrasts by target, measure and pair, formation, and the panels."""

    contrasts: Mapping[str, Mapping[str, Mapping[str, Contrast]]]
    formation: Formation | None = None  # None unless both sources were asked of every state
    panels: Mapping[str, Panel] = field(default_factory=dict)  # by target: forecasts and outcomes as arrays


@dataclass(frozen=True, slots=True, kw_only=True)
class Stimuli:
    """What a control composes its explanations from."""

    states: tuple[State, ...]
    explanations: Mapping[tuple[str, Source], Explanation]  # the study's own, by state id and source
    outcomes: Mapping[tuple[str, str], Outcome]  # by state id and target
    burn_in: BurnIn
    donors: Mapping[str, str]  # the study's mapping of S
    targets: tuple[Target, ...]
    seed: int
    study: str  # the control's name, for its streams


Compose = Callable[[Stimuli], tuple[Explanation, ...]]
Shows = Callable[[Mapping[str, Panel], Mapping[str, Mapping[str, Mapping[str, Contrast]]]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A population of states, some contexts, two calls each, and a frozen rule; and the suite that runs it.

    Counts are of the full scale; a quick run takes a stated subset and says so everywhere.
    """

    name: str
    timing: Literal["prospective", "post-outcome"]
    n_tasks: int  # at full scale; 0 where the population is the user's
    n_states: int
    n_units: int
    task_words: tuple[str, str]  # what a task is called here: ("endpoint", "endpoints")
    targets: tuple[Target, ...]
    levels: tuple[Level, ...]  # of the bootstrap, outermost first; as long as a state's `cluster`
    contexts: Mapping[Context, Showing | None]  # every context the study knows, in asking order
    calls_per_context: int
    extracted: tuple[str, ...]  # the sources whose texts an extractor reads into cards
    primary_loss: Measure
    one_sided_level: float  # of the bounds that the rule reads; the rule's constant, not params.yaml's
    rule: ModuleType  # the frozen rule.py: NAME, and the constants it is read with
    decide: Callable[[str, Findings], Decision]  # the configured study's name and what was found
    textbook: Textbook | None  # what the playbook knows of this study's interventions
    config: type[StudyConfig]
    features: Callable[[Pool, Path, Path, Execution], dict[str, Any]]  # raw, features folder; counts
    count: Callable[[Any, Mapping[str, Pool]], Counts] | None  # None where a study is reused: see `share`
    states: Callable[[Setting], tuple[State, ...]]
    burn_in: Callable[[Setting, Sequence[State]], tuple[tuple[Outcome, ...], BurnIn]]
    execute: Callable[[Setting, Sequence[State]], tuple[Outcome, ...]]
    donors: Callable[[Any, Sequence[State]], Donors]  # the configuration's contexts that show a donor
    given: Callable[[Setting], tuple[Explanation, ...]] | None = None  # explanations that nobody is asked for
    arrived: Callable[[Setting, Sequence[State], Path], tuple[Outcome, ...]] | None = (
        None  # outcomes come later
    )
    configure: Callable[[Study, Any], Study] | None = None  # targets and levels that a configuration declares
    also_primary: tuple[tuple[Measure, str], ...] = ()  # what the rule reads beside the primary loss
    published: Mapping[str, Any] = field(default_factory=dict)  # printed figures, to stand beside ours
    matched: Context = Context.MATCHED  # what the checks ask for value, and for a signal that is followed
    against: Context = Context.DONOR  # what the alignment check sets against it
    pairs: tuple[tuple[Context, Context], ...] = ()  # further contrasts: other context, matched context
    reuses: str | None = None  # a control's: by which rule the study was decided whose stimuli these are
    composed: Compose | None = None  # a control's: the explanations that follow from these stimuli
    of_source: Source | None = None  # a control's: it takes the states that have this source, None: all
    share: float = 1.0  # their share, where the study that it reuses is still to come
    explores: bool = False  # its rule tests no claim, so that no contrast is primary
    other_forecaster: bool = False  # a control's: the study's own forecaster would replicate nothing
    shows: Shows | None = None  # a control's own figures, which stand in its decision

    @property
    def rule_source(self) -> bytes:
        """The rule's source as it is run, whose digest the freeze record holds."""
        return Path(str(self.rule.__file__)).read_bytes()

    def is_primary(self, measure: str, pair: str) -> bool:
        """Whether the rule reads this contrast; all others are exploratory."""
        pairs = (f"{Context.DESCRIPTION}-{self.matched}", f"{self.against}-{self.matched}")
        main = not self.explores and measure == self.primary_loss and pair in pairs
        return main or (measure, pair) in self.also_primary

    def asked(self, config: StudyConfig) -> dict[Context, Showing | None]:
        """The contexts a configuration asks, in the study's order, and what each shows."""
        return {context: shown for context, shown in self.contexts.items() if context in config.contexts}

    def configured(self, config: StudyConfig) -> Study:
        """This study as a configuration declares it."""
        return self if self.configure is None else replace(self.configure(self, config), configure=None)
