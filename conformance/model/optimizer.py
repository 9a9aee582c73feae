"""What Spark's optimiser does to a plan that can be seen from outside: filters move below watermarks, columns go that nothing needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from conformance.model.columns import BOOLEAN
from conformance.model.expressions import Expression, conjuncts, must_not_be_null, substitute
from conformance.model.expressions import column as column_expression
from conformance.model.plan import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    JoinType,
    Limit,
    Plan,
    Project,
    Source,
    Static,
    Union,
    Watermark,
    stateful,
    streams,
)
from conformance.model.rules import Rules
from conformance.model.unpredictable import Unpredictable

PRESERVED = {
    "inner": (),
    "leftOuter": ("left",),
    "rightOuter": ("right",),
    "fullOuter": ("left", "right"),
    "leftSemi": (),
}
"""Join type → the sides whose rows come out without a match too, so that no condition of the join may remove them."""


def optimized(plan: Plan, rules: Rules) -> Plan:
    """The plan with each filter where it runs."""
    match plan:
        case Filter():
            child = optimized(plan.child, rules)
            if plan.condition.is_constant and rules.false_filters_cut_the_plan and stateful(child):
                raise Unpredictable("a filter that looks at no column, above state")
            return reduce(lambda below, part: _place(part, below, rules), conjuncts(plan.condition), child)
        case Join() if plan.is_of_streams or plan.how == "inner":
            return _with_conditions_placed(plan, rules)
        case Join():
            return replace(plan, left=optimized(plan.left, rules), right=optimized(plan.right, rules))
        case Union():
            return replace(plan, branches=tuple(optimized(branch, rules) for branch in plan.branches))
        case Source() | Static():
            return plan
        case Project() | Aggregate():
            return replace(plan, child=_with_times(plan, optimized(plan.child, rules), rules))
        case _:
            return replace(plan, child=optimized(plan.child, rules))


def _with_times(plan: Project | Aggregate, child: Plan, rules: Rules) -> Plan:
    """The child of a node that makes windows, filtered by what windows filter by: rows without time are in none."""
    for one in plan.named if isinstance(plan, Project) else plan.keys:
        if one.expression.kind == "window" and one.expression.args[0].kind == "column":
            child = _place(_not_null(one.expression.args[0]), child, rules)
    return child


def _not_null(column: Expression) -> Expression:
    return Expression("call", BOOLEAN, (column,), "is not null")


def _place(condition: Expression, plan: Plan, rules: Rules) -> Plan:
    """The plan filtered by a condition, as far below its top as the condition may run."""
    if not condition.is_deterministic:
        return Filter(plan, condition)
    match plan:
        case Filter() if plan.condition == condition:
            return plan
        case Filter():
            return replace(plan, child=_place(condition, plan.child, rules))
        case Watermark() if rules.filters_go_below_the_watermark and plan.column.id not in condition.references:
            return replace(plan, child=_place(condition, plan.child, rules))
        case Project():
            made = {one.column.id: one.expression for one in plan.named}
            of = [made[id] for id in condition.references]
            if all(one.is_deterministic and one.kind not in ("window", "session") for one in of):
                return replace(plan, child=_place(substitute(condition, made), plan.child, rules))
            return Filter(plan, condition)
        case Union():
            below = []
            for branch in plan.branches:
                names = {
                    ours.id: column_expression(its) for ours, its in zip(plan.columns, branch.columns, strict=True)
                }
                below.append(_place(substitute(condition, names), branch, rules))
            return replace(plan, branches=tuple(below))
        case Aggregate() if (
            condition.references
            and condition.references <= {key.column.id for key in plan.keys}
            and plan.session is None
        ):
            made = {key.column.id: key.expression for key in plan.keys}
            if all(made[id].kind != "window" for id in condition.references):
                return replace(plan, child=_place(substitute(condition, made), plan.child, rules))
            return Filter(plan, condition)
        case Join() if plan.is_of_streams:
            return _place_on_join(condition, plan, rules)
        case _:
            return Filter(plan, condition)


def _place_on_join(condition: Expression, join: Join, rules: Rules) -> Plan:
    narrowed = _without_needless_nulls(condition, join)
    if narrowed.how != join.how:
        join = _with_conditions_placed(narrowed, rules)
    for side in ("left", "right"):
        inside = condition.references <= {one.id for one in getattr(join, side).columns}
        if inside and (join.how in ("inner", "leftSemi") or side in PRESERVED[join.how]):
            below: Plan = _place(condition, getattr(join, side), rules)
            return replace(join, left=below) if side == "left" else replace(join, right=below)
    if join.how not in ("inner", "leftSemi"):
        raise Unpredictable("a filter above an outer join")
    return Filter(join, condition)


def _without_needless_nulls(condition: Expression, join: Join) -> Join:
    """An outer join whose null rows a filter above it takes out again is none on that side."""
    wanted = must_not_be_null(condition)
    left = "left" in PRESERVED[join.how] and not wanted & {one.id for one in join.right.columns}
    right = "right" in PRESERVED[join.how] and not wanted & {one.id for one in join.left.columns}
    if join.how in ("inner", "leftSemi"):
        return join
    how: JoinType = "fullOuter" if left and right else "leftOuter" if left else "rightOuter" if right else "inner"
    return replace(join, how=how)


def _with_conditions_placed(join: Join, rules: Rules) -> Join:
    """Parts of a join's condition that look at one side filter it, and so does what the condition needs not to be NULL.

    Not on a side that an outer join preserves: there such a row comes out with nulls.
    """
    left, right = optimized(join.left, rules), optimized(join.right, rules)
    sides: dict[str, Plan] = {"left": left, "right": right}
    not_null = must_not_be_null(join.condition)
    rest = []
    for part in conjuncts(join.condition):
        side = _side_of(part, left, right)
        if side is not None and side not in PRESERVED[join.how]:
            sides[side] = _place(part, sides[side], rules)
        else:
            rest.append(part)
    for name, plan in sides.items():
        if name in PRESERVED[join.how]:
            continue
        for one in plan.columns:
            if one.id in not_null:
                sides[name] = _place(_not_null(column_expression(one)), sides[name], rules)
    return replace(join, left=sides["left"], right=sides["right"], condition=all_of(rest))


def _side_of(part: Expression, left: Plan, right: Plan) -> str | None:
    """The side a condition looks at, where it looks at one alone."""
    used = part.references
    for name, plan in (("left", left), ("right", right)):
        if used and used <= {one.id for one in plan.columns}:
            return name
    return None


def all_of(parts: Iterable[Expression]) -> Expression:
    """The conditions held together by AND; true where there is none."""
    held = list(parts)
    if not held:
        return Expression("literal", BOOLEAN, value=True)
    return reduce(lambda left, right: Expression("call", BOOLEAN, (left, right), "and"), held)


@dataclass(frozen=True)
class Needed:
    """Which columns of each node something above it, or the sink, needs."""

    by_node: Mapping[int, frozenset[int]]

    def of(self, plan: Plan) -> frozenset[int]:
        """Ids of the columns of a node's output that the plan keeps."""
        return self.by_node[id(plan)]


def needed(plan: Plan) -> Needed:
    """Columns that nothing needs are gone before an operator sees them (so SPARK-58979 comes about)."""
    found: dict[int, frozenset[int]] = {}
    _need(plan, frozenset(one.id for one in plan.columns), found)
    return Needed(found)


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
            of_outputs = _read(one.expression for one in plan.outputs) - keys
            _need(plan.child, _read(key.expression for key in plan.keys) | of_outputs, found)
        case Deduplicate():
            _need(plan.child, columns | {key.id for key in plan.keys}, found)
        case Limit():
            _need(plan.child, columns, found)
        case Join():
            wanted = columns | plan.condition.references
            for side in plan.children:
                _need(side, wanted & {one.id for one in side.columns}, found)
        case Source() | Static():
            pass


def _read(expressions: Iterable[Expression]) -> frozenset[int]:
    return frozenset(id for expression in expressions for id in expression.references)


def constant_of(id: int, plan: Plan, silent: frozenset[str], rules: Rules) -> Expression | None:
    """The literal that a column of a node is, by the present plan; None where it is none.

    Args:
        id: of the column.
        plan: the node.
        silent: streams that have nothing new in this micro-batch.
        rules: say whether branches over them vanish.
    """
    match plan:
        case Project():
            expression = next(one.expression for one in plan.named if one.column.id == id)
            if expression.is_constant:
                return expression
            return constant_of(expression.value, plan.child, silent, rules) if expression.kind == "column" else None
        case Filter() | Limit():
            return constant_of(id, plan.child, silent, rules)
        case Union():
            place = [one.id for one in plan.columns].index(id)
            branches = [
                branch
                for branch in plan.branches
                if not (rules.empty_union_branches_vanish and streams(branch) <= silent)
            ]
            if len(branches) != 1:
                return None
            return constant_of(branches[0].columns[place].id, branches[0], silent, rules)
        case _:
            return None
