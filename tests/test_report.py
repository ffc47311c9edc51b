"""The page holds everything, asks for nothing, and shows untrusted text as text."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from predictive_credit.records import Context, Explanation
from predictive_credit.report import browser, figures, page, tables, words
from predictive_credit.report.figures import Point
from predictive_credit.report.view import StudyView
from tests.samples import explanation, study_view

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
    hostile: Explanation = replace(view.explanations[0], text=HOSTILE, agent=HOSTILE)
    answer = view.answers[0]
    state = replace(view.states[0], description=HOSTILE, facts={HOSTILE: HOSTILE})
    return replace(
        view,
        explanations=(hostile, *view.explanations[1:]),
        answers=(replace(answer, reply=replace(answer.reply, text=HOSTILE)), *view.answers[1:]),
        states=(state, *view.states[1:]),
        pool={HOSTILE: HOSTILE},
    )


@pytest.fixture(scope="module")
def view() -> StudyView:
    return study_view()


@pytest.fixture(scope="module")
def html(view: StudyView) -> str:
    return page.render([view], version="1.2.3")


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


def test_hostile_texts_stay_text(view: StudyView):
    hostile = page.render([with_hostile_texts(view)], version="1.2.3")
    tags = [tag for tag, _ in Document(hostile).tags]
    assert "img" not in tags
    assert tags.count("script") == 2
    assert "49" not in Document(hostile).text("th")  # a template inside a name is not run
    (block,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', hostile, re.S)
    first = json.loads(block)["s1"]["states"][0]
    assert first["description"] == HOSTILE
    assert first["contexts"][0]["calls"][0]["raw"] == HOSTILE
    assert HOSTILE in {e["text"] for e in first["explanations"]}


def test_json_in_a_script_element_holds_no_markup_and_reads_back():
    text = browser.script_json({"said": HOSTILE, "half": "\ud800"})
    assert not set("<>&\u2028") & set(text)
    assert text.isascii()
    assert json.loads(text) == {"said": HOSTILE, "half": "\ud800"}


def test_the_numbers_of_the_metrics_stand_on_the_page(view: StudyView, html: str):
    primary = view.metrics["contrasts"]["interval_score"]["D-M"]
    assert words.signed(primary["mean"]) in html
    assert words.interval(primary["lower"], primary["upper"]) in html
    assert words.interval(primary["t_lower"], primary["t_upper"]) in html
    assert words.signed(primary["complete_case"]["mean"]) in html
    assert words.signed(primary["worst_case"]) in html
    for gate in view.metrics["decision"]["gates"].values():
        assert words.signed(gate["seen"]) in html
    for check in view.metrics["checks"].values():
        if isinstance(check, dict):
            assert check["reading"].replace("'", "&#39;") in html
    for limit in view.metrics["decision"]["limits"]:
        assert limit.replace("'", "&#39;") in html


def test_intervals_are_labelled_with_the_level_that_was_frozen(view: StudyView, html: str):
    assert "95 % percentile" in html
    params = {**view.freeze["params"], "inference": {"draws": 200, "level": 0.9}}
    narrower = page.render([replace(view, freeze={**view.freeze, "params": params})], version="1")
    assert "90 % percentile" in narrower
    assert "95 % percentile" not in narrower


def test_published_figures_stand_beside_ours_and_never_instead(view: StudyView, html: str):
    assert "\u22120.0026 [\u22120.0174, +0.0104]" in html
    without = replace(
        view,
        metrics={
            **view.metrics,
            "contexts": {k: v for k, v in view.metrics["contexts"].items() if k != "published"},
        },
    )
    levels = Document(page.render([without], version="1"))
    assert "0.0924" not in levels.text("td")  # printed interval score of M
    assert words.number(view.metrics["contexts"]["M"]["interval_score_call"]) in levels.text("td")


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
    assert page.scale_words("full", 30, None) == "Full scale: 30 states."
    assert page.scale_words("full", 30, 72) == "Asked at full scale; the pool gave 30 of 72 states."


def test_a_level_has_its_interval_in_the_row_below(view: StudyView):
    rows = {row[0]: row for row in tables.levels(view).rows}
    for key, label in (("drift", "drift between calls"), ("point_mae_call", "point error (MAE)")):
        ends = [view.metrics["contexts"][c] for c in "DMS"]
        wanted = [f"[{words.number(e[f'{key}_lower'])}, {words.number(e[f'{key}_upper'])}]" for e in ends]
        assert list(rows[f"{label}, 95 % interval"][1:4]) == wanted
        assert set(rows[f"{label}, 95 % interval"][4:]) == {words.NONE_PRINTED}
    few = {row[0]: row for row in tables.levels(study_view(endpoints=2)).rows}
    assert set(few["drift between calls, 95 % interval"][1:4]) == {words.NOT_ESTIMABLE}


def test_each_endpoint_stands_beside_the_baselines(view: StudyView, html: str):
    table = tables.endpoint_baselines(view)
    assert table.columns == ("endpoint", *2 * ("D", "M", "S", "zero", "positive", "mean"))
    for row in table.rows:
        found = view.metrics["endpoints"]["endpoints"][row[0]]["contexts"]
        assert row[4] == words.number(found["zero"]["mae"])
        assert row[12] == words.number(found["mean"]["interval_score"])
    assert table.caption in html


def test_the_mean_of_endpoint_means_stands_beside_the_mean(view: StudyView):
    table = tables.cases(view)
    at = table.columns.index("task-balanced")
    primary = view.metrics["contrasts"]["interval_score"]["D-M"]
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
        name="empty", metrics={}, pool={}, freeze={}, ledger=(), states=(), explanations=(), plan=(),
        prompts={}, answers=(), outcomes=(), usage=(),
    )  # fmt: skip
    assert Document(page.render([nothing], version="1")).open == []
    assert "No study has been decided yet" in page.render([], version="1")


def test_metrics_with_holes_are_shown_as_holes(view: StudyView):
    holes: dict[str, Any] = {
        name: dict.fromkeys(block) | {"study": "molecular", "scale": "quick"}
        for name, block in view.metrics.items()
    }
    shown = Document(page.render([replace(view, metrics=holes)], version="1"))
    assert shown.open == []
    assert "None" not in shown.text("td")


def test_two_studies_share_a_page_without_sharing_an_id(view: StudyView):
    both = Document(page.render([view, study_view(name="tox21", scale="full")], version="1"))
    ids = both.values("id")
    assert len(ids) == len(set(ids))
    assert [a["aria-controls"] for t, a in both.tags if a.get("role") == "tab"] == ["s1", "s2"]


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


def test_an_endpoint_may_be_called_anything():
    names = ["$x_{$", "\u6bd2\u6027", "a" * 60, "<b>", "tab\there"]
    drawn = figures.shares("p", "Share", names, {"D": [0.2] * 5})
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
    assert words.decision("credit", "credit_refuted")[0] == "Credit refuted"


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
def path(view: StudyView, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one study whose first explanation, reply and description are hostile."""
    file = tmp_path_factory.mktemp("page") / "index.html"
    file.write_text(page.render([with_hostile_texts(view)], version="1.2.3"), encoding="utf-8")
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
        assert words.interval(answer.forecast.lower, answer.forecast.upper) in pane.text
    outcome = next(o for o in view.outcomes if o.state_id == state.id)
    assert words.signed(outcome.value) in pane.find_element("css selector", ".outcome").text
    assert pane.text.count("empty slot") == 2  # the matched card's and the donor's


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


def test_seventy_two_states_open_and_answer_quickly(chromium: Any, tmp_path: Path):
    file = tmp_path / "full.html"
    file.write_text(
        page.render([study_view(endpoints=12, scale="full", draws=20)], version="1"), encoding="utf-8"
    )
    chromium.get(file.as_uri())
    assert len(visible(chromium, ".option")) == 72
    took = chromium.execute_script(
        "const list = document.querySelector('[data-list]'); const start = performance.now();"
        "for (let i = 0; i < 71; i++)"
        " list.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', cancelable: true }));"
        "document.body.offsetHeight; return performance.now() - start"
    )
    assert took / 71 < 100  # milliseconds a state
    assert file.stat().st_size < 3_000_000


def test_tabs_show_one_study_at_a_time(chromium: Any, view: StudyView, tmp_path: Path):
    file = tmp_path / "two.html"
    other = study_view(name="tox21", endpoints=3, contexts=(Context.DESCRIPTION,), scale="full")
    file.write_text(page.render([view, other], version="1"), encoding="utf-8")
    chromium.get_log("browser")
    chromium.get(file.as_uri())
    assert len(visible(chromium, "h1")) == 1
    one(chromium, "#s1-tab").send_keys(Keys.ARROW_RIGHT)
    assert [e.get_attribute("id") for e in visible(chromium, "article")] == ["s2"]
    assert visible(chromium, ".decision .scale")[0].text == "full scale"
    assert chromium.get_log("browser") == []


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
    found = explanation(view.states[0], -0.01)
    assert [name for name, _ in found.card.filled()] == [
        "direction", "target", "intermediate", "regime", "falsifier",
    ]  # fmt: skip
