"""A frozen study as a hubverse hub: configuration, model metadata, model output, and target data once opened.

A hub is a folder that the hubverse's tools validate, ensemble and score. Here it has one round, the
study, and one model, the forecaster; each forecast is three quantiles, of which .5 is our point: a point
forecast is read as a median, since absolute error is what scores it.

Format: the hubverse schemas v6.0.0 (github.com/hubverse-org/schemas) and the hubverse documentation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from predictive_credit import tables
from predictive_credit.formats.model_output import LEVELS, TASK
from predictive_credit.records import Answer, Outcome, Target, Unit

SCHEMAS: Final = "https://raw.githubusercontent.com/hubverse-org/schemas/main/v6.0.0"
TEAM: Final = "predictive_credit"
TIMEZONE: Final = "Atlantic/Reykjavik"  # UTC all year; the schema's list of zones has no UTC
DATE: Final = "opened_on"  # target data must have a date; the only one that ours have is their opening
LICENCE: Final = "other"  # whose forecasts these are decides; the export does not


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What a hub holds of one frozen study. Dates are ISO 8601 days."""

    study: str
    scale: str
    targets: Sequence[Target]
    units: Mapping[str, Unit]  # the planned forecasts by id
    answers: Sequence[Answer]
    forecaster: str  # the configured name
    models: Sequence[str]  # as they were served
    version: str  # of this package
    planned_on: str
    frozen_on: str
    frozen_digest: str  # sha256 of freeze.json

    @property
    def id(self) -> str:
        """The round's id, which may hold nothing but letters, digits and underscores."""
        return _word(f"{self.study}_{self.scale}")

    @property
    def model_id(self) -> str:
        """Team and model, joined by the one hyphen that the hubverse allows."""
        return f"{TEAM}-{_word(self.forecaster)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The outcomes and the day they were opened."""

    outcomes: Sequence[Outcome]
    day: str


def files(given: Round, opened: Opened | None) -> dict[str, bytes]:
    """The hub's files by path. Target data are there only once the outcomes are opened."""
    model_id = given.model_id
    hub = {
        "hub-config/admin.json": _json(_admin(given)),
        "hub-config/tasks.json": _json(_tasks(given)),
        "hub-config/model-metadata-schema.json": _json(_metadata_schema()),
        f"model-metadata/{model_id}.yml": yaml.safe_dump(_metadata(given), sort_keys=False).encode(),
        f"model-output/{model_id}/{given.id}-{model_id}.csv": _model_output(given),
        "auxiliary-data/fallbacks.csv": _fallbacks(given),
    }
    return hub if opened is None else hub | _targets(opened)


def _word(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_") or "unnamed"


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _admin(given: Round) -> dict[str, Any]:
    return {
        "schema_version": f"{SCHEMAS}/admin-schema.json",
        "name": f"predictive-credit: {given.study}, {given.scale} scale",
        "maintainer": "predictive-credit",
        # Both must be there and may be empty: whoever publishes the hub writes down who and where.
        "contact": {},
        "repository": {},
        "file_format": ["csv"],
        "timezone": TIMEZONE,
        "model_output_dir": "model-output",
    }


def _tasks(given: Round) -> dict[str, Any]:
    return {
        "schema_version": f"{SCHEMAS}/tasks-schema.json",
        "rounds": [
            {
                "round_id_from_variable": False,
                "round_id": given.id,
                "model_tasks": [_model_task(given, target) for target in given.targets],
                "submissions_due": {"start": given.planned_on, "end": given.frozen_on},
            }
        ],
        "output_type_id_datatype": "double",
    }


def _model_task(given: Round, target: Target) -> dict[str, Any]:
    units = given.units.values()
    ids = {
        "state": _distinct(u.state_id for u in units),
        "target": [target.name],
        "context": _distinct(str(u.context) for u in units),
        "call": sorted({u.call for u in units if u.call is not None}),
    }
    return {
        "task_ids": {column: {"required": ids[column], "optional": None} for column in TASK},
        "output_type": {
            "quantile": {
                "output_type_id": {"required": list(LEVELS.values())},
                "is_required": True,
                "value": {"type": "double"},  # an interval may stick out of what is possible
            }
        },
        "target_metadata": [
            {
                "target_id": target.name[:30],
                "target_name": f"{target.form} in {target.phrase}"[:100],
                "target_units": target.unit[:100],
                "target_keys": {"target": target.name},
                "target_type": "continuous",
                "is_step_ahead": False,
            }
        ],
    }


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _target_data() -> dict[str, Any]:
    return {
        "schema_version": f"{SCHEMAS}/target-data-schema.json",
        "observable_unit": ["state", "target"],
        "date_col": DATE,
        "versioned": False,
        "oracle-output": {"has_output_type_ids": False},
    }


def _metadata(given: Round) -> dict[str, Any]:
    return {
        "team_name": "predictive-credit",
        "team_abbr": TEAM,
        "model_name": given.forecaster,
        "model_abbr": given.model_id.partition("-")[2],
        "model_version": ", ".join(given.models) or "not stated",
        "designated_model": True,
        "license": LICENCE,
        "methods": f"Forecaster {given.forecaster}, asked by predictive-credit {given.version} twice in each "
        "context; the .5 quantile is its point, .1 and .9 are the ends of its 80 % interval.",
        "freeze_sha256": given.frozen_digest,
    }


def _metadata_schema() -> dict[str, Any]:
    """What this hub asks of a model's metadata; the hubverse leaves it to each hub."""
    text, word = {"type": "string"}, {"type": "string", "pattern": "^[A-Za-z0-9_]+$"}
    properties = {
        "team_name": text, "team_abbr": word, "model_name": text, "model_abbr": word,
        "model_version": text, "designated_model": {"type": "boolean"}, "license": text, "methods": text,
        "freeze_sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    }  # fmt: skip
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What is said of a model in this hub",
        "type": "object",
        "properties": properties,
        "required": [key for key in properties if key != "freeze_sha256"],
        "additionalProperties": False,
    }


def _model_output(given: Round) -> bytes:
    """Fallbacks too are forecasts of this forecaster: nothing is left out of what is scored."""
    rows = [
        (*_task(given.units[answer.unit_id], forecast.target), "quantile", level, getattr(forecast, key))
        for answer in given.answers
        for forecast in answer.forecasts
        for key, level in LEVELS.items()
    ]
    return tables.encode_csv((*TASK, "output_type", "output_type_id", "value"), rows)


def _fallbacks(given: Round) -> bytes:
    """Which forecasts are the frozen fallback, and why: model output has no column for it."""
    rows = [
        (*_task(given.units[answer.unit_id], forecast.target), forecast.reason)
        for answer in given.answers
        for forecast in answer.forecasts
        if forecast.is_fallback
    ]
    return tables.encode_csv((*TASK, "reason"), rows)


def _task(unit: Unit, target: str) -> tuple[str, str, str, int | None]:
    return unit.state_id, target, str(unit.context), unit.call


def _targets(opened: Opened) -> dict[str, bytes]:
    """Outcomes as observed series and as what an oracle would have forecast; an undefined one has no row."""
    rows = [(o.state_id, o.target, opened.day, o.value) for o in opened.outcomes if o.value is not None]
    columns = ("state", "target", DATE)
    return {
        "hub-config/target-data.json": _json(_target_data()),
        "target-data/time-series.csv": tables.encode_csv((*columns, "observation"), rows),
        "target-data/oracle-output.csv": tables.encode_csv((*columns, "oracle_value"), rows),
    }
