"""The frozen joint rule: the published decision, its four gates one by one, and what was not asked."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, get_args

import pytest

from predictive_credit.contrasts import Contrast
from predictive_credit.studies.tabular import published, rule

PUBLISHED = published.FIGURES["contrasts"]["skill"]


def contrast(mean: float | None, lower: float | None, upper: float | None) -> Contrast:
    """A gain with its bounds, one- and two-sided alike; the rule reads nothing else."""
    read = {
        "mean": mean, "lower": lower, "upper": upper, "one_sided_lower": lower, "one_sided_upper": upper,
        "reason": None if lower is not None else "2 tasks with a defined gain; an interval needs 3",
    }  # fmt: skip
    unread: dict[str, Any] = {field.name: None for field in fields(Contrast)}
    return Contrast(**(unread | read))


ALIKE = contrast(0.001, -0.004, 0.006)
STEADIER = contrast(0.004, 0.001, 0.007)


def decide(
    formation: float | None = 0.6,
    d_m: Contrast | None = ALIKE,
    s_m: Contrast | None = ALIKE,
    drift: Contrast | None = STEADIER,
) -> tuple[str, list[bool]]:
    """The status, and which of formation, D-M, S-M and drift held."""
    point = {pair: c for pair, c in (("D-M", d_m), ("S-M", s_m)) if c is not None}
    decision = rule.decide(
        "tabular", formation=formation, point=point, drift={} if drift is None else {"D-M": drift}
    )
    return decision.status, [gate.held for gate in decision.gates]


def test_the_published_inputs_give_the_published_decision():
    point = {pair: contrast(**printed) for pair, printed in PUBLISHED["point_error"].items()}
    formation = published.FIGURES["explanations"]["formation"]["lower"]
    decision = rule.decide("tabular", formation=formation, point=point, drift={})
    assert decision.status == published.FIGURES["decision"] == "confirmation_no_go"
    assert [gate.held for gate in decision.gates] == [False] * 4
    assert [gate.seen for gate in decision.gates] == [0.069, -0.02804, -0.03749, None]


def test_published_levels_contrasts_and_cards_agree_with_each_other():
    levels = published.FIGURES["contexts"]["skill"]
    for measure, key in (("point_error", "point_mae_call"), ("width", "width")):
        printed = PUBLISHED[measure]["D-M"]["mean"]
        assert levels["D"][key] - levels["M"][key] == pytest.approx(printed, abs=1.5e-5)
    cards = published.FIGURES["explanations"]
    difference = (cards["elicited"]["complete"] - cards["ordinary"]["complete"]) / 144
    assert cards["formation"]["difference"] == difference == pytest.approx(0.132, abs=5e-4)
    # Without brazilian_houses 138 states share what its share of the error leaves.
    one = published.FIGURES["tasks"]["skill"]["brazilian_houses"]
    for context in ("D", "M"):
        rest = levels[context]["point_mae_ensemble"] * (1 - one["share_of_error"][context]) * 144 / 138
        assert one["point_mae_ensemble_without"][context] == pytest.approx(rest, abs=1e-4)


def test_all_four_gates_are_a_go():
    assert decide() == ("confirmation_go", [True] * 4)


@pytest.mark.parametrize(
    ("formation", "held"), [(0.5, True), (0.4999, False), (None, False), (1.0, True), (-0.1, False)]
)
def test_formation_holds_from_a_half_on(formation: float | None, held: bool):
    status, gates = decide(formation)
    assert gates == [held, True, True, True]
    assert status == ("confirmation_go" if held else "confirmation_no_go")


@pytest.mark.parametrize(
    ("lower", "upper", "held"),
    [(-0.0099, 0.0099, True), (-0.010, 0.0, False), (0.0, 0.010, False), (-0.02, -0.011, False)],
)
def test_points_are_equivalent_only_inside_the_margin_and_touching_it_is_not(
    lower: float, upper: float, held: bool
):
    gain = contrast((lower + upper) / 2, lower, upper)
    assert decide(d_m=gain)[1] == [True, held, True, True]
    assert decide(s_m=gain)[1] == [True, True, held, True]


def test_an_equivalence_gate_sees_the_farther_end():
    decision = rule.decide("t", formation=0.6, point={"D-M": contrast(0, -0.003, 0.02)}, drift={})
    assert [gate.seen for gate in decision.gates] == [0.6, 0.02, None, None]


def test_every_gate_reads_the_one_sided_bounds_which_no_setting_moves():
    wide = {"lower": -0.5, "upper": 0.5}
    narrow = {"one_sided_lower": -0.001, "one_sided_upper": 0.001}
    unread: dict[str, Any] = {field.name: None for field in fields(Contrast)}
    gain = Contrast(**(unread | {"mean": 0.0} | wide | narrow))
    assert decide(d_m=gain)[1] == [True, True, True, True]
    one_sided_only = Contrast(
        **(unread | wide | {"mean": 0.1, "one_sided_lower": 0.1, "one_sided_upper": 0.2})
    )
    assert decide(drift=one_sided_only)[1] == [True, True, True, True]
    two_sided_only = Contrast(
        **(
            unread
            | {"lower": 0.1, "upper": 0.2, "mean": 0.1, "one_sided_lower": -0.1, "one_sided_upper": 0.2}
        )
    )
    assert decide(drift=two_sided_only)[1] == [True, True, True, False]


@pytest.mark.parametrize(("lower", "held"), [(1e-9, True), (0.0, False), (-0.001, False)])
def test_a_drift_bound_of_zero_is_not_above_it(lower: float, held: bool):
    assert decide(drift=contrast(0.01, lower, 0.02))[1] == [True, True, True, held]


@pytest.mark.parametrize(
    ("absent", "gates"),
    [
        ({"formation": None}, [False, True, True, True]),
        ({"d_m": None}, [True, False, True, True]),
        ({"s_m": contrast(0.001, None, None)}, [True, True, False, True]),
        ({"drift": None}, [True, True, True, False]),
        ({"drift": contrast(0.01, None, None)}, [True, True, True, False]),
    ],
)
def test_what_was_not_asked_or_has_no_estimate_holds_no_gate(absent: dict[str, Any], gates: list[bool]):
    assert decide(**absent) == ("confirmation_no_go", gates)


def test_statuses_are_the_rules_own_closed_list():
    assert get_args(rule.Status) == ("confirmation_go", "confirmation_no_go")


def test_the_preregistered_numbers_stand_in_the_source():
    source = inspect.getsource(rule)
    for line in ("FORMATION = 0.50", "MARGIN = 0.010", "LEVEL = 0.95", 'NAME = "joint"'):
        assert line in source
