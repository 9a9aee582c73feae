"""Checks when a query starts, independent of its rows. Sources: `UnsupportedOperationChecker`, SPARK-33259, SPARK-40940."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.model.aggregates import DISTINCT
from conformance.model.errors import Unpredictable
from conformance.model.join_bounds import KeyBound, bounds, is_time_interval, lower_bounds
from conformance.model.operators import OutputMode
from conformance.model.plan import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Limit,
    Plan,
    Project,
    Sort,
    StatefulProcessor,
    StateFunction,
    is_streaming,
    stateful,
    walk,
)
from conformance.model.rules import Rules


def check_start(plan: Plan, mode: OutputMode, rules: Rules, *, check_correctness: bool) -> None:
    """
    Args:
        plan: the query.
        mode: its output mode.
        rules: which refusals apply.
        check_correctness: the conf ``statefulOperator.checkCorrectness.enabled``.

    Raises:
        Refused: Spark refuses to start the query.
        Unpredictable: the model does not know the result.
    """
    aggregations = [node for node in walk(plan) if isinstance(node, Aggregate) and _is_noticed(node, rules)]
    names = [
        *_several_aggregations(aggregations),
        *_several_functions(plan),
        *_modes(aggregations, mode),
        *_distinct(aggregations),
        *_functions(plan, aggregations, mode),
        *_deduplications(plan),
        *_sorting(plan, mode, aggregations),
        *_limits(plan, mode),
        *_increasing_ids(plan),
    ]
    _refuse_first(names, rules)
    for node in walk(plan):
        if isinstance(node, Join) and node.is_of_streams:
            _check_join(node, mode, rules)
    if check_correctness:
        _refuse_first(_chains(plan, mode, rules), rules)


def _refuse_first(names: Iterable[tuple[str, str]], rules: Rules) -> None:
    for name, what in names:
        if name in rules.refusals:
            raise rules.refusal(name, what)


RefusalNames = Iterator[tuple[str, str]]
"""Names and subjects of refusals that may apply."""


def _is_noticed(node: Aggregate, rules: Rules) -> bool:
    """3.0.0 did not recognise DISTINCT as an aggregation (SPARK-32456)."""
    return rules.distinct_is_noticed or not node.from_distinct


def _several_aggregations(aggregations: list[Aggregate]) -> RefusalNames:
    if len(aggregations) > 1:
        yield "several aggregations", ""


def _several_functions(plan: Plan) -> RefusalNames:
    if sum(isinstance(node, StateFunction) for node in walk(plan)) > 1:
        yield "several state functions", ""


def _functions(plan: Plan, aggregations: list[Aggregate], mode: OutputMode) -> RefusalNames:
    """
    Raises:
        Unpredictable: the model does not know whether versions refuse it.
    """
    for node in walk(plan):
        if isinstance(node, StatefulProcessor) and node.mode != mode:
            raise Unpredictable("transformWithState in another output mode than the query")
        if not isinstance(node, StateFunction):
            continue
        if aggregations and node.mode == "update":
            yield "update function with an aggregation", ""
        elif any(isinstance(below, Aggregate) for below in walk(node.child)):
            raise Unpredictable("applyInPandasWithState after an aggregation")
        elif not aggregations and node.mode != mode:
            yield "state function in another mode", f"{node.mode} mode is not supported with {mode.capitalize()}"
        if node.timeout == "EventTimeTimeout" and not any(one.is_event_time for one in node.child.columns):
            yield "event-time timeout without watermark", ""


def _chains(plan: Plan, mode: OutputMode, rules: Rules) -> RefusalNames:
    """Stateful operators above others whose output may be late for them."""
    for above in filter(lambda node: _may_miss_late_rows(node, rules), stateful(plan)):
        for below in (node for child in above.children for node in stateful(child)):
            if isinstance(below, StateFunction) and below.timeout == "EventTimeTimeout":
                yield "stateful after event-time timeout", ""
            if isinstance(below, Aggregate):
                yield (
                    (
                        "stateful after append aggregation"
                        if mode == "append"
                        else "stateful after update or complete aggregation"
                    ),
                    "",
                )
            if isinstance(below, Join) and below.how != "inner":
                yield "stateful after outer join", ""
            if isinstance(below, Join) and is_time_interval(below):
                yield "stateful after time-interval join", ""


def _may_miss_late_rows(node: Plan, rules: Rules) -> bool:
    """Whether the checks consider an operator. Source: `UnsupportedOperationChecker.isStatefulOperation`."""
    match node:
        case Limit():
            return False
        case Deduplicate(within_watermark=False) if rules.deduplication_by_key_may_follow:
            return any(key.is_event_time for key in node.keys)
        case _:
            return True


def _modes(aggregations: list[Aggregate], mode: OutputMode) -> RefusalNames:
    # Of several aggregations Spark only checks the topmost.
    if mode == "append" and aggregations and not any(key.column.is_event_time for key in aggregations[0].keys):
        yield "append without watermark", ""
    if mode == "complete" and not aggregations:
        yield "complete without aggregation", ""
    if mode == "update" and any(node.session is not None for node in aggregations):
        yield "update of sessions", ""


def _distinct(aggregations: list[Aggregate]) -> RefusalNames:
    for node in filter(is_streaming, aggregations):
        if any(call.name.endswith(DISTINCT) for one in node.outputs for call in one.expression.aggregates):
            yield "distinct aggregation", ""


def _increasing_ids(plan: Plan) -> RefusalNames:
    """An id that increases within a micro-batch starts again in the next one (SPARK-21947)."""
    for node in walk(plan):
        named = (*node.keys, *node.outputs) if isinstance(node, Aggregate) else ()
        named = node.named if isinstance(node, Project) else named
        used = [one.expression for one in named] + ([node.condition] if isinstance(node, Filter) else [])
        if any(part.name == "monotonically_increasing_id" for one in used for part in one.walk()):
            yield "monotonically increasing id", ""


def _deduplications(plan: Plan) -> RefusalNames:
    for node in walk(plan):
        if isinstance(node, Deduplicate) and is_streaming(node):
            if any(isinstance(below, Aggregate) for below in walk(node.child)):
                yield "deduplication after aggregation", ""
            if node.within_watermark and not any(one.is_event_time for one in node.child.columns):
                yield "dropDuplicatesWithinWatermark without watermark", ""


def _sorting(plan: Plan, mode: OutputMode, aggregations: list[Aggregate]) -> RefusalNames:
    if any(isinstance(node, Sort) and is_streaming(node) for node in walk(plan)) and not (
        mode == "complete" and aggregations
    ):
        yield "sorting", ""


def _limits(plan: Plan, mode: OutputMode) -> RefusalNames:
    if mode == "update" and any(isinstance(node, Limit) and is_streaming(node) for node in walk(plan)):
        yield "limit in update mode", ""


def _check_join(node: Join, mode: OutputMode, rules: Rules) -> None:
    if mode != "append":
        allowed = (
            mode == "update" and node.how in ("inner", "leftSemi") and "inner join in update mode" not in rules.refusals
        )
        if not allowed:
            name = (
                "inner join in update mode"
                if mode == "update" and node.how == "inner"
                else "join in update or complete mode"
            )
            # Before 3.0 the check covered inner joins only (SPARK-28223).
            if name in rules.refusals or node.how == "inner":
                raise rules.refusal(name, mode.capitalize())
    kind = {"fullOuter": "full outer join", "leftSemi": "left semi join"}.get(node.how)
    if kind is not None and kind in rules.refusals:
        raise rules.refusal(kind)
    if node.how != "inner" and "outer join without bound" in rules.refusals and not _has_bound(node):
        raise rules.refusal("outer join without bound", node.how)


def _has_bound(node: Join) -> bool:
    """Whether a key has a watermark, or the nullable side has one and a range bounds the other side."""
    if isinstance(bounds(node)[0], KeyBound):
        return True
    left = bool(lower_bounds(node.left.columns, node.right.columns, node, folded=False))
    right = bool(lower_bounds(node.right.columns, node.left.columns, node, folded=False))
    return {"leftOuter": left, "leftSemi": left, "rightOuter": right, "fullOuter": left or right}[node.how]
