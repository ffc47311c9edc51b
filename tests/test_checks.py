"""The five checks: what passes, what fails, and what nobody can tell."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from predictive_credit import canonical, checks
from predictive_credit.bootstrap import Design
from predictive_credit.checks import CheckResult, Signal
from predictive_credit.contrasts import Array, Contrast, estimate
from predictive_credit.panel import Gain
from predictive_credit.streams import stream

SOUND = {"chain_ok": True, "commitments_ok": True, "opened_after_freeze": True, "planned_after_opening": None}
DELIVERED: dict[str, Any] = {
    "planned": 432, "answered": 432, "readable": 432,
    "to_explain": 288, "explained": 288, "cards": {"elicited": (72, 0)},
}  # fmt: skip


def crossed(endpoints: int) -> Design:
    paths = product([f"{e:02d}" for e in range(endpoints)], "123", "12")
    return Design(paths=tuple(paths), drawn=(True, True, True))


def gain(mean: float, *, endpoints: int = 12) -> Contrast:
    every = np.random.default_rng(1).normal(mean, 0.01, size=6 * endpoints)
    design = crossed(endpoints)
    return estimate(
        [Gain(all=every, complete=every, worst=every, best=every)], design, design.clusters,
        draws=500, level=0.95, one_sided_level=0.95, rng=stream(1, "g"),
    )[0]  # fmt: skip


def both(stated: Array, matched: Array, description: Array) -> Signal:
    return Signal(stated=stated, matched=matched, description=description)


def sensitivity(stated: Array, matched: Array, description: Array) -> CheckResult:
    return of_targets({"roc_auc": both(stated, matched, description)})


def of_targets(signals: dict[str, Signal]) -> CheckResult:
    return checks.sensitivity(signals, crossed(12), draws=500, level=0.95, rng=lambda: stream(1, "s"))


def noise(seed: int, scale: float = 1.0) -> Array:
    return np.random.default_rng(seed).normal(0.0, scale, size=72)


def test_commitment_passes_on_three_facts_and_no_earlier_opening():
    assert checks.commitment(SOUND).status == "passed"


@pytest.mark.parametrize("fact", ["chain_ok", "commitments_ok", "opened_after_freeze"])
def test_commitment_fails_on_one_broken_fact_and_names_it(fact):
    result = checks.commitment(SOUND | {fact: False})
    assert result.status == "failed"
    assert fact in result.seen


def test_a_plan_made_after_the_outcomes_were_opened_fails_commitment():
    result = checks.commitment(SOUND | {"planned_after_opening": "the opening of run 3"})
    assert result.status == "failed"
    assert "the opening of run 3" in result.seen


def test_outcomes_that_came_after_the_freeze_pass_and_are_told():
    brought = SOUND | {"arrived_after_freeze": 7, "brought_by_user": True}
    result = checks.commitment(brought)
    assert (result.status, result.numbers["arrived_after_freeze"]) == ("passed", 7)
    assert "7 of them arrived after the freeze" in result.reading
    assert "rests on the word of whoever brought them" in result.reading
    assert "arrived" not in checks.commitment(brought | {"arrived_after_freeze": 0}).reading
    assert "commitments show" in checks.commitment(SOUND | {"brought_by_user": False}).reading
    broken = checks.commitment(SOUND | {"arrived_after_freeze": 7, "chain_ok": False})
    assert broken.status == "failed"


def test_without_evidence_of_the_order_of_events_commitment_cannot_be_told():
    assert checks.commitment({}).status == "not_estimable"
    assert checks.commitment({"chain_ok": True}).status == "not_estimable"
    assert checks.commitment({"chain_ok": False}).status == "failed"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "passed"),
        ({"answered": 431}, "failed"),
        ({"readable": 411}, "passed"),  # 95.1 %
        ({"readable": 410}, "failed"),  # 94.9 %
        ({"explained": 287}, "failed"),
        ({"planned": 0, "answered": 0, "readable": 0}, "not_estimable"),
    ],
)
def test_delivery_asks_for_every_unit_readable_replies_and_shown_explanations(changed, status):
    assert checks.delivery(**(DELIVERED | changed)).status == status


def test_delivery_prints_the_share_of_complete_cards_and_a_bound_on_the_readable_share():
    cards = {"elicited": (72, 36), "ordinary": (72, 0)}
    numbers = checks.delivery(**(DELIVERED | {"cards": cards, "readable": 430})).numbers
    assert numbers["complete_card_share"] == 0.25
    assert (numbers["cards"], numbers["complete_cards_elicited"], numbers["cards_ordinary"]) == (144, 36, 72)
    lower, share = numbers["readable_lower"], numbers["readable_share"]
    assert isinstance(lower, float)
    assert isinstance(share, float)
    assert 0.95 < lower < share == 430 / 432


@pytest.mark.parametrize("check", [checks.value, checks.alignment])
def test_value_and_alignment_need_both_lower_bounds_above_zero(check):
    good, bad, few = gain(0.02), gain(-0.02), gain(0.02, endpoints=2)

    def of(primary: Contrast | None, point: Contrast | None) -> CheckResult:
        result: CheckResult = check({"roc_auc": (primary, point)}, level=0.95)
        return result

    assert of(good, good).status == "passed"
    assert of(good, bad).status == "failed"
    assert of(bad, good).status == "failed"
    assert of(good, gain(0.001)).status == "failed"
    assert of(few, good).status == "not_estimable"
    assert of(None, good).status == "not_estimable"
    assert of(None, good).numbers["primary_mean"] is None


@pytest.mark.parametrize("check", [checks.value, checks.alignment])
def test_with_several_targets_all_have_to_pass_and_each_has_its_numbers(check):
    good, bad = gain(0.02), gain(-0.02)

    def of(gains: dict[str, checks.Gains]) -> CheckResult:
        result: CheckResult = check(gains, level=0.95)
        return result

    passed = of({"pp": (good, good), "nats": (good, good)})
    assert passed.status == "passed"
    assert (passed.numbers["pp.primary_lower"], passed.numbers["nats.point_error_upper"]) == (
        good.lower, good.upper,
    )  # fmt: skip
    assert passed.seen.startswith("pp: +")
    assert of({"pp": (good, good), "nats": (good, bad)}).status == "failed"
    assert of({"pp": (good, good), "nats": (None, good)}).status == "not_estimable"
    assert of({"pp": (bad, good), "nats": (None, good)}).status == "failed"


@pytest.mark.parametrize("check", [checks.value, checks.alignment])
def test_value_and_alignment_read_the_bound_that_no_setting_moves_and_say_which(check):
    good = gain(0.02)
    result = check({"roc_auc": (replace(good, lower=-1.0), replace(good, lower=-1.0))}, level=0.95)
    assert result.status == "passed"
    assert result.asked.startswith("one-sided 95% lower bounds of the ")
    assert result.seen.startswith(f"{good.one_sided_lower:+.5f} in the primary loss")
    assert result.numbers["point_error_one_sided_lower"] == good.one_sided_lower
    bad = replace(good, one_sided_lower=-1.0)
    assert check({"roc_auc": (good, bad)}, level=0.95).status == "failed"


def test_sensitivity_passes_when_the_forecasts_follow_the_cards_and_their_placebo_does_not():
    stated = noise(1)
    result = sensitivity(stated, stated + noise(2, 0.1), noise(3))
    assert result.status == "passed"
    lower = result.numbers["gap_lower"]
    assert isinstance(lower, float)
    assert 0 < lower < 1


def test_sensitivity_fails_for_a_forecaster_deaf_to_its_cards():
    assert sensitivity(noise(1), noise(2), noise(3)).status == "failed"


def test_sensitivity_fails_when_the_forecasts_would_have_followed_without_the_card():
    # The number can be guessed from the description: following it shows no reading.
    stated = noise(1)
    result = sensitivity(stated, stated + noise(2, 0.2), stated + noise(3, 0.2))
    rho = result.numbers["rho_matched"]
    assert isinstance(rho, float)
    assert rho > 0.9
    assert result.status == "failed"


def test_sensitivity_fails_for_a_forecaster_that_turns_its_cards_round():
    stated = noise(1)
    result = sensitivity(stated, -stated, noise(3))
    assert result.status == "failed"
    assert result.numbers["equal_signs_matched"] == 0.0


@pytest.mark.parametrize("constant", ["stated", "matched", "description"])
def test_sensitivity_cannot_be_told_from_a_constant(constant):
    cubes = {"stated": noise(1), "matched": noise(1), "description": noise(2)} | {constant: np.full(72, 0.1)}
    result = sensitivity(**cubes)
    assert result.status == "not_estimable"
    assert constant in result.seen


def test_cards_without_a_number_are_left_out_and_counted():
    stated = noise(1)
    silent = stated.copy()
    silent[:6] = np.nan
    result = sensitivity(silent, stated, noise(3))
    assert result.status == "passed"
    assert (result.numbers["n_states"], result.numbers["n_cards_without_number"]) == (66, 6)
    silent[12:] = np.nan
    assert sensitivity(silent, stated, noise(3)).status == "not_estimable"
    assert sensitivity(np.full(72, np.nan), stated, noise(3)).status == "not_estimable"


@pytest.mark.parametrize(("n", "status"), [(9, "not_estimable"), (10, "passed")])
def test_sensitivity_asks_for_ten_cards_with_a_number(n, status):
    stated = np.full(72, np.nan)
    stated[: 6 * n : 6] = noise(1)[: 6 * n : 6]  # of as many endpoints
    result = sensitivity(stated, noise(1), -noise(1))
    assert result.status == status
    assert (n < 10) == ("9 states with a card that states a number; 10 are needed" in result.seen)


def test_resamples_without_a_rank_correlation_are_counted_and_may_not_be_many():
    """All but one endpoint's forecasts are one number: a third of the resamples never draw that one."""
    stated, matched = noise(1), np.zeros(72)
    matched[:6] = stated[:6]
    result = sensitivity(stated, matched, noise(3))
    share = result.numbers["n_undefined_resamples"]
    assert isinstance(share, int)
    assert share / 500 == pytest.approx((11 / 12) ** 12, abs=0.07)
    assert result.status == "not_estimable"
    assert result.seen == f"{share} of 500 resamples hold a constant; at most 5% may"
    assert sensitivity(stated, stated, noise(3)).numbers["n_undefined_resamples"] == 0


def test_sensitivity_is_asked_of_every_target_over_the_same_resamples():
    stated = noise(1)
    good, deaf = both(stated, stated + noise(2, 0.1), noise(3)), both(stated, noise(2), noise(3))
    twice = of_targets({"pp": good, "nats": good})
    assert twice.status == "passed"
    assert twice.numbers["pp.gap_lower"] == twice.numbers["nats.gap_lower"]
    assert of_targets({"pp": good, "nats": deaf}).status == "failed"
    silent = both(np.full(72, np.nan), noise(2), noise(3))
    result = of_targets({"pp": good, "nats": silent})
    assert result.status == "not_estimable"
    assert "nats: 0 clusters with a card that states a number; 3 are needed" in result.seen


def test_every_result_is_plain_json_with_its_sentence():
    results: list[Any] = [
        checks.commitment({}), checks.delivery(**DELIVERED), checks.value({"a": (None, None)}, level=0.95),
        checks.alignment({"a": (gain(0.1), gain(0.1)), "b": (None, None)}, level=0.95),
        sensitivity(noise(1), noise(2), noise(3)),
    ]  # fmt: skip
    for result in results:
        plain = result.plain()
        canonical.encode(plain)
        assert plain["reading"].endswith(".")
        assert {"status", "asked", "seen"} <= plain.keys()
