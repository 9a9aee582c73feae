"""Which rows a delay drops, by one pass over them, against the reference model, which runs the query with each delay."""

from random import Random

import pytest

from conformance.account.account import dropped_rows
from conformance.core.versions import releases
from conformance.language import case_from
from conformance.oracle.prediction import predict
from conformance.own_job.lateness import Lateness, lateness_of, shortest_above, whole

MINUTE = 60_000
QUERIES = {
    "tumbling": (
        {"groupBy": ["window(t, '10 minutes')"], "agg": ["count(*) AS n"]},
        lambda t: t - t % 600_000_000 + 600_000_000,
    ),
    "session": (
        {"groupBy": ["session_window(t, '4 minutes')", "who"], "agg": ["count(*) AS n"]},
        lambda t: t + 240_000_000,
    ),
    "unique": ({"dropDuplicates": ["t", "who"]}, lambda t: t),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("seed", range(3))
def test_the_pass_counts_what_the_model_drops_with_each_delay(name, seed):
    draw = Random(seed)
    operation, end_of = QUERIES[name]
    times = [
        [300 * (4 * step + at) - draw.choice((0, 0, draw.randrange(6000))) for at in range(4)] for step in range(8)
    ]
    times = [[time + 10**6 for time in step] for step in times]
    measured = lateness_of(((at, "a", time * 10**6) for at, step in enumerate(times) for time in step), {"a"}, end_of)
    assert measured.rows == 32
    counts = []
    for delay in (0, 1, 7, 20, 60):
        written = {
            "title": "x",
            "strength": "observed",
            "streams": {"a": "t TIMESTAMP, who STRING"},
            "query": [{"from": "a"}, {"withWatermark": ["t", f"{delay} minutes"]}, operation],
            "steps": [{"add": {"a": [[time, "w"] for time in step]}} for step in times],
        }
        batches = [batch for step in predict(case_from(written, "x"), releases()[-1]).steps for batch in step.batches]
        counts.append(sum(len(dropped_rows(batch)) for batch in batches))
        assert measured.dropped_with(delay * MINUTE) == counts[-1], delay
    shortest = measured.delay_for(1)
    assert measured.dropped_with(shortest) == 0 < counts[0]
    assert measured.dropped_with(shortest - MINUTE) > 0


def test_no_row_is_late_before_each_stream_brought_one():
    rows = [(0, "a", 10**12), (1, "a", 0), (1, "b", 5 * 10**11), (2, "a", 0), (3, "b", 10**12 - 1)]
    measured = lateness_of(rows, {"a", "b"}, lambda time: time)
    # Before a micro-batch of both, none; then the row of b is so late, in whole minutes.
    assert measured.late == {499_980_000: 1}
    assert (measured.rows, measured.ahead_ms) == (5, 0)


def test_time_below_a_millisecond_is_not_late_by_the_rule_of_spark():
    # The watermark is in whole milliseconds: of 12:00:00.0015 it is 12:00:00.001.
    measured = lateness_of([(0, "a", 1500), (1, "a", 1001), (1, "a", 1000)], {"a"}, lambda time: time)
    assert measured.late == {0: 1}


def test_memory_is_bounded_whatever_the_lateness():
    draw = Random(1)
    now = 10**15
    rows = ((at, "a", now - draw.randrange(10**14) if at % 2 else now) for at in range(20_000))
    steps = (MINUTE, 86_400 - 60, 99 * 1440, 10**14 // 86_400 // 10**6)
    measured = lateness_of(rows, {"a"}, lambda time: time)
    assert len(measured.late) < sum(steps)
    assert sum(measured.late.values()) == 19_999


@pytest.mark.parametrize(
    ("late", "share", "shortest"),
    [
        ({}, 1, 0),
        ({0: 1}, 1, 1000),
        ({89_999: 1}, 1, 90_000),
        ({90_000: 1}, 1, 120_000),
        ({1_500_000: 3}, 1, 26 * MINUTE),
        ({60_000: 9, 3_600_000: 1}, 0.999, 61_000),
        ({60_000: 9, 3_600_000: 1}, 1, 61 * MINUTE),
    ],
)
def test_the_shortest_delay_keeps_a_share_of_the_rows(late, share, shortest):
    assert Lateness(1000, late).delay_for(share) == shortest


def test_delays_are_rounded_up_to_what_people_write():
    assert [whole(ms) for ms in (0, 1, 1000, 90_000, 90_001)] == [0, 1000, 1000, 90_000, 120_000]
    assert shortest_above(0) == 1000


@pytest.mark.parametrize(
    ("rows", "late", "outliers"),
    [
        (100, {}, None),
        (100, {60_000: 9, 120_000: 5}, None),
        (100, {60_000: 9, 21 * 1440 * MINUTE: 1}, (1, 61_000, 21 * 1440 * MINUTE + MINUTE)),
        (100, {21 * 1440 * MINUTE: 9}, None),
        (24, {25 * MINUTE: 1}, None),
        (24, {31 * MINUTE: 1}, (1, 0, 32 * MINUTE)),
    ],
)
def test_a_few_rows_far_later_than_all_others_are_named(rows, late, outliers):
    assert Lateness(rows, late).outliers() == outliers
