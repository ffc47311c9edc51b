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

    S: the next seed of the same cell. T: the partner task, same intervention, budget and seed.
    """
    made = {}
    if Context.DONOR in config.contexts:
        made[Context.DONOR] = seed_donors(states)
    if Context.OTHER_TASK in config.contexts:
        made[Context.OTHER_TASK] = task_donors(states)
    return made


def task_donors(states: Sequence[State]) -> dict[str, str]:
    """Each state's donor among those of its kind, intervention, budget and seed: the next task, cyclically.

    Returns donor ids by state id, sorted. Raises BadConfig for a state that has no such partner.
    """
    partners: dict[tuple[str, str, str], list[State]] = defaultdict(list)
    for state in states:
        kind, _, tail = state.cluster
        partners[kind, state.intervention.name, tail].append(state)
    made: dict[str, str] = {}
    for members in partners.values():
        ordered = sorted(members, key=lambda state: state.task)
        if len(ordered) < 2:
            raise BadConfig(
                f"{ordered[0].id} is the only state with its intervention, budget and seed, so no other task "
                "can lend it a card; give the study two tasks of each kind, or leave context T out"
            )
        for state, donor in zip(ordered, ordered[1:] + ordered[:1], strict=True):
            made[state.id] = donor.id
    return dict(sorted(made.items()))
