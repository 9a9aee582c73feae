"""Beam's KafkaIO against CustomTimestampPolicyWithLimitedDelayTest: times are offsets from a now, in milliseconds."""

from __future__ import annotations

import pytest

from conformance.policies.engines import LEAST, LimitedDelay, rules_for
from conformance.policies.replay import replay
from conformance.policies.trace import MIN, BatchBoundary, ClockReading, Event, IdlePoll, Trace

NOW = 1_700_000_000_000
POLICY = LimitedDelay(60_000)
BEHIND = [-200_000, -150_000, -120_000, -140_000, -100_000, -110_000]
AHEAD = [-200_000, -150_000, -120_000, -140_000, 100_000, -100_000, -110_000]


def after(*offsets: int) -> LimitedDelay:
    policy = POLICY
    for offset in offsets:
        policy = policy.event(NOW + offset, NOW)
    return policy


@pytest.mark.parametrize(
    ("policy", "now", "backlog", "checked", "watermark"),
    [
        pytest.param(POLICY, NOW, 100, NOW, LEAST, id="before any record"),
        pytest.param(after(*BEHIND), NOW, 100, NOW, NOW - 100_000 - 60_000, id="(1) highest minus delay"),
        pytest.param(after(*BEHIND, *AHEAD), NOW, 100, NOW, NOW - 60_000, id="(2) capped at now"),
        pytest.param(
            after(*BEHIND, *AHEAD),
            NOW + 300_000,
            0,
            NOW + 290_000,
            NOW + 290_000 - 60_000,
            id="(3) advances when there is no backlog",
        ),
        pytest.param(POLICY, NOW, 0, NOW, LEAST, id="idle and never a record: beam issue 20908"),
    ],
)
def test_limited_delay(policy: LimitedDelay, now: int, backlog: int, checked: int, watermark: int) -> None:
    assert policy.at(now, backlog, checked) == watermark


def test_a_record_within_the_delay_of_the_least_instant_has_no_effect() -> None:
    """``maxEventTimestamp`` starts at ``BoundedWindow.TIMESTAMP_MIN_VALUE`` plus the delay."""
    assert POLICY.event(LEAST + 59_999, NOW).boundary(NOW).watermark == MIN
    assert POLICY.event(LEAST + 60_001, NOW).boundary(NOW).watermark == LEAST + 1


def test_the_watermark_never_goes_back() -> None:
    """A future row capped at now, then the clock set back: the runner keeps what it has."""
    policy = after(100_000).boundary(NOW)
    assert policy.watermark == NOW - 60_000
    assert policy.boundary(NOW - 10_000).watermark == NOW - 60_000


def test_an_idle_partition_follows_the_clock() -> None:
    entries = (
        ClockReading(NOW),
        Event(NOW),
        BatchBoundary(),
        ClockReading(NOW + 60_000),
        IdlePoll(),
        ClockReading(NOW + 60_001),
        IdlePoll(),
    )
    replayed = replay(Trace(entries), rules_for("limited-delay", {"maxDelay": 60_000}))
    assert [step.downstream - NOW for step in replayed.steps[2:]] == [-60_000, -60_000, -60_000, -60_000, 1]


def test_a_window_is_expired_when_the_watermark_has_left_it() -> None:
    trace = Trace((ClockReading(100), Event(5), Event(10), BatchBoundary(), Event(3)), window=10)
    replayed = replay(trace, rules_for("limited-delay", {"maxDelay": 0}))
    assert {end: step.number for end, step in replayed.completions.items()} == {10: 4}
    assert [step.number for step in replayed.late] == [5]
