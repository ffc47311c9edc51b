from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from predictive_credit import config
from predictive_credit.forecasters import forecaster
from predictive_credit.forecasters.priors import PriorsModel
from predictive_credit.records import BurnIn, Target
from tests.trials import ONE, TWO, burn_in, learned, prompt

Point = Literal["zero", "positive", "mean"]


def chosen(point: Point) -> config.Priors:
    return config.Priors(
        kind="priors", watch="x", name="priors", point=point, elicitation="sentence", temperature=0.0,
        top_p=1.0, max_tokens=64, acknowledged_models=(),
    )  # fmt: skip


def no_file(asked: config.LlamaCpp) -> Path:
    raise AssertionError("priors need no model file")


def made(point: Point, known: BurnIn, targets: Sequence[Target]) -> PriorsModel:
    model = forecaster.make(chosen(point), known, targets, locate=no_file)
    assert isinstance(model, PriorsModel)
    return model


def forecast(point: Point, known: BurnIn) -> tuple[float, float, float]:
    answer = made(point, known, ONE).answer(prompt())
    (read,) = forecaster.read_or_fallback(answer, "u", known, ONE, elicitation="sentence")
    assert not read.is_fallback
    return read.point, read.lower, read.upper


@pytest.mark.parametrize(("point", "value"), [("zero", 0.0), ("positive", 0.008), ("mean", -0.004)])
def test_each_prior_gives_its_point_with_the_burn_ins_quantiles(point: Point, value: float):
    assert forecast(point, burn_in(-0.004, q10=-0.01, q90=0.02)) == pytest.approx((value, -0.01, 0.02))


def test_a_point_outside_the_quantiles_ends_the_interval():
    assert forecast("positive", burn_in(q10=-0.01, q90=0.002)) == pytest.approx((0.008, -0.01, 0.008))
    assert forecast("zero", burn_in(q10=0.001, q90=0.02)) == pytest.approx((0.0, 0.0, 0.02))


def test_an_outcome_beyond_the_grammars_tenth_is_still_written_and_read():
    assert forecast("mean", burn_in(-0.25, q10=-0.4, q90=0.3)) == pytest.approx((-0.25, -0.4, 0.3))


@pytest.mark.parametrize(
    ("point", "lower", "upper", "read"),
    [("zero", 60, 99, 60.0), ("positive", -9, -1, -1.0), ("positive", -99, 5, 5.0), ("mean", -99, 5, -4.0)],
)
def test_a_prior_that_is_not_possible_becomes_the_nearest_that_is(
    point: Point, lower: float, upper: float, read: float
):
    of = Target(
        name="shift", phrase="Shift", unit="%", suffix=" %", size="?#.#", lower=lower, upper=upper,
        form="level",
    )  # fmt: skip
    inside = {"q10": max(lower, -8.0), "q90": min(upper, 70.0)}
    known = BurnIn(name="b", tasks=(), targets={"shift": replace(learned(-4.0, **inside), mean_absolute=6.0)})
    answer = made(point, known, (of,)).answer(prompt())
    (found,) = forecaster.read_or_fallback(answer, "u", known, (of,), elicitation="sentence")
    assert not found.is_fallback
    assert found.point == read


def test_each_target_gets_its_own_burn_in():
    targets = {"accuracy_pp": learned(1.5, q10=-1.0, q90=3.0), "log_loss": learned(-0.02, q10=-0.1, q90=0.05)}
    known = BurnIn(name="b", tasks=(), targets=targets)
    answer = made("mean", known, TWO).answer(prompt())
    found = forecaster.read_or_fallback(answer, "u", known, TWO, elicitation="sentence")
    assert [f.is_fallback for f in found] == [False, False]
    assert [(f.point, f.lower, f.upper) for f in found] == [
        pytest.approx((1.5, -1.0, 3.0)),
        pytest.approx((-0.02, -0.1, 0.05)),
    ]


def test_every_prompt_gets_the_same_reply():
    model = made("mean", burn_in(), ONE)
    assert model.answer(prompt("a", seed=1)) == model.answer(prompt("b", seed=2))
    assert model.answer(prompt()).model_resolved == "mean of burn-in synthetic"


def test_acknowledging_a_model_id_does_not_change_who_is_asked():
    acknowledged = config.Priors(**{**config.section(chosen("mean")), "acknowledged_models": ("a", "b")})
    assert forecaster.identity(acknowledged) == forecaster.identity(chosen("mean"))
    assert forecaster.identity(chosen("zero")) != forecaster.identity(chosen("mean"))
