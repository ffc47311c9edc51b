"""Stage `open`: unlock the outcomes, after the freeze only, and hold them to the commitment."""

from __future__ import annotations

from collections.abc import Sequence, Set
from pathlib import Path

from predictive_credit import canonical, config, tables, vault
from predictive_credit.errors import OutOfOrder, Sealed, Tampered
from predictive_credit.ledger import Event, Phase
from predictive_credit.records import Outcome, State
from predictive_credit.stages import freeze, openings, shell
from predictive_credit.stages.paths import Project, StudyPaths

HEADER = ("state_id", "target", "value", "reason", "salt", "scale")


def run(project: Project, params: config.Params, name: str, came: Path | None = None) -> str:
    """Write outcomes.csv and the opened event.

    came: a file of outcomes that arrived after the freeze; it is filed under data/arrived/ once it is
    known to be complete and not to contradict what was opened before.
    """
    paths = project.study(name)
    refuse_before_freeze(name, paths)
    events = shell.read_ledger(paths.ledger("frozen"))
    if not events or events[-1].phase is not Phase.FROZEN:
        raise Sealed(
            f"{name}: {paths.ledger('frozen')} does not end with a freeze; run the freeze stage again"
        )
    check_frozen(name, paths, events[-1].digests["freeze.json"])
    promised = tables.read_json(paths.commitment)
    pending = set(promised["pending"])
    arrived = late(project, params, name, pending, came)
    key = vault.study_key(vault.master_key(), name)
    sealed = vault.unseal(tables.read_bytes(paths.sealed), key, study=name)
    vault.check_commitments(sealed, {o.id: vault.salt(key, o) for o in sealed}, promised["outcomes"])
    outcomes = sorted([*sealed, *arrived], key=lambda o: o.id)
    salts = {o.id: vault.salt(key, o) for o in outcomes}
    rows = [(o.state_id, o.target, o.value, o.reason, salts[o.id], params.scale) for o in outcomes]
    data = tables.encode_csv(HEADER, rows)
    values = {o.id: vault.commitment(o, salts[o.id]) for o in outcomes if o.value is not None}
    tokens = openings.tokens(project, params, name)
    refuse_others(name, paths, events, data)
    n, since = vault.opened_before(tokens)
    came_now = {values[outcome_id] for outcome_id in pending & values.keys()}
    if n and vault.opened_before(came_now)[0] < len(came_now):
        raise OutOfOrder(
            f"{name}: other outcomes of these states were opened before ({since}), and they stand; restore "
            "the file they came from"
        )
    # Logged before the file exists: a kill in between may not hide that they were readable.
    # An undefined outcome is nothing to know: under another seed it would be the same again.
    vault.log_opening([*values.values(), *tokens], shell.now())
    if came is not None:
        file_arrived(project.arrived(name), came)
    tables.write_bytes(paths.outcomes, data)
    shell.record(
        project, paths.ledger("opened"), events, Phase.OPENED, study=name, scale=params.scale,
        digests={"outcomes.csv": canonical.digest_file(paths.outcomes)},
    )  # fmt: skip
    undefined = sum(o.value is None for o in outcomes)
    after = f", {len(pending)} arrived after the freeze" if pending else ""
    return f"{name}: opened {len(outcomes)} outcomes ({undefined} undefined), all as committed{after}"


def refuse_others(name: str, paths: StudyPaths, frozen: Sequence[Event], data: bytes) -> None:
    """Raise OutOfOrder if other outcomes were opened for this freeze: what was opened first stands."""
    if not paths.ledger("opened").exists():
        return
    events = shell.read_ledger(paths.ledger("opened"))
    continues = len(events) > len(frozen) and events[: len(frozen)] == tuple(frozen)
    if continues and events[len(frozen)].digests["outcomes.csv"] != canonical.digest_bytes(data):
        raise OutOfOrder(
            f"{name}: other outcomes were opened for this freeze ({events[len(frozen)].time_utc}), and "
            "they stand; restore the file they came from"
        )


def late(
    project: Project, params: config.Params, name: str, pending: Set[str], came: Path | None
) -> tuple[Outcome, ...]:
    """The outcomes that did not exist at the freeze, every one of them.

    Raises Sealed while any is missing, and OutOfOrder for a file where none is to come.
    """
    study, setting = shell.study(project, params, name)
    if not pending:
        if came is not None:
            raise OutOfOrder(
                f"{name}: every outcome was sealed before the freeze, so none can arrive; leave --outcomes "
                "out to open them"
            )
        return ()
    path = came or openings.arrived_file(project, params, name)
    found: tuple[Outcome, ...] = ()
    if study.arrived is not None and path is not None:
        states = tables.read_records(project.study(name).states, State)
        found = tuple(o for o in study.arrived(setting, states, path) if o.id in pending)
    if missing := sorted(pending - {o.id for o in found}):
        of = f"{len(missing)} of the {len(pending)} outcomes that were to come after it"
        if path is not None:
            raise Sealed(
                f"{name}: the forecasts are frozen, and {path} lacks {of}, first {missing[0]}; they are "
                "opened together, so add what is missing"
            )
        where = "" if project.root == Path() else f" --root {project.root}"
        raise Sealed(
            f"{name}: the forecasts are frozen, and {of} have not come yet, first {missing[0]}; when they "
            f"have, `predictive-credit open {name} --outcomes FILE{where}`"
        )
    return found


def file_arrived(folder: Path, came: Path) -> None:
    """Keep a copy of a file of outcomes as `outcomes` with its suffixes, and no other."""
    kept, data = folder / f"outcomes{''.join(came.suffixes)}", came.read_bytes()
    tables.write_bytes(kept, data)
    for old in set(folder.glob("outcomes.*")) - {kept}:
        old.unlink()


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
