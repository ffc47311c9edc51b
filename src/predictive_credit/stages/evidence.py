"""The files a study's result rests on, from a workspace or from a bundle, under the same names."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from predictive_credit import canonical, tables, vault
from predictive_credit.config import StudyConfig
from predictive_credit.errors import BadSource, OutOfOrder, Tampered
from predictive_credit.ledger import Event
from predictive_credit.records import (
    Answer,
    BurnIn,
    Context,
    Explanation,
    Outcome,
    PromptText,
    State,
    Unit,
    Usage,
)  # fmt: skip
from predictive_credit.stages.freeze import FROZEN
from predictive_credit.stages.paths import METRICS, READINGS, RECALIBRATION, Project
from predictive_credit.studies import STUDIES
from predictive_credit.studies import params as study_params
from predictive_credit.studies.evaluation import Scored
from predictive_credit.studies.study import Study

MANIFEST = "manifest.json"
DATA_FILES = (*FROZEN, "freeze.json", "outcomes.csv")
FILES = (*DATA_FILES, "ledger.jsonl", "pool.json", *(f"metrics/{name}.json" for name in (*METRICS, READINGS)))
# In a workspace alone: it follows from the other files, and bundles packed before it was go on verifying.
BESIDE = f"metrics/{RECALIBRATION}.json"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One study's frozen files as bytes, by bundle name; `where` is the folder they came from."""

    where: Path
    files: Mapping[str, bytes]

    def bytes(self, name: str) -> bytes:
        """A file's bytes. Raises Tampered if the file is not there."""
        if name not in self.files:
            raise Tampered(f"{name} is missing from {self.where}")
        return self.files[name]

    def json(self, name: str) -> Any:
        """A JSON file."""
        return tables.parse_json(self.bytes(name), name)

    def records(self, name: str, kind: type[T]) -> tuple[T, ...]:
        """A JSONL file as records."""
        return tables.parse_records(self.bytes(name), kind, name)

    @property
    def ledger(self) -> tuple[Event, ...]:
        return self.records("ledger.jsonl", Event)

    @property
    def freeze(self) -> dict[str, Any]:
        return dict(self.json("freeze.json"))

    @property
    def states(self) -> tuple[State, ...]:
        return self.records("states.jsonl", State)

    @property
    def explanations(self) -> tuple[Explanation, ...]:
        return self.records("explanations.jsonl", Explanation)

    @property
    def plan(self) -> tuple[Unit, ...]:
        return self.records("plan.jsonl", Unit)

    @property
    def prompts(self) -> dict[str, PromptText]:
        return {p.key: p for p in self.records("prompts.jsonl", PromptText)}

    @property
    def answers(self) -> tuple[Answer, ...]:
        return self.records("forecasts.jsonl", Answer)

    @property
    def usage(self) -> tuple[Usage, ...]:
        return self.records("usage.jsonl", Usage)

    @property
    def burn_in(self) -> BurnIn:
        return tables.record_of(self.json("burn_in.json"), BurnIn, "burn_in.json")

    def metrics(self) -> dict[str, Any]:
        """What `evaluate` returned, its sentences put back."""
        files = {name: self.json(f"metrics/{name}.json") for name in (*METRICS, READINGS)}
        readings = files.pop(READINGS)
        checks = {name: c | readings["checks"].get(name, {}) if isinstance(c, dict) else c
                  for name, c in files["checks"].items()}  # fmt: skip
        return files | {"checks": checks, "decision": files["decision"] | {"limits": readings["limits"]}}

    def outcomes_and_salts(self) -> tuple[tuple[Outcome, ...], dict[str, str]]:
        """The opened outcomes and the salts of their commitments."""
        return tables.parse_outcomes(self.bytes("outcomes.csv"), "outcomes.csv")

    @property
    def config(self) -> StudyConfig:
        """The study's frozen configuration."""
        params = study_params.parse(self.freeze["params"], origin="freeze.json")
        (config,) = params.studies.values()
        return config

    @property
    def study(self) -> Study:
        """The declaration under which it was frozen."""
        config = self.config
        return STUDIES[config.rule].configured(config)

    def check_commitments(self) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
        """The opened outcomes, and the ids of those that came after the freeze.

        Raises Tampered unless each of the others is the one committed to, and none is missing.
        """
        outcomes, salts = self.outcomes_and_salts()
        promised = self.json("commitment.json")
        pending = tuple(promised["pending"])
        study = self.study
        if pending and study.arrived is None:
            raise Tampered(
                f"commitment.json leaves {pending[0]} open, and the study executes its own outcomes"
            )
        planned = {f"{state.id}/{target.name}" for state in self.states for target in study.targets}
        if strangers := planned ^ {*promised["outcomes"], *pending}:
            raise Tampered(f"commitment.json does not hold what the study plans: {min(strangers)}")
        later = {o.id for o in outcomes} & set(pending)
        if missing := sorted(set(pending) - later):
            raise Tampered(f"outcomes.csv lacks {missing[0]}, which was still to come at the freeze")
        sealed = [o for o in outcomes if o.id not in later]
        vault.check_commitments(sealed, salts, promised["outcomes"])
        return outcomes, pending

    def scored(self) -> Scored:
        """All that scoring needs, out of these files alone."""
        study, config = self.study, self.config
        outcomes, _ = self.outcomes_and_salts()
        donors: dict[Context, dict[str, str]] = {}
        for unit in self.plan:
            shown = None if unit.context is None else study.contexts[unit.context]
            if unit.context is not None and shown is not None and shown.donor and unit.explanation_of:
                donors.setdefault(unit.context, {})[unit.state_id] = unit.explanation_of
        return Scored(
            study=study,
            states=self.states,
            contexts=tuple(study.asked(config)),
            forecasts={a.unit_id: a.forecasts for a in self.answers},
            outcomes={(o.state_id, o.target): o for o in outcomes},
            burn_in=self.burn_in,
            explanations={(e.state_id, e.source): e for e in self.explanations},
            donors=donors,
        )


def workspace(project: Project, study: str) -> Evidence:
    """A study's files where the stages left them; what is not made yet is absent."""
    paths = project.study(study)
    places = {name: paths.data / name for name in DATA_FILES}
    places["ledger.jsonl"] = paths.decided
    places |= {f"metrics/{name}.json": paths.metric(name) for name in (*METRICS, READINGS, RECALIBRATION)}
    # A freeze record that cannot be read names no pool; whoever checks its digest will say so.
    with contextlib.suppress(Tampered, OutOfOrder, KeyError, TypeError):
        pool = tables.read_json(paths.freeze)["params"]["studies"][study]["pool"]
        places["pool.json"] = project.pool_metrics(pool)
    return Evidence(paths.data, {n: p.read_bytes() for n, p in places.items() if p.exists()})


def bundle(folder: Path) -> Evidence:
    """Every file of a bundle, its manifest included."""
    if not (folder / MANIFEST).is_file():
        raise BadSource(
            f"{folder} is neither a project (no params.yaml) nor a bundle (no {MANIFEST}); "
            "make one with `predictive-credit bundle STUDY`"
        )
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() or p.is_symlink())
    # A link is none of the files that were packed: without content it matches no checksum.
    content = {p: b"" if p.is_symlink() else p.read_bytes() for p in files}
    return Evidence(folder, {p.relative_to(folder).as_posix(): data for p, data in content.items()})


PROSE = ("asked", "seen", "reading")  # of a check


def metric_files(evaluated: Mapping[str, Any]) -> dict[str, Any]:
    """What `evaluate` returned as files: figures and words in the metrics, sentences in readings."""
    checks, decision = evaluated["checks"], evaluated["decision"]
    prose = {
        name: {key: check[key] for key in PROSE if key in check}
        for name, check in checks.items()
        if isinstance(check, Mapping)
    }
    figures = {
        name: {k: v for k, v in check.items() if k not in PROSE} if isinstance(check, Mapping) else check
        for name, check in checks.items()
    }
    readings = {key: decision[key] for key in ("study", "scale", "limits")} | {"checks": prose}
    return {
        **evaluated,
        "checks": figures,
        "decision": {key: value for key, value in decision.items() if key != "limits"},
        READINGS: readings,
    }


def manifest(files: Mapping[str, bytes]) -> bytes:
    """The manifest of files: a SHA-256 each, and one over the list, so that it guards itself."""
    listing = {name: canonical.digest_bytes(data) for name, data in sorted(files.items())}
    body = {"format": "predictive-credit bundle 1", "files": listing}
    return canonical.encode(body | {"digest": canonical.digest(body)}) + b"\n"
