"""Converts a Spark case to a trace, so that its rows can be replayed under the rules of other engines.

Rows become events, micro-batches become boundaries, and steps without rows become idle polls. Each stream whose watermark has the
delay of the first one becomes an input. A Spark case has no clock, so one is added; the assumptions of the trace say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain

from conformance.core.case import Arrival, Case, Idle, Restart, WrittenRow
from conformance.core.errors import WrongUsage
from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.operations import RowFilter
from conformance.core.spark_types import Schema
from conformance.core.values import canonical
from conformance.core.wording import counted
from conformance.policies.trace import BatchBoundary, ClockReading, Event, IdlePoll, Trace, TraceEntry
from conformance.query import read_query
from conformance.query.reading import QueryReading

LEAST_PACE = 1000
"""Minimum milliseconds between two steps, if the delay is shorter."""


class NoTrace(WrongUsage):
    def __init__(self, case: Case, reason: str) -> None:
        super().__init__(f"{case.id} cannot be replayed under watermark policies: {reason}")


def trace_of(case: Case) -> tuple[Trace, int]:
    """The trace of a case, with event times and clock in milliseconds since the epoch, and the delay of its watermark in ms.

    Raises:
        NoTrace: the query has no ``withWatermark`` with a valid delay on a TIMESTAMP column of a stream.
    """
    reading = read_query(case.query, case.streams)
    # A second watermark on the same rows is refused by new versions of Spark.
    watermarks = {mark.stream: mark for mark in reversed(reading.watermarks) if mark.stream is not None}
    first = next((watermark for watermark in reading.watermarks if watermark.stream is not None), None)
    if first is None and reading.unread:
        raise NoTrace(case, f"nothing is known of {reading.unread[0]}")
    if first is None and reading.watermarks:
        raise NoTrace(case, f"its event time {reading.watermarks[0].column!r} is not a column of a stream")
    if first is None:
        raise NoTrace(case, "its query has no withWatermark")
    read = {name: watermark for name, watermark in watermarks.items() if watermark.delay == first.delay}
    for name, watermark in read.items():
        types = {field.name: field.type.name for field in case.streams[name].fields}
        if types.get(watermark.column) != "timestamp":
            what = "not a column" if watermark.column not in types else "not a TIMESTAMP column"
            raise NoTrace(case, f"its event time {watermark.column!r} is {what} of the stream {name!r}")
    try:
        delay = parse_interval(first.delay).delay_ms
    except NotAnInterval:
        raise NoTrace(case, f"its delay {first.delay!r} is not an interval") from None
    if delay < 0:
        raise NoTrace(case, f"its delay {first.delay!r} is negative")
    inputs = tuple(name for name in case.streams if name in read)
    columns = {name: read[name].column for name in inputs}
    window = _window(reading, first.column)
    pace = max(delay, LEAST_PACE)
    entries = tuple(_entries(case, columns, pace))
    assumptions = tuple(_assumptions(case, reading, columns, window, pace))
    return Trace(entries, inputs, window=window, instants=True, assumptions=assumptions), delay


def _window(reading: QueryReading, column: str) -> int | None:
    """The size of the tumbling windows on the event time, in milliseconds; None if the query has none."""
    sizes = (
        window.length_us // 1000
        for window in reading.windows
        if window.kind == "tumbling" and window.time == column and window.length_us and not window.start_us
    )
    return next(sizes, None) or None


def _entries(case: Case, columns: Mapping[str, str], pace: int) -> Iterator[TraceEntry]:
    now: int | None = None
    for arrivals in _steps(case):
        events = [] if arrivals is None else list(_events(case, arrivals, columns))
        if now is not None:
            now += pace
            yield ClockReading(now)
        elif events:
            now = max(event.at for event in events)
            yield ClockReading(now)
        yield from events
        yield IdlePoll() if arrivals is None else BatchBoundary()


def _steps(case: Case) -> Iterator[Arrival | None]:
    """The arrivals of each micro-batch; None for a poll without new rows."""
    for step in case.steps:
        if isinstance(step.action, Idle):
            yield None
        elif not isinstance(step.action, Restart):
            yield from step.arrivals()


def _events(case: Case, arrivals: Arrival, columns: Mapping[str, str]) -> Iterator[Event]:
    for name, column in columns.items():
        for row in _rows(arrivals, name):
            micros = _event_time(row, case.streams[name], column)
            if micros is not None:
                yield Event(micros // 1000, name)


def _rows(arrivals: Arrival, name: str) -> Iterator[WrittenRow]:
    return chain.from_iterable(arrivals[name].partitions if name in arrivals else ())


def _event_time(row: WrittenRow, schema: Schema, column: str) -> int | None:
    """Microseconds since the epoch; None if the event time is null."""
    at = [field.name for field in schema.fields].index(column)
    micros: int | None = canonical(row, schema.struct)[at]
    return micros


def _assumptions(
    case: Case, reading: QueryReading, columns: Mapping[str, str], window: int | None, pace: int
) -> Iterator[str]:
    yield (
        "A Spark case has no clock: it is assumed to start at the highest event time of the first micro-batch and to "
        f"advance {pace // 1000 if pace % 1000 == 0 else pace / 1000} s per step."
    )
    if left_out := sorted(case.streams.keys() - columns.keys()):
        yield f"Omitted, because they have no watermark with the same delay: {', '.join(left_out)}."
    times = [
        _event_time(row, case.streams[name], column)
        for arrivals in _steps(case)
        for name, column in columns.items()
        for row in _rows(arrivals or {}, name)
    ]
    if None in times:
        yield f"Omitted, because the event time is null: {counted(times.count(None), 'row')}."
    if any(micros is not None and micros % 1000 for micros in times):
        yield "Event times are truncated to milliseconds."
    if any(isinstance(operation, RowFilter) for operation in case.query.walk()):
        yield "Every row counts, including rows that the query filters out."
    if window is None and reading.windows:
        yield "The query has windows other than tumbling ones on the event time: lateness is decided row by row."
    if any(isinstance(step.action, Restart) for step in case.steps):
        yield "Restarts are omitted."
