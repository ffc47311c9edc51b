"""What the page shows of one study, already read: the report opens no file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from predictive_credit.ledger import Event
from predictive_credit.records import Answer, Explanation, Outcome, PromptText, State, Target, Unit, Usage
from predictive_credit.report.words import SOURCES, Voice
from predictive_credit.studies.study import Study

# The metrics that are nested by target.
BY_TARGET = ("contrasts", "contexts", "tasks", "outcomes", "recalibration")


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyView:
    """One decided study: its metrics as the decide stage wrote them, and the frozen records.

    `of` gives the view of a single target: metrics without that level, forecasts and outcomes of it
    alone. Tables and figures of losses read such a view.
    """

    name: str
    study: Study  # as the configuration declares it
    metrics: Mapping[str, Any]  # decision, checks, contrasts and so on; recalibration beside them
    pool: Mapping[str, Any]  # the counts of the pool's cleaning
    freeze: Mapping[str, Any]
    ledger: tuple[Event, ...]
    states: tuple[State, ...]
    explanations: tuple[Explanation, ...]  # one a state and source
    plan: tuple[Unit, ...]
    prompts: Mapping[str, PromptText]  # by `state id/context`
    answers: tuple[Answer, ...]
    outcomes: tuple[Outcome, ...]  # one a state and target
    usage: tuple[Usage, ...]

    def of(self, target: Target) -> StudyView:
        """The view of one target; a metric that does not hold it is empty there."""
        return replace(
            self,
            study=replace(self.study, targets=(target,)),
            metrics={
                name: _inner(block, target.name) if name in BY_TARGET else block
                for name, block in self.metrics.items()
            },
            answers=tuple(
                replace(a, forecasts=tuple(f for f in a.forecasts if f.target == target.name))
                for a in self.answers
            ),
            outcomes=tuple(o for o in self.outcomes if o.target == target.name),
        )

    @property
    def target(self) -> Target:
        """The target of a view of one, and the first of a whole view."""
        return self.study.targets[0]

    @property
    def contexts(self) -> tuple[str, ...]:
        """Every context that the study declares or the plan holds, in the study's order."""
        planned = (str(unit.context) for unit in self.plan if unit.context is not None)
        return tuple(dict.fromkeys([*map(str, self.study.contexts), *planned]))

    @property
    def sources(self) -> tuple[str, ...]:
        """Every source of an explanation that the study may show, those that agents write first."""
        shown = (showing.source for showing in self.study.contexts.values() if showing is not None)
        return tuple(dict.fromkeys([*SOURCES, *(source for source in shown if source is not None)]))

    @property
    def is_control(self) -> bool:
        """Whether this was planned after the outcomes, to test the instrument."""
        return self.study.timing == "post-outcome"

    @property
    def voice(self) -> Voice:
        """How numbers of `target` are said."""
        return voice(self.target)


def voice(target: Target) -> Voice:
    """A digit more than a forecast gives, four at most."""
    return Voice(digits=min(4, target.decimals + 1))


def _inner(block: Any, name: str) -> Mapping[str, Any]:
    found = block.get(name) if isinstance(block, Mapping) else None
    return found if isinstance(found, Mapping) else {}
