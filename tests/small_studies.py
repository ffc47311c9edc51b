"""All four studies on small populations, in one project: every stage in seconds."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import yaml

from predictive_credit import compose, config
from predictive_credit.stages.paths import Project
from predictive_credit.streams import stream
from predictive_credit.studies import params as study_params
from tests import small_project
from tests.conftest import ROOT

EXAMPLE = ROOT / "tests" / "data"
WORDS = ("forecaster=priors", "studies=all")


def write_csv(path: Path, kind: str) -> None:
    """A hundred rows with a planted signal, a missing column here and there, and a string column."""
    rng = stream(7, "small studies", path.stem)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b [x]", "site", "y"])
        for _ in range(100):
            a, b = rng.normal(size=2)
            signal = a + 0.5 * b + 0.5 * rng.normal()
            y = f"{signal:.4f}" if kind == "regression" else "high" if signal > 0 else "low"
            writer.writerow([f"{a:.4f}", "" if rng.random() < 0.1 else f"{b:.4f}", rng.choice(["n", "s"]), y])


def tables_pool(folder: Path) -> dict[str, Any]:
    """Two tables of each kind for the study, one of each for the burn-in."""
    tables = {}
    for kind in ("classification", "regression"):
        for k in range(3):
            path = folder / f"{kind}_{k}.csv"
            write_csv(path, kind)
            tables[path.stem] = {"path": str(path), "kind": kind, "target": "y", "burn_in": k == 2}
    return {"kind": "tables", "watch": str(folder), "tables": tables, "max_rows": 5000}


def project(folder: Path, example: str = "example_states.csv", **own: Any) -> tuple[Project, config.Params]:
    """A project of the controlled, molecular and tabular study and of a user's own table."""
    folder.mkdir(parents=True)
    raw = small_project.raw_params(folder, *WORDS)
    shutil.copy(EXAMPLE / example, folder / "states.csv")
    mine = compose.compose(ROOT, ["studies=table", f"pools.own.path={folder / 'states.csv'}"])
    raw["pools"] |= mine["pools"] | {"regimes": {"kind": "regimes", "watch": "."}}
    raw["pools"]["own"] |= own
    raw["pools"]["small_tables"] = tables_pool(folder)
    raw["studies"] |= mine["studies"]
    raw["studies"]["molecular"] |= {"seeds": [1, 2], "budgets": [1.0]}
    raw["studies"]["controlled"] |= {"regimes": ["quadratic_boundary", "label_noise", "small_sample"]}
    raw["studies"]["tabular"] |= {"pool": "small_tables", "burn_in": "small_tables", "budgets": [1.0]}
    raw["inference"]["draws"] = 300
    (folder / "params.yaml").write_text(yaml.safe_dump(raw))
    return Project(folder), study_params.load(folder / "params.yaml")
