"""The four signals: the outcome exactly, with noise, another seed's, and its sign.

Each is two lines of a card, direction and target, in the words in which a forecast is elicited: what
is asked of the forecaster is to read, not to translate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from scipy.stats import norm

from predictive_credit import wording
from predictive_credit.contexts import NUMERIC_SLOTS, labelled
from predictive_credit.records import Explanation, SlotName, Source, State, Target
from predictive_credit.streams import stream
from predictive_credit.studies.controls.frozen import composed
from predictive_credit.studies.study import Stimuli
from predictive_credit.wording import Stated

Said = Mapping[SlotName, str]

# The noise's standard deviation, as a share of the burn-in's mean absolute outcome: half of what an
# outcome usually is. It says so itself, by the 80 % interval beside the number.
NOISE: Final = 0.5
HALF_WIDTH: Final = float(norm.ppf(0.9))  # of an 80 % interval, in standard deviations


def signals(stimuli: Stimuli) -> tuple[Explanation, ...]:
    """Four explanations a state. An undefined outcome has no signal: every line says so."""
    makers: dict[Source, Callable[[Stimuli, State, Target], Said]] = {
        "exact": exact, "noisy": noisy, "wrong_seed": wrong_seed, "sign": sign,
    }  # fmt: skip
    (target,) = stimuli.targets
    return tuple(
        composed(state.id, source, labelled(NUMERIC_SLOTS, make(stimuli, state, target)))
        for state in stimuli.states
        for source, make in makers.items()
    )


def exact(stimuli: Stimuli, state: State, target: Target) -> Said:
    """Direction and target of the outcome itself, with an interval of no width."""
    return _lines(_outcome(stimuli, state.id, target), 0.0, target)


def noisy(stimuli: Stimuli, state: State, target: Target) -> Said:
    """The outcome and a normal error, with the error's own 80 % interval."""
    outcome, deviation = _outcome(stimuli, state.id, target), noise(stimuli, target)
    error = deviation * stream(stimuli.seed, stimuli.study, "noise", state.id).standard_normal()
    return _lines(None if outcome is None else outcome + error, HALF_WIDTH * deviation, target)


def wrong_seed(stimuli: Stimuli, state: State, target: Target) -> Said:
    """The outcome of the other seed, told as if it were the state's own."""
    return _lines(_outcome(stimuli, stimuli.donors[state.id], target), 0.0, target)


def sign(stimuli: Stimuli, state: State, target: Target) -> Said:
    """The outcome's direction alone."""
    return {k: v for k, v in exact(stimuli, state, target).items() if k == "direction"}


def noise(stimuli: Stimuli, target: Target) -> float:
    """The noise's standard deviation, in the target's unit."""
    return NOISE * stimuli.burn_in.targets[target.name].mean_absolute


def _outcome(stimuli: Stimuli, state_id: str, target: Target) -> float | None:
    return stimuli.outcomes[state_id, target.name].value


def _lines(value: float | None, half_width: float, target: Target) -> Said:
    if value is None:
        return {}
    stated = Stated(point=value, minus=half_width, plus=half_width)
    return {"direction": wording.verb(value), "target": wording.said(stated, target)}
