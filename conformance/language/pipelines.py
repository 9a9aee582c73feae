"""Pipelines: a list of operations, each named after the DataFrame method it stands for."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.core.case import OutputMode
from conformance.core.query import STATE_FUNCTIONS, STATEFUL_PROCESSORS, Operation, Pipeline
from conformance.language.nested import Key, ListOf, Named, PairOf, Record, Variants
from conformance.language.node import Entries, Items, Node, child
from conformance.language.problem import Report
from conformance.language.shape import Choice, Definitions, Json, Only, Shape, Text
from conformance.language.streams import IDENTIFIER, NAME
from conformance.language.words import words

JOINS = ("inner", "leftOuter", "rightOuter", "fullOuter", "leftSemi")
TIMEOUTS = ("NoTimeout", "ProcessingTimeTimeout", "EventTimeTimeout")
TIME_MODES = ("None", "ProcessingTime", "EventTime")

_EXPRESSION = Text("a Spark SQL expression")
_COLUMN = Text("the name of a column")
_JUDGED_COLUMN = Text("the name of a column", empty=True)
"""That ``withWatermark`` refuses an empty column and an empty delay is itself something to test."""
_EXPRESSIONS = ListOf(_EXPRESSION, "a list of Spark SQL expressions", at_least=1)
_COLUMNS = ListOf(_COLUMN, "a list of column names")
_NAMED_COLUMNS = ListOf(_COLUMN, "a list of column names", at_least=1)
_NESTED = Named("pipeline", lambda: _Pipeline())
_STATE_FUNCTION = {
    "by": Key(_NAMED_COLUMNS, "the grouping columns", required=True),
    "outputMode": Key(Choice("output mode", words(OutputMode)), "What the function emits."),
}


def _operation(name: str, shape: Shape, meaning: str, **others: Key) -> Record:
    return Record(name, {name: Key(shape, meaning, required=True), **others}, meaning=meaning)


def _stateful(name: str, meaning: str, **others: Key) -> Record:
    arguments = Record(name, {**_STATE_FUNCTION, **others}, meaning=meaning)
    return _operation(name, arguments, meaning)


OPERATIONS = {
    record.kind: record
    for record in (
        _operation("from", NAME, "The stream that is read; naming it twice in a query reads one DataFrame twice."),
        _operation(
            "withWatermark",
            PairOf((_JUDGED_COLUMN, Text("a delay such as '10 minutes'", empty=True)), "[column, delay]"),
            "`[column, delay]`: the event-time column and how far the watermark stays behind it.",
        ),
        _operation("where", _EXPRESSION, "Keep the rows for which the expression is true."),
        _operation("select", _EXPRESSIONS, "The columns, as expressions; a bare `window(...)` is called `window`."),
        _operation(
            "withColumn",
            PairOf((_COLUMN, _EXPRESSION), "[name, expression]"),
            "`[name, expression]`: add a column or replace it.",
        ),
        _operation("drop", _NAMED_COLUMNS, "Columns to leave out."),
        _operation("alias", Text("an alias", IDENTIFIER), "A name for the frame, to qualify columns with."),
        _operation(
            "groupBy",
            ListOf(_EXPRESSION, "a list of Spark SQL expressions"),
            "Grouping expressions; `window(...)` and `session_window(...)` are ordinary ones.",
            agg=Key(_EXPRESSIONS, "the aggregates, such as `sum(count) AS total`", required=True),
        ),
        _operation(
            "join",
            _NESTED,
            "Join with another pipeline.",
            on=Key(_EXPRESSION, "the condition, an expression", required=True),
            how=Key(Choice("kind of join", JOINS), "The kind of join; `inner` when absent."),
        ),
        _operation("union", _NESTED, "The rows of this and of another pipeline."),
        _operation("distinct", Only(True), "Drop rows that are equal in all columns."),
        _operation("dropDuplicates", _COLUMNS, "Drop rows equal in these columns; an empty list means all columns."),
        _operation(
            "dropDuplicatesWithinWatermark",
            _COLUMNS,
            "Drop rows equal in these columns while the watermark lasts (3.5 on); an empty list means all columns.",
        ),
        _operation(
            "sql",
            Text("a SQL query"),
            "A SQL query over the frame so far.",
            **{"as": Key(Text("the name of a view", IDENTIFIER), "the view the query reads", required=True)},
        ),
        _stateful(
            "applyInPandasWithState",
            "A named state function over pandas frames (3.4 and newer).",
            **{
                "with": Key(
                    Choice("state function", STATE_FUNCTIONS),
                    "a state function that ships with the suite",
                    required=True,
                )
            },
            timeout=Key(Choice("timeout", TIMEOUTS), "The timeout of a group's state; `NoTimeout` when absent."),
        ),
        _stateful(
            "transformWithState",
            "A named stateful processor (4.0 and newer); it needs the RocksDB state store.",
            **{
                "with": Key(
                    Choice("stateful processor", STATEFUL_PROCESSORS),
                    "a stateful processor that ships with the suite",
                    required=True,
                )
            },
            timeMode=Key(Choice("time mode", TIME_MODES), "What its timers go by; `None` when absent."),
            eventTimeColumn=Key(_COLUMN, "The event-time column of what it emits."),
            initialState=Key(
                Text("a SQL query"), "A SQL query over constants, whose rows the groups have from the start."
            ),
        ),
        _operation(
            "call",
            Text("module:function", r"^[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*$"),
            "`module:function`, a `function(spark, DataFrame) -> DataFrame` of your own; needs `--allow-code`.",
        ),
    )
}

_SYNONYMS = {"filter": "where", "selectExpr": "select", "unionAll": "union", "unionByName": "union", "agg": "groupBy"}
OPERATION = Variants("operation", "operation", OPERATIONS, leading=True, synonyms=_SYNONYMS)
_LATER = Variants("operation", "operation", {name: one for name, one in OPERATIONS.items() if name != "from"})
"""What may follow: for the schema, which says the place of `from` by leaving it out here."""


@dataclass(frozen=True)
class _Pipeline(Shape):
    """Operations in order; ``from`` is the first, and only the first."""

    @property
    def what(self) -> str:
        return "a pipeline: a list of operations that begins with `from: <stream>`"

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Items):
            return self.reject(node, report)
        if not node.items:
            report.add(node, f"empty: it must be {self.what}")
            return False
        sound = [OPERATION.check(item, report) for item in node.items]
        if sound[0] and child(node.items[0], "from") is None:
            report.add(node.items[0], "a pipeline begins with `from: <stream>`")
            sound.append(False)
        for item in node.items[1:]:
            if isinstance(item, Entries) and item.get("from") is not None:
                report.add(
                    item.key("from"), "`from` is the first operation and no other: join or union another pipeline"
                )
                sound.append(False)
        return all(sound)

    def schema(self, definitions: Definitions) -> Json:
        return {
            "type": "array",
            "minItems": 1,
            "description": "A pipeline: operations, each named after the DataFrame method it stands for.",
            "items": [OPERATIONS["from"].schema(definitions)],
            "additionalItems": Named("operation", lambda: _LATER).schema(definitions),
        }


PIPELINE = _NESTED
"""A pipeline, by its name in the schema."""


def pipeline(operations: list[Json]) -> Pipeline:
    """The pipeline that a valid list of operations describes."""
    return Pipeline(tuple(_built(arguments) for arguments in operations))


def _built(arguments: dict[str, Json]) -> Operation:
    name = next(iter(arguments))
    nested = pipeline(arguments[name]) if name in ("join", "union") else None
    return Operation(name, arguments, nested)
