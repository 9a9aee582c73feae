"""Rows as JSON lines, CSV or Parquet."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType

Json: TypeAlias = Any

_INTEGERS = frozenset({"byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"})
_NUMBERS = frozenset({"float", "real", "double", "decimal", "dec", "numeric"})


class NotRows(Exception):
    """A file cannot be read as rows; the text says why."""


def rows_of(content: bytes, suffix: str, columns: Mapping[str, DataType]) -> Rows:
    """The rows of a file.

    Args:
        suffix: of the file, one of ``FORMATS``.
        columns: of the schema; a value of CSV is text unless its column has another type.

    Raises:
        NotRows: it is not in this format.
    """
    try:
        yield from _READERS[suffix.lower()](content, columns)
    except (UnicodeDecodeError, csv.Error) as error:
        raise NotRows(str(error)) from None


Rows: TypeAlias = Iterator[tuple[int, Mapping[str, Json]]]
"""Each row with its line in the file, 0 if it has none."""


def _json_lines(content: bytes, _columns: Mapping[str, DataType]) -> Rows:
    for number, line in enumerate(content.decode("utf-8-sig").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, parse_float=Decimal)
        except (ValueError, RecursionError):
            raise NotRows(f"line {number}: not JSON") from None
        if not isinstance(row, dict):
            raise NotRows(f"line {number}: not an object from column to value")
        yield number, row


def _csv(content: bytes, columns: Mapping[str, DataType]) -> Rows:
    """The first line names the columns; an empty field is null."""
    reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    for row in reader:
        if None in row or None in row.values():
            raise NotRows(f"line {reader.line_num}: not as many fields as the first line")
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


def _parquet(content: bytes, _columns: Mapping[str, DataType]) -> Rows:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import read_table
    except ImportError:
        raise NotRows(
            "reading Parquet needs pyarrow: pip install 'watermark-conformance[parquet]', or write JSON lines"
        ) from None
    try:
        rows = read_table(io.BytesIO(content)).to_pylist()
    except (ArrowException, OSError) as error:
        raise NotRows(f"not Parquet: {error}") from None
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


_READERS: Mapping[str, Callable[[bytes, Mapping[str, DataType]], Rows]] = {
    ".jsonl": _json_lines,
    ".json": _json_lines,
    ".csv": _csv,
    ".parquet": _parquet,
}
FORMATS = tuple(_READERS)
"""Suffixes of files with rows."""
