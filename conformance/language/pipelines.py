"""Pipelines: lists of operations, each named after its DataFrame method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

from conformance.core.case import STATE_FUNCTIONS, STATEFUL_PROCESSORS, Operation, OutputMode, Pipeline
from conformance.core.data import Json
from conformance.language.shape import (
    Alternatives,
    ByKind,
    Choice,
    Definition,
    Definitions,
    Key,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    TupleOf,
    constant,
    integer,
    one_or_many,
)
from conformance.language.source import Entries, Items, Node, Report, changed, child, entries_of, items_of
from conformance.language.streams import IDENTIFIER, NAME, Ddl

JOINS = ("inner", "leftOuter", "rightOuter", "fullOuter", "leftSemi")
TIMEOUTS = ("NoTimeout", "ProcessingTimeTimeout", "EventTimeTimeout")
TIME_MODES = ("None", "ProcessingTime", "EventTime")
MAX_OPERATIONS = 1_000
OTHER_SIDES = ("join", "union")
"""Operations whose value is another pipeline."""

FUNCTION = Text("module:function", r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$")
_ARGUMENTS = ListOf(Text("an argument", empty=True), "a list of arguments")
_STARTED = Key(integer(1), "Which of the queries that it starts: the first is 1, also if absent.")
PROGRAM = Record(
    "`call`",
    {
        "program": Key(
            Text("a file ending in .py, or a module: jobs/clicked.py", r"^(?:[A-Za-z_][A-Za-z0-9_.]*|[^/\\].*\.py)$"),
            "your own program: its file, relative to a folder of your code, or its module",
            required=True,
        ),
        "arguments": Key(_ARGUMENTS, "Its arguments, `sys.argv[1:]`."),
        "query": _STARTED,
        "sinks": Key(
            constant(True),
            "Its function of `foreachBatch` or `foreach` is called: what it writes, it writes each time.",
        ),
    },
    description="Your own program, unchanged: it reads the streams of `with`, and a query that it starts is that of the case.",
)
_EXPRESSION = Text("a Spark SQL expression")
_COLUMN = Text("a column name")
_VIEW = Text("a view name", IDENTIFIER)
_POSSIBLY_EMPTY_COLUMN = Text("a column name", empty=True)
"""Cases test that ``withWatermark`` rejects an empty column and an empty delay."""
_WATERMARK = TupleOf((_POSSIBLY_EMPTY_COLUMN, Text("a delay such as '10 minutes'", empty=True)), "[column, delay]")
STATEMENTS = Record(
    "`call`",
    {
        "sql": Key(
            ListOf(Text("a SQL statement"), "a list of SQL statements", at_least=1),
            "your own statements in order, over temporary views of the streams; the last one is the query",
            required=True,
        ),
        "watermarks": Key(
            MapOf(NAME, _WATERMARK, "a mapping from stream to [column, delay]", at_least=1),
            "Stream → `[column, delay]`, its watermark before it becomes a view.",
        ),
    },
    description="Your own SQL: temporary views, settings, and at the end a query.",
)
_JAR = Key(
    one_or_many(
        Text("a jar, such as target/jobs.jar or 2.12=target/jobs.jar", r"^(?:\d+\.\d+=)?[^=]+$"),
        "a jar or a list of jars, such as target/jobs.jar or 2.12=target/jobs.jar",
    ),
    "Its jar, relative to a folder of your code, or several, as `--jar` names them: `2.12=jobs_2.12.jar` is only for a Spark that "
    "is built for this version of Scala. Absent: those of `--jar`.",
)
MAIN = Record(
    "`call`",
    {
        "main": Key(
            Text("package.Class", r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*$"),
            "your own program of Java or Scala: a class of your jars with the method `main`",
            required=True,
        ),
        "arguments": Key(_ARGUMENTS, "Its arguments."),
        "query": _STARTED,
        "jar": _JAR,
    },
    description="A main method of your jars, unchanged: it reads the streams of `with`, and a query that it starts is that of the case.",
)
METHOD = Record(
    "`call`",
    {
        "jvm": Key(
            Text("package.Class.method", r"^[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)+$"),
            "`package.Class.method` of your jars, `--jar`: a static method or one of a Scala object that takes the session, or not, and "
            "DataFrames, and returns a DataFrame",
            required=True,
        ),
        "jar": _JAR,
    },
    description="A method of your jars.",
)
_CALLED = ByKind(
    "`module:function`, or a mapping with the key `program`, `main`, `sql` or `jvm`",
    scalar=FUNCTION,
    entries=Alternatives(
        "`call`", "key", {"program": PROGRAM, "main": MAIN, "sql": STATEMENTS, "jvm": METHOD}, listed=False
    ),
)
_ORDERED = Text("a Spark SQL expression, such as total DESC")
_EXPRESSIONS = ListOf(_EXPRESSION, "a list of Spark SQL expressions", at_least=1)
_COLUMNS = ListOf(_COLUMN, "a list of column names")
_NAMED_COLUMNS = ListOf(_COLUMN, "a list of column names", at_least=1)


class _Pipeline(Shape):
    """Operations in order; the first, and no other, reads streams: ``from``, or ``call`` with ``with``. A mapping is the pipeline of this
    single operation: ``with_lists`` has replaced it before."""

    kind = "a pipeline: a list of operations that starts with `from: <stream>`"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if not node.items:
            return self.reject(node, report, f"must not be empty: expected {self.kind}")
        if len(node.items) > MAX_OPERATIONS:
            return self.reject(
                node, report, f"a pipeline has at most {MAX_OPERATIONS} operations, not {len(node.items)}"
            )
        valid = [OPERATION.check(item, report) for item in node.items]
        if valid[0] and child(node.items[0], "from") is None and child(node.items[0], "with") is None:
            hint = ": write `with: [<stream>, …]` beside `call` for a function that gets streams"
            message = f"a pipeline starts with `from: <stream>`{hint if child(node.items[0], 'call') else ''}"
            valid.append(self.reject(node.items[0], report, message))
        for item in node.items[1:]:
            called = child(item, "call")
            if isinstance(called, Entries):
                valid.append(self.reject(called, report, _STARTS))
            valid += [not report.forbid(item, key, message) for key, message in _FIRST_ONLY.items()]
        return all(valid)

    def schema(self, definitions: Definitions) -> Json:
        call = Definition(_CALL_WITH_STREAMS, "callWithStreams").schema(definitions)
        operations = {
            "type": "array",
            "minItems": 1,
            "items": [{"anyOf": [OPERATIONS["from"].schema(definitions), call]}],
            "additionalItems": Definition(_LATER, "operation").schema(definitions),
        }
        what = "A pipeline: operations, each named after its DataFrame method; or one call of your own function."
        return {"description": what, "anyOf": [operations, call]}

    def value(self, written: list[dict[str, Json]]) -> Pipeline:
        return pipeline(written)


PIPELINE = Definition(_Pipeline(), "pipeline")
_STATE_FUNCTION = {
    "by": Key(_NAMED_COLUMNS, "the grouping columns", required=True),
    "outputMode": Key(Choice("output mode", get_args(OutputMode)), "What the function emits."),
}


def _operation(name: str, shape: Shape, description: str, /, **others: Key) -> tuple[str, Record]:
    keys = {name: Key(shape, description, required=True), **others}
    return name, Record(f"`{name}`", keys, description=description)


def _stateful(name: str, description: str, **others: Key) -> tuple[str, Record]:
    return _operation(name, Record(f"`{name}`", {**_STATE_FUNCTION, **others}, description=description), description)


OPERATIONS = dict(
    (
        _operation(
            "from",
            NAME,
            "The stream to read; naming it twice in a query reads one DataFrame twice.",
            name=Key(
                Text("the name of a source, such as orders"),
                "The name of the source, `DataStreamReader.name` (4.2+), under which the checkpoint keeps its offsets.",
            ),
        ),
        _operation(
            "withWatermark",
            _WATERMARK,
            "`[column, delay]`: the event-time column and the delay of the watermark.",
        ),
        _operation("where", _EXPRESSION, "Keep the rows for which the expression is true."),
        _operation("select", _EXPRESSIONS, "The columns, as expressions; a plain `window(...)` is named `window`."),
        _operation(
            "withColumn",
            TupleOf((_COLUMN, _EXPRESSION), "[name, expression]"),
            "`[name, expression]`: add a column or replace it.",
        ),
        _operation("drop", _NAMED_COLUMNS, "Columns to drop."),
        _operation("alias", Text("an alias", IDENTIFIER), "A name for the DataFrame, to qualify columns with."),
        _operation(
            "groupBy",
            ListOf(_EXPRESSION, "a list of Spark SQL expressions"),
            "Grouping expressions, including `window(...)` and `session_window(...)`.",
            agg=Key(_EXPRESSIONS, "the aggregates, such as `sum(count) AS total`", required=True),
        ),
        _operation(
            "join",
            PIPELINE,
            "Join with another pipeline.",
            on=Key(_EXPRESSION, "the join condition, an expression", required=True),
            how=Key(Choice("join type", JOINS), "The join type; `inner` if absent."),
        ),
        _operation("union", PIPELINE, "The rows of this pipeline and of another one."),
        _operation("distinct", constant(True), "Drop rows that are equal in every column."),
        _operation(
            "dropDuplicates", _COLUMNS, "Drop rows that are equal in these columns; an empty list means all columns."
        ),
        _operation(
            "dropDuplicatesWithinWatermark",
            _COLUMNS,
            "Drop rows that are equal in these columns within the watermark delay (3.5+); an empty list means all columns.",
        ),
        _operation(
            "sql",
            Text("a SQL query"),
            "A SQL query over the DataFrame so far, and over the DataFrames of `views`.",
            **{"as": Key(_VIEW, "the name of the view that the query reads", required=True)},
            views=Key(
                MapOf(
                    _VIEW, PIPELINE, "a mapping from view name to pipeline: {payments: [{from: payments}]}", at_least=1
                ),
                "Other views that the query reads: name → the pipeline of its DataFrame.",
            ),
        ),
        _operation(
            "orderBy",
            ListOf(_ORDERED, "a list of Spark SQL expressions, each with ASC or DESC if wanted", at_least=1),
            "Sort by these expressions, each followed by ASC or DESC if wanted; Spark sorts complete mode only.",
        ),
        _operation("limit", integer(1), "Keep that many rows: of the stream, in complete mode of each result."),
        _stateful(
            "applyInPandasWithState",
            "A named state function over pandas DataFrames (3.4+).",
            **{
                "with": Key(
                    Choice("state function", STATE_FUNCTIONS),
                    "a state function that ships with the suite",
                    required=True,
                )
            },
            timeout=Key(Choice("timeout", TIMEOUTS), "The timeout of a group's state; `NoTimeout` if absent."),
        ),
        _stateful(
            "transformWithState",
            "A named stateful processor (4.0+); needs the RocksDB state store.",
            **{
                "with": Key(
                    Choice("stateful processor", STATEFUL_PROCESSORS),
                    "a stateful processor that ships with the suite",
                    required=True,
                )
            },
            inPandas=Key(
                constant(False), "`false`: the processor gets rows (`transformWithState`, 4.1+), not pandas DataFrames."
            ),
            timeMode=Key(Choice("time mode", TIME_MODES), "The time that its timers use; `None` if absent."),
            eventTimeColumn=Key(_COLUMN, "The event-time column of its output."),
            state=Key(
                Ddl(),
                "The columns in which a processor that numbers rows keeps a number: in `count`, or in the first if none has "
                "that name; the others stay null. `count BIGINT` if absent.",
            ),
            initialState=Key(
                Text("a SQL query"),
                "A SQL query over constants, or over the view `state` after `restart: {checkpoint: new}`; its rows are the "
                "initial state of the groups.",
            ),
        ),
        _operation(
            "call",
            _CALLED,
            "`module:function`: your own `function(spark, DataFrame) -> DataFrame`; or `{program: job.py}`: your own program, "
            "with the streams that it reads in `with`; or `{sql: [...]}`: your own statements; "
            "or `{jvm: package.Class.method, jar: jobs.jar}`; needs `--allow-code`.",
            **{
                "with": Key(
                    ListOf(NAME, "a list of streams", at_least=1),
                    "The streams that the function gets, in this order, where it starts a pipeline: "
                    "`function(spark, orders, clicks) -> DataFrame`; of a program or SQL, those that it reads.",
                )
            },
        ),
    )
)

_SYNONYMS = {
    "filter": "where",
    "selectExpr": "select",
    "unionAll": "union",
    "unionByName": "union",
    "agg": "groupBy",
    "sort": "orderBy",
}
_IN_SQL = {
    "having": "GROUP BY key HAVING count(*) > 1",
    "intersect": "INTERSECT SELECT * FROM other",
    "except": "EXCEPT SELECT * FROM other",
    "exceptAll": "EXCEPT ALL SELECT * FROM other",
}
"""Operations that the language does not have → how a SQL query says them."""
OPERATION = Alternatives(
    "operation",
    "operation",
    OPERATIONS,
    identified_by_first_key=True,
    synonyms=_SYNONYMS,
    elsewhere={
        name: f"say it in SQL, `{{sql: SELECT * FROM view {clause}, as: view}}`" for name, clause in _IN_SQL.items()
    },
)
_CALL = OPERATIONS["call"]
_LATER = Alternatives(
    "operation",
    "operation",
    {
        **{name: operation for name, operation in OPERATIONS.items() if name != "from"},
        "call": replace(_CALL, keys={"call": replace(_CALL.keys["call"], shape=FUNCTION)}),
    },
)
"""The operations after the first, for the schema: they read no stream."""
_CALL_WITH_STREAMS = replace(_CALL, keys={**_CALL.keys, "with": replace(_CALL.keys["with"], required=True)})
"""A call that starts a pipeline, for the schema."""
_STARTS = "only the first operation may call a program, SQL or a method of a jar, which get the streams of `with`"
_FIRST_ONLY = {
    "from": "only the first operation may be `from`: use `join` or `union` to read another stream",
    "with": "only the first operation may have `with`: a later `call` gets the DataFrame so far",
}


def pipeline(operations: list[dict[str, Json]]) -> Pipeline:
    """The pipeline that a valid list of operations describes."""

    def operation(arguments: dict[str, Json]) -> Operation:
        name = next(iter(arguments))
        nested = [arguments[key] for key in OTHER_SIDES if key in arguments]
        nested += arguments.get("views", {}).values()
        nested += [[{"from": stream}] for stream in arguments.get("with", ()) if name == "call"]
        return Operation(name, arguments, tuple(map(pipeline, nested)))

    return Pipeline(tuple(map(operation, operations)))


def with_lists(case: Node) -> Node:
    """The case as written, where each pipeline that is a mapping, a call of a function, is a list of this operation."""
    case = changed(case, ("query",), _listed)
    return changed(case, ("steps", "*", "restart", "change", "query"), _listed)


def _listed(pipeline: Node) -> Node:
    if isinstance(pipeline, Entries) and pipeline.get("call") is not None:
        return Items(pipeline.line, pipeline.column, (pipeline,))
    if isinstance(pipeline, Items):
        for path in (*(("*", side) for side in OTHER_SIDES), ("*", "views", "*")):
            pipeline = changed(pipeline, path, _listed)
    return pipeline


def queries_of(case: Node) -> Iterator[tuple[Node | None, Node | None]]:
    """The query of a case, then those of later restarts, each with the step that starts it."""
    steps = items_of(child(case, "steps"))
    yield child(case, "query"), steps[0] if steps else None
    for step in steps:
        if (query := child(step, "restart", "change", "query")) is not None:
            yield query, step


def operations_in(pipeline: Node | None) -> Iterator[Node]:
    """The operations of a pipeline, and those of the pipelines in them."""
    for operation in items_of(pipeline):
        yield operation
        for nested in nested_pipelines(operation):
            yield from operations_in(nested)


def nested_pipelines(operation: Node) -> Iterator[Node]:
    """The other pipelines of an operation as written: the other side of a join or union, and the views of SQL."""
    for entry in entries_of(operation):
        if entry.key.value in OTHER_SIDES:
            yield entry.value
        elif entry.key.value == "views":
            yield from (view.value for view in entries_of(entry.value))
