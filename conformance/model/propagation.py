"""Which watermark each stateful operator goes by. Source: SPARK-42376."""

from __future__ import annotations

from conformance.model.join_bounds import ByRange, bounds
from conformance.model.parsing import refused
from conformance.model.plan import Join, Plan, Watermark, is_stateful, stateful
from conformance.model.rules import Rules


def input_watermarks(plan: Plan, global_ms: int, rules: Rules, *, single: bool) -> tuple[int, ...]:
    """The watermark, in ms, at the input of each stateful operator, in the order of ``plan.stateful``.

    Args:
        plan: the plan of the query.
        global_ms: the watermark of the query.
        rules: of the version.
        single: whether one watermark serves all operators (``allowMultiple`` is off).

    Raises:
        Refused: a watermark is defined above another.
    """
    operators = stateful(plan)
    if single or not rules.watermark_per_operator or global_ms == 0:
        return (global_ms,) * len(operators)
    found: dict[int, int] = {}
    _output(plan, global_ms, rules, found)
    return tuple(found[id(operator)] for operator in operators)


def _output(plan: Plan, global_ms: int, rules: Rules, found: dict[int, int]) -> int | None:
    """The watermark of what a node hands on; None where there is none below it."""
    below = [one for child in plan.children if (one := _output(child, global_ms, rules, found)) is not None]
    if isinstance(plan, Watermark):
        if below and "second watermark" in rules.refusals:
            raise refused(rules, "second watermark")
        return global_ms
    lowest = min(below, default=None)
    if not is_stateful(plan):
        return lowest
    at_input = lowest if lowest is not None else 0
    found[id(plan)] = at_input
    if isinstance(plan, Join) and rules.join_output_waits:
        held_back = [bound.state_watermark_ms(at_input, rules) for bound in bounds(plan) if isinstance(bound, ByRange)]
        return None if lowest is None else max(0, min([at_input, *held_back]))
    return lowest
