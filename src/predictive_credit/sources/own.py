"""A user's own files, copied with their digests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit.config import CsvPool, OwnPool, OwnTable, TablesPool
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.sources import checksums, manifest
from predictive_credit.sources.fetched import Fetched
from predictive_credit.sources.manifest import KINDS, TableFile

TABLE = (".csv", ".csv.gz")
RECORDS = (".csv", ".csv.gz", ".jsonl", ".parquet")


def smiles(pool: CsvPool) -> Fetched:
    """A SMILES table. Raises BadSource for a path that cannot be read and another sha256."""
    path = Path(pool.path)
    _suffix(path, TABLE, "the csv pool asks for", "in pools.csv.path")
    data = _read(path, "correct pools.csv.path")
    _check(data, pool.sha256, pool.path, "pools.csv.sha256")
    return _fetched({path.name: data}, [path], unpinned=pool.sha256 is None)


def tables(pool: TablesPool) -> Fetched:
    """One file a task, and tasks.jsonl. Raises BadSource as `smiles` does, BadConfig without a study task."""
    if all(table.burn_in for table in pool.tables.values()):
        raise BadConfig("the pool of your tables has none with burn_in: false; the study needs at least one")
    listed, files = [], {}
    for name, table in sorted(pool.tables.items(), key=lambda item: (KINDS.index(item[1].kind), item[0])):
        entry = _entry(name, table)
        data = _read(Path(table.path), f"correct the path of the table {name}")
        _check(data, table.sha256, table.path, f"the sha256 of the table {name}")
        files[entry.file] = data
        listed.append(entry)
    return _fetched(
        files | {manifest.MANIFEST: manifest.encode(listed)},
        [Path(table.path) for table in pool.tables.values()],
        unpinned=any(table.sha256 is None for table in pool.tables.values()),
    )


def own(pool: OwnPool) -> Fetched:
    """The user's states, and burn-in and outcomes where there are, under the stems of those names.

    A file of outcomes that does not exist yet is no error: outcomes may arrive later. Raises BadSource
    for any other path that cannot be read, a form that is not known, and another sha256.
    """
    asked = {"states": pool.path, "burn_in": pool.burn_in, "outcomes": pool.outcomes}
    paths = {stem: Path(path) for stem, path in asked.items() if path is not None}
    if "outcomes" in paths and not paths["outcomes"].exists():
        del paths["outcomes"]
    files = {}
    for stem, path in paths.items():
        suffix = _suffix(path, RECORDS, f"the pool of your {stem} asks for", "there")
        key = "path" if stem == "states" else stem
        files[stem + suffix] = _read(path, f"correct the pool's {key}")
        if stem == "states":
            _check(files[stem + suffix], pool.sha256, str(path), "the pool's sha256")
    return _fetched(files, list(paths.values()), unpinned=pool.sha256 is None)


def _entry(name: str, table: OwnTable) -> TableFile:
    suffix = _suffix(Path(table.path), TABLE, f"the table {name} asks for", "there")
    return TableFile(
        name=name, file=name + suffix, kind=table.kind, target=table.target,
        role="burn-in" if table.burn_in else "study", origin=Path(table.path).name, licence=None,
        drop=table.drop,
    )  # fmt: skip


def _fetched(files: dict[str, bytes], paths: Sequence[Path], *, unpinned: bool) -> Fetched:
    """Only the paths' names are told: where a user keeps files is nobody's business."""
    names = ", ".join(path.name for path in paths)
    return Fetched(files=files, source="file", origin=names, licence=None, unpinned=unpinned)


def _suffix(path: Path, known: Sequence[str], asked: str, where: str) -> str:
    found = [suffix for suffix in known if path.name.lower().endswith(suffix)]
    if not found:
        said = f"{', '.join(known[:-1])} or {known[-1]}"
        raise BadSource(f"{asked} {path}; give a {said} file {where}")
    return max(found, key=len)


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise BadSource(f"{path} cannot be read ({reason}); {remedy}") from None


def _check(data: bytes, sha256: str | None, path: str, key: str) -> None:
    if sha256 is not None:
        checksums.check(data, sha256, what=path, remedy=f"restore it, or correct {key}")
