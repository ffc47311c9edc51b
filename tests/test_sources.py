"""Pinned bytes or one sentence: wheels, their members, and the three kinds of pool."""

from __future__ import annotations

import gzip
import importlib.util
import json
import os
import pickle
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from predictive_credit import canonical
from predictive_credit.config import CsvPool, LlamaCpp, MoleculeAcePool, MolNetPool, Pool
from predictive_credit.errors import BadSource, OutOfOrder
from predictive_credit.sources import cache, pools, wheels
from predictive_credit.sources.mirror import mirror as mirror_folder

TABLE = gzip.compress(b"smiles,a\nCCO,1\nCCC,0\n", mtime=0)


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache and no mirror."""
    monkeypatch.setenv("PREDICTIVE_CREDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("PREDICTIVE_CREDIT_MIRROR", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    """Start a loopback server with a handler; gives its address."""
    servers: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(handler: Any) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        servers.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server, thread in servers:
        server.shutdown()
        server.server_close()
        thread.join()


def answering(body: bytes, *, status: int = 200, promised: int | None = None) -> type[BaseHTTPRequestHandler]:
    """A handler that always gives this answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) if promised is None else promised))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    return Handler


def make_wheel(folder: Path, files: dict[str, bytes], file: str = "tinydata-1.0-py3-none-any.whl") -> Path:
    """A wheel that pip accepts."""
    folder.mkdir(parents=True, exist_ok=True)
    name, version = file.split("-")[:2]
    stem = f"{name}-{version}"
    meta = {
        f"{stem}.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{stem}.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{stem}.dist-info/RECORD": b"",
    }
    path = folder / file
    with zipfile.ZipFile(path, "w") as archive:
        for member, data in (files | meta).items():
            archive.writestr(member, data)
    return path


def pinned(path: Path) -> str:
    return canonical.digest_file(path)


def molnet(**changes: Any) -> MolNetPool:
    settings: dict[str, Any] = {
        "kind": "molnet", "watch": "x", "dataset": "tox21", "mirror_path": "molecular/tox21.csv.gz",
        "mirror_sha256": canonical.digest_bytes(TABLE), "origin_sha256": None, "smiles_column": "smiles",
        "endpoints": ("a",),
    }  # fmt: skip
    return MolNetPool(**(settings | changes))


def csv_pool(path: Path, sha256: str | None = None) -> CsvPool:
    return CsvPool(kind="csv", watch="x", path=str(path), sha256=sha256, smiles_column=None, endpoints=None)


def test_the_cache_is_where_the_environment_says(private_cache: Path, monkeypatch: pytest.MonkeyPatch):
    assert cache.home() == private_cache
    monkeypatch.delenv("PREDICTIVE_CREDIT_CACHE")
    assert cache.home() == Path.home() / ".cache" / "predictive-credit"


def test_a_mirror_that_is_no_directory_is_refused_and_an_empty_name_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", "")
    assert mirror_folder() is None
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(tmp_path / "nowhere"))
    with pytest.raises(BadSource, match="no directory; correct or unset it"):
        mirror_folder()


def test_a_wheel_comes_from_the_mirror_first_then_from_the_cache(
    tmp_path: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    cached = make_wheel(private_cache / "wheels", {"tiny/data.csv": b"1"})
    assert wheels.wheel("TinyData", "1.0", pinned(cached)) == cached
    mirrored = make_wheel(tmp_path / "mirror" / "wheels", {"tiny/data.csv": b"1"})
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(tmp_path / "mirror"))
    assert wheels.wheel("tinydata", "1.0", pinned(mirrored)) == mirrored


def test_a_wheel_with_another_checksum_is_refused_by_name(private_cache: Path):
    path = make_wheel(private_cache / "wheels", {"tiny/data.csv": b"1"})
    with pytest.raises(BadSource, match=rf"{path.name} has sha256 .* not the pinned 0{{12}}.*; remove it"):
        wheels.wheel("tinydata", "1.0", "0" * 64)
    assert path.exists()


@pytest.fixture
def index(tmp_path: Path, serve: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index on loopback, which pip is told to use; gives the folder of its one project."""
    project = tmp_path / "index" / "simple" / "tinydata"
    project.mkdir(parents=True)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: Any) -> None:
            pass

    address = serve(partial(Quiet, directory=str(tmp_path / "index")))
    for name in [name for name in os.environ if name.lower() in ("http_proxy", "https_proxy", "all_proxy")]:
        monkeypatch.delenv(name)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple/")
    return project


def test_pip_downloads_a_pinned_wheel_into_the_cache_once_and_says_so_before(
    index: Path, private_cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    served = make_wheel(index, {"tiny/data.csv": b"1"})
    (index / "index.html").write_text(f'<a href="{served.name}">{served.name}</a>')
    found = wheels.wheel("tinydata", "1.0", pinned(served))
    assert found == private_cache / "wheels" / served.name
    assert [path.name for path in found.parent.iterdir()] == [served.name]
    monkeypatch.setattr(wheels, "_pip_download", lambda *_: pytest.fail("asked twice"))
    assert wheels.wheel("tinydata", "1.0", pinned(served)) == found
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", "fetching tinydata 1.0 from the package index, once\n")


def test_a_downloaded_wheel_with_another_checksum_does_not_enter_the_cache(index: Path, private_cache: Path):
    served = make_wheel(index, {"tiny/data.csv": b"1"})
    (index / "index.html").write_text(f'<a href="{served.name}">{served.name}</a>')
    with pytest.raises(BadSource, match="that pip brought has sha256"):
        wheels.wheel("tinydata", "1.0", "0" * 64)
    assert list((private_cache / "wheels").iterdir()) == []


def test_a_wheel_that_pip_cannot_get_is_one_sentence_with_pips_last_line(index: Path, private_cache: Path):
    with pytest.raises(
        BadSource, match=r"tinydata==9.0 \(.*tinydata==9.0\); check the package index"
    ) as caught:
        wheels.wheel("tinydata", "9.0", "0" * 64)
    assert "\n" not in str(caught.value)
    assert list((private_cache / "wheels").iterdir()) == []


def test_members_are_read_by_pattern_or_by_name(tmp_path: Path):
    path = make_wheel(tmp_path, {"tiny/b.csv": b"2", "tiny/a.csv": b"1", "tiny/code.py": b"raise SystemExit"})
    assert wheels.members(path, "tiny/*.csv") == {"tiny/a.csv": b"1", "tiny/b.csv": b"2"}
    assert wheels.members(path, ["tiny/b.csv"]) == {"tiny/b.csv": b"2"}


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("tiny/*.json", "nothing like"),
        (["tiny/a.csv", "tiny/z.csv"], "lacks 1 asked members, first tiny/z.csv"),
    ],
)
def test_members_that_are_not_there_are_refused(tmp_path: Path, wanted: Any, message: str):
    with pytest.raises(BadSource, match=message):
        wheels.members(make_wheel(tmp_path, {"tiny/a.csv": b"1"}), wanted)


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/evil.csv", "tiny/../../evil.csv", "c:/evil.csv"])
def test_a_member_whose_name_leads_out_of_the_wheel_is_refused(tmp_path: Path, name: str):
    with pytest.raises(BadSource, match="leads out of it"):
        wheels.members(make_wheel(tmp_path, {name: b"1"}), "*evil.csv")


@pytest.mark.parametrize("name", ["tiny/model.pkl", "tiny/model.JOBLIB", "tiny/table.csv"])
def test_pickles_are_refused_by_name_and_by_content(tmp_path: Path, name: str):
    with pytest.raises(BadSource, match="is a pickle"):
        wheels.members(make_wheel(tmp_path, {name: pickle.dumps({"a": 1})}), [name])


def test_a_file_that_is_no_zip_is_one_sentence(tmp_path: Path):
    path = tmp_path / "tinydata-1.0-py3-none-any.whl"
    path.write_bytes(b"<html>not found</html>")
    with pytest.raises(BadSource, match="cannot be read as a wheel"):
        wheels.members(path, "*")


def llama(wheel: Path, member: str, member_sha256: str) -> LlamaCpp:
    return LlamaCpp(
        kind="llama_cpp", watch="x", name="tiny", distribution="tinydata", version="1.0",
        wheel_sha256=pinned(wheel), member=member, member_sha256=member_sha256, elicitation="sentence",
        temperature=0.0, top_p=1.0, max_tokens=8, threads=1, prefix_cache=True, acknowledged_models=(),
    )  # fmt: skip


def test_a_model_file_is_extracted_once_and_named_by_its_checksum(private_cache: Path):
    data = b"GGUF" * 1000
    wheel = make_wheel(private_cache / "wheels", {"tiny/model.gguf": data})
    config = llama(wheel, "tiny/model.gguf", canonical.digest_bytes(data))
    path = wheels.gguf(config)
    assert path.read_bytes() == data
    assert path.name == f"model.{canonical.digest_bytes(data)[:12]}.gguf"
    wheel.unlink()
    assert wheels.gguf(config) == path


def test_a_model_file_that_changed_in_the_cache_is_refused(private_cache: Path):
    data = b"GGUF" * 1000
    wheel = make_wheel(private_cache / "wheels", {"tiny/model.gguf": data})
    config = llama(wheel, "tiny/model.gguf", canonical.digest_bytes(data))
    wheels.gguf(config).write_bytes(data[:-1])
    with pytest.raises(BadSource, match="has sha256"):
        wheels.gguf(config)


def test_a_model_member_with_another_checksum_leaves_nothing_behind(private_cache: Path):
    wheel = make_wheel(private_cache / "wheels", {"tiny/model.gguf": b"GGUF"})
    with pytest.raises(BadSource, match=r"tiny/model.gguf has sha256"):
        wheels.gguf(llama(wheel, "tiny/model.gguf", "0" * 64))
    assert list((private_cache / "models").iterdir()) == []


def test_the_assays_and_their_pins_must_agree(tmp_path: Path, private_cache: Path):
    name = "MoleculeACE-3.0.0-py3-none-any.whl"
    folder = pools.pins("moleculeace")["folder"]
    wheel = make_wheel(private_cache / "wheels", {f"{folder}/CHEMBL204_Ki.csv": b"smiles\n"}, name)
    pool = MoleculeAcePool(
        kind="moleculeace", watch="x", distribution="MoleculeACE", version="3.0.0",
        wheel_sha256=pinned(wheel), active_at_most_nm=100.0,
    )  # fmt: skip
    with pytest.raises(BadSource, match="differ by 29 tables, first CHEMBL1862_Ki"):
        pools.fetch(pool, tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


def test_a_molnet_table_comes_from_the_mirror_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "mirror" / "molecular").mkdir(parents=True)
    (tmp_path / "mirror" / "molecular" / "tox21.csv.gz").write_bytes(TABLE)
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(pools, "molnet_location", lambda _: pytest.fail("went to the origin"))
    record = pools.fetch(molnet(), tmp_path / "raw")
    assert (record["source"], record["origin"], record["unpinned"]) == (
        "mirror",
        "molecular/tox21.csv.gz",
        False,
    )
    assert record["files"] == {"tox21.csv.gz": {"sha256": canonical.digest_bytes(TABLE), "bytes": len(TABLE)}}
    assert (tmp_path / "raw" / "tox21.csv.gz").read_bytes() == TABLE
    assert pools.read_source(tmp_path / "raw") == json.loads(json.dumps(record))


@pytest.mark.parametrize(
    ("holds", "message"),
    [(TABLE + b"x", "mirror's molecular/tox21.csv.gz has sha256"), (None, "cannot be read .no such file")],
)
def test_a_wrong_or_absent_mirror_file_is_refused_and_what_was_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: bytes | None, message: str
):
    (tmp_path / "mirror" / "molecular").mkdir(parents=True)
    if holds is not None:
        (tmp_path / "mirror" / "molecular" / "tox21.csv.gz").write_bytes(holds)
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "before").write_text("kept")
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(tmp_path / "mirror"))
    monkeypatch.setattr(pools, "molnet_location", lambda _: pytest.fail("a silent substitute"))
    with pytest.raises(BadSource, match=f"{message}.*unset PREDICTIVE_CREDIT_MIRROR"):
        pools.fetch(molnet(), tmp_path / "raw")
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["before"]


def origin(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setattr(pools, "molnet_location", lambda _: f"{address}/tox21.csv.gz")


def test_an_origin_without_a_pin_is_accepted_and_called_unpinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Callable[[Any], str]
):
    origin(monkeypatch, serve(answering(TABLE)))
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "stale.csv").write_text("old")
    record = pools.fetch(molnet(), tmp_path / "raw")
    assert (record["source"], record["unpinned"]) == ("origin", True)
    assert canonical.digest_bytes(TABLE) in record["note"]
    assert sorted(path.name for path in (tmp_path / "raw").iterdir()) == ["source.json", "tox21.csv.gz"]
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".raw")] == []


def test_an_origin_with_its_pin_is_not_called_unpinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Callable[[Any], str]
):
    origin(monkeypatch, serve(answering(TABLE)))
    record = pools.fetch(molnet(origin_sha256=canonical.digest_bytes(TABLE)), tmp_path / "raw")
    assert (record["unpinned"], record["note"]) == (False, None)


@pytest.mark.parametrize(
    ("handler", "pin", "message"),
    [
        (answering(TABLE), "0" * 64, "has sha256"),
        (answering(b"<html>hello</html>"), None, "something other than a gzip file"),
        (answering(b"gone", status=404), None, "could not be fetched .*404.*PREDICTIVE_CREDIT_MIRROR"),
        (answering(TABLE, promised=len(TABLE) + 9), None, "could not be fetched"),
    ],
)
def test_an_origin_with_other_content_is_refused_and_nothing_is_written(
    request: pytest.FixtureRequest, tmp_path: Path, handler: Any, pin: str | None, message: str
):
    origin(request.getfixturevalue("monkeypatch"), request.getfixturevalue("serve")(handler))
    with pytest.raises(BadSource, match=message) as caught:
        pools.fetch(molnet(origin_sha256=pin), tmp_path / "raw")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "raw").exists()


def test_an_origin_nobody_answers_at_names_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Callable[[Any], str]
):
    origin(monkeypatch, "http://127.0.0.1:9")  # the discard port: nobody listens
    with pytest.raises(BadSource, match=r"refused.*set PREDICTIVE_CREDIT_MIRROR"):
        pools.fetch(molnet(), tmp_path / "raw")


def test_only_http_addresses_are_fetched(tmp_path: Path):
    (tmp_path / "secret").write_text("x")
    with pytest.raises(BadSource, match="no http address"):
        pools.download((tmp_path / "secret").as_uri())


@pytest.mark.skipif(importlib.util.find_spec("deepchem") is None, reason="DeepChem needs Python < 3.12")
def test_deepchem_names_the_origin_and_keeps_quiet(capfd: pytest.CaptureFixture[str]):
    location = pools.molnet_location("tox21")
    assert location.startswith("https://")
    assert location.endswith("/tox21.csv.gz")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


def test_without_deepchem_the_origin_is_one_sentence(monkeypatch: pytest.MonkeyPatch):
    for name in [name for name in sys.modules if name.startswith("deepchem.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "deepchem", None)
    with pytest.raises(BadSource, match=r"needs Python < 3\.12.*set PREDICTIVE_CREDIT_MIRROR"):
        pools.molnet_location("tox21")


def test_a_users_table_is_copied_with_its_digest(tmp_path: Path):
    (tmp_path / "mine.csv.gz").write_bytes(TABLE)
    record = pools.fetch(csv_pool(tmp_path / "mine.csv.gz"), tmp_path / "raw")
    assert (record["source"], record["origin"], record["unpinned"]) == ("file", "mine.csv.gz", True)
    assert (tmp_path / "raw" / "mine.csv.gz").read_bytes() == TABLE
    assert str(tmp_path) not in (tmp_path / "raw" / "source.json").read_text()


@pytest.mark.parametrize(
    ("name", "sha256", "message"),
    [
        ("absent.csv", None, "cannot be read .no such file.*correct pools.csv.path"),
        ("mine.xlsx", None, "give a .csv or .csv.gz file"),
        ("mine.csv", "0" * 64, "has sha256"),
    ],
)
def test_a_users_table_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, name: str, sha256: str | None, message: str
):
    (tmp_path / "mine.csv").write_text("smiles,a\nC,1\n")
    with pytest.raises(BadSource, match=message):
        pools.fetch(csv_pool(tmp_path / name, sha256), tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


def test_a_raw_file_that_changed_since_the_fetch_is_named(tmp_path: Path):
    with pytest.raises(OutOfOrder, match=r"source\.json"):
        pools.read_source(tmp_path / "raw")
    (tmp_path / "mine.csv").write_text("smiles,a\nC,1\n")
    pools.fetch(csv_pool(tmp_path / "mine.csv"), tmp_path / "raw")
    (tmp_path / "raw" / "mine.csv").write_text("smiles,a\nC,0\n")
    with pytest.raises(BadSource, match=r"mine.csv has sha256.*run the fetch stage again"):
        pools.read_source(tmp_path / "raw")
    (tmp_path / "raw" / "mine.csv").unlink()
    with pytest.raises(BadSource, match="is gone since it was fetched"):
        pools.read_source(tmp_path / "raw")


def test_the_committed_pins_are_those_of_the_configured_pools(root: Path):
    adapter: TypeAdapter[Pool] = TypeAdapter(Pool)
    for name in ("moleculeace", "tox21"):
        settings = yaml.safe_load((root / "conf" / "pool" / f"{name}.yaml").read_text())["pools"][name]
        pool = adapter.validate_python(settings)
        assert (root / pool.watch).is_file()
        pins = pools.pins(name)
        if isinstance(pool, MoleculeAcePool):
            assert (pins["distribution"], pins["version"]) == (pool.distribution, pool.version)
            assert len(pins["members"]) == 30
        if isinstance(pool, MolNetPool):
            assert pins["mirror"] == {"path": pool.mirror_path, "sha256": pool.mirror_sha256}
