"""Streams and the rows that arrive on them: DDL schemas, and rows as lists in schema order or as mappings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from conformance.core.spark_types import TYPE_NAMES, DataType, NotAType, Schema, parse_schema
from conformance.language.compound_shapes import ByKind, Definition, Key, ListOf, MapOf, Record
from conformance.language.node import Items, Node, Scalar, child, items_of
from conformance.language.problem import Report
from conformance.language.shape import AnyValue, Converted, Definitions, Json, Shape, Text
from conformance.language.suggest import nearest

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"

NAME = Text("a stream name: letters, digits and _, starting with a letter", IDENTIFIER)


@dataclass(frozen=True)
class Ddl(Shape):
    """A DDL schema, ``event_time TIMESTAMP, count INT``."""

    @property
    def expected(self) -> str:
        return "a DDL schema such as `event_time TIMESTAMP, count INT`"

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
_ROWS = ListOf(Definition("row", lambda: _ROW), 'a list of rows, each a list or a mapping: [["12:00", 1]]')
ROWS = Definition("rows", lambda: _ROWS)
_PARTITIONED = Record(
    "`partitions`",
    {
        "partitions": Key(
            ListOf(ROWS, "a list of partitions, each a list of rows", at_least=1),
            "a list of partitions, each a list of rows",
            required=True,
        )
    },
)


@dataclass(frozen=True)
class _Placed(Shape):
    """Rows by partition, or the name of a file with rows; ``row_files`` has replaced the latter in a case that is a file."""

    @property
    def expected(self) -> str:
        return _PARTITIONED.expected

    def validate(self, node: Node, report: Report) -> bool:
        if (name := child(node, "file")) is None:
            return _PARTITIONED.check(node, report)
        report.add(
            name, "rows from a file stand alone, {file: day1.jsonl}, for a stream of a case that is a file itself"
        )
        return False

    def schema(self, definitions: Definitions) -> Json:
        file = {
            "type": "string",
            "minLength": 1,
            "description": "A file with rows, relative to the case: .jsonl, .csv, .parquet.",
        }
        of_a_file = {
            "type": "object",
            "additionalProperties": False,
            "properties": {"file": file},
            "required": ["file"],
        }
        return {"oneOf": [_PARTITIONED.schema(definitions), of_a_file]}

    def value(self, written: Json) -> Json:
        return _PARTITIONED.value(written)


ARRIVING = ByKind(
    "a list of rows, or {partitions: [[rows], …]}",
    items=Converted(ROWS, lambda rows: {"partitions": (rows,)}),
    entries=_Placed(),
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
