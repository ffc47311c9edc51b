"""Bundles on disk: what is written reads back, and hostile folders are refused."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from predictive_credit import canonical
from predictive_credit.certification import bundle
from predictive_credit.certification.records import Refused
from tests.small_audit import core_audit, full_audit

AUDIT = core_audit(3)
FULL = full_audit(2, 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    bundle.write(tmp_path / "audit", *AUDIT.parts())
    return tmp_path / "audit"


@pytest.fixture
def full(tmp_path: Path) -> Path:
    bundle.write(tmp_path / "full", *FULL.parts())
    return tmp_path / "full"


def resealed(folder: Path, name: str, data: bytes) -> None:
    """Replace a payload, and repair the manifest."""
    (folder / "payload" / f"{name}.json").write_bytes(data)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["payloads"][name] |= {
        "content_digest": f"sha256:{canonical.digest_bytes(data)}",
        "size_bytes": len(data),
    }
    manifest["bundle_id"] = bundle.bundle_id(manifest)
    (folder / "manifest.json").write_bytes(canonical.encode(manifest))


def noted(folder: Path, value: bytes) -> None:
    """Put raw JSON text into the registration's notes."""
    data = (folder / "payload/registration.json").read_bytes()
    resealed(folder, "registration", data.replace(b'"notes":{}', b'"notes":{"x":' + value + b"}"))


def test_records_are_read_back_as_written(folder: Path, full: Path) -> None:
    core, audit = bundle.load(folder), bundle.load(full)
    assert (core.registration, core.integrity, core.gate1, core.gate2, core.gate3) == AUDIT.parts()
    assert (audit.registration, audit.integrity, audit.gate1, audit.gate2, audit.gate3) == FULL.parts()


def test_the_same_records_have_the_same_id_and_bytes(tmp_path: Path) -> None:
    first, second = (bundle.write(tmp_path / name, *AUDIT.parts()) for name in ("a", "b"))
    assert first == second
    assert (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()


def test_a_bundle_is_written_into_a_new_folder_only(folder: Path) -> None:
    with pytest.raises(Refused, match="is there already"):
        bundle.write(folder, *AUDIT.parts())


def test_what_has_no_canonical_form_leaves_nothing_behind(tmp_path: Path) -> None:
    audit = AUDIT.registered(notes={"odd": float("nan")})
    with pytest.raises(Refused, match="canonical JSON"):
        bundle.write(tmp_path / "audit", *audit.parts())
    assert not list(tmp_path.iterdir())


def manifest_edit(key: str, value: object) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        path = folder / "manifest.json"
        manifest = json.loads(path.read_bytes())
        at = manifest
        *parents, last = key.split(".")
        for name in parents:
            at = at[name]
        at[last] = value
        manifest["bundle_id"] = bundle.bundle_id(manifest)
        path.write_bytes(canonical.encode(manifest))

    return edit


def linked(folder: Path) -> None:
    target = folder / "payload/gate1.json"
    target.rename(folder.parent / "gate1.json")
    target.symlink_to(folder.parent / "gate1.json")


def piped(folder: Path) -> None:
    target = folder / "payload/gate1.json"
    target.unlink()
    os.mkfifo(target)


def piped_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    os.mkfifo(folder / "manifest.json")


def device(folder: Path) -> None:
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").symlink_to("/dev/zero")


def crowded(folder: Path) -> None:
    (folder / "payload/more.json").write_text("{}")


def enormous(folder: Path) -> None:
    with (folder / "payload/gate1.json").open("r+b") as file:
        file.truncate(2**40)  # sparse: it takes no room


HOSTILE: dict[str, tuple[Callable[[Path], None], str]] = {
    "traversal": (manifest_edit("payloads.gate1.path", "payload/../../secret.json"), "another path"),
    "absolute path": (manifest_edit("payloads.gate1.path", "/etc/hostname"), "another path"),
    "formal": (manifest_edit("formal_certificate_issued", True), "formal_certificate_issued"),
    "formal as a number": (manifest_edit("formal_certificate_issued", 0), "formal_certificate_issued"),
    "unknown key": (manifest_edit("comment", "x"), "missing or unknown"),
    "other format": (manifest_edit("format", ["dcp"]), "unsupported"),
    "size": (manifest_edit("payloads.gate1.size_bytes", True), "size_bytes"),
    "digest": (manifest_edit("payloads.gate1.content_digest", "sha256:" + "A" * 64), "lower-case"),
    "entry": (manifest_edit("payloads.gate1", []), "five keys"),
    "payloads": (manifest_edit("payloads", 5), "exactly"),
    "link": (linked, "symbolic link"),
    "pipe": (piped, "regular file"),
    "manifest pipe": (piped_manifest, "regular file"),
    "device": (device, "cannot be read"),
    "enormous": (enormous, "more than"),
    "extra": (crowded, "extra=['payload/more.json']"),
    "missing": (lambda f: (f / "payload/gate2.json").unlink(), "missing=['payload/gate2.json']"),
    "no manifest": (lambda f: (f / "manifest.json").unlink(), "cannot be read"),
    "mark": (lambda f: resealed(f, "gate1", b"\xef\xbb\xbf{}"), "strict JSON"),
    "not UTF-8": (lambda f: resealed(f, "gate1", b'{"x":"\xe9"}'), "UTF-8"),
    "cut": (lambda f: resealed(f, "gate1", b'{"astar":'), "strict JSON"),
    "array": (lambda f: resealed(f, "gate1", b"[]"), "JSON object"),
    "key twice": (lambda f: noted(f, b'{"a":1,"a":1}'), "twice"),
    "not a number": (lambda f: noted(f, b"NaN"), "not a JSON number"),
    "infinity": (lambda f: noted(f, b"-Infinity"), "not a JSON number"),
    "deep": (lambda f: noted(f, b"[" * 200_000 + b"]" * 200_000), "nested too deeply"),
    "digits": (lambda f: noted(f, b"9" * 100_000), "strict JSON"),
    "certificate": (lambda f: resealed(f, "certificate", b"{}"), "no formal certificate"),
}


@pytest.mark.parametrize("attack", sorted(HOSTILE))
def test_a_hostile_folder_is_refused_with_a_sentence(folder: Path, attack: str) -> None:
    change, part = HOSTILE[attack]
    change(folder)
    with pytest.raises(Refused) as refusal:
        bundle.load(folder)
    assert part in str(refusal.value)


def test_a_full_bundle_is_looked_at_whole_and_a_core_one_inside_its_payload(folder: Path, full: Path) -> None:
    for root in (folder, full):
        (root / "notes.txt").write_text("x")
    bundle.load(folder)
    with pytest.raises(Refused, match="file set mismatch"):
        bundle.load(full)


def test_a_full_bundle_is_no_link(full: Path) -> None:
    (full.parent / "link").symlink_to(full)
    with pytest.raises(Refused, match="symbolic link"):
        bundle.load(full.parent / "link")


def test_an_edited_payload_does_not_match_its_digest(folder: Path) -> None:
    path = folder / "payload/gate1.json"
    path.write_bytes(path.read_bytes().replace(b"baseline", b"bassline", 1))
    with pytest.raises(Refused, match="digest or size mismatch: gate1"):
        bundle.load(folder)


def test_the_id_is_that_of_the_manifest(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_bytes()) | {"bundle_id": "sha256:" + "1" * 64}
    path.write_bytes(canonical.encode(manifest))
    with pytest.raises(Refused, match="bundle_id does not match"):
        bundle.load(folder)
