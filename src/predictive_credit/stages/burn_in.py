"""Stage `burn_in`: run every intervention on endpoints the study never uses."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import canonical, config, tables
from predictive_credit.records import State
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies.molecular import burn_in, features


def run(project: Project, params: config.Params, name: str) -> str:
    """Write the burn-in's outcomes, burn_in.jsonl, and their summary, burn_in.json."""
    study, paths = params.studies[name], project.study(name)
    own = {state.task for state in tables.read_records(paths.states, State)}
    table, computed = features.load(project.features(study.burn_in))
    outcomes, summary = burn_in.burn_in(
        table, computed, study, pool=study.burn_in, exclude=own, seed=params.seed, execution=params.execution
    )
    tables.write_records(paths.burn_in_outcomes, outcomes, scale=params.scale)
    tables.write_json(paths.burn_in, canonical.plain(summary) | {"scale": params.scale})
    return (
        f"{name}: burn-in of {summary.n_outcomes} outcomes on {len(summary.tasks)} unused endpoints of "
        f"{study.burn_in}; mean {summary.mean:+.4f}, 10/90 % quantiles {summary.q10:+.4f} {summary.q90:+.4f}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
