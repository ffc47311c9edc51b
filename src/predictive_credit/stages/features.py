"""Stage `features`: clean and count a pool's molecules; fingerprints and descriptors in bulk."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import config, tables
from predictive_credit.sources.pools import read_source
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies.molecular import features, pool


def run(project: Project, params: config.Params, name: str) -> str:
    """Write data/features/<pool>/ and the counts of the cleaning, metrics/pools/<pool>.json."""
    table = pool.read(params.pools[name], project.raw(name), params.execution)
    computed = features.compute(table.smiles, params.execution)
    quality = features.save(project.features(name), table, computed)
    source = read_source(project.raw(name))
    tables.write_json(
        project.pool_metrics(name), {"pool": name, "scale": params.scale, "source": source} | quality
    )
    said = ", ".join(f"{count} {kind}" for kind, count in quality["dropped"].items() if count) or "none"
    return (
        f"{name}: {len(table.smiles):,} molecules, {len(table.endpoints)} endpoints; rows left out: {said} "
        f"(all findings: {project.features(name) / 'findings.csv'})"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "pool", __doc__, argv)


if __name__ == "__main__":
    main()
