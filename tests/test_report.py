"""The page holds everything, asks for nothing, and shows untrusted text as text."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from markupsafe import Markup
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from predictive_credit.records import Context, Explanation
from predictive_credit.report import browser, comparison, figures, page, provenance, tables, words
from predictive_credit.report.comparison import CLAIMS, Gain, SameShare
from predictive_credit.report.figures import Point
from predictive_credit.report.view import StudyView
from predictive_credit.report.words import Voice
from predictive_credit.studies.controlled import CONTROLLED
from predictive_credit.studies.molecular import MOLECULAR
from predictive_credit.studies.study import Study
from predictive_credit.studies.tabular import TABULAR
from tests.samples import controlled_view, explanation, own_view, study_view, tabular_view

HOSTILE = "</script></pre><img src=x onerror=\"document.title='owned'\"><!-- {{ 7 * 7 }} &amp; \u2028"
EMPTY_TAGS = {"meta", "input", "br", "img", "link", "hr"}


class Document(HTMLParser):
    """Tags with their attributes, open tags that were never closed, and the text by tag."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def values(self, *names: str) -> list[str]:
        return [v for _, attrs in self.tags for n, v in attrs.items() if n in names and v is not None]

    def text(self, tag: str) -> str:
        return " ".join(data for within, data in self.texts if within == tag)


def with_hostile_texts(view: StudyView) -> StudyView:
    """Everything an agent, a forecaster or a user's table may write, made hostile."""
    hostile: Explanation = replace(view.explanations[0], text=HOSTILE, agent=HOSTILE, extraction=HOSTILE)
    answer = view.answers[0]
    state = replace(view.states[0], description=HOSTILE, facts={HOSTILE: HOSTILE})
    return replace(
        view,
        explanations=(hostile, *view.explanations[1:]),
        answers=(replace(answer, reply=replace(answer.reply, text=HOSTILE)), *view.answers[1:]),
        states=(state, *view.states[1:]),
        pool={HOSTILE: HOSTILE},
    )


def escaped(text: str) -> str:
    return text.replace("'", "&#39;")


def records(html: str, prefix: str) -> Any:
    """The data of one study's browser of states."""
    (block,) = re.findall(
        rf'<script type="application/json" id="{prefix}-records">(.*?)</script>', html, re.S
    )
    return json.loads(block)


def outside_scripts(html: str) -> str:
    return re.sub(r"<(script|style)[ >].*?</\1>", "", html, flags=re.S)


@pytest.fixture(scope="module")
def view() -> StudyView:
    return study_view()


@pytest.fixture(scope="module")
def one_target(view: StudyView) -> StudyView:
    return view.of(view.target)


@pytest.fixture(scope="module")
def tabular() -> StudyView:
    return tabular_view()


@pytest.fixture(scope="module")
def controlled() -> StudyView:
    return controlled_view()


@pytest.fixture(scope="module")
def tabular_html(tabular: StudyView) -> str:
    return page.render([tabular], version="1.2.3")


@pytest.fixture(scope="module")
def html(view: StudyView) -> str:
    return page.render([view], version="1.2.3")


@pytest.fixture(scope="module")
def hostile_html(view: StudyView) -> str:
    return page.render([with_hostile_texts(view)], version="1.2.3")


@pytest.fixture(scope="module")
def two_html(view: StudyView) -> str:
    """Two runs of one study, the second of one context."""
    other = study_view(name="tox21", endpoints=3, contexts=(Context.DESCRIPTION,), scale="full")
    return page.render([view, other], version="1")


@pytest.fixture(scope="module")
def three_html(view: StudyView, controlled: StudyView, tabular: StudyView) -> str:
    return page.render([view, controlled, tabular], version="1")


@pytest.fixture(scope="module")
def document(html: str) -> Document:
    return Document(html)


def test_every_tag_is_closed_and_every_id_is_its_own(document: Document):
    assert document.open == []
    ids = document.values("id")
    assert len(ids) == len(set(ids)) > 40
    referred = [
        name for value in document.values("aria-labelledby", "aria-controls") for name in value.split()
    ]
    assert set(referred) <= set(ids)
    anchors = {href for href in document.values("href") if href.startswith("#")}
    assert {href.removeprefix("#") for href in anchors} <= set(ids)


def test_nothing_on_the_page_refers_outside_it(html: str, document: Document):
    referring = document.values("src", "href", "action", "srcset", "poster", "data", "style")
    assert all(value.startswith("#") for value in referring)
    assert "url(" not in html
    assert "@import" not in html
    assert not {"link", "iframe", "object", "embed", "base"} & {tag for tag, _ in document.tags}


def test_the_policy_forbids_everything_but_the_pages_own_style_and_script(html: str, document: Document):
    (policy,) = (a["content"] for t, a in document.tags if t == "meta" and "http-equiv" in a)
    assert policy == page.policy(
        *(re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.S)[0] for tag in ("style", "script"))
    )
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not [name for _, attrs in document.tags for name in attrs if name.startswith("on")]


def test_equal_views_give_equal_bytes(html: str):
    assert page.render([study_view()], version="1.2.3") == html
    assert page.render([study_view(seed=8)], version="1.2.3") != html


def test_hostile_texts_stay_text(hostile_html: str):
    tags = [tag for tag, _ in Document(hostile_html).tags]
    assert "img" not in tags
    assert tags.count("script") == 2
    assert "49" not in Document(hostile_html).text("th")  # a template inside a name is not run
    first = records(hostile_html, "s1")["states"][0]
    assert first["description"] == HOSTILE
    assert first["contexts"][0]["calls"][0]["raw"] == HOSTILE
    assert {HOSTILE} == {e[key] for e in first["explanations"] for key in ("text", "agent", "extraction")}


def test_json_in_a_script_element_holds_no_markup_and_reads_back():
    text = browser.script_json({"said": HOSTILE, "half": "\ud800"})
    assert not set("<>&\u2028") & set(text)
    assert text.isascii()
    assert json.loads(text) == {"said": HOSTILE, "half": "\ud800"}


def test_the_numbers_of_the_metrics_stand_on_the_page(view: StudyView, html: str):
    primary = view.metrics["contrasts"]["roc_auc"]["interval_score"]["D-M"]
    assert words.signed(primary["mean"]) in html
    assert words.interval(primary["lower"], primary["upper"]) in html
    assert words.interval(primary["t_lower"], primary["t_upper"]) in html
    assert words.signed(primary["complete_case"]["mean"]) in html
    assert words.signed(primary["worst_case"]) in html
    for gate in view.metrics["decision"]["gates"].values():
        assert words.signed(gate["seen"]) in html
    for check in view.metrics["checks"].values():
        if isinstance(check, dict):
            assert escaped(check["reading"]) in html
    for limit in view.metrics["decision"]["limits"]:
        assert escaped(limit) in html


def test_intervals_are_labelled_with_the_level_that_was_frozen(view: StudyView, html: str):
    assert "95 % percentile" in html
    params = {**view.freeze["params"], "inference": {"draws": 200, "level": 0.9}}
    narrower = page.render([replace(view, freeze={**view.freeze, "params": params})], version="1")
    assert "90 % percentile" in narrower
    assert "95 % percentile" not in narrower


def test_published_figures_stand_beside_ours_and_never_instead(view: StudyView, html: str):
    assert "\u22120.0026 [\u22120.0174, +0.0104]" in html
    rows = {row[0]: row for row in tables.levels(view.of(view.target)).rows}["interval score"]
    ours = words.number(view.metrics["contexts"]["roc_auc"]["M"]["interval_score_call"])
    assert [rows[2], rows[8]] == [ours, "0.0924"]  # printed interval score of M
    levels = {k: v for k, v in view.metrics["contexts"]["roc_auc"].items() if k != "published"}
    without = replace(view, metrics={**view.metrics, "contexts": {"roc_auc": levels}})
    rows = {row[0]: row for row in tables.levels(without.of(view.target)).rows}["interval score"]
    assert rows[2] == ours
    assert "0.0924" not in rows


@pytest.mark.parametrize(
    ("scale", "said"),
    [("quick", "A stated subset, 24"), ("full", "Asked at full scale; the pool gave 24 of 72 states.")],
)
def test_the_scale_is_said_beside_the_decision(scale: str, said: str):
    shown = Document(page.render([study_view(scale=scale)], version="1"))
    assert f"{scale} scale" in shown.text("span")
    assert said in shown.text("p")


def test_full_scale_is_full_only_with_every_declared_state():
    assert page.scale_words("full", 72, 72) == "Full scale: 72 states."
    assert page.scale_words("full", 30, 72) == "Asked at full scale; the pool gave 30 of 72 states."


def test_the_users_own_states_are_no_subset_of_anything():
    own = own_view(scale="quick")
    html = page.render([own], version="1")
    shown = Document(html)
    assert "The user's own 12 states." in shown.text("p")
    assert "own states" in shown.text("span")
    assert not re.search("quick scale|subset|not the study", outside_scripts(html))
    assert "scale quick" not in shown.values("class")
    beside = page.section(study_view(endpoints=2), "s1")
    assert (beside.scale, beside.badge) == ("quick", "quick scale")


def test_a_page_without_published_figures_leaves_no_room_for_them(view: StudyView, html: str):
    own = own_view()
    alone = outside_scripts(page.render([own], version="1"))
    assert "hollow diamonds" not in alone
    assert not re.search(r"<th[^>]*>published", alone)
    assert tables.outcomes(own.of(own.target)).columns == ("figure", "this run")
    for table in (tables.contrasts(own.of(own.target)), tables.outcomes(own.of(own.target))):
        assert {len(row) for row in table.rows} == {len(table.columns)}
    assert "hollow diamonds the published figures" in html
    assert "published decision" in page.render([own, view], version="1")


def test_no_earlier_opening_is_said_as_no_unless_nobody_looked(view: StudyView):
    found = dict(next(c for c in tables.checks(view) if c.name == "commitment").numbers)
    assert found["planned after opening"] == "no"
    assert found["chain ok"] == "yes"
    checks = {"commitment": {"status": "not_estimable", "planned_after_opening": None}}
    unseen = replace(view, metrics={"checks": checks})
    assert dict(tables.checks(unseen)[0].numbers)["planned after opening"] == words.UNDEFINED


def with_gates(view: StudyView, seen: dict[str, float | None]) -> StudyView:
    """The view with gates that saw this, none of which held."""
    gates = {name: {"asked": "> 0", "seen": value, "held": False} for name, value in seen.items()}
    decision = {**view.metrics["decision"], "gates": gates}
    return replace(view, metrics={**view.metrics, "decision": decision})


def without_figures(view: StudyView) -> StudyView:
    """The view with nothing to draw: its decision stays."""
    decision = {"decision": view.metrics["decision"]}
    return replace(view, metrics=decision, states=(), answers=(), outcomes=())


def test_gates_that_saw_nothing_are_said_to_have_seen_nothing(
    view: StudyView, controlled: StudyView, tabular: StudyView
):
    for shown, undecided in (
        (view, "so harm could not be confirmed"),
        (controlled, "so neither credit nor its absence can be shown"),
        (tabular, "so the three could not be confirmed together"),
    ):
        names = list(shown.metrics["decision"]["gates"])
        half = with_gates(shown, {name: -1.0 if k % 2 else None for k, name in enumerate(names)})
        said = page.section(without_figures(half), "s1").meaning
        count = f"{len(names) // 2} of the {len(names)} gates saw nothing (not asked or not estimable)"
        assert f"{count}, {undecided}" in said
        assert not re.search("Not every gate held|one side of zero|not asked, and", said)
        whole = with_gates(shown, dict.fromkeys(names, -1.0))
        assert "saw nothing" not in page.section(without_figures(whole), "s1").meaning


def test_a_rule_is_not_said_to_have_compared_with_a_donor_that_was_not_asked():
    own = own_view()
    said = page.section(without_figures(own), "s1").meaning
    assert "donor's" not in said
    assert "The context S donor was not asked, and 2 of the 4 gates saw nothing" in said


def test_a_level_has_its_interval_in_the_row_below(one_target: StudyView):
    rows = {row[0]: row for row in tables.levels(one_target).rows}
    for key, label in (("drift", "drift between calls"), ("point_mae_call", "point error (MAE)")):
        ends = [one_target.metrics["contexts"][c] for c in "DMS"]
        wanted = [f"[{words.number(e[f'{key}_lower'])}, {words.number(e[f'{key}_upper'])}]" for e in ends]
        assert list(rows[f"{label}, 95 % interval"][1:4]) == wanted
        assert set(rows[f"{label}, 95 % interval"][4:]) == {words.NONE_PRINTED}
    few = study_view(endpoints=2)
    sparse = {row[0]: row for row in tables.levels(few.of(few.target)).rows}
    assert set(sparse["drift between calls, 95 % interval"][1:4]) == {words.NOT_ESTIMABLE}


def test_each_task_stands_beside_the_baselines(one_target: StudyView, html: str):
    table = tables.task_baselines(one_target)
    assert table.columns == ("endpoint", *2 * ("D", "M", "S", "zero", "positive", "mean"))
    for row in table.rows:
        found = one_target.metrics["tasks"][row[0]]["contexts"]
        assert row[4] == words.number(found["zero"]["mae"])
        assert row[12] == words.number(found["mean"]["interval_score"])
    assert table.caption in html


def test_recalibrated_intervals_stand_beside_the_raw_ones_and_the_burn_ins():
    view = study_view(endpoints=6)
    one = view.of(view.target)
    table = tables.recalibration(one)
    assert [row[0][0] for row in table.rows] == ["D", "M", "S", "b"]
    for context, row in zip(("D", "M", "S", "burn_in"), table.rows, strict=True):
        found = one.metrics["recalibration"][context]
        assert len(row) == len(table.columns) == sum(n for _, n in table.groups)
        for side, at in (("raw", 1), ("recalibrated", 5)):
            assert row[at] == words.percent(found[side]["coverage"])
            assert row[at + 2 : at + 4] == tuple(
                words.number(found[side][figure]) for figure in ("width", "interval_score")
            )
        assert row[9].startswith(words.signed(min(found["corrections"].values())))
    assert [row[1] for row in table.rows[:3]] == [row[1] for row in tables.coverage(one).rows[:3]]
    shown = page.render([view], version="1")
    assert "enters no contrast, gate or decision" in shown
    assert table.caption in shown


def test_too_few_tasks_to_recalibrate_on_are_said_to_be(one_target: StudyView):
    table = tables.recalibration(one_target)
    assert "Not estimable: 3 other endpoints with a defined outcome" in str(table.note)
    for row in table.rows:
        assert row[1].endswith("%")
        assert set(row[5:]) == {words.NOT_ESTIMABLE}


def test_the_mean_of_task_means_stands_beside_the_mean(one_target: StudyView):
    table = tables.cases(one_target)
    at = table.columns.index("task-balanced")
    primary = one_target.metrics["contrasts"]["interval_score"]["D-M"]
    assert words.signed(primary["task_balanced"]) == table.rows[0][at]
    assert primary["task_balanced"] != primary["mean"]  # one outcome is undefined


def test_undefined_numbers_are_named_and_never_zero_or_nan():
    undefined = study_view(undefined=24)  # every outcome
    shown = page.render([undefined], version="1")
    assert not re.search(
        r"\b(?:NaN|nan|None|null|inf)\b", re.sub(r"<script.*?</script>", "", shown, flags=re.S)
    )
    row = re.search(r"<tr><th scope=\"row\">Interval score, [^<]*\(primary\)</th>(.*?)</tr>", shown)
    assert row is not None
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", row[1])
    assert cells[0].startswith(words.NOT_ESTIMABLE)
    assert cells[1:4] == [words.NOT_ESTIMABLE] * 3
    assert "0.0000" not in cells
    assert words.UNDEFINED in Document(shown).text("td")


@pytest.mark.parametrize("contexts", [(Context.DESCRIPTION,), (Context.DESCRIPTION, Context.MATCHED)])
def test_a_study_without_some_contexts_has_a_page_without_them(contexts: tuple[Context, ...]):
    shown = page.render([study_view(contexts=contexts)], version="1")
    assert words.NOT_ASKED in shown
    assert "S donor" not in Document(shown).text("th")


def test_a_view_that_holds_nothing_still_has_a_page():
    nothing = StudyView(
        name="empty", study=MOLECULAR, metrics={}, pool={}, freeze={}, ledger=(), states=(),
        explanations=(), plan=(), prompts={}, answers=(), outcomes=(), usage=(),
    )  # fmt: skip
    assert Document(page.render([nothing], version="1")).open == []
    assert Document(page.render([nothing, nothing], version="1")).open == []
    assert "No study has been decided yet" in page.render([], version="1")


def test_metrics_with_holes_are_shown_as_holes(view: StudyView):
    holes: dict[str, Any] = {
        name: dict.fromkeys(block) | {"study": "molecular", "scale": "quick"}
        for name, block in view.metrics.items()
    }
    shown = Document(page.render([replace(view, metrics=holes)], version="1"))
    assert shown.open == []
    assert "None" not in shown.text("td")


def test_two_studies_share_a_page_without_sharing_an_id(two_html: str):
    both = Document(two_html)
    ids = both.values("id")
    assert len(ids) == len(set(ids))
    assert [a["aria-controls"] for t, a in both.tags if a.get("role") == "tab"] == ["overview", "s1", "s2"]


def test_a_figure_says_what_it_shows_and_takes_its_colours_from_the_page():
    points = [Point(x=0.01, y=0.02, title="<a> & b"), Point(x=-0.01, y=0.03, title="c")]
    limits = ((-0.1, 0.1), (0.0, 0.1))
    drawn = figures.scatter("p", "M", points, limits=limits, labels=("drift", "error"), title="M matched")
    assert drawn == figures.scatter(
        "p", "M", points, limits=limits, labels=("drift", "error"), title="M matched"
    )
    tags = Document(drawn).tags
    assert tags[0][1]["role"] == "img"
    assert tags[0][1]["aria-label"] == "M matched: error against drift, 2 states"
    assert "fill-M" in drawn
    assert not re.search(r"#[0-9a-f]{6}|style=|url\(|xmlns", drawn)
    assert [text for tag, text in Document(drawn).texts if tag == "title"] == ["<a> & b", "c"]


def test_a_task_may_be_called_anything():
    names = ["$x_{$", "\u6bd2\u6027", "a" * 60, "<b>", "tab\there"]
    drawn = figures.shares("p", "Share", names, {"D": [0.2] * 5}, task_words=("assay", "assays"))
    assert Document(drawn).open == []
    assert "$x_{$" in drawn


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.00123, "+0.0012"), (-0.5, "\u22120.5000"), (0.0, "0.0000"), (-0.0, "0.0000"), (None, "undefined"),
     (float("nan"), "undefined"), (float("inf"), "undefined"), (True, "undefined")],
)  # fmt: skip
def test_gains_show_their_sign_and_undefined_says_so(value: Any, shown: str):
    assert words.signed(value) == shown


def test_an_interval_with_one_end_is_not_an_interval():
    assert words.interval(-0.1, 0.25) == "[\u22120.1000, +0.2500]"
    assert words.interval(None, 0.25) == words.NOT_ESTIMABLE


def test_a_status_without_words_of_ours_keeps_its_own():
    assert words.decision("harm", "confirmation_no_go")[0] == "Harm not confirmed"
    assert words.decision("own", "all_well")[0] == "All well"


@pytest.mark.parametrize(
    ("rule", "statuses"),
    [("harm", ("harm_confirmed", "confirmation_no_go")), ("joint", ("confirmation_go", "confirmation_no_go")),
     ("credit", ("credit_confirmed", "credit_refuted", "inconclusive")),
     ("assay", ("assay_sensitive", "assay_insensitive")),
     ("replication", ("replication_supported", "replication_not_supported")),
     ("mechanism", ("mechanism_sensitive", "mechanism_insensitive")), ("exploratory", ("exploratory",))],
)  # fmt: skip
def test_every_status_of_a_rule_is_explained_in_words(rule: str, statuses: tuple[str, ...]):
    for status in statuses:
        assert "Status " not in words.decision(rule, status)[1]


def test_a_view_of_one_target_holds_nothing_of_the_other(controlled: StudyView):
    accuracy, log_loss = (controlled.of(target) for target in controlled.study.targets)
    assert accuracy.metrics["contrasts"] == controlled.metrics["contrasts"]["accuracy_pp"]
    assert {o.target for o in log_loss.outcomes} == {"log_loss"}
    assert {f.target for a in log_loss.answers for f in a.forecasts} == {"log_loss"}
    assert len(accuracy.outcomes) + len(log_loss.outcomes) == len(controlled.outcomes)
    assert accuracy.metrics["decision"] == controlled.metrics["decision"]
    assert (accuracy.voice, log_loss.voice) == (Voice(digits=3), Voice(digits=4))


def test_each_target_has_its_own_figures_in_its_own_unit(controlled: StudyView):
    html = page.render([replace(controlled, pool={})], version="1")
    shown = Document(html)
    assert shown.open == []
    ids = shown.values("id")
    assert len(ids) == len(set(ids))
    assert shown.text("h3").count("Accuracy") >= 3
    assert "gain, percentage points; right favours the second" in html
    assert "gain, nats; right favours the second" in html
    for target in controlled.study.targets:
        gain = controlled.metrics["contrasts"][target.name]["point_error"]["D-M"]["mean"]
        assert controlled.of(target).voice.signed(gain) in shown.text("td")
    said = outside_scripts(html)
    assert "ROC AUC" not in said
    assert "endpoint" not in said
    assert "Levels of each regime" in said


def test_budgets_are_called_what_the_study_calls_them(
    view: StudyView, tabular: StudyView, controlled: StudyView
):
    assert "4 endpoints, 3 label fractions and 2 seeds" in page.design(view)
    assert "4 tasks, 3 training budgets and 2 seeds" in page.design(tabular)
    assert "3 regimes and 4 seeds" in page.design(controlled)


def test_the_words_of_a_study_come_from_its_declaration():
    own = own_view()
    said = outside_scripts(page.render([replace(own, pool={})], version="1"))
    assert "executed level, hours" in said
    assert "12 states from 4 clusters; contexts D, M, 2 calls each" in said
    assert "no published figures to stand beside" in said
    assert not re.search("ROC AUC|endpoint|label fraction|change, hours", said)
    assert comparison.table(own) is None


def test_six_contexts_stand_in_tables_and_figures_in_the_asking_order(tabular: StudyView, tabular_html: str):
    one = tabular.of(tabular.target)
    assert [row[0][0] for row in tables.coverage(one).rows[:6]] == list("DMSOTN")
    pairs = [row[0] for row in tables.contrasts(one).rows if row[0].startswith("Drift")]
    wanted = ["D-M", "S-M", "O-M", "T-M", "N-M", "D-S", "D-O", "D-T", "D-N"]
    first, *others = [f"Drift, {words.pair(pair)}" for pair in wanted]
    assert pairs == [f"{first} (primary)", *others]  # the joint rule reads it
    for context in "DMSOTN":
        assert (
            f'aria-label="{words.context(context)}: point error, skill against drift, skill' in tabular_html
        )
        assert f"fill-{context}" in tabular_html


def test_a_pair_is_drawn_as_the_context_that_is_compared():
    assert [figures.pair_context(p) for p in ("D-M", "S-M", "N-M", "D-T")] == ["M", "S", "N", "T"]


@pytest.mark.parametrize("vision", ["full", "protan", "deutan", "tritan"])
@pytest.mark.parametrize("scheme", [0, 1])
def test_contexts_differ_in_colour_for_colour_blind_readers(vision: str, scheme: int):
    css = page._asset("page.css")
    inks = ("D", "M", "S", "O", "T", "N", "seventh", "eighth")  # a study has eight contexts at most
    found = re.findall(" ".join(rf"--{name}: (#\w+);" for name in inks), css)
    seen = [lab(VISIONS[vision] @ linear(colour)) for colour in found[scheme]]
    distances = [float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2)]
    assert len(distances) == 28
    ground = luminance(re.findall(r"--surface: (#\w+);", css)[scheme])
    for colour in found[scheme]:
        dark, light = sorted((ground, luminance(colour)))
        assert (light + 0.05) / (dark + 0.05) > 3  # of a mark with its ground (WCAG 2.2, 1.4.11)
    assert min(distances) > 20  # CIELAB units; 2 is just noticeable


def test_the_five_checks_of_all_studies_are_one_table(
    view: StudyView, controlled: StudyView, tabular: StudyView, three_html: str
):
    overview = three_html[three_html.index('id="overview" ') : three_html.index('id="s1"')]
    (checks, runs) = re.findall(r"<tbody>(.*?)</tbody>", overview, re.S)
    rows = re.findall(r"<tr>(.*?)</tr>", checks, re.S)
    assert len(rows) == 3
    for row, shown in zip(rows, (view, controlled, tabular), strict=True):
        wanted = [words.STATUSES[shown.metrics["checks"][name]["status"]] for name in words.CHECKS]
        assert re.findall(r"</span>([^<]*)</a>", row) == wanted
        for name in words.CHECKS:
            assert escaped(shown.metrics["checks"][name]["reading"]) in overview
    assert [len(v.plan) for v in (view, controlled, tabular)] == [168, 90, 384]
    for units in ("168", "90", "384"):
        assert f"<td>{units}</td>" in runs
    assert "Inconclusive" in runs
    assert "0 of 4" in runs


def test_what_is_no_study_has_a_tab_of_its_own(view: StudyView, controlled: StudyView, html: str):
    fragment = Markup('<section><h1 id="coverage-title">Mixed</h1></section>')
    extra = [page.Extra(prefix="coverage", title="Coverage forecasting", html=fragment)]
    for views, tabs in (([view], 2), ([view, controlled], 4)):
        shown = Document(page.render(views, version="1", extra=extra))
        assert shown.open == []
        buttons = [a for t, a in shown.tags if t == "button" and a.get("role") == "tab"]
        panels = [a["id"] for t, a in shown.tags if t == "article" and a.get("role") == "tabpanel"]
        assert [b["aria-controls"] for b in buttons] == panels
        assert len(buttons) == tabs
        assert [b["aria-selected"] for b in buttons] == ["true", *["false"] * (tabs - 1)]
        assert panels[-1] == "coverage"
    assert page.render([view], version="1.2.3", extra=()) == html


def test_a_page_of_one_study_has_the_same_tables_beside_its_decision(html: str):
    decision = html[html.index('id="s1-decision"') : html.index('id="s1-published"')]
    assert "The five checks" in decision
    assert "published decision" in decision
    assert "tablist" not in html


def test_gates_of_every_rule_are_said_in_words(controlled: StudyView, tabular: StudyView):
    for shown in (controlled, tabular):
        for gate in tables.gates(shown):
            assert gate.meaning != gate.name
    first = tables.gates(controlled)[0]
    assert first.name == "accuracy_pp D-M lower bound"
    assert first.meaning == (
        "Accuracy, loss of D description minus loss of M matched: its one-sided lower bound"
    )


def test_cards_are_counted_by_source_and_slot(tabular: StudyView):
    rows = {row[0]: row[1:] for row in tables.explanations(tabular).rows}
    assert rows["explanations"] == ("24", "24", "144", "144")
    assert rows["with target filled"][:2] == ("24 (100 %)", "0 (0 %)")
    assert rows["complete cards"] == ("0 (0 %)", "0 (0 %)", "20", "1")
    note = tables.explanations(tabular).note
    assert note is not None
    assert "one-sided lower bound" in note
    found = tabular.metrics["explanations"]["ordinary"]["directions"]["skill"]
    assert tables.directions(tabular).rows[1][1:] == tuple(
        str(found[key]) for key in ("stated", "up", "n_scored", "correct", "always_up_correct")
    )


def test_counts_inside_a_row_of_the_pool_stand_in_columns_of_their_own(view: StudyView):
    (table,) = (t for t in provenance.pool(view) if t.caption == "Tables")
    assert table.columns == (
        "name", "rows", "dropped: missing target", "dropped: constant columns", "levels",
    )  # fmt: skip
    assert table.rows[0] == ("houses_0", "900", "3", "2", "2; 3")


# What held of the published study.


@pytest.mark.parametrize(
    ("lies", "lower", "upper", "held"),
    [("above", 0.1, 0.2, True), ("above", -0.2, -0.1, False), ("above", -0.1, 0.1, None),
     ("below", -0.2, -0.1, True), ("below", 0.1, 0.2, False), ("across", -0.1, 0.1, True),
     ("across", 0.1, 0.2, False), ("across", -0.2, -0.1, False), ("not above", -0.1, 0.1, True),
     ("not above", 0.1, 0.2, False), ("above", None, None, None), ("across", None, None, None)],
)  # fmt: skip
def test_a_claim_of_a_gain_is_judged_by_where_its_interval_lies(
    one_target: StudyView, lies: Any, lower: Any, upper: Any, held: bool | None
):
    claim = Gain(sentence="", measure="drift", pair="D-M", lies=lies)
    contrast = {"mean": None if lower is None else (lower + upper) / 2, "lower": lower, "upper": upper}
    planted = {**one_target.metrics, "contrasts": {"drift": {"D-M": contrast}}}
    assert claim.judge(replace(one_target, metrics=planted)).held is held


@pytest.mark.parametrize(("equal", "of", "held"), [(26, 36, True), (9, 36, False), (0, 0, None)])
def test_a_claim_of_a_share_is_judged_by_our_exact_interval(
    one_target: StudyView, equal: int, of: int, held: bool | None
):
    claim = SameShare(
        sentence="", part=("outcomes", "seed_pairs", "equal_signs"), whole=("outcomes", "seed_pairs", "n")
    )
    pairs = {"n": of, "equal_signs": equal}
    outcomes = {**one_target.metrics["outcomes"], "seed_pairs": pairs}
    found = claim.judge(replace(one_target, metrics={**one_target.metrics, "outcomes": outcomes}))
    assert found.held is held
    assert found.published == "27 of 36"


@pytest.mark.parametrize(
    ("study", "told"),
    [(MOLECULAR, 6), (TABULAR, 16), (CONTROLLED, 10)],
    ids=["molecular", "tabular", "controlled"],
)
def test_the_published_study_holds_its_own_claims(study: Study, told: int, view: StudyView):
    table = comparison.table(replace(view, study=study, metrics=as_printed(study)))
    assert table is not None
    verdicts = {row[0]: row[-1] for row in table.rows}
    assert [claim for claim, verdict in verdicts.items() if verdict == comparison.NOT_HELD] == []
    assert list(verdicts.values()).count(comparison.HELD) == told
    assert len(verdicts) == len(CLAIMS[study.rule.NAME])


def as_printed(study: Study) -> dict[str, Any]:
    """Metrics of a run that came out exactly as printed; of a printed reduction, a small gain above 0."""
    printed = study.published
    contrasts: dict[str, Any] = {}
    for target, measures in printed["contrasts"].items():
        for measure, pairs in measures.items():
            for pair, found in pairs.items():
                reduced = {"mean": 0.006, "lower": 0.004, "upper": 0.008}
                ours = reduced if "reduction_share" in found else found
                contrasts.setdefault(target, {}).setdefault(measure, {})[pair] = {**ours, "published": found}
    explanations = printed.get("explanations", {})
    total = explanations.get("all")
    if total:
        told = {
            "stated": total["stated"], "up": total["improve"], "n_scored": total["stated"],
            "correct": total["correct"], "always_up_correct": total["always_improve_correct"],
        }  # fmt: skip
        directions = {"elicited": {**explanations["elicited"], "directions": {"accuracy_pp": told}}}
        explanations = {**explanations, **directions}
    n = study.n_states
    # The source prints the largest share of a task alone.
    others = {f"other {k}": {"share_of_error": {"D": 0.02, "M": 0.02}} for k in range(study.n_tasks - 1)}
    return {
        "decision": {"rule": study.rule.NAME, "status": printed["decision"]},
        "contrasts": contrasts,
        "contexts": {t: {**of, "published": of} for t, of in printed["contexts"].items()},
        "outcomes": {
            t: {"n": n, "n_undefined": 0, **of, "published": of}
            for t, of in printed.get("outcomes", {}).items()
        },
        "tasks": {t: {**of, **others} for t, of in printed.get("tasks", {}).items()},
        "explanations": {**explanations, "published": printed.get("explanations", {})},
    }


def judged(view: StudyView, claim: comparison.Claim, **metrics: Any) -> bool | None:
    """The verdict on a claim where these metrics are planted."""
    return claim.judge(replace(view, metrics={**view.metrics, **metrics})).held


def test_a_status_that_no_gate_could_have_changed_is_not_a_claim_that_held(view: StudyView):
    claim = comparison.SameDecision(sentence="")
    names = ("M-D margin", "M-S margin")
    assert claim.judge(with_gates(view, dict.fromkeys(names, -0.1))).held is True
    assert claim.judge(with_gates(view, {"M-D margin": -0.1, "M-S margin": None})).held is None


@pytest.mark.parametrize(
    ("tasks", "largest", "held"), [(4, 0.7, None), (7, 0.7, None), (8, 0.7, True), (8, 0.2, False)]
)
def test_one_of_a_few_tasks_carries_a_large_share_whatever_happens(
    one_target: StudyView, tasks: int, largest: float, held: bool | None
):
    shares = [largest, *[(1 - largest) / (tasks - 1)] * (tasks - 1)]
    rows = {f"task {k}": {"share_of_error": {"D": share}} for k, share in enumerate(shares)}
    claim = comparison.Concentrated(sentence="", context="D")
    assert judged(one_target, claim, tasks=rows) is held


@pytest.mark.parametrize(
    ("elicited", "ordinary", "held"),
    [((59, 60), (0, 60), True), ((4, 4), (0, 4), None), ((0, 4), (4, 4), False), ((4, 4), (4, 4), False),
     ((0, 60), (0, 60), False), ((1, 1), (0, 0), None)],
)  # fmt: skip
def test_cards_too_few_to_tell_are_not_held_against_a_claim(
    one_target: StudyView, elicited: tuple[int, int], ordinary: tuple[int, int], held: bool | None
):
    found = {
        source: {"complete": part, "n": whole}
        for source, (part, whole) in (("elicited", elicited), ("ordinary", ordinary))
    }
    assert judged(one_target, comparison.Formed(sentence=""), explanations=found) is held


@pytest.mark.parametrize(
    ("difference", "lower", "held"), [(0.4, 0.1, True), (0.2, -0.1, None), (0.0, -0.1, False)]
)
def test_a_paired_difference_of_cards_is_told_by_its_bound(
    one_target: StudyView, difference: float, lower: float, held: bool | None
):
    formation = {"formation": {"difference": difference, "lower": lower}}
    assert judged(one_target, comparison.Formed(sentence=""), explanations=formation) is held


@pytest.mark.parametrize(("share", "n", "held"), [(0.0, 2, None), (0.0, 8, False), (0.75, 8, True)])
def test_a_share_of_so_few_that_any_count_would_do_cannot_be_told(
    tabular: StudyView, share: float, n: int, held: bool | None
):
    claim = comparison.SamePositiveShare(sentence="")
    found = {"positive_share": share, "n": n, "n_undefined": 0, "published": {"positive_share": 0.7}}
    assert judged(tabular.of(tabular.target), claim, outcomes=found) is held


def test_levels_that_are_printed_alike_are_a_tie(one_target: StudyView):
    claims = (
        comparison.NotBetterThan(sentence="", context="D", baseline="zero"),
        comparison.Ordered(sentence="", key="point_mae_call", contexts=("D", "zero")),
    )
    for without, verdicts in ((1.82139, (True, False)), (1.8212, (False, True)), (1.8216, (True, False))):
        levels = {"D": {"point_mae_call": without}, "zero": {"point_mae_call": 1.82141}}
        assert tuple(judged(one_target, claim, contexts=levels) for claim in claims) == verdicts


def test_claims_without_our_numbers_cannot_be_told(view: StudyView):
    empty = comparison.table(replace(view, metrics={}))
    assert empty is not None
    assert {row[-1] for row in empty.rows} == {comparison.UNTOLD}
    assert comparison.tally(empty) == ("Of 8 claims 0 held, 0 did not, and 8 cannot be told from this run.")


def test_every_claim_stands_on_the_page_with_its_criterion_and_verdict(tabular: StudyView, tabular_html: str):
    table = comparison.table(tabular)
    assert table is not None
    for claim, printed, here, criterion, verdict in table.rows:
        for said in (claim, printed, here, f"held if {criterion}", verdict):
            assert escaped(said) in tabular_html
    assert comparison.tally(table) in tabular_html


@pytest.mark.parametrize(
    ("without", "is_weak"), [(0.02, True), (0.01004, False), (0.01, False), (0.005, False), (None, False)]
)
def test_a_forecaster_worse_than_no_forecast_is_called_too_weak(
    view: StudyView, without: float | None, is_weak: bool
):
    levels = {"D": {"point_mae_call": without}, "zero": {"point_mae_call": 0.01}}
    metrics = {**view.metrics, "contexts": {"roc_auc": levels}}
    said = " ".join(comparison.limits(replace(view, metrics=metrics)))
    assert ("is 0.0200 ROC AUC, above the 0.0100 of forecasting zero" in said) is is_weak


def test_a_level_is_held_against_the_burn_ins_mean_and_given_texts_against_nobody():
    own = own_view()
    levels = {"D": {"point_mae_call": 5.0}, "zero": {"point_mae_call": 1.0}, "mean": {"point_mae_call": 4.0}}
    found = {**own.metrics, "contexts": {"hours": levels}}
    said = " ".join(comparison.limits(replace(own, metrics=found)))
    assert "is 5.00 hours, above the 4.00 of forecasting the burn-in's mean" in said
    assert "playbook" not in said
    assert page.design(own).endswith("explanations by the user's file")


def test_cards_from_templates_are_said_to_show_nothing_of_a_model(view: StudyView):
    assert "says nothing about a model" in " ".join(comparison.limits(view))
    params = {**view.freeze["params"], "agent": {"kind": "llama_cpp", "name": "smollm2"}}
    own = replace(view, freeze={**view.freeze, "params": params})
    assert "says nothing about a model" not in " ".join(comparison.limits(own))


# What the browser of states is given.


def test_a_prompt_is_put_together_from_what_it_shares(tabular: StudyView):
    data = browser.data(tabular)
    for state in data["states"]:
        for context in state["contexts"]:
            prompt = context["prompt"]
            texts = [data["texts"][prompt[key]] for key in ("before", "after")]
            user = state["stem"] + texts[0] + (prompt["shown"] or "") + texts[1]
            assert user == tabular.prompts[f"{state['id']}/{context['letter']}"].user
    assert len(data["texts"]) < 8  # system, question, fence and grammar; not one a prompt
    assert all(state["stem"].strip() for state in data["states"])


def test_a_context_says_whose_explanation_it_showed_and_how_much(tabular: StudyView):
    data = browser.data(tabular)
    state = data["states"][0]
    shown = {c["letter"]: c for c in state["contexts"]}
    assert shown["D"]["prompt"]["shown"] is None
    assert shown["D"]["says"] is None
    assert shown["M"]["place"] is None
    assert shown["O"]["says"] == ["ordinary", words.FORMS["card"]]
    assert shown["N"]["says"] == ["elicited", words.FORMS["numbers"]]
    assert [line.split(":")[0] for line in shown["N"]["prompt"]["shown"].split("\n")] == [
        "Direction",
        "Target",
    ]
    assert shown["S"]["of"] == data["states"][shown["S"]["place"]]["id"] != state["id"]
    assert data["states"][shown["T"]["place"]]["task"] != state["task"]


# What follows opens the page in a real browser.


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run", "--window-size=1280,900",
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium with a profile of its own; nothing is downloaded."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with its driver; on Debian: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def path(hostile_html: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one study whose first explanation, reply and description are hostile."""
    file = tmp_path_factory.mktemp("page") / "index.html"
    file.write_text(hostile_html, encoding="utf-8")
    return file


@pytest.fixture
def opened(chromium: Any, path: Path) -> Any:
    """The page, freshly opened at desktop width."""
    chromium.set_window_size(1280, 900)
    chromium.get_log("browser")
    chromium.get_log("performance")
    chromium.get("about:blank")
    chromium.get(path.as_uri())
    return chromium


def one(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def visible(driver: Any, selector: str) -> list[Any]:
    return [e for e in driver.find_elements("css selector", selector) if e.is_displayed()]


def test_a_browser_shows_the_decision_and_its_gates_without_asking_anyone(opened: Any, path: Path):
    assert one(opened, "h1").text == "Harm not confirmed"
    assert one(opened, "h1").location["y"] < 400
    gates = one(opened, ".gates").text
    assert all(gate in gates for gate in ("M-D margin", "M-D bound", "M-S margin", "M-S bound", "not held"))
    assert visible(opened, ".decision .scale")[0].text == "quick scale"
    assert len(visible(opened, "figure svg")) >= 12
    # No hostile text ran.
    assert opened.title.startswith("Predictive credit: molecular, moleculeace, smollm2 (quick)")
    assert opened.get_log("browser") == []
    asked = [
        json.loads(entry["message"])["message"]["params"]["request"]["url"]
        for entry in opened.get_log("performance")
        if '"Network.requestWillBeSent"' in entry["message"]
    ]
    assert set(asked) <= {path.as_uri(), "about:blank"}
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_the_policy_stops_what_a_hostile_page_would_try(opened: Any):
    opened.execute_script(
        "const script = document.createElement('script'); script.textContent = 'window.ran = true';"
        "const image = document.createElement('img'); image.src = 'http://127.0.0.1:9/x.png';"
        "document.body.append(script, image);"
    )
    assert opened.execute_script("return window.ran") is None
    log = " ".join(entry["message"] for entry in opened.get_log("browser"))
    assert "Content Security Policy" in log


def test_states_are_found_and_read_by_keyboard(opened: Any, view: StudyView):
    chosen = next(s for s in view.states if s.task == view.states[-1].task and s.budget == 0.5)
    search = one(opened, "[data-filter=text]")
    search.send_keys(f"{chosen.task}/0.5")
    assert one(opened, "[data-count]").text == f"2 of {len(view.states)} states"
    assert len(visible(opened, ".option")) == 2
    search.send_keys(Keys.ARROW_DOWN)
    opened.switch_to.active_element.send_keys(Keys.ARROW_DOWN)
    second = f"{chosen.task}/0.5/2"
    pane = one(opened, "[data-detail]")
    assert pane.find_element("css selector", "h3").text.endswith(second)
    active = one(opened, "[data-list]").get_attribute("aria-activedescendant")
    assert one(opened, f"#{active}").get_attribute("aria-selected") == "true"

    state = next(s for s in view.states if s.id.endswith(second))
    content = pane.get_attribute("textContent")
    for context in "DMS":
        assert view.prompts[f"{state.id}/{context}"].user in content
    for answer in (a for a in view.answers if a.unit_id.startswith(f"{state.id}/")):
        assert answer.reply.text in content
        (read,) = answer.forecasts
        assert words.interval(read.lower, read.upper) in pane.text
    outcome = next(o for o in view.outcomes if o.state_id == state.id)
    assert words.signed(outcome.value) in pane.find_element("css selector", ".outcome").text
    assert pane.text.count("empty slot") == 1  # the donor's is folded
    assert content.count("empty slot") == 2
    assert f"Shown: the elicited explanation of donor {second.removesuffix('2')}1, as it was written." in (
        pane.text.replace("molecular/", "")
    )


def test_six_contexts_show_what_they_showed_and_a_link_opens_its_study(
    chromium: Any, tmp_path: Path, tabular: StudyView, controlled: StudyView, three_html: str
):
    file = tmp_path / "three.html"
    file.write_text(three_html, encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(file.as_uri())
    assert one(chromium, "h1").text == "3 studies, five checks each"
    chromium.execute_script("document.querySelector('#overview a[href=\"#s3-check-alignment\"]').click()")
    assert [e.get_attribute("id") for e in visible(chromium, "article")] == ["s3"]
    pane = one(chromium, "#s3 [data-detail]")
    state = tabular.states[0]
    for context in "MSOTN":
        (card,) = visible(chromium, f"#s3 .triples .card.{context}")
        shown = tabular.prompts[f"{state.id}/{context}"].user
        assert card.find_element("css selector", "pre").text in shown
        assert "Direction: " in card.text
    assert "Target" not in one(chromium, "#s3 .triples .card.D").text
    extraction = tabular.explanations[1].extraction
    assert extraction not in pane.text  # folded
    assert extraction in pane.get_attribute("textContent")
    one(chromium, "#s3-tab").send_keys(Keys.ARROW_LEFT)
    assert [e.get_attribute("id") for e in visible(chromium, "article")] == ["s2"]
    last = controlled.states[1]
    one(chromium, "#s2 [data-list]").send_keys(Keys.ARROW_DOWN)
    said = one(chromium, "#s2 [data-detail]").text
    for target in controlled.study.targets:
        value = next(o.value for o in controlled.outcomes if o.id == f"{last.id}/{target.name}")
        assert f"executed change {controlled.of(target).voice.signed(value)} {target.unit}" in said
        assert f"Forecasts and losses: {words.capital(target.phrase)}, {target.unit}" in said
    assert chromium.get_log("browser") == []


def test_a_hostile_state_is_shown_as_it_was_written(opened: Any):
    pane = one(opened, "[data-detail]")
    content = pane.get_attribute("textContent")
    assert content.count(HOSTILE) >= 3  # description, explanation and reply
    assert opened.find_elements("css selector", "img") == []
    assert "undefined: held-out labels of one class" in pane.find_element("css selector", ".outcome").text


def test_fallbacks_and_undefined_outcomes_can_be_found(opened: Any, view: StudyView):
    only = Select(one(opened, "[data-filter=only]"))
    only.select_by_value("fallback")
    assert len(visible(opened, ".option")) == 1
    assert "the reply is not a forecast sentence" in one(opened, "[data-detail]").text
    only.select_by_value("undefined")
    assert [o.text.split("\n")[1] for o in visible(opened, ".option")] == ["undefined"]
    Select(one(opened, "[data-filter=task]")).select_by_visible_text(view.states[-1].task)
    assert one(opened, "[data-detail]").text == "No state matches."


@pytest.fixture(scope="module")
def whole_html(view: StudyView) -> str:
    """A page on which every interval held its outcome."""
    levels = view.metrics["contexts"]["roc_auc"]
    inside = {c: {**levels[c], "coverage": 1.0} for c in "DMS"}
    printed = {c: {**levels["published"][c], "coverage": 1.0} for c in "DMS"}
    contexts = {"roc_auc": {**levels, **inside, "published": printed}}
    return page.render([replace(view, metrics={**view.metrics, "contexts": contexts})], version="1")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_whole_share_fits_on_one_line_of_its_tile(
    chromium: Any, whole_html: str, tmp_path: Path, width: int
):
    file = tmp_path / "whole.html"
    file.write_text(whole_html, encoding="utf-8")
    chromium.set_window_size(width, 900)
    chromium.get(file.as_uri())
    found = chromium.execute_script(
        "return [...document.querySelectorAll('.tiles .part b, .tiles .part .printed')].map(e =>"
        " [e.textContent, e.scrollWidth - e.clientWidth,"
        " e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)])"
    )
    assert sum("100.0 %" in text for text, *_ in found) == 6
    for text, over, lines in found:
        assert over <= 0, text
        assert lines < 1.5, text


@pytest.mark.parametrize("width", [390, 820, 1280])
def test_the_page_never_scrolls_sideways(opened: Any, width: int):
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        over = opened.execute_script(
            "for (const d of document.querySelectorAll('details')) d.open = true;"
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert over <= 0
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_schemes(opened: Any, scheme: str):
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        ratios = opened.execute_script(CONTRAST)
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(ratios) > 300
    worst = min(ratios, key=lambda found: float(found[0]))
    assert worst[0] >= 4.5, worst


def test_three_full_studies_open_and_answer_quickly(chromium: Any, tmp_path: Path):
    file = tmp_path / "full.html"
    full = [
        controlled_view(regimes=6, seeds=20, scale="full", draws=100),
        study_view(endpoints=12, scale="full", draws=100),
        tabular_view(tasks=24, scale="full", draws=100),
    ]
    assert [len(view.plan) for view in full] == [900, 504, 2304]
    file.write_text(page.render(full, version="1"), encoding="utf-8")
    assert file.stat().st_size < 12_000_000
    chromium.get(file.as_uri())
    one(chromium, "#s3-tab").click()
    assert len(visible(chromium, "#s3 .option")) == 144
    took = chromium.execute_script(
        "const list = document.querySelector('#s3 [data-list]'); const start = performance.now();"
        "for (let i = 0; i < 71; i++)"
        " list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', cancelable: true }));"
        "document.body.offsetHeight; return performance.now() - start"
    )
    assert took / 71 < 100  # milliseconds a state


def test_tabs_show_one_study_at_a_time(chromium: Any, two_html: str, tmp_path: Path):
    file = tmp_path / "two.html"
    file.write_text(two_html, encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(file.as_uri())
    assert len(visible(chromium, "h1")) == 1
    one(chromium, "#overview-tab").send_keys(Keys.ARROW_RIGHT)
    one(chromium, "#s1-tab").send_keys(Keys.ARROW_RIGHT)
    assert [e.get_attribute("id") for e in visible(chromium, "article")] == ["s2"]
    assert visible(chromium, ".decision .scale")[0].text == "full scale"
    assert chromium.get_log("browser") == []


@pytest.mark.parametrize(("width", "rows"), [(390, 1), (1280, 3)])
def test_a_dozen_tabs_leave_room_for_the_page(
    chromium: Any, view: StudyView, tmp_path: Path, width: int, rows: int
):
    bare = replace(view, metrics={}, states=(), answers=(), outcomes=(), plan=())
    extra = [
        page.Extra(
            prefix=f"e{k}", title=f"control {k}, smollm2", html=Markup(f'<h1 id="e{k}-title">{k}</h1>')
        )
        for k in range(11)
    ]
    file = tmp_path / "tabs.html"
    file.write_text(page.render([bare], version="1", extra=extra), encoding="utf-8")
    metrics = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": False}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        chromium.get(file.as_uri())
        chromium.execute_script("document.getElementById('e9-tab').click()")
        tops, sideways, left, right = chromium.execute_script(
            "const tabs = [...document.querySelectorAll('[role=tab]')], root = document.documentElement;"
            "const box = document.getElementById('e9-tab').getBoundingClientRect();"
            "return [tabs.map(t => t.offsetTop), root.scrollWidth - root.clientWidth, box.left, box.right]"
        )
    finally:
        chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(tops) == 12
    assert len(set(tops)) <= rows
    assert sideways <= 0
    assert left >= 0
    assert right <= width  # the chosen tab is in sight


# How colours look to who lacks a cone (Machado, Oliveira & Fernandes 2009, severity 1), in linear RGB.
VISIONS = {
    "full": np.eye(3),
    "protan": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "deutan": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
    "tritan": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}


def linear(colour: str) -> Any:
    """`#rrggbb` in linear RGB, (3,)."""
    value = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`."""
    return float(np.array([0.2126, 0.7152, 0.0722]) @ linear(colour))


def lab(rgb: Any) -> Any:
    """Linear RGB in CIELAB under D65, (3,)."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    scaled = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    x, y, z = np.where(scaled > 0.008856, np.cbrt(scaled), 7.787 * scaled + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Contrast of every visible piece of text with the nearest painted ground (WCAG 2.2, 1.4.3).
CONTRAST = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
const light = (c) => { const [r, g, b] = parse(c).map((v) => linear(v / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  const p = parse(c); if (p.length < 4 || p[3] > 0) return c; } return 'rgb(255, 255, 255)'; };
const found = []; const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let n = walk.nextNode(); n; n = walk.nextNode()) {
  const e = n.parentElement;
  if (!n.data.trim() || !e.checkVisibility() || e.closest('script, option, .skip')) continue;
  const style = getComputedStyle(e);
  const a = light(e.closest('svg') ? style.fill : style.color), b = light(ground(e));
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), n.data.trim().slice(0, 40)]);
}
return found;
"""


def test_the_sample_itself_is_a_card_with_an_empty_slot(view: StudyView):
    state = view.states[0]
    found = explanation(state, view.study.targets, {(state.id, "roc_auc"): -0.01})
    assert [name for name, _ in found.card.filled()] == [
        "direction", "target", "intermediate", "regime", "falsifier",
    ]  # fmt: skip
