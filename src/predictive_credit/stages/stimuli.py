"""What a control took over from a study, as its pool holds it, and whether it may be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from predictive_credit import canonical, config, tables
from predictive_credit.errors import BadConfig, OutOfOrder, Tampered
from predictive_credit.forecasters import forecaster
from predictive_credit.records import PromptText
from predictive_credit.stages.paths import Project
from predictive_credit.studies.controls import frozen
from predictive_credit.studies.study import Study

# Settings that change no answer: under another name it is the same forecaster.
NAMED = ("name", "threads", "prefix_cache")


def of(project: Project, params: config.Params, name: str) -> dict[str, Any] | None:
    """What a control took over, for its freeze record; None for a study that reuses nothing.

    Raises Tampered if a file of it was changed since.
    """
    pool = params.studies[name].pool
    if not isinstance(params.pools[pool], config.FrozenPool):
        return None
    folder = project.features(pool)
    known = dict(tables.read_json(folder / frozen.STIMULI))
    for file, digest in known["digests"].items():
        if canonical.digest_file(folder / file) != digest:
            raise Tampered(f"{name}: {folder / file} was changed since it was taken over; fetch {pool} again")
    return known


def refuse_other_scale(project: Project, params: config.Params, name: str) -> None:
    """Raise BadConfig where a control would label a study's states with another scale than they have."""
    if (reused := of(project, params, name)) is not None and reused["scale"] != params.scale:
        raise BadConfig(
            f"{name}: the stimuli of {reused['study']} were frozen at scale {reused['scale']}, and this "
            f"run's scale is {params.scale}; give scale={reused['scale']}, or another pool"
        )


def is_same_forecaster(chosen: config.Forecaster, theirs: Mapping[str, Any]) -> bool:
    """Whether a forecaster answers like the one in a freeze record: all settings but its name are equal."""
    ours = {key: value for key, value in forecaster.identity(chosen).items() if key not in NAMED}
    return all(theirs.get(key) == value for key, value in ours.items())


def refuse_same_forecaster(project: Project, params: config.Params, name: str, study: Study) -> None:
    """Raise BadConfig where a control that replicates would ask the study's own forecaster again."""
    reused = of(project, params, name)
    if not study.other_forecaster or reused is None:
        return
    if is_same_forecaster(params.forecaster, reused["forecaster"]):
        raise BadConfig(
            f"{name} replays {reused['study']} under another forecaster, and {params.forecaster.name} is "
            f"the one that was frozen there; give studies.{name}.forecaster another, or another setting"
        )


def refuse_other_words(
    project: Project, params: config.Params, name: str, study: Study, texts: Iterable[PromptText]
) -> None:
    """Raise OutOfOrder where a control that replicates would ask in other words than the study did.

    A forecaster that is asked for another form of answer reads another question; its cards and states are
    held to the study's by their digests alone.
    """
    reused = of(project, params, name)
    if not study.other_forecaster or reused is None:
        return
    if params.forecaster.elicitation != reused["forecaster"]["elicitation"]:
        return
    folder = project.features(params.studies[name].pool)
    asked = {f"{name}/{t.key}": t for t in tables.read_records(folder / "prompts.jsonl", PromptText)}
    for text in texts:
        theirs = asked.get(text.key)
        if theirs is None or (theirs.system, theirs.user) != (text.system, text.user):
            raise OutOfOrder(
                f"{text.key} is not asked in the words in which {reused['study']} was asked, so it would be "
                "no replay; use the version that froze it, or decide it again with this one"
            )
