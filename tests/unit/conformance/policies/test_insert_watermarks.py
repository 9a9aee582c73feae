"""Whole traces through Hazelcast Jet: the tables of InsertWatermarksPTest (0.5 and 0.6) and of EventTimeMapperTest (0.6 on).

An entry of a table is an event; what comes out is each watermark as ``wm(n)`` and each event that is not dropped, in order.
"""

from typing import Any

import pytest

from conformance.policies.engines import rules_for
from conformance.policies.replay import Replay, replay
from conformance.policies.trace import ClockReading, Event, IdlePoll, Trace, TraceEntry
from tests.support.java_longs import MAX


def wm(watermark: int) -> str:
    return f"wm({watermark})"


def output(replayed: Replay) -> list[Any]:
    found: list[Any] = []
    for step in replayed.steps:
        if step.emitted is not None:
            found.append(wm(step.emitted))
        if isinstance(step.entry, Event) and not step.late:
            found.append(step.entry.at)
    return found


FRAME_2 = ("emit-by-frame", {"frame": 2})
FRAME_10 = ("emit-by-frame", {"frame": 10})
STEP_2 = ("emit-by-min-step", {"step": 2})
LAG_3 = {"lag": 3}

TABLES: list[tuple[str, str, Any, Any, list[int], list[Any]]] = [
    ("when_manyEvents_then_oneWm", "both", LAG_3, None, [10, 10], [wm(7), 10, 10]),
    ("when_eventsIncrease_then_wmIncreases", "both", LAG_3, None, [10, 11], [wm(7), 10, wm(8), 11]),
    ("when_eventsDecrease_then_oneWm", "both", LAG_3, None, [11, 10], [wm(8), 11, 10]),
    ("when_lateEvent_then_dropped", "0.5", LAG_3, None, [11, 7], [wm(8), 11]),
    ("when_lateEvent_then_notDropped", "0.6", LAG_3, None, [11, 7], [wm(8), 11, 7]),
    ("when_gapBetweenEvents_then_oneWm", "both", LAG_3, None, [10, 13], [wm(7), 10, wm(10), 13]),
    ("when_zeroLag", "both", {"lag": 0}, None, [10, 13], [wm(10), 10, wm(13), 13]),
    ("emitByFrame increases", "0.5", LAG_3, FRAME_2, [10, 11, 12, 13], [wm(7), 10, wm(8), 11, 12, wm(10), 13]),
    ("emitByFrame increases", "0.6", LAG_3, FRAME_2, [10, 11, 12, 13], [wm(6), 10, wm(8), 11, 12, wm(10), 13]),
    ("emitByFrame at verge", "both", LAG_3, FRAME_2, [11, 12, 13, 14], [wm(8), 11, 12, wm(10), 13, 14]),
    ("emitByFrame not at verge", "0.6", LAG_3, FRAME_10, [14, 15, 24], [wm(10), 14, 15, wm(20), 24]),
    ("emitByFrame gap", "both", LAG_3, FRAME_2, [11, 15], [wm(8), 11, wm(12), 15]),
    ("emitByMinStep increases", "both", LAG_3, STEP_2, [11, 12, 13, 14], [wm(8), 11, 12, wm(10), 13, 14]),
    ("emitByMinStep gap", "both", LAG_3, STEP_2, [10, 15, 20], [wm(7), 10, wm(12), 15, wm(17), 20]),
]


@pytest.mark.parametrize(
    ("release", "given", "throttle", "events", "expected"),
    [
        pytest.param(release, given, throttle, events, expected, id=f"{name} in {release}")
        for name, releases, given, throttle, events, expected in TABLES
        for release in (["0.5", "0.6"] if releases == "both" else [releases])
    ],
)
def test_insert_watermarks(release: str, given: Any, throttle: Any, events: list[int], expected: list[Any]) -> None:
    rules = rules_for("with-fixed-lag", {**given, "release": f"jet-{release}"}, throttle)
    assert output(replay(Trace(tuple(Event(at) for at in events)), rules)) == expected


@pytest.mark.parametrize(("release", "failure"), [("0.5", "watermarks do not increase: 10 after 10"), ("0.6", None)])
def test_a_step_that_overflows_ends_a_job_of_0_5(release: str, failure: str | None) -> None:
    """``ConcurrentInboundEdgeStream.observeWm`` of 0.5: "Watermarks not monotonically increasing on queue"."""
    rules = rules_for("with-fixed-lag", {"lag": 0, "release": f"jet-{release}"}, ("emit-by-min-step", {"step": MAX}))
    replayed = replay(Trace((Event(10), Event(10), Event(11))), rules)
    assert replayed.failure == failure
    assert [step.emitted for step in replayed.steps] == ([10] if failure else [10, None, 11])


def partitions(
    entries: list[TraceEntry], inputs: int, timeout: int, lag: int = 3
) -> list[tuple[int | None, tuple[str, ...]]]:
    """What is emitted and which partitions are idle, entry by entry; the clock starts at 0."""
    names = tuple(f"p{number}" for number in range(inputs))
    given = {"lag": lag, "release": "jet-0.6", "idleTimeout": timeout}
    steps = replay(Trace((ClockReading(0), *entries), names), rules_for("with-fixed-lag", given)).steps[1:]
    return [(step.emitted, step.idle) for step in steps if not isinstance(step.entry, ClockReading)]


class TestPartitions:
    """EventTimeMapperTest, lag 3; IDLE_MESSAGE shows as all partitions being idle."""

    def test_smoke_with_the_timeout_off(self) -> None:
        events = (10, "p0"), (11, "p0"), (10, "p1"), (11, "p1"), (12, "p1"), (13, "p0")
        entries: list[TraceEntry] = [IdlePoll(), *(Event(*event) for event in events)]
        emitted = [None, None, None, 7, 8, None, 9]
        assert partitions(entries, 2, timeout=0) == [(one, ()) for one in emitted]

    def test_idle_event_idle(self) -> None:
        once: list[TraceEntry] = [Event(10, "p0"), ClockReading(10), IdlePoll()]
        entries = [*once, Event(10, "p0"), IdlePoll(), ClockReading(20), IdlePoll()]
        alone = ("p0",)
        assert partitions(entries, 1, timeout=10) == [(7, ()), (None, alone), (None, ()), (None, ()), (None, alone)]

    def test_three_partitions_of_which_one_falls_idle(self) -> None:
        """when_threePartitions_laggingOneRemoved_secondLaggingOneIdle_then_noWmForwarded, without the removal"""
        entries = [Event(10, "p0"), ClockReading(1), Event(11, "p1"), Event(12, "p2"), ClockReading(5), IdlePoll()]
        assert partitions(entries, 3, timeout=5, lag=0) == [(None, ()), (None, ()), (10, ()), (11, ("p0",))]


def test_the_idle_timeout_is_milliseconds_under_every_policy() -> None:
    """``WatermarkGenerationParams.idleTimeoutMillis``; the policy of the lag and delay alone reads the clock in nanoseconds."""
    given = {"lag": 0, "maxDelay": 10**9, "release": "jet-0.6", "idleTimeout": 5}
    entries = (ClockReading(0), Event(10, "a"), ClockReading(4), IdlePoll(), ClockReading(5), IdlePoll())
    replayed = replay(Trace(entries, ("a", "b")), rules_for("limiting-lag-and-delay", given))
    assert [step.idle for step in replayed.steps if isinstance(step.entry, IdlePoll)] == [(), ("a", "b")]
