"""Digests inside the evidence: what each of them binds, as tables of field names.

Each is the SHA-256, in hexadecimal, of a canonical record. Scores enter as hexadecimal floats, so
that no reader's way of printing a number moves a digest, and 0 binds the same as 0.0.
Raises ValueError, TypeError or OverflowError on evidence that has no canonical form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from predictive_credit import canonical
from predictive_credit.certification.records import (
    Adequacy,
    Artifact,
    Branch,
    Control,
    FeedbackPair,
    Gate1,
    Gate2,
    Gate3,
    Integrity,
    Pair,
    ShamPair,
)

_PAIR = ("pair_id", "block_id", "randomization_distribution_hash", "randomization_draw_receipt_hash",
         "assignment_frozen")  # fmt: skip
_SCOPE = (
    "checkpoint_scope", "checkpoint_hash", "window_hash", "paired_arm_contract_hash",
    "neutral_arm_contract_hash", "neutral_recovery_contract_hash", "neutral_sham_generator_hash",
    "contract_preseal_receipt_hash", "contract_sealed_before_branches_pass",
    "contract_sealed_event_index", "first_branch_started_event_index", "neutral_channel_audit_pass",
    "neutral_model_id", "neutral_interface_hash", "neutral_resource_contract_hash",
    "neutral_k_manifest_hash", "neutral_e0_manifest_hash", "neutral_web_manifest_hash",
    "neutral_opportunity_contract_hash", "neutral_challenger_policy_hash",
)  # fmt: skip
_LEDGER = (
    "checkpoint_scope", "checkpoint_hash", "window_hash", "paired_arm_contract_hash",
    "truthful_arm_contract_hash", "neutral_arm_contract_hash", "neutral_recovery_contract_hash",
    "truthful_feedback_generator_hash", "neutral_sham_generator_hash",
    "contract_preseal_receipt_hash", "contract_sealed_event_index",
    "first_branch_started_event_index", "paired_contract_audit_pass",
    "truthful_channel_audit_pass", "neutral_channel_audit_pass",
)  # fmt: skip
FEEDBACK_ARMS = {"truthful": "truthful", "neutral": "neutral"}
SHAM_ARMS = {"reference": "reference_null", "proposed": "proposed_sham"}


def _rows(record: Any, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def _all_but(record: Any, *without: str) -> dict[str, Any]:
    return _rows(record, [f.name for f in dataclasses.fields(record) if f.name not in without])


def _scores(values: Sequence[float] | None) -> list[str] | None:
    return None if values is None else [float(v).hex() for v in values]


def units(unit_ids: Sequence[str]) -> str:
    """Of the ordered ids of the sealed units."""
    return canonical.digest({"unit_ids": unit_ids})


def artifact_result(artifact: Artifact) -> str:
    """Of an artifact's validity and scores on the sealed units."""
    row = _rows(artifact, ("artifact_hash", "validity", "unit_ids"))
    return canonical.digest(row | {"scores": _scores(artifact.per_unit)})


def results(gate1: Gate1, verifier_hash: str) -> str:
    """Of both artifacts' results and of what scored them."""
    return canonical.digest(
        {
            "verifier_hash": verifier_hash,
            "astar_results_hash": artifact_result(gate1.astar),
            "baseline_results_hash": artifact_result(gate1.baseline),
        }
    )


def control_result(control: Control) -> str:
    """Of everything recorded of a challenger episode."""
    return _once(control, lambda: _all_but(control, "per_unit") | {"scores": _scores(control.per_unit)})


def branch_result(branch: Branch) -> str:
    """Of everything recorded of a branch but this digest."""

    def row() -> dict[str, Any]:
        told = _all_but(branch, "per_unit", "verifier_result_hash") | {"scores": _scores(branch.per_unit)}
        return told | {"utility": None if branch.utility is None else float(branch.utility).hex()}

    return _once(branch, row)


def _once(record: Any, row: Callable[[], dict[str, Any]]) -> str:
    """The digest of a frozen record, computed once: several ledgers ask for it."""
    kept = vars(record)  # beside the fields, so that equality, replacement and output do not see it
    if "_digest" not in kept:
        kept["_digest"] = canonical.digest(row())
    digest: str = kept["_digest"]
    return digest


def adequacy_checks(adequacy: Adequacy) -> str:
    """Of everything recorded of the adequacy but this digest."""
    return canonical.digest(_all_but(adequacy, "checks_manifest_hash"))


def gate2_ledger(controls: Sequence[Control]) -> str:
    """Of every started challenger's result, in order."""
    return canonical.digest(_control_results(controls))


def recovery_ledger(controls: Sequence[Control], gate3: Gate3 | None) -> str:
    """Of every episode that could have recovered the outcome: challengers and neutral branches."""
    ledger = _control_results(controls)
    if gate3 is not None:
        row = _rows(gate3, _LEDGER) | _neutral_audit(gate3)
        row["neutral_result_hashes"] = [branch_result(p.neutral) for p in gate3.pairs]
        ledger["gate3_neutral_ledger"] = row
    return canonical.digest(ledger)


def _control_results(controls: Sequence[Control]) -> dict[str, Any]:
    return {"gate2_attempt_result_hashes": [control_result(c) for c in controls]}


def _neutral_audit(gate3: Gate3) -> dict[str, Any]:
    """The neutral arm's own contract audit, which older records lack."""
    if gate3.neutral_contract_audit_pass is None:
        return {}
    return {"neutral_contract_audit_pass": gate3.neutral_contract_audit_pass}


def feedback_pairs(pairs: Sequence[FeedbackPair]) -> str:
    """Of every started feedback pair."""
    return _pairs(pairs, FEEDBACK_ARMS, (*_PAIR, "independence_ok"), "pairs")


def sham_pairs(pairs: Sequence[ShamPair]) -> str:
    """Of every started null pair."""
    return _pairs(pairs, SHAM_ARMS, (*_PAIR, "independence_ok"), "pairs")


def neutral_ledger(pairs: Sequence[FeedbackPair]) -> str:
    """Of every started pair's neutral branch."""
    return _pairs(pairs, {"neutral": "neutral"}, _PAIR, "neutral_pairs")


def _pairs(pairs: Sequence[Pair], arms: Mapping[str, str], names: Sequence[str], wrap: str) -> str:
    if any(p.replacement_of for p in pairs):
        names = (*names, "replacement_of")
    rows = [
        _rows(p, names)
        | {f"{label}_result_hash": branch_result(getattr(p, arm)) for label, arm in arms.items()}
        for p in pairs
    ]
    return canonical.digest({wrap: rows})


def neutral_scope(gate3: Gate3, selection_rule_hash: str) -> str:
    """Of the condition the neutral branches ran under."""
    audit = _neutral_audit(gate3) or _rows(gate3, ("paired_contract_audit_pass",))
    return canonical.digest(_rows(gate3, _SCOPE) | {"selection_rule_hash": selection_rule_hash} | audit)


def fill(
    integrity: Integrity, gate1: Gate1, gate2: Gate2, gate3: Gate3 | None = None
) -> tuple[Integrity, Gate1, Gate2, Gate3 | None]:
    """The same evidence with every digest that follows from it; the rest is left as it is.

    The neutral arm's adequacy is the challengers', since one calibration serves both.
    """
    adequacy = dataclasses.replace(gate2.adequacy, checks_manifest_hash=adequacy_checks(gate2.adequacy))
    gate2 = dataclasses.replace(gate2, adequacy=adequacy)
    derived = {
        "astar_results_hash": artifact_result(gate1.astar),
        "baseline_results_hash": artifact_result(gate1.baseline),
        "private_unit_manifest_hash": units(gate1.astar.unit_ids),
        "private_results_manifest_hash": results(gate1, integrity.verifier_hash),
        "gate2_recovery_ledger_manifest_hash": gate2_ledger(gate2.controls),
    }
    if gate3 is not None:
        gate3 = _fill_gate3(gate3, adequacy, integrity.selection_rule_hash)
        derived["gate3_neutral_scope_manifest_hash"] = gate3.neutral_scope_audit_manifest_hash
        derived["gate3_neutral_recovery_ledger_manifest_hash"] = neutral_ledger(gate3.pairs)
    derived["recovery_ledger_manifest_hash"] = recovery_ledger(gate2.controls, gate3)
    return dataclasses.replace(integrity, **derived), gate1, gate2, gate3  # type: ignore[arg-type]


def _fill_gate3(gate3: Gate3, adequacy: Adequacy, selection_rule_hash: str) -> Gate3:
    pairs = tuple(_fill_pair(p, FEEDBACK_ARMS) for p in gate3.pairs)
    sham = tuple(_fill_pair(p, SHAM_ARMS) for p in gate3.sham.pairs)
    return dataclasses.replace(
        gate3,
        pairs=pairs,
        sham=dataclasses.replace(gate3.sham, pairs=sham, confirmatory_manifest_hash=sham_pairs(sham)),
        neutral_adequacy=adequacy,
        feedback_pairs_manifest_hash=feedback_pairs(pairs),
        neutral_scope_audit_manifest_hash=neutral_scope(gate3, selection_rule_hash),
    )


def _fill_pair(pair: Any, arms: Mapping[str, str]) -> Any:
    branches = {arm: getattr(pair, arm) for arm in arms.values()}
    filled = {a: dataclasses.replace(b, verifier_result_hash=branch_result(b)) for a, b in branches.items()}
    return dataclasses.replace(pair, **filled)
