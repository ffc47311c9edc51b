"""A pool's raw files as one clean table of molecules, and a count of everything that was not clean.

Nothing is dropped or merged in silence: each case is a finding with its row, and `quality` counts
them. A missing label stays missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from predictive_credit.config import CsvPool, Execution, MoleculeAcePool, MolNetPool, Pool
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.sources import pools
from predictive_credit.studies import workers
from predictive_credit.studies.molecular import molecules, rawtable
from predictive_credit.studies.molecular.molecules import Parsed
from predictive_credit.studies.molecular.rawtable import Finding, RawTable

Array = NDArray[np.float64]
BLOCK = 2000  # molecules a job: long against a job's overhead, short enough to share out
SHOWN = 10  # findings of one kind that `quality` lists; findings.csv holds them all

DROPS = ("ragged", "blank", "unparsable", "zero_atom")  # kinds of finding whose row is left out
KEPT = ("trailing_text", "multi_fragment", "duplicate", "conflict")  # kinds that are only counted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """Molecules and their labels, in the order of first appearance.

    `labels` has one row a molecule (index: `row_ids`) and one column an endpoint, holding 0.0, 1.0
    and NaN for missing. Endpoint names are escaped so that they can stand in an id.
    """

    row_ids: tuple[str, ...]
    smiles: tuple[str, ...]  # first token, as first written: known to parse
    canonical: tuple[str, ...]  # RDKit's name of the molecule; no two are equal
    labels: pd.DataFrame
    meaning: str  # what label 1 says, as a public sentence
    findings: tuple[Finding, ...]
    quality: Mapping[str, Any]  # plain JSON values

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The endpoints' names, in the table's order."""
        return tuple(map(str, self.labels.columns))

    def label(self, endpoint: str) -> Array:
        """The labels of one endpoint, shape (molecule,)."""
        return self.labels[endpoint].to_numpy(dtype=float)


def read(pool: Pool, raw: Path, execution: Execution = workers.HERE) -> Table:
    """Read a fetched pool from the directory `raw` into a clean table.

    Raises OutOfOrder before the fetch and BadSource, in one sentence with the remedy, for a table
    that cannot be used: changed since it was fetched, no rows, no molecule left, no SMILES column,
    or an asked endpoint that is absent or holds something other than 0, 1 or missing.
    """
    names = sorted(pools.read_source(raw)["files"])
    match pool:
        case MoleculeAcePool():
            table = rawtable.moleculeace(pool, [raw / name for name in names])
        case MolNetPool() | CsvPool():
            table = rawtable.csv_table(pool, raw / names[0])
        case _:
            raise BadConfig(
                f"the molecular study reads molecules (moleculeace, molnet, csv); a {pool.kind} pool has none"
            )
    return clean(table, execution)


def clean(raw: RawTable, execution: Execution = workers.HERE) -> Table:
    """Parse, drop what is no molecule, merge duplicates; pure but for the work units.

    Duplicates are rows of one canonical SMILES. Their labels are united; where two rows disagree
    that label becomes missing and is counted as a conflict, for no rule could know which is right.
    Molecules of several fragments (salts, mixtures) are kept as written.
    """
    tokens = [(text.split() or [""])[0] for text in raw.smiles]
    parsed = _parsed(tokens, execution)
    findings = [*raw.dropped, *_row_findings(raw, tokens, parsed)]
    kept = [index for index, token in enumerate(tokens) if parsed[token].canonical is not None]
    if not kept:
        first = f"row {findings[0].row}: {findings[0].detail}"
        raise BadSource(f"no molecule is left of {len(tokens)} rows ({first}); correct the SMILES column")
    firsts, groups = _grouped([str(parsed[tokens[index]].canonical) for index in kept])
    first_rows = [kept[first] for first in firsts]
    labels, conflicts = _united(raw.labels[kept], groups, len(firsts))
    endpoints = [escaped(name) for name in raw.endpoints]
    row_ids = [raw.rows[index] for index in first_rows]
    findings += _merged_findings(raw, kept, groups, row_ids)
    findings += [Finding(row_ids[i], "conflict", endpoints[j]) for i, j in np.argwhere(conflicts)]
    frame = pd.DataFrame(labels, index=row_ids, columns=endpoints)
    return Table(
        row_ids=tuple(row_ids),
        smiles=tuple(tokens[index] for index in first_rows),
        canonical=tuple(str(parsed[tokens[index]].canonical) for index in first_rows),
        labels=frame,
        meaning=raw.meaning,
        findings=tuple(findings),
        quality=_quality(raw, frame, findings),
    )


def escaped(name: str) -> str:
    """An endpoint's name with `/`, `%` and control characters percent-encoded: ids are paths."""
    return "".join(quote(c, safe="") if c in "/%" or not c.isprintable() else c for c in name)


def _parsed(tokens: Sequence[str], execution: Execution) -> dict[str, Parsed]:
    """Each distinct token parsed once. A blank cell is its own trouble."""
    distinct = [token for token in dict.fromkeys(tokens) if token]
    blocks = [tuple(distinct[start : start + BLOCK]) for start in range(0, len(distinct), BLOCK)]
    results = workers.run(molecules.parse_block, blocks, execution, title="parse")
    parsed = dict(zip(distinct, (one for block in results for one in block), strict=True))
    parsed[""] = Parsed(canonical=None, n_fragments=0, trouble="blank", detail="no SMILES")
    return parsed


def _row_findings(raw: RawTable, tokens: Sequence[str], parsed: Mapping[str, Parsed]) -> list[Finding]:
    found = []
    for row, text, token in zip(raw.rows, raw.smiles, tokens, strict=True):
        one = parsed[token]
        if one.trouble is not None:
            found.append(Finding(row, one.trouble, f"{token}: {one.detail}" if token else one.detail))
            continue
        if text != token:
            found.append(Finding(row, "trailing_text", text.removeprefix(token).strip()))
        if one.n_fragments > 1:
            found.append(Finding(row, "multi_fragment", f"{one.n_fragments} fragments"))
    return found


def _grouped(names: Sequence[str]) -> tuple[list[int], NDArray[np.int64]]:
    """Positions of each name's first appearance, and every row's group number, shape (row,)."""
    numbers: dict[str, int] = {}
    firsts = []
    groups = np.empty(len(names), dtype=np.int64)
    for index, name in enumerate(names):
        if name not in numbers:
            numbers[name] = len(numbers)
            firsts.append(index)
        groups[index] = numbers[name]
    return firsts, groups


def _united(labels: Array, groups: NDArray[np.int64], n_groups: int) -> tuple[Array, NDArray[np.bool_]]:
    """Labels (row, endpoint) united by group, and where a group's rows disagree; both (group, endpoint)."""
    lowest = np.full((n_groups, labels.shape[1]), np.nan)
    highest = lowest.copy()
    np.fmin.at(lowest, groups, labels)
    np.fmax.at(highest, groups, labels)
    conflicts = lowest < highest
    return np.where(conflicts, np.nan, lowest), conflicts


def _merged_findings(
    raw: RawTable, kept: Sequence[int], groups: NDArray[np.int64], row_ids: Sequence[str]
) -> list[Finding]:
    named = [(raw.rows[index], row_ids[group]) for index, group in zip(kept, groups, strict=True)]
    return [Finding(row, "duplicate", f"same molecule as {first}") for row, first in named if row != first]


def _quality(raw: RawTable, labels: pd.DataFrame, findings: Sequence[Finding]) -> dict[str, Any]:
    kinds = Counter(finding.kind for finding in findings)
    endpoints = {str(name): _label_counts(labels[name].to_numpy(dtype=float)) for name in labels.columns}
    single = [name for name, n in endpoints.items() if n["active"] in (0, n["labelled"])]
    return {
        "rows_read": len(raw.rows) + len(raw.dropped),
        "molecules": len(labels),
        "dropped": {kind: kinds[kind] for kind in DROPS},
        "counted": {kind: kinds[kind] for kind in KEPT},
        "first": {kind: _shown(findings, kind) for kind in (*DROPS, *KEPT) if kinds[kind]},
        "endpoints": endpoints,
        "single_class_endpoints": single,
        "ignored_columns": dict(raw.ignored_columns),
        "escaped_endpoints": {escaped(name): name for name in raw.endpoints if escaped(name) != name},
        "meaning": raw.meaning,
        "rdkit": molecules.RDKIT_VERSION,
    }


def _label_counts(labels: Array) -> dict[str, int]:
    missing = int(np.isnan(labels).sum())
    return {"labelled": len(labels) - missing, "active": int(np.nansum(labels)), "missing": missing}


def _shown(findings: Sequence[Finding], kind: str) -> list[dict[str, str]]:
    of_kind = [finding for finding in findings if finding.kind == kind]
    return [{"row": finding.row, "detail": finding.detail} for finding in of_kind[:SHOWN]]
