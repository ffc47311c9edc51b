"""Audit bundles on disk: a manifest and canonical JSON payloads, bound to each other by digests.

Reading is strict and in one order, so that a hostile folder is refused before anything it names is
opened: the manifest first, then what files there are, then their bytes, and only then their values.
Raises Refused, with one sentence, for every bundle that is not one; nothing else is raised.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from predictive_credit import canonical, tables
from predictive_credit.certification.certificate import certificate
from predictive_credit.certification.decision import decide
from predictive_credit.certification.records import (
    Gate1,
    Gate2,
    Gate3,
    Integrity,
    Refused,
    Registration,
    read,
)

LARGEST = 256 * 2**20  # bytes of one file; the largest published one has under 2 MB
MOST_FILES = 1_000  # a folder that holds more is no bundle, and may be a link to the whole disk
MANIFEST = "manifest.json"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_SCHEMAS = {
    "registration": "registration.v1",
    "integrity": "integrity-evidence.v1",
    "gate1": "gate1-evidence.v1",
    "gate2": "gate2-evidence.v1",
    "gate3": "gate3-evidence.v1",
    "certificate": "kernel-decision-record.v1",
}
_KINDS: dict[str, type] = {
    "registration": Registration,
    "integrity": Integrity,
    "gate1": Gate1,
    "gate2": Gate2,
    "gate3": Gate3,
}


@dataclass(frozen=True, kw_only=True)
class Profile:
    """One of the two kinds of bundle: Core alone, or with the feedback gate."""

    constants: Mapping[str, Any]
    schemas: Mapping[str, str]  # payload name to schema

    @property
    def full(self) -> bool:
        """Whether it holds the feedback gate."""
        return "gate3" in self.schemas


def _profile(constants: Mapping[str, Any], prefix: str, names: list[str]) -> Profile:
    shared = {
        "format_version": "1.0",
        "hash_algorithm": "sha256",
        "provenance_scope": "local_content_addressed_only",
        "formal_certificate_issued": False,
    }
    schemas = {name: f"{prefix}.{_SCHEMAS[name]}" for name in names}
    return Profile(constants=dict(constants) | shared, schemas=schemas)


CORE = _profile({"format": "dcp-core-evidence-bundle"}, "dcp.core", [n for n in _SCHEMAS if n != "gate3"])
FULL = _profile({"format": "dcp-audit-bundle", "profile": "full_audit_v1"}, "dcp.full-audit", list(_SCHEMAS))


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle whose bytes are what its manifest says, and its records."""

    bundle_id: str
    registration: Registration
    integrity: Integrity
    gate1: Gate1
    gate2: Gate2
    gate3: Gate3 | None
    certificate: dict[str, Any]  # as saved: nothing in it is trusted


# -- writing


def write(
    folder: Path,
    registration: Registration,
    integrity: Integrity,
    gate1: Gate1,
    gate2: Gate2,
    gate3: Gate3 | None = None,
) -> str:
    """Decide an audit and write its bundle into a folder that does not exist yet; its bundle id.

    Raises Refused where something is in the way, or a record has no canonical form.
    """
    if folder.exists() or folder.is_symlink():
        raise Refused(f"{folder} is there already; name a new folder for the bundle")
    decision = decide(registration, integrity, gate1, gate2, gate3)
    values: dict[str, Any] = {
        "registration": registration,
        "integrity": integrity,
        "gate1": gate1,
        "gate2": gate2,
        "certificate": certificate(registration, integrity, gate1, gate3, decision),
    }
    if gate3 is not None:
        values["gate3"] = gate3
    try:
        payloads = {name: canonical.encode(value) + b"\n" for name, value in values.items()}
    except (TypeError, ValueError, RecursionError) as error:
        raise Refused(f"the audit cannot be written as canonical JSON: {error}") from None
    manifest = _manifest(FULL if gate3 is not None else CORE, payloads)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as temporary:
        whole = Path(temporary) / "bundle"
        for name, data in payloads.items():
            tables.write_bytes(whole / "payload" / f"{name}.json", data)
        tables.write_bytes(whole / MANIFEST, canonical.encode(manifest) + b"\n")
        whole.rename(folder)  # all of it or nothing
    return str(manifest["bundle_id"])


def _manifest(profile: Profile, payloads: Mapping[str, bytes]) -> dict[str, Any]:
    entries = {
        name: {
            "path": f"payload/{name}.json",
            "schema": profile.schemas[name],
            "media_type": "application/json",
            "content_digest": _outer(data),
            "size_bytes": len(data),
        }
        for name, data in payloads.items()
    }
    manifest = dict(profile.constants) | {"payloads": entries}
    return manifest | {"bundle_id": bundle_id(manifest)}


def bundle_id(manifest: Mapping[str, Any]) -> str:
    """The digest of a manifest without its own id."""
    return _outer(canonical.encode({k: v for k, v in manifest.items() if k != "bundle_id"}) + b"\n")


def _outer(data: bytes) -> str:
    return f"sha256:{canonical.digest_bytes(data)}"


# -- reading


def load(folder: Path) -> Bundle:
    """A bundle's records, after every check that needs no decision."""
    manifest = _parse(_read_file(folder / MANIFEST), MANIFEST)
    profile = _known(manifest)
    _check_manifest(manifest, profile)
    _check_files(folder, profile)
    if manifest["bundle_id"] != bundle_id(manifest):
        raise Refused("bundle_id does not match the manifest")
    contents = {name: _payload(folder, name, entry) for name, entry in manifest["payloads"].items()}
    values = {name: _parse(data, f"{name}.json") for name, data in contents.items()}
    saved = values["certificate"]
    protocol = saved.get("protocol") if isinstance(saved, dict) else None
    if not isinstance(protocol, dict) or protocol.get("formal_certificate_issued") is not False:
        raise Refused("the saved certificate must say that no formal certificate was issued")
    records: dict[str, Any] = {
        name: read(kind, values[name], name) for name, kind in _KINDS.items() if name in values
    }
    return Bundle(
        bundle_id=manifest["bundle_id"],
        gate3=records.pop("gate3", None),
        certificate=saved,
        **records,
    )


def _read_file(path: Path) -> bytes:
    """The bytes of a plain file of bearable size: a pipe or device would block or never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise Refused(f"{path.name} is not a regular file")
            if found.st_size > LARGEST:
                raise Refused(f"{path.name} has {found.st_size} bytes, more than a bundle's file may have")
            return file.read(LARGEST + 1)
    except (OSError, ValueError) as error:  # ValueError: a path that no file can have
        why = error.strerror if isinstance(error, OSError) else error
        raise Refused(f"{path.name} cannot be read: {why}") from None


def _parse(data: bytes, name: str) -> Any:
    """Strict JSON: UTF-8 without a mark, no key twice, no number that is not one."""
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant)
    except Refused as error:
        raise Refused(f"{name} is not strict JSON: {error}") from None
    except UnicodeDecodeError:
        raise Refused(f"{name} is not UTF-8") from None
    except RecursionError:
        raise Refused(f"{name} is not strict JSON: it is nested too deeply") from None
    except ValueError as error:  # malformed, or an integer of more digits than Python converts
        raise Refused(f"{name} is not strict JSON: {error}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise Refused(f"the key {key!r} occurs twice")
        found[key] = value
    return found


def _no_constant(word: str) -> NoReturn:
    raise Refused(f"{word} is not a JSON number")


def _known(manifest: Any) -> Profile:
    if not isinstance(manifest, dict):
        raise Refused("the manifest must be a JSON object")
    for profile in (CORE, FULL):
        if manifest.get("format") == profile.constants["format"]:
            return profile
    raise Refused(f"unsupported bundle format: {manifest.get('format')!r}")


def _check_manifest(manifest: dict[str, Any], profile: Profile) -> None:
    wanted = {*profile.constants, "payloads", "bundle_id"}
    if set(manifest) != wanted:
        odd = sorted(set(manifest) ^ wanted)
        raise Refused(f"manifest keys are missing or unknown: {odd}")
    for key, value in profile.constants.items():
        if type(manifest[key]) is not type(value) or manifest[key] != value:
            raise Refused(f"manifest {key} must be {json.dumps(value)}; seen {manifest[key]!r}")
    _check_digest(manifest["bundle_id"], "bundle_id")
    payloads = manifest["payloads"]
    if not isinstance(payloads, dict) or set(payloads) != set(profile.schemas):
        raise Refused(f"manifest payloads must be exactly {', '.join(sorted(profile.schemas))}")
    for name, entry in payloads.items():
        _check_entry(name, entry, profile)


def _check_entry(name: str, entry: Any, profile: Profile) -> None:
    fixed = {
        "path": f"payload/{name}.json",
        "schema": profile.schemas[name],
        "media_type": "application/json",
    }
    if not isinstance(entry, dict) or set(entry) != {*fixed, "content_digest", "size_bytes"}:
        raise Refused(f"manifest payload {name} must have exactly its five keys")
    for key, value in fixed.items():
        if entry[key] != value:
            raise Refused(f"manifest payload {name} has another {key}: {entry[key]!r}")
    _check_digest(entry["content_digest"], f"manifest payload {name} content_digest")
    size = entry["size_bytes"]
    if not isinstance(size, int) or isinstance(size, bool) or size < 0:
        raise Refused(f"manifest payload {name} has an invalid size_bytes")


def _check_digest(value: Any, what: str) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise Refused(f"{what} is not sha256: and 64 lower-case hexadecimal digits")


def _check_files(folder: Path, profile: Profile) -> None:
    """The files are the listed ones. A full bundle is looked at whole, a core one inside `payload`."""
    listed = {f"payload/{name}.json" for name in profile.schemas}
    if profile.full:
        if folder.is_symlink():
            raise Refused("a full audit bundle is no symbolic link")
        listed.add(MANIFEST)
    try:
        every = (folder if profile.full else folder / "payload").rglob("*")
        paths = list(itertools.islice(every, MOST_FILES + 1))
        links = [p for p in paths if p.is_symlink()]
        seen = {p.relative_to(folder).as_posix() for p in paths if not p.is_dir() or p.is_symlink()}
    except (OSError, RecursionError) as error:
        raise Refused(f"the bundle's folder cannot be read: {error}") from None
    if len(paths) > MOST_FILES:
        raise Refused(f"bundle file set mismatch; it holds more than {MOST_FILES} files and folders")
    if links:
        raise Refused(
            f"symbolic links are not allowed in a bundle: {links[0].relative_to(folder).as_posix()!r}"
        )
    if seen != listed:
        missing, extra = sorted(listed - seen), sorted(seen - listed)
        raise Refused(f"bundle file set mismatch; missing={missing}, extra={extra}")


def _payload(folder: Path, name: str, entry: Mapping[str, Any]) -> bytes:
    data = _read_file(folder / "payload" / f"{name}.json")
    if len(data) != entry["size_bytes"] or _outer(data) != entry["content_digest"]:
        raise Refused(f"payload digest or size mismatch: {name}")
    return data
