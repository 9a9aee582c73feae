"""All that the model asks of Catalyst: which plan runs, which columns it needs, and whether it can read the state of another.

``optimizer`` places filters and finds constants and unused columns. Below stands what the state of an operator is written for: types,
NOT NULL columns, and its store; a restart or another run may not fit it. If a stream has nothing new, its filters disappear from the plan
of that micro-batch, and with them what they imply about columns. Sources: `FilterExec.output`, `ConvertToLocalRelation`,
`StateSchemaCompatibilityChecker`, SPARK-57003; SPARK-51955, `StateStoreRDD`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from conformance.model import plan as logical
from conformance.model.catalyst import optimizer
from conformance.model.catalyst.optimizer import RequiredColumns, constant_of, is_empty
from conformance.model.errors import Unpredictable
from conformance.model.expressions import Expression, must_not_be_null
from conformance.model.join_bounds import equalities
from conformance.model.plan import Plan, operator_name, stateful, walk
from conformance.model.rules import Rules

__all__ = ["RequiredColumns", "SparkPlan", "constant_of", "is_empty"]


@dataclass(frozen=True)
class SparkPlan:
    """A plan after Spark's optimizer."""

    written: Plan
    """The plan before optimization."""
    rules: Rules
    _of_silent: dict[frozenset[str], SparkPlan] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def plan(self) -> Plan:
        """The plan that runs."""
        plan = optimizer.optimized(self.written, self.rules)
        optimizer.check_aggregations(plan)
        optimizer.check_event_times(plan)
        return plan

    @cached_property
    def needed(self) -> RequiredColumns:
        """The columns that each node of the plan that runs needs."""
        return optimizer.required_columns(self.plan)

    def of_micro_batch(self, silent: frozenset[str]) -> SparkPlan:
        """The plan of a micro-batch. Spark optimizes every micro-batch by itself, knowing which streams have no new rows (``silent``)."""
        if silent not in self._of_silent:
            sides = optimizer.with_empty_sides(self.written, silent)
            empty = any(isinstance(node, logical.EmptySide) for node in walk(sides))
            self._of_silent[silent] = SparkPlan(sides, self.rules) if empty else self
        return self._of_silent[silent]

    @cached_property
    def state_schemas(self) -> tuple[str, ...]:
        return tuple(schema_of(node, self.needed) for node in stateful(self.plan))

    def not_null(self, silent: frozenset[str]) -> tuple[NotNull, ...]:
        """The NOT NULL columns of the state of each operator, in a micro-batch without new rows on the silent streams."""
        return tuple(not_null_in_state(node, silent, self.needed, self.rules) for node in stateful(self.plan))

    def check_reads_state_of(self, other: SparkPlan) -> None:
        """Compare the types of the state with those of the plan that wrote the newest state."""
        if other is self:
            return
        for node, before, after in zip(stateful(self.plan), other.state_schemas, self.state_schemas, strict=True):
            if before == after:
                continue
            if before.partition("|")[0] != after.partition("|")[0]:
                raise self.rules.refusal("state of another key")
            if not isinstance(node, logical.Deduplicate):
                raise self.rules.refusal("state of another value")
            if self.rules.deduplication_state_compares == "whole rows":
                raise self.rules.refusal("deduplication state of another schema")

    def check_not_null(self, silent: frozenset[str], first: SparkPlan, silent_at_first: frozenset[str]) -> None:
        """Compare the NOT NULL columns of the first micro-batch of a run with those the state was first written with."""
        changes = {
            after - before
            for written, now in zip(first.not_null(silent_at_first), self.not_null(silent), strict=True)
            for before, after in zip(written, now, strict=False)
        }
        refused = {"may be as they are": None, "may not come up": 1, "may not go": -1}
        if changes - {0} and refused[self.rules.not_null_columns_of_state] in changes:
            raise self.rules.refusal("state of another value")

    def opens_store_of_another(self, partitions: int) -> bool:
        """Whether an operator of a query in RocksDB finds the store of an aggregation below it in the same task, instead of its own."""
        return any(_opens_store_below(node, partitions) for node in stateful(self.plan))


def schema_of(node: Plan, needed: RequiredColumns) -> str:
    """The schema of an operator's state: the types of its keys and, after a bar, of the used columns of its rows."""
    match node:
        case logical.Aggregate():
            keys = [str(key.column.type) for key in node.keys]
            kept = [output for output in node.outputs if output.column.id in needed[node]]
            values = [str(call.type) + call.name for output in kept for call in output.expression.aggregates]
        case logical.Deduplicate(child=child):
            keys = [str(key.type) for key in node.keys]
            values = [f"{column.name} {column.type}" for column in child.columns if column.id in needed[child]]
        case logical.StateFunction():
            keys, values = [str(key.type) for key in node.keys], [node.function]
        case logical.StatefulProcessor():
            keys, values = [str(key.type) for key in node.keys], []  # `checks` compares the values
        case logical.Join():
            keys = [f"{pair.left.type}{', boolean' if pair.null_safe else ''}" for pair in equalities(node)]
            values = [
                str(column.type) for side in node.children for column in side.columns if column.id in needed[side]
            ]
        case _:
            keys, values = [], []
    return f"{operator_name(node)} {', '.join(keys)}|{', '.join(values)}"


NotNull: TypeAlias = tuple[bool, ...]
"""For each column of the rows in the state, whether it is NOT NULL."""


def not_null_in_state(node: Plan, silent: frozenset[str], needed: RequiredColumns, rules: Rules) -> NotNull:
    """The NOT NULL columns of the state that an operator of an optimised plan would write."""
    match node:
        case logical.Join():
            inputs = node.children
        case logical.Deduplicate(within_watermark=False) if rules.deduplication_state_compares == "whole rows":
            inputs = (node.child,)
        case _:
            return ()
    columns = _NotNullColumns(silent, needed, rules)
    return tuple(
        column.id in known
        for side, known in [(side, columns.not_null(side)) for side in inputs]
        for column in side.columns
        if column.id in needed[side]
    )


@dataclass(frozen=True)
class _NotNullColumns:
    _silent: frozenset[str]
    _needed: RequiredColumns
    _rules: Rules

    def not_null(self, node: Plan) -> frozenset[int]:
        """Ids of the NOT NULL output columns of a node."""
        match node:
            case logical.Filter():
                conditions, below = _together(node)
                if self._is_nothing(below) or self._is_narrowed(node, [below]):
                    return frozenset()
                required = frozenset[int]().union(*map(must_not_be_null, conditions))
                return self.not_null(below) | self._kept(required, below)
            case logical.Project():
                return self.not_null(node.child) if self._is_redundant(node) else frozenset()
            case logical.Watermark() if not self._rules.watermark_passes_not_null_on:
                return frozenset()
            case logical.Watermark() | logical.Deduplicate() | logical.Limit():
                return frozenset() if self._is_narrowed(node, [node.child]) else self.not_null(node.child)
            case logical.Union():
                raise Unpredictable("which columns of a union are NOT NULL in the state above it")
            case logical.Join(is_of_streams=True):
                if self._is_narrowed(node, [node.left] if node.how == "leftSemi" else node.children):
                    return frozenset()
                left, right = map(self.not_null, node.children)
                by_type = {"inner": left | right, "leftOuter": left, "leftSemi": left, "rightOuter": right}
                return by_type.get(node.how, frozenset())
            case _:
                return frozenset()

    def _kept(self, required: frozenset[int], below: Plan) -> frozenset[int]:
        """The columns that a filter makes NOT NULL: it is superfluous for those that a filter further down has made so."""
        if not isinstance(below, logical.Watermark):
            return required
        kept = required - self._filtered(below.child)
        return kept if self._rules.watermark_passes_not_null_on else kept & {below.column.id}

    def _filtered(self, node: Plan) -> frozenset[int]:
        """Ids of the columns in which no row has NULL because a filter drops such rows, in this micro-batch."""
        if self._is_nothing(node):
            return frozenset()
        match node:
            case logical.Filter():
                return self._filtered(node.child) | must_not_be_null(node.condition)
            case logical.Project():
                below = self._filtered(node.child)
                passed_on = (item for item in node.named if item.expression.kind == "column")
                return frozenset(item.column.id for item in passed_on if item.expression.value in below)
            case _:
                return frozenset()

    def _is_nothing(self, node: Plan) -> bool:
        """Whether the micro-batch replaces it with an empty relation."""
        match node:
            case logical.StreamSource():
                return node.stream in self._silent
            case logical.Filter() | logical.Project():
                return self._is_nothing(node.child)
            case _:
                return False

    def _is_narrowed(self, node: Plan, below: Iterable[Plan]) -> bool:
        """Whether a node reads columns that are not used above it: the pruning projection loses NOT NULL."""
        return bool(frozenset().union(*(self._needed[child] for child in below)) - self._needed[node])

    def _is_redundant(self, node: logical.Project) -> bool:
        """Whether a projection is removed because it passes all columns on unchanged. Constants may be computed above it."""
        made = [item for item in node.named if item.column.id in self._needed[node]]
        if self._rules.constant_columns_of_joins == "of the present plan":
            made = [item for item in made if not item.expression.is_constant]
        given = [column.id for column in node.child.columns if column.id in self._needed[node.child]]
        return [item.column.id for item in made] == given and all(item.expression.kind == "column" for item in made)


def _together(node: logical.Filter) -> tuple[list[Expression], Plan]:
    """The conditions of consecutive filters, and the node below them."""
    conditions, below = [node.condition], node.child
    while isinstance(below, logical.Filter):
        conditions.append(below.condition)
        below = below.child
    return conditions, below


def _opens_store_below(node: Plan, partitions: int) -> bool:
    """An aggregation finds its own store first, and a join does not look it up."""
    if isinstance(node, logical.StatefulProcessor) and node.initial is not None:
        return False
    if not isinstance(node, logical.Deduplicate | logical.Limit | logical.StateFunction | logical.StatefulProcessor):
        return False
    below, names = _below(node.child)
    if not isinstance(below, logical.Aggregate):
        return False
    by = [key.column.id for key in below.keys if key is not below.session]
    if isinstance(node, logical.Limit):
        return not by or partitions == 1
    return not by or [names.get(key.id) for key in node.keys] == by


def _below(node: Plan) -> tuple[Plan, Mapping[int, int]]:
    """The node that rows come from in the same task, and a mapping of column ids to that node's."""
    match node:
        case logical.Filter() | logical.Watermark():
            return _below(node.child)
        case logical.Project():
            below, names = _below(node.child)
            passed_on = [item for item in node.named if item.expression.kind == "column"]
            ids = ((item.column.id, item.expression.value) for item in passed_on)
            return below, {ours: names[its] for ours, its in ids if its in names}
        case _:
            return node, {column.id: column.id for column in node.columns}
