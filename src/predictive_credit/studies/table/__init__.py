"""The table study: a user's own states, explanations and outcomes, now or later.

A file in CSV, JSONL or Parquet gives a state a row: where it belongs, what is planned, why it should
work, and what came of it. It gets the same plan, freeze, scoring, checks and report as every study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from predictive_credit.config import Pool
from predictive_credit.contexts import Showing
from predictive_credit.decisions import Decision
from predictive_credit.records import Context
from predictive_credit.studies.study import Counts, Findings, Level, Study
from predictive_credit.studies.table import filed, outcomes, reading, rule, sheets, states
from predictive_credit.studies.table.config import TableConfig

CALLS = 2


def count(config: TableConfig, pools: Mapping[str, Pool]) -> Counts:
    """What the user's file plans; every file of the pool that is there is read and checked whole.

    Raises BadSource for a wrong file, as every later stage would.
    """
    named = filed.files(pools[config.pool])
    sheet = sheets.read(Path(named["states"]))
    rows = reading.rows(sheet, config)
    apart = named.get("outcomes")
    later = sheets.read(Path(apart)) if apart and Path(apart).exists() else None
    known = reading.known(sheet, later, config)
    if "burn_in" in named:
        reading.burn_in(sheets.read(Path(named["burn_in"])), config, rows)
    return Counts(
        states=len(rows), sources=0, extractions=0, forecasts=len(rows) * len(config.contexts) * CALLS,
        design=_design(reading.counts(rows, known, config)),
    )  # fmt: skip


def configure(study: Study, config: TableConfig) -> Study:
    """The study with the declared targets, and a level for each cluster column above the states."""
    return replace(
        study,
        targets=tuple(declared.target() for declared in config.targets),
        levels=(
            *(Level(name=column, is_drawn=True) for column in config.cluster),
            Level(name="state", is_drawn=True),
        ),
    )


def decide(name: str, found: Findings) -> Decision:
    """Apply the rule to the point-error contrasts of every target."""
    contrasts = {target: measures.get("point_error", {}) for target, measures in found.contrasts.items()}
    return rule.decide(name, contrasts, tuple(found.contrasts))


def _design(counted: Mapping[str, Any]) -> str:
    """`30 states; clusters: 5 dataset, 14 family; accuracy_pp: 28 known, 2 pending`."""
    clusters = ", ".join(f"{n} {column}" for column, n in counted["clusters"].items())
    values = (
        f"{target}: " + (", ".join(f"{n} {kind}" for kind, n in kinds.items() if n))
        for target, kinds in counted["outcomes"].items()
    )
    return "; ".join([f"{counted['rows']} states", f"clusters: {clusters}", *values])


TABLE = Study(
    name="table",
    timing="prospective",
    n_tasks=0,  # the population is the user's
    n_states=0,
    n_units=0,
    task_words=("cluster", "clusters"),
    targets=(),  # declared in conf/study; see configure
    levels=(),
    contexts={
        Context.DESCRIPTION: None,
        Context.MATCHED: Showing(source=None, donor=False, form="text"),
        Context.DONOR: Showing(source=None, donor=True, form="text"),
    },
    calls_per_context=CALLS,
    extracted=(),
    primary_loss="point_error",
    one_sided_level=rule.LEVEL,
    rule=rule,
    decide=decide,
    textbook=None,
    config=TableConfig,
    features=filed.features,
    count=count,
    states=states.states,
    burn_in=outcomes.burn_in,
    execute=outcomes.execute,
    donors=states.donors,
    given=states.given,
    arrived=outcomes.arrived,
    configure=configure,
)
