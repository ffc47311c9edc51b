"""Stage `states`: public state, intervention and ids; nothing private."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config, tables
from predictive_credit.stages import shell, stimuli
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params


def run(project: Project, params: config.Params, name: str) -> str:
    """Write states.jsonl. Raises BadConfig where a state could have no donor, before anything is paid for."""
    study, setting = shell.study(project, params, name)
    stimuli.refuse_other_scale(project, params, name)
    made = study.states(setting)
    study.donors(setting.config, made)
    tables.write_records(project.study(name).states, made, scale=params.scale)
    n, counted = len({state.task for state in made}), study_params.counts(params, name)
    asked = counted.states
    short = f" of the {asked} asked: the pool has no more" if len(made) < asked else ""
    tasks = f"{n} {study.task_words[n != 1]} from pool {setting.config.pool}"
    # A user's own population says how much of it has come: a target without a column is no mistake of ours.
    own = "" if study.n_states else f"; {counted.design}"
    return f"{name}: {len(made)} states{short}, {tasks} ({params.scale}){own}"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
