"""Every unit of a study with its full prompt, before anything is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from predictive_credit import canonical, streams
from predictive_credit.contexts import Sampling, Showing, forecast_prompt
from predictive_credit.records import Context, Explanation, PromptText, Source, State, Target, Unit, UnitKind

Shown = tuple[str, Source]  # whose explanation of which source


def source_unit(state_id: str, kind: UnitKind, text: PromptText, *, seed: int) -> Unit:
    """The call that elicits an explanation, or reads one; its id is the prompt's key."""
    sampling_seed = streams.unit_seed(seed, text.key)
    return Unit(
        id=text.key, kind=kind, state_id=state_id, context=None, call=None, explanation_of=None,
        prompt_digest=canonical.digest(text.prompt(sampling_seed)), seed=sampling_seed,
    )  # fmt: skip


def shown(
    state: State, context: Context, showing: Showing | None,
    donors: Mapping[Context, Mapping[str, str]], states: Mapping[str, State],
) -> Shown | None:  # fmt: skip
    """Whose explanation a state is shown in a context, and of which source; None in D.

    A showing without a source means the one that the explained state has.
    """
    if showing is None:
        return None
    author = donors[context][state.id] if showing.donor else state.id
    return author, showing.source or states[author].sources[0]


def forecast_units(
    states: Sequence[State],
    explanations: Mapping[Shown, Explanation],
    contexts: Mapping[Context, Showing | None],
    *,
    donors: Mapping[Context, Mapping[str, str]],
    targets: Sequence[Target],
    sampling: Sampling,
    calls: int,
    seed: int,
) -> tuple[list[Unit], list[PromptText]]:
    """Units and prompts of every state, context and call, in the order they will be asked.

    The contexts of one state follow each other and its calls come last: what a prefix cache has
    read of a state is used again at once.
    """
    by_id = {state.id: state for state in states}
    units, texts = [], []
    for state in states:
        for context, showing in contexts.items():
            author = shown(state, context, showing, donors, by_id)
            explanation = None if author is None else explanations[author]
            text = forecast_prompt(
                state, context, explanation, showing=showing, targets=targets, sampling=sampling
            )
            texts.append(text)
            of = None if author is None else author[0]
            units += [_forecast_unit(state, context, call, of, text, seed) for call in range(1, calls + 1)]
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
