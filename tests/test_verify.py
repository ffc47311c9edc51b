"""Any changed byte is named, and so is a forgery whose checksums were mended."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from predictive_credit import canonical, ledger, tables
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder, Tampered
from predictive_credit.stages import evidence, report
from predictive_credit.stages.bundle import pack
from predictive_credit.stages.evidence import BESIDE, MANIFEST
from predictive_credit.stages.verify import verify, verify_evidence
from tests.small_project import decided, project


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A decided small project and its bundle."""
    folder = tmp_path_factory.mktemp("verify")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PREDICTIVE_CREDIT_VAULT", str(folder / "vault"))
        made, _ = decided(folder / "project", patch)
        yield made, pack(made, "molecular", folder / "bundle")


@pytest.fixture
def copy(study, tmp_path):
    """A bundle to spoil."""
    return Path(shutil.copytree(study[1], tmp_path / "bundle"))


def named(target: Path) -> list[str]:
    return [finding.file for finding in verify(target)[1]]


def test_an_untouched_bundle_and_project_verify(study):
    made, bundle = study
    assert named(bundle) == []
    assert named(made.root) == []


def test_a_bundle_needs_nothing_but_itself(copy, monkeypatch):
    monkeypatch.delenv("PREDICTIVE_CREDIT_VAULT")
    monkeypatch.chdir(copy.parent)
    assert named(copy) == []


def test_a_flipped_byte_is_named_two_hundred_times_over(copy):
    rng = random.Random(5)
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    rounds = -(-200 // len(files))
    flips = 0
    for path in files * rounds:
        whole = path.read_bytes()
        at, bit = rng.randrange(len(whole)), 1 << rng.randrange(8)
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
        assert named(copy) == [path.relative_to(copy).as_posix()], f"byte {at} of {path.name}"
        path.write_bytes(whole)
        flips += 1
    assert flips >= 200
    assert named(copy) == []


def test_a_flipped_byte_under_a_mended_manifest_is_named_by_what_lies_below(copy):
    rng = random.Random(8)
    guarded = {*evidence.DATA_FILES, "ledger.jsonl", "rule.py"}
    for name in sorted(guarded | {f for f in evidence.FILES if f.startswith("metrics/")}):
        path = copy / name
        whole = path.read_bytes()
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        remake_manifest(copy)
        assert name in named(copy), f"byte {at} of {name}"
        path.write_bytes(whole)
    remake_manifest(copy)
    assert named(copy) == []


def test_a_link_in_place_of_a_file_is_named(copy):
    (copy / "usage.jsonl").unlink()
    (copy / "usage.jsonl").symlink_to("nowhere")
    assert named(copy) == ["usage.jsonl"]


def test_a_commitment_swapped_after_it_was_sealed_is_named(copy):
    """Every digest is mended but the sealed event's own: it was published before the forecasts."""
    commitment = json.loads((copy / "commitment.json").read_text())
    tables.write_json(copy / "commitment.json", commitment | {"scheme": "another"})
    forge(copy, "commitment.json", lambda data: data, but=("sealed",))
    assert named(copy) == ["commitment.json"]


def test_a_flipped_byte_of_a_workspace_is_named_too(study, tmp_path):
    made, _ = study
    root = Path(shutil.copytree(made.root, tmp_path / "project"))
    rng = random.Random(6)
    data = root / "data" / "molecular"
    files = {name: data / name for name in evidence.DATA_FILES}
    files["ledger.jsonl"] = root / "data" / "ledgers" / "molecular.jsonl"
    files |= {f"metrics/{p.name}": p for p in (root / "metrics" / "molecular").glob("*.json")}
    for name, path in files.items():
        whole = path.read_bytes()
        for _ in range(5):
            at = rng.randrange(len(whole))
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            assert name in named(root), f"byte {at} of {name}"
        path.write_bytes(whole)
    assert named(root) == []


def test_a_workspace_without_its_recalibration_is_named_and_a_forged_one_is_made_again(study):
    found = evidence.workspace(study[0], "molecular")
    gone = {name: data for name, data in found.files.items() if name != BESIDE}
    assert [f.file for f in verify_evidence(replace(found, files=gone))] == [BESIDE]
    figures = found.json(BESIDE)
    figures["roc_auc"]["D"]["raw"]["coverage"] = 0.8
    forged = json.dumps(figures).encode()
    *events, last = found.ledger
    mended = ledger.append(
        events, last.phase, study=last.study, scale=last.scale, time_utc=last.time_utc,
        package_version=last.package_version, git_revision=last.git_revision,
        digests={**last.digests, BESIDE: canonical.digest_bytes(forged)},
    )  # fmt: skip
    files = {**found.files, BESIDE: forged, "ledger.jsonl": tables.encode_lines(mended)}
    (finding,) = verify_evidence(replace(found, files=files))
    assert finding.file == BESIDE
    assert "recalibration.roc_auc.D.raw.coverage is not what the frozen files give" in str(finding)


def test_an_added_and_a_removed_file_are_named(copy):
    (copy / "extra.txt").write_text("x")
    assert named(copy) == ["extra.txt"]
    (copy / "extra.txt").unlink()
    (copy / "usage.jsonl").unlink()
    assert named(copy) == ["usage.jsonl"]


def remake_manifest(copy: Path) -> None:
    files = {p.relative_to(copy).as_posix(): p.read_bytes() for p in copy.rglob("*") if p.is_file()}
    files.pop(MANIFEST)
    (copy / MANIFEST).write_bytes(evidence.manifest(files))


def forge(copy: Path, name: str, change, *, but=()):
    """Change a file and mend every checksum on the way to it: freeze record, chain and manifest.

    `but` names phases whose events keep the digests they had.
    """
    path = copy / name
    path.write_bytes(change(path.read_bytes()))
    freeze = json.loads((copy / "freeze.json").read_text())
    if name in freeze["digests"]:
        freeze["digests"][name] = canonical.digest_file(path)
        tables.write_json(copy / "freeze.json", freeze)
    previous, lines = "genesis", []
    for line in (copy / "ledger.jsonl").read_text().splitlines():
        event = json.loads(line)
        for file in event["digests"]:
            if event["phase"] not in but and (copy / file).is_file():
                event["digests"][file] = canonical.digest_file(copy / file)
        event["previous"] = previous
        event["hash"] = canonical.digest({k: v for k, v in event.items() if k != "hash"})
        previous = event["hash"]
        lines.append(event)
    (copy / "ledger.jsonl").write_bytes(tables.encode_lines(lines))
    remake_manifest(copy)


def edit(**fields: object) -> Callable[[bytes], bytes]:
    """An edit of the first line of a JSONL file."""

    def change(data: bytes) -> bytes:
        first, _, rest = data.partition(b"\n")
        return canonical.encode(json.loads(first) | fields) + b"\n" + rest

    return change


def better_forecast(data):
    first, _, rest = data.partition(b"\n")
    row = json.loads(first)
    row["forecasts"][0] |= {"point": 0.0}
    return canonical.encode(row) + b"\n" + rest


def other_outcome(data):
    header, first, *rest = data.decode().splitlines()
    state, target, _, *others = first.split(",")
    return "\n".join([header, ",".join([state, target, "0.5", *others]), *rest, ""]).encode()


def other_decision(data):
    return data.replace(b'"confirmation_no_go"', b'"harm_confirmed"')


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("forecasts.jsonl", better_forecast),
        ("outcomes.csv", other_outcome),
        ("metrics/decision.json", other_decision),
        ("plan.jsonl", edit(seed=1)),
        ("plan.jsonl", edit(prompt_digest="0" * 64)),
        ("prompts.jsonl", edit(user="What will happen?")),
        ("explanations.jsonl", edit(text="Direction: increase.")),
        ("states.jsonl", edit(description="Another state.")),
    ],
)
def test_a_forgery_with_mended_checksums_is_found_by_replay(copy, name, change):
    forge(copy, name, change)
    found = named(copy)
    # A changed state or plan shows first where it no longer fits its prompts.
    assert found
    assert set(found) <= {name, "prompts.jsonl", "plan.jsonl"}


def test_mending_checksums_alone_changes_nothing(copy):
    forge(copy, "usage.jsonl", lambda data: data)
    assert named(copy) == []


def test_the_page_is_not_made_of_a_bundle_that_does_not_verify(copy, tmp_path):
    file = copy / "metrics" / "contrasts.json"
    file.write_bytes(file.read_bytes().replace(b'"mean": 0', b'"mean": 9', 1))
    with pytest.raises(
        Tampered, match=r"does not verify: .*metrics/contrasts.json.*; give a bundle that does"
    ):
        report.write_page(tmp_path, [copy], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()


def test_a_second_answer_to_a_unit_is_named(copy):
    forge(copy, "forecasts.jsonl", lambda data: data + data[: data.index(b"\n") + 1])
    assert named(copy) == ["forecasts.jsonl"]


def test_another_rule_is_not_run(copy):
    forge(copy, "rule.py", lambda data: data + b"MARGIN = -1\n")
    assert named(copy) == ["rule.py"]


def test_other_params_are_named(copy):
    forge(copy, "params.yaml", lambda data: yaml.safe_dump(yaml.safe_load(data) | {"seed": 5}).encode())
    assert named(copy) == ["params.yaml"]


def test_an_edited_ledger_is_named(copy):
    text = (copy / "ledger.jsonl").read_text()
    (copy / "ledger.jsonl").write_text(text.replace('"phase":"opened"', '"phase":"frozen"'))
    remake_manifest(copy)
    assert named(copy) == ["ledger.jsonl"]


def test_what_is_no_bundle_and_no_project_is_one_sentence(tmp_path):
    with pytest.raises(BadSource, match="neither a project"):
        verify(tmp_path)


def test_an_undecided_study_cannot_be_bundled_and_leaves_nothing(tmp_path):
    made, _ = project(tmp_path / "p")
    with pytest.raises(OutOfOrder, match="cannot bundle before it is decided"):
        pack(made, "molecular", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_study_that_the_project_does_not_have_is_named_and_not_called_undecided(study, tmp_path):
    with pytest.raises(BadConfig, match=r"no study 'molecula' in .*params.yaml; it holds molecular"):
        pack(study[0], "molecula", tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


def test_a_bundle_never_replaces_something_else(study, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(BadSource, match="exists and is not a bundle"):
        pack(study[0], "molecular", tmp_path / "mine")
    assert (tmp_path / "mine" / "notes.txt").read_text() == "keep"
