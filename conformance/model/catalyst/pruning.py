"""Unused columns, which the optimiser removes from a plan, and what goes with them.

Source: `ColumnPruning`, `RemoveRedundantAggregates`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from conformance.model.errors import Unpredictable
from conformance.model.expressions import Expression
from conformance.model.plan import (
    Aggregate,
    Deduplicate,
    EmptySide,
    Filter,
    Join,
    Limit,
    LocalRelation,
    Plan,
    Project,
    Sort,
    StatefulProcessor,
    StateFunction,
    StreamSource,
    Union,
    Watermark,
    is_streaming,
    walk,
)

IGNORING_DUPLICATES = frozenset(
    {"max", "min", "first", "last", "first ignoring nulls", "last ignoring nulls", "collect_set"}
)
"""Aggregate functions whose result does not depend on duplicates."""


@dataclass(frozen=True)
class RequiredColumns:
    """The columns of each node that are used above it, or by the sink."""

    by_node: Mapping[int, frozenset[int]]

    def of(self, plan: Plan) -> frozenset[int]:
        """Ids of the output columns of a node that are used."""
        return self.by_node[id(plan)]


def check_aggregations(plan: Plan) -> None:
    """
    Raises:
        Unpredictable: only the keys of an aggregation are used by another. Spark removes it (`RemoveRedundantAggregates`, SPARK-33122).
    """
    keep = required_columns(plan)
    if any(isinstance(node, Aggregate) and _has_redundant_below(node, keep) for node in walk(plan)):
        raise Unpredictable("an aggregation of which only the keys are used")


def _has_redundant_below(upper: Aggregate, keep: RequiredColumns) -> bool:
    """Whether it uses only the keys of an aggregation below, ignoring duplicates."""
    functions = [call for one in upper.outputs if one.column.id in keep.of(upper) for call in one.expression.aggregates]
    read = _read(key.expression for key in upper.keys) | _read(functions)
    below = upper.child
    while isinstance(below, Project):
        read = _read(one.expression for one in below.named if one.column.id in read)
        below = below.child
    if not isinstance(below, Aggregate) or not is_streaming(below) or not below.keys:
        return False
    only_keys = read <= {key.column.id for key in below.keys}
    return only_keys and {call.name for call in functions} <= IGNORING_DUPLICATES


def check_changing_values(plan: Plan) -> None:
    """
    Raises:
        Unpredictable: a value that is another in each run is unused. Spark removes it, and filters go below it (`ColumnPruning`).
    """
    keep = required_columns(plan)
    for node in walk(plan):
        if isinstance(node, Project) and not all(
            one.expression.is_deterministic or one.column.id in keep.of(node) for one in node.named
        ):
            raise Unpredictable("an unused column whose value is another in each run")


def check_event_times(plan: Plan) -> None:
    """
    Raises:
        Unpredictable: an event time in the input of a join is unused. Spark removes it, and no state is evicted by it (`ColumnPruning`).
    """
    keep = required_columns(plan)
    sides = [side for node in walk(plan) if isinstance(node, Join) for side in node.children]
    if any(one.is_event_time and one.id not in keep.of(side) for side in sides for one in side.columns):
        raise Unpredictable("an event time in the input of a join that nothing needs")


def required_columns(plan: Plan) -> RequiredColumns:
    """The used columns of every node. Operators do not see pruned columns, which causes SPARK-58979."""
    found: dict[int, frozenset[int]] = {}
    _need(plan, frozenset(one.id for one in plan.columns), found)
    return RequiredColumns(found)


def _need(plan: Plan, columns: frozenset[int], found: dict[int, frozenset[int]]) -> None:
    found[id(plan)] = columns
    match plan:
        case Filter():
            _need(plan.child, columns | plan.condition.references, found)
        case Watermark():
            _need(plan.child, columns | {plan.column.id}, found)
        case Project():
            _need(plan.child, _read(one.expression for one in plan.named if one.column.id in columns), found)
        case Union():
            for branch in plan.branches:
                wanted = frozenset(
                    its.id for ours, its in zip(plan.columns, branch.columns, strict=True) if ours.id in columns
                )
                _need(branch, wanted, found)
        case Aggregate():
            keys = {key.column.id for key in plan.keys}
            of_outputs = _read(one.expression for one in plan.outputs if one.column.id in columns) - keys
            _need(plan.child, _read(key.expression for key in plan.keys) | of_outputs, found)
        case Deduplicate():
            _need(plan.child, columns | {key.id for key in plan.keys}, found)
        case Limit() | EmptySide():
            _need(plan.child, columns, found)
        case Sort():
            _need(plan.child, columns | _read(key.expression for key in plan.keys), found)
        case StateFunction() | StatefulProcessor():
            _need(plan.child, frozenset(one.id for one in plan.child.columns), found)
        case Join():
            wanted = columns | plan.condition.references
            for side in plan.children:
                _need(side, wanted & {one.id for one in side.columns}, found)
        case StreamSource() | LocalRelation():
            pass


def _read(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset(id for expression in expressions for id in expression.references)
