"""The rows of a sample: in memory, or as lines of JSON in a temporary file with 24 bytes of memory for each, if they are too many."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import IO, TypeAlias, overload

from conformance.core.data import Json
from conformance.core.spark_types import Schema
from conformance.core.values import canonical, to_json_value
from conformance.own_job.written_time import WrittenTime

SampleRow: TypeAlias = tuple[Json, ...]
EventTime: TypeAlias = int | WrittenTime
"""The position of a column of instants, or where else the times of a row stand."""

MOST_IN_A_CASE = 5_000
"""With more rows, over all streams, a case names files in place of them, and engines answer with digests of what they emit."""
NO_INSTANT = -(1 << 63)


def kept(rows: Iterable[SampleRow], schema: Schema, event_time: EventTime | None) -> Sequence[SampleRow]:
    """The rows, in a temporary file if they are more than a case may have; ``event_time``: of each."""
    left = iter(rows)
    first = tuple(islice(left, MOST_IN_A_CASE + 1))
    return first if len(first) <= MOST_IN_A_CASE else Stored.of(chain(first, left), schema, event_time)


def instant_of(row: SampleRow, schema: Schema, event_time: EventTime | None) -> int:
    """The event time of a row in µs since the epoch; `NO_INSTANT` without one."""
    if isinstance(event_time, WrittenTime):
        micros = event_time.micros(row)
        return NO_INSTANT if micros is None else micros
    if event_time is None or row[event_time] is None:
        return NO_INSTANT
    instant: int = canonical(row[event_time], schema.fields[event_time].type)
    return instant


def lines_of(rows: Sequence[SampleRow], schema: Schema) -> Iterator[bytes]:
    """Each row as a line of JSON that Spark reads with this schema."""
    return rows.lines() if isinstance(rows, Stored) else (_line(row, schema) for row in rows)


def _line(row: SampleRow, schema: Schema) -> bytes:
    values = {field.name: to_json_value(value, field.type) for field, value in zip(schema.fields, row, strict=True)}
    return json.dumps(values).encode() + b"\n"


class Stored(Sequence[SampleRow]):
    """Rows in a file that ends with the process."""

    def __init__(self, file: IO[bytes], names: Sequence[str], starts: array[int], instants: array[int]) -> None:
        self._file, self._names, self._starts = file, names, starts
        self.instants = instants
        """What `instant_of` says of each."""

    @classmethod
    def of(cls, rows: Iterable[SampleRow], schema: Schema, event_time: EventTime | None) -> Stored:
        file = tempfile.TemporaryFile(prefix="conformance-")  # noqa: SIM115 - it lives as long as the rows
        starts, instants, at = array("q"), array("q"), 0
        for row in rows:
            starts.append(at)
            instants.append(instant_of(row, schema, event_time))
            at += file.write(_line(row, schema))
        file.flush()
        return cls(file, [field.name for field in schema.fields], starts, instants)

    def at(self, places: Sequence[int]) -> Stored:
        starts, instants = (array("q", map(all.__getitem__, places)) for all in (self._starts, self.instants))
        return Stored(self._file, self._names, starts, instants)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, place: int) -> SampleRow: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[SampleRow]: ...
    def __getitem__(self, place: int | slice) -> SampleRow | Sequence[SampleRow]:
        if isinstance(place, slice):
            return tuple(map(self._row, range(*place.indices(len(self)))))
        return self._row(range(len(self))[place])

    def lines(self) -> Iterator[bytes]:
        return map(self._line, range(len(self)))

    def _line(self, place: int) -> bytes:
        self._file.seek(self._starts[place])
        return self._file.readline()

    def _row(self, place: int) -> SampleRow:
        values = json.loads(self._line(place), parse_float=Decimal)
        return tuple(values[name] for name in self._names)
