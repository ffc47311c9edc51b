"""The donor gradient: credit as a curve over how much of a card is somebody else's.

The elicited states of the controlled study, whose donor has another intervention. From the matched
card one slot after the other becomes the donor's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from predictive_credit.config import ControlConfig
from predictive_credit.contexts import Showing
from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision
from predictive_credit.panel import Panel
from predictive_credit.records import Context, Source
from predictive_credit.studies.controlled import CONTROLLED
from predictive_credit.studies.controls import exploratory, frozen
from predictive_credit.studies.controls.gradient.steps import STEPS, steps
from predictive_credit.studies.study import Findings, Study

PATH = (Context.MATCHED, *(Context(step) for step in STEPS), Context.DONOR)
SOURCE: Source = "elicited"
_STATES = frozen.states("controlled", source=SOURCE)


def decide(study: str, findings: Findings) -> Decision:
    """Nothing is decided."""
    return exploratory.decide(study)


def shows(
    panels: Mapping[str, Panel], contrasts: Mapping[str, Mapping[str, Mapping[str, Contrast]]]
) -> dict[str, Any]:
    """By target: the point-error gain over the description at each distance, with its interval."""
    curve: dict[str, Any] = {}
    for target, measures in contrasts.items():
        found = measures["point_error"]
        keys = ("mean", "lower", "upper", "t_lower", "t_upper")
        curve[target] = {
            str(distance): {"context": str(c)} | {key: getattr(found[f"D-{c}"], key) for key in keys}
            for distance, c in enumerate(PATH)
            if f"D-{c}" in found
        }
    return curve


GRADIENT = Study(
    name="gradient",
    timing="post-outcome",
    n_tasks=6,
    n_states=60,
    n_units=960,  # 60 elicited states x 8 contexts x 2 calls
    task_words=CONTROLLED.task_words,
    targets=CONTROLLED.targets,
    levels=CONTROLLED.levels,
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source="elicited", donor=False, form="card"),
        **{Context(step): Showing(source=step, donor=False, form="text") for step in STEPS},
        Context.DONOR: Showing(source="elicited", donor=True, form="card"),
    },
    calls_per_context=frozen.CALLS,
    extracted=(),
    primary_loss="point_error",
    one_sided_level=exploratory.LEVEL,
    rule=exploratory,
    explores=True,
    decide=decide,
    textbook=None,
    config=ControlConfig,
    features=frozen.features,
    count=None,
    of_source=SOURCE,
    share=0.5,  # every other state of the controlled study has an elicited card
    states=_STATES,
    burn_in=frozen.burn_in,
    execute=frozen.execute,
    donors=frozen.donors,
    given=frozen.given(_STATES, CONTROLLED.targets, sources=(SOURCE,), compose=steps),
    pairs=tuple((Context.DESCRIPTION, context) for context in PATH[1:]),
    reuses="controlled",
    composed=steps,
    shows=shows,
)
