"""Stage `score`: one row of losses for each forecast unit."""

from __future__ import annotations

import io
from collections.abc import Sequence

from predictive_credit import config, tables
from predictive_credit.stages import evidence, shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies.evaluation import losses


def run(project: Project, params: config.Params, name: str) -> str:
    """Write losses.parquet."""
    paths = project.study(name)
    tables.read_bytes(paths.outcomes)  # the sentence of a missing opening, before anything is read
    table = losses(evidence.workspace(project, name).scored()).assign(scale=params.scale)
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    tables.write_bytes(paths.losses, buffer.getvalue())
    return f"{name}: {len(table)} rows of losses, {int(table['outcome'].isna().sum())} of undefined outcomes"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
