"""Rows as multisets: what an expected row may be, what is missing, what is extra, and how a value is written."""

from typing import Any

import pytest

from conformance.core.observation import Column
from conformance.core.spark_types import parse_type
from conformance.judging.step_comparison import NotARow, OutputSchema, as_written, difference
from tests.support.observations import batch

COLUMNS = OutputSchema.of((Column(name="city", type="string"), Column(name="n", type="bigint")))


def differing(expected: list[Any], *emitted: tuple[Any, ...]):  # type: ignore[no-untyped-def]
    """Missing, extra with its micro-batch, common; each row emitted by a micro-batch of its own, from 4."""
    missing, extra, common = difference(expected, [batch(id, row) for id, row in enumerate(emitted, 4)], COLUMNS)
    return [*missing], [(row.cells, row.batch) for row in extra], [*common], bool(missing or extra)


def test_rows_in_any_order_are_the_same() -> None:
    assert differing([["a", 1], ["b", 2]], ("b", 2), ("a", 1)) == ([], [], [("b", 2), ("a", 1)], False)


def test_a_row_is_expected_as_often_as_it_is_written() -> None:
    assert differing([["a", 1]], ("a", 1), ("a", 1)) == ([], [(("a", 1), 5)], [("a", 1)], True)
    assert differing([["a", 1], ["a", 1], ["a", 1]], ("a", 1)) == ([("a", 1), ("a", 1)], [], [("a", 1)], True)


def test_a_missing_row_alone_and_an_extra_row_alone_are_a_difference() -> None:
    assert differing([["a", 1]]) == ([("a", 1)], [], [], True)
    assert differing([], ("a", 1)) == ([], [(("a", 1), 4)], [], True)
    assert differing([]) == ([], [], [], False)


def test_a_mapping_is_a_row_in_the_order_of_the_columns() -> None:
    assert differing([{"n": 1, "city": "a"}], ("a", 1))[3] is False
    assert COLUMNS.expected_row({"n": 1, "city": "a"}) == ("a", 1)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (["a"], "it has 1 value for 2 columns"),
        (["a", 1, 2], "it has 3 values for 2 columns"),
        ({"city": "a", "m": 1}, "there is no column m"),
        ({"city": "a"}, "column n is missing"),
        (["a", "one"], "n is bigint: "),
    ],
)
def test_what_no_row_of_the_query_can_be(row, problem) -> None:
    with pytest.raises(NotARow) as refused:
        COLUMNS.expected_row(row)
    assert refused.value.problem.startswith(problem)
    assert str(refused.value) == f"{row!r}: {refused.value.problem}"


def test_columns_of_one_name_need_a_list() -> None:
    twice = OutputSchema.of((Column(name="n", type="bigint"), Column(name="n", type="bigint")))
    assert twice.expected_row([1, 2]) == (1, 2)
    with pytest.raises(NotARow, match="several columns of the same name"):
        twice.expected_row({"n": 1})


def test_a_row_that_does_not_match_its_own_columns_equals_no_expected_row() -> None:
    assert differing([["a", 1]], ("a",)) == ([("a", 1)], [(("a",), 4)], [], True)
    assert COLUMNS.comparable(("a",)) == ("does not match the columns", '["a"]')
    assert COLUMNS.comparable(("a", "x"))[0] == "does not match the columns"


def test_an_unknown_type_is_compared_as_it_is() -> None:
    schema = OutputSchema.of((Column(name="v", type="vector<3>"),))
    assert schema.described() == ("v: vector<3>",)
    assert schema.as_written(("x",)) == ("x",)


@pytest.mark.parametrize("row", [("a",), ("a", 1, 2)])
def test_a_row_of_another_width_is_shown_as_it_is(row) -> None:
    assert COLUMNS.as_written(row) == row


@pytest.mark.parametrize(
    ("value", "type_", "written"),
    [
        (None, "timestamp", None),
        ("1970-01-01T12:05:00.000000Z", "timestamp", "12:05"),
        ("1970-01-01T12:05:00.000000", "timestamp_ntz", "12:05"),
        ("no instant", "timestamp", "no instant"),
        (["1970-01-01T12:05:00.000000Z", None], "struct<start:timestamp,end:timestamp>", ["12:05", None]),
        (
            {"end": None, "start": "1970-01-01T12:05:00.000000Z"},
            "struct<start:timestamp,end:timestamp>",
            ["12:05", None],
        ),
        (["1970-01-01T12:05:00.000000Z"], "array<timestamp>", ["12:05"]),
        ([["b", 1], ["a", 2]], "map<string,int>", {"a": 2, "b": 1}),
        ({"b": 1, "a": 2}, "map<string,int>", {"a": 2, "b": 1}),
        ([[1, "1970-01-01T12:05:00.000000Z"]], "map<int,timestamp>", [[1, "12:05"]]),
        ("1.50", "decimal(10,2)", 1.5),
        ("2.00", "decimal(10,2)", 2),
        ("0.1000000000000000055511", "decimal(38,22)", "0.1000000000000000055511"),
        ("text", "string", "text"),
        ("aGk=", "binary", "aGk="),
        (3, "bigint", 3),
    ],
)
def test_a_value_is_written_as_in_a_case(value, type_, written) -> None:
    found = as_written(value, parse_type(type_))
    assert found == written
    assert type(found) is type(written)
