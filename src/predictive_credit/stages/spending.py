"""What a provider's model has cost in this project so far, and by which prices it goes on."""

from __future__ import annotations

from predictive_credit import config, journal
from predictive_credit.errors import BadConfig
from predictive_credit.models.asking import Purse
from predictive_credit.stages.paths import Project


def purse(
    project: Project, params: config.Params, chosen: config.Forecaster | config.Agent | config.Extractor
) -> Purse | None:
    """Price and spending of a provider's model over all studies of the project; None for any other.

    Raises BadConfig where a budget is set for a model whose price nobody wrote down.
    """
    if not isinstance(chosen, config.Provided):
        return None
    price = params.prices.models.get(chosen.model) if params.prices else None
    if chosen.max_cost is not None and price is None:
        known = ", ".join(params.prices.models) if params.prices else "nothing"
        raise BadConfig(
            f"{chosen.name} has max_cost {chosen.max_cost:g} USD and conf/prices has no price of "
            f"{chosen.model} (it has {known}); write its price there, or leave max_cost null"
        )
    spent = sum(
        reply.cost_usd or 0.0
        for file in sorted((project.root / "data").glob("*/journal/*.jsonl"))
        for reply in journal.replies(file)
        if reply.model_requested == chosen.model
    )
    return Purse(price=price, spent_usd=spent)
