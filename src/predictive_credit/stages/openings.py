"""What was known of a study's outcomes before a moment: opened on this machine, or lying there."""

from __future__ import annotations

from pathlib import Path

from predictive_credit import config, tables, vault
from predictive_credit.records import State
from predictive_credit.stages.paths import Project, StudyPaths


def known(project: Project, params: config.Params, name: str) -> tuple[int, str | None]:
    """How many of a study's outcomes were known before, and since when, for the ledger's events.

    Known is what the log of openings holds: a sealed outcome by its value, one still to come by its
    situation. A file of outcomes that lies there makes all that are still to come known.
    """
    promised = tables.read_json(project.study(name).commitment)
    pending = promised["pending"]
    n, first = vault.opened_before(promised["outcomes"].values())
    if not pending:
        return n, first
    if arrived_file(project, params, name) is not None:
        return n + len(pending), first or "a file of outcomes that was there"
    later, since = vault.opened_before(tokens(name, project.study(name)))
    return n + later, first or since


def tokens(name: str, paths: StudyPaths) -> list[str]:
    """Under which names the log of openings knows the outcomes still to come, whatever their values.

    A name covers what the state is and what is planned on it, not its id alone: another table may
    number its rows alike.
    """
    key = vault.study_key(vault.master_key(), name)
    states = {state.id: state for state in tables.read_records(paths.states, State)}
    pending = (outcome_id.rpartition("/") for outcome_id in tables.read_json(paths.commitment)["pending"])
    return [
        vault.late_token(key, states[state].description, states[state].intervention.text, target)
        for state, _, target in pending
    ]


def arrived_file(project: Project, params: config.Params, name: str) -> Path | None:
    """The file of outcomes that came later: what `predictive-credit open` filed, else the pool's own."""
    if kept := sorted(project.arrived(name).glob("outcomes.*")):
        return kept[0]
    own = getattr(params.pools[params.studies[name].pool], "outcomes", None)
    return Path(own) if own is not None and Path(own).is_file() else None
