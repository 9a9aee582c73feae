"""``transformWithState``: the stateful processors of the suite, the state of their groups, and event-time timers.

Sources: `TransformWithStateInPySparkExec`, `TransformWithStateExecBase`, `UpdateEventTimeColumnExec`; SPARK-46815, SPARK-50387 (timers),
SPARK-47960 (event-time column). The processors are those of ``harness/driver/stateful_processors.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from conformance.core.spark_types import DataType
from conformance.model.columns import BIGINT, STRING, TIMESTAMP, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.groups import Emitted, Group, GroupKey, compared_group, grouped, late_and_fresh
from conformance.model.operators import OperatorContext, OperatorResult, compared_row, is_late
from conformance.model.plan import StatefulProcessor, TimeMode
from conformance.model.progress import TimerCounts

_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class ProcessorState:
    """The state of a processor between micro-batches."""

    has_begun: bool
    """Whether the initial state has been read."""
    values: Mapping[GroupKey, tuple[int, ...]]
    timers: frozenset[tuple[int, GroupKey]]
    """In ms, with the group."""


NO_STATE = ProcessorState(has_begun=False, values={}, timers=frozenset())


class ProcessorHandle:
    """What a processor reads and changes (``StatefulProcessorHandle`` of pyspark), one group at a time.

    Attributes:
        values: group → its state variable.
        timers: in ms, with their group.
    """

    def __init__(self, state: ProcessorState, time_mode: TimeMode) -> None:
        self.values = dict(state.values)
        self.timers = set(state.timers)
        self.updated = 0
        self.removed = 0
        self.registered = 0
        self.deleted = 0
        self._time_mode = time_mode

    def update(self, key: GroupKey, *value: int) -> None:
        self.values[key] = value
        self.updated += 1

    def clear(self, key: GroupKey) -> None:
        self.values.pop(key, None)
        self.removed += 1

    def register_timer(self, at_ms: int, key: GroupKey) -> None:
        """
        Raises:
            Unpredictable: the timer is not of event time.
        """
        if self._time_mode != "EventTime":
            raise Unpredictable(f"a timer with time mode {self._time_mode}")
        self.timers.add((at_ms, key))
        self.registered += 1

    def delete_timer(self, at_ms: int, key: GroupKey) -> None:
        self.timers.discard((at_ms, key))
        self.deleted += 1

    def expired(self, context: OperatorContext) -> list[tuple[int, GroupKey]]:
        """The timers that fire, in the order of their times."""
        fires = context.rules.timer_fires
        return sorted((one for one in self.timers if fires(one[0], context.evicting_ms)), key=lambda one: one[0])


def _add(group: Group, handle: ProcessorHandle, rows: int) -> None:
    """Add rows to the count, and move the timer to their latest event time."""
    latest = group.latest_ms
    count, before = handle.values.get(group.key, (0, None))
    if before is None or latest > before:
        if before is not None:
            handle.delete_timer(before, group.key)
        handle.register_timer(latest, group.key)
        before = latest
    handle.update(group.key, count + rows, before)


def _count_rows(group: Group, handle: ProcessorHandle) -> Emitted:
    _add(group, handle, len(group.rows))
    return iter(())


def _count_initial(group: Group, handle: ProcessorHandle) -> None:
    number = next((one for one in group.columns if one.type.name in _NUMBERS), None)
    counts = [row[number.id] for row in group.rows if row[number.id] is not None] if number is not None else []
    if counts:
        _add(group, handle, int(sum(counts)))


def _emit_count(group: Group, handle: ProcessorHandle, timer_ms: int, watermark_ms: int) -> Emitted:
    count = handle.values[group.key][0]
    handle.clear(group.key)
    yield group.key_text, timer_ms * 1000, count, watermark_ms


def _number(group: Group, handle: ProcessorHandle, back_us: int = 0) -> Emitted:
    (count,) = handle.values.get(group.key, (0,))
    times = sorted(group.times_us, key=lambda time: (time is None, time))
    handle.update(group.key, count + len(times))
    for number, time in enumerate(times, count + 1):
        yield group.key_text, None if time is None else time - back_us, number


@dataclass(frozen=True)
class SuiteProcessor:
    """A stateful processor of the suite, and the columns of its output."""

    emits: tuple[tuple[str, DataType], ...]
    rows: Callable[[Group, ProcessorHandle], Emitted]
    """``handleInputRows``"""
    initial: Callable[[Group, ProcessorHandle], None] | None = None
    """``handleInitialState``; does nothing by default."""
    timer: Callable[[Group, ProcessorHandle, int, int], Emitted] | None = None
    """``handleExpiredTimer``, given the time of the timer and the watermark in ms; None if it registers no timers."""
    expires: bool = False
    """Whether its state has a time to live, which goes by the clock."""


_NUMBERED = (("key", STRING), ("event_time", TIMESTAMP), ("number", BIGINT))

STATEFUL_PROCESSORS: Mapping[str, SuiteProcessor] = {
    "count_until_watermark": SuiteProcessor(
        (("key", STRING), ("event_time", TIMESTAMP), ("count", BIGINT), ("watermark", BIGINT)),
        _count_rows,
        _count_initial,
        _emit_count,
    ),
    "number_rows": SuiteProcessor(_NUMBERED, _number),
    "number_rows_an_hour_back": SuiteProcessor(_NUMBERED, lambda group, handle: _number(group, handle, _HOUR_US)),
    "number_rows_for_a_day": SuiteProcessor(_NUMBERED, _number, expires=True),
    "number_rows_for_a_millisecond": SuiteProcessor(_NUMBERED, _number, expires=True),
}
"""By the name in ``transformWithState: {with: …}``."""


def transform_with_state(
    node: StatefulProcessor,
    rows: Sequence[Row],
    initial: Sequence[Row],
    state: ProcessorState,
    context: OperatorContext,
    used: frozenset[int],
) -> OperatorResult:
    """One micro-batch of ``transformWithState``; ``initial``: the rows of the initial state, ``used``: the output columns used above.

    Raises:
        Refused: a row comes out behind the watermark.
        Unpredictable: the model does not know what the processor does with these columns.
    """
    time, late, fresh = late_and_fresh(rows, node.child.columns, context, node.time_mode == "EventTime")
    if any(None in (row[key.id] for key in node.keys) for row in fresh):
        raise Unpredictable("a null grouping column of transformWithState")
    processor = STATEFUL_PROCESSORS[node.processor]
    if processor.expires:
        raise Unpredictable("state with a time to live, which goes by the clock")
    handle = ProcessorHandle(state, node.time_mode)
    emitted: list[tuple[Value, ...]] = []
    if processor.initial is not None and not state.has_begun:
        for group in _initial_groups(node, initial, context, used):
            processor.initial(group, handle)
    for group in grouped(fresh, node.keys, node.child.columns):
        emitted += processor.rows(group, handle)
    expired = []
    if processor.timer is not None:
        expired = handle.expired(context)
        for timer_ms, key in expired:
            group = Group(node.keys, key, node.child.columns)
            emitted += processor.timer(group, handle, timer_ms, context.evicting_ms)
            handle.delete_timer(timer_ms, key)
    ids = [one.id for one in node.columns]
    rows_out = [dict(zip(ids, values, strict=True)) for values in emitted]
    _check_emitted(node, rows_out, context)
    at = {key: timer_ms for timer_ms, key in handle.timers}
    return OperatorResult(
        rows=rows_out,
        state=ProcessorState(has_begun=True, values=handle.values, timers=frozenset(handle.timers)),
        state_rows=len(handle.values),
        late=tuple(compared_row(row, node.child.columns, time, context.late_ms) for row in late),
        dropped=len(late),
        evicted=tuple(compared_group(node.keys, key, timer_ms, context.evicting_ms) for timer_ms, key in expired),
        updated=handle.updated,
        removed=handle.removed,
        timers=TimerCounts(handle.registered, handle.deleted),
        shown=tuple(compared_group(node.keys, key, at.get(key), context.evicting_ms) for key in handle.values),
    )


def _initial_groups(
    node: StatefulProcessor, rows: Sequence[Row], context: OperatorContext, used: frozenset[int]
) -> Iterator[Group]:
    if node.initial is None:
        return iter(())
    columns = node.initial.plan.columns
    if context.rules.initial_state != "whole" and not {one.id for one in node.columns} <= used:
        columns = tuple(one for one in columns if one in node.initial.keys)
    return grouped(rows, node.initial.keys, columns)


def _check_emitted(node: StatefulProcessor, rows: Sequence[Row], context: OperatorContext) -> None:
    time = node.event_time
    if time is None or context.rules.emitted_rows_may_be_late:
        return
    for row in rows:
        if is_late(row[time.id], time, context.late_ms, context.rules):
            what = f"eventTime={row[time.id]} which is older than current_watermark_value={context.late_ms}"
            raise context.rules.refusal("emitted row behind the watermark", what)
