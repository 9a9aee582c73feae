"""``applyInPandasWithState``: the state functions of the suite, the state of a group, and its event-time timeout.

Sources: `FlatMapGroupsInPandasWithStateExec`, `FlatMapGroupsWithStateExecBase`, ``pyspark.sql.streaming.state``; SPARK-20714 (timeouts),
SPARK-40434. The functions are those of ``harness/driver/state_functions.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance.core.spark_types import DataType
from conformance.model.columns import BIGINT, STRING, Row
from conformance.model.errors import Unpredictable
from conformance.model.groups import Emitted, Group, GroupKey, compared_group, grouped, late_and_fresh
from conformance.model.operators import OperatorContext, OperatorResult, compared_row
from conformance.model.plan import StateFunction, Timeout
from conformance.model.progress import ComparedRow
from conformance.model.rules import Rules


@dataclass(frozen=True)
class KeptState:
    """The state of a group between calls."""

    value: tuple[int, ...]
    timeout_ms: int | None


KeptStates = Mapping[GroupKey, KeptState]


class GroupState:
    """The state of a group during one call (``GroupState`` of pyspark); the watermark is None if the input has none."""

    def __init__(
        self, kept: KeptState | None, *, has_timed_out: bool, watermark_ms: int | None, timeout: Timeout, rules: Rules
    ) -> None:
        self.value = None if kept is None else kept.value
        self.has_timed_out = has_timed_out
        self.is_written = False
        self.is_removed = False
        self._timeout_ms: int | None = None
        self._watermark_ms = watermark_ms
        self._timeout = timeout
        self._rules = rules

    def update(self, *value: int) -> None:
        self.value, self.is_written, self.is_removed = value, True, False

    def remove(self) -> None:
        self.value, self.is_written, self.is_removed = None, False, True

    @property
    def watermark_ms(self) -> int:
        """
        Raises:
            Refused: the input has no watermark.
        """
        if self._watermark_ms is None:
            raise self._rules.refusal("no watermark to read")
        return self._watermark_ms

    def set_timeout(self, at_ms: int) -> None:
        """
        Raises:
            Refused: the timeout is not an event time, not positive, or behind the watermark.
        """
        if self._timeout != "EventTimeTimeout":
            raise self._rules.refusal("timestamp of another timeout")
        if at_ms <= 0:
            raise self._rules.refusal("timeout not positive")
        if at_ms < self.watermark_ms:
            what = f"{at_ms}) cannot be earlier than the current watermark ({self.watermark_ms})"
            raise self._rules.refusal("timeout behind the watermark", what)
        self._timeout_ms = at_ms

    def set_timeout_by_datetime(self, at_ms: int) -> None:
        """The same, given a ``datetime``."""
        self.set_timeout(self._rules.datetime_timeout_ms(at_ms))

    @property
    def kept(self) -> KeptState | None:
        """What is kept after the call: each call sets the timeout again or removes it."""
        return None if self.value is None else KeptState(self.value, self._timeout_ms)


def _count_until_watermark(group: Group, state: GroupState, time_out_at: Callable[[int], None]) -> Emitted:
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


def _settled(group: Group, state: GroupState, count: int) -> Emitted:
    state.remove()
    yield group.key_text, count, state.watermark_ms


def _count_rows(group: Group, state: GroupState) -> Emitted:
    if group.keys[0].type != STRING:
        raise Unpredictable("count_rows by a first grouping column that is not a string")
    if state.has_timed_out:
        raise AssertionError("count_rows sets no timeout")
    count = (state.value[0] if state.value else 0) + len(group.rows)
    state.update(count)
    yield group.key[0], count


def _time_out_at_latest(group: Group, state: GroupState) -> Emitted:
    if state.has_timed_out:
        state.remove()
        yield group.key_text, state.watermark_ms
        return
    state.update(0)
    state.set_timeout(group.latest_ms)


@dataclass(frozen=True)
class SuiteFunction:
    """A state function of the suite, and the columns of its output."""

    emits: tuple[tuple[str, DataType], ...]
    call: Callable[[Group, GroupState], Emitted]


_COUNTED = (("key", STRING), ("count", BIGINT), ("watermark", BIGINT))

STATE_FUNCTIONS: Mapping[str, SuiteFunction] = {
    "count_until_watermark": SuiteFunction(
        _COUNTED, lambda group, state: _count_until_watermark(group, state, state.set_timeout)
    ),
    "count_until_watermark_by_datetime": SuiteFunction(
        _COUNTED, lambda group, state: _count_until_watermark(group, state, state.set_timeout_by_datetime)
    ),
    "count_rows": SuiteFunction((("key", STRING), ("count", BIGINT)), _count_rows),
    "time_out_at_latest": SuiteFunction((("key", STRING), ("watermark", BIGINT)), _time_out_at_latest),
}
"""By the name in ``applyInPandasWithState: {with: …}``."""


def apply_in_pandas_with_state(
    node: StateFunction, rows: Sequence[Row], state: KeptStates, context: OperatorContext
) -> OperatorResult:
    """One micro-batch of ``applyInPandasWithState``.

    Raises:
        Refused: the function fails.
        Unpredictable: the model does not know what it does with these columns.
    """
    time, late, fresh = late_and_fresh(rows, node.child.columns, context, node.timeout == "EventTimeTimeout")
    calls = _Calls(node, state, context, None if time is None else context.evicting_ms)
    groups = tuple(grouped(fresh, node.keys, node.child.columns))
    if context.rules.rows_come_before_timeouts:
        calls.with_rows(groups)
        calls.for_timeouts()
    else:
        calls.for_timeouts()
        calls.with_rows(groups)

    def shown(key: GroupKey, one: KeptState) -> ComparedRow:
        return compared_group(node.keys, key, one.timeout_ms, context.evicting_ms)

    return OperatorResult(
        rows=calls.emitted,
        state=calls.kept,
        state_rows=len(calls.kept),
        late=tuple(compared_row(row, node.child.columns, time, context.late_ms) for row in late),
        dropped=len(late),
        evicted=tuple(shown(key, one) for key, one in calls.timed_out),
        updated=calls.updated,
        removed=calls.removed,
        shown=tuple(shown(key, one) for key, one in calls.kept.items()),
    )


class _Calls:
    """The calls of a state function in a micro-batch."""

    def __init__(
        self, node: StateFunction, state: KeptStates, context: OperatorContext, watermark_ms: int | None
    ) -> None:
        self.kept = dict(state)
        self.emitted: list[Row] = []
        self.timed_out: list[tuple[GroupKey, KeptState]] = []
        self.updated = 0
        self.removed = 0
        self._node = node
        self._context = context
        self._watermark_ms = watermark_ms

    def with_rows(self, groups: Iterable[Group]) -> None:
        for group in groups:
            self._call(group, has_timed_out=False)

    def for_timeouts(self) -> None:
        fires = self._context.rules.timeout_fires
        for key, one in list(self.kept.items()):
            if one.timeout_ms is not None and fires(one.timeout_ms, self._context.evicting_ms):
                self.timed_out.append((key, one))
                self._call(Group(self._node.keys, key, self._node.child.columns), has_timed_out=True)

    def _call(self, group: Group, *, has_timed_out: bool) -> None:
        rules = self._context.rules
        state = GroupState(
            self.kept.pop(group.key, None),
            has_timed_out=has_timed_out,
            watermark_ms=self._watermark_ms,
            timeout=self._node.timeout,
            rules=rules,
        )
        ids = [one.id for one in self._node.columns]
        for values in STATE_FUNCTIONS[self._node.function].call(group, state):
            if values[0] is not None or rules.null_first_column_is_emitted:
                self.emitted.append(dict(zip(ids, values, strict=True)))
        self.updated += state.is_written
        self.removed += state.is_removed
        if state.kept is not None:
            self.kept[group.key] = state.kept
