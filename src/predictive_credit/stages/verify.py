"""Replay a decision from its frozen files alone: no model, no network, every changed byte named.

The checks go from bytes to meaning: manifest, chain, digests, order, commitments, plan, replies,
explanations, metrics. Each finding names a file. Later checks read what earlier ones found
sound, so a file that was changed is reported once, by the first check that can see it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from predictive_credit import canonical, cards, ledger, planning, prompts, streams
from predictive_credit.config import Params
from predictive_credit.contexts import forecast_prompt
from predictive_credit.errors import BadSource, PredictiveCreditError
from predictive_credit.forecasters import forecaster
from predictive_credit.ledger import Event, Phase
from predictive_credit.records import Explanation, Outcome, UnitKind
from predictive_credit.stages import evidence, explain
from predictive_credit.stages.evidence import BESIDE, DATA_FILES, FILES, MANIFEST, Evidence
from predictive_credit.stages.freeze import check_answered, scoring_digest, unfaithful
from predictive_credit.stages.paths import RECALIBRATION, Project
from predictive_credit.stages.stimuli import is_same_forecaster
from predictive_credit.studies import params as study_params
from predictive_credit.studies.controls.frozen import TAKEN, lenders, strangers
from predictive_credit.studies.evaluation import evaluate
from predictive_credit.studies.recalibration import recalibration
from predictive_credit.studies.study import Stimuli


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not hold, and the file it is in."""

    file: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.file}: {self.sentence}"


def verify(target: Path) -> tuple[list[Evidence], list[Finding]]:
    """Verify a bundle, or every study of a project. Returns what was read and what does not hold."""
    if (target / MANIFEST).is_file():
        found = [evidence.bundle(target)]
    elif (target / "params.yaml").is_file():
        params = study_params.load(target / "params.yaml")
        found = [evidence.workspace(Project(target), name) for name in params.studies]
    else:
        raise BadSource(
            f"{target} is neither a project (no params.yaml) nor a bundle (no {MANIFEST}); give one of them"
        )
    return found, [finding for one in found for finding in verify_evidence(one)]


def verify_evidence(found: Evidence) -> list[Finding]:
    """Everything that does not hold in one study's files, at most one finding a file and check."""
    findings = list(_bytes(found)) if MANIFEST in found.files else []
    for check in (_chain, _digests, _rule, _commitments, _stimuli, _plan, _replies, _cards, _metrics):
        if findings:  # what follows reads files already known to be changed
            break
        findings.extend(_guarded(check, found))
    return findings


def _guarded(check: Callable[[Evidence], Iterator[Finding]], found: Evidence) -> Iterator[Finding]:
    try:
        yield from check(found)
    except PredictiveCreditError as error:
        named = next((file for file in FILES if file in str(error)), check.__name__.strip("_"))
        yield Finding(named, str(error))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        yield Finding(check.__name__.strip("_"), f"a file does not hold what this check reads: {error!r}")


def _bytes(found: Evidence) -> Iterator[Finding]:
    """The manifest guards itself and every other file."""
    files = {name: data for name, data in found.files.items() if name != MANIFEST}
    try:
        listed = found.json(MANIFEST)
        body = {key: value for key, value in listed.items() if key != "digest"}
        sound = (
            listed["digest"] == canonical.digest(body)
            and canonical.encode(listed) + b"\n" == found.files[MANIFEST]
        )
        names = dict(listed["files"])
    except (PredictiveCreditError, AttributeError, KeyError, TypeError, ValueError):
        sound, names = False, {}
    if not sound:
        yield Finding(MANIFEST, "it was changed since it was written")
        return
    for name in sorted(names.keys() | files.keys()):
        if name not in files:
            yield Finding(name, "it is in the manifest and not in the bundle")
        elif name not in names:
            yield Finding(name, "it is in the bundle and not in the manifest")
        elif canonical.digest_bytes(files[name]) != names[name]:
            yield Finding(name, "its bytes are not the ones that were packed")


def _chain(found: Evidence) -> Iterator[Finding]:
    """Hash chain, order of events, and an ending."""
    if "ledger.jsonl" not in found.files:
        yield Finding("ledger.jsonl", f"{found.where} is not decided yet: its outcomes have not been opened")
        return
    events = found.ledger
    try:
        ledger.check_chain(events)
    except PredictiveCreditError as error:
        yield Finding("ledger.jsonl", str(error))
        return
    canonical_bytes = b"".join(canonical.encode(event) + b"\n" for event in events)
    if canonical_bytes != found.bytes("ledger.jsonl"):
        yield Finding("ledger.jsonl", "it is not in the form it was written in")
    if not events or events[-1].phase is not Phase.DECIDED:
        yield Finding("ledger.jsonl", "the study is not decided")


def _digests(found: Evidence) -> Iterator[Finding]:
    """Every file is the one that the ledger or the freeze record digested."""
    promised: dict[str, set[str]] = {}
    frozen = found.freeze["digests"] if "freeze.json" in found.files else {}
    for promises in (*(event.digests for event in found.ledger), frozen):
        for name in filter(_is_file, promises):
            promised.setdefault(name, set()).add(promises[name])
    if MANIFEST in found.files:
        promised.pop(BESIDE, None)  # a bundle leaves it out, and guards every file that it holds
    for name in sorted({*promised, *DATA_FILES, *(f for f in FILES if f.startswith("metrics/"))}):
        if name not in promised:
            yield Finding(name, "no ledger event and no freeze record digests it")
        elif {_digest(found, name)} != promised[name]:
            # Two digests are promised where what the plan sealed was another file by the freeze.
            yield Finding(name, "it is not the file that the ledger or the freeze record digested")


def _is_file(name: str) -> bool:
    return "." in name


def _digest(found: Evidence, name: str) -> str | None:
    return canonical.digest_bytes(found.files[name]) if name in found.files else None


def _rule(found: Evidence) -> Iterator[Finding]:
    """The frozen rule is the installed one, and the params are the frozen ones."""
    frozen = found.freeze
    installed = found.study.rule_source
    if canonical.digest_bytes(installed) != frozen["rule"]["sha256"]:
        yield Finding(
            "rule.py", "decided under another rule than the installed one; it cannot be replayed here"
        )
    if "rule.py" in found.files and found.files["rule.py"] != installed:
        yield Finding("rule.py", "it is not the rule that was frozen")
    if "params.yaml" in found.files and yaml.safe_load(found.files["params.yaml"]) != frozen["params"]:
        yield Finding("params.yaml", "it does not hold the params that were frozen")


def _commitments(found: Evidence) -> Iterator[Finding]:
    """Every opened outcome is the one committed to."""
    try:
        found.check_commitments()
    except PredictiveCreditError as error:
        yield Finding("outcomes.csv", str(error))


def _stimuli(found: Evidence) -> Iterator[Finding]:
    """What a control took over is what the study froze and opened, and what it composed follows from that."""
    study, frozen = found.study, found.freeze
    outcomes, _ = found.outcomes_and_salts()
    if study.reuses is not None:
        reused = frozen["stimuli"]
        for file, stranger in strangers(
            frozen["study"], reused, found.states, found.explanations, outcomes, found.burn_in,
            source=study.of_source,
        ):  # fmt: skip
            yield Finding(file, f"{stranger} is not what {reused['study']} froze and opened")
        params = study_params.parse(frozen["params"], origin="freeze.json")
        if study.other_forecaster and is_same_forecaster(params.forecaster, reused["forecaster"]):
            yield Finding(
                "freeze.json", f"its forecaster is the one of {reused['study']}, which replays nothing"
            )
    if study.timing == "prospective":
        return
    told = {e.id: e for e in found.explanations if e.source not in TAKEN}
    follow = {e.id: e for e in _composed(found, outcomes)}
    for an_id in sorted(told.keys() | follow.keys()):
        if told.get(an_id) != follow.get(an_id):
            yield Finding("explanations.jsonl", f"{an_id} does not follow from what the control is made of")


def _composed(found: Evidence, outcomes: tuple[Outcome, ...]) -> tuple[Explanation, ...]:
    """The explanations that a control composes from its states, outcomes and the cards it took over."""
    study, frozen = found.study, found.freeze
    if study.composed is None:
        return ()
    return study.composed(
        Stimuli(
            states=found.states,
            explanations={(e.state_id, e.source): e for e in found.explanations if e.source in TAKEN},
            outcomes={(o.state_id, o.target): o for o in outcomes},
            burn_in=found.burn_in,
            donors=lenders(found.states),
            targets=study.targets,
            seed=frozen["params"]["seed"],
            study=frozen["study"],
        )
    )


def _plan(found: Evidence) -> Iterator[Finding]:
    """Seeds, donors, prompts: each unit asks what the protocol says it asks."""
    frozen, texts, study = found.freeze, found.prompts, found.study
    params = study_params.parse(frozen["params"], origin="freeze.json")
    states = {s.id: s for s in found.states}
    explanations = {(e.state_id, e.source): e for e in found.explanations}
    donors = study.donors(found.config, found.states)
    # Another package version may word its prompts differently; the digests still bind the frozen text.
    question = forecaster.QUESTIONS[params.forecaster.elicitation]
    same_texts = frozen["prompt_texts"] == prompts.digest(question)
    sampling = forecaster.sampling(params.forecaster, study.targets)
    yield from _sources(found, params, same_texts=same_texts)
    for unit in found.plan:
        text = texts[unit.id.rsplit("/", 1)[0] if unit.kind is UnitKind.FORECAST else unit.id]
        if unit.seed != streams.unit_seed(frozen["params"]["seed"], unit.id):
            yield Finding("plan.jsonl", f"the seed of {unit.id} is not derived from the study's seed")
        if canonical.digest(text.prompt(unit.seed)) != unit.prompt_digest:
            yield Finding("prompts.jsonl", f"the prompt of {unit.id} is not the one planned")
        if unit.kind is not UnitKind.FORECAST or unit.context is None:
            continue
        state, showing = states[unit.state_id], study.contexts[unit.context]
        shown = planning.shown(state, unit.context, showing, donors, states)
        of = None if shown is None else shown[0]
        if unit.explanation_of != of:
            yield Finding("plan.jsonl", f"{unit.id} shows the explanation of {unit.explanation_of}, not {of}")
        elif same_texts:
            explanation = None if shown is None else explanations[shown]
            asked = forecast_prompt(
                state, unit.context, explanation, showing=showing, targets=study.targets, sampling=sampling
            )
            if asked != text:
                yield Finding(
                    "prompts.jsonl", f"the prompt of {unit.id} does not follow from its state and card"
                )


def _sources(found: Evidence, params: Params, *, same_texts: bool) -> Iterator[Finding]:
    """Every explanation is elicited and read as the study declares, in its order and blind to its origin."""
    study, texts = found.study, found.prompts
    asked = [(UnitKind.ELICIT, state.id, t) for state, _, t in explain.sources(study, found.states, params)]
    asked += [
        (UnitKind.EXTRACT, e.state_id, t) for e, t in explain.extractions(study, found.explanations, params)
    ]
    planned = [unit for unit in found.plan if unit.kind is not UnitKind.FORECAST]
    if [(u.kind, u.state_id, u.id) for u in planned] != [(kind, s, text.key) for kind, s, text in asked]:
        yield Finding("plan.jsonl", "its elicit and extract units are not those that the study declares")
    elif same_texts:
        for _, _, text in asked:
            if texts[text.key] != text:
                yield Finding("prompts.jsonl", f"the prompt of {text.key} is not what the study asks")


def _replies(found: Evidence) -> Iterator[Finding]:
    """Every forecast is what its raw reply says, or the frozen fallback."""
    check_answered(found.freeze["study"], found.plan, found.answers)
    elicitation = found.freeze["params"]["forecaster"]["elicitation"]
    for unit_id in unfaithful(found.answers, found.burn_in, found.study.targets, elicitation=elicitation):
        yield Finding("forecasts.jsonl", f"the forecast of {unit_id} is not what its reply says")


def _cards(found: Evidence) -> Iterator[Finding]:
    """Every card is read from its text, or from what an extractor said of it with quotes that occur there."""
    for explanation in found.explanations:
        if explanation.extraction is None:
            read = cards.read_card(explanation.text)
        else:
            read = cards.supported(cards.read_extraction(explanation.extraction), explanation.text)
        if read != explanation.card:
            yield Finding("explanations.jsonl", f"the card of {explanation.id} is not what its text says")
        if (explanation.extraction is not None) != (explanation.source in found.study.extracted):
            yield Finding("explanations.jsonl", f"{explanation.id} was not read as the study declares")


def _metrics(found: Evidence) -> Iterator[Finding]:
    """Losses, contrasts, checks, gates and decision again, from the same streams."""
    frozen = found.freeze
    params = study_params.parse(frozen["params"], origin="freeze.json")
    scored = found.scored()
    again = evaluate(
        scored, seed=params.seed, inference=params.inference, scale=frozen["scale"],
        integrity=integrity(found),
    )  # fmt: skip
    files = evidence.metric_files(again)
    if BESIDE in found.files:
        files[RECALIBRATION] = recalibration(
            scored, seed=params.seed, inference=params.inference, scale=frozen["scale"]
        )
    for name, value in files.items():
        if (where := _unequal(found.json(f"metrics/{name}.json"), value, name)) is not None:
            changed = frozen["scoring"] != scoring_digest(found.study)
            how = ", read by other scoring code than was frozen" if changed else ""
            yield Finding(f"metrics/{name}.json", f"{where} is not what the frozen files give{how}")


def integrity(found: Evidence) -> dict[str, Any]:
    """What the commitment check reports of the ledger. Raises Tampered if chain or outcomes do not hold."""
    events = {event.phase: event for event in found.ledger}
    ledger.check_chain(found.ledger)
    outcomes, pending = found.check_commitments()
    return {
        "chain_ok": True,
        "commitments_ok": True,
        "opened_after_freeze": events[Phase.FROZEN].index < events[Phase.OPENED].index,
        "planned_after_opening": _opened_before(events, len(outcomes)),
        "arrived_after_freeze": len(pending),
        "brought_by_user": found.study.arrived is not None,
        "known_before": found.freeze["stimuli"]["study"] if found.study.reuses else None,
    }


def _opened_before(events: Mapping[Phase, Event], n_outcomes: int) -> str | None:
    """When outcomes had been opened before the plan or the freeze, and how many; None if none had."""
    for phase in (Phase.SEALED, Phase.FROZEN):
        digests = events[phase].digests
        if digests.get("opened_before"):
            return f"{digests['first_opened']} ({digests['opened_before']} of {n_outcomes} outcomes)"
    return None


def _unequal(seen: Any, asked: Any, at: str) -> str | None:
    """The first place where two JSON values differ by more than rounding, or None."""
    if isinstance(seen, dict) and isinstance(asked, dict):
        if seen.keys() != asked.keys():
            return f"{at}.{min(seen.keys() ^ asked.keys())}"
        pairs = ((seen[k], asked[k], f"{at}.{k}") for k in seen)
        return next((w for s, a, where in pairs if (w := _unequal(s, a, where)) is not None), None)
    if isinstance(seen, list) and isinstance(asked, list | tuple) and len(seen) == len(asked):
        pairs = ((s, a, f"{at}[{i}]") for i, (s, a) in enumerate(zip(seen, asked, strict=True)))
        return next((w for s, a, where in pairs if (w := _unequal(s, a, where)) is not None), None)
    if isinstance(seen, float) and isinstance(asked, float):
        # Sums may be ordered differently on another processor.
        return None if math.isclose(seen, asked, rel_tol=1e-9, abs_tol=1e-12) else at
    return None if seen == asked and type(seen) is type(asked) else at
