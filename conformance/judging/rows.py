"""Rows compared as multisets: the order in which an engine emits rows means nothing, how often it emits one does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from conformance.core.case import Row
from conformance.core.observation import BatchSeen, Column
from conformance.core.spark_types import DataType, NotAType, parse_type
from conformance.core.values import canonical, show
from conformance.judging.finding import Cells, ExtraRow

Json: TypeAlias = Any
Comparable: TypeAlias = tuple[Hashable, ...]

INSTANTS = ("timestamp", "timestamp_ntz")


class NotARow(ValueError):
    """An expected row that the query cannot emit: of another width, or with a value of another type."""

    def __init__(self, row: Row, problem: str) -> None:
        super().__init__(f"{row!r}: {problem}")
        self.row = row
        self.problem = problem


@dataclass(frozen=True)
class RowsDifference:
    """What sets two multisets of rows apart; all empty but ``common`` where nothing does."""

    missing: tuple[Cells, ...]
    extra: tuple[ExtraRow, ...]
    common: tuple[Cells, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)


@dataclass(frozen=True)
class OutputSchema:
    """The columns a query emits, as an observation tells them."""

    columns: tuple[Column, ...]
    types: tuple[DataType, ...]

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> OutputSchema:
        """Read the types. One that no case can write (a user-defined type) compares by Spark's own text."""
        return cls(columns, tuple(_type(column.type) for column in columns))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def described(self) -> tuple[str, ...]:
        return tuple(f"{column.name}: {column.type}" for column in self.columns)

    def expected_row(self, row: Row) -> tuple[Json, ...]:
        """The values of a row the case expects, in the order of the columns.

        Raises:
            NotARow: it has another width, names other columns, or a value cannot be of its column's type.
        """
        values = self._in_order(row)
        for column, value, type_ in zip(self.columns, values, self.types, strict=True):
            try:
                canonical(value, type_)
            except ValueError as problem:
                raise NotARow(row, f"{column.name} is {column.type}: {problem}") from problem
        return values

    def _in_order(self, row: Row) -> tuple[Json, ...]:
        if not isinstance(row, Mapping):
            if len(row) != len(self.columns):
                raise NotARow(row, f"it has {_count(len(row), 'value')} for {_count(len(self.columns), 'column')}")
            return tuple(row)
        unknown = [name for name in row if name not in self.names]
        if unknown:
            raise NotARow(row, f"there is no column {unknown[0]}")
        absent = [name for name in self.names if name not in row]
        if absent:
            raise NotARow(row, f"it says nothing of column {absent[0]}")
        if len(set(self.names)) < len(self.names):
            raise NotARow(row, "columns of the same name can only be told apart in a list")
        return tuple(row[name] for name in self.names)

    def comparable(self, values: tuple[Json, ...]) -> Comparable:
        """The row as a hashable value that equals that of every other way to write the same row.

        A row that an engine emitted against its own columns is compared by its JSON: it equals no expected row.
        """
        try:
            return tuple(canonical(value, type_) for value, type_ in zip(values, self.types, strict=True))
        except ValueError:
            return ("not of the columns", json.dumps(values, default=str))

    def as_written(self, values: tuple[Json, ...]) -> Cells:
        """The row in the notation of the case language."""
        if len(values) != len(self.types):
            return values
        return tuple(as_written(value, type_) for value, type_ in zip(values, self.types, strict=True))


def difference(expected: Iterable[Row], batches: Iterable[BatchSeen], schema: OutputSchema) -> RowsDifference:
    """Compare rows in any order with what these micro-batches emitted together.

    Raises:
        NotARow: an expected row cannot be a row of the query.
    """
    wanted = [schema.expected_row(row) for row in expected]
    outstanding = Counter(schema.comparable(row) for row in wanted)
    common: list[Cells] = []
    extra: list[ExtraRow] = []
    for batch in batches:
        for row in batch.rows:
            key = schema.comparable(row)
            if outstanding[key]:
                outstanding[key] -= 1
                common.append(schema.as_written(row))
            else:
                extra.append(ExtraRow(cells=schema.as_written(row), batch=batch.id))
    missing: list[Cells] = []
    for row in wanted:
        key = schema.comparable(row)
        if outstanding[key]:
            outstanding[key] -= 1
            missing.append(schema.as_written(row))
    return RowsDifference(tuple(missing), tuple(extra), tuple(common))


def as_written(value: Json, type_: DataType) -> Json:
    """A value in the notation of the case language: an instant as ``12:05``; unchanged where it is not of the type."""
    if value is None:
        return None
    try:
        if type_.name in INSTANTS:
            micros = canonical(value, type_)
            return show(micros) if isinstance(micros, int) else value
        if type_.name == "struct":
            values = [value[field.name] for field in type_.fields] if isinstance(value, Mapping) else value
            return [as_written(item, field.type) for item, field in zip(values, type_.fields, strict=True)]
        if type_.name == "array":
            return [as_written(item, type_.elements[0]) for item in value]
        if type_.name == "map":
            pairs = value.items() if isinstance(value, Mapping) else value
            items = [(as_written(key, type_.elements[0]), as_written(of, type_.elements[1])) for key, of in pairs]
            return dict(sorted(items)) if all(isinstance(key, str) for key, _ in items) else [list(of) for of in items]
        plain = canonical(value, type_)
        return _number(plain) if isinstance(plain, Decimal) else plain if isinstance(plain, float) else value
    except (ValueError, TypeError, KeyError):
        return value


def _type(text: str) -> DataType:
    try:
        return parse_type(text)
    except NotAType:
        return DataType(text)


def _number(value: Decimal) -> Json:
    """A decimal as a JSON number where that loses nothing, else as text."""
    if value == value.to_integral_value():
        return int(value)
    return float(value) if Decimal(str(float(value))) == value else str(value)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
