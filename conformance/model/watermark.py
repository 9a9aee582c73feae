"""Watermarks: of each input, of the query, and of each stateful operator. Sources: SPARK-18124, SPARK-22017, SPARK-42376."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from conformance.model import plan as logical
from conformance.model.columns import Value
from conformance.model.expressions import Expression
from conformance.model.join_bounds import RangeBound, bounds
from conformance.model.plan import Plan, is_stateful, stateful, walk, watermarks
from conformance.model.rules import Rules

Policy: TypeAlias = Literal["min", "max"]
Slot: TypeAlias = int
"""Identifies a watermark node across micro-batches."""


@dataclass(frozen=True)
class EventTimeStatistics:
    """Event-time statistics of a watermark node in a micro-batch, in ms."""

    min: int
    max: int
    avg: int

    @classmethod
    def of(cls, times: Sequence[Value], *, is_window: bool, rules: Rules) -> EventTimeStatistics | None:
        """The statistics of event times in µs, nulls included, or of windows, which Spark misreads; None without rows."""
        if not times:
            return None
        counted = [rules.event_time_ms(rules.window_reads_as_us if is_window else time) for time in times]
        return cls(min(counted), rules.highest_of_batch(counted), int(sum(counted) / len(counted)))


@dataclass(frozen=True)
class InputAdvance:
    """The watermark of one input in a micro-batch; all in ms."""

    column: str
    delay_ms: int
    highest_ms: int | None
    """The highest event time; None without rows."""
    computed_ms: int | None
    """The highest minus the delay."""
    before_ms: int | None
    """The watermark before; None if there was none."""
    after_ms: int | None


@dataclass(frozen=True)
class WatermarkAdvance:
    """The watermark of the query before and after a micro-batch; in ms."""

    nodes: tuple[InputAdvance, ...]
    policy: Policy
    before_ms: int
    after_ms: int


@dataclass(frozen=True)
class WatermarkTracker:
    """The watermarks that a run keeps between micro-batches; in ms."""

    global_ms: int
    nodes: Mapping[Slot, int]

    def after(
        self,
        plan: Plan,
        of_nodes: Sequence[EventTimeStatistics | None],
        silent: frozenset[str],
        policy: Policy,
        rules: Rules,
    ) -> tuple[WatermarkTracker, WatermarkAdvance]:
        """The watermarks after a micro-batch with these statistics of each watermark node, in plan order."""
        nodes = dict(self.nodes)
        readings = []
        places = slots(plan, silent, rules)
        for node, statistics, slot in zip(watermarks(plan), of_nodes, places, strict=True):
            delay_ms = node.column.delay_ms or 0
            before = nodes.get(slot) if slot is not None else None
            computed = None
            if slot is not None and statistics is not None:
                computed = rules.node_watermark_ms(statistics.max, delay_ms)
                if before is None or computed > before or not rules.node_keeps_its_highest:
                    nodes[slot] = computed
            elif slot is not None and before is None and rules.silent_node_ms is not None:
                nodes[slot] = rules.silent_node_ms
            highest = None if statistics is None else statistics.max
            after = nodes.get(slot) if slot is not None else None
            readings.append(InputAdvance(node.column.name, delay_ms, highest, computed, before, after))
        chosen = rules.policies[policy](tuple(nodes.values())) if nodes else self.global_ms
        moved = chosen if chosen > self.global_ms or (nodes and not rules.watermark_never_falls) else self.global_ms
        return WatermarkTracker(moved, nodes), WatermarkAdvance(tuple(readings), policy, self.global_ms, moved)


def slots(plan: Plan, silent: frozenset[str], rules: Rules) -> tuple[Slot | None, ...]:
    """The slot of each watermark node; None if the physical plan of this micro-batch does not have the node.

    By position: if an input of a join without new rows has the same exchange as an earlier one, Spark reuses that exchange
    (SPARK-50046), and the following nodes move up.
    """
    nodes = watermarks(plan)
    hidden = _reused(plan, silent) if len(nodes) > 1 and silent else frozenset()
    if not hidden or rules.nodes_known_by == "themselves":
        return tuple(range(len(nodes)))
    places: list[Slot | None] = []
    for node in nodes:
        places.append(None if id(node) in hidden else sum(1 for place in places if place is not None))
    return tuple(places)


def _reused(plan: Plan, silent: frozenset[str]) -> frozenset[int]:
    """The watermark nodes (by ``id``) in inputs whose exchange is reused."""
    shapes: set[object] = set()
    hidden: set[int] = set()
    joins = [node for node in walk(plan) if isinstance(node, logical.Join) and node.is_of_streams]
    for side in (side for join in reversed(joins) for side in join.children):  # from the bottom up
        shape = _shape(side, silent)
        if shape in shapes:
            hidden |= {id(node) for node in watermarks(side)}
        shapes |= {shape} - {None}
    return frozenset(hidden)


def _shape(plan: Plan, silent: frozenset[str]) -> object | None:
    """A value that is equal for inputs with the same exchange; None if the input has new rows or other operations."""
    match plan:
        case logical.StreamSource():
            return ("nothing", tuple(str(column.type) for column in plan.columns)) if plan.stream in silent else None
        case logical.Watermark() | logical.Filter() | logical.Project():
            below = _shape(plan.child, silent)
            if below is None:
                return None
            places = {column.id: place for place, column in enumerate(plan.child.columns)}
            if isinstance(plan, logical.Watermark):
                return "watermark", places[plan.column.id], plan.column.delay_ms, below
            if isinstance(plan, logical.Filter):
                return "filter", _form(plan.condition, places), below
            return "project", tuple(_form(item.expression, places) for item in plan.named), below
        case _:
            return None


def _form(expression: Expression, places: Mapping[int, int]) -> object:
    value = places.get(expression.value) if expression.kind == "column" else expression.value
    args = tuple(_form(arg, places) for arg in expression.args)
    return expression.kind, expression.name, str(expression.type), value, args


def policy_named(text: str, rules: Rules) -> Policy:
    """The policy named by ``multipleWatermarkPolicy``, in any letter case."""
    if text.lower() not in rules.policies:
        raise rules.refusal("unknown policy", text)
    return "max" if text.lower() == "max" else "min"


def input_watermarks(plan: Plan, global_ms: int, rules: Rules, *, single: bool) -> tuple[int, ...]:
    """The input watermark of each stateful operator in ms, in the order of ``plan.stateful`` (SPARK-42376).

    ``single``: whether all operators share one watermark (``allowMultiple`` is off).
    """
    operators = stateful(plan)
    shared = not operators or single or global_ms == 0 or _is_the_same_everywhere(plan, operators)
    if shared or not rules.watermark_per_operator:
        return (global_ms,) * len(operators)
    inputs: dict[int, int] = {}
    _output_watermark(plan, global_ms, rules, inputs)
    return tuple(inputs[id(operator)] for operator in operators)


def _is_the_same_everywhere(plan: Plan, operators: Sequence[Plan]) -> bool:
    """Whether each version gives the operators the watermark of the query: there is one, above all watermark nodes, none of them nested."""
    nodes = watermarks(plan)
    if len(operators) != 1 or not nodes or any(len(watermarks(node)) > 1 for node in nodes):
        return False
    return len(watermarks(operators[0])) == len(nodes)


def _output_watermark(plan: Plan, global_ms: int, rules: Rules, inputs: dict[int, int]) -> int | None:
    """The watermark of the output of a node; None if there is no watermark below it."""
    outputs = [_output_watermark(child, global_ms, rules, inputs) for child in plan.children]
    below = [watermark_ms for watermark_ms in outputs if watermark_ms is not None]
    if isinstance(plan, logical.Watermark):
        if below and "second watermark" in rules.refusals:
            raise rules.refusal("second watermark")
        return global_ms
    lowest = min(below, default=None)
    if not is_stateful(plan):
        return lowest
    at_input = inputs[id(plan)] = lowest or 0
    if isinstance(plan, logical.StateFunction):
        return None
    if isinstance(plan, logical.StatefulProcessor):
        return at_input if plan.time_mode != "ProcessingTime" and rules.processors_pass_the_watermark_on else None
    if isinstance(plan, logical.Join) and rules.join_output_waits:
        semi = plan.how == "leftSemi" and rules.semi_join_output_waits_for == "its left side"
        held_back = [
            bound.state_watermark_ms(at_input, rules)
            for bound in bounds(plan)[: 1 if semi else 2]
            if isinstance(bound, RangeBound)
        ]
        return None if lowest is None else max(0, min([at_input, *held_back]))
    return lowest
