"""Samples of the streams of a job, rows of a JSON lines, CSV or Parquet file with a schema, and their division into micro-batches."""

from __future__ import annotations

import dataclasses
import json
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from decimal import Decimal
from functools import cached_property, partial, reduce
from itertools import chain, islice, starmap
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from conformance.core.data import Json
from conformance.core.errors import WrongUsage
from conformance.core.spark_types import DataType, Field, NotAType, Schema, parse_schema
from conformance.core.values import INSTANT_PATTERN, NotAValue, canonical
from conformance.language.streams import FORMATS, NotRows, rows_in
from conformance.own_job.many_rows import MOST_IN_A_CASE, NO_INSTANT, EventTime, SampleRow, Stored, instant_of, kept
from conformance.own_job.written_time import (
    column_and_format,
    instant_text,
    written_time,
)

SampleRecord: TypeAlias = Mapping[str, Json]
ArrivalOrder: TypeAlias = str
"""How rows arrive: ``file``, in its order, so that late rows stay late; ``time``, sorted by event time; ``random:7``, by chance."""
WithoutColumn: TypeAlias = Literal["refuse", "null"]
"""What to do with a column of the schema that no row of the file has."""

_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
RECORD_ARRIVAL = (
    "to know when rows arrive, store it with them: current_timestamp() where they are ingested, the timestamp of a topic's record; "
    "then name the column: --arrival-time STREAM=COLUMN"
)
"""What to do without times of arrival."""
_CSV = ".csv"
_INSTANT = re.compile(INSTANT_PATTERN)
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_STRING, _BOOLEAN, _BIGINT, _DOUBLE = (DataType(name) for name in ("string", "boolean", "bigint", "double"))
_TIMESTAMP, _VOID = DataType("timestamp"), DataType("void")
_NUMBER = re.compile(r"-?(0|[1-9]\d{0,17})(\.\d+)?([eE][+-]?\d{1,3})?")


Watched: TypeAlias = Callable[[BinaryIO], BinaryIO]


def _unwatched(file: BinaryIO) -> BinaryIO:
    return file


class UnusableSample(WrongUsage):
    """A sample cannot be read as rows; without a ``line``, counted from 1, the problem is that of the whole file."""

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        super().__init__(f"{path}{f':{line}' if line is not None else ''}: {reason}")


@dataclass(frozen=True)
class Sample:
    stream: str
    schema: Schema
    rows: Sequence[SampleRow]
    """The values are as in a case, in schema order."""
    event_time: EventTime | None
    skipped: int = 0
    """The file has this many rows beyond the limit."""
    arrival: ArrivalOrder = "file"
    lacking: tuple[str, ...] = ()
    """Columns of the schema that no row of the file has, which are null."""
    unread: tuple[str, ...] = ()
    """Columns of the file that the schema does not have."""
    arrived: Sequence[int] = ()
    """When each row arrived, in µs since the epoch; empty if no column of the file says it."""
    times: Callable[[], Iterator[tuple[int, int]]] = dataclasses.field(default=lambda: iter(()), compare=False)
    """Reads the file again: when each row with an event time arrived, else its number, and that time, also of rows beyond the limit."""

    @cached_property
    def instants(self) -> Sequence[int]:
        """The event time of each row in µs since the epoch, `NO_INSTANT` of one without."""
        if isinstance(self.rows, Stored):
            return self.rows.instants
        return array("q", (instant_of(row, self.schema, self.event_time) for row in self.rows))

    @cached_property
    def ends(self) -> tuple[int, int]:
        """The places of the earliest and of the latest row; without event times of the first and the last of the file."""
        instants = self.instants
        timed = array("q", (at for at, instant in enumerate(instants) if instant != NO_INSTANT))
        # Of rows of the same time the first is the earliest, the last the latest.
        latest = max(reversed(timed), key=instants.__getitem__, default=len(instants) - 1)
        return min(timed, key=instants.__getitem__, default=0), latest


def read_sample(
    stream: str,
    path: Path,
    *,
    event_time: str | None = None,
    ddl: str | None = None,
    most: int = 200,
    zone: str | None = None,
    watched: Watched = _unwatched,
    arrival: ArrivalOrder = "file",
    missing: WithoutColumn = "refuse",
    records: bool = False,
    texts: bool = False,
    arrived: str | None = None,
) -> Sample:
    """Read the sample of a stream; raises UnusableSample if it cannot be read, has no rows, or a row or column does not match the schema.

    Args:
        path: ``.jsonl`` (or ``.json``: an object per line), ``.csv`` (with a header) or ``.parquet``.
        event_time: the column that holds the event time, or what else `written_time` reads; None for the first TIMESTAMP column, without
            one for what looks like a time.
        ddl: the schema, ``order_time TIMESTAMP, user STRING``; None for that of Parquet, or to infer it from the rows.
        zone: the time zone of the session, for times that name no zone; None for UTC.
        watched: what to read in place of the open file, to see how much of it has been read.
        records: of a topic, of which a row without ``value`` is the text of the value.
        texts: leave times as text where no schema says what they are, as Spark does with those of JSON.
        arrived: the column with the time at which a row arrived, as ``event_time``; it need not be in the schema.
    """
    if path.suffix.lower() not in FORMATS:
        raise UnusableSample(path, f"a sample is a file ending in {', '.join(FORMATS)}")
    as_text = records and _is_text_of_records(path)
    if as_text and ddl is not None:
        why = "each row is the text of a record's value as it is: omit --schema, or give the rows a column value"
        raise UnusableSample(path, why)
    ddl = "value STRING" if as_text else ddl
    schema = _given(path, ddl) if ddl is not None else _inferred_schema(path, event_time, most, texts=texts)
    in_zone = _zone(path, zone) if zone is not None else None
    named, format = column_and_format(event_time or "")
    # A TIMESTAMP of the schema that the file has in another form is read as it is written; text stays text.
    written = {named: format} if format and ddl is not None and named in _instants(schema) else {}
    event_time = named if written else event_time
    names: dict[str, None] = {}
    arrivals_of, arrival_of = array("q"), _arrival(path, arrived) if arrived is not None else None

    def row(line: int, record: SampleRecord) -> SampleRow:
        names.update(dict.fromkeys(record))
        if arrival_of is not None:
            arrivals_of.append(arrival_of(record, line))
        return _row(path, schema, record, line, in_zone, written)

    with _records(path, schema, watched, as_text=as_text) as lines:
        taken = starmap(row, islice(lines, most))
        first = [*islice(taken, 1)]
        column = _event_time(path, schema, event_time, next(iter(first), ()), but=arrived)
        rows = kept(chain(first, taken), schema, column)
        skipped = sum(1 for _ in lines)
    if not rows:
        raise UnusableSample(path, "has no rows")
    wanted = [field.name for field in schema.fields]
    lacking = tuple(name for name in wanted if name not in names)
    unread = tuple(name for name in names if name not in wanted and name != column_and_format(arrived or "")[0])
    if lacking and missing == "refuse":
        raise UnusableSample(path, _without(lacking, unread, schema))
    times = partial(_times_in, path, schema, column, in_zone, arrived, written, as_text=as_text)
    return Sample(stream, schema, rows, column, skipped, arrival, lacking, unread, arrivals_of, times)


def _times_in(
    path: Path,
    schema: Schema,
    event_time: EventTime | None,
    zone: tzinfo | None,
    arrived: str | None,
    written: Mapping[str, str],
    *,
    as_text: bool,
) -> Iterator[tuple[int, int]]:
    """Yield what `Sample.times` does; raises UnusableSample, also if the rows are not in the order of their arrival."""
    # Of a column of instants no other is read, which is faster.
    field, at_time = (schema.fields[event_time], 0) if isinstance(event_time, int) else (None, event_time)
    needed = schema if field is None else Schema(schema.ddl, (field,))
    arrival_of = _arrival(path, arrived) if arrived is not None else None
    latest = 0
    with _records(path, schema, as_text=as_text) as lines:
        for number, (line, record) in enumerate(lines):
            time = instant_of(_row(path, needed, record, line, zone, written), needed, at_time)
            at = number if arrival_of is None else arrival_of(record, line)
            if at < latest:
                raise UnusableSample(path, f"its rows are not in the order of {arrived}: sort them by it", line or None)
            latest = at
            if time != NO_INSTANT:
                yield at, time


def _arrival(path: Path, column: str) -> Callable[[SampleRecord, int], int]:
    """Return what reads the time of arrival of a record, in µs; it raises UnusableSample if there is none."""
    name, format = column_and_format(column)
    is_text = path.suffix.lower() == _CSV

    def arrival(record: SampleRecord, line: int) -> int:
        value = record.get(name)
        micros = None if format else _micros_of(value)
        if micros is None:
            row = (_untexted(value) if is_text else value,)
            written = written_time(row, (name,), column)
            micros = written.micros(row) if written is not None else None
        if micros is None:
            what = "has no such column" if name not in record else f"{value!r} cannot be read as a time"
            raise UnusableSample(path, f"the time of arrival {name}: {what}", line or None)
        return micros

    return arrival


def _micros_of(value: Json) -> int | None:
    """The instant of a text with date and time in ISO 8601, in UTC without a zone; None of other values, which are read slower."""
    if (moment := _moment(value)) is None:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND


def _without(lacking: Sequence[str], unread: Sequence[str], schema: Schema) -> str:
    nobody = f"; nobody reads its {_columns(unread)}" if unread else ""
    return (
        f"no row has the {_columns(lacking)} of the schema {schema.ddl}{nobody}: "
        "correct the names in the file, or let --missing null fill them with null"
    )


def _columns(names: Sequence[str]) -> str:
    return f"{'columns' if len(names) > 1 else 'column'} {', '.join(names)}"


def _inferred_schema(path: Path, event_time: str | None, most: int, *, texts: bool) -> Schema:
    with _records(path, None) as records:
        rows = [*islice(records, min(most, MOST_IN_A_CASE))]
    if not rows:
        raise UnusableSample(path, "has no rows")
    typed = _types_of_parquet(path) if path.suffix.lower() == ".parquet" else {}
    schema = _inferred(path, rows, event_time, typed, texts=texts)
    if not schema.fields:
        raise UnusableSample(path, "its rows have no columns")
    return schema


@contextmanager
def _records(
    path: Path, schema: Schema | None, watched: Watched = _unwatched, *, as_text: bool = False
) -> Iterator[Iterator[tuple[int, SampleRecord]]]:
    """Each row with its line; values of CSV are text without a schema. ``as_text``: the text of a row is its column ``value``."""
    columns = {field.name: field.type for field in schema.fields} if schema is not None else {}
    try:
        if path.exists() and not path.is_file():
            raise UnusableSample(path, "is not a file")
        with path.open("rb") as file:
            if as_text and path.suffix.lower() in (".jsonl", ".json"):
                texts = ((number, text.decode().strip()) for number, text in enumerate(watched(file), 1))
                yield ((number, {"value": text}) for number, text in texts if text)
            elif as_text:
                typed = _untexted if path.suffix.lower() == _CSV else lambda value: value
                read = rows_in(watched(file), path.suffix, {})
                objects = ((line, {name: typed(value) for name, value in row.items()}) for line, row in read)
                yield ((line, {"value": json.dumps(row, ensure_ascii=False, default=float)}) for line, row in objects)
            else:
                yield rows_in(watched(file), path.suffix, columns)
    except NotRows as problem:
        hint = ": write it in UTF-8" if "codec can't decode" in str(problem) else ""
        raise UnusableSample(path, f"{problem}{hint}") from None
    except UnicodeDecodeError:
        raise UnusableSample(path, "is not UTF-8: write it in UTF-8") from None
    except OSError as error:
        raise UnusableSample(path, error.strerror or str(error)) from None


def _is_text_of_records(path: Path) -> bool:
    """Whether the rows of a file are values of records, rather than records with a column ``value``."""
    with suppress(NotRows), _records(path, None) as records:
        return all("value" not in record for _, record in islice(records, 1))
    return True


def silent(stream: str, ddl: str) -> Sample:
    """A stream without rows; raises UnusableSample if the schema is wrong."""
    return Sample(stream, _given(Path(stream), ddl), (), None)


def _given(path: Path, ddl: str) -> Schema:
    try:
        return parse_schema(ddl)
    except NotAType as problem:
        what = f"its schema {ddl!r} is wrong at character {problem.offset + 1}"
        raise UnusableSample(path, f"{what}: {problem}") from None


def _zone(path: Path, name: str) -> tzinfo:
    try:
        offset = datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo if name[:1] in ("+", "-") else None
        return offset or ZoneInfo(name)
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise UnusableSample(path, f"the session's time zone {name!r} is none that is known here") from None


def _types_of_parquet(path: Path) -> dict[str, DataType]:
    """The types of the columns as Spark reads them; without those that it reads as no type of a case."""
    # The rows were read, so pyarrow is there.
    from pyarrow.parquet import read_schema

    types = {field.name: _of_arrow(field.type) for field in read_schema(path)}
    return {name: parse_schema(f"a {ddl}").fields[0].type for name, ddl in types.items() if ddl is not None}


_OF_ARROW = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "uint8": "smallint",
    "uint16": "int",
    "uint32": "bigint",
    "uint64": "decimal(20,0)",
    "float": "float",
    "double": "double",
    "bool": "boolean",
    "string": "string",
    "large_string": "string",
    "binary": "binary",
    "large_binary": "binary",
    "date32[day]": "date",
}
"""The type of Arrow → the type as which Spark reads it from Parquet."""


def _of_arrow(type: Any) -> str | None:
    name = str(type)
    if name.startswith("timestamp["):
        return "timestamp"
    if name.startswith("decimal"):
        return f"decimal({type.precision},{type.scale})"
    if name.startswith(("list<", "large_list<")):
        item = _of_arrow(type.value_type)
        return item and f"array<{item}>"
    if name.startswith("struct<"):
        fields = [(field.name, _of_arrow(field.type)) for field in type]
        known = all(ddl and field.isidentifier() for field, ddl in fields)
        return f"struct<{','.join(f'{field}:{ddl}' for field, ddl in fields)}>" if known else None
    return _OF_ARROW.get(name)


def _inferred(
    path: Path,
    rows: Sequence[tuple[int, SampleRecord]],
    event_time: str | None,
    typed: Mapping[str, DataType],
    *,
    texts: bool,
) -> Schema:
    """The schema as Spark's JSON source infers it, without ``texts`` with TIMESTAMP for text that holds instants; ``typed``: types that the
    file has."""
    is_text = path.suffix.lower() == _CSV
    fields = []
    for name in dict.fromkeys(name for _, record in rows for name in record):
        if name in typed and (name != event_time or typed[name] == _TIMESTAMP):
            fields.append(Field(name, typed[name]))
            continue
        type = _VOID
        for line, record in rows:
            value = _untexted(record.get(name)) if is_text else record.get(name)
            try:
                type = _joined(type, _of_event_time(value) if name == event_time and not texts else _of(value))
            except NoCommonType as problem:
                if is_text:
                    type = _STRING
                    break
                why = f"{name} {problem}; give the schema with --schema"
                raise UnusableSample(path, why, line or None) from None
        fields.append(Field(name, _settled(type, texts=texts)))
    ddl = ", ".join(f"`{field.name.replace('`', '``')}` {field.type}" for field in fields)
    return Schema(ddl, parse_schema(ddl).fields if fields else ())


def _event_time(
    path: Path, schema: Schema, said: str | None, row: SampleRow = (), *, but: str | None = None
) -> EventTime | None:
    """Where the event time of the rows stands, of which ``row`` is the first; ``but``: not there, unless it is ``said``."""
    names = [field.name for field in schema.fields]
    instants = [names.index(name) for name in _instants(schema) if said is not None or name != but]
    if said is None and instants:
        return instants[0]
    if said in names and names.index(said) in instants:
        return names.index(said)
    written = written_time(row, names, said) if row else None
    if said is not None and written is None:
        how = "a key of JSON text is value.key, b of 'a;b' is value.1, and ' as ' with a pattern or unit says how it is written: 'ts as ms'"
        if said not in names:
            raise UnusableSample(path, f"has no column {said!r}; its columns are {', '.join(names)}; {how}")
        type = schema.fields[names.index(said)].type
        raise UnusableSample(path, f"the event time {said} is {type}, not TIMESTAMP; {how}")
    return written


def _instants(schema: Schema) -> list[str]:
    """The names of the columns that are instants."""
    return [field.name for field in schema.fields if field.type.name.startswith("timestamp")]


def _row(
    path: Path, schema: Schema, record: SampleRecord, line: int, zone: tzinfo | None, written: Mapping[str, str]
) -> tuple[Json, ...]:
    """The values of a record; ``written``: of a column of instants, the pattern or unit in which the file has them."""
    values = []
    for field in schema.fields:
        value, format = record.get(field.name), written.get(field.name)
        if format and value is not None and (value := instant_text(was := value, format)) is None:
            raise UnusableSample(path, f"{field.name}: {was!r} is not written as {format!r}", line or None)
        value = _fitted(value, field.type, zone)
        try:
            canonical(value, field.type)
        except NotAValue as problem:
            how = f"; --event-time 'STREAM={field.name} as dd.MM.yyyy HH:mm', or 'as ms', says how it is written"
            hint = how if field.name in _instants(schema) and not format else ""
            raise UnusableSample(path, f"{field.name}: {problem}{hint}", line or None) from None
        values.append(value)
    return tuple(values)


def _fitted(value: Json, type: DataType, zone: tzinfo | None) -> Json:
    """The value with null for the missing fields of its structs, and with this zone for times without one."""
    if type.name == "struct" and isinstance(value, Mapping):
        return {field.name: _fitted(value.get(field.name), field.type, zone) for field in type.fields}
    if type.name == "array" and isinstance(value, list):
        return [_fitted(item, type.elements[0], zone) for item in value]
    if isinstance(value, float | Decimal) and not Decimal(value).is_finite():
        return str(Decimal(value))
    if zone is not None and type == _TIMESTAMP and (moment := _moment(value)) is not None:
        return value if moment.tzinfo else moment.replace(tzinfo=zone).astimezone(UTC).isoformat(" ")
    return value


def _moment(value: Json) -> datetime | None:
    """Return the date and time of a text in ISO 8601, with its zone if it names one; None of any other value."""
    if isinstance(value, str) and _DATED.match(value):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    return None


def _untexted(text: str | None) -> Json:
    """Turn a value of CSV into a number or a boolean if it is written like one."""
    if text is None or text.lower() in ("true", "false"):
        return text and text.lower() == "true"
    # 007 is a name rather than a number.
    if _NUMBER.fullmatch(text):
        return float(text) if set(text) & set(".eE") else int(text)
    return text


class NoCommonType(ValueError):
    """Values of a column have types that have none in common."""


def _of_event_time(value: Json) -> DataType:
    """The type of an event time, which may also be a number of seconds or a time of 1970-01-01."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return _TIMESTAMP if is_number or (isinstance(value, str) and _INSTANT.fullmatch(value)) else _of(value)


def _of(value: Json) -> DataType:
    match value:
        case None:
            return _VOID
        case bool():
            return _BOOLEAN
        case int():
            return _BIGINT
        case float() | Decimal():
            return _DOUBLE
        case str():
            return _TIMESTAMP if _DATED.match(value) and _INSTANT.fullmatch(value) else _STRING
        case Mapping():
            return DataType("struct", tuple(Field(str(name), _of(item)) for name, item in value.items()))
        case _ if isinstance(value, Sequence):
            return DataType("array", elements=(reduce(_joined, map(_of, value), _VOID),))
    return _STRING


def _joined(type: DataType, other: DataType) -> DataType:
    """The type that holds both; raises NoCommonType if there is none."""
    if type == other or other == _VOID:
        return type
    if type == _VOID:
        return other
    names = {type.name, other.name}
    if names == {"bigint", "double"}:
        return _DOUBLE
    if names == {"timestamp", "string"}:
        return _STRING
    if names == {"array"}:
        return DataType("array", elements=(_joined(type.elements[0], other.elements[0]),))
    if names == {"struct"}:
        types = {field.name: field.type for field in type.fields}
        for field in other.fields:
            types[field.name] = _joined(types.get(field.name, _VOID), field.type)
        return DataType("struct", tuple(starmap(Field, types.items())))
    raise NoCommonType(f"is {type} in an earlier row and {other} here")


def _settled(type: DataType, *, texts: bool) -> DataType:
    """Replace the type of null, which no column may have, by text, and with ``texts`` that of instants."""
    if type == _VOID or (texts and type == _TIMESTAMP):
        return _STRING
    if type.name == "struct":
        return DataType("struct", tuple(Field(field.name, _settled(field.type, texts=texts)) for field in type.fields))
    return DataType("array", elements=(_settled(type.elements[0], texts=texts),)) if type.name == "array" else type
