"""From a thousand forecasts to a million: seconds, growth and memory, and a csv loop at a common size.

    python benchmarks/scale.py

A forecast is scored by `predictive_credit.loss_table` and decided by `predictive_credit.decide`,
each with its own reading and refusing of the frames. Every size runs in a process of its own, whose
peak memory holds Python, the libraries and the frames too. The bootstrap has 100 draws: its cost
is draws times states and is measured in contrasts.py.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import frames
import measure
import pandas as pd
import plain
from measure import Side

import predictive_credit as pc
from predictive_credit.studies.molecular import rule

DRAWS = 100
SIZES = (1_000, 10_000, 100_000, 1_000_000)
COMMON = 100_000
SEED = 1
PAIRS = ("D-M", "S-M")


def main() -> None:
    """Print the growth and the comparison, or measure one size and print it as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default 3)")
    parser.add_argument(
        "--common", type=int, default=COMMON, help=f"forecasts of the csv loop (default {COMMON})"
    )
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one is not None:
        print(json.dumps(one(args.one)))
        return
    measure.machine()
    growth(args.repeats)
    with tempfile.TemporaryDirectory() as folder:
        against_csv(Path(folder), args.common, args.repeats)


def one(asked: int) -> dict[str, float]:
    """Score and decide once, in this process, after a handful of forecasts that load the libraries."""
    _warm()
    forecasts, outcomes = made(asked)
    before = _peak()
    score = measure.seconds(lambda: pc.loss_table(forecasts, outcomes))
    decide = measure.seconds(lambda: pc.decide(forecasts, outcomes, seed=SEED, draws=DRAWS))
    return {"units": len(forecasts), "score": score, "decide": decide, "before": before, "peak": _peak()}


def made(asked: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Frames of the smallest crossed study of `asked` forecasts or more."""
    return frames.study(math.ceil(asked / (frames.STATES_PER_ENDPOINT * frames.UNITS_PER_STATE)))


def growth(repeats: int) -> None:
    """A row for each size; the exponent is the slope of log seconds from the row above."""
    runs = [[_one_elsewhere(size) for size in SIZES] for _ in range(repeats)]
    rows: list[tuple[str, ...]] = [
        (
            "forecasts",
            "score s",
            "decide s",
            "s per million",
            "exponent",
            "peak MB",
            "of it frames and imports",
        )
    ]
    last: tuple[float, float] | None = None
    for column in zip(*runs, strict=True):
        at = {key: statistics.median(run[key] for run in column) for key in column[0]}
        total = at["score"] + at["decide"]
        slope = "" if last is None else f"{math.log(total / last[1]) / math.log(at['units'] / last[0]):.2f}"
        last = (at["units"], total)
        rows.append(
            (
                f"{at['units']:,.0f}", f"{at['score']:.3f}", f"{at['decide']:.3f}",
                f"{total / at['units'] * 1e6:.2f}", slope, f"{at['peak']:.0f}", f"{at['before']:.0f}",
            )
        )  # fmt: skip
    measure.table(f"scored and decided, {DRAWS} draws, median of {repeats}", rows)


def against_csv(folder: Path, asked: int, repeats: int) -> None:
    """From two CSV files to losses and a status, ours and in the standard library."""
    paths = folder / "forecasts.csv", folder / "outcomes.csv"
    for frame, path in zip(made(asked), paths, strict=True):
        frame.to_csv(path, index=False)
    seen: dict[str, str] = {}

    def ours() -> None:
        forecasts, outcomes = map(pd.read_csv, paths)
        pc.loss_table(forecasts, outcomes)
        seen["ours"] = pc.decide(forecasts, outcomes, seed=SEED, draws=DRAWS).status

    def loop() -> None:
        seen["loop"] = by_hand(*paths)

    _warm()
    timings = measure.interleaved(
        [Side(name="ours", run=ours), Side(name="csv loop", run=loop)], repeats=repeats
    )
    measure.table(
        f"{asked:,} forecasts from CSV to status, {DRAWS} draws",
        measure.compared(timings),
        f"ours says {seen['ours']}, the loop {seen['loop']}",
    )


def by_hand(forecasts: Path, outcomes: Path) -> str:
    """Losses of every unit, gains, nested bootstrap and the rule's four gates with csv and random."""
    units, values = plain.read(forecasts), plain.read(outcomes)
    value = {row["state"]: float(row["value"] or "nan") for row in values}
    for row in units:  # what loss_table adds to each row
        for name in plain.MEASURES:
            if name != "drift":
                plain.loss(name, value[row["state"]], [row])
    shape, gains = plain.gains(units, values, PAIRS, ("interval_score",))
    rng = random.Random(SEED)
    held = [gate for gain in gains for gate in _gates(gain, shape, rng)]
    return "harm_confirmed" if all(held) else "confirmation_no_go"


def _gates(gain: plain.Gains, shape: plain.Shape, rng: random.Random) -> tuple[bool, bool]:
    """The rule's margin and bound for one pair; a harm is a negative gain."""
    (draws,) = plain.means([gain.all], plain.resamples(shape, DRAWS, rng))
    defined = [g for g in gain.all if not math.isnan(g)]
    return -statistics.fmean(defined) >= rule.MARGIN, -plain.quantile(draws, rule.LEVEL) > 0


def _one_elsewhere(size: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--one", str(size)]
    found: dict[str, float] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found


def _warm() -> None:
    forecasts, outcomes = made(36)
    pc.loss_table(forecasts, outcomes)
    pc.decide(forecasts, outcomes, seed=SEED, draws=DRAWS)


def _peak() -> float:
    """Peak resident memory of this process so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


if __name__ == "__main__":
    main()
