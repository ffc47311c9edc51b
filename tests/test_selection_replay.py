"""Orders played on a study's own outcomes: oracle, chance, worse than chance."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from predictive_credit.selection import errors as erring
from predictive_credit.selection import replay
from predictive_credit.selection.replay import Played, Policy
from predictive_credit.streams import stream
from predictive_credit.studies.evaluation import to_panels
from tests import planted

RNG = stream(5, "replay")
TASKS, EACH = 8, 6
GAIN = RNG.normal(size=TASKS * EACH)
COST = np.tile([0.25, 0.25, 0.5, 0.5, 1.0, 1.0], TASKS)
TASK_OF = np.repeat(np.arange(TASKS), EACH)


def play(cost: np.ndarray = COST, **scores: np.ndarray) -> dict[str, Policy]:
    played = Played(gain=GAIN, cost=cost, task_of=TASK_OF)
    _, _, made = replay.play(played, scores, rng=stream(1, "draws"), draws=60)
    return {policy.name: policy for policy in made}


def areas(policy: Policy) -> list[float | None]:
    return [*(spent.regret.regret for spent in policy.spent), policy.area.regret]


@pytest.mark.parametrize("cost", [COST, np.ones(len(COST))], ids=["unlike", "equal"])
def test_the_oracle_has_no_regret_a_constant_that_of_chance_and_an_inverted_one_more(cost):
    found = play(cost, oracle=GAIN / cost, constant=np.zeros(len(cost)), inverted=-GAIN / cost)
    assert areas(found["oracle"]) == pytest.approx([0.0] * 4, abs=1e-9)
    assert areas(found["constant"]) == pytest.approx([1.0] * 4)
    assert min(area for area in areas(found["inverted"]) if area is not None) > 1.2
    verdicts = {name: policy.verdict for name, policy in found.items()}
    assert verdicts["oracle"] == "better than random"
    assert verdicts["inverted"] == "worse than random"


def test_a_resampled_oracle_and_a_resampled_constant_stay_what_they_are():
    found = play(oracle=GAIN / COST, constant=np.zeros(len(COST)))
    for name, value in (("oracle", 0.0), ("constant", 1.0)):
        area = found[name].area
        assert (area.lower, area.upper) == pytest.approx((value, value), abs=1e-9)


def test_a_constant_forecaster_of_equal_costs_is_not_told_from_random():
    assert (
        play(np.ones(len(COST)), constant=np.full(len(COST), 2.0))["constant"].verdict
        == "not told from random"
    )


def test_noise_has_about_the_regret_of_chance_and_a_good_guess_less():
    noise = stream(2, "noise").normal(size=len(GAIN))
    found = play(noise=noise, guess=GAIN / COST + 0.5 * noise)
    assert found["noise"].area.regret == pytest.approx(1.0, abs=0.3)
    assert found["noise"].verdict == "not told from random"
    assert found["guess"].verdict == "better than random"


def test_where_all_gains_are_alike_there_is_no_regret_to_speak_of():
    alike = Played(gain=np.ones(6), cost=np.ones(6), task_of=np.repeat([0, 1, 2], 2))
    _, _, (policy,) = replay.play(alike, {"any": np.arange(6.0)}, rng=stream(1, "d"), draws=20)
    assert policy.area.regret is None
    assert policy.verdict == "not defined"


def test_a_random_order_is_the_mean_over_all_orders():
    gain, cost = np.array([3.0, -1.0, 0.5, 2.0]), np.array([1.0, 0.25, 0.5, 0.25])
    at = np.array([0.1, 0.4, 1.1, 1.9])

    def one(order: tuple[int, ...]) -> np.ndarray:
        ends = np.concatenate([[0.0], np.cumsum(cost[list(order)])])
        found: np.ndarray = np.interp(at, ends, np.concatenate([[0.0], np.cumsum(gain[list(order)])]))
        return found

    wanted = np.mean([one(order) for order in permutations(range(4))], axis=0)
    assert replay.shuffled(gain, cost, np.ones(4), at) == pytest.approx(wanted)
    straight = at / cost.sum() * gain.sum()
    assert np.abs(wanted - straight).max() > 0.05  # it does bend


def test_a_state_that_was_drawn_twice_stands_twice_in_a_random_order():
    gain, cost, at = np.array([3.0, -1.0]), np.array([1.0, 0.5]), np.array([0.3, 1.2])
    twice = replay.shuffled(gain, cost, np.array([2.0, 1.0]), at)
    apart = replay.shuffled(np.array([3.0, 3.0, -1.0]), np.array([1.0, 1.0, 0.5]), np.ones(3), at)
    assert twice == pytest.approx(apart)


def test_the_area_below_a_random_order_is_half_of_all_gain():
    played = Played(gain=GAIN, cost=COST, task_of=TASK_OF)
    order = replay.orders(np.zeros(len(GAIN)), COST)
    assert order.mixed == (0,)
    found = replay.curve(order, played, np.ones(len(GAIN)))
    assert found[-1] == pytest.approx(GAIN.sum() / 2)
    spent = np.linspace(0.0, COST.sum(), 401)[1:-1]
    curve = np.concatenate([[0.0], replay.shuffled(GAIN, COST, np.ones(len(GAIN)), spent), [GAIN.sum()]])
    assert np.trapezoid(curve) / 400 == pytest.approx(found[-1], abs=0.02)


def test_states_of_equal_score_are_run_in_random_order_among_themselves():
    played = Played(gain=np.array([4.0, 0.0, 1.0, 1.0]), cost=np.ones(4), task_of=np.arange(4))
    order = replay.orders(np.array([5.0, 5.0, 0.0, 0.0]), played.cost)
    quarter = replay.curve(order, played, np.ones(4))[1]
    assert quarter == pytest.approx(2.0)  # one state run of two that gain 4 and 0


@pytest.mark.parametrize(
    ("cost", "unit"), [([0.25, 0.5, 1.0], 0.25), ([0.1, 0.25], 0.05), ([1.0], 1.0), ([3.0, 4.5], 1.5)]
)
def test_costs_have_a_common_unit(cost, unit):
    assert replay.common_unit(np.array(cost)) == pytest.approx(unit)


def test_label_fractions_too_finely_apart_count_1():
    scored = planted.study(planted.reader)
    budgets = np.linspace(0.1011, 0.9973, len(scored.states))
    states = [replace(state, budget=float(b)) for state, b in zip(scored.states, budgets, strict=True)]
    panel = to_panels(scored)["roc_auc"]
    learned = scored.burn_in.targets["roc_auc"]
    made = replay.replay(
        panel, states, learned, where="here", baseline=0.0, equal_costs=False, rng=stream(1, "d"), draws=5
    )
    assert made.costs.startswith("1, for label fractions so unlike")
    assert "M corrected" not in {policy.name for policy in made.policies}


def replayed(answer: planted.Answer, **changes: object) -> replay.Replayed:
    scored = planted.study(answer)
    panel = to_panels(scored)["roc_auc"]
    options = {"where": "here", "baseline": 0.0, "equal_costs": False, "rng": stream(1, "d"), "draws": 60}
    return replay.replay(
        panel, scored.states, scored.burn_in.targets["roc_auc"], **options | changes  # type: ignore[arg-type]
    )  # fmt: skip


def test_in_a_study_a_reader_of_true_cards_orders_like_the_oracle_and_without_them_like_chance():
    oracle = {p.name: p for p in replayed(planted.oracle).policies}
    assert oracle["M"].area.regret == pytest.approx(0.0, abs=1e-6)
    constant = {p.name: p for p in replayed(planted.constant, equal_costs=True).policies}
    assert constant["M"].area.regret == pytest.approx(1.0)


def test_a_perfect_forecaster_is_predicted_without_width():
    found = {one.context: one for one in replayed(planted.oracle).predicted}
    assert found["M"].brier == pytest.approx(0.0, abs=1e-9)
    assert found["M"].chance == pytest.approx(found["M"].positive)
    noisy = {one.context: one for one in replayed(planted.reader).predicted}
    assert noisy["D"].width > noisy["M"].width > found["M"].width


def test_a_tasks_own_outcomes_have_no_part_in_what_is_predicted_of_it():
    panel = to_panels(planted.study(planted.reader))["roc_auc"]
    mine = panel.task_of == 0
    moved = replace(panel, outcome=np.where(mine, panel.outcome + 0.3, panel.outcome))
    ends = [replay._left_out(one, erring.of(one, one.contexts, "here"), 1, 0.0) for one in (panel, moved)]
    for before, after in zip(*ends, strict=True):
        assert after[mine] == pytest.approx(before[mine])
        assert not np.allclose(after[~mine], before[~mine])


def test_where_tasks_are_alike_resampling_them_changes_nothing():
    one, guess = stream(4, "task").normal(size=(2, EACH))
    alike = Played(gain=np.tile(one, TASKS), cost=COST, task_of=TASK_OF)
    score = {"guess": np.tile(guess, TASKS)}
    _, _, (policy,) = replay.play(alike, score, rng=stream(1, "d"), draws=30)
    area = policy.area
    assert area.regret is not None
    assert (area.lower, area.upper) == pytest.approx((area.regret, area.regret))


def test_better_may_be_lower():
    scored = planted.study(planted.oracle)
    panel = to_panels(scored)["roc_auc"]
    turned = replace(panel, target=replace(panel.target, better="lower"))
    made = replay.replay(
        turned, scored.states, scored.burn_in.targets["roc_auc"], where="here", baseline=0.0,
        equal_costs=True, rng=stream(1, "d"), draws=20,
    )  # fmt: skip
    assert made.all == pytest.approx(-panel.outcome.sum())
    assert {p.name: p for p in made.policies}["M"].area.regret == pytest.approx(0.0, abs=1e-6)


def test_an_undefined_outcome_is_left_out_and_counted():
    scored = planted.study(planted.reader)
    panel = to_panels(scored)["roc_auc"]
    outcome = panel.outcome.copy()
    outcome[3] = np.nan
    made = replay.replay(
        replace(panel, outcome=outcome), scored.states, scored.burn_in.targets["roc_auc"], where="here",
        baseline=0.0, equal_costs=True, rng=stream(1, "d"), draws=20,
    )  # fmt: skip
    assert (made.states, made.left_out) == (len(outcome) - 1, 1)


def test_costs_are_label_fractions_where_all_states_have_one():
    scored = planted.study(planted.reader)
    unknown = [replace(state, budget=None) for state in scored.states]
    panel = to_panels(scored)["roc_auc"]
    options = {"where": "here", "baseline": 0.0, "rng": stream(1, "d"), "draws": 5}
    learned = scored.burn_in.targets["roc_auc"]
    unlike = replay.replay(panel, scored.states, learned, equal_costs=False, **options)  # type: ignore[arg-type]
    equal = replay.replay(panel, unknown, learned, equal_costs=False, **options)  # type: ignore[arg-type]
    assert unlike.costs == "the fraction of the training labels it uses"
    assert equal.costs == "1"
    assert "M corrected" in {p.name for p in unlike.policies}
    assert "M corrected" not in {p.name for p in equal.policies}
