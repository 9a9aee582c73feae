"""``applyInPandasWithState`` and ``transformWithState``: the functions and processors of the suite, the state of a group, event-time
timeouts and timers.

Sources: `FlatMapGroupsInPandasWithStateExec`, `FlatMapGroupsWithStateExecBase`, `PandasGroupUtils`, ``pyspark.sql.streaming.state``;
SPARK-20714 (timeouts), SPARK-40434; `TransformWithStateInPySparkExec`, `TransformWithStateExecBase`, `UpdateEventTimeColumnExec`;
SPARK-46815, SPARK-50387 (timers), SPARK-47960 (event-time column). The functions and processors are those of
``harness/driver/state_functions.py``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from conformance.core.operations import Timeout
from conformance.core.spark_types import DataType, Field
from conformance.model.columns import BIGINT, INT, STRING, TIMESTAMP, Attribute, Ids, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.functions import WHOLE
from conformance.model.lateness import compared_row, event_time_among, is_late, late_and_fresh
from conformance.model.operators import ComparedRow, OperatorContext, OperatorResult, TimerCounts
from conformance.model.plan import LocalRelation, StatefulProcessor, StateFunction

GroupKey = tuple[Value, ...]
"""The values of the grouping columns."""

EmittedRows = Iterator[tuple[Value, ...]]
"""The rows that a function or a processor emits, values in the order of its columns."""


@dataclass(frozen=True)
class Group:
    """The rows of a group in a micro-batch; none if it is called for a timeout or a timer."""

    keys: tuple[Attribute, ...]
    key: GroupKey
    columns: tuple[Attribute, ...]
    rows: tuple[Row, ...] = ()

    @property
    def key_text(self) -> str:
        """The first grouping column in the notation of Python and pandas, ``None`` if it is null."""
        kind, value = self.keys[0].type.name, self.key[0]
        if kind == "string" or (kind in WHOLE and value is not None):
            return str(value)
        raise Unpredictable(f"the text of a grouping column of type {self.keys[0].type}")

    @property
    def times_us(self) -> tuple[int | None, ...]:
        """The event time of each row: its first TIMESTAMP column."""
        column = next((column for column in self.columns if column.type.name in ("timestamp", "timestamp_ntz")), None)
        if column is None:
            raise Unpredictable("a function over groups without a TIMESTAMP column")
        return tuple(row[column.id] for row in self.rows)

    @property
    def latest_ms(self) -> int:
        """The latest event time in ms; 0 if all are null."""
        return max((time // 1000 for time in self.times_us if time is not None), default=0)


def _grouped(rows: Iterable[Row], keys: Sequence[Attribute], columns: tuple[Attribute, ...]) -> Iterator[Group]:
    """The groups that have rows. Null is a key like any other."""
    groups: dict[GroupKey, list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key.id] for key in keys), []).append(row)
    return (Group(tuple(keys), key, columns, tuple(of_key)) for key, of_key in groups.items())


def input_by_lateness(
    rows: Sequence[Row], columns: Sequence[Attribute], context: OperatorContext, uses_event_time: bool
) -> tuple[Attribute | None, list[Row], list[Row]]:
    """The event-time column of the input, the rows that are late for it, and the others.

    ``uses_event_time``: whether the timeout or the time mode of the operator is event time.
    """
    time = event_time_among(columns, context.rules)
    which = context.rules.functions_drop_late_rows
    drops = {"by event time only": uses_event_time, "always": True, "never": False}[which]
    return time, *late_and_fresh(rows, time if drops else None, context)


def compared_group(
    node: StateFunction | StatefulProcessor, key: GroupKey, at_ms: int | None, watermark_ms: int
) -> ComparedRow:
    """A group with its timeout or timer, if the watermark decides on it, for display."""
    by_watermark = "EventTime" in (node.timeout if isinstance(node, StateFunction) else node.time_mode)
    what = tuple((column.name, column.type, value) for column, value in zip(node.keys, key, strict=True))
    return ComparedRow(what, at_ms * 1000 if by_watermark and at_ms is not None else None, watermark_ms)


@dataclass(frozen=True)
class KeptState:
    """The state of a group between calls."""

    value: tuple[int, ...]
    timeout_ms: int | None


KeptStates = Mapping[GroupKey, KeptState]


@dataclass
class GroupState:
    """The state of a group during one call (``GroupState`` of pyspark); the watermark is None if the input has none."""

    value: tuple[int, ...] | None
    has_timed_out: bool
    _watermark_ms: int | None
    _timeout: Timeout
    _context: OperatorContext
    is_written: bool = False
    is_removed: bool = False
    _timeout_ms: int | None = None

    def update(self, *value: int) -> None:
        self.value, self.is_written, self.is_removed = value, True, False

    def remove(self) -> None:
        self.value, self.is_written, self.is_removed = None, False, True

    @property
    def watermark_ms(self) -> int:
        if self._watermark_ms is None:
            raise self._context.rules.refusal("no watermark to read")
        return self._watermark_ms

    def set_timeout(self, at_ms: int) -> None:
        rules = self._context.rules
        if self._timeout != "EventTimeTimeout":
            raise rules.refusal("timestamp of another timeout")
        if at_ms <= 0:
            raise rules.refusal("timeout not positive")
        if at_ms < self.watermark_ms:
            what = f"{at_ms}) cannot be earlier than the current watermark ({self.watermark_ms})"
            raise rules.refusal("timeout behind the watermark", what)
        self._timeout_ms = at_ms

    def set_timeout_by_datetime(self, at_ms: int) -> None:
        """The same, given a ``datetime``."""
        self.set_timeout(self._context.rules.datetime_timeout_ms(at_ms))

    def set_timeout_duration(self, ms: int) -> None:
        self._timeout_ms = self._context.clock_ms + ms

    @property
    def kept(self) -> KeptState | None:
        """What is kept after the call: each call sets the timeout again or removes it."""
        return None if self.value is None else KeptState(self.value, self._timeout_ms)


def _count_until_watermark(group: Group, state: GroupState, time_out_at: Callable[[int], None]) -> EmittedRows:
    if state.has_timed_out:
        yield from _settled(group, state, state.value[0] if state.value else 0)
        return
    count, latest = state.value or (0, 0)
    count += len(group.rows)
    latest = max(latest, group.latest_ms)
    if latest <= state.watermark_ms:
        yield from _settled(group, state, count)
        return
    state.update(count, latest)
    time_out_at(latest)


def _settled(group: Group, state: GroupState, count: int) -> EmittedRows:
    state.remove()
    yield group.key_text, count, state.watermark_ms


def _count_rows(group: Group, state: GroupState) -> EmittedRows:
    if group.keys[0].type != STRING:
        raise Unpredictable("count_rows by a first grouping column that is not a string")
    if state.has_timed_out:
        raise AssertionError("count_rows sets no timeout")
    count = (state.value[0] if state.value else 0) + len(group.rows)
    state.update(count)
    yield group.key[0], count


def _time_out_at_latest(group: Group, state: GroupState) -> EmittedRows:
    if state.has_timed_out:
        state.remove()
        yield group.key_text, state.watermark_ms
        return
    state.update(0)
    state.set_timeout(group.latest_ms)


def _count_until_silent(group: Group, state: GroupState) -> EmittedRows:
    count = (state.value[0] if state.value else 0) + len(group.rows)
    if state.has_timed_out:
        state.remove()
        yield group.key_text, count
        return
    state.update(count)
    state.set_timeout_duration(10_000)


@dataclass(frozen=True)
class SuiteFunction:
    """A state function of the suite, and the columns of its output and of its state."""

    emits: tuple[tuple[str, DataType], ...]
    keeps: tuple[Field, ...]
    call: Callable[[Group, GroupState], EmittedRows]


_COUNT, _LATEST = Field("count", BIGINT), Field("latest", BIGINT)
_COUNTED = (("key", STRING), ("count", BIGINT), ("watermark", BIGINT))

STATE_FUNCTIONS: Mapping[str, SuiteFunction] = {
    "count_until_watermark": SuiteFunction(
        _COUNTED, (_COUNT, _LATEST), lambda group, state: _count_until_watermark(group, state, state.set_timeout)
    ),
    "count_until_watermark_by_datetime": SuiteFunction(
        _COUNTED,
        (_COUNT, _LATEST),
        lambda group, state: _count_until_watermark(group, state, state.set_timeout_by_datetime),
    ),
    "count_until_silent_for_ten_seconds": SuiteFunction(
        (("key", STRING), ("count", BIGINT)), (_COUNT,), _count_until_silent
    ),
    "count_rows": SuiteFunction((("key", STRING), ("count", BIGINT)), (_COUNT,), _count_rows),
    "time_out_at_latest": SuiteFunction(
        (("key", STRING), ("watermark", BIGINT)), (Field("nothing", BIGINT),), _time_out_at_latest
    ),
}
"""State functions by the name in ``applyInPandasWithState: {with: …}``."""


def stored_state(node: StateFunction, state: KeptStates, ids: Ids) -> LocalRelation:
    """What the data source ``statestore`` reads, without timeout and partition.

    Sources: `StateDataSource`, `FlatMapGroupsWithStateExecHelper.StateManagerImplV2`.
    """
    key = DataType("struct", tuple(Field(column.name, column.type) for column in node.keys))
    value = DataType("struct", (Field("groupState", DataType("struct", STATE_FUNCTIONS[node.function].keeps)),))
    columns = (Attribute(ids.next(), "key", key), Attribute(ids.next(), "value", value))
    return LocalRelation(columns, tuple((group, (kept.value,)) for group, kept in state.items()))


def apply_in_pandas_with_state(
    node: StateFunction, rows: Sequence[Row], state: KeptStates, context: OperatorContext
) -> OperatorResult:
    time, late, fresh = input_by_lateness(rows, node.child.columns, context, node.timeout == "EventTimeTimeout")
    calls = _Calls(node, dict(state), context, None if time is None else context.evicting_ms)
    groups = tuple(_grouped(fresh, node.keys, node.child.columns))
    if not context.rules.rows_come_before_timeouts:
        calls.for_timeouts()
    for group in groups:
        calls.call(group, has_timed_out=False)
    if context.rules.rows_come_before_timeouts:
        calls.for_timeouts()

    def shown(key: GroupKey, kept: KeptState) -> ComparedRow:
        return compared_group(node, key, kept.timeout_ms, context.evicting_ms)

    return OperatorResult(
        rows=calls.emitted,
        state=calls.kept,
        state_rows=len(calls.kept),
        late=tuple(compared_row(row, node.child.columns, time, context.late_ms) for row in late),
        dropped=len(late),
        evicted=tuple(shown(key, kept) for key, kept in calls.timed_out),
        updated=calls.updated,
        removed=calls.removed,
        shown=tuple(shown(key, kept) for key, kept in calls.kept.items()),
    )


@dataclass
class _Calls:
    """The calls of a state function in a micro-batch."""

    _node: StateFunction
    kept: dict[GroupKey, KeptState]
    _context: OperatorContext
    _watermark_ms: int | None
    emitted: list[Row] = field(default_factory=list)
    timed_out: list[tuple[GroupKey, KeptState]] = field(default_factory=list)
    updated: int = 0
    removed: int = 0

    def for_timeouts(self) -> None:
        fires = self._context.rules.timeout_fires
        for key, kept in list(self.kept.items()):
            if kept.timeout_ms is not None and fires(kept.timeout_ms, self._context.now_ms(self._node.timeout)):
                self.timed_out.append((key, kept))
                self.call(Group(self._node.keys, key, self._node.child.columns), has_timed_out=True)

    def call(self, group: Group, *, has_timed_out: bool) -> None:
        rules = self._context.rules
        kept = self.kept.pop(group.key, None)
        value = None if kept is None else kept.value
        state = GroupState(value, has_timed_out, self._watermark_ms, self._node.timeout, self._context)
        ids = [column.id for column in self._node.columns]
        for values in STATE_FUNCTIONS[self._node.function].call(group, state):
            if values[0] is not None or rules.null_first_column_is_emitted:
                self.emitted.append(dict(zip(ids, values, strict=True)))
        self.updated += state.is_written
        self.removed += state.is_removed
        if state.kept is not None:
            self.kept[group.key] = state.kept


_HOUR_US = 3_600_000_000


@dataclass(frozen=True)
class ProcessorState:
    """The state of a processor between micro-batches."""

    has_begun: bool
    """Whether the initial state has been read."""
    values: Mapping[GroupKey, Mapping[str, Value]]
    """The value of each group, by the names of the columns with which it was written."""
    timers: frozenset[tuple[int, GroupKey]]
    """The time of each timer in ms, and its group."""
    updated_ms: Mapping[GroupKey, int | None] = field(default_factory=dict)
    """When each value was updated, in processing time; None if that is unknown."""


NO_STATE = ProcessorState(has_begun=False, values={}, timers=frozenset())


class ProcessorHandle:
    """What a processor reads and changes (``StatefulProcessorHandle`` of pyspark), one group at a time."""

    def __init__(self, state: ProcessorState, node: StatefulProcessor, context: OperatorContext) -> None:
        self.values = dict(state.values)
        self.columns = node.keeps
        self.updated_ms = dict(state.updated_ms)
        self.timers = set(state.timers)
        self.updated = 0
        self.removed = 0
        self.registered = 0
        self.deleted = 0
        self._time_mode = node.time_mode
        self._context = context

    def forget(self, ttl_ms: int) -> None:
        """Forget the values whose time to live is over."""
        since_ms = self._context.clock_ms - ttl_ms
        self.values = {key: value for key, value in self.values.items() if (self.updated_ms[key] or 0) > since_ms}

    def value(self, key: GroupKey) -> tuple[Value, ...] | None:
        """The value of a group; a column that it was written without is null."""
        written = self.values.get(key)
        return None if written is None else tuple(written.get(column.name) for column in self.columns)

    def update(self, key: GroupKey, *value: int | None) -> None:
        self.values[key] = dict(zip((column.name for column in self.columns), value, strict=True))
        self.updated_ms[key] = self._context.time_ms
        self.updated += 1

    def clear(self, key: GroupKey) -> None:
        self.values.pop(key, None)
        self.removed += 1

    def register_timer(self, at_ms: int, key: GroupKey) -> None:
        if self._time_mode == "None":
            raise Unpredictable("a timer with time mode None")
        self.timers.add((at_ms, key))
        self.registered += 1

    def delete_timer(self, at_ms: int, key: GroupKey) -> None:
        self.timers.discard((at_ms, key))
        self.deleted += 1

    def expired(self) -> list[tuple[int, GroupKey]]:
        """The timers that fire, in the order of their times."""
        fires, mode = self._context.rules.timer_fires, self._time_mode
        over = (timer for timer in self.timers if fires(timer[0], self._context.now_ms(mode)))
        return sorted(over, key=lambda timer: timer[0])


def _add(group: Group, handle: ProcessorHandle, rows: int) -> None:
    """Add rows to the count, and move the timer to their latest event time."""
    latest = group.latest_ms
    count, before = handle.value(group.key) or (0, None)
    if before is None or latest > before:
        if before is not None:
            handle.delete_timer(before, group.key)
        handle.register_timer(latest, group.key)
        before = latest
    handle.update(group.key, count + rows, before)


def _count_with_timer(group: Group, handle: ProcessorHandle) -> EmittedRows:
    _add(group, handle, len(group.rows))
    return iter(())


def _count_initial(group: Group, handle: ProcessorHandle) -> None:
    number = next((column for column in group.columns if column.type.name in (*WHOLE, "float", "double")), None)
    counts = [row[number.id] for row in group.rows if row[number.id] is not None] if number is not None else []
    if counts:
        _add(group, handle, int(sum(counts)))


def _emit_count(group: Group, handle: ProcessorHandle, timer_ms: int, watermark_ms: int) -> EmittedRows:
    count = handle.values[group.key]["count"]
    handle.clear(group.key)
    yield group.key_text, timer_ms * 1000, count, watermark_ms


def _number(group: Group, handle: ProcessorHandle, back_us: int = 0) -> EmittedRows:
    names = [column.name for column in handle.columns]
    place = names.index("count") if "count" in names else 0
    if handle.columns[place].type not in (INT, BIGINT):
        raise Unpredictable(f"a number of rows in a column of type {handle.columns[place].type}")
    value = handle.value(group.key)
    count = (value[place] if value else None) or 0
    times = sorted(group.times_us, key=lambda time: (time is None, time))
    handle.update(group.key, *(count + len(times) if index == place else None for index in range(len(names))))
    for number, time in enumerate(times, count + 1):
        yield group.key_text, None if time is None else time - back_us, number


@dataclass(frozen=True)
class SuiteProcessor:
    """A stateful processor of the suite, and the columns of its output and of its state."""

    emits: tuple[tuple[str, DataType], ...]
    keeps: tuple[Field, ...]
    rows: Callable[[Group, ProcessorHandle], EmittedRows]
    """``handleInputRows``"""
    initial: Callable[[Group, ProcessorHandle], None] | None = None
    """``handleInitialState``; does nothing by default."""
    timer: Callable[[Group, ProcessorHandle, int, int], EmittedRows] | None = None
    """``handleExpiredTimer``, given the time of the timer and the watermark in ms; None if it registers no timers."""
    ttl_ms: int | None = None
    """The time to live of its state, in processing time; None for ever."""


_NUMBERED = (("key", STRING), ("event_time", TIMESTAMP), ("number", BIGINT))

STATEFUL_PROCESSORS: Mapping[str, SuiteProcessor] = {
    "count_until_watermark": SuiteProcessor(
        (("key", STRING), ("event_time", TIMESTAMP), ("count", BIGINT), ("watermark", BIGINT)),
        (_COUNT, _LATEST),
        _count_with_timer,
        _count_initial,
        _emit_count,
    ),
    "number_rows": SuiteProcessor(_NUMBERED, (_COUNT,), _number),
    "number_rows_an_hour_back": SuiteProcessor(
        _NUMBERED, (_COUNT,), lambda group, handle: _number(group, handle, _HOUR_US)
    ),
    "number_rows_for_a_day": SuiteProcessor(_NUMBERED, (_COUNT,), _number, ttl_ms=86_400_000),
    "number_rows_for_a_millisecond": SuiteProcessor(_NUMBERED, (_COUNT,), _number, ttl_ms=1),
}
"""Stateful processors by the name in ``transformWithState: {with: …}``."""


def transform_with_state(
    node: StatefulProcessor,
    rows: Sequence[Row],
    initial: Sequence[Row],
    state: ProcessorState,
    context: OperatorContext,
    used: frozenset[int],
) -> OperatorResult:
    """One micro-batch of ``transformWithState``; ``initial``: the rows of the initial state, ``used``: the output columns used above."""
    time, late, fresh = input_by_lateness(rows, node.child.columns, context, node.time_mode == "EventTime")
    if any(None in (row[key.id] for key in node.keys) for row in fresh):
        raise Unpredictable("a null grouping column of transformWithState")
    processor = STATEFUL_PROCESSORS[node.processor]
    handle = ProcessorHandle(state, node, context)
    if processor.ttl_ms is not None:
        handle.forget(processor.ttl_ms)
    if processor.initial is not None and not state.has_begun:
        for group in _initial_groups(node, initial, context, used):
            processor.initial(group, handle)
    emitted: list[tuple[Value, ...]] = []
    for group in _grouped(fresh, node.keys, node.child.columns):
        emitted += processor.rows(group, handle)
    expired = []
    if processor.timer is not None:
        expired = handle.expired()
        for timer_ms, key in expired:
            group = Group(node.keys, key, node.child.columns)
            emitted += processor.timer(group, handle, timer_ms, context.evicting_ms)
            handle.delete_timer(timer_ms, key)
    ids = [column.id for column in node.columns]
    rows_out = [dict(zip(ids, values, strict=True)) for values in emitted]
    _check_emitted(node, rows_out, context)
    timers = {key: timer_ms for timer_ms, key in handle.timers}
    return OperatorResult(
        rows=rows_out,
        state=ProcessorState(
            has_begun=True, values=handle.values, timers=frozenset(handle.timers), updated_ms=handle.updated_ms
        ),
        state_rows=len(handle.values),
        late=tuple(compared_row(row, node.child.columns, time, context.late_ms) for row in late),
        dropped=len(late),
        evicted=tuple(compared_group(node, key, timer_ms, context.evicting_ms) for timer_ms, key in expired),
        updated=handle.updated,
        removed=handle.removed,
        timers=TimerCounts(handle.registered, handle.deleted),
        shown=tuple(compared_group(node, key, timers.get(key), context.evicting_ms) for key in handle.values),
    )


def _initial_groups(
    node: StatefulProcessor, rows: Sequence[Row], context: OperatorContext, used: frozenset[int]
) -> Iterator[Group]:
    if node.initial is None:
        return iter(())
    columns = node.initial.plan.columns
    if context.rules.initial_state != "whole" and not {column.id for column in node.columns} <= used:
        columns = tuple(column for column in columns if column in node.initial.keys)
    return _grouped(rows, node.initial.keys, columns)


def _check_emitted(node: StatefulProcessor, rows: Sequence[Row], context: OperatorContext) -> None:
    time = node.event_time
    if time is None or context.rules.emitted_rows_may_be_late:
        return
    for row in rows:
        if is_late(row[time.id], time, context.late_ms, context.rules):
            what = f"eventTime={row[time.id]} which is older than current_watermark_value={context.late_ms}"
            raise context.rules.refusal("emitted row behind the watermark", what)
