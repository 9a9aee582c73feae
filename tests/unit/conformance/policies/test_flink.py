"""Flink's watermarks against BoundedOutOfOrdernessWatermarksTest and WatermarksWithIdlenessTest."""

from __future__ import annotations

import pytest

from conformance.policies.engines import BoundedOutOfOrderness, IdlenessTimer, rules_for
from conformance.policies.replay import replay
from conformance.policies.rules import InvalidParameter, WatermarkPolicy
from conformance.policies.trace import MIN, BatchBoundary, ClockReading, Event, IdlePoll, Trace


@pytest.mark.parametrize(
    ("events", "watermark"),
    [
        pytest.param([], MIN, id="testWatermarkBeforeRecords"),
        pytest.param([1337], 1326, id="testWatermarkAfterEvent"),
        pytest.param([12345, 12300, 12340, 12280], 12334, id="testWatermarkAfterNonMonotonousEvents"),
        pytest.param([723456], 723445, id="testRepeatedProbe"),
    ],
)
def test_the_watermark_of_bound_10(events: list[int], watermark: int) -> None:
    policy: WatermarkPolicy = BoundedOutOfOrderness(10)
    for at in events:
        policy = policy.event(at, 0)
        assert policy.watermark == MIN, "nothing before the periodic emission"
    policy = policy.boundary(0)
    assert policy.watermark == watermark
    assert policy.boundary(0).watermark == watermark


def checks(timer: IdlenessTimer, *steps: int | str) -> list[bool]:
    """What each check finds; a number is a check at that millisecond, ``event`` is activity."""
    found = []
    for step in steps:
        if isinstance(step, str):
            timer = timer.activity()
        else:
            timer, idle = timer.check(step)
            found.append(idle)
    return found


@pytest.mark.parametrize(
    ("timeout", "steps", "idle"),
    [
        pytest.param(10, [0], [False], id="testInitiallyActive"),
        pytest.param(10, [0, 11], [False, True], id="testIdleWithoutEvents"),
        pytest.param(122, [0, 123, 123, 223], [False, True, True, True], id="testRepeatedIdleChecks"),
        pytest.param(10, [0, 11, "event", 11], [False, True, False], id="testActiveAfterIdleness"),
        pytest.param(122, [0, 123, "event", 123, 123, 246], [False, True, False, False, True], id="testIdleActiveIdle"),
        pytest.param(10, [0, 10, 11], [False, False, True], id="strictly more than the timeout"),
        pytest.param(
            10, ["event", 0, 5, 15, 16], [False, False, False, True], id="counts from the first empty emission"
        ),
    ],
)
def test_the_idleness_timer(timeout: int, steps: list[int | str], idle: list[bool]) -> None:
    assert checks(IdlenessTimer(timeout), *steps) == idle


@pytest.mark.parametrize("timeout", [0, -1])
def test_the_timeout_is_positive(timeout: int) -> None:
    """testZeroTimeout, testNegativeTimeout"""
    with pytest.raises(InvalidParameter):
        rules_for("bounded-out-of-orderness", {"bound": 10, "idleTimeout": timeout})


def test_an_idle_input_is_left_out_until_its_next_event() -> None:
    entries = (
        *(ClockReading(0), Event(1000, "a"), Event(500, "b"), BatchBoundary()),
        *(ClockReading(200), Event(1200, "a"), BatchBoundary()),
        *(ClockReading(400), Event(1400, "a"), BatchBoundary()),
        *(ClockReading(401), Event(1500, "b"), Event(1600, "a"), BatchBoundary()),
    )
    replayed = replay(
        Trace(entries, ("a", "b")), rules_for("bounded-out-of-orderness", {"bound": 0, "idleTimeout": 100})
    )
    boundaries = [step for step in replayed.steps if isinstance(step.entry, BatchBoundary)]
    assert [step.downstream for step in boundaries] == [499, 499, 1399, 1499]
    assert [step.idle for step in boundaries] == [(), (), ("b",), ()]


def test_where_all_are_idle_the_watermark_stays() -> None:
    entries = (
        Event(1000, "a"),
        Event(500, "b"),
        IdlePoll(),
        ClockReading(1),
        IdlePoll(),
        ClockReading(102),
        IdlePoll(),
    )
    replayed = replay(
        Trace(entries, ("a", "b")), rules_for("bounded-out-of-orderness", {"bound": 0, "idleTimeout": 100})
    )
    assert replayed.steps[-1].idle == ("a", "b")
    assert replayed.downstream == 499


def test_an_idle_input_with_the_higher_watermark_does_not_lend_it() -> None:
    """Both are idle, ``a`` far ahead. What ``a`` had emitted before counts only once it emits again."""
    entries = (
        *(ClockReading(0), Event(500, "a"), Event(100, "b"), BatchBoundary(), IdlePoll()),
        *(ClockReading(101), IdlePoll(), Event(501, "a"), BatchBoundary()),
    )
    replayed = replay(
        Trace(entries, ("a", "b")), rules_for("bounded-out-of-orderness", {"bound": 0, "idleTimeout": 100})
    )
    assert [step.emitted for step in replayed.steps[-3:]] == [None, None, 500]
    assert [step.idle for step in replayed.steps[-3:]] == [("a", "b"), ("a", "b"), ("b",)]


def test_an_input_is_marked_idle_once_between_two_events() -> None:
    """``isIdleNow`` of ``WatermarksWithIdleness`` outlives an emission without an event, which only a clock that goes back brings."""
    entries = [IdlePoll(), ClockReading(2), IdlePoll(), ClockReading(0), IdlePoll(), ClockReading(2), IdlePoll()]
    trace = Trace((ClockReading(0), *entries))
    replayed = replay(trace, rules_for("bounded-out-of-orderness", {"bound": 0, "idleTimeout": 1}))
    polls = [step.idle for step in replayed.steps if isinstance(step.entry, IdlePoll)]
    assert polls == [(), ("events",), (), ()]


def test_an_event_too_early_for_the_bound_leads_to_no_watermark() -> None:
    """``maxTimestamp`` of ``BoundedOutOfOrdernessWatermarks`` starts so that subtracting the bound cannot overflow."""
    policy = BoundedOutOfOrderness(10)
    assert policy.event(MIN, 0).boundary(0).watermark == MIN
    assert policy.event(MIN + 12, 0).boundary(0).watermark == MIN + 1


@pytest.mark.parametrize(("at", "late"), [(9, True), (10, False)])
def test_an_event_at_the_watermark_is_late(at: int, late: bool) -> None:
    replayed = replay(
        Trace((Event(10), BatchBoundary(), Event(at))), rules_for("bounded-out-of-orderness", {"bound": 0})
    )
    assert replayed.downstream == 9
    assert replayed.steps[-1].late is late


def test_a_window_fires_at_its_last_millisecond() -> None:
    trace = Trace((Event(5), Event(9), BatchBoundary(), Event(10), BatchBoundary(), Event(3)), window=10)
    replayed = replay(trace, rules_for("bounded-out-of-orderness", {"bound": 0}))
    assert {end: step.number for end, step in replayed.completions.items()} == {10: 5}
    assert [step.number for step in replayed.late] == [6]
