"""Rows that were read from a real source, and what is left of values that must not be shown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.errors import WrongUsage
from conformance.own_job.recorded_sample import Mask

ORDER = '{"who": "ada", "amount": 7, "t": null}'


def rows(mask: Mask, *lines: str, columns: tuple[str, ...] = ()) -> list[dict[str, object]]:
    return [json.loads(line) for line in mask.rows("orders", lines, columns).splitlines()]


def test_without_a_mask_rows_stay_as_they_are() -> None:
    assert rows(Mask(), ORDER) == [json.loads(ORDER)]


@given(st.lists(st.one_of(st.text(), st.integers(-(10**12), 10**12), st.none())))
def test_equal_values_are_replaced_by_equal_ones_of_the_same_kind(values: list[object]) -> None:
    mask = Mask()
    masked = [row["v"] for row in rows(mask, *(json.dumps({"v": value}) for value in values), columns=("v",))]
    again = [row["v"] for row in rows(mask, *(json.dumps({"v": value}) for value in values), columns=("v",))]
    assert again == masked
    assert [type(value) for value in masked] == [type(value) for value in values]
    for value, other in zip(values, masked, strict=True):
        assert isinstance(other, int) or value is None or other != value
        assert not isinstance(other, int) or 0 <= other < 10**9


def test_another_mask_replaces_otherwise() -> None:
    assert rows(Mask(), ORDER, columns=("who",)) != rows(Mask(), ORDER, columns=("who",))


def test_a_key_of_the_json_object_of_a_record_is_replaced_in_it() -> None:
    record = json.dumps({"key": None, "value": ORDER})
    (masked,) = rows(Mask(), record, columns=("who",))
    within = json.loads(str(masked["value"]))
    assert within["who"] != "ada"
    assert within["amount"] == 7


@pytest.mark.parametrize(
    ("line", "column", "says"),
    [
        (ORDER, "whom", r"--mask: .*'whom' of orders: did you mean 'who'\?"),
        ('{"value": "no object"}', "who", "--mask: .*'who' of orders"),
        ('{"a": 5012.5}', "a", r"--mask: orders\.a has a fraction; only texts and whole numbers can be replaced"),
        ('{"a": true}', "a", r"orders\.a has a boolean;"),
        ('{"a": ["5012.5"]}', "a", r"orders\.a has an array;"),
        ('{"value": "{\\"a\\": {\\"b\\": 5012.5}}"}', "a", r"orders\.a has an object;"),
    ],
)
def test_what_cannot_be_replaced_is_named(line: str, column: str, says: str) -> None:
    with pytest.raises(WrongUsage, match=says) as error:
        Mask().rows("orders", [line], [column])
    assert "5012" not in str(error.value), "the value is secret"
