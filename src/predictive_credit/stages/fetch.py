"""Stage `fetch`: resolve a pool (mirror, then origin), check its sha256, keep the raw tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit import config
from predictive_credit.errors import BadSource
from predictive_credit.sources import pools
from predictive_credit.sources.fetched import Fetched
from predictive_credit.stages import evidence, shell, verify
from predictive_credit.stages.paths import Project
from predictive_credit.studies.controls import frozen


def run(project: Project, params: config.Params, name: str) -> str:
    """Write data/raw/<pool>/, complete or not at all."""
    pool = params.pools[name]
    if isinstance(pool, config.FrozenPool):
        record = pools.keep(pool, frozen_study(project, pool), project.raw(name))
    else:
        record = pools.fetch(pool, project.raw(name))
    note = f"; {record['note']}" if record["note"] else ""
    n = len(record["files"])
    what = f"{n} file{'' if n == 1 else 's'} from the {record['source']}" if n else "nothing to fetch"
    return f"{name}: {what} ({record['origin']}){note}"


def frozen_study(project: Project, pool: config.FrozenPool) -> Fetched:
    """The files of a study that is decided and verifies. Raises BadSource for any other."""
    folder = Path(pool.path)
    is_bundle = (folder / evidence.MANIFEST).is_file()
    where = Project(project.root / folder)
    if not is_bundle and not where.params.is_file():
        raise BadSource(
            f"{pool.path} is neither a bundle (no {evidence.MANIFEST}) nor a project (no params.yaml), and a "
            f"control takes the stimuli of {pool.study} from one of them; correct pools.*.path"
        )
    found = evidence.bundle(folder) if is_bundle else evidence.workspace(where, pool.study)
    if findings := verify.verify_evidence(found):
        raise BadSource(
            f"{found.where}: {findings[0]}; a control reuses what is frozen, decided and verifies, so decide "
            f"{pool.study} first, or name its bundle (pools.*.path=...)"
        )
    if found.freeze["study"] != pool.study:
        raise BadSource(
            f"{found.where} is the study {found.freeze['study']!r}, and {pool.study!r} was asked for; "
            "correct study or path of the pool"
        )
    return Fetched(
        files={name: found.bytes(name) for name in frozen.FILES},
        source="frozen study",
        origin=pool.path if is_bundle else f"{pool.study} of this project",
        licence=None,
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "pool", __doc__, argv)


if __name__ == "__main__":
    main()
