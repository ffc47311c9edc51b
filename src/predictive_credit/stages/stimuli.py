"""What a control took over from a study, as its pool tells, and whether it may be asked."""

from __future__ import annotations

from typing import Any

from predictive_credit import config, tables
from predictive_credit.errors import BadConfig
from predictive_credit.forecasters import forecaster
from predictive_credit.stages.paths import Project
from predictive_credit.studies.study import Study


def of(project: Project, params: config.Params, name: str) -> dict[str, Any] | None:
    """What a control took over, for its freeze record; None for a study that reuses nothing."""
    pool = params.studies[name].pool
    if not isinstance(params.pools[pool], config.FrozenPool):
        return None
    return dict(tables.read_json(project.pool_metrics(pool))["stimuli"])


def refuse_same_forecaster(project: Project, params: config.Params, name: str, study: Study) -> None:
    """Raise BadConfig where a control that replicates would ask the study's own forecaster again."""
    reused = of(project, params, name)
    if not study.other_forecaster or reused is None:
        return
    ours, theirs = forecaster.identity(params.forecaster), reused["forecaster"]
    if all(theirs.get(key) == value for key, value in ours.items()):
        raise BadConfig(
            f"{name} replays {reused['study']} under another forecaster, and {params.forecaster.name} is "
            f"the one that was frozen there; give studies.{name}.forecaster another, or another setting"
        )
