"""Stage `decide`: contrasts, the five checks and the frozen rule, gate by gate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from predictive_credit import canonical, config, tables
from predictive_credit.ledger import Phase
from predictive_credit.records import Target
from predictive_credit.stages import evidence, freeze, shell
from predictive_credit.stages.evidence import Evidence
from predictive_credit.stages.paths import RECALIBRATION, Project, StudyPaths
from predictive_credit.stages.verify import integrity
from predictive_credit.studies.evaluation import evaluate
from predictive_credit.studies.recalibration import recalibration


def run(project: Project, params: config.Params, name: str) -> str:
    """Write the metrics, the plots' tables and the finished ledger."""
    paths = project.study(name)
    events = shell.read_ledger(paths.ledger("opened"))
    found = evidence.workspace(project, name)
    freeze.check_unchanged(name, found.freeze, params, shell.study(project, params, name)[0])
    opened = Evidence(found.where, {**found.files, "ledger.jsonl": tables.encode_lines(events)})
    scored = opened.scored()
    metrics = evaluate(
        scored, seed=params.seed, inference=params.inference, scale=params.scale, integrity=integrity(opened)
    )
    # Beside what is decided and no part of it: nothing above has seen it, and no bundle holds it.
    beside = recalibration(scored, seed=params.seed, inference=params.inference, scale=params.scale)
    files = evidence.metric_files(metrics) | {RECALIBRATION: beside}
    for metric, value in files.items():
        tables.write_json(paths.metric(metric), value)
    write_plots(paths, found.study.targets, metrics["contrasts"])
    digests: dict[str, object] = {
        f"metrics/{metric}.json": canonical.digest_file(paths.metric(metric)) for metric in files
    }
    digests["pool.json"] = canonical.digest_file(project.pool_metrics(params.studies[name].pool))
    shell.record(
        project, paths.decided, events, Phase.DECIDED, study=name, scale=params.scale, digests=digests
    )
    gates = metrics["decision"]["gates"].values()
    held = sum(gate["held"] for gate in gates)
    return f"{name}: {metrics['decision']['status']}, {held} of {len(gates)} gates held"


def write_plots(paths: StudyPaths, targets: Sequence[Target], contrasts: dict[str, Any]) -> None:
    """The tables behind `dvc plots show`; with several targets each row names its own."""
    losses = ("interval_score", "point_error", "drift")
    tables.write_csv(
        paths.plot("contrasts"),
        ("contrast", "mean", "lower", "upper"),
        [
            (f"{f'{t.name} ' if len(targets) > 1 else ''}{loss} {pair}", c["mean"], c["lower"], c["upper"])
            for t in targets
            for loss in losses
            for pair, c in contrasts[t.name][loss].items()
        ],
    )
    rows = pd.read_parquet(paths.losses).dropna(subset=["outcome"])
    rows = rows[rows["target"] == targets[0].name]  # one scatter has one unit
    grouped = rows.groupby(["state_id", "context"], sort=True, as_index=False).agg(
        lowest=("point", "min"), highest=("point", "max"), point_error=("point_error", "mean")
    )
    grouped["drift"] = grouped["highest"] - grouped["lowest"]
    columns = ("state_id", "context", "drift", "point_error")
    tables.write_csv(paths.plot("drift_accuracy"), columns, grouped[list(columns)].to_numpy().tolist())


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
