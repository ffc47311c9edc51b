"""Stage `fetch`: resolve a pool (mirror, then origin), check its sha256, keep the raw tables."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config
from predictive_credit.sources import pools
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project


def run(project: Project, params: config.Params, name: str) -> str:
    """Write data/raw/<pool>/, complete or not at all."""
    record = pools.fetch(params.pools[name], project.raw(name))
    note = f"; {record['note']}" if record["note"] else ""
    n = len(record["files"])
    what = f"{n} file{'' if n == 1 else 's'} from the {record['source']}" if n else "nothing to fetch"
    return f"{name}: {what} ({record['origin']}){note}"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "pool", __doc__, argv)


if __name__ == "__main__":
    main()
