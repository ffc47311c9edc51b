"""What a provider's model has cost in this project so far, and by which prices it goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from predictive_credit import config, journal
from predictive_credit.errors import BadConfig
from predictive_credit.models import providers
from predictive_credit.models.asking import Purse
from predictive_credit.models.sending import Till
from predictive_credit.records import Reply
from predictive_credit.stages.paths import Project


def purse(
    project: Project,
    params: config.Params,
    chosen: config.Forecaster | config.Agent | config.Extractor,
    *,
    apart: Path | None = None,
) -> Purse | None:
    """Price and spending of a provider's model over all of the project; None for any other.

    The replies in the journal `apart` are left out, for who counts them as they come. Raises BadConfig
    where a budget is set for a model whose price nobody wrote down.
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
    files = sorted((project.root / "data").glob("*/journal/*.jsonl"))
    kept = [file for file in files if apart is None or file.resolve() != apart.resolve()]
    return Purse(price=price, spent_usd=sum(spent(file, chosen.model, price) for file in kept))


def spent(file: Path, model: str, price: config.Price | None) -> float:
    """What the replies of a model in one journal cost, USD."""
    return sum(
        _charge(reply, charged, price)
        for reply, charged in journal.charges(file)
        if reply.model_requested == model
    )


def _charge(reply: Reply, charged: float | None, price: config.Price | None) -> float:
    """A reply's cost; what a budget was charged, or today's price comes to, where nobody knew it then."""
    if reply.cost_usd is not None:
        return reply.cost_usd
    if charged is not None:
        return charged
    return Till(price, spent_usd=0.0, max_cost=None).cost(reply) or 0.0


def said(replies: Sequence[Reply]) -> str:
    """What replies cost together, and under which ids, if several, they were served: `, 0.0123 USD`."""
    costs = [reply.cost_usd for reply in replies if reply.cost_usd is not None]
    served = sorted({reply.model_resolved for reply in replies if reply.model_resolved is not None})
    under = f", served as {' and '.join(served)}" if len(served) > 1 else ""
    return (f", {sum(costs):.4f} USD" if costs else "") + under


def check(project: Project, params: config.Params) -> None:
    """Raise BadConfig for a key or a price that is missing, before anything is computed or paid.

    Where some replies are journalled already, the rest may need neither.
    """
    files = (project.root / "data").glob("*/journal/*.jsonl")
    audits = project.audit_journal("*").parent  # their agents are no study's
    if any(file.stat().st_size for file in files if file.parent != audits):
        return
    for chosen in (params.forecaster, params.agent, params.extractor):
        if isinstance(chosen, config.Provided):
            providers.key(chosen)
            purse(project, params, chosen)
