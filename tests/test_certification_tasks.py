"""Each task is sealed, executable, and scores as published; answers to experiments keep one shape."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from predictive_credit.certification import tasks
from predictive_credit.certification.tasks import catalyst, device, knapsack, sqlite_events
from predictive_credit.certification.tasks.task import Channel, Malformed, Task, observe, strict_json

SECRET = b"s" * 32
NAMES = ("sqlite", "catalyst", "device", "knapsack")


def make(name: str, label: str = "main", *, known: bool = False) -> Task:
    return tasks.BUILD[name](SECRET, label, known=known)


def plan_of(name: str, task: Task) -> Any:
    """An experiment that is allowed."""
    plans = {
        "sqlite": {"indexes": [{"kind": "cart", "columns": ["region", "amount"]}]},
        "catalyst": {"anchor": dict.fromkeys(catalyst.CONTROLS, 3)},
        "device": {"controls": ["c01", "c00"]},
        "knapsack": task.baseline,
    }
    return task.plan(plans[name])


@pytest.fixture(scope="module")
def service() -> sqlite_events.EventService:
    return sqlite_events.build(SECRET, "main")


@pytest.mark.parametrize("hot", range(5))
def test_indexes_on_hot_families_score_near_the_published_ladder(
    service: sqlite_events.EventService, hot: int
) -> None:
    cold = [kind for kind in sqlite_events.KINDS if kind not in service.hot]
    chosen = [*service.hot[:hot], *cold[: 4 - hot]]
    indexes = [{"kind": kind, "columns": service.background()["families"][kind]} for kind in chosen]
    (score,) = service.score(service.artifact({"indexes": indexes}))
    assert score == pytest.approx(hot * 0.22138675 + (4 - hot) * 0.00922445, abs=0.004)


def test_a_family_without_an_index_of_its_kind_takes_the_steps_of_the_bare_table(
    service: sqlite_events.EventService,
) -> None:
    bare = service.steps([], sqlite_events.KINDS)
    served = service.steps(service.answer()["indexes"], sqlite_events.KINDS)
    assert {kind for kind in bare if bare[kind] != served[kind]} == set(service.hot)


def test_an_index_on_other_columns_misses_the_line(service: sqlite_events.EventService) -> None:
    indexes = service.answer()["indexes"]
    (best,) = service.score({"indexes": indexes})
    wrong = [{**indexes[0], "columns": sorted({"day", "status"} - set(indexes[0]["columns"]))}, *indexes[1:]]
    assert service.score({"indexes": wrong})[0] < best - 0.005


@pytest.mark.parametrize(
    "index",
    [
        {"kind": "login' OR 1=1 --", "columns": ["account"]},
        {"kind": "login", "columns": ["account) --"]},
        {"kind": "login", "columns": []},
        {"kind": "login", "columns": ["account", "account"]},
        {"kind": "login", "columns": ["account"], "where": "1"},
        {"kind": ["login"], "columns": ["account"]},
        "CREATE INDEX x ON events (kind)",
    ],
    ids=["kind", "column", "empty", "twice", "key", "list", "sql"],
)
def test_only_names_of_the_closed_lists_make_an_index(
    service: sqlite_events.EventService, index: Any
) -> None:
    with pytest.raises(Malformed):
        service.artifact({"indexes": [index]})


def test_five_indexes_or_one_twice_are_refused(service: sqlite_events.EventService) -> None:
    index = {"kind": "cart", "columns": ["day"]}
    for indexes in ([index, index], [{"kind": k, "columns": ["day"]} for k in sqlite_events.KINDS[:5]]):
        with pytest.raises(Malformed):
            service.artifact({"indexes": indexes})


def test_the_best_recipe_yields_1_everywhere_and_one_wrong_level_misses_the_line() -> None:
    task = catalyst.build(SECRET, "main")
    best = task.answer()["recipe"]
    assert set(task.score({"recipe": best})) == {1.0}
    for name in catalyst.CONTROLS:
        for level in set(range(8)) - {best[name]}:
            assert np.mean(task.score({"recipe": best | {name: level}})) < 0.95


def test_losses_are_whole_thousandths_with_period_six() -> None:
    task = catalyst.build(SECRET, "main")
    losses = [-1000 * math.log(score) for score in task.score(task.baseline)]
    assert losses == pytest.approx([round(loss) for loss in losses])
    assert losses == pytest.approx([losses[i % 6] for i in range(256)])
    assert len({round(loss) for loss in losses}) == 6


def test_one_plate_of_36_wells_reads_every_best_level() -> None:
    task = catalyst.build(SECRET, "main")
    wells = dict(task.measure(task.plan({"anchor": dict.fromkeys(catalyst.CONTROLS, 1)})))
    assert len(wells) == 36
    for name, level in task.answer()["recipe"].items():
        told = {int(of[-1]): float(value) for of, value in wells.items() if of.startswith(name)}
        told[1] = float(wells["anchor"])
        assert max(told, key=lambda k: told[k]) == level


@pytest.mark.parametrize("name", NAMES)
def test_the_answer_beats_the_baseline_by_the_registered_gain(name: str) -> None:
    for k in range(5):
        task = make(name, f"instance-{k}")
        gain = np.mean(task.score(task.answer())) - np.mean(task.score(task.baseline))
        assert gain >= task.design.delta_min


def test_the_device_is_scored_by_the_published_count_of_pairs() -> None:
    task = device.build(SECRET, "main")
    assert sum(task.score(task.baseline)) == 4 + 6 + 100
    gains = task.gains
    hidden = [name for name in device.CONTROLS if name not in task.public]
    plus, minus = ([n for n in hidden if gains[n] == sign] for sign in (1, -1))
    assert len(plus) == len(minus) == 10
    said = {**gains, plus[0]: -1, minus[0]: 1, minus[1]: 1}  # one wrong +1, two wrong -1
    right = 21
    assert sum(task.score({"gains": said})) == right + math.comb(right, 2) + 2
    assert sum(task.score(task.answer())) == 300


def test_a_packing_that_does_not_fit_is_refused_and_the_bound_is_not_exceeded() -> None:
    task = knapsack.build(SECRET, "main")
    with pytest.raises(Malformed):
        task.artifact({"items": list(knapsack.ITEMS)})
    assert task.score(task.baseline) < task.score(task.answer()) <= (1.0,)


def test_the_bound_of_a_packing_holds_for_every_small_packing() -> None:
    task = knapsack.build(SECRET, "main")
    few = knapsack.ITEMS[:6]
    for size in range(len(few) + 1):
        for names in combinations(few, size):
            assert task.score({"items": list(names)})[0] <= 1


@pytest.mark.parametrize("name", NAMES)
def test_a_filler_has_the_shape_of_the_truth_and_no_direction(name: str) -> None:
    task, other = make(name), make(name, "another")
    plan = plan_of(name, task)
    told = {channel: observe(task, plan, channel) for channel in Channel}
    truth = told[Channel.TRUTHFUL]
    for channel in (Channel.NEUTRAL, Channel.REFERENCE):
        filled = told[channel]
        assert [r["of"] for r in filled["readings"]] == [r["of"] for r in truth["readings"]]
        assert [len(r["value"]) for r in filled["readings"]] == [len(r["value"]) for r in truth["readings"]]
        assert not any(c.isdigit() for r in filled["readings"] for c in r["value"])
        assert observe(other, plan_of(name, other), channel) == filled
    assert told[Channel.NEUTRAL] != told[Channel.REFERENCE]
    assert "readings" not in told[Channel.WITHHELD]


@pytest.mark.parametrize("name", ["sqlite", "catalyst", "device"])
def test_the_background_does_not_depend_on_what_is_sealed(name: str) -> None:
    one, other = make(name), make(name, "another")
    assert one.background() == other.background()
    assert one.answer() != other.answer()


@pytest.mark.parametrize("name", NAMES)
def test_a_secret_and_a_label_fix_the_instance_and_only_a_null_task_tells_its_answer(name: str) -> None:
    assert make(name) == make(name)
    assert "known_best" not in make(name).first()
    null = make(name, known=True)
    assert null.first()["known_best"] == null.answer() == make(name).answer()


@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_order_moves_the_public_lists_and_adds_nothing(name: str) -> None:
    task = make(name)
    plain, drawn = task.background(), task.background(np.random.default_rng(1))
    assert plain["text"] != drawn["text"]
    assert sorted(plain["text"]) == sorted(drawn["text"])
    assert plain["schema"] == drawn["schema"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"items": 1}, {"gains": {}}, {"recipe": {"temperature": True}}],
    ids=["null", "list", "empty", "items", "gains", "recipe"],
)
def test_an_artifact_of_another_shape_is_malformed(name: str, value: Any) -> None:
    with pytest.raises(Malformed):
        make(name).artifact(value)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', "[NaN]", "[Infinity]", "[" * 100_000, '"' + "x" * 200_000 + '"', "{", "1" * 5000],
    ids=["twice", "nan", "infinity", "deep", "long", "cut", "digits"],
)
def test_json_that_is_not_one_plain_value_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        strict_json(text)
