"""A case as a suite of Spark's own tests: its text. That Spark runs it, tests/engine/test_streamtest_suites.py shows."""

import re

import pytest
from typer.testing import CliRunner

from conformance.cli.main import app
from conformance.core.case import Case, Restart
from conformance.core.data import Json
from conformance.core.observation import Column
from conformance.core.operations import read_pipeline
from conformance.core.spark_types import parse_schema
from conformance.suite import discovery
from reports.exports.programs import NoLiteral, literal, streamtest_suite
from tests.support.observations import case, expect


@pytest.mark.parametrize(
    ("value", "type", "scala"),
    [
        (None, "INT", "null"),
        (7, "INT", "7"),
        (7, "BIGINT", "7L"),
        (7, "SMALLINT", "7.toShort"),
        (True, "BOOLEAN", "true"),
        ("1.50", "DECIMAL(5,2)", 'new java.math.BigDecimal("1.5")'),
        (1, "DOUBLE", "1.0"),
        (1.5, "FLOAT", "1.5.toFloat"),
        ('a "b"', "STRING", '"a \\"b\\""'),
        ("2026-03-01", "DATE", 'java.sql.Date.valueOf("2026-03-01")'),
        ("12:05", "TIMESTAMP", 'at("1970-01-01T12:05:00Z")'),
        ("12:05:00.25", "TIMESTAMP_NTZ", 'LocalDateTime.parse("1970-01-01T12:05:00.250000")'),
        (["12:00", 1], "STRUCT<a: TIMESTAMP, b: INT>", 'Row(at("1970-01-01T12:00:00Z"), 1)'),
        ([1, 2], "ARRAY<INT>", "Seq(1, 2)"),
    ],
)
def test_a_value_in_scala(value: Json, type: str, scala: str) -> None:
    assert literal(value, parse_schema(f"a {type}").fields[0].type) == scala


def test_a_type_without_literals_is_named() -> None:
    with pytest.raises(NoLiteral, match="map"):
        literal({"a": 1}, parse_schema("a MAP<STRING, INT>").fields[0].type)


def test_each_step_is_an_arrival_and_a_check() -> None:
    done = CliRunner().invoke(app, ["case", "export", "streamtest", "late-drops/window-still-open"])
    assert done.exit_code == 0, done.output
    assert "class WindowStillOpenSuite extends StreamTest {" in done.output
    actions = re.findall(r"^ {8}(AddData|CheckNewAnswerRows|watermark|state)\(", done.output, re.MULTILINE)
    assert actions == ["AddData", "CheckNewAnswerRows", "watermark", "state"] * 3
    assert 'CheckNewAnswerRows(Seq(Row(at("1970-01-01T12:00:00Z"), at("1970-01-01T12:10:00Z"), 1L))),' in done.output


def test_of_several_streams_all_rows_arrive_at_once() -> None:
    done = CliRunner().invoke(app, ["case", "export", "streamtest", "several-watermarks/lowest-watermark-counts"])
    assert "StreamProgressLockedActions(Seq(" in done.output


COLUMNS = (Column(name="event_time", type="timestamp"), Column(name="count", type="int"))
KILL = Restart(how="kill")


@pytest.mark.parametrize(
    "changed",
    [
        {"trigger": "once"},
        {"sink": "delta"},
        {"tables": {"events": "delta"}},
        {"query": read_pipeline([{"from": "events", "name": "in"}])},
        {"query": read_pipeline([{"from": "events"}, {"call": "a:b"}])},
    ],
)
def test_what_a_stream_test_cannot_do_has_no_suite(changed: dict[str, object]) -> None:
    plain = case(expect(rows=[["12:00", 1]]))
    assert streamtest_suite(plain, COLUMNS) is not None
    assert streamtest_suite(plain.model_copy(update=changed), COLUMNS) is None
    killed = plain.steps[0].model_copy(update={"action": KILL})
    assert streamtest_suite(plain.model_copy(update={"steps": (killed,)}), COLUMNS) is None


def test_the_command_says_why_there_is_none() -> None:
    killing = next(one for one in discovery.load().cases if one.id.endswith("killed-while-it-runs-counts-no-row-twice"))
    assert isinstance(killing, Case)
    done = CliRunner().invoke(app, ["case", "export", "streamtest", killing.id])
    assert done.exit_code == 2
    assert "cannot be a StreamTest of rows in memory" in done.output
