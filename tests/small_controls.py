"""The controls on the committed bundles, without a model: their settings, stimuli, plans and scored units."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from predictive_credit import compose, config, planning
from predictive_credit.config import Execution, Inference
from predictive_credit.forecasters import forecaster
from predictive_credit.records import (
    BurnIn,
    Context,
    Explanation,
    Forecast,
    Outcome,
    PromptText,
    Source,
    State,
    Unit,
)
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.controls import frozen
from predictive_credit.studies.evaluation import Scored, evaluate
from predictive_credit.studies.study import Setting, Stimuli, Study
from tests.conftest import ROOT
from tests.samples import INTEGRITY

RESULTS = ROOT / "results"
BUNDLES = {
    "tabular": RESULTS / "tabular-packaged-full",
    "molecular": RESULTS / "molecular-moleculeace-full",
    "controlled": RESULTS / "controlled-full",
}
REUSING = ("calibration", "crossover", "gradient", "raw_note", "replay")
HERE = Execution(backend="sequential", n_jobs=1, address=None)
# What a model of these tests says of a unit: a point, given its prompt and its context.
Answer = Callable[[Unit, PromptText], float]


@functools.cache
def params(*words: str) -> config.Params:
    """Every control at full scale on the committed bundles, under the priors."""
    paths = [f"pools.frozen_{study}.path={folder}" for study, folder in BUNDLES.items()]
    asked = ["studies=none", "controls=all", "scale=full", "forecaster=priors", *paths, *words]
    return study_params.parse(compose.compose(ROOT, asked))


class Control:
    """One control up to its plan, straight from a bundle."""

    def __init__(self, name: str, folder: Path) -> None:
        self.params = config.of_study(params(), name)
        chosen = self.params.studies[name]
        self.study: Study = STUDIES[chosen.rule]
        self.config = chosen
        self.folder = folder
        if self.study.reuses is not None:
            pool = self.params.pools[chosen.pool]
            frozen.features(pool, BUNDLES[self.study.reuses], folder, HERE)
        self.setting = Setting(
            name=name, config=chosen, seed=self.params.seed, execution=HERE, features=folder, burn_in=folder
        )
        self.states: tuple[State, ...] = self.study.states(self.setting)
        assert self.study.given is not None
        given = self.study.given(self.setting)
        self.explanations: dict[tuple[str, Source], Explanation] = {(e.state_id, e.source): e for e in given}
        self.outcomes: dict[tuple[str, str], Outcome] = {
            (o.state_id, o.target): o for o in self.study.execute(self.setting, self.states)
        }
        self.burn_in: BurnIn = self.study.burn_in(self.setting, self.states)[1]
        self.donors = self.study.donors(chosen, self.states)
        self.units, self.texts = planning.forecast_units(
            self.states, self.explanations, self.study.asked(chosen), donors=self.donors,
            targets=self.study.targets,
            sampling=forecaster.sampling(self.params.forecaster, self.study.targets),
            calls=self.study.calls_per_context, seed=self.params.seed,
        )  # fmt: skip
        self.text_of = {text.key: text for text in self.texts}

    @property
    def stimuli(self) -> Stimuli:
        """What it composes from."""
        taken = {key: e for key, e in self.explanations.items() if e.source in frozen.TAKEN}
        return Stimuli(
            states=self.states, explanations=taken, outcomes=self.outcomes, burn_in=self.burn_in,
            donors=frozen.lenders(self.states), targets=self.study.targets, seed=self.params.seed,
            study=self.setting.name,
        )  # fmt: skip

    def prompt(self, state: State, context: Context | str) -> PromptText:
        return self.text_of[f"{state.id}/{context}"]

    def scored(self, answer: Answer, outcomes: dict[tuple[str, str], Outcome] | None = None) -> Scored:
        """Every unit answered by `answer`, the same for each target."""
        forecasts = {}
        for unit in self.units:
            point = answer(unit, self.text_of[unit.id.rpartition("/")[0]])
            forecasts[unit.id] = tuple(
                Forecast(unit_id=unit.id, target=t.name, point=point, lower=point - 0.02, upper=point + 0.02)
                for t in self.study.targets
            )
        return Scored(
            study=self.study, states=self.states, contexts=tuple(self.study.asked(self.config)),
            forecasts=forecasts, outcomes=outcomes or self.outcomes, burn_in=self.burn_in,
            explanations=self.explanations, donors=self.donors,
        )  # fmt: skip

    def evaluated(self, answer: Answer, outcomes: dict[tuple[str, str], Outcome] | None = None) -> Any:
        """Decision, checks and contrasts of what `answer` says."""
        return evaluate(
            self.scored(answer, outcomes), seed=1, inference=Inference(draws=200, level=0.95), scale="full",
            integrity=INTEGRITY | {"known_before": self.study.reuses},
        )  # fmt: skip


def contexts(control: Control) -> Sequence[str]:
    return [str(context) for context in control.config.contexts]
