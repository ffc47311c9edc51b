"""What a control takes over from a study's frozen files, and how it can be told that it did.

A control differs from a study in timing and contexts, nothing else: it has the study's states,
explanations, outcomes and burn-in, under ids that begin with its own name. The digests of all that
was taken over stand in its freeze record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from predictive_credit import canonical, ledger, tables
from predictive_credit.cards import read_card
from predictive_credit.config import ControlConfig, Execution, Pool
from predictive_credit.errors import BadConfig, OutOfOrder, Tampered
from predictive_credit.ledger import Event
from predictive_credit.records import (
    BurnIn,
    Context,
    Explanation,
    Outcome,
    Source,
    State,
    Target,
    Unit,
)  # fmt: skip
from predictive_credit.studies.study import Compose, Donors, Setting, Stimuli

CALLS = 2

# What a frozen study hands over. The names are its bundle's.
FILES = (
    "states.jsonl", "explanations.jsonl", "burn_in.json", "burn_in.jsonl", "plan.jsonl", "prompts.jsonl",
    "outcomes.csv", "freeze.json", "ledger.jsonl",
)  # fmt: skip
STIMULI = "stimuli.json"  # beside them: what a control's freeze record says of them
TAKEN: tuple[Source, ...] = ("elicited", "ordinary", "given")  # explanations that a control did not compose


def features(pool: Pool, raw: Path, folder: Path, execution: Execution) -> dict[str, Any]:
    """The frozen files as they are, and what a control's freeze record says of them."""
    if pool.kind != "frozen":
        raise BadConfig(
            f"a control works on the frozen stimuli of a study and cannot use a pool of kind {pool.kind}; "
            "give it a pool of kind frozen"
        )
    for name in FILES:
        tables.write_bytes(folder / name, tables.read_bytes(raw / name))
    check_whole(folder)
    known = stimuli(folder)
    tables.write_json(folder / STIMULI, known)
    n, head = len(known["states"]), known["ledger_head"]
    return {
        "stimuli": {key: known[key] for key in ("study", "rule", "scale", "ledger_head")} | {"states": n},
        "said": f"{n} states of {known['study']} ({known['scale']}), frozen and decided, "
        f"ledger head {head[:12]}",
    }


def check_whole(folder: Path) -> None:
    """Raise Tampered unless the files are those that one ledger and its freeze record digest."""
    events = tables.read_records(folder / "ledger.jsonl", Event)
    ledger.check_chain(events)
    promised: dict[str, Any] = dict(tables.read_json(folder / "freeze.json")["digests"])
    for event in events:
        promised |= event.digests
    for name in FILES:
        if name != "ledger.jsonl" and promised.get(name) != canonical.digest_file(folder / name):
            raise Tampered(
                f"{folder / name} is not the file that the study's ledger digested; fetch the pool again"
            )


def stimuli(folder: Path) -> dict[str, Any]:
    """What a control's freeze record says of the frozen files: whose they are, and a digest of each part."""
    frozen = tables.read_json(folder / "freeze.json")
    lent, states = donors_of(folder), _states(folder)
    explanations = tables.read_records(folder / "explanations.jsonl", Explanation)
    return {
        "study": frozen["study"],
        "rule": frozen["rule"]["name"],
        "scale": frozen["scale"],
        "ledger_head": tables.read_records(folder / "ledger.jsonl", Event)[-1].hash,
        "digests": {name: canonical.digest_file(folder / name) for name in FILES},
        "states": {s.id: canonical.digest(replace(s, donor=lent.get(s.id))) for s in states},
        "explanations": {e.id: of_explanation(e) for e in explanations},
        "outcomes": {outcome.id: canonical.digest(outcome) for outcome in outcomes(folder)},
        "burn_in": canonical.digest(tables.read_record(folder / "burn_in.json", BurnIn)),
        "forecaster": frozen["params"]["forecaster"],
    }


def of_explanation(explanation: Explanation) -> str:
    """The digest of an explanation as it was written."""
    kept = {key: getattr(explanation, key) for key in ("state_id", "source", "agent", "text")}
    return canonical.digest(kept)


def strangers(
    name: str, reused: Mapping[str, Any], states: Sequence[State], explanations: Sequence[Explanation],
    outcomes: Sequence[Outcome], burn_in: BurnIn, *, source: Source | None = None,
) -> list[tuple[str, str]]:  # fmt: skip
    """What of a control's files is not the study's, by file and id, and what of the study's is missing.

    reused: what the freeze record says of the stimuli. source: as in `states`, which it selects.
    """
    study = reused["study"]
    of_source = {s for s in reused["states"] if source is None or f"{s}/{source}" in reused["explanations"]}
    asked_states = {f"{name}/{s}": reused["states"][s] for s in of_source}
    asked_outcomes = {
        f"{name}/{o}": digest for o, digest in reused["outcomes"].items() if o.rpartition("/")[0] in of_source
    }
    taken = {
        e.id: of_explanation(replace(e, state_id=_theirs(e.state_id, name)))
        for e in explanations
        if e.source in TAKEN
    }
    written = {f"{name}/{e}": digest for e, digest in reused["explanations"].items()}
    compared = (
        ("states.jsonl", {s.id: canonical.digest(_returned(s, name, study)) for s in states}, asked_states),
        ("explanations.jsonl", taken, {e: written.get(e) for e in taken}),
        (
            "outcomes.csv",
            {o.id: canonical.digest(replace(o, state_id=_theirs(o.state_id, name))) for o in outcomes},
            asked_outcomes,
        ),
        ("burn_in.json", {"the burn-in": canonical.digest(burn_in)}, {"the burn-in": reused["burn_in"]}),
    )
    return [
        (file, an_id)
        for file, seen, asked in compared
        for an_id in sorted(seen.keys() | asked.keys())
        if seen.get(an_id) != asked.get(an_id)
    ]


def states(of: str, *, source: Source | None = None) -> Callable[[Setting], tuple[State, ...]]:
    """The states of a study that the rule `of` decided, of one source alone if it is given.

    Each carries its donor in S. Raises BadConfig for the stimuli of another rule, or without donors.
    """

    def made(setting: Setting) -> tuple[State, ...]:
        frozen = tables.read_json(setting.features / "freeze.json")
        if frozen["rule"]["name"] != of:
            raise BadConfig(
                f"{setting.name} reuses the stimuli of a {of} study, and pool {setting.config.pool} holds "
                f"{frozen['study']}, a {frozen['rule']['name']} study; give it another pool"
            )
        lent = donors_of(setting.features)
        found = [s for s in _states(setting.features) if source is None or source in s.sources]
        if alone := next((state.id for state in found if state.id not in lent), None):
            raise BadConfig(
                f"{alone} was shown no donor's explanation, and {setting.name} takes over who lends to whom; "
                f"give pool {setting.config.pool} a study that was asked with context S"
            )
        kept = [replace(state, donor=lent[state.id]) for state in found]
        return tuple(_ours(state, setting.name) for state in kept)

    return made


def burn_in(setting: Setting, states: Sequence[State]) -> tuple[tuple[Outcome, ...], BurnIn]:
    """The study's burn-in as it was."""
    outcomes = tables.read_records(setting.features / "burn_in.jsonl", Outcome)
    return outcomes, tables.read_record(setting.features / "burn_in.json", BurnIn)


def execute(setting: Setting, states: Sequence[State]) -> tuple[Outcome, ...]:
    """The outcomes that the study opened."""
    known = {state.id for state in states}
    found = outcomes(setting.features)
    ours = [replace(o, state_id=f"{setting.name}/{o.state_id}") for o in found]
    return tuple(o for o in ours if o.state_id in known)


def given(
    populate: Callable[[Setting], tuple[State, ...]], targets: Sequence[Target], *,
    sources: Sequence[Source] = (), compose: Compose | None = None,
) -> Callable[[Setting], tuple[Explanation, ...]]:  # fmt: skip
    """The study's explanations of some sources, as they were written, and those that are composed."""

    def written(setting: Setting) -> tuple[Explanation, ...]:
        made = populate(setting)
        ids = {state.id for state in made}
        found = tables.read_records(setting.features / "explanations.jsonl", Explanation)
        renamed = [replace(e, state_id=f"{setting.name}/{e.state_id}") for e in found if e.source in sources]
        # Read as they stand: what an extractor made of a text is the study's, not the control's.
        taken = [replace(e, card=read_card(e.text), extraction=None) for e in renamed if e.state_id in ids]
        if compose is None:
            return tuple(taken)
        executed = execute(setting, made)
        stimuli = Stimuli(
            states=made,
            explanations={(e.state_id, e.source): e for e in taken},
            outcomes={(o.state_id, o.target): o for o in executed},
            burn_in=burn_in(setting, made)[1],
            donors=lenders(made),
            targets=tuple(targets),
            seed=setting.seed,
            study=setting.name,
        )
        return (*taken, *compose(stimuli))

    return written


def donors(config: ControlConfig, states: Sequence[State]) -> Donors:
    """The study's own mapping of S, which the states carry."""
    if Context.DONOR not in config.contexts:
        return {}
    return {Context.DONOR: lenders(states)}


def lenders(states: Sequence[State]) -> dict[str, str]:
    """Each state's donor, by id, sorted. Raises BadConfig for a donor that is not among the states."""
    known, found = {state.id for state in states}, {}
    for state in states:
        if state.donor is None:
            continue
        if state.donor not in known:
            raise BadConfig(f"{state.id} borrows from {state.donor}, which is no state of the control")
        found[state.id] = state.donor
    return dict(sorted(found.items()))


def composed(state_id: str, source: Source, text: str) -> Explanation:
    """One composed explanation; its card is read from it like any."""
    return Explanation(state_id=state_id, source=source, agent="composed", text=text, card=read_card(text))


def donors_of(folder: Path) -> dict[str, str]:
    """Whose explanation each state of the frozen study was shown in S, by its own ids."""
    plan = tables.read_records(folder / "plan.jsonl", Unit)
    return {u.state_id: u.explanation_of for u in plan if u.context is Context.DONOR and u.explanation_of}


def outcomes(folder: Path) -> tuple[Outcome, ...]:
    """The opened outcomes of the frozen study. Raises OutOfOrder where there are none."""
    file = folder / "outcomes.csv"
    found, _ = tables.parse_outcomes(tables.read_bytes(file), str(file))
    if not found:
        raise OutOfOrder(f"{file} holds no outcome; decide the study first")
    return found


def _states(folder: Path) -> tuple[State, ...]:
    return tables.read_records(folder / "states.jsonl", State)


def _ours(state: State, name: str) -> State:
    donor = None if state.donor is None else f"{name}/{state.donor}"
    return replace(state, id=f"{name}/{state.id}", study=name, donor=donor)


def _theirs(an_id: str, name: str) -> str:
    return an_id.removeprefix(f"{name}/")


def _returned(state: State, name: str, study: str) -> State:
    donor = None if state.donor is None else _theirs(state.donor, name)
    return replace(state, id=_theirs(state.id, name), study=study, donor=donor)
