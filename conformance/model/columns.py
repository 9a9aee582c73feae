"""Columns of a frame, and the values of rows."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType, Field

Value: TypeAlias = Any
"""As in ``conformance.core.values``: instants in µs; int, float or Decimal; structs and arrays as tuples; NULL as None."""

Row: TypeAlias = dict[int, Value]
"""Column id → value."""

Origin: TypeAlias = tuple[str, int]
"""A row that a micro-batch read: its stream, and its place among the new rows of the stream, from 0."""


class InputRow(dict[int, Value]):
    """A row that comes from a row of a stream, whatever columns it has by now. Equal to any row with the same values."""

    __slots__ = ("origin",)

    def __init__(self, values: Iterable[tuple[int, Value]] | Row, origin: Origin) -> None:
        super().__init__(values)
        self.origin = origin


def with_origin_of(row: Row, values: Row) -> Row:
    """The values as a row that comes from where ``row`` comes from."""
    return InputRow(values, row.origin) if isinstance(row, InputRow) else values


def origins(rows: Iterable[object]) -> tuple[Origin, ...]:
    """Where rows come from; without those that an operator made of several rows."""
    return tuple(row.origin for row in rows if isinstance(row, InputRow))


TIMESTAMP = DataType("timestamp")
STRING = DataType("string")
INT = DataType("int")
BIGINT = DataType("bigint")
DOUBLE = DataType("double")
BOOLEAN = DataType("boolean")
WINDOW = DataType("struct", (Field("start", TIMESTAMP), Field("end", TIMESTAMP)))

WINDOW_MADE = "window"
"""Marks columns made by ``window`` and ``session_window``, whose event time is their end."""


@dataclass(frozen=True)
class Attribute:
    """A column, like an ``AttributeReference`` of Spark. Its id is unique in the query; an unchanged column keeps it."""

    id: int
    name: str
    type: DataType
    delay_ms: int | None = None
    """The delay of its watermark, in ms; None without a watermark."""
    qualifier: str | None = None
    """The alias of its frame."""
    field_delays_ms: tuple[int | None, ...] = ()
    """The same for each field of a struct made of columns; empty if no field has a watermark."""
    made_by: str | None = None
    """``window`` if it is a time window, which ``window_time`` and another ``window`` accept."""

    @property
    def is_event_time(self) -> bool:
        return self.delay_ms is not None


class Ids:
    """Generates the ids of columns."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last
