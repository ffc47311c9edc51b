"""Asking an evidence's forecaster about proposals: who can be asked, in which words, at what cost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.forecasters import forecaster
from predictive_credit.journal import Journal
from predictive_credit.records import Context, Prompt, Reply
from predictive_credit.selection.proposals import Proposal
from predictive_credit.stages import evidence, rank_forecasts
from predictive_credit.stages.evidence import Evidence
from predictive_credit.stages.rank_forecasts import Place
from predictive_credit.studies import params as study_params

CARD = "Direction: increase, because it is small.\nTarget: accuracy will increase by 1 percentage point."
ONE = Proposal(
    where="line 1", id="a", task=None, situation="A table.", intervention="Prune it.", explanation=CARD,
    cost=1.0, made=None,
)  # fmt: skip
BOTH = (
    "Accuracy will increase by 1.50 percentage points (80% interval: minus 0.50, plus 0.50); "
    "log loss will decrease by 0.0200 nats (80% interval: minus 0.0100, plus 0.0100)"
)


@pytest.fixture
def controlled(root: Path) -> Evidence:
    return evidence.bundle(root / "results" / "controlled-full")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(replies=tmp_path / "replies.jsonl", root=tmp_path, max_cost=None)


def frozen(found: Evidence, change: Callable[[dict[str, Any]], None]) -> Evidence:
    """The evidence with another freeze record."""
    record = found.freeze
    change(record)
    return replace(found, files={**found.files, "freeze.json": json.dumps(record).encode()})


class Twice:
    """Says one thing in the first call and another in the second."""

    def __init__(self) -> None:
        self.asked: list[Prompt] = []

    def answer(self, prompt: Prompt) -> Reply:
        self.asked.append(prompt)
        text = BOTH if len(self.asked) % 2 else BOTH.replace("1.50", "2.50")
        return Reply(text=text, finish_reason="stop", model_requested="m", model_resolved=None)

    def close(self) -> None:
        """Nothing to end."""


def test_the_point_is_the_mean_of_the_calls_in_the_target_that_is_ranked(controlled, place, monkeypatch):
    model = Twice()
    monkeypatch.setattr(forecaster, "make", lambda *_, **__: model)
    for target, point in (("accuracy_pp", 2.0), ("log_loss", -0.02)):
        (told,) = rank_forecasts.tell(controlled, [ONE], [Context.MATCHED], target, place)
        assert told.point == pytest.approx(point)
        assert (told.context, told.fallbacks) == ("M", 0)
    assert len(model.asked) == 2


def test_a_card_is_shown_as_six_slots_where_the_study_showed_them_so(controlled, place, monkeypatch):
    model = Twice()
    monkeypatch.setattr(forecaster, "make", lambda *_, **__: model)
    rank_forecasts.tell(controlled, [ONE], [Context.MATCHED], "accuracy_pp", place)
    user = model.asked[0].user
    assert "Direction: increase, because it is small." in user
    assert "Falsifier: not stated" in user
    assert user.startswith("A table.\nPlanned change: Prune it.")


def test_a_note_without_a_slot_cannot_be_shown_as_a_card(controlled, place):
    note = replace(ONE, explanation="It ought to help.")
    with pytest.raises(BadSource, match=r"proposal 'a' \(line 1\): .* no labelled line; write `Direction"):
        rank_forecasts.tell(controlled, [note], [Context.MATCHED], "accuracy_pp", place)
    assert not place.replies.exists()


def test_what_was_asked_in_other_words_says_nothing_of_these(controlled, place):
    other = frozen(controlled, lambda record: record.update(prompt_texts="0" * 64))
    with pytest.raises(BadConfig, match="was asked in other words than this version's prompts"):
        rank_forecasts.tell(other, [ONE], [Context.MATCHED], "accuracy_pp", place)


def test_a_recording_cannot_be_asked_anew(controlled, place, root):
    params = compose.compose(root, ["forecaster=replay", "forecaster.path=x.jsonl"])
    recorded = frozen(controlled, lambda record: record["params"].update(forecaster=params["forecaster"]))
    with pytest.raises(BadConfig, match=r"forecaster .* is a recording and cannot be asked"):
        rank_forecasts.tell(recorded, [ONE], [Context.MATCHED], "accuracy_pp", place)


@pytest.fixture
def hosted(root: Path) -> config.Params:
    return study_params.parse(compose.compose(root, ["forecaster=pro"]), origin="conf/")


def test_a_hosted_forecasters_limit_needs_prices(hosted, place):
    limited = replace(hosted.forecaster, max_cost=1.0)
    with pytest.raises(BadConfig, match=r"--max-cost needs prices, and there is no .*params.yaml"):
        rank_forecasts._purse(limited, place)
    assert rank_forecasts._purse(hosted.forecaster, place) is None


def test_what_proposals_cost_before_counts_towards_the_limit(hosted, place, root):
    prompt = Prompt(system="s", user="u", grammar=None, max_tokens=1, temperature=None, top_p=None, seed=1)
    paid = Reply(
        text="t", finish_reason="stop", model_requested=hosted.forecaster.model, model_resolved=None,
        cost_usd=0.25,
    )  # fmt: skip
    with Journal(place.replies, {}) as kept:
        kept.append("a/M/1", prompt, paid)
    (place.root / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    purse = rank_forecasts._purse(hosted.forecaster, place)
    assert purse is not None
    assert purse.price is not None
    assert purse.spent_usd == pytest.approx(0.25)


def test_a_reply_whose_cost_nobody_knew_counts_at_what_the_budget_was_charged(hosted, place, root):
    prompt = Prompt(system="s", user="u", grammar=None, max_tokens=1, temperature=None, top_p=None, seed=1)
    reply = Reply(
        text="t", finish_reason="stop", model_requested=hosted.forecaster.model, model_resolved=None
    )
    with Journal(place.replies, {}) as kept:
        kept.append_all([("a/M/1", prompt, reply)], charged={"a/M/1": 0.5})
    (place.root / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    purse = rank_forecasts._purse(hosted.forecaster, place)
    assert purse is not None
    assert purse.spent_usd == pytest.approx(0.5)


def test_replies_that_lie_in_the_project_are_counted_once(hosted, place, root):
    inside = replace(place, replies=place.root / "data" / "molecular" / "journal" / "forecast.jsonl")
    prompt = Prompt(system="s", user="u", grammar=None, max_tokens=1, temperature=None, top_p=None, seed=1)
    paid = Reply(
        text="t", finish_reason="stop", model_requested=hosted.forecaster.model, model_resolved=None,
        cost_usd=0.25,
    )  # fmt: skip
    inside.replies.parent.mkdir(parents=True)
    with Journal(inside.replies, {}) as kept:
        kept.append("a/M/1", prompt, paid)
    (place.root / "params.yaml").write_bytes((root / "params.yaml").read_bytes())
    purse = rank_forecasts._purse(hosted.forecaster, inside)
    assert purse is not None
    assert purse.spent_usd == pytest.approx(0.25)
