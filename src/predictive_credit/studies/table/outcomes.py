"""A user's outcomes: those known at the start, those that arrive later, and those of the burn-in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit.records import BurnIn, Outcome, State, Target, TargetBurnIn
from predictive_credit.studies.burn_in import summary
from predictive_credit.studies.study import Setting
from predictive_credit.studies.table import filed, reading, sheets
from predictive_credit.studies.table.reading import BurnInRow, Known, Outcomes
from predictive_credit.studies.table.states import local_id, slug

DECLARED_RANGE = "declared range"


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """The outcomes that the pool holds, by state and target in the study's order.

    Nothing is run: the user has. An empty cell is pending and has no outcome yet; a cell that says
    `undefined: reason` is an outcome without a value. Raises BadSource for any other cell.
    """
    return _outcomes(setting, states, _known(setting))


def arrived(setting: Setting, states: Sequence[State], path: Path) -> tuple[Outcome, ...]:
    """The outcomes in a file that came later, of the state-target pairs that were pending.

    The file holds the id column and one target's column or more; an outcome that was known already
    may stand in it if it says the same. Raises BadSource as `execute` does, for an unknown id, and
    for an outcome that is not the one known before.
    """
    before = _known(setting)
    sheet = sheets.read(path)
    later = reading.outcomes(sheet, setting.config, {local_id(state) for state in states})
    reading.united(before, later, sheet.name, "the files that were sealed")
    return _outcomes(setting, states, {key: known for key, known in later.items() if key not in before})


def pending(setting: Setting, states: Sequence[State]) -> tuple[tuple[str, str], ...]:
    """State id and target of every outcome that is still to come."""
    known = {(outcome.state_id, outcome.target) for outcome in execute(setting, states)}
    pairs = [(state.id, target.name) for state in states for target in setting.config.targets]
    return tuple(pair for pair in pairs if pair not in known)


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Outcomes of the pool's burn-in file and their summary, or the declared range where there is none.

    Outcome ids read `burn-in/task/id/intervention`. Without a file nothing is known beforehand but
    what an outcome can be at all: the interval is the whole range, the point no change, or the
    middle of the range for a level.
    """
    targets = [declared.target() for declared in setting.config.targets]
    sheet = filed.load(setting.burn_in, "burn_in")
    if sheet is None:
        return (), BurnIn(name=DECLARED_RANGE, tasks=(), targets={t.name: _whole_range(t) for t in targets})
    own = reading.rows(filed.states(setting.features), setting.config)
    rows, known = reading.burn_in(sheet, setting.config, own)
    found = tuple(
        _outcome(_burn_in_id(row), target.name, known[row.id, target.name])
        for row in rows for target in targets if (row.id, target.name) in known
    )  # fmt: skip
    return found, summary(
        found, name=sheet.name, tasks=sorted({row.task for row in rows}), targets=targets,
        interventions=sorted({slug(row.intervention) for row in rows}),
    )  # fmt: skip


def _known(setting: Setting) -> dict[tuple[str, str], Known]:
    apart = filed.load(setting.features, "outcomes")
    return reading.known(filed.states(setting.features), apart, setting.config)


def _outcomes(setting: Setting, states: Sequence[State], known: Outcomes) -> tuple[Outcome, ...]:
    return tuple(
        _outcome(state.id, target.name, known[local_id(state), target.name])
        for state in states for target in setting.config.targets
        if (local_id(state), target.name) in known
    )  # fmt: skip


def _outcome(state_id: str, target: str, known: Known) -> Outcome:
    return Outcome(state_id=state_id, target=target, value=known.value, reason=known.reason)


def _burn_in_id(row: BurnInRow) -> str:
    return f"burn-in/{row.task}/{row.id}/{slug(row.intervention)}"


def _whole_range(target: Target) -> TargetBurnIn:
    """A target of which only the declared range is known."""
    holds_zero = target.lower <= 0 <= target.upper
    middle = 0.0 if target.form == "change" and holds_zero else (target.lower + target.upper) / 2
    return TargetBurnIn(
        n_outcomes=0, n_undefined=0, mean=middle, mean_absolute=abs(middle), q10=target.lower,
        q90=target.upper, by_intervention={},
    )  # fmt: skip
