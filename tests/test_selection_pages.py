"""What a ranking says in a terminal: what pays, what does not, what is equal, and what to doubt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from predictive_credit.records import Target
from predictive_credit.selection import pages, ranking
from predictive_credit.selection.errors import Errors
from predictive_credit.selection.pages import Record, Shown, Source
from predictive_credit.selection.ranking import Settings, Told
from predictive_credit.selection.replay import BURN_IN, Policy, Regret, Verdict
from predictive_credit.streams import stream

TARGET = Target(
    name="y", phrase="Yield", unit="points", suffix="", size="0.0###", lower=-100.0, upper=100.0
)  # fmt: skip
SOURCE = Source(
    where="bundles/x", study="x", forecaster="m", checks={"commitment": "passed", "value": "not_estimable"},
    target="y", phrase="Yield", unit="points", better="higher", states=4, tasks=4, score=1.0,
)  # fmt: skip
WORSE = Policy(
    name="M", spent=(), area=Regret(regret=1.4, lower=1.1, upper=1.7), verdict="worse than random"
)  # fmt: skip


def said(*points: float, budget: float | None = None, **changes: Any) -> str:
    errors = Errors(
        target=TARGET, contexts=("M",), residual=np.array([[-0.1, 0.1, -0.1, 0.1]]), task_of=np.arange(4)
    )
    told = [
        Told(id=f"p{k}", task=None, cost=1.0, context="M", point=point, fallbacks=0)
        for k, point in enumerate(points)
    ]
    settings = Settings(seed=1, top=1, baseline=0.0, budget=budget, draws=50)
    made = ranking.rank(told, errors, settings, stream(1, "r"))
    shown = Shown(
        file="p.csv", source=SOURCE, is_brought=True, others=(), refused={}, settings=settings, notes=(),
        record=Record(policies=(), predicted=()), ranking=made,
    )  # fmt: skip
    return pages.ranked(replace(shown, **changes))


def test_the_first_lines_say_what_is_gained_and_on_whose_checks():
    first, second, *_ = said(1.0).splitlines()
    assert (
        first == "p.csv: 1 proposal by expected gain per cost; a gain is in Yield in points, higher is better"
    )
    assert second == "m (forecasts of the file), checked in bundles/x: commitment passed, value not estimable"


def test_what_does_not_pay_is_listed_below_and_not_hidden():
    above, below = said(1.0, -1.0).split("not worth their cost")
    assert "p0" in above
    assert "p1" not in above
    assert "p1" in below
    assert "not worth" not in said(1.0, 2.0)
    assert "no proposal is worth its cost" in said(-1.0)


def test_equal_proposals_are_named():
    assert "Equal expected gain per cost: p0 and p2; they stand in the order of their ids." in said(
        1.0, 2.0, 1.0
    )
    assert "Equal expected" not in said(1.0, 2.0)
    assert "nothing but costs tells the proposals apart" in said(1.0, 1.0)


def test_a_gain_per_cost_in_thousands_is_not_rounded_away():
    told = [Told(id="p", task=None, cost=40_000.0, context="M", point=0.02, fallbacks=0)]
    errors = Errors(target=TARGET, contexts=("M",), residual=np.zeros((1, 4)), task_of=np.arange(4))
    made = ranking.rank(told, errors, Settings(seed=1, top=1, baseline=0.0, budget=None), stream(1, "r"))
    assert "+5e-07" in said(1.0, ranking=made)


def test_a_budget_says_what_it_buys():
    assert "budget 1: run p1 for 1 (exact); expected total gain +2, 80" in said(1.0, 2.0, budget=1.0)
    assert "budget 0.5: buys nothing that is worth its cost" in said(1.0, budget=0.5)


def test_a_record_worse_than_random_stands_first_among_what_to_know():
    notes = said(1.0, record=Record(policies=(WORSE,), predicted=()), notes=("Another thing.",)).split(
        "\n\n"
    )[-1]
    assert notes.splitlines()[0].endswith(
        "a regret of 1.40 [1.10, 1.70] (0 oracle, 1 random order): worse than random."
    )


@pytest.mark.parametrize(
    ("lower", "upper", "verdict", "said_so"),
    [
        (0.8, 1.2, "not told from random", True),
        (1.1, 1.7, "worse than random", True),
        (0.2, 0.9, "better than random", False),
    ],
)
def test_an_order_no_better_than_chance_is_cautioned_against_above_the_ranking(
    lower: float, upper: float, verdict: Verdict, said_so: bool
):
    policy = Policy(name="M", spent=(), area=Regret(regret=0.9, lower=lower, upper=upper), verdict=verdict)
    burn_in = replace(WORSE, name=BURN_IN)  # there to be beaten, it orders nothing here
    record = Record(policies=(policy, burn_in), predicted=())
    head = said(1.0, record=record, cautions=pages.cautions(record)).partition("\n\n")[0].splitlines()
    caution = (
        f"CAUTION: the order by forecasts in context M is {verdict} on the evidence's own states: regret "
        f"0.90 [{lower:.2f}, {upper:.2f}], where 1 is a random order."
    )
    assert head[2:] == ([caution] if said_so else [])


def test_evidence_that_was_not_used_is_named_with_the_reason():
    told = said(1.0, others=("bundles/y",), refused={"bundles/z": "sensitivity failed"})
    assert "bundles/y: its checks passed too" in told
    assert "bundles/z: not used, sensitivity failed." in told
