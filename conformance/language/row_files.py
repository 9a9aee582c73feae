"""Rows from files: ``add: {orders: {file: day1.jsonl}}`` stands for the rows in a file beside the case.

Reading a case must not show a file of elsewhere, so the file lies in the folder of the case or below it, links included.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType, NotAType, Schema, parse_schema
from conformance.core.values import NotAValue, canonical
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

Json: TypeAlias = Any

MAX_BYTES = 16_000_000
_MAX_ROWS = 100_000
_INTEGERS = frozenset({"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"})
_NUMBERS = frozenset({"float", "real", "double", "decimal", "dec", "numeric"})


class _NotRows(Exception):
    """A file cannot be read as rows; the text says why."""


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
            schema = parse_schema(text_of(child(self._schemas, stream)) or "")
        except NotAType:
            return node  # what is wrong with the stream is reported elsewhere
        try:
            rows = tuple(_read(self._report.path.parent, text_of(name) or "", schema))
        except _NotRows as why:
            self._report.add(name, str(why))
            rows = ()
        return Items(name.line, name.column, tuple(_node(row, name) for row in rows))


def _read(folder: Path, name: str, schema: Schema) -> Iterator[Mapping[str, Json]]:
    """The rows of a file, with every column of the schema."""
    path = (folder / name).resolve()
    if not name or not path.is_relative_to(folder.resolve()):
        raise _NotRows(f"{name!r} is not a file in the folder of the case or below it")
    reader = _FORMATS.get(path.suffix.lower())
    if reader is None:
        raise _NotRows(f"{name!r} has no rows that are known: expected a file ending in {', '.join(_FORMATS)}")
    try:
        if not path.is_file():
            raise _NotRows(f"there is no file {name!r} in the folder of the case")
        if path.stat().st_size > MAX_BYTES:
            raise _NotRows(f"{name!r} has more than {MAX_BYTES} bytes, the limit")
        content = path.read_bytes()
    except OSError as error:
        raise _NotRows(f"{name!r} cannot be read: {error.strerror}") from None
    columns = {field.name: field.type for field in schema.fields}
    try:
        for number, (line, row) in enumerate(reader(content, columns), 1):
            if number > _MAX_ROWS:
                raise _NotRows(f"more than {_MAX_ROWS} rows, the limit")
            yield _checked(row, columns, f"line {line}" if line else f"row {number}")
    except (_NotRows, UnicodeDecodeError, csv.Error) as error:
        raise _NotRows(f"{name}: {error}") from None


def _checked(row: Mapping[str, Json], columns: Mapping[str, DataType], place: str) -> Mapping[str, Json]:
    for name in row:
        if name not in columns:
            raise _NotRows(f"{place}: the stream has no column {name!r}, only {', '.join(columns)}")
    for name, type in columns.items():
        try:
            canonical(row.get(name), type)
        except NotAValue as wrong:
            raise _NotRows(f"{place}: column {name!r}: {wrong}") from None
    return {name: row.get(name) for name in columns}


_Rows: TypeAlias = Iterator[tuple[int, Mapping[str, Json]]]
"""Each row with its line in the file, 0 if it has none."""


def _json_lines(content: bytes, _columns: Mapping[str, DataType]) -> _Rows:
    for number, line in enumerate(content.decode("utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_float=Decimal)
        except (ValueError, RecursionError):
            raise _NotRows(f"line {number}: not JSON") from None
        if not isinstance(row, dict):
            raise _NotRows(f"line {number}: not an object from column to value")
        yield number, row


def _csv(content: bytes, columns: Mapping[str, DataType]) -> _Rows:
    """The first line names the columns; an empty field is null."""
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    for row in reader:
        if None in row or None in row.values():
            raise _NotRows(f"line {reader.line_num}: not as many fields as the first line")
        yield reader.line_num, {name: _of_text(text, columns.get(name)) for name, text in row.items()}


def _of_text(text: str, type: DataType | None) -> Json:
    if text == "" or type is None:
        return None if text == "" else text
    try:
        if type.name in _INTEGERS:
            return int(text)
        if type.name in _NUMBERS:
            return Decimal(text)
    except (ValueError, InvalidOperation):
        return text  # the check of the row says what is wrong with it
    return {"true": True, "false": False}.get(text.lower(), text) if type.name == "boolean" else text


def _parquet(content: bytes, _columns: Mapping[str, DataType]) -> _Rows:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table
    except ImportError:
        raise _NotRows("reading Parquet needs pyarrow: install it beside conformance, or write JSON lines") from None
    try:
        rows = read_table(io.BytesIO(content)).to_pylist()
    except (ArrowException, OSError) as error:
        raise _NotRows(f"not Parquet: {error}") from None
    for row in rows:
        yield 0, {name: _of_arrow(value) for name, value in row.items()}


def _of_arrow(value: Any) -> Json:
    match value:
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case float():
            return Decimal(repr(value))
        case list():
            return [_of_arrow(item) for item in value]
        case dict():
            return {name: _of_arrow(item) for name, item in value.items()}
        case _:
            return value


_FORMATS: Mapping[str, Callable[[bytes, Mapping[str, DataType]], _Rows]] = {
    ".jsonl": _json_lines,
    ".json": _json_lines,
    ".csv": _csv,
    ".parquet": _parquet,
}
FORMATS = tuple(_FORMATS)


def _node(value: Json, place: SourceLocation) -> Node:
    if isinstance(value, Mapping):
        entries = (Entry(Scalar(place.line, place.column, key), _node(item, place)) for key, item in value.items())
        return Entries(place.line, place.column, tuple(entries))
    if isinstance(value, list):
        return Items(place.line, place.column, tuple(_node(item, place) for item in value))
    return Scalar(place.line, place.column, value, None)
