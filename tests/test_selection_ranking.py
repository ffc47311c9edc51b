"""Proposals in order: places, chances, ties, and what a budget buys of them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import numpy as np
import pytest

from predictive_credit import tables
from predictive_credit.errors import BadConfig
from predictive_credit.records import Target
from predictive_credit.selection import ranking
from predictive_credit.selection.errors import Errors
from predictive_credit.selection.ranking import Ranking, Row, Settings, Told
from predictive_credit.streams import stream

TARGET = Target(
    name="y", phrase="Y", unit="points", suffix="", size="0.0###", lower=-100.0, upper=100.0
)  # fmt: skip
SETTINGS = Settings(seed=1, top=2, baseline=0.0, budget=None, draws=2_000)
POINTS = (3.0, 2.0, 1.0, -2.0)


def spread(scale: float) -> Errors:
    """Errors of six tasks with four states each; without a bias."""
    noise = stream(3, "errors").normal(size=(6, 4))
    noise -= noise.mean()
    return Errors(
        target=TARGET,
        contexts=("M",),
        residual=scale * noise.reshape(1, -1),
        task_of=np.repeat(np.arange(6), 4),
    )


def told(*points: float, cost: float = 1.0) -> list[Told]:
    return [
        Told(id=f"p{k}", task=None, cost=cost, context="M", point=point, fallbacks=0)
        for k, point in enumerate(points)
    ]


def ranked(given: list[Told], errors: Errors, settings: Settings = SETTINGS) -> Ranking:
    return ranking.rank(given, errors, settings, stream(settings.seed, "rank"))


def by_id(found: Ranking) -> dict[str, Row]:
    return {row.id: row for row in found.rows}


def test_without_any_error_the_order_is_that_of_the_forecasts_and_certain():
    rows = ranked(told(1.0, 3.0, -2.0), spread(0.0)).rows
    assert [(row.id, row.rank, row.rank_lower, row.rank_upper) for row in rows] == [
        ("p1", 1, 1, 1), ("p0", 2, 2, 2), ("p2", 3, 3, 3),
    ]  # fmt: skip
    assert [row.best for row in rows] == [1.0, 0.0, 0.0]
    assert [row.top for row in rows] == [1.0, 1.0, 0.0]
    assert [row.chance for row in rows] == [1.0, 1.0, 0.0]
    assert rows[0].gain == rows[0].gain_lower == rows[0].gain_upper == 3.0


def test_a_chance_is_at_most_one_whatever_its_weights_round_to():
    sizes = [6] * 12  # 72 weights that add up to a little more than 1
    errors = Errors(
        target=TARGET, contexts=("M",), residual=np.zeros((1, sum(sizes))),
        task_of=np.repeat(np.arange(len(sizes)), sizes),
    )  # fmt: skip
    assert errors.weight.sum() > 1.0
    assert [row.chance for row in ranked(told(3.0), errors).rows] == [1.0]


def test_what_costs_less_for_the_same_gain_comes_first():
    dear, cheap = told(2.0)[0], replace(told(1.5)[0], id="cheap", cost=0.5)
    first, second = ranked([dear, cheap], spread(0.1)).rows
    assert (first.id, second.id) == ("cheap", "p0")
    assert first.per_cost == pytest.approx(3.0, abs=0.05)
    assert first.per_cost_upper == pytest.approx(2 * first.gain_upper)


def test_places_are_by_gain_per_cost_too():
    dear, cheap = replace(told(2.0)[0], cost=10.0), replace(told(1.5)[0], id="cheap")
    first, second = ranked([dear, cheap], spread(0.0)).rows
    assert (first.id, first.best, first.rank_lower, first.rank_upper) == ("cheap", 1.0, 1, 1)
    assert (second.best, second.rank_lower) == (0.0, 2)


def test_wider_errors_give_wider_rank_intervals_and_less_certain_bests():
    widths, bests = [], []
    for scale in (0.01, 1.0, 10.0):
        rows = ranked(told(*POINTS), spread(scale)).rows
        widths.append(sum(row.rank_upper - row.rank_lower for row in rows))
        bests.append(rows[0].best)
    assert widths[0] == 0 < widths[1] < widths[2]
    assert bests[0] == 1.0 > bests[1] > bests[2] > 0.25


def test_chances_add_up_to_the_places_there_are():
    rows = ranked(told(*POINTS), spread(2.0)).rows
    assert sum(row.best for row in rows) == pytest.approx(1.0)
    assert sum(row.top for row in rows) == pytest.approx(2.0)


def test_equal_forecasts_are_equal_to_the_last_digit_and_said_to_be():
    found = ranked(told(1.0, 2.0, 1.0, 1.0), spread(1.0))
    rows = by_id(found)
    assert found.ties == (("p0", "p2", "p3"),)
    assert [row.rank for row in found.rows] == [1, 2, 2, 2]
    assert rows["p0"].gain == rows["p2"].gain
    assert rows["p0"].chance == rows["p3"].chance
    assert rows["p0"].best == pytest.approx(rows["p2"].best, abs=0.05)


def test_ties_without_any_error_take_their_places_by_lot():
    rows = ranked(told(1.0, 1.0), spread(0.0)).rows
    assert [row.best for row in rows] == pytest.approx([0.5, 0.5], abs=0.05)
    assert [(row.rank_lower, row.rank_upper) for row in rows] == [(1, 2), (1, 2)]


def test_a_proposal_that_gains_nothing_is_listed_as_not_worth_its_cost():
    rows = by_id(ranked(told(1.0, -1.0), spread(0.5)))
    assert rows["p0"].is_worth
    assert not rows["p1"].is_worth


def test_an_expected_gain_with_poor_chances_is_not_worth_its_cost():
    rare = Errors(
        target=TARGET, contexts=("M",), residual=np.array([[-1.0, -1.0, -1.0, 4.0]]), task_of=np.arange(4)
    )
    row = ranked(told(0.5), rare).rows[0]
    assert row.gain > 0.0
    assert row.chance == 0.25
    assert not row.is_worth


def test_each_context_has_its_own_errors():
    both = replace(
        spread(0.1), contexts=("M", "D"), residual=np.vstack([spread(0.1).residual, spread(5.0).residual])
    )
    given = [told(1.0)[0], replace(told(1.0)[0], id="d", context="D")]
    found = ranked(given, both)
    rows = by_id(found)
    assert rows["d"].gain_upper - rows["d"].gain_lower > 10 * (rows["p0"].gain_upper - rows["p0"].gain_lower)
    assert set(found.bias) == {"M", "D"}
    assert set(ranked(given[:1], both).bias) == {"M"}


def test_proposals_of_one_task_make_a_budgets_total_less_certain():
    tasks = Errors(
        target=TARGET, contexts=("M",), residual=np.repeat([-2.0, -1.0, 0.0, 1.0, 2.0], 3)[None, :],
        task_of=np.repeat(np.arange(5), 3),
    )  # fmt: skip
    settings = replace(SETTINGS, budget=10.0)
    apart = told(*[3.0] * 8)
    shared = [replace(one, task="t") for one in apart]
    wide, narrow = (ranked(given, tasks, settings).bought for given in (shared, apart))
    assert wide is not None
    assert narrow is not None
    assert wide.gain == pytest.approx(narrow.gain) == pytest.approx(24.0)
    assert wide.upper - wide.lower > 1.3 * (narrow.upper - narrow.lower)


def test_a_budget_buys_the_exact_best_of_what_is_worth_its_cost_and_says_what_greed_would_gain():
    costs = {"p0": 6.0, "p1": 5.5, "p2": 5.5, "p3": 0.1}
    given = [replace(one, cost=costs[one.id]) for one in told(7.0, 6.0, 6.0, -1.0)]
    found = ranked(given, spread(0.0), replace(SETTINGS, budget=11.0))
    assert found.bought is not None
    assert (found.bought.how, found.bought.ids, found.bought.cost) == ("exact", ("p1", "p2"), 11.0)
    assert (found.bought.gain, found.bought.greedy) == pytest.approx((12.0, 7.0))
    assert (found.bought.lower, found.bought.upper) == (12.0, 12.0)
    assert [row.is_bought for row in found.rows] == [False, True, True, False]


def test_the_same_seed_gives_the_same_ranking_and_another_other_draws():
    one, again = (ranked(told(*POINTS), spread(2.0)) for _ in range(2))
    other = ranked(told(*POINTS), spread(2.0), replace(SETTINGS, seed=2))
    assert one == again
    assert [row.gain for row in one.rows] == [row.gain for row in other.rows]
    assert [row.best for row in one.rows] != [row.best for row in other.rows]


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"top": 0}, "--top counts places from 1 on; seen 0"),
        ({"budget": 0.0}, "--budget is an amount above 0 .* seen 0"),
        ({"budget": float("inf")}, "--budget is an amount above 0"),
        ({"budget": float("nan")}, "--budget is an amount above 0"),
    ],
)
def test_settings_that_fit_nothing_are_refused(wrong, sentence):
    with pytest.raises(BadConfig, match=sentence):
        ranked(told(1.0), spread(1.0), replace(SETTINGS, **wrong))


def test_as_a_table_a_ranking_keeps_every_figure():
    found = ranked(told(*POINTS), spread(2.0))
    text = tables.encode_csv(ranking.header(), ranking.table(found)).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [float(row["gain"]) for row in rows] == [row.gain for row in found.rows]
    assert [int(row["rank_upper"]) for row in rows] == [row.rank_upper for row in found.rows]
    assert [row["is_bought"] for row in rows] == [""] * 4
