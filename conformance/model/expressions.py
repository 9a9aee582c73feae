"""Typed expression trees over the columns of a frame, and their evaluation.

Every function of NULL is NULL, except for those in ``NULL_TOLERANT``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Literal

from conformance.core.spark_types import DataType
from conformance.model.columns import BOOLEAN, INT, Attribute, Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.functions import BY_TIME_ZONE, FUNCTIONS


@dataclass(frozen=True)
class Expression:
    """A node. ``args`` are its operands; ``name`` and ``value`` depend on the kind.

    column: ``value`` is its id · literal: ``value`` · field: ``value`` is the position in the struct ·
    call: ``name`` of a function, ``value`` is the time zone of those in ``BY_TIME_ZONE``, None for UTC ·
    aggregate: ``name`` of an aggregate function · window: ``value`` is (size, slide, start) in µs ·
    session: the operands are the time and the gap, ``value`` is the time zone · window_time: ``value`` is the rule that computes it.
    """

    kind: Literal["column", "literal", "field", "call", "aggregate", "window", "session", "window_time"]
    type: DataType
    args: tuple[Expression, ...] = ()
    name: str = ""
    value: Value = None

    def walk(self) -> Iterator[Expression]:
        yield self
        for arg in self.args:
            yield from arg.walk()

    @cached_property
    def size(self) -> int:
        """The number of nodes, those that stand in several places counted each time."""
        return 1 + sum(arg.size for arg in self.args)

    @cached_property
    def references(self) -> frozenset[int]:
        """The ids of the columns it uses."""
        return frozenset(node.value for node in self.walk() if node.kind == "column")

    @cached_property
    def aggregates(self) -> tuple[Expression, ...]:
        """Its calls of aggregate functions."""
        return tuple(node for node in self.walk() if node.kind == "aggregate")

    @property
    def is_deterministic(self) -> bool:
        """As Spark's optimizer sees it while a query runs."""
        return not self._calls(NOT_DETERMINISTIC)

    @property
    def is_constant(self) -> bool:
        return not self.references and not self._calls(CHANGING)

    @property
    def is_random(self) -> bool:
        """Whether it is not deterministic for Spark's checks either; they take the current time for a constant."""
        return bool(self._calls(RANDOM))

    def _calls(self, names: frozenset[str]) -> list[Expression]:
        return [node for node in self.walk() if node.kind == "call" and node.name in names]


@dataclass(frozen=True)
class NamedExpression:
    expression: Expression
    column: Attribute


RANDOM = frozenset({"rand", "randn", "uuid", "monotonically_increasing_id"})
"""Functions whose value cannot be predicted. Spark gives random numbers a new seed in each micro-batch, even ``rand(42)``."""
NOT_DETERMINISTIC = RANDOM | {"current_timestamp"}
CHANGING = NOT_DETERMINISTIC | {"now"}
"""Functions whose value depends on the run. None of them is ever NULL. ``now()`` is a constant of each micro-batch to the optimizer;
``current_timestamp()`` is not, since a stream replaces it by `CurrentBatchTimestamp`."""

MOST_PARTS = 10_000
"""The nodes of an expression that the optimizer makes, up to which the model predicts."""
NOW_US = (1_590_969_600_000_000, 4_102_444_800_000_000)
"""``current_timestamp()`` is between these: 2020-06-01, before Spark 3.0, and 2100-01-01."""
RANGES: Mapping[str, tuple[Value, Value]] = {"current_timestamp": NOW_US, "now": NOW_US, "rand": (0.0, 1 - 2**-53)}
"""Function → its lowest and highest value."""

ARITHMETIC = frozenset({"+", "-", "*", "negative", "abs"})
ORDERINGS = frozenset({"<", "<=", ">", ">="})
MONOTONE = (
    ORDERINGS | (ARITHMETIC - {"abs"}) | {"time difference", "date_trunc", "cast timestamp to bigint", "unix_timestamp"}
)
"""Functions that, of one operand between two values, are between their values for these two."""

NULL_TOLERANT = frozenset(name for name, function in FUNCTIONS.items() if function.tolerates_null)


def column(attribute: Attribute) -> Expression:
    """The expression of a column."""
    return Expression("column", attribute.type, value=attribute.id)


def unchanged(columns: Iterable[Attribute]) -> tuple[NamedExpression, ...]:
    """The columns as they are, for a projection."""
    return tuple(NamedExpression(column(attribute), attribute) for attribute in columns)


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
        case "call" if expression.name in ORDERINGS and expression._calls(CHANGING):
            return _whenever_it_runs(expression, row)
        case "call" if expression.name in ("and", "or") and expression._calls(CHANGING):
            return _decided_by_one(expression, row)
        case "call" if expression.name in ("is null", "is not null") and expression.args[0].name in CHANGING:
            return expression.name == "is not null"
        case "call":
            function = FUNCTIONS[expression.name]
            operands = [evaluate(arg, row) for arg in expression.args]
            if expression.name not in NULL_TOLERANT and any(operand is None for operand in operands):
                return None
            zone = (expression.value,) if expression.name in BY_TIME_ZONE else ()
            value = function.value(*operands, *zone)
            if expression.name in ARITHMETIC and isinstance(value, int):
                bound = 2**31 if expression.type == INT else 2**63
                if not -bound <= value < bound:
                    raise Unpredictable(f"a result beyond {expression.type}")
            return value
        case _:
            raise Unpredictable(f"{expression.name or expression.kind} in this place")


def _whenever_it_runs(comparison: Expression, row: Row) -> Value:
    """The value of a comparison with a changing function, which must be the same in every run."""
    calls = comparison._calls(CHANGING)
    name = calls[0].name
    around = [node for node in comparison.walk() if node not in calls and node._calls(CHANGING)]
    if len(calls) > 1 or name not in RANGES or any(node.name not in MONOTONE for node in around):
        raise Unpredictable(
            f"a comparison with {' and '.join(call.name for call in calls)} that may differ in each run"
        )

    def with_call_as(value: Value) -> Value:
        literal = Expression("literal", calls[0].type, value=value)
        return evaluate(replaced(comparison, lambda node: literal if node == calls[0] else None), row)

    lowest, highest = map(with_call_as, RANGES[name])
    if lowest != highest:
        depends = "the day of the run" if RANGES[name] == NOW_US else "chance"
        raise Unpredictable(f"a comparison with {name} that depends on {depends}")
    return lowest


def _decided_by_one(junction: Expression, row: Row) -> Value:
    """The value of AND and OR, which one operand must decide, whatever the others are."""
    operands: list[Value] = []
    unknown = None
    for arg in junction.args:
        try:
            operands.append(evaluate(arg, row))
        except Unpredictable as changing:
            unknown = changing
    decisive = junction.name == "or"
    if unknown is not None and decisive not in operands:
        raise unknown
    return FUNCTIONS[junction.name].value(*operands)


def replaced(expression: Expression, by: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with each node replaced, the outermost first, for which ``by`` returns another."""
    other = by(expression)
    if other is not None or not expression.args:
        return other or expression
    return replace(expression, args=tuple(replaced(arg, by) for arg in expression.args))


def substitute(expression: Expression, by: Mapping[int, Expression]) -> Expression:
    """The expression with columns replaced by id; other columns stay."""
    made = replaced(expression, lambda node: by.get(node.value) if node.kind == "column" else None)
    if made.size > MOST_PARTS:
        raise Unpredictable(f"an expression of more than {MOST_PARTS:,} parts")
    return made


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The parts of a condition connected by AND."""
    if condition.kind == "call" and condition.name == "and":
        for arg in condition.args:
            yield from conjuncts(arg)
    else:
        yield condition


def all_of(parts: Iterable[Expression]) -> Expression:
    """The conditions connected by AND; true if there are none."""
    conditions = list(parts)
    if not conditions:
        return Expression("literal", BOOLEAN, value=True)
    return reduce(lambda left, right: Expression("call", BOOLEAN, (left, right), "and"), conditions)


def must_not_be_null(condition: Expression) -> frozenset[int]:
    """Ids of the columns that are not NULL if the condition is true, as far as Spark infers it."""
    needed: set[int] = set()
    for part in conjuncts(condition):
        tolerant = any(node.kind == "call" and node.name in NULL_TOLERANT for node in part.walk())
        if not tolerant or (part.kind == "call" and part.name == "is not null"):
            needed |= part.references
    return frozenset(needed)
