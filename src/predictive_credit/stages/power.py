"""`predictive-credit power`: what a planned study can resolve, before a call of it is paid for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig, Tampered
from predictive_credit.report import power as report
from predictive_credit.stages import counts, evidence, verify
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.asks import Ask
from predictive_credit.studies.assumptions import Components, Key, assume, observed
from predictive_credit.studies.evaluation import to_panels
from predictive_credit.studies.planned import PLANS
from predictive_credit.studies.power import Effort, Population, Simulation, power
from predictive_credit.studies.study import Study

FEWEST = 100  # a share of a hundred has an error of up to five points
MOST = 100_000  # a share of so many has an error of up to 0.16 points; more takes hours


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asks. stated: by option, its words in the order given."""

    study: str
    overrides: Sequence[str] = ()
    stated: Mapping[str, Sequence[str]]
    like: Path | None = None
    studies: int | None = None  # to simulate; None: as many as Effort has
    as_json: bool = False


def run(root: Path, asked: Asked) -> str:
    """The power of a configured study, as text or as one JSON object; nothing is fetched or written.

    Raises BadConfig for a study that conf/ does not compose, for a control, for an assumption that is
    missing or wrong, for an earlier run of another study, for too few or too many studies to simulate,
    and where no gate's contexts are asked; Tampered for an earlier run that does not verify.
    """
    params = study_params.parse(compose.compose(root, asked.overrides), origin="conf/")
    if asked.study not in params.studies:
        raise BadConfig(f"no study {asked.study!r}; conf/ composes {', '.join(sorted(params.studies))}")
    if params.studies[asked.study].rule not in PLANS:
        raise BadConfig(
            f"{asked.study} is a post-outcome control, of which no power is told; ask for {', '.join(PLANS)}"
        )
    if asked.studies is not None and not FEWEST <= asked.studies <= MOST:
        why = "say next to nothing" if asked.studies < FEWEST else "take hours and tell no more"
        raise BadConfig(
            f"{asked.studies} simulated studies {why}; give --simulations from {FEWEST} to {MOST}"
        )
    told = simulate(params, asked)
    if asked.as_json:
        return json.dumps(report.plain(told), indent=2, ensure_ascii=False, allow_nan=False)
    return report.printed(told)


def simulate(params: config.Params, asked: Asked) -> report.Told:
    """Assume, simulate, and say what was done."""
    chosen = params.studies[asked.study]
    study, plan = STUDIES[chosen.rule].configured(chosen), PLANS[chosen.rule]
    counted = counts.counts(params, asked.study)  # refuses a configuration whose states cannot be planned
    levels = [level.name for level in study.levels]
    drawn = tuple(level.is_drawn for level in study.levels)
    population = Population(paths=plan.paths(chosen, params.pools), drawn=drawn)
    gates = gates_of(study, plan.asks)
    asks = [(key, ask) for key, ask in gates if set(ask.pair.split("-")) <= {*map(str, chosen.contexts)}]
    if not asks:
        contexts = ", ".join(map(str, chosen.contexts))
        raise BadConfig(
            f"{asked.study} asks {contexts} alone, and its rule reads nothing of that; ask D, M and S"
        )
    keys = list(dict.fromkeys(key for key, _ in asks))
    simulation = Simulation(
        population=population,
        assumed=assume(
            keys, asked.stated, earlier(asked, chosen.rule, keys),
            single=population.design(population.each).clusters_are_states,
        ),
        study=asked.study,
        seed=params.seed,
        one_sided_level=study.one_sided_level,
        effort=Effort() if asked.studies is None else Effort(studies=asked.studies),
    )  # fmt: skip
    outermost = drawn.index(True)
    return report.Told(
        study=asked.study, rule=study.rule.NAME, scale=params.scale, pool=chosen.pool, design=counted.design,
        cluster=levels[outermost], stratum="/".join(levels[:outermost]) or None,
        like=None if asked.like is None else str(asked.like),
        unasked=tuple(ask.gate.format(target=key.target) for key, ask in gates if (key, ask) not in asks),
        untold=plan.untold, power=power(simulation, asks, is_whole=len(asks) == len(gates)),
    )  # fmt: skip


def gates_of(study: Study, asks: Sequence[Ask]) -> list[tuple[Key, Ask]]:
    """Every gate in every target of a study, in the order of its rule."""
    return [(Key(target.name, ask.measure, ask.pair), ask) for target in study.targets for ask in asks]


def earlier(asked: Asked, rule: str, keys: Sequence[Key]) -> dict[Key, Components] | None:
    """What an earlier run shows of each contrast; None where none is named.

    Raises BadConfig for a bundle of another study, or without one of the targets, and Tampered for one
    that does not verify.
    """
    if asked.like is None:
        return None
    found = evidence.bundle(asked.like)
    if (other := found.config.rule) != rule:
        raise BadConfig(
            f"{asked.like} is a run of the {other} study, which says nothing of a {rule} study; "
            f"give --like a bundle of the {rule} study"
        )
    if findings := verify.verify_evidence(found):
        raise Tampered(
            f"{asked.like} does not verify: {findings[0]}; give --like a run that does, or state the numbers"
        )
    panels = to_panels(found.scored())
    if missing := [key.target for key in keys if key.target not in panels]:
        raise BadConfig(
            f"{asked.like} forecasts {', '.join(panels)} and not {missing[0]}; "
            "state the numbers instead of --like"
        )
    return {key: observed(panels[key.target], key.measure, key.pair) for key in keys}
