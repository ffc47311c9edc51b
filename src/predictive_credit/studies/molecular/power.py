"""What the frozen rule `harm` asks of the molecular study's planned population."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from predictive_credit.bootstrap import Path
from predictive_credit.config import Pool
from predictive_credit.studies.asks import Ask, Plan
from predictive_credit.studies.molecular import rule
from predictive_credit.studies.molecular.config import MolecularConfig

HARMS = {"M-D": "D-M", "M-S": "S-M"}  # the rule's words for the gain of a pair, turned round


def paths(config: MolecularConfig, pools: Mapping[str, Pool]) -> tuple[Path, ...]:
    """Endpoint, label fraction, seed; an endpoint that only its table can name has a number."""
    endpoints = config.endpoints or [f"endpoint {k}" for k in range(1, config.n_endpoints + 1)]
    return tuple(product(endpoints, (f"{b:g}" for b in config.budgets), map(str, config.seeds)))


PLAN = Plan(
    paths=paths,
    asks=tuple(
        ask
        for harm, pair in HARMS.items()
        for ask in (
            Ask(
                gate=f"{harm} margin", measure="interval_score", pair=pair, kind="margin",
                margin=rule.MARGIN, harm=True,
            ),
            Ask(gate=f"{harm} bound", measure="interval_score", pair=pair, kind="bound", harm=True),
        )
    ),
)  # fmt: skip
