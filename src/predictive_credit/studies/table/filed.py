"""A pool's raw files as checked sheets in its features folder, and back.

What a column means is the study's to say, so here only files are checked: that they can be read,
row by row, under one header. Several studies may then read one pool in different ways.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predictive_credit import tables
from predictive_credit.config import Execution, OwnPool, Pool
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder
from predictive_credit.sources.pools import read_source
from predictive_credit.studies.table import sheets
from predictive_credit.studies.table.sheets import Record, Sheet

INDEX = "sheets.json"


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """File every sheet of a fetched pool as JSON lines; equal tables give equal bytes.

    A line is a row: `{"where": "line 4", "cells": {...}}`. Returns what sheets.json holds: for each of
    states, outcomes and burn_in that is there its `name`, `rows`, `blank` rows left out, `columns` in
    their order, and how many cells of each are `filled`. Raises BadSource for a file that cannot be read.
    """
    read_source(raw)
    # Only the names are filed: where a user keeps files is nobody's business.
    parts = {part: read_raw(raw, part, Path(path).name) for part, path in files(pool).items()}
    found = {part: sheet for part, sheet in parts.items() if sheet is not None}
    if "states" not in found:
        raise BadSource(f"{raw} holds no states file; run the fetch stage again")
    for part, sheet in found.items():
        lines = ({"where": record.where, "cells": record.cells} for record in sheet.records)
        tables.write_bytes(folder / f"{part}.jsonl", tables.encode_lines(lines))
    index = {part: _counts(sheet) for part, sheet in found.items()}
    tables.write_json(folder / INDEX, index)
    return {"rows": index["states"]["rows"], "files": index}


def files(pool: Pool) -> dict[str, str]:
    """The paths of a pool's files, by part. Raises BadConfig for a pool of another kind."""
    if not isinstance(pool, OwnPool):
        raise BadConfig(
            f"the table study reads a pool of kind own, not {pool.kind}; set the study's pool to one"
        )
    named = {"states": pool.path, "outcomes": pool.outcomes, "burn_in": pool.burn_in}
    return {part: path for part, path in named.items() if path is not None}


def read_raw(raw: Path, part: str, name: str) -> Sheet | None:
    """The sheet `part`, whatever ending it was fetched with; None for outcomes that are to come.

    Raises BadSource for two files of one part.
    """
    there = sorted(path for path in raw.glob(f"{part}.*") if path.name.lower().endswith(sheets.SUFFIXES))
    if len(there) > 1:
        raise BadSource(f"{raw} holds {there[0].name} and {there[1].name}; run the fetch stage again")
    return sheets.read(there[0], name) if there else None


def load(folder: Path, part: str) -> Sheet | None:
    """A sheet as it was filed, None if the pool has no such part. Raises OutOfOrder before it was filed."""
    if not (folder / INDEX).exists():
        raise OutOfOrder(f"{folder / INDEX} does not exist yet; run the features stage, or `dvc repro`")
    index = tables.read_json(folder / INDEX).get(part)
    if index is None:
        return None
    lines = tables.read_bytes(folder / f"{part}.jsonl").decode().split("\n")[:-1]
    rows = [tables.parse_json(line.encode(), f"{part}.jsonl") for line in lines]
    return Sheet(
        name=index["name"], columns=tuple(index["columns"]), blank=index["blank"],
        records=tuple(Record(row["where"], row["cells"]) for row in rows),
    )  # fmt: skip


def states(folder: Path) -> Sheet:
    """The sheet of states as it was filed."""
    sheet = load(folder, "states")
    if sheet is None:
        raise OutOfOrder(f"{folder} holds no states; run the features stage again")
    return sheet


def _counts(sheet: Sheet) -> dict[str, Any]:
    filled = {
        column: sum(not sheets.is_blank(record.cells.get(column)) for record in sheet.records)
        for column in sheet.columns
    }
    return {
        "name": sheet.name, "rows": len(sheet.records), "blank": sheet.blank, "columns": list(sheet.columns),
        "filled": filled,
    }  # fmt: skip
