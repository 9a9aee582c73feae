"""Streams: name → DDL schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from conformance.core.spark_types import TYPE_NAMES, DataType, NotAType, Schema, parse_schema
from conformance.language.nested import MapOf
from conformance.language.node import Node, Scalar, entries_of
from conformance.language.problem import Report
from conformance.language.shape import Definitions, Json, Shape, Text
from conformance.language.suggest import nearest

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"

NAME = Text("the name of a stream: letters, digits and _, a letter first", IDENTIFIER)


@dataclass(frozen=True)
class Ddl(Shape):
    """A DDL schema, ``event_time TIMESTAMP, count INT``."""

    @property
    def what(self) -> str:
        return "a DDL schema such as `event_time TIMESTAMP, count INT`"

    def sound(self, node: Node, report: Report) -> bool:
        if not isinstance(node, Scalar) or not isinstance(node.value, str):
            return self.reject(node, report)
        try:
            schema = parse_schema(node.value)
        except NotAType as wrong:
            report.add(node.at(wrong.offset), f"{wrong.reason}{_advice(wrong)}")
            return False
        unreadable = list(_not_in_files(schema))
        for column, reason in unreadable:
            report.add(node, f"column {column!r}: {reason}")
        return not unreadable

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "string", "minLength": 1, "examples": ["event_time TIMESTAMP, count INT"]}


STREAMS = MapOf(NAME, Ddl(), "a mapping from the name of a stream to its DDL schema", at_least=1)


def schemas(node: Node | None, report: Report) -> Mapping[str, Schema]:
    """The streams whose schemas can be read."""
    return {
        str(entry.key.value): parse_schema(str(entry.value.plain()))
        for entry in entries_of(node)
        if report.sound(entry.key) and report.sound(entry.value)
    }


def _advice(wrong: NotAType) -> str:
    if wrong.near is not None:
        near = nearest(wrong.near, TYPE_NAMES)
        return f": did you mean {near.upper()}?" if near else f": it must be one of {', '.join(TYPE_NAMES).upper()}"
    return ""


def _not_in_files(schema: Schema) -> Iterator[tuple[str, str]]:
    """Columns that Spark's JSON source, in which rows arrive, cannot read."""
    for field in schema.fields:
        for found in _within(field.type):
            if found.name in ("interval", "void", "variant"):
                yield field.name, f"rows cannot bring {found.name.upper()} values"
            if found.name == "map" and found.elements[0].name != "string":
                yield field.name, "the keys of a MAP are STRING in the JSON in which rows arrive"


def _within(type: DataType) -> Iterator[DataType]:
    yield type
    for below in (*type.elements, *(field.type for field in type.fields)):
        yield from _within(below)
