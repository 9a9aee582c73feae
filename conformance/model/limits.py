"""Limits of complete results. Source: `StreamingGlobalLimitStrategy`, which gives state to a limit only where rows are appended."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.model.columns import Row, Value
from conformance.model.errors import Unpredictable
from conformance.model.expressions import evaluate
from conformance.model.operators import OutputMode
from conformance.model.plan import Aggregate, Head, Limit, Plan, Sort, SortKey, is_streaming, walk, with_children


def with_limits_of_results(plan: Plan, mode: OutputMode) -> Plan:
    """The plan with ``Head`` for each limit above a complete result, which every micro-batch computes again."""
    changed = with_children(plan, lambda child: with_limits_of_results(child, mode))
    if isinstance(changed, Limit) and mode == "complete" and _is_of_a_result(changed):
        return Head(changed.child, changed.rows)
    return changed


def _is_of_a_result(limit: Limit) -> bool:
    return any(isinstance(node, Aggregate) and is_streaming(node) for node in walk(limit.child))


def ordered(rows: Sequence[Row], keys: Sequence[SortKey]) -> list[Row]:
    """The rows, sorted."""
    found = list(rows)
    for key in reversed(keys):
        nulls = [row for row in found if evaluate(key.expression, row) is None]
        others = [row for row in found if evaluate(key.expression, row) is not None]
        others.sort(key=lambda row: evaluate(key.expression, row), reverse=not key.ascending)
        found = [*nulls, *others] if key.nulls_first else [*others, *nulls]
    return found


def first_rows(rows: Sequence[Row], limit: Head) -> list[Row]:
    """The first rows of a result.

    Args:
        rows: of the node below, in its order.
        limit: how many.

    Raises:
        Unpredictable: which rows these are is not determined.
    """
    if len(rows) <= limit.rows:
        return list(rows)
    if not isinstance(limit.child, Sort):
        raise Unpredictable("a limit of a result without an order")
    last, next_one = (_sort_values(row, limit.child) for row in rows[limit.rows - 1 : limit.rows + 1])
    if last == next_one:
        raise Unpredictable("a limit between rows that the order does not tell apart")
    return list(rows[: limit.rows])


def _sort_values(row: Row, sort: Sort) -> list[Value]:
    return [evaluate(key.expression, row) for key in sort.keys]
