"""The hub is held against what the hubverse schemas v6.0.0 ask of each file."""

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import pytest
import yaml

from predictive_credit.formats import hubverse, model_output
from predictive_credit.formats.hubverse import Opened, Round
from predictive_credit.formats.model_output import Task
from predictive_credit.records import Answer, Context, Forecast, Outcome, Unit, UnitKind
from predictive_credit.studies.molecular.interventions import TARGET as ROC_AUC
from tests.trials import reply

STATES = ("m/a/1", "m/b/1")
LOG_LOSS = replace(ROC_AUC, name="log_loss", unit="nats")
NUMBERS = {"point": 0.1 + 0.2, "lower": -1e-05, "upper": 1 / 3}


def unit(state: str, context: Context, call: int) -> Unit:
    return Unit(
        id=f"{state}/{context}/{call}", kind=UnitKind.FORECAST, state_id=state, context=context, call=call,
        explanation_of=None, prompt_digest="0" * 64, seed=1,
    )  # fmt: skip


def answer(of: Unit) -> Answer:
    missing = of.id == "m/b/1/D/2"
    forecasts = tuple(
        Forecast(
            unit_id=of.id, target=target.name, **NUMBERS, is_fallback=missing,
            reason="truncated" if missing else None,
        )
        for target in (ROC_AUC, LOG_LOSS)
    )  # fmt: skip
    return Answer(unit_id=of.id, prompt_digest=of.prompt_digest, reply=reply("text"), forecasts=forecasts)


UNITS = [unit(s, c, k) for s in STATES for c in (Context.DESCRIPTION, Context.MATCHED) for k in (1, 2)]
GIVEN = Round(
    study="my-study", scale="quick", targets=(ROC_AUC, LOG_LOSS), units={u.id: u for u in UNITS},
    answers=[answer(u) for u in UNITS], forecaster="pro v4.1", models=("model 1",), version="0.1.0",
    planned_on="2026-03-01", frozen_on="2026-03-02", frozen_digest="ab" * 32,
)  # fmt: skip
OPENED = Opened(
    outcomes=(
        Outcome(state_id="m/a/1", target="roc_auc", value=-0.25),
        Outcome(state_id="m/a/1", target="log_loss", value=None, reason="one class"),
    ),
    day="2026-03-03",
)


@pytest.fixture(scope="module")
def hub() -> dict[str, bytes]:
    return hubverse.files(GIVEN, OPENED)


def rows(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode())))


def output(hub: dict[str, bytes]) -> tuple[str, bytes]:
    (name,) = (name for name in hub if name.startswith("model-output/"))
    return name, hub[name]


def test_names_follow_the_rules_of_the_hubverse(hub: dict[str, bytes]):
    assert re.fullmatch(r"[A-Za-z0-9_]+-[A-Za-z0-9_]+", GIVEN.model_id)
    assert re.fullmatch(r"[A-Za-z0-9_]+", GIVEN.id)
    name, _ = output(hub)
    assert name == ("model-output/predictive_credit-pro_v4_1/my_study_quick-predictive_credit-pro_v4_1.csv")
    assert f"model-metadata/{GIVEN.model_id}.yml" in hub


def test_admin_holds_what_its_schema_requires_and_nothing_else(hub: dict[str, bytes]):
    admin = json.loads(hub["hub-config/admin.json"])
    required = {"schema_version", "name", "maintainer", "contact", "repository", "file_format", "timezone"}
    assert (
        required <= admin.keys() <= required | {"model_output_dir", "citation", "cloud", "zoltar_project_id"}
    )
    assert admin["timezone"] == "Atlantic/Reykjavik"
    assert admin["file_format"] == ["csv"]


def test_every_config_names_one_schema_version(hub: dict[str, bytes]):
    seen = {
        json.loads(hub[f"hub-config/{name}.json"])["schema_version"].partition(f"/{name}-schema")[0]
        for name in ("admin", "tasks", "target-data")
    }
    assert seen == {"https://raw.githubusercontent.com/hubverse-org/schemas/main/v6.0.0"}


def test_tasks_hold_what_their_schema_requires(hub: dict[str, bytes]):
    tasks = json.loads(hub["hub-config/tasks.json"])
    assert tasks.keys() <= {"schema_version", "rounds", "output_type_id_datatype", "derived_task_ids"}
    (only,) = tasks["rounds"]
    assert only.keys() == {"round_id_from_variable", "round_id", "model_tasks", "submissions_due"}
    assert only["submissions_due"] == {"start": "2026-03-01", "end": "2026-03-02"}
    for task in only["model_tasks"]:
        assert task.keys() == {"task_ids", "output_type", "target_metadata"}
        assert all(ids.keys() == {"required", "optional"} for ids in task["task_ids"].values())
        assert task["output_type"]["quantile"] == {
            "output_type_id": {"required": [0.1, 0.5, 0.9]}, "is_required": True, "value": {"type": "double"},
        }  # fmt: skip
        (metadata,) = task["target_metadata"]
        assert {metadata["target_keys"]["target"]} == set(task["task_ids"]["target"]["required"])
        assert len(metadata["target_id"]) <= 30
        assert metadata["is_step_ahead"] is False


def test_the_rows_are_every_required_task_once_and_no_other(hub: dict[str, bytes]):
    _, data = output(hub)
    seen = [
        (r["state"], r["target"], r["context"], int(r["call"]), float(r["output_type_id"]))
        for r in rows(data)
    ]
    (only,) = json.loads(hub["hub-config/tasks.json"])["rounds"]
    wanted = {
        (state, target, context, call, level)
        for task in only["model_tasks"]
        for ids in [{column: values["required"] for column, values in task["task_ids"].items()}]
        for state in ids["state"]
        for target in ids["target"]
        for context in ids["context"]
        for call in ids["call"]
        for level in (0.1, 0.5, 0.9)
    }
    assert len(seen) == len(set(seen)) == 2 * 2 * 2 * 2 * 3
    assert set(seen) == wanted


def test_our_own_file_reads_back_to_the_last_digit(hub: dict[str, bytes]):
    _, data = output(hub)
    found = model_output.parse(data, "ours.csv")
    task = Task(state="m/a/1", target="roc_auc", context="M", call="2")
    assert {key: float(text) for key, text in found[task].items()} == NUMBERS


def test_fallbacks_are_forecasts_and_marked_beside_them(hub: dict[str, bytes]):
    marked = rows(hub["auxiliary-data/fallbacks.csv"])
    assert [(r["state"], r["context"], r["call"], r["reason"]) for r in marked] == [
        ("m/b/1", "D", "2", "truncated")
    ] * 2
    assert Task(state="m/b/1", target="log_loss", context="D", call="2") in model_output.parse(
        output(hub)[1], "ours.csv"
    )


def test_before_the_opening_there_are_no_target_data(hub: dict[str, bytes]):
    sealed = hubverse.files(GIVEN, None)
    assert {name for name in hub if "target-data" in name} == {
        "hub-config/target-data.json", "target-data/oracle-output.csv", "target-data/time-series.csv",
    }  # fmt: skip
    assert {name: data for name, data in hub.items() if "target-data" not in name} == sealed
    assert not any(b"0.25" in data for name, data in sealed.items() if name.endswith(".csv"))


@pytest.mark.parametrize(
    ("name", "column"), [("time-series", "observation"), ("oracle-output", "oracle_value")]
)
def test_target_data_have_their_columns_and_no_undefined_outcome(
    hub: dict[str, bytes], name: str, column: str
):
    setting: dict[str, Any] = json.loads(hub["hub-config/target-data.json"])
    assert {"schema_version", "observable_unit", "date_col"} <= setting.keys()
    (row,) = rows(hub[f"target-data/{name}.csv"])
    assert row == {"state": "m/a/1", "target": "roc_auc", "opened_on": "2026-03-03", column: "-0.25"}
    assert {*setting["observable_unit"], setting["date_col"]} < row.keys()


def test_the_models_metadata_fit_the_hubs_own_schema(hub: dict[str, bytes]):
    metadata = yaml.safe_load(hub[f"model-metadata/{GIVEN.model_id}.yml"])
    schema = json.loads(hub["hub-config/model-metadata-schema.json"])
    assert set(schema["required"]) <= metadata.keys() <= schema["properties"].keys()
    assert f"{metadata['team_abbr']}-{metadata['model_abbr']}" == GIVEN.model_id
    for key, asked in schema["properties"].items():
        assert isinstance(metadata[key], {"string": str, "boolean": bool}[asked["type"]])
        assert re.search(asked.get("pattern", ""), str(metadata[key]))
