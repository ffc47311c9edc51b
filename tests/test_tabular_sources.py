"""Pools of tables: out of wheels, out of OpenML (its mirror, and a server on loopback), and a user's own."""

from __future__ import annotations

import contextlib
import gzip
import json
import pickle
import shutil
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from pydantic import TypeAdapter, ValidationError

from predictive_credit import canonical
from predictive_credit.config import OpenMLPool, OwnPool, PackagedPool, Pool, RegimesPool, TablesPool
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.sources import lottery, manifest, openml_tasks, pools, wheels
from predictive_credit.sources.openml_tasks import Facts
from tests.test_sources import make_wheel, pinned

ADAPTER: TypeAdapter[Any] = TypeAdapter(Pool)
TABLE = b"a,y\n1,2\n3,4\n"


@pytest.fixture(autouse=True)
def private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no mirror, and no openml folders in the user's home."""
    monkeypatch.setenv("PREDICTIVE_CREDIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENML_CACHE_DIR", str(tmp_path / "openml"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("PREDICTIVE_CREDIT_MIRROR", raising=False)
    return tmp_path / "cache"


def names(raw: Path, role: str | None = None) -> list[str]:
    return [file.name for file in manifest.read(raw) if role in (None, file.role)]


# The lottery


def test_the_lottery_does_not_depend_on_the_listing_and_moves_with_salt_and_group():
    tasks = list(range(1, 60))
    drawn = lottery.order(tasks, salt="salt", group=99)
    assert lottery.order(reversed(tasks), salt="salt", group=99) == drawn
    assert sorted(drawn) == tasks
    assert lottery.order(tasks, salt="other", group=99) != drawn
    assert lottery.order(tasks, salt="salt", group=353) != drawn


def test_the_lottery_is_the_published_hash():
    digests = {
        name: canonical.digest_bytes(f"salt/regression/{name}".encode()) for name in ("a", "b", "c", "d")
    }
    assert lottery.order(digests, salt="salt", group="regression") == sorted(
        digests, key=lambda n: digests[n]
    )


# Tables out of wheels


def packaged(
    wheel: Path, member: str = "tiny/a.csv", sha256: str | None = None, **changes: Any
) -> PackagedPool:
    table = {
        "distribution": "tinydata", "member": member, "sha256": sha256 or canonical.digest_bytes(TABLE),
        "target": "y", "licence": "MIT",
    }  # fmt: skip
    tables = {f"{kind[0]}{i}": table | {"kind": kind} for kind in manifest.KINDS for i in range(3)}
    settings = {
        "kind": "packaged", "watch": "x", "salt": "salt", "tasks_of_each_kind": 2, "max_rows": 10,
        "wheels": {"tinydata": {"version": "1.0", "sha256": pinned(wheel)}}, "tables": tables,
    }  # fmt: skip
    pool: PackagedPool = ADAPTER.validate_python(settings | changes)
    return pool


@pytest.fixture
def wheel(private_cache: Path) -> Path:
    return make_wheel(private_cache / "wheels", {"tiny/a.csv": TABLE, "tiny/b.xls": b"x"})


def test_the_packaged_tables_are_split_by_the_lottery_into_study_and_burn_in(tmp_path: Path, wheel: Path):
    record = pools.fetch(packaged(wheel), tmp_path / "raw")
    drawn = [
        n
        for kind in manifest.KINDS
        for n in lottery.order([f"{kind[0]}{i}" for i in range(3)], salt="salt", group=kind)
    ]
    assert names(tmp_path / "raw") == drawn
    assert names(tmp_path / "raw", "study") == [*drawn[:2], *drawn[3:5]]
    assert names(tmp_path / "raw", "burn-in") == [drawn[2], drawn[5]]
    assert (record["source"], record["origin"], record["unpinned"]) == (
        "package index",
        "tinydata 1.0",
        False,
    )
    assert (tmp_path / "raw" / f"{drawn[0]}.csv").read_bytes() == TABLE
    pools.read_source(tmp_path / "raw")


def test_a_wheel_in_the_mirror_is_called_the_mirrors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, private_cache: Path
):
    wheel = make_wheel(tmp_path / "mirror" / "wheels", {"tiny/a.csv": TABLE})
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(tmp_path / "mirror"))
    assert pools.fetch(packaged(wheel), tmp_path / "raw")["source"] == "mirror"


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"sha256": "0" * 64}, BadSource, r"tiny/a.csv has sha256 .*correct the table's sha256"),
        ({"member": "tiny/z.csv"}, BadSource, "lacks 1 asked members, first tiny/z.csv"),
        ({"member": "tiny/b.xls"}, BadConfig, "give a .csv, .csv.gz or .dat member"),
        (
            {"tasks_of_each_kind": 3},
            BadConfig,
            "lists 3 classification tables, and 3 drawn, which leaves none",
        ),
        ({"wheels": {}}, BadConfig, "asks for the wheel 'tinydata'"),
    ],
)
def test_a_packaged_table_that_cannot_be_had_is_one_sentence(
    tmp_path: Path, wheel: Path, changes: dict[str, Any], error: type[Exception], message: str
):
    with pytest.raises(error, match=message) as caught:
        pools.fetch(packaged(wheel, **changes), tmp_path / "raw")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize("name", ["a/b", "../a", ".a", ""])
def test_a_task_name_that_is_no_file_name_is_refused(wheel: Path, name: str):
    table = {
        "distribution": "tinydata", "member": "a.csv", "sha256": "0" * 64, "kind": "regression",
        "target": "y", "licence": "MIT",
    }  # fmt: skip
    with pytest.raises(ValidationError):
        packaged(wheel, tables={name: table})


def test_a_wheel_for_one_interpreter_is_found_by_its_tags_and_asked_for_by_them(
    private_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    make_wheel(private_cache / "wheels", {"a": b"1"}, "tinydata-1.0-cp310-cp310-win_amd64.whl")
    wanted = make_wheel(
        private_cache / "wheels", {"a": b"2"}, "tinydata-1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    )
    assert wheels.wheel("tinydata", "1.0", pinned(wanted), "cp311-cp311-manylinux_2_28_x86_64") == wanted
    asked: list[str | None] = []

    def download(requirement: str, folder: Path, tags: str | None) -> None:
        asked.append(tags)

    monkeypatch.setattr(wheels, "_pip_download", download)
    with pytest.raises(BadSource, match="pip brought no wheel"):
        wheels.wheel("tinydata", "1.0", "0" * 64, "cp312-cp312-win_arm64")
    assert asked == ["cp312-cp312-win_arm64"]


def test_the_committed_tables_leave_a_burn_in_of_both_kinds(root: Path):
    settings = yaml.safe_load((root / "conf" / "tables" / "packaged.yaml").read_text())["pools"]["packaged"]
    pool: PackagedPool = ADAPTER.validate_python(settings)
    kinds = [table.kind for table in pool.tables.values()]
    assert min(kinds.count("classification"), kinds.count("regression")) >= pool.tasks_of_each_kind + 3
    assert {table.distribution for table in pool.tables.values()} == pool.wheels.keys()
    assert len({(table.distribution, table.member) for table in pool.tables.values()}) == len(pool.tables)
    assert (root / pool.watch).is_file()


# OpenML


def openml(**changes: Any) -> OpenMLPool:
    settings = {
        "kind": "openml", "watch": "x", "suites": {"classification": 99, "regression": 353}, "salt": "salt",
        "tasks": None, "tasks_of_each_kind": 2, "burn_in_tasks": 1, "min_rows": 1, "max_rows": 2000,
        "max_features": 100, "max_classes": 12,
    }  # fmt: skip
    pool: OpenMLPool = ADAPTER.validate_python(settings | changes)
    return pool


def facts(n: int, **changes: Any) -> dict[int, Facts]:
    settings: dict[str, Any] = {"kind": "classification", "rows": 100, "features": 5, "classes": 2}
    return {task: Facts(task=task, data=1000 + task, **(settings | changes)) for task in range(1, n + 1)}


def test_the_draw_takes_the_first_that_fit_and_counts_those_passed_over():
    pool = openml(tasks_of_each_kind=3, burn_in_tasks=2)
    order = lottery.order(range(1, 11), salt="salt", group=99)
    known = facts(10)
    del known[order[0]]  # not there
    known |= {order[1]: Facts(task=order[1], data=1, kind="classification", rows=2001, features=5, classes=2)}
    known |= {order[2]: Facts(task=order[2], data=2, kind="classification", rows=9, features=101, classes=2)}
    known |= {order[4]: Facts(task=order[4], data=3, kind="classification", rows=9, features=5, classes=13)}
    for listing in (range(1, 11), reversed(range(1, 11))):
        drawn = openml_tasks.draw(pool, {"classification": list(listing)}, known)
        assert drawn.study == (order[3], order[5], order[6])
        assert drawn.burn_in == (order[7], order[8])
        assert (drawn.absent, drawn.outside) == (1, 3)


def test_named_tasks_are_the_study_and_the_burn_in_avoids_their_data():
    known = facts(4)
    known[4] = Facts(task=4, data=known[2].data, kind="classification", rows=5000, features=5, classes=2)
    drawn = openml_tasks.draw(openml(burn_in_tasks=2), {"classification": [1, 2, 3]}, known, taken=[4])
    assert drawn.study == (4,)
    assert sorted(drawn.burn_in) == [1, 3]


def test_a_suite_with_too_few_tasks_is_one_sentence():
    with pytest.raises(BadSource, match=r"suite 99 has 2 classification tasks .* not the 3 asked; lower"):
        openml_tasks.draw(openml(), {"classification": [1, 2, 3]}, facts(2))


@pytest.fixture
def openml_mirror(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if not (mirror / "openml").is_dir():
        pytest.skip("no mirror of OpenML; set PREDICTIVE_CREDIT_MIRROR to run this")
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(mirror))
    return mirror / "openml"


def test_the_mirrors_tasks_are_drawn_and_become_parquet_files_in_silence(
    tmp_path: Path, openml_mirror: Path, capfd: pytest.CaptureFixture[str]
):
    pool = openml(tasks_of_each_kind=1, max_rows=1000)
    record = pools.fetch(pool, tmp_path / "raw")
    there = pd.read_csv(openml_mirror / "tasks.csv")
    for kind, suite in pool.suites.items():
        fits = there[(there["kind"] == kind) & (there["rows"] <= 1000) & ~(there["classes"] > 12)]
        order = lottery.order([int(t) for t in fits["task_id"]], salt="salt", group=suite)
        drawn = [file for file in manifest.read(tmp_path / "raw") if file.kind == kind]
        assert [file.origin.split()[2].rstrip(",") for file in drawn] == [str(task) for task in order[:2]]
        for file, task in zip(drawn, order, strict=False):
            row = fits[fits["task_id"] == task].iloc[0]
            frame = pd.read_parquet(tmp_path / "raw" / file.file)
            assert frame.shape == (row["rows"], row["features"] + 1)
            assert file.target == row["target"]
            assert file.target in frame.columns
    assert record["source"] == "mirror"
    assert "the mirror's openml/ lacks" in record["note"]
    assert sorted(record["files"]) == sorted(
        [*(f"{name}.parquet" for name in names(tmp_path / "raw")), "tasks.jsonl"]
    )
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


def test_three_named_tasks_are_the_study(tmp_path: Path, openml_mirror: Path):
    pools.fetch(openml(tasks=[361237, 11, 31]), tmp_path / "raw")
    assert names(tmp_path / "raw", "study") == ["balance-scale", "credit-g", "concrete_compressive_strength"]
    assert len(names(tmp_path / "raw", "burn-in")) == 2


def test_openmls_own_settings_are_as_they_were_afterwards(tmp_path: Path, openml_mirror: Path):
    import openml as package  # noqa: PLC0415
    import requests  # noqa: PLC0415

    def settings() -> tuple[Any, ...]:
        config = package.config
        return (
            config.server,
            config._root_cache_directory,
            config.connection_n_retries,
            requests.Session.request,
        )

    before = settings()
    pools.fetch(openml(tasks=[11]), tmp_path / "raw")
    assert settings() == before


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        ([12], BadSource, "the mirror's openml/ has no classification or regression task 12; name another"),
        ([11, 11], BadConfig, "name 11 twice"),
    ],
)
def test_a_named_task_that_cannot_be_had_is_one_sentence(
    tmp_path: Path, openml_mirror: Path, tasks: list[int], error: type[Exception], message: str
):
    with pytest.raises(error, match=message):
        pools.fetch(openml(tasks=tasks), tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


@pytest.fixture
def small_mirror(tmp_path: Path, openml_mirror: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror of one's own with three tasks, to be damaged."""
    folder = tmp_path / "mirror" / "openml"
    for data, task in ((11, 11), (44956, 361234), (44959, 361237)):
        for entry in (f"datasets/{data}", f"tasks/{task}"):
            below = Path("cache", "org", "openml", "www", entry)
            shutil.copytree(openml_mirror / below, folder / below)
    for name in ("suites.csv", "details.csv"):
        shutil.copyfile(openml_mirror / name, folder / name)
    there = pd.read_csv(openml_mirror / "tasks.csv", dtype=str, keep_default_na=False)
    there[there["task_id"].isin(["11", "361234", "361237"])].to_csv(folder / "tasks.csv", index=False)
    monkeypatch.setenv("PREDICTIVE_CREDIT_MIRROR", str(tmp_path / "mirror"))
    return folder


SMALL: dict[str, Any] = {"suites": {"regression": 353}, "tasks_of_each_kind": 1, "max_rows": 5000}
BELOW = Path("cache", "org", "openml", "www")


def test_a_small_mirror_is_enough_and_stays_as_it_was(tmp_path: Path, small_mirror: Path):
    before = {path: path.read_bytes() for path in small_mirror.rglob("*") if path.is_file()}
    record = pools.fetch(openml(**SMALL), tmp_path / "raw")
    assert sorted(names(tmp_path / "raw")) == ["abalone", "concrete_compressive_strength"]
    absent = int(record["note"].split("passed over ")[1].split()[0])
    assert 0 < absent <= 33
    assert {path: path.read_bytes() for path in small_mirror.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("datasets/44956/dataset_44956.pq", "dataset_44956.pq has sha256 .*; put it there, or unset"),
        ("tasks/361234", "lacks org/openml/www/tasks/361234 or part of it; put it there"),
        ("../../../../tasks.csv", r"openml/tasks.csv cannot be read \(no such file"),
    ],
)
def test_a_damaged_mirror_is_one_sentence_and_never_a_substitute(
    tmp_path: Path, small_mirror: Path, damage: str, message: str
):
    path = small_mirror / BELOW / damage
    if path.is_dir():
        shutil.rmtree(path)
    elif path.suffix == ".pq":
        path.write_bytes(path.read_bytes() + b"x")
    else:
        path.unlink()
    with pytest.raises(BadSource, match=message) as caught:
        pools.fetch(openml(**SMALL), tmp_path / "raw")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "raw").exists()


class Trap:
    """Its pickle makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self._path,))


def test_pickles_in_a_mirror_are_not_read(tmp_path: Path, small_mirror: Path):
    for name in ("features.xml.pkl", "qualities.xml.pkl", "dataset_11.pkl.py3"):
        path = small_mirror / BELOW / "datasets" / "11" / name
        path.write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
    pools.fetch(openml(**SMALL, tasks=[11]), tmp_path / "raw")
    assert not (tmp_path / "sprung").exists()


def test_a_suite_the_mirror_does_not_know_is_one_sentence(tmp_path: Path, small_mirror: Path):
    with pytest.raises(BadSource, match=r"suites.csv knows no suite 7; put it there, or unset"):
        pools.fetch(openml(**SMALL | {"suites": {"regression": 7}}), tmp_path / "raw")


# OpenML itself, as a server on loopback hands it out


ARFF = """@relation tiny
@attribute size numeric
@attribute 'a colour' {red,blue}
@attribute y {yes,no}
@data
1.5,red,yes
2.5,?,no
?,blue,yes
"""
COLUMNS = {"size": (), "a colour": ("red", "blue"), "y": ("yes", "no")}  # nominal values by name
API = "/api/v1/xml"


def tags(**fields: Any) -> str:
    """Each field as an element; a list repeats it."""
    return "".join(
        f"<oml:{name}>{value}</oml:{name}>"
        for name, values in fields.items()
        for value in (values if isinstance(values, list | tuple) else [values])
    )


def document(name: str, body: str) -> str:
    return f'<oml:{name} xmlns:oml="http://openml.org/openml">{body}</oml:{name}>'


def answers(address: str, rows: dict[int, int]) -> dict[str, Any]:
    """What OpenML answers by path, for task ids with the rows their metadata state; data ids are 100 more."""
    suite = tags(
        id=99, main_entity_type="task", name="s", description="s", status="active",
        creation_date="2020-01-01", creator=1, tasks=tags(task_id=list(rows)),
    )  # fmt: skip
    procedures = [tags(id=i, ttid=i, name="cv", type="cv") for i in (1, 2)]
    found = {
        f"{API}/study/99": document("study", suite),
        f"{API}/estimationprocedure/list": document(
            "estimationprocedures", tags(estimationprocedure=procedures)
        ),
        f"{API}/task/list": document("tasks", tags(task=[listed(task, n) for task, n in rows.items()])),
        "/tiny.arff": ARFF,
    }
    for task in rows:
        found[f"{API}/task/{task}"] = document("task", task_of(task, address))
        found[f"{API}/data/{task + 100}"] = document("data_set_description", data_of(task, address))
        found[f"{API}/data/features/{task + 100}"] = document("data_features", tags(feature=features()))
        found[f"{API}/data/qualities/{task + 100}"] = document(
            "data_qualities",
            tags(quality=[tags(name=f"NumberOf{what}", value="3.0") for what in ("Instances", "Features")]),
        )
    return found


def listed(task: int, rows: int) -> str:
    qualities = {"NumberOfInstances": rows, "NumberOfFeatures": 3, "NumberOfClasses": 2}
    return tags(
        task_id=task, task_type_id=1, task_type="Supervised Classification", did=task + 100,
        name="tiny table", status="active", format="ARFF",
    ) + "".join(f'<oml:quality name="{k}">{v}</oml:quality>' for k, v in qualities.items())  # fmt: skip


def task_of(task: int, address: str) -> str:
    folds = '<oml:parameter name="number_folds">10</oml:parameter>'
    procedure = tags(id=1, type="crossvalidation", data_splits_url=f"{address}/none") + folds + folds
    inputs = {
        "source_data": tags(data_set=tags(data_set_id=task + 100, target_feature="y")),
        "estimation_procedure": tags(estimation_procedure=procedure),
    }
    return tags(task_id=task, task_type_id=1, task_type="Supervised Classification") + "".join(
        f'<oml:input name="{name}">{body}</oml:input>' for name, body in inputs.items()
    )


def data_of(task: int, address: str) -> str:
    return tags(
        id=task + 100, name="tiny table", version=3, description="d", format="ARFF", licence="Public",
        url=f"{address}/tiny.arff", visibility="public", status="active", default_target_attribute="y",
    )  # fmt: skip


def features() -> list[str]:
    return [
        tags(
            index=i, name=name, data_type="nominal" if levels else "numeric", nominal_value=levels,
            is_target="false", is_ignore="false", is_row_identifier="false", number_of_missing_values=0,
        )
        for i, (name, levels) in enumerate(COLUMNS.items())
    ]  # fmt: skip


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """openml pointed at a server on loopback; gives what it answers by path, to be filled."""
    found: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = f"{API}/task/list" if "/task/list" in self.path else self.path.partition("?")[0]
            answer = found.get(path, b"")
            if answer == "silence":
                time.sleep(0.6)
            body = answer.encode() if isinstance(answer, str) else answer
            self.send_response(200 if body else 404)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"1"')  # of these two, a store of Parquet files sends both
            self.send_header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT")
            self.end_headers()
            with contextlib.suppress(BrokenPipeError):  # nobody waits for a late answer
                self.wfile.write(b"" if self.command == "HEAD" else body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    address = f"http://127.0.0.1:{running.server_port}"
    import openml as package  # noqa: PLC0415

    monkeypatch.setattr(package.config, "server", f"{address}/api/v1/xml")
    found["address"] = address
    yield found
    running.shutdown()
    running.server_close()
    thread.join()


ORIGIN: dict[str, Any] = {"suites": {"classification": 99}, "tasks_of_each_kind": 1}


def test_the_origin_gives_suites_metadata_and_tables(
    tmp_path: Path, server: dict[str, Any], capfd: pytest.CaptureFixture[str]
):
    server |= answers(server["address"], {1: 3, 2: 3, 3: 9999})
    record = pools.fetch(openml(**ORIGIN), tmp_path / "raw")
    assert names(tmp_path / "raw") == ["tiny-table", "tiny-table.2"]
    (study, burn_in) = manifest.read(tmp_path / "raw")
    first, second = (t for t in lottery.order([1, 2, 3], salt="salt", group=99) if t != 3)
    assert study.origin == f"OpenML task {first}, data set {first + 100} version 3"
    assert burn_in.origin == f"OpenML task {second}, data set {second + 100} version 3"
    assert (study.role, study.target, study.licence) == ("study", "y", "Public")
    frame = pd.read_parquet(tmp_path / "raw" / "tiny-table.parquet")
    assert frame["y"].tolist() == ["yes", "no", "yes"]
    assert frame["a colour"].isna().tolist() == [False, True, False]
    assert isinstance(frame["a colour"].dtype, pd.CategoricalDtype)
    assert frame["size"].tolist()[:2] == [1.5, 2.5]
    assert (record["source"], record["unpinned"]) == ("origin", True)
    assert not list(tmp_path.rglob("*.pkl"))
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


def test_the_origins_parquet_files_are_preferred(tmp_path: Path, server: dict[str, Any]):
    server |= answers(server["address"], {1: 3, 2: 3})
    frame = pd.DataFrame({"size": [1.0, 2.0], "a colour": pd.Categorical(["red", None]), "y": ["yes", "no"]})
    frame.to_parquet(tmp_path / "tiny.pq", index=False)
    server["/bucket/tiny.pq"] = (tmp_path / "tiny.pq").read_bytes()
    del server["/tiny.arff"]
    for data in (101, 102):
        found = server[f"{API}/data/{data}"]
        server[f"{API}/data/{data}"] = found.replace(
            "<oml:url>", tags(parquet_url=f"{server['address']}/bucket/tiny.pq") + "<oml:url>"
        )
    pools.fetch(openml(**ORIGIN), tmp_path / "raw")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "raw" / "tiny-table.parquet"), frame)


@pytest.mark.parametrize(
    ("broken", "answer", "message"),
    [
        ("/api/v1/xml/study/99", "", "OpenML suite 99 could not be fetched"),
        ("/api/v1/xml/study/99", "<html>hello", "OpenML suite 99 could not be fetched"),
        ("/api/v1/xml/task/list", "", "the metadata of OpenML's tasks could not be fetched"),
        ("/api/v1/xml/task/1", "", "OpenML task 1 could not be fetched"),
        ("/tiny.arff", "", "OpenML task . could not be fetched"),
        ("/api/v1/xml/study/99", "silence", "OpenML suite 99 did not come within 0.2 s"),
    ],
)
def test_an_origin_that_answers_badly_is_one_sentence_at_once(
    tmp_path: Path,
    server: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    answer: str,
    message: str,
):
    if answer == "silence":
        monkeypatch.setattr(openml_tasks, "TIMEOUT_SECONDS", 0.2)
    server |= answers(server["address"], {1: 3, 2: 3}) | {broken: answer}
    began = time.monotonic()
    with pytest.raises(BadSource, match=message) as caught:
        pools.fetch(openml(**ORIGIN), tmp_path / "raw")
    assert time.monotonic() - began < 5
    assert "\n" not in str(caught.value)
    assert "PREDICTIVE_CREDIT_MIRROR" in str(caught.value)
    assert not (tmp_path / "raw").exists()


def test_an_origin_nobody_answers_at_is_one_sentence_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import openml as package  # noqa: PLC0415

    monkeypatch.setattr(package.config, "server", "http://127.0.0.1:9/api/v1/xml")  # nobody listens
    began = time.monotonic()
    with pytest.raises(
        BadSource, match=r"OpenML suite 99 .*no connection to 127.0.0.1:9.*set PREDICTIVE_CREDIT"
    ):
        pools.fetch(openml(), tmp_path / "raw")
    assert time.monotonic() - began < 5


# A user's own


def tables(**changes: Any) -> TablesPool:
    pool: TablesPool = ADAPTER.validate_python(
        {"kind": "tables", "watch": "x", "max_rows": 10, "tables": changes}
    )
    return pool


def test_a_users_tables_are_copied_under_their_task_names(tmp_path: Path):
    (tmp_path / "Mine.CSV").write_bytes(TABLE)
    (tmp_path / "more.csv.gz").write_bytes(gzip.compress(TABLE, mtime=0))
    both = {"kind": "regression", "target": "y"}
    pool = tables(
        prices=both | {"path": str(tmp_path / "Mine.CSV")},
        other=both | {"path": str(tmp_path / "more.csv.gz"), "burn_in": True, "drop": ["a"]},
    )
    record = pools.fetch(pool, tmp_path / "raw")
    assert (names(tmp_path / "raw", "study"), names(tmp_path / "raw", "burn-in")) == (["prices"], ["other"])
    assert (tmp_path / "raw" / "prices.csv").read_bytes() == TABLE
    assert manifest.read(tmp_path / "raw")[0].drop == ("a",)
    assert (record["source"], record["origin"], record["unpinned"]) == ("file", "Mine.CSV, more.csv.gz", True)
    assert str(tmp_path) not in json.dumps(record)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"path": "absent.csv"},
            BadSource,
            r"absent.csv cannot be read .*; correct the path of the table mine",
        ),
        (
            {"path": "mine.xlsx"},
            BadSource,
            "the table mine asks for .*mine.xlsx; give a .csv or .csv.gz file",
        ),
        ({"sha256": "0" * 64}, BadSource, "has sha256 .*correct the sha256 of the table mine"),
        ({"burn_in": True}, BadConfig, "has none with burn_in: false"),
    ],
)
def test_a_users_table_that_cannot_be_used_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    error: type[Exception],
    message: str,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_bytes(TABLE)
    with pytest.raises(error, match=message):
        pools.fetch(
            tables(mine={"path": "mine.csv", "kind": "regression", "target": "y"} | changes), tmp_path / "raw"
        )
    assert not (tmp_path / "raw").exists()


def own(**changes: Any) -> OwnPool:
    settings = {
        "kind": "own",
        "watch": "x",
        "path": "s.csv",
        "sha256": None,
        "outcomes": None,
        "burn_in": None,
    }
    pool: OwnPool = ADAPTER.validate_python(settings | changes)
    return pool


def test_a_users_states_are_copied_and_outcomes_only_when_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_bytes(b"id\n1\n")
    (tmp_path / "b.jsonl").write_bytes(b"{}\n")
    pool = own(outcomes="later.csv.gz", burn_in="b.jsonl")
    record = pools.fetch(pool, tmp_path / "raw")
    assert sorted(record["files"]) == ["burn_in.jsonl", "states.csv"]
    assert (record["source"], record["unpinned"]) == ("file", True)
    (tmp_path / "later.csv.gz").write_bytes(b"x")
    assert sorted(pools.fetch(pool, tmp_path / "raw")["files"]) == [
        "burn_in.jsonl",
        "outcomes.csv.gz",
        "states.csv",
    ]
    assert (tmp_path / "raw" / "outcomes.csv.gz").read_bytes() == b"x"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"path": "absent.parquet"},
            "absent.parquet cannot be read .no such file.*; correct the pool's path",
        ),
        ({"burn_in": "absent.csv"}, "absent.csv cannot be read .*; correct the pool's burn_in"),
        ({"path": "s.txt"}, r"your states asks for s.txt; give a .csv, .csv.gz, .jsonl or .parquet file"),
        ({"sha256": "0" * 64}, "s.csv has sha256 .*; restore it, or correct the pool's sha256"),
    ],
)
def test_a_users_states_that_cannot_be_used_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], message: str
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_bytes(b"id\n1\n")
    with pytest.raises(BadSource, match=message):
        pools.fetch(own(**changes), tmp_path / "raw")
    assert not (tmp_path / "raw").exists()


def test_generated_regimes_need_no_file(tmp_path: Path):
    record = pools.fetch(RegimesPool(kind="regimes", watch="x"), tmp_path / "raw")
    assert (record["source"], record["files"]) == ("generated", {})
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["source.json"]


@pytest.mark.parametrize("name", ["openml", "csv"])
def test_the_committed_pools_of_tables_are_valid(root: Path, name: str):
    found = yaml.safe_load((root / "conf" / "tables" / f"{name}.yaml").read_text())
    for pool, settings in found["pools"].items():
        assert found["studies"]["tabular"]["pool"] == pool
        ADAPTER.validate_python(settings)
