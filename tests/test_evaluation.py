"""Evaluation of planted studies: what is there is found, what is not is said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from predictive_credit import canonical, scoring
from predictive_credit.bootstrap import nested_means, percentile_interval
from predictive_credit.errors import Unpaired
from predictive_credit.records import Card, Context, Outcome
from predictive_credit.streams import stream
from predictive_credit.studies import summaries
from predictive_credit.studies.evaluation import Scored, design_of, evaluate, losses
from tests import planted
from tests.planted import study

STATE = "molecular/assay-03/0.25/1"


def whole(scored: Scored, *, seed: int = 1, scale: str = "full") -> Any:
    """Every report as it is written, by target."""
    return evaluate(scored, seed=seed, inference=planted.INFERENCE, scale=scale, integrity=planted.SOUND)


def report(scored: Scored, *, seed: int = 1, scale: str = "full") -> Any:
    """The reports of a study of one target, without the key that names it."""
    found = whole(scored, seed=seed, scale=scale)
    return {name: of.get("roc_auc", of) for name, of in found.items()}


@pytest.fixture(scope="module")
def read() -> Any:
    """What comes out for a forecaster that follows its cards, with cards that are right."""
    return report(study(planted.reader))


def test_a_right_card_that_is_read_has_value_and_alignment_and_no_harm(read):
    assert {name: read["checks"][name]["status"] for name in ("value", "alignment", "sensitivity")} == {
        "value": "passed", "alignment": "passed", "sensitivity": "passed",
    }  # fmt: skip
    assert read["decision"]["status"] == "confirmation_no_go"
    assert read["contrasts"]["drift"]["D-M"]["lower"] > 0
    assert read["contrasts"]["drift"]["D-S"]["lower"] > 0


def test_a_planted_swap_of_donors_turns_alignment_round(read):
    turned = report(planted.swapped(study(planted.reader)))
    before, after = (r["contrasts"]["interval_score"]["S-M"] for r in (read, turned))
    assert before["lower"] > 0 > after["upper"]
    assert after["mean"] == pytest.approx(-before["mean"])
    assert turned["checks"]["alignment"]["status"] == "failed"


def test_cards_that_mislead_do_harm_and_the_rule_confirms_it_only_against_a_calm_donor():
    scored = study(planted.misled)
    gates = report(scored)["decision"]["gates"]
    # The donor's card misleads as much as the matched one: harm beyond the description, not beyond it.
    assert [name for name, gate in gates.items() if gate["held"]] == ["M-D margin", "M-D bound"]
    calm = {
        unit: (replace(of[0], point=0.0, lower=-0.03, upper=0.03),) if "/S/" in unit else of
        for unit, of in scored.forecasts.items()
    }
    found = report(replace(scored, forecasts=calm))
    assert found["decision"]["status"] == "harm_confirmed"
    assert all(gate["held"] for gate in found["decision"]["gates"].values())


def test_contexts_rank_an_oracle_before_the_mean_before_a_biased_forecaster(read):
    oracle = report(study(planted.oracle))["contexts"]
    biased = report(study(planted.misled))["contexts"]
    for figure in ("point_mae_call", "interval_score_call", "interval_score_ensemble"):
        assert oracle["M"][figure] < oracle["mean"][figure] < biased["M"][figure]
    assert oracle["M"]["coverage"] == 1.0
    assert biased["M"]["bias"] == pytest.approx(0.06, abs=0.01)
    assert read["contexts"]["M"]["point_mae_call"] < read["contexts"]["S"]["point_mae_call"]


def test_a_constant_forecaster_gives_no_contrast_and_no_sensitivity_and_no_nan():
    found = report(study(planted.constant))
    for pair in ("D-M", "S-M"):
        contrast = found["contrasts"]["interval_score"][pair]
        assert (contrast["status"], contrast["mean"], contrast["lower"]) == ("not_estimable", 0.0, None)
    for check in ("value", "alignment", "sensitivity"):
        assert found["checks"][check]["status"] == "not_estimable"
    assert found["decision"]["status"] == "confirmation_no_go"
    assert any("D-M has no interval" in limit for limit in found["decision"]["limits"])
    assert found["contexts"]["D"]["drift"] == 0.0


def test_baselines_are_the_burn_ins_and_their_figures_are_the_plain_ones(read):
    y, burn_in = planted.values(study(planted.reader)), planted.BURN_IN.targets["roc_auc"]
    baselines = read["contexts"]
    assert baselines["zero"]["point_mae_call"] == pytest.approx(np.abs(y).mean())
    assert baselines["positive"]["point_mae_call"] == pytest.approx(np.abs(y - burn_in.mean_absolute).mean())
    assert baselines["mean"]["bias"] == pytest.approx(burn_in.mean - y.mean())
    assert baselines["mean"]["coverage"] == pytest.approx(((y >= burn_in.q10) & (y <= burn_in.q90)).mean())
    large = y[np.abs(y) >= 0.01]
    assert baselines["zero"]["coverage_large"] == pytest.approx(
        scoring.coverage(large, burn_in.q10, burn_in.q90)
    )
    assert baselines["zero"]["point_mae_large"] == pytest.approx(np.abs(large).mean())
    assert baselines["positive"]["direction_accuracy"] == pytest.approx((y > 0).mean())
    assert baselines["positive"]["direction_accuracy_large"] == pytest.approx((large > 0).mean())
    assert {b["drift"] for name, b in baselines.items() if name in ("zero", "positive", "mean")} == {0.0}


def test_an_ensemble_is_the_mean_of_the_two_calls():
    scored = study(planted.reader)
    found = report(scored)["contexts"]["D"]
    table = losses(scored).query("context == 'D'")
    middle = table.groupby("state_id")[["point", "lower", "upper", "outcome"]].mean()
    assert found["point_mae_ensemble"] == pytest.approx((middle["point"] - middle["outcome"]).abs().mean())
    assert found["interval_score_ensemble"] == pytest.approx(
        scoring.interval_score(middle["outcome"], middle["lower"], middle["upper"]).mean()
    )
    assert found["point_mae_ensemble"] < found["point_mae_call"]
    gaps = table.groupby("state_id")["point"].agg(lambda p: p.max() - p.min())
    assert found["drift"] == pytest.approx(gaps.mean())


WITH_INTERVAL = ("drift", "point_mae_call", "interval_score_call")


def test_the_levels_of_a_context_have_intervals_from_the_contexts_own_stream(read):
    for context in "DMS":
        found = read["contexts"][context]
        for figure in WITH_INTERVAL:
            assert found[f"{figure}_lower"] < found[figure] < found[f"{figure}_upper"]
    scored = study(planted.reader)
    table = losses(scored).query("context == 'M'")
    gaps = table.groupby("state_id")["point"].agg(lambda p: p.max() - p.min()).to_numpy()
    design = design_of([s.cluster for s in scored.states], scored.study)
    draws = nested_means(gaps, design, draws=2_000, rng=stream(1, "molecular", "level", "M"))
    ends = (read["contexts"]["M"]["drift_lower"], read["contexts"]["M"]["drift_upper"])
    assert ends == pytest.approx(percentile_interval(draws))
    alone = report(study(planted.reader, contexts=(Context.MATCHED,)))["contexts"]["M"]
    assert alone == read["contexts"]["M"]


def test_a_level_of_too_few_endpoints_or_without_variance_has_no_interval():
    few = report(study(planted.reader, endpoints=2), scale="quick")["contexts"]["D"]
    assert {few[f"{figure}_{end}"] for figure in WITH_INTERVAL for end in ("lower", "upper")} == {None}
    constant = report(study(planted.constant))["contexts"]["D"]
    assert (constant["drift"], constant["drift_lower"], constant["drift_upper"]) == (0.0, None, None)
    assert constant["point_mae_call_lower"] < constant["point_mae_call"] < constant["point_mae_call_upper"]


def test_losses_are_one_row_a_unit_sorted_by_id_with_what_can_be_recomputed():
    scored = study(planted.reader, undefined={STATE}, fallbacks={f"{STATE}/M/2"})
    table = losses(scored)
    assert list(table.columns) == [
        "unit_id", "target", "state_id", "task", "budget", "seed", "cluster", "context", "call",
        "intervention", "point", "lower", "upper", "is_fallback", "outcome",
        "point_error", "interval_score", "covered", "width", "direction_correct",
    ]  # fmt: skip
    assert list(table["unit_id"]) == sorted(scored.forecasts)
    unit, state = "molecular/assay-07/0.5/2/S/1", "molecular/assay-07/0.5/2"
    (row,) = table[table["unit_id"] == unit].to_dict("records")
    (forecast,), outcome = scored.forecasts[unit], scored.outcomes[state, "roc_auc"].value
    place = (row["state_id"], row["task"], row["budget"], row["seed"], row["context"], row["call"])
    assert place == (state, "assay-07", 0.5, 2, "S", 1)
    assert (row["target"], row["cluster"]) == ("roc_auc", "assay-07/0.5/2")
    assert outcome is not None
    assert (row["point"], row["outcome"]) == (forecast.point, outcome)
    assert row["point_error"] == pytest.approx(abs(forecast.point - outcome))
    assert row["covered"] == (forecast.lower <= outcome <= forecast.upper)
    assert row["direction_correct"] == (forecast.point * outcome > 0)
    undefined = table[table["state_id"] == STATE]
    assert (
        undefined[["outcome", "point_error", "interval_score", "covered", "direction_correct"]]
        .isna()
        .all(axis=None)
    )
    assert undefined["width"].notna().all()
    assert list(table.loc[table["is_fallback"], "unit_id"]) == [f"{STATE}/M/2"]


def test_an_undefined_outcome_keeps_its_row_its_reason_and_its_bounds():
    found = report(study(planted.reader, undefined={STATE}))
    contrast = found["contrasts"]["interval_score"]["D-M"]
    executed = report(study(planted.reader))["contrasts"]["interval_score"]["D-M"]
    assert (contrast["n_states"], executed["n_states"]) == (71, 72)
    assert contrast["mean"] != executed["mean"]
    assert contrast["worst_case"] < executed["mean"] < contrast["best_case"]
    assert found["contrasts"]["drift"]["D-M"]["n_states"] == 72
    means = [e["gain"]["interval_score"]["D-M"] for e in found["tasks"].values()]
    assert contrast["task_balanced"] == pytest.approx(np.mean(means))
    assert contrast["task_balanced"] != pytest.approx(contrast["mean"])
    assert executed["task_balanced"] == pytest.approx(executed["mean"])
    assert found["outcomes"]["n_undefined"] == 1
    assert found["outcomes"]["reasons"] == {"single-class test set": 1}
    assert found["tasks"]["assay-03"]["n_undefined"] == 1
    assert any("1 of 72 outcomes are undefined" in limit for limit in found["decision"]["limits"])


def test_an_endpoint_without_a_defined_outcome_is_no_cluster_and_nothing_is_nan():
    everything = {f"molecular/assay-03/{b}/{s}" for b in ("0.25", "0.5", "1") for s in (1, 2)}
    found = report(study(planted.reader, undefined=everything))
    assert found["contrasts"]["interval_score"]["D-M"]["n_clusters"] == 11
    endpoint = found["tasks"]["assay-03"]
    assert endpoint["mean_absolute_outcome"] is None
    assert endpoint["gain"]["interval_score"]["D-M"] is None
    assert endpoint["scaled_gain"]["point_error"]["S-M"] is None
    canonical.encode(found)


def test_without_any_defined_outcome_the_report_stands_and_says_nothing():
    every = {s.id for s in study(planted.reader, endpoints=3).states}
    found = report(study(planted.reader, endpoints=3, undefined=every))
    assert found["contrasts"]["interval_score"]["D-M"]["mean"] is None
    assert found["contexts"]["M"]["coverage"] is None
    assert found["contexts"]["M"]["width"] is not None
    assert found["outcomes"]["mean_absolute"] is None
    assert found["outcomes"]["seed_pairs"] == {"n": 0, "equal_signs": 0, "median_gap": None}
    assert found["decision"]["gates"]["M-D margin"]["seen"] is None
    canonical.encode(found)


def test_fallbacks_stay_in_the_denominator_and_complete_cases_leave_them_out():
    units = {f"{STATE}/M/1", f"{STATE}/M/2", "molecular/assay-05/1/2/D/1"}
    found = report(study(planted.reader, fallbacks=units))
    contrast = found["contrasts"]["interval_score"]["D-M"]
    assert (contrast["n_states"], contrast["complete_case"]["n_states"]) == (72, 70)
    assert found["contrasts"]["interval_score"]["S-M"]["complete_case"]["n_states"] == 71
    assert contrast["worst_case"] < contrast["mean"] < contrast["best_case"]
    assert (found["contexts"]["M"]["n_fallback"], found["contexts"]["D"]["n_fallback"]) == (2, 1)
    assert found["checks"]["delivery"]["readable"] == 429
    assert any("3 of 432 forecasts are the fallback" in limit for limit in found["decision"]["limits"])


def test_one_forecast_in_ten_unreadable_fails_delivery():
    scored = study(planted.reader)
    assert report(scored)["checks"]["delivery"]["status"] == "passed"
    found = report(study(planted.reader, fallbacks=sorted(scored.forecasts)[::10]))
    assert found["checks"]["delivery"]["status"] == "failed"


def test_a_donor_without_a_text_fails_delivery():
    scored = study(planted.reader)
    told = scored.explanations[STATE, "elicited"]
    silent = replace(told, text="  \n")
    found = report(replace(scored, explanations={**scored.explanations, (STATE, "elicited"): silent}))
    delivery = found["checks"]["delivery"]
    assert (delivery["to_explain"], delivery["explained"], delivery["status"]) == (288, 284, "failed")


@pytest.mark.parametrize("contexts", [("M", "S"), ("D", "M"), ("D",), ("D", "S")])
def test_a_context_that_was_not_asked_leaves_its_contrasts_out_and_its_gates_unseen(contexts):
    asked = tuple(Context(c) for c in contexts)
    found = report(study(planted.reader, contexts=asked))
    assert set(found["contexts"]) == {"published", "zero", "positive", "mean", *contexts}
    for pair in ("D-M", "S-M"):
        present = set(pair.split("-")) <= set(contexts)
        assert (pair in found["contrasts"]["interval_score"]) == present
        gates = [g for name, g in found["decision"]["gates"].items() if name.startswith(f"M-{pair[0]}")]
        assert all((g["seen"] is not None) == present for g in gates)
    assert ("D-S" in found["contrasts"]["drift"]) == ({"D", "S"} <= set(contexts))
    assert any("Not asked" in limit for limit in found["decision"]["limits"])
    canonical.encode(found)


def test_asking_fewer_contexts_moves_no_interval_that_is_left(read):
    without = report(study(planted.reader, contexts=(Context.DESCRIPTION, Context.MATCHED)))
    assert without["contrasts"]["interval_score"]["D-M"] == read["contrasts"]["interval_score"]["D-M"]


def test_two_pairs_with_the_same_gains_have_streams_of_their_own():
    scored = study(planted.reader)
    donor_like_description = {
        unit: (replace(scored.forecasts[unit.replace("/S/", "/D/")][0], unit_id=unit),)
        for unit in scored.forecasts
    }
    found = report(replace(scored, forecasts=donor_like_description))["contrasts"]["interval_score"]
    assert found["S-M"]["mean"] == found["D-M"]["mean"]
    assert found["S-M"]["lower"] != found["D-M"]["lower"]


def test_the_same_seed_gives_the_same_report_and_another_seed_other_intervals(read):
    assert canonical.encode(report(study(planted.reader))) == canonical.encode(read)
    other = report(study(planted.reader), seed=2)["contrasts"]["interval_score"]["D-M"]
    assert other["mean"] == read["contrasts"]["interval_score"]["D-M"]["mean"]
    assert other["lower"] != read["contrasts"]["interval_score"]["D-M"]["lower"]


def test_forecasts_in_another_order_give_the_same_report(read):
    scored = study(planted.reader)
    turned = dict(reversed(list(scored.forecasts.items())))
    assert canonical.encode(report(replace(scored, forecasts=turned))) == canonical.encode(read)


def test_few_endpoints_are_not_estimable_and_said_to_be_few():
    found = report(study(planted.reader, endpoints=2), scale="quick")
    assert found["contrasts"]["interval_score"]["D-M"]["status"] == "not_estimable"
    assert any("2 endpoints instead of 12" in limit for limit in found["decision"]["limits"])
    assert any("Scale is quick" in limit for limit in found["decision"]["limits"])


def test_a_full_scale_that_is_not_full_is_a_limit(read):
    short = report(study(planted.reader, endpoints=5))["decision"]["limits"]
    assert any("5 of 12 endpoints were there: 30 of the study's 72 states" in limit for limit in short)
    assert any("5 endpoints instead of 12" in limit for limit in short)
    assert not any("Asked at full scale" in limit for limit in read["decision"]["limits"])
    quick = report(study(planted.reader, endpoints=5), scale="quick")["decision"]["limits"]
    assert not any("Asked at full scale" in limit for limit in quick)


def test_every_report_says_which_study_and_scale_it_is_of():
    found = whole(study(planted.reader, name="tox21", endpoints=3), scale="quick")
    assert {(r["study"], r["scale"]) for r in found.values()} == {("tox21", "quick")}
    assert set(found) == {
        "decision", "checks", "contrasts", "contexts", "tasks", "outcomes", "explanations",
    }  # fmt: skip


def test_published_figures_stand_beside_ours_and_never_in_their_place(read):
    ours = read["contrasts"]["interval_score"]["D-M"]
    assert ours["published"] == {"mean": -0.002628, "lower": -0.017392, "upper": 0.010375}
    assert ours["mean"] > 0
    assert read["contrasts"]["point_error"]["D-M"]["published"] is None
    assert read["contexts"]["published"]["D"]["drift"] == 0.01004
    assert read["outcomes"]["published"]["seed_pairs"]["equal_signs"] == 27
    roles = {m: {c["role"] for c in pairs.values()} for m, pairs in read["contrasts"].items()}
    assert {m for m, role in roles.items() if role == {"primary"}} == {"interval_score"}


def test_endpoints_add_up_to_the_whole(read):
    endpoints = read["tasks"]
    assert sum(e["share_of_error"]["D"] for e in endpoints.values()) == pytest.approx(1.0)
    gains = [e["gain"]["point_error"]["S-M"] for e in endpoints.values()]
    overall = read["contrasts"]["point_error"]["S-M"]["mean"]
    assert np.mean(gains) == pytest.approx(overall)
    one = endpoints["assay-03"]
    assert one["leave_one_out"]["point_error"]["S-M"] == pytest.approx(
        (12 * overall - one["gain"]["point_error"]["S-M"]) / 11
    )
    assert one["scaled_gain"]["point_error"]["S-M"] == pytest.approx(
        one["gain"]["point_error"]["S-M"] / one["mean_absolute_outcome"]
    )
    scaled = [e["scaled_gain"]["point_error"]["S-M"] for e in endpoints.values()]
    assert read["contrasts"]["point_error_scaled"]["S-M"]["mean"] == pytest.approx(np.mean(scaled))
    assert np.mean([e["contexts"]["M"]["mae"] for e in endpoints.values()]) == pytest.approx(
        read["contexts"]["M"]["point_mae_call"]
    )


def test_every_endpoint_has_the_baselines_in_the_shape_of_its_contexts(read):
    endpoints = [e["contexts"] for e in read["tasks"].values()]
    assert {tuple(sorted(e)) for e in endpoints} == {("D", "M", "S", "mean", "positive", "zero")}
    for name in ("zero", "positive", "mean"):
        assert {e[name]["drift"] for e in endpoints} == {0.0}
        assert endpoints[0][name].keys() == endpoints[0]["D"].keys()
        for ours, whole in (("mae", "point_mae_call"), ("interval_score", "interval_score_call")):
            mean = np.mean([e[name][ours] for e in endpoints])
            assert mean == pytest.approx(read["contexts"][name][whole])


def test_outcomes_are_described_by_seed_pair_and_by_intervention(read):
    scored = study(planted.reader)
    y = {s.id: scored.outcomes[s.id, "roc_auc"].value or 0.0 for s in scored.states}
    pairs = [(y[i], y[f"{i[:-1]}2"]) for i in y if i.endswith("/1")]
    seen = read["outcomes"]["seed_pairs"]
    assert seen["n"] == 36
    assert seen["equal_signs"] == sum(a * b > 0 for a, b in pairs)
    assert seen["median_gap"] == pytest.approx(np.median([abs(a - b) for a, b in pairs]))
    assert sum(i["n"] for i in read["outcomes"]["by_intervention"].values()) == 72
    assert read["outcomes"]["mean_absolute"] == pytest.approx(np.mean(np.abs(list(y.values()))))


def test_a_missing_extra_or_unexecuted_unit_is_refused_by_name():
    scored = study(planted.reader, endpoints=3)
    unit = "molecular/assay-01/0.5/2/S/1"
    less = {u: f for u, f in scored.forecasts.items() if u != unit}
    with pytest.raises(Unpaired, match=f"1 rows missing, 0 not planned, first {unit}"):
        losses(replace(scored, forecasts=less))
    with pytest.raises(Unpaired, match="36 not planned"):
        report(replace(scored, contexts=(Context.DESCRIPTION, Context.MATCHED)))
    late = ("molecular/assay-01/0.5/2", "roc_auc")
    outcomes = {key: o for key, o in scored.outcomes.items() if key != late}
    with pytest.raises(
        Unpaired, match=r"1 outcomes were not executed, first molecular/assay-01/0\.5/2/roc_auc"
    ):
        report(replace(scored, outcomes=outcomes))
    doubled = replace(scored.states[1], cluster=scored.states[0].cluster)
    with pytest.raises(Unpaired, match=r"2 states are at assay-00/0\.25/1"):
        report(replace(scored, states=(scored.states[0], doubled, *scored.states[2:])))


def test_a_unit_has_one_forecast_of_every_target_in_their_order():
    scored = planted.pair(planted.reader, seeds=4)
    unit = "pair/regime-1/2/M/1"
    for of in (scored.forecasts[unit][:1], scored.forecasts[unit][::-1], ()):
        with pytest.raises(Unpaired, match=f"{unit} holds forecasts of "):
            losses(replace(scored, forecasts={**scored.forecasts, unit: of}))


@pytest.fixture(scope="module")
def pair() -> Any:
    """Two targets over kept regimes; one note or card a state."""
    return whole(planted.pair(planted.reader))


@pytest.fixture(scope="module")
def joint() -> Any:
    """Six contexts over two kept kinds; a note and a card of every state."""
    return whole(planted.joint(planted.reader))


def test_every_target_has_its_own_reports_in_its_own_unit(pair):
    for name in ("contrasts", "contexts", "tasks", "outcomes"):
        assert set(pair[name]) - {"study", "scale"} == {"accuracy_pp", "log_loss"}
    levels = pair["contexts"]
    assert levels["accuracy_pp"]["D"]["point_mae_call"] > 50 * levels["log_loss"]["D"]["point_mae_call"]
    y = planted.values(planted.pair(planted.reader), "accuracy_pp")
    large = y[np.abs(y) >= 1.0]
    assert levels["accuracy_pp"]["zero"]["point_mae_large"] == pytest.approx(np.abs(large).mean())
    assert len(pair["tasks"]["log_loss"]) == 6
    assert pair["checks"]["value"]["log_loss.primary_lower"] > 0
    gates = pair["decision"]["gates"]
    assert [name for name, gate in gates.items() if gate["held"]] == ["accuracy_pp", "log_loss"]
    assert gates["formation"]["seen"] is None


def test_targets_of_a_pair_and_of_a_context_share_their_draws():
    scored = planted.pair(planted.reader)
    double = {
        unit: (first, replace(first, target="log_loss", point=first.point / 100, lower=first.lower / 100,
                              upper=first.upper / 100))
        for unit, (first, _) in scored.forecasts.items()
    }  # fmt: skip
    outcomes = {
        (state, target): replace(
            scored.outcomes[state, "accuracy_pp"], target=target,
            value=(scored.outcomes[state, "accuracy_pp"].value or 0.0) / (100 if target == "log_loss" else 1),
        )
        for state, target in scored.outcomes
    }  # fmt: skip
    found = whole(replace(scored, forecasts=double, outcomes=outcomes))
    for name, keys in (("contrasts", ("interval_score", "D-M")), ("contexts", ("D",))):
        points, nats = (found[name][target] for target in ("accuracy_pp", "log_loss"))
        for key in keys:
            points, nats = points[key], nats[key]
        for figure in (
            ("lower", "upper") if name == "contrasts" else ("drift_lower", "interval_score_call_upper")
        ):
            assert points[figure] == pytest.approx(100 * nats[figure], rel=1e-9)


def test_a_second_target_moves_no_interval_of_the_first(pair):
    scored = planted.pair(planted.reader)
    alone = whole(
        replace(
            scored,
            study=replace(scored.study, targets=scored.study.targets[:1]),
            forecasts={unit: of[:1] for unit, of in scored.forecasts.items()},
        )
    )
    one, two = (r["contrasts"]["accuracy_pp"]["interval_score"]["S-M"] for r in (alone, pair))
    assert (one["lower"], one["upper"]) == pytest.approx((two["lower"], two["upper"]), rel=1e-12)


def test_every_context_is_held_against_the_matched_one_and_drift_against_the_description(joint):
    contrasts = joint["contrasts"]["skill"]
    assert list(contrasts["interval_score"]) == ["D-M", "S-M", "O-M", "T-M", "N-M"]
    assert list(contrasts["drift"]) == ["D-M", "S-M", "O-M", "T-M", "N-M", "D-S", "D-O", "D-T", "D-N"]
    # The reader follows the number: right in M and N, as right in O, wrong in S and T.
    assert contrasts["point_error"]["T-M"]["lower"] > 0
    assert contrasts["point_error"]["N-M"]["lower"] < 0 < contrasts["point_error"]["N-M"]["upper"]
    assert (contrasts["point_error"]["D-M"]["n_clusters"], joint["decision"]["status"]) == (24, "credit")
    assert list(joint["tasks"]["skill"]["table-00"]["gain"]["point_error"]) == list(
        contrasts["interval_score"]
    )


def test_the_kinds_of_tables_are_strata(joint):
    scored = planted.joint(planted.reader)
    table = losses(scored).query("context in ('D', 'M')")
    error = table.groupby(["state_id", "context"])["point_error"].mean().unstack()
    gain = (error["D"] - error["M"]).loc[[s.id for s in scored.states]].to_numpy()
    tasks = np.array([s.task for s in scored.states])
    means = np.array([gain[tasks == task].mean() for task in sorted(set(tasks))])
    kinds = np.array([k % 2 for k in range(24)])
    variance = sum(means[kinds == k].var() / 12 for k in (0, 1)) / 4
    seen = joint["contrasts"]["skill"]["point_error"]["D-M"]
    assert seen["upper"] - seen["lower"] == pytest.approx(2 * 1.96 * np.sqrt(variance), rel=0.1)


def test_one_task_of_a_kind_has_no_interval_no_formation_and_a_limit_that_says_so():
    found = whole(planted.joint(planted.reader, tasks=3), scale="quick")
    gain = found["contrasts"]["skill"]["point_error"]["D-M"]
    assert (gain["status"], gain["lower"]) == ("not_estimable", None)
    reason = "regression has 1 cluster with a defined gain; an interval needs 2 in each stratum"
    assert f"D-M has no interval: {reason}." in found["decision"]["limits"]
    assert found["explanations"]["formation"] == {"difference": 1.0, "lower": None}
    assert found["checks"]["value"]["status"] == "not_estimable"


def test_primary_are_the_contrasts_that_the_rule_reads_alone():
    scored = planted.joint(planted.reader)
    declared = replace(scored.study, also_primary=(("drift", "D-M"),))
    found = whole(replace(scored, study=declared))["contrasts"]["skill"]
    primary = {
        (measure, pair) for measure, pairs in found.items() for pair, c in pairs.items()
        if c["role"] == "primary"
    }  # fmt: skip
    assert primary == {("interval_score", "D-M"), ("interval_score", "S-M"), ("drift", "D-M")}


@pytest.mark.parametrize("level", [0.6, 0.999])
def test_no_check_and_no_gate_moves_with_the_level_of_the_intervals(joint, level):
    scored = planted.joint(planted.reader)
    inference = replace(planted.INFERENCE, level=level)
    found = evaluate(scored, seed=1, inference=inference, scale="full", integrity=planted.SOUND)
    before, after = (r["contrasts"]["skill"]["point_error"]["D-M"] for r in (joint, found))
    assert before["lower"] != after["lower"]
    for name in ("value", "alignment", "sensitivity"):
        assert found["checks"][name]["seen"] == joint["checks"][name]["seen"]
    assert found["decision"]["gates"] == joint["decision"]["gates"]


def test_delivery_counts_every_context_that_shows_an_explanation(joint):
    delivery = joint["checks"]["delivery"]
    assert (delivery["to_explain"], delivery["explained"]) == (5 * 144 * 2, 5 * 144 * 2)
    assert (delivery["cards_elicited"], delivery["complete_cards_elicited"]) == (144, 144)
    assert (delivery["cards_ordinary"], delivery["complete_cards_ordinary"]) == (144, 0)
    scored = planted.joint(planted.reader)
    lost = {key: e for key, e in scored.explanations.items() if key != (scored.states[0].id, "ordinary")}
    found = whole(replace(scored, explanations=lost))["checks"]["delivery"]
    assert (found["explained"], found["status"]) == (5 * 144 * 2 - 2, "failed")


def test_the_matched_explanation_is_of_the_states_first_source(pair):
    # States with a note alone are shown their note: nothing is missing, whoever wrote it.
    delivery = pair["checks"]["delivery"]
    assert (delivery["to_explain"], delivery["explained"], delivery["status"]) == (480, 480, "passed")
    assert pair["checks"]["sensitivity"]["log_loss.n_cards_without_number"] == 0


def test_explanations_are_counted_by_source_slot_and_direction(joint, pair):
    ordinary = joint["explanations"]["ordinary"]
    assert (ordinary["n"], ordinary["complete"], ordinary["empty"]) == (144, 0, 0)
    assert (ordinary["filled"]["target"], ordinary["filled"]["falsifier"]) == (144, 0)
    scored = planted.joint(planted.reader)
    right = up = always = 0
    for (state, source), explanation in scored.explanations.items():
        value = scored.outcomes[state, "skill"].value or 0.0
        if source == "ordinary":
            is_up = explanation.text.startswith("Direction: increase")
            right, up, always = right + (is_up == (value > 0)), up + is_up, always + (value > 0)
    assert ordinary["directions"]["skill"] == {
        "stated": 144, "up": up, "n_scored": 144, "correct": right, "always_up_correct": always,
    }  # fmt: skip
    assert pair["explanations"]["elicited"]["n"] == pair["explanations"]["ordinary"]["n"] == 60
    assert set(pair["explanations"]["elicited"]["directions"]) == {"accuracy_pp", "log_loss"}


def test_a_direction_counts_only_where_the_outcome_has_one():
    scored = study(planted.reader, endpoints=3, undefined={"molecular/assay-00/1/1"})
    zero = ("molecular/assay-01/1/1", "roc_auc")
    outcomes = {**scored.outcomes, zero: Outcome(state_id=zero[0], target=zero[1], value=0.0)}
    explanations = {
        key: replace(e, card=Card()) if key[0] == "molecular/assay-02/1/1" else e
        for key, e in scored.explanations.items()
    }
    found = report(replace(scored, outcomes=outcomes, explanations=explanations))["explanations"]["elicited"]
    assert (found["n"], found["complete"], found["empty"]) == (18, 17, 1)
    assert (found["directions"]["roc_auc"]["stated"], found["directions"]["roc_auc"]["n_scored"]) == (17, 15)


def test_formation_is_exact_where_every_cluster_gained(joint, pair):
    # 24 of 24 tasks: the exact lower bound at 5 % is the 24th root of it.
    assert joint["explanations"]["formation"] == {
        "difference": 1.0, "lower": pytest.approx(0.05 ** (1 / 24)),
    }  # fmt: skip
    assert joint["decision"]["gates"]["formation"]["seen"] == pytest.approx(0.05 ** (1 / 24))
    assert pair["explanations"]["formation"] is None


def test_formation_is_resampled_over_the_design_where_clusters_differ():
    scored = planted.joint(planted.reader)
    incomplete = {
        key: replace(e, card=Card(direction=e.card.direction)) if key[0].endswith("/0.5/1") else e
        for key, e in scored.explanations.items()
        if key != (scored.states[0].id, "ordinary")  # a state with one of the two is no pair
    }
    some = {
        key: incomplete[key] if "table-1" in key[0] else e
        for key, e in scored.explanations.items()
        if key in incomplete
    }
    found = whole(replace(scored, explanations=some))["explanations"]["formation"]
    assert found["difference"] == pytest.approx((143 - 10) / 143)
    design = design_of([s.cluster for s in scored.states], scored.study)
    difference = np.array([
        0.0 if s.id.endswith("/0.5/1") and "table-1" in s.id else 1.0 for s in scored.states
    ])  # fmt: skip
    difference[0] = np.nan
    draws = nested_means(difference, design, draws=2_000, rng=stream(1, "joint", "formation"))
    assert found["lower"] == pytest.approx(np.quantile(draws, 0.05))
    assert found["lower"] < found["difference"]


@pytest.mark.parametrize(
    ("value", "lower"),
    [
        (0.0, 0.0),  # nothing gained and nothing lost: no more is sure than that none was seen to gain
        (-1.0, -1.0),  # every pair lost
        (np.nan, None),
    ],
)
def test_formation_without_a_gain_has_no_bound_above_zero(value, lower):
    scored = planted.joint(planted.constant)
    design = design_of([s.cluster for s in scored.states], scored.study)
    found = summaries.formation(
        np.full(144, value), design, draws=100, level=0.95, rng=stream(1, "formation")
    )
    assert (found and found.lower) == lower
    # Two tables, and three of one kind beside one of the other.
    for states in (scored.states[:12], [*scored.states[:18], *scored.states[24:30]]):
        few, gained = design_of([s.cluster for s in states], scored.study), np.ones(len(states))
        for difference in (gained, gained - (np.arange(len(states)) < 3)):
            alone = summaries.formation(difference, few, draws=100, level=0.95, rng=stream(1, "formation"))
            assert alone is not None
            assert (alone.difference, alone.lower) == (difference.mean(), None)


def test_seeds_are_paired_within_a_cell_and_an_intervention_alone(joint, pair):
    assert joint["outcomes"]["skill"]["seed_pairs"]["n"] == 72
    assert pair["outcomes"]["log_loss"]["seed_pairs"] is None  # each seed has an intervention of its own
    single = report(study(planted.reader, seeds=(1,), contexts=(Context.DESCRIPTION,)))
    assert single["outcomes"]["seed_pairs"] is None


def test_losses_have_a_row_a_target_sorted_by_unit_then_target():
    table = losses(planted.pair(planted.reader, seeds=4))
    assert len(table) == 24 * 3 * 2 * 2
    keys = list(zip(table["unit_id"], table["target"], strict=True))
    assert keys == sorted(keys)
    assert table["budget"].isna().all()
    assert set(table["cluster"]) == {f"regime-{r}/{k}" for r in range(6) for k in range(4)}
    points = table.query("target == 'accuracy_pp'")["point_error"].mean()
    assert points > 50 * table.query("target == 'log_loss'")["point_error"].mean()


def test_units_are_sorted_by_their_ids_where_one_state_begins_like_another():
    scored = study(planted.reader, endpoints=3, seeds=(1, 2))
    names = {s.id: s.id.replace("/1/1", "/1-a").replace("/1/2", "/1") for s in scored.states}
    states = tuple(sorted((replace(s, id=names[s.id]) for s in scored.states), key=lambda s: s.id))
    forecasts = {
        f"{names[unit.rsplit('/', 2)[0]]}/{'/'.join(unit.rsplit('/', 2)[1:])}": of
        for unit, of in scored.forecasts.items()
    }
    outcomes = {(names[state], target): o for (state, target), o in scored.outcomes.items()}
    table = losses(replace(scored, states=states, forecasts=forecasts, outcomes=outcomes))
    assert list(table["unit_id"]) == sorted(forecasts)


def test_a_population_of_the_users_own_has_no_size_to_fall_short_of():
    scored = study(planted.reader, endpoints=5)
    own = replace(scored, study=replace(scored.study, n_tasks=0, n_states=0))
    limits = report(own, scale="quick")["decision"]["limits"]
    assert not any("instead of" in limit or "states" in limit for limit in limits)
    assert any("6 clusters or fewer" in limit for limit in limits)


@pytest.mark.parametrize(
    ("endpoints", "said"), [(6, "6 clusters or fewer"), (7, "a dozen clusters or fewer")]
)
def test_how_far_an_interval_of_few_clusters_falls_short_is_said_by_their_number(endpoints: int, said: str):
    limits = report(study(planted.reader, endpoints=endpoints), scale="quick")["decision"]["limits"]
    assert [limit for limit in limits if "clusters or fewer" in limit and said in limit]
    assert sum("clusters or fewer" in limit for limit in limits) == 1


def test_words_for_tasks_are_the_studys_own():
    found = whole(planted.joint(planted.reader, tasks=8), scale="full")["decision"]["limits"]
    assert any("8 tasks instead of 24" in limit for limit in found)
    assert any("8 of 24 tasks were there: 48 of the study's 144 states" in limit for limit in found)
