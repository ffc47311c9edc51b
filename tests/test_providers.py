from pathlib import Path
from typing import Any

import pytest

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig
from predictive_credit.forecasters import forecaster
from predictive_credit.models import providers
from predictive_credit.studies import params as study_params

HERE = "http://127.0.0.1:1"


def chosen(**changed: Any) -> config.AnthropicForecaster:
    values: dict[str, Any] = {
        "kind": "anthropic", "watch": "x", "name": "pro", "model": "m-1", "elicitation": "json",
        "temperature": None, "top_p": None, "max_tokens": 64, "acknowledged_models": (),
        "key_env": "SOME_KEY", "concurrency": 4, "deadline_s": 10.0, "max_cost": None,
        "unanswered": "stop", "base_url": "https://example.org/api/",
        "base_url_env": "SOME_URL", "structured": False, "extra": {},
    }  # fmt: skip
    return config.AnthropicForecaster(**values | changed)


def test_a_missing_key_is_one_sentence_that_names_the_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SOME_KEY", raising=False)
    with pytest.raises(
        BadConfig, match=r"pro .m-1. needs a key and the environment variable SOME_KEY is not set"
    ):
        providers.make(chosen())
    monkeypatch.setenv("SOME_KEY", " k ")
    assert providers.key(chosen()) == "k"
    assert providers.key(chosen(key_env=None)) is None


def test_the_environment_may_name_another_address(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SOME_URL", raising=False)
    assert providers.endpoint(chosen()) == "https://example.org/api"
    monkeypatch.setenv("SOME_URL", HERE + "/")
    assert providers.endpoint(chosen()) == HERE


def test_replies_of_another_address_are_another_forecasters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SOME_URL", raising=False)
    before = forecaster.identity(chosen())
    monkeypatch.setenv("SOME_URL", HERE)
    assert forecaster.identity(chosen()) != before


def test_what_is_only_terms_does_not_ask_answered_units_again():
    same = chosen(
        concurrency=1, deadline_s=1.0, max_cost=3.0, key_env=None, acknowledged_models=("a",), watch="y"
    )
    assert forecaster.identity(same) == forecaster.identity(chosen())
    for other in (chosen(model="m-2"), chosen(extra={"top_k": 1}), chosen(structured=True)):
        assert forecaster.identity(other) != forecaster.identity(chosen())


def test_nothing_secret_of_an_address_reaches_an_artifact(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOME_URL", "https://me:secret@example.org:8080/v1")
    assert forecaster.identity(chosen())["endpoint"] == "https://example.org:8080/v1"
    assert "secret" not in str(forecaster.identity(chosen()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("base_url", "https://me:sk-1@example.org"),
        ("base_url", "https://example.org?key=sk-1"),
        ("key_env", "sk-1"),
    ],
)
def test_a_secret_in_the_configuration_is_refused_and_not_shown(root: Path, key: str, value: str):
    raw = compose.compose(root, ["forecaster=pro"])
    raw["forecaster"] = config.section(chosen()) | {key: value}
    with pytest.raises(BadConfig) as refused:
        study_params.parse(raw)
    assert f"forecaster.{key}" in str(refused.value)
    assert "sk-1" not in str(refused.value)
