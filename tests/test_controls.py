"""The controls' cores: what they show, from whose stimuli, and which forecaster their rules tell apart."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from predictive_credit import tables
from predictive_credit.cards import read_card, stated_direction, stated_target
from predictive_credit.contexts import FENCE_CLOSE, FENCE_OPEN, NOT_STATED, shown
from predictive_credit.contrasts import CompleteCase, Contrast
from predictive_credit.errors import BadConfig, Tampered
from predictive_credit.records import SLOT_NAMES, Context, Outcome, PromptText, State
from predictive_credit.streams import stream
from predictive_credit.studies import STUDIES
from predictive_credit.studies.controls import CONTROLS, exploratory, frozen
from predictive_credit.studies.controls.calibration import SIGNALS
from predictive_credit.studies.controls.calibration import rule as assay
from predictive_credit.studies.controls.calibration.signals import HALF_WIDTH, noise, noisy, signals
from predictive_credit.studies.controls.crossover.components import joined
from predictive_credit.studies.controls.gradient import PATH
from predictive_credit.studies.controls.gradient.steps import order
from predictive_credit.studies.controls.mechanism import rule as mechanism_rule
from predictive_credit.studies.controls.mechanism import suite, tasks
from predictive_credit.studies.controls.mechanism.config import MechanismConfig
from predictive_credit.studies.controls.mechanism.notes import NOTES
from predictive_credit.studies.controls.replay import rule as replication
from tests import small_controls
from tests.small_controls import BUNDLES, REUSING, Control

STATED = re.compile(r"will (increase|decrease) by ([0-9.]+)")


def made(name: str) -> Any:
    @pytest.fixture(scope="module", name=name)
    def control(tmp_path_factory: pytest.TempPathFactory) -> Control:
        return Control(name, tmp_path_factory.mktemp(name))

    return control


calibration, replay, crossover, raw_note, gradient = map(
    made, ("calibration", "replay", "crossover", "raw_note", "gradient")
)


def pairs_of_tasks() -> MechanismConfig:
    """The mechanism control's configuration."""
    config = small_controls.params().studies["mechanism"]
    assert isinstance(config, MechanismConfig)
    return config


def card_of(text: PromptText) -> str:
    """What stands in a prompt's fence."""
    return text.user.split(f"{FENCE_OPEN}\n")[1].split(f"\n{FENCE_CLOSE}")[0]


def slots(text: PromptText) -> list[str]:
    """The six labelled lines of a prompt's card."""
    lines = card_of(text).splitlines()
    assert [line.partition(":")[0].lower() for line in lines] == list(SLOT_NAMES)
    return lines


def contrast(lower: float | None, upper: float | None) -> Contrast:
    """A gain with its two one-sided bounds, which is all that the rules read."""
    mean = None if lower is None or upper is None else (lower + upper) / 2
    return Contrast(
        status="estimated" if mean is not None else "not_estimable",
        reason=None if mean is not None else "2 clusters with a defined gain; an interval needs 3",
        mean=mean, lower=lower, upper=upper, one_sided_lower=lower, one_sided_upper=upper, t_lower=None,
        t_upper=None, n_states=72, n_clusters=12, best_case=mean, worst_case=mean,
        complete_case=CompleteCase(mean=mean, lower=None, upper=None, n_states=72),
    )  # fmt: skip


# The plans


@pytest.mark.parametrize(
    ("name", "states", "units"),
    [
        ("calibration", 144, 1440), ("replay", 72, 432), ("crossover", 72, 1152), ("raw_note", 144, 864),
        ("gradient", 60, 960),
    ],
)  # fmt: skip
def test_a_control_plans_what_was_published(request, name, states, units):
    control = request.getfixturevalue(name)
    assert (len(control.states), len(control.units)) == (states, units)
    assert (control.study.n_states, control.study.n_units) == (states, units)
    assert len({unit.id for unit in control.units}) == units


def test_the_mechanism_control_plans_40_states_and_240_units():
    config = pairs_of_tasks()
    counted = suite.count(config, {})
    assert (counted.states, counted.units) == (40, 240)
    assert (STUDIES["mechanism"].n_states, STUDIES["mechanism"].n_units) == (40, 240)


def test_every_control_comes_after_the_outcomes_and_every_study_before():
    assert {study.name for study in CONTROLS} == {*REUSING, "mechanism"}
    timing = {name: study.timing for name, study in STUDIES.items()}
    assert Counter(timing.values()) == {"post-outcome": 6, "prospective": 4}
    assert all(timing[name] == "post-outcome" for name in (*REUSING, "mechanism"))


# What is taken over


@pytest.mark.parametrize("name", REUSING)
def test_states_outcomes_and_burn_in_are_the_studys_under_ids_of_the_controls(request, name):
    control, study = request.getfixturevalue(name), str(STUDIES[name].reuses)
    theirs = {s.id: s for s in tables.read_records(BUNDLES[study] / "states.jsonl", State)}
    for state in control.states:
        own = theirs[state.id.removeprefix(f"{name}/")]
        assert replace(state, id=own.id, study=study, donor=None) == replace(own, donor=None)
        assert str(state.donor).startswith(f"{name}/{study}/")
    known = {o.id: o.value for o in frozen.outcomes(BUNDLES[study])}
    assert {
        o.id.removeprefix(f"{name}/"): o.value for o in control.outcomes.values()
    }.items() <= known.items()
    assert len(control.outcomes) == len(control.states) * len(control.study.targets)


def test_the_gradient_takes_the_elicited_half_and_nothing_else(gradient):
    assert {state.sources for state in gradient.states} == {("elicited",)}
    frozen_states = tables.read_records(BUNDLES["controlled"] / "states.jsonl", State)
    assert len(gradient.states) == sum("elicited" in state.sources for state in frozen_states)


@pytest.mark.parametrize("name", REUSING)
def test_nothing_of_a_control_is_a_stranger_to_its_stimuli(request, name):
    assert strangers(request.getfixturevalue(name)) == []


def strangers(control: Control, **changed: Any) -> list[tuple[str, str]]:
    given: dict[str, Any] = {
        "states": control.states, "explanations": tuple(control.explanations.values()),
        "outcomes": tuple(control.outcomes.values()), "burn_in": control.burn_in,
    }  # fmt: skip
    return frozen.strangers(
        control.setting.name, frozen.stimuli(control.folder), **given | changed,
        source=control.study.of_source,
    )  # fmt: skip


def test_a_changed_description_is_a_stranger(crossover):
    first, *others = crossover.states
    changed = (replace(first, description=f"{first.description} It is known to help."), *others)
    assert strangers(crossover, states=changed) == [("states.jsonl", first.id)]


def test_another_lender_is_a_stranger(crossover):
    first, second, *others = crossover.states
    changed = (replace(first, donor=first.id), second, *others)
    assert strangers(crossover, states=changed) == [("states.jsonl", first.id)]


@pytest.mark.parametrize("name", ["calibration", "gradient"])
def test_a_state_that_is_left_out_is_noticed(request, name):
    control = request.getfixturevalue(name)
    first, *others = control.states
    assert ("states.jsonl", first.id) in strangers(control, states=tuple(others))


def test_a_state_under_the_studys_own_id_is_a_stranger(calibration):
    first, *others = calibration.states
    renamed = replace(first, id=first.id.removeprefix("calibration/"))
    found = strangers(calibration, states=(renamed, *others))
    assert {an_id for _, an_id in found} == {first.id, renamed.id}


def test_a_rewritten_explanation_is_a_stranger(replay):
    first, *others = replay.explanations.values()
    changed = (replace(first, text=first.text.replace("increase", "decrease", 1) + "!"), *others)
    assert strangers(replay, explanations=changed) == [("explanations.jsonl", first.id)]


def test_another_outcome_than_the_study_opened_is_a_stranger(calibration):
    first, *others = calibration.outcomes.values()
    changed = (replace(first, value=(first.value or 0.0) + 1e-9), *others)
    assert strangers(calibration, outcomes=changed) == [("outcomes.csv", first.id)]


def test_another_burn_in_is_a_stranger(calibration):
    assert strangers(calibration, burn_in=replace(calibration.burn_in, name="another")) == [
        ("burn_in.json", "the burn-in")
    ]


def test_stimuli_that_do_not_belong_to_one_ledger_are_refused(tmp_path):
    for name in frozen.FILES:
        (tmp_path / name).write_bytes((BUNDLES["molecular"] / name).read_bytes())
    frozen.check_whole(tmp_path)
    path = tmp_path / "outcomes.csv"
    path.write_bytes(path.read_bytes().replace(b"0.0", b"0.1", 1))
    with pytest.raises(Tampered, match=r"outcomes\.csv is not the file that the study's ledger digested"):
        frozen.check_whole(tmp_path)


def test_a_control_refuses_the_stimuli_of_another_rule(tmp_path):
    params = small_controls.params()
    frozen.features(params.pools["frozen_molecular"], BUNDLES["molecular"], tmp_path, small_controls.HERE)
    setting = replace(Control("raw_note", tmp_path / "own").setting, features=tmp_path, burn_in=tmp_path)
    with pytest.raises(BadConfig, match="raw_note reuses the stimuli of a tabular study, and pool"):
        STUDIES["raw_note"].states(setting)


def test_a_control_refuses_a_pool_that_holds_no_frozen_study(tmp_path):
    pool = small_controls.params().pools["pairs"]
    with pytest.raises(BadConfig, match="cannot use a pool of kind regimes; give it a pool of kind frozen"):
        frozen.features(pool, tmp_path, tmp_path, small_controls.HERE)
    frozen_pool = small_controls.params().pools["frozen_tabular"]
    with pytest.raises(BadConfig, match="cannot use a pool of kind frozen; give it a pool of kind regimes"):
        suite.features(frozen_pool, tmp_path, tmp_path, small_controls.HERE)


def test_a_study_that_was_not_asked_with_donors_lends_nothing(crossover, tmp_path):
    for name in frozen.FILES:
        (tmp_path / name).write_bytes((crossover.folder / name).read_bytes())
    plan = (tmp_path / "plan.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "plan.jsonl").write_text("".join(line for line in plan if '"context":"S"' not in line))
    with pytest.raises(BadConfig, match="give pool frozen_molecular a study that was asked with context S"):
        STUDIES["crossover"].states(replace(crossover.setting, features=tmp_path))


# Replay


def test_a_replay_asks_byte_for_byte_what_the_study_asked(replay):
    frozen_texts = tables.read_records(BUNDLES["molecular"] / "prompts.jsonl", PromptText)
    asked = {t.key: (t.system, t.user) for t in frozen_texts}
    seen = {t.key.removeprefix("replay/"): (t.system, t.user) for t in replay.texts}
    assert len(seen) == 72 * 3
    assert seen == {key: asked[key] for key in seen}


GOLDEN_REPLAY = {
    "drift": {"D-M": contrast(0.002, 0.007), "D-S": contrast(0.002, 0.006), "S-M": contrast(-0.001, 0.001)},
    "point_error": {
        "D-M": contrast(-0.004, 0.001), "D-S": contrast(-0.004, 0.001), "S-M": contrast(-0.001, 0.001),
    },
    "interval_score": {"S-M": contrast(-0.008096, 0.014485)},
}  # fmt: skip


def test_the_published_interval_alone_ends_the_replication():
    decision = replication.decide("replay", contrasts=GOLDEN_REPLAY, readable=1.0, unanswered=0)
    assert decision.status == STUDIES["replay"].published["decision"] == "replication_not_supported"
    assert len(decision.gates) == 9
    assert [gate.name for gate in decision.gates if not gate.held] == ["S-M interval-score equivalence"]
    failed = next(gate for gate in decision.gates if not gate.held)
    assert failed.seen == 0.014485  # the end farther from zero
    printed = STUDIES["replay"].published["contrasts"]["roc_auc"]["interval_score"]["S-M"]
    assert (printed["one_sided_lower"], printed["one_sided_upper"]) == (-0.008096, 0.014485)


HELD = GOLDEN_REPLAY | {"interval_score": {"S-M": contrast(-0.008096, 0.009)}}


@pytest.mark.parametrize(
    ("measure", "pair", "bad", "gate"),
    [
        ("drift", "D-M", contrast(0.0, 0.007), "M drift reduction"),
        ("drift", "D-S", contrast(-0.001, 0.007), "S drift reduction"),
        ("point_error", "D-M", contrast(-0.0051, 0.001), "D-M point equivalence"),
        ("point_error", "D-S", contrast(-0.001, 0.006), "D-S point equivalence"),
        ("point_error", "S-M", contrast(None, None), "S-M point equivalence"),
        ("drift", "S-M", contrast(-0.001, 0.0021), "S-M drift equivalence"),
        ("interval_score", "S-M", contrast(-0.011, 0.001), "S-M interval-score equivalence"),
    ],
)
def test_each_gate_of_the_replication_alone_can_end_it(measure, pair, bad, gate):
    whole = replication.decide("replay", contrasts=HELD, readable=0.95, unanswered=0)
    assert whole.status == "replication_supported"
    spoiled = HELD | {measure: HELD[measure] | {pair: bad}}
    decision = replication.decide("replay", contrasts=spoiled, readable=0.95, unanswered=0)
    assert decision.status == "replication_not_supported"
    assert [g.name for g in decision.gates if not g.held] == [gate]


@pytest.mark.parametrize(
    ("readable", "unanswered", "gate"), [(0.949, 0, "integrity"), (1.0, 1, "unanswered units")]
)
def test_unread_or_missing_replies_end_the_replication(readable, unanswered, gate):
    decision = replication.decide("replay", contrasts=HELD, readable=readable, unanswered=unanswered)
    assert [g.name for g in decision.gates if not g.held] == [gate]


def test_the_replication_reads_what_the_evaluation_calls_primary(replay):
    rng_of = {unit.id: stream(3, "replay answers", unit.id) for unit in replay.units}
    found = replay.evaluated(lambda unit, text: 0.01 * float(rng_of[unit.id].standard_normal()))
    primary = {
        (measure, pair)
        for measure, pairs in found["contrasts"]["roc_auc"].items()
        for pair, of in pairs.items()
        if of["role"] == "primary"
    }
    assert primary == {
        ("drift", "D-M"), ("drift", "D-S"), ("drift", "S-M"), ("point_error", "D-M"), ("point_error", "D-S"),
        ("point_error", "S-M"), ("interval_score", "S-M"),
    }  # fmt: skip
    assert len(found["decision"]["gates"]) == 9
    assert all(gate["seen"] is not None for gate in found["decision"]["gates"].values())


# Calibration


def signal(control: Control, state: State, context: Context) -> float | None:
    (target,) = control.study.targets
    return stated_target(read_card(card_of(control.prompt(state, context))), target)


def test_the_exact_signal_reads_back_as_the_outcome(calibration):
    for state in calibration.states:
        value = calibration.outcomes[state.id, "skill"].value
        assert signal(calibration, state, Context.EXACT) == pytest.approx(value, abs=5.1e-5)


def test_the_wrong_seed_signal_reads_back_as_the_donors_outcome(calibration):
    for state in calibration.states:
        value = calibration.outcomes[state.donor, "skill"].value
        assert signal(calibration, state, Context.WRONG_SEED) == pytest.approx(value, abs=5.1e-5)
        donor = next(s for s in calibration.states if s.id == state.donor)
        assert (donor.cell, donor.intervention) == (state.cell, state.intervention)
        assert donor.seed != state.seed


def test_the_noisy_signal_has_the_stated_noise_and_says_its_interval(calibration):
    (target,) = calibration.study.targets
    deviation = noise(calibration.stimuli, target)
    assert deviation == 0.5 * calibration.burn_in.targets["skill"].mean_absolute
    errors = np.array([
        signal(calibration, s, Context.NOISY) - calibration.outcomes[s.id, "skill"].value
        for s in calibration.states
    ])  # fmt: skip
    # Of 144 normal errors the deviation is known to 6 %, the mean to a twelfth of it.
    assert errors.std() == pytest.approx(deviation, rel=0.18)
    assert abs(errors.mean()) < 3 * deviation / 12
    covered = np.abs(errors) <= HALF_WIDTH * deviation
    assert 0.70 < covered.mean() < 0.90
    printed = f"minus {HALF_WIDTH * deviation:.4f}, plus {HALF_WIDTH * deviation:.4f}"
    assert all(printed in card_of(calibration.prompt(s, Context.NOISY)) for s in calibration.states)


def test_the_sign_alone_holds_no_digit_and_the_outcomes_direction(calibration):
    (target,) = calibration.study.targets
    for state in calibration.states:
        text = card_of(calibration.prompt(state, Context.SIGN))
        assert not re.search(r"\d", text)
        value = calibration.outcomes[state.id, "skill"].value
        assert stated_direction(read_card(text), target) == (-1 if value < 0 else 1)
        assert text.splitlines()[1] == f"Target: {NOT_STATED}"


def test_an_undefined_outcome_has_no_signal(calibration):
    gone = calibration.states[0]
    undefined = Outcome(state_id=gone.id, target="skill", value=None, reason="single-class test set")
    stimuli = replace(calibration.stimuli, outcomes=calibration.outcomes | {(gone.id, "skill"): undefined})
    told = {(e.state_id, e.source): e.text for e in signals(stimuli)}
    empty = f"Direction: {NOT_STATED}\nTarget: {NOT_STATED}"
    assert [told[gone.id, s] for s in ("exact", "noisy", "sign")] == [empty] * 3
    borrower = next(s for s in calibration.states if s.donor == gone.id)
    assert told[borrower.id, "wrong_seed"] == empty


def test_the_noise_of_one_state_does_not_depend_on_the_others(calibration):
    stimuli = calibration.stimuli
    (target,) = calibration.study.targets
    some = calibration.states[7]
    alone = noisy(replace(stimuli, states=(some,)), some, target)
    assert alone == noisy(stimuli, some, target)
    assert alone != noisy(replace(stimuli, seed=stimuli.seed + 1), some, target)


def guess(unit) -> float:
    return float(stream(5, "guess", unit.id).normal(0.02, 0.05))


def follower(unit, text: PromptText) -> float:
    """Copies the number on its card; guesses without one."""
    found = STATED.search(text.user)
    return guess(unit) if found is None else float(found[2]) * (1 if found[1] == "increase" else -1)


def deaf(unit, text: PromptText) -> float:
    return guess(unit)


def test_a_forecaster_that_copies_the_number_is_a_sensitive_instrument(calibration):
    found = calibration.evaluated(follower)
    assert found["decision"]["status"] == "assay_sensitive"
    shown_by = found["decision"]["shown"]
    assert set(shown_by) == {str(context) for context in SIGNALS}
    assert shown_by["exact"]["wins"] == 144
    assert shown_by["exact"]["point_mae"] < 5e-5 < shown_by["noisy"]["point_mae"]
    assert shown_by["exact"]["spearman"] > shown_by["noisy"]["spearman"] > shown_by["sign"]["spearman"]
    assert found["checks"]["sensitivity"]["status"] == "passed"
    assert found["checks"]["alignment"]["status"] == "passed"


def test_a_forecaster_that_ignores_its_card_is_an_insensitive_instrument(calibration):
    decision = calibration.evaluated(deaf)["decision"]
    assert decision["status"] == "assay_insensitive"
    assert not any(gate["held"] for gate in decision["gates"].values())


def test_an_undefined_outcome_is_no_win_and_stays_in_the_denominator(calibration):
    gone = calibration.states[0]
    undefined = Outcome(state_id=gone.id, target="skill", value=None, reason="single-class test set")
    found = calibration.evaluated(follower, calibration.outcomes | {(gone.id, "skill"): undefined})
    exact = found["decision"]["shown"]["exact"]
    assert (exact["wins"], exact["n_states"]) == (143, 144)
    assert exact["win_share"] == 143 / 144


def test_no_contrast_of_a_control_that_tests_none_is_primary(request):
    for name in ("calibration", "crossover", "raw_note", "gradient"):
        study = STUDIES[name]
        pairs = (f"D-{study.matched}", f"{study.against}-{study.matched}")
        assert not any(study.is_primary(study.primary_loss, pair) for pair in pairs)


def test_the_published_calibration_is_sensitive():
    printed = STUDIES["calibration"].published
    exact = printed["shown"]["exact"]
    decision = assay.decide("calibration", wins=exact["win_share"], spearman=exact["spearman"])
    assert decision.status == printed["decision"] == "assay_sensitive"


@pytest.mark.parametrize(
    ("wins", "spearman", "held"),
    [
        (0.95, 0.99, [True, True]), (0.949, 1.0, [False, True]), (1.0, 0.9899, [True, False]),
        (None, None, [False, False]),
    ],
)  # fmt: skip
def test_the_assay_needs_wins_and_order(wins, spearman, held):
    decision = assay.decide("calibration", wins=wins, spearman=spearman)
    assert [gate.held for gate in decision.gates] == held
    assert (decision.status == "assay_sensitive") == all(held)
    assert decision.status in get_args(assay.Status)


# Crossover and gradient


def test_numbers_and_own_mechanism_make_the_full_card_again(crossover):
    for state in crossover.states:
        card = crossover.explanations[state.id, "elicited"].card
        whole = "\n".join(slots(crossover.prompt(state, Context.MATCHED)))
        assert whole == shown(crossover.explanations[state.id, "elicited"], "card")
        assert joined(card, card) == {name: slot.text for name, slot in card.filled()}


def test_the_parts_of_a_card_hold_what_they_are_called_after(crossover):
    empty = [f"{name.capitalize()}: {NOT_STATED}" for name in SLOT_NAMES]
    for state in crossover.states:
        donor = next(s for s in crossover.states if s.id == state.donor)
        of = {str(c): slots(crossover.prompt(state, c)) for c in crossover.config.contexts if c != "D"}
        lent = {str(c): slots(crossover.prompt(donor, c)) for c in ("M", "numbers", "mechanism")}
        assert of["scaffold"] == empty
        assert of["S"] == lent["M"]
        assert of["numbers"][1] == of["donor_mechanism"][1] == of["M"][1]
        assert of["donor_numbers"][1] == lent["M"][1]
        assert of["numbers"][2:] == empty[2:]
        assert of["mechanism"][1] == empty[1]
        assert of["mechanism"][2:] == of["donor_numbers"][2:] == of["M"][2:]
        assert of["donor_mechanism"][2:] == lent["M"][2:]
        said, why = of["numbers"][0], of["mechanism"][0].removeprefix("Direction: ")
        assert of["M"][0] == f"{said}, {why}"
        assert of["donor_mechanism"][0] == f"{said}, {lent['mechanism'][0].removeprefix('Direction: ')}"
        assert "because" not in said
        assert not re.search(r"increase by|decrease by", why)


def test_the_gradient_runs_from_the_matched_card_to_the_donors_slot_by_slot(gradient):
    orders: Counter[tuple[str, ...]] = Counter()
    for state in gradient.states:
        cards = [slots(gradient.prompt(state, context)) for context in PATH]
        donor = next(s for s in gradient.states if s.id == state.donor)
        assert cards[0] == slots(gradient.prompt(state, Context.MATCHED))
        assert cards[-1] == slots(gradient.prompt(donor, Context.MATCHED))
        replaced = order(state, seed=gradient.params.seed, study="gradient")
        assert sorted(replaced) == sorted(SLOT_NAMES)
        orders[replaced] += 1
        for slot, before, after in zip(replaced, cards[:-1], cards[1:], strict=True):
            changed = [n for n, a, b in zip(SLOT_NAMES, before, after, strict=True) if a != b]
            assert set(changed) <= {slot}  # a donor may say the same
            assert after[SLOT_NAMES.index(slot)] == cards[-1][SLOT_NAMES.index(slot)]
    assert len(orders) > 40
    first = Counter(names[0] for names in orders.elements())
    assert set(first) == set(SLOT_NAMES)


def test_the_gradients_curve_has_a_point_at_each_distance_and_target(gradient):
    found = gradient.evaluated(lambda unit, text: guess(unit))
    curve = found["decision"]["shown"]
    assert set(curve) == {"accuracy_pp", "log_loss"}
    for points in curve.values():
        assert [point["context"] for point in points.values()] == [str(context) for context in PATH]
        assert list(points) == [str(k) for k in range(7)]
        assert all(point["lower"] <= point["mean"] <= point["upper"] for point in points.values())
    assert found["decision"]["status"] == "exploratory"


def test_an_exploratory_control_decides_nothing_whatever_is_seen(crossover):
    found = crossover.evaluated(follower)
    decision = found["decision"]
    assert (decision["status"], decision["gates"]) == ("exploratory", {})
    assert exploratory.decide("crossover").gates == ()
    roles = {of["role"] for pairs in found["contrasts"]["roc_auc"].values() for of in pairs.values()}
    assert roles == {"exploratory"}
    assert {"D-numbers", "scaffold-mechanism", "donor_mechanism-M"} <= found["contrasts"]["roc_auc"][
        "point_error"
    ].keys()
    assert any("after the outcomes of molecular were known" in limit for limit in decision["limits"])


def test_the_raw_note_shows_the_note_as_it_was_written(raw_note):
    for state in raw_note.states[:20]:
        note = raw_note.explanations[state.id, "ordinary"]
        assert card_of(raw_note.prompt(state, Context.MATCHED)) == note.text.strip()
        lent = raw_note.explanations[state.donor, "ordinary"].text.strip()
        assert card_of(raw_note.prompt(state, Context.DONOR)) == lent


def test_the_raw_note_control_prints_task_balanced_scaled_gains(raw_note):
    found = raw_note.evaluated(lambda unit, text: guess(unit))
    gains = found["decision"]["shown"]
    assert set(gains) == {"D-M", "S-M"}
    scaled = found["contrasts"]["skill"]["point_error_scaled"]
    assert all(gains[pair]["task_balanced"] == scaled[pair]["task_balanced"] for pair in gains)


# Mechanism


@pytest.fixture(scope="module", name="mechanism")
def _mechanism(tmp_path_factory: pytest.TempPathFactory) -> Control:
    """Six of the twenty pairs."""
    with pytest.MonkeyPatch.context() as patch:
        whole = small_controls.params()
        fewer = replace(whole, studies={**whole.studies, "mechanism": replace(pairs_of_tasks(), pairs=6)})
        patch.setattr(small_controls, "params", lambda: fewer)
        return Control("mechanism", tmp_path_factory.mktemp("mechanism"))


def test_twins_share_their_inputs_and_differ_in_their_labels():
    for part in ("train", "held_out"):
        linear, curved = (getattr(tasks.dataset(kind, 3, seed=1), part) for kind in tasks.KINDS)
        assert np.array_equal(linear.inputs, curved.inputs)
        assert 0.2 < np.mean(linear.labels != curved.labels) < 0.5
    another = tasks.dataset("linear", 4, seed=1).train
    assert another.inputs.shape != linear.inputs.shape or not np.array_equal(another.inputs, linear.inputs)


def test_no_note_holds_a_digit_and_a_false_note_is_the_twins_true_one(mechanism):
    assert not any(re.search(r"\d", note) for note in NOTES.values())
    by = {s.id: {c: card_of(mechanism.prompt(s, c)) for c in ("true_note", "false_note")}
          for s in mechanism.states}  # fmt: skip
    for state in mechanism.states:
        pair, kind = state.cluster
        twin = state.id.replace(f"/{kind}", "/nonlinear" if kind == "linear" else "/linear")
        assert by[state.id]["true_note"] == by[twin]["false_note"] == NOTES[kind]
        assert state.id == f"mechanism/{int(pair):02}/{kind}"


def test_the_description_tells_twins_apart_by_no_word(mechanism):
    def words(state: State) -> str:
        return re.sub(r"[\d.,]+", "#", state.description)

    assert len({words(state) for state in mechanism.states}) == 1


def test_quadratic_features_help_where_the_boundary_is_curved_alone(mechanism):
    effect = mechanism.evaluated(believer)["decision"]["shown"]["executed"]
    assert 5 < effect["nonlinear"]["mean_effect_pp"] < 20
    assert -4 < effect["linear"]["mean_effect_pp"] < 0
    assert (effect["nonlinear"]["n"], effect["linear"]["n"]) == (6, 6)


def believer(unit, text: PromptText) -> float:
    """Expects what the note says."""
    if "by many" in text.user:
        return 10.0
    return -1.0 if "decrease slightly" in text.user else 5.0


def test_a_forecaster_that_believes_the_notes_is_sensitive_to_mechanism(mechanism):
    decision = mechanism.evaluated(believer)["decision"]
    assert decision["status"] == "mechanism_sensitive"
    assert list(decision["gates"]) == ["D-true_note lower bound", "false_note-true_note lower bound"]


@pytest.mark.parametrize("answer", [lambda unit, text: 5.0 + guess(unit),
                                    lambda unit, text: 9.0 - believer(unit, text)])  # fmt: skip
def test_one_that_ignores_or_inverts_them_is_not(mechanism, answer):
    assert mechanism.evaluated(answer)["decision"]["status"] == "mechanism_insensitive"


def test_the_published_gains_are_mechanism_sensitive():
    printed = STUDIES["mechanism"].published
    gains = printed["contrasts"]["accuracy_pp"]["point_error"]
    decision = mechanism_rule.decide(
        "mechanism", {pair: contrast(c["lower"], c["upper"]) for pair, c in gains.items()}
    )
    assert decision.status == printed["decision"] == "mechanism_sensitive"
    levels = {c: row["point_mae_call"] for c, row in printed["contexts"]["accuracy_pp"].items()}
    for pair, found in gains.items():
        other, matched = pair.split("-")
        assert levels[other] - levels[matched] == pytest.approx(found["mean"], abs=5e-3)


@pytest.mark.parametrize("missing", mechanism_rule.PAIRS)
def test_both_gains_are_needed(missing):
    whole = {pair: contrast(0.1, 0.2) for pair in mechanism_rule.PAIRS}
    assert mechanism_rule.decide("mechanism", whole).status == "mechanism_sensitive"
    for bad in ({missing: contrast(0.0, 0.2)}, {missing: contrast(None, None)}):
        assert mechanism_rule.decide("mechanism", whole | bad).status == "mechanism_insensitive"
    fewer = {pair: c for pair, c in whole.items() if pair != missing}
    assert mechanism_rule.decide("mechanism", fewer).status == "mechanism_insensitive"


def test_pairs_that_the_burn_in_uses_are_refused():
    config = replace(pairs_of_tasks(), pairs=1001)
    with pytest.raises(BadConfig, match="pairs 1001 to 1010 are the burn-in's; give fewer than 1001"):
        suite.count(config, {})
