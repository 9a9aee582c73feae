"""The logical plan of a query.

Nodes are compared by identity: two identical nodes are two operators, each with its own state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import NamedTuple, TypeAlias

from conformance.core.operations import JoinType, TimeMode, Timeout
from conformance.core.spark_types import Field
from conformance.model.columns import Attribute, Value
from conformance.model.expressions import Expression, NamedExpression


class _Node:
    @property
    def children(self) -> tuple[Plan, ...]:
        return ()

    @cached_property
    def below(self) -> tuple[Plan, ...]:
        """Every node below this one, in pre-order; plans are walked several times in each micro-batch."""
        return tuple(node for child in self.children for node in walk(child))


@dataclass(frozen=True, eq=False)
class _Unary(_Node):
    """A node with one child."""

    child: Plan

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.child,)


class _WithColumnsOfChild(_Unary):
    @property
    def columns(self) -> tuple[Attribute, ...]:
        return self.child.columns


@dataclass(frozen=True, eq=False)
class StreamSource(_Node):
    """A stream. If it is read twice, its columns have different ids."""

    stream: str
    columns: tuple[Attribute, ...]
    name: str | None = None
    """The name of the source (``DataStreamReader.name``); None without one."""


@dataclass(frozen=True, eq=False)
class LocalRelation(_Node):
    """Constant rows of the query."""

    columns: tuple[Attribute, ...]
    rows: tuple[tuple[Value, ...], ...]
    is_cut: bool = False
    """Whether it replaces a plan below a filter that is always false."""


@dataclass(frozen=True, eq=False)
class Watermark(_Unary):
    """``withWatermark``: above it the column is an event time."""

    column: Attribute
    columns: tuple[Attribute, ...]


@dataclass(frozen=True, eq=False)
class Filter(_WithColumnsOfChild):
    condition: Expression


@dataclass(frozen=True, eq=False)
class Project(_Unary):
    """``select`` and similar; with a window it yields one row per window."""

    named: tuple[NamedExpression, ...]

    @cached_property
    def columns(self) -> tuple[Attribute, ...]:
        return tuple(item.column for item in self.named)


@dataclass(frozen=True, eq=False)
class Union(_Node):
    """All rows of all branches, with the names and watermarks of the first branch."""

    branches: tuple[Plan, ...]
    columns: tuple[Attribute, ...]

    @property
    def children(self) -> tuple[Plan, ...]:
        return self.branches


@dataclass(frozen=True, eq=False)
class Aggregate(_Unary):
    """``groupBy`` and ``agg``. A session window is a key of the kind ``session``."""

    keys: tuple[NamedExpression, ...]
    outputs: tuple[NamedExpression, ...]
    """Expressions over the key columns and, inside aggregate functions, over the columns of the child."""
    from_distinct: bool = False
    """Whether it comes from SQL DISTINCT or UNION."""

    @cached_property
    def columns(self) -> tuple[Attribute, ...]:
        return tuple(output.column for output in self.outputs)

    @property
    def session(self) -> NamedExpression | None:
        """The session window among the keys."""
        return next((key for key in self.keys if key.expression.kind == "session"), None)


@dataclass(frozen=True, eq=False)
class Deduplicate(_WithColumnsOfChild):
    keys: tuple[Attribute, ...]
    within_watermark: bool

    @property
    def has_no_order(self) -> bool:
        """Whether its input comes from state, in arbitrary order.

        A processor emits the rows of a group in their order; of several groups with one key the order is arbitrary.
        """
        below = beneath(self.child)
        if isinstance(below, StatefulProcessor) and len(below.keys) == 1:
            return below.columns[0].id not in {key.id for key in self.keys}
        return bool(stateful(self.child))


@dataclass(frozen=True, eq=False)
class Limit(_WithColumnsOfChild):
    """SQL LIMIT: the first rows of the whole stream."""

    rows: int


class SortKey(NamedTuple):
    expression: Expression
    ascending: bool
    nulls_first: bool

    def rank(self, value: Value) -> tuple[object, ...]:
        """What Python sorts by, backwards unless ascending. NaN is the largest number, as in Spark."""
        if value is None:
            return (0 if self.nulls_first == self.ascending else 2,)
        return (1, value != value, value)


@dataclass(frozen=True, eq=False)
class Sort(_WithColumnsOfChild):
    """``orderBy`` and SQL ORDER BY."""

    keys: tuple[SortKey, ...]


@dataclass(frozen=True, eq=False)
class Join(_Node):
    """A join of two streams, or of a stream with static rows."""

    left: Plan
    right: Plan
    how: JoinType
    condition: Expression

    @cached_property
    def columns(self) -> tuple[Attribute, ...]:
        return self.left.columns if self.how == "leftSemi" else (*self.left.columns, *self.right.columns)

    @property
    def children(self) -> tuple[Plan, ...]:
        return (self.left, self.right)

    @property
    def is_of_streams(self) -> bool:
        return is_streaming(self.left) and is_streaming(self.right)


@dataclass(frozen=True, eq=False)
class EmptySide(_WithColumnsOfChild):
    """A side of a join that is an empty relation in this micro-batch: Spark knows nothing of its columns."""


@dataclass(frozen=True, eq=False)
class StateFunction(_Unary):
    """``applyInPandasWithState``: a function of the suite, called for each group."""

    keys: tuple[Attribute, ...]
    function: str
    mode: str
    """The output mode of the function."""
    timeout: Timeout
    columns: tuple[Attribute, ...]


@dataclass(frozen=True, eq=False)
class InitialState:
    """The rows that the groups of a stateful processor start with."""

    plan: Plan
    """A plan of constants."""
    keys: tuple[Attribute, ...]


@dataclass(frozen=True, eq=False)
class StatefulProcessor(_Unary):
    """``transformWithState``: a processor of the suite, with state and timers for each group."""

    keys: tuple[Attribute, ...]
    processor: str
    mode: str
    """The output mode of the processor."""
    time_mode: TimeMode
    keeps: tuple[Field, ...]
    """The columns of its state."""
    initial: InitialState | None
    columns: tuple[Attribute, ...]

    @property
    def event_time(self) -> Attribute | None:
        """The output column that ``eventTimeColumn`` names."""
        return next((column for column in self.columns if column.is_event_time), None)


Plan: TypeAlias = (
    StreamSource
    | LocalRelation
    | Watermark
    | Filter
    | Project
    | Union
    | Aggregate
    | Deduplicate
    | Limit
    | Sort
    | Join
    | EmptySide
    | StateFunction
    | StatefulProcessor
)
Stateful: TypeAlias = Aggregate | Deduplicate | Limit | Join | StateFunction | StatefulProcessor


def walk(plan: Plan) -> Iterator[Plan]:
    """Every node in pre-order, as Spark collects them."""
    return chain((plan,), plan.below)


def with_children(plan: Plan, change: Callable[[Plan], Plan]) -> Plan:
    match plan:
        case StreamSource() | LocalRelation():
            return plan
        case Union():
            return replace(plan, branches=tuple(map(change, plan.branches)))
        case Join():
            return replace(plan, left=change(plan.left), right=change(plan.right))
        case _:
            return replace(plan, child=change(plan.child))


def is_streaming(plan: Plan) -> bool:
    return any(isinstance(node, StreamSource) for node in walk(plan))


def is_stateful(plan: Plan) -> bool:
    """Whether the node keeps state between micro-batches."""
    if isinstance(plan, Join):
        return plan.is_of_streams
    return isinstance(plan, Stateful) and is_streaming(plan)


@lru_cache(maxsize=64)
def stateful(plan: Plan) -> tuple[Plan, ...]:
    """The stateful operators in the order of ``stateOperators``: the last one of the query first."""
    return tuple(node for node in walk(plan) if is_stateful(node))


def beneath(plan: Plan) -> Plan:
    """The first node below filters, projections and watermarks."""
    while isinstance(plan, Filter | Project | Watermark):
        plan = plan.child
    return plan


@lru_cache(maxsize=64)
def watermarks(plan: Plan) -> tuple[Watermark, ...]:
    """The watermark nodes in plan order."""
    return tuple(node for node in walk(plan) if isinstance(node, Watermark))


def streams(plan: Plan) -> frozenset[str]:
    return frozenset(node.stream for node in walk(plan) if isinstance(node, StreamSource))


def expressions(plan: Plan) -> Iterator[Expression]:
    return (expression for node in walk(plan) for expression in expressions_of(node))


def expressions_of(node: Plan) -> tuple[Expression, ...]:
    match node:
        case Filter() | Join():
            return (node.condition,)
        case Project():
            return tuple(item.expression for item in node.named)
        case Aggregate():
            return tuple(item.expression for item in (*node.keys, *node.outputs))
        case Sort():
            return tuple(key.expression for key in node.keys)
        case _:
            return ()


def operator_name(node: Plan) -> str:
    """The name of a stateful operator in the progress."""
    return _name_and_title(node)[0]


def operator_title(node: Plan) -> str:
    """The operator in words: ``aggregation by window, id``."""
    title = _name_and_title(node)[1]
    match node:
        case Aggregate():
            names = [key.column.name for key in node.keys]
        case Deduplicate() | StateFunction() | StatefulProcessor():
            names = [key.name for key in node.keys]
        case _:
            names = []
    return f"{title} by {', '.join(names)}" if names else title


def _name_and_title(node: Plan) -> tuple[str, str]:
    match node:
        case Aggregate(session=None):
            return "stateStoreSave", "aggregation"
        case Aggregate():
            return "sessionWindowStateStoreSaveExec", "session windows"
        case Deduplicate(within_watermark=True):
            return "dedupeWithinWatermark", "deduplication within the watermark"
        case Deduplicate():
            return "dedupe", "deduplication"
        case Join():
            return "symmetricHashJoin", "join"
        case StateFunction():
            return "applyInPandasWithState", f"state function {node.function}"
        case StatefulProcessor():
            return "transformWithStateInPandasExec", f"stateful processor {node.processor}"
        case _:
            return "globalLimit", "limit"
