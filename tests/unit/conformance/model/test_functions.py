"""Values of scalar functions and operators, as Spark SQL documents them."""

from datetime import UTC, datetime

import pytest

from conformance.core.versions import SparkVersion
from conformance.model.catalogue import rules_of
from conformance.model.expressions import evaluate
from conformance.model.parsing import parse

NEWEST = rules_of(SparkVersion.parse("4.3.0"))


def value(text: str):  # type: ignore[no-untyped-def]
    return evaluate(parse(text, (), NEWEST).expression, {})


def us(text: str) -> int:
    return (
        int((datetime.fromisoformat(text).replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds())
        * 1_000_000
    )


@pytest.mark.parametrize(
    ("start", "interval", "end"),
    [
        ("1970-01-31 00:00:00", "1 MONTH", "1970-02-28 00:00:00"),
        ("1972-01-31 12:05:00", "1 MONTH", "1972-02-29 12:05:00"),
        ("1970-03-31 00:00:00", "1 MONTH", "1970-04-30 00:00:00"),
        ("1970-04-30 00:00:00", "1 MONTH", "1970-05-30 00:00:00"),
        ("1970-05-31 00:00:00", "1 MONTH", "1970-06-30 00:00:00"),
        ("1970-06-15 00:00:00", "1 MONTH", "1970-07-15 00:00:00"),
        ("1970-11-30 00:00:00", "1 MONTH", "1970-12-30 00:00:00"),
        ("1970-12-31 00:00:00", "1 MONTH", "1971-01-31 00:00:00"),
        ("1970-02-28 00:00:00", "10 MONTHS", "1970-12-28 00:00:00"),
        ("1970-02-28 00:00:00", "12 MONTHS", "1971-02-28 00:00:00"),
        ("1972-02-29 00:00:00", "1 YEAR", "1973-02-28 00:00:00"),
        ("1970-01-01 00:00:00", "1 DAY", "1970-01-02 00:00:00"),
        ("1970-01-01 00:00:00", "90 MINUTES", "1970-01-01 01:30:00"),
    ],
)
def test_an_interval_is_added_to_an_instant_from_either_side(start: str, interval: str, end: str) -> None:
    assert value(f"TIMESTAMP'{start}' + INTERVAL {interval}") == us(end)
    assert value(f"INTERVAL {interval} + TIMESTAMP'{start}'") == us(end)


@pytest.mark.parametrize(
    ("start", "interval", "end"),
    [
        ("1970-03-31 00:00:00", "1 MONTH", "1970-02-28 00:00:00"),
        ("1971-01-15 00:00:00", "1 MONTH", "1970-12-15 00:00:00"),
        ("1970-01-02 00:00:00", "1 DAY", "1970-01-01 00:00:00"),
        ("1970-01-01 01:30:00", "30 MINUTES", "1970-01-01 01:00:00"),
    ],
)
def test_an_interval_is_taken_from_an_instant(start: str, interval: str, end: str) -> None:
    assert value(f"TIMESTAMP'{start}' - INTERVAL {interval}") == us(end)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 + 2", 3),
        ("5 - 2", 3),
        ("2 * 3", 6),
        ("1 = 1", True),
        ("1 = 2", False),
        ("1 <> 1", False),
        ("1 <> 2", True),
        ("1 < 2", True),
        ("2 < 2", False),
        ("2 <= 2", True),
        ("3 <= 2", False),
        ("2 > 1", True),
        ("2 > 2", False),
        ("2 >= 2", True),
        ("1 >= 2", False),
        ("1 <=> 1", True),
        ("1 <=> 2", False),
        ("NULL = NULL", None),
        ("true AND false", False),
        ("true AND true", True),
        ("false AND NULL", False),
        ("true AND NULL", None),
        ("true OR NULL", True),
        ("false OR NULL", None),
        ("false OR false", False),
        ("NOT true", False),
        ("NULL IS NULL", True),
        ("1 IS NULL", False),
        ("1 IS NOT NULL", True),
        ("coalesce(NULL, 2, 3)", 2),
        ("coalesce(NULL, NULL)", None),
        ("CASE WHEN false THEN 1 WHEN true THEN 2 ELSE 3 END", 2),
        ("CASE WHEN false THEN 1 WHEN NULL THEN 2 ELSE 3 END", 3),
        ("upper('ab')", "AB"),
        ("lower('AB')", "ab"),
        ("length('abc')", 3),
        ("timestamp_seconds(2)", 2_000_000),
        ("timestamp_millis(2)", 2_000),
        ("CAST(7 AS STRING)", "7"),
        ("CAST(7 AS INT)", 7),
        ("CAST(7 AS BIGINT)", 7),
        ("CAST('1970-01-01 00:00:01' AS TIMESTAMP)", 1_000_000),
        ("date_trunc('minute', TIMESTAMP'1970-01-02 03:04:05.6')", 97_440_000_000),
        ("date_trunc('SECOND', TIMESTAMP'1970-01-02 03:04:05.6')", 97_445_000_000),
        ("date_trunc('hour', TIMESTAMP'1970-01-02 03:04:05.6')", 97_200_000_000),
    ],
)
def test_a_value(text: str, expected: object) -> None:
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("type_", ["FLOAT", "DOUBLE", "INT", "BIGINT"])
def test_an_instant_as_a_number_is_its_seconds(type_: str) -> None:
    assert value(f"CAST(TIMESTAMP'2024-03-01 00:00:00' AS {type_})") == us("2024-03-01 00:00:00") / 1_000_000
