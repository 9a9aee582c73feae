"""Intervals, expressions, windows and sessions: the parts below the operators."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.core.intervals import DAY_US, Interval, NotAnInterval, parse_interval
from conformance.core.versions import SparkVersion
from conformance.model.aggregation import Session, merged, windows_of
from conformance.model.catalogue import rules_of
from conformance.model.columns import INT, TIMESTAMP, Attribute
from conformance.model.errors import Refused, Unpredictable
from conformance.model.parsing import parse

NEWEST = rules_of(SparkVersion(4, 3, 0))
SECOND = 1_000_000
T, N = Attribute(1, "t", TIMESTAMP, delay_ms=10), Attribute(2, "n", INT)
INSTANTS = st.integers(-(10**15), 10**15)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10 minutes", Interval(micros=600 * SECOND)),
        ("INTERVAL 1 hour 30 minutes", Interval(micros=5400 * SECOND)),
        ("1 month -30 days", Interval(months=1, days=-30)),
        ("-1 seconds", Interval(micros=-SECOND)),
        ("1.5 seconds", Interval(micros=1_500_000)),
        ("INTERVAL '1 2:3:4' DAY TO SECOND", Interval(days=1, micros=7384 * SECOND, ansi=True)),
        ("INTERVAL '1-2' YEAR TO MONTH", Interval(months=14, ansi=True)),
        ("interval '10' second", Interval(micros=10 * SECOND, ansi=True)),
        ("\tinterval '1' day '2' hours", Interval(days=1, micros=7200 * SECOND, ansi=True)),
        ("INTERVAL '10 minutes'", Interval(micros=600 * SECOND)),
    ],
)
def test_intervals(text, expected) -> None:
    assert parse_interval(text) == expected


@pytest.mark.parametrize("text", ["", "600", "ten minutes", "10", "10 parsecs", "1.5 days", "interval '5' foo"])
def test_invalid_intervals(text) -> None:
    with pytest.raises(NotAnInterval):
        parse_interval(text)


def test_a_month_of_delay_is_31_days_and_less_than_a_millisecond_is_cut() -> None:
    assert parse_interval("1 month").delay_us == 31 * DAY_US
    assert parse_interval("2999 microseconds").delay_ms == 2


def test_a_name_must_be_there_and_mean_one_thing() -> None:
    with pytest.raises(Refused, match="seen_at"):
        parse("seen_at", (T, N), NEWEST)
    with pytest.raises(Unpredictable, match="ambiguous"):
        parse("n", (N, Attribute(4, "N", INT)), NEWEST)


@settings(max_examples=60)
@given(time=INSTANTS, size=st.integers(1, 50), slides=st.integers(1, 5), start=st.integers(0, 30))
def test_a_row_is_in_as_many_windows_as_slides_fit_one(time, size, slides, start) -> None:
    size, slide = size * slides * 1000, size * 1000
    found = list(windows_of(time, size, slide, start * 1000, NEWEST))
    assert len(found) == slides
    assert all(first <= time < last and last - first == size for first, last in found)
    assert [first for first, _ in found] == sorted({first for first, _ in found})
    assert all((first - start * 1000) % slide == 0 for first, _ in found)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=12), st.randoms())
def test_sessions_do_not_depend_on_the_order_of_rows(rows, random) -> None:
    sessions = [Session(start, start + gap, (((start,),),)) for start, gap in rows]
    found = merged(sessions, NEWEST)
    random.shuffle(sessions)
    again = merged(sessions, NEWEST)
    assert [(one.start, one.end, sorted(one.contributions)) for one in found] == [
        (one.start, one.end, sorted(one.contributions)) for one in again
    ]
    assert all(one.end < other.start for one, other in pairwise(found))
    assert sum(len(one.contributions) for one in found) == len(rows)


def test_before_the_epoch_3_3_rounds_towards_zero():
    """SPARK-39347: the tumbling window of a row 25 s before the epoch does not contain it."""
    seconds = 1_000_000
    windows = {
        version: [*windows_of(-25 * seconds, 10 * seconds, 10 * seconds, 0, rules_of(SparkVersion.parse(version)))]
        for version in ("3.2.4", "3.3.4", "3.4.4")
    }
    around, after = [(-30 * seconds, -20 * seconds)], [(-20 * seconds, -10 * seconds)]
    assert windows == {"3.2.4": around, "3.3.4": after, "3.4.4": around}
