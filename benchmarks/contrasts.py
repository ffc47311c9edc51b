"""All contrasts of the molecular study (72 states, 10,000 draws) against a plain loop and against SciPy.

    python benchmarks/contrasts.py

Ours is `predictive_credit.contrast_table`, from data frames to its last column: 17 contrasts, each
over all units and over complete cases, with percentile, one-sided and t intervals, worst and best
case. The plain loops start from finished gains and make the means and one interval of each; they
draw less often and are scaled linearly.

SciPy's bootstrap knows one level. It can resample the 12 endpoints' mean gains, and that is what
it is compared in. It cannot draw label fractions within endpoints and seeds within those, nor
weigh an endpoint by how many of its outcomes are defined, since it is never shown the states.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import product

import frames
import measure
import numpy as np
import pandas as pd
import plain
from measure import Side
from numpy.typing import NDArray
from scipy import stats

import predictive_credit as pc
from predictive_credit import bootstrap
from predictive_credit.bootstrap import Design
from predictive_credit.contrasts import group_means
from predictive_credit.streams import stream

Array = NDArray[np.float64]

DRAWS = 10_000
SEED = 1
SCALED = tuple(f"{name}_scaled" for name in plain.SCALED)


def main() -> None:
    """Print both comparisons."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7, help="rounds (default 7)")
    parser.add_argument("--plain-draws", type=int, default=300, help="of the plain loops (default 300)")
    args = parser.parse_args()
    measure.machine()
    forecasts, outcomes = frames.study(12, undefined=1, fallbacks=3)
    shape, gains = plain_gains(forecasts, outcomes)
    against_loops(forecasts, outcomes, shape, gains, args.plain_draws, args.repeats)
    endpoint = nested(*shape).clusters
    clusters = [group_means(np.array(g.all), endpoint) for g in gains if g.pair == "D-M"]
    against_scipy(np.stack(clusters), args.repeats)


def plain_gains(forecasts: pd.DataFrame, outcomes: pd.DataFrame) -> tuple[plain.Shape, list[plain.Gains]]:
    """Every gain the contrasts rest on, from rows of text as a CSV would give them."""
    units, values = _text(forecasts), _text(outcomes)
    shape, gains = plain.gains(units, values, ("D-M", "S-M"), (*plain.MEASURES, *SCALED))
    return shape, gains + plain.gains(units, values, ("D-S",), ("drift",))[1]


def against_loops(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, shape: plain.Shape, gains: Sequence[plain.Gains],
    plain_draws: int, repeats: int,
) -> None:  # fmt: skip
    """Ours, a loop for each contrast, and a loop for each pair that shares its draws as ours does."""
    columns = [[g.all, g.complete] for g in gains]
    by_pair: dict[str, list[list[float]]] = defaultdict(list)
    for gain, both in zip(gains, columns, strict=True):
        by_pair[gain.pair] += both
    alone = [[column] for both in columns for column in both]
    rng = random.Random(SEED)

    def loops(groups: Sequence[Sequence[Sequence[float]]]) -> list[tuple[float, float]]:
        drawn = [plain.means(group, plain.resamples(shape, plain_draws, rng)) for group in groups]
        return [plain.interval(values) for group in drawn for values in group]

    pc.contrast_table(forecasts, outcomes, seed=SEED, draws=10)  # the first call loads pandas and SciPy
    share = DRAWS / plain_draws
    timings = measure.interleaved(
        [
            Side(name="ours", run=lambda: pc.contrast_table(forecasts, outcomes, seed=SEED, draws=DRAWS)),
            Side(name="plain loop for each pair", run=lambda: loops([*by_pair.values()]), times=share),
            Side(name="plain loop for each contrast", run=lambda: loops(alone), times=share),
        ],
        repeats=repeats,
    )  # fmt: skip
    measure.table(
        f"{len(gains)} contrasts of {np.prod(shape)} states, {DRAWS:,} draws",
        measure.compared(timings),
        f"plain loops: {plain_draws} draws measured, scaled by {share:.0f}",
        f"on the same resamples, ours and the plain loop differ by at most "
        f"{difference(forecasts, outcomes, shape, gains, plain_draws):.0e}, in any mean or interval",
    )


def difference(
    forecasts: pd.DataFrame, outcomes: pd.DataFrame, shape: plain.Shape, gains: Sequence[plain.Gains],
    draws: int,
) -> float:  # fmt: skip
    """The largest difference of any end of an interval when both sides take the same resamples."""
    ours = pc.contrast_table(forecasts, outcomes, seed=SEED, draws=draws).set_index(["measure", "pair"])
    worst = 0.0
    for gain in gains:
        rng = stream(SEED, "molecular", gain.pair)
        positions = [
            np.repeat(np.arange(len(row)), row.astype(int)).tolist()
            for block in bootstrap.counts(nested(*shape), draws=draws, rng=rng)
            for row in block
        ]
        full, complete = plain.means([gain.all, gain.complete], positions)
        wanted = [float(np.nanmean(gain.all)), *plain.interval(full), *plain.interval(complete)]
        names = ["mean", "lower", "upper", "complete_case_lower", "complete_case_upper"]
        seen = ours.loc[(gain.measure, gain.pair), names].to_numpy(dtype=float)
        worst = max(worst, float(np.abs(seen - wanted).max()))
    return worst


def against_scipy(clusters: Array, repeats: int) -> None:
    """One level, the 12 endpoints' means, in one call each; clusters: (measure, endpoint)."""

    def ours() -> Array:
        rng = np.random.default_rng(SEED)
        draws = bootstrap.nested_means(clusters, nested(clusters.shape[1]), draws=DRAWS, rng=rng)
        return np.array([bootstrap.percentile_interval(row) for row in draws])

    def scipys() -> Array:
        found = stats.bootstrap(
            (clusters,), np.mean, n_resamples=DRAWS, axis=-1, method="percentile", vectorized=True,
            rng=np.random.default_rng(SEED),
        )  # fmt: skip
        return np.stack([found.confidence_interval.low, found.confidence_interval.high], axis=1)

    timings = measure.interleaved(
        [Side(name="ours", run=ours), Side(name="scipy.stats.bootstrap", run=scipys)], repeats=repeats
    )
    apart = float(np.abs(ours() - scipys()).max())
    measure.table(
        f"one level: {len(clusters)} measures of {clusters.shape[1]} endpoint means, {DRAWS:,} draws",
        measure.compared(timings),
        f"from one generator both draw the same endpoints; no end of an interval differs by over {apart:.0e}",
    )


def nested(*shape: int) -> Design:
    """A fully crossed design whose levels are all drawn, in C order."""
    paths = product(*([f"{k:06d}" for k in range(n)] for n in shape))
    return Design(paths=tuple(paths), drawn=(True,) * len(shape))


def _text(frame: pd.DataFrame) -> list[dict[str, str]]:
    text = frame.astype(str).replace("nan", "")
    return [{str(k): str(v) for k, v in row.items()} for row in text.to_dict("records")]


if __name__ == "__main__":
    main()
