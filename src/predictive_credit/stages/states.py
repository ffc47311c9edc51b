"""Stage `states`: public state, intervention and ids; nothing private."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config, tables
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies.molecular import features
from predictive_credit.studies.molecular import states as molecular


def run(project: Project, params: config.Params, name: str) -> str:
    """Write states.jsonl."""
    study = params.studies[name]
    table, computed = features.load(project.features(study.pool))
    splits = molecular.splits(table, study, seed=params.seed)
    made = molecular.states(table, computed, study, splits, study=name, execution=params.execution)
    tables.write_records(project.study(name).states, made, scale=params.scale)
    n = len({state.task for state in made})
    source = f"from pool {study.pool}"
    if study.endpoints is None and n < study.n_endpoints:
        source = f"of the {study.n_endpoints} asked: pool {study.pool} has no more"
    return f"{name}: {len(made)} states of {n} endpoints {source} ({params.scale})"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
