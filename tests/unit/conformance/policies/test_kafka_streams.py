"""Kafka Streams against KStreamWindowAggregateTest: which records find their window expired."""

from conformance.policies.engines import rules_for
from conformance.policies.replay import replay
from conformance.policies.trace import BatchBoundary, Event, Trace


def test_stream_time_moves_before_the_record_is_judged_and_knows_no_batches() -> None:
    trace = Trace((Event(100), Event(1), BatchBoundary()), window=10)
    assert [step.number for step in replay(trace, rules_for("stream-time", {"grace": 0})).late] == [2]
    assert replay(trace, rules_for("spark", {"delay": 0})).late == ()


def test_without_windows_nothing_is_late() -> None:
    assert replay(Trace((Event(100), Event(1))), rules_for("stream-time", {"grace": 0})).late == ()
