"""Values: every notation of one value is equal, nothing else is."""

import json
import math
import struct
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformance.core.spark_types import DataType, parse_type
from conformance.core.values import NotAValue, canonical, instant_ms, show, show_in_full, to_json_value

TIMESTAMP = parse_type("timestamp")
NTZ = parse_type("timestamp_ntz")
DOUBLE = parse_type("double")


@pytest.mark.parametrize(
    ("value", "micros"),
    [
        ("12:05", 43_500_000_000),
        ("12:05:00", 43_500_000_000),
        ("12:05:00.5", 43_500_500_000),
        ("12:05:00.000001", 43_500_000_001),
        ("12:05:00.1234560000", 43_500_123_456),
        ("1970-01-01 12:05", 43_500_000_000),
        ("1970-01-01T12:05:00Z", 43_500_000_000),
        ("1970-01-01T12:05:00.500000Z", 43_500_500_000),
        ("1970-01-01 14:05+02:00", 43_500_000_000),
        ("1970-01-01T07:05:00-0500", 43_500_000_000),
        ("1970-01-01T12:05:00 Z", 43_500_000_000),
        ("1970-01-01 13:05+01", 43_500_000_000),
        ("2024-03-01", 1_709_251_200_000_000),
        ("1969-12-31 23:59:59.999999", -1),
        (0, 0),
        (10, 10_000_000),
        (30.0009, 30_000_900),
        (-1.5, -1_500_000),
        (0.1, 100_000),
        (1709294700.123456, 1_709_294_700_123_456),
        (Decimal("1709294700.123456"), 1_709_294_700_123_456),
        (1e3, 1_000_000_000),
        ("1772366400000.000000 s", 1_772_366_400_000_000_000),
        ("-9223372036854.775808 s", -(2**63)),
        (None, None),
    ],
)
def test_instants(value: Any, micros: int | None) -> None:
    assert canonical(value, TIMESTAMP) == micros
    assert type(canonical(value, TIMESTAMP)) is (int if micros is not None else type(None))


@pytest.mark.parametrize(
    "value",
    [
        *("12:5", "24:00", "12:60", "12:05:60", "12:05 ", "12:05Z", "noon", "", "12:05:00.0000001"),
        *("2024-13-01 12:05", "2024-02-30 12:05", "2023-02-29", "24-03-01 12:05", "2024-03-01 12:05+25:00"),
        *("0001-01-01 00:00+02:00", True, math.nan, math.inf, 30.0000009, 1e18, 10**30, 10**399, ["12:05"], {}),
    ],
)
def test_invalid_instants(value: Any) -> None:
    with pytest.raises(NotAValue) as caught:
        canonical(value, TIMESTAMP)
    assert caught.value.value == value or value != value
    assert caught.value.type == TIMESTAMP
    assert caught.value.allowed in str(caught.value)
    with pytest.raises(NotAValue):
        instant_ms(value)


def test_a_local_time_has_no_zone() -> None:
    assert canonical("2024-03-01 12:05", NTZ) == canonical("2024-03-01 12:05", TIMESTAMP)
    assert canonical("1970-01-01T12:05:00.500000", NTZ) == canonical("12:05:00.5", NTZ)
    with pytest.raises(NotAValue, match="no zone"):
        canonical("2024-03-01T12:05Z", NTZ)


@pytest.mark.parametrize(
    ("value", "ms"), [("12:05", 43_500_000), (30.0009, 30_000), (-0.0001, -1), ("12:05:00.9999", 43_500_999), (0, 0)]
)
def test_expected_instants_are_cut_to_milliseconds(value: Any, ms: int) -> None:
    assert instant_ms(value) == ms


def test_null_is_not_an_expected_instant() -> None:
    with pytest.raises(NotAValue):
        instant_ms(None)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "00:00"),
        (43_500_000_000, "12:05"),
        (43_501_000_000, "12:05:01"),
        (43_500_500_000, "12:05:00.5"),
        (43_500_000_001, "12:05:00.000001"),
        (1_709_294_700_000_000, "2024-03-01 12:05"),
        (-1, "1969-12-31 23:59:59.999999"),
        (9 * 10**18, "9000000000000 s"),
        (-(10**18) - 1, "-1000000000000.000001 s"),
    ],
)
def test_instants_are_shown_short(micros: int, text: str) -> None:
    assert show(micros) == text


INSTANTS = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)).map(
    lambda moment: (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)
)


@given(INSTANTS)
def test_what_is_shown_reads_back(micros: int) -> None:
    assert canonical(show(micros), TIMESTAMP) == micros


@given(INSTANTS)
def test_what_goes_to_spark_reads_back(micros: int) -> None:
    for type in (TIMESTAMP, NTZ):
        sent = to_json_value(show(micros), type)
        assert canonical(sent, type) == micros
        assert sent.endswith("Z") is (type is TIMESTAMP)
        assert len(sent.removesuffix("Z")) == len("1970-01-01T12:05:00.500000")


@given(st.integers(-(10**14), 10**14))
def test_seconds_with_six_decimals_are_exact(micros: int) -> None:
    assert canonical(Decimal(micros) / 1_000_000, TIMESTAMP) == micros
    assert canonical(float(Decimal(micros) / 1_000_000), TIMESTAMP) == micros


@pytest.mark.parametrize(
    ("value", "other", "type"),
    [
        (1, 1.0, "int"),
        (1, Decimal("1.00"), "bigint"),
        (1, 1.0, "double"),
        (0.1 + 0.2, 0.3, "double"),
        (1 / 3, 0.333333333, "double"),
        (-0.0, 0, "double"),
        (0.1, struct.unpack("f", struct.pack("f", 0.1))[0], "float"),
        ("1.50", 1.5, "decimal(4,2)"),
        (2, "2.00", "decimal(4,2)"),
        (1.1, Decimal("1.10"), "decimal(4,2)"),
        (math.nan, "NaN", "double"),
        (math.inf, "Infinity", "double"),
        (-math.inf, "-Infinity", "float"),
        ([1, "a"], {"b": "a", "a": 1}, "struct<a:int,b:string>"),
        ((1, 2), [1.0, 2.0], "array<int>"),
        ({"a": 1, "b": 2}, [["b", 2], ["a", 1]], "map<string,int>"),
        ({1: "12:05"}, [[1.0, 43_500]], "map<int,timestamp>"),
        ("2024-03-01", "2024-03-01", "date"),
        ("aGk=", "aGk=", "binary"),
        (None, None, "void"),
        ({"a": [1]}, '{"a": [1]}', "variant"),
        (
            ["12:05", [None, [1]]],
            {"t": 43_500, "s": {"x": None, "y": [1.0]}},
            "struct<t:timestamp,s:struct<x:int,y:array<int>>>",
        ),
    ],
)
def test_equal_by_value(value: Any, other: Any, type: str) -> None:
    left, right = canonical(value, parse_type(type)), canonical(other, parse_type(type))
    assert left == right
    assert hash(left) == hash(right)


@pytest.mark.parametrize(
    ("value", "other", "type"),
    [
        (1, 2, "int"),
        (0.000000001, 0.000000002, "double"),
        ("1.50", "1.51", "decimal(4,2)"),
        ("9" * 38, "9" * 37 + "8", "decimal(38,0)"),
        (None, 0, "int"),
        (math.nan, None, "double"),
        ([1, 2], [2, 1], "array<int>"),
        (9007199254740993, 9007199254740992, "bigint"),
        ("a", "b", "string"),
        ([1, 2], [2, 1], "struct<a:int,b:int>"),
    ],
)
def test_different_by_value(value: Any, other: Any, type: str) -> None:
    assert canonical(value, parse_type(type)) != canonical(other, parse_type(type))


@given(st.integers(-(10**12), 10**12))
def test_a_whole_number_is_the_same_in_every_type(number: int) -> None:
    found = {
        canonical(number, parse_type("bigint")),
        canonical(float(number), parse_type("double")),
        canonical(str(number), parse_type("decimal(38,10)")),
        canonical(Decimal(number), parse_type("decimal(20,0)")),
    }
    assert found == {number}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_has_a_canonical_form(number: float) -> None:
    found = canonical(number, DOUBLE)
    assert abs(float(found) - number) <= 5.1e-10
    assert canonical(found, DOUBLE) == found


@pytest.mark.parametrize(
    ("value", "type", "allowed", "path"),
    [
        (1.5, "int", "a whole number", ()),
        ("1", "int", "a whole number", ()),
        (True, "int", "a whole number", ()),
        (math.nan, "bigint", "a whole number", ()),
        (10**399, "int", "a whole number", ()),
        (128, "tinyint", "-128 to 127", ()),
        (2**31, "int", "2147483647", ()),
        ("x", "double", "a number", ()),
        (True, "double", "a number", ()),
        (1e39, "float", "a number that a FLOAT can hold", ()),
        (Decimal("1e400"), "double", "a number that a DOUBLE can hold", ()),
        (10**400, "double", "a number that a DOUBLE can hold", ()),
        ("x", "decimal(4,2)", "a decimal number", ()),
        (True, "decimal(4,2)", "a decimal number", ()),
        ("NaN", "decimal(4,2)", "a decimal number", ()),
        (1.005, "decimal(4,2)", "2 digits before the point and 2 after", ()),
        (100, "decimal(4,2)", "2 digits before the point and 2 after", ()),
        ("1e999999999", "decimal(38,0)", "38 digits", ()),
        (1, "string", "text", ()),
        (1, "boolean", "true or false", ()),
        ("2024-02-30", "date", "a date", ()),
        (20240301, "date", "a date", ()),
        ("?", "binary", "base64", ()),
        (5, "binary", "base64", ()),
        (1, "void", "null", ()),
        (1, "array<int>", "a list", ()),
        ([1, "x"], "array<int>", "a whole number", (1,)),
        ([1], "struct<a:int,b:int>", "2 values (a, b)", ()),
        (5, "struct<a:int>", "a list of 1 value (a), or a mapping", ()),
        ({"a": 1}, "struct<a:int,b:int>", "b is missing", ()),
        ({"a": 1, "c": 2}, "struct<a:int,b:int>", "one of a, b", ("c",)),
        ({"a": [1, {"b": "x"}]}, "struct<a:struct<n:int,s:struct<b:int>>>", "a whole number", ("a", 1, "b")),
        (5, "map<string,int>", "a mapping", ()),
        ([["a"]], "map<string,int>", "a mapping", ()),
        ({"a": "x"}, "map<string,int>", "a whole number", ("a",)),
        ({1: 1}, "map<string,int>", "text", (1,)),
    ],
)
def test_invalid_values(value: Any, type: str, allowed: str, path: tuple[str | int, ...]) -> None:
    with pytest.raises(NotAValue) as caught:
        canonical(value, parse_type(type))
    assert allowed in caught.value.allowed
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("value", "type", "sent"),
    [
        ("12:05:00.5", "timestamp", "1970-01-01T12:05:00.500000Z"),
        (30.0009, "timestamp_ntz", "1970-01-01T00:00:30.000900"),
        ("2024-03-01T12:05+02:00", "timestamp", "2024-03-01T10:05:00.000000Z"),
        ("0001-01-01", "timestamp", "0001-01-01T00:00:00.000000Z"),
        (None, "timestamp", None),
        (1.0, "int", 1),
        (1.5, "double", 1.5),
        (Decimal("0.1"), "double", 0.1),
        (math.nan, "double", "NaN"),
        (-math.inf, "double", "-Infinity"),
        ("1.50", "decimal(4,2)", 1.5),
        (2, "decimal(4,2)", 2),
        ("12345678901234567890.12", "decimal(38,2)", "12345678901234567890.12"),
        (True, "boolean", True),
        ("x", "string", "x"),
        ("2024-03-01", "date", "2024-03-01"),
        ("aGk=", "binary", "aGk="),
        ([1, "12:05"], "struct<a:int,t:timestamp>", {"a": 1, "t": "1970-01-01T12:05:00.000000Z"}),
        ({"t": 0, "a": None}, "struct<a:int,t:timestamp>", {"a": None, "t": "1970-01-01T00:00:00.000000Z"}),
        ([["12:05"], None], "array<array<timestamp>>", [["1970-01-01T12:05:00.000000Z"], None]),
        ({"a": 0}, "map<string,timestamp>", {"a": "1970-01-01T00:00:00.000000Z"}),
        ([["a", 0]], "map<string,int>", {"a": 0}),
    ],
)
def test_what_goes_into_a_file_for_spark(value: Any, type: str, sent: Any) -> None:
    found = to_json_value(value, parse_type(type))
    assert found == sent
    assert json.loads(json.dumps(found, allow_nan=False)) == sent


@pytest.mark.parametrize(
    ("value", "type"),
    [
        ("x", "int"),
        ("x", "timestamp"),
        ("1772366400000 s", "timestamp"),
        ([1], "struct<a:int,b:int>"),
        ({1: 1}, "map<int,int>"),
        ("y", "double"),
    ],
)
def test_what_cannot_go_there(value: Any, type: str) -> None:
    with pytest.raises(NotAValue):
        to_json_value(value, parse_type(type))


def test_a_date_outside_the_years_of_python_is_a_number_of_days() -> None:
    assert canonical("20513500 d", parse_type("date")) == "20513500 d"


def test_an_error_shows_the_value_as_it_was_written() -> None:
    with pytest.raises(NotAValue, match=r'^"12:5" is not an instant: ') as caught:
        canonical("12:5", TIMESTAMP)
    assert "'12:05'" in str(caught.value)
    with pytest.raises(NotAValue, match="…"):
        canonical("x" * 200, DataType("int"))


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (-1, "1969-12-31T23:59:59.999999Z"),
        (43_500_000_000, "1970-01-01T12:05:00Z"),
        (2**62, "4611686018427.387904 s"),
    ],
)
def test_instants_are_shown_in_full(micros: int, text: str) -> None:
    assert show_in_full(micros) == text
