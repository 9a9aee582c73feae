"""Columns of a frame: what they are called, and whether they carry a watermark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType, Field

Value: TypeAlias = Any
"""As ``conformance.core.values`` has it: instants in µs, numbers int, float or Decimal, structs and arrays tuples, NULL None."""

Row: TypeAlias = dict[int, Value]
"""The values of a row by the ids of its columns."""

TIMESTAMP = DataType("timestamp")
STRING = DataType("string")
INT = DataType("int")
BIGINT = DataType("bigint")
DOUBLE = DataType("double")
BOOLEAN = DataType("boolean")
WINDOW = DataType("struct", (Field("start", TIMESTAMP), Field("end", TIMESTAMP)))

WINDOW_MADE = "window"
"""The mark of columns that ``window`` and ``session_window`` made: only their end may stand for their time."""


@dataclass(frozen=True)
class Attribute:
    """A column. Its id is its own in the whole query and stays with it through renames of nothing but its place."""

    id: int
    name: str
    type: DataType
    delay_ms: int | None = None
    """The delay of the watermark it carries, in ms; None where it carries none."""
    qualifier: str | None = None
    """The alias of the frame it is in."""
    made_by: str | None = None
    """``window`` where it is a time window: then ``window_time`` and a further ``window`` may be taken of it."""

    @property
    def is_event_time(self) -> bool:
        return self.delay_ms is not None


class Ids:
    """Numbers for columns, each given once in a query."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last += 1
        return self._last
