"""Aggregate functions over the rows of a group."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from conformance.core.spark_types import DataType
from conformance.model.columns import BIGINT, DOUBLE, Value
from conformance.model.errors import Unpredictable

Operands = tuple[Value, ...]
"""The arguments of an aggregate function for one row."""


@dataclass(frozen=True)
class AggregateFunction:
    """An aggregate function: its value over rows, and its type given the types of its arguments."""

    value: Callable[[Sequence[Operands]], Value]
    type: Callable[[Sequence[DataType]], DataType]


def _present(rows: Sequence[Operands]) -> list[Value]:
    return [row[0] for row in rows if row[0] is not None]


def _of_present(function: Callable[[Sequence[Value]], Value], least: int = 1) -> Callable[[Sequence[Operands]], Value]:
    """A function of the values that are not NULL; NULL if there are fewer than ``least``."""

    def value(rows: Sequence[Operands]) -> Value:
        values = _present(rows)
        return function(values) if len(values) >= least else None

    return value


def _mean(values: Sequence[Value]) -> Value:
    return sum(values) / len(values)


def _deviation(values: Sequence[Value]) -> float:
    mean = _mean(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))


def _sample_variance(values: Sequence[Value]) -> float:
    mean = _mean(values)
    return math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _by(choose: Callable[..., Operands]) -> Callable[[Sequence[Operands]], Value]:
    def value(rows: Sequence[Operands]) -> Value:
        ordered = [row for row in rows if row[1] is not None]
        if not ordered:
            return None
        chosen = choose(ordered, key=lambda row: row[1])
        if any(row[1] == chosen[1] and row[0] != chosen[0] for row in ordered):
            raise Unpredictable("max_by or min_by with equal values")
        return chosen[0]

    return value


def _sum_type(kinds: Sequence[DataType]) -> DataType:
    kind = kinds[0]
    if kind.name in ("tinyint", "smallint", "int", "bigint"):
        return BIGINT
    if kind.name in ("float", "double"):
        return DOUBLE
    raise Unpredictable(f"sum over {kind}")


def _array(kinds: Sequence[DataType]) -> DataType:
    return DataType("array", elements=(kinds[0],))


def _percentile(rows: Sequence[Operands]) -> Value:
    """The value of the rank; among a few thousand none is approximated (`QuantileSummaries`)."""
    values = sorted(_present(rows))
    return values[max(math.ceil(rows[0][1] * len(values)), 1) - 1] if values else None


def _of_one_share(kinds: Sequence[DataType]) -> DataType:
    if len(kinds) != 2 or kinds[1] != DOUBLE:
        raise Unpredictable("percentile_approx other than of one share, with the default accuracy")
    return kinds[0]


AGGREGATES: Mapping[str, AggregateFunction] = {
    "count": AggregateFunction(lambda rows: sum(None not in row for row in rows), lambda _: BIGINT),
    "count_if": AggregateFunction(lambda rows: sum(row[0] is True for row in rows), lambda _: BIGINT),
    "sum": AggregateFunction(_of_present(sum), _sum_type),
    "min": AggregateFunction(_of_present(min), itemgetter(0)),
    "max": AggregateFunction(_of_present(max), itemgetter(0)),
    "avg": AggregateFunction(_of_present(_mean), lambda _: DOUBLE),
    "stddev_pop": AggregateFunction(_of_present(_deviation), lambda _: DOUBLE),
    "stddev": AggregateFunction(_of_present(lambda values: math.sqrt(_sample_variance(values)), 2), lambda _: DOUBLE),
    "variance": AggregateFunction(_of_present(_sample_variance, 2), lambda _: DOUBLE),
    "median": AggregateFunction(_of_present(lambda values: float(statistics.median(values))), lambda _: DOUBLE),
    "percentile_approx": AggregateFunction(_percentile, _of_one_share),
    "max_by": AggregateFunction(_by(max), itemgetter(0)),
    "min_by": AggregateFunction(_by(min), itemgetter(0)),
    "first": AggregateFunction(lambda rows: rows[0][0] if rows else None, itemgetter(0)),
    "last": AggregateFunction(lambda rows: rows[-1][0] if rows else None, itemgetter(0)),
    "first ignoring nulls": AggregateFunction(_of_present(itemgetter(0)), itemgetter(0)),
    "last ignoring nulls": AggregateFunction(_of_present(itemgetter(-1)), itemgetter(0)),
    "collect_list": AggregateFunction(lambda rows: tuple(_present(rows)), _array),
    "collect_set": AggregateFunction(lambda rows: tuple(dict.fromkeys(_present(rows))), _array),
}
"""``count(*)`` is ``count`` without arguments."""

DISTINCT = " distinct"
"""After the name of a function over distinct values, which no streaming query may have."""
BY_ORDER = frozenset({"first", "last", "first ignoring nulls", "last ignoring nulls", "collect_list"})
"""Functions whose result depends on the order of the rows: that of their arrival, as far as the plan keeps it."""
