"""The five checks: what passes, what fails, and what nobody can tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from predictive_credit import canonical, checks
from predictive_credit.checks import CheckResult
from predictive_credit.contrasts import Array, Contrast, estimate
from predictive_credit.panel import Gain
from predictive_credit.streams import stream

SOUND = {"chain_ok": True, "commitments_ok": True, "opened_after_freeze": True, "planned_after_opening": None}
DELIVERED = {
    "planned": 432, "answered": 432, "readable": 432,
    "to_explain": 288, "explained": 288, "cards": 72, "complete": 0,
}  # fmt: skip


def gain(mean: float, *, endpoints: int = 12) -> Contrast:
    cube = np.random.default_rng(1).normal(mean, 0.01, size=(endpoints, 3, 2))
    every = Gain(all=cube, complete=cube, worst=cube, best=cube)
    return estimate([every], draws=500, level=0.95, one_sided_level=0.95, rng=stream(1, "g"))[0]


def sensitivity(stated: Array, matched: Array, description: Array) -> CheckResult:
    return checks.sensitivity(stated, matched, description, draws=500, level=0.95, rng=stream(1, "s"))


def noise(seed: int, scale: float = 1.0, shape: tuple[int, int, int] = (12, 3, 2)) -> Array:
    return np.random.default_rng(seed).normal(0.0, scale, size=shape)


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
    numbers = checks.delivery(**(DELIVERED | {"complete": 18, "readable": 430})).numbers
    assert numbers["complete_card_share"] == 0.25
    lower, share = numbers["readable_lower"], numbers["readable_share"]
    assert isinstance(lower, float)
    assert isinstance(share, float)
    assert 0.95 < lower < share == 430 / 432


@pytest.mark.parametrize("check", [checks.value, checks.alignment])
def test_value_and_alignment_need_both_lower_bounds_above_zero(check):
    good, bad, few = gain(0.02), gain(-0.02), gain(0.02, endpoints=2)
    assert check(good, good).status == "passed"
    assert check(good, bad).status == "failed"
    assert check(bad, good).status == "failed"
    assert check(good, gain(0.001)).status == "failed"
    assert check(few, good).status == "not_estimable"
    assert check(None, good).status == "not_estimable"
    assert check(None, good).numbers["primary_mean"] is None


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
    cubes = {"stated": noise(1), "matched": noise(1), "description": noise(2)} | {
        constant: np.full((12, 3, 2), 0.1)
    }
    result = sensitivity(**cubes)
    assert result.status == "not_estimable"
    assert constant in result.seen


def test_cards_without_a_number_are_left_out_and_counted():
    stated = noise(1)
    silent = stated.copy()
    silent[0] = np.nan
    result = sensitivity(silent, stated, noise(3))
    assert result.status == "passed"
    assert (result.numbers["n_states"], result.numbers["n_cards_without_number"]) == (66, 6)
    silent[2:] = np.nan
    assert sensitivity(silent, stated, noise(3)).status == "not_estimable"
    assert sensitivity(np.full((12, 3, 2), np.nan), stated, noise(3)).status == "not_estimable"


def test_every_result_is_plain_json_with_its_sentence():
    results: list[Any] = [
        checks.commitment({}), checks.delivery(**DELIVERED), checks.value(None, None),
        checks.alignment(gain(0.1), gain(0.1)), sensitivity(noise(1), noise(2), noise(3)),
    ]  # fmt: skip
    for result in results:
        plain = result.plain()
        canonical.encode(plain)
        assert plain["reading"].endswith(".")
        assert {"status", "asked", "seen"} <= plain.keys()
