"""A user's rows as states with their explanations, and whose explanation stands in as the donor's."""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from predictive_credit.cards import read_card
from predictive_credit.errors import BadConfig
from predictive_credit.records import Context, Explanation, Intervention, State
from predictive_credit.studies.study import Donors, Setting
from predictive_credit.studies.table import filed, reading
from predictive_credit.studies.table.config import TableConfig
from predictive_credit.studies.table.reading import Row

AGENT: Final = "file"
LONGEST_SLUG: Final = 40


def states(setting: Setting) -> tuple[State, ...]:
    """Every row as a state, sorted by id (`study/id`); nothing is read but the declared public columns.

    The task is the outermost cluster key; the state's own id is the innermost level of the bootstrap.
    """
    return tuple(_state(setting, row) for row in _rows(setting))


def given(setting: Setting) -> tuple[Explanation, ...]:
    """The explanations of the file, in the states' order, with what can be read of them as a card."""
    return tuple(
        Explanation(
            state_id=f"{setting.name}/{row.id}", source="given", agent=AGENT, text=row.explanation,
            card=read_card(row.explanation),
        )
        for row in _rows(setting)
    )  # fmt: skip


def donors(config: TableConfig, states: Sequence[State]) -> Donors:
    """Each state's donor by the declared policy; nothing where context S is not asked.

    same_cluster: the next state by id, cyclically, of the innermost cluster. other_cluster: of the
    next outermost cluster by name, cyclically, the state at the same position, modulo its size, so
    that donors spread over the cluster. column: as the file names them.
    """
    if Context.DONOR not in config.contexts:
        return {}
    if config.donor == "column":
        return {Context.DONOR: {state.id: str(state.donor) for state in states}}
    mapping = _next_in_cluster(states) if config.donor == "same_cluster" else _next_cluster(states)
    return {Context.DONOR: dict(sorted(mapping.items()))}


def local_id(state: State) -> str:
    """The state's id in the user's file."""
    return state.id.removeprefix(f"{state.study}/")


def slug(text: str) -> str:
    """A short name of an intervention's wording; wordings that differ get names that differ."""
    plain = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    if 0 < len(plain) <= LONGEST_SLUG and plain.replace("_", " ") == text.lower().strip(" ."):
        return plain
    mark = hashlib.sha256(text.encode()).hexdigest()[:7]
    return f"{plain[: LONGEST_SLUG - 8].strip('_') or 'change'}_{mark}"


def _rows(setting: Setting) -> tuple[Row, ...]:
    return reading.rows(filed.states(setting.features), setting.config)


def _state(setting: Setting, row: Row) -> State:
    return State(
        id=f"{setting.name}/{row.id}",
        study=setting.name,
        task=row.cluster[0],
        cluster=(*row.cluster, row.id),
        sources=("given",),
        donor=None if row.donor is None else f"{setting.name}/{row.donor}",
        description=row.description,
        facts={},
        intervention=Intervention(name=slug(row.intervention), text=row.intervention),
    )


def _next_in_cluster(states: Sequence[State]) -> dict[str, str]:
    found: dict[str, str] = {}
    for cluster, members in _grouped(states, depth=-1).items():
        if len(members) < 2:
            raise BadConfig(
                f"{members[0]} is alone in cluster {'/'.join(cluster)}, so nobody there can lend it an "
                "explanation; set donor to other_cluster"
            )
        found |= dict(zip(members, members[1:] + members[:1], strict=True))
    return found


def _next_cluster(states: Sequence[State]) -> dict[str, str]:
    clusters = [members for _, members in sorted(_grouped(states, depth=1).items())]
    if len(clusters) < 2:
        raise BadConfig("all states are of one outermost cluster; set donor to same_cluster")
    return {
        member: lenders[position % len(lenders)]
        for members, lenders in zip(clusters, clusters[1:] + clusters[:1], strict=True)
        for position, member in enumerate(members)
    }


def _grouped(states: Sequence[State], *, depth: int) -> Mapping[tuple[str, ...], list[str]]:
    """State ids, sorted, by the first `depth` levels of their cluster (-1: all but the state itself)."""
    groups: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for state in sorted(states, key=lambda state: state.id):
        groups[state.cluster[:depth]].append(state.id)
    return groups
