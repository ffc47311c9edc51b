"""params.yaml with the installed studies' own configuration classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig
from predictive_credit.records import State
from predictive_credit.studies import STUDIES
from predictive_credit.studies.study import Counts


def parse(raw: Any, *, origin: str = "params.yaml") -> config.Params:
    """Plain YAML values as Params. Raises BadConfig naming the first key that is wrong."""
    return config.parse(raw, {name: study.config for name, study in STUDIES.items()}, origin=origin)


def counts(params: config.Params, name: str) -> Counts:
    """Planned units of a configured study; a control's follow from the study that it reuses."""
    chosen = params.studies[name]
    study = STUDIES[chosen.rule]
    if study.count is not None:
        return study.count(chosen, params.pools)
    states, design = _reused(params, chosen.pool)
    n = round(states * study.share)
    of = "" if study.share == 1.0 else f"{study.share:.0%} of "
    forecasts = n * len(chosen.contexts) * study.calls_per_context
    return Counts(states=n, sources=0, extractions=0, forecasts=forecasts, design=of + design)


def _reused(params: config.Params, name: str) -> tuple[int, str]:
    """How many states a frozen pool holds or will hold, and what they are, in words."""
    pool = params.pools[name]
    if not isinstance(pool, config.FrozenPool):
        raise BadConfig(f"pool {name} is of kind {pool.kind}; a control reuses a pool of kind frozen")
    bundle = Path(pool.path) / "states.jsonl"
    if bundle.is_file():
        n = len(tables.read_records(bundle, State))
        return n, f"those of {pool.path}"
    if pool.study not in params.studies:
        raise BadConfig(
            f"pool {name} reuses study {pool.study!r}; neither {pool.path} is a bundle nor is it among the "
            f"studies ({', '.join(params.studies)}); give pools.{name}.path, or that study too"
        )
    of = counts(params, pool.study)
    return of.states, f"those of {pool.study} ({of.design})"


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
