"""The type of a column from its values, as Spark's JSON source infers it, and TIMESTAMP for text that holds instants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, TypeAlias

from conformance.core.spark_types import DataType, Field
from conformance.core.values import INSTANT_PATTERN

Json: TypeAlias = Any

_INSTANT = re.compile(INSTANT_PATTERN)
_DATED = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}")
_STRING, _BOOLEAN, _BIGINT, _DOUBLE = (DataType(name) for name in ("string", "boolean", "bigint", "double"))
_TIMESTAMP, _VOID = DataType("timestamp"), DataType("void")


class NoCommonType(ValueError):
    """Values of a column have types that have none in common; ``line``: where the first one stands that does not fit."""

    def __init__(self, first: DataType, other: DataType, line: int) -> None:
        super().__init__(f"is {first} in an earlier row and {other} here")
        self.line = line


def inferred(values: Iterable[tuple[int, Json]], *, instant: bool = False) -> DataType:
    """The type of a column.

    Args:
        values: each with the line where it stands; None for a missing one.
        instant: whether the column holds the event time, which may also be a number of seconds or a time of 1970-01-01.

    Raises:
        NoCommonType: they have none.
    """
    found = _VOID
    for line, value in values:
        here = _of_event_time(value) if instant else _of(value, line)
        common = _common(found, here)
        if common is None:
            raise NoCommonType(found, here, line)
        found = common
    return _settled(found)


def _of_event_time(value: Json) -> DataType:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and _INSTANT.fullmatch(value)):
        return _TIMESTAMP
    return _of(value, 0)


def _of(value: Json, line: int) -> DataType:
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
            return DataType("struct", tuple(Field(str(name), _of(item, line)) for name, item in value.items()))
        case _ if isinstance(value, Sequence):
            return DataType("array", elements=(_of_items(value, line),))
    return _STRING


def _of_items(values: Sequence[Json], line: int) -> DataType:
    def joined(one: DataType, other: DataType) -> DataType:
        common = _common(one, other)
        if common is None:
            raise NoCommonType(one, other, line)
        return common

    return reduce(joined, (_of(item, line) for item in values), _VOID)


def _common(one: DataType, other: DataType) -> DataType | None:
    """The type that holds both; None if there is none."""
    if one == other or other == _VOID:
        return one
    if one == _VOID:
        return other
    names = {one.name, other.name}
    if names == {"bigint", "double"}:
        return _DOUBLE
    if names == {"timestamp", "string"}:
        return _STRING
    if names == {"array"}:
        item = _common(one.elements[0], other.elements[0])
        return DataType("array", elements=(item,)) if item is not None else None
    if names == {"struct"}:
        return _common_struct(one, other)
    return None


def _common_struct(one: DataType, other: DataType) -> DataType | None:
    types = {field.name: field.type for field in one.fields}
    for field in other.fields:
        common = _common(types.get(field.name, _VOID), field.type)
        if common is None:
            return None
        types[field.name] = common
    return DataType("struct", tuple(Field(name, type) for name, type in types.items()))


def _settled(found: DataType) -> DataType:
    """Without the type of null, which no column may have: what is always null is text."""
    if found == _VOID:
        return _STRING
    if found.name == "struct":
        return DataType("struct", tuple(Field(field.name, _settled(field.type)) for field in found.fields))
    return DataType("array", elements=(_settled(found.elements[0]),)) if found.name == "array" else found
