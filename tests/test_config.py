import copy

import pytest
import yaml

from predictive_credit import compose
from predictive_credit.errors import BadConfig
from predictive_credit.studies import params as study_params
from predictive_credit.studies.molecular.config import MolecularConfig


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
    params = study_params.load(root / "params.yaml")
    assert params.scale == "quick"
    molecular = params.studies["molecular"]
    assert isinstance(molecular, MolecularConfig)
    assert molecular.budgets == (0.25, 0.5, 1.0)


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("inference", "draw"), 3, "inference.draw: unexpected keyword argument; seen 3"),
        (("inference", "draws"), 0, "inference.draws: input should be greater than or equal to 100; seen 0"),
        (("forecaster", "kind"), "oracle", "forecaster: input tag 'oracle'"),
        (("studies", "molecular", "budgets"), [0.5, 1.5], "less than or equal to 1; seen 1.5"),
        (("studies", "molecular", "pool"), "tox22", "asks for pool 'tox22'; pools holds moleculeace"),
        (("pools", "moleculeace", "wheel_sha256"), "abc", "should match pattern"),
        (("studies", "molecular", "budgets"), [0.5, 0.50000001], "studies.molecular.budgets holds 0.5 twice"),
        (("studies", "molecular", "seeds"), [2, 1, 2], "studies.molecular.seeds holds 2 twice"),
        (("studies", "molecular", "contexts"), ["M", "D", "M"], "studies.molecular.contexts holds M twice"),
        (("studies", "molecular", "budgets"), [], "studies.molecular.budgets is an empty list"),
        (("studies", "molecular", "seeds"), [], "studies.molecular.seeds is an empty list"),
        (("studies", "molecular", "contexts"), [], "studies.molecular.contexts is an empty list"),
        (("studies", "molecular", "endpoints"), [], "studies.molecular.endpoints is an empty list"),
    ],
)
def test_a_wrong_key_or_value_is_one_sentence(composed, path, value, sentence):
    raw = copy.deepcopy(composed)
    inner = raw
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    with pytest.raises(BadConfig) as error:
        study_params.parse(raw)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_contexts_may_stand_in_any_order(composed):
    raw = copy.deepcopy(composed)
    raw["studies"]["molecular"]["contexts"] = ["S", "D"]
    assert study_params.parse(raw).studies["molecular"].contexts == ("S", "D")


@pytest.mark.parametrize(
    ("holds", "sentence"),
    [
        (
            b"scale: quick\nstudies: [1\nseed: 2\n",
            "params.yaml is not YAML: while parsing a flow sequence, line 3",
        ),
        (b"scale: \x00\n", "params.yaml is not YAML: unacceptable character"),
        (b"seed: 2001-99-99\n", "params.yaml is not YAML: month must be in 1..12"),
        (b"scale: qu\xefck\n", "params.yaml is not UTF-8: invalid continuation byte at byte 9"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence_to_every_reader(root, tmp_path, holds, sentence):
    (tmp_path / "conf").symlink_to(root / "conf")
    path = tmp_path / "params.yaml"
    path.write_bytes(holds)
    for read in (lambda: study_params.load(path), lambda: compose.difference(tmp_path)):
        with pytest.raises(BadConfig) as error:
            read()
        assert sentence in str(error.value)
        assert "\n" not in str(error.value)


def test_params_that_are_empty_differ_in_one_sentence(root, tmp_path):
    (tmp_path / "conf").symlink_to(root / "conf")
    (tmp_path / "params.yaml").write_text("")
    assert compose.difference(tmp_path) == "params.yaml does not hold a mapping"


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["pool=tox21", "hydra.run.dir=x", "hydra/job_logging=none"],
        ["--cfg", "job", "--resolve", "seed=2"],
        ["-m", "pool=moleculeace,tox21", "seed=1,2", "studies.molecular.contexts=[D,M]"],
        ["--multirun", "seed=range(1,4)", "forecaster=glob(*)"],
        ["pool=csv", "pools.csv.path=a.csv"],
    ],
)
def test_what_hydra_can_run_passes_the_check(root, words):
    compose.check_run(root, words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-m", "pool=tox21,csvx"], "cannot compose pool=csvx: "),
        (["-m", "seed=1,2", "poool=1,2"], "cannot compose seed=1 poool=1: "),
        (["-m", "pool=moleculeace,csv"], "pools.csv.path"),
        (["pool=tox21,csv"], "cannot compose pool=tox21,csv: "),
        (["hydra.run.dir=x", "seed"], "cannot compose seed: "),
        (["--cfg", "job", "forecaster="], "cannot compose forecaster=: "),
        (["inference.draws=0"], "inference.draws: input should be greater than or equal to 100"),
    ],
)
def test_what_hydra_cannot_run_is_one_sentence_before_it(root, words, sentence):
    with pytest.raises(BadConfig) as error:
        compose.check_run(root, words)
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
    params = study_params.parse(compose.compose(root, words))
    molecular = params.studies["molecular"]
    assert isinstance(molecular, MolecularConfig)
    assert (molecular.pool, molecular.n_endpoints) == (pool, 12)
    assert (params.forecaster.name, params.agent.name) == (forecaster, agent)


def test_no_tracked_config_reads_the_environment(root):
    for path in [root / "params.yaml", *(root / "conf").rglob("*.yaml")]:
        assert "oc.env" not in path.read_text()
