import os
import socket
from pathlib import Path

import pytest
import yaml

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig, BadSource
from predictive_credit.models import serving
from predictive_credit.models.anthropic_messages import AnthropicMessages
from predictive_credit.studies import params as study_params
from tests.loopback import gguf
from tests.providers import KEY, anthropic_settings, asked, reply


def answered(url: str, key: str | None = None):
    return reply(AnthropicMessages(anthropic_settings(), base_url=url, key=key), asked())


@pytest.fixture(scope="module")
def path(root: Path) -> Path:
    return gguf(root)


def test_a_served_model_has_its_port_its_name_and_holds_every_answer_to_its_schema(path: Path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving.serve(path, name="tiny-pro", port=port, grammar='{"enum": [12]}') as served:
        assert served.url == f"http://127.0.0.1:{port}"
        got = answered(served.url)
    assert (got.text, got.finish_reason, got.model_resolved) == ("12", "stop", "tiny-pro")


def test_a_grammar_that_is_none_is_one_sentence_with_the_cause(path: Path, capfd: pytest.CaptureFixture[str]):
    with (
        pytest.raises(BadConfig, match=r"cannot read the grammar \(.*'nonsense'.*\); correct it"),
        serving.serve(path, name="tiny", grammar="root ::= nonsense"),
    ):
        pass
    assert capfd.readouterr() == ("", "")


def test_a_port_that_is_taken_is_one_sentence(path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(BadConfig, match=f"port {port} of 127.0.0.1 cannot be had"),
            serving.serve(path, name="tiny", port=port),
        ):
            pass


def test_a_file_that_is_no_model_is_one_sentence(tmp_path: Path):
    file = tmp_path / "model.gguf"
    with pytest.raises(BadSource, match="tiny: no model file at"), serving.serve(file, name="tiny"):
        pass
    file.write_bytes(b"hello")
    with (
        pytest.raises(BadSource, match=r"tiny: llama.cpp cannot serve .*invalid magic"),
        serving.serve(file, name="tiny"),
    ):
        pass


def test_an_ended_server_has_ended_its_threads_and_freed_its_port(path: Path):
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        pytest.skip("threads are counted through /proc")
    before = len(os.listdir(tasks))
    with serving.serve(path, name="tiny") as served:
        assert len(os.listdir(tasks)) > before
    assert len(os.listdir(tasks)) <= before
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", int(served.url.rpartition(":")[2])))


def test_running_says_what_to_set_for_every_provider_and_never_the_key(root: Path, path: Path):
    said: list[str] = []

    def ended() -> None:
        raise KeyboardInterrupt

    serving.run(path, name="tiny", key=KEY, say=said.append, wait=ended)
    guide, farewell = said
    assert guide.startswith("tiny answers at http://127.0.0.1:")
    assert farewell == "tiny has ended."
    assert KEY not in guide
    for name in ("pro", "anthropic", "openai"):
        chosen = yaml.safe_load((root / "conf" / "provider" / f"{name}.yaml").read_text())
        (line,) = (line for line in guide.splitlines() if line.strip().startswith(name))
        assert f"{chosen['base_url_env']}=http://127.0.0.1:" in line
        assert f"{chosen['key_env']}=YOUR_KEY" in line


def test_a_provider_is_composed_alike_as_forecaster_agent_and_extractor(root: Path):
    overrides = ["forecaster=flash", "agent=flash", "extractor=openai", "extractor.model=served-by-me"]
    params = study_params.parse(compose.compose(root, overrides))
    forecaster, agent, extractor = params.forecaster, params.agent, params.extractor
    assert isinstance(forecaster, config.AnthropicForecaster)
    assert isinstance(agent, config.AnthropicApi)
    assert isinstance(extractor, config.OpenAIApi)
    shared = ("name", "model", "base_url", "key_env", "extra", "temperature", "structured")
    assert [getattr(forecaster, key) for key in shared] == [getattr(agent, key) for key in shared]
    assert (forecaster.model, extractor.model) == ("deepseek-v4-flash", "served-by-me")
