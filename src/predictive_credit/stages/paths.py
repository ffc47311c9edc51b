"""Where the artifacts of a project and of a study live, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

METRICS = ("decision", "checks", "contrasts", "contexts", "tasks", "outcomes", "explanations")
# The sentences of checks and decision, beside the metrics: `dvc metrics diff` is a table of figures.
READINGS = "readings"
# Reported beside the metrics: no bundle holds it, and a page computes it anew.
RECALIBRATION = "recalibration"


@dataclass(frozen=True, slots=True)
class Project:
    """The paths of one project (or of one Hydra job's folder)."""

    root: Path

    @property
    def params(self) -> Path:
        return self.root / "params.yaml"

    @property
    def page(self) -> Path:
        return self.root / "report" / "index.html"

    @property
    def coverage_cells(self) -> Path:
        return self.root / "data" / "coverage" / "cells.jsonl"

    @property
    def coverage_evidence(self) -> Path:
        """Where the committed evidence on coverage forecasts lies, in a clone of this project."""
        return self.root / "results" / "coverage"

    def coverage_metric(self, name: str) -> Path:
        return self.root / "metrics" / "coverage" / f"{name}.json"

    def audit(self, name: str) -> Path:
        """An audit's run: ledger, registration, episodes and, at last, `bundle`."""
        return self.root / "data" / "certification" / name

    def audit_journal(self, name: str) -> Path:
        """The replies of an audit's model: outside its run, which is made anew while they stay."""
        return self.root / "data" / "certification" / "journal" / f"{name}.jsonl"

    def audit_metric(self, name: str) -> Path:
        return self.root / "metrics" / "certification" / f"{name}.json"

    @property
    def audit_evidence(self) -> Path:
        """Where the committed bundles of full audits lie, in a clone of this project."""
        return self.root / "results" / "certification"

    def raw(self, pool: str) -> Path:
        return self.root / "data" / "raw" / pool

    def features(self, pool: str) -> Path:
        return self.root / "data" / "features" / pool

    def pool_metrics(self, pool: str) -> Path:
        return self.root / "metrics" / "pools" / f"{pool}.json"

    def arrived(self, study: str) -> Path:
        """Where outcomes lie that came after the freeze."""
        return self.root / "data" / "arrived" / study

    def study(self, name: str) -> StudyPaths:
        return StudyPaths(
            self.root / "data" / name,
            self.root / "metrics" / name,
            self.root / "data" / "ledgers" / f"{name}.jsonl",
        )


@dataclass(frozen=True, slots=True)
class StudyPaths:
    """The paths of one study: its data, its metrics and its finished ledger."""

    data: Path
    metrics: Path
    decided: Path  # the whole ledger, once the rule has run

    @property
    def states(self) -> Path:
        return self.data / "states.jsonl"

    @property
    def burn_in(self) -> Path:
        return self.data / "burn_in.json"

    @property
    def burn_in_outcomes(self) -> Path:
        return self.data / "burn_in.jsonl"

    @property
    def sealed(self) -> Path:
        return self.data / "outcomes.sealed"

    @property
    def commitment(self) -> Path:
        return self.data / "commitment.json"

    @property
    def explanations(self) -> Path:
        return self.data / "explanations.jsonl"

    @property
    def plan(self) -> Path:
        return self.data / "plan.jsonl"

    @property
    def prompts(self) -> Path:
        return self.data / "prompts.jsonl"

    @property
    def forecasts(self) -> Path:
        return self.data / "forecasts.jsonl"

    @property
    def usage(self) -> Path:
        return self.data / "usage.jsonl"

    @property
    def freeze(self) -> Path:
        return self.data / "freeze.json"

    @property
    def outcomes(self) -> Path:
        return self.data / "outcomes.csv"

    @property
    def losses(self) -> Path:
        return self.data / "losses.parquet"

    def journal(self, stage: str) -> Path:
        return self.data / "journal" / f"{stage}.jsonl"

    def ledger(self, phase: str) -> Path:
        return self.data / "ledger" / f"{phase}.jsonl"

    def metric(self, name: str) -> Path:
        return self.metrics / f"{name}.json"

    def plot(self, name: str) -> Path:
        return self.metrics / "plots" / f"{name}.csv"
