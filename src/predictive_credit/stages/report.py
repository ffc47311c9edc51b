"""Stage `report`: one self-contained page of every study."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from predictive_credit import __version__, config, tables
from predictive_credit.errors import OutOfOrder, Tampered
from predictive_credit.report.page import Extra, render
from predictive_credit.report.view import StudyView
from predictive_credit.stages import certify_evidence, coverage_evidence, evidence, guard
from predictive_credit.stages.evidence import FILES, Evidence
from predictive_credit.stages.paths import RECALIBRATION, Project
from predictive_credit.stages.verify import verify_evidence
from predictive_credit.studies import params as study_params
from predictive_credit.studies.recalibration import recalibration


def run(project: Project, params: config.Params) -> str:
    """Write report/index.html of the project's own studies."""
    found = [evidence.workspace(project, name) for name in params.studies]
    return write(found, project.page, tabs(project))


def write_page(root: Path, bundles: Sequence[Path], to: Path | None) -> str:
    """Write the page of a project's studies, or of bundles. Raises Tampered for one that does not verify."""
    project = Project(root)
    if bundles:
        folders = {folder.resolve(): folder for folder in bundles}.values()
        return write([_verified(folder) for folder in folders], to or project.page)
    found = [evidence.workspace(project, name) for name in study_params.load(project.params).studies]
    return write(found, to or project.page, tabs(project))


def _verified(folder: Path) -> Evidence:
    found = evidence.bundle(folder)
    if findings := verify_evidence(found):
        raise Tampered(f"{folder} does not verify: {findings[0]}; give a bundle that does")
    return found


def tabs(project: Project) -> tuple[Extra, ...]:
    """What a project's page shows beside its studies."""
    return (*coverage_evidence.tab(project), *certify_evidence.tab(project))


def write(found: Sequence[Evidence], page: Path, extra: Sequence[Extra] = ()) -> str:
    """Render and write, whole or not at all. Raises OutOfOrder before a study is decided."""
    html = render([beside(one, view(one)) for one in found], version=__version__, extra=extra)
    tables.write_bytes(page, html.encode())
    return f"{page}: {len(found)} {'study' if len(found) == 1 else 'studies'}, open it in any browser"


def view(found: Evidence) -> StudyView:
    """One study's files, read for the page."""
    if missing := [name for name in FILES if name not in found.files]:
        raise OutOfOrder(f"{found.where}: no page before the study is decided; {missing[0]} is missing")
    outcomes, _ = found.outcomes_and_salts()
    return StudyView(
        name=found.freeze["study"],
        study=found.study,
        metrics=found.metrics(),
        pool=found.json("pool.json"),
        freeze=found.freeze,
        ledger=found.ledger,
        states=found.states,
        explanations=found.explanations,
        plan=found.plan,
        prompts=found.prompts,
        answers=found.answers,
        outcomes=outcomes,
        usage=found.usage,
    )


def beside(found: Evidence, shown: StudyView) -> StudyView:
    """The view, and what stands beside its metrics in no bundle: it is computed from the frozen files."""
    params = study_params.parse(found.freeze["params"], origin="freeze.json")
    figures = recalibration(found.scored(), seed=params.seed, inference=params.inference, scale=params.scale)
    return replace(shown, metrics={**shown.metrics, RECALIBRATION: figures})


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the project (default: here)")
    args = parser.parse_args(argv)

    def action() -> int:
        project = Project(args.root)
        print(run(project, study_params.load(project.params)))
        return 0

    sys.exit(guard.guarded(action))


if __name__ == "__main__":
    main()
