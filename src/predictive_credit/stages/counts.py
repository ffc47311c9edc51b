"""What a study would ask, counted before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.study import Counts


def print_counts(root: Path, name: str | None, overrides: Sequence[str]) -> int:
    """Print states and units of one study or of all, as configured and at full scale."""
    params = study_params.parse(compose.compose(root, overrides), origin="conf/")
    if name is not None and name not in params.studies:
        raise BadConfig(f"no study {name!r}; conf/ composes {', '.join(sorted(params.studies))}")
    names = [name] if name is not None else list(params.studies)
    found = [counts(params, study) for study in names]
    for study, counted in zip(names, found, strict=True):
        print(configured(study, params, counted))
    if len(names) > 1:
        print(f"together: {sum(c.states for c in found)} states, {sum(c.units for c in found):,} units")
    declared = {study: STUDIES[params.studies[study].rule] for study in names}
    known = {study: rule for study, rule in declared.items() if rule.n_states}  # not a user's own population
    if params.scale != "full" and known:
        for study, rule in known.items():
            print(f"{study} at full scale: {rule.n_states} states, {rule.n_units:,} units")
        if len(known) > 1:
            states, units = (sum(getattr(r, key) for r in known.values()) for key in ("n_states", "n_units"))
            print(f"together at full scale: {states} states, {units:,} units")
    return 0


def counts(params: config.Params, name: str) -> Counts:
    """Planned units of a configured study."""
    return study_params.counts(params, name)


def configured(name: str, params: config.Params, counted: Counts) -> str:
    """One line: what is multiplied with what."""
    study = params.studies[name]
    kinds = {
        "explanations": counted.sources, "extractions": counted.extractions, "forecasts": counted.forecasts,
    }  # fmt: skip
    asked = f"{len(study.contexts)} contexts x {STUDIES[study.rule].calls_per_context} calls"
    return (
        f"{name} ({params.scale}, pool {study.pool}, "
        f"forecaster {config.of_study(params, name).forecaster.name}): "
        f"{counted.states} states = {counted.design}; {counted.units:,} units = "
        f"{' + '.join(f'{n:,} {what}' for what, n in kinds.items() if n)} ({asked})"
    )
