"""The operations of a query: one class each, whose fields say in their roles what they hold.

From a class come the grammar of its operation, the JSON Schema, reading, printing and the wire of the driver. Code that treats
operations differently matches the classes and ends in ``assert_never``: the type checker lists where a new operation is missing. The
docstring of a class is the description that editors show, in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, cast, get_args, get_type_hints

from pydantic.alias_generators import to_camel

from conformance.core import roles
from conformance.core.data import Json
from conformance.core.roles import Role

STATE_FUNCTIONS = (
    "count_until_watermark",
    "count_until_watermark_by_datetime",
    "count_until_silent_for_ten_seconds",
    "count_rows",
    "time_out_at_latest",
)
"""The functions that ``applyInPandasWithState`` may name, implemented in ``harness/driver/state_functions.py``."""

STATEFUL_PROCESSORS = (
    "count_until_watermark",
    "number_rows",
    "number_rows_an_hour_back",
    "number_rows_for_a_day",
    "number_rows_for_a_millisecond",
)
"""The processors that ``transformWithState`` may name, implemented in ``harness/driver/stateful_processors.py``."""

_DIRECTION = re.compile(r"\s+(?P<direction>asc|desc)(\s+nulls\s+(?P<nulls>first|last))?\s*$", re.IGNORECASE)


class SortOrder(NamedTuple):
    """An item of ``orderBy``: ``total DESC NULLS LAST``."""

    expression: str
    ascending: bool
    nulls_first: bool


def sort_order(text: str) -> SortOrder:
    """What an item of ``orderBy`` says; without a direction it is ascending, and null is the smallest value, as in Spark."""
    match = _DIRECTION.search(text)
    if match is None:
        return SortOrder(text, ascending=True, nulls_first=True)
    ascending = match["direction"].lower() == "asc"
    nulls_first = ascending if match["nulls"] is None else match["nulls"].lower() == "first"
    return SortOrder(text[: match.start()], ascending, nulls_first)


JoinType: TypeAlias = Literal["inner", "leftOuter", "rightOuter", "fullOuter", "leftSemi"]
OutputMode: TypeAlias = Literal["append", "update", "complete"]
Timeout: TypeAlias = Literal["NoTimeout", "ProcessingTimeTimeout", "EventTimeTimeout"]
TimeMode: TypeAlias = Literal["None", "ProcessingTime", "EventTime"]
NullCheck: TypeAlias = Literal["any", "all"]

_OF_FUNCTION = roles.Choice("What the function emits.", "output mode", get_args(OutputMode))
_GROUPING = roles.Columns("the grouping columns", at_least=1)


class Part(NamedTuple):
    """A field of an operation as it is written."""

    name: str
    key: str
    role: Role
    default: object
    """``MISSING`` if it must be written."""

    @property
    def required(self) -> bool:
        return self.default is MISSING


class Written:
    """A frozen class whose fields are written as the keys of a mapping; a field that has its default is left out."""

    @classmethod
    def parts(cls) -> tuple[Part, ...]:
        """Give the fields that have a role, in order."""
        return _parts(cast(Any, cls))

    @classmethod
    def description(cls) -> str:
        """Give the docstring as one paragraph."""
        return " ".join((cls.__doc__ or "").split())

    @classmethod
    def from_keys(cls, written: Mapping[str, Json]) -> Self:
        """Read a valid mapping."""
        return cls(**{part.name: _read(part.role, written[part.key]) for part in cls.parts() if part.key in written})

    def values(self) -> Iterator[tuple[Part, Any]]:
        """Give the fields that have a role with their values."""
        return ((part, getattr(self, part.name)) for part in self.parts())

    def with_values(self, **values: object) -> Self:
        """Replace the values of fields, which are given by name."""
        return replace(cast(Any, self), **values) if values else self

    def keys(self) -> dict[str, Json]:
        """Structure it like the YAML."""
        return {part.key: _written(value) for part, value in self.values() if value != part.default}


Form: TypeAlias = Literal["keys", "list", "mapping"]
"""How an operation is written: its first field under its name and each other one under its own key; or all fields in order as a list, or as
a mapping, under its name."""


class _Operation(Written):
    name: ClassVar[str]
    """Its name in the language, that of the DataFrame method."""
    form: ClassVar[Form] = "keys"
    may_keep_state: ClassVar[bool] = False
    """Whether it keeps state between micro-batches, or may."""

    def __init_subclass__(cls, form: Form = "keys") -> None:
        cls.name = cls.__name__[:1].lower() + cls.__name__[1:]
        cls.form = form

    @property
    def nested(self) -> tuple[Pipeline, ...]:
        """The pipelines whose DataFrames it gets besides the one so far, in the order in which they are written."""
        found: list[Pipeline] = []
        for part, value in self.values():
            match part.role:
                case roles.OtherPipeline():
                    found.append(value)
                case roles.Views():
                    found += value.values()
                case roles.Streams():
                    found += (Pipeline((From(stream),)) for stream in value)
        return tuple(found)

    def wire(self) -> dict[str, Json]:
        """Structure it like the YAML, as the driver reads it."""
        if self.form == "mapping":
            return {self.name: self.keys()}
        if self.form == "list":
            return {self.name: [value for _, value in self.values()]}
        return self.keys() if self.parts() else {self.name: True}

    def texts(self) -> Iterator[str]:
        """Give what it passes to Spark as SQL, without that of nested pipelines."""
        for part, value in self.values():
            if isinstance(part.role, roles.Expression | roles.Statement) and value is not None:
                yield value
            elif isinstance(part.role, roles.Expressions | roles.SortOrders):
                yield from value


class KeepsColumns(_Operation):
    """An operation after which a DataFrame has the same columns."""


class Filter(KeepsColumns):
    """An operation that lets through some rows, each by its own values."""


class Deduplication(KeepsColumns):
    """An operation that drops rows that came before."""

    columns: tuple[str, ...]
    within_watermark: ClassVar[bool] = False
    may_keep_state = True


class PythonState(_Operation):
    """An operation with state that Python code manages."""

    by: tuple[str, ...]
    may_keep_state = True


class Opaque(_Operation):
    """An operation with SQL or code that is not analysed: it may keep state."""

    may_keep_state = True


# The classes, in the order in which messages and the schema list them.


@dataclass(frozen=True)
class From(_Operation):
    """The stream to read; naming it twice in a query reads one DataFrame twice."""

    stream: Annotated[str, roles.Stream()]
    source_name: Annotated[
        str | None,
        roles.Text(
            "The name of the source, `DataStreamReader.name` (4.2+), under which the checkpoint keeps its offsets.",
            "the name of a source, such as orders",
        ),
    ] = field(default=None, metadata={"key": "name"})


@dataclass(frozen=True)
class WithWatermark(KeepsColumns, form="list"):
    """`[column, delay]`: the event-time column and the delay of the watermark."""

    column: Annotated[str, roles.Column(may_be_empty=True)]
    delay: Annotated[str, roles.Delay()]


@dataclass(frozen=True)
class Where(Filter):
    """Keep the rows for which the expression is true."""

    condition: Annotated[str, roles.Expression()]


@dataclass(frozen=True)
class Select(_Operation):
    """The columns, as expressions; a plain `window(...)` is named `window`."""

    columns: Annotated[tuple[str, ...], roles.Expressions(at_least=1)]


@dataclass(frozen=True)
class WithColumn(_Operation, form="list"):
    """`[name, expression]`: add a column or replace it."""

    column: Annotated[str, roles.NewColumn()] = field(metadata={"key": "name"})
    expression: Annotated[str, roles.Expression()]


@dataclass(frozen=True)
class Drop(_Operation):
    """Columns to drop."""

    columns: Annotated[tuple[str, ...], roles.Columns(at_least=1)]


@dataclass(frozen=True)
class Alias(KeepsColumns):
    """A name for the DataFrame, to qualify columns with."""

    alias: Annotated[str, roles.Alias()]


@dataclass(frozen=True)
class GroupBy(_Operation):
    """Grouping expressions, including `window(...)` and `session_window(...)`."""

    by: Annotated[tuple[str, ...], roles.Expressions()]
    agg: Annotated[tuple[str, ...], roles.Expressions("the aggregates, such as `sum(count) AS total`", at_least=1)]
    may_keep_state = True


@dataclass(frozen=True)
class Join(_Operation):
    """Join with another pipeline."""

    other: Annotated[Pipeline, roles.OtherPipeline()]
    on: Annotated[str, roles.Expression("the join condition, an expression")]
    how: Annotated[
        JoinType | None, roles.Choice("The join type; `inner` if absent.", "join type", get_args(JoinType))
    ] = None
    may_keep_state = True


@dataclass(frozen=True)
class Union(_Operation):
    """The rows of this pipeline and of another one."""

    other: Annotated[Pipeline, roles.OtherPipeline()]


@dataclass(frozen=True)
class Distinct(Deduplication):
    """Drop rows that are equal in every column."""

    columns: tuple[str, ...] = field(default=(), init=False)


@dataclass(frozen=True)
class DropDuplicates(Deduplication):
    """Drop rows that are equal in these columns; an empty list means all columns."""

    columns: Annotated[tuple[str, ...], roles.Columns()]


@dataclass(frozen=True)
class DropDuplicatesWithinWatermark(Deduplication):
    """Drop rows that are equal in these columns within the watermark delay (3.5+); an empty list means all columns."""

    columns: Annotated[tuple[str, ...], roles.Columns()]
    within_watermark = True


@dataclass(frozen=True)
class Sql(Opaque):
    """A SQL query over the DataFrame so far, and over the DataFrames of `views`."""

    statement: Annotated[str, roles.Statement()]
    as_: Annotated[str, roles.Alias("the name of the view that the query reads", "a view name")]
    views: Annotated[
        Mapping[str, Pipeline], roles.Views("Other views that the query reads: name → the pipeline of its DataFrame.")
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class OrderBy(KeepsColumns):
    """Sort by these expressions, each followed by ASC or DESC if wanted; Spark sorts complete mode only."""

    orders: Annotated[tuple[str, ...], roles.SortOrders()]


@dataclass(frozen=True)
class Limit(KeepsColumns):
    """Keep that many rows: of the stream, in complete mode of each result."""

    rows: Annotated[int, roles.Number()]
    may_keep_state = True


@dataclass(frozen=True, kw_only=True)
class ApplyInPandasWithState(PythonState, form="mapping"):
    """A named state function over pandas DataFrames (3.4+)."""

    by: Annotated[tuple[str, ...], _GROUPING]
    output_mode: Annotated[OutputMode, _OF_FUNCTION] = "append"
    with_: Annotated[str, roles.Choice("a state function that ships with the suite", "state function", STATE_FUNCTIONS)]
    timeout: Annotated[
        Timeout,
        roles.Choice("The timeout of a group's state; `NoTimeout` if absent.", "timeout", get_args(Timeout)),
    ] = "NoTimeout"


@dataclass(frozen=True, kw_only=True)
class TransformWithState(PythonState, form="mapping"):
    """A named stateful processor (4.0+); needs the RocksDB state store."""

    by: Annotated[tuple[str, ...], _GROUPING]
    output_mode: Annotated[OutputMode, _OF_FUNCTION] = "append"
    with_: Annotated[
        str, roles.Choice("a stateful processor that ships with the suite", "stateful processor", STATEFUL_PROCESSORS)
    ]
    in_pandas: Annotated[
        bool,
        roles.Only("`false`: the processor gets rows (`transformWithState`, 4.1+), not pandas DataFrames.", False),
    ] = True
    time_mode: Annotated[
        TimeMode, roles.Choice("The time that its timers use; `None` if absent.", "time mode", get_args(TimeMode))
    ] = "None"
    event_time_column: Annotated[str | None, roles.NewColumn("The event-time column of its output.")] = None
    state: Annotated[
        str | None,
        roles.SchemaOfState(
            "The columns in which a processor that numbers rows keeps a number: in `count`, or in the first if none has that name; "
            "the others stay null. `count BIGINT` if absent."
        ),
    ] = None
    initial_state: Annotated[
        str | None,
        roles.Statement(
            "A SQL query over constants, or over the view `state` after `restart: {checkpoint: new}`; its rows are the initial "
            "state of the groups.",
            reads_state=True,
        ),
    ] = None


@dataclass(frozen=True)
class Call(Opaque):
    """`module:function`: your own `function(spark, DataFrame) -> DataFrame`; or `{program: job.py}`: your own program, with the streams
    that it reads in `with`; or `{sql: [...]}`: your own statements; or `{jvm: package.Class.method, jar: jobs.jar}`; needs
    `--allow-code`."""

    called: Annotated[Called, roles.Called()]
    with_: Annotated[
        tuple[str, ...],
        roles.Streams(
            "The streams that the function gets, in this order, where it starts a pipeline: `function(spark, orders, clicks) -> "
            "DataFrame`; of a program or SQL, those that it reads."
        ),
    ] = ()

    @property
    def jars(self) -> tuple[str, ...]:
        """The jars that it names."""
        jar = self.called.jar if isinstance(self.called, Main | Method) else ()
        return (jar,) if isinstance(jar, str) else jar


# What an operation calls.

_ARGUMENT = roles.Text(kind="an argument", may_be_empty=True)
_STARTED = roles.Number("Which of the queries that it starts: the first is 1, also if absent.")
_JARS = roles.Jars(
    "Its jar, relative to a folder of your code, or several, as `--jar` names them: `2.12=jobs_2.12.jar` is only for a Spark that is "
    "built for this version of Scala. Absent: those of `--jar`."
)


@dataclass(frozen=True)
class Program(Written):
    """Your own program, unchanged: it reads the streams of `with`, and a query that it starts is that of the case."""

    program: Annotated[
        str,
        roles.Text(
            "your own program: its file, relative to a folder of your code, or its module",
            "a file ending in .py, or a module: jobs/clicked.py",
            r"^(?:[A-Za-z_][A-Za-z0-9_.]*|[^/\\].*\.py)$",
        ),
    ]
    arguments: Annotated[
        tuple[str, ...], roles.Texts("Its arguments, `sys.argv[1:]`.", "a list of arguments", _ARGUMENT)
    ] = ()
    query: Annotated[int, _STARTED] = 1
    sinks: Annotated[
        bool,
        roles.Only("Its function of `foreachBatch` or `foreach` is called: what it writes, it writes each time."),
    ] = False


@dataclass(frozen=True)
class Main(Written):
    """A main method of your jars, unchanged: it reads the streams of `with`, and a query that it starts is that of the case."""

    main: Annotated[
        str,
        roles.Text(
            "your own program of Java or Scala: a class of your jars with the method `main`",
            "package.Class",
            r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*$",
        ),
    ]
    arguments: Annotated[tuple[str, ...], roles.Texts("Its arguments.", "a list of arguments", _ARGUMENT)] = ()
    query: Annotated[int, _STARTED] = 1
    jar: Annotated[str | tuple[str, ...], _JARS] = ()


@dataclass(frozen=True)
class Statements(Written):
    """Your own SQL: temporary views, settings, and at the end a query."""

    sql: Annotated[
        tuple[str, ...],
        roles.Texts(
            "your own statements in order, over temporary views of the streams; the last one is the query",
            "a list of SQL statements",
            roles.Text(kind="a SQL statement"),
            at_least=1,
        ),
    ]
    watermarks: Annotated[
        Mapping[str, tuple[str, str]],
        roles.Watermarks("Stream → `[column, delay]`, its watermark before it becomes a view."),
    ] = field(default_factory=dict)


@dataclass(frozen=True)
class Method(Written):
    """A method of your jars."""

    jvm: Annotated[
        str,
        roles.Text(
            "`package.Class.method` of your jars, `--jar`: a static method or one of a Scala object that takes the session, or not, and "
            "DataFrames, and returns a DataFrame",
            "package.Class.method",
            r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+$",
        ),
    ]
    jar: Annotated[str | tuple[str, ...], _JARS] = ()


Called: TypeAlias = str | Program | Main | Statements | Method
"""``module:function``, or one of these."""
CALLED: tuple[type[Program | Main | Statements | Method], ...] = (Program, Main, Statements, Method)
"""The classes of what a mapping calls; only one of them has the key of its first field."""

Operation: TypeAlias = (
    From
    | WithWatermark
    | Where
    | Select
    | WithColumn
    | Drop
    | Alias
    | GroupBy
    | Join
    | Union
    | Distinct
    | DropDuplicates
    | DropDuplicatesWithinWatermark
    | Sql
    | OrderBy
    | Limit
    | ApplyInPandasWithState
    | TransformWithState
    | Call
)
OPERATIONS: Mapping[str, type[Operation]] = {kind.name: kind for kind in get_args(Operation)}
"""Name in the language → the class of the operation."""


@dataclass(frozen=True)
class Pipeline:
    """Operations in order; the first is ``from``, or a call that gets streams."""

    operations: tuple[Operation, ...]

    def walk(self) -> Iterator[Operation]:
        """All operations, including those of nested pipelines."""
        for operation in self.operations:
            yield operation
            for nested in operation.nested:
                yield from nested.walk()

    def streams(self) -> frozenset[str]:
        return frozenset(operation.stream for operation in self.walk() if isinstance(operation, From))

    def changed(self, change: Callable[[Operation], Operation]) -> Pipeline:
        """The pipeline with each operation changed, after the pipelines in it."""
        return Pipeline(tuple(change(_with_nested(operation, change)) for operation in self.operations))

    def wire(self) -> list[dict[str, Json]]:
        """Structured like the YAML, with nested pipelines inside their operations, as the driver reads it."""
        return [operation.wire() for operation in self.operations]


def _with_nested(operation: Operation, change: Callable[[Operation], Operation]) -> Operation:
    changed: dict[str, Any] = {}
    for part, value in operation.values():
        if isinstance(part.role, roles.OtherPipeline):
            changed[part.name] = value.changed(change)
        elif isinstance(part.role, roles.Views):
            changed[part.name] = {name: view.changed(change) for name, view in value.items()}
    return operation.with_values(**changed)


def read_pipeline(written: list[dict[str, Json]]) -> Pipeline:
    """Read a valid list of operations, structured like the YAML."""
    return Pipeline(tuple(map(read_operation, written)))


def read_operation(written: Mapping[str, Json]) -> Operation:
    """Read a valid mapping, structured like the YAML."""
    kind = OPERATIONS[next(name for name in written if name in OPERATIONS)]
    match kind.form:
        case "keys":
            return kind.from_keys(written)
        case "mapping":
            return kind.from_keys(written[kind.name])
        case "list":
            return kind.from_keys(dict(zip((part.key for part in kind.parts()), written[kind.name], strict=True)))


def _read(role: Role, written: Json) -> Json:
    match role:
        case roles.OtherPipeline():
            return read_pipeline(written)
        case roles.Views():
            return {name: read_pipeline(view) for name, view in written.items()}
        case roles.Watermarks():
            return {stream: tuple(watermark) for stream, watermark in written.items()}
        case roles.Called() if isinstance(written, Mapping):
            return next(kind for kind in CALLED if kind.parts()[0].key in written).from_keys(written)
        case _ if isinstance(written, list):
            return tuple(written)
        case _:
            return written


def _written(value: Json) -> Json:
    if isinstance(value, Pipeline):
        return value.wire()
    if isinstance(value, Written):
        return value.keys()
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    return [*value] if isinstance(value, tuple) else value


@cache
def _parts(kind: Any) -> tuple[Part, ...]:
    hints = get_type_hints(kind, include_extras=True)
    parts: list[Part] = []
    for given in fields(kind):
        for role in getattr(hints[given.name], "__metadata__", ()):
            first = not parts and getattr(kind, "form", None) == "keys"
            key = kind.name if first else given.metadata.get("key") or to_camel(given.name.rstrip("_"))
            default = given.default if given.default_factory is MISSING else given.default_factory()
            parts.append(Part(given.name, key, role, default))
    return tuple(parts)
