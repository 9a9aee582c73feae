"""What commands show of policies: tables, JSON, and how a policy behaves in general.

The traces that show how a policy behaves in general are scaled to a delay, so that policies with the same delay can be compared.

A Spark case becomes a trace: rows become events, micro-batches boundaries, and steps without rows idle polls. Each stream whose watermark
has the delay of the first one becomes an input. A Spark case has no clock, so one is added; the assumptions of the trace say so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from conformance.core.case import Arrival, Case, Idle, Restart, WrittenRow
from conformance.core.errors import WrongUsage
from conformance.core.intervals import NotAnInterval, parse_interval
from conformance.core.operations import RowFilter
from conformance.core.spark_types import Schema
from conformance.core.values import canonical
from conformance.core.wording import counted
from conformance.policies.case import PolicyCase, PolicyMismatch
from conformance.policies.engines import POLICIES, comparable, delay_of
from conformance.policies.replay import Replay, as_expectation, replay
from conformance.policies.rules import EngineRules
from conformance.policies.trace import BatchBoundary, ClockReading, Event, IdlePoll, Trace, TraceEntry
from conformance.query import read_query
from conformance.query.reading import QueryReading

_STEPS = 20
_ROWS = 20
"""Rows per micro-batch: enough that a quantile ignores one of them."""


def in_general(rules: EngineRules) -> tuple[str, str, str]:
    """What happens when one of two inputs falls silent, when it never had an event, and after one row from the far future."""
    unit = max(delay_of(rules), 1)  # how long the policy waits, in milliseconds
    return _silent_input(rules, unit, spoke=True), _silent_input(rules, unit, spoke=False), _far_future_row(rules, unit)


def _silent_input(rules: EngineRules, unit: int, *, spoke: bool) -> str:
    """What happens to the watermark when one of two inputs is silent: one that ``spoke`` before, or one that never did."""
    base = 1000 * unit
    entries: list[TraceEntry] = [ClockReading(base), Event(base, "on"), BatchBoundary(), IdlePoll("off")]
    if spoke:
        entries.insert(2, Event(base, "off"))
    for step in range(1, _STEPS + 1):
        now = base + step * unit
        entries += [ClockReading(now), Event(now, "on"), BatchBoundary(), IdlePoll("off")]
    replayed = replay(Trace(tuple(entries), ("on", "off")), rules)
    last = replayed.steps[-1]
    if last.downstream >= last.watermarks["on"] - 2 * unit:
        if rules.one_task:
            return "not waited for"
        return "left out" if "off" in last.idle else "follows the clock"
    first = next(step for step in replayed.steps if isinstance(step.entry, IdlePoll))
    if last.watermarks["off"] > first.watermarks["off"]:
        return "waited for, at its last event"
    return "waited for"


def _far_future_row(rules: EngineRules, unit: int) -> str:
    """How many rows are late after one row from the far future, if event times otherwise follow the clock."""
    base = 1000 * unit
    entries: list[TraceEntry] = []
    for step in range(6):
        now = base + step * unit
        entries.append(ClockReading(now))
        entries += [Event(now - row * unit // (2 * _ROWS)) for row in range(_ROWS)]
        if step == 3:
            entries.append(Event(base + 1_000_000 * unit))
        entries.append(BatchBoundary())
    replayed = replay(Trace(tuple(entries), window=unit), rules)
    after = [step for step in replayed.steps if isinstance(step.entry, Event) and step.now > base + 3 * unit]
    late = sum(bool(step.late) for step in after)
    if not late:
        return "no later row is late"
    return "all later rows are late" if late == len(after) else f"{late} of {len(after)} later rows are late"


def record(replayed: Replay) -> dict[str, Any]:
    rules = replayed.rules
    return {
        "policy": rules.name,
        "engine": rules.engine,
        "parameters": {
            name: value if isinstance(value, int | str) else float(value) for name, value in rules.parameters.items()
        },
        "assumptions": list(replayed.trace.assumptions),
        "moments": [
            {
                "number": step.number,
                "entry": replayed.trace.format_entry(step.entry),
                "clock": step.now,
                **{key: list(val) if isinstance(val, tuple) else val for key, val in as_expectation(step).items()},
            }
            for step in replayed.steps
        ],
        "failure": replayed.failure,
        "late": [step.number for step in replayed.late],
        "windows": {str(end): step.number for end, step in replayed.completions.items()},
        "open": list(replayed.open),
        "inGeneral": dict(
            zip(("anInputFallsSilent", "anInputNeverSpeaks", "oneFarFutureRow"), in_general(rules), strict=True)
        ),
    }


def record_of(case: PolicyCase, mismatch: PolicyMismatch) -> dict[str, Any]:
    return {
        "case": case.id,
        "path": str(case.path),
        "line": mismatch.line,
        "step": mismatch.step,
        "key": mismatch.key,
        "expected": mismatch.expected,
        "read": mismatch.actual,
    }


def record_of_policies() -> list[dict[str, Any]]:
    return [
        {
            "policy": name,
            "engine": policy.engine,
            "meaning": policy.meaning,
            "source": policy.source,
            "parameters": {key: parameter.meaning for key, parameter in policy.parameters.items()},
        }
        for name, policy in POLICIES.items()
    ]


ALL = "all"
SHOWN = 8
"""How many late events or windows a cell lists before it only counts them."""


def renderables(replays: Sequence[Replay]) -> Iterator[Group | Table | Text]:
    """For a rich console: the steps of the only replay, or a comparison of several of one trace, and what was assumed."""
    if len(replays) == 1:
        yield _steps_table(replays[0])
    else:
        yield from _comparison_tables(replays)
    for assumption in replays[0].trace.assumptions:
        yield Text(assumption, style="dim")


def replays_of(case: Case | PolicyCase, policy: str | None = None) -> tuple[Replay, ...]:
    """Replay a case under watermark policies.

    Args:
        policy: a key of ``POLICIES``, or ``all``; by default the case's own policy, ``spark`` for a Spark case. Other policies
            get the same delay as the case's own.

    Raises:
        NoTrace: the case cannot be converted to a trace.
        WrongUsage: no policy has that name.
    """
    if isinstance(case, Case):
        trace, delay = trace_of(case)
        own = comparable("spark", delay)
    else:
        trace, own = case.trace, case.rules
        delay = max(0, delay_of(own))
    wanted = policy or own.name
    names = POLICIES if wanted == ALL else (wanted,)
    rules = (own if name == own.name else comparable(name, delay) for name in names)
    return tuple(replay(trace, engine_rules) for engine_rules in rules)


def _steps_table(replayed: Replay) -> Group:
    """One line per trace entry; clock readings become a column."""
    trace = replayed.trace
    has_clock = any(isinstance(entry, ClockReading) for entry in trace.entries)
    columns = ["entry", *(["clock"] if has_clock else []), "watermark", "downstream", "late", "windows complete"]
    table = _table(columns if trace.window else columns[:-1])
    for step in replayed.steps:
        if isinstance(step.entry, ClockReading):
            continue
        cells = [
            f"{step.number} {trace.format_entry(step.entry)}",
            *([trace.format_clock(step.now)] if has_clock else []),
            trace.format_times(step.watermarks) + (f" (idle: {', '.join(step.idle)})" if step.idle else ""),
            ("" if step.emitted is None else "→ ") + trace.format_time(step.downstream),
            "late" if step.late else "",
            ", ".join(f"until {trace.format_time(end)}" for end in step.closed),
        ]
        table.add_row(*(cells if trace.window else cells[:-1]))
    # Not the table's title: rich would wrap that at the width of the columns.
    parts: list[Table | Text] = [Text(f"{replayed.rules}: {replayed.rules.engine}", style="italic"), table]
    if replayed.failure is not None:
        parts.append(Text(f"the engine ends at entry {len(replayed.steps) + 1}: {replayed.failure}", style="red"))
    return Group(*parts)


def _comparison_tables(replays: Sequence[Replay]) -> Iterator[Table]:
    """One trace under several policies: the result on this trace, and what each policy does in general."""
    here = _table(("policy", "late", "windows complete (at entry)", "final watermark"), "on this trace")
    for replayed in replays:
        windows = _windows(replayed) if replayed.trace.window else "no windows"
        last = replayed.trace.format_time(replayed.downstream)
        here.add_row(replayed.rules.name, _late_events(replayed), windows, last)
    yield here
    general = _table(
        ("policy", "engine", "input goes silent", "input was always silent", "one far-future row"), "in general"
    )
    for replayed in replays:
        general.add_row(replayed.rules.name, replayed.rules.engine, *in_general(replayed.rules))
    yield general


def _late_events(replayed: Replay) -> str:
    """``2 of 5: 12:01, 12:03``: the late events, in order of arrival."""
    late = [step.entry for step in replayed.late if isinstance(step.entry, Event)]
    events = sum(isinstance(entry, Event) for entry in replayed.trace.entries)
    named = ", ".join(replayed.trace.format_time(event.at) for event in late[:SHOWN])
    more = f" and {len(late) - SHOWN} more" if len(late) > SHOWN else ""
    return f"{len(late)} of {events}{': ' * bool(late)}{named}{more}"


def _windows(replayed: Replay) -> str:
    """``until 12:10 (4); open: 12:40``: the windows that have events, by their end, each with the entry that completed it."""
    times = replayed.trace.format_time
    closed = [(step.number, end) for end, step in sorted(replayed.completions.items(), key=lambda pair: pair[1].number)]
    parts = [
        f"until {', '.join(times(end) for _, end in together)} ({number})"
        for number, together in groupby(closed, key=lambda pair: pair[0])
    ]
    if replayed.open:
        parts.append(f"open: {', '.join(times(end) for end in replayed.open)}")
    more = len(parts) - SHOWN
    return "; ".join(parts[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def policies_lines() -> Iterator[Text]:
    """Yield each policy: its engine, what its watermark is, its parameters."""
    for name, policy in POLICIES.items():
        what = f" ({policy.engine}): {policy.meaning} Parameters: {', '.join(policy.parameters)}"
        yield Text.assemble((name, "bold"), what)


def _table(columns: Iterable[str], title: str | None = None) -> Table:
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, name in enumerate(columns):
        table.add_column(name, overflow="fold", no_wrap=not number)
    return table


LEAST_PACE = 1000
"""Minimum milliseconds between two steps, if the delay is shorter."""


class NoTrace(WrongUsage):
    def __init__(self, case: Case, reason: str) -> None:
        super().__init__(f"{case.id} cannot be replayed under watermark policies: {reason}")


def trace_of(case: Case) -> tuple[Trace, int]:
    """The trace of a case, with event times and clock in milliseconds since the epoch, and the delay of its watermark in ms.

    Raises NoTrace: the query has no ``withWatermark`` with a valid delay on a TIMESTAMP column of a stream.
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
