"""Stage `execute`: run parent and child model of each state, seal the outcomes, commit to them."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config, tables, vault
from predictive_credit.records import State
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project


def run(project: Project, params: config.Params, name: str) -> str:
    """Write outcomes.sealed and commitment.json; no outcome is printed or kept in the clear."""
    (study, setting), paths = shell.study(project, params, name), project.study(name)
    states = tables.read_records(paths.states, State)
    outcomes = study.execute(setting, states)
    key = vault.study_key(vault.master_key(), name)
    tables.write_bytes(paths.sealed, vault.seal(outcomes, key, study=name))
    known = {outcome.id for outcome in outcomes}
    pending = [f"{s.id}/{t.name}" for s in states for t in study.targets if f"{s.id}/{t.name}" not in known]
    commitment = {
        "study": name,
        "scale": params.scale,
        "scheme": "sha256 of canonical JSON {outcome, salt}; salts are published at the opening",
        "outcomes": vault.commitments(outcomes, key),
        "pending": pending,  # not executed yet: they can be neither known nor committed to
    }
    tables.write_json(paths.commitment, commitment)
    later = f", {len(pending)} still to come" if pending else ""
    return f"{name}: {len(outcomes)} outcomes sealed{later}, commitment in {paths.commitment}"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
