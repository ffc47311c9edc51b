import math
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from predictive_credit import canonical
from predictive_credit.records import Forecast

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_equal_values_have_one_digest_whatever_the_order_of_their_keys(value):
    def reverse(v: Any) -> Any:
        if isinstance(v, dict):
            return {k: reverse(v[k]) for k in reversed(list(v))}
        return [reverse(x) for x in v] if isinstance(v, list) else v

    assert canonical.digest(reverse(value)) == canonical.digest(value)


def test_a_record_is_its_fields():
    forecast = Forecast(unit_id="m/A/1/1/D/1", target="roc_auc", point=0.01, lower=0.0, upper=0.02)
    assert b'"point":0.01' in canonical.encode(forecast)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_refused(bad):
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical.encode({"x": bad})


def test_what_has_no_single_form_is_refused():
    with pytest.raises(TypeError, match="set has no canonical form"):
        canonical.encode({1, 2})


def test_an_enum_is_its_value():
    class Colour(StrEnum):
        RED = "red"

    assert canonical.encode([Colour.RED]) == b'["red"]'


def test_one_and_one_point_zero_are_different_records():
    assert canonical.digest({"x": 1}) != canonical.digest({"x": 1.0})
