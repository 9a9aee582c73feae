"""Flink's watermarks against BoundedOutOfOrdernessWatermarksTest and WatermarksWithIdlenessTest."""

import pytest

from conformance.policies.engines import BoundedOutOfOrderness, IdlenessTimer, rules_for
from conformance.policies.replay import replay
from conformance.policies.rules import InvalidParameter
from conformance.policies.trace import MIN, BatchBoundary, ClockReading, Event, IdlePoll, Trace


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
