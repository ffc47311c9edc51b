"""Power by simulation: closed forms, the machinery that decides the real study, and what moves it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import nct
from scipy.stats import t as student

from predictive_credit.bootstrap import Design
from predictive_credit.contrasts import estimate
from predictive_credit.panel import Gain
from predictive_credit.streams import stream
from predictive_credit.studies.asks import Ask
from predictive_credit.studies.assumptions import Assumed, Components, Key
from predictive_credit.studies.power import (
    MOST,
    Bounds,
    Effort,
    Population,
    Power,
    Simulation,
    gains,
    least,
    power,
    share,
    simulated,
    span,
    t_bounds,
)

BOUND = Ask(gate="bound", measure="point_error", pair="D-M", kind="bound")
INSIDE = Ask(gate="inside", measure="point_error", pair="D-M", kind="equivalence", margin=1.0)
KEY = Key("y", "point_error", "D-M")
QUICK = Effort(studies=1000, draws=300, search_studies=400, search_draws=200)
FLAT = tuple((f"{k:02d}",) for k in range(20))  # twenty states, each its own cluster
NESTED = tuple((f"{k:02d}", str(state)) for k in range(12) for state in range(3))


def varying(*, spread: float = 1.0, within: float = 0.0, effect: float = 0.5) -> Assumed:
    return Assumed(
        effect=effect, components=Components(spread=spread, within=within, drift=0.0, per_drift=1.0)
    )


def found(
    assumed: Assumed, ask: Ask = BOUND, *,
    paths: tuple[tuple[str, ...], ...] = NESTED, effort: Effort = QUICK, seed: int = 1, level: float = 0.95,
) -> Power:  # fmt: skip
    population = Population(paths=paths, drawn=(True,) * len(paths[0]))
    simulation = Simulation(
        population=population,
        assumed={KEY: assumed},
        study="s",
        seed=seed,
        one_sided_level=level,
        effort=effort,
    )
    return power(simulation, [(KEY, ask)])


def share_of(assumed: Assumed, ask: Ask = BOUND, interval: str = "t", **more: object) -> float:
    of = found(assumed, ask, **more).gates[0]  # type: ignore[arg-type]  # passed through
    return next(r.power.share for r in of.resolved if r.interval == interval)


def t_power(n: int, effect: float, *, level: float = 0.95) -> float:
    """Power of the one-sided t test on n normal numbers of standard deviation 1."""
    return float(nct.sf(student.ppf(level, n - 1), n - 1, effect * n**0.5))


@pytest.mark.parametrize("effect", [0.2, 0.5, 0.8])
def test_on_one_level_the_t_interval_has_the_power_of_the_noncentral_t(effect):
    assumed = varying(effect=effect)
    of = found(assumed, paths=FLAT, effort=replace(QUICK, studies=4000)).gates[0].under("t")
    assert of.power.share == pytest.approx(t_power(20, effect), abs=4 * of.power.error)
    assert of.power.error == pytest.approx((of.power.share * (1 - of.power.share) / 4000) ** 0.5, rel=0.05)


def test_the_effect_resolved_and_the_clusters_needed_are_those_of_the_noncentral_t():
    effort = replace(QUICK, studies=8000, search_studies=4000)
    of = found(varying(effect=0.4), paths=FLAT, effort=effort).gates[0].under("t")
    for aim, effect in ((0.8, of.effect_80), (0.9, of.effect_90)):
        exact = brentq(lambda d, aim=aim: t_power(20, d) - aim, 0.0, 3.0)
        assert effect == pytest.approx(exact, rel=0.03)
    needed = next(n for n in range(2, 500) if t_power(n, 0.4) >= 0.8)
    assert of.clusters_80 == pytest.approx(needed, abs=3)


def test_bounds_are_those_that_contrasts_estimate_decides_with():
    design = Population(paths=NESTED, drawn=(True, True)).design(12)
    assumed = {"D-M": varying(within=2.0), "S-M": varying(spread=0.5, within=1.0)}
    rows = gains(design, assumed, 5, stream(1, "gains"))
    decided = estimate(
        [Gain(all=row, complete=row, worst=row, best=row) for row in rows.reshape(10, -1)],
        design, design.clusters, draws=250, level=0.90, one_sided_level=0.95, rng=stream(1, "draws"),
    )  # fmt: skip
    seen = {
        interval: simulated(
            design, assumed, interval=interval, studies=5, draws=250, level=0.95,
            gains_rng=stream(1, "gains"), draws_rng=stream(1, "draws"),
        )
        for interval in ("percentile", "t")
    }  # fmt: skip
    for k, contrast in enumerate(decided):
        pair, study = ("D-M", "S-M")[k // 5], k % 5
        percentile, t = (Bounds(*(end[study] for end in seen[i][pair])) for i in ("percentile", "t"))
        assert percentile.mean == contrast.mean == t.mean
        assert percentile.lower == contrast.one_sided_lower
        assert percentile.upper == contrast.one_sided_upper
        assert (t.lower, t.upper) == pytest.approx((contrast.t_lower, contrast.t_upper))


def test_one_cluster_bounds_nothing():
    lower, upper = t_bounds(
        np.ones((3, 2)), Design(paths=(("a", "1"), ("a", "2")), drawn=(True, True)), level=0.9
    )
    assert np.isneginf(lower).all()
    assert np.isposinf(upper).all()


@pytest.mark.parametrize("interval", ["percentile", "t"])
def test_power_grows_with_the_effect_and_the_clusters_and_falls_with_every_spread(interval):
    usual = share_of(varying(within=1.0), interval=interval)
    assert 0.2 < usual < 0.8
    assert share_of(varying(within=1.0, effect=0.8), interval=interval) > usual + 0.1
    assert share_of(varying(within=1.0), interval=interval, paths=NESTED[:18]) < usual - 0.05
    assert share_of(varying(within=1.0, spread=1.5), interval=interval) < usual - 0.1
    assert share_of(varying(within=3.0), interval=interval) < usual - 0.1


def test_calls_that_drift_take_power_as_any_other_noise_of_states_does():
    quiet = varying(spread=0.2, effect=1.0)
    loud = replace(quiet, components=replace(quiet.components, drift=3.0))
    as_states = replace(quiet, components=replace(quiet.components, within=3.0))
    assert loud.components.state == as_states.components.state == 3.0
    assert found(loud).gates[0].resolved == found(as_states).gates[0].resolved
    assert share_of(loud) < share_of(quiet) - 0.1


def test_without_a_gain_the_t_interval_holds_as_often_as_its_level_says():
    of = found(varying(), paths=NESTED, effort=replace(QUICK, studies=4000)).gates[0]
    assert of.nominal == pytest.approx(0.05)
    assert of.under("t").at_null.share == pytest.approx(0.05, abs=4 * of.under("t").at_null.error)


def test_without_a_gain_the_percentile_interval_of_few_clusters_holds_too_often():
    for paths, low, high in ((NESTED, 0.06, 0.11), (NESTED[:12], 0.10, 0.20)):
        of = found(varying(), paths=paths, effort=replace(QUICK, studies=4000)).gates[0]
        assert low < of.under("percentile").at_null.share < high


def test_a_harm_is_the_mirror_image_of_a_gain():
    bounds = Bounds(mean=np.array([0.1]), lower=np.array([-0.3]), upper=np.array([0.6]))
    assert span(BOUND, bounds).low == pytest.approx([0.3])
    assert span(replace(BOUND, harm=True), bounds).low == pytest.approx([0.6])
    margin = replace(BOUND, kind="margin", margin=0.5)
    assert span(margin, bounds).low == pytest.approx([0.4])
    assert span(replace(margin, harm=True), bounds).low == pytest.approx([0.6])


def test_an_equivalence_holds_between_the_margins_and_nowhere_else():
    bounds = Bounds(mean=np.zeros(2), lower=np.array([-0.4, -1.2]), upper=np.array([0.3, 1.1]))
    narrow = span(INSIDE, bounds)
    assert narrow.low[0] == pytest.approx(-0.6)
    assert narrow.high[0] == pytest.approx(0.7)
    assert narrow.holds(0.69).tolist() == [True, False]
    assert narrow.holds(0.71).tolist() == [False, False]


def test_an_equivalence_is_lost_as_the_true_gain_nears_its_margin():
    assumed = varying(effect=0.0)
    of = found(assumed, INSIDE).gates[0].under("t")
    assert of.at_null.share == pytest.approx(0.05, abs=4 * of.at_null.error)  # at the margin itself
    assert of.effect_80 is not None
    assert 0.0 < of.effect_80 < 1.0
    at_edge = share_of(replace(assumed, effect=of.effect_80 - 1e-9), INSIDE)
    assert at_edge == pytest.approx(0.8, abs=0.002)
    assert share_of(replace(assumed, effect=of.effect_80 + 0.2), INSIDE) < 0.8
    assert found(replace(assumed, effect=1.0), INSIDE).gates[0].under("t").clusters_80 is None


def test_a_noisy_equivalence_holds_at_no_gain_at_all():
    of = found(varying(spread=6.0, effect=0.0), INSIDE).gates[0].under("percentile")
    assert of.power.share == 0.0
    assert of.power.error > 0.0
    assert of.effect_80 is None
    assert of.clusters_80 is not None
    assert of.clusters_80 == pytest.approx((1.645 + 1.282) ** 2 * 36, rel=0.15)


def test_a_gain_too_small_for_any_number_of_clusters_says_so():
    of = found(varying(effect=0.01))
    assert [r.clusters_80 for r in of.gates[0].resolved] == [None, None]
    assert [r.clusters_80 for r in of.rule] == [None, None]
    assert of.most == MOST


def test_the_rule_holds_no_oftener_than_its_weakest_gate():
    asks = [
        (Key("y", "point_error", "D-M"), INSIDE),
        (Key("y", "point_error", "S-M"), replace(INSIDE, pair="S-M")),
        (Key("y", "drift", "D-M"), replace(BOUND, measure="drift")),
    ]
    assumed = {key: varying(spread=1.2, effect=0.9 if key.measure == "drift" else 0.0) for key, _ in asks}
    of = power(
        Simulation(
            population=Population(paths=NESTED, drawn=(True, False)), assumed=assumed, study="s", seed=1,
            one_sided_level=0.95, effort=QUICK,
        ),
        asks,
    )  # fmt: skip
    for whole in of.rule:
        alone = [gate.under(whole.interval) for gate in of.gates]
        assert (
            np.prod([r.power.share for r in alone]) <= whole.power.share <= min(r.power.share for r in alone)
        )
        assert whole.clusters_80 is not None
        assert whole.clusters_80 >= max(r.clusters_80 or 0 for r in alone)


def test_pairs_share_what_the_matched_context_brings():
    design = Population(paths=NESTED, drawn=(True, True)).design(12)
    drawn = gains(design, {"D-M": varying(), "S-M": varying(spread=3.0)}, 4000, stream(1, "x"))
    means = drawn.mean(axis=-1)
    assert np.corrcoef(means)[0, 1] == pytest.approx(0.5, abs=0.05)
    assert means.std(axis=-1) == pytest.approx([12**-0.5, 3 * 12**-0.5], rel=0.05)
    # Three states of a cluster alike, as nothing varies within.
    assert np.ptp(drawn[0, 0][:3]) == 0.0


def test_fewer_clusters_than_an_interval_needs_leave_every_bound_silent():
    of = found(varying(), paths=NESTED[:6])
    assert of.reason == "2 clusters with a defined gain; an interval needs 3"
    for one in of.gates[0].resolved:
        assert one.power.share == one.at_null.share == 0.0
        assert one.effect_80 is None
        assert one.clusters_80 is not None
    margin = found(varying(), replace(BOUND, kind="margin", margin=0.1), paths=NESTED[:6]).gates[0]
    assert margin.resolved[0].interval is None
    assert margin.resolved[0].power.share > 0.5


def test_the_same_seed_finds_the_same_and_another_another():
    first, again, other = (found(varying(within=1.0), seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.gates[0].resolved[0].power != other.gates[0].resolved[0].power


def test_a_population_of_any_size_is_made_like_the_planned_one():
    paths = (
        ("a", "1", "x"), ("a", "1", "y"), ("a", "2", "x"),
        ("b", "1", "x"), ("b", "2", "x"), ("b", "3", "x"), ("b", "4", "x"),
    )  # fmt: skip
    population = Population(paths=paths, drawn=(False, True, False))
    assert population.each == 2
    planned = population.design(2)
    assert sorted(len(path) for path in planned.paths) == [3] * 7
    assert np.bincount(planned.clusters).tolist() == [2, 1, 1, 1, 1, 1]
    grown = population.design(5)
    assert np.bincount(grown.clusters).tolist() == [2, 1, 2, 1, 2, *[1] * 10]
    assert (population.total(2), population.total(5)) == (6, 15)
    assert population.smallest(15) == 5


@pytest.mark.parametrize("guess", [1, 7, 50, 400])
@pytest.mark.parametrize("needed", [1, 3, 20, 33])
def test_the_least_number_that_holds_is_found_from_any_guess(needed, guess):
    assert least(lambda n: n >= needed, guess) == needed


@pytest.mark.parametrize("guess", [1, 120, 499])
def test_a_large_number_is_found_as_close_as_the_simulation_can_tell(guess):
    assert least(lambda n: n >= 300, guess) == pytest.approx(300, rel=0.03)
    assert least(lambda n: n >= 501, guess) is None
    assert least(lambda n: True, guess, fewest=3) == 3


def test_a_share_of_none_or_all_still_has_an_error():
    for held in (np.zeros(100, dtype=bool), np.ones(100, dtype=bool)):
        assert 0.005 < share(held).error < 0.02
    half = share(np.arange(100) < 50)
    assert half.share == 0.5
    assert half.error == pytest.approx(0.05)
