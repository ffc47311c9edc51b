"""What a study would ask, counted before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig
from predictive_credit.studies import STUDIES


def print_counts(root: Path, name: str | None, overrides: Sequence[str]) -> int:
    """Print states and units of one study or of all, as configured and at full scale."""
    params = config.parse(compose.compose(root, overrides), origin="conf/")
    if name is not None and name not in params.studies:
        raise BadConfig(f"no study {name!r}; conf/ composes {', '.join(sorted(params.studies))}")
    names = [name] if name is not None else list(params.studies)
    for study in names:
        print(configured(study, params))
    totals = [counts(params.studies[study]) for study in names]
    if len(names) > 1:
        print(f"together: {sum(s for s, _, _ in totals)} states, {sum(c + f for _, c, f in totals):,} units")
    if params.scale != "full":
        for study in names:
            declared = STUDIES[params.studies[study].rule]
            print(f"{study} at full scale: {declared.n_states} states, {declared.n_units:,} units")
    return 0


def counts(study: config.StudyConfig) -> tuple[int, int, int]:
    """States, cards and forecasts of a configured study."""
    endpoints = len(study.endpoints) if study.endpoints is not None else study.n_endpoints
    states = endpoints * len(study.budgets) * len(study.seeds)
    calls = STUDIES[study.rule].calls_per_context
    return states, states, states * len(study.contexts) * calls


def configured(name: str, params: config.Params) -> str:
    """One line: what is multiplied with what."""
    study = params.studies[name]
    states, cards, forecasts = counts(study)
    endpoints = states // (len(study.budgets) * len(study.seeds))
    calls = STUDIES[study.rule].calls_per_context
    return (
        f"{name} ({params.scale}, pool {study.pool}, forecaster {params.forecaster.name}): "
        f"{states} states = {endpoints} endpoints x {len(study.budgets)} label fractions x "
        f"{len(study.seeds)} seeds; {cards + forecasts:,} units = {cards} cards + {forecasts} forecasts "
        f"({len(study.contexts)} contexts x {calls} calls)"
    )
