"""What the frozen rule `credit` asks of a user's own planned population."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from predictive_credit.bootstrap import Path
from predictive_credit.config import Pool
from predictive_credit.studies.asks import Ask, Plan
from predictive_credit.studies.table import filed, reading, rule, sheets
from predictive_credit.studies.table.config import TableConfig


def paths(config: TableConfig, pools: Mapping[str, Pool]) -> tuple[Path, ...]:
    """Clusters of the user's file, then the state. Raises BadSource for a file that is not as declared."""
    sheet = sheets.read(pathlib.Path(filed.files(pools[config.pool])["states"]))
    return tuple((*row.cluster, row.id) for row in reading.rows(sheet, config))


# The upper bounds, by which the rule refutes, have the same power against gains of the other sign.
PLAN = Plan(
    paths=paths,
    asks=tuple(
        Ask(gate=f"{{target}} {pair} lower bound", measure="point_error", pair=pair, kind="bound")
        for pair in rule.PAIRS
    ),
)
