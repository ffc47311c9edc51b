"""What a user may declare of a table, and what is refused before a file is read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from predictive_credit import config as core
from predictive_credit.errors import BadConfig
from predictive_credit.studies.table.config import TableConfig
from tests.data import small_tables
from tests.data.small_tables import DECLARED, GAIN, PURITY


def refused(changes: dict[str, Any]) -> str:
    """The error of params.yaml with the small table's study, changed."""
    raw = {"studies": {"mine": DECLARED | changes}}
    with pytest.raises(BadConfig) as caught:
        core._studies(raw["studies"], {"table": TableConfig}, "params.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"id": ""}, r"studies\.mine\.id"),
        ({"donor": "random"}, r"studies\.mine\.donor"),
        ({"donor": "column"}, r"donor_column.*needs the column"),
        ({"donor_column": "lender"}, r"donor_column.*same_cluster reads no column"),
        ({"burn_in": "other"}, r"burn_in.*pools\.own\.burn_in"),
        ({"colour": "red"}, r"studies\.mine\.colour"),
        ({"targets": [GAIN | {"name": "a b"}]}, r"targets\.0\.name"),
        ({"targets": [GAIN | {"name": "a/b"}]}, r"targets\.0\.name"),
        ({"targets": [GAIN | {"name": "scale"}]}, r"targets\.0\.name.*cannot be called scale"),
        ({"targets": [GAIN | {"name": "study"}]}, r"targets\.0\.name.*cannot be called study"),
        ({"targets": [GAIN | {"upper": -50}]}, r"targets\.0\.upper.*\[-50, -50\] holds nothing"),
        ({"targets": [GAIN | {"upper": float("inf")}]}, r"targets\.0\.upper.*finite"),
        ({"targets": [GAIN | {"lower": 0, "upper": 0.5}]}, r"targets\.0\.upper.*1 decimals tell fewer"),
        ({"targets": [GAIN | {"phrase": 'the "best"'}]}, r"targets\.0\.phrase"),
        ({"targets": [GAIN | {"suffix": "\n"}]}, r"targets\.0\.suffix"),
        ({"targets": [GAIN | {"form": "ratio"}]}, r"targets\.0\.form"),
        ({"targets": [GAIN | {"better": "larger"}]}, r"targets\.0\.better"),
    ],
)  # fmt: skip
def test_an_impossible_declaration_is_refused_by_its_key(changes: dict[str, Any], said: str):
    assert re.search(said, refused(changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cluster": []}, "cluster is an empty list"),
        ({"targets": []}, "targets is an empty list"),
        ({"cluster": ["site", "site"]}, "cluster holds site twice"),
        ({"targets": [GAIN, GAIN | {"column": "purity"}]}, "targets holds yield twice"),
        ({"targets": [GAIN, PURITY | {"column": "yield"}]}, "columns holds yield twice"),
        ({"description": "why"}, "columns holds why twice"),
        ({"contexts": ["D", "D"]}, "contexts holds D twice"),
    ],
)
def test_a_column_plays_one_part_only(changes: dict[str, Any], said: str):
    with pytest.raises(BadConfig, match=said):
        core._check_lists(small_tables.config(**changes).lists(), "studies.mine")


@pytest.mark.parametrize(
    ("lower", "upper", "decimals", "size"),
    [
        (-100, 100, 2, "??#.##"), (-1, 1, 4, "#.####"), (0, 9.99, 2, "#.##"), (-2500, 10, 0, "???#"),
        (0, 0.5, 3, "#.###"), (-12.5, 99, 1, "?#.#"),
    ],
)  # fmt: skip
def test_amounts_have_as_many_whole_digits_as_the_range_needs(lower, upper, decimals, size):
    declared = small_tables.config(targets=[GAIN | {"lower": lower, "upper": upper, "decimals": decimals}])
    target = declared.targets[0].target()
    assert (target.size, target.decimals) == (size, decimals)


def test_a_target_says_its_unit_and_what_is_large_unless_told_otherwise():
    gain, purity = small_tables.config(
        targets=[GAIN, PURITY | {"suffix": "", "large": 7}]
    ).targets  # fmt: skip
    assert (gain.target().suffix, gain.target().large) == (" grams", 0.5)  # 1 % of 50
    assert (purity.target().suffix, purity.target().large, purity.target().form) == ("", 7.0, "level")


def test_higher_is_better_unless_a_target_says_otherwise():
    targets = small_tables.config(targets=[GAIN, PURITY | {"better": "lower"}]).targets
    assert [target.target().better for target in targets] == ["higher", "lower"]
    assert [target.target().better for target in small_tables.shipped().targets] == ["higher", "lower"]


def test_the_donors_column_is_read_only_where_context_s_is_asked():
    by_column: dict[str, Any] = {"donor": "column", "donor_column": "lender"}
    assert small_tables.config(**by_column).given_donor == "lender"
    assert small_tables.config(**by_column, contexts=["D", "M"]).given_donor is None


def test_the_shipped_declaration_is_whole():
    shipped = small_tables.shipped()
    core._check_lists(shipped.lists(), "conf")
    assert (shipped.pool, shipped.burn_in, shipped.donor) == ("own", "own", "same_cluster")
    assert [target.target().size for target in shipped.targets] == ["??#.##", "?#.####"]
