"""What a power rests on: numbers that are stated, and components that an earlier run shows."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from predictive_credit import bootstrap
from predictive_credit.errors import BadConfig
from predictive_credit.panel import Panel
from predictive_credit.records import Target
from predictive_credit.stages import evidence
from predictive_credit.streams import stream
from predictive_credit.studies.assumptions import (
    Components,
    Key,
    assume,
    observed,
    per_drift,
    variances,
)
from predictive_credit.studies.evaluation import to_panels
from tests.conftest import ROOT

BUNDLE = ROOT / "results" / "molecular-moleculeace-full"
TARGET = Target(name="y", phrase="y", unit="u", suffix="", size="#", lower=-1e6, upper=1e6)
D_M, S_M = Key("y", "point_error", "D-M"), Key("y", "point_error", "S-M")
EARLIER = Components(spread=1.0, within=2.0, drift=0.5, per_drift=4.0)
ALL = {"effect": ["1"], "spread": ["2"], "within": ["3"], "drift": ["4"]}


def design(*sizes: int, strata: int = 1) -> bootstrap.Design:
    """Clusters of these sizes, dealt to the strata in turn."""
    paths = [(str(c % strata), f"{c:03d}", str(s)) for c, size in enumerate(sizes) for s in range(size)]
    return bootstrap.Design(paths=tuple(paths), drawn=(False, True, False))


def drawn(of: bootstrap.Design, *, spread: float, within: float, rng: np.random.Generator) -> np.ndarray:
    cluster = of.tiers[1].of_state
    gain: np.ndarray = spread * rng.normal(size=cluster.max() + 1)[cluster] + within * rng.normal(
        size=len(cluster)
    )
    return gain


def panel(point: np.ndarray, outcome: np.ndarray, width: float = 1.0) -> Panel:
    """point: (state, context, call) of D, M and S; six states a cluster."""
    n = len(point)
    paths = tuple((f"{k // 6:03d}", str(k)) for k in range(n))
    return Panel(
        states=tuple(map(str, range(n))), contexts=("D", "M", "S"), calls=(1, 2), tasks=("t",),
        task_of=np.zeros(n, dtype=np.intp), design=bootstrap.Design(paths=paths, drawn=(True, True)),
        target=TARGET, point=point, lower=point - width, upper=point + width,
        is_fallback=np.zeros(point.shape, dtype=bool), outcome=outcome,
    )  # fmt: skip


def test_the_committed_run_has_the_components_that_its_files_give_by_hand():
    """Again from forecasts and outcomes as they lie there, with data frames and balanced formulas."""
    seen = observed(to_panels(evidence.bundle(BUNDLE).scored())["roc_auc"], "interval_score", "D-M")
    truth = pd.read_csv(BUNDLE / "outcomes.csv").set_index("state_id")["value"]
    rows = []
    for line in (BUNDLE / "forecasts.jsonl").read_text().splitlines():
        answer = json.loads(line)
        (one,) = answer["forecasts"]
        state, context, call = answer["unit_id"].rsplit("/", 2)
        y, low, high = truth[state], one["lower"], one["upper"]
        score = high - low + 10 * max(low - y, 0.0) + 10 * max(y - high, 0.0)
        rows.append((state, state.split("/")[1], context, call, one["point"], score))
    table = pd.DataFrame(rows, columns=["state", "endpoint", "context", "call", "point", "score"])
    wide = table.pivot(index=["endpoint", "state"], columns=["context", "call"], values=["point", "score"])
    gain = wide["score"]["D"].mean(axis=1) - wide["score"]["M"].mean(axis=1)
    by_endpoint = gain.groupby("endpoint")
    within = by_endpoint.var().mean()
    between = by_endpoint.mean().var() - within / 6
    calls = sum(wide["score"][c].var(axis=1).mean() / 2 for c in "DM")
    drift = np.mean([(wide["point"][c]["1"] - wide["point"][c]["2"]).abs().mean() for c in "DM"])
    assert len(gain) == 72
    assert seen.spread == pytest.approx(math.sqrt(max(between, 0.0)), abs=1e-12)
    assert seen.drift == pytest.approx(drift)
    assert seen.calls == pytest.approx(math.sqrt(calls))
    assert seen.state == pytest.approx(math.sqrt(within))


@pytest.mark.parametrize("sizes", [(6,) * 40, (1, 2, 3, 12) * 10])
def test_planted_components_come_back_whatever_the_clusters_sizes(sizes):
    of, rng = design(*sizes), stream(1, "planted", len(sizes), sizes[0])
    found = [variances(drawn(of, spread=2.0, within=3.0, rng=rng), of) for _ in range(300)]
    between, within = np.mean(np.array(found, dtype=float), axis=0)
    assert between == pytest.approx(4.0, rel=0.1)
    assert within == pytest.approx(9.0, rel=0.05)


def test_what_strata_differ_by_is_no_spread_between_clusters():
    of, rng = design(*(4,) * 200, strata=2), stream(1, "strata")
    gain = drawn(of, spread=1.0, within=1.0, rng=rng)
    apart = gain + 100.0 * of.strata
    assert variances(apart, of) == pytest.approx(variances(gain, of))
    assert variances(gain, of)[0] == pytest.approx(1.0, rel=0.3)


def test_clusters_no_more_unlike_than_their_states_have_no_spread():
    of = design(*(2,) * 6)
    assert variances(np.tile([-1.0, 1.0], 6), of) == (0.0, 2.0)


def test_a_cluster_of_one_state_holds_all_variance_at_once():
    of = design(*(1,) * 5)
    gain = np.array([1.0, 2.0, 3.0, 4.0, np.nan])
    between, within = variances(gain, of)
    assert between == pytest.approx(np.var([1, 2, 3, 4], ddof=1))
    assert within is None


def test_one_cluster_shows_no_spread():
    with pytest.raises(BadConfig, match="1 clusters with a defined gain shows no spread"):
        variances(np.ones(3), design(3))


@pytest.mark.parametrize("measure", ["point_error", "interval_score", "drift"])
def test_calls_bring_a_gain_the_noise_that_an_assumed_drift_stands_for(measure):
    """Two calls a context around a point of its own; intervals that miss a fifth of far outcomes."""
    rng, n = stream(1, "calls", measure), 60_000
    sigma, missed = 0.2, np.arange(n) % 5 == 0
    point = sigma * rng.normal(size=(n, 3, 2))
    outcome = np.where(missed, 50.0, 5.0)  # far from the point; outside, and well inside, the interval
    seen = observed(panel(point, outcome, width=20.0), measure, "D-M")
    assert seen.drift == pytest.approx(2 * sigma / math.sqrt(math.pi), rel=0.02)
    assert seen.per_drift == pytest.approx(per_drift(measure), rel=0.03)
    assert seen.state == pytest.approx(seen.calls, rel=0.05)  # nothing else varies here


def test_a_measure_that_no_rule_reads_has_no_known_call_noise():
    with pytest.raises(ValueError, match="no rule reads width"):
        per_drift("width")


def test_calls_without_a_gap_bring_nothing():
    rng = stream(1, "steady")
    steady = np.repeat(rng.normal(size=(60, 3, 1)), 2, axis=2)
    seen = observed(panel(steady, rng.normal(size=60)), "point_error", "S-M")
    assert (seen.drift, seen.calls) == (0.0, 0.0)
    assert seen.within > 0.0


def test_a_context_that_was_not_asked_shows_nothing():
    with pytest.raises(BadConfig, match="not asked in context N"):
        observed(panel(np.ones((12, 3, 2)), np.ones(12)), "point_error", "N-M")


def test_stated_numbers_are_assumed_of_every_contrast():
    found = assume([D_M, S_M], ALL, None, single=False)
    assert found[D_M] == found[S_M]
    assert found[D_M].effect == 1.0
    parts = found[D_M].components
    assert (parts.spread, parts.within, parts.drift) == (2.0, 3.0, 4.0)
    assert parts.calls == pytest.approx(4.0 * math.sqrt(math.pi) / 2)
    assert parts.state == pytest.approx(math.hypot(3.0, parts.calls))


def test_the_last_word_that_fits_a_contrast_stands():
    words = ALL | {"effect": ["1", "S-M=5", "point_error=7", "S-M=6"]}
    found = assume([D_M, S_M], words, None, single=False)
    assert (found[D_M].effect, found[S_M].effect) == (7.0, 6.0)


def test_what_is_not_stated_is_taken_from_the_earlier_run():
    found = assume([D_M], {"effect": ["1"], "spread": ["9"]}, {D_M: EARLIER}, single=False)
    assert found[D_M].components == Components(spread=9.0, within=2.0, drift=0.5, per_drift=4.0)


def test_another_drift_changes_the_earlier_run_s_call_noise_in_proportion():
    found = assume([D_M], {"effect": ["1"], "drift": ["0.25"]}, {D_M: EARLIER}, single=False)
    assert found[D_M].components.calls == EARLIER.calls / 2


def test_single_states_need_no_spread_within_their_clusters():
    stated = {"effect": ["1"], "spread": ["2"], "drift": ["0"]}
    assert assume([D_M], stated, None, single=True)[D_M].components.within == 0.0
    with pytest.raises(BadConfig, match="needs --within NUMBER; --like BUNDLE gives all but the effect"):
        assume([D_M], stated, None, single=False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"spread": ["-2"]}, "--spread -2 is not a number from 0 up to 1,000,000,000$"),
        ({"effect": ["-2"]}, "--effect -2 is not a number from 0 up to .*; a gate knows to which side"),
        ({"drift": ["D-M=much"]}, "--drift D-M=much is not a number from 0 up"),
        ({"within": ["nan"]}, "--within nan is not a number from 0 up"),
        ({"within": ["inf"]}, "--within inf is not a number from 0 up"),
        ({"spread": ["1e308"]}, "--spread 1e308 is not a number from 0 up to 1,000,000,000$"),
        ({"effect": ["z=1"]}, "--effect z=1 is of no contrast .* a key is one of D-M, point_error, y"),
        ({"spread": ["0"], "within": ["0"], "drift": ["0"]}, "nothing varies in y point_error D-M"),
        ({"effect": []}, "the power of y point_error D-M needs --effect NUMBER$"),
        ({"effect": [], "drift": []}, "needs --effect NUMBER, --drift NUMBER; --like BUNDLE gives"),
    ],
)  # fmt: skip
def test_a_wrong_assumption_is_refused_in_one_sentence(words, sentence):
    with pytest.raises(BadConfig, match=sentence):
        assume([D_M], ALL | words, None, single=False)
