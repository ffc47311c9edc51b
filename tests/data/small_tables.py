"""A four-row table in the three formats, and a study's folders around it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
from omegaconf import OmegaConf
from pyarrow import parquet
from pydantic import TypeAdapter

from predictive_credit.config import OwnPool
from predictive_credit.sources import pools
from predictive_credit.studies import workers
from predictive_credit.studies.study import Setting
from predictive_credit.studies.table import filed
from predictive_credit.studies.table.config import TableConfig

ROOT = Path(__file__).parents[2]
HEADER = ("id", "site", "batch", "text", "change", "why", "lender", "yield", "purity")

GAIN = {
    "name": "yield", "column": "yield", "phrase": "Yield", "unit": "grams", "form": "change", "decimals": 1,
    "lower": -50, "upper": 50,
}  # fmt: skip
PURITY = {
    "name": "purity", "column": "purity", "phrase": "Purity", "unit": "%", "form": "level", "decimals": 2,
    "lower": 0, "upper": 100,
}  # fmt: skip
DECLARED: dict[str, Any] = {
    "rule": "table", "pool": "own", "burn_in": "own", "contexts": ["D", "M", "S"], "id": "id",
    "cluster": ["site", "batch"], "description": "text", "intervention": "change", "explanation": "why",
    "donor": "same_cluster", "donor_column": None, "targets": [GAIN, PURITY],
}  # fmt: skip


def config(**changes: Any) -> TableConfig:
    """The small table's declaration, with changes."""
    return TypeAdapter(TableConfig).validate_python(DECLARED | changes)


def shipped() -> TableConfig:
    """The declaration in conf/study/table.yaml."""
    values = OmegaConf.to_container(OmegaConf.load(ROOT / "conf" / "study" / "table.yaml"), resolve=True)
    return TypeAdapter(TableConfig).validate_python(values)


def rows() -> list[dict[str, Any]]:
    """Four states in two sites; c's yield is to come and d's purity undefined."""
    return [
        row("a", "north", "1", lender="c", gain=1.5, purity=90),
        row("b", "north", "1", lender="c", gain=-2, purity=80.25),
        row("c", "south", "1", lender="d", gain=None, purity=70),
        row("d", "south", "1", lender="a", gain=0, purity="undefined: the sample was lost"),
    ]


def row(key: str, site: str, batch: str, *, lender: str, gain: Any, purity: Any) -> dict[str, Any]:
    """One row, in the order of HEADER."""
    values = (key, site, batch, f"Reactor {key}.", "Heat it.", f"Heat helps {key}.", lender, gain, purity)
    return dict(zip(HEADER, values, strict=True))


def csv_bytes(found: Sequence[Mapping[str, Any]], *, delimiter: str = ",") -> bytes:
    """Rows as a CSV; None is an empty cell."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(found[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return buffer.getvalue().encode()


def jsonl_bytes(found: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as JSON lines."""
    return "".join(json.dumps(row) + "\n" for row in found).encode()


def parquet_bytes(found: Sequence[Mapping[str, Any]]) -> bytes:
    """Rows as Parquet; a column that mixes text and numbers becomes text."""
    columns = {key: [row[key] for row in found] for key in found[0]}
    mixed = {key for key, cells in columns.items() if any(isinstance(cell, str) for cell in cells)}
    plain = {
        key: [None if cell is None else str(cell) for cell in cells] if key in mixed else cells
        for key, cells in columns.items()
    }
    buffer = io.BytesIO()
    parquet.write_table(pa.table(plain), buffer)
    return buffer.getvalue()


def setting(
    folder: Path, states: bytes, *, declared: TableConfig | None = None, suffix: str = ".csv",
    outcomes: bytes | None = None, burn_in: bytes | None = None,
) -> Setting:  # fmt: skip
    """A pool of these files, fetched and filed, as a study named `mine` sees it."""
    named = {"mine": states, "later": outcomes, "before": burn_in}
    paths = {stem: folder / f"{stem}{suffix}" for stem, data in named.items() if data is not None}
    for stem, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(named[stem] or b"")
    pool = own(paths["mine"], outcomes=paths.get("later"), burn_in=paths.get("before"))
    pools.fetch(pool, folder / "raw")
    filed.features(pool, folder / "raw", folder / "features", workers.HERE)
    return Setting(
        name="mine", config=declared or config(), seed=1, execution=workers.HERE,
        features=folder / "features", burn_in=folder / "features",
    )  # fmt: skip


def own(path: Path, *, outcomes: Path | None = None, burn_in: Path | None = None) -> OwnPool:
    """A pool of kind own."""
    return OwnPool(
        kind="own", watch=str(path), path=str(path), sha256=None,
        outcomes=None if outcomes is None else str(outcomes),
        burn_in=None if burn_in is None else str(burn_in),
    )  # fmt: skip
