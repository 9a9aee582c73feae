"""Rows from files: ``add: {orders: {file: day1.jsonl}}`` stands for the rows in a file beside the case.

Reading a case must not show a file of elsewhere, so the file lies in the folder of the case or below it, links included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType, NotAType, Schema, parse_schema
from conformance.core.values import NotAValue, canonical
from conformance.language.declared_streams import ddl_of
from conformance.language.node import (
    Entries,
    Entry,
    Items,
    Node,
    Scalar,
    SourceLocation,
    changed,
    child,
    entries_of,
    text_of,
)
from conformance.language.problem import Report
from conformance.language.row_formats import FORMATS, NotRows, rows_of

Json: TypeAlias = Any

MAX_BYTES = 16_000_000
_MAX_ROWS = 100_000


def with_rows(case: Node, report: Report) -> Node:
    """The case as written, where each ``{file: …}`` of rows is the list of the rows in that file.

    Args:
        case: as written.
        report: gets a problem for each file that cannot be read; its path is that of the case.
    """
    if not isinstance(case, Entries) or not isinstance(steps := case.get("steps"), Items):
        return case
    read = _Reader(case, report)
    read_steps = replace(steps, items=tuple(read.step(step) for step in steps.items))
    return changed(case, {"steps": lambda _: read_steps})


class _Reader:
    def __init__(self, case: Entries, report: Report) -> None:
        self._schemas = child(case, "streams")
        self._report = report

    def step(self, step: Node) -> Node:
        restart = {"add": self._arrival}
        return changed(
            step,
            {
                "add": self._arrival,
                "backlog": self._entries,
                "restart": lambda node: changed(node, restart),
            },
        )

    def _entries(self, node: Node) -> Node:
        return replace(node, items=tuple(map(self._arrival, node.items))) if isinstance(node, Items) else node

    def _arrival(self, node: Node) -> Node:
        if not isinstance(node, Entries):
            return node
        return replace(
            node,
            entries=tuple(
                replace(entry, value=self._rows(str(entry.key.value), entry.value)) for entry in node.entries
            ),
        )

    def _rows(self, stream: str, node: Node) -> Node:
        name = child(node, "file")
        if name is None or len(tuple(entries_of(node))) != 1:
            return node
        try:
            schema = parse_schema(text_of(ddl_of(child(self._schemas, stream))) or "")
        except NotAType:
            return node  # what is wrong with the stream is reported elsewhere
        try:
            rows = tuple(_read(self._report.path.parent, text_of(name) or "", schema))
        except NotRows as why:
            self._report.add(name, str(why))
            rows = ()
        return Items(name.line, name.column, tuple(_node(row, name) for row in rows))


def _read(folder: Path, name: str, schema: Schema) -> Iterator[Mapping[str, Json]]:
    """The rows of a file, with every column of the schema."""
    path = (folder / name).resolve()
    if not name or not path.is_relative_to(folder.resolve()):
        raise NotRows(f"{name!r} is not a file in the folder of the case or below it")
    if path.suffix.lower() not in FORMATS:
        raise NotRows(f"{name!r} has no rows that are known: expected a file ending in {', '.join(FORMATS)}")
    try:
        if not path.is_file():
            raise NotRows(f"there is no file {name!r} in the folder of the case")
        if path.stat().st_size > MAX_BYTES:
            raise NotRows(f"{name!r} has more than {MAX_BYTES} bytes, the limit")
        content = path.read_bytes()
    except OSError as error:
        raise NotRows(f"{name!r} cannot be read: {error.strerror}") from None
    columns = {field.name: field.type for field in schema.fields}
    try:
        for number, (line, row) in enumerate(rows_of(content, path.suffix, columns), 1):
            if number > _MAX_ROWS:
                raise NotRows(f"more than {_MAX_ROWS} rows, the limit")
            yield _checked(row, columns, f"line {line}" if line else f"row {number}")
    except NotRows as error:
        raise NotRows(f"{name}: {error}") from None


def _checked(row: Mapping[str, Json], columns: Mapping[str, DataType], place: str) -> Mapping[str, Json]:
    for name in row:
        if name not in columns:
            raise NotRows(f"{place}: the stream has no column {name!r}, only {', '.join(columns)}")
    for name, type in columns.items():
        try:
            canonical(row.get(name), type)
        except NotAValue as wrong:
            raise NotRows(f"{place}: column {name!r}: {wrong}") from None
    return {name: row.get(name) for name in columns}


def _node(value: Json, place: SourceLocation) -> Node:
    if isinstance(value, Mapping):
        entries = (Entry(Scalar(place.line, place.column, key), _node(item, place)) for key, item in value.items())
        return Entries(place.line, place.column, tuple(entries))
    if isinstance(value, list):
        return Items(place.line, place.column, tuple(_node(item, place) for item in value))
    return Scalar(place.line, place.column, value, None)
