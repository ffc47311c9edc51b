"""The calibration control: does the forecaster follow a signal that is known to be right?

The states of the tabular study. The outcome itself, the outcome with a stated noise, the other seed's,
or its sign stands where a card stood. An instrument that cannot be seen to read shows nothing by not
reacting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from predictive_credit import scoring
from predictive_credit.config import ControlConfig
from predictive_credit.contexts import Showing
from predictive_credit.contrasts import Contrast
from predictive_credit.decisions import Decision
from predictive_credit.panel import Panel
from predictive_credit.records import Context
from predictive_credit.studies.controls import frozen
from predictive_credit.studies.controls.calibration import rule
from predictive_credit.studies.controls.calibration.signals import signals
from predictive_credit.studies.study import Findings, Level, Study
from predictive_credit.studies.tabular.interventions import TARGET

SIGNALS = (Context.EXACT, Context.NOISY, Context.WRONG_SEED, Context.SIGN)
_STATES = frozen.states("tabular")


def decide(study: str, findings: Findings) -> Decision:
    """The frozen rule reads how many states the exact signal wins, and in which order its points lie."""
    followed = reading(findings.panels[TARGET.name], Context.EXACT)
    return rule.decide(study, wins=followed["win_share"], spearman=followed["spearman"])


def reading(panel: Panel, context: str) -> dict[str, Any]:
    """How the mean points of a context, (state,), follow the outcomes: wins over D, rank order, error.

    A win is a smaller point error than the description's; an undefined outcome is none, and stays in
    the denominator. None where a context was not asked, or where nothing varies.
    """
    absent = {
        "n_states": len(panel.states),
        "wins": None,
        "win_share": None,
        "spearman": None,
        "point_mae": None,
    }
    if context not in panel.contexts or "D" not in panel.contexts:
        return absent
    with_signal, without = (panel.point[:, panel.of(c)].mean(axis=1) for c in (context, "D"))
    y, known = panel.outcome, ~np.isnan(panel.outcome)
    wins = int((np.abs(with_signal - y) < np.abs(without - y)).sum())  # NaN is below nothing
    varies = known.sum() > 2 and np.ptp(with_signal[known]) > 0 and np.ptp(y[known]) > 0
    return {
        "n_states": len(panel.states),
        "wins": wins,
        "win_share": wins / len(panel.states),
        "spearman": float(scoring.spearman(with_signal[known], y[known])) if varies else None,
        "point_mae": float(np.abs(with_signal - y)[known].mean()) if known.any() else None,
    }


def shows(
    panels: Mapping[str, Panel], contrasts: Mapping[str, Mapping[str, Mapping[str, Contrast]]]
) -> dict[str, Any]:
    """Wins per state, rank correlation and point error of every signal."""
    panel = panels[TARGET.name]
    return {str(context): reading(panel, context) for context in SIGNALS if context in panel.contexts}


CALIBRATION = Study(
    name="calibration",
    timing="post-outcome",
    n_tasks=24,
    n_states=144,
    n_units=1440,  # 144 x 5 contexts x 2 calls
    task_words=("task", "tasks"),
    targets=(TARGET,),
    levels=(
        Level(name="kind", is_drawn=False),
        Level(name="task", is_drawn=True),
        Level(name="state", is_drawn=False),
    ),
    contexts={
        Context.DESCRIPTION: None,
        Context.EXACT: Showing(source="exact", donor=False, form="text"),
        Context.NOISY: Showing(source="noisy", donor=False, form="text"),
        Context.WRONG_SEED: Showing(source="wrong_seed", donor=False, form="text"),
        Context.SIGN: Showing(source="sign", donor=False, form="text"),
    },
    calls_per_context=frozen.CALLS,
    extracted=(),
    primary_loss="point_error",
    one_sided_level=rule.LEVEL,
    rule=rule,
    explores=True,  # the rule reads wins and rank order, and no contrast
    decide=decide,
    textbook=None,
    config=ControlConfig,
    features=frozen.features,
    count=None,
    states=_STATES,
    burn_in=frozen.burn_in,
    execute=frozen.execute,
    donors=frozen.donors,
    given=frozen.given(_STATES, (TARGET,), compose=signals),
    matched=Context.EXACT,
    against=Context.WRONG_SEED,
    pairs=tuple((Context.DESCRIPTION, signal) for signal in SIGNALS[1:]),
    reuses="tabular",
    composed=signals,
    shows=shows,
    published={
        "source": "Predictive Credit (2026), calibration: 144 tabular states, DeepSeek V4 Pro",
        "decision": "assay_sensitive",
        "contexts": {
            "skill": {
                "D": {"point_mae_ensemble": 0.092282},
                "exact": {"point_mae_ensemble": 0.0000156},
                "wrong_seed": {"point_mae_ensemble": 0.046468},
            }
        },
        "shown": {"exact": {"n_states": 144, "wins": 144, "win_share": 1.0, "spearman": 0.99996}},
    },
)
