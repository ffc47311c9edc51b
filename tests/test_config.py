import copy

import pytest
import yaml

from predictive_credit import compose, config
from predictive_credit.errors import BadConfig


@pytest.fixture(scope="module")
def composed(root):
    return compose.compose(root)


def test_the_committed_params_are_the_composition(root):
    assert compose.difference(root) is None


def test_an_edit_of_either_side_is_named(root, tmp_path, composed):
    (tmp_path / "conf").symlink_to(root / "conf")
    edited = copy.deepcopy(composed)
    edited["inference"]["draws"] = 9
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(edited))
    assert compose.difference(tmp_path) == "inference.draws is 9 in params.yaml and 10000 in conf/"


def test_params_load_into_frozen_records(root):
    params = config.load(root / "params.yaml")
    assert params.scale == "quick"
    assert params.studies["molecular"].budgets == (0.25, 0.5, 1.0)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("inference", "draw"), 3, "inference.draw: unexpected keyword argument; seen 3"),
        (("inference", "draws"), 0, "inference.draws: input should be greater than or equal to 1; seen 0"),
        (("forecaster", "kind"), "oracle", "forecaster: input tag 'oracle'"),
        (("studies", "molecular", "budgets"), [0.5, 1.5], "less than or equal to 1; seen 1.5"),
        (("studies", "molecular", "pool"), "tox22", "asks for pool 'tox22'; pools holds moleculeace"),
        (("pools", "moleculeace", "wheel_sha256"), "abc", "should match pattern"),
    ],
)
def test_a_wrong_key_or_value_is_one_sentence(composed, path, value, sentence):
    raw = copy.deepcopy(composed)
    inner = raw
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(BadConfig) as error:
        config.parse(raw)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_a_word_that_hydra_does_not_know_is_one_sentence(root):
    with pytest.raises(BadConfig, match="cannot compose poool=2"):
        compose.compose(root, ["poool=2"])


def test_a_missing_mandatory_value_is_asked_for(root):
    with pytest.raises(BadConfig, match=r"pools\.csv\.path"):
        compose.compose(root, ["pool=csv"])


@pytest.mark.parametrize("pool", ["moleculeace", "tox21"])
@pytest.mark.parametrize("forecaster", ["smollm2", "priors"])
@pytest.mark.parametrize("agent", ["playbook", "smollm2"])
def test_every_combination_of_options_composes_and_parses(root, pool, forecaster, agent):
    words = [f"pool={pool}", f"forecaster={forecaster}", f"agent={agent}", "scale=full"]
    params = config.parse(compose.compose(root, words))
    assert params.studies["molecular"].pool == pool
    assert params.studies["molecular"].n_endpoints == 12
    assert (params.forecaster.name, params.agent.name) == (forecaster, agent)


def test_no_tracked_config_reads_the_environment(root):
    for path in [root / "params.yaml", *(root / "conf").rglob("*.yaml")]:
        assert "oc.env" not in path.read_text()
