"""What a case declares of its streams: a DDL schema each, and where the rows come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from conformance.core.case import Source
from conformance.core.spark_types import Schema, parse_schema
from conformance.language.compound_shapes import ByKind, Key, MapOf, Record
from conformance.language.node import Entries, Node, child, entries_of, text_of
from conformance.language.problem import Report
from conformance.language.shape import Boolean, Choice, Definitions, Integer, Json, Shape, Text
from conformance.language.streams import IDENTIFIER, NAME, Ddl
from conformance.language.suggest import unknown

KAFKA = "kafka"
MEMORY = "memory"
_OF_KAFKA = ("partitions", "timestamp", "maxOffsetsPerTrigger", "failOnDataLoss")
"""Keys that only a stream from Kafka has."""


@dataclass(frozen=True)
class _Declared(Shape):
    """A schema, and where the rows come from."""

    record: Record

    @property
    def expected(self) -> str:
        return self.record.expected

    def validate(self, node: Node, report: Report) -> bool:
        if not self.record.check(node, report):
            return False
        assert isinstance(node, Entries)
        if text_of(node.get("source")) != KAFKA:
            given = [name for name in _OF_KAFKA if node.get(name) is not None]
            for name in given:
                report.add(node.key(name), f"`{name}` is of a topic: add `source: kafka`, or remove it")
            return not given
        return (column := node.get("timestamp")) is None or _check_timestamp(column, node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {**self.record.schema(definitions), "dependencies": {name: ["source"] for name in _OF_KAFKA}}

    def value(self, written: Json) -> Json:
        return self.record.value(written)


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
    Record(
        "a stream",
        {
            "schema": Key(Ddl(), "its DDL schema", required=True),
            "source": Key(Choice("source", get_args(Source)), "Where its rows come from; `files` if absent."),
            "partitions": Key(
                Integer(minimum=1), "Of `source: kafka`: the partitions of its topic; 1 if absent. Some may stay idle."
            ),
            "timestamp": Key(
                Text("the name of a column", IDENTIFIER),
                "Of `source: kafka`: the TIMESTAMP column that is the timestamp of the record and not in its value.",
            ),
            "maxOffsetsPerTrigger": Key(
                Integer(minimum=1), "Of `source: kafka`: how many records a micro-batch reads at most; all if absent."
            ),
            "failOnDataLoss": Key(
                Boolean(), "Of `source: kafka`: whether the query fails if records that it has not read are gone."
            ),
        },
    )
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
