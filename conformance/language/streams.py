"""Streams: what a case declares of them, and the rows that arrive on them: as lists in schema order or as mappings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import get_args

from conformance.core.case import Source
from conformance.core.data import Json
from conformance.core.spark_types import TYPE_NAMES, DataType, NotAType, Schema, parse_schema
from conformance.language.shape import (
    BOOLEAN,
    AnyValue,
    ByKind,
    Choice,
    Converted,
    Definition,
    Definitions,
    Key,
    ListOf,
    MapOf,
    Record,
    Shape,
    Text,
    integer,
)
from conformance.language.source import (
    Entries,
    Items,
    Node,
    Report,
    Scalar,
    child,
    entries_of,
    items_of,
    nearest,
    text_of,
    unknown,
)

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"

NAME = Text("a stream name: letters, digits and _, starting with a letter", IDENTIFIER)


class Ddl(Shape):
    """A DDL schema, ``event_time TIMESTAMP, count INT``."""

    kind = "a DDL schema such as `event_time TIMESTAMP, count INT`"

    def validate(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return self.reject(node, report)
        try:
            schema = parse_schema(node.value)
        except NotAType as wrong:
            report.add(node.at(wrong.offset), f"{wrong.reason}{_advice(wrong)}")
            return False
        unreadable = list(_unreadable(schema))
        for column, reason in unreadable:
            report.add(node, f"column {column!r}: {reason}")
        return not unreadable

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "string", "minLength": 1, "examples": ["event_time TIMESTAMP, count INT"]}

    def value(self, written: Json) -> Schema:
        return parse_schema(written)


_ROW = ByKind(
    "a row: a list of values in schema order, or a mapping from column to value",
    items=ListOf(AnyValue(), "a row", at_least=1),
    entries=MapOf(Text("a column name"), AnyValue(), "a row", at_least=1),
)
ROWS = Definition(ListOf(Definition(_ROW, "row"), 'a list of rows, each a list or a mapping: [["12:00", 1]]'), "rows")
_PARTITIONS = ListOf(ROWS, "a list of partitions, each a list of rows", at_least=1)
_FILE = Record(
    "`file`",
    {"file": Key(Text(), "A file with rows, relative to the case: .jsonl, .csv, .parquet.", required=True)},
)


class _Placed(Record):
    """Rows by partition, or the name of a file with rows; ``rows`` has replaced the latter in a case that is a file."""

    def validate(self, node: Node, report: Report) -> bool:
        if (name := child(node, "file")) is None:
            return super().validate(node, report)
        return self.reject(
            name,
            report,
            "rows from a file stand alone, {file: day1.jsonl}, for a stream of a case that is a file itself",
        )

    def schema(self, definitions: Definitions) -> Json:
        return {"oneOf": [super().schema(definitions), _FILE.schema(definitions)]}


ARRIVING = ByKind(
    "a list of rows, or {partitions: [[rows], …]}",
    items=Converted(ROWS, lambda rows: {"partitions": (rows,)}),
    entries=_Placed(
        "`partitions`", {"partitions": Key(_PARTITIONS, "a list of partitions, each a list of rows", required=True)}
    ),
)
ARRIVAL = MapOf(NAME, ARRIVING, 'a mapping from stream to rows: {events: [["12:00", 1]]}', at_least=1)


def rows_of(arriving: Node) -> Iterator[Node]:
    """The rows that arrive, in all partitions."""
    if isinstance(arriving, Items):
        yield from arriving.items
    for partition in items_of(child(arriving, "partitions")):
        yield from items_of(partition)


def _advice(wrong: NotAType) -> str:
    if wrong.near is not None:
        near = nearest(wrong.near, TYPE_NAMES)
        return f": did you mean {near.upper()}?" if near else f": expected one of {', '.join(TYPE_NAMES).upper()}"
    return ""


def _unreadable(schema: Schema) -> Iterator[tuple[str, str]]:
    """Columns that Spark's JSON source, through which rows arrive, cannot read."""
    for field in schema.fields:
        for found in _within(field.type):
            if found.name in ("interval", "void", "variant"):
                yield field.name, f"rows arrive as JSON, which has no {found.name.upper()} values"
            if found.name == "map" and found.elements[0].name != "string":
                yield field.name, "rows arrive as JSON, where the keys of a MAP must be STRING"


def _within(type: DataType) -> Iterator[DataType]:
    yield type
    for below in (*type.elements, *(field.type for field in type.fields)):
        yield from _within(below)


KAFKA = "kafka"
MEMORY = "memory"
_OF_KAFKA = ("partitions", "timestamp", "maxOffsetsPerTrigger", "failOnDataLoss")
"""Keys that only a stream from Kafka has."""


class _Declared(Record):
    """A schema, and where the rows come from."""

    def validate(self, node: Node, report: Report) -> bool:
        if not super().validate(node, report) or not isinstance(node, Entries):
            return False
        if text_of(node.get("source")) != KAFKA:
            given = [name for name in _OF_KAFKA if node.get(name) is not None]
            for name in given:
                report.add(node.key(name), f"`{name}` is of a topic: add `source: kafka`, or remove it")
            return not given
        return (column := node.get("timestamp")) is None or _check_timestamp(column, node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {**super().schema(definitions), "dependencies": {name: ["source"] for name in _OF_KAFKA}}


def _check_timestamp(column: Node, stream: Entries, report: Report) -> bool:
    types = {field.name: field.type.name for field in parse_schema(str(text_of(stream.get("schema")))).fields}
    name = str(text_of(column))
    if name not in types:
        report.add(column, unknown("column", name, types))
    elif types[name] != "timestamp":
        report.add(column, f"column {name!r} is {types[name].upper()}: the timestamp of a record is a TIMESTAMP")
    elif len(types) == 1:
        report.add(column, f"the value of a record needs a column beside {name!r}, which is its timestamp")
    else:
        return True
    return False


_DECLARED = _Declared(
    "a stream",
    {
        "schema": Key(Ddl(), "its DDL schema", required=True),
        "source": Key(Choice("source", get_args(Source)), "Where its rows come from; `files` if absent."),
        "partitions": Key(
            integer(1), "Of `source: kafka`: the partitions of its topic; 1 if absent. Some may stay idle."
        ),
        "timestamp": Key(
            Text("the name of a column", IDENTIFIER),
            "Of `source: kafka`: the TIMESTAMP column that is the timestamp of the record and not in its value.",
        ),
        "maxOffsetsPerTrigger": Key(
            integer(1), "Of `source: kafka`: how many records a micro-batch reads at most; all if absent."
        ),
        "failOnDataLoss": Key(
            BOOLEAN, "Of `source: kafka`: whether the query fails if records that it has not read are gone."
        ),
    },
)

STREAMS = MapOf(
    NAME,
    ByKind("a DDL schema, or {schema: …, source: kafka}", scalar=Ddl(), entries=_DECLARED),
    "a mapping from stream name to DDL schema",
    at_least=1,
)


def with_sources(values: Json) -> Json:
    """Values of a case: ``streams`` are schemas; ``topics`` and ``in_memory`` say which of them are not read from files."""
    declared = {name: one if isinstance(one, dict) else {"schema": one} for name, one in values["streams"].items()}
    topics = {
        name: {key: one[key] for key in _OF_KAFKA if key in one}
        for name, one in declared.items()
        if one.get("source") == KAFKA
    }
    in_memory = frozenset(name for name, one in declared.items() if one.get("source") == MEMORY)
    schemas = {name: one["schema"] for name, one in declared.items()}
    return {**values, "streams": schemas, "topics": topics, "in_memory": in_memory}


def ddl_of(declared: Node | None) -> Node | None:
    """The DDL schema of a declared stream."""
    return child(declared, "schema") if isinstance(declared, Entries) else declared


def schemas(node: Node | None, report: Report) -> Mapping[str, Schema]:
    """The streams whose schemas are valid."""
    return {
        str(entry.key.value): parse_schema(str(text_of(ddl_of(entry.value))))
        for entry in entries_of(node)
        if report.is_valid(entry.key) and report.is_valid(entry.value)
    }
