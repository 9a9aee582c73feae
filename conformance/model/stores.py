"""Operators that run in one task, where the upper takes the lower's store for its own. Source: SPARK-51955, `StateStoreRDD`."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.model.plan import Aggregate, Deduplicate, Filter, Limit, Plan, Project, Watermark, stateful


def takes_anothers_store(plan: Plan, *, partitions: int) -> bool:
    """Whether an operator looks for its store and finds the one that an aggregation below it has been reading.

    Args:
        plan: of a query whose state is in RocksDB.
        partitions: of its state.
    """
    return any(_takes_anothers(node, partitions) for node in stateful(plan))


def _takes_anothers(node: Plan, partitions: int) -> bool:
    """An aggregation itself looks for the nearest store, which is its own; a join does not look."""
    if not isinstance(node, Deduplicate | Limit):
        return False
    below, names = _below(node.child)
    if not isinstance(below, Aggregate):
        return False
    by = [key.column.id for key in below.keys if key is not below.session]
    if isinstance(node, Limit):
        return not by or partitions == 1
    return not by or [names.get(key.id) for key in node.keys] == by


def _below(node: Plan) -> tuple[Plan, Mapping[int, int]]:
    """What rows come from, in the same task; and of the columns on the way up, which of its columns they are."""
    match node:
        case Filter() | Watermark():
            return _below(node.child)
        case Project():
            below, names = _below(node.child)
            handed_on = {one.column.id: one.expression.value for one in node.named if one.expression.kind == "column"}
            return below, {ours: names[its] for ours, its in handed_on.items() if its in names}
        case _:
            return node, {one.id: one.id for one in node.columns}
