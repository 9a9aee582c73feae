"""Kafka Streams against KStreamWindowAggregateTest: which records find their window expired."""

from __future__ import annotations

from conformance.policies.engines import rules_for
from conformance.policies.replay import Replay, replay
from conformance.policies.trace import BatchBoundary, Event, Trace


def aggregated(events: list[int], window: int, grace: int) -> Replay:
    return replay(Trace(tuple(Event(at) for at in events), window=window), rules_for("stream-time", {"grace": grace}))


def test_records_of_windows_expired_by_grace_are_skipped() -> None:
    """shouldLogAndMeterWhenSkippingExpiredWindowByGrace: windows of 10 ms, grace 90 ms."""
    replayed = aggregated([200, 100, 101, 102, 103, 104, 105, 6], window=10, grace=90)
    assert [step.entry.at for step in replayed.late if isinstance(step.entry, Event)] == [
        *range(100, 106),
        6,
    ]
    assert {step.downstream for step in replayed.steps} == {110}, "expiration=[110]"
    assert {step.window for step in replayed.late} == {110, 10}
    assert replayed.open == (210,)


def test_a_window_ending_at_the_close_time_is_expired() -> None:
    """Windows of 10 ms, until 100 ms: with no grace but that, [0,10) expires when stream time minus it reaches 10."""
    late = aggregated([100, 0, 5, 9], window=10, grace=90).late
    assert len(late) == 3
    assert aggregated([99, 0, 5, 9], window=10, grace=90).late == ()


def test_stream_time_moves_before_the_record_is_judged_and_knows_no_batches() -> None:
    trace = Trace((Event(100), Event(1), BatchBoundary()), window=10)
    assert [step.number for step in replay(trace, rules_for("stream-time", {"grace": 0})).late] == [2]
    assert replay(trace, rules_for("spark", {"delay": 0})).late == ()


def test_inputs_of_a_task_share_stream_time() -> None:
    trace = Trace((Event(100, "a"), Event(1, "b")), ("a", "b"), window=10)
    assert [step.number for step in replay(trace, rules_for("stream-time", {"grace": 0})).late] == [2]


def test_without_windows_nothing_is_late() -> None:
    assert replay(Trace((Event(100), Event(1))), rules_for("stream-time", {"grace": 0})).late == ()
