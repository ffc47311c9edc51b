"""Every unit of a study with its full prompt, before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from predictive_credit import canonical, streams
from predictive_credit.contexts import Sampling, forecast_prompt
from predictive_credit.donors import seed_donors
from predictive_credit.records import Context, Explanation, PromptText, State, Unit, UnitKind


def card_unit(state: State, text: PromptText, *, seed: int) -> Unit:
    """The call that elicits one state's card; its id is the prompt's key, `.../card`."""
    sampling_seed = streams.unit_seed(seed, text.key)
    return Unit(
        id=text.key, kind=UnitKind.ELICIT, state_id=state.id, context=None, call=None, explanation_of=None,
        prompt_digest=canonical.digest(text.prompt(sampling_seed)), seed=sampling_seed,
    )  # fmt: skip


def forecast_units(
    states: Sequence[State], explanations: Mapping[str, Explanation], contexts: Sequence[Context],
    *, sampling: Sampling, calls: int, seed: int,
) -> tuple[list[Unit], list[PromptText]]:  # fmt: skip
    """Units and prompts of every state, context and call, in the order they will be asked.

    The contexts of one state follow each other and its calls come last: what a prefix cache has
    read of a state is used again at once.
    """
    donors = seed_donors(states) if Context.DONOR in contexts else {}
    units, texts = [], []
    for state in states:
        shown = {Context.MATCHED: state.id, Context.DONOR: donors.get(state.id)}
        for context in contexts:
            author = shown.get(context)
            explanation = explanations[author] if author is not None else None
            text = forecast_prompt(state, context, explanation, sampling=sampling)
            texts.append(text)
            units += [
                _forecast_unit(state, context, call, author, text, seed) for call in range(1, calls + 1)
            ]
    return units, texts


def _forecast_unit(
    state: State, context: Context, call: int, author: str | None, text: PromptText, seed: int
) -> Unit:
    unit_id = f"{text.key}/{call}"
    sampling_seed = streams.unit_seed(seed, unit_id)
    return Unit(
        id=unit_id, kind=UnitKind.FORECAST, state_id=state.id, context=context, call=call,
        explanation_of=author, prompt_digest=canonical.digest(text.prompt(sampling_seed)), seed=sampling_seed,
    )  # fmt: skip
