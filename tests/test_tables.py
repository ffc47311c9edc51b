import numpy as np
import pytest

from predictive_credit import tables
from predictive_credit.errors import OutOfOrder, Tampered, Unpaired
from predictive_credit.records import Forecast, Outcome


def test_records_come_back_as_they_were_without_their_label(tmp_path):
    records = (
        Outcome(state_id="a", target="roc_auc", value=-0.1),
        Outcome(state_id="b", target="roc_auc", value=None, reason="one class"),
    )
    tables.write_records(tmp_path / "o.jsonl", records, scale="quick")
    assert tables.read_records(tmp_path / "o.jsonl", Outcome) == records
    assert all('"scale":"quick"' in line for line in (tmp_path / "o.jsonl").read_text().splitlines())


def test_a_line_that_is_no_record_is_named(tmp_path):
    path = tmp_path / "f.jsonl"
    tables.write_records(
        path, [Forecast(unit_id="u", target="roc_auc", point=0.0, lower=0.0, upper=0.0)], scale="full"
    )
    path.write_text(path.read_text() + '{"unit_id": 3}\n')
    with pytest.raises(Tampered, match=r"f\.jsonl line 2 is not a Forecast"):
        tables.read_records(path, Forecast)


def test_a_file_that_is_not_made_yet_says_what_to_run(tmp_path):
    with pytest.raises(OutOfOrder, match=r"plan\.jsonl does not exist yet; run the stage"):
        tables.read_bytes(tmp_path / "plan.jsonl")


def test_a_failed_write_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "x.json"
    tables.write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON compliant"):
        tables.write_json(path, {"a": float("nan")})
    with pytest.raises(TypeError):
        tables.write_bytes(path, None)  # type: ignore[arg-type]  # the fault under test
    assert tables.read_json(path) == {"a": 1}
    assert [p.name for p in tmp_path.iterdir() if p.name != "vault"] == ["x.json"]


def test_rows_become_axes_in_the_house_order():
    values = {
        (s, c, k): 100 * i + 10 * j + k
        for i, s in enumerate("ab")
        for j, c in enumerate("DM")
        for k in (1, 2)
    }
    array = tables.cube(values, ["a", "b"], ["D", "M"], [1, 2])
    np.testing.assert_array_equal(array[1, 0], [101, 102])
    assert array.shape == (2, 2, 2)


def test_a_gap_and_a_stranger_are_refused_by_name():
    values = {("a", "D", 1): 0.0, ("a", "M", 1): 0.0}
    with pytest.raises(Unpaired, match="1 rows missing, 0 not planned, first a/S/1"):
        tables.cube(values, ["a"], ["D", "M", "S"], [1])
    with pytest.raises(Unpaired, match="0 rows missing, 1 not planned, first a/M/1"):
        tables.cube(values, ["a"], ["D"], [1])
