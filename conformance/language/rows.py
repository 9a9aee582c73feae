"""Rows, as they arrive on a stream and as they are expected: a list in schema order, or a mapping."""

from __future__ import annotations

from collections.abc import Iterator

from conformance.core.spark_types import Schema
from conformance.core.values import NotAValue, canonical
from conformance.language.nested import ByKind, Key, ListOf, MapOf, Named, Record
from conformance.language.node import Items, Node, child, inside, items_of
from conformance.language.problem import Report
from conformance.language.shape import Anything, Json, Text
from conformance.language.streams import NAME
from conformance.language.suggest import unknown

_ROW = ByKind(
    "a row: a list of values in schema order, or a mapping from column to value",
    items=ListOf(Anything(), "a row", at_least=1),
    entries=MapOf(Text("the name of a column"), Anything(), "a row", at_least=1),
)
ROW = Named("row", lambda: _ROW)
_ROWS = ListOf(ROW, 'a list of rows, each a list or a mapping: [["12:00", 1]]')
ROWS = Named("rows", lambda: _ROWS)
PARTITIONED = Record(
    "partitioned rows",
    {
        "partitions": Key(
            ListOf(ROWS, "a list of partitions, each a list of rows", at_least=1),
            "a list of partitions, each a list of rows",
            required=True,
        )
    },
)
ARRIVING = ByKind("a list of rows, or {partitions: [[rows], …]}", items=ROWS, entries=PARTITIONED)
ARRIVAL = MapOf(NAME, ARRIVING, 'a mapping from stream to rows: {events: [["12:00", 1]]}', at_least=1)


def partitions_of(arriving: Node) -> tuple[tuple[Node, ...], ...]:
    """The rows that arrive, per partition; plain rows are one partition."""
    if isinstance(arriving, Items):
        return (arriving.items,)
    return tuple(items_of(partition) for partition in items_of(child(arriving, "partitions")))


def partitioned(arriving: Json) -> dict[str, Json]:
    """What arrives on a stream in the one form the model has."""
    return arriving if isinstance(arriving, dict) else {"partitions": [arriving]}


def check_values(arriving: Node, schema: Schema, report: Report) -> None:
    """Report every value that its column's type does not have, and rows of another width."""
    for row in (row for partition in partitions_of(arriving) for row in partition):
        for place, message in _wrong_values(row, schema):
            report.add(place, message)


def _wrong_values(row: Node, schema: Schema) -> Iterator[tuple[Node, str]]:
    names = [field.name for field in schema.fields]
    if isinstance(row, Items) and len(row.items) != len(names):
        has = f"this row has {len(row.items)} value{'s' * (len(row.items) != 1)}"
        yield row, f"{has}, its schema {len(names)} column{'s' * (len(names) != 1)}: {', '.join(names)}"
        return
    plain = row.plain()
    if isinstance(plain, dict):
        for name in plain:
            if name not in names:
                yield _key(row, name), unknown("column", str(name), names)
        if missing := [name for name in names if name not in plain]:
            yield (
                row,
                f"column{'s' * (len(missing) != 1)} {', '.join(missing)} missing in this row (write null if it is)",
            )
    for index, field in enumerate(schema.fields):
        step = field.name if isinstance(plain, dict) else index
        if isinstance(plain, dict) and field.name not in plain:
            continue
        try:
            canonical(plain[field.name] if isinstance(plain, dict) else plain[index], field.type)
        except NotAValue as wrong:
            yield inside(row, (step, *wrong.path)), f"column {field.name!r}: {wrong}"


def _key(row: Node, name: Json) -> Node:
    return next((entry.key for entry in getattr(row, "entries", ()) if entry.key.value == name), row)
