"""Hazelcast Jet's four policies against the tables of its own unit tests, and what 0.6 changed.

Sources, all of Hazelcast Jet 0.5: WatermarkPolicies_withFixedLagTest, WatermarkPolicies_limitingLagAndDelayTest,
WatermarkPolicies_limitingLagAndLullTest, WatermarkPolicies_limitingTimestampAndWallClockLag.
"""

import pytest

from conformance.policies.engines import (
    FixedLag,
    LimitingLagAndDelay,
    LimitingLagAndLull,
    LimitingTimestampAndWallClockLag,
    TimestampHistory,
    rules_for,
)
from conformance.policies.rules import InvalidParameter, WatermarkPolicy
from conformance.policies.trace import MIN
from tests.support.java_longs import MAX


def after_events(policy: WatermarkPolicy, events: list[tuple[int, int]], now: int = 0) -> WatermarkPolicy:
    for timestamp, watermark in events:
        policy = policy.event(timestamp, now)
        assert policy.watermark == watermark, timestamp
    return policy


class TestFixedLag:
    @pytest.mark.parametrize(("guarded", "watermark"), [(False, MAX - 2), (True, MIN)])
    def test_an_event_near_the_lowest_time_runs_over_in_0_5_alone(self, guarded: bool, watermark: int) -> None:
        assert FixedLag(10, guarded).event(MIN + 7, 0).watermark == watermark

    def test_the_lag_is_not_negative(self) -> None:
        with pytest.raises(InvalidParameter, match="lag of with-fixed-lag is -1: it must be at least 0"):
            rules_for("with-fixed-lag", {"lag": -1})


LAG_8 = [(10, 2), (9, 2), (8, 2), (7, 2), (11, 3)]
"""when_outOfOrderEvents_then_monotonicWm of limitingLagAndDelay: event → watermark; the current watermark is the same."""


class TestLimitingLagAndDelay:
    POLICY = LimitingLagAndDelay(lag=8, history=TimestampHistory(max_delay=8, samples=8))

    def test_out_of_order_events_leave_it_monotonic(self) -> None:
        policy: WatermarkPolicy = self.POLICY
        for timestamp, watermark in LAG_8:
            policy = policy.event(timestamp, 0)
            assert policy.watermark == watermark
            policy = policy.poll(0)
            assert policy.watermark == watermark

    def test_the_lag_may_be_negative(self) -> None:
        ahead = LimitingLagAndDelay(lag=-5, history=TimestampHistory(max_delay=16, samples=16))
        assert ahead.event(10, 0).watermark == 15


class TestLimitingLagAndLull:
    POLICY = LimitingLagAndLull(lag=2, max_lull=3)

    def test_out_of_order_events_leave_it_monotonic(self) -> None:
        after_events(self.POLICY, [(10, 8), (9, 8), (8, 8), (7, 8), (11, 9)])

    def test_it_overflows_as_java_does(self) -> None:
        """``WatermarkPolicyUtil.limitingLagAndLull``: ``makeWmAtLeast(timestamp - lag)`` and ``advanceWmBy`` check nothing."""
        assert self.POLICY.event(MIN, 0).watermark == MAX - 1
        assert self.POLICY.event(MAX, 0).poll(13).watermark == MIN + 7


class TestLimitingTimestampAndWallClockLag:
    POLICY = LimitingTimestampAndWallClockLag(timestamp_lag=3, wall_clock_lag=10)

    def test_out_of_order_events_leave_it_monotonic(self) -> None:
        after_events(self.POLICY, [(10, 7), (9, 7), (8, 7), (7, 7), (11, 8)], now=-1_000_000)

    @pytest.mark.parametrize(("guarded", "watermark"), [(False, MAX - 1), (True, 90)])
    def test_an_event_near_the_lowest_time_runs_over_in_0_5_alone(self, guarded: bool, watermark: int) -> None:
        policy = LimitingTimestampAndWallClockLag(timestamp_lag=3, wall_clock_lag=10, guarded=guarded)
        assert policy.event(MIN + 1, 100).watermark == watermark
