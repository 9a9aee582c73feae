"""Expressions over the columns of a frame: trees of typed nodes, and their values for a row.

NULL goes through every operator but those that are about it (``IS NULL``, ``AND``, ``OR``, ``CASE``, ``coalesce``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from conformance.core.spark_types import DataType
from conformance.model.columns import Attribute, Row, Value
from conformance.model.functions import FUNCTIONS

Kind = Literal["column", "literal", "field", "call", "aggregate", "window", "session", "window_time"]


@dataclass(frozen=True)
class Expression:
    """A node. ``args`` are its operands; what ``name`` and ``value`` mean depends on the kind.

    column: ``value`` is its id · literal: ``value`` · field: ``value`` is the position in the struct ·
    call: ``name`` of a function · aggregate: ``name`` of an aggregate function · window: ``value`` is (size, slide, start)
    in µs · session: the operands are the time and the gap · window_time: ``value`` is the rule that gives a window its time.
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
        """The ids of the columns it reads."""
        return frozenset(node.value for node in self.walk() if node.kind == "column")

    @property
    def aggregates(self) -> tuple[Expression, ...]:
        """The calls of aggregate functions in it."""
        return tuple(node for node in self.walk() if node.kind == "aggregate")

    @property
    def is_deterministic(self) -> bool:
        return not any(node.kind == "call" and node.name in NOT_DETERMINISTIC for node in self.walk())

    @property
    def is_constant(self) -> bool:
        return not self.references and self.is_deterministic


@dataclass(frozen=True)
class NamedExpression:
    """An expression and the column it makes."""

    expression: Expression
    column: Attribute


NOT_DETERMINISTIC = frozenset({"current_timestamp"})

NULL_TOLERANT = frozenset({"is null", "is not null", "and", "or", "case", "coalesce", "struct", "<=>"})
"""Functions that may be other than NULL where an operand is."""


def column(of: Attribute) -> Expression:
    """The expression that is a column."""
    return Expression("column", of.type, value=of.id)


def evaluate(expression: Expression, row: Row) -> Value:
    """The value of an expression without aggregates for a row.

    Raises:
        KeyError: the row lacks a column it reads; that would be a defect of the model.
    """
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
        case "call":
            function = FUNCTIONS[expression.name]
            operands = [evaluate(arg, row) for arg in expression.args]
            if expression.name not in NULL_TOLERANT and any(operand is None for operand in operands):
                return None
            return function.value(*operands)
        case _:
            raise AssertionError(f"{expression.kind} has no value for a single row")


def substitute(expression: Expression, by: Mapping[int, Expression]) -> Expression:
    """The expression with columns replaced: id → what stands for it. Columns that are not named stay."""
    if expression.kind == "column":
        return by.get(expression.value, expression)
    args = tuple(substitute(arg, by) for arg in expression.args)
    return Expression(expression.kind, expression.type, args, expression.name, expression.value)


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition that AND holds together."""
    if condition.kind == "call" and condition.name == "and":
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


def must_not_be_null(condition: Expression) -> frozenset[int]:
    """Ids of the columns that cannot be NULL where the condition holds, as far as Spark infers it."""
    needed: set[int] = set()
    for part in conjuncts(condition):
        tolerant = any(node.kind == "call" and node.name in NULL_TOLERANT for node in part.walk())
        if not tolerant or (part.kind == "call" and part.name == "is not null"):
            needed |= part.references
    return frozenset(needed)
