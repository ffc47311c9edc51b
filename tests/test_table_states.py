"""A user's rows as states and explanations, and whose explanation stands in as the donor's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from predictive_credit.cards import check_quotes
from predictive_credit.errors import BadConfig
from predictive_credit.records import Context, Intervention, State
from predictive_credit.studies.table import states as module
from predictive_credit.studies.table.states import donors, given, slug, states
from tests.data import small_tables
from tests.data.small_tables import csv_bytes


def state(key: str, *cluster: str, donor: str | None = None) -> State:
    return State(
        id=f"mine/{key}", study="mine", task=cluster[0], cluster=(*cluster, key), sources=("given",),
        donor=donor, description="x", facts={}, intervention=Intervention(name="heat", text="Heat."),
    )  # fmt: skip


def lenders(found: list[State], **declared: Any) -> dict[str, str]:
    mapping = donors(small_tables.config(**declared), found)[Context.DONOR]
    return {key.removeprefix("mine/"): lender.removeprefix("mine/") for key, lender in mapping.items()}


def test_a_row_becomes_a_state_with_its_place_and_nothing_of_its_outcome(tmp_path: Path):
    found = states(small_tables.setting(tmp_path, csv_bytes(list(reversed(small_tables.rows())))))
    assert [s.id for s in found] == ["mine/a", "mine/b", "mine/c", "mine/d"]
    assert found[2] == State(
        id="mine/c", study="mine", task="south", cluster=("south", "1", "c"), sources=("given",),
        description="Reactor c.", facts={}, intervention=Intervention(name="heat_it", text="Heat it."),
    )  # fmt: skip


def test_other_outcomes_give_the_same_states_and_explanations(tmp_path: Path):
    rows = small_tables.rows()
    changed = [row | {"yield": 7, "purity": 1} for row in rows]
    one = small_tables.setting(tmp_path / "one", csv_bytes(rows))
    two = small_tables.setting(tmp_path / "two", csv_bytes(changed))
    assert states(one) == states(two)
    assert given(one) == given(two)


def test_explanations_stand_as_they_were_given_and_labelled_ones_are_read_as_cards(tmp_path: Path):
    rows = small_tables.rows()
    rows[1]["why"] = "Direction: yield increases\nTarget: 2 grams"
    found = given(small_tables.setting(tmp_path, csv_bytes(rows)))
    assert [e.id for e in found] == [f"mine/{key}/given" for key in "abcd"]
    plain, labelled = found[0], found[1]
    assert (plain.text, plain.agent, list(plain.card.filled())) == ("Heat helps a.", "file", [])
    assert labelled.card.direction is not None
    assert labelled.card.direction.text == "yield increases"
    assert check_quotes(labelled) == ()


def test_a_donor_of_the_same_cluster_is_the_next_by_id_cyclically():
    found = [state(key, "n", "1") for key in "cab"] + [state(key, "n", "2") for key in "yx"]
    expected = {"a": "b", "b": "c", "c": "a", "x": "y", "y": "x"}
    assert lenders(found) == lenders(found[::-1]) == expected


def test_donors_of_another_cluster_spread_over_the_next_one():
    found = [state(key, "n", "1") for key in "abcde"] + [state(key, "s", "1") for key in "xy"]
    assert lenders(found, donor="other_cluster") == {
        "a": "x", "b": "y", "c": "x", "d": "y", "e": "x", "x": "a", "y": "b",
    }  # fmt: skip


def test_with_three_clusters_each_borrows_from_the_next():
    found = [state("a", "n"), state("b", "s"), state("c", "w")]
    assert lenders(found, donor="other_cluster") == {"a": "b", "b": "c", "c": "a"}


def test_a_given_donor_stands_as_the_file_names_it(tmp_path: Path):
    config = small_tables.config(donor="column", donor_column="lender")
    found = states(small_tables.setting(tmp_path, csv_bytes(small_tables.rows()), declared=config))
    assert donors(config, found) == {
        Context.DONOR: {"mine/a": "mine/c", "mine/b": "mine/c", "mine/c": "mine/d", "mine/d": "mine/a"}
    }


@pytest.mark.parametrize("policy", ["same_cluster", "other_cluster"])
def test_nobody_is_its_own_donor_and_policies_keep_their_word(policy: str):
    found = [state(f"{site}{batch}{n}", site, batch) for site in "abc" for batch in "xy" for n in range(3)]
    place = {s.id.removeprefix("mine/"): s.cluster for s in found}
    for borrower, lender in lenders(found, donor=policy).items():
        assert borrower != lender
        assert (place[borrower][:2] == place[lender][:2]) == (policy == "same_cluster")
        assert (place[borrower][0] == place[lender][0]) == (policy == "same_cluster")


def test_a_state_alone_has_nobody_to_borrow_from():
    found = [state("a", "n", "1"), state("b", "n", "2")]
    with pytest.raises(BadConfig, match="mine/a is alone in cluster n/1"):
        lenders(found)
    with pytest.raises(BadConfig, match="one outermost cluster"):
        lenders(found, donor="other_cluster")


def test_without_context_s_nobody_lends():
    assert donors(small_tables.config(contexts=["D", "M"]), [state("a", "n")]) == {}


@pytest.mark.parametrize(("text", "name"), [("Heat it.", "heat_it"), ("double the dose", "double_the_dose")])
def test_short_wordings_name_themselves(text: str, name: str):
    assert slug(text) == name


def test_wordings_that_differ_get_names_that_differ():
    long = "Strengthen the L2 penalty of the logistic regression"
    texts = [f"{long} tenfold", f"{long} twofold", "C = 0.1", "C = 0,1", "加热", "冷却", "Heat it", "heat-it"]
    names = [slug(text) for text in texts]
    assert len(set(names)) == len(texts)
    assert all(len(name) <= module.LONGEST_SLUG and name.replace("_", "").isalnum() for name in names)
