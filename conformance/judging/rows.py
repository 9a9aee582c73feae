"""Compares rows as multisets: their order does not matter, their number does."""

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
from conformance.core.wording import counted
from conformance.judging.finding import Cells, ExtraRow

Json: TypeAlias = Any
Comparable: TypeAlias = tuple[Hashable, ...]

INSTANTS = ("timestamp", "timestamp_ntz")


class NotARow(ValueError):
    """An expected row that the query cannot emit: it has the wrong width, or a value of the wrong type."""

    def __init__(self, row: Row, problem: str) -> None:
        super().__init__(f"{row!r}: {problem}")
        self.row = row
        self.problem = problem


@dataclass(frozen=True)
class RowsDifference:
    """The difference of two multisets of rows."""

    missing: tuple[Cells, ...]
    extra: tuple[ExtraRow, ...]
    common: tuple[Cells, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra)


@dataclass(frozen=True)
class OutputSchema:
    """The output columns of a query, from an observation."""

    columns: tuple[Column, ...]
    types: tuple[DataType, ...]

    @classmethod
    def of(cls, columns: tuple[Column, ...]) -> OutputSchema:
        """Parse the types. Values of a type that no case can write, such as a user-defined type, are compared as text."""
        return cls(columns, tuple(_type(column.type) for column in columns))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def described(self) -> tuple[str, ...]:
        return tuple(f"{column.name}: {column.type}" for column in self.columns)

    def expected_row(self, row: Row) -> tuple[Json, ...]:
        """The values of an expected row, in the order of the columns.

        Raises:
            NotARow: it has the wrong width or column names, or a value does not match the type of its column.
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
                raise NotARow(row, f"it has {counted(len(row), 'value')} for {counted(len(self.columns), 'column')}")
            return tuple(row)
        unknown = [name for name in row if name not in self.names]
        if unknown:
            raise NotARow(row, f"there is no column {unknown[0]}")
        absent = [name for name in self.names if name not in row]
        if absent:
            raise NotARow(row, f"column {absent[0]} is missing")
        if len(set(self.names)) < len(self.names):
            raise NotARow(row, "the query has several columns of the same name; write the row as a list")
        return tuple(row[name] for name in self.names)

    def comparable(self, values: tuple[Json, ...]) -> Comparable:
        """The row as a hashable value, equal for every way to write the same row.

        A row that does not match its own columns is compared as JSON, so it equals no expected row.
        """
        try:
            return tuple(canonical(value, type_) for value, type_ in zip(values, self.types, strict=True))
        except ValueError:
            return ("does not match the columns", json.dumps(values, default=str))

    def as_written(self, values: tuple[Json, ...]) -> Cells:
        """The row in the notation of the case language."""
        if len(values) != len(self.types):
            return values
        return tuple(as_written(value, type_) for value, type_ in zip(values, self.types, strict=True))


def difference(expected: Iterable[Row], batches: Iterable[BatchSeen], schema: OutputSchema) -> RowsDifference:
    """Compare expected rows with all rows of these micro-batches, in any order.

    Raises:
        NotARow: an expected row does not match the columns.
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
    """A value in the notation of the case language: an instant as ``12:05``; unchanged if it does not match the type."""
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
        if isinstance(plain, Decimal):
            return _number(plain)
        return plain if isinstance(plain, float) or type_.name == "decimal" else value
    except (ValueError, TypeError, KeyError):
        return value


def _type(text: str) -> DataType:
    try:
        return parse_type(text)
    except NotAType:
        return DataType(text)


def _number(value: Decimal) -> Json:
    """A decimal with a fraction as a JSON number if that is exact, else as text."""
    return float(value) if Decimal(str(float(value))) == value else str(value)
