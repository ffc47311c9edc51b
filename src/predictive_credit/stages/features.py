"""Stage `features`: clean, count and encode a pool for the study that uses it."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig
from predictive_credit.sources.pools import read_source
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies import STUDIES
from predictive_credit.studies.study import Study


def run(project: Project, params: config.Params, name: str) -> str:
    """Write data/features/<pool>/ and the counts of the cleaning, metrics/pools/<pool>.json."""
    study = user(params, name)
    quality = study.features(params.pools[name], project.raw(name), project.features(name), params.execution)
    said = quality.pop("said", "ready")
    source = read_source(project.raw(name))
    tables.write_json(
        project.pool_metrics(name), {"pool": name, "scale": params.scale, "source": source} | quality
    )
    return f"{name}: {said} (all counts: {project.pool_metrics(name)})"


def user(params: config.Params, pool: str) -> Study:
    """The study that uses a pool. Raises BadConfig unless there is exactly one kind of it."""
    rules = {s.rule for s in params.studies.values() if pool in (s.pool, s.burn_in)}
    # Controls may share what a study froze: all of them read it alike.
    if len({STUDIES[rule].features for rule in rules}) != 1:
        users = " and ".join(sorted(rules)) or "no study"
        raise BadConfig(
            f"pool {pool} is asked for by {users}, and who cleans it depends on that; "
            "remove it from pools, or give each study a pool of its own"
        )
    return STUDIES[rules.pop()]


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "pool", __doc__, argv)


if __name__ == "__main__":
    main()
