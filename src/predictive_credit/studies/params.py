"""params.yaml with the installed studies' own configuration classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig
from predictive_credit.records import State
from predictive_credit.studies import STUDIES
from predictive_credit.studies.study import Counts, Study


def parse(raw: Any, *, origin: str = "params.yaml") -> config.Params:
    """Plain YAML values as Params. Raises BadConfig naming the first key that is wrong."""
    return config.parse(raw, {name: study.config for name, study in STUDIES.items()}, origin=origin)


def counts(params: config.Params, name: str) -> Counts:
    """Planned units of a configured study; a control's follow from the study that it reuses."""
    chosen = params.studies[name]
    study = STUDIES[chosen.rule]
    if study.count is not None:
        return study.count(chosen, params.pools)
    n, design = _reused(params, chosen.pool, study)
    forecasts = n * len(chosen.contexts) * study.calls_per_context
    return Counts(states=n, sources=0, extractions=0, forecasts=forecasts, design=design)


def _reused(params: config.Params, name: str, study: Study) -> tuple[int, str]:
    """How many states a control takes from a frozen pool, now or later, and what they are, in words."""
    pool = params.pools[name]
    if not isinstance(pool, config.FrozenPool):
        raise BadConfig(f"pool {name} is of kind {pool.kind}; a control reuses a pool of kind frozen")
    which = f"the {study.of_source} ones" if study.of_source else "those"
    folder = Path(pool.path)
    places = (folder / "states.jsonl", folder / "data" / pool.study / "states.jsonl")
    held = next((place for place in places if place.is_file()), None)
    if pool.study in params.studies and not places[0].is_file():
        if STUDIES[params.studies[pool.study].rule].timing != "prospective":
            raise BadConfig(f"pool {name} reuses {pool.study}, which is a control itself; give it a study")
        of = counts(params, pool.study)
        return round(of.states * study.share), f"{which} of {pool.study} ({of.design})"
    if held is None:
        raise BadConfig(
            f"pool {name} reuses study {pool.study!r}; neither {pool.path} is a bundle nor is it among the "
            f"studies ({', '.join(params.studies)}); give pools.{name}.path, or that study too"
        )
    found = [s for s in tables.read_records(held, State) if study.of_source in (None, *s.sources)]
    return len(found), f"{which} of {pool.path}"


def load(path: Path) -> config.Params:
    """Read params.yaml. Raises BadConfig if it is absent, not YAML, or not ours."""
    try:
        raw = config.read(path)
    except FileNotFoundError:
        raise BadConfig(
            f"{path} does not exist; run from the project's root, "
            "or compose it with `predictive-credit params --write`"
        ) from None
    return parse(raw, origin=str(path))
