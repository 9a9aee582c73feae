"""The operations of a query: one class each, whose fields say in their roles what they hold.

From a class come the grammar of its operation, the JSON Schema, reading, printing and the wire of the driver. Code that treats
operations differently matches the classes and ends in ``assert_never``: the type checker lists where a new operation is missing. The
docstring of a class is the description that editors show, in Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache, cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeAlias, cast, dataclass_transform, get_args

from pydantic.alias_generators import to_camel

from conformance.core.data import Json
from conformance.core.roles import IN_SQL, PIPELINES, Part, Role, chooses, holds

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
"""The processors that ``transformWithState`` may name, implemented in ``harness/driver/state_functions.py``."""

STATE_VIEW = "state"
"""The view that an ``initialState`` may read: the rows of the statestore source for the checkpoint before a ``new`` one."""

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
Form: TypeAlias = Literal["keys", "list", "mapping"]
"""How an operation is written: its first field under its name and each other one under its own key; or all fields in order as a list, or as
a mapping, under its name."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(holds, chooses, field))
class WrittenFields:
    """A frozen class whose fields are written as the keys of a mapping; a field that has its default is left out."""

    name: ClassVar[str]
    """The name of an operation in the language, that of the DataFrame method."""
    form: ClassVar[Form] = "mapping"

    def __init_subclass__(cls) -> None:
        cls.name = cls.__name__[:1].lower() + cls.__name__[1:]
        dataclass(frozen=True, kw_only=True)(cls)

    @classmethod
    def parts(cls, *roles: Role) -> tuple[Part, ...]:
        """Give the fields that are written, in order, or those in some roles."""
        return _parts(cast(Any, cls), roles)

    @classmethod
    def description(cls) -> str:
        """Give the docstring as one paragraph."""
        return " ".join((cls.__doc__ or "").split())

    @classmethod
    def from_keys(cls, written: Mapping[str, Json]) -> Self:
        """Read a valid mapping."""
        return cls(**{part.name: _read(part.role, written[part.key]) for part in cls.parts() if part.key in written})

    def values(self, *roles: Role) -> Iterator[tuple[Part, Any]]:
        """Give the fields that are written, or those in some roles, with their values."""
        return ((part, getattr(self, part.name)) for part in self.parts(*roles))

    def with_values(self, **values: object) -> Self:
        """Replace the values of fields, which are given by name."""
        return replace(self, **values) if values else self  # type: ignore[type-var]

    def keys(self) -> dict[str, Json]:
        """Structure it like the YAML."""
        return {part.key: _written(value) for part, value in self.values() if value != part.default}


class _Operation(WrittenFields):
    form: ClassVar[Form] = "keys"
    may_keep_state: ClassVar[bool] = False
    """Whether it keeps state between micro-batches, or may."""

    @cached_property
    def nested(self) -> tuple[Pipeline, ...]:
        """The pipelines whose DataFrames it gets besides the one so far, in the order in which they are written."""
        found: list[Pipeline] = []
        for part, value in self.values(*PIPELINES, Role.STREAMS):
            match part.role:
                case Role.OTHER_PIPELINE:
                    found.append(value)
                case Role.VIEWS:
                    found += value.values()
                case Role.STREAMS:
                    found += (Pipeline((From(stream=stream),)) for stream in value)
        return tuple(found)

    def texts(self) -> Iterator[str]:
        """Give what it passes to Spark as SQL, without that of nested pipelines."""
        for _, value in self.values(*IN_SQL):
            yield from (value,) if isinstance(value, str) else value or ()

    def wire(self) -> dict[str, Json]:
        """Structure it like the YAML, as the driver reads it."""
        match self.form:
            case "keys":
                return self.keys() if self.parts() else {self.name: True}
            case "mapping":
                return {self.name: self.keys()}
            case "list":
                return {self.name: [value for _, value in self.values()]}


class KeepsColumns(_Operation):
    """An operation after which a DataFrame has the same columns."""


class RowFilter(KeepsColumns):
    """An operation that lets through some rows, each by its own values."""


class Deduplication(KeepsColumns):
    """An operation that drops rows that came before."""

    columns: tuple[str, ...]
    within_watermark: ClassVar[bool] = False
    may_keep_state = True


class PythonState(_Operation):
    """An operation with state that Python code manages."""

    form = "mapping"
    may_keep_state = True
    by: tuple[str, ...] = holds(Role.COLUMNS, "the grouping columns")
    output_mode: OutputMode = chooses(get_args(OutputMode), "output mode", "What the function emits.", default="append")


class Opaque(_Operation):
    """An operation with SQL or code that is not analysed: it may keep state."""

    may_keep_state = True


# The classes, in the order in which messages and the schema list them.


class From(_Operation):
    """The stream to read; naming it twice in a query reads one DataFrame twice."""

    stream: str = holds(Role.STREAM)
    source_name: str | None = holds(
        Role.TEXT,
        "The name of the source, `DataStreamReader.name` (4.2+), under which the checkpoint keeps its offsets.",
        "the name of a source, such as orders",
        key="name",
        default=None,
    )


class WithWatermark(KeepsColumns):
    """`[column, delay]`: the event-time column and the delay of the watermark."""

    form = "list"
    column: str = holds(Role.COLUMN, least=0)
    delay: str = holds(Role.DELAY)


class Where(RowFilter):
    """Keep the rows for which the expression is true."""

    condition: str = holds(Role.EXPRESSION)


class Dropna(RowFilter):
    """Keep the rows that have a value, neither null nor NaN, in these columns."""

    form = "mapping"
    how: NullCheck = chooses(
        get_args(NullCheck),
        "null check",
        "`any`: drop a row with a null in any column; `all`: only one with nulls in all; `any` if absent.",
        default="any",
    )
    thresh: int | None = holds(
        Role.NUMBER, "Keep the rows that have a value in that many columns, whatever `how` says.", default=None
    )
    subset: tuple[str, ...] = holds(Role.COLUMNS, "The columns that are looked at; all if absent.", default=())

    def least(self, columns: int) -> int:
        """In how many of so many columns a row has a value that is kept."""
        return self.thresh or (columns if self.how == "any" else 1)


class Select(_Operation):
    """The columns, as expressions; a plain `window(...)` is named `window`."""

    columns: tuple[str, ...] = holds(Role.EXPRESSIONS)


class WithColumn(_Operation):
    """`[name, expression]`: add a column or replace it."""

    form = "list"
    column: str = holds(Role.NEW_COLUMN, key="name")
    expression: str = holds(Role.EXPRESSION)


class Drop(_Operation):
    """Columns to drop."""

    columns: tuple[str, ...] = holds(Role.COLUMNS)


class Alias(KeepsColumns):
    """A name for the DataFrame, to qualify columns with."""

    alias: str = holds(Role.ALIAS)


class GroupBy(_Operation):
    """Grouping expressions, including `window(...)` and `session_window(...)`."""

    may_keep_state = True
    by: tuple[str, ...] = holds(Role.EXPRESSIONS, least=0)
    agg: tuple[str, ...] = holds(Role.EXPRESSIONS, "the aggregates, such as `sum(count) AS total`")


class Join(_Operation):
    """Join with another pipeline."""

    may_keep_state = True
    other: Pipeline = holds(Role.OTHER_PIPELINE)
    on: str = holds(Role.EXPRESSION, "the join condition, an expression")
    how: JoinType | None = chooses(get_args(JoinType), "join type", "The join type; `inner` if absent.", default=None)


class Union(_Operation):
    """The rows of this pipeline and of another one."""

    other: Pipeline = holds(Role.OTHER_PIPELINE)


class Distinct(Deduplication):
    """Drop rows that are equal in every column."""

    columns: tuple[str, ...] = field(default=(), init=False)


class DropDuplicates(Deduplication):
    """Drop rows that are equal in these columns; an empty list means all columns."""

    columns: tuple[str, ...] = holds(Role.COLUMNS, least=0)


class DropDuplicatesWithinWatermark(Deduplication):
    """Drop rows that are equal in these columns within the watermark delay (3.5+); an empty list means all columns."""

    within_watermark = True
    columns: tuple[str, ...] = holds(Role.COLUMNS, least=0)


class Sql(Opaque):
    """A SQL query over the DataFrame so far, and over the DataFrames of `views`."""

    statement: str = holds(Role.STATEMENT)
    as_: str = holds(Role.VIEW, "the name of the view that the query reads")
    views: Mapping[str, Pipeline] = holds(
        Role.VIEWS, "Other views that the query reads: name → the pipeline of its DataFrame.", default_factory=dict
    )


class OrderBy(KeepsColumns):
    """Sort by these expressions, each followed by ASC or DESC if wanted; Spark sorts complete mode only."""

    orders: tuple[str, ...] = holds(Role.SORT_ORDERS)


class Limit(KeepsColumns):
    """Keep that many rows: of the stream, in complete mode of each result."""

    may_keep_state = True
    rows: int = holds(Role.NUMBER)


class ApplyInPandasWithState(PythonState):
    """A named state function over pandas DataFrames (3.4+)."""

    with_: str = chooses(STATE_FUNCTIONS, "state function", "a state function that ships with the suite")
    timeout: Timeout = chooses(
        get_args(Timeout), "timeout", "The timeout of a group's state; `NoTimeout` if absent.", default="NoTimeout"
    )


class TransformWithState(PythonState):
    """A named stateful processor (4.0+); needs the RocksDB state store."""

    with_: str = chooses(STATEFUL_PROCESSORS, "stateful processor", "a stateful processor that ships with the suite")
    in_pandas: bool = holds(
        Role.ONLY,
        "`false`: the processor gets rows (`transformWithState`, 4.1+), not pandas DataFrames.",
        value=False,
        default=True,
    )
    time_mode: TimeMode = chooses(
        get_args(TimeMode), "time mode", "The time that its timers use; `None` if absent.", default="None"
    )
    event_time_column: str | None = holds(Role.NEW_COLUMN, "The event-time column of its output.", default=None)
    state: str | None = holds(
        Role.SCHEMA_OF_STATE,
        "The columns in which a processor that numbers rows keeps a number: in `count`, or in the first if none has that name; "
        "the others stay null. `count BIGINT` if absent.",
        default=None,
    )
    initial_state: str | None = holds(
        Role.INITIAL_STATE,
        "A SQL query over constants, or over the view `state` after `restart: {checkpoint: new}`; its rows are the initial "
        "state of the groups.",
        default=None,
    )


class Call(Opaque):
    """`module:function`: your own `function(spark, DataFrame) -> DataFrame`; or `{program: job.py}`: your own program, with the streams
    that it reads in `with`; or `{sql: [...]}`: your own statements; or `{jvm: package.Class.method, jar: jobs.jar}`; needs
    `--allow-code`."""

    called: Called = holds(Role.CALLED)
    with_: tuple[str, ...] = holds(
        Role.STREAMS,
        "The streams that the function gets, in this order, where it starts a pipeline: `function(spark, orders, clicks) -> "
        "DataFrame`; of a program or SQL, those that it reads.",
        default=(),
    )

    @property
    def jars(self) -> tuple[str, ...]:
        """The jars that it names."""
        jar = self.called.jar if isinstance(self.called, Main | Method) else ()
        return (jar,) if isinstance(jar, str) else jar


# What an operation calls.


def _arguments(description: str) -> Any:
    return holds(Role.TEXTS, description, "an argument", least=0, default=())


def _number_of_query() -> Any:
    return holds(Role.NUMBER, "Which of the queries that it starts: the first is 1, also if absent.", default=1)


def _jars() -> Any:
    return holds(
        Role.JARS,
        "Its jar, relative to a folder of your code, or several, as `--jar` names them: `2.12=jobs_2.12.jar` is only for a Spark that is "
        "built for this version of Scala. Absent: those of `--jar`.",
        default=(),
    )


class Program(WrittenFields):
    """Your own program, unchanged: it reads the streams of `with`, and a query that it starts is that of the case."""

    program: str = holds(
        Role.TEXT,
        "your own program: its file, relative to a folder of your code, or its module; or a notebook, whose cells are in `cells`",
        "a file ending in .py or .ipynb, or a module: jobs/clicked.py",
        r"^(?:[A-Za-z_][A-Za-z0-9_.]*|[^/\\].*\.(?:py|ipynb|sql))$",
    )
    arguments: tuple[str, ...] = _arguments("Its arguments, `sys.argv[1:]`.")
    query: int = _number_of_query()
    sinks: bool = holds(
        Role.ONLY,
        "Its function of `foreachBatch` or `foreach` is called: what it writes, it writes each time.",
        default=False,
    )
    cells: Mapping[str, tuple[str, ...]] = holds(
        Role.CELLS,
        "The cells of the notebook, and of those that it runs by `dbutils.notebook.run`: name → texts, each below a comment that says "
        "where it stands. `conformance check` writes them.",
        default_factory=dict,
    )
    set_: Mapping[str, str] = holds(
        Role.VALUES,
        "What its platform gives a notebook: the value of a widget, or of a secret, scope/key.",
        default_factory=dict,
    )


class Main(WrittenFields):
    """A main method of your jars, unchanged: it reads the streams of `with`, and a query that it starts is that of the case."""

    main: str = holds(
        Role.TEXT,
        "your own program of Java or Scala: a class of your jars with the method `main`",
        "package.Class",
        r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*$",
    )
    arguments: tuple[str, ...] = _arguments("Its arguments.")
    query: int = _number_of_query()
    jar: str | tuple[str, ...] = _jars()


class Statements(WrittenFields):
    """Your own SQL: temporary views, settings, and at the end a query."""

    sql: tuple[str, ...] = holds(
        Role.TEXTS,
        "your own statements in order, over temporary views of the streams; the last one is the query",
        "a SQL statement",
    )
    watermarks: Mapping[str, tuple[str, str]] = holds(
        Role.WATERMARKS,
        "Stream → `[column, delay]`, its watermark before it becomes a view.",
        default_factory=dict,
    )


class Method(WrittenFields):
    """A method of your jars."""

    jvm: str = holds(
        Role.TEXT,
        "`package.Class.method` of your jars, `--jar`: a static method or one of a Scala object that takes the session, or not, and "
        "DataFrames, and returns a DataFrame",
        "package.Class.method",
        r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+$",
    )
    jar: str | tuple[str, ...] = _jars()


Called: TypeAlias = str | Program | Main | Statements | Method
"""``module:function``, or one of these."""
CALLED: tuple[type[Program | Main | Statements | Method], ...] = (Program, Main, Statements, Method)
"""The classes of what a mapping calls; only one of them has the key of its first field."""

Operation: TypeAlias = (
    From
    | WithWatermark
    | Where
    | Dropna
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
    for part, value in operation.values(*PIPELINES):
        views = part.role is Role.VIEWS
        changed[part.name] = (
            {name: view.changed(change) for name, view in value.items()} if views else value.changed(change)
        )
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
        case Role.OTHER_PIPELINE:
            return read_pipeline(written)
        case Role.VIEWS:
            return {name: read_pipeline(view) for name, view in written.items()}
        case Role.WATERMARKS:
            return {stream: tuple(watermark) for stream, watermark in written.items()}
        case Role.CELLS:
            return {name: tuple(cells) for name, cells in written.items()}
        case Role.CALLED if isinstance(written, Mapping):
            return next(kind for kind in CALLED if kind.parts()[0].key in written).from_keys(written)
        case _:
            return tuple(written) if isinstance(written, list) else written


def _written(value: Json) -> Json:
    if isinstance(value, Pipeline):
        return value.wire()
    if isinstance(value, WrittenFields):
        return value.keys()
    if isinstance(value, Mapping):
        return {key: _written(item) for key, item in value.items()}
    return [*value] if isinstance(value, tuple) else value


@cache
def _parts(kind: Any, roles: tuple[Role, ...]) -> tuple[Part, ...]:
    if roles:
        return tuple(part for part in _parts(kind, ()) if part.role in roles)
    parts: list[Part] = []
    for given in fields(kind):
        if (declared := given.metadata.get(Part)) is None:
            continue
        first = kind.form == "keys" and not parts
        key = kind.name if first else declared.key or to_camel(given.name.rstrip("_"))
        default = given.default if given.default_factory is MISSING else given.default_factory()
        parts.append(replace(declared, key=key, name=given.name, default=default))
    return tuple(parts)
