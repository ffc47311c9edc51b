"""Which agent solved which task: a user's CSV or lists of resolved tasks, read whole or refused.

Three forms are read:

* a CSV with the header `agent,<task>,<task>,...`, one row an agent, every cell 0 or 1;
* a folder of reports, one an agent: `<agent>.json`, `<agent>/results.json` or
  `<agent>/results/results.json`, as the harness of SWE-bench and its record of experiments write them;
* one JSON object `{agent: report}`, where a report may also be just the list of resolved tasks.

A task that an agent did not attempt counts as not solved and stays in the denominator. What counts is
the list of all tasks: a union of resolved tasks alone would make every task solvable and the blind spot
0 by construction, so it is refused without a file of tasks.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from predictive_credit import canonical
from predictive_credit.errors import BadSource

Solved = NDArray[np.bool_]

MIN_AGENTS = 2  # of any matrix: one agent has no dependence to learn from
MIN_TASKS = 2
VALUES = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}
RESOLVED = ("resolved_ids", "resolved")
# Any of these next to the resolved tasks says which tasks there were.
ATTEMPTED = ("submitted_ids", "unresolved_ids", "unresolved", "generated")
OTHER = ("completed_ids", "incomplete_ids", "empty_patch_ids", "error_ids", "no_generation")
FIX_LIST = "give the full list of tasks in a file with --tasks"


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """A population of agents on a set of tasks.

    solved: (M, N) bool, row j is `agents[j]`, column t is `tasks[t]`. sha256: of the CSV or JSON, and
    of the reports' own digests for a folder.
    """

    name: str
    agents: tuple[str, ...]
    tasks: tuple[str, ...]
    solved: Solved
    sha256: str

    @property
    def rates(self) -> NDArray[np.float64]:
        """The share of tasks that each agent solves, (M,)."""
        rates: NDArray[np.float64] = self.solved.mean(axis=1)
        return rates

    @property
    def covered(self) -> float:
        """C(M): the share of tasks that at least one agent solves."""
        return float(self.solved.any(axis=0).mean())

    def of(self, rows: Sequence[int]) -> Matrix:
        """The same tasks for some of the agents, in the order of `rows`."""
        return Matrix(
            name=self.name,
            agents=tuple(self.agents[j] for j in rows),
            tasks=self.tasks,
            solved=self.solved[list(rows)],
            sha256=self.sha256,
        )


@dataclass(frozen=True, slots=True)
class _Report:
    """What one agent's report says: the tasks it resolved, and those it names besides."""

    resolved: tuple[str, ...]
    named: tuple[str, ...]
    total: int | None
    lists_attempts: bool


def read(path: Path, tasks: Path | None = None) -> Matrix:
    """The matrix of a CSV, a JSON file or a folder of reports.

    tasks: a file with the full list of tasks, one a line or a JSON list; only reports need it. Raises
    BadSource, naming the line, agent or task, for whatever is not a complete matrix of 0 and 1.
    """
    if path.is_dir():
        reports, digest = _folder(path)
        return _from_reports(path.name, reports, digest, tasks)
    data = _bytes(path)
    digest = canonical.digest_bytes(data)
    if path.suffix.lower() == ".json":
        return _from_reports(path.stem, _reports(data, path.name), digest, tasks)
    if tasks is not None:
        raise BadSource(f"{path.name} has its tasks in its header; leave --tasks out")
    return parse_csv(data, path.name, digest)


def parse_csv(data: bytes, name: str, sha256: str | None = None) -> Matrix:
    """The matrix of a CSV's bytes; see `read`."""
    lines = _lines(_text(data, name), name)
    if not lines:
        raise BadSource(f"{name} is empty; give a header `agent,<task>,...` and a row for each agent")
    header = [cell.strip() for cell in lines[0][1]]
    if header[:1] in (["0"], ["1"]):
        raise BadSource(f"{name} has no header; begin it with `agent,<task>,...` and each row with its agent")
    tasks = _distinct(header[1:], "task", f"the header of {name}")
    agents, rows = [], []
    for number, cells in lines[1:]:
        agents.append(cells[0].strip())
        rows.append(_row(cells, tasks, f"{name} line {number}"))
    _distinct(agents, "agent", f"the first column of {name}")
    return _checked(
        name=Path(name).stem, agents=tuple(agents), tasks=tasks,
        solved=np.array(rows, dtype=bool).reshape(len(agents), len(tasks)),
        sha256=sha256 or canonical.digest_bytes(data),
    )  # fmt: skip


def _row(cells: Sequence[str], tasks: Sequence[str], where: str) -> list[bool]:
    agent = cells[0].strip()
    if not agent:
        raise BadSource(f"{where} names no agent; fill the first column")
    if len(cells) != len(tasks) + 1:
        raise BadSource(
            f"{where} (agent {agent!r}) has {len(cells)} cells where the header has {len(tasks) + 1}; "
            "give every agent a cell for every task"
        )
    row = []
    for task, cell in zip(tasks, cells[1:], strict=True):
        value = VALUES.get(cell.strip().lower())
        if value is None:
            seen = f"{cell.strip()!r}" if cell.strip() else "no value"
            raise BadSource(
                f"{where} has {seen} for agent {agent!r} on task {task!r}; write 1 for solved, 0 for not"
            )
        row.append(value)
    return row


def _lines(text: str, name: str) -> list[tuple[int, list[str]]]:
    """Rows with anything in them and the numbers of their lines."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise BadSource(f"{name} line {reader.line_num} is not CSV ({error}); correct it") from None


def _folder(path: Path) -> tuple[dict[str, _Report], str]:
    """The reports of a folder by agent, in the order of the agents' names, and their common digest."""
    files = [(p.stem, p) for p in path.glob("*.json")]
    for inner in ("results.json", "results/results.json"):
        files += [(p.relative_to(path).parts[0], p) for p in path.glob(f"*/{inner}")]
    if not files:
        raise BadSource(f"{path} holds no report; expected <agent>.json or <agent>/results.json")
    _distinct([agent for agent, _ in files], "agent", f"the folder {path.name}")
    reports, digests = {}, {}
    for agent, file in sorted(files):
        data = _bytes(file)
        reports[agent] = _report(_json(data, file.name), f"{file.relative_to(path)} (agent {agent!r})")
        digests[agent] = canonical.digest_bytes(data)
    return reports, canonical.digest(digests)


def _reports(data: bytes, name: str) -> dict[str, _Report]:
    """The reports of one JSON object, by agent."""
    found = _json(data, name)
    if not isinstance(found, Mapping):
        raise BadSource(f"{name} is not an object {{agent: resolved tasks}}; give one or a folder of reports")
    return {agent: _report(value, f"{name} agent {agent!r}") for agent, value in found.items()}


def _report(value: Any, where: str) -> _Report:
    if isinstance(value, list):
        value = {"resolved": value}
    if not isinstance(value, Mapping):
        raise BadSource(f"{where} is not a report; it needs a list of resolved tasks")
    key = next((key for key in RESOLVED if key in value), None)
    if key is None:
        raise BadSource(f"{where} has no list {' or '.join(RESOLVED)}; add one")
    lists = {k: _ids(value[k], k, where) for k in (key, *ATTEMPTED, *OTHER) if k in value}
    total = value.get("total_instances")
    return _Report(
        resolved=_distinct(lists[key], "task", f"{key} of {where}"),
        named=tuple(dict.fromkeys(task for ids in lists.values() for task in ids)),
        total=total if isinstance(total, int) else None,
        lists_attempts=any(k in lists for k in ATTEMPTED),
    )


def _ids(value: Any, key: str, where: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise BadSource(f"{key} of {where} is not a list of task names; correct it")
    return value


def _from_reports(name: str, reports: Mapping[str, _Report], digest: str, tasks: Path | None) -> Matrix:
    if not reports:
        raise BadSource(f"{name} is empty; give a report for each agent")
    known = _task_list(tasks) if tasks is not None else _named(name, reports)
    place = {task: at for at, task in enumerate(known)}
    solved = np.zeros((len(reports), len(known)), dtype=bool)
    for row, (agent, report) in enumerate(reports.items()):
        for task in report.resolved:
            if task not in place:
                raise BadSource(f"agent {agent!r} resolved {task!r}, which the list of tasks lacks; add it")
            solved[row, place[task]] = True
    return _checked(name=name, agents=tuple(reports), tasks=known, solved=solved, sha256=digest)


def _named(name: str, reports: Mapping[str, _Report]) -> tuple[str, ...]:
    """All tasks that the reports name, sorted; refused where they cannot be all there were."""
    if not any(report.lists_attempts for report in reports.values()):
        raise BadSource(
            f"{name} lists resolved tasks only, so the tasks that nobody solved are unknown; {FIX_LIST}"
        )
    named = {task for report in reports.values() for task in report.named}
    total = max((report.total or 0 for report in reports.values()), default=0)
    if total > len(named):
        raise BadSource(f"{name} names {len(named)} of {total} tasks; {FIX_LIST}")
    return tuple(sorted(named))


def _task_list(path: Path) -> tuple[str, ...]:
    data = _bytes(path)
    if path.suffix.lower() == ".json":
        found = _ids(_json(data, path.name), "the list", path.name)
    else:
        found = [line.strip() for line in _text(data, path.name).splitlines() if line.strip()]
    return _distinct(found, "task", path.name)


def _checked(**parts: Any) -> Matrix:
    """The matrix, unless it is too small or nobody solves anything."""
    matrix = Matrix(**parts)
    for have, least, what in (
        (len(matrix.agents), MIN_AGENTS, "agents"), (len(matrix.tasks), MIN_TASKS, "tasks"),
    ):  # fmt: skip
        if have < least:
            raise BadSource(f"{matrix.name} has {have} {what}; a forecast needs at least {least}")
    if not matrix.solved.any():
        raise BadSource(f"no agent of {matrix.name} solves any task; there is nothing to forecast from")
    return matrix


def _distinct(names: Iterable[str], what: str, where: str) -> tuple[str, ...]:
    found = tuple(names)
    for name, times in Counter(found).items():
        if not name:
            raise BadSource(f"{where} has an empty {what} name; name it")
        if times > 1:
            raise BadSource(f"{where} has the {what} {name!r} {times} times; keep one")
    return found


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadSource(f"{path} cannot be read ({error.strerror}); correct the path") from None
    if not data.strip():
        raise BadSource(f"{path.name} is empty; give a matrix of agents and tasks")
    return data


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadSource(f"{name} line {line} is not UTF-8; save the file as UTF-8") from None


def _json(data: bytes, name: str) -> Any:
    def no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _distinct([key for key, _ in pairs], "key", name)
        return dict(pairs)

    try:
        return json.loads(_text(data, name), object_pairs_hook=no_duplicates)
    except (json.JSONDecodeError, RecursionError) as error:
        raise BadSource(f"{name} is not JSON ({error}); correct it") from None
