"""Which entries call a feature unsupported without an error that would show it."""

import pytest

from conformance.language import read_case
from conformance.oracle.unstated import unstated_errors

CASE = """\
title: A title
streams: {events: event_time TIMESTAMP}
query:
  - from: events
  - withWatermark: [event_time, 10 minutes]
  - OPERATION
steps:
  - start: {}
differs:
  - spark: "<3.5"
    unsupported: it arrived in 3.5
    link: SPARK-42931
"""
WITHIN = "dropDuplicatesWithinWatermark: [event_time]"


def found(tmp_path, operation, more=""):
    file = tmp_path / "x.yaml"
    file.write_text(CASE.replace("OPERATION", operation) + more)
    return [*unstated_errors([read_case(file, "x")])]


def test_a_version_that_has_every_method_is_named_with_what_it_does(tmp_path):
    (warned,) = found(tmp_path, "dropDuplicates: [event_time]")
    assert (warned.path, warned.line) == (tmp_path / "x.yaml", 10)
    assert warned.message.startswith("without `error`, `unsupported` means that a method is missing, and on 3.4.")
    assert "none is (it runs): add `error: {class, message}`" in warned.message


def test_another_error_is_named(tmp_path):
    (warned,) = found(tmp_path, "dropDuplicates: [event_time]", "outputMode: complete\n")
    assert "none is (AnalysisException at start)" in warned.message


@pytest.mark.parametrize(
    ("operation", "more"),
    [(WITHIN, ""), ("dropDuplicates: [event_time]", "    error: {class: ParseException, message: x}\n")],
    ids=["the method is missing", "the error is named"],
)
def test_nothing_is_said(tmp_path, operation, more):
    assert found(tmp_path, operation, more) == []
