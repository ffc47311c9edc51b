"""Where a study's numbers come from: pool, calls, ledger, digests and configuration, as plain rows."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from predictive_credit.canonical import plain
from predictive_credit.ledger import Event
from predictive_credit.records import UnitKind
from predictive_credit.report import words
from predictive_credit.report.tables import Row, Table, dig, mapping, sequence
from predictive_credit.report.view import StudyView

RECORDS = ("states", "explanations")  # of frozen stimuli, each with a digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event of the ledger."""

    index: int
    phase: str
    time_utc: str
    package: str
    revision: str
    hash: str
    previous: str
    digests: str


def pool(view: StudyView) -> tuple[Table, ...]:
    """What the cleaning of the pool counted: one table of counts, one for each mapping of mappings."""
    counts: list[Row] = []
    tables: list[Table] = []
    _walk_pool("", _without_records(view.pool), counts, tables)
    first = Table(
        caption="Cleaning of the pool", columns=("what", "seen"), rows=tuple(counts), text=frozenset({1})
    )
    return (first, *tables) if counts else tuple(tables)


def usage(view: StudyView) -> Table:
    """Tokens, latency and models of all calls."""
    calls = view.usage
    models = mapping(view.freeze, "models")
    latencies = [u.latency_s for u in calls if u.latency_s is not None]
    planned = Counter(u.kind for u in view.plan)
    rows: list[Row] = [
        ("planned units", f"{words.count(len(view.plan))} ({_planned(planned)})"),
        ("forecasts answered", words.count(len(view.answers))),
        ("fallbacks among them", words.count(sum(a.is_fallback for a in view.answers))),
        ("model ids requested", _names(sequence(models, "requested"))),
        ("model ids resolved", _names(sequence(models, "resolved"))),
        ("prompt tokens", _total(u.prompt_tokens for u in calls)),
        ("of those read from cache", _total(u.cached_tokens for u in calls)),
        ("completion tokens", _total(u.completion_tokens for u in calls)),
        (
            "median latency of a call",
            f"{statistics.median(latencies):.2f} s" if latencies else "not reported",
        ),
        ("all calls together", f"{sum(latencies):,.1f} s" if latencies else "not reported"),
    ]
    if costs := [u.cost_usd for u in calls if u.cost_usd is not None]:
        priced = "" if len(costs) == len(calls) else f" for {words.count(len(costs))} of the calls"
        rows.append(("cost", f"{sum(costs):,.4f} USD{priced}"))
    if attempts := [u.attempts for u in calls if u.attempts is not None]:
        again = sum(n > 1 for n in attempts)
        rows.append(("sent more than once, for trouble on the way", words.count(again)))
    if endpoints := sorted({u.endpoint for u in calls if u.endpoint is not None}):
        rows.append(("asked at", _names(endpoints)))
    return Table(caption="Model usage", columns=("what", "seen"), rows=tuple(rows), text=frozenset({1}))


def ledger(view: StudyView) -> tuple[Entry, ...]:
    """The chain of events."""
    return tuple(_entry(event) for event in view.ledger)


def digests(view: StudyView) -> Table:
    """SHA-256 of everything the decision rests on."""
    rule = mapping(view.freeze, "rule")
    rows = [(str(k), str(v)) for k, v in mapping(view.freeze, "digests").items()]
    if rule:
        rows.append((f"rule {dig(rule, 'name')}", str(dig(rule, "sha256"))))
    if (texts := dig(view.freeze, "prompt_texts")) is not None:
        rows.append(("prompt texts", str(texts)))
    return Table(
        caption="Frozen digests (SHA-256)", columns=("file", "digest"), rows=tuple(rows), text=frozenset({1})
    )


def stimuli(view: StudyView) -> Table | None:
    """SHA-256 of everything a control took over, and the head of that study's ledger; None for a study."""
    found = mapping(view.freeze, "stimuli")
    if not found:
        return None
    rows = [(str(k), str(v)) for k, v in mapping(found, "digests").items()]
    rows.append(("head of its ledger", str(found.get("ledger_head"))))
    return Table(
        caption=f"Stimuli taken over from {found.get('study')} (SHA-256)", columns=("file", "digest"),
        rows=tuple(rows), text=frozenset({1}),
    )  # fmt: skip


def params(view: StudyView) -> str:
    """The frozen configuration, as indented JSON."""
    return json.dumps(plain(mapping(view.freeze, "params")), indent=2, ensure_ascii=False)


def _without_records(pool: Mapping[str, Any]) -> Mapping[str, Any]:
    """The counts of a pool; of frozen stimuli how many records there are, not the digest of each."""
    found = mapping(pool, "stimuli")
    if not found:
        return pool
    counted = {k: len(v) for k, v in found.items() if k in RECORDS and isinstance(v, Mapping)}
    kept = {k: v for k, v in found.items() if k not in (*RECORDS, "forecaster", "digests")}
    return {**pool, "stimuli": kept | counted}


def _walk_pool(prefix: str, value: Mapping[str, Any], counts: list[Row], tables: list[Table]) -> None:
    # Single facts first: the file keeps its keys sorted by name.
    for key, item in sorted(value.items(), key=lambda fact: isinstance(fact[1], Mapping)):
        name = f"{prefix}{words.spaced(str(key))}"
        if isinstance(item, Mapping) and item and all(isinstance(v, Mapping) for v in item.values()):
            tables.append(_grid(name, item))
        elif isinstance(item, Mapping):
            _walk_pool(f"{name}: ", item, counts, tables)
        elif isinstance(item, list | tuple):
            counts.append((name, _listed(item)))
        else:
            counts.append((name, _plainly(item)))


def _grid(name: str, nested: Mapping[str, Mapping[str, Any]]) -> Table:
    rows = {label: _flat(row) for label, row in nested.items()}
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    return Table(
        caption=words.title(name),
        columns=("name", *(words.spaced(c) for c in columns)),
        rows=tuple((str(label), *(_cell(row.get(c)) for c in columns)) for label, row in rows.items()),
        text=frozenset(
            at
            for at, column in enumerate(columns, start=1)
            if not all(words.is_number(row.get(column)) for row in rows.values())
        ),
    )


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row whose own mappings stand beside it: `dropped: blank`."""
    flat: dict[str, Any] = {}
    for key, value in row.items():
        if isinstance(value, Mapping) and value:
            flat |= {f"{key}: {inner}": v for inner, v in _flat(value).items()}
        else:
            flat[key] = value
    return flat


def _plainly(value: Any) -> str:
    """A fact of the pool; None there means that nothing was to be said."""
    return "none" if value is None else words.anything(value)


def _cell(value: Any) -> str:
    return _listed(value) if isinstance(value, list | tuple) else _plainly(value)


def _listed(values: Sequence[Any], show: int = 4) -> str:
    if not values:
        return "none"
    first = "; ".join(_item(v) for v in values[:show])
    return first + (f"; and {len(values) - show} more" if len(values) > show else "")


def _item(value: Any) -> str:
    if isinstance(value, Mapping) and value.keys() == {"row", "detail"}:
        return f"{value['row']}: {value['detail']}"
    if isinstance(value, Mapping):
        return ", ".join(f"{words.spaced(str(k))} {words.anything(v)}" for k, v in value.items())
    return words.anything(value)


def _planned(kinds: Mapping[UnitKind, int]) -> str:
    said = {UnitKind.ELICIT: "explanations", UnitKind.EXTRACT: "extractions", UnitKind.FORECAST: "forecasts"}
    return ", ".join(f"{n} {said[kind]}" for kind, n in sorted(kinds.items())) or "none"


def _names(names: Sequence[Any]) -> str:
    return ", ".join(map(str, names)) or "not reported"


def _total(values: Iterable[int | None]) -> str:
    known = [v for v in values if v is not None]
    return words.count(sum(known)) if known else "not reported"


def _entry(event: Event) -> Entry:
    return Entry(
        index=event.index,
        phase=str(event.phase),
        time_utc=event.time_utc,
        package=event.package_version,
        revision=event.git_revision or "outside git",
        hash=event.hash,
        previous=event.previous,
        digests=json.dumps(plain(event.digests), indent=2, ensure_ascii=False),
    )
