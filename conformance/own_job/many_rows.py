"""The rows of a sample: in memory, or as lines of JSON in a temporary file with 24 bytes of memory for each, if they are too many."""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from itertools import chain, islice
from typing import TypeAlias, overload

from conformance.core.data import Json
from conformance.core.spark_types import Schema
from conformance.core.values import canonical, to_json_value

Row: TypeAlias = tuple[Json, ...]

MOST_IN_A_CASE = 5_000
"""With more rows, over all streams, a case names files in place of them, and engines answer with digests of what they emit."""
NO_INSTANT = -(1 << 63)


def kept(rows: Iterable[Row], schema: Schema, event_time: int | None) -> Sequence[Row]:
    """The rows, in a temporary file if they are more than a case may have; ``event_time``: the position of its column."""
    left = iter(rows)
    first = tuple(islice(left, MOST_IN_A_CASE + 1))
    return first if len(first) <= MOST_IN_A_CASE else Stored(chain(first, left), schema, event_time)


def instant_of(row: Row, schema: Schema, event_time: int | None) -> int:
    """The event time of a row in µs since the epoch; `NO_INSTANT` without one."""
    if event_time is None or row[event_time] is None:
        return NO_INSTANT
    instant: int = canonical(row[event_time], schema.fields[event_time].type)
    return instant


def lines_of(rows: Sequence[Row], schema: Schema) -> Iterator[bytes]:
    """Each row as a line of JSON that Spark reads with this schema."""
    return rows.lines() if isinstance(rows, _Rows) else (_line(row, schema) for row in rows)


def _line(row: Row, schema: Schema) -> bytes:
    values = {each.name: to_json_value(value, each.type) for each, value in zip(schema.fields, row, strict=True)}
    return json.dumps(values).encode() + b"\n"


class _Rows(Sequence[Row]):
    """Rows that are read one at a time."""

    @overload
    def __getitem__(self, place: int) -> Row: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...
    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return tuple(self.row(each) for each in range(*place.indices(len(self))))
        return self.row(range(len(self))[place])

    def row(self, place: int) -> Row:
        raise NotImplementedError

    def lines(self) -> Iterator[bytes]:
        raise NotImplementedError


class Stored(_Rows):
    """Rows in a file that ends with the process."""

    def __init__(self, rows: Iterable[Row], schema: Schema, event_time: int | None) -> None:
        self._file = tempfile.TemporaryFile(prefix="conformance-")  # noqa: SIM115 - it lives as long as the rows
        self._starts, self._names = array("q"), [field.name for field in schema.fields]
        self.instants = array("q")
        """What `instant_of` says of each."""
        at = 0
        for row in rows:
            self._starts.append(at)
            self.instants.append(instant_of(row, schema, event_time))
            at += self._file.write(_line(row, schema))
        self._file.flush()

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[Row]:
        return (self.row(place) for place in range(len(self)))

    def line(self, place: int) -> bytes:
        self._file.seek(self._starts[place])
        return self._file.readline()

    def lines(self) -> Iterator[bytes]:
        return map(self.line, range(len(self)))

    def row(self, place: int) -> Row:
        values = json.loads(self.line(place), parse_float=Decimal)
        return tuple(values[name] for name in self._names)


class Some(_Rows):
    """The rows at these places of others."""

    def __init__(self, rows: Stored, places: Sequence[int]) -> None:
        self._rows, self._places = rows, places

    def __len__(self) -> int:
        return len(self._places)

    def row(self, place: int) -> Row:
        return self._rows.row(self._places[place])

    def lines(self) -> Iterator[bytes]:
        return map(self._rows.line, self._places)
