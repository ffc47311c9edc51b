"""The synthetic coverage study against the same in the standard library, and its whole processor time.

    python benchmarks/coverage_speed.py

A slice is a few pilots of each size from one population, both bootstraps, 100 replicates. Both sides
do the same slice in turn, in processor time of one thread; the plain side is given fewer pilots and
scaled, because its cost is per pilot and nothing is shared between pilots. The whole study is measured
for ours, and extrapolated for the plain side: the slice's time per pilot, times the pilots of the
study, plus its populations. Both sides' forecasts from the slice's pilots are compared.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable

import coverage_plain as plain
import measure
import numpy as np

from predictive_credit.coverage import synthetic
from predictive_credit.coverage.estimators import FROZEN, at
from predictive_credit.coverage.intervals import REPLICATES, draw_pilots
from predictive_credit.coverage.populations import AGENTS, SCENARIOS, TASKS, population
from predictive_credit.coverage.statistics import histograms, of_histograms
from predictive_credit.coverage.synthetic import PILOT_SIZES, Plan
from predictive_credit.streams import stream

SEED = 1
SCENARIO = "rasch_moderate"
SLICE = 30  # pilots of each size that ours makes in a slice: those of one population
WANTED = 40  # times


def main() -> None:
    """Print the slice's ratio and the whole study's seconds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--plain-pilots", type=int, default=3, help="of each size (default 3)")
    args = parser.parse_args()
    measure.machine()
    plan = Plan(seed=SEED)
    synthetic.run(Plan(seed=SEED, populations=1, pilots=2))  # the first call loads NumPy's parts
    ours, theirs = zip(*(_round(args.plain_pilots) for _ in range(args.repeats)), strict=True)
    ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
    whole = [_cpu(lambda: synthetic.run(plan)) for _ in range(args.repeats)]
    populations = len(plan.scenarios) * plan.populations
    drawing = _cpu(_plain_population)
    extrapolated = populations * (statistics.median(theirs) + drawing)
    measure.table(
        f"A slice: {SLICE} pilots of each of {', '.join(map(str, PILOT_SIZES))} agents, one population, "
        f"both bootstraps, {REPLICATES} replicates; processor seconds",
        [
            ("side", "median s", "best s"),
            ("ours", f"{statistics.median(ours):.4f}", f"{min(ours):.4f}"),
            ("standard library", f"{statistics.median(theirs):.2f}", f"{min(theirs):.2f}"),
        ],
        f"Ratio {statistics.median(ratios):.0f} (rounds {min(ratios):.0f} to {max(ratios):.0f}; at least "
        f"{WANTED} wanted). The plain side made {args.plain_pilots} pilots of each size and is scaled by "
        f"{SLICE / args.plain_pilots:.0f}.",
        f"Largest difference of a forecast between the sides: {_difference(args.plain_pilots):.1e}.",
    )
    measure.table(
        f"The whole study: {populations} populations; processor seconds of one thread",
        [
            ("side", "median s", "best s"),
            ("ours, measured", f"{statistics.median(whole):.2f}", f"{min(whole):.2f}"),
            ("standard library, extrapolated", f"{extrapolated:.0f}", "-"),
        ],
        f"Extrapolated: {populations} x (the slice and one population, {drawing:.3f} s).",
    )


def _round(plain_pilots: int) -> tuple[float, float]:
    """Processor seconds of ours and of the plain slice, scaled to the same number of pilots."""
    ours = Plan(seed=SEED, scenarios=(SCENARIO,), populations=1, pilots=SLICE)
    pilots = _pilots(plain_pilots)
    rng = random.Random(SEED)

    def theirs() -> None:
        for rows in pilots:
            plain.pilot(rows, AGENTS, REPLICATES, rng)

    return _cpu(lambda: synthetic.run(ours)), _cpu(theirs) * SLICE / plain_pilots


def _pilots(number: int) -> list[list[list[int]]]:
    """Pilots of every size as plain lists."""
    matrix = population(SEED, SCENARIO, 0).astype(int)
    rng = stream(SEED, "benchmark")
    return [
        matrix[agents].tolist() for size in PILOT_SIZES for agents in draw_pilots(AGENTS, size, number, rng)
    ]


def _difference(number: int) -> float:
    """Largest difference between a vectorised and a plain forecast from the same pilot."""
    largest = 0.0
    for rows in _pilots(number):
        counts = of_histograms(histograms(np.array(rows, dtype=bool)))
        expected = plain.forecasts(plain.solve_counts(rows), len(rows), AGENTS)
        for name in FROZEN:
            found = float(at(name, counts, np.array([AGENTS]))[0])
            largest = max(largest, abs(found - expected[name]))
    return largest


def _plain_population() -> None:
    scenario = SCENARIOS[SCENARIO]
    plain.population(
        scenario.ability, scenario.ability_sd, scenario.difficulty_sd, AGENTS, TASKS, random.Random(SEED)
    )


def _cpu(run: Callable[[], object]) -> float:
    """Processor seconds of one call."""
    started = time.process_time()
    run()
    return time.process_time() - started


if __name__ == "__main__":
    main()
