"""Indexes for an event service: four partial indexes among sixteen query families, four of them hot.

The cost of a query is the number of virtual-machine steps a real SQLite takes for it. Hot families get
24 times the traffic of the others, and which they are is sealed: four indexes on k hot families score
about k times .221 plus (4 - k) times .009, and a blind choice is right in one of 1,820 cases.

Statements are made here from names of closed lists; nothing an agent writes reaches the database.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.random import Generator

from predictive_credit.certification.tasks.task import (
    Budget,
    Design,
    Malformed,
    exact_form,
    exactly,
    list_form,
    sealed,
    shuffled,
)

KINDS = (
    "alert", "backup", "cart", "checkout", "deploy", "export", "import", "login",
    "logout", "refund", "review", "search", "ship", "signup", "sync", "view",
)  # fmt: skip
COLUMNS = ("account", "device", "region", "status", "day", "amount")
SHAPES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("account = {account}", ("account",)),
    ("device = {device} AND day >= {day}", ("device", "day")),
    ("region = {region} AND amount >= {amount}", ("region", "amount")),
    ("status = {status} ORDER BY amount DESC LIMIT 4", ("status", "amount")),
)
HOT = 4
MOST = 4  # indexes of an artifact, and of an experiment
WEIGHTS = (24, 1)  # traffic of a hot family and of another
ROWS = 100  # rows of each kind
HIGHEST = {"account": 256, "device": 128, "region": 12, "status": 10, "day": 366, "amount": 10_000}

DESIGN = Design(
    name="sqlite",
    profile="predictive_credit_sqlite_event_indexes_v1",
    formerly="sqlite_event_traffic_index_design_web_v2",
    title="SQLite event service",
    grade="evidence",
    delta_min=0.5,
    kappa=0.01,
    experiments=4,
    full=Budget(challengers=96, positive_controls=45, feedback_pairs=30, null_pairs=60),
    quick=Budget(challengers=6, positive_controls=8, feedback_pairs=3, null_pairs=3),
    alpha_recovery=0.01,
    alpha_evidence=0.01,
    alpha_sham=0.01,
    replaceable=0.1,
)
_INDEX = exact_form(kind={"enum": KINDS}, columns=list_form({"enum": COLUMNS}, least=1, most=3))
FORMS = {
    "experiment": exact_form(indexes=list_form(_INDEX, least=1, most=MOST)),
    "candidate": exact_form(indexes=list_form(_INDEX, least=0, most=MOST)),
}


@dataclass(frozen=True, kw_only=True)
class EventService:
    """`rows` are the table's, `parameters[kind]` the sealed query's, `hot` the sealed families."""

    rows: tuple[tuple[Any, ...], ...]
    parameters: Mapping[str, Mapping[str, int]]
    hot: tuple[str, ...]
    known: bool = False
    design: Design = DESIGN

    def background(self, order: Generator | None = None) -> Mapping[str, Any]:
        """The text, the schema and the families' queries; the order of the families is drawn."""
        kinds = shuffled(KINDS, order)
        queries = "\n".join(f"- {kind}: {self._query(kind, dict.fromkeys(COLUMNS, '?'))}" for kind in kinds)
        index = {"kind": "one of the families", "columns": f"list of 1 to 3 of {', '.join(COLUMNS)}"}
        return {
            "text": _TEXT.format(version=sqlite3.sqlite_version, queries=queries),
            "files": {"schema.sql": f"{_TABLE};\n"},
            "schema": {"experiment": {"indexes": [index]}, "candidate": {"indexes": [index]}},
            "families": {kind: list(_columns(kind)) for kind in kinds},
        }

    def first(self) -> Mapping[str, Any]:
        """The size of the table; a null task adds the hot families' indexes."""
        seen: dict[str, Any] = {"rows": len(self.rows), "kinds": len(KINDS)}
        return seen | ({"known_best": self.answer()} if self.known else {})

    @property
    def unit_ids(self) -> tuple[str, ...]:
        """One aggregate over the sealed workload."""
        return ("sealed_workload_aggregate",)

    @property
    def baseline(self) -> Any:
        """No secondary index."""
        return {"indexes": []}

    def answer(self) -> Any:
        """The matching index of each hot family."""
        return {"indexes": [{"kind": kind, "columns": list(_columns(kind))} for kind in self.hot]}

    def artifact(self, value: Any) -> Any:
        """`{"indexes": [{"kind": ..., "columns": [...]}]}`, at most four, all different."""
        (indexes,) = exactly(value, "indexes")
        if not isinstance(indexes, list) or len(indexes) > MOST:
            raise Malformed(f"indexes must be a list of at most {MOST}")
        read = [_index(index) for index in indexes]
        if len({(i["kind"], *i["columns"]) for i in read}) != len(read):
            raise Malformed("an index is repeated")
        return {"indexes": read}

    def plan(self, value: Any) -> Any:
        """The same schema, with one index at least."""
        plan = self.artifact(value)
        if not plan["indexes"]:
            raise Malformed("an experiment needs an index")
        return plan

    def measure(self, plan: Any) -> list[tuple[str, str]]:
        """The traffic-weighted cut of each index by itself."""
        return [(f"{i['kind']}({','.join(i['columns'])})", f"{self._cut([i]):.4f}") for i in plan["indexes"]]

    def score(self, artifact: Any) -> tuple[float, ...]:
        """The traffic-weighted cut in steps against no secondary index, not below 0."""
        return (max(0.0, self._cut(artifact["indexes"])),)

    def steps(self, indexes: Sequence[Mapping[str, Any]], kinds: Sequence[str]) -> dict[str, int]:
        """Virtual-machine steps of each family's query under a set of indexes."""
        with self._database() as database:
            for number, index in enumerate(indexes):
                database.execute(
                    f"CREATE INDEX i{number} ON events ({', '.join(index['columns'])}) "
                    f"WHERE kind = '{index['kind']}'"
                )
            database.execute("SELECT id FROM events LIMIT 0")  # loads the schema, whose steps are no query's
            return {kind: _steps(database, self._query(kind, self.parameters[kind])) for kind in kinds}

    def _cut(self, indexes: Sequence[Mapping[str, Any]]) -> float:
        # An index of one kind cannot serve a query of another, which then runs the program of the bare table.
        served = [kind for kind in KINDS if any(i["kind"] == kind for i in indexes)]
        steps = self.steps(indexes, served)
        total = sum(self._weight(kind) for kind in KINDS)
        return sum(self._weight(kind) * (1 - steps[kind] / self._bare[kind]) for kind in served) / total

    def _weight(self, kind: str) -> int:
        return WEIGHTS[0] if kind in self.hot else WEIGHTS[1]

    @cached_property
    def _bare(self) -> dict[str, int]:
        return self.steps([], KINDS)

    @cached_property
    def _image(self) -> bytes:
        with closing(sqlite3.connect(":memory:")) as database:
            database.execute(_TABLE)
            places = ", ".join("?" * (len(COLUMNS) + 1))
            database.executemany(
                f"INSERT INTO events (kind, {', '.join(COLUMNS)}) VALUES ({places})", self.rows
            )
            database.commit()
            return database.serialize()

    @contextmanager
    def _database(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
            database.deserialize(self._image)
            yield database

    @staticmethod
    def _query(kind: str, values: Mapping[str, Any]) -> str:
        where, _ = SHAPES[KINDS.index(kind) % len(SHAPES)]
        return f"SELECT id FROM events WHERE kind = '{kind}' AND {where.format(**values)}"


def build(secret: bytes, label: str, *, known: bool = False) -> EventService:
    """The instance called `label` under a secret."""
    rng = sealed(secret, DESIGN.name, label)
    drawn = {name: rng.integers(HIGHEST[name], size=len(KINDS) * ROWS).tolist() for name in COLUMNS}
    kinds = [KINDS[i % len(KINDS)] for i in rng.permutation(len(KINDS) * ROWS)]
    parameters = {
        kind: {name: int(rng.integers(HIGHEST[name])) for name in COLUMNS}
        | {"day": HIGHEST["day"] * 9 // 10, "amount": HIGHEST["amount"] * 9 // 10}
        for kind in KINDS
    }
    return EventService(
        rows=tuple(zip(kinds, *(drawn[name] for name in COLUMNS), strict=True)),
        parameters=parameters,
        hot=tuple(sorted(KINDS[i] for i in rng.permutation(len(KINDS))[:HOT])),
        known=known,
    )


def _columns(kind: str) -> tuple[str, ...]:
    """The key columns that fit a family's query."""
    return SHAPES[KINDS.index(kind) % len(SHAPES)][1]


def _index(value: Any) -> dict[str, Any]:
    kind, columns = exactly(value, "kind", "columns")
    if not isinstance(kind, str) or kind not in KINDS:
        raise Malformed("kind must be one of the families")
    if not isinstance(columns, list) or not 1 <= len(columns) <= 3:
        raise Malformed("columns must be a list of 1 to 3")
    if not all(isinstance(c, str) and c in COLUMNS for c in columns) or len(set(columns)) != len(columns):
        raise Malformed("columns must be different columns of the table")
    return {"kind": kind, "columns": list(columns)}


def _steps(database: sqlite3.Connection, query: str) -> int:
    """Steps of one statement: the progress handler is called once a step, none left out."""
    count = 0

    def step() -> int:
        nonlocal count
        count += 1
        return 0

    database.set_progress_handler(step, 1)
    try:
        database.execute(query).fetchall()
    finally:
        database.set_progress_handler(None, 1)
    return count


_TABLE = (
    "CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, "
    + ", ".join(f"{name} INTEGER NOT NULL" for name in COLUMNS)
    + ")"
)
_TEXT = """\
Choose indexes for an event service on SQLite {version}. The table is in schema.sql. You may create at
most four partial indexes, each on one to three columns and for the rows of one kind. There are sixteen
query families, one a kind; four of them are hot and get 24 times the traffic of each other family.
Which are hot is not told. An artifact is judged by the traffic-weighted share of virtual-machine steps
it saves against no index at all. One experiment measures up to four indexes, each by itself, and reads
the saved share of all traffic. The families' queries:
{queries}"""
