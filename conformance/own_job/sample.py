"""Samples of the streams of a job: rows of a JSON lines, CSV or Parquet file, with a schema."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.errors import WrongUsage
from conformance.core.spark_types import DataType, Field, NotAType, Schema, parse_schema
from conformance.core.values import NotAValue, canonical
from conformance.language.rows import FORMATS, NotRows, rows_of
from conformance.own_job.inference import NoCommonType, inferred

Json: TypeAlias = Any
Record: TypeAlias = Mapping[str, Json]

MOST_BYTES = 64_000_000
"""Of a sample."""
_CSV = ".csv"
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d+)?([eE][+-]?\d{1,3})?")


class UnusableSample(WrongUsage):
    """A sample cannot be read as rows.

    Attributes:
        path: the file.
        line: of the file, from 1; None if the problem is that of the whole file.
    """

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        super().__init__(f"{path}{f':{line}' if line is not None else ''}: {reason}")
        self.path = path
        self.line = line


@dataclass(frozen=True)
class Sample:
    """Rows of one stream."""

    stream: str
    schema: Schema
    rows: tuple[tuple[Json, ...], ...]
    """As in a case, in schema order."""
    event_time: int | None
    """Position of the column by which they are divided into micro-batches; None to divide them in the order of the file."""
    skipped: int = 0
    """Rows of the file beyond the limit."""

    def instant(self, row: Sequence[Json]) -> int | None:
        """The event time of a row in µs since the epoch; None without one."""
        if self.event_time is None or row[self.event_time] is None:
            return None
        found: int = canonical(row[self.event_time], self.schema.fields[self.event_time].type)
        return found


def read_sample(
    stream: str, path: Path, *, event_time: str | None = None, ddl: str | None = None, most: int = 200
) -> Sample:
    """Read the sample of a stream.

    Args:
        stream: its name.
        path: ``.jsonl`` (or ``.json``: an object per line), ``.csv`` (with a header) or ``.parquet``.
        event_time: the column that holds the event time; None for the first TIMESTAMP column, if there is one.
        ddl: the schema, ``order_time TIMESTAMP, user STRING``; None to infer it from the rows.
        most: rows to keep.

    Raises:
        UnusableSample: it cannot be read, has no rows, or a row does not match the schema.
    """
    if path.suffix.lower() not in FORMATS:
        raise UnusableSample(path, f"a sample is a file ending in {', '.join(FORMATS)}")
    content = _content(path)
    given = _given(path, ddl) if ddl is not None else None
    found = _rows(path, content, given)
    rows = found[:most]
    if not rows:
        raise UnusableSample(path, "has no rows")
    schema = given
    if schema is None:
        schema = _inferred(path, rows, event_time)
        rows = _rows(path, content, schema)[:most]
    column = _event_time(path, schema, event_time)
    values = tuple(_row(path, schema, record, line) for line, record in rows)
    return Sample(stream, schema, values, column, len(found) - len(rows))


def _content(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise UnusableSample(path, "is not a file")
        if path.stat().st_size > MOST_BYTES:
            raise UnusableSample(path, f"has more than {MOST_BYTES:,} bytes: take a part of it")
        return path.read_bytes()
    except OSError as error:
        raise UnusableSample(path, error.strerror or str(error)) from None


def _rows(path: Path, content: bytes, schema: Schema | None) -> list[tuple[int, Record]]:
    """Each row with its line; values of CSV are text without a schema."""
    columns = {field.name: field.type for field in schema.fields} if schema is not None else {}
    try:
        return list(rows_of(content, path.suffix, columns))
    except NotRows as problem:
        raise UnusableSample(path, str(problem)) from None


def silent(stream: str, ddl: str) -> Sample:
    """A stream without rows.

    Raises:
        UnusableSample: the schema is wrong.
    """
    return Sample(stream, _given(Path(stream), ddl), (), None)


def _given(path: Path, ddl: str) -> Schema:
    try:
        return parse_schema(ddl)
    except NotAType as problem:
        raise UnusableSample(
            path, f"its schema {ddl!r} is wrong at character {problem.offset + 1}: {problem}"
        ) from None


def _inferred(path: Path, rows: Sequence[tuple[int, Record]], event_time: str | None) -> Schema:
    names = list(dict.fromkeys(name for _, record in rows for name in record))
    fields = []
    for name in names:
        column = [(line, record.get(name)) for line, record in rows]
        is_text = path.suffix.lower() == _CSV
        try:
            found = inferred(
                [(line, _untexted(value) if is_text else value) for line, value in column], instant=name == event_time
            )
        except NoCommonType as problem:
            if is_text:
                fields.append(Field(name, DataType("string")))
                continue
            raise UnusableSample(
                path, f"{name} {problem}; give the schema with --schema", problem.line or None
            ) from None
        fields.append(Field(name, found))
    ddl = ", ".join(f"`{field.name.replace('`', '``')}` {field.type}" for field in fields)
    return Schema(ddl, parse_schema(ddl).fields)


def _event_time(path: Path, schema: Schema, event_time: str | None) -> int | None:
    names = [field.name for field in schema.fields]
    if event_time is None:
        return next((at for at, field in enumerate(schema.fields) if field.type.name.startswith("timestamp")), None)
    if event_time not in names:
        raise UnusableSample(path, f"has no column {event_time!r}; its columns are {', '.join(names)}")
    at = names.index(event_time)
    if not schema.fields[at].type.name.startswith("timestamp"):
        raise UnusableSample(path, f"the event time {event_time} is {schema.fields[at].type}, not TIMESTAMP")
    return at


def _row(path: Path, schema: Schema, record: Record, line: int) -> tuple[Json, ...]:
    values = []
    for field in schema.fields:
        value = _fitted(record.get(field.name), field.type)
        try:
            canonical(value, field.type)
        except NotAValue as problem:
            raise UnusableSample(path, f"{field.name}: {problem}", line or None) from None
        values.append(value)
    return tuple(values)


def _fitted(value: Json, type: DataType) -> Json:
    """The value as the type has it: missing fields of structs null."""
    if type.name == "struct" and isinstance(value, Mapping):
        return {field.name: _fitted(value.get(field.name), field.type) for field in type.fields}
    if type.name == "array" and isinstance(value, list):
        return [_fitted(item, type.elements[0]) for item in value]
    return value


def _untexted(text: str | None) -> Json:
    """A value of CSV: a number or a boolean if it is written like one."""
    if text is None or text.lower() in ("true", "false"):
        return text and text.lower() == "true"
    # 007 is a name rather than a number.
    if _NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") else int(text)
    return text
