"""Stage `plan`: every unit with its prompt's digest, donor and seed; the ledger begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from predictive_credit import canonical, config, planning, tables
from predictive_credit.forecasters import forecaster
from predictive_credit.ledger import Phase
from predictive_credit.records import Explanation, State, Unit, UnitKind
from predictive_credit.stages import explain, openings, shell, spending, stimuli
from predictive_credit.stages.paths import Project

# What a plan is and what it was made from: none of them may change before the freeze.
PLANNED = ("states.jsonl", "explanations.jsonl", "plan.jsonl", "prompts.jsonl")


def run(project: Project, params: config.Params, name: str) -> str:
    """Write plan.jsonl, prompts.jsonl and the planned and sealed events."""
    spending.check(project, params)
    (study, setting), paths = shell.study(project, params, name), project.study(name)
    stimuli.refuse_same_forecaster(project, params, name, study)
    states = tables.read_records(paths.states, State)
    explanations = tables.read_records(paths.explanations, Explanation)
    sources = [(state.id, UnitKind.ELICIT, text) for state, _, text in explain.sources(study, states, params)]
    sources += [
        (e.state_id, UnitKind.EXTRACT, text) for e, text in explain.extractions(study, explanations, params)
    ]
    units = [planning.source_unit(*source, seed=params.seed) for source in sources]
    donors = study.donors(setting.config, states)
    forecasts, texts = planning.forecast_units(
        states, {(e.state_id, e.source): e for e in explanations}, study.asked(setting.config),
        donors=donors, targets=study.targets,
        sampling=forecaster.sampling(params.forecaster, study.targets),
        calls=study.calls_per_context, seed=params.seed,
    )  # fmt: skip
    stimuli.refuse_other_words(project, params, name, study, texts)
    units += forecasts
    # In asking order: sources, what is read from them, forecasts state by state.
    tables.write_records(paths.plan, units, scale=params.scale)
    texts += [text for _, _, text in sources]
    tables.write_records(paths.prompts, sorted(texts, key=lambda t: t.key), scale=params.scale)
    ledger = paths.ledger("planned")
    digests = {file: canonical.digest_file(paths.data / file) for file in PLANNED}
    digests["donors"] = canonical.digest({str(context): donors[context] for context in sorted(donors)})
    planned = shell.record(
        project, ledger, (), Phase.PLANNED, study=name, scale=params.scale, digests=digests
    )
    shell.record(
        project, ledger, planned, Phase.SEALED, study=name, scale=params.scale,
        digests={"commitment.json": canonical.digest_file(paths.commitment)},
        opened=openings.known(project, params, name),
    )  # fmt: skip
    return f"{name}: {len(states)} states, {len(units):,} units ({said(units)})"


def said(units: Sequence[Unit]) -> str:
    """Units by kind, in words."""
    words = {UnitKind.ELICIT: "explanations", UnitKind.EXTRACT: "extractions", UnitKind.FORECAST: "forecasts"}
    counts = Counter(unit.kind for unit in units)
    return ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if counts[kind])


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
