"""The frozen credit rule: the published decision, eight gates, and what was not asked."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest

from predictive_credit.contrasts import CompleteCase, Contrast
from predictive_credit.studies.controlled import published, rule

NAMES = [f"{t} {p}" for t in ("accuracy_pp", "log_loss") for p in ("D-M", "S-M")]
Given = dict[str, dict[str, Contrast]]


def contrast(lower: float | None, upper: float | None) -> Contrast:
    """A gain with the ends of its 95 % interval, which is all that the rule reads."""
    return Contrast(
        status="estimated" if upper is not None else "not_estimable",
        reason=None if upper is not None else "2 states with a defined gain; an interval needs 3",
        mean=0.0,
        lower=None,
        upper=None,
        one_sided_lower=lower,
        one_sided_upper=upper,
        t_lower=None,
        t_upper=None,
        n_states=120,
        n_clusters=120,
        complete_case=CompleteCase(mean=0.0, lower=None, upper=None, n_states=120),
        best_case=0.0,
        worst_case=0.0,
    )


CREDIT, HARM, NEITHER = contrast(0.1, 0.3), contrast(-0.3, -0.1), contrast(-0.1, 0.1)


def all_four(of: Contrast, **changed: Contrast | None) -> Given:
    """The same contrast four times; `changed` replaces some by `target pair`, None leaves one out."""
    by_name: dict[str, Contrast | None] = {**dict.fromkeys(NAMES, of), **changed}
    given: Given = {}
    for name, one in by_name.items():
        target, pair = name.split()
        if one is not None:
            given.setdefault(target, {})[pair] = one
    return given


def test_the_published_contrasts_give_the_published_decision():
    printed = published.FIGURES["contrasts"]
    given = {
        target: {pair: contrast(c["lower"], c["upper"]) for pair, c in found["point_error"].items()}
        for target, found in printed.items()
    }
    decision = rule.decide("controlled", given)
    assert decision.status == published.FIGURES["decision"] == "inconclusive"
    assert [gate.seen for gate in decision.gates] == [
        -0.102,
        None,
        -0.0061,
        0.0022,
        0.252,
        None,
        0.0807,
        0.1076,
    ]
    # Only the donor's log loss is clearly worse than the matched card's.
    assert [gate.name for gate in decision.gates if gate.held] == ["log_loss S-M lower bound"]


def test_published_levels_and_contrasts_agree_with_each_other():
    levels: dict[str, Any] = published.FIGURES["contexts"]
    for target, measure, key, good_to in (
        ("log_loss", "point_error", "point_mae_call", 1.5e-4),
        ("log_loss", "interval_score", "interval_score_call", 0.015),
        ("accuracy_pp", "interval_score", "interval_score_call", 0.015),
    ):
        for pair, printed in published.FIGURES["contrasts"][target][measure].items():
            other, matched = pair.split("-")
            gain = levels[target][other][key] - levels[target][matched][key]
            assert gain == pytest.approx(printed["mean"], abs=good_to)
            assert printed["lower"] < printed["mean"] < printed["upper"]


def test_credit_in_all_four_contrasts_is_confirmed_and_harm_in_all_four_refutes():
    assert rule.decide("controlled", all_four(CREDIT)).status == "credit_confirmed"
    assert rule.decide("controlled", all_four(HARM)).status == "credit_refuted"
    assert rule.decide("controlled", all_four(NEITHER)).status == "inconclusive"


@pytest.mark.parametrize("name", NAMES)
def test_one_contrast_that_crosses_zero_leaves_both_answers_open(name: str):
    for rest, held in ((CREDIT, 3), (HARM, 3)):
        decision = rule.decide("controlled", all_four(rest, **{name: NEITHER}))
        assert decision.status == "inconclusive"
        assert sum(gate.held for gate in decision.gates) == held


@pytest.mark.parametrize("name", NAMES)
def test_credit_and_harm_do_not_mix(name: str):
    assert rule.decide("controlled", all_four(CREDIT, **{name: HARM})).status == "inconclusive"
    assert rule.decide("controlled", all_four(HARM, **{name: CREDIT})).status == "inconclusive"


def test_a_bound_of_zero_holds_nothing():
    assert rule.decide("controlled", all_four(contrast(0.0, 0.2))).status == "inconclusive"
    assert rule.decide("controlled", all_four(contrast(-0.2, 0.0))).status == "inconclusive"
    assert rule.decide("controlled", all_four(contrast(1e-9, 0.2))).status == "credit_confirmed"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("missing", [None, contrast(None, None)], ids=["not asked", "not estimable"])
def test_a_contrast_that_is_not_there_is_not_seen_and_does_not_hold(name: str, missing: Contrast | None):
    for rest in (CREDIT, HARM):
        decision = rule.decide("controlled", all_four(rest, **{name: missing}))
        assert decision.status == "inconclusive"
        unseen = [gate for gate in decision.gates if gate.seen is None]
        assert [gate.name for gate in unseen] == [f"{name} lower bound", f"{name} upper bound"]
        assert not any(gate.held for gate in unseen)


def test_nothing_asked_is_inconclusive():
    decision = rule.decide("controlled", {})
    assert decision.status == "inconclusive"
    assert [gate.name for gate in decision.gates] == [
        *(f"{name} lower bound" for name in NAMES),
        *(f"{name} upper bound" for name in NAMES),
    ]


def test_thresholds_cannot_be_passed_in_and_statuses_are_a_closed_list():
    assert list(inspect.signature(rule.decide).parameters) == ["study", "contrasts"]
    assert set(get_args(rule.Status)) == {"credit_confirmed", "credit_refuted", "inconclusive"}
    assert (rule.NAME, rule.LEVEL) == ("credit", 0.975)
