"""Streams: what a case declares of them, and the rows that arrive on them, in the case or in files beside it.

Reading a case must not show a file of elsewhere, so a file of rows lies in the folder of the case or below it, links included.
"""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from operator import is_
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias, get_args

from conformance.core.case import TABLE_FORMATS, Source
from conformance.core.data import Json
from conformance.core.spark_types import TYPE_NAMES, DataType, NotAType, Schema, parse_schema
from conformance.core.values import INTEGERS, NotAValue, canonical
from conformance.core.wording import nearest, unknown
from conformance.language import shape as shapes
from conformance.language import source as nodes
from conformance.language.shape import ByKind, Choice, Definitions, Key, ListOf, MapOf, Record, Shape, Text
from conformance.language.source import Entries, Items, Node, ProblemReport, child, entries_of, items_of, text_of

IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"

NAME = Text("a stream name: letters, digits and _, starting with a letter", IDENTIFIER)


class Ddl(Shape):
    """A DDL schema, ``event_time TIMESTAMP, count INT``."""

    kind = "a DDL schema such as `event_time TIMESTAMP, count INT`"

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not isinstance(node, nodes.Scalar) or not isinstance(node.value, str):
            return self.reject(node, report)
        try:
            schema = parse_schema(node.value)
        except NotAType as wrong:
            near = nearest(wrong.near or "", TYPE_NAMES)
            hint = f"did you mean {near.upper()}?" if near else f"expected one of {', '.join(TYPE_NAMES).upper()}"
            report.add(node.at(wrong.offset), str(wrong) if wrong.near is None else f"{wrong}: {hint}")
            return False
        unreadable = [(field.name, reason) for field in schema.fields for reason in _unreadable(field.type)]
        for name, reason in unreadable:
            report.add(node, f"column {name!r}: {reason}")
        return not unreadable

    def schema(self, definitions: Definitions) -> Json:  # noqa: ARG002
        return {"type": "string", "minLength": 1, "examples": ["event_time TIMESTAMP, count INT"]}

    def value(self, written: Json) -> Schema:
        return parse_schema(written)


_ROW = ByKind(
    "a row: a list of values in schema order, or a mapping from column to value",
    items=ListOf(shapes.AnyValue(), "a row", at_least=1),
    entries=MapOf(Text("a column name"), shapes.AnyValue(), "a row", at_least=1),
)
ROWS = shapes.Definition(
    ListOf(shapes.Definition(_ROW, "row"), 'a list of rows, each a list or a mapping: [["12:00", 1]]'), "rows"
)
_PARTITIONS = ListOf(ROWS, "a list of partitions, each a list of rows", at_least=1)
_FILE = Record(
    "`file`",
    {"file": Key(Text(), "A file with rows, relative to the case: .jsonl, .csv, .parquet.", required=True)},
)


class _Placed(Record):
    """Rows by partition, or the name of a file with rows; ``rows`` has replaced the latter in a case that is a file."""

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if (name := child(node, "file")) is None:
            return super().validate(node, report)
        message = "rows from a file stand alone, {file: day1.jsonl}, for a stream of a case that is a file itself"
        return self.reject(name, report, message)

    def schema(self, definitions: Definitions) -> Json:
        return {"oneOf": [super().schema(definitions), _FILE.schema(definitions)]}


ARRIVING = ByKind(
    "a list of rows, or {partitions: [[rows], …]}",
    items=shapes.Converted(ROWS, lambda rows: {"partitions": (rows,)}),
    entries=_Placed(
        "`partitions`", {"partitions": Key(_PARTITIONS, "a list of partitions, each a list of rows", required=True)}
    ),
)
ARRIVAL = MapOf(NAME, ARRIVING, 'a mapping from stream to rows: {events: [["12:00", 1]]}', at_least=1)


def rows_of(arriving: Node) -> Iterator[Node]:
    """Yield the rows that arrive, in all partitions."""
    if isinstance(arriving, Items):
        yield from arriving.items
    for partition in items_of(arriving, "partitions"):
        yield from items_of(partition)


def _unreadable(type: DataType) -> Iterator[str]:
    """Yield why Spark's JSON source, through which rows arrive, cannot read a type."""
    if type.name in ("interval", "void", "variant"):
        yield f"rows arrive as JSON, which has no {type.name.upper()} values"
    if type.name == "map" and type.elements[0].name != "string":
        yield "rows arrive as JSON, where the keys of a MAP must be STRING"
    for below in (*type.elements, *(field.type for field in type.fields)):
        yield from _unreadable(below)


KAFKA: Final = "kafka"
MEMORY = "memory"
FILES: Final = "files"
_OF_KAFKA = ("partitions", "timestamp", "startingOffsets", "maxOffsetsPerTrigger", "failOnDataLoss", "minPartitions")
"""Keys that only a stream from Kafka has."""
_LIMIT = "maxFilesPerTrigger"
OF_FILES = (_LIMIT, "latestFirst", "maxFileAge", "cleanSource")
"""Keys that a stream of files has."""
_OF_ICEBERG = (_LIMIT, "startingTimestamp")
_FLAGS_OF_DELTA = ("ignoreChanges", "skipChangeCommits", "readChangeFeed")
_OF_DELTA = (*_OF_ICEBERG, "startingVersion", *_FLAGS_OF_DELTA)
_OWN: Mapping[str, Sequence[str]] = {"iceberg": _OF_ICEBERG, "delta": _OF_DELTA, KAFKA: _OF_KAFKA, FILES: OF_FILES}
"""Source → the keys that its streams have."""
_HINTS = {FILES: "files: ", "delta": "delta: ", "iceberg": "tables: ", KAFKA: "a topic: add `source: kafka`, or "}


class _Declared(Record):
    """A schema, and where the rows come from."""

    def validate(self, node: Node, report: ProblemReport) -> bool:
        if not super().validate(node, report) or not isinstance(node, Entries):
            return False
        source = text_of(node.get("source")) or FILES
        own = _OWN.get(source, ())
        of_others = {key: kind for kind, keys in _OWN.items() for key in keys if key not in own}
        if any(
            [*(report.forbid(node, key, f"`{key}` is of {_HINTS[kind]}remove it") for key, kind in of_others.items())]
        ):
            return False
        if source != KAFKA:
            return True
        offsets, count = node.get("startingOffsets"), node.get("partitions")
        partitions = count.value if isinstance(count, nodes.Scalar) else 1
        if isinstance(offsets, Items) and len(offsets.items) != partitions:
            report.add(offsets, f"`startingOffsets` has one offset for each partition: {partitions}")
            return False
        return (column := node.get("timestamp")) is None or _check_timestamp(column, node, report)

    def schema(self, definitions: Definitions) -> Json:
        return {**super().schema(definitions), "dependencies": {name: ["source"] for name in _OF_KAFKA}}


def _check_timestamp(column: Node, stream: Entries, report: ProblemReport) -> bool:
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


_AGE = Text("a time such as 7d", r"^[0-9]+(us|ms|s|m|min|h|d)$")
MOST_PARTITIONS = 1_000
"""Of a topic: the broker may be that of other people, too."""
_DECLARED = _Declared(
    "a stream",
    {
        "schema": Key(Ddl(), "its DDL schema", required=True),
        "source": Key(Choice("source", get_args(Source)), "Where its rows come from; `files` if absent."),
        "partitions": Key(
            shapes.integer(1, MOST_PARTITIONS),
            "Of `source: kafka`: the partitions of its topic; 1 if absent. Some may stay idle.",
        ),
        "timestamp": Key(
            Text("the name of a column", IDENTIFIER),
            "Of `source: kafka`: the TIMESTAMP column that is the timestamp of the record and not in its value.",
        ),
        "startingOffsets": Key(
            ByKind(
                "one of earliest, latest, or a list of offsets",
                scalar=Choice("offset", ("earliest", "latest")),
                items=ListOf(shapes.integer(-2), "a list of offsets, one for each partition"),
            ),
            "Of `source: kafka`: where a query without checkpoint begins; `earliest` if absent. A list has the offset of each "
            "partition, -2 for the first record and -1 for behind the last.",
        ),
        "maxOffsetsPerTrigger": Key(
            shapes.integer(1), "Of `source: kafka`: how many records a micro-batch reads at most; all if absent."
        ),
        "failOnDataLoss": Key(
            shapes.BOOLEAN, "Of `source: kafka`: whether the query fails if records that it has not read are gone."
        ),
        "minPartitions": Key(
            shapes.integer(1), "Of `source: kafka`: tasks for the records of a micro-batch, at least."
        ),
        "maxFilesPerTrigger": Key(
            shapes.integer(1),
            "Of files and tables: how many files a micro-batch reads at most; without, all that wait.",
        ),
        "latestFirst": Key(shapes.BOOLEAN, "Of files: whether a micro-batch reads the newest first."),
        "maxFileAge": Key(_AGE, "Of files: how much older than the newest that was read a file may be."),
        "cleanSource": Key(
            Choice("way", ("off", "delete", "archive")), "Of files: what becomes of those that were read."
        ),
        "startingVersion": Key(
            shapes.ValueShape(
                "`latest` or a whole number",
                lambda value: value == "latest" or type(value) is int,
                {"anyOf": [{"const": "latest"}, {"type": "integer"}]},
            ),
            "Of `source: delta`: the commit from which on a query without checkpoint reads; 0 makes the table.",
        ),
        "startingTimestamp": Key(shapes.integer(0), "Of tables: the commit from whose time on it reads."),
        **{key: Key(shapes.BOOLEAN, f"Of `source: delta`: the option `{key}`.") for key in _FLAGS_OF_DELTA},
    },
)

STREAMS = MapOf(
    NAME,
    ByKind("a DDL schema, or {schema: …, source: kafka}", scalar=Ddl(), entries=_DECLARED),
    "a mapping from stream name to DDL schema",
    at_least=1,
)


def with_sources(values: Json) -> Json:
    """Make ``streams`` schemas; ``topics``, ``tables`` and ``in_memory`` say which are not read from files, ``files`` how some are."""
    schemas, files, topics, tables, table_options, in_memory = {}, {}, {}, {}, {}, set()
    for name, declared in values["streams"].items():
        stream = declared if isinstance(declared, dict) else {"schema": declared}
        schemas[name] = stream["schema"]
        if stream.get("source") == KAFKA:
            topics[name] = {key: stream[key] for key in _OF_KAFKA if key in stream}
        elif stream.get("source") in TABLE_FORMATS:
            tables[name] = stream["source"]
            if chosen := {key: str(stream[key]).lower() for key in _OF_DELTA if key in stream}:
                table_options[name] = chosen
        elif stream.get("source") == MEMORY:
            in_memory.add(name)
        elif chosen := {key: stream[key] for key in OF_FILES if key in stream}:
            files[name] = chosen
    of_others = {"topics": topics, "tables": tables, "table_options": table_options, "in_memory": frozenset(in_memory)}
    return {**values, "streams": schemas, "files": files, **of_others}


def ddl_of(declared: Node | None) -> Node | None:
    """Return the DDL schema of a declared stream."""
    return child(declared, "schema") if isinstance(declared, Entries) else declared


def schemas(node: Node | None, report: ProblemReport) -> Mapping[str, Schema]:
    """Return the streams whose schemas are valid."""
    return {
        str(entry.key.value): parse_schema(str(text_of(ddl_of(entry.value))))
        for entry in entries_of(node)
        if report.is_valid(entry.key) and report.is_valid(entry.value)
    }


class NotRows(Exception):
    """A file cannot be read as rows; the text says why."""


def rows_in(file: BinaryIO, suffix: str, columns: Mapping[str, DataType]) -> Rows:
    """Yield the rows of a file whose name has a suffix of ``FORMATS``, one at a time; a value of CSV is text unless its column has another
    type. Raises `NotRows` if the file is not in this format."""
    try:
        yield from _READERS[suffix.lower()](file, columns)
    except (UnicodeDecodeError, csv.Error) as error:
        raise NotRows(str(error)) from None


Rows: TypeAlias = Iterator[tuple[int, Mapping[str, Json]]]
"""Each row with its line in the file, 0 if it has none."""


def _json_lines(file: BinaryIO, _columns: Mapping[str, DataType]) -> Rows:
    decode = json.JSONDecoder(parse_float=Decimal).decode
    for number, line in enumerate(io.TextIOWrapper(file, "utf-8-sig"), 1):
        if not line.strip():
            continue
        try:
            row = decode(line)
        except (ValueError, RecursionError):
            raise NotRows(f"line {number}: not JSON; write each row as an object on a line of its own") from None
        if not isinstance(row, dict):
            raise NotRows(
                f"line {number}: not an object from column to value; write each row as an object on a line of its own"
            )
        yield number, row


_OTHER_SEPARATORS = (";", "\t", "|")


def _csv(file: BinaryIO, columns: Mapping[str, DataType]) -> Rows:
    """Yield the rows of CSV, whose first line names the columns; an empty field is null."""
    reader = csv.DictReader(io.TextIOWrapper(file, "utf-8-sig", newline=""), strict=True)
    names = reader.fieldnames or ()
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise NotRows(f"line 1: the column {twice!r} is there twice")
    if len(names) == 1 and (other := next((mark for mark in _OTHER_SEPARATORS if mark in names[0]), None)):
        raise NotRows(f"line 1: {other!r} divides the names of the columns; write commas in its place, in each line")
    for row in reader:
        if None in row or None in row.values():
            raise NotRows(f"line {reader.line_num}: not as many fields as the first line")
        yield reader.line_num, {name: _of_text(text, columns.get(name)) for name, text in row.items()}


def _of_text(text: str, type: DataType | None) -> Json:
    if text == "" or type is None:
        return text or None
    try:
        if type.name in INTEGERS:
            return int(text)
        if type.name in ("float", "double", "decimal"):
            return Decimal(text)
    except (ValueError, InvalidOperation):
        return text  # the check of the row says what is wrong with it
    return {"true": True, "false": False}.get(text.lower(), text) if type.name == "boolean" else text


def _parquet(file: BinaryIO, _columns: Mapping[str, DataType]) -> Rows:
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        install = "pip install 'watermark-conformance[parquet]'"
        raise NotRows(f"reading Parquet needs pyarrow: {install}, or write JSON lines") from None
    try:
        for batch in ParquetFile(file).iter_batches():
            for row in batch.to_pylist():
                yield 0, {name: _of_arrow(value) for name, value in row.items()}
    except (ArrowException, OSError) as error:
        raise NotRows(f"not Parquet: {error}") from None


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
            return [*map(_of_arrow, value)]
        case dict():
            return {name: _of_arrow(item) for name, item in value.items()}
        case _:
            return value


_READERS: Mapping[str, Callable[[BinaryIO, Mapping[str, DataType]], Rows]] = {
    ".jsonl": _json_lines,
    ".json": _json_lines,
    ".csv": _csv,
    ".parquet": _parquet,
}
FORMATS = tuple(_READERS)
"""The suffixes of files with rows."""


_MAX_BYTES = 16_000_000
_MAX_ROWS = 100_000


def with_rows(case: Node, report: ProblemReport) -> Node:
    """Replace each ``{file: …}`` of rows by the list of the rows in that file. The report, whose path is that of the case, gets a problem
    for each file that cannot be read."""

    streams = child(case, "streams")

    def of_stream(entry: nodes.Entry) -> nodes.Entry:
        rows = _with_rows(child(streams, str(entry.key.value)), report, entry.value)
        return entry if rows is entry.value else nodes.Entry(entry.key, rows)

    def arrival(node: Node) -> Node:
        if not isinstance(node, Entries):
            return node
        entries = tuple(map(of_stream, node.entries))
        return node if all(map(is_, entries, node.entries)) else replace(node, entries=entries)

    for path in (("add",), ("backlog", "*"), ("restart", "add"), ("restart", "recreated")):
        case = nodes.changed(case, ("steps", "*", *path), arrival)
    return case


def _with_rows(stream: Node | None, report: ProblemReport, arriving: Node) -> Node:
    """Return the rows of a file in place of its name, the only key of ``arriving``."""
    name = child(arriving, "file")
    if name is None or len(tuple(entries_of(arriving))) != 1:
        return arriving
    try:
        schema = parse_schema(text_of(ddl_of(stream)) or "")
    except NotAType:
        return arriving  # what is wrong with the stream is reported elsewhere
    try:
        written, folder = text_of(name) or "", report.path.parent
        file = (folder / written).resolve()
        if not written or not file.is_relative_to(folder.resolve()):
            raise NotRows(f"{written!r} is not a file in the folder of the case or below it")
        report.row_files.add(folder / written)
        rows = tuple(_read(file, written, schema))
    except NotRows as why:
        report.add(name, str(why))
        rows = ()
    return Items(name.line, name.column, tuple(nodes.node_of(row, name, None) for row in rows))


def _read(path: Path, name: str, schema: Schema) -> Iterator[Mapping[str, Json]]:
    """Yield the rows of a file, with every column of the schema; ``name``: of the file, as the case writes it."""
    if path.suffix.lower() not in FORMATS:
        raise NotRows(f"{name!r} has no rows that are known: expected a file ending in {', '.join(FORMATS)}")
    try:
        if not path.is_file():
            raise NotRows(f"there is no file {name!r} in the folder of the case")
        if path.stat().st_size > _MAX_BYTES:
            raise NotRows(f"{name!r} has more than {_MAX_BYTES} bytes, the limit")
        content = path.read_bytes()
    except OSError as error:
        raise NotRows(f"{name!r} cannot be read: {error.strerror}") from None
    columns = {field.name: field.type for field in schema.fields}
    try:
        for number, (line, row) in enumerate(rows_in(io.BytesIO(content), path.suffix, columns), 1):
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
