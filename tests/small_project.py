"""A whole project on a small table, and a forecaster that reads its card: every stage in seconds."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from predictive_credit import compose, config
from predictive_credit.forecasters import forecaster, sentence
from predictive_credit.records import Prompt, Reply
from predictive_credit.stages import pipeline
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params
from predictive_credit.studies.molecular.interventions import TARGET as ROC_AUC
from predictive_credit.wording import Stated
from tests import small_pool
from tests.conftest import ROOT

TARGET = re.compile(
    r"will (increase|decrease) by ([0-9.]+) \(80% interval: minus ([0-9.]+), plus ([0-9.]+)\)"
)
N_ENDPOINTS = 3
N_STATES = N_ENDPOINTS * 2 * 2


def write_table(path: Path, n_endpoints: int, **changed: list[float]) -> None:
    """The small pool as a CSV; `changed` replaces an endpoint's labels."""
    columns = small_pool.labels(n_endpoints) | changed
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", *columns])
        for index, smiles in enumerate(small_pool.SMILES):
            cells = ("" if np.isnan(values[index]) else int(values[index]) for values in columns.values())
            writer.writerow([smiles, *cells])


def raw_params(folder: Path, *words: str) -> dict[str, Any]:
    """The committed composition, on the small table in `folder`."""
    raw = compose.compose(ROOT, ["studies=molecular", *words])
    table, spare = folder / "table.csv", folder / "spare.csv"
    if not table.exists():
        write_table(table, N_ENDPOINTS)
        write_table(spare, 14)  # the burn-in keeps off the 12 largest
    raw["pools"] = {
        name: {"kind": "csv", "watch": str(p), "path": str(p), "sha256": None, "smiles_column": None,
               "endpoints": None}
        for name, p in (("small", table), ("spare", spare))
    }  # fmt: skip
    raw["studies"]["molecular"] |= {
        "pool": "small", "burn_in": "spare", "n_endpoints": N_ENDPOINTS, "budgets": [0.5, 1.0],
    }  # fmt: skip
    raw["inference"]["draws"] = 500
    raw["execution"] |= {"backend": "sequential", "n_jobs": 1}
    return raw


def project(folder: Path, *words: str, **studies: Any) -> tuple[Project, config.Params]:
    """A project folder with params.yaml; `studies` overrides keys of the molecular study."""
    folder.mkdir(parents=True, exist_ok=True)
    raw = raw_params(folder, *words)
    raw["studies"]["molecular"] |= studies
    (folder / "params.yaml").write_text(yaml.safe_dump(raw))
    return Project(folder), study_params.load(folder / "params.yaml")


@dataclass
class Reader:
    """Follows the number on a card; without one it guesses from its seed."""

    name: str = "reader"
    asked: int = 0

    def answer(self, prompt: Prompt) -> Reply:
        self.asked += 1
        rng = np.random.default_rng(prompt.seed)
        if found := TARGET.search(prompt.user):
            sign = 1 if found[1] == "increase" else -1
            point, minus, plus = (
                sign * float(found[2]) + rng.normal(0, 1e-4),
                float(found[3]),
                float(found[4]),
            )
        else:
            point, minus, plus = rng.normal(0.02, 0.02), 0.02, 0.02
        return Reply(
            text=sentence.write([Stated(point=point, minus=minus, plus=plus)], [ROC_AUC]),
            finish_reason="stop", model_requested=self.name,
            model_resolved="reader 1", prompt_tokens=10, completion_tokens=10, latency_s=rng.random(),
        )  # fmt: skip

    def close(self) -> None:
        pass


def use(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the forecast stage ask `model`."""
    monkeypatch.setattr(forecaster, "make", lambda chosen, burn_in, targets, locate: model)


def decided(folder: Path, monkeypatch: pytest.MonkeyPatch, **studies: Any) -> tuple[Project, config.Params]:
    """A project run to its decision with the reader."""
    made, params = project(folder, **studies)
    use(Reader(), monkeypatch)
    pipeline.run_all(made, params, say=lambda line: None)
    return made, params
