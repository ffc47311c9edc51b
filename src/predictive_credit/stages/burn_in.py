"""Stage `burn_in`: run every intervention on tasks or seeds the study never uses."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import canonical, config, tables
from predictive_credit.records import State
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project


def run(project: Project, params: config.Params, name: str) -> str:
    """Write the burn-in's outcomes, burn_in.jsonl, and their summary, burn_in.json."""
    (study, setting), paths = shell.study(project, params, name), project.study(name)
    outcomes, summary = study.burn_in(setting, tables.read_records(paths.states, State))
    tables.write_records(paths.burn_in_outcomes, outcomes, scale=params.scale)
    tables.write_json(paths.burn_in, canonical.plain(summary) | {"scale": params.scale})
    said = [
        f"{target}: mean {known.mean:+.4f}, 10/90 % quantiles {known.q10:+.4f} {known.q90:+.4f}"
        for target, known in summary.targets.items()
    ]
    return f"{name}: burn-in {summary.name}, {len(outcomes)} outcomes; {'; '.join(said)}"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
