"""Rules that are wrong on purpose: at least one case of ``cases/policies`` must disagree with each."""

from dataclasses import replace
from typing import Any

import pytest

from conformance.policies import engines, rules
from conformance.policies.case import check
from conformance.policies.trace import MIN
from conformance.suite.discovery import load, shipped

CASES = load([shipped() / "policies"]).policy_cases


def wrong(owner: type, **methods: Any) -> tuple[type, str, Any]:
    """A class, the name of its method, and what that is replaced by."""
    ((name, method),) = methods.items()
    return owner, name, method


WRONG: dict[str, tuple[type, str, Any]] = {
    "spark: a row at the watermark is on time": wrong(
        engines.SparkLateness,
        late=lambda self, at, window, own, downstream: (at if window is None else window) < downstream,
    ),
    "spark: late by the highest event time so far": wrong(
        engines.Quantile,
        event=lambda self, timestamp, now: replace(self, watermark=max(self.watermark, timestamp - self.delay)),
    ),
    "spark: one millisecond more delay": wrong(
        engines.Quantile,
        boundary=lambda self, now: (
            replace(self, watermark=max(self.watermark, max(self.seen) - self.delay - 1), seen=())
            if self.seen
            else self
        ),
    ),
    "spark: starts before the epoch": wrong(engines.SparkCoalescing, initial=property(lambda self: MIN)),
    "spark: the highest of several": wrong(
        engines.SparkCoalescing, combined=lambda self, inputs, before: max(before, *(one.watermark for one in inputs))
    ),
    "quantile: the maximum": wrong(
        engines.Quantile,
        boundary=lambda self, now: (
            replace(self, watermark=max(self.watermark, max(self.seen) - self.delay), seen=()) if self.seen else self
        ),
    ),
    "spark: goes back": wrong(
        engines.Quantile,
        boundary=lambda self, now: replace(self, watermark=max(self.seen) - self.delay, seen=()) if self.seen else self,
    ),
    "jet: an event at the watermark is late": wrong(
        engines.BelowOwnWatermark, late=lambda self, at, window, own, downstream: at <= own
    ),
    "jet: late by what was emitted": wrong(
        engines.BelowOwnWatermark, late=lambda self, at, window, own, downstream: at < downstream
    ),
    "fixed lag: goes back": wrong(
        engines.FixedLag, event=lambda self, timestamp, now: replace(self, watermark=timestamp - self.lag)
    ),
    "lag and delay: no delay": wrong(engines.LimitingLagAndDelay, poll=lambda self, now: self),
    "lag and delay: at once": wrong(
        engines.LimitingLagAndDelay, poll=lambda self, now: replace(self, watermark=max(self.watermark, self.highest))
    ),
    "lag and lull: no lull": wrong(engines.LimitingLagAndLull, poll=lambda self, now: self),
    "lag and lull: jumps to the clock": wrong(
        engines.LimitingLagAndLull, poll=lambda self, now: replace(self, watermark=max(self.watermark, now))
    ),
    "lag and lull: an event does not end the lull": wrong(
        engines.LimitingLagAndLull,
        event=lambda self, timestamp, now: replace(
            self,
            watermark=max(self.watermark, timestamp - self.lag),
            over_at=now + self.max_lull if self.over_at is None else self.over_at,
        ),
    ),
    "wall clock: only where there was an event": wrong(
        engines.LimitingTimestampAndWallClockLag,
        poll=lambda self, now: (
            self if self.watermark == MIN else replace(self, watermark=max(self.watermark, now - self.wall_clock_lag))
        ),
    ),
    "wall clock: not looked at for events": wrong(
        engines.LimitingTimestampAndWallClockLag,
        event=lambda self, timestamp, now: replace(self, watermark=max(self.watermark, timestamp - self.timestamp_lag)),
    ),
    "by min step: strictly more": wrong(
        rules.MinStep, emit=lambda self, current, last: current if current > last + self.step else None
    ),
    "by frame: every watermark": wrong(
        rules.ByFrame, emit=lambda self, current, last: current if current > last else None
    ),
    "by frame: the border in 0.5": wrong(rules.ByFrame, emit=rules.FrameBorder.emit),
    "by frame: the watermark in 0.6": wrong(rules.FrameBorder, emit=rules.ByFrame.emit),
    "several: the highest": wrong(
        rules.Lowest, combined=lambda self, inputs, before: max(before, *(one.watermark for one in inputs))
    ),
    "several: idle ones count": wrong(
        rules.LowestOfActive, combined=lambda self, inputs, before: max(before, min(one.watermark for one in inputs))
    ),
    "several: idle ones are all forgotten": wrong(
        rules.LowestOfActive,
        combined=lambda self, inputs, before: max(
            before, min((one.watermark for one in inputs if not one.idle), default=before)
        ),
    ),
    "jet 0.6: idle a step later": wrong(
        engines.IdleTimeout, idle=lambda self, now: self.timeout > 0 and self.idle_from < now
    ),
    "jet 0.6 and kafka: a window that ends at the watermark is open": wrong(
        rules.LateByWindow, late=lambda self, at, window, own, downstream: window is not None and window < downstream
    ),
    "flink: no millisecond less": wrong(
        engines.BoundedOutOfOrderness,
        boundary=lambda self, now: self if self.highest is None else replace(self, watermark=self.highest - self.bound),
    ),
    "flink: with every event": wrong(
        engines.BoundedOutOfOrderness,
        event=lambda self, timestamp, now: replace(
            self, highest=max(self.highest or timestamp, timestamp), watermark=timestamp - self.bound - 1
        ),
    ),
    "flink: late by the end of the window": wrong(
        engines.FlinkLateness,
        late=lambda self, at, window, own, downstream: (at if window is None else window) <= downstream,
    ),
    "flink: a window fires at its end": wrong(
        engines.FlinkLateness, complete=lambda self, window, downstream: window <= downstream
    ),
    "flink: idle at the timeout": wrong(
        engines.IdlenessTimer,
        check=lambda self, now: (
            (replace(self, active=False, since=None), False)
            if self.active
            else (replace(self, since=now), False)
            if self.since is None
            else (self, now - self.since >= self.timeout)
        ),
    ),
    "beam: no cap": wrong(
        engines.LimitedDelay,
        at=lambda self, now, backlog, checked: MIN if self.highest is None else self.highest - self.max_delay,
    ),
    "beam: follows the clock without a record": wrong(
        engines.LimitedDelay, at=lambda self, now, backlog, checked: now - self.max_delay
    ),
    "beam: goes back": wrong(engines.LimitedDelay, _never_decreasing=lambda self, said: replace(self, watermark=said)),
    "beam: an event at the watermark is late": wrong(
        engines.BeamLateness,
        late=lambda self, at, window, own, downstream: (at if window is None else window - 1) <= downstream,
    ),
    "kafka: stream time goes back": wrong(
        engines.StreamTime, event=lambda self, timestamp, now: replace(self, stream_time=timestamp)
    ),
    "kafka: no grace": wrong(engines.StreamTime, watermark=property(lambda self: self.stream_time)),
}


def disagreeing() -> list[str]:
    return [case.id for case in CASES if check(case)]


@pytest.mark.parametrize("name", WRONG)
def test_a_case_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*WRONG[name])
    assert disagreeing() != []


@pytest.mark.parametrize(
    ("policy", "switched"),
    [("stream-time", {"one_task": False}), ("with-fixed-lag", {"one_source": False})],
    ids=["kafka: each input has its own stream time", "jet 0.6: each partition is throttled by itself"],
)
def test_a_case_disagrees_on_how_inputs_belong_together(
    policy: str, switched: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = engines.rules_of

    def switch(name: str, given: engines.Parameters, throttle: rules.Throttle) -> rules.EngineRules:
        found = right(name, given, throttle)
        return replace(found, **switched) if name == policy else found

    monkeypatch.setattr(engines, "rules_of", switch)
    assert disagreeing() != []
