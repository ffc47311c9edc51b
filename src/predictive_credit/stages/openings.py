"""What was known of a study's outcomes before a moment: opened on this machine, or lying there."""

from __future__ import annotations

from pathlib import Path

from predictive_credit import config, tables, vault
from predictive_credit.records import State
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project


def known(project: Project, params: config.Params, name: str) -> tuple[int, str | None]:
    """How many of a study's outcomes were known before, and since when, for the ledger's events.

    Known is what the log of openings holds. A file of outcomes that lies there before the freeze
    makes all that are still to come known.
    """
    promised = tables.read_json(project.study(name).commitment)
    if promised["pending"] and arrived_file(project, params, name) is not None:
        return len(promised["pending"]), "a file of outcomes that was there"
    if by_situation := tokens(project, params, name):
        return vault.opened_before(by_situation)
    return vault.opened_before(promised["outcomes"].values())


def tokens(project: Project, params: config.Params, name: str) -> list[str]:
    """Under which names the log knows the outcomes of a study that a user brings; else none.

    What is executed here is known by its exact value. What a user brings is known by its situation,
    whatever its value: it may come before or after the freeze. The situation is what the state is and
    what is planned on it, not its id alone, since another table may number its rows alike.
    """
    study, _ = shell.study(project, params, name)
    if study.arrived is None:
        return []
    key = vault.study_key(vault.master_key(), name)
    return [
        vault.late_token(key, state.description, state.intervention.text, target.name)
        for state in tables.read_records(project.study(name).states, State)
        for target in study.targets
    ]


def arrived_file(project: Project, params: config.Params, name: str) -> Path | None:
    """The file of outcomes that came later: what `predictive-credit open` filed, else the pool's own."""
    if kept := sorted(project.arrived(name).glob("outcomes.*")):
        return kept[0]
    own = getattr(params.pools[params.studies[name].pool], "outcomes", None)
    return Path(own) if own is not None and Path(own).is_file() else None
