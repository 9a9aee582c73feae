"""Rows: formats of files of rows, rows in files beside a case, and expected rows that no engine could ever answer.

Reading a case must not show a file of elsewhere, so a file of rows lies in the folder of the case or below it, links included.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from conformance.core.case import STATEFUL
from conformance.core.data import Json
from conformance.core.spark_types import DataType, NotAType, Schema, parse_schema
from conformance.core.values import NotAValue, canonical
from conformance.core.wording import counted
from conformance.language.pipelines import operations_in, queries_of
from conformance.language.query_checks import Columns
from conformance.language.shape import literal
from conformance.language.source import (
    Entries,
    Entry,
    Items,
    Node,
    Report,
    Scalar,
    SourceLocation,
    changed,
    child,
    entries_of,
    items_of,
    text_of,
    unknown,
)
from conformance.language.steps import step_number
from conformance.language.stream_checks import check_values
from conformance.language.streams import ddl_of

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


MAX_BYTES = 16_000_000
_MAX_ROWS = 100_000


def with_rows(case: Node, report: Report) -> Node:
    """The case as written, where each ``{file: …}`` of rows is the list of the rows in that file.

    Args:
        case: as written.
        report: gets a problem for each file that cannot be read; its path is that of the case.
    """

    def arrival(node: Node) -> Node:
        for entry in entries_of(node):
            stream = str(entry.key.value)
            node = changed(node, (stream,), partial(_with_rows, child(case, "streams", stream), report))
        return node

    for path in (("add",), ("backlog", "*"), ("restart", "add")):
        case = changed(case, ("steps", "*", *path), arrival)
    return case


def _with_rows(stream: Node | None, report: Report, arriving: Node) -> Node:
    """The rows of a file in place of its name, the only key of ``arriving``."""
    name = child(arriving, "file")
    if name is None or len(tuple(entries_of(arriving))) != 1:
        return arriving
    try:
        schema = parse_schema(text_of(ddl_of(stream)) or "")
    except NotAType:
        return arriving  # what is wrong with the stream is reported elsewhere
    try:
        written = text_of(name) or ""
        file = _row_file(report.path.parent, written)
        report.row_files.add(file)
        rows = tuple(_read(file, written, schema))
    except NotRows as why:
        report.add(name, str(why))
        rows = ()
    return Items(name.line, name.column, tuple(_node(row, name) for row in rows))


def _row_file(folder: Path, name: str) -> Path:
    """The file that the case names, links resolved."""
    path = (folder / name).resolve()
    if not name or not path.is_relative_to(folder.resolve()):
        raise NotRows(f"{name!r} is not a file in the folder of the case or below it")
    return path


def _read(path: Path, name: str, schema: Schema) -> Iterator[Mapping[str, Json]]:
    """The rows of a file, with every column of the schema; ``name``: of the file, as the case writes it."""
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


@dataclass(frozen=True)
class _Expected:
    """An expectation of a step, in the steps or in ``differs``."""

    node: Node
    query: int
    """The query of the case that the step runs, from 0."""
    complete: bool
    """Whether the step runs in complete mode."""


def check_expected_rows(case: Node, columns: Sequence[Columns | None], report: Report) -> None:
    """Expected rows must have the columns of their query, and must not contradict the rows of their own batches.

    Args:
        case: the document.
        columns: for each query of the case the columns of its result, None if unknown.
        report: where problems go.
    """
    first: dict[int, Items] = {}
    operators = [_most_operators(query) for query, _ in queries_of(case)]
    for expected in _expectations(case):
        known = columns[expected.query]
        for row in _rows(expected.node):
            if known is not None:
                _check_row(row, known, report)
            elif isinstance(row, Items):
                _check_like_the_first(row, first.setdefault(expected.query, row), report)
        _check_rows_of_batches(expected, report)
        _check_counts_of_operators(expected, operators[expected.query], report)
        _check_state_of_the_last_batch(expected.node, report)


def _expectations(case: Node) -> Iterator[_Expected]:
    steps = items_of(child(case, "steps"))
    query, mode, found = 0, text_of(child(case, "outputMode")), []
    for step in steps:
        change = child(child(step, "restart"), "change")
        query += child(change, "query") is not None
        mode = text_of(child(change, "outputMode")) or mode
        found.append((query, mode == "complete"))
        if (expect := child(step, "expect")) is not None:
            yield _Expected(expect, *found[-1])
    for entry in items_of(child(case, "differs")):
        for step_entry in entries_of(child(entry, "steps")):
            number = step_number(step_entry.key.value, steps)
            if number is not None:
                yield _Expected(step_entry.value, *found[number - 1])


def _rows(expect: Node) -> Iterator[Node]:
    yield from items_of(child(expect, "rows"))
    for batch in items_of(child(expect, "batches")):
        yield from items_of(child(batch, "rows"))


def _check_row(row: Node, columns: Columns, report: Report) -> None:
    names = [column.name for column in columns]
    if isinstance(row, Entries) and all(names):
        for entry in row.entries:
            if str(entry.key.value).lower() not in {name.lower() for name in names}:
                report.add(entry.key, unknown("column", str(entry.key.value), names))
    if isinstance(row, Items) or len({name or "?" for name in names}) == len(names):
        check_values(row, [(column.name, column.type) for column in columns], "the query", report)


def _check_like_the_first(row: Items, first: Items, report: Report) -> None:
    """Where the columns are unknown, the rows must at least agree with each other."""
    if len(row.items) != len(first.items):
        has = f"this row has {counted(len(row.items), 'value')}"
        report.add(row, f"{has}, but the row expected in line {first.line} has {len(first.items)}")


def _check_rows_of_batches(expected: _Expected, report: Report) -> None:
    """`rows` are those of all batches, in complete mode those of the last one."""
    rows, batches = child(expected.node, "rows"), child(expected.node, "batches")
    if not isinstance(rows, Items) or not isinstance(batches, Items) or not batches.items:
        return
    counted_batches = batches.items[-1:] if expected.complete else batches.items
    of_batches = [child(batch, "rows") for batch in counted_batches]
    listed = [row for one in of_batches for row in items_of(one)]
    all_listed = all(isinstance(one, Items) for one in of_batches)
    where = "the last of `batches` has" if expected.complete else "its `batches` have"
    if len(listed) > len(rows.items) or (all_listed and len(listed) < len(rows.items)):
        report.add(rows, f"`rows` has {counted(len(rows.items), 'row')}, but {where} {len(listed)}: both cannot hold")
    elif all_listed and (other := _only_in(rows.items, listed)) is not None:
        report.add(other, f"`rows` has this row, but {where} other values: both cannot hold")


def _check_counts_of_operators(expected: _Expected, most: int | None, report: Report) -> None:
    """A list per operator is not longer than the query has operators."""
    for place in (expected.node, *items_of(child(expected.node, "batches"))):
        for key in ("dropped", "state"):
            counts = child(place, key)
            if isinstance(counts, Items) and most is not None and len(counts.items) > most:
                has = "no stateful operator" if most == 0 else f"at most {counted(most, 'stateful operator')}"
                report.add(counts, f"`{key}` lists {counted(len(counts.items), 'operator')}, but the query has {has}")


def _check_state_of_the_last_batch(expected: Node, report: Report) -> None:
    """The state after a step is that after its last batch."""
    state, batches = child(expected, "state"), items_of(child(expected, "batches"))
    last = child(batches[-1], "state") if batches else None
    if state is None or last is None or not (report.is_valid(state) and report.is_valid(last)):
        return
    one, other = state.plain(), last.plain()
    if isinstance(one, list) and isinstance(other, int):
        one = sum(one)
    elif isinstance(one, int) and isinstance(other, list):
        other = sum(other)
    if one != other:
        report.add(
            state,
            f"`state` is {literal(state)}, but after the last of `batches` it is {literal(last)}: both cannot hold",
        )


def _only_in(rows: tuple[Node, ...], others: list[Node]) -> Node | None:
    """A row with a number that no row of the others has in its place; texts may be times in another notation."""
    lists = [one.items for one in (*rows, *others) if isinstance(one, Items)]
    if len(lists) < len(rows) + len(others):
        return None
    for index in range(min(map(len, lists), default=0)):
        column = [row[index] for row in lists]
        if not all(map(_is_number, column)):
            continue
        left = Counter(node.plain() for node in column[: len(rows)])
        left.subtract(node.plain() for node in column[len(rows) :])
        for row, node in zip(rows, column, strict=False):
            if left[node.plain()] > 0:
                return row
    return None


def _is_number(node: Node) -> bool:
    return isinstance(node, Scalar) and isinstance(node.value, int | float) and not isinstance(node.value, bool)


def _most_operators(query: Node | None) -> int | None:
    """How many stateful operators a query can have at most; None if SQL or code may bring any number."""
    names = [str(entry.key.value) for operation in operations_in(query) for entry in islice(entries_of(operation), 1)]
    return None if "sql" in names or "call" in names else sum(name in STATEFUL for name in names)
