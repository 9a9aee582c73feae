"""Typed expression trees over the columns of a frame, and their evaluation.

Every function of NULL is NULL, except for those in ``NULL_TOLERANT``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from conformance.core.spark_types import DataType
from conformance.model.columns import Attribute, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.functions import FUNCTIONS

Kind = Literal["column", "literal", "field", "call", "aggregate", "window", "session", "window_time"]


@dataclass(frozen=True)
class Expression:
    """A node. ``args`` are its operands; ``name`` and ``value`` depend on the kind.

    column: ``value`` is its id · literal: ``value`` · field: ``value`` is the position in the struct ·
    call: ``name`` of a function · aggregate: ``name`` of an aggregate function · window: ``value`` is (size, slide, start)
    in µs · session: the operands are the time and the gap · window_time: ``value`` is the rule that computes it.
    """

    kind: Kind
    type: DataType
    args: tuple[Expression, ...] = ()
    name: str = ""
    value: Value = None

    def walk(self) -> Iterator[Expression]:
        yield self
        for arg in self.args:
            yield from arg.walk()

    @property
    def references(self) -> frozenset[int]:
        """The ids of the columns it uses."""
        return frozenset(node.value for node in self.walk() if node.kind == "column")

    @property
    def aggregates(self) -> tuple[Expression, ...]:
        """Its calls of aggregate functions."""
        return tuple(node for node in self.walk() if node.kind == "aggregate")

    @property
    def is_deterministic(self) -> bool:
        return not any(node.kind == "call" and node.name in NOT_DETERMINISTIC for node in self.walk())

    @property
    def is_constant(self) -> bool:
        return not self.references and self.is_deterministic


@dataclass(frozen=True)
class NamedExpression:
    """An expression and its column."""

    expression: Expression
    column: Attribute


NOT_DETERMINISTIC = frozenset({"current_timestamp"})

NOW_US = (1_590_969_600_000_000, 4_102_444_800_000_000)
"""``current_timestamp()`` is between these: 2020-06-01, before Spark 3.0, and 2100-01-01."""

ORDERINGS = frozenset({"<", "<=", ">", ">="})

NULL_TOLERANT = frozenset({"is null", "is not null", "and", "or", "case", "coalesce", "struct", "<=>"})
"""Functions that may not be NULL if an operand is."""


def column(of: Attribute) -> Expression:
    """The expression of a column."""
    return Expression("column", of.type, value=of.id)


def evaluate(expression: Expression, row: Row) -> Value:
    """The value of an expression without aggregates for a row."""
    match expression.kind:
        case "column":
            return row[expression.value]
        case "literal":
            return expression.value
        case "field":
            struct = evaluate(expression.args[0], row)
            return None if struct is None else struct[expression.value]
        case "window_time":
            window = evaluate(expression.args[0], row)
            return None if window is None else expression.value(window[1])
        case "call" if expression.name in ORDERINGS and not expression.is_deterministic:
            return _whenever_it_runs(expression, row)
        case "call":
            function = FUNCTIONS[expression.name]
            operands = [evaluate(arg, row) for arg in expression.args]
            if expression.name not in NULL_TOLERANT and any(operand is None for operand in operands):
                return None
            return function.value(*operands)
        case _:
            raise Unpredictable(f"{expression.name or expression.kind} in this place")


def _whenever_it_runs(comparison: Expression, row: Row) -> Value:
    """The value of a comparison with ``current_timestamp()``, if it does not depend on the day of the run.

    Raises:
        Unpredictable: it does.
    """
    earliest, latest = (evaluate(_at(comparison, now_us), row) for now_us in NOW_US)
    if earliest != latest or sum(node.name == "current_timestamp" for node in comparison.walk()) > 1:
        raise Unpredictable("a comparison with current_timestamp that depends on the day of the run")
    return earliest


def _at(expression: Expression, now_us: int) -> Expression:
    if expression.name == "current_timestamp":
        return Expression("literal", expression.type, value=now_us)
    args = tuple(_at(arg, now_us) for arg in expression.args)
    return Expression(expression.kind, expression.type, args, expression.name, expression.value)


def substitute(expression: Expression, by: Mapping[int, Expression]) -> Expression:
    """The expression with columns replaced by id; other columns stay."""
    if expression.kind == "column":
        return by.get(expression.value, expression)
    args = tuple(substitute(arg, by) for arg in expression.args)
    return Expression(expression.kind, expression.type, args, expression.name, expression.value)


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition connected by AND."""
    if condition.kind == "call" and condition.name == "and":
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


def must_not_be_null(condition: Expression) -> frozenset[int]:
    """Ids of the columns that are not NULL if the condition is true, as far as Spark infers it."""
    needed: set[int] = set()
    for part in conjuncts(condition):
        tolerant = any(node.kind == "call" and node.name in NULL_TOLERANT for node in part.walk())
        if not tolerant or (part.kind == "call" and part.name == "is not null"):
            needed |= part.references
    return frozenset(needed)
