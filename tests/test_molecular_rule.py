"""The frozen harm rule: the published decision, its four gates one by one, and what was not asked."""

from __future__ import annotations

import inspect
from typing import get_args

import pytest

from predictive_credit.contrasts import CompleteCase, Contrast
from predictive_credit.studies.molecular import published, rule


def contrast(mean: float | None, upper: float | None, *, lower: float | None = None) -> Contrast:
    """A gain with its mean and one-sided upper bound, which is all that the rule reads."""
    return Contrast(
        status="estimated" if upper is not None else "not_estimable",
        reason=None if upper is not None else "2 endpoints with a defined gain; an interval needs 3",
        mean=mean,
        lower=lower,
        upper=upper,
        one_sided_lower=lower,
        one_sided_upper=upper,
        t_lower=None,
        t_upper=None,
        n_states=72,
        n_clusters=12,
        complete_case=CompleteCase(mean=mean, lower=None, upper=None, n_states=72),
        best_case=mean,
        worst_case=mean,
    )


HARMFUL = contrast(-0.008, -0.001)  # a gain of -.008 at most -.001 is a harm of .008, at least .001


def decide(description: Contrast | None, donor: Contrast | None) -> tuple[str, dict[str, bool]]:
    given = {pair: c for pair, c in (("D-M", description), ("S-M", donor)) if c is not None}
    decision = rule.decide("molecular", given)
    return decision.status, {gate.name: gate.held for gate in decision.gates}


def test_the_published_contrasts_give_the_published_decision():
    printed = published.FIGURES["contrasts"]["roc_auc"]["interval_score"]
    given = {pair: contrast(c["mean"], c["upper"], lower=c["lower"]) for pair, c in printed.items()}
    decision = rule.decide("molecular", given)
    assert decision.status == published.FIGURES["decision"] == "confirmation_no_go"
    assert [gate.held for gate in decision.gates] == [False] * 4
    assert [gate.seen for gate in decision.gates] == [0.002628, -0.010375, 0.002856, -0.011428]


def test_published_levels_and_contrasts_agree_with_each_other():
    levels = {c: row["interval_score_call"] for c, row in published.FIGURES["contexts"]["roc_auc"].items()}
    for pair, printed in published.FIGURES["contrasts"]["roc_auc"]["interval_score"].items():
        other, matched = pair.split("-")
        assert levels[other] - levels[matched] == pytest.approx(printed["mean"], abs=1.5e-5)
    drift = {c: row["drift"] for c, row in published.FIGURES["contexts"]["roc_auc"].items()}
    for pair, printed in published.FIGURES["contrasts"]["roc_auc"]["drift"].items():
        other, matched = pair.split("-")
        # From printed drifts, not the unrounded ones: good to a tenth of a percent of the drift.
        assert 1 - drift[matched] / drift[other] == pytest.approx(printed["reduction_share"], abs=1e-3)


def test_harm_in_both_contrasts_is_confirmed():
    status, held = decide(HARMFUL, HARMFUL)
    assert status == "harm_confirmed"
    assert all(held.values())


def test_the_margin_itself_is_enough_and_a_bound_of_zero_is_not():
    assert decide(contrast(-rule.MARGIN, -1e-9), HARMFUL)[0] == "harm_confirmed"
    assert decide(contrast(-rule.MARGIN + 1e-9, -1e-9), HARMFUL)[0] == "confirmation_no_go"
    assert decide(contrast(-rule.MARGIN, 0.0), HARMFUL)[0] == "confirmation_no_go"


@pytest.mark.parametrize(
    ("description", "donor", "failing"),
    [
        (contrast(-0.004, -0.001), HARMFUL, "M-D margin"),
        (contrast(-0.008, 0.001), HARMFUL, "M-D bound"),
        (HARMFUL, contrast(-0.004, -0.001), "M-S margin"),
        (HARMFUL, contrast(-0.008, 0.001), "M-S bound"),
    ],
)
def test_each_gate_alone_can_withhold_confirmation(description, donor, failing):
    status, held = decide(description, donor)
    assert status == "confirmation_no_go"
    assert [name for name, holds in held.items() if not holds] == [failing]


def test_a_benefit_is_not_a_harm():
    assert (
        decide(contrast(0.05, 0.07, lower=0.03), contrast(0.05, 0.07, lower=0.03))[0] == "confirmation_no_go"
    )


@pytest.mark.parametrize("absent", ["D-M", "S-M"])
def test_a_contrast_that_was_not_asked_is_not_seen_and_does_not_hold(absent):
    decision = rule.decide("molecular", {pair: HARMFUL for pair in ("D-M", "S-M") if pair != absent})
    gates = [gate for gate in decision.gates if gate.name.startswith(f"M-{absent[0]}")]
    assert [(gate.seen, gate.held) for gate in gates] == [(None, False)] * 2
    assert sum(gate.held for gate in decision.gates) == 2
    assert decision.status == "confirmation_no_go"


def test_a_contrast_without_an_interval_holds_its_margin_at_most():
    decision = rule.decide("molecular", {"D-M": contrast(-0.3, None), "S-M": HARMFUL})
    assert [(gate.seen, gate.held) for gate in decision.gates[:2]] == [(0.3, True), (None, False)]
    assert decision.status == "confirmation_no_go"
    nothing = rule.decide("molecular", {"D-M": contrast(None, None), "S-M": HARMFUL})
    assert [gate.seen for gate in nothing.gates[:2]] == [None, None]


def test_thresholds_cannot_be_passed_in_and_statuses_are_a_closed_list():
    assert list(inspect.signature(rule.decide).parameters) == ["study", "contrasts"]
    assert set(get_args(rule.Status)) == {"harm_confirmed", "confirmation_no_go"}
    assert (rule.MARGIN, rule.LEVEL) == (0.005, 0.95)
