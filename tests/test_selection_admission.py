"""Who may rank, and what it may be shown, by the five checks."""

from __future__ import annotations

import pytest

from predictive_credit.records import Context
from predictive_credit.selection import admission

ALL = ("commitment", "delivery", "value", "alignment", "sensitivity")


def checks(**others: str) -> dict[str, dict[str, str]]:
    return {name: {"status": others.get(name, "passed"), "seen": f"{name} seen"} for name in ALL}


def test_five_passed_checks_let_rank_with_explanations_and_need_no_note():
    found = checks()
    assert admission.refusal(found) is None
    assert admission.allowed(found) == (Context.MATCHED, Context.DESCRIPTION)
    assert admission.notes(found) == ()


@pytest.mark.parametrize("name", admission.NEEDED)
@pytest.mark.parametrize("status", ["failed", "not_estimable"])
def test_each_needed_check_alone_refuses_and_is_named_with_what_it_saw(name, status):
    said = admission.refusal(checks(**{name: status}))
    assert said == f"{name} {status.replace('_', ' ')} ({name} seen)"


def test_of_several_missed_checks_all_are_named():
    said = admission.refusal(checks(commitment="failed", sensitivity="failed"))
    assert said == "commitment failed (commitment seen), and sensitivity did not pass either"


@pytest.mark.parametrize("status", ["failed", "not_estimable"])
def test_without_value_the_description_is_used_and_the_reader_told(status):
    found = checks(value=status, alignment="failed")
    assert admission.refusal(found) is None
    assert admission.allowed(found) == (Context.DESCRIPTION,)
    (note,) = admission.notes(found)
    assert note.startswith(f"value {status.replace('_', ' ')} (value seen): explanations are not used")


def test_without_alignment_explanations_are_used_and_their_reasons_doubted():
    found = checks(alignment="failed")
    assert admission.allowed(found) == (Context.MATCHED, Context.DESCRIPTION)
    (note,) = admission.notes(found)
    assert "rests on the number that an explanation states and not on its reasons" in note
