"""The mechanism control's stages: from generated pairs of tasks to sealed outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from predictive_credit import tables
from predictive_credit.config import Execution, Pool
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Explanation, JsonScalar, Outcome, State
from predictive_credit.studies import workers
from predictive_credit.studies.burn_in import summary
from predictive_credit.studies.controlled.interventions import ACCURACY, PARENT_TEXT
from predictive_credit.studies.controlled.regimes import HELD_OUT
from predictive_credit.studies.controlled.states import cross_validated
from predictive_credit.studies.controls.mechanism.config import MechanismConfig
from predictive_credit.studies.controls.mechanism.notes import notes
from predictive_credit.studies.controls.mechanism.tasks import (
    KINDS,
    QUADRATIC,
    Kind,
    dataset,
    executed,
    trial,
)
from predictive_credit.studies.study import Counts, Donors, Setting, Stimuli

CALLS = 2
BURN_IN_PAIRS = range(1001, 1011)  # reserved: fallbacks and priors learn from them, the control has none


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """Nothing is fetched or encoded."""
    if pool.kind != "regimes":
        raise BadConfig(
            f"the mechanism control generates its own tasks and cannot use a pool of kind {pool.kind}; "
            "give it a pool of kind regimes"
        )
    known = {"kinds": list(KINDS), "held_out_rows": HELD_OUT, "burn_in_pairs": len(BURN_IN_PAIRS)}
    tables.write_json(folder / "pairs.json", known)
    return known | {"said": "pairs of tasks, generated where they are needed; nothing is fetched"}


def count(config: MechanismConfig, pools: Mapping[str, Pool]) -> Counts:
    """States and units of a configuration."""
    refuse_reserved(config)
    states = config.pairs * len(KINDS)
    return Counts(
        states=states, sources=0, extractions=0, forecasts=states * len(config.contexts) * CALLS,
        design=f"{config.pairs} pairs x {len(KINDS)} kinds",
    )  # fmt: skip


def refuse_reserved(config: MechanismConfig) -> None:
    """Raise BadConfig where a pair would be one of the burn-in's."""
    if config.pairs >= BURN_IN_PAIRS[0]:
        raise BadConfig(
            f"pairs is {config.pairs}, and pairs {BURN_IN_PAIRS[0]} to {BURN_IN_PAIRS[-1]} are the "
            f"burn-in's; give fewer than {BURN_IN_PAIRS[0]}"
        )


def states(setting: Setting) -> tuple[State, ...]:
    """Two states a pair, sorted by id (`mechanism/<pair>/<kind>`). Nothing reads a held-out row."""
    refuse_reserved(setting.config)
    cells: list[tuple[int, Kind]] = [
        (pair, kind) for pair in range(1, setting.config.pairs + 1) for kind in KINDS
    ]
    samples = [dataset(kind, pair, seed=setting.seed).train for pair, kind in cells]
    levels = workers.run(cross_validated, samples, setting.execution, title="states")
    made = []
    for (pair, kind), sample, level in zip(cells, samples, levels, strict=True):
        facts: dict[str, JsonScalar] = {
            "n_train": len(sample.labels),
            "n_features": sample.inputs.shape[1],
            "positive_percent": round(100.0 * float(sample.labels.mean()), 1),
            "cv_accuracy": None if level is None else round(level.accuracy_pp, 1),
            "n_held_out": HELD_OUT,
        }
        made.append(
            State(
                id=f"{setting.name}/{pair:02}/{kind}", study=setting.name, task=kind,
                cluster=(str(pair), kind), seed=pair, sources=("true_note", "false_note"),
                description=_description(facts), facts=facts, intervention=QUADRATIC,
            )
        )  # fmt: skip
    return tuple(sorted(made, key=lambda state: state.id))


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Quadratic features on the reserved pairs, both kinds."""
    trials: list[tuple[str, Kind, int]] = [
        (f"burn-in/{pair}/{kind}/{QUADRATIC.name}", kind, pair) for pair in BURN_IN_PAIRS for kind in KINDS
    ]
    found = executed(trials, seed=setting.seed, execution=setting.execution)
    tasks = [f"{kind} pairs {BURN_IN_PAIRS[0]}-{BURN_IN_PAIRS[-1]}" for kind in KINDS]
    known = summary(
        found, name=setting.config.burn_in, tasks=tasks, targets=(ACCURACY,), interventions=(QUADRATIC.name,)
    )
    return tuple(sorted(found, key=lambda outcome: outcome.id)), known


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """Run the parent and the model with quadratic features on each state."""
    trials = [trial(state) for state in states]
    return tuple(executed(trials, seed=setting.seed, execution=setting.execution))


def donors(config: MechanismConfig, states: Sequence[State]) -> Donors:
    """Nobody borrows: both notes are of the state itself."""
    return {}


def given(setting: Setting) -> tuple[Explanation, ...]:
    """Both notes of every state."""
    made = states(setting)
    burned = BurnIn(name=setting.config.burn_in, tasks=(), targets={})  # a note rests on no outcome
    return notes(
        Stimuli(
            states=made, explanations={}, outcomes={}, burn_in=burned, donors={}, targets=(ACCURACY,),
            seed=setting.seed, study=setting.name,
        )
    )  # fmt: skip


def _description(facts: Mapping[str, JsonScalar]) -> str:
    """The same sentences for both kinds: what tells them apart stands in the notes alone."""
    level = (
        "Its cross-validated accuracy is not available, because one class has too few training rows."
        if facts["cv_accuracy"] is None
        else f"In three-fold cross-validation its accuracy is {facts['cv_accuracy']:.1f} %."
    )
    return (
        f"A synthetic binary classification task has Gaussian inputs. The parent model is {PARENT_TEXT}. "
        f"It is trained on {facts['n_train']} rows ({facts['positive_percent']:.1f} % positive) with "
        f"{facts['n_features']} features. {level} Planned change: {QUADRATIC.text} Everything else stays as "
        f"it is. Both models are fitted on the same rows and scored on the same {facts['n_held_out']:,} "
        "held-out rows. Measured is the change, changed model minus parent, in held-out accuracy."
    )
