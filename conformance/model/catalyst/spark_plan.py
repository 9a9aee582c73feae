"""All that the model asks of Catalyst: which plan runs, which columns it needs, and whether it can read the state of another.

Look into ``optimizer`` (filters, those that joins infer, constants and unused columns) and ``state_format`` (what the state of an
operator is written for).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from conformance.model.catalyst.optimizer import (
    RequiredColumns,
    check_aggregations,
    check_event_times,
    constant_of,
    is_empty,
    optimized,
    required_columns,
    with_empty_sides,
)
from conformance.model.catalyst.state_format import NotNull, not_null_in_state, opens_store_of_another, schema_of
from conformance.model.plan import Deduplicate, EmptySide, Plan, stateful, walk
from conformance.model.rules import Rules

__all__ = ["RequiredColumns", "SparkPlan", "WrittenState", "constant_of", "is_empty"]


@dataclass(frozen=True)
class SparkPlan:
    """A plan after Spark's optimizer.

    Raises:
        Unpredictable: the model does not know what the optimizer makes of the query.
    """

    written: Plan
    """The plan before optimization."""
    rules: Rules
    _of_silent: dict[frozenset[str], SparkPlan] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def plan(self) -> Plan:
        """The plan that runs."""
        plan = optimized(self.written, self.rules)
        check_aggregations(plan)
        check_event_times(plan)
        return plan

    @cached_property
    def needed(self) -> RequiredColumns:
        """The columns that each node of the plan that runs needs."""
        return required_columns(self.plan)

    def of_micro_batch(self, silent: frozenset[str]) -> SparkPlan:
        """The plan of a micro-batch. Spark optimizes every micro-batch by itself, knowing which streams have no new rows (``silent``)."""
        if silent not in self._of_silent:
            sides = with_empty_sides(self.written, silent)
            empty = any(isinstance(node, EmptySide) for node in walk(sides))
            self._of_silent[silent] = SparkPlan(sides, self.rules) if empty else self
        return self._of_silent[silent]

    @cached_property
    def state_schemas(self) -> tuple[str, ...]:
        """The schema of the state of each operator."""
        return tuple(schema_of(node, self.needed) for node in stateful(self.plan))

    def not_null(self, silent: frozenset[str]) -> tuple[NotNull, ...]:
        """The NOT NULL columns of the state of each operator, in a micro-batch without new rows on the silent streams."""
        return tuple(not_null_in_state(node, silent, self.needed, self.rules) for node in stateful(self.plan))

    def check_reads_state_of(self, other: SparkPlan) -> None:
        """Compare the types of the state with those of the plan that wrote the newest state.

        Raises:
            Refused: the state has an incompatible schema.
            Unpredictable: the model does not know whether it is compatible.
        """
        if other is self:
            return
        for node, before, after in zip(stateful(self.plan), other.state_schemas, self.state_schemas, strict=True):
            if before == after:
                continue
            if before.partition("|")[0] != after.partition("|")[0]:
                raise self.rules.refusal("state of another key")
            if not isinstance(node, Deduplicate):
                raise self.rules.refusal("state of another value")
            if self.rules.deduplication_state_compares == "whole rows":
                raise self.rules.refusal("deduplication state of another schema")

    def check_not_null(self, silent: frozenset[str], first: WrittenState) -> None:
        """Compare the NOT NULL columns of the first micro-batch of a run with those the state was first written with.

        Raises:
            Refused: they are incompatible.
        """
        changes = {
            after - before
            for written, now in zip(first.plan.not_null(first.silent), self.not_null(silent), strict=True)
            for before, after in zip(written, now, strict=False)
        } - {0}
        refused = {"may be as they are": 0, "may not come up": 1, "may not go": -1}
        if changes and refused[self.rules.not_null_columns_of_state] in changes:
            raise self.rules.refusal("state of another value")

    def opens_store_of_another(self, partitions: int) -> bool:
        """Whether an operator of a query in RocksDB finds the store of an aggregation below it, with this many partitions of state."""
        return opens_store_of_another(self.plan, partitions=partitions)


@dataclass(frozen=True)
class WrittenState:
    """What wrote the state of a query in its first micro-batch."""

    plan: SparkPlan
    silent: frozenset[str]
    """The streams without new rows in that micro-batch."""
