"""Spark SQL data types as a DDL schema writes them: ``event_time TIMESTAMP, place STRUCT<name: STRING>``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataType:
    """A type by its Spark name in lower case: ``timestamp``, ``int``, ``decimal``, ``struct``, ``array``, ``map`` …"""

    name: str
    fields: tuple[Field, ...] = ()
    """Of a struct."""
    elements: tuple[DataType, ...] = ()
    """Of an array (one) or a map (key and value)."""
    precision: int | None = None
    scale: int | None = None


@dataclass(frozen=True)
class Field:
    name: str
    type: DataType


@dataclass(frozen=True)
class Schema:
    """The columns of a stream, in order."""

    ddl: str
    fields: tuple[Field, ...]
