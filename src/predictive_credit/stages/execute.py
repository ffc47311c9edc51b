"""Stage `execute`: run parent and child model of each state, seal the outcomes, commit to them."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config, tables, vault
from predictive_credit.records import State
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies.molecular import execute, features
from predictive_credit.studies.molecular import states as molecular


def run(project: Project, params: config.Params, name: str) -> str:
    """Write outcomes.sealed and commitment.json; no outcome is printed or kept in the clear."""
    study, paths = params.studies[name], project.study(name)
    states = tables.read_records(paths.states, State)
    table, computed = features.load(project.features(study.pool))
    splits = molecular.splits(table, study, seed=params.seed)
    outcomes = execute.execute(table, computed, states, splits, execution=params.execution)
    key = vault.study_key(vault.master_key(), name)
    tables.write_bytes(paths.sealed, vault.seal(outcomes, key, study=name))
    commitment = {
        "study": name,
        "scale": params.scale,
        "scheme": "sha256 of canonical JSON {outcome, salt}; salts are published at the opening",
        "outcomes": vault.commitments(outcomes, key),
    }
    tables.write_json(paths.commitment, commitment)
    return f"{name}: {len(outcomes)} outcomes sealed, commitment in {paths.commitment}"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
