"""A control's page says what it is, shows its figures beside the printed ones, and concludes from numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from predictive_credit.records import Context
from predictive_credit.report import controls, gallery, page, provenance, svg, tables, words
from predictive_credit.report.figures import mark
from predictive_credit.report.view import StudyView
from predictive_credit.studies import STUDIES
from predictive_credit.studies.controls import CONTROLS
from predictive_credit.studies.study import Study
from tests.samples import control_view, own_view
from tests.test_report import HOSTILE, Document, escaped

CALIBRATION, REPLAY, CROSSOVER, RAW_NOTE, MECHANISM, GRADIENT = CONTROLS
ONE_TARGET = replace(GRADIENT, targets=GRADIENT.targets[:1])


@pytest.fixture(scope="module")
def views() -> Mapping[str, StudyView]:
    """All six, the gradient of one target alone; replies, a figure a context, of the crossover alone."""
    studies = [ONE_TARGET if study is GRADIENT else study for study in CONTROLS]
    found = {study.name: control_view(study) for study in studies}
    return {name: view if name == "crossover" else replace(view, answers=()) for name, view in found.items()}


@pytest.fixture(scope="module")
def html(views: Mapping[str, StudyView]) -> str:
    """All six before a study; the page puts it first."""
    return page.render([*views.values(), own_view()], version="1")


def article(html: str, prefix: str) -> str:
    return html[html.index(f'<article class="study" id="{prefix}"') :].partition("</article>")[0]


def test_six_controls_share_a_page_with_no_id_twice_and_nothing_left_open(html: str):
    shown = Document(html)
    assert shown.open == []
    ids = shown.values("id")
    assert len(ids) == len(set(ids)) > 300
    referred = [n for value in shown.values("aria-labelledby", "aria-controls") for n in value.split()]
    assert set(referred) <= set(ids)
    assert {h.removeprefix("#") for h in shown.values("href") if h.startswith("#")} <= set(ids)


def test_controls_come_after_the_studies_under_a_heading_of_their_own(html: str):
    overview = article(html, "overview")
    assert "1 study and 6 controls, five checks each" in overview
    bodies = re.findall(r"<tbody>(.*?)</tbody>", overview, re.S)
    assert len(bodies) == 4  # checks of studies and of controls, then their decisions
    for studies, ours in (bodies[:2], bodies[2:]):
        assert "assays" in studies
        assert 'scope="rowgroup"' not in studies
        assert re.match(r'\s*<tr class="group"><th scope="rowgroup" colspan="\d">Controls</th></tr>', ours)
        assert re.findall(r'<th scope="row">(\w+)', ours) == [study.name for study in CONTROLS]
    assert "no gate" in bodies[3]
    assert ">0 of 0<" not in bodies[3]


def test_a_control_says_that_it_is_one_and_whose_stimuli_it_reuses(html: str, views: Mapping[str, StudyView]):
    study = article(html, "s1")
    assert "Study assays" in study
    assert "instrument" not in study
    for at, (name, view) in enumerate(views.items(), start=2):
        ours = article(html, f"s{at}")
        assert f"Control {name}, smollm2" in ours
        assert "What this control shows about the instrument" in ours
        reuses = view.study.reuses
        assert (f"planned when the outcomes of {reuses} were known" in ours) is (reuses is not None)
        assert ("its states and outcomes are its own" in ours) is (reuses is None)
        if reuses is not None:
            assert f"Stimuli taken over from {reuses}" in ours
            assert view.freeze["stimuli"]["digests"]["states.jsonl"] in ours


def test_a_rule_that_decides_nothing_has_a_sentence_in_place_of_gates(html: str):
    for at, study in enumerate(CONTROLS, start=2):
        ours = article(html, f"s{at}")
        has_gates = study.rule.NAME != "exploratory"
        assert ('<table class="gates">' in ours) is has_gates
        assert ("has no gate" in ours) is not has_gates
        assert "no gate recorded" not in ours


def test_every_gate_of_a_control_is_said_in_words(views: Mapping[str, StudyView]):
    found = [gate for view in views.values() for gate in tables.gates(view)]
    assert len(found) == 2 + 9 + 2
    assert [gate.name for gate in found if gate.meaning == gate.name] == []
    meanings = {gate.name: gate.meaning for gate in found}
    assert meanings["false_note-true_note lower bound"] == (
        "loss of false note minus loss of true note: its one-sided lower bound"
    )


def test_the_printed_figures_stand_beside_ours(html: str):
    printed = {
        "s2": ("144 of 144", "0.99996", "0.0000156", "0.092282", "0.046468"),
        "s3": ("60.6 %", "59.2 %"),
        "s4": ("+0.00181 [+0.00005, +0.00383]", "\u22120.00047 [\u22120.00228, +0.00104]", "0.01738"),
        "s5": ("\u22120.0906 [\u22120.2687, +0.0403]", "+0.0064 [\u22120.0964, +0.0898]"),
        "s6": ("+11.44", "\u22121.06", "6.391", "3.795", "8.151"),
    }
    for prefix, figures in printed.items():
        ours = article(html, prefix)
        shown = ours[ours.index(f'id="{prefix}-instrument"') : ours.index(f'id="{prefix}-published"')]
        for figure in figures:
            assert f">{figure}</td>" in shown, (prefix, figure)


def test_checks_name_the_contexts_they_compare_where_these_are_others(html: str):
    assert "the matched explanation is the exact signal" in article(html, "s2")
    assert "alignment for its gain over the other seed&#39;s outcome" in article(html, "s2")
    assert "Here the matched explanation" not in article(html, "s3")


def test_the_curve_is_drawn_per_target_and_says_its_numbers():
    view = control_view(GRADIENT, tasks=3, draws=100)
    shown = controls.instrument(view, "s1")
    assert shown is not None
    assert len(shown.figures) == len(shown.tables) == len(view.study.targets) == 2
    for figure, table, target in zip(shown.figures, shown.tables, view.study.targets, strict=True):
        means = [row[2] for row in table.rows]
        assert [row[0] for row in table.rows] == list("0123456")
        found = view.metrics["decision"]["shown"][target.name]
        assert means == [view.of(target).voice.signed(found[k]["mean"]) for k in "0123456"]
        assert all(f"{k} {mean}" in figure for k, mean in enumerate(means))
        assert "fill-M" in figure  # the band of intervals


def test_a_context_nobody_has_words_for_is_shown_like_any():
    view = control_view(REPLAY, tasks=2, draws=100)
    name: Any = "brand_new"  # no Context that the records know
    units = tuple(replace(u, context=name) if u.context == "S" else u for u in view.plan)
    levels, contrasts = (view.metrics[key]["roc_auc"] for key in ("contexts", "contrasts"))
    new = replace(
        view,
        plan=units,
        metrics={
            **view.metrics,
            "contexts": {"roc_auc": {**levels, "brand_new": levels["S"]}},
            "contrasts": {"roc_auc": {m: {**of, "brand_new-M": of["S-M"]} for m, of in contrasts.items()}},
        },
    ).of(view.target)
    assert "brand new" in tables.levels(new).columns
    assert "brand new" in [row[0] for row in tables.coverage(new).rows]
    assert any("brand new\u00a0\u2212\u00a0M" in row[0] for row in tables.contrasts(new).rows)
    drawn = [
        *gallery.forests(new, "s1"),
        *gallery.drift_against_error(new, "s1"),
        *gallery.coverage(new, "s1"),
    ]
    assert sum("brand new" in figure for figure in drawn) == 3 + 1 + 1
    assert "brand new" in page.design(new)


def test_every_context_of_a_study_has_words_a_mark_and_an_ink_of_its_own():
    assert {str(context) for context in Context} <= set(words.CONTEXTS)
    for study in STUDIES.values():
        names = [str(context) for context in study.contexts]
        for of in (words.context, words.short_context, mark, svg.ink):
            assert len({of(name) for name in names}) == len(names), (study.name, of)
        assert svg.INKS["ink"] not in map(svg.ink, names)
    assert words.pair("wrong_seed-exact") == "other seed\u00a0\u2212\u00a0exact"


def test_hostile_names_in_a_controls_own_figures_stay_text(views: Mapping[str, StudyView]):
    view = views["mechanism"]
    shown = {"executed": {HOSTILE: {"n": 1, "mean_effect_pp": 2.0}}}
    stimuli = {"study": HOSTILE, "scale": HOSTILE, "ledger_head": HOSTILE, "digests": {HOSTILE: HOSTILE}}
    hostile = replace(
        view,
        metrics={"decision": {**view.metrics["decision"], "shown": shown}},
        freeze={**view.freeze, "stimuli": {**stimuli, "states": {"a": HOSTILE}}},
        states=(), answers=(), outcomes=(), plan=(),
    )  # fmt: skip
    html = page.render([hostile], version="1")
    found = Document(html)
    assert "img" not in [tag for tag, _ in found.tags]
    assert sum(HOSTILE[:20] in text for _, text in found.texts) > 3


def test_a_controls_title_names_a_pool_only_where_it_is_another_studys(views: Mapping[str, StudyView]):
    view = views["replay"]
    assert page.title(view) == "replay, smollm2"
    other = {**view.freeze, "stimuli": {**view.freeze["stimuli"], "study": "tox21"}}
    assert page.title(replace(view, freeze=other)) == "replay, of tox21, smollm2"


def test_frozen_stimuli_are_counted_in_the_pool_and_not_listed(views: Mapping[str, StudyView]):
    pool = {"pool": "frozen", "stimuli": views["replay"].freeze["stimuli"]}
    (counts,) = provenance.pool(replace(views["replay"], pool=pool))
    assert ("stimuli: states", "16") in counts.rows
    assert len(counts.rows) < 8


def test_explanations_of_a_control_are_by_whoever_wrote_or_composed_them(views: Mapping[str, StudyView]):
    view = views["calibration"]
    composed = replace(view, explanations=tuple(replace(e, agent="composed") for e in view.explanations))
    assert "explanations by composed" in page.design(composed)
    assert [row[0] for row in tables.directions(view).rows] == ["exact", "noisy", "wrong seed", "sign"]


def bare(study: Study, **metrics: Any) -> StudyView:
    """A view that holds metrics alone."""
    return StudyView(
        name=study.name, study=study, metrics=metrics, pool={}, freeze={}, ledger=(), states=(),
        explanations=(), plan=(), prompts={}, answers=(), outcomes=(), usage=(),
    )  # fmt: skip


def says(study: Study, **metrics: Any) -> str:
    shown = controls.instrument(bare(study, **metrics), "s1")
    assert shown is not None
    assert shown.says.endswith(".")
    return shown.says


def gain(lower: float | None, upper: float | None) -> dict[str, Any]:
    known = lower is not None and upper is not None
    return {"mean": (lower + upper) / 2 if known else 0.0, "lower": lower, "upper": upper}  # type: ignore[operator]


ABOVE, BELOW, ACROSS, SILENT = gain(1.0, 3.0), gain(-3.0, -1.0), gain(-1.0, 1.0), gain(None, None)


@pytest.mark.parametrize(
    ("wins", "rho", "said"),
    [
        (140, 0.995, "follows a number that it is shown: .* 97.2 % of 144 .* no failure to read"),
        (140, 0.98, "does not reliably follow .* 97.2 % .* may be a failure to read"),
        (100, 0.995, "does not reliably follow .* 69.4 % .* may be a failure to read"),
        (0, None, "does not reliably follow .*points that do not vary"),
        (None, None, "cannot be told"),
    ],
)
def test_calibration_says_whether_a_shown_number_is_followed(wins: int | None, rho: float | None, said: str):
    exact = {"wins": wins, "n_states": 144, "spearman": rho, "win_share": None}
    assert re.search(said, says(CALIBRATION, decision={"shown": {"exact": exact}}))


@pytest.mark.parametrize(
    ("lost", "seen", "said"),
    [
        ((), 1.0, r"not one forecaster's own: drift falls by 60.0 % .* and 60.0 % with the donor's"),
        (
            ("S-M interval-score equivalence",),
            1.0,
            "steadies this forecaster too .* not held is S-M interval",
        ),
        (("integrity", "M drift reduction"), 1.0, "may be one forecaster's own"),
        (("integrity",), None, "cannot be told"),
    ],
)
def test_replay_says_whether_the_pattern_came_again(lost: tuple[str, ...], seen: float | None, said: str):
    names = ("M drift reduction", "S drift reduction", "S-M interval-score equivalence", "integrity")
    gates = {name: {"asked": "", "seen": seen, "held": name not in lost} for name in names}
    drift = {pair: {"mean": 0.6} for pair in ("D-M", "D-S")}
    shown = says(
        REPLAY, decision={"gates": gates}, contexts={"roc_auc": {"D": {"drift": 1.0}}},
        contrasts={"roc_auc": {"drift": drift}},
    )  # fmt: skip
    assert re.search(said, shown)


@pytest.mark.parametrize(
    ("point", "drift", "halves", "said"),
    [
        (ABOVE, ABOVE, ABOVE, "falls beyond no card with \u201cnumbers alone\u201d; .* numbers alone serve"),
        (
            ACROSS,
            ACROSS,
            BELOW,
            "with none of them; two calls agree more with none of them; the mechanism alone",
        ),
        (BELOW, ACROSS, ACROSS, "and rises with \u201cnumbers alone\u201d; .* not shown to differ"),
        (SILENT, SILENT, SILENT, "cannot be told"),
    ],
)
def test_crossover_says_which_part_carries_what(
    point: dict[str, Any], drift: dict[str, Any], halves: dict[str, Any], said: str
):
    found = {
        "point_error": {"D-numbers": point, "mechanism-numbers": halves},
        "drift": {"D-numbers": drift},
    }
    shown = says(CROSSOVER, contrasts={"roc_auc": found})
    assert re.search(said, shown)
    assert "six empty lines" not in shown
    empty = {"point_error": {"D-scaffold": ACROSS}, "drift": {"D-scaffold": ABOVE}}
    assert "six empty lines" in says(CROSSOVER, contrasts={"roc_auc": empty})


@pytest.mark.parametrize(
    ("over_none", "over_donor", "said"),
    [
        (ABOVE, ABOVE, "helps beyond a donor's"),
        (ABOVE, ACROSS, "not shown to help more than a donor's"),
        (BELOW, ACROSS, "makes points worse"),
        (ACROSS, ACROSS, "what an extractor loses is not what hides one"),
        (ACROSS, SILENT, "cannot be told"),
    ],
)
def test_raw_note_says_how_often_it_stood_and_what_it_brought(
    over_none: dict[str, Any], over_donor: dict[str, Any], said: str
):
    shown = says(
        RAW_NOTE,
        decision={"shown": {"D-M": over_none, "S-M": over_donor}},
        checks={"delivery": {"explained": 288, "to_explain": 576}},
    )
    assert "stood in 50.0 % of the prompts" in shown
    assert said in shown


@pytest.mark.parametrize(
    ("over_none", "over_false", "said"),
    [
        (ABOVE, ABOVE, r"uses a true account of why, .* \(\+2.000 against no note and \+2.000 against the"),
        (ACROSS, ABOVE, "tells a true account of why from a false one, but is not shown to be helped"),
        (ABOVE, ACROSS, "not shown to be used"),
        (SILENT, ABOVE, "cannot be told"),
    ],
)
def test_mechanism_says_whether_an_account_of_why_is_used(
    over_none: dict[str, Any], over_false: dict[str, Any], said: str
):
    point = {"D-true_note": over_none, "false_note-true_note": over_false}
    assert re.search(said, says(MECHANISM, contrasts={"accuracy_pp": {"point_error": point}}))


@pytest.mark.parametrize(
    ("accuracy", "log_loss", "said"),
    [
        (ABOVE, ABOVE, "credit depends on whose the card is."),
        (ABOVE, ACROSS, "in one target alone"),
        (ACROSS, ACROSS, "is not shown to depend"),
        (ACROSS, BELOW, "the donor's card serves better where they differ"),
        (ABOVE, BELOW, "not in one direction"),
        (ACROSS, SILENT, "cannot be told"),
    ],
)
def test_gradient_says_whether_credit_depends_on_whose_card_it_is(
    accuracy: dict[str, Any], log_loss: dict[str, Any], said: str
):
    found = {
        target: {"point_error": {"S-M": between, "D-M": ABOVE, "D-S": ACROSS}}
        for target, between in (("accuracy_pp", accuracy), ("log_loss", log_loss))
    }
    shown = says(GRADIENT, contrasts=found)
    assert said in shown
    assert "+2.000 with the state's own card, 0.000 with the donor's" in shown


def test_a_study_shows_nothing_of_the_kind():
    own = own_view(groups=3)
    assert controls.instrument(own, "s1") is None
    assert controls.origin(own) is None
    assert provenance.stimuli(own) is None
    unknown = replace(bare(REPLAY), study=replace(REPLAY, name="further"))
    assert controls.instrument(unknown, "s1") is None


def test_each_sentence_stands_on_its_page_and_on_the_overview(html: str, views: Mapping[str, StudyView]):
    overview = article(html, "overview")
    for at, view in enumerate(views.values(), start=2):
        shown = controls.instrument(view, "s1")
        assert shown is not None
        assert escaped(shown.says) in overview
        assert escaped(shown.says) in article(html, f"s{at}")
