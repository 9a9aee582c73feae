"""The reading of a query: its sources, watermarks, windows and stateful operators, from its pipeline and its SQL, or from its plan.

What cannot be read, such as own code, is named in ``QueryReading.unread``: nothing is known of it, which is not the same as that it
does nothing.

A plan is all that is known of a query that own code built: the text that ``explain(extended=True)`` prints, the only form in which
every version from 3.0 on gives it. The JSON of a plan (``toJSON``) has null for the delay of a watermark, on 3.5.9 as on 4.3.0, and
Connect does not give it. The names of its operators are those of Spark's ``statefulOperators.scala`` and
``StreamingSymmetricHashJoinExec``, the same from 3.0 to 4.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Generic, Literal, NamedTuple, TypeAlias, TypeVar

from conformance.core.operations import JoinType

WindowKind: TypeAlias = Literal["tumbling", "sliding", "session"]
JoinKind: TypeAlias = Literal[JoinType, "leftAnti"]


class StreamColumn(NamedTuple):
    stream: str
    column: str


@dataclass(frozen=True)
class QuerySource:
    stream: str
    name: str | None = None
    """The name of the source, ``DataStreamReader.name`` (4.2+)."""


@dataclass(frozen=True)
class QueryWatermark:
    """``withWatermark``, or the clause of SQL."""

    stream: str | None
    """The stream whose rows have it; None above a join, a union or an operator that keeps state."""
    column: str
    """The column as it is written."""
    delay: str
    """The delay as it is written, possibly no interval."""


@dataclass(frozen=True)
class QueryWindow:
    """A call of ``window`` or ``session_window``."""

    kind: WindowKind | None
    """The kind of the window; None from a plan, which does not show whether windows slide."""
    time: str
    """The expression of the time, in Spark SQL; empty from a plan."""
    length_us: int | None
    """The length of the window, or the gap of a session, in µs; None if the query does not give a constant interval."""
    slide_us: int | None
    """The distance between two starts, in µs; None for a session, and if the query does not give a constant interval."""
    start_us: int
    """The offset of the starts from 1970-01-01, in µs."""
    columns: tuple[StreamColumn, ...]
    """The columns of streams that its time is, renamed at most; empty if the time is computed or comes out of an operator that
    keeps state."""
    filtered: bool
    """Whether rows of its streams may be missing from it for another reason than their time: a filter, or a join with a table."""

    @property
    def streams(self) -> tuple[str, ...] | None:
        """The streams whose rows it takes directly; None if its time is computed or comes out of an operator that keeps state."""
        return tuple(dict.fromkeys(column.stream for column in self.columns)) or None

    def holding(self, time_us: int) -> tuple[tuple[int, int], ...] | None:
        """Return the windows, as start (inclusive) and end (exclusive) in µs, that hold an event time; the earliest first.

        None if that is not known: for a session, which depends on other rows; for a time before the first start after 1970-01-01, where
        versions differ (SPARK-39347); and for 1,000 windows and more."""
        length, slide, since = self.length_us, self.slide_us, time_us - self.start_us
        if self.kind == "session" or not length or not slide or since < 0 or length // slide >= 1000:
            return None
        latest = time_us - since % slide
        starts = range(latest, time_us - length, -slide)
        return tuple((start, start + length) for start in reversed(starts))


@dataclass(frozen=True)
class QueryJoin:
    kind: JoinKind
    on: str
    """The condition, in Spark SQL; empty without one."""
    stateful: bool = True
    """Whether both sides are streams; a join with a table keeps no state."""
    watermarked: bool = True
    """Whether each side has a watermark; True without a plan."""


@dataclass(frozen=True)
class QueryAggregation:
    """An aggregation; SELECT DISTINCT, UNION, INTERSECT and EXCEPT of SQL are aggregations without functions."""

    keys: tuple[str, ...]
    windows: tuple[QueryWindow, ...] = ()
    """The windows among its keys, also those that were computed further down."""


@dataclass(frozen=True)
class QueryDeduplication:
    """A deduplication of a DataFrame by columns; by all if there are none."""

    columns: tuple[str, ...]
    """The columns that are compared; empty means all."""
    within_watermark: bool = False
    stateful: bool = True
    """Whether it is of a stream; that of a table keeps no state."""
    sees_time: bool = True
    """Whether its rows have the event time, which the optimizer removes if nothing above needs it; True without a plan."""


@dataclass(frozen=True)
class QueryStateFunction:
    """``applyInPandasWithState`` or ``transformWithState``."""

    operation: str
    function: str
    times_out: bool = False
    """Whether a plan shows that keys may time out by event time."""


@dataclass(frozen=True)
class QueryUnion:
    """A union of two sides, ``UNION ALL`` in SQL."""


@dataclass(frozen=True)
class QueryLimit:
    """A limit on the number of rows."""


Operator: TypeAlias = (
    QuerySource
    | QueryWatermark
    | QueryWindow
    | QueryJoin
    | QueryAggregation
    | QueryDeduplication
    | QueryStateFunction
    | QueryUnion
    | QueryLimit
)
StatefulOperator: TypeAlias = QueryJoin | QueryAggregation | QueryDeduplication | QueryStateFunction
_Kind = TypeVar("_Kind", bound=Operator)


class _All(Generic[_Kind]):
    """The operators of one kind, as an attribute of a reading."""

    def __init__(self, kind: type[_Kind]) -> None:
        self._kind = kind

    def __get__(self, reading: QueryReading, _: type[QueryReading]) -> tuple[_Kind, ...]:
        return tuple(operator for operator in reading.operators if isinstance(operator, self._kind))


@dataclass(frozen=True)
class QueryReading:
    operators: tuple[Operator, ...]
    """In the order in which rows pass them; of a join or union the left side first."""
    functions: frozenset[str] = frozenset()
    """The names of all functions that it calls, in lower case."""
    uses_sql: bool = False
    """Whether a part of it is a SQL statement."""
    unread: tuple[str, ...] = ()
    """What could not be read, as a phrase: ``the function jobs:totals``. Nothing is known of it."""

    sources = _All(QuerySource)
    watermarks = _All(QueryWatermark)
    windows = _All(QueryWindow)
    joins = _All(QueryJoin)
    aggregations = _All(QueryAggregation)
    deduplications = _All(QueryDeduplication)
    state_functions = _All(QueryStateFunction)
    unions = _All(QueryUnion)
    limits = _All(QueryLimit)

    @property
    def stateful(self) -> tuple[StatefulOperator, ...]:
        """The operators that keep state in each output mode; a limit does in some only."""
        keeping = (operator for operator in self.operators if isinstance(operator, StatefulOperator))
        return tuple(operator for operator in keeping if getattr(operator, "stateful", True))


PHYSICAL_PLAN = "== Physical Plan =="
"""The head of the part of an extended plan that says what runs."""
_ANALYZED_PLAN = "== Analyzed Logical Plan =="
"""The head of the part in which the clock is not a constant yet."""

_NODE = re.compile(r"^(?P<indent>[\s:+-]*)(?:\*\s*\(\d+\)\s*|[~!])*(?P<name>[A-Za-z]\w*)(?P<arguments>.*)$")
_CALL = re.compile(r"\b([A-Za-z_]\w*)\(")
_ALIAS = re.compile(r" AS (\w+)#\d+L?\W*$")
_PLACES = {"Project": "projection", "Filter": "filter", "Aggregate": "aggregation", "Join": "join"}
_JOIN_KINDS: Mapping[str, JoinKind] = {
    "LeftOuter": "leftOuter",
    "RightOuter": "rightOuter",
    "FullOuter": "fullOuter",
    "LeftSemi": "leftSemi",
    "LeftAnti": "leftAnti",
}
_JOIN_KIND = re.compile(rf"\b(Inner|Cross|{'|'.join(_JOIN_KINDS)})\b")
_CONDITION = re.compile(r"\bboth = (.*), full = ")
_ATTRIBUTE = re.compile(r"#\d+L?(-T\d+ms)?")
_EVENT_TIME = re.compile(r"-T\d+ms\W*$")
_WATERMARK = re.compile(r"(?P<column>[^\s,][^,]*?)#\d+[^,]*(?:<.*>)?, (?P<delay>.*)")
_JOINS_WITH_TABLES = ("BroadcastHashJoin", "BroadcastNestedLoopJoin", "ShuffledHashJoin", "SortMergeJoin")
_STATE_FUNCTIONS = re.compile(r"(FlatMapGroups(InPandas)?|MapGroups)WithState|TransformWithState\w*")


@dataclass(frozen=True)
class PlanNode:
    """An operator of a plan."""

    name: str
    arguments: str
    """The arguments as they are printed."""
    children: tuple[PlanNode, ...]

    def upwards(self) -> Iterator[PlanNode]:
        """Yield every operator in the order in which rows pass them."""
        for child in self.children:
            yield from child.upwards()
        yield self

    def downwards(self) -> Iterator[PlanNode]:
        """Yield every operator from the top, in the order in which a plan is printed."""
        yield self
        for child in self.children:
            yield from child.downwards()


def physical_plan(text: str) -> tuple[PlanNode, ...]:
    """Return the roots of the physical plan in an extended plan; a printed plan has one."""
    return _plan(text.rpartition(PHYSICAL_PLAN)[2])


def analyzed_plan(text: str) -> tuple[PlanNode, ...]:
    """Return the roots of the analysed plan in an extended plan, or of a text that is this plan."""
    _, head, rest = text.partition(_ANALYZED_PLAN)
    # The first line is the schema.
    return _plan(rest.partition("\n== ")[0].lstrip("\n").partition("\n")[2] if head else text)


def _plan(text: str) -> tuple[PlanNode, ...]:
    lines = filter(None, map(_NODE.match, text.splitlines()))
    return tuple(_trees([(len(line["indent"]), line["name"], line["arguments"]) for line in lines]))


def _trees(nodes: list[tuple[int, str, str]]) -> Iterator[PlanNode]:
    while nodes:
        indent, name, arguments = nodes[0]
        below = next((at for at, node in enumerate(nodes) if at and node[0] <= indent), len(nodes))
        yield PlanNode(name, arguments, tuple(_trees(nodes[1:below])))
        nodes = nodes[below:]


def read_plan(text: str) -> QueryReading:
    """Read a query from its extended plan, which shows neither its sources nor its functions."""
    nodes = chain.from_iterable(root.upwards() for root in physical_plan(text))
    return QueryReading(tuple(chain.from_iterable(map(_operators, nodes))))


class PlanCall(NamedTuple):
    function: str
    """The name in lower case."""
    text: str
    """The call as it is printed: ``rand(-42)``."""
    place: str
    """The operator with the column that the call computes: ``the projection of r``."""


def read_calls(text: str) -> Iterator[PlanCall]:
    """Yield the calls of functions in an extended plan, before its optimizer makes constants of the clock and of others."""
    for line in text.partition(_ANALYZED_PLAN)[2].partition("\n== ")[0].splitlines():
        # The first line is the schema.
        if (node := _NODE.match(line)) and not node["arguments"].startswith(":"):
            place = "the " + _PLACES.get(node["name"], f"operator {node['name']}")
            for expression in expressions(node["arguments"]):
                alias = _ALIAS.search(expression)
                for call in _CALL.finditer(expression):
                    whole = expression[call.start() : _end_of_call(expression, call.end())]
                    yield PlanCall(call[1].lower(), whole, f"{place} of {alias[1]}" if alias else place)


def expressions(arguments: str) -> Iterator[str]:
    """Yield the expressions of an operator, which commas divide outside of calls; lists of them stand in brackets."""
    depth = start = 0
    for at, sign in enumerate(arguments):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth <= 1:
            yield arguments[start:at]
            start = at + 1
    yield arguments[start:]


def _end_of_call(text: str, start: int) -> int:
    depth = 1
    for at, sign in enumerate(text[start:], start + 1):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return at
    return len(text)


def _operators(node: PlanNode) -> Iterator[Operator]:
    match node.name:
        case "StateStoreSave" | "SessionWindowStateStoreSave":
            keys = tuple(node.arguments.partition("[")[2].partition("]")[0].split(", "))
            window = QueryWindow(None, "", None, None, 0, (), filtered=False)
            windows = tuple(window for key in keys if key.startswith("window#"))
            yield QueryAggregation(
                keys, (replace(window, kind="session"),) if node.name.startswith("Session") else windows
            )
        case "StreamingSymmetricHashJoin":
            condition = _CONDITION.search(node.arguments)
            marked = (any(map(_has_event_time, side.upwards())) for side in node.children)
            yield QueryJoin(
                _join_kind(node), _ATTRIBUTE.sub("", condition[1]) if condition else "", watermarked=all(marked)
            )
        case "StreamingDeduplicate" | "StreamingDeduplicateWithinWatermark":
            yield QueryDeduplication((), node.name.endswith("Watermark"), sees_time=_sees_time(node))
        case "Union":
            yield QueryUnion()
        case "EventTimeWatermark":
            yield watermark_of(node)
        case "StreamingGlobalLimit":
            yield QueryLimit()
        case name if name in _JOINS_WITH_TABLES:
            yield QueryJoin(_join_kind(node), "", stateful=False)
        case name if _STATE_FUNCTIONS.fullmatch(name):
            yield QueryStateFunction(name, "", times_out="EventTime" in node.arguments)


def _has_event_time(node: PlanNode) -> bool:
    """Return whether an operator has a watermark; a side that is planned like another shows only its columns, ``ReusedExchange``."""
    return node.name == "EventTimeWatermark" or any(map(_EVENT_TIME.search, expressions(node.arguments)))


def watermark_of(node: PlanNode) -> QueryWatermark:
    """Read an ``EventTimeWatermark``."""
    # From 4.1 on, the id of the operator comes first.
    printed = _WATERMARK.search(node.arguments)
    return QueryWatermark(None, printed["column"] if printed else "", printed["delay"] if printed else "")


def _sees_time(node: PlanNode) -> bool:
    """Return whether the event time is among the columns that the nearest operator below which lists them hands over."""
    while node.name not in ("EventTimeWatermark", "Project", "HashAggregate") and len(node.children) == 1:
        (node,) = node.children
    return node.name != "Project" or _has_event_time(node)


def _join_kind(node: PlanNode) -> JoinKind:
    # Behind the lists of keys, in which a column may have any name.
    printed = _JOIN_KIND.search(re.sub(r"\[[^\]]*\]", "", node.arguments))
    return _JOIN_KINDS.get(printed[1], "inner") if printed else "inner"
