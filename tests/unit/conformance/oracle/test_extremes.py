"""Extreme windows, gaps, delays and ranges: the model answers with little time and memory, or says what it does not predict."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from conformance.core.versions import SparkVersion
from conformance.language import case_from
from conformance.language.source import InvalidCase
from conformance.model.errors import ModelDefect, Unpredictable
from conformance.oracle.prediction import predict
from tests.support.limits import LIMITED, what_was_exceeded

SECONDS, BYTES = 5, 200 << 20
"""Of the processor, and of new memory: a case of four rows needs a hundredth of either."""
LENGTHS = st.builds(
    "{} {}".format,
    st.sampled_from([1, 2, 999, 1_000_000, 2**31]),
    st.sampled_from(["microseconds", "seconds", "days", "weeks"]),
)
TIMES = st.sampled_from(
    ["12:00", "00:00", "1969-12-31 23:59:59.999999", "2024-02-29 00:00", "9999-12-31 00:00", "0001-01-01 00:00"]
)


def windows(size, slide, start):
    return {"groupBy": [f"window(at, '{size}', '{slide}', '{start}')"], "agg": ["count(*) AS n"]}


def sessions(gap, other, _):
    return {
        "groupBy": [f"session_window(at, CASE WHEN key = 'a' THEN '{gap}' ELSE '{other}' END)", "key"],
        "agg": ["count(*) AS n"],
    }


def ranges(low, high, delay):
    between = f"other_at >= at - INTERVAL {low} AND other_at <= at + INTERVAL {high}"
    other = [{"from": "others"}, {"withWatermark": ["other_at", delay]}]
    return {"join": other, "on": f"key = other_key AND {between}", "how": "leftOuter"}


OPERATIONS = st.builds(
    lambda operation, *lengths: operation(*lengths),
    st.sampled_from([windows, sessions, ranges]),
    LENGTHS,
    LENGTHS,
    LENGTHS,
)


def _predict(written, version):
    try:
        predict(case_from(written, "x"), SparkVersion.parse(version))
    except ModelDefect as defect:  # out of memory, for one
        raise defect.__cause__ or defect from None
    except (InvalidCase, Unpredictable):
        pass


@pytest.mark.skipif(not LIMITED, reason="the system does not say how much memory is taken")
@settings(phases=[Phase.generate])  # a smaller example would take as long again, and again
@given(OPERATIONS, LENGTHS, st.lists(TIMES, min_size=1, max_size=4), st.sampled_from(["3.3.4", "4.3.0"]))
def test_extremes_need_neither_time_nor_memory(operation, delay, times, version):
    written = {
        "title": "t",
        "streams": {"events": "at TIMESTAMP, key STRING", "others": "other_at TIMESTAMP, other_key STRING"},
        "query": [{"from": "events"}, {"withWatermark": ["at", delay]}, operation],
        "steps": [{"add": {"events": [[at, "a"]]}} for at in times],
    }
    if "join" not in operation:
        del written["streams"]["others"]
    assert what_was_exceeded(_predict, written, version, memory=BYTES, seconds=SECONDS) is None
