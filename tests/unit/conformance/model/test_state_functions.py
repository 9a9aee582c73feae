"""State functions: what no case under ``cases/arbitrary-state`` shows of their state, timeouts and output."""

import pytest

from conformance.core.operations import STATE_FUNCTIONS as FUNCTION_NAMES
from conformance.core.operations import STATEFUL_PROCESSORS as PROCESSOR_NAMES
from conformance.core.versions import SparkVersion
from conformance.model.errors import Refused, Unpredictable
from conformance.model.group_functions import STATE_FUNCTIONS, STATEFUL_PROCESSORS
from conformance.model.plan import operator_title, stateful
from harness.driver import state_functions
from tests.support.group_functions import (
    NO_WATERMARK,
    ROCKSDB,
    at,
    emitted,
    events,
    function,
    processor,
    started,
)


def counted(frame, *keys):
    return frame.group_by([*keys] or ["key"], ["count(*) AS n"])


def ddl(columns):
    return ", ".join(f"{name} {str(kind).upper()}" for name, kind in columns)


def test_the_model_has_the_functions_and_processors_of_the_suite_with_their_columns() -> None:
    assert set(STATE_FUNCTIONS) == set(FUNCTION_NAMES)
    assert set(STATEFUL_PROCESSORS) == set(PROCESSOR_NAMES)
    for name, one in STATE_FUNCTIONS.items():
        assert ddl(one.emits) == state_functions.STATE_FUNCTIONS[name].emits
    for name, one in STATEFUL_PROCESSORS.items():
        assert ddl(one.emits) == state_functions.STATEFUL_PROCESSORS[name].emits


def test_a_group_all_of_whose_rows_are_at_or_behind_the_watermark_is_settled_at_once() -> None:
    query = started(function("count_until_watermark"))
    query.arrive([{"events": [(at(30), "a")]}, {"events": [(at(15), "b"), (at(20), "c"), (at(20.001), "d")]}])
    _, second, *_ = query.run()
    assert sorted(second.emitted) == [("b", 1, 20_000), ("c", 1, 20_000)]
    (operator,) = second.operators
    assert (operator.updated, operator.removed, operator.state_rows) == (1, 2, 2)
    assert (operator.dropped, operator.duplicates, operator.late) == (0, 0, ())


def test_a_null_event_time_counts_as_no_time() -> None:
    query = started(function("count_until_watermark"))
    assert emitted(query, [(None, "a"), (None, "a")]) == [("a", 2, 0)]
    assert emitted(query, [(None, "b"), (11, "b")], [(30, "c")]) == [("b", 2, 20_000)]


def test_the_latest_event_time_is_that_of_all_rows_so_far() -> None:
    query = started(function("count_until_watermark"))
    assert emitted(query, [(18, "a")], [(16, "a")], [(27, "b")]) == []
    assert emitted(query, [(28.001, "b")]) == [("a", 2, 18_001)]


def test_a_timeout_must_be_positive() -> None:
    with pytest.raises(Refused) as refused:
        emitted(started(function("time_out_at_latest")), [(None, "a")])
    assert refused.value.name == "timeout not positive"
    assert emitted(started(function("time_out_at_latest")), [(0.001, "a")]) == []


@pytest.mark.parametrize("timeout", ["NoTimeout", "ProcessingTimeTimeout"])
def test_only_an_event_time_timeout_takes_a_timestamp(timeout) -> None:
    with pytest.raises(Refused) as refused:
        emitted(started(function("time_out_at_latest", timeout=timeout), trigger="once"), [(12, "a")])
    assert refused.value.name == "timestamp of another timeout"


@pytest.mark.parametrize(("version", "days"), [("3.4.3", True), ("3.4.4", False), ("3.5.1", True), ("3.5.2", False)])
def test_a_datetime_was_read_as_days(version, days) -> None:
    # 12 s are day 0; day 3 is 3 ms, which is behind the watermark of no micro-batch before
    name = "count_until_watermark_by_datetime"
    query = started(function(name, SparkVersion.parse(version)))
    if days:
        with pytest.raises(Refused, match="positive"):
            emitted(query, [(12, "a")])
        query = started(function(name, SparkVersion.parse(version)))
        assert emitted(query, [(3 * 86_400 + 5, "a")]) == [("a", 1, (3 * 86_400 - 5) * 1000)]
    else:
        assert emitted(query, [(12, "a")], [(22.001, "b")]) == [("a", 1, 12_001)]


def test_two_null_event_times_reach_the_function() -> None:
    expected = [("a", 1), ("a", 2), ("a", 3), ("b", 1)]
    assert emitted(started(function("count_rows")), [(20, "a")], [(21, "a")], [(None, "a"), (None, "b")]) == expected


@pytest.mark.parametrize(("version", "lost"), [("3.4.0", True), ("3.4.1", True), ("3.4.2", False), ("3.5.0", False)])
def test_rows_with_null_in_the_first_column_were_lost(version, lost) -> None:
    rows = emitted(started(function("count_rows", SparkVersion.parse(version), timeout="NoTimeout")), [(1, None)])
    assert rows == ([] if lost else [(None, 1)])


def test_a_null_key_is_the_text_none() -> None:
    assert emitted(started(function("count_until_watermark")), [(None, None)]) == [("None", 1, 0)]


def test_the_key_is_the_text_of_the_first_grouping_column() -> None:
    whole = events(schema="t TIMESTAMP, k INT")
    assert emitted(started(function("count_until_watermark", frame=whole)), [(None, 7)]) == [("7", 1, 0)]
    for schema, value in (("t TIMESTAMP, k INT", None), ("t TIMESTAMP, k DOUBLE", 1.0)):
        with pytest.raises(Unpredictable, match="grouping column"):
            emitted(started(function("count_until_watermark", frame=events(schema=schema))), [(None, value)])
    with pytest.raises(Unpredictable, match="not a string"):
        emitted(started(function("count_rows", frame=whole)), [(1, 7)])


def test_the_event_time_is_the_first_timestamp_column() -> None:
    frame = events(schema="t TIMESTAMP, k STRING").with_column("u", "t + INTERVAL 5 SECONDS")
    counted = function("count_until_watermark", frame=frame.select("k", "u", "t"))
    assert emitted(started(counted), [(10, "a")], [(21, "b")]) == []
    assert emitted(started(counted), [(10, "a")], [(25.001, "b")]) == [("a", 1, 15_001)]
    without = function("count_until_watermark", frame=events(delay=NO_WATERMARK).select("k"), timeout="NoTimeout")
    with pytest.raises(Unpredictable, match="without a TIMESTAMP column"):
        emitted(started(without), [(1, "a")])


def test_an_operator_is_named_after_its_function() -> None:
    (node,) = stateful(function("count_rows").plan)
    assert operator_title(node) == "state function count_rows by k"
    (node,) = stateful(processor("number_rows").plan)
    assert operator_title(node) == "stateful processor number_rows by k"


@pytest.mark.parametrize(
    ("frame", "mode", "name"),
    [
        (function("count_rows", mode="update"), "append", "state function in another mode"),
        (function("count_rows"), "update", "state function in another mode"),
        (
            function("count_rows", frame=function("count_rows", frame=events()).with_column("k", "key")),
            "append",
            "several state functions",
        ),
        (function("count_rows", frame=events(delay=NO_WATERMARK)), "append", "event-time timeout without watermark"),
        (
            counted(function("count_rows", mode="update", timeout="NoTimeout")),
            "update",
            "update function with an aggregation",
        ),
        (counted(function("count_rows")), "append", "append without watermark"),
        (counted(function("count_rows")), "update", "stateful after event-time timeout"),
        (counted(processor("number_rows")), "append", "append without watermark"),
    ],
)
def test_what_is_refused_at_the_start(frame, mode, name) -> None:
    with pytest.raises(Refused) as refused:
        started(frame, mode)
    assert (refused.value.name, refused.value.stage) == (name, "start")


@pytest.mark.parametrize(
    ("frame", "mode", "trigger", "conf", "construct"),
    [
        (function("count_rows", timeout="ProcessingTimeTimeout"), "append", "default", {}, "without end"),
        (processor("number_rows", time_mode="ProcessingTime"), "append", "availableNow", ROCKSDB, "without end"),
        (processor("number_rows", mode="update"), "append", "default", ROCKSDB, "another output mode"),
        (function("count_rows"), "append", "default", {"spark.sql.session.timeZone": "Asia/Kathmandu"}, "time zone"),
        (function("count_rows", frame=counted(events(), "t", "k")), "append", "default", {}, "after an aggregation"),
    ],
)
def test_what_the_model_does_not_know(frame, mode, trigger, conf, construct) -> None:
    with pytest.raises(Unpredictable, match=construct):
        started(frame, mode, trigger, conf)


def test_the_functions_came_with_3_4_and_the_processors_with_4_0() -> None:
    for make, version in ((function, "3.3.4"), (processor, "3.5.9")):
        with pytest.raises(Refused) as refused:
            make("count_until_watermark", SparkVersion.parse(version))
        assert (refused.value.name, refused.value.stage) == ("missing feature", "analysis")


def test_a_function_groups_by_columns() -> None:
    with pytest.raises(Refused, match="nobody"):
        function("count_rows", by=["nobody"])
