"""Gates and decisions: what was seen, and nothing that was not."""

from __future__ import annotations

import pytest

from predictive_credit.decisions import Decision, Gate, by_name

HELD = Gate(name="margin", asked=">= 0.005", seen=0.0062, held=True)
UNSEEN = Gate(name="bound", asked="> 0", seen=None, held=False)


def test_a_gate_cannot_hold_on_what_was_not_seen():
    with pytest.raises(ValueError, match="gate bound cannot hold"):
        Gate(name="bound", asked="> 0", seen=None, held=True)


def test_a_printed_decision_shows_its_working_and_its_limits():
    decision = Decision(
        study="molecular",
        rule="harm",
        status="confirmation_no_go",
        gates=(HELD, UNSEEN),
        limits=("Few endpoints.",),
    )
    assert str(decision).splitlines() == [
        "molecular: confirmation_no_go (rule harm)",
        "  margin: asked >= 0.005, seen +0.006200, held",
        "  bound: asked > 0, seen nothing, not held",
        "  note: Few endpoints.",
    ]


def test_gates_by_name_keep_every_gate():
    assert by_name((HELD, UNSEEN)) == {
        "margin": {"asked": ">= 0.005", "seen": 0.0062, "held": True},
        "bound": {"asked": "> 0", "seen": None, "held": False},
    }
    with pytest.raises(ValueError, match="share a name"):
        by_name((HELD, HELD))
