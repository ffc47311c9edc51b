"""Gates 1 to 3 by themselves: classification, adequacy, replacement and intention to treat."""

import dataclasses
from typing import Any

import pytest

from predictive_credit.certification.feedback import Effect, Use
from predictive_credit.certification.gates import Open, Recovered, Status, Tri, gate2_scope, recovery, utility
from predictive_credit.certification.records import Outcome, Validity
from tests.small_audit import BEST, EMPTY, WORST, Audit, core_audit, full_audit, mark

CORE = core_audit(78)
FULL = full_audit()
LINE = BEST - CORE.registration.epsilon


def found(audit: Audit) -> Any:
    return recovery(audit.registration, audit.gate1.astar, audit.gate2, gate2_scope(audit.registration))


def third(audit: Audit) -> Any:
    result = audit.decide().gate3
    assert result is not None
    return result


@pytest.mark.parametrize(
    ("baseline", "enough", "outside"),
    [(0.0, Tri.PASS, Tri.PASS), (0.6, Tri.FAIL, Tri.PASS), (0.96, Tri.FAIL, Tri.FAIL)],
)
def test_gate_1_places_gain_and_baseline(baseline: float, enough: Tri, outside: Tri) -> None:
    audit = CORE.baseline(per_unit=(baseline,))
    seen = utility(audit.registration, audit.gate1)
    assert (seen.gain_enough, seen.baseline_outside) == (enough, outside)


def test_one_sampled_unit_leaves_gate_1_open() -> None:
    audit = CORE.registered(inference_scope="sampled_population", ci_method="bounded_empirical_bernstein")
    seen = utility(audit.registration, audit.gate1)
    assert (seen.gain_enough, seen.baseline_outside) == (Tri.INCONCLUSIVE, Tri.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"stratum": "elsewhere"}, Status.UNRESOLVED),
        ({"scope_contract_hash": mark("other")}, Status.VIOLATION),
        ({"challenge_distribution_hash": mark("other")}, Status.VIOLATION),
        ({"outcome": Outcome.INFRASTRUCTURE, **EMPTY}, Status.UNRESOLVED),
        (
            {"outcome": Outcome.INFRASTRUCTURE, "infrastructure_outcome_independent": True, **EMPTY},
            Status.INFRASTRUCTURE,
        ),
        ({"outcome": Outcome.MODEL_FAILURE, **EMPTY}, Status.MODEL_FAILURE),
        ({"outcome": Outcome.MODEL_FAILURE}, Status.UNRESOLVED),
        ({"outcome": Outcome.VIOLATION, **EMPTY}, Status.VIOLATION),
        ({"outcome": Outcome.UNRESOLVED, **EMPTY}, Status.UNRESOLVED),
        ({"validity": Validity.INVALID}, Status.MODEL_FAILURE),
        ({"validity": Validity.UNRESOLVED}, Status.UNRESOLVED),
        ({"per_unit": None}, Status.UNRESOLVED),
        ({"artifact_hash": ""}, Status.UNRESOLVED),
        ({"unit_ids": ("other",)}, Status.UNRESOLVED),
        ({"per_unit": (float("nan"),)}, Status.UNRESOLVED),
        ({"per_unit": (0.96,)}, Status.HIT),
        ({"per_unit": (0.94,)}, Status.MISS),
    ],
    ids=range(17),
)
def test_a_challenger_is_classified_by_the_first_rule(change: dict[str, Any], status: Status) -> None:
    controls = list(CORE.gate2.controls)
    controls[3] = dataclasses.replace(controls[3], **change)
    gate2 = dataclasses.replace(CORE.gate2, controls=tuple(controls))
    seen = found(dataclasses.replace(CORE, gate2=gate2))
    assert seen.attempts[3].status == status


def test_the_line_has_no_slack() -> None:
    # 0.95 - 1 is -0.050000000000000044 in floating point, below -0.05
    assert found(CORE.control(3, per_unit=(LINE,))).count(Status.HIT) == 0


def test_of_one_unit_only_the_first_challenger_is_independent() -> None:
    first = CORE.gate2.controls[0]
    same = {
        "independent_unit_id": first.independent_unit_id,
        "independent_draw_receipt_hash": first.independent_draw_receipt_hash,
    }
    assert found(CORE.control(1, **same)).n_ind == 77


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"positive_control_successes": 42}, "recall LCB 0.777"),
        ({"positive_control_successes": 23, "positive_control_trials": 23}, "recall LCB 0.794"),
        ({"materials_readable": False}, "materials"),
        ({"opportunity_floor_met": False}, "opportunity"),
        ({"health_audit_pass": False}, "health"),
    ],
)
def test_inadequate_challengers_deny_nothing(change: dict[str, Any], part: str) -> None:
    seen = found(CORE.adequacy(**change))
    assert part in seen.adequacy_reasons[0]
    assert (seen.status, seen.bound, seen.open_class) == (Recovered.INCONCLUSIVE, None, Open.AUDIT)


@pytest.mark.parametrize(("failures", "adequate"), [(15, True), (16, False)])
def test_model_failures_count_up_to_a_fifth(failures: int, adequate: bool) -> None:
    controls = [
        dataclasses.replace(c, outcome=Outcome.MODEL_FAILURE, **EMPTY) if k < failures else c
        for k, c in enumerate(CORE.gate2.controls)
    ]
    seen = found(dataclasses.replace(CORE, gate2=dataclasses.replace(CORE.gate2, controls=tuple(controls))))
    assert (not seen.adequacy_reasons) is adequate
    assert seen.n_ind == 78


def test_a_hit_recovers_although_the_challengers_are_inadequate() -> None:
    assert found(CORE.adequacy(materials_readable=False).control(5, per_unit=(BEST,))).status == Recovered.YES


def test_published_effect_of_thirty_pairs() -> None:
    seen = third(FULL)
    assert (seen.effect, seen.sham.adequacy) == (Effect.SUPPORTED, Tri.PASS)
    assert seen.difference.lower == pytest.approx(0.6379275, abs=5e-8)
    assert seen.difference.upper == 1.0
    assert seen.sham.difference.upper == pytest.approx(0.0950339, abs=5e-8)
    assert seen.neutral.bound == pytest.approx(0.1618939, abs=5e-8)
    assert seen.neutral.status == Recovered.INCONCLUSIVE


@pytest.mark.parametrize(("misses", "effect"), [(2, Effect.SUPPORTED), (3, Effect.INCONCLUSIVE)])
def test_twenty_eight_truthful_hits_suffice_and_twenty_seven_do_not(misses: int, effect: Effect) -> None:
    assert third(FULL.branches("truthful", range(misses), per_unit=(WORST,))).effect == effect


def test_a_failed_model_scores_the_worst_and_stays_in_the_pairs() -> None:
    seen = third(FULL.branches("truthful", range(3), outcome=Outcome.MODEL_FAILURE, **EMPTY))
    assert [p.utilities for p in seen.pairs[:4]] == [(0.0, 0.0)] * 3 + [(1.0, 0.0)]
    assert not seen.health.reasons


def test_four_failed_models_of_thirty_are_an_unhealthy_arm() -> None:
    seen = third(FULL.branches("truthful", range(4), outcome=Outcome.MODEL_FAILURE, **EMPTY))
    assert "model-failure rate" in seen.health.reasons[0]
    assert (seen.effect, seen.open_statistical) == (Effect.INCONCLUSIVE, False)


def test_only_independent_infrastructure_loss_removes_a_pair() -> None:
    lost: dict[str, Any] = {"outcome": Outcome.INFRASTRUCTURE, **EMPTY}
    independent = third(FULL.branches("neutral", range(1), infrastructure_outcome_independent=True, **lost))
    doubtful = third(FULL.branches("neutral", range(1), **lost))
    assert [independent.pairs[0].use, doubtful.pairs[0].use] == [Use.EXCLUDED, Use.UNRESOLVED]
    assert independent.effect == doubtful.effect == Effect.INCONCLUSIVE


@pytest.mark.parametrize(
    ("rows", "adequacy", "statistical"),
    [(2, Tri.PASS, False), (3, Tri.INCONCLUSIVE, True), (60, Tri.FAIL, False)],
)
def test_null_pairs_must_lie_inside_the_band(rows: int, adequacy: Tri, statistical: bool) -> None:
    seen = third(FULL.branches("proposed_sham", range(rows), utility=0.0)).sham
    assert (seen.adequacy, seen.straddles) == (adequacy, statistical)


@pytest.mark.parametrize(
    ("change", "adequacy"),
    [
        ({"operator_hash": mark("other")}, Tri.INCONCLUSIVE),
        ({"freshness_pass": False}, Tri.INCONCLUSIVE),
        ({"channel_checks_pass": False}, Tri.FAIL),
    ],
)
def test_an_unsound_calibration_is_no_calibration(change: dict[str, Any], adequacy: Tri) -> None:
    seen = third(FULL.sham(**change))
    assert (seen.sham.adequacy, seen.effect) == (adequacy, Effect.INCONCLUSIVE)


def test_continuous_utilities_are_mean_scores() -> None:
    audit = FULL.registered(
        feedback_estimand="continuous",
        feedback_utility_mapping="mean_normalized_private_units_v1",
        feedback_ci_method="bounded_empirical_bernstein",
        sham_ci_method="bounded_empirical_bernstein",
    )
    seen = third(audit)
    assert seen.pairs[0].difference == pytest.approx(BEST - WORST)
    reported = third(audit.branches("truthful", range(1), utility=0.9))
    assert reported.pairs[0].use == Use.UNRESOLVED
