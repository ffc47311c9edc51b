"""What an audited task is: public background, a sealed instance, experiments, and one score a unit.

A task is judged twice with the same evaluator: the run's own artifact, and everybody else's. What an
agent may read is in `background`, `first` and the answers to its experiments; what is sealed comes
from a secret drawn at registration and never leaves the instance.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn, Protocol

from numpy.random import Generator

from predictive_credit.streams import stream

LARGEST = 128 * 1024  # bytes of an action or a candidate


class Malformed(Exception):  # somebody else's answer, recorded and never raised to a user
    """An action, a plan or an artifact that is not what the task's schema says."""


class Channel(StrEnum):
    """Who answers an experiment: the instrument, one of two fillers of equal shape, or nobody."""

    TRUTHFUL = "truthful"
    NEUTRAL = "neutral"
    REFERENCE = "reference"
    WITHHELD = "withheld"


@dataclass(frozen=True, kw_only=True)
class Budget:
    """How many episodes of each kind are registered."""

    challengers: int
    positive_controls: int
    feedback_pairs: int = 0
    null_pairs: int = 0


@dataclass(frozen=True, kw_only=True)
class Design:
    """The numbers of an audit that are registered before its main run."""

    name: str
    profile: str  # the task family's registered name
    title: str
    grade: str  # core | evidence
    delta_min: float  # smallest gain over the baseline, score units in [0, 1]
    kappa: float  # epsilon is kappa times delta_min
    experiments: int  # experiments an episode may make
    full: Budget
    quick: Budget
    alpha_recovery: float = 0.02
    alpha_evidence: float = 0.005
    alpha_sham: float = 0.005
    delta_evidence: float = 0.34
    delta_sham: float = 0.17
    turns: int = 8  # sessions of an episode, one action each
    answer_tokens: int = 400  # what the longest action and candidate take a model to write
    replaceable: float = 0.0  # share of the pairs that others may replace where infrastructure takes them
    formerly: str = ""  # the public audits' name for the family, which older records of ours bear too


class Task(Protocol):
    """One instance of a task. Artifacts and plans are JSON values of a closed schema."""

    design: Design

    def background(self, order: Generator | None = None) -> Mapping[str, Any]:
        """K: `text`, `files` and `schema` of plan and artifact. `order` shuffles what has no order."""

    def first(self) -> Mapping[str, Any]:
        """E0: observations that nobody's action made."""

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """The sealed units, in order."""

    @property
    def baseline(self) -> Any:
        """The registered comparison artifact."""

    def answer(self) -> Any:
        """The sealed answer: an artifact that scores best. Only an evaluator or a null task shows it."""

    def artifact(self, value: Any) -> Any:
        """A checked artifact. Raises Malformed."""

    def plan(self, value: Any) -> Any:
        """A checked experiment. Raises Malformed."""

    def measure(self, plan: Any) -> list[tuple[str, str]]:
        """Readings of a checked plan: what was measured, and its value as a text of fixed width."""

    def score(self, artifact: Any) -> tuple[float, ...]:
        """One score in [0, 1] a unit, of a checked artifact."""


# One filler a channel; none of them is part of any reading.
_FILLERS = {Channel.NEUTRAL: "?", Channel.REFERENCE: "~"}
WITHHELD: Mapping[str, Any] = {"status": "feedback withheld"}


def observe(task: Task, plan: Any, channel: Channel) -> Mapping[str, Any]:
    """The answer to an experiment. Those of the first three channels share keys, order and length.

    A filler carries no direction: whatever is measured, the same characters come back.
    """
    if channel == Channel.WITHHELD:
        return WITHHELD
    filler = _FILLERS.get(channel)
    readings = [
        {"of": of, "value": value if filler is None else filler * len(value)}
        for of, value in task.measure(plan)
    ]
    return {"status": "recorded", "readings": readings}


def sealed(secret: bytes, task: str, label: str) -> Generator:
    """The generator of everything sealed in one instance."""
    return stream(int.from_bytes(secret, "big"), "certification", task, label)


def strict_json(text: str, *, largest: int = LARGEST) -> Any:
    """One JSON value. Raises Malformed on a repeated key, NaN, infinity, or too much of it."""
    if len(text.encode(errors="replace")) > largest:
        raise Malformed(f"longer than {largest} bytes")
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {type(error).__name__}") from None


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) != len(pairs):
        raise Malformed("a key is repeated")
    return dict(pairs)


def _refuse(name: str) -> NoReturn:
    raise Malformed(f"{name} is not a number of JSON")


def exactly(value: Any, *names: str) -> list[Any]:
    """The values of an object with exactly these keys. Raises Malformed."""
    if not isinstance(value, dict) or set(value) != set(names):
        raise Malformed(f"must be an object with exactly the keys {', '.join(names)}")
    return [value[name] for name in names]


def exact_form(**values: Any) -> dict[str, Any]:
    """JSON Schema of an object with exactly these keys, in this order."""
    return {"type": "object", "properties": values, "required": list(values), "additionalProperties": False}


def list_form(items: Any, *, least: int, most: int) -> dict[str, Any]:
    """JSON Schema of a list of so many."""
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def integer(value: Any, *, least: int, most: int, what: str) -> int:
    """An integer in a range. Raises Malformed; a truth value is none."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Malformed(f"{what} must be an integer from {least} to {most}")
    return value


def shuffled(names: Sequence[str], order: Generator | None) -> list[str]:
    """The names in a drawn order, or as they are."""
    return list(names) if order is None else [names[i] for i in order.permutation(len(names))]
