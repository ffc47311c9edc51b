"""Write a frozen study in a format of others: a hubverse hub, or an Inspect log of its calls."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from predictive_credit import __version__, canonical, ledger, tables
from predictive_credit.errors import BadConfig, BadSource, OutOfOrder, Tampered
from predictive_credit.formats import hubverse, inspect_log
from predictive_credit.formats.inspect_log import REPLY, Call
from predictive_credit.ledger import Event, Phase
from predictive_credit.records import Answer, Explanation, Outcome, Reply, Unit, UnitKind, Usage
from predictive_credit.stages import evidence, shell
from predictive_credit.stages.evidence import Evidence
from predictive_credit.stages.paths import Project
from predictive_credit.studies import params as study_params

Format = Literal["hub", "inspect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frozen:
    """A study's files after its freeze, and how far its ledger has come."""

    name: str  # of the study, or of the bundle's folder
    files: Evidence
    events: Mapping[Phase, Event]
    journals: Sequence[Path]  # of its elicit and extract calls; a bundle has none

    @property
    def is_opened(self) -> bool:
        return Phase.OPENED in self.events

    def day(self, phase: Phase) -> str:
        """The day of an event, ISO 8601."""
        return self.events[phase].time_utc[:10]

    @property
    def digest(self) -> str:
        return canonical.digest_bytes(self.files.bytes("freeze.json"))


def export(root: Path, kind: Format, study: str, to: Path | None) -> str:
    """Write one study, of the project at `root` or the bundle in the folder `study`; says what was written.

    Raises OutOfOrder before the study is frozen, Tampered if a file is not the one that was frozen.
    """
    found = read(root, study)
    if kind == "hub":
        return export_hub(found, to or root / "exports" / f"{found.name}-hub")
    return export_inspect(found, to or root / "exports" / f"{found.name}.json")


def export_hub(found: Frozen, to: Path) -> str:
    """Write a hub as a new folder, whole or not at all."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise BadSource(f"{to} exists and is not an empty folder; remove it, or choose another with --to")
    given = hub_round(found)
    opened = None
    if found.is_opened:
        opened = hubverse.Opened(outcomes=_outcomes(found), day=found.day(Phase.OPENED))
    files = hubverse.files(given, opened)
    to.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".hub.") as temporary:
        staging = Path(temporary) / "hub"
        for name, data in files.items():
            tables.write_bytes(staging / name, data)
        if to.exists():
            to.rmdir()
        staging.replace(to)
    fallbacks = sum(answer.is_fallback for answer in given.answers)
    said = (
        f"{to}: {len(given.answers)} forecasts of {given.model_id} in round {given.id}, {fallbacks} fallbacks"
    )
    if opened is None:
        return f"{said}; no target data, for the outcomes of {found.name} are not opened"
    undefined = sum(o.value is None for o in opened.outcomes)
    return f"{said}; {len(opened.outcomes) - undefined} outcomes as target data, {undefined} undefined"


def export_inspect(found: Frozen, to: Path) -> str:
    """Write the log of the study's calls as one JSON file."""
    calls = [*_source_calls(found), *_forecast_calls(found)]
    events = found.events
    header = inspect_log.Header(
        study=events[Phase.FROZEN].study,
        scale=events[Phase.FROZEN].scale,
        model=calls[-1].reply.model_requested,
        planned=events[Phase.PLANNED].time_utc,
        frozen=events[Phase.FROZEN].time_utc,
        version=__version__,
        frozen_digest=found.digest,
    )
    tables.write_bytes(to, inspect_log.write(header, calls))
    counts = {kind: sum(call.unit.kind is kind for call in calls) for kind in UnitKind}
    said = ", ".join(f"{n} {kind}" for kind, n in counts.items() if n)
    scored = (
        "with scores" if found.is_opened else f"no scores, for the outcomes of {found.name} are not opened"
    )
    return f"{to}: {said} calls, {scored}; open it with `inspect view --log-dir {to.parent}`"


def read(root: Path, study: str) -> Frozen:
    """A bundle's folder, else a study of the project at `root`."""
    if (Path(study) / evidence.MANIFEST).is_file():
        files = evidence.bundle(Path(study))
        ledger.check_chain(files.ledger)
        found = Frozen(
            name=Path(study).resolve().name, files=files, events=_by_phase(files.ledger), journals=()
        )
    else:
        found = _workspace(Project(root), study)
    _check_unchanged(found)
    return found


def _workspace(project: Project, study: str) -> Frozen:
    known = study_params.load(project.params).studies
    if study not in known:
        raise BadConfig(
            f"{study} is no bundle's folder and no study of {project.params}, which holds "
            f"{', '.join(sorted(known))}"
        )
    paths = project.study(study)
    if not (paths.freeze.exists() and paths.ledger("frozen").exists()):
        raise OutOfOrder(
            f"{study}: not frozen yet, and forecasts are exported after the freeze; run `dvc repro`"
        )
    events = shell.read_ledger(paths.ledger("frozen"))
    if paths.ledger("opened").exists():
        opened = shell.read_ledger(paths.ledger("opened"))
        # An opening of an earlier freeze is none of this one.
        events = opened if opened[: len(events)] == events else events
    return Frozen(
        name=study, files=evidence.workspace(project, study), events=_by_phase(events),
        journals=[path for stage in ("explain", "extract") if (path := paths.journal(stage)).exists()],
    )  # fmt: skip


def _by_phase(events: Sequence[Event]) -> dict[Phase, Event]:
    return {event.phase: event for event in events}


def _check_unchanged(found: Frozen) -> None:
    """Raise Tampered unless each file is the one that was frozen, or opened."""
    promised = dict(found.events[Phase.FROZEN].digests) | found.files.freeze["digests"]
    if found.is_opened:
        promised |= found.events[Phase.OPENED].digests
    for name, digest in promised.items():
        if "." in name and canonical.digest_bytes(found.files.bytes(name)) != digest:
            raise Tampered(f"{found.name}: {name} is not the file that was frozen; nothing is exported")


def hub_round(found: Frozen) -> hubverse.Round:
    """A study's round of a hub."""
    frozen, freeze = found.events[Phase.FROZEN], found.files.freeze
    return hubverse.Round(
        study=frozen.study,
        scale=frozen.scale,
        targets=found.files.study.targets,
        units={unit.id: unit for unit in found.files.plan if unit.kind is UnitKind.FORECAST},
        answers=found.files.answers,
        forecaster=freeze["params"]["forecaster"]["name"],
        models=freeze["models"]["resolved"],
        version=frozen.package_version,
        planned_on=found.day(Phase.PLANNED),
        frozen_on=found.day(Phase.FROZEN),
        frozen_digest=found.digest,
    )


def _outcomes(found: Frozen) -> tuple[Outcome, ...]:
    outcomes, _ = found.files.outcomes_and_salts()
    return outcomes


def _forecast_calls(found: Frozen) -> Iterator[Call]:
    """The calls that forecast, in the order they were planned."""
    texts, answers = found.files.prompts, {answer.unit_id: answer for answer in found.files.answers}
    took = {usage.unit_id: usage for usage in found.files.usage}
    targets = [target.name for target in found.files.study.targets]
    outcomes = {(o.state_id, o.target): o for o in _outcomes(found)} if found.is_opened else {}
    for unit in found.files.plan:
        if unit.kind is UnitKind.FORECAST:
            answer = answers[unit.id]
            yield Call(
                unit=unit,
                prompt=texts[unit.id.rsplit("/", 1)[0]].prompt(unit.seed),
                reply=_whole(answer, took.get(unit.id)),
                forecasts=answer.forecasts,
                outcomes=[outcomes[unit.state_id, name] for name in targets] if outcomes else (),
            )


def _whole(answer: Answer, took: Usage | None) -> Reply:
    """A reply with what it took, which is filed apart from it."""
    if took is None:
        return answer.reply
    return replace(
        answer.reply, latency_s=took.latency_s, cached_tokens=took.cached_tokens, cost_usd=took.cost_usd,
        attempts=took.attempts, endpoint=took.endpoint,
    )  # fmt: skip


def _source_calls(found: Frozen) -> Iterator[Call]:
    """The calls that wrote or read an explanation, where a journal has them; rules make none."""
    texts, explanations = found.files.prompts, {e.id: e for e in found.files.explanations}
    replies = dict(_journalled(found.journals))
    for unit in found.files.plan:
        if unit.kind is UnitKind.FORECAST:
            continue
        # A journal may hold the replies of several models to a prompt; the explanation says whose counted.
        wanted = (unit.prompt_digest, _said(unit, explanations[unit.id.removesuffix("/extract")]))
        if (reply := replies.get(wanted)) is not None:
            yield Call(unit=unit, prompt=texts[unit.id].prompt(unit.seed), reply=reply)


def _said(unit: Unit, explanation: Explanation) -> str | None:
    return explanation.text if unit.kind is UnitKind.ELICIT else explanation.extraction


def _journalled(journals: Sequence[Path]) -> Iterator[tuple[tuple[str, str | None], Reply]]:
    """Replies by prompt digest and text. A last line that a kill left half-written is no reply."""
    for path in journals:
        for line in path.read_bytes().splitlines(keepends=True):
            if not line.endswith(b"\n"):
                continue
            try:
                row = json.loads(line)
                reply = REPLY.validate_python(row["reply"])
                yield (str(row["prompt_digest"]), reply.text), reply
            except (ValueError, TypeError, KeyError, ValidationError):
                raise Tampered(f"{path} holds a line that is not a reply; restore the file") from None
