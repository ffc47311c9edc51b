"""The nouns of the protocol: frozen, keyword-only records that are true from birth.

Ids read like paths: state `molecular/NR-AR/0.25/1` (study, task, budget, seed) and unit
`molecular/NR-AR/0.25/1/M/2` (state, context, call), `molecular/NR-AR/0.25/1/elicited` (state,
source) or `.../elicited/extract`. Unknown is None, never "", -1 or 0.0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Literal

JsonScalar = str | int | float | bool | None


class MalformedForecast(ValueError):
    """A reply whose numbers cannot be a forecast; it becomes the frozen fallback."""


Source = Literal[
    "elicited", "ordinary", "given",
    "exact", "noisy", "wrong_seed", "sign",
    "numbers", "mechanism", "donor_mechanism", "donor_numbers", "scaffold",
    "donor_1", "donor_2", "donor_3", "donor_4", "donor_5",
    "true_note", "false_note",
]  # fmt: skip
"""How an explanation came to be: a card asked for slot by slot, a note written as usual, a user's own, or
one that a post-outcome control composed, which is called like the context that shows it."""


class Context(StrEnum):
    """What accompanies the description. A study declares which it asks, and what each shows."""

    DESCRIPTION = "D"  # nothing
    MATCHED = "M"  # the state's own explanation
    DONOR = "S"  # a donor's: another seed of the cell, or another intervention
    ORDINARY = "O"  # what was read out of the state's ordinary note
    OTHER_TASK = "T"  # the card of another task with the same intervention
    NUMBERS = "N"  # the numeric slots of the matched card alone
    # Of the post-outcome controls, each shown by an explanation composed for it.
    EXACT = "exact"  # the outcome itself
    NOISY = "noisy"  # the outcome and a stated noise
    WRONG_SEED = "wrong_seed"  # the donor's outcome
    SIGN = "sign"  # the outcome's direction alone
    NUMBERS_ONLY = "numbers"  # the matched card with its direction and target alone filled
    MECHANISM_ONLY = "mechanism"  # the matched card without them
    DONOR_MECHANISM = "donor_mechanism"  # the matched numbers with the donor's mechanism
    DONOR_NUMBERS = "donor_numbers"  # the donor's numbers with the matched mechanism
    SCAFFOLD = "scaffold"  # six empty slots
    DONOR_1 = "donor_1"  # the matched card with one slot of the donor's
    DONOR_2 = "donor_2"
    DONOR_3 = "donor_3"
    DONOR_4 = "donor_4"
    DONOR_5 = "donor_5"
    TRUE_NOTE = "true_note"  # a researcher's note on the task's real mechanism
    FALSE_NOTE = "false_note"  # one on the opposite mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One number that is forecast and executed, in its own unit.

    `size` is how a forecast writes an amount: `#` a free digit, `?` one that may be missing, all
    else as it stands (`0.0###` leaves three free decimals below a tenth).
    """

    name: str  # a key in files and metrics: `roc_auc`
    phrase: str  # how a sentence names it: `ROC AUC`
    unit: str  # in tables and figures: `ROC AUC`, `percentage points`, `nats`
    suffix: str  # what follows an amount in a sentence: `` or ` percentage points`
    size: str
    lower: float  # what an outcome can be at all
    upper: float
    form: Literal["change", "level"] = "change"
    large: float = 0.01  # an outcome of this absolute size or more is worth knowing beforehand
    better: Literal["higher", "lower"] = "higher"  # the side on which an improvement lies

    def __post_init__(self) -> None:
        if not (math.isfinite(self.lower) and math.isfinite(self.upper) and self.lower < self.upper):
            raise ValueError(f"target {self.name}: the range [{self.lower}, {self.upper}] holds nothing")

    @property
    def decimals(self) -> int:
        """Digits after the point of an amount."""
        return len(self.size.partition(".")[2])


class UnitKind(StrEnum):
    """The three sorts of planned call."""

    ELICIT = "elicit"
    EXTRACT = "extract"
    FORECAST = "forecast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Intervention:
    """The planned change `a`: its closed-list name and its public wording."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The public situation `x` before the action, and the intervention planned on it.

    Holds nothing that was computed from a held-out label: `description` and `facts` are all that
    an agent or a forecaster will ever see of the state.
    """

    id: str
    study: str
    task: str  # the endpoint, table or regime: what gains are scaled and balanced by
    cluster: tuple[str, ...]  # the state's place at each level of its study's bootstrap, outermost first
    budget: float | None = None  # fraction of the training labels, in (0, 1]
    seed: int | None = None
    sources: tuple[Source, ...] = (
        "elicited",
    )  # the explanations written of it; the first is the matched one
    donor: str | None = None  # the donor's state id where the user's file names one
    description: str
    facts: Mapping[str, JsonScalar]
    intervention: Intervention

    @property
    def cell(self) -> str:
        """Task and budget: what the states of different seeds share."""
        return self.task if self.budget is None else f"{self.task}/{self.budget:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The executed result `y` of one state's intervention in one target, in the target's unit.

    `value` is None exactly when `reason` says why it is undefined; such a state keeps its row.
    """

    state_id: str
    target: str
    value: float | None
    reason: str | None = None

    @property
    def id(self) -> str:
        """State and target: what a commitment is filed under."""
        return f"{self.state_id}/{self.target}"

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError(f"outcome of {self.state_id}: give either a value or a reason")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"outcome of {self.state_id} is {self.value}; say why it is undefined")


SlotName = Literal["direction", "target", "intermediate", "regime", "falsifier", "counterfactual"]
SLOT_NAMES: tuple[SlotName, ...] = (
    "direction", "target", "intermediate", "regime", "falsifier", "counterfactual",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One filled slot: what it says and the words of the source text that say it."""

    text: str
    quote: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """An explanation in six slots; None is an empty slot, six empty slots are a scaffold."""

    direction: Slot | None = None
    target: Slot | None = None
    intermediate: Slot | None = None
    regime: Slot | None = None
    falsifier: Slot | None = None
    counterfactual: Slot | None = None

    def filled(self) -> Iterator[tuple[SlotName, Slot]]:
        """The filled slots, in the card's order."""
        for name in SLOT_NAMES:
            slot: Slot | None = getattr(self, name)
            if slot is not None:
                yield name, slot

    @property
    def is_complete(self) -> bool:
        """All six slots are filled."""
        return all(getattr(self, f.name) is not None for f in fields(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What an agent wrote about one state (`text`) and the card read from it."""

    state_id: str
    source: Source
    agent: str
    text: str
    card: Card
    extraction: str | None = None  # the extractor's raw reply, if the card was read by one

    @property
    def id(self) -> str:
        """State and source, which is also the id of the unit that asked for it."""
        return f"{self.state_id}/{self.source}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Everything that is sent for one call, sampling settings included."""

    system: str
    user: str
    grammar: (
        str | None
    )  # what shape the answer is held to: GBNF or a JSON Schema; None where nothing holds it
    max_tokens: int
    temperature: float | None  # None: the provider's own, which it may not let anyone set
    top_p: float | None
    seed: int  # 31 bits, derived from the unit's id


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The first content that came back for a unit, for good."""

    text: str
    finish_reason: str | None  # "stop", "length", ...; None if the provider did not say
    model_requested: str
    model_resolved: str | None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    latency_s: float | None = None
    cost_usd: float | None = None  # by the price table of the moment, or as the provider said
    attempts: int | None = None  # how often it was sent, transport trouble included; None: not over a network
    endpoint: str | None = None  # where it was asked, without anything secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One planned call. `prompt_digest` fixes what will be asked before it is asked."""

    id: str
    kind: UnitKind
    state_id: str
    context: Context | None  # None for elicit and extract units
    call: int | None  # 1 or 2; None for elicit and extract units
    explanation_of: str | None  # the state whose explanation is shown, or None
    prompt_digest: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A point and a central 80 % interval of one target, in the target's own unit."""

    unit_id: str
    target: str
    point: float
    lower: float
    upper: float
    is_fallback: bool = False  # kept in the denominator: the analysis is intention-to-treat
    reason: str | None = None  # why the reply could not be read; None unless is_fallback

    def __post_init__(self) -> None:
        numbers = (self.point, self.lower, self.upper)
        if not all(map(math.isfinite, numbers)):
            raise MalformedForecast(f"unit {self.unit_id}: {self.target} {numbers} holds a non-finite number")
        if self.lower > self.upper:
            raise MalformedForecast(
                f"unit {self.unit_id}: {self.target} is reversed, {self.lower} > {self.upper}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A unit's raw reply and what was read from it, a forecast a target: one line of forecasts.jsonl.

    A reply that cannot be read in one target is the fallback in all of them.
    """

    unit_id: str
    prompt_digest: str
    reply: Reply
    forecasts: tuple[Forecast, ...]

    @property
    def is_fallback(self) -> bool:
        """Whether the reply could not be read."""
        return any(forecast.is_fallback for forecast in self.forecasts)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBurnIn:
    """Burn-in outcomes of one target, in its unit.

    `by_intervention` maps an intervention's name to the mean, 10 % and 90 % quantile and count of
    its burn-in outcomes.
    """

    n_outcomes: int
    n_undefined: int
    mean: float
    mean_absolute: float
    q10: float
    q90: float
    by_intervention: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnIn:
    """What playbook, fallback and priors may know: outcomes of tasks or seeds the study never uses."""

    name: str
    tasks: tuple[str, ...]
    targets: Mapping[str, TargetBurnIn]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptText:
    """What the calls of one state and context share: the prompt without its seed.

    `key` is the state's id and the context (`molecular/NR-AR/0.25/1/M`), or the id of the elicit
    or extract unit.
    """

    key: str
    system: str
    user: str
    grammar: str | None
    max_tokens: int
    temperature: float | None
    top_p: float | None

    def prompt(self, seed: int) -> Prompt:
        """The prompt of one call."""
        return Prompt(
            system=self.system, user=self.user, grammar=self.grammar, max_tokens=self.max_tokens,
            temperature=self.temperature, top_p=self.top_p, seed=seed,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What one call took. Kept apart from the reply, so that equal replies give equal files."""

    unit_id: str
    prompt_tokens: int | None
    completion_tokens: int | None
    cached_tokens: int | None
    latency_s: float | None
    cost_usd: float | None = None
    attempts: int | None = None
    endpoint: str | None = None
