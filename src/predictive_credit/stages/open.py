"""Stage `open`: unlock the outcomes, after the freeze only, and hold them to the commitment."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import canonical, config, tables, vault
from predictive_credit.errors import Sealed, Tampered
from predictive_credit.ledger import Phase
from predictive_credit.stages import freeze, shell
from predictive_credit.stages.paths import Project, StudyPaths

HEADER = ("state_id", "value", "reason", "salt", "scale")


def run(project: Project, params: config.Params, name: str) -> str:
    """Write outcomes.csv and the opened event."""
    paths = project.study(name)
    refuse_before_freeze(name, paths)
    events = shell.read_ledger(paths.ledger("frozen"))
    if not events or events[-1].phase is not Phase.FROZEN:
        raise Sealed(
            f"{name}: {paths.ledger('frozen')} does not end with a freeze; run the freeze stage again"
        )
    check_frozen(name, paths, events[-1].digests["freeze.json"])
    key = vault.study_key(vault.master_key(), name)
    outcomes = vault.unseal(tables.read_bytes(paths.sealed), key, study=name)
    promised = tables.read_json(paths.commitment)["outcomes"]
    salts = {o.state_id: vault.salt(key, o) for o in outcomes}
    vault.check_commitments(outcomes, salts, promised)
    # Logged before the file exists: a kill in between may not hide that they were readable.
    # An undefined outcome is nothing to know: under another seed it would be the same again.
    vault.log_opening((promised[o.state_id] for o in outcomes if o.value is not None), shell.now())
    rows = [(o.state_id, o.value, o.reason, salts[o.state_id], params.scale) for o in outcomes]
    tables.write_csv(paths.outcomes, HEADER, rows)
    shell.record(
        project, paths.ledger("opened"), events, Phase.OPENED, study=name, scale=params.scale,
        digests={"outcomes.csv": canonical.digest_file(paths.outcomes)},
    )  # fmt: skip
    undefined = sum(o.value is None for o in outcomes)
    return f"{name}: opened {len(outcomes)} outcomes ({undefined} undefined), all as committed"


def refuse_before_freeze(name: str, paths: StudyPaths) -> None:
    """Raise Sealed unless the ledger says frozen."""
    if paths.ledger("frozen").exists() and paths.freeze.exists():
        return
    phase = "planned" if paths.ledger("planned").exists() else "not planned"
    missing = freeze.unanswered_now(paths)
    which = f"; unanswered units: {len(missing)}, first {missing[0]}" if missing else ""
    raise Sealed(
        f"{name}: outcomes are sealed while the ledger is {phase}{which}. "
        "Run the forecast and freeze stages first."
    )


def check_frozen(name: str, paths: StudyPaths, freeze_digest: str) -> None:
    """Raise Tampered if the freeze record, or a file it digests, is not what was frozen."""
    if canonical.digest_file(paths.freeze) != freeze_digest:
        raise Tampered(f"{name}: freeze.json is not the one in the ledger; run the freeze stage again")
    for file, digest in tables.read_json(paths.freeze)["digests"].items():
        if not (paths.data / file).exists() or canonical.digest_file(paths.data / file) != digest:
            raise Tampered(f"{name}: {file} changed after the freeze; outcomes stay sealed")


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
