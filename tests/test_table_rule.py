"""The frozen credit rule of the table study: all of one sign in every target, or nothing is decided."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from predictive_credit.contrasts import CompleteCase, Contrast
from predictive_credit.studies.study import Findings
from predictive_credit.studies.table import TABLE, decide, rule


def contrast(lower: float | None, upper: float | None) -> Contrast:
    """A gain with its two one-sided bounds, which is all that the rule reads."""
    mean = None if lower is None or upper is None else (lower + upper) / 2
    return Contrast(
        status="estimated" if mean is not None else "not_estimable",
        reason=None if mean is not None else "2 clusters with a defined gain; an interval needs 3",
        mean=mean, lower=lower, upper=upper, one_sided_lower=lower, one_sided_upper=upper, t_lower=None,
        t_upper=None, n_states=30, n_clusters=5, best_case=mean, worst_case=mean,
        complete_case=CompleteCase(mean=mean, lower=None, upper=None, n_states=30),
    )  # fmt: skip


UP, DOWN, BOTH, NONE = contrast(0.1, 0.3), contrast(-0.3, -0.1), contrast(-0.1, 0.1), contrast(None, None)


def status(*gains: Contrast) -> str:
    """The decision on two targets whose gains D-M, S-M, D-M, S-M are these."""
    pairs = {
        target: dict(zip(rule.PAIRS, gains[at : at + 2], strict=True)) for target, at in (("t", 0), ("u", 2))
    }
    return rule.decide("mine", pairs, ("t", "u")).status


def test_all_gains_above_zero_confirm_and_all_below_refute():
    assert status(UP, UP, UP, UP) == "credit_confirmed"
    assert status(DOWN, DOWN, DOWN, DOWN) == "credit_refuted"


@pytest.mark.parametrize("odd", [BOTH, NONE, DOWN])
@pytest.mark.parametrize("at", range(4))
def test_one_gain_of_four_that_is_not_above_zero_leaves_it_open(odd: Contrast, at: int):
    gains = [UP] * 4
    gains[at] = odd
    assert status(*gains) == "inconclusive"


@pytest.mark.parametrize("odd", [BOTH, NONE, UP])
@pytest.mark.parametrize("at", range(4))
def test_one_gain_of_four_that_is_not_below_zero_leaves_it_open(odd: Contrast, at: int):
    gains = [DOWN] * 4
    gains[at] = odd
    assert status(*gains) == "inconclusive"


def test_a_bound_of_exactly_zero_holds_no_gate():
    zero = contrast(0.0, 0.0)
    decision = rule.decide("mine", {"t": dict.fromkeys(rule.PAIRS, zero)}, ("t",))
    assert [gate.held for gate in decision.gates] == [False] * 4


def test_a_target_or_pair_that_was_not_asked_leaves_it_open():
    assert rule.decide("mine", {"t": dict.fromkeys(rule.PAIRS, UP)}, ("t", "u")).status == "inconclusive"
    assert rule.decide("mine", {"t": {"D-M": UP}}, ("t",)).status == "inconclusive"
    with pytest.raises(ValueError, match="needs a target"):
        rule.decide("mine", {}, ())


def test_the_gates_name_target_pair_and_bound():
    gates = rule.decide("mine", {"t": {"D-M": UP, "S-M": BOTH}}, ("t",)).gates
    assert [(gate.name, gate.asked, gate.seen, gate.held) for gate in gates] == [
        ("t D-M lower bound", "> 0", 0.1, True), ("t S-M lower bound", "> 0", -0.1, False),
        ("t D-M upper bound", "< 0", 0.3, False), ("t S-M upper bound", "< 0", 0.1, False),
    ]  # fmt: skip


def test_the_study_hands_the_rule_its_point_errors():
    found = {"t": {"point_error": dict.fromkeys(rule.PAIRS, UP), "drift": dict.fromkeys(rule.PAIRS, DOWN)}}
    assert decide("mine", Findings(contrasts=found)).status == "credit_confirmed"
    assert (TABLE.primary_loss, TABLE.one_sided_level) == ("point_error", rule.LEVEL)


def test_the_rule_stands_alone():
    imports = [line for line in inspect.getsource(rule).splitlines() if line.startswith("from predictive")]
    assert imports == [
        "from predictive_credit.contrasts import Contrast",
        "from predictive_credit.decisions import Decision, Gate",
    ]
    assert set(get_args(rule.Status)) == {"credit_confirmed", "credit_refuted", "inconclusive"}
