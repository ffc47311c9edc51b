"""The population of the controlled study: regimes, seeds, and each state's public side.

Nothing here reads a held-out row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig
from predictive_credit.records import Intervention, JsonScalar, Source, State
from predictive_credit.studies import workers
from predictive_credit.studies.controlled.config import ControlledConfig
from predictive_credit.studies.controlled.fitting import Scores, scores
from predictive_credit.studies.controlled.interventions import PARENT, PARENT_TEXT, assigned
from predictive_credit.studies.controlled.regimes import HELD_OUT, REGIMES, Array, Datasets, Sample, chosen

FOLDS = 3
HEAVY = 3.0  # excess kurtosis above which a feature counts as heavy-tailed; a Laplace variable has 3

CONDITIONS: tuple[Source, Source] = ("elicited", "ordinary")


def states(
    config: ControlledConfig, data: Datasets, *, study: str, execution: Execution
) -> tuple[State, ...]:
    """Every state of the study, sorted by id (`study/regime/seed`).

    A regime's interventions go by its place among all six, and a seed's intervention and condition
    by its place in the configured list: so the states of fewer regimes, or of the first seeds, are
    among those of more. Raises BadConfig for a regime nobody wrote.
    """
    places = {name: place for place, name in enumerate(REGIMES)}
    cells = [
        (regime, seed, assigned(places[regime], j), condition(j))
        for regime in chosen(config)
        for j, seed in enumerate(config.seeds)
    ]
    samples = [data[regime, str(seed)].train for regime, seed, _, _ in cells]
    levels = workers.run(cross_validated, samples, execution, title="states")
    made = [
        _state(study, regime, seed, source, intervention, _facts(sample, level))
        for (regime, seed, intervention, source), sample, level in zip(cells, samples, levels, strict=True)
    ]
    return tuple(sorted(made, key=lambda state: state.id))


def condition(seed_index: int) -> Source:
    """Which explanation a state gets: elicited for the first, third, ... seed of the list, else ordinary."""
    return CONDITIONS[seed_index % 2]


def donors(states: Sequence[State], config: ControlledConfig) -> dict[str, str]:
    """Each state's donor: the next seed, cyclically, of its regime and condition with another intervention.

    Donor ids by state id, sorted. Seeds stand in the configured order. Raises BadConfig for a state
    that finds none.
    """
    place = {str(seed): j for j, seed in enumerate(config.seeds)}
    circles: dict[tuple[str, Source], list[State]] = defaultdict(list)
    for state in sorted(states, key=lambda state: place[state.cluster[1]]):
        circles[state.task, state.sources[0]].append(state)
    found = {s.id: _donor(circle, j) for circle in circles.values() for j, s in enumerate(circle)}
    return dict(sorted(found.items()))


def cross_validated(sample: Sample) -> Scores | None:
    """The parent's mean accuracy (percent) and log loss (nats) over three stratified folds of training rows.

    None where a class has fewer than three rows, for some fold would lack it.
    """
    from sklearn.model_selection import StratifiedKFold

    if min((sample.labels == 0).sum(), (sample.labels == 1).sum()) < FOLDS:
        return None
    found = [
        scores(PARENT, _rows(sample, train), _rows(sample, test))
        for train, test in StratifiedKFold(FOLDS).split(sample.labels, sample.labels)
    ]
    return Scores(*(float(np.mean(one)) for one in zip(*found, strict=True)))


def n_heavy_tailed(inputs: Array) -> int:
    """How many features of (row, feature) have heavy tails, by their excess kurtosis."""
    from scipy.stats import kurtosis

    return int((kurtosis(inputs, axis=0) > HEAVY).sum())


def _donor(circle: Sequence[State], at: int) -> str:
    state = circle[at]
    for other in (*circle[at + 1 :], *circle[:at]):
        if other.intervention.name != state.intervention.name:
            return other.id
    raise BadConfig(
        f"{state.id} is {state.sources[0]}, and no other such state of {state.task} has another intervention "
        "to lend an explanation of; give the study four seeds or more, or leave context S out"
    )


def _rows(sample: Sample, rows: NDArray[np.int64]) -> Sample:
    return Sample(inputs=sample.inputs[rows], labels=sample.labels[rows])


def _facts(sample: Sample, level: Scores | None) -> dict[str, JsonScalar]:
    """Public facts, rounded so that a last bit cannot change a prompt."""
    return {
        "n_train": len(sample.labels),
        "n_features": sample.inputs.shape[1],
        "n_heavy_tailed": n_heavy_tailed(sample.inputs),
        "positive_percent": round(100.0 * float(sample.labels.mean()), 1),
        "cv_accuracy": None if level is None else round(level.accuracy_pp, 1),  # percent
        "cv_log_loss": None if level is None else round(level.log_loss, 3),  # nats
        "n_held_out": HELD_OUT,
    }


def _state(
    study: str, regime: str, seed: int, source: Source, intervention: Intervention,
    facts: dict[str, JsonScalar],
) -> State:  # fmt: skip
    return State(
        id=f"{study}/{regime}/{seed}",
        study=study,
        task=regime,
        cluster=(regime, str(seed)),
        seed=seed,
        sources=(source,),
        description=_description(REGIMES[regime].phrase, intervention, facts),
        facts=facts,
        intervention=intervention,
    )


def _description(phrase: str, intervention: Intervention, facts: Mapping[str, JsonScalar]) -> str:
    """Plain sentences, about a hundred words. It names levels and never the size of a change.

    Small models copy a number that they are shown, and drift would vanish under every context.
    """
    level = (
        "Cross-validated levels are not available, because one class has too few training rows."
        if facts["cv_accuracy"] is None
        else f"In three-fold cross-validation its accuracy is {facts['cv_accuracy']:.1f} % "
        f"and its log loss {facts['cv_log_loss']:.3f} nats."
    )
    return (
        f"A synthetic binary classification task has {phrase}. The parent model is {PARENT_TEXT}. "
        f"It is trained on {facts['n_train']} rows ({facts['positive_percent']:.1f} % positive) with "
        f"{facts['n_features']} features, {facts['n_heavy_tailed']} of them heavy-tailed. "
        f"{level} Planned change: {intervention.text} Everything else stays as it is. "
        f"Both models are fitted on the same rows and scored on the same {facts['n_held_out']:,} held-out "
        "rows. Measured are the changes, changed model minus parent, in held-out accuracy (higher is better) "
        "and log loss (lower is better)."
    )
