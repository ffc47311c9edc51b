"""Frozen rule `coverage` of the synthetic coverage study. Never edited: a new rule is a new file.

Question. From a pilot of 10 agents out of 60, can one forecaster with one kind of interval say how many
tasks all 60 together will solve, whatever the population is like?

Loss. Absolute error of the forecast coverage, averaged over the pilots of all populations of a scenario.
Interval. Nominal 95 %; it covers when it holds the true coverage, ends included. Coverage of a scenario
is the share of its pilots whose interval does so.
Accurate. In a scenario, mean absolute error at most .03.
Calibrated. In a scenario, coverage of the intervals at least .90.

Decision, over all pairs of a forecaster and an interval scheme, at 10 agents alone. `supported` if one
and the same pair is accurate and calibrated in every scenario. `falsified` if no pair is accurate in any
scenario. `mixed` otherwise: some forecasts are accurate somewhere, none is right and honest everywhere.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from predictive_credit.coverage.scoring import Pooled
from predictive_credit.decisions import Decision, Gate

NAME = "coverage"
PILOT_AGENTS = 10
MAE = 0.03  # of coverage, at most
COVERAGE = 0.90  # of nominal 95 % intervals, at least
SCENARIOS = ("rasch_moderate", "rasch_hard_tail", "rasch_unsolvable", "family_clustered")

Status = Literal["supported", "mixed", "falsified"]


def decide(study: str, rows: Iterable[Pooled]) -> Decision:
    """Apply the rule to pooled rows; those of other pilot sizes, and points without interval, are left out.

    The gates are each pair's largest error and smallest coverage over the scenarios. Raises ValueError
    where a pair has no row, or two, in one of the SCENARIOS, or rows outside them.
    """
    pairs: dict[tuple[str, str], list[Pooled]] = defaultdict(list)
    for row in rows:
        if row.pilot_agents == PILOT_AGENTS and row.coverage is not None:
            pairs[row.forecaster, row.scheme].append(row)
    if not pairs:
        raise ValueError(
            f"the rule reads forecasts with intervals from {PILOT_AGENTS} agents; there are none"
        )
    for pair, found in pairs.items():
        if sorted(row.scenario for row in found) != sorted(SCENARIOS):
            raise ValueError(f"{'/'.join(pair)} needs one row for each of {', '.join(SCENARIOS)}")
    gates = {pair: _gates("/".join(pair), found) for pair, found in pairs.items()}
    return Decision(
        study=study,
        rule=NAME,
        status=_status(gates.values(), pairs.values()),
        gates=tuple(gate for both in gates.values() for gate in both),
    )


def accurate(row: Pooled) -> bool:
    """Whether a pair's point forecasts are near enough in one scenario."""
    return row.mae <= MAE


def calibrated(row: Pooled) -> bool:
    """Whether a pair's intervals hold the truth often enough in one scenario."""
    return row.coverage is not None and row.coverage >= COVERAGE


def _status(gates: Iterable[tuple[Gate, Gate]], pairs: Iterable[Sequence[Pooled]]) -> Status:
    if any(all(gate.held for gate in both) for both in gates):
        return "supported"
    if not any(accurate(row) for found in pairs for row in found):
        return "falsified"
    return "mixed"


def _gates(pair: str, rows: Sequence[Pooled]) -> tuple[Gate, Gate]:
    error = max(row.mae for row in rows)
    coverage = min(row.coverage for row in rows if row.coverage is not None)
    return (
        Gate(name=f"{pair} MAE", asked=f"<= {MAE}", seen=error, held=all(map(accurate, rows))),
        Gate(name=f"{pair} coverage", asked=f">= {COVERAGE}", seen=coverage, held=all(map(calibrated, rows))),
    )
