"""What the page shows of one study, already read: the report opens no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from predictive_credit.ledger import Event
from predictive_credit.records import Answer, Explanation, Outcome, PromptText, State, Unit, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyView:
    """One decided study: its metrics as the decide stage wrote them, and the frozen records."""

    name: str
    metrics: Mapping[str, Any]  # decision, checks, contrasts, contexts, endpoints, outcomes
    pool: Mapping[str, Any]  # the counts of the pool's cleaning
    freeze: Mapping[str, Any]
    ledger: tuple[Event, ...]
    states: tuple[State, ...]
    explanations: tuple[Explanation, ...]
    plan: tuple[Unit, ...]
    prompts: Mapping[str, PromptText]  # by `state id/context`
    answers: tuple[Answer, ...]
    outcomes: tuple[Outcome, ...]
    usage: tuple[Usage, ...]
