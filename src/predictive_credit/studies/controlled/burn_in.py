"""What playbook, fallback and priors may learn from: every intervention on seeds the study never uses."""

from __future__ import annotations

from predictive_credit.config import Execution
from predictive_credit.errors import BadConfig
from predictive_credit.records import BurnIn, Outcome
from predictive_credit.studies import workers
from predictive_credit.studies.burn_in import summary
from predictive_credit.studies.controlled.config import ControlledConfig
from predictive_credit.studies.controlled.execute import outcomes
from predictive_credit.studies.controlled.fitting import Trial, changes
from predictive_credit.studies.controlled.interventions import INTERVENTIONS, TARGETS
from predictive_credit.studies.controlled.regimes import REGIMES, dataset

# All six regimes under these seeds at every scale, so that the burn-in does not move with the study.
SEEDS = range(1001, 1011)
NAMES = tuple(intervention.name for intervention in INTERVENTIONS)


def refuse_reserved(config: ControlledConfig) -> None:
    """Raise BadConfig when the study uses a seed that is the burn-in's."""
    taken = sorted(set(config.seeds) & set(SEEDS))
    if taken:
        raise BadConfig(
            f"seeds holds {taken[0]}, and {SEEDS[0]} to {SEEDS[-1]} are the burn-in's, from which cards and "
            "fallbacks learn; choose other seeds"
        )


def burn_in(
    config: ControlledConfig, *, pool: str, seed: int, execution: Execution
) -> tuple[tuple[Outcome, ...], BurnIn]:
    """Outcomes of all six interventions in both targets on reserved seeds, and their summary.

    `pool` is the burn-in pool's name. Outcomes are sorted by id; their state ids read
    `burn-in/regime/seed/intervention`. Raises BadConfig when the study uses a reserved seed.
    """
    refuse_reserved(config)
    cells = [(regime, number) for regime in REGIMES for number in SEEDS]
    trials = [Trial(dataset=dataset(*cell, seed=seed), interventions=NAMES) for cell in cells]
    results = workers.run(changes, trials, execution, title="burn-in")
    found = [
        outcome
        for (regime, number), result in zip(cells, results, strict=True)
        for j, name in enumerate(NAMES)
        for outcome in outcomes(
            f"burn-in/{regime}/{number}/{name}", result if isinstance(result, str) else result[j]
        )
    ]
    found.sort(key=lambda outcome: outcome.id)
    tasks = [f"{regime} seeds {SEEDS[0]}-{SEEDS[-1]}" for regime in REGIMES]
    return tuple(found), summary(found, name=pool, tasks=tasks, targets=TARGETS, interventions=NAMES)
