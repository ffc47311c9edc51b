"""Stage `plan`: every unit with its prompt's digest, donor and seed; the ledger begins."""

from __future__ import annotations

from collections.abc import Sequence

from predictive_credit import canonical, config, planning, tables, vault
from predictive_credit.agents import agent
from predictive_credit.forecasters import forecaster
from predictive_credit.ledger import Phase
from predictive_credit.records import Context, Explanation, State
from predictive_credit.stages import shell
from predictive_credit.stages.paths import Project
from predictive_credit.studies import STUDIES


def run(project: Project, params: config.Params, name: str) -> str:
    """Write plan.jsonl, prompts.jsonl and the planned and sealed events."""
    study, paths = params.studies[name], project.study(name)
    states = tables.read_records(paths.states, State)
    explanations = {e.state_id: e for e in tables.read_records(paths.explanations, Explanation)}
    sampling = agent.sampling(params.agent)
    card_texts = [agent.card_prompt(state, sampling=sampling) for state in states]
    cards = [planning.card_unit(s, t, seed=params.seed) for s, t in zip(states, card_texts, strict=True)]
    forecasts, texts = planning.forecast_units(
        states, explanations, [Context(c) for c in study.contexts],
        sampling=forecaster.sampling(params.forecaster),
        calls=STUDIES[study.rule].calls_per_context, seed=params.seed,
    )  # fmt: skip
    # In asking order, which is also the order of ids within a kind: states are sorted, D < M < S.
    tables.write_records(paths.plan, [*cards, *forecasts], scale=params.scale)
    tables.write_records(
        paths.prompts, sorted([*card_texts, *texts], key=lambda t: t.key), scale=params.scale
    )
    ledger = paths.ledger("planned")
    digests = {file: canonical.digest_file(paths.data / file) for file in ("plan.jsonl", "prompts.jsonl")}
    digests["donors"] = canonical.digest(
        {u.state_id: u.explanation_of for u in forecasts if u.context == "S"}
    )
    planned = shell.record(
        project, ledger, (), Phase.PLANNED, study=name, scale=params.scale, digests=digests
    )
    shell.record(
        project, ledger, planned, Phase.SEALED, study=name, scale=params.scale,
        digests={"commitment.json": canonical.digest_file(paths.commitment)},
        opened=vault.opened_before(tables.read_json(paths.commitment)["outcomes"].values()),
    )  # fmt: skip
    units = len(cards) + len(forecasts)
    return f"{name}: {len(states)} states, {units} units ({len(cards)} cards, {len(forecasts)} forecasts)"


def main(argv: Sequence[str] | None = None) -> None:
    """Command line of the stage."""
    shell.main(run, "study", __doc__, argv)


if __name__ == "__main__":
    main()
