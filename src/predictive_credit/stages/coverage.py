"""Stage `coverage`: the synthetic study of coverage forecasts, its pooled rows and its rule.

It depends on the seed alone, so a sweep's jobs leave it out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from predictive_credit import config, decisions, tables
from predictive_credit.coverage import published, rule, summary, synthetic
from predictive_credit.coverage.calibrated import FROZEN
from predictive_credit.coverage.scoring import Cell, Pooled
from predictive_credit.decisions import Decision
from predictive_credit.errors import BadConfig
from predictive_credit.stages import guard
from predictive_credit.stages.paths import READINGS, Project
from predictive_credit.studies import params as study_params

PRINTED = sorted({row.pilot_agents for row in published.ROWS})  # sizes of the published rows


def run(project: Project, params: config.Params) -> str:
    """Write the cells, the pooled rows, the rule's gates and what is published beside ours."""
    cells = study(params)
    frozen, own = (summary.of(cells, calibrated=calibrated) for calibrated in (False, True))
    decided = {"frozen": summary.decided(frozen), "calibrated": summary.decided(own)}
    compared = published.compare(frozen)
    tables.write_bytes(project.coverage_cells, tables.encode_lines(cells))
    tables.write_json(project.coverage_metric("pooled"), keyed((*frozen, *own)))
    tables.write_json(
        project.coverage_metric("decision"), {name: gates(found) for name, found in decided.items()}
    )
    tables.write_json(
        project.coverage_metric(READINGS),
        {
            "source": published.SOURCE,
            "verdict": {"published": published.VERDICT, "ours": decided["frozen"].status},
            "compared": compared,
            "outside": [f"{_name(one)}.{one.measure}" for one in compared if not one.near],
        },
    )
    near = sum(one.near for one in compared)
    return (
        f"coverage: {decided['frozen'].status} of the frozen forecasters, {decided['calibrated'].status} of "
        f"the calibrated one; {near} of {len(compared)} published numbers are inside their bands"
    )


def study(params: config.Params) -> tuple[Cell, ...]:
    """The cells of the frozen forecasters, then those of the calibrated one at the rule's pilot size.

    Raises BadConfig where the rule, or a published row, would have no pilots to read.
    """
    chosen = params.coverage
    if chosen is None:
        raise BadConfig("params.yaml has no coverage; write it with `predictive-credit params --write`")
    if missing := sorted({rule.PILOT_AGENTS, *PRINTED} - set(chosen.pilot_sizes)):
        raise BadConfig(
            f"coverage.pilot_sizes lacks {missing[0]}, which the rule or the published rows need; add it"
        )
    plan = synthetic.Plan(
        seed=params.seed, populations=chosen.populations, pilots=chosen.pilots,
        pilot_sizes=chosen.pilot_sizes, replicates=chosen.replicates,
    )  # fmt: skip
    short = replace(plan, pilots=chosen.calibrated_pilots, pilot_sizes=(rule.PILOT_AGENTS,))
    return (*synthetic.run(plan), *synthetic.run_calibrated(short, FROZEN))


def keyed(rows: Iterable[Pooled]) -> dict[str, Any]:
    """The five measures of each row below scenario, pilot size, forecaster and scheme."""
    table: dict[str, Any] = {}
    for row in rows:
        sizes = table.setdefault(row.scenario, {}).setdefault(f"k{row.pilot_agents}", {})
        sizes.setdefault(row.forecaster, {})[row.scheme] = {m: getattr(row, m) for m in published.MEASURES}
    return table


def gates(found: Decision) -> dict[str, Any]:
    """A decision as a metric: status, and gates by name."""
    return {"rule": found.rule, "status": found.status, "gates": decisions.by_name(found.gates)}


def _name(one: published.Compared) -> str:
    return f"{one.scenario}.k{one.pilot_agents}.{one.forecaster}.{one.scheme}"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    args = parser.parse_args(argv)

    def action() -> int:
        project = Project(args.root)
        print(run(project, study_params.load(project.params)))
        return 0

    sys.exit(guard.guarded(action))


if __name__ == "__main__":
    main()
