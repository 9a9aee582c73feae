"""Executes one micro-batch: rows flow from the sources through the plan, and stateful operators update their state."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import islice

from conformance.core.operations import OutputMode
from conformance.model import operators
from conformance.model import plan as logical
from conformance.model.aggregation import aggregate, aggregate_sessions, session_rows, windows_of
from conformance.model.catalyst.spark_plan import RequiredColumns
from conformance.model.columns import STRING, InputRow, Origin, Row, Value, origins, with_origin_of
from conformance.model.deduplication import deduplicate
from conformance.model.errors import Unpredictable
from conformance.model.expressions import NamedExpression, evaluate
from conformance.model.group_functions import NO_STATE, apply_in_pandas_with_state, transform_with_state
from conformance.model.joins import EMPTY, check_runs, join
from conformance.model.lateness import is_window_column
from conformance.model.operators import Effort, OperatorContext, OperatorProgress, OperatorResult, State
from conformance.model.plan import Plan, stateful
from conformance.model.rules import Rules
from conformance.model.watermark import EventTimeStatistics

BatchData = Mapping[str, Sequence[tuple[Value, ...]]]
"""Stream → its new rows, values in column order; streams without new rows are missing."""
States = tuple[State, ...]
"""The state of each stateful operator, in the order of ``plan.stateful``."""


@dataclass(frozen=True)
class BatchResult:
    rows: tuple[tuple[Value, ...], ...]
    """The emitted rows, values in the order of the query's columns."""
    states: States
    statistics: tuple[EventTimeStatistics | None, ...]
    operators: tuple[OperatorProgress, ...]


def initial(plan: Plan) -> States:
    """The state before anything has run."""
    states: dict[type[Plan], State] = {logical.Join: EMPTY, logical.Limit: 0, logical.StatefulProcessor: NO_STATE}
    return tuple(states.get(type(node), {}) for node in stateful(plan))


@dataclass(frozen=True)
class MicroBatch:
    """The input of a micro-batch."""

    plan: Plan
    data: BatchData
    states: States
    """The state after the previous micro-batch."""
    late_ms: Sequence[int]
    """The watermark for late rows of each stateful operator, in the order of ``plan.stateful``."""
    eviction_ms: Sequence[int]
    """The watermark for eviction of each stateful operator."""
    mode: OutputMode
    needed: RequiredColumns
    rules: Rules
    effort: Effort
    time_ms: int | None = None
    """Its processing time; None if it is unknown."""


def execute(batch: MicroBatch) -> BatchResult:
    """Run one micro-batch; raises ``Refused`` if Spark fails in it, and ``Unpredictable``."""
    run = _BatchRun(batch)
    rows = run.rows(batch.plan)
    columns = batch.plan.columns
    return BatchResult(
        rows=tuple(tuple(row[column.id] for column in columns) for row in rows),
        states=tuple(run.results[id(node)].state for node in run.operators),
        statistics=tuple(run.statistics(node) for node in logical.watermarks(batch.plan)),
        operators=tuple(_operator_progress(node, run) for node in run.operators),
    )


class _BatchRun:
    def __init__(self, batch: MicroBatch) -> None:
        self.operators = stateful(batch.plan)
        self.results: dict[int, OperatorResult] = {}
        self.read: dict[int, list[Origin]] = {id(node): [] for node in self.operators}
        """By the ``id`` of a stateful operator, where the rows that it read come from."""
        silent = logical.streams(batch.plan) - frozenset(batch.data)
        self.contexts = {
            id(node): OperatorContext(late, eviction, batch.mode, silent, batch.rules, batch.effort, batch.time_ms)
            for node, late, eviction in zip(self.operators, batch.late_ms, batch.eviction_ms, strict=True)
        }
        self._times: dict[int, list[Value]] = {}
        self._data, self._needed, self._rules, self._effort = batch.data, batch.needed, batch.rules, batch.effort
        self._states = {id(node): state for node, state in zip(self.operators, batch.states, strict=True)}

    def rows(self, node: Plan) -> list[Row]:
        return [row for part in self._partitions(node) for row in part]

    def statistics(self, node: logical.Watermark) -> EventTimeStatistics | None:
        """The statistics of the rows that passed a watermark node."""
        is_window = node.column.type.name == "struct"
        return EventTimeStatistics.of(self._times[id(node)], is_window=is_window, rules=self._rules)

    def _partitions(self, node: Plan) -> list[Iterator[Row]]:
        """The rows of a node, lazily; a stateful operator reads its whole input at once."""
        match node:
            case logical.StreamSource():
                ids = [column.id for column in node.columns]
                new = enumerate(self._data.get(node.stream, ()))
                return [iter([InputRow(zip(ids, row, strict=True), (node.stream, place)) for place, row in new])]
            case logical.LocalRelation():
                self._effort.add(len(node.rows))
                ids = [column.id for column in node.columns]
                return [iter([dict(zip(ids, row, strict=True)) for row in node.rows])]
            case logical.Filter():
                return [filter(partial(evaluate, node.condition), part) for part in self._partitions(node.child)]
            case logical.EmptySide():
                return self._partitions(node.child)
            case logical.Sort():
                rows = self.rows(node.child)
                try:
                    for key in reversed(node.keys):
                        rows.sort(key=lambda row: key.rank(evaluate(key.expression, row)), reverse=not key.ascending)
                except TypeError:
                    raise Unpredictable("a sort by values with nulls inside") from None
                return [iter(rows)]
            case logical.Watermark():
                times = self._times[id(node)] = []
                return [_recorded(part, node.column.id, times) for part in self._partitions(node.child)]
            case logical.Project():
                parts = self._partitions(node.child)
                return [_projected(part, node.named, self._rules, self._effort) for part in parts]
            case logical.Union():
                return [_renamed(part, branch, node) for branch in node.branches for part in self._partitions(branch)]
            case _ if logical.is_stateful(node):
                result = self.results[id(node)] = self._stateful(node)
                self._effort.add(result.state_rows)
                return [iter(result.rows)]
            case logical.Join():
                return [iter(self._static_join(node))]
            case logical.Deduplicate(within_watermark=True):
                raise self._rules.refusal("deduplication within the watermark of a batch frame")
            case _:
                raise Unpredictable("an aggregation, deduplication, limit or state function of a batch frame")

    def _stateful(self, node: Plan) -> OperatorResult:
        context, state = self.contexts[id(node)], self._states[id(node)]
        match node:
            case logical.Aggregate(session=None):
                rows = list(_with_named(self.rows(node.child), node.keys, self._rules, self._effort))
                return aggregate(node, self._given(node, rows), state, context)
            case logical.Aggregate(session=session) if session is not None:
                others = [key for key in node.keys if key is not session]
                rows = self._given(node, session_rows(self.rows(node.child), session, self._rules))
                rows = list(_with_named(rows, others, self._rules, self._effort))
                return aggregate_sessions(node, session, rows, state, context)
            case logical.Deduplicate():
                rows = self._given(node, self.rows(node.child))
                return deduplicate(node, rows, state, context, self._needed[node.child])
            case logical.Join():
                check_runs(node, context.silent, self._rules)
                visible = self._needed[node.left] | self._needed[node.right]
                left, right = (self._given(node, self.rows(side)) for side in node.children)
                return join(node, left, right, state, context, visible)
            case logical.StateFunction():
                return apply_in_pandas_with_state(node, self._given(node, self.rows(node.child)), state, context)
            case logical.StatefulProcessor():
                begins = [] if node.initial is None else self.rows(node.initial.plan)
                rows = self._given(node, self.rows(node.child))
                return transform_with_state(node, rows, begins, state, context, self._needed[node])
            case logical.Limit():
                read = self._given(node, self.rows(node.child)) if stateful(node.child) else self._local_limit(node)
                rows = read[: max(node.rows - state, 0)]
                let_through = state + len(rows)
                return OperatorResult(rows=rows, state=let_through, state_rows=1 if let_through else 0)
        raise AssertionError(node)

    def _given(self, node: Plan, rows: list[Row]) -> list[Row]:
        """The rows that a stateful operator reads, a row in several windows several times."""
        self.read[id(node)] += origins(rows)
        return rows

    def _local_limit(self, node: logical.Limit) -> list[Row]:
        """The rows that a limit reads if nothing below it keeps state: no watermark sees the others (`LocalLimitExec`)."""
        if any(isinstance(below, logical.Join) for below in logical.walk(node.child)):
            raise Unpredictable("a limit above a join with static rows")
        read = node.rows + (self._rules.limit_reads == "one row more")
        return [row for part in self._partitions(node.child) for row in list(islice(part, read))[: node.rows]]

    def _static_join(self, node: logical.Join) -> list[Row]:
        """A stream with static rows; an outer join preserves the stream, as Spark demands."""
        if node.how not in ("inner", "leftOuter") or (node.how == "leftOuter" and not logical.is_streaming(node.left)):
            raise Unpredictable(f"a {node.how} join with static rows")
        left, right = self.rows(node.left), self.rows(node.right)
        self._effort.add(len(left) * len(right))
        nulls: Row = dict.fromkeys(column.id for column in node.right.columns)
        joined: list[Row] = []
        for row in left:
            pairs = ({**row, **static} for static in right)
            matches = [pair for pair in pairs if evaluate(node.condition, pair)]
            joined += matches or ([{**row, **nulls}] if node.how == "leftOuter" else [])
        return joined


def _renamed(rows: Iterable[Row], branch: Plan, union: logical.Union) -> Iterator[Row]:
    ids = [(column.id, renamed.id) for column, renamed in zip(branch.columns, union.columns, strict=True)]
    return (with_origin_of(row, {renamed: row[id] for id, renamed in ids}) for row in rows)


def _recorded(rows: Iterable[Row], time: int, times: list[Value]) -> Iterator[Row]:
    """The rows; the event time of each is recorded when it is read."""
    for row in rows:
        times.append(row[time])
        yield row


def _projected(rows: Iterable[Row], named: Sequence[NamedExpression], rules: Rules, effort: Effort) -> Iterator[Row]:
    ids = {item.column.id for item in named}
    return (with_origin_of(row, {id: row[id] for id in ids}) for row in _with_named(rows, named, rules, effort))


def _with_named(rows: Iterable[Row], named: Sequence[NamedExpression], rules: Rules, effort: Effort) -> Iterator[Row]:
    """The rows with these columns added: one row per window, and none for a null event time."""
    windows = [item for item in named if item.expression.kind == "window"]
    plain = [item for item in named if item.expression.kind != "window"]
    if any(item.expression.kind == "session" for item in plain):
        raise Unpredictable("session_window outside groupBy")
    if len({item.expression for item in windows}) > 1:
        raise Unpredictable("several time windows at once")
    texts = [item.column.id for item in plain if item.column.type == STRING and item.expression.kind == "call"]
    for row in rows:
        added = {item.column.id: evaluate(item.expression, row) for item in plain}
        effort.add((len(added) + sum(len(added[id] or "") for id in texts)) // 1_000)
        if not windows:
            yield with_origin_of(row, {**row, **added})
            continue
        window = windows[0].expression
        time = evaluate(window.args[0], row)
        if time is not None:
            size, slide, start = window.value
            for interval in windows_of(time, size, slide, start, rules):
                effort.add()
                yield with_origin_of(row, {**row, **added, **{named.column.id: interval for named in windows}})


def _operator_progress(node: Plan, run: _BatchRun) -> OperatorProgress:
    result, context = run.results[id(node)], run.contexts[id(node)]
    keys = [key.column for key in node.keys] if isinstance(node, logical.Aggregate) else []
    columns = keys or [column for child in node.children for column in child.columns]
    return OperatorProgress(
        operator=logical.operator_name(node),
        title=logical.operator_title(node),
        late_ms=context.late_ms,
        eviction_ms=context.evicting_ms,
        by_window=any(column.is_event_time and is_window_column(column) for column in columns),
        read=tuple(run.read[id(node)]),
        **{effect.name: getattr(result, effect.name) for effect in fields(operators.OperatorEffects)},
    )
