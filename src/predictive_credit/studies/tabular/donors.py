"""Whose card a state is shown: another seed's, or another task's under the same intervention."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from predictive_credit.donors import seed_donors
from predictive_credit.errors import BadConfig
from predictive_credit.records import Context, State
from predictive_credit.studies.study import Donors
from predictive_credit.studies.tabular.config import TabularConfig


def donors(config: TabularConfig, states: Sequence[State]) -> Donors:
    """Donor ids by state id for each context asked that shows a donor's card.

    S: the next seed of the same cell. T: another task of the kind under the same intervention and seed.
    """
    made = {}
    if Context.DONOR in config.contexts:
        made[Context.DONOR] = seed_donors(states)
    if Context.OTHER_TASK in config.contexts:
        made[Context.OTHER_TASK] = task_donors(states)
    return made


def task_donors(states: Sequence[State]) -> dict[str, str]:
    """Each state's donor among other tasks' states of its kind, intervention and seed.

    The next task, cyclically, with the same budget; for a last task without a pair, whose budget no
    other has under its intervention, the one of the nearest budget. Returns donor ids by state id,
    sorted. Raises BadConfig for a state that has no such partner.
    """
    alike: dict[tuple[str, str, int | None], list[State]] = defaultdict(list)
    for state in sorted(states, key=lambda state: state.id):
        alike[state.cluster[0], state.intervention.name, state.seed].append(state)
    made = {state.id: _lender(state, members).id for members in alike.values() for state in members}
    return dict(sorted(made.items()))


def _lender(state: State, members: Sequence[State]) -> State:
    others = [other for other in members if other.task != state.task]
    if not others:
        kind = state.cluster[0]
        raise BadConfig(
            f"{state.id} is the only {kind} state with its intervention and seed, so no other task can "
            f"lend it a card in context T; give the study an even number of {kind} tasks, or leave T out "
            f"of contexts"
        )

    def distance(other: State) -> tuple[float, bool, str]:
        return abs((other.budget or 0) - (state.budget or 0)), other.task < state.task, other.task

    return min(others, key=distance)
