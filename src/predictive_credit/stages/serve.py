"""The embedded model as somebody else's server: for trials of what asks a provider, offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig
from predictive_credit.forecasters import sentence
from predictive_credit.models import serving
from predictive_credit.records import Target
from predictive_credit.sources import wheels
from predictive_credit.stages.paths import Project
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params


def serve(root: Path, *, port: int, name: str, study: str | None) -> None:
    """Serve the embedded forecaster's model until Ctrl-C.

    study: hold every answer to the sentence that its forecasts are elicited in, as the embedded
    forecaster is held to it.
    """
    params = study_params.parse(compose.compose(root, ["forecaster=smollm2"]), origin="conf/")
    embedded = params.forecaster
    if not isinstance(embedded, config.Gguf):
        raise BadConfig("conf/forecaster/smollm2.yaml names no embedded model, so there is none to serve")
    grammar = None if study is None else sentence.grammar(_targets(root, study))
    serving.run(wheels.gguf(embedded), name=name, port=port, threads=1, grammar=grammar)


def _targets(root: Path, study: str) -> Sequence[Target]:
    params = study_params.load(Project(root).params)
    if study not in params.studies:
        raise BadConfig(f"no study {study!r} in params.yaml; it holds {', '.join(sorted(params.studies))}")
    chosen = params.studies[study]
    return STUDIES[chosen.rule].configured(chosen).targets
