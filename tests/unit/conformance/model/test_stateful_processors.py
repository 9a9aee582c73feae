"""Stateful processors: what no case under ``cases/arbitrary-state`` shows of their state, timers and initial state."""

import pytest

from conformance.core.versions import SparkVersion
from conformance.model.errors import Refused, Unpredictable
from conformance.model.operators import TimerCounts
from tests.support.group_functions import at, batches, emitted, function, processor, started


def test_timers_fire_in_the_order_of_their_times_and_each_once() -> None:
    query = started(processor("count_until_watermark"))
    assert [row[0] for row in emitted(query, [(13, "a"), (11, "b"), (12, "c")], [(30, "d")])] == ["b", "c", "a"]
    assert emitted(query, [(31, "d")]) == []


def test_state_updates_and_removals_are_counted() -> None:
    first, _, second, third = batches(
        started(processor("count_until_watermark")), [(12, "a"), (12, "b"), (13, "b")], [(22.5, "c")]
    )
    counts = [
        (one.operators[0].updated, one.operators[0].removed, one.operators[0].state_rows)
        for one in (first, second, third)
    ]
    assert counts == [(2, 0, 2), (1, 0, 3), (0, 1, 2)]
    assert [row.time_us for row in third.operators[0].evicted] == [at(12)]
    assert sorted(row.time_us for row in third.operators[0].shown) == [at(13), at(22.5)]


def test_timers_are_counted_as_they_are_registered_and_deleted_and_those_that_fire_as_deleted() -> None:
    query = started(processor("count_until_watermark"))
    found = [
        one.operators[0].timers for one in batches(query, [(12, "a"), (11, "b")], [(14, "a"), (13, "a")], [(22, "c")])
    ]
    registered = [(2, 0), (0, 0), (1, 1), (0, 0), (1, 0), (0, 1)]  # data and no-data micro-batches by turns
    assert found == [TimerCounts(*counts) for counts in registered]


def test_rows_are_numbered_by_event_time_with_nulls_last() -> None:
    query = started(processor("number_rows"))
    expected = [("a", at(11), 1), ("a", at(12), 2), ("a", None, 3), ("a", at(13), 4)]
    assert emitted(query, [(12, "a"), (None, "a"), (11, "a")], [(13, "a")]) == expected


@pytest.mark.parametrize("time_mode", ["None", "ProcessingTime"])
def test_a_timer_needs_event_time_or_a_clock_that_is_known(time_mode) -> None:
    query = started(processor("count_until_watermark", time_mode=time_mode), trigger="once")
    with pytest.raises(Unpredictable, match=r"timer|clock"):
        emitted(query, [(12, "a")])


def test_the_time_of_a_micro_batch_decides_in_processing_time_also_where_it_runs_again() -> None:
    timers = processor("count_until_watermark", time_mode="ProcessingTime")
    query = started(timers, trigger="processingTime")
    query.arrive([{"events": [(at(12), "a"), (at(20), "b")]}])
    first, second = next(query.run(11_999)), next(query.run(12_000))
    assert ([*first.emitted], [row[0] for row in second.emitted]) == ([], ["a"])
    (fired,) = second.operators[0].evicted
    assert fired.time_us is None  # no watermark decided
    again = started(timers, trigger="processingTime", checkpoint=query.checkpoint.without_newest_commit())
    assert [[row[0] for row in next(again.run(99_000)).emitted] for _ in range(2)] == [["a"], ["b"]]


def test_the_watermark_reaches_what_follows_unless_the_time_mode_is_processing_time() -> None:
    for time_mode, watermark_ms in (("EventTime", 10_000), ("None", 10_000), ("ProcessingTime", 0)):
        numbered = processor("number_rows", time_mode=time_mode, event_time="event_time")
        frame = numbered.group_by(["window(event_time, '10 seconds')"], ["count(*) AS n"])
        query = started(frame, trigger="once")
        last = batches(query, [(20, "a")], [(21, "a")])[-1]
        above, below = last.operators
        assert (above.eviction_ms, below.eviction_ms) == (watermark_ms, 10_000)


def test_a_state_function_holds_the_watermark_back() -> None:
    frame = function("count_rows", timeout="NoTimeout").drop_duplicates("key")
    above, below = batches(started(frame), [(20, "a")], [(21, "b")])[-1].operators
    assert (above.eviction_ms, below.eviction_ms) == (0, 10_000)


@pytest.mark.parametrize(
    ("frame", "version", "expected"),
    [
        ("processor", "4.0.5", "STATE_STORE_MULTIPLE_COLUMN_FAMILIES"),
        ("processor", "4.2.1", "STORE_BACKEND_NOT_SUPPORTED_FOR_TWS"),
    ],
)
def test_a_processor_needs_rocksdb(frame, version, expected) -> None:
    query = started(processor("number_rows", SparkVersion.parse(version)), conf={})
    with pytest.raises(Refused) as refused:
        emitted(query, [(12, "a")])
    assert expected in refused.value.classes[0]


INITIAL = """
SELECT * FROM VALUES ('a', 3L, TIMESTAMP'1970-01-01 00:00:11'), ('b', 2L, TIMESTAMP'1970-01-01 00:00:30')
AS known(k, count, latest)"""


def test_an_initial_state_survives_a_restart_and_is_not_read_again() -> None:
    frame = processor("count_until_watermark", initial=INITIAL)
    query = started(frame)
    assert emitted(query, [(21, "c")]) == [("a", at(11), 3, 11_000)]
    again = started(processor("count_until_watermark", initial=INITIAL), checkpoint=query.checkpoint)
    assert emitted(again, [(40, "c")]) == [("b", at(30), 2, 30_000)]


def test_a_processor_without_use_for_it_ignores_its_initial_state() -> None:
    assert emitted(started(processor("number_rows", initial=INITIAL)), [(12, "a")]) == [("a", at(12), 1)]


@pytest.mark.parametrize(("version", "stripped"), [("4.0.5", True), ("4.1.4", False)])
def test_unused_output_stripped_the_initial_state(version, stripped) -> None:
    frame = processor("count_until_watermark", SparkVersion.parse(version), initial=INITIAL)
    assert emitted(started(frame), [(21, "c")]) == [("a", at(11), 3, 11_000)]
    rows = emitted(started(frame.select("key", "count")), [(21, "c")])
    assert rows == ([] if stripped else [("a", 3)])


def test_a_null_count_gives_no_initial_state() -> None:
    initial = "SELECT * FROM VALUES ('a', NULL, TIMESTAMP'1970-01-01 00:00:11') AS known(k, count, latest)"
    assert emitted(started(processor("count_until_watermark", initial=initial)), [(21, "c")]) == []


def test_an_initial_state_has_grouping_columns_of_the_same_types() -> None:
    with pytest.raises(Unpredictable, match="other types"):
        processor("count_until_watermark", initial="SELECT * FROM VALUES (1, 3L) AS known(k, count)")


def test_an_event_time_column_of_another_type_is_not_known() -> None:
    with pytest.raises(Unpredictable, match="not a TIMESTAMP"):
        processor("number_rows", event_time="key")


def test_a_null_grouping_column_of_a_processor_is_not_known() -> None:
    with pytest.raises(Unpredictable, match="null grouping column"):
        emitted(started(processor("number_rows")), [(12, None)])


def test_rows_of_one_group_keep_their_order_for_a_deduplication() -> None:
    frame = processor("number_rows", event_time="event_time").drop_duplicates("key", within_watermark=True)
    assert emitted(started(frame), [(12, "a"), (11, "a"), (13, "b")]) == [("a", at(11), 1), ("b", at(13), 1)]
    mixed = processor("number_rows", event_time="event_time").drop_duplicates("number", within_watermark=True)
    with pytest.raises(Unpredictable, match="which of several rows"):
        emitted(started(mixed), [(12, "a"), (13, "b")])
